"""`lab simulate`: run a file of loads under a policy, on virtual time or on the engine."""

import argparse
import random
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.commands.common import (
    Subparsers,
    add_trace_argument,
    add_weights_arguments,
    load_model,
    print_json,
    require_place,
    write_json,
)
from lab.commands.summaries import as_document, print_table
from lab.core.errors import ConfigError
from lab.core.loop import Executor, Loop
from lab.core.plan import StepPlan
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace

if TYPE_CHECKING:
    from lab.core.arrivals import Arrivals
    from lab.sim.scenario import MakePrompt, Scenario

    Prepare = Callable[[Scenario, type[Scheduler]], tuple[Loop, MakePrompt]]


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("simulate", help="run a file of loads under a policy, on virtual time or the engine")
    parser.add_argument(
        "load", type=Path, help="one JSON object a line: config and arrivals, as in lab/sim/scenario.py; or a trace"
    )
    parser.add_argument(
        "--config", metavar="JSON", help="for a trace, Azure's .csv or Mooncake's .jsonl: like '{\"num_blocks\": 4096}'"
    )
    parser.add_argument("--policy", default="vllm", help="a name in lab.policies.POLICIES (vllm)")
    parser.add_argument("--step-ms", type=float, default=5.0, help="simulated time of a step (5)")
    parser.add_argument("--token-ms", type=float, default=0.02, help="and of each token in it (0.02)")
    parser.add_argument("--executor", choices=["simulated", "torch"], default="simulated", help="what computes a step")
    add_trace_argument(parser)
    add_weights_arguments(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.policies import find_policy

    require_place(args.trace)
    policy = find_policy(args.policy)
    scenarios = read_loads(args)
    if args.trace and len(scenarios) > 1:
        raise ConfigError(f"{args.load} holds {len(scenarios)} loads, and a trace shows one; leave one in the file")
    prepare = on_the_engine(args) if args.executor == "torch" else on_virtual_time(args)
    documents = [run_one(args, scenario, *prepare(scenario, policy)) for scenario in scenarios]
    if args.json:
        print_json(documents[0] if len(documents) == 1 else {"loads": documents})
    return 0


def run_one(args: argparse.Namespace, scenario: "Scenario", loop: Loop, make_prompt: "MakePrompt") -> dict[str, Any]:
    """Run one load to its end and print its summary, which is returned."""
    from lab.perfetto.run import run_document
    from lab.sim.arrivals import ByStep
    from lab.sim.tally import StreamingTrace, summarize

    arrivals, num_blocks = scenario.make_arrivals(make_prompt), scenario.cache.num_blocks
    loop.trace = Trace() if args.trace else StreamingTrace(num_blocks)  # steps are kept for a picture alone
    begin = time.process_time()
    trace = run_with_progress(loop, arrivals, scenario)
    seconds = time.process_time() - begin
    summary = trace.tally.summary() if isinstance(trace, StreamingTrace) else summarize(trace, num_blocks)
    document = {"load": scenario.name, "policy": args.policy, "executor": args.executor}
    document |= as_document(summary) | {"refusals": trace.refused}
    if isinstance(arrivals, ByStep):
        document["steps"] = arrivals.num_steps  # those with nothing to do are steps of the load's clock too
    print_table(document)
    n = summary.requests
    print(f"{n} requests in {seconds:.1f} s of processor time, {n / seconds:,.0f} a second")
    if args.trace:
        write_json(args.trace, run_document(trace))
    return document


def read_loads(args: argparse.Namespace) -> "list[Scenario]":
    from lab.sim.scenario import read_scenarios, trace_scenario
    from lab.sim.traces import is_trace

    if args.config is not None:
        return [trace_scenario(args.load, args.config)]
    if is_trace(args.load):
        example = '{"num_blocks": 4096}'
        raise ConfigError(f"{args.load} is a trace, which has no limits; give --config, like '{example}'")
    return list(read_scenarios(args.load))


def run_with_progress(loop: Loop, arrivals: "Arrivals", scenario: "Scenario") -> Trace:
    """Run to the end; where standard error is a terminal it shows how many of the output tokens there are."""
    from tqdm import tqdm

    arrivals_are_known = isinstance(scenario.arrivals, Sized)  # a trace's are read as the run goes
    total = sum(arrival.max_tokens for arrival in scenario.arrivals) if arrivals_are_known else None
    with tqdm(total=total, unit=" tokens", leave=False, disable=None) as bar:
        if not bar.disable:
            loop.executor = Shown(loop.executor, bar)
        return loop.run(arrivals)


class Shown:
    """An executor that moves a bar by each token it makes."""

    def __init__(self, executor: Executor, bar: Any) -> None:
        self.executor = executor
        self.bar = bar

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> Mapping[str, int]:
        sampled = self.executor.execute(plan, scheduler)
        self.bar.update(len(sampled))
        return sampled


def on_virtual_time(args: argparse.Namespace) -> "Prepare":
    from lab.sim import LinearCost, SimulatedExecutor, VirtualClock
    from lab.sim.scenario import any_tokens

    cost = LinearCost(args.step_ms, args.token_ms)

    def prepare(scenario: "Scenario", policy: type[Scheduler]) -> "tuple[Loop, MakePrompt]":
        clock = VirtualClock()
        executor = SimulatedExecutor(cost, clock)
        return Loop(policy(scenario.config, scenario.cache), executor, clock), any_tokens

    return prepare


def on_the_engine(args: argparse.Namespace) -> "Prepare":
    """With prompts of random tokens, the same for the same seed and request; nothing stops before its max_tokens."""
    from lab.engine.engine import make_executor
    from lab.model.attention import select_backend
    from lab.policies import Swap

    decoder = load_model(args).decoder
    positions, vocabulary = decoder.config.max_position_embeddings, range(decoder.config.vocab_size)

    def make_prompt(request_id: str, num_tokens: int) -> Sequence[int]:
        if num_tokens > positions:  # it will be refused, whatever its tokens are
            return range(num_tokens)
        return random.Random(f"{args.seed} {request_id}").choices(vocabulary, k=num_tokens)

    def prepare(scenario: "Scenario", policy: type[Scheduler]) -> "tuple[Loop, MakePrompt]":
        cache = scenario.cache
        config = scenario.config
        if config.enable_chunked_prefill:
            config = replace(config, max_model_len=min(config.max_model_len or positions, positions))
        elif (longest := max((a.num_prompt_tokens + a.max_tokens for a in scenario.arrivals), default=0)) > positions:
            raise ConfigError(f"load {scenario.name}: a request has {longest} tokens, the model {positions} positions")
        selected = select_backend(args.attention, decoder.config, decoder.device, decoder.dtype, cache.block_size)
        scheduler = policy(config, cache)
        swaps = isinstance(scheduler, Swap)  # nobody else has a use for host blocks
        try:
            executor = make_executor(decoder, cache if swaps else replace(cache, num_cpu_blocks=0), selected.backend)
        except RuntimeError as error:  # what PyTorch raises when it gets no memory
            raise ConfigError(
                f"{scenario.name}: {decoder.device} has no memory for {cache.num_blocks} KV blocks of "
                f"{cache.block_size} tokens and {cache.num_cpu_blocks} on the host; lower num_blocks or num_cpu_blocks"
            ) from error
        return Loop(scheduler, executor), make_prompt

    return prepare
