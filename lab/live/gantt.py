"""Chapter 1: one long prompt among requests that decode, step by step."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.metrics import request_metrics
from lab.core.request import Request, SamplingParams
from lab.core.trace import Trace
from lab.live.figure import Figure, Shown, plain
from lab.live.gantt_picture import Gap, draw_gantt
from lab.live.knobs import Choice, Slider, Values
from lab.live.words import Both, Lang, counted, same
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate

LONG, SHORT = "P", "S"
ANSWER = 160  # tokens of each decoder: they go on until every prompt is done
AFTERWARDS = 3  # steps to be seen when the prompts are done
COST = LinearCost()  # the chapter's

KNOBS = (
    Choice(
        "policy",
        Both("策略", "policy"),
        {
            "vllm": Both("混合（vLLM）", "mixed (vLLM)"),
            "prefill-first": Both("提示词优先", "prompts first"),
            "alternate": Both("轮流", "by turns"),
        },
        "vllm",
    ),
    Slider("budget", Both("每步词元预算", "token budget of a step"), (64, 128, 256, 512, 1024, 2048, 4096, 8192), 512),
    Slider("threshold", Both("长提示词的块长上限（0 为不限）", "chunk cap of a long prompt (0: none)"),
           (0, 64, 128, 256, 512, 1024, 2048), 0),
    Slider("decoders", Both("正在解码的请求", "requests that decode"), (1, 2, 3, 4, 5, 6, 7, 8), 1),
    Slider("prompt", Both("长提示词的词元", "tokens of the long prompt"), (256, 512, 1024, 2048, 4096), 4096),
    Choice("short", Both("5 ms 后再来一个短提示词", "a short prompt 5 ms later"),
           {"no": Both("不来", "no"), "yes": Both("来", "yes")}, "no"),
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What the picture is about; times in seconds."""

    longest_gap: float
    gap_steps: int
    ttft: float  # of the long prompt
    ttft_short: float | None
    chunks: tuple[int, ...]  # of the long prompt, in tokens


def load(values: Values) -> Iterator[Request]:
    """The chapter's: decoders from 0 s on, the long prompt at 20 ms, the short one at 25 ms."""
    for i in range(int(values["decoders"])):
        yield Request(f"A{i + 1}", range(1), SamplingParams(ANSWER))
    yield Request(LONG, range(int(values["prompt"])), SamplingParams(1), arrival=0.02)
    if values["short"] == "yes":
        yield Request(SHORT, range(16), SamplingParams(1), arrival=0.025)


def run(values: Values) -> Trace:
    budget, threshold = int(values["budget"]), int(values["threshold"])
    config = SchedulerConfig(budget, max_num_seqs=16, long_prefill_token_threshold=threshold)
    return simulate(load(values), POLICIES[str(values["policy"])](config, CacheConfig(num_blocks=1000)), COST)


def longest(trace: Trace) -> Gap:
    """The longest time between two tokens of one request, the first of several as long."""
    times = {request_id: timeline.token_times for request_id, timeline in trace.requests.items()}
    found = [Gap(request_id, *pair) for request_id, of_one in times.items() for pair in zip(of_one, of_one[1:])]
    return max(found, key=lambda gap: gap.seconds)


def result(trace: Trace, gap: Gap) -> Result:
    ttft = {name: request_metrics(trace.requests[name]).ttft for name in (LONG, SHORT) if name in trace.requests}
    return Result(
        gap.seconds,
        sum(gap.start < step.end <= gap.end for step in trace.steps),
        ttft[LONG],
        ttft.get(SHORT),
        tuple(step.num_tokens[LONG] for step in trace.steps if LONG in step.num_tokens),
    )


def show(values: Values, lang: Lang, width: int) -> Shown:
    trace = run(values)
    gap = longest(trace)
    numbers = result(trace, gap)
    rows = [(label.of(lang), value.of(lang)) for label, value in rows_of(numbers, gap)]
    text = sentence(numbers, gap).of(lang)
    done = max(trace.requests[name].token_times[-1] for name in (LONG, SHORT) if name in trace.requests)
    later = [step.end for step in trace.steps if step.end > done]
    svg = draw_gantt(trace, gap, later[:AFTERWARDS][-1], TITLE.of(lang), text, lang, width)
    return Shown(svg, text, rows, plain(numbers))


def rows_of(r: Result, gap: Gap) -> Iterator[tuple[Both, Both]]:
    ms = f"{1e3 * r.longest_gap:.2f} ms"
    who, steps = gap.request_id, r.gap_steps
    yield Both("最长间隔", "longest gap"), Both(f"{ms}（{who}，{steps} 步）", f"{ms} ({who}, {counted(steps, 'step')})")
    yield Both("P 的首词元时延", "TTFT of P"), same(f"{1e3 * r.ttft:.2f} ms")
    n, most = len(r.chunks), max(r.chunks)
    yield Both("P 的块", "chunks of P"), Both(f"{n} 块，最长 {most} 个词元", f"{n}, of at most {most} tokens")
    if r.ttft_short is not None:
        yield Both("S 的首词元时延", "TTFT of S"), same(f"{1e3 * r.ttft_short:.2f} ms")


def sentence(r: Result, gap: Gap) -> Both:
    ms, ttft = f"{1e3 * r.longest_gap:.2f} ms", f"{1e3 * r.ttft:.2f} ms"
    who, n, steps = gap.request_id, len(r.chunks), r.gap_steps
    return Both(
        f"P 分 {n} 块算完，到达 {ttft} 后吐出首个词元；{who} 的两个词元之间最长隔了 {ms}，跨 {steps} 步。",
        f"P is computed in {counted(n, 'chunk')} and has its first token {ttft} after it came; the longest time "
        f"between two tokens of {who} is {ms}, {counted(steps, 'step')}.",
    )


TITLE = Both("每一步算了谁的几个词元", "Whose tokens each step computes")
FIGURE = Figure("gantt", TITLE, KNOBS, show)
