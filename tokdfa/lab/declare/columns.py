"""A column of measured rows: its title, unit, better end and meaning, and how its numbers are written.

Tables, plots, sentences and comparisons read everything they say about a number from its column: the head, the axis
label ("lower is better"), the unit, the words of a comparison ("7.2x faster"). Numbers are shown in base units:
seconds and bytes; `Column.factor` takes what is stored to these (nanoseconds: 1e-9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["s", "B", "share", "ratio", "", "text"]

MISSING = "–"

_TIME = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_MEMORY = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
#: Unit -> the words for a lower and for a higher value.
COMPARISON = {
    "s": ("faster", "slower"),
    "B": ("less", "more"),
    "": ("fewer", "more"),
    "share": ("lower", "higher"),
    "ratio": ("lower", "higher"),
    "text": ("", ""),
}


@dataclass(frozen=True)
class Column:
    """One column of a kind's rows.

    `unit`: ``s``, ``B``, ``share`` (0..1), ``ratio``, ``text``, or empty for a count. `better`: which end is better.
    `factor`: from what is stored to the unit. `resolution`: smaller values count as this one in ratios, in the unit.
    """

    name: str
    title: str = ""
    unit: Unit = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    meaning: str = ""
    factor: float = 1.0
    resolution: float = 0.0

    @property
    def head(self) -> str:
        """The title, or else the name in words."""
        return self.title or self.name.replace("_", " ")

    @property
    def axis_label(self) -> str:
        """The label of an axis: what it is, and which end is better."""
        return self.head if self.better == "neither" else f"{self.head} ({self.better} is better)"

    @property
    def words(self) -> tuple[str, str]:
        """The words for a better and for a worse value: ("faster", "slower")."""
        lower, higher = COMPARISON[self.unit]
        return (higher, lower) if self.better == "higher" else (lower, higher)

    def format(self, value: float | str | None) -> str:
        """`value` with its unit and three significant digits, a text as it is; a dash for a missing value."""
        if isinstance(value, str):
            return value
        if value is None or math.isnan(value):
            return MISSING
        if self.unit == "s":
            return format_seconds(value)
        if self.unit == "B":
            return format_bytes(value)
        if self.unit == "ratio":
            return f"{significant(value)}x"
        return format_share(value) if self.unit == "share" else format_count(value)


def seconds(name: str, title: str = "", meaning: str = "") -> Column:
    """A column of times; the name tells the unit of what is stored: ``compile_s``, ``mask_ns``, ``ns_mean``."""
    words = name.split("_")
    factor = next((size for unit, size in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)) if unit in words), 1.0)
    shown = title or " ".join(word for word in words if word not in {"ns", "us", "ms", "s"})
    return Column(name, shown, "s", "lower", meaning, factor)


def text(name: str, title: str = "", meaning: str = "") -> Column:
    """A column of texts."""
    return Column(name, title, "text", "neither", meaning)


class Ratio(NamedTuple):
    """How much better than the reference, paired case by case: above 1 is better. `cases` were paired."""

    median: float
    low: float
    high: float
    cases: int

    def describe(self, column: Column) -> str:
        """``7.2x faster (1.3-40)``; a range that crosses 1 keeps its direction, so numbers below 1 are worse."""
        ratio, word = self, column.words[0]
        if self.median < 1:
            ratio, word = Ratio(1 / self.median, 1 / self.high, 1 / self.low, self.cases), column.words[1]
        text = "equal" if short_factor(ratio.median) == "1.0" else f"{short_factor(ratio.median)}x {word}"
        return text + spread(ratio.low, ratio.high)


def format_seconds(value: float) -> str:
    """Seconds as ``1.23 ms``."""
    return _with_prefix(value, _TIME)


def format_bytes(value: float) -> str:
    """Bytes as ``1.23 MB`` (powers of ten)."""
    return _with_prefix(value, _MEMORY)


def format_count(value: float) -> str:
    """A count with thousands separated; three significant digits when it is not whole, ``3.61e-5`` of a small one."""
    if 0 < abs(value) < 1e-3:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else significant(value)


def format_share(value: float) -> str:
    """A share 0..1 as a percentage."""
    return f"{significant(100 * value)}%"


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, never in exponent form, thousands separated."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))  # 9.996 has become 10.0
    return f"{rounded:,.{max(0, decimals)}f}"


def short_factor(value: float) -> str:
    """A ratio with two significant digits: ``7.2``, ``40``, ``0.52``."""
    return significant(value, 2) if value < 10 else f"{value:,.0f}"


def between(ends: tuple[float, float], column: Column) -> str:
    """The ends of an interval: ``0.12 to 0.34``."""
    return f"{column.format(ends[0])} to {column.format(ends[1])}"


def spread(low: float, high: float) -> str:
    """`` (1.3–40)`` after a number; nothing where both ends read the same."""
    first, last = short_factor(low), short_factor(high)
    return "" if first == last else f" ({first}–{last})"


def _with_prefix(value: float, prefixes: Sequence[tuple[str, float]]) -> str:
    if value == 0:
        return f"0 {prefixes[-1][0] if prefixes is _MEMORY else prefixes[0][0]}"
    for unit, size in prefixes:
        # a value that rounds up to 1,000 of the smaller unit belongs to the larger one
        if abs(value) >= 0.9995 * size or size == prefixes[-1][1]:
            return f"{significant(value / size)} {unit}"
    raise AssertionError("the last prefix takes every value")
