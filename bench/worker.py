"""An engine in a process of its own, with the environment it needs: asked and answered in lines of JSON."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bench.player import Meeting, Player, Refused, Sample, Stopwatch, Tokens
from bench.table import ROOT

CPU = torch.device("cpu")


def vllm(threads: int, clock: str, **options: Any) -> Player:
    from bench.players.vllm import vllm

    return vllm(watch=Stopwatch(CPU, clock), **options)


def llama_cpp(threads: int, clock: str, **options: Any) -> Player:
    from bench.players.llama_cpp import LlamaCpp

    return LlamaCpp(threads=threads, watch=Stopwatch(CPU, clock), **options)


PLAYERS: dict[str, Callable[..., Player]] = {"vllm": vllm, "llama_cpp": llama_cpp}


class Remote:
    """This side: a Player whose times are taken in its own process. Raises Refused if it doesn't start or has ended."""

    def __init__(self, python: Path, player: str, threads: int, clock: str, **options: Any) -> None:
        self.name = player
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [python, "-m", "bench.worker", player, json.dumps({"threads": threads, "clock": clock, **options})],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.name = self._answer()["name"]

    def prefill(self, prompt: list[int], budget: int) -> Sample:
        return Sample(**self._ask("prefill", prompt, budget))

    def decode(self, prompts: Tokens, new_tokens: int) -> Sample:
        return Sample(**self._ask("decode", prompts, new_tokens))

    def meet(self, prompts: Tokens, prompt: list[int], budget: int) -> Meeting:
        return Meeting(**self._ask("meet", prompts, prompt, budget))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _ask(self, method: str, *args: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            print(json.dumps([method, *args]), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended: the answer says so
        answer = self._answer()
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            said = [text for text in self.log.read().splitlines() if text.strip()] or ["nothing"]
            raise Refused(f"{self.name} ended with {self.process.wait()}, saying: {said[-1][:200]}")
        return json.loads(line)


def serve(player: str, options: dict[str, Any]) -> None:
    """The other side. Whatever the engine prints goes to the log: the answers have the pipe for themselves."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(options["threads"])
    playing = PLAYERS[player](**options)
    print(json.dumps({"name": playing.name}), file=answers, flush=True)
    for line in sys.stdin:
        method, *args = json.loads(line)
        try:
            answer = asdict(getattr(playing, method)(*args))
        except Refused as why:
            answer = {"refused": str(why)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
