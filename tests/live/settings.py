"""Settings of a figure: at the ends of every knob, and any of them at random."""

import random

from hypothesis import strategies as st

from lab.live.figure import Figure
from lab.live.knobs import Knob, Slider


def values(knob: Knob) -> list:
    return list(knob.marks if isinstance(knob, Slider) else knob.options)


def any_settings(figure: Figure) -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries({knob.name: st.sampled_from(values(knob)) for knob in figure.knobs})


def random_settings(figure: Figure, count: int, seed: int = 0) -> list[dict]:
    rng = random.Random(seed)
    return [{knob.name: rng.choice(values(knob)) for knob in figure.knobs} for _ in range(count)]


def ends(figure: Figure) -> list[dict]:
    """Each knob at each of its ends, the others at their defaults; and all at their first, and all at their last."""
    one = [{knob.name: values(knob)[end]} for knob in figure.knobs for end in (0, -1)]
    return [*one, *({knob.name: values(knob)[end] for knob in figure.knobs} for end in (0, -1))]
