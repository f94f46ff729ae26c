"""What the map says of the cell that the reader is in."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.live.region_picture import VERDICTS, Cell
from lab.live.words import Both, Lang, same
from lab.sim.stability import Judgement, Miss
from lab.sim.summary import SLO
from lab.sim.trial import Outcome

CRITERIA = {  # by their names in lab.sim.stability
    "preemptions per request": Both("每个请求的抢占次数", "preemptions per request"),
    "useful / computed tokens": Both("有用 / 算过的词元", "useful / computed tokens"),
    "throughput / best": Both("吞吐 / 最好的一格", "throughput / that of the best cell"),
    "queue growth": Both("队伍的增长", "growth of the queue"),
    "refused requests": Both("被拒绝的请求", "refused requests"),
    "ttft p99": same("TTFT p99"),
    "itl p99": same("ITL p99"),
}


@dataclass(frozen=True)
class Wall:
    """The highest load that a setting holds and the lowest that it doesn't, in requests per second.

    None where the slider has no such mark. `because` is what is broken there.
    """

    holds: float | None
    breaks: float | None
    because: Judgement = Judgement(())


def text_of(cell: Cell, rate: float, judgement: Judgement, wall: Wall, nearest: Cell | None, lang: Lang) -> str:
    parts = [verdict(cell, rate, judgement), distance(wall)]
    if not judgement.stable:
        parts.append(way_out(nearest))
    return Both("", " ").of(lang).join(part.of(lang) for part in parts)


def verdict(cell: Cell, rate: float, judgement: Judgement) -> Both:
    seqs, budget = cell
    _, _, word = VERDICTS[judgement.verdict]
    zh = f"{seqs} 个并发、{budget} 个词元的预算，每秒 {rate:g} 个请求：{word.zh}"
    en = f"{seqs} at once with a budget of {budget} tokens, under a load of {rate:g}/s: {word.en}"
    if judgement.stable:
        return Both(f"{zh}。", f"{en}.")
    because = explain(judgement.misses[0])
    return Both(f"{zh}（{because.zh}）。", f"{en} ({because.en}).")


def explain(miss: Miss) -> Both:
    name, figures = CRITERIA[miss.criterion], str(miss).removeprefix(miss.criterion)
    return Both(name.zh + figures, name.en + figures)


def distance(wall: Wall) -> Both:
    if wall.breaks is None:
        return Both(
            f"滑杆上最大的负载，每秒 {wall.holds:g} 个，它的队伍、抢占和 SLO 也守得住。",
            f"Its queue, preemptions and SLO hold up to {wall.holds:g}/s, the end of the slider.",
        )
    because = explain(wall.because.misses[0])
    if wall.holds is None:
        return Both(
            f"滑杆上最小的负载，每秒 {wall.breaks:g} 个，它也守不住：{because.zh}。",
            f"Even {wall.breaks:g}/s, the least on the slider, is too much for it: {because.en}.",
        )
    return Both(
        f"它的队伍、抢占和 SLO，每秒 {wall.holds:g} 个时守得住，{wall.breaks:g} 个时守不住：{because.zh}。",
        f"Its queue, preemptions and SLO hold up to {wall.holds:g}/s and no longer at {wall.breaks:g}/s: {because.en}.",
    )


def way_out(nearest: Cell | None) -> Both:
    if nearest is None:
        return Both(
            "这个负载下没有稳定的格子：只能加机器，或者在门口拒绝。",
            "No cell is stable under this load: add machines, or refuse at the door.",
        )
    seqs, budget = nearest
    return Both(
        f"最近的稳定格是 {seqs} 个并发、{budget} 个词元的预算。",
        f"The nearest stable cell is {seqs} at once with a budget of {budget}.",
    )


def rows_of(o: Outcome, best: float, slo: SLO, wall: Wall, rate: float) -> Iterator[tuple[Both, str]]:
    """`best` is the best cell's throughput."""
    s = o.summary
    yield Both("吞吐", "throughput"), f"{s.output_tokens_per_s:,.0f} tokens/s"
    yield Both("吞吐 / 最好的一格", "throughput / the best cell's"), f"{100 * s.output_tokens_per_s / best:.0f} %"
    yield Both("最长的 TTFT / 界限", "longest TTFT / limit"), f"{1e3 * s.ttft.p99:,.0f} / {1e3 * slo.ttft:,.0f} ms"
    yield Both("ITL p99 / 界限", "ITL p99 / limit"), f"{1e3 * s.itl.p99:,.0f} / {1e3 * slo.itl:,.0f} ms"
    yield Both("抢占", "preemptions"), f"{s.preemptions:,}"
    yield Both("有用 / 算过的词元", "useful / computed tokens"), f"{100 * s.useful_ratio:.1f} %"
    yield Both("KV 峰值使用率", "peak KV use"), f"{100 * s.kv_peak_blocks / o.setting.cache.num_blocks:.0f} %"
    if wall.holds is not None:
        yield Both("守得住的负载", "load it holds"), f"{wall.holds:g} /s ({100 * (wall.holds / rate - 1):+.0f} %)"


def notes_of(judgement: Judgement) -> Iterator[Both]:
    """What is broken beside the first."""
    for miss in judgement.misses[1:]:
        because = explain(miss)
        yield Both(f"守不住的还有：{because.zh}。", f"Broken as well: {because.en}.")
