"""Reports on runs of kind ``canonicity``: what knowing the proper sequences costs, and whether the verdicts are right.

A run holds figures (see `tokdfa.lab.kinds.canonicity`); here they become a row per tokenizer. What 002 published for
Mistral v1, 20.9 s, was measured on another machine; the same algorithm replayed on this one stands beside it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.canonicity_plots import build_time_bars, forbidden_curves
from tokdfa.lab.report.metrics import format_bytes, format_count, format_seconds, short_factor
from tokdfa.lab.report.plots import Plot, left_out
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Seconds that 002 reports for the table of a tokenizer.
PUBLISHED = {"mistral-v1": 20.9}

_BUILD = ("rules", "derivations", "byte fallback", "forest", "interval lists", "total")
_DISK = ("write", "load", "verify", "file")
_PROCESS = tuple(
    f"{step} from {where}"
    for step in ("tokenizer", "canonicity", "marked language")
    for where in ("scratch", "the disk")
)
_COUNTS = (
    *("rules", "proper tokens", "improper tokens", "irregular tokens", "byte tokens", "whole pieces", "states"),
    *("intervals", "mean list", "largest list", "most forbidden", "marked states"),
)
_MEMORY = ("canonicity", "marked language", "peak")
_MASKS = ("narrow first", "narrow again", "wide first", "wide again", "pair", "pair judged")
_JUDGED = (
    *("judged", "distinct", "proper", "improper", "mismatches", "disputed"),
    *("our seconds", "reference seconds", "seconds"),
)
_REPLAY = ("rules", "rules left out", "seconds", "table", "rows compared", "rows that differ")
#: Groups of judged sequences, as tables call them.
KINDS = ("pieces", "texts")


def tokenizers(data: RunData) -> list[str]:
    """The tokenizers of the run, in its order, trained ones included."""
    return [str(name) for name in dict.fromkeys(data.results["tokenizer"])] if len(data.results) else []


def figures_of(data: RunData, tokenizer: str, group: str) -> dict[str, pd.Series[Any]]:
    """name -> row of a group of figures; of rows with one name, the last."""
    rows = data.results[(data.results["tokenizer"] == tokenizer) & (data.results["group"] == group)]
    return {str(row["name"]): row for _, row in rows.iterrows()}


def value_of(data: RunData, tokenizer: str, group: str, name: str) -> float:
    """One figure; NaN if there is none."""
    found = figures_of(data, tokenizer, group)
    return float(found[name]["value"]) if name in found else math.nan


def build_tables(data: RunData) -> list[Table]:
    """Judged sequences first; then times, counts, memory, masks, the replay of 002, and what went wrong."""
    return [
        judged_table(data),
        _one_group(data, "build", "Building, part by part", _BUILD, _BUILD_NOTE),
        _one_group(data, "disk", "On the disk", _DISK, _DISK_NOTE),
        _one_group(data, "new process", "In a new process", _PROCESS, _PROCESS_NOTE),
        _one_group(data, "count", "Counts", _COUNTS, _COUNT_NOTE),
        _one_group(data, "memory", "Memory", _MEMORY, _MEMORY_NOTE),
        _one_group(data, "mask", "Masks and pairs", _MASKS, _MASK_NOTE),
        _one_group(data, "replay", "The way of 002", _REPLAY, _REPLAY_NOTE),
        _listed(data, "mismatches", "Mismatches", data.results["name"] == "example", "note", _EXAMPLE_NOTE),
        _listed(data, "not_measured", "Not measured", data.results["status"] != "ok", "message", _FAILURE_NOTE),
    ]


_BUILD_NOTE = (
    "Seconds, median of the repeats, in a process where everything has run before. Without the tokenizer's own file, "
    "without the disk and without the comparison with the reference."
)
_DISK_NOTE = (
    "Load: reading with all checks, and the comparison with the reference library on a fixed sample, which alone is "
    "verify. Median of the repeats."
)
_PROCESS_NOTE = (
    "What a program waits for that has just been started: kernels are compiled on this machine, but loaded; the start "
    "of Python and imports are not counted. From scratch: nothing is on the disk yet, so it is built, verified and "
    "written. Marked language: the automaton of the pre-tokenizer."
)
_COUNT_NOTE = (
    "Mean list: intervals after a token. Most forbidden: the most tokens that one token forbids, and which token."
)
_MEMORY_NOTE = "Canonicity and marked language: bytes of their arrays. Peak: growth of the process while building."
_MASK_NOTE = (
    "The mask of the tokens that may not follow a token, called from Python: lists that forbid up to 512 tokens are "
    "narrow; masks of wide ones are kept after the first. Pair: whether one token may follow another, from Python; "
    "pair judged: a sequence of two in the compiled judge, which tests the pair in two ways. Medians."
)
_REPLAY_NOTE = (
    "002's algorithm (every rule once, on the automaton of all strings), on the rules without equal ranks, for which "
    "it is exact; its table of all pairs of tokens is compared with the interval lists row by row."
)
_EXAMPLE_NOTE = "The first sequences on which we and the reference library differ."
_FAILURE_NOTE = "Parts that were not measured, or not finished, with the reason."


def _one_group(data: RunData, group: str, title: str, names: Sequence[str], note: str) -> Table:
    """A row per tokenizer, a column per figure that any of them has."""
    found = {tokenizer: figures_of(data, tokenizer, group) for tokenizer in tokenizers(data)}
    columns = [name for name in names if any(name in figures for figures in found.values())]
    rows = []
    for tokenizer, figures in found.items():
        if any(name in figures for name in columns):
            rows.append((text_cell(tokenizer), *(_cell(figures.get(name)) for name in columns)))
    return Table(f"canonicity_{group.replace(' ', '_')}", title, note, ("tokenizer", *columns), tuple(rows))


def _cell(row: pd.Series[Any] | None) -> Cell:
    if row is None:
        return NOTHING
    if row["status"] != "ok":
        return status_cell(row["status"])
    value = float(row["value"])
    if row["unit"]:
        return Cell({"s": format_seconds, "B": format_bytes}[str(row["unit"])](value), value)
    return count_cell(value)._replace(detail=f"after {row['note']}" if row["note"] else "")


def judged_table(data: RunData) -> Table:
    """A row per tokenizer and kind of sequences."""
    rows = []
    for tokenizer in tokenizers(data):
        for kind in KINDS:
            figures = figures_of(data, tokenizer, kind)
            if "judged" in figures:
                cells = [_cell(figures.get(name)) for name in _JUDGED]
                rows.append((text_cell(tokenizer), text_cell(kind), *cells))
    note = (
        "Pieces: sequences whose text is taken as one piece, so merging alone decides. Texts: sequences that spell "
        "whole texts, pre-tokenizer included. Proper and improper: what the reference library says. Mismatches: our "
        "verdict differs; disputed: our two ways of testing a pair differ. Seconds: of everything, the drawing too."
    )
    columns = ("tokenizer", "sequences", *_JUDGED)
    brief = ("tokenizer", "sequences", "judged", "proper", "improper", "mismatches", "seconds")
    return Table("canonicity_judged", "Verdicts against the reference libraries", note, columns, tuple(rows), brief)


def _listed(data: RunData, name: str, title: str, rows: pd.Series[bool], column: str, note: str) -> Table:
    chosen = data.results[rows]
    cells = tuple(
        (text_cell(row["tokenizer"]), text_cell(row["group"]), text_cell(row["name"]), text_cell(row[column]))
        for _, row in chosen.iterrows()
    )
    return Table(f"canonicity_{name}", title, note, ("tokenizer", "group", "figure", column), cells)


def build_plots(data: RunData) -> list[Plot]:
    """Building time by part, and how many tokens a token forbids."""
    if data.results.empty:
        return [left_out("canonicity", "Building and forbidden tokens", "the run has no results yet")]
    names = tokenizers(data)
    parts = {tokenizer: {part: value_of(data, tokenizer, "build", part) for part in _BUILD} for tokenizer in names}
    forbidden = data.results[data.results["group"] == "forbidden"]
    curves = {str(name): rows[["at", "value"]] for name, rows in forbidden.groupby("tokenizer", sort=False)}
    with style.drawing():
        return [build_time_bars(parts), forbidden_curves(curves)]


def headlines(data: RunData) -> list[str]:
    """Verdicts and mismatches; times to build, load and mask; the replay; what is forbidden most; what is missing."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = [
        _verdicts(data),
        _seconds(data, "Tables built", "build", "total"),
        _against_published(data),
        *(_replayed(data, tokenizer) for tokenizer in tokenizers(data)),
        _seconds(data, "Read from the disk, checked and verified", "disk", "load"),
        _seconds(data, "Marked language built in a new process", "new process", "marked language from scratch"),
        _seconds(data, "First mask of a wide list", "mask", "wide first"),
        _seconds(data, "Mask of a wide list again", "mask", "wide again"),
        _most_forbidden(data),
    ]
    failed = data.results[data.results["status"] != "ok"]
    if len(failed):
        parts = "1 part was" if len(failed) == 1 else f"{len(failed)} parts were"
        sentences.append(f"{parts} not measured or not finished: {failure_counts(failed)}.")
    return [sentence for sentence in sentences if sentence]


def _verdicts(data: RunData) -> str:
    found = [
        (kind, value_of(data, tokenizer, kind, "judged"), value_of(data, tokenizer, kind, "mismatches"))
        for tokenizer in tokenizers(data)
        for kind in KINDS
    ]
    done = [(kind, judged, wrong) for kind, judged, wrong in found if judged > 0]
    if not done:
        return ""
    counts = ", ".join(f"{format_count(sum(n for kind, n, _ in done if kind == one))} as {one}" for one in KINDS)
    total, wrong = sum(n for _, n, _ in done), sum(wrong for _, _, wrong in done)
    return (
        f"{format_count(total)} sequences judged ({counts}) with {len(tokenizers(data))} tokenizers: "
        f"{format_count(wrong)} mismatches with the reference libraries."
    )


def _known(data: RunData, group: str, name: str) -> Iterable[tuple[str, float]]:
    found = ((tokenizer, value_of(data, tokenizer, group, name)) for tokenizer in tokenizers(data))
    return [(tokenizer, value) for tokenizer, value in found if not math.isnan(value)]


def _seconds(data: RunData, what: str, group: str, name: str) -> str:
    """``Tables built: mistral-v1 0.2 s, tekken 0.9 s.``"""
    listed = ", ".join(f"{tokenizer} {format_seconds(value)}" for tokenizer, value in _known(data, group, name))
    return f"{what}: {listed}." if listed else ""


def _against_published(data: RunData) -> str:
    return " ".join(
        f"{tokenizer}: 002 reports {PUBLISHED[tokenizer]:g} s for the same table, on another machine, "
        f"{short_factor(PUBLISHED[tokenizer] / value)} times as long."
        for tokenizer, value in _known(data, "build", "total")
        if tokenizer in PUBLISHED
    )


def _replayed(data: RunData, tokenizer: str) -> str:
    seconds, total = (value_of(data, tokenizer, *place) for place in (("replay", "seconds"), ("build", "total")))
    if math.isnan(seconds):
        return ""
    differing, rows, rules = (
        format_count(value_of(data, tokenizer, "replay", name))
        for name in ("rows that differ", "rows compared", "rules")
    )
    return (
        f"{tokenizer}: 002's replay of {rules} rules takes {format_seconds(seconds)} on this machine, "
        f"{short_factor(seconds / total)} times our whole build; {differing} of {rows} rows of the two tables differ."
    )


def _most_forbidden(data: RunData) -> str:
    found = [
        f"{tokenizer} {format_count(value)} (after {figures_of(data, tokenizer, 'count')['most forbidden']['note']})"
        for tokenizer, value in _known(data, "count", "most forbidden")
    ]
    return f"Most tokens forbidden after one token: {', '.join(found)}." if found else ""
