"""The page of the claims ledger, as a bilingual source."""

from tools.claims import Claim
from tools.settings import LANGUAGES
from tools.source import as_source

TITLE = {"zh": "结论一览", "en": "The claims"}
INTRO = {
    "zh": "本书的每个结论：在哪一节、预期看到什么、运行得到什么、哪个测试盯着它。实测的几行由各章 "
    "notebook 的输出自动填入，没有一个数是手写的；同样的内容也在 [data/claims.json](repo:data/claims.json) 里。",
    "en": "Each claim of this book: the section that shows it, what is expected, what the runs gave, and the test that "
    "watches it. The measured lines are filled in from the outputs of the notebooks, none is typed; the same is in "
    "[data/claims.json](repo:data/claims.json).",
}
OPEN = {
    "zh": "## 尚未测量\n\n下面这些结论，书里还没有一次运行可以引用。",
    "en": "## Not yet measured\n\nFor these claims the book has no run to point to yet.",
}
ITEMS = {
    "zh": ("在哪里：", "预期：", "实测：", "运行：", "测试："),
    "en": ("Where: ", "Expected: ", "Measured:", "Run: ", "Tests:"),
}
MADE = "<!-- Made by tools/claims.py from data/claims.toml and the notebooks: run `make sync`. -->"


def as_page(claims: list[Claim]) -> str:
    """Both languages; a claim that has been measured gets a heading of its own, the others stand in a list."""
    done, open_ = ([claim for claim in claims if bool(claim.measured) == measured] for measured in (True, False))
    passages = [{lang: f"# {TITLE[lang]}\n\n{INTRO[lang]}" for lang in LANGUAGES}]
    passages += [{lang: _passage(claim, lang) for lang in LANGUAGES} for claim in done]
    if open_:
        passages.append({lang: f"{OPEN[lang]}\n\n{_list(open_, lang)}" for lang in LANGUAGES})
    return as_source(MADE, passages)


def link_to_section(title: str, section: str) -> str:
    """To PAGE#ANCHOR, a section of a page with code."""
    page, _, anchor = section.partition("#")
    return f"[{title}]({page}.ipynb#{anchor})"


def link_to_test(test: str) -> str:
    """To the file of a test, by the test's name."""
    file, _, name = test.partition("::")
    return f"[{name or file}](repo:{file})"


def _list(claims: list[Claim], lang: str) -> str:
    return "\n".join(f"- {claim.id}{'：' if lang == 'zh' else ': '}{claim.text(lang)}" for claim in claims)


def _passage(claim: Claim, lang: str) -> str:
    where, expected, measured, run, tests = ITEMS[lang]
    on = claim.measured[0].run
    lines = [
        f"## {claim.id}",
        f"\n{claim.text(lang)}{'。' if lang == 'zh' else '.'}\n",
        f"- {where}{link_to_section(claim.title(lang), claim.section)}",
        f"- {expected}{claim.expected(lang)}",
        f"- {measured}",
        *(f"  - `{found.value}`" for found in claim.measured),
        f"- {run}{on['device']}, {on['date']}, PyTorch {on['torch']}, lab {on['lab']}",
        f"- {tests}",
        *(f"  - {link_to_test(test)}" for test in claim.tests),
    ]
    return "\n".join(lines)
