"""The engine on a tiny random model: the same tokens however the work is cut and whatever else runs beside it."""

import pytest
import torch

from lab.core import ConfigError, FinishReason, RequestRejected, SamplingParams
from lab.engine import Engine
from lab.engine.sampling import draw, sample, top_p
from lab.model.weights import load_model

PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], [200, 100, 50], list(range(40, 80)), [7]]
GREEDY = SamplingParams(max_tokens=16)


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    return load_model("tiny", device="cpu")


@pytest.fixture(scope="module")
def alone(model):
    """Each prompt by itself, in one pass."""
    return [Engine(model).generate([prompt], GREEDY)[0].token_ids for prompt in PROMPTS]


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_greedy_tokens_do_not_depend_on_the_budget_or_the_company(model, alone, budget, block_size):
    engine = Engine(model, max_num_batched_tokens=budget, max_num_seqs=min(budget, 3), block_size=block_size)
    completions = engine.generate(PROMPTS, GREEDY)
    assert [c.token_ids for c in completions] == alone
    assert all(len(c.token_ids) == 16 and c.finish_reason is FinishReason.LENGTH for c in completions)
    assert len(engine.loop.trace.steps) >= sum(map(len, PROMPTS)) / budget
    assert engine.loop.scheduler.pool.num_used == 0


def test_a_long_prompt_in_small_chunks_does_not_take_the_tokens_of_those_behind_it(model, alone):
    engine = Engine(model, long_prefill_token_threshold=3)
    prompts = [PROMPTS[2], PROMPTS[1], PROMPTS[3], PROMPTS[0]]  # 40 tokens first: no token for 14 steps
    assert [c.token_ids for c in engine.generate(prompts, GREEDY)] == [alone[i] for i in (2, 1, 3, 0)]
    first = next(iter(engine.loop.trace.requests.values()))
    assert first.token_times[0] == engine.loop.trace.steps[13].end


def test_greedy_tokens_survive_preemption(model, alone):
    per_token = 2 * 4 * 2 * 32 * 4
    engine = Engine(model, kv_cache_memory_bytes=16 * 4 * per_token, block_size=4, max_num_seqs=4)
    assert [c.token_ids for c in engine.generate(PROMPTS, GREEDY)] == alone
    assert any(step.preempted for step in engine.loop.trace.steps)


def test_a_seed_gives_the_same_tokens_alone_and_in_company(model):
    sampling = SamplingParams(max_tokens=12, temperature=1.0, top_p=0.9, seed=3)
    alone = Engine(model).generate(PROMPTS[:1], sampling)[0].token_ids
    together = Engine(model, max_num_batched_tokens=4).generate(PROMPTS, sampling)[0].token_ids
    other = Engine(model).generate(PROMPTS[:1], SamplingParams(12, 1.0, 0.9, seed=4))[0].token_ids
    assert alone == together != other


def test_the_lowest_priority_goes_first(model, alone):
    engine = Engine(model, policy="priority", max_num_seqs=1)
    requests = [engine.submit(prompt, GREEDY, priority=-i) for i, prompt in enumerate(PROMPTS)]
    finished = [name for _ in range(200) for name in engine.step().finished]
    assert finished == [request.request_id for request in reversed(requests)]
    assert [request.output_token_ids for request in requests] == alone


def test_streams_side_by_side_get_their_own_tokens(model, alone):
    engine = Engine(model)
    streams = [engine.stream(prompt, GREEDY) for prompt in PROMPTS]
    outputs = [list(tokens) for tokens in zip(*streams, strict=True)]
    assert [list(tokens) for tokens in zip(*outputs)] == alone


def test_closing_a_stream_aborts_it_and_the_others_go_on(model, alone):
    engine = Engine(model)
    first, second = engine.stream(PROMPTS[0], GREEDY, "first"), engine.stream(PROMPTS[1], GREEDY)
    next(first)
    first.close()
    assert engine.loop.trace.requests["first"].finish_reason is FinishReason.ABORT
    assert list(second) == alone[1] and engine.loop.scheduler.pool.num_used == 0


def test_an_aborted_stream_ends(model):
    engine = Engine(model)
    stream = engine.stream(PROMPTS[0], GREEDY, "a")
    got = [next(stream)]
    assert engine.abort("a") and not engine.abort("a")
    assert got + list(stream) == got


def test_one_bad_prompt_stops_the_call_before_anything_runs_and_harms_no_other(model, alone):
    engine = Engine(model)
    running = engine.stream(PROMPTS[1], GREEDY)
    first = next(running)
    for bad, message in (([], "empty prompt"), ([3, 512], "token id 512 .* 0 to 511"), ([-1], "token id -1")):
        with pytest.raises(RequestRejected, match=message):
            engine.generate([PROMPTS[0], bad], GREEDY)
    with pytest.raises(RequestRejected, match=r"4090 prompt tokens .* 4106, above the position limit of 4096"):
        engine.generate([[1] * 4090], GREEDY)
    with pytest.raises(RequestRejected, match="'a' is already here"):
        engine.stream(PROMPTS[0], GREEDY, "a"), engine.stream(PROMPTS[0], GREEDY, "a")
    engine.abort("a")
    assert [first, *running] == alone[1] and engine.loop.scheduler.pool.num_used == 0


def test_a_pool_too_small_for_a_block_or_a_prompt_is_refused(model):
    with pytest.raises(ConfigError, match="kv_cache_memory_bytes is 100"):
        Engine(model, kv_cache_memory_bytes=100)
    engine = Engine(model, kv_cache_memory_bytes=2**16)
    with pytest.raises(RequestRejected, match="the whole pool has 32"):
        engine.generate([[1] * 40], GREEDY)


def test_an_interrupted_call_leaves_nothing_behind(model, alone, monkeypatch):
    engine = Engine(model)
    execute, calls = engine.loop.executor.execute, iter(range(100))

    def interrupted(plan, scheduler):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return execute(plan, scheduler)

    monkeypatch.setattr(engine.loop.executor, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.generate(PROMPTS, GREEDY)
    assert engine.loop.scheduler.pool.num_used == 0 and not engine.loop.scheduler.has_unfinished
    assert engine.generate(PROMPTS[:1], GREEDY)[0].token_ids == alone[0]


def test_a_stop_token_ends_the_output(model, alone):
    stop = alone[0][4]
    sampling = SamplingParams(16, stop_token_ids=frozenset({stop}))
    completion = Engine(model).generate(PROMPTS[:1], sampling)[0]
    assert completion.finish_reason is FinishReason.STOP
    assert completion.token_ids == alone[0][: alone[0].index(stop) + 1]


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    probabilities = torch.tensor([0.1, 0.5, 0.15, 0.25], dtype=torch.float64)
    assert top_p(probabilities, 1.0).tolist() == probabilities.tolist()
    assert top_p(torch.tensor([1.0, 1e-9]), 1.0).tolist() == pytest.approx([1.0, 1e-9], rel=1e-6)  # however they sum up
    assert top_p(probabilities, 0.75).tolist() == [0, 0.5, 0, 0.25]
    assert top_p(probabilities, 0.76).tolist() == [0, 0.5, 0.15, 0.25]
    assert top_p(probabilities, 0.01).tolist() == [0, 0.5, 0, 0]


def test_samples_follow_the_distribution(model):
    from lab.core import Request

    logits = torch.tensor([0.0, 1.0, 2.0])
    draws = [draw(logits, Request("r", [0], SamplingParams(temperature=0.5, seed=s))) for s in range(2000)]
    expected = torch.softmax(logits / 0.5, -1)
    for token, p in enumerate(expected.tolist()):
        assert abs(draws.count(token) / 2000 - p) < 0.03
    for temperature in (1e-30, 1e-300, 1e-308):  # at the last 4 / temperature overflows
        assert draw(logits, Request("r", [0], SamplingParams(temperature=temperature))) == 2


def test_a_greedy_request_beside_one_that_draws():
    from lab.core import Request

    logits = torch.tensor([[0.0, 3.0, 1.0], [5.0, 5.0, 5.0], [0.0, 1.0, 3.0]])
    warm = Request("w", [0], SamplingParams(temperature=1.0, seed=7))
    greedy = [Request(name, [0], SamplingParams()) for name in "ab"]
    assert sample(logits, [greedy[0], warm, greedy[1]]) == [1, draw(logits[1], warm), 2]
    assert sample(logits[:0], []) == []


@pytest.mark.parametrize("close", ["unstarted", "dropped", "started"])
def test_closing_a_stream_aborts_it_even_before_its_first_token(close):
    engine = Engine(load_model("tiny", device="cpu"))
    tokens = engine.stream([1, 2, 3])
    if close == "started":
        next(tokens)
    if close == "dropped":
        del tokens
    else:
        tokens.close()
    assert not engine.loop.scheduler.has_unfinished and engine.loop.scheduler.pool.num_used == 0


def test_closing_an_old_stream_leaves_a_new_request_of_its_id_alone():
    engine = Engine(load_model("tiny", device="cpu"))
    old = engine.stream([1, 2, 3], SamplingParams(1), request_id="a")
    next(old)
    new = engine.submit([4, 5], SamplingParams(2), request_id="a")
    old.close()
    assert len(list(engine.tokens(new))) == 2


def test_its_own_ids_avoid_those_of_the_caller():
    engine = Engine(load_model("tiny", device="cpu"))
    engine.submit([1], request_id="request-0")
    assert engine.generate([[2]], SamplingParams(1))[0].request_id == "request-1"


def test_any_integers_are_token_ids_and_nothing_else_is():
    engine = Engine(load_model("tiny", device="cpu"))
    kinds = ((1, 2), range(1, 3), torch.tensor([1, 2]), torch.tensor([1, 2], dtype=torch.uint8), iter([1, 2]))
    results = engine.generate(kinds, SamplingParams(3))
    assert all(result.token_ids == results[0].token_ids for result in results)
    for prompt in ([1.5], [1.0], [None], ["1"], [[1]], torch.tensor([[1, 2]]), None, 5):
        with pytest.raises(RequestRejected, match="no sequence of token ids"):
            engine.submit(prompt)
    assert not engine.loop.scheduler.has_unfinished


def test_no_more_positions_than_the_model_has():
    with pytest.raises(ConfigError, match="max_model_len is 5000; the model has 4096"):
        Engine(load_model("tiny", device="cpu"), max_model_len=5000)


def test_abort_while_the_model_runs():
    engine = Engine(load_model("tiny", device="cpu"))
    other = engine.submit([3, 4], SamplingParams(1), request_id="other")
    engine.submit([1, 2], request_id="a")
    engine.loop.executor.observe = lambda hidden, logits: engine.abort("a")
    engine.step()
    assert other.finish_reason is FinishReason.LENGTH and engine.loop.scheduler.pool.num_used == 0
