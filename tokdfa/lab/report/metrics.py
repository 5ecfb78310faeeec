"""What can be reported: one entry a metric, with its unit, where it is stored, and which end is better.

Tables, plots and sentences read everything they say about a number from its entry: the column head, the axis label
("lower is better"), the scale, the unit and the words of a comparison ("7.2x faster"). Adding a metric is one entry.

Times are in seconds (what is stored in nanoseconds is converted when read), memory is in bytes, and counts have no
unit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from tokdfa.errors import UnknownNameError
from tokdfa.lab.declare.columns import COMPARISON as _COMPARISON
from tokdfa.lab.declare.columns import (
    MISSING,
    Ratio,
    format_bytes,
    format_count,
    format_seconds,
    format_share,
    short_factor,
    significant,
    spread,
)

__all__ = [
    "METRICS",
    "MISSING",
    "PERCENTILES",
    "Metric",
    "Ratio",
    "format_bytes",
    "format_count",
    "format_seconds",
    "format_share",
    "short_factor",
    "significant",
    "spread",
]

#: Percentiles of mask times that are reported, in percent; the maximum and the mean stand beside them.
PERCENTILES: tuple[float, ...] = (25, 50, 75, 90, 95, 99, 99.9)

#: Resident memory is measured in pages of a whole process: a peak below this many bytes is noise.
MEMORY_RESOLUTION = 100e3
#: Little retained memory is a mean over copies (see `tokdfa.lab.measure.memory`).
RETAINED_RESOLUTION = 5e3


@dataclass(frozen=True)
class Metric:
    """One thing that is measured.

    `source` and `column` say where it is stored: a column of the run's items or of its special results, or a measure
    among its samples (then `quantile`, in 0..1, says which quantile of an item's samples; None is their mean). `unit`:
    ``s``, ``B``, ``share`` (0..1), ``ratio`` or empty for a count. `better`: which end is better, or neither. `scale`
    is that of its axis. `factor` takes what is stored to the unit (nanoseconds to seconds: 1e-9). `resolution`:
    differences below it mean nothing.
    """

    name: str
    title: str
    description: str
    unit: Literal["s", "B", "share", "ratio", ""]
    source: Literal["items", "samples", "results"]
    column: str
    quantile: float | None = None
    better: Literal["lower", "higher", "neither"] = "lower"
    scale: Literal["log", "linear"] = "log"
    factor: float = 1.0
    resolution: float = 0.0

    @property
    def axis_label(self) -> str:
        """The label of an axis: what it is, and which end is better."""
        return self.title if self.better == "neither" else f"{self.title} ({self.better} is better)"

    @property
    def words(self) -> tuple[str, str]:
        """The words for a better and for a worse value: ("faster", "slower")."""
        lower, higher = _COMPARISON[self.unit]
        return (higher, lower) if self.better == "higher" else (lower, higher)

    def format(self, value: float | None) -> str:
        """`value` with its unit and three significant digits; a dash for a missing value."""
        if value is None or math.isnan(value):
            return MISSING
        if self.unit == "s":
            return format_seconds(value)
        if self.unit == "B":
            return format_bytes(value)
        if self.unit == "ratio":
            return f"{significant(value)}x"
        return format_share(value) if self.unit == "share" else format_count(value)

    def tick(self, value: float) -> str:
        """`value` as a label of an axis: as `format`, without closing zeros."""
        text = self.format(value)
        return re.sub(r"\.?0+(?= |%|x|$)", "", text) if "." in text else text


def _quantile(name: str, title: str, measure: str, quantile: float) -> Metric:
    which = "the maximum" if quantile == 1 else f"the {100 * quantile:g}th percentile"
    what = {"mask": "filling the mask once", "advance": "advancing by one token"}[measure]
    return Metric(
        name, title, f"time of {what}; {which} of the item's samples", "s", "samples", measure, quantile, factor=1e-9
    )


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "compile", "compile time", "time to compile a constraint, median of its repeats", "s", "items", "compile_s"
        ),
        Metric(
            "first_mask",
            "time to first mask",
            "compile, start a matcher and fill its first mask; median of the repeats",
            "s",
            "items",
            "first_mask_s",
        ),
        _quantile("mask_p50", "median mask time", "mask", 0.5),
        Metric(
            "mask_mean",
            "mean mask time",
            "time of filling the mask once; the mean of the item's samples",
            "s",
            "samples",
            "mask",
            factor=1e-9,
        ),
        _quantile("mask_p90", "p90 mask time", "mask", 0.9),
        _quantile("mask_p99", "p99 mask time", "mask", 0.99),
        _quantile("mask_max", "maximal mask time", "mask", 1.0),
        _quantile("advance_p50", "median advance time", "advance", 0.5),
        Metric(
            "memory_peak",
            "peak memory",
            "growth of the process's memory at its highest point while compiling",
            "B",
            "items",
            "memory_peak_bytes",
            resolution=MEMORY_RESOLUTION,
        ),
        Metric(
            "memory_retained",
            "retained memory",
            "growth of the process's memory that stays after compiling",
            "B",
            "items",
            "memory_retained_bytes",
            resolution=RETAINED_RESOLUTION,
        ),
        Metric("states", "states", "states of the compiled constraint", "", "items", "states"),
        Metric(
            "transitions", "transitions", "token transitions of the compiled constraint", "", "items", "transitions"
        ),
        Metric(
            "vocab_size", "vocabulary size", "logit width of the model", "", "items", "vocab_size", better="neither"
        ),
        Metric("trie_time", "build time", "time to build a token trie", "s", "results", "build_ms", factor=1e-3),
        Metric(
            "walk_time",
            "walk time",
            "one walk of the token trie, median of the repeats",
            "s",
            "results",
            "ns_median",
            factor=1e-9,
        ),
        Metric(
            "node_time",
            "time per trie node",
            "walk time over the trie nodes visited",
            "s",
            "results",
            "ns_per_node",
            scale="linear",
            factor=1e-9,
        ),
        Metric(
            "density",
            "share of the vocabulary allowed",
            "allowed tokens over the vocabulary size",
            "share",
            "results",
            "density",
            better="neither",
        ),
        Metric("dfa_states", "states", "states of a byte automaton", "", "results", "states"),
        Metric(
            "state_factor", "states over minimal", "states over those of the minimal DFA", "ratio", "results", "states"
        ),
        Metric("build_time", "build time", "time to build all states of an automaton", "s", "results", "seconds"),
    )
}


def metric(name: str) -> Metric:
    """A metric by name; UnknownNameError names the nearest."""
    if name not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    return METRICS[name]
