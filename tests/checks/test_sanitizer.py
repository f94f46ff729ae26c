"""What PyTorch's CUDA sanitizer reports of the catalogue, and what it can't see."""

import pytest

from lab.checks.sanitizer import sanitizer_errors
from lab.streams.programs import PROGRAMS
from lab.streams.races import Kind
from lab.streams.verdict import examine

LIFETIME = {Kind.FREED_EARLY, Kind.USE_AFTER_FREE}
HOST = {"d2h_read", "staging_reuse", "two_stores", "async_output"}  # the hazard is about pinned memory
VARIANTS = [(program, variant) for program in PROGRAMS.values() for variant in program.variants if not variant.error]


@pytest.mark.parametrize(("program", "variant"), VARIANTS, ids=lambda x: x.name)
def test_it_reports_hazards_of_order_and_no_sound_program(program, variant):
    seen = bool(sanitizer_errors(variant.run))
    if not variant.hazards:
        assert not seen
    elif variant.hazards <= LIFETIME or (program.name, variant.name) == ("views", "overlapping"):
        assert not seen  # it forgets a tensor that is freed, and knows a tensor by its first byte
    elif program.name in HOST and variant.name != "no-wait":
        assert not seen  # it follows device tensors only
    else:
        assert seen
    assert bool(examine(variant.run).kinds) == bool(variant.hazards)  # the model sees all of them
