"""Numbers in prose: those written in digits, and those written as words, in Chinese and in English."""

import re
from collections import Counter
from decimal import Decimal

SCALES = {"万": 10**4, "亿": 10**8, "thousand": 10**3, "million": 10**6, "billion": 10**9}
# Runs of ASCII that hold a digit: 4,096  0.33.0  326-token  2x  float32  Llama-3-8B  10%
RUN = re.compile(r"[A-Za-z0-9][\w.,/-]*", re.A)
SCALE = re.compile(r"\s*(万|亿|thousand\b|million\b|billion\b)")

ENGLISH = {
    word: value
    for value, names in {
        "0": "no none zero never nothing",
        "1": "a an one once first single alone",
        "2": "two twice second both pair",
        "3": "three third thirds thrice",
        "4": "four fourth quarter quarters",
        "5": "five fifth fifths",
        "6": "six sixth",
        "7": "seven seventh",
        "8": "eight eighth",
        "9": "nine ninth",
        "10": "ten tenth",
        "11": "eleven eleventh",
        "12": "twelve twelfth dozen",
        "20": "twenty",
        "50": "fifty half",
        "100": "hundred",
        "1000": "thousand",
        "1000000": "million",
    }.items()
    for word in names.split()
}
HAN = dict(zip("零一二三四五六七八九", range(10))) | {"两": 2, "〇": 0}
HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000}


def digits(text: str) -> Counter[str]:
    """The numbers in digits, in one spelling; a name with a digit in it, such as float32, counts as itself."""
    found: Counter[str] = Counter()
    for match in RUN.finditer(text):
        run = match[0].strip(".,/-_")
        if not re.search(r"\d", run):
            continue
        for piece in _pieces(run):
            if scale := SCALE.match(text, match.end()):
                piece = _plain(Decimal(piece) * SCALES[scale[1]]) if re.fullmatch(r"[\d.]+", piece) else piece
            found[piece] += 1
    return found


def _pieces(run: str) -> list[str]:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", run):
        run = run.replace(",", "")
    if number := re.fullmatch(r"(\d+(?:\.\d+)?)(?:x|st|nd|rd|th|-[A-Za-z-]+)?", run):
        return [_plain(Decimal(number[1]))]
    if re.fullmatch(r"[\d.]+(?:[,/-][\d.]+)+", run):  # 16,64,128 and 4/8 and 2-3
        return [_plain(Decimal(piece)) if piece.count(".") < 2 else piece for piece in re.split("[,/-]", run)]
    return [run]


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


def words(text: str) -> Counter[str]:
    """The numbers that words of either language may stand for: "twelve", "both" and 十二 and 两."""
    found = Counter(ENGLISH[word] for word in re.findall(r"[a-z]+", text.lower()) if word in ENGLISH)
    for run in re.findall("[零〇一二两三四五六七八九十百千万]+", text):
        found[str(_han(run))] += 1
    found["50"] += text.count("半")
    return found


def _han(run: str) -> int:
    """十二 -> 12, 三百二十六 -> 326."""
    total, digit = 0, 0
    for character in run:
        if character in HAN_UNITS:
            total, digit = (total + (digit or 1) * HAN_UNITS[character], 0)
        else:
            digit = HAN[character]
    return total + digit
