"""Reading a bilingual source: what is paired, what is refused, which ids and anchors come out."""

import pytest

from tools.source import Code, Prose, SourceError, headings, read_chapter

PAIR = '+++ {"lang": "zh"}\n\n# 题目\n\n正文。\n\n+++ {"lang": "en"}\n\n# The title\n\nText.\n\n'
CELL = "```{code-cell} ipython3\nx = 1\n```\n\n"


@pytest.fixture
def read(tmp_path):
    def read(text: str):
        path = tmp_path / "01-try.md"
        path.write_text(text, encoding="utf-8")
        return read_chapter(path)

    return read


def test_a_passage_has_both_languages_and_code_stands_once(read):
    chapter = read(PAIR + CELL + '+++ {"lang": "both"}\n\n$$x$$\n')
    prose, code, shared = chapter.parts
    assert isinstance(prose, Prose) and prose.zh == "# 题目\n\n正文。" and prose.en == "# The title\n\nText."
    assert isinstance(code, Code) and code.source == "x = 1"
    assert isinstance(shared, Prose) and shared.zh == shared.en == "$$x$$"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('+++ {"lang": "zh"}\n\n# 题目\n', "no English beside '# 题目'"),
        ('+++ {"lang": "zh"}\n\n# 题目\n\n' + CELL, "no English beside"),
        ('+++ {"lang": "en"}\n\n# The title\n', "no Chinese before '# The title'"),
        (PAIR + CELL + "Text with no marker\n", "before 'Text with no marker'"),
        (PAIR.replace("# The title", "## The title"), r"level \[1\] in Chinese, \[2\] in English"),
        (PAIR + '+++ {"lang": "zh"}\n\n## 甲\n\n+++ {"lang": "en"}\n\n## The title\n', "'The title': reword"),
        (PAIR.replace("# The title", "# 题目"), "'题目': reword"),
    ],
)
def test_a_source_that_cannot_become_two_pages_is_refused_by_name(read, text, word):
    with pytest.raises(SourceError, match=word) as error:
        read(text)
    assert "01-try" in str(error.value)


def test_a_new_cell_changes_no_other_id(read):
    before = read(PAIR + CELL + CELL)
    after = read('+++ {"lang": "both"}\n\n$$x$$\n\n' + PAIR + "```{code-cell} ipython3\ny = 2\n```\n\n" + CELL + CELL)
    ids = [part.id for part in after.parts]
    assert len(set(ids)) == len(ids) == 5
    assert [part.id for part in before.parts] == [ids[1], ids[3], ids[4]]


def test_an_explicit_id_is_kept(read):
    code = read(PAIR + "```{code-cell} ipython3\n:id: the-plan\n\nx = 1\n```\n").parts[1]
    assert code.id == "the-plan" and "id" not in code.metadata


def test_headings_are_read_as_markdown_reads_them():
    text = "# One `code` *two*\n\n```\n# not a heading\n```\n\nSetext\n------\n"
    assert headings(text) == [(1, "One code two"), (2, "Setext")]


def test_anchors_come_from_the_english_headings(read):
    assert read(PAIR + '+++ {"lang": "both"}\n\n## KV: 2 x\n').anchors == ("the-title", "kv-2-x")
