"""Write chapters/zh and chapters/en from chapters/src: `python -m tools.sync`, or `make sync`.

A page with code becomes a notebook, a page without becomes Markdown. Outputs are kept as long as no code cell of the
page changes, else the notebook is run again; `--run` runs all of them, `--check` writes nothing and exits 1 if
something would be written, or if the two languages of a source do not say the same (tools/parity.py).
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat

from tools import bench_page, claims, parity, symptoms
from tools.claims_page import as_page
from tools.notebook import keep_outputs, localise, run, to_notebook
from tools.settings import LANGUAGES, ROOT, SOURCES, Address, load_config
from tools.source import Chapter, Prose, SourceError, read_chapter

MADE = "<!-- Made by tools/sync.py from chapters/src/{name}.md: change that file and run `make sync`. -->"


def to_markdown(chapter: Chapter, lang: str, address: Address) -> str:
    passages = [localise(part.text(lang), address) for part in chapter.parts if isinstance(part, Prose)]
    return "\n\n".join([MADE.format(name=chapter.name), *passages]) + "\n"


def sync(chapters: Path, address: Address, *, check: bool = False, rerun: bool = False) -> list[Path]:
    """Bring chapters/zh and chapters/en up to date with chapters/src; return the files it wrote (or would write)."""
    changed: list[Path] = []
    for lang in LANGUAGES:
        folder, made = chapters / lang, set()
        folder.mkdir(exist_ok=True)
        for source in sorted((chapters / "src").glob("*.md")):
            chapter = read_chapter(source)
            path = folder / f"{chapter.name}{'.ipynb' if chapter.has_code else '.md'}"
            made.add(path)
            text = _render(chapter, lang, address, path, check, rerun)
            if text is None or not path.exists() or path.read_text(encoding="utf-8") != text:
                changed.append(path)
                if text is not None and not check:
                    path.write_text(text, encoding="utf-8")
        for path in {*folder.glob("*.md"), *folder.glob("*.ipynb")} - made:
            changed.append(path)
            if not check:
                path.unlink()
    return changed


def _render(chapter: Chapter, lang: str, address: Address, path: Path, check: bool, rerun: bool) -> str | None:
    """The text of the file as it should be; None when a check finds that it would have to be run first."""
    if not chapter.has_code:
        return to_markdown(chapter, lang, address)
    notebook = to_notebook(chapter, lang, address)
    kept = path.exists() and not rerun and keep_outputs(notebook, nbformat.read(path, as_version=4))
    if not kept:
        if check:
            return None
        print(f"running {path.relative_to(path.parents[2])}", flush=True)
        run(notebook, path.parent)
    return nbformat.writes(notebook) + "\n"


def sync_claims(root: Path, *, check: bool = False) -> list[Path]:
    """Bring the ledger's data and page up to date with the notebooks; return the files it wrote (or would write)."""
    ledger = claims.read_claims(root)
    return _write(
        {root / "data/claims.json": claims.as_json(ledger), root / "chapters/src/claims.md": as_page(ledger)}, check
    )


def sync_symptoms(root: Path, *, check: bool = False) -> list[Path]:
    """Bring the page of symptoms up to date with its data; return the files it wrote (or would write)."""
    return _write({root / "chapters/src/symptoms.md": symptoms.as_page(symptoms.read_symptoms(root))}, check)


def sync_benchmarks(root: Path, *, check: bool = False) -> list[Path]:
    """Bring the page of benchmarks up to date with its data; return the files it wrote (or would write)."""
    return _write({root / "chapters/src/benchmarks.md": bench_page.as_page(root)}, check)


def _write(texts: dict[Path, str], check: bool) -> list[Path]:
    """Those that do not hold their text yet; unless it is a check they do then."""
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if not check:
        for path in changed:
            path.write_text(texts[path], encoding="utf-8")
    return changed


def sync_readme(readme: Path, address: Address, *, check: bool = False) -> list[Path]:
    """Write the address into README.md, whose first line says which address the file has now."""
    text = readme.read_text(encoding="utf-8")
    now = re.match(r"<!-- repository: (\S+) branch: (\S+) -->", text)
    if not now:
        raise SourceError(f"{readme.name}: the first line must be <!-- repository: URL branch: NAME -->")
    old = Address(now[1], now[2])
    new = text.replace(f"branch: {old.branch} -->", f"branch: {address.branch} -->")
    new = new.replace(f"{old.slug}/blob/{old.branch}/", f"{old.slug}/blob/{address.branch}/")
    new = new.replace(old.url, address.url).replace(old.site, address.site).replace(old.slug, address.slug)
    if new == text:
        return []
    if not check:
        readme.write_text(new, encoding="utf-8")
    return [readme]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something would be written")
    parser.add_argument("--run", action="store_true", help="run every notebook again")
    options = parser.parse_args()
    address = Address.from_config(load_config())
    try:
        changed = sync_symptoms(ROOT, check=options.check) + sync_benchmarks(ROOT, check=options.check)
        changed += sync(SOURCES.parent, address, check=options.check, rerun=options.run)
        if ledger := sync_claims(ROOT, check=options.check):
            changed += ledger + ([] if options.check else sync(SOURCES.parent, address))  # the ledger's own pages
        changed += sync_readme(ROOT / "README.md", address, check=options.check)
        drift = parity.report(SOURCES) + claims.problems(claims.read_claims())
    except SourceError as error:
        print(error, file=sys.stderr)
        return 2
    for path in changed:
        print(f"{'out of date' if options.check else 'wrote'}: {path.relative_to(ROOT)}")
    for line in drift:
        print(line, file=sys.stderr)
    if options.check and changed:
        print("run `make sync`", file=sys.stderr)
    return int(options.check and bool(changed or drift))


if __name__ == "__main__":
    sys.exit(main())
