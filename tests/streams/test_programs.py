"""Every program of the catalogue, in every variant, comes to the verdict that it names."""

import pytest

from lab.core.errors import ConfigError
from lab.streams.catalogue import Program, Variant
from lab.streams.lifetime import CachingAllocator
from lab.streams.model import ModelRuntime
from lab.streams.programs import PROGRAMS, find
from lab.streams.runtime import Measures
from lab.streams.timeline import Machine
from lab.streams.verdict import examine

ALL = [(program, variant) for program in PROGRAMS.values() for variant in program.variants]


def measure(program: str, variant: str) -> Measures:
    return examine(find(program).variant(variant).run).measures


@pytest.mark.parametrize(("program", "variant"), ALL, ids=[f"{p.name}-{v.name}" for p, v in ALL])
def test_the_verdict_is_the_one_named(program: Program, variant: Variant):
    verdict = examine(variant.run, variant.want)
    assert verdict.kinds == variant.hazards
    assert verdict.error == variant.error
    assert variant.right is None or verdict.right == variant.right, verdict.value
    copies = (verdict.measures.device_copies, verdict.measures.device_bytes)
    assert copies == (variant.device_copies, variant.device_bytes)
    assert verdict.agrees(variant)


@pytest.mark.parametrize("cost", [1, 2, 3])
def test_hazards_do_not_depend_on_the_machine(cost):
    """They are those of any execution; only the value is that of one."""
    machine = Machine(launch_us=5 * cost, event_us=cost, edge_us=3 * cost, segment_us=500, link_rate=40_000 // cost)
    for _, variant in ALL:
        assert examine(variant.run, runtime=ModelRuntime(machine)).kinds == variant.hazards


def test_a_sound_variant_is_right_on_a_slow_machine_too():
    machine = Machine(launch_us=500, event_us=70, edge_us=90, segment_us=1, memory_rate=1000, link_rate=1000)
    for _, variant in ALL:
        if not variant.hazards and not variant.error:
            assert examine(variant.run, variant.want, ModelRuntime(machine)).right


def test_every_bug_has_its_mend():
    assert len(PROGRAMS) >= 20
    for program in PROGRAMS.values():
        assert any(not variant.hazards and not variant.error for variant in program.variants)
        assert len({variant.name for variant in program.variants}) == len(program.variants) >= 2
        assert program.zh and program.en


def test_an_expectation_that_is_not_met_is_noticed(monkeypatch):
    broken, mended = find("raw").variant("broken"), find("raw").variant("event")
    assert not examine(mended.run, mended.want).agrees(broken)
    assert not examine(broken.run, broken.want).agrees(mended)
    clone = find("handoff").variant("clone")
    assert not examine(mended.run, mended.want).agrees(clone)  # the copy is missing
    monkeypatch.setattr(CachingAllocator, "record_stream", lambda *_: None)
    variant = find("free_early").variant("record-stream")
    assert not examine(variant.run, variant.want).agrees(variant)


def test_a_name_that_is_not_there_is_a_line_with_the_names_that_are():
    with pytest.raises(ConfigError, match="no program 'row': choose from raw, war, "):
        find("row")
    with pytest.raises(ConfigError, match="raw has no variant 'x': choose from broken, lucky, event, stream"):
        find("raw").variant("x")


# What the programs without a hazard are there to show


def test_handing_over_costs_the_copy_or_the_host_on_top():
    event, clone, host = (measure("handoff", how) for how in ("event", "clone", "host"))
    assert clone.makespan - event.makespan == pytest.approx(2 * 2**20 / 10**6)  # read and written once, and no less
    assert event.host_blocked == clone.host_blocked == 0 < host.host_blocked
    assert event.makespan < host.makespan


@pytest.mark.parametrize(
    ("program", "slow", "fast"),
    [
        ("event_reuse", "one-event", "two-events"),
        ("wait_too_much", "stream", "event"),
        ("host_sync_in_loop", "host", "event"),
        ("pipeline", "one-buffer", "two-buffers"),
        ("pageable", "pageable", "pinned"),
        ("launch_bound", "short", "graph"),
    ],
)
def test_waiting_for_less_is_faster(program, slow, fast):
    assert measure(program, fast).makespan < measure(program, slow).makespan


def test_overlap_can_be_there_without_speed():
    full, quarter = measure("sm_full", "full"), measure("sm_full", "quarter")
    assert full.overlap > 0.95 and full.speed_up < 1
    assert quarter.overlap > 0.95 and quarter.speed_up > 1.9
    short = measure("launch_bound", "short")
    assert short.overlap == 0 and short.speed_up < 0.5


def test_record_stream_grows_with_the_rounds_in_flight_and_ordered_frees_do_not():
    record, limited, ordered = (measure("growth", how) for how in ("record-stream", "host-waits", "home-waits"))
    assert record.retained_bytes >= 5 * 2**20 and record.host_blocked == 0
    assert limited.reserved_bytes < record.reserved_bytes and limited.host_blocked > 1000
    assert ordered.reserved_bytes == limited.reserved_bytes
    assert ordered.retained_bytes == 0 and ordered.host_blocked == 0
    assert ordered.makespan <= record.makespan


def test_a_side_streams_pool_is_lost_to_the_main_stream():
    assert measure("side_pool", "side").reserved_bytes == 2 * measure("side_pool", "main").reserved_bytes


def test_from_pageable_memory_the_host_stands_still():
    assert measure("pageable", "pageable").host_blocked == 400  # the spin in front of the copy
    assert measure("pageable", "pinned").host_blocked == 0
