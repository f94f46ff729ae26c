"""The model against other ways to know: PyTorch's sanitizer, all legal executions, reachability."""

import inspect

import pytest
from torch.cuda._sanitizer import EventHandler

from lab.streams.model import ModelRuntime
from tests.streams import checks

LAUNCH = ["self", "stream", "read_only", "read_write", "outputs", "operator", "tensor_aliases"]
known = list(inspect.signature(EventHandler._handle_kernel_launch).parameters) == LAUNCH
needs_sanitizer = pytest.mark.skipif(not known, reason="another torch: its sanitizer is called in another way")


@needs_sanitizer
def test_the_first_race_is_the_one_that_pytorchs_sanitizer_finds():
    racy = checks.first_race_is_the_sanitizers(ModelRuntime, 2000)
    assert 500 < racy < 1900  # both kinds of programs are among them


def test_the_clocks_are_reachability():
    checks.clocks_are_reachability(ModelRuntime, 300)


def test_there_is_a_race_exactly_where_two_legal_executions_differ():
    racy, _ = checks.race_means_executions_differ(ModelRuntime, 400, frees=False)
    assert 50 < racy < 350


def test_with_memory_used_again_too():
    racy, reused = checks.race_means_executions_differ(ModelRuntime, 600, frees=True)
    assert racy > 50 and reused > 30


def test_every_kernel_that_meets_another_out_of_order_is_told():
    checks.every_racing_kernel_is_told(ModelRuntime, 300)


def test_a_block_that_comes_back_is_safe_from_the_recorded_streams_only():
    checks.reclaimed_only_what_was_recorded(ModelRuntime)


def test_the_two_rules_of_lifetime_suffice():
    clean, reused = checks.two_rules_suffice(ModelRuntime, 1500)
    assert clean > 50 and reused > 200


def test_the_timeline_keeps_the_order_and_the_capacity():
    checks.operations_wait_and_engines_hold(ModelRuntime, 150)
