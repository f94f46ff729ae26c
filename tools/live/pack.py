"""Runs inside Pyodide while the book is built: packs what the figures import, compiled, into python.zip.

That is the lab and a part of the standard library, whose zip it takes the place of in the browser. Compiling is most of
what a browser would do otherwise. The lab's sources lie unpacked in the working directory.
"""

import json
import py_compile
import sys
import traceback
import zipfile
from pathlib import Path
from typing import get_args

from lab.live.registry import FIGURES, answer
from lab.live.words import Lang

STDLIB = Path(f"/lib/python{sys.version_info.major}{sys.version_info.minor}.zip")
LAB = Path.cwd()
# What Python and Pyodide import only once something is wrong or a file has a name that is not ASCII.
MARGIN = ("encodings.ascii", "encodings.cp437", "encodings.idna", "encodings.latin_1", "linecache", "tokenize")


def use_everything() -> None:
    """Import what the figures import as they run, and what tells of a mistake in them."""
    for name in FIGURES:
        for lang in get_args(Lang):
            assert "svg" in json.loads(answer(name, "{}", lang, 680))
    for name in MARGIN:
        __import__(name)
    try:
        raise ValueError
    except ValueError:
        traceback.format_exc()


def used(root: Path) -> list[Path]:
    """The sources below `root` that were imported, relative to it, in the order of their names."""
    origins = (Path(module.__spec__.origin or "") for module in sys.modules.values() if module.__spec__)
    return sorted(origin.relative_to(root) for origin in set(origins) if origin.is_relative_to(root))


def pack(target: str) -> None:
    """.pyc without docstrings and asserts, not deflated: all of it is, as one stream, which makes it smaller.

    The files have no date, so that the same sources make the same archive.
    """
    sources = Path("stdlib")
    with zipfile.ZipFile(STDLIB) as archive:
        archive.extractall(sources)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # nothing to compare with in a browser
    with zipfile.ZipFile(target, "w") as archive:
        for root, folder in ((STDLIB, sources), (LAB, LAB)):
            for name in used(root):
                py_compile.compile(str(folder / name), "compiled", f"{STDLIB / name}", True, 2, unchecked)
                compiled = Path("compiled").read_bytes()
                archive.writestr(zipfile.ZipInfo(str(name.with_suffix(".pyc"))), compiled)


use_everything()
pack("python.zip")
