"""The figures say what the lab says: the same runs, made without them."""

import json
import math
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.metrics import longest_gap
from lab.core.plan import WaitReason
from lab.live import console, draw, gantt, streams
from lab.live.figure import plain
from lab.live.registry import answer
from lab.live.run import simulate_up_to
from lab.live.stream_programs import PROGRAMS
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.sim.tally import summarize
from lab.streams.executions import executions
from lab.streams.model import ModelRuntime
from tests.live.settings import any_settings

SVG = "{http://www.w3.org/2000/svg}"


def numbers(name: str, **setting) -> dict:
    return json.loads(answer(name, json.dumps(setting), "en", 680))["numbers"]


@pytest.mark.parametrize(
    ("setting", "gap_ms", "steps", "ttft_ms"),
    [
        ({"budget": 8192}, 86.94, 1, None),
        ({"policy": "prefill-first"}, 126.94, 9, None),
        ({"policy": "alternate"}, 20.26, 2, None),
        ({}, 15.24, 1, 127.18),
        ({"budget": 128}, 7.56, 1, 247.66),
    ],
)
def test_the_gantt_has_the_numbers_of_chapter_1(setting, gap_ms, steps, ttft_ms):
    found = numbers("gantt", **setting)
    assert (round(1e3 * found["longest_gap"], 2), found["gap_steps"]) == (gap_ms, steps)
    assert ttft_ms is None or round(1e3 * found["ttft"], 2) == ttft_ms


@settings(max_examples=30, deadline=None)
@given(any_settings(gantt.FIGURE))
def test_the_gantt_draws_the_run(setting):
    """A bar for each piece of a prompt in the plan, with its tokens where there is room; the gap is the metric's."""
    trace, found = gantt.run(setting), numbers("gantt", **setting)
    assert found["longest_gap"] == longest_gap(trace)
    assert sum(found["chunks"]) == setting["prompt"]
    assert (found["ttft_short"] is None) == (setting["short"] == "no")
    fed, pieces = Counter(), []
    for step in trace.steps:
        for name, n in step.num_tokens.items():
            if fed[name] < trace.requests[name].num_prompt_tokens:
                pieces.append(str(n))
            fed[name] += n
    root = ET.fromstring(json.loads(answer("gantt", json.dumps(setting), "en", 680))["svg"])
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == draw.BLUE]
    inside = [text.text for text in root.iter(f"{SVG}text") if text.get("fill") == draw.ON_COLOR]
    assert len(bars) == len(pieces) + 1, "one more in the key"
    assert Counter(inside) <= Counter(pieces)


def test_the_gantt_draws_every_chunk():
    root = ET.fromstring(json.loads(answer("gantt", "{}", "en", 680))["svg"])
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts.count("511") == 8 and texts.count("8") == 1  # 8 * 511 + 8 = 4096


@settings(max_examples=10, deadline=None)
@given(any_settings(console.FIGURE))
def test_the_console_has_the_simulators_own_summary(setting):
    config = SchedulerConfig(setting["budget"], setting["max_num_seqs"])
    load = console.load_of(setting["lengths"], setting["burstiness"])
    requests = load.requests(console.NUM_REQUESTS, rate=setting["rate"])
    trace = simulate(requests, POLICIES[setting["policy"]](config, CacheConfig(setting["blocks"])), LinearCost())
    if len(trace.steps) <= console.MAX_STEPS:
        assert numbers("console", **setting) == plain(summarize(trace, setting["blocks"]))


def test_a_run_too_long_is_cut_and_says_where():
    reply = json.loads(answer("console", '{"max_num_seqs": 1}', "en", 680))
    assert reply["numbers"]["steps"] == console.MAX_STEPS
    (note,) = reply["notes"]
    assert f"{console.MAX_STEPS:,} steps" in note and f"{reply['numbers']['finished']} had ended" in note


@given(st.integers(0, 12))
def test_a_cut_run_is_the_beginning_of_the_whole(most):
    def requests():
        return [Request(str(i), range(10), SamplingParams(4), arrival=0.01 * i) for i in range(3)]

    limits = SchedulerConfig(8, 2), CacheConfig(8)
    whole = simulate(requests(), Scheduler(*limits), LinearCost())
    part, is_cut = simulate_up_to(most, requests(), Scheduler(*limits), LinearCost())
    assert part.steps == whole.steps[:most]
    assert is_cut == (most < len(whole.steps))


def test_a_pool_that_no_request_fits():
    """Nothing runs, so there is nothing to draw; the page says so all the same."""
    request = Request("a", range(100), SamplingParams(1))
    trace = simulate([request], Scheduler(SchedulerConfig(8, 1), CacheConfig(1)), LinearCost())
    summary = summarize(trace, 1)
    svg = console.draw_console(trace, summary, 1, 1, "title", console.sentence(summary).en, "en", 320)
    assert ET.fromstring(svg).find(f"{SVG}text").text.startswith("0 tokens/s")
    assert plain(summary)["ttft"]["p50"] is None


def test_the_console_says_one_preemption_and_one_request():
    requests = (Request(str(i), range(16), SamplingParams(4)) for i in range(2))
    summary = summarize(simulate(requests, Scheduler(SchedulerConfig(64, 1), CacheConfig(8)), LinearCost()), 8)
    said = console.sentence(replace(summary, preemptions=1)).en
    assert "1 preemption; up to 1 request queues" in said
    assert "up to 2 requests queue" in console.sentence(replace(summary, max_waiting=2)).en
    (refused,) = console.notes_of(replace(summary, refused=1), False)
    assert refused.en.endswith(": 1 request.")


def test_the_console_has_a_bar_for_every_reason_to_wait():
    root = ET.fromstring(json.loads(answer("console", '{"rate": 96, "max_num_seqs": 8}', "en", 680))["svg"])
    waited = numbers("console", rate=96, max_num_seqs=8)["waiting_reasons"]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert waited["max_seqs"] > 0
    for reason in console.REASONS:
        assert texts[texts.index(console.REASONS[reason].en) + 1] == f"{waited[reason.value]:,}"
    assert WaitReason.BEHIND_HEAD not in console.REASONS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_without_waits_a_program_has_hazards_and_with_all_it_has_none(program):
    operations = program.operations()
    every = [(i, i + 1) for i in range(len(operations) - 1)]
    assert numbers(f"streams-{program.name}")["hazards"]
    rt = ModelRuntime()
    assert program.run_with(rt, every) == program.want
    assert rt.hazards() == []


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(PROGRAMS[:1]), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=3))
def test_waits_do_what_all_legal_executions_say(program, waits):
    """No hazard means that every order of the kernels gives what is wanted; a hazard, that some order doesn't."""
    waits = [(i, j) for i, j in waits if i != j]
    rt = ModelRuntime()
    program.run_with(rt, waits)
    values = {execution.value for execution in executions(lambda rt: program.run_with(rt, waits))}
    assert (values == {program.want}) == (rt.hazards() == [])


def test_a_wait_for_what_is_not_recorded_yet_is_none():
    name = "streams-handoff"
    reply = json.loads(answer(name, '{"after1": "2", "before1": "1"}', "en", 680))
    assert reply["numbers"]["hazards"] == numbers(name)["hazards"]
    assert "never been recorded" in reply["notes"][-1]


def test_waits_that_make_no_sense():
    half, itself = ({"after1": "1"}, {"before2": "1"}), {"after3": "2", "before3": "2"}
    for setting, said in ((half[0], "one end"), (half[1], "one end"), (itself, "both ends")):
        assert said in json.loads(answer("streams-free", json.dumps(setting), "en", 680))["error"]


def test_pictures_of_one_page_share_no_ids():
    shown = [(figure.name, width) for figure in streams.FIGURES for width in (320, 680)]
    pictures = [json.loads(answer(name, "{}", "en", width))["svg"] for name, width in shown]
    ids = [element.get("id") for svg in pictures for element in ET.fromstring(svg).iter() if element.get("id")]
    assert len(ids) == len(set(ids)) > 0


@given(st.floats(1e-6, 1e9), st.integers(3, 10))
def test_ticks_are_round_and_few(span, most):
    found = draw.ticks(span, most)
    assert found[0] == 0 and len(found) <= most + 1 and found[-1] <= span * (1 + 1e-9)
    assert len(found) >= most // 3
    digits = found[1] / 10 ** math.floor(math.log10(found[1]) + 1e-9)
    assert round(digits, 6) in (1, 2, 5)
