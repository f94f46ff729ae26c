"""The block pool by hand: four blocks of two tokens."""

import pytest

from lab.core import BlockPool, CacheConfig


@pytest.fixture
def pool():
    return BlockPool(CacheConfig(num_blocks=4, block_size=2))


def test_blocks_are_given_in_order_and_only_when_a_token_needs_one(pool):
    tables = []
    for num_tokens in (1, 2, 3, 4, 5):
        pool.grow("a", num_tokens)
        tables.append(list(pool.table("a")))
    assert tables == [[0], [0], [0, 1], [0, 1], [0, 1, 2]]
    assert (pool.num_used, pool.num_free) == (3, 1)
    assert [pool.num_missing("a", n) for n in (0, 5, 6, 7, 8, 9)] == [0, 0, 0, 1, 1, 2]


def test_the_last_freed_are_given_first_in_the_order_in_which_they_were_held(pool):
    pool.grow("a", 2)
    pool.grow("b", 6)
    pool.release("b")
    assert pool.num_free == 3 and pool.table("b") == []
    pool.grow("c", 4)
    assert pool.table("c") == [1, 2] and pool.table("a") == [0]


def test_slots_are_counted_while_blocks_are_held(pool):
    for num_tokens in (1, 3, 4):
        pool.grow("a", num_tokens)
        assert pool.num_slots == {"a": 2 * len(pool.table("a"))}
    pool.release("a")
    assert pool.num_slots == {}


def test_more_than_is_free_is_refused_and_takes_nothing(pool):
    assert pool.grow("a", 5)
    assert not pool.grow("b", 3)
    assert pool.table("b") == [] and pool.num_free == 1


def test_what_holds_nothing_cannot_be_released(pool):
    pool.grow("a", 1)
    pool.release("a")
    with pytest.raises(KeyError):
        pool.release("a")
    assert pool.num_free == 4
