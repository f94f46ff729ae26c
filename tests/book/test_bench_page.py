"""The page of benchmarks: every number out of a record, both languages alike, goals judged."""

import re
import shutil
import tomllib

import pytest

from bench.table import goals
from lab.measure.records import Record, save
from tools.bench_page import as_page, cell, number, read_sections
from tools.parity import differences
from tools.settings import ROOT
from tools.source import SourceError, read_chapter
from tools.sync import sync_benchmarks

QUIET = {"busy_elsewhere": 0.02, "load_average": 0.1}
BUSY = {"busy_elsewhere": 1.5, "load_average": 3.2}
COLUMNS = {column.field: column for section in read_sections() for column in section.columns}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "data/bench").mkdir(parents=True)
    (tmp_path / "chapters/src").mkdir(parents=True)
    shutil.copy(ROOT / "data/benchmarks.toml", tmp_path / "data")
    return tmp_path


def put(root, name, rows, machine=QUIET, left_out=()):
    where = {"device": "A CPU", "threads": 1, "torch": "2.13.0", "date": "2026-11-29T00:00:00Z"}
    save(Record(name, {"left_out": list(left_out)}, rows, where | machine), root / "data/bench")


def prefill(engine, ms, ratio, goal, dtype="bfloat16"):
    row = {"dtype": dtype, "tokens": 4096, "chunk": 512, "engine": engine, "ms": ms}
    return row | {"ratio": ratio, "goal": goal}


def with_prefills(root, *rows, **options):
    put(root, "prefill", [prefill(*row) for row in rows], **options)
    return as_page(root)


def passage(page, title):
    return re.search(rf"## {title}\n(.*?)(?=\n\+\+\+|\Z)", page, re.S)[1]


def test_the_page_is_up_to_date():
    assert sync_benchmarks(ROOT, check=True) == []


def test_engines_stand_side_by_side_with_goals_reached_and_missed(root):
    page = with_prefills(root, ("ours", 1234.5, 1.0, None), ("a", 1100.0, 1.122, 1.1), ("b", 9.96, 1, 1))
    for title in ("Prefill", "预填充"):
        table = passage(page, title)
        assert "| ours | a | b |" in table
        assert "| bfloat16 | 4096 | 512 | 1,230; 1 | 1,100; 1.12 > 1.1 ✗ | 9.96; 1 ≤ 1 ✓ |" in table
    assert "Goals: of 2, 1 reached." in page and "目标：2 个里达到 1 个。" in page


def test_a_cell_of_an_engine_that_took_no_part_is_empty(root):
    page = with_prefills(root, ("ours", 2, 1.0, None), ("a", 2, 1, None), ("ours", 3, 1, None, "float32"))
    assert "| float32 | 4096 | 512 | 3; 1 | – |" in page


def test_both_languages_say_the_same_and_how_quiet_it_was(root):
    with_prefills(root, ("ours", 10.0, 1.0, None), machine=BUSY, left_out=["llama.cpp: not installed"])
    rates = {f"{who}_{what}": 3e3 for who in ("ours", "peer") for what in ("per_s", "min_per_s", "max_per_s")}
    row = {"running": 256, "calls": "schedule", "peer": "p", **rates, "at_least_per_s": 5e3, "ratio": 1.0, "goal": 1.0}
    put(root, "scheduler", [row])
    assert sync_benchmarks(root) == [root / "chapters/src/benchmarks.md"]
    assert differences(read_chapter(root / "chapters/src/benchmarks.md")) == []
    page = as_page(root)
    assert "kept 1.50 processors busy (load average 3.2 at the start): not to be trusted." in page
    assert "0.02 个处理器（开始时平均负载 0.1）：可信。" in page
    assert page.count("`llama.cpp: not installed`") == 2
    assert "| 256 | schedule | 3,000 (3,000 – 3,000) | ≥ 5,000 ✗ |" in page


def test_what_was_not_measured_is_said(root):
    page = as_page(root)
    assert page.count("Not yet measured here.") == page.count("还没有在这里测过。") == len(read_sections())
    assert "What remains" not in page


def test_no_number_is_typed():
    for table in tomllib.loads((ROOT / "data/benchmarks.toml").read_text(encoding="utf-8"))["table"]:
        words = [text for part in ("title", "what", "remains") for text in table[part].values()]
        typed = re.findall(r"(?<![A-Za-z\d])\d+", " ".join(words))
        assert typed == [], (table["name"], typed)


def test_every_table_of_the_benchmark_is_on_the_page():
    pytest.importorskip("transformers")
    from bench.__main__ import TABLES

    assert [section.name for section in read_sections()] == list(TABLES)


def test_goals():
    assert goals({"ratio": 1.0, "goal": 1.0}) == {"ratio": True}
    missed = {"ratio": 1.01, "goal": 1.0}
    assert goals({**missed, "ttft_ratio": 0.9, "ttft_goal": 1.05}) == {"ratio": False, "ttft_ratio": True}
    assert goals({"ratio": None, "goal": None, "ours_per_s": 4.0, "at_least_per_s": 5.0}) == {"at_least_per_s": False}
    assert goals({"ratio": 3.0}) == {}


def test_three_digits():
    values = [0, 0.04437, 12.34, 5764.9, 999.6, 100.0]
    assert list(map(number, values)) == ["0", "0.0444", "12.3", "5,760", "1,000", "100"]


def test_a_record_of_an_earlier_benchmark_is_named(root):
    put(root, "prefill", [{"dtype": "bfloat16", "ratio": 1.0}])
    with pytest.raises(SourceError, match="prefill has no 'chunk'; run `python -m bench prefill`"):
        as_page(root)


def test_cells():
    row = {"gap_ms": 400.0, "gap_min_ms": 390.0, "gap_max_ms": 412.0, "peak_bytes": 21_250_000, "peer": None}
    assert cell(row, COLUMNS["gap_ms"]) == "400 (390 – 412)"
    assert cell(row, COLUMNS["peak_bytes"]) == "21.2"
    assert cell(row, COLUMNS["peer"]) == "–"
