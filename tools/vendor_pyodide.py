"""Put the Python of the live figures, and the lab for it, into _build/live: `python -m tools.vendor_pyodide`.

Pyodide comes from npm at the version and with the hashes of tools/live/package-lock.json. Of its standard library only
what the figures use is shipped, compiled (tools/live/pack.py). Needs npm and Node 18 or newer, and the network once.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.settings import ROOT

HERE = ROOT / "tools/live"
TARGET = ROOT / "_build/live"  # not below _build/vendor, which each language has a copy of
NPM = ROOT / "_build/npm"
PYODIDE = NPM / "node_modules/pyodide"
PACKAGES = ("core", "live", "policies", "sim", "streams")  # of lab: what lab.live may import
AS_THEY_ARE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")

# What a page that ships these files has to say; the credits page says it too.
NOTICES = (
    ("Pyodide {version}", "MPL-2.0", "https://github.com/pyodide/pyodide/tree/{version}"),
    ("CPython {python}", "PSF-2.0", "https://github.com/python/cpython/blob/v{python}/LICENSE"),
    ("Emscripten", "MIT", "https://github.com/emscripten-core/emscripten/blob/main/LICENSE"),
)


class CannotVendor(Exception):
    """Why the live figures can't be built, in one line."""


def lab_files() -> list[Path]:
    parts = (path for part in PACKAGES for path in sorted((ROOT / "lab" / part).rglob("*.py")))
    return [ROOT / "lab/__init__.py", *parts]


def run(command: list[str], cwd: Path) -> None:
    if shutil.which(command[0]) is None:
        raise CannotVendor(f"{command[0]} isn't installed; the live figures need Node.js 18 or newer, with npm")
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise CannotVendor(f"{' '.join(command[:2])} failed: {' '.join(done.stdout.split())[:500]}")


def fetch() -> None:
    """What the lock file names, checked against its hashes; once."""
    NPM.mkdir(parents=True, exist_ok=True)
    lock, fetched = (HERE / "package-lock.json").read_bytes(), NPM / "fetched"
    if fetched.exists() and fetched.read_bytes() == lock:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, NPM)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], NPM)
    fetched.write_bytes(lock)


def state() -> str:
    """A hash of all that the result depends on."""
    digest = hashlib.sha256()
    for path in (*sorted(HERE.iterdir()), Path(__file__), *lab_files()):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def vendor() -> Path:
    """Make the folder anew if anything has changed; return it. Raises CannotVendor."""
    stamp = TARGET / "state"
    if stamp.exists() and stamp.read_text() == state():
        return TARGET
    fetch()
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    sources = NPM / "lab.zip"
    with zipfile.ZipFile(sources, "w") as archive:
        for path in lab_files():
            archive.write(path, path.relative_to(ROOT))
    run(["node", str(HERE / "pack.mjs"), str(PYODIDE), str(sources), str(TARGET)], ROOT)
    for name in AS_THEY_ARE:
        shutil.copyfile(PYODIDE / name, TARGET / name)
    info = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
    (TARGET / "pyodide-lock.json").write_text(json.dumps({"info": info, "packages": {}}), encoding="utf-8")
    (TARGET / "NOTICE.txt").write_text(notice(info["python"]), encoding="utf-8")
    stamp.write_text(state())
    return TARGET


def notice(python: str) -> str:
    version = json.loads((PYODIDE / "package.json").read_text(encoding="utf-8"))["version"]
    lines = (f"{name}, {licence}: {url}" for name, licence, url in NOTICES)
    return "".join(line.format(version=version, python=python) + "\n" for line in lines)


def main() -> int:
    try:
        target = vendor()
    except CannotVendor as error:
        print(error, file=sys.stderr)
        return 2
    for path in sorted(target.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
