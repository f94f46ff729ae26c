"""A run as a server's log tells it: a line every so many seconds, with the fields of vLLM's line."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from lab.core.plan import WaitReason
from lab.core.trace import Trace


@dataclass(frozen=True)
class LogLine:
    """Rates over the interval that ends at `second`; what runs, waits and is in use as of its last step.

    As in vLLM 0.33.0 (`v1/metrics/stats.py`) a prompt counts whole and once, when its first token comes. What is
    computed again after a preemption is only in `computed_tokens_per_s`, which vLLM does not log; nor does it log why
    the head waits.
    """

    second: float
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    computed_tokens_per_s: float
    running: int
    waiting: int
    preemptions: int
    kv_usage: float  # share of the pool's blocks
    head_waits_for: WaitReason | None


def log_lines(trace: Trace, num_blocks: int, seconds: float) -> Iterator[LogLine]:
    """A line for each interval of `seconds` of the run's clock in which a step ended."""
    prompts: Counter[int] = Counter()
    outputs: Counter[int] = Counter()
    for timeline in trace.requests.values():
        outputs.update(int(time // seconds) for time in timeline.token_times)
        if timeline.token_times:
            prompts[int(timeline.token_times[0] // seconds)] += timeline.num_prompt_tokens
    for interval, group in groupby(trace.steps, lambda step: int(step.end // seconds)):
        steps = list(group)
        last = steps[-1]
        yield LogLine(
            (interval + 1) * seconds,
            prompts[interval] / seconds,
            outputs[interval] / seconds,
            sum(sum(step.num_tokens.values()) for step in steps) / seconds,
            last.num_running,
            last.num_waiting,
            sum(len(step.preempted) for step in steps),
            last.used_blocks / num_blocks,
            last.head_waits_for,
        )


def as_text(lines: Iterable[LogLine]) -> str:
    """A table with a head; rates in tokens per second."""
    rows = ["  time  prompt/s  generation/s  running  waiting  preempted      KV  computed/s  head"]
    for line in lines:
        rows.append(
            f"{line.second:4.1f} s {line.prompt_tokens_per_s:9.0f} {line.output_tokens_per_s:13.0f} {line.running:8} "
            f"{line.waiting:8} {line.preemptions:10} {line.kv_usage:7.1%} {line.computed_tokens_per_s:11.0f}  "
            f"{line.head_waits_for.value if line.head_waits_for else '-'}"
        )
    return "\n".join(rows)
