"""The page of benchmarks: every number out of a record, both languages alike, goals judged."""

import re
import shutil

import pytest

from bench.table import goals
from lab.measure.records import Record, save
from tools.bench_page import as_page, read_words
from tools.bench_table import cell, middle, number
from tools.parity import differences
from tools.settings import ROOT
from tools.source import SourceError, read_chapter
from tools.sync import sync_benchmarks

QUIET = {"busy_elsewhere": 0.02}
BUSY = {"busy_elsewhere": 1.5}
SECTIONS = read_words()[1]
COLUMNS = {column.field: column for section in SECTIONS for column in section.columns}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "data/bench").mkdir(parents=True)
    (tmp_path / "chapters/src").mkdir(parents=True)
    shutil.copy(ROOT / "data/benchmarks.toml", tmp_path / "data")
    return tmp_path


def put(root, name, rows, machine=QUIET, left_out=()):
    where = {"device": "A CPU", "threads": 1, "torch": "2.13.0", "date": "2026-11-29T00:00:00Z"}
    units = {"agrees": "of the tokens"} if "agrees" in rows[0] else {}
    save(Record(name, {"clock": "wall", "left_out": list(left_out)}, rows, where | machine, units), root / "data/bench")


def prefill(engine, ms, ratio, goal, dtype="bfloat16"):
    row = {"dtype": dtype, "tokens": 4096, "chunk": 512, "engine": engine, "ms": ms}
    return row | {"ratio": ratio, "goal": goal, "agrees": 1.0 if dtype == "float32" else ratio / 2}


def with_prefills(root, *rows, **options):
    put(root, "prefill", [prefill(*row) for row in rows], **options)
    return as_page(root)


def passage(page, title):
    return re.search(rf"## {title}\n(.*?)(?=\n\+\+\+|\Z)", page, re.S)[1]


def test_the_page_is_up_to_date():
    assert sync_benchmarks(ROOT, check=True) == []


def test_the_page_says_which_instructions_a_processor_has(root):
    where = QUIET | {"instructions": "AVX512 AMX_BF16"}
    page = with_prefills(root, ("ours", 1.0, 1.0, None), machine=where)
    assert page.count("`A CPU, AVX512 AMX_BF16, 1 threads, PyTorch 2.13.0, 2026-11-29`") == 2  # once a language


def test_engines_stand_side_by_side_with_goals_reached_and_missed(root):
    page = with_prefills(root, ("a", 1100.0, 1.122, 1.1), ("b", 9.96, 1, 1), ("ours", 1234.5, 1.0, None))
    for title in ("Prefill", "预填充"):
        table = passage(page, title)
        assert "| ours | a | b |" in table
        assert "| bfloat16 | 4096 | 512 | 1,230 | 1,100; 1.12 > 1.1 ✗ | 9.96; 1 ≤ 1 ✓ |" in table
    assert "Goals: 1 of 2 reached." in page and "目标：2 个里达到 1 个。" in page


def test_a_cell_of_an_engine_that_took_no_part_is_empty(root):
    page = with_prefills(root, ("ours", 2, 1.0, None), ("a", 2, 1, None), ("ours", 3, 1, None, "float32"))
    assert "| float32 | 4096 | 512 | 3 | – |" in page


def test_where_we_stand_is_seen_at_once(root):
    case = [("ours", 2, 1.0, None), ("a", 1, 2.0, 1.0), ("b", 4, 0.5, None)]
    page = with_prefills(root, *case, *((*row, "float32") for row in [case[0], ("a", 4, 0.5, 1.0)]))
    assert "| [Prefill](#prefill) | a | 1.25 (0.5 – 2) | 1 / 2 |\n| [Prefill](#prefill) | b | 0.5 | – |" in page
    assert "Not yet measured on a GPU." in page
    sync_benchmarks(root)
    chapter = read_chapter(root / "chapters/src/benchmarks.md")
    assert {anchor for anchor in re.findall(r"\(#([^)]+)\)", page)} <= set(chapter.anchors)


def test_a_gpu_is_not_said_to_be_missing_once_it_was_measured(root):
    assert "on a GPU" not in with_prefills(root, ("ours", 2, 1.0, None), machine=QUIET | {"cuda": "13.0"})


def test_each_machine_has_a_table_of_its_own_of_where_we_stand(root):
    case = [("ours", 2, 1.0, None), ("a", 1, 2.0, 1.0)]
    with_prefills(root, *case)
    page = with_prefills(root, case[0], ("a", 4, 0.5, 1.0), machine=QUIET | {"device": "Another"})
    first, second = (re.search(rf"Machine: `{name}`\n\n(.*?)\n\n", page, re.S)[1] for name in ("A CPU", "Another"))
    assert "| a | 2 | 0 / 1 |" in first and "| a | 0.5 | 1 / 1 |" in second and "| 0.5 |" not in first


def test_whose_tokens_are_ours_by_dtype(root):
    rows = [("ours", 2, 1.0, None), ("a", 2, 0.5, None), ("b", 2, 2.0, None), ("b", 2, 2.0, None, "float32")]
    assert "equal ours: `bfloat16` 0.625 (0.25 – 1), `float32` 1." in with_prefills(root, *rows)


def test_both_languages_say_the_same_and_how_quiet_it_was(root):
    with_prefills(root, ("ours", 10.0, 1.0, None), machine=BUSY, left_out=["llama.cpp: not installed"])
    rates = {f"{who}_{what}": 3e3 for who in ("ours", "peer") for what in ("per_s", "min_per_s", "max_per_s")}
    row = {"running": 256, "calls": "schedule", "peer": "p", **rates, "at_least_per_s": 5e3, "ratio": 1.0, "goal": 1.0}
    put(root, "scheduler", [row])
    assert sync_benchmarks(root) == [root / "chapters/src/benchmarks.md"]
    assert differences(read_chapter(root / "chapters/src/benchmarks.md")) == []
    page = as_page(root)
    assert "kept 1.50 processors busy: not to be trusted." in page
    assert "0.02 个处理器：可信。" in page and page.count("Settings: `clock wall`") == 2
    assert page.count("why</summary>\n\n- `llama.cpp: not installed`\n\n</details>") == 1
    assert "| 256 | schedule | 3,000 (3,000 – 3,000) | ≥ 5,000 ✗ |" in page


def test_what_was_not_measured_is_said(root):
    page = as_page(root)
    assert page.count("Not yet measured here.") == page.count("还没有在这里测过。") == len(SECTIONS)
    assert "What remains" not in page and read_words()[0]["stand"]["en"] not in page


def test_no_number_is_typed():
    words = [text for part in read_words()[0].values() for text in part.values()]
    words += [text for table in SECTIONS for part in (table.title, table.what, table.remains) for text in part.values()]
    assert re.findall(r"(?<![A-Za-z\d])\d+", " ".join(words)) == []


def test_every_table_of_the_benchmark_is_on_the_page():
    pytest.importorskip("transformers")
    from bench.__main__ import TABLES

    names = [section.name for section in SECTIONS]
    assert sorted(names) == sorted(TABLES)
    assert names[:3] == ["prefill", "decode", "mixed"]  # the first three, of which the head speaks


def test_goals():
    assert goals({"ratio": 1.0, "goal": 1.0}) == {"ratio": True}
    missed = {"ratio": 1.01, "goal": 1.0}
    assert goals({**missed, "ttft_ratio": 0.9, "ttft_goal": 1.05}) == {"ratio": False, "ttft_ratio": True}
    assert goals({"ratio": None, "goal": None, "ours_per_s": 4.0, "at_least_per_s": 5.0}) == {"at_least_per_s": False}
    assert goals({"ratio": 3.0}) == {}


def test_three_digits():
    values = [0, 0.04437, 12.34, 5764.9, 999.6, 100.0]
    assert list(map(number, values)) == ["0", "0.0444", "12.3", "5,760", "1,000", "100"]
    assert (middle([]), middle([2.0]), middle([3.0, 1.0, 8.0])) == ("–", "2", "3 (1 – 8)")


def test_a_record_of_an_earlier_benchmark_is_named(root):
    put(root, "prefill", [{"dtype": "bfloat16", "ratio": 1.0}])
    with pytest.raises(SourceError, match="prefill has no 'chunk'; run `python -m bench prefill`"):
        as_page(root)


def test_cells():
    row = {"gap_ms": 400.0, "gap_min_ms": 390.0, "gap_max_ms": 412.0, "peak_bytes": 21_250_000, "peer": None}
    assert cell(row, COLUMNS["gap_ms"]) == "400 (390 – 412)"
    assert cell(row, COLUMNS["peak_bytes"]) == "21.2"
    assert cell(row, COLUMNS["peer"]) == "–"
    near = [cell({"ratio": ratio, "goal": 1.1}, COLUMNS["ratio"]) for ratio in (1.1, 1.1009)]
    assert near == ["1.1 ≤ 1.1 ✓", "1.101 > 1.1 ✗"]
