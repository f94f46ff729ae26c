"""The backends beside the model, by name, and how a variant of the catalogue runs on each."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from lab.model.device import resolve_device
from lab.streams.catalogue import Program, Variant
from lab.streams.programs import find
from lab.streams.trace import Trace, Work
from lab.streams.verdict import Verdict, examine
from lab.streams_torch.cuda import CudaRuntime
from lab.streams_torch.threads import ThreadRuntime

Run = tuple[Verdict, Trace | list[Work]]


def run_on_threads(program: Program, variant: Variant) -> Run:
    runtime = ThreadRuntime()
    try:
        return examine(variant.run, variant.want, runtime), runtime.trace
    finally:
        runtime.close()


def run_on_cuda(program: Program, variant: Variant) -> Run:
    """The hazards are the model's, the times the profiler's. What CUDA refuses runs in a process of its own, whose
    context is lost with it.

    Raises DeviceError without a GPU.
    """
    resolve_device("cuda")
    if variant.error is None:
        verdict, works = examine_on_cuda(variant)
    else:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            verdict, works = pool.submit(examine_by_name, program.name, variant.name).result()
    return replace(verdict, hazards=examine(variant.run).hazards), works


def examine_on_cuda(variant: Variant) -> tuple[Verdict, list[Work]]:
    runtime = CudaRuntime()
    return examine(variant.run, variant.want, runtime), runtime.works


def examine_by_name(program: str, variant: str) -> tuple[Verdict, list[Work]]:
    return examine_on_cuda(find(program).variant(variant))


BACKENDS = {"threads": run_on_threads, "cuda": run_on_cuda}
