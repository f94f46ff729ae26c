"""Put the Python of the live figures, and the lab for it, into _build/live: `python -m tools.vendor_pyodide`.

Pyodide comes from npm at the version and with the hashes of tools/live/package-lock.json. Of its standard library only
what the figures use is shipped, compiled (tools/live/pack.py). Needs npm and Node 18 or newer, and the network once.
"""

import fcntl
import gzip
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
SCRIPTS = ("pyodide.mjs", "pyodide.asm.mjs")
WASM = "pyodide.asm.wasm"
# What has to go with these files; the credits page links to them.
NOTICES = ("NOTICE.txt", "LICENSE-python.txt", "LICENSE-libraries.txt")


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


def gzip_to(target: Path, content: bytes) -> None:
    """The worker unpacks it: not all hosts compress, and none does it as well.

    Not named .gz, which some servers would unpack, or say that it is to be.
    """
    target.write_bytes(gzip.compress(content, 9, mtime=0))


def vendor() -> Path:
    """Make the folder anew if anything has changed; return it. Raises CannotVendor, and then there is no folder."""
    TARGET.parent.mkdir(exist_ok=True)
    with TARGET.with_name("live-lock").open("w") as lock:  # of several at once the first one makes it for all
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = TARGET / "state"
        if not stamp.exists() or stamp.read_text() != state():
            shutil.rmtree(TARGET, ignore_errors=True)
            fetch()
            make()
            stamp.write_text(state())
    return TARGET


def make() -> None:
    sources, packed = NPM / "lab.zip", NPM / "python.zip"
    with zipfile.ZipFile(sources, "w") as archive:
        for path in lab_files():
            archive.write(path, path.relative_to(ROOT))
    run(["node", str(HERE / "pack.mjs"), str(PYODIDE), str(sources), str(packed)], ROOT)
    TARGET.mkdir()
    gzip_to(TARGET / "python.zip.gzip", packed.read_bytes())
    gzip_to(TARGET / f"{WASM}.gzip", (PYODIDE / WASM).read_bytes())
    for name in SCRIPTS:
        shutil.copyfile(PYODIDE / name, TARGET / name)
    info = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
    (TARGET / "pyodide-lock.json").write_text(json.dumps({"info": info, "packages": {}}), encoding="utf-8")
    for name in NOTICES:
        shutil.copyfile(HERE / name, TARGET / name)


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
