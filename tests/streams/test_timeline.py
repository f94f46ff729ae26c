"""Times worked out by hand."""

from fractions import Fraction

import pytest

from lab.streams.model import ModelRuntime
from lab.streams.runtime import ProgramError
from lab.streams.timeline import Item, Machine, Timeline, critical_path, overlap

FREE = Machine(launch_us=0, event_us=0, malloc_us=0, segment_us=0, edge_us=0)


def works(rt: ModelRuntime) -> list[tuple[str, Fraction, Fraction]]:
    rt.synchronize()
    return [(x.kernel.label, x.item.start, x.item.end) for x in rt.trace.launched]


def test_a_stream_is_a_queue_and_the_host_needs_time_to_fill_it():
    rt = ModelRuntime()
    rt.spin(2)
    rt.spin(20)
    rt.spin(20)
    assert works(rt) == [("spin", 5, 7), ("spin", 10, 30), ("spin", 30, 50)]


def test_an_edge_takes_its_time_and_only_between_streams():
    rt = ModelRuntime()
    rt.spin(100)  # 5 to 105
    event = rt.record()
    rt.wait(event, on="side")
    rt.spin(10, on="side")
    rt.wait(event, on="main")
    rt.spin(10)
    assert works(rt) == [("spin", 5, 105), ("spin", 107, 117), ("spin", 105, 115)]


def test_kernels_that_ask_for_more_than_there_is_share_it():
    rt = ModelRuntime(FREE)
    rt.spin(30, share=1)
    rt.spin(30, share=0.5, on="side")
    # Together 3/2 of the device: each at 2/3 until both have done their 30 at 45.
    assert works(rt) == [("spin", 0, 45), ("spin", 0, 45)]
    rt = ModelRuntime(FREE)
    rt.spin(60, share=1)
    rt.spin(20, share=1, on="side")
    assert works(rt) == [("spin", 0, 80), ("spin", 0, 40)]  # at half speed until 40; the other's 40 left alone
    rt = ModelRuntime(FREE)
    rt.spin(Fraction(1, 3), share=1)
    rt.spin(Fraction(1, 7), share=1, on="side")
    assert works(rt)[0][2] == Fraction(1, 3) + Fraction(1, 7)  # exact


def test_engines_do_not_disturb_one_another():
    rt = ModelRuntime(Machine(0, 0, 0, 0, 0, memory_rate=100, link_rate=10))
    device, other = rt.empty(25, "device"), rt.empty(25, "other")
    up, down = rt.empty(25, "up", place="pinned"), rt.empty(25, "down", place="pinned")
    rt.spin(10, share=1)
    rt.copy(device, up, on="b")
    rt.copy(down, other, on="c")
    rt.copy(other, device, on="d")
    ends = [end for _, _, end in works(rt)]
    assert ends == [10, 10, 10, 2]  # 100 bytes over the link, and 200 through memory


def test_what_the_host_waits_for_and_for_how_long():
    rt = ModelRuntime()
    rt.spin(100)
    early = rt.record()
    rt.spin(100)
    rt.synchronize(early)  # at 11; over at 105
    assert rt.now == 105
    rt.synchronize(early)
    assert rt.now == 105  # no second time
    rt.synchronize("main")
    assert rt.now == 205
    blocked = [span.end - span.start for span in rt.trace.host if span.is_blocked]
    assert blocked == [105 - 11, 100]
    rt.synchronize("a stream that was never used")
    assert rt.now == 205


def test_query_says_yes_once_it_is_over():
    rt = ModelRuntime()
    rt.spin(20)
    event = rt.record()
    assert not rt.query(event)
    rt.work(30)
    assert rt.query(event)


def test_the_critical_path_goes_through_edges_queues_and_the_host():
    rt = ModelRuntime()
    x, y = rt.full(4, 0, "x"), rt.full(4, 0, "y")
    with rt.measured():
        rt.spin(10, on="idle")
        rt.fill(x, 1, us=100)
        rt.synchronize("main")
        rt.add(y, x, 1, on="side", us=50)
        rt.wait_stream("side", on="main")
        rt.add(x, y, 1, us=5)
        rt.spin(5)
    assert [x.kernel.label for x in rt.trace.critical_path()] == ["x = 1", "y = x + 1", "x = y + 1", "spin"]


def test_a_path_ends_where_the_host_was_first():
    timeline = Timeline(edge_us=0)
    first = Item("a", Fraction(0), solo=Fraction(5))
    late = Item("a", Fraction(50), solo=Fraction(5))
    for item in (first, late):
        timeline.submit(item)
    assert timeline.finish(late) == 55
    assert critical_path(late) == [late]


def test_overlap_is_counted_once_however_many_run():
    def work(start: int, end: int) -> Item:
        return Item("s", Fraction(0), start=Fraction(start), end=Fraction(end))

    assert overlap([work(0, 10), work(5, 15), work(5, 15), work(20, 25)]) == Fraction(10, 20)
    assert overlap([]) == 0


def test_only_the_measured_part_counts():
    rt = ModelRuntime()
    x = rt.full(256, 1, "x")
    rt.copy(rt.empty(256, "before"), x)
    rt.spin(1000)
    with rt.measured():
        rt.spin(20)
        rt.copy(rt.empty(256, "in"), x)
    rt.copy(rt.empty(256, "after"), x)
    measures = rt.measures()
    assert (measures.device_copies, measures.device_bytes) == (1, 1024)
    assert measures.makespan < 30


def test_calls_that_make_no_sense_are_refused():
    rt = ModelRuntime()
    x, h = rt.empty(4, "x"), rt.empty(4, "h", place="pinned")
    with pytest.raises(ProgramError, match="x has 0 elements"):
        rt.empty(0, "x")
    with pytest.raises(ProgramError, match=r"x\[2:9\] is no view: x has 4 elements"):
        x.view(2, 9)
    with pytest.raises(ProgramError, match="h is in pinned memory; this takes device: copy it first"):
        rt.fill(h, 1)
    with pytest.raises(ProgramError, match="x is in device memory; this takes pinned or pageable"):
        rt.read(x)
    with pytest.raises(ProgramError, match="elements into 4"):
        rt.add(x, x, rt.empty(5, "y"))
    for other in (rt.empty(5, "y"),):
        with pytest.raises(ProgramError, match="copy y"):
            rt.copy(x, other)
    with pytest.raises(ProgramError, match="copy h"):
        rt.copy(h, h)
    rt.free(x)
    for use in (lambda: rt.fill(x, 1), lambda: rt.free(x), lambda: rt.record_stream(x, "side")):
        with pytest.raises(ProgramError, match="x is used after x was freed"):
            use()
