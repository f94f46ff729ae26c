"""Chapter 2: a load under the knobs of a runtime, and what its operators look at."""

from collections.abc import Iterator
from dataclasses import replace

from lab.core.config import CacheConfig, SchedulerConfig
from lab.live.console_picture import REASONS, draw_console
from lab.live.figure import Figure, Shown, plain
from lab.live.knobs import Choice, Slider, Values
from lab.live.run import simulate_up_to
from lab.live.words import Both, Lang, counted, same
from lab.policies import POLICIES
from lab.sim import LinearCost
from lab.sim.summary import Summary
from lab.sim.synthetic import SYNTHETIC, Quantiles, SyntheticLoad
from lab.sim.tally import summarize

NUM_REQUESTS = 400
SHORTER = 4  # than Azure's: a page's answer should not take longer than a slider's move
MAX_STEPS = 10_000
COST = LinearCost()  # the chapter's
NOT_HERE = ("priority", "swap")  # all requests are alike, and the cost of copies is not in the chapter's formula

KNOBS = (
    Slider("max_num_seqs", same("max_num_seqs"), (1, 2, 4, 8, 16, 32, 64, 128), 32),
    Slider("budget", same("max_num_batched_tokens"), (128, 256, 512, 1024, 2048, 4096, 8192), 512),
    Slider("blocks", Both("KV 块", "KV blocks"), (64, 128, 256, 384, 512, 768, 1024, 2048), 256),
    Slider("rate", Both("每秒到达的请求", "requests per second"), (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96), 20),
    Slider("burstiness", Both("burstiness（1 为泊松，越小越成串）", "burstiness (1: Poisson; lower: bursts)"),
           (0.05, 0.1, 0.25, 0.5, 1, 2, 4), 1),
    Choice("lengths", Both("长度：Azure 2023 的四分之一", "lengths: a quarter of Azure 2023's"),
           {"azure-conv": Both("对话", "conversation"), "azure-code": Both("代码", "code")}, "azure-conv"),
    Choice("policy", Both("策略", "policy"),
           {name: same(name) for name in POLICIES if name not in NOT_HERE}, "vllm"),
)  # fmt: skip


def load_of(lengths: str, burstiness: float) -> SyntheticLoad:
    def shorter(of: Quantiles) -> Quantiles:
        return Quantiles([(percent, max(1.0, tokens / SHORTER)) for percent, tokens in of.points])

    azure = SYNTHETIC[lengths]
    return replace(azure, burstiness=burstiness, prompt=shorter(azure.prompt), output=shorter(azure.output))


def show(values: Values, lang: Lang, width: int) -> Shown:
    """Raises ConfigError for limits that contradict each other."""
    load = load_of(str(values["lengths"]), float(values["burstiness"]))
    config = SchedulerConfig(int(values["budget"]), int(values["max_num_seqs"]))
    blocks = int(values["blocks"])
    scheduler = POLICIES[str(values["policy"])](config, CacheConfig(blocks))
    requests = load.requests(NUM_REQUESTS, rate=float(values["rate"]))
    trace, is_cut = simulate_up_to(MAX_STEPS, requests, scheduler, COST)
    summary = summarize(trace, blocks)
    text = sentence(summary).of(lang)
    svg = draw_console(trace, summary, config.max_num_seqs, blocks, TITLE.of(lang), text, lang, width)
    rows = [(label.of(lang), value) for label, value in rows_of(summary)]
    return Shown(svg, text, rows, plain(summary), [note.of(lang) for note in notes_of(summary, is_cut)])


def rows_of(s: Summary) -> Iterator[tuple[Both, str]]:
    yield Both("吞吐", "throughput"), f"{s.output_tokens_per_s:,.0f} tokens/s"
    for name, metric in (("TTFT", s.ttft), ("ITL", s.itl)):
        if metric.n:
            yield same(f"{name} p50, p99"), f"{1e3 * metric.p50:,.1f}, {1e3 * metric.p99:,.1f} ms"
    yield Both("最长间隔", "longest gap"), f"{1e3 * s.longest_gap:,.1f} ms"
    yield Both("有用 / 算过的词元", "useful / computed tokens"), f"{100 * s.useful_ratio:.1f} %"
    yield Both("抢占", "preemptions"), f"{s.preemptions:,}"
    yield Both("KV 平均使用率", "mean KV use"), f"{100 * s.kv_mean_usage:.0f} %"


def sentence(s: Summary) -> Both:
    rate, peak, preemptions = f"{s.output_tokens_per_s:,.0f}", s.max_waiting, counted(s.preemptions, "preemption")
    reason = max(REASONS, key=lambda reason: s.waiting_reasons[reason])
    if not s.waiting_reasons[reason]:
        return Both(
            f"吞吐 {rate} 词元/s，抢占 {s.preemptions} 次，没有请求排队。",
            f"{rate} tokens/s, {preemptions}, and nobody queues.",
        )
    zh, en = REASONS[reason]
    queue = "1 request queues" if peak == 1 else f"{peak} requests queue"
    return Both(
        f"吞吐 {rate} 词元/s，抢占 {s.preemptions} 次；最多 {peak} 个请求排队，队首多半在等“{zh}”。",
        f"{rate} tokens/s, {preemptions}; up to {queue}. What their head waits for most often: {en}.",
    )


def notes_of(s: Summary, is_cut: bool) -> Iterator[Both]:
    if is_cut:
        yield Both(
            f"网页上最多算 {MAX_STEPS:,} 步：到此时 {NUM_REQUESTS} 个请求中到了 {s.requests} 个，完成 {s.finished} 个，"
            "图和数字只说这一段。",
            f"A page computes {MAX_STEPS:,} steps at most: by then {s.requests} of {NUM_REQUESTS} requests had come "
            f"and {s.finished} had ended; picture and numbers are of this part.",
        )
    if s.refused:
        yield Both(
            f"{s.refused} 个请求比整个 KV 池还长，提交时就被拒绝。",
            f"Longer than the whole KV pool, and so refused on arrival: {counted(s.refused, 'request')}.",
        )


TITLE = Both("一种负载、一组旋钮", "One load, one setting of the knobs")
FIGURE = Figure("console", TITLE, KNOBS, show)
