"""Runs of chapter 3's model as a notebook shows them."""

from IPython.display import SVG

from lab.show.language import language
from lab.streams.picture import draw
from lab.streams.report import Run
from lab.streams.svg import stand_alone


def lanes(*runs: Run) -> SVG:
    """The lanes and the memory of each run, one above the other on one axis."""
    return SVG(stand_alone(draw([(run.name, run.trace) for run in runs], language())))
