"""An engine that is timed step by step: whose tokens are returned, and under which budget they were computed."""

import pytest
import torch

from bench.player import Refused, Stopwatch
from bench.players.stepped import Stepped


class Counting:
    """A request's tokens count from 100 times its number; a step computes prompts in turn, within the budget."""

    def __init__(self):
        self.budgets, self.steps, self.left, self.tokens = [], [], {}, {}

    def limit(self, budget):
        self.budgets.append(budget)

    def submit(self, prompt, max_tokens):
        name = str(len(self.left))
        self.left[name], self.tokens[name] = len(prompt), []
        return name

    def step(self):
        room, got = self.budgets[-1], {}
        for name in self.tokens:
            new = min(room, self.left[name] or 1)
            room -= new
            self.left[name] -= min(new, self.left[name])
            if new and not self.left[name]:
                self.tokens[name].append(100 * int(name) + len(self.tokens[name]))
                got[name] = self.tokens[name]
        self.steps.append(self.budgets[-1] - room)
        return got

    def abort(self, requests):
        for name in requests:
            del self.tokens[name]


def player(budget=1000):
    engine = Counting()
    return Stepped("counting", engine, budget, Stopwatch(torch.device("cpu"), "process")), engine


def test_a_prompt_is_computed_under_the_budget_that_was_asked_for():
    timed, engine = player()
    assert timed.prefill([7] * 100, 30).tokens == [[0]]
    assert engine.steps == [30, 30, 30, 10]


def test_each_decode_gives_the_tokens_after_those_of_the_last():
    timed, _ = player()
    prompts = [[7] * 5, [7] * 6]
    assert timed.decode(prompts, 2).tokens == [[1, 2], [101, 102]]
    assert timed.decode(prompts, 3).tokens == [[3, 4, 5], [103, 104, 105]]


def test_who_began_a_step_earlier_gives_no_token_twice_and_leaves_none_out():
    timed, engine = player(budget=8)
    assert timed.decode([[7] * 5, [7] * 5], 2).tokens == [[1, 2], [101, 102]]
    assert len(engine.tokens["0"]) == 4  # it is a token ahead


def test_other_prompts_are_another_batch():
    timed, engine = player()
    timed.decode([[7] * 5], 2)
    assert timed.decode([[7] * 6], 1).tokens == [[101]] and list(engine.tokens) == ["1"]


def test_a_prompt_that_comes_while_others_decode_is_cut_by_the_budget():
    timed, engine = player()
    meeting = timed.meet([[7] * 5, [7] * 6], [7] * 100, 42)
    assert engine.steps[-3:] == [42, 42, 22] and meeting.tokens == [[200]]  # two decodes are in each of them
    assert 0 < meeting.gap_ms <= meeting.ttft_ms and engine.tokens.keys() == {"2"}


def test_the_next_batch_is_computed_under_its_own_budget_again():
    timed, engine = player()
    timed.prefill([7] * 100, 30)
    timed.decode([[7] * 50], 1)
    assert engine.budgets == [30, 1000]


def test_an_engine_that_never_gives_all_a_token_is_refused():
    timed, _ = player(budget=1)
    with pytest.raises(Refused, match="counting: in 1024 steps no one gave all 2 requests a token"):
        timed.decode([[7], [7]], 1)
