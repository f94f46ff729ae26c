"""Sources and notebooks agree, runs happen only when code changed, and the public address is one setting."""

import shutil

import nbformat
import pytest

from tools import sync as sync_module
from tools.build_book import language_config
from tools.settings import LANGUAGES, ROOT, SOURCES, Address, load_config
from tools.sync import sync, sync_readme

HERE = Address.from_config(load_config())
FORK = Address("https://github.com/someone/my-fork", "trunk")


@pytest.fixture
def runs(monkeypatch):
    """Count the runs instead of starting kernels."""
    runs: list[str] = []

    def run(notebook, folder):
        runs.append(folder.name)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = 1
        notebook.metadata.book.run = {"device": "none"}

    monkeypatch.setattr(sync_module, "run", run)
    return runs


@pytest.fixture
def chapters(tmp_path):
    """A copy of one chapter and the home page."""
    others = [page.name for page in SOURCES.parent.glob("*/*.*") if page.stem not in ("index", "01-chunked-prefill")]
    return shutil.copytree(SOURCES.parent, tmp_path / "chapters", ignore=shutil.ignore_patterns(*others))


def edit(chapters, old, new, name="01-chunked-prefill.md"):
    path = chapters / "src" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def code_outputs(path):
    return [cell.outputs for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_the_committed_pages_are_what_the_sources_say():
    assert sync(SOURCES.parent, HERE, check=True) == []
    assert sync_readme(ROOT / "README.md", HERE, check=True) == []


def test_what_ran_a_notebook_stays_with_its_outputs_and_outputs_of_nobody_are_run_again(chapters, runs):
    page = chapters / "zh/01-chunked-prefill.ipynb"
    before = nbformat.read(page, as_version=4)
    edit(chapters, '+++ {"lang": "zh"}', '+++ {"lang": "both"}\n\nNEW PROSE\n\n+++ {"lang": "zh"}')
    sync(chapters, HERE)
    assert nbformat.read(page, as_version=4).metadata.book.run == before.metadata.book.run and runs == []
    del before.metadata.book["run"]
    nbformat.write(before, page)
    sync(chapters, HERE)
    assert runs == ["zh"]


def test_new_prose_is_written_without_a_run(chapters, runs):
    before = code_outputs(chapters / "zh/01-chunked-prefill.ipynb")
    edit(chapters, '+++ {"lang": "zh"}', '+++ {"lang": "both"}\n\nNEW PROSE\n\n+++ {"lang": "zh"}')
    assert len(sync(chapters, HERE, check=True)) == 2
    assert len(sync(chapters, HERE)) == 2 and runs == []
    assert "NEW PROSE" in (chapters / "en/01-chunked-prefill.ipynb").read_text()
    assert code_outputs(chapters / "zh/01-chunked-prefill.ipynb") == before
    assert sync(chapters, HERE, check=True) == []


def test_new_code_is_run_in_both_languages(chapters, runs):
    with (chapters / "src/01-chunked-prefill.md").open("a") as file:
        file.write("\n```{code-cell} ipython3\nnew_code = 1\n```\n")
    assert len(sync(chapters, HERE, check=True)) == 2 and runs == []
    assert len(sync(chapters, HERE)) == 2 and runs == ["zh", "en"]


def test_code_in_another_order_is_run(chapters, runs):
    path = chapters / "src/01-chunked-prefill.md"
    text = path.read_text() + "\n```{code-cell}\na = 1\n```\n\n```{code-cell}\nb = 2\n```\n"
    path.write_text(text)
    sync(chapters, HERE)
    path.write_text(text.replace("a = 1", "HOLE").replace("b = 2", "a = 1").replace("HOLE", "b = 2"))
    assert len(sync(chapters, HERE, check=True)) == 2


def test_a_hand_edited_notebook_and_a_page_without_source_are_found(chapters, runs):
    page = chapters / "en/01-chunked-prefill.ipynb"
    page.write_text(page.read_text().replace("ceil", "floor", 1))
    stray = chapters / "zh/02-stray.md"
    stray.write_text("# 没有来源\n")
    assert set(sync(chapters, HERE, check=True)) == {page, stray}
    sync(chapters, HERE)
    assert not stray.exists()


def test_a_fork_changes_one_setting(chapters, runs, tmp_path):
    readme = shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    edit(chapters, '+++ {"lang": "zh"}', '+++ {"lang": "both"}\n\n[a](repo:lab/core)\n\n+++ {"lang": "zh"}')
    sync(chapters, FORK)
    sync_readme(readme, FORK)
    assert runs == []
    pages = [*chapters.glob("zh/*"), *chapters.glob("en/*"), readme]
    for page in pages:
        assert HERE.slug not in page.read_text(encoding="utf-8"), page
    for lang in LANGUAGES:
        text = (chapters / lang / "01-chunked-prefill.ipynb").read_text()
        assert f"{FORK.url}/blob/trunk/lab/core" in text and f"git+{FORK.url}@trunk" in text
    assert "github.com/someone/my-fork" in readme.read_text() and "someone.github.io/my-fork" in readme.read_text()
    assert sync_readme(readme, FORK, check=True) == []
    sync_readme(readme, HERE)
    assert readme.read_text() == (ROOT / "README.md").read_text()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_fork_changes_the_site_with_the_same_setting(lang):
    config = load_config()
    config["repository"] = {"url": FORK.url, "branch": FORK.branch}
    text = str(language_config(config, lang))
    assert HERE.slug not in text and HERE.site not in text
    assert FORK.site in text


def test_the_address_is_written_nowhere_else():
    """Not in code, templates or tools: they take it from _config.yml."""
    files = [p for folder in ("tools", "lab", "_assets", "chapters/src") for p in (ROOT / folder).rglob("*")]
    text_files = [p for p in files if p.suffix in (".py", ".html", ".js", ".css", ".md", ".svg")]
    assert text_files
    assert [p for p in text_files if HERE.slug in p.read_text(encoding="utf-8")] == []
