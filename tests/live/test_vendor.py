"""What is shipped to the browser: little, complete, and made anew when the lab changes."""

import gzip
import io
import json
import re
import zipfile

import pytest

from tools import vendor_pyodide
from tools.settings import SOURCES
from tools.vendor_pyodide import HERE, PYODIDE, TARGET, WASM, CannotVendor, fetch, lab_files, main, state, vendor

BUDGET = 5_000_000  # bytes after the click, from a server that compresses scripts


def names() -> list[str]:
    return zipfile.ZipFile(io.BytesIO(gzip.decompress((TARGET / "python.zip.gzip").read_bytes()))).namelist()


def versions() -> dict[str, str]:
    """Of what is shipped: from the lock file, and from what it names."""
    lock = json.loads((HERE / "package-lock.json").read_text())
    info = json.loads((PYODIDE / "pyodide-lock.json").read_text())["info"]
    emscripten = info["platform"].removeprefix("emscripten_").replace("_", ".")
    pyodide = lock["packages"]["node_modules/pyodide"]["version"]
    return {"Pyodide": pyodide, "CPython": info["python"], "Emscripten": emscripten}


def test_it_is_small(live_site):
    texts = [*TARGET.glob("*.mjs"), *TARGET.glob("*.json"), vendor_pyodide.ROOT / "lab/live/front/live-worker.mjs"]
    sent = sum(len(gzip.compress(path.read_bytes())) for path in texts)
    sent += sum(path.stat().st_size for path in TARGET.glob("*.gzip"))
    assert 3_000_000 < sent < BUDGET


def test_python_is_compiled_and_trimmed(live_site):
    assert {"random.pyc", "json/__init__.pyc", "traceback.pyc", "lab/core/scheduler.pyc"} <= set(names())
    assert all(name.endswith(".pyc") for name in names()) and len(names()) < 250


def test_only_the_part_of_the_lab_that_figures_use_is_shipped(live_site):
    sources = {str(path.relative_to(vendor_pyodide.ROOT).with_suffix(".pyc")) for path in lab_files()}
    lab = {name for name in names() if name.startswith("lab/")}
    assert lab < sources and "lab/live/page.pyc" not in lab and not any("streams/programs" in name for name in lab)


def test_the_licences_are_named_in_the_versions_that_are_shipped(live_site):
    notice = (TARGET / "NOTICE.txt").read_text()
    page = (SOURCES / "credits.md").read_text(encoding="utf-8")
    for name, version in versions().items():
        assert notice.count(f"{name} {version}") >= 1 and page.count(f"{name} {version}") == 2, (name, version)
    assert "Mozilla Public License 2.0" in notice and "https://github.com/pyodide/pyodide/tree/" in notice
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in (TARGET / "LICENSE-python.txt").read_text()


def test_the_notice_has_the_libraries_in_the_versions_that_are_linked(live_site):
    notice, wasm = (TARGET / "NOTICE.txt").read_text(), (PYODIDE / WASM).read_bytes()
    linked = "zlib|bzip2|Zstandard|libmpdec|Expat|liblzma|SQLite|Emscripten"
    named = dict(re.findall(rf"\b({linked}) (\d+[.\d]*\d)", notice))
    assert sorted(named) == sorted(linked.split("|"))
    assert {name for name, version in named.items() if version.encode() not in wasm} == set()
    assert {name for name in re.findall(r"[A-Z]+-\w+\.txt", notice) if not (TARGET / name).exists()} == set()


def test_without_npm_it_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(vendor_pyodide, "NPM", tmp_path / "npm")
    monkeypatch.setattr(vendor_pyodide, "TARGET", tmp_path / "live")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main() == 2
    said = capsys.readouterr().err
    assert "npm isn't installed" in said and said.count("\n") == 1


def test_what_was_made_of_another_lab_is_not_left_where_it_cannot_be_made_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(vendor_pyodide, "NPM", tmp_path / "npm")
    monkeypatch.setattr(vendor_pyodide, "TARGET", tmp_path / "live")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "live").mkdir()
    (tmp_path / "live/state").write_text("of another lab")
    with pytest.raises(CannotVendor):
        vendor()
    assert not (tmp_path / "live").exists()


def test_another_hash_than_the_lock_files_is_refused(live_site, monkeypatch, tmp_path):
    """A registry that serves something else under the same version."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("package.json", "package-lock.json"):
        text = (vendor_pyodide.HERE / name).read_text()
        (here / name).write_text(text.replace("sha512-0YvXxEhfEdpLfb", "sha512-0YvXxEhfEdpLfc"))
    monkeypatch.setattr(vendor_pyodide, "HERE", here)
    monkeypatch.setattr(vendor_pyodide, "NPM", tmp_path / "npm")
    with pytest.raises(CannotVendor) as refused:
        fetch()
    said = str(refused.value)
    if "integrity" not in said.lower() and ("network" in said or "ENOTFOUND" in said):
        pytest.skip("npm's registry can't be reached")
    assert "integrity" in said.lower()


def test_a_change_in_the_lab_is_seen(monkeypatch, tmp_path):
    other = vendor_pyodide.ROOT / "lab/core/__init__.py"
    before = state()
    monkeypatch.setattr(vendor_pyodide, "lab_files", lambda: [path for path in lab_files() if path != other])
    assert state() != before
