"""Every legal execution of a small program: its kernels one after the other, in each order that its waits allow."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.streams.model import ModelRuntime
from lab.streams.runtime import ProgramError, Runtime
from lab.streams.trace import Launched, Trace

MAX_KERNELS = 8  # without a wait, n kernels on two streams have up to 2 ** n orders


@dataclass(frozen=True)
class Execution:
    """The kernels of the measured part in the order they ran, and what the program then returns."""

    order: tuple[str, ...]
    value: float


def executions(run: Callable[[Runtime], float]) -> list[Execution]:
    """Run a program once on the model, then its measured kernels again in every order.

    The program must end with `mean`, and touch no host memory before. Raises ProgramError if it does otherwise, or if
    it launches more than MAX_KERNELS in the measured part.
    """
    rt = ModelRuntime()
    run(rt)
    trace = rt.trace
    check(trace)
    begin, end = trace.begin.launched, trace.begin.launched + len(trace.measured)
    result = trace.launched[-1].kernel.spans[-1]
    found = []
    for order in orders(trace.measured):
        rt.memory.clear()
        for launched in [*trace.launched[:begin], *order, *trace.launched[end:]]:
            if launched.kernel.compute is not None:
                launched.kernel.compute()
        value = rt.memory.mean(result.extent)
        found.append(Execution(tuple(launched.kernel.label for launched in order), value))
    return found


def check(trace: Trace) -> None:
    if trace.end is None or len(trace.launched) != trace.end.launched + 1:
        raise ProgramError("to explore a program, put its kernels into `measured()` and end it with `mean`")
    if len(trace.measured) > MAX_KERNELS:
        raise ProgramError(f"{len(trace.measured)} kernels have too many orders: at most {MAX_KERNELS} can be explored")
    for span in trace.host[: trace.end.host]:
        if span.op is not None and not (span.op.is_alloc or span.op.is_free):
            raise ProgramError(f"`{span.label}` is the host's, and stays where it is: explore programs of kernels only")


def orders(kernels: list[Launched]) -> Iterator[list[Launched]]:
    """Each order in which nothing comes before what it waits for."""
    if not kernels:
        yield []
    for first in kernels:
        rest = [kernel for kernel in kernels if kernel is not first]
        if not any(other.op.stamp.before(first.op.stamp) for other in rest):
            for order in orders(rest):
                yield [first, *order]
