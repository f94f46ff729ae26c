"""Chapter 2: the stable region under a load, and how far a setting in it is from the wall."""

from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.plan import WaitReason
from lab.live.figure import Figure, Shown, plain
from lab.live.knobs import Slider, Values
from lab.live.region_picture import Cell, draw_region
from lab.live.region_words import Wall, notes_of, rows_of, text_of
from lab.live.words import Both, Lang
from lab.sim.devices import DEVICES, LLAMA_3_1_8B, predict
from lab.sim.load import Load
from lab.sim.stability import Criteria, Judgement, judge
from lab.sim.summary import SLO
from lab.sim.synthetic import SYNTHETIC
from lab.sim.trial import Outcome, Setting, Trial, judge_all, run_trial

NUM_REQUESTS = 50  # of a run: 16 runs are as long as a reader waits. The p99 of their TTFT is the longest
SEQS = (8, 16, 32, 64)
BUDGETS = (128, 512, 2048, 8192)
RATES = (0.5, 1, 1.5, 2, 2.2, 2.4, 2.6, 2.8, 3.2, 4, 6, 8)
COST = predict(DEVICES["RTX 4090"], LLAMA_3_1_8B)  # the chapter's card
LOAD = SYNTHETIC["azure-conv"]

KNOBS = (
    Slider("max_num_seqs", Both("你在这里：max_num_seqs", "you are here: max_num_seqs"), SEQS, 32),
    Slider("budget", Both("你在这里：max_num_batched_tokens", "you are here: max_num_batched_tokens"), BUDGETS, 512),
    Slider("rate", Both("每秒到达的请求", "requests per second"), RATES, 2.4),
    Slider("blocks", Both("KV 块", "KV blocks"), (512, 1024, 1536, 2048, 3072, 4096, 8192), 2048),
    Slider("ttft", Both("SLO：TTFT 的 p99（s）", "SLO: p99 of TTFT (s)"), (0.5, 1, 2, 3, 5, 10), 3),
    Slider("itl", Both("SLO：ITL 的 p99（ms）", "SLO: p99 of ITL (ms)"), (25, 50, 100, 250, 500, 1000), 100),
)


@lru_cache(maxsize=1024)  # so "you are here" moves at once, and so does a slider that is turned back
def outcome(seqs: int, budget: int, blocks: int, rate: float) -> Outcome:
    setting = Setting(SchedulerConfig(budget, seqs), CacheConfig(blocks))
    return run_trial(Trial(setting, Load.of(LOAD.requests(NUM_REQUESTS, rate=rate)), COST))


def outcomes(blocks: int, rate: float) -> dict[Cell, Outcome]:
    """What comes of each cell. Where nobody waits for max_num_seqs a larger one changes nothing, and is not run."""
    found: dict[Cell, Outcome] = {}
    for budget in BUDGETS:
        smaller = None
        for seqs in SEQS:
            if smaller is None or smaller.summary.waiting_reasons[WaitReason.MAX_SEQS]:
                smaller = outcome(seqs, budget, blocks, rate)
            setting = replace(smaller.setting, config=SchedulerConfig(budget, seqs))
            found[seqs, budget] = replace(smaller, setting=setting)
    return found


def find_wall(cell: Cell, blocks: int, rate: float, criteria: Criteria) -> Wall:
    """Among the slider's marks, on the side of `rate` on which it must be, by bisection.

    Whether other settings let more through under those loads is left aside: it would take a map of each.
    """

    def judged(at: float) -> Judgement:
        one = outcome(*cell, blocks, at)
        return judge(one.summary, one.growth, 0.0, criteria)

    here = RATES.index(rate)
    low, high = (here + 1, len(RATES)) if judged(rate).stable else (0, here)
    wall = bisect_left(RATES, True, low, high, key=lambda at: not judged(at).stable)
    holds = RATES[wall - 1] if wall else None
    return Wall(holds, None) if wall == len(RATES) else Wall(holds, RATES[wall], judged(RATES[wall]))


def nearest_stable(cell: Cell, judgements: dict[Cell, Judgement]) -> Cell | None:
    """The stable cell that the fewest notches lead to; of several the one with the smaller limits."""

    def notches(other: Cell) -> int:
        return sum(abs(marks.index(a) - marks.index(b)) for marks, a, b in zip((SEQS, BUDGETS), cell, other))

    return min((other for other, j in judgements.items() if j.stable), key=lambda c: (notches(c), c), default=None)


def show(values: Values, lang: Lang, width: int) -> Shown:
    cell = int(values["max_num_seqs"]), int(values["budget"])
    blocks, rate = int(values["blocks"]), float(values["rate"])
    criteria = Criteria(slo=SLO(ttft=float(values["ttft"]), itl=float(values["itl"]) / 1e3))
    found = outcomes(blocks, rate)
    judgements = dict(zip(found, judge_all(list(found.values()), criteria)))
    verdicts = {one: judgement.verdict for one, judgement in judgements.items()}
    here, judgement = found[cell], judgements[cell]
    wall, nearest = find_wall(cell, blocks, rate, criteria), nearest_stable(cell, judgements)
    best = max(one.summary.output_tokens_per_s for one in found.values())
    text = text_of(cell, rate, judgement, wall, nearest, lang)
    numbers = {
        "verdicts": [(*one, verdict) for one, verdict in verdicts.items()],
        "here": {"summary": here.summary, "growth": here.growth, "misses": judgement.misses},
        "wall": wall,
        "nearest_stable": nearest,
    }
    return Shown(
        draw_region(verdicts, cell, TITLE.of(lang), text, lang, width),
        text,
        [(label.of(lang), value) for label, value in rows_of(here, best, criteria.slo, wall, rate)],
        plain(numbers),
        [note.of(lang) for note in notes_of(judgement)],
    )


TITLE = Both(
    f"稳定区：每格一种设置，同样的 {NUM_REQUESTS} 个请求",
    f"The stable region: a setting to each cell, the same {NUM_REQUESTS} requests",
)
FIGURE = Figure("region", TITLE, KNOBS, show)
