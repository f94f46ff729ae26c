"""The CUDA runtime as far as a CPU shows it: every call it makes can be made, and what it reads from a profile.

That its calls order what they must is shown in test_check.py, where they are traced onto the model.
"""

import json
from contextlib import contextmanager

import pytest

from lab.cli import main
from lab.core.errors import LabError
from lab.perfetto.validate import read_trace
from lab.streams.programs import PROGRAMS, find
from lab.streams.runtime import CaptureError, ProgramError
from lab.streams.trace import Work
from lab.streams.verdict import examine
from lab.streams_torch import backends, cuda, profile
from lab.streams_torch.backends import run_on_cuda
from lab.streams_torch.cuda import CudaRuntime, capture_error
from tests.streams_torch.cpu_cuda import cpu_cuda


@pytest.fixture
def device(monkeypatch):
    """A stand-in for the GPU, whose profiler always sees one copy and two kernels side by side."""

    @contextmanager
    def profiled(found):
        yield
        found += profile.read(TRACE)

    monkeypatch.setattr(cuda, "profiled", profiled)
    cuda.cycles_per_us.cache_clear()
    cuda.warm_up.cache_clear()
    with cpu_cuda():
        yield
    cuda.cycles_per_us.cache_clear()
    cuda.warm_up.cache_clear()


TRACE = json.loads("""{"traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "spin_kernel(long)", "pid": 0, "tid": 20, "ts": 1010.5, "dur": 30.0,
   "args": {"device": 0, "context": 1, "stream": 20, "correlation": 17}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": 1000.0,
   "dur": 20.5, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 9, "bytes": 1048576}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 1040.5,
   "dur": 9.5, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 11, "bytes": 4096}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 990.0, "dur": 4.0,
   "args": {"correlation": 17}},
  {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}
]}""")


def test_a_profile_is_read():
    copy, spin, upload = profile.read(TRACE)
    assert copy == Work("Memcpy DtoD (Device -> Device)", 7, 1000.0, 20.5, 2**20) and copy.is_device_copy
    assert spin == Work("spin_kernel(long)", 20, 1010.5, 30.0) and not spin.is_device_copy
    assert upload.nbytes == 4096 and not upload.is_device_copy


def test_measures_are_those_of_the_profile(device):
    rt = CudaRuntime()
    rt.write(rt.empty(8, "early", place="pinned"), 1)
    with rt.measured():
        rt.fill(rt.empty(8, "x"), 1)
    measures = rt.measures()
    assert (measures.device_copies, measures.device_bytes) == (1, 2**20)
    assert measures.solo == 60 and measures.overlap == pytest.approx(10 / 50) and measures.makespan > 0


def test_a_trace_has_a_track_for_each_stream_and_its_works_from_the_first_on(device, tmp_path):
    out = tmp_path / "out.json"
    assert main(["streams", "war", "--variant", "copy-out", "--backend", "cuda", "--trace", str(out)]) == 0
    contents = read_trace(out)
    assert (contents.kinds["slices"], contents.tracks, contents.start, contents.end) == (3, 2, 0, 50)
    events = json.loads(out.read_text())["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    slices = [(tracks[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert slices[1:] == [
        ("stream 20", "spin_kernel(long)", 10.5, 30.0),
        ("stream 7", "Memcpy HtoD (Pinned -> Device)", 40.5, 9.5),
    ]
    assert events[0]["args"]["name"] == "war: copy-out"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_catalogue_runs(device, name):
    """The stand-in does everything at once and in order, so whatever needs no other order is right."""
    for variant in find(name).variants:
        verdict = examine(variant.run, variant.want, CudaRuntime(profile=False))
        if not variant.hazards and variant.error is None:
            assert verdict.right, variant.name


def test_the_hazards_are_the_models_and_what_cuda_refuses_has_a_process_of_its_own(device, monkeypatch):
    used = []

    class Pool:
        def __init__(self, *args, **kwargs):
            used.append(args)

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        def submit(self, function, *args):
            self.result = lambda: function(*args)
            return self

    monkeypatch.setattr(backends, "ProcessPoolExecutor", Pool)
    broken = find("free_early").variant("broken")
    assert {hazard.kind for hazard in run_on_cuda(find("free_early"), broken)[0].hazards} == broken.hazards
    assert used == []
    run_on_cuda(find("graph"), find("graph").variant("unjoined"))
    assert used == [(1,)]


def test_memory_used_after_the_free_is_refused(device):
    rt = CudaRuntime(profile=False)
    x = rt.full(8, 1, "x")
    rt.free(x)
    with pytest.raises(ProgramError, match="is used after x was freed"):
        rt.read(x.view(0, 4))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("CUDA error: capturing stream has unjoined work\nCompile with ...", "unjoined"),
        ("CUDA error: dependency created on uncaptured work in another stream", "isolation"),
        ("CUDA error: operation not permitted when stream is capturing", "unsupported"),
    ],
)
def test_the_first_error_of_a_capture_names_the_rule(text, rule):
    try:
        try:
            raise RuntimeError(text)
        except RuntimeError:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # noqa: B904
    except RuntimeError as error:
        found = capture_error(error)
    assert isinstance(found, CaptureError) and found.rule == rule and "\n" not in str(found)


def test_another_error_stays_what_it_is():
    error = RuntimeError("CUDA out of memory")
    assert capture_error(error) is error


def test_without_a_gpu_it_says_so():
    with pytest.raises(LabError, match="sees no CUDA device"):
        CudaRuntime()
    with pytest.raises(LabError, match="sees no CUDA device"):
        run_on_cuda(find("raw"), find("raw").variant("event"))
