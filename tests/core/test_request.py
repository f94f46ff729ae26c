"""What a request knows of itself."""

from lab.core import Request, RequestState, SamplingParams


def test_known_tokens_are_prompt_and_output_end_to_end():
    request = Request("a", (10, 11, 12), output_token_ids=[20, 21])
    known = [10, 11, 12, 20, 21]
    for start in range(6):
        for stop in range(start, 6):
            assert request.token_ids(start, stop) == known[start:stop]


def test_counts_by_hand():
    assert Request("b", range(3), output_token_ids=[7]).num_tokens == 4
    request = Request("a", range(13), SamplingParams(3))
    assert (request.num_prompt_tokens, request.num_tokens, request.num_uncomputed_tokens) == (13, 13, 13)
    assert request.max_kv_tokens == 15  # the last of the three tokens is never fed
    request.append_output(7)
    request.append_output(7)
    request.num_computed_tokens = 14
    assert (request.num_prompt_tokens, request.num_tokens, request.num_uncomputed_tokens) == (13, 15, 1)


def test_a_new_request_is_of_no_special_importance_and_has_no_end():
    request = Request("a", [1])
    assert (request.priority, request.arrival, request.num_preemptions) == (0, 0.0, 0)
    assert request.state is RequestState.WAITING and request.finish_reason is None


def test_a_request_is_equal_to_itself_alone():
    """The queues remove by equality: two requests of the same content are two requests."""
    request = Request("a", [1])
    assert request == request and request != Request("a", [1])
