"""Bytes in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core.errors import LabError
from lab.measure.units import format_bytes, parse_bytes


def test_by_hand() -> None:
    assert parse_bytes("24GiB") == parse_bytes("24 gib") == parse_bytes(str(24 * 2**30)) == 24 * 2**30
    assert parse_bytes("1.5KB") == 1500 and parse_bytes("7 B") == 7
    assert format_bytes(8192 * 151936 * 6) == "7.0 GiB" and format_bytes(151936 * 4) == "594 KiB"
    assert [format_bytes(n) for n in (0, 1023, 1024, 102400)] == ["0 B", "1023 B", "1.0 KiB", "100 KiB"]
    assert format_bytes(2**41) == "2048 GiB"


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "0", "1 foo", "1 TB x", "nan", "1e3", "9" * 400, "1TB"])
def test_refused(text: str) -> None:
    with pytest.raises(LabError, match="no amount of memory"):
        parse_bytes(text)


@given(st.integers(1, 2**45))
def test_there_and_back(nbytes: int) -> None:
    assert parse_bytes(format_bytes(nbytes)) == pytest.approx(nbytes, rel=0.05)
