"""Three other ways to know what the model claims to know."""

from collections.abc import Iterator

from lab.streams.model import ModelRuntime
from lab.streams.races import Kind
from lab.streams.runtime import ITEM_BYTES
from tests.streams.random_programs import Call

RACES = (Kind.READ_AFTER_WRITE, Kind.WRITE_AFTER_WRITE, Kind.WRITE_AFTER_READ)


def ancestors(calls: list[Call]) -> dict[int, set[int]]:
    """For every kernel, all calls that have ended before it starts: reachability, from the calls alone."""
    before: dict[int, set[int]] = {}
    last: dict[str, int] = {}  # by stream
    recorded: dict[int, int] = {}  # by event
    host: set[int] = set()  # what the host has seen end
    for number, call in enumerate(calls):
        sources: list[int] = []
        match call.what:
            case "kernel" | "record" | "wait":
                sources = [last[call.stream]] if call.stream in last else []
                if call.what == "wait" and call.event in recorded:
                    sources.append(recorded[call.event])
                before[number] = host.union(*({source} | before[source] for source in sources))
                last[call.stream] = number
                if call.what == "record":
                    recorded[call.event] = number
                continue
            case "sync_event":
                sources = [recorded[call.event]] if call.event in recorded else []
            case "sync_stream":
                sources = [last[call.stream]] if call.stream in last else []
            case "sync_device":
                sources = list(last.values())
        host = host.union(*({source} | before[source] for source in sources))
    return {number: past for number, past in before.items() if calls[number].what == "kernel"}


def executions_differ(calls: list[Call], rt: ModelRuntime) -> bool:
    """Whether two legal executions read from different writes, or write the same bytes in different orders.

    The kernels and the bytes they touch (`rt` says where the tensors lay), one kernel at a time in every order that
    respects `ancestors`.
    """
    past = ancestors(calls)
    cells = {
        launched.op.line.number: [
            (cell, span.is_write) for span in launched.kernel.spans for cell in range(span.start, span.stop, 128)
        ]
        for launched in rt.trace.launched
    }
    seen = {outcome(order, cells) for order in linear_extensions({k: past[k] & past.keys() for k in past})}
    return len(seen) > 1


def linear_extensions(before: dict[int, set[int]]) -> Iterator[list[int]]:
    if not before:
        yield []
    for first in [kernel for kernel, past in before.items() if not past]:
        rest = {kernel: past - {first} for kernel, past in before.items() if kernel != first}
        for order in linear_extensions(rest):
            yield [first, *order]


def outcome(order: list[int], cells: dict[int, list[tuple[int, bool]]]) -> tuple[object, ...]:
    """Who read what from whom, and in which order every cell was written."""
    writers: dict[int, tuple[int, ...]] = {}
    read_from = set()
    for kernel in order:
        for cell, is_write in cells[kernel]:
            if not is_write:
                read_from.add((kernel, cell, writers.get(cell, ())[-1:]))
        for cell, is_write in cells[kernel]:
            if is_write:
                writers[cell] = (*writers.get(cell, ()), kernel)
    return frozenset(read_from), frozenset(writers.items())


def first_by_model(rt: ModelRuntime) -> tuple[int, set[int]] | None:
    """The first kernel with a race, and those it races with; allocator hazards aside."""
    races = [hazard for hazard in rt.trace.hazards if hazard.kind in RACES]
    if not races:
        return None
    number = races[0].second.line.number
    return number, {race.first.line.number for race in races if race.second.line.number == number}


def first_by_sanitizer(calls: list[Call], rt: ModelRuntime) -> tuple[int, set[int]] | None:
    """The same from PyTorch's own CUDA sanitizer, driven call by call; it needs no GPU for that.

    It is told the addresses at which the tensors lay in `rt`, as it would see their data pointers.
    """
    from torch.cuda._sanitizer import EventHandler

    handler = EventHandler()
    streams = {name: i for i, name in enumerate(sorted({call.stream for call in calls}), 1)}
    for stream in streams.values():
        handler._handle_stream_creation(stream)
    numbers: dict[int, int] = {}  # the sanitizer's number of a kernel -> ours
    tensors = {tenancy.tensor.name: tenancy.start for tenancy in rt.trace.tenancies}
    for number, call in enumerate(calls):
        stream = streams[call.stream]
        match call.what:
            case "empty":
                handler._handle_memory_allocation(tensors[call.tensor])
            case "free":
                handler._handle_memory_deallocation(tensors[call.tensor])
            case "kernel":
                sides = (call.reads, call.writes)
                reads, writes = ({tensors[name] + start * ITEM_BYTES for name, start, _ in side} for side in sides)
                aliases = {pointer: [] for pointer in reads | writes}
                errors = handler._handle_kernel_launch(stream, reads - writes, writes, set(), f"k{number}", aliases)
                numbers[handler.seq_num] = number
                if errors:
                    return number, {numbers[error.previous_access.seq_num] for error in errors}
            case "record":
                handler._handle_event_record(call.event, stream)
            case "wait":
                handler._handle_event_wait(call.event, stream)
            case "sync_event":
                handler._handle_event_synchronization(call.event)
            case "sync_stream":
                handler._handle_stream_synchronization(stream)
            case "sync_device":
                handler._handle_device_synchronization()
    return None
