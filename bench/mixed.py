"""A long prompt that arrives while others are being answered: how long they wait for a token, and it for its first.

This is what chunks are for. Unchunked, the step that computes the prompt is the gap of all the others.
"""

import statistics
from collections.abc import Iterator
from functools import partial

from bench.field import Field, fields
from bench.player import Meeting, Player, Refused, Tokens
from bench.table import Row, Run, Table
from bench.turns import in_turn

DECODES, CONTEXT, PROMPT, BUDGET = 8, 128, 4096, 512
QUICK = (3, 24, 96, 32)
GAP_GOAL = 1 / 5.7  # of the unchunked gap: vLLM has 1/5.2 on two cores in bfloat16, 1/6.1 in float32
TTFT_GOAL = 1.05  # of the unchunked time to first token
UNITS = {f"{figure}_{what}": "ms" for figure in ("gap", "ttft") for what in ("ms", "min_ms", "max_ms")}
UNITS |= {"ratio": "gap / unchunked gap", "ttft_ratio": "TTFT / unchunked TTFT", "agrees": "the same first token"}


def rows(run: Run) -> Iterator[Row]:
    decodes, context, tokens, budget = QUICK if run.quick else (DECODES, CONTEXT, PROMPT, BUDGET)
    for field in fields(run):
        prompts = [field.pair.prompt(context, seed) for seed in range(decodes)]
        prompt = field.pair.prompt(tokens, decodes)
        players = [player for player in field.players if _is_able(player, prompts, prompt, field, run)]
        meetings = in_turn(
            {
                _key(player, limit): partial(player.meet, prompts, prompt, limit)
                for player in players
                for limit in (tokens + decodes, budget)
            },
            run.repeats,
        )
        for player in players:
            whole, cut = meetings[_key(player, tokens + decodes)], meetings[_key(player, budget)]
            settings = {"dtype": field.dtype, "decodes": decodes, "prompt": tokens, "engine": player.name}
            yield {**settings, "budget": None, **_row(whole, whole, False)}
            yield {**settings, "budget": budget, **_row(cut, whole, player is field.ours)}


def _is_able(player: Player, prompts: Tokens, prompt: list[int], field: Field, run: Run) -> bool:
    try:
        player.meet(prompts[:1], prompt[:1], 2)
    except Refused as why:
        run.left_out.append(f"{player.name} in {field.dtype}: {why}")
        return False
    return True


def _key(player: Player, budget: int) -> str:
    return f"{player.name} at {budget}"


def _row(meetings: list[Meeting], whole: list[Meeting], has_goals: bool) -> Row:
    figures = {
        f"{figure}_{name}": of([getattr(meeting, f"{figure}_ms") for meeting in meetings])
        for figure in ("gap", "ttft")
        for name, of in (("ms", statistics.median), ("min_ms", min), ("max_ms", max))
    }
    return {
        **figures,
        "agrees": all(one.tokens == other.tokens for one, other in zip(meetings, whole)),
        "ratio": figures["gap_ms"] / statistics.median(meeting.gap_ms for meeting in whole),
        "goal": GAP_GOAL if has_goals else None,
        "ttft_ratio": figures["ttft_ms"] / statistics.median(meeting.ttft_ms for meeting in whole),
        "ttft_goal": TTFT_GOAL if has_goals else None,
    }


TABLE = Table("8 requests decode when a prompt of 4,096 tokens arrives; milliseconds", rows, UNITS)
