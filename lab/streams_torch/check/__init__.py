"""`check`: PyTorch code with streams, read without a GPU.

The code is run on FakeTensors, which have shapes and no values, with a stand-in for `torch.cuda`; what it enqueues is
traced onto the model, whose hazards come back with the lines of the code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from lab.streams.races import Hazard
from lab.streams.runtime import Place
from lab.streams.words import Lang, explain
from lab.streams_torch.check.refusal import Unsupported, unsupported
from lab.streams_torch.check.source import call, raised_at, text
from lab.streams_torch.check.standin import standing_in
from lab.streams_torch.check.tracer import Tracer

NO_VALUE = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
NOT_THE_CODES = {  # errors that a GPU, or real tensors, would not have raised, and what to write instead
    "not linked with support for cuda devices": "leave it out of what is checked",  # methods that set the device first
    "Cannot access accelerator device": "use torch.cuda",
    "_apply(): Couldn't swap": 'make the module with device="cuda"',
    "convert all Tensors to FakeTensors first": "make its tensors in what is checked",
}


class WithoutDevice(FakeTensorMode):
    """FakeTensors that ask for no device, though `torch.cuda.is_available` says that there is one."""

    avoid_device_init = property(lambda self: True, lambda self, value: None)  # an attribute in some versions


@dataclass(frozen=True)
class Report:
    """What `check` found. Of a program that `stopped` early, with the reason, only the part before was looked at."""

    hazards: tuple[Hazard, ...]
    device_copies: int  # device to device, as Kineto's "Memcpy DtoD" would count them
    device_bytes: int
    stopped: str | None = None

    @property
    def ok(self) -> bool:
        """Whether all of it was looked at and nothing found."""
        return not self.hazards and self.stopped is None

    def text(self, lang: Lang = "en") -> str:
        lines = []
        for hazard in self.hazards:
            lines.append(explain(hazard, lang))
            lines += [f"    {op.line.number:>4}  {text(op.line)}" for op in (hazard.first, hazard.second)]
        if self.stopped is not None:
            lines.append({"zh": f"到此为止：{self.stopped}", "en": f"stopped: {self.stopped}"}[lang])
        elif not self.hazards:
            lines.append({"zh": "没有发现危险", "en": "no hazard"}[lang])
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def check(fn: Callable[[], object]) -> Report:
    """Call `fn` on FakeTensors and report what could go wrong between its streams. No GPU is needed.

    `fn` takes no arguments and makes its tensors itself, with device="cuda"; it runs without autograd, on the default
    stream. Its tensors are freed when their last name is gone, those of `fn` itself when it returns. A strided tensor
    is checked by its bytes, an indexed write as one to the whole tensor. Errors of the code itself come as they are.
    """
    tracer = Tracer(place_of)
    stopped = None
    with standing_in(tracer, names_of(fn)), torch.no_grad(), WithoutDevice(), tracer:
        try:
            call(fn)
        except Unsupported as reason:
            stopped = str(reason)
        except (*NO_VALUE, RuntimeError, AssertionError) as error:
            instead = next((NOT_THE_CODES[message] for message in NOT_THE_CODES if message in str(error)), None)
            if instead is None and not isinstance(error, NO_VALUE):
                raise
            line = raised_at(error)
            what = f"`{text(line)}`" if line else str(error)
            stopped = str(unsupported(what, instead or "leave it out of what is checked", line=line))
    if tracer.failure is not None:
        raise tracer.failure
    measures = tracer.runtime.measures()
    return Report(tuple(tracer.runtime.trace.hazards), measures.device_copies, measures.device_bytes, stopped)


def names_of(fn: Callable[[], object]) -> dict[str, Any]:
    """The globals of the module that a function, or one with some of its arguments set, comes from."""
    return names_of(fn.func) if isinstance(fn, partial) else getattr(fn, "__globals__", {})


def place_of(x: torch.Tensor) -> Place:
    """Raises Unsupported for another device than the first GPU and the host."""
    if x.device.type == "cpu":
        return "pageable"
    if x.device.type != "cuda" or x.device.index not in (None, 0):
        raise unsupported(f"device {x.device}", "use 'cuda' and 'cpu'")
    return "device"
