"""What is shipped to the browser: little, complete, and made anew when the lab changes."""

import gzip
import zipfile

import pytest

from tools import vendor_pyodide
from tools.vendor_pyodide import TARGET, CannotVendor, fetch, lab_files, main, state

BUDGET = 5_400_000  # bytes after the click, as a server with gzip sends them


def test_it_is_small(live_site):
    sent = sum(len(gzip.compress(path.read_bytes())) for path in TARGET.iterdir())
    assert sent < BUDGET


def test_the_standard_library_is_compiled_and_trimmed(live_site):
    names = zipfile.ZipFile(TARGET / "stdlib.zip").namelist()
    assert {"random.pyc", "json/__init__.pyc", "traceback.pyc"} <= set(names) and len(names) < 200
    assert all(name.endswith(".pyc") for name in names)


def test_the_lab_has_source_and_bytecode_of_each_module(live_site):
    names = zipfile.ZipFile(TARGET / "lab.zip").namelist()
    sources = [name for name in names if name.endswith(".py")]
    assert {"lab/core/scheduler.py", "lab/live/registry.py"} <= set(sources) and len(names) == 2 * len(sources)
    assert not any("page.py" in name or "streams/programs" in name for name in names)


def test_the_licences_are_named(live_site):
    notice = (TARGET / "NOTICE.txt").read_text()
    assert "Pyodide 314.0.7, MPL-2.0" in notice and "CPython 3.14.2, PSF-2.0" in notice


def test_without_npm_it_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(vendor_pyodide, "NPM", tmp_path / "npm")
    monkeypatch.setattr(vendor_pyodide, "TARGET", tmp_path / "live")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main() == 2
    said = capsys.readouterr().err
    assert "npm isn't installed" in said and said.count("\n") == 1


def test_another_hash_than_the_lock_files_is_refused(live_site, monkeypatch, tmp_path):
    """A registry that serves something else under the same version."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("package.json", "package-lock.json"):
        text = (vendor_pyodide.HERE / name).read_text()
        (here / name).write_text(text.replace("sha512-0YvXxEhfEdpLfb", "sha512-0YvXxEhfEdpLfc"))
    monkeypatch.setattr(vendor_pyodide, "HERE", here)
    monkeypatch.setattr(vendor_pyodide, "NPM", tmp_path / "npm")
    with pytest.raises(CannotVendor, match=r"EINTEGRITY|integrity|network|ENOTFOUND"):
        fetch()


def test_a_change_in_the_lab_is_seen(monkeypatch, tmp_path):
    other = vendor_pyodide.ROOT / "lab/core/__init__.py"
    before = state()
    monkeypatch.setattr(vendor_pyodide, "lab_files", lambda: [path for path in lab_files() if path != other])
    assert state() != before
