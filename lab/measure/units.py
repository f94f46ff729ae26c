"""Bytes as people write them: "24GiB", "36.3 MiB"."""

import re

from lab.core.errors import ConfigError

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(text: str) -> int:
    """A number of bytes from "24GiB", "24 GB" or "25769803776". Raises ConfigError for what is none, or below 1."""
    match = re.fullmatch(r"(\d{1,24}(?:\.\d{1,12})?) ?([KMGT]?i?B|)", text.strip(), re.IGNORECASE)
    nbytes = int(float(match[1]) * UNITS[match[2].upper()]) if match and match[2].upper() in UNITS else 0
    if nbytes < 1:
        raise ConfigError(f"{text!r} is no amount of memory; write it like 24GiB")
    return nbytes


def format_bytes(nbytes: int) -> str:
    """Two digits at least: "16.0 GiB", "36.3 MiB", "594 KiB", "12 B"."""
    value, unit = float(nbytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
