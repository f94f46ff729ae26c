"""Memory in runs of equal values against a plain list, one value a byte."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.streams.memory import Memory, Runs, combine, mean

SIZE = 24
spans = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(lambda s: (s[0], min(SIZE, s[0] + s[1])))


def flat(runs: Runs) -> list[float]:
    return [value for length, value in runs for _ in range(length)]


def runs_of(values: list[float]) -> Runs:
    return [(1, value) for value in values]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(spans, spans, st.integers(0, 3)), max_size=12))
def test_fills_copies_and_sums(steps):
    memory, plain = Memory(), [0.0] * SIZE
    memory.write(0, [(SIZE, 0.0)])
    for (start, stop), (other, _), value in steps:
        n = min(stop - start, SIZE - other)
        if value == 0:
            memory.write(other, memory.read(start, start + n))
            plain[other : other + n] = plain[start : start + n]
        elif value == 1:
            both = combine(lambda x, y: x + y, memory.read(start, start + n), memory.read(other, other + n))
            memory.write(start, both)
            plain[start : start + n] = [x + y for x, y in zip(plain[start : start + n], plain[other : other + n])]
        else:
            memory.write(start, [(stop - start, float(value))])
            plain[start:stop] = [float(value)] * (stop - start)
        assert flat(memory.read(0, SIZE)) == plain
        assert memory.starts == sorted(set(memory.starts))  # no run without bytes
        assert flat(memory.read(start, stop)) == plain[start:stop]
        assert mean(memory.read(0, SIZE)) == sum(plain) / SIZE


def test_what_was_never_written_is_no_number():
    memory = Memory()
    memory.write(8, [(4, 1.0)])
    before, inside, after = memory.read(4, 16)
    assert before[0] == after[0] == 4 and before[1] != before[1] and after[1] != after[1]
    assert inside == (4, 1.0)
    assert runs_of([1.0]) == memory.read(8, 9)
