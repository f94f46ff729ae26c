"""Runs inside Pyodide while the book is built: packs what of the standard library the figures use, compiled.

Compiling is most of what a browser would do otherwise. The lab lies unpacked in the working directory, where the page
unpacks it too, so that the names in its tracebacks are right.
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

STDLIB = f"/lib/python{sys.version_info.major}{sys.version_info.minor}.zip"
# What Python and Pyodide import only once something is wrong or a file has a name that is not ASCII.
MARGIN = ("encodings.ascii", "encodings.cp437", "encodings.idna", "encodings.latin_1", "linecache", "tokenize")
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH  # nothing to compare with in a browser


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


def pack_stdlib(target: str) -> None:
    """A zip of .pyc without docstrings, which Python imports from as from the zip of .py that it takes the place of."""
    source, compiled = Path("stdlib"), Path("compiled.pyc")
    with zipfile.ZipFile(STDLIB) as archive:
        archive.extractall(source)
    origins = {module.__spec__.origin or "" for module in sys.modules.values() if module.__spec__}
    used = sorted(Path(origin).relative_to(STDLIB) for origin in origins if origin.startswith(STDLIB))
    with zipfile.ZipFile(target, "w") as archive:
        for name in used:
            py_compile.compile(str(source / name), str(compiled), f"{STDLIB}/{name}", True, 2, UNCHECKED)
            store(archive, name.with_suffix(".pyc"), compiled)


def pack_lab(target: str) -> None:
    """The lab's sources that the figures use, each with its .pyc where Python looks for it."""
    modules = (module for name, module in sys.modules.items() if name.split(".")[0] == "lab")
    files = {Path(module.__file__) for module in modules if module.__file__}
    with zipfile.ZipFile(target, "w") as archive:
        for source in sorted(file.relative_to(Path.cwd()) for file in files):
            compiled = py_compile.compile(str(source.absolute()), doraise=True, invalidation_mode=UNCHECKED)
            assert compiled is not None
            for path in (source, Path(compiled).relative_to(Path.cwd())):
                store(archive, path, path)


def store(archive: zipfile.ZipFile, name: Path, path: Path) -> None:
    """Without a date, so that the same sources make the same archive."""
    archive.writestr(zipfile.ZipInfo(str(name)), path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


use_everything()
pack_stdlib("stdlib.zip")
pack_lab("lab.zip")
