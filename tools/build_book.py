"""Build both languages into _build/html: `python -m tools.build_book`, or `make book`.

`--links` follows the links to other sites instead, and builds nothing. Two Jupyter Book runs over chapters/zh and
chapters/en, with one _config.yml and one _toc.yml, and a root page that picks the language. Any warning is a failure.
"""

import argparse
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import yaml

from tools.settings import LANGUAGES, ROOT, Address, load_config
from tools.vendor_pyodide import NOTICES, CannotVendor, vendor
from tools.vendor_pyodide import TARGET as PYTHON

BUILD = ROOT / "_build"


def language_config(config: dict[str, Any], lang: str) -> dict[str, Any]:
    """Jupyter Book's configuration for one language: the common one, and what `languages` says of this one."""
    address, own = Address.from_config(config), config["languages"][lang]
    text = yaml.safe_dump({key: value for key, value in config.items() if key != "languages"})
    merged = yaml.safe_load(text.replace("ROOT", str(ROOT)))
    merged["title"] = own["title"]
    merged["repository"]["path_to_book"] = f"chapters/{lang}"
    merged["html"]["baseurl"] = f"{address.site}{lang}/"
    sphinx = merged["sphinx"]["config"]
    for key, value in own["sphinx"].items():
        sphinx[key] = {**sphinx.get(key, {}), **value} if isinstance(value, dict) else value
    sphinx["language"] = own["language"]
    other = LANGUAGES[1 - LANGUAGES.index(lang)]
    codes = {name: config["languages"][name]["language"].replace("_", "-") for name in LANGUAGES}
    sphinx["html_context"] |= {
        "book_site": address.site,
        "book_codes": codes,
        "last_run_label": own["last_run"],
        "other_language": {"name": other, "code": codes[other], "label": own["switch"]},
        "live_notices": {address.file(f"tools/live/{name}"): name for name in NOTICES} if PYTHON.exists() else {},
    }
    return merged


def vendor_mathjax() -> None:
    """Put MathJax where html_static_path finds it, so that no page asks another host for it."""
    source, target = Path(str(files("mathjax"))) / "static/mathjax/es5", BUILD / "vendor/mathjax"
    if target.exists():
        return
    for folder in ("a11y", "input", "output/chtml", "sre", "ui"):
        shutil.copytree(source / folder, target / folder)
    shutil.copy(source / "tex-chtml.js", target)


def start(config: dict[str, Any], lang: str, builder: str) -> tuple[subprocess.Popen[str], Path]:
    work = BUILD / "work" / lang
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / "_build" / builder, ignore_errors=True)  # else pictures of old runs would stay
    config_file = work / "_config.yml"
    config_file.write_text(yaml.safe_dump(language_config(config, lang), allow_unicode=True), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(ROOT / "chapters" / lang)]
    command += ["--config", str(config_file), "--toc", str(ROOT / "_toc.yml"), "--path-output", str(work)]
    command += ["--builder", builder]
    command += ["--all", "-W", "-n", "--keep-going", "-q"]  # --all: static files and the menu would go stale without
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    return process, work / "_build" / builder


class BuildFailed(Exception):
    """What the builder said, of every language that failed."""


def vendor_python() -> None:
    """What the live figures run on; a book without it shows them as they were recorded."""
    try:
        vendor()
    except CannotVendor as error:
        print(f"the figures of this book won't run in the page: {error}", file=sys.stderr)


def build(config: dict[str, Any], builder: str) -> dict[str, Path]:
    """Run one of Jupyter Book's builders over both languages at once; return where each language's result is."""
    vendor_mathjax()
    if builder == "html":
        vendor_python()
    runs = {lang: start(config, lang, builder) for lang in LANGUAGES}
    output = {lang: process.communicate()[0] for lang, (process, _) in runs.items()}
    failed = [lang for lang, (process, _) in runs.items() if process.returncode]
    if failed:
        raise BuildFailed("\n".join(f"{output[lang]}\nbuilding {lang} failed (above)" for lang in failed))
    return {lang: built for lang, (_, built) in runs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", action="store_true", help="follow the links to other sites instead")
    options = parser.parse_args()
    config = load_config()
    try:
        built = build(config, "linkcheck" if options.links else "html")
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    if not options.links:
        print(f"open {assemble(config, built) / 'index.html'}")
    return 0


def assemble(config: dict[str, Any], built: dict[str, Path]) -> Path:
    """Put both sites and the page that picks the language into _build/html."""
    html = BUILD / "html"
    shutil.rmtree(html, ignore_errors=True)
    for lang, folder in built.items():
        shutil.copytree(folder, html / lang, ignore=shutil.ignore_patterns("*.map", ".buildinfo", ".doctrees"))
    if PYTHON.exists():
        shutil.copytree(PYTHON, html / "live", ignore=shutil.ignore_patterns("state"))
    page = Template((ROOT / "_assets/index.html").read_text(encoding="utf-8"))
    titles = {lang: config["languages"][lang]["title"] for lang in LANGUAGES}
    (html / "index.html").write_text(page.substitute(titles), encoding="utf-8")
    (html / ".nojekyll").touch()  # GitHub Pages would leave out folders that start with an underscore
    return html


if __name__ == "__main__":
    sys.exit(main())
