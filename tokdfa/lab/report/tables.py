"""The tables of a report that compares backends, each from the run's data alone.

The best number of a column (of a row, in the table of compile times) is marked, with "best" as its metric defines it.
Medians of different labels may be over different cases when some items failed; ratios never are, since they are paired
(`tokdfa.lab.report.data`). Each table's note says what its numbers are.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import (
    NOTHING,
    Cell,
    Table,
    count_cell,
    number_cell,
    readable,
    share_cell,
    status_cell,
    text_cell,
)
from tokdfa.lab.report.data import paired_ratio, ratio_of_row
from tokdfa.lab.report.metrics import MEMORY_RESOLUTION, METRICS, PERCENTILES, RETAINED_RESOLUTION, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.metrics import Metric

#: Lists and mappings of the provenance that are longer are shown by their length.
MAX_LISTED = 40
#: What the overview shows of each label; a metric that nothing was measured of is left out.
OVERVIEW = (
    *("compile", "first_mask", "mask_p50", "mask_mean", "mask_p90", "mask_p99", "mask_max", "advance_p50"),
    *("memory_peak", "memory_retained"),
)
#: What of it is shown where there is little room.
BRIEF = ("compile", "mask_p50", "memory_retained")
#: The overview's metrics that also get a column of ratios to the reference.
WITH_RATIO = (
    *("compile", "first_mask", "mask_p50", "mask_mean", "mask_p99", "advance_p50"),
    *("memory_peak", "memory_retained"),
)
#: The metrics that have a table of their own, by constraint and tokenizer.
BY_CONSTRAINT = {
    "compile": "Median of the repeats (and of the workloads, where there are several). The fastest of a row is bold.",
    "first_mask": "Compile, start and first mask: median of the repeats (and of the workloads).",
    **dict.fromkeys(
        ("mask_p50", "mask_mean", "mask_p99"),
        "Of each item's masks along its walks; of several workloads the median. The fastest of a row is bold.",
    ),
}


def build_tables(data: RunData) -> list[Table]:
    """The tables of a run that compares backends; those without a row are left out."""
    measured = [name for name in BY_CONSTRAINT if data.case_values(METRICS[name]).notna().to_numpy().any()]
    places = [times_by_constraint(data, name) for name in BY_CONSTRAINT if name == "compile" or name in measured]
    built = (overview(data), *places, mask_percentiles(data), differences(data), failures(data))
    return [table for table in built if table.rows]


def overview(data: RunData) -> Table:
    """One row per label: medians over its cases, ratios to the reference, failures by kind."""
    measured = [(METRICS[name], data.case_values(METRICS[name])) for name in OVERVIEW]
    measured = [(metric, values) for metric, values in measured if values.notna().to_numpy().any()]
    rows = []
    for label in data.labels:
        mine = data.items[data.items["label"] == label]
        done = int((mine["status"] == "ok").sum())
        row = [
            text_cell(label)._replace(detail="reference" * (label == data.reference)),
            Cell(f"{done}/{len(mine)}", float(done)),
        ]
        for metric, values in measured:
            medians = values.median()
            ratio = paired_ratio(values, metric, label, data.reference) if metric.name in WITH_RATIO else None
            row.append(number_cell(metric, medians[label], medians[label] == _best(metric, medians), ratio))
        rows.append((*row, text_cell(failure_counts(mine))))
    note = "Medians over cases; a case is a tokenizer, a constraint, a workload and a seed. The best are in bold."
    if data.reference is not None:
        note += (
            f" Ratios are to {data.reference}, paired case by case: median (lowest–highest), below 1 is the reverse; "
            f"peaks below {format_bytes(MEMORY_RESOLUTION)} count as {format_bytes(MEMORY_RESOLUTION)} in them, and "
            f"retained memory below {format_bytes(RETAINED_RESOLUTION)} as {format_bytes(RETAINED_RESOLUTION)}."
        )
    columns = ("backend", "done", *(metric.title for metric, _ in measured), "failures")
    brief = ("backend", "done", *(METRICS[name].title for name in BRIEF), "failures")
    return Table("overview", "Backends side by side", note, columns, tuple(rows), brief)


def _best(metric: Metric, values: pd.Series[Any]) -> float:
    """The best of some values; NaN (equal to nothing) unless at least two are there to compare."""
    if values.notna().sum() < 2 or metric.better == "neither":
        return math.nan
    return float(values.max() if metric.better == "higher" else values.min())


def failure_counts(items: pd.DataFrame) -> str:
    """``2 timeout, 1 unsupported``, the most frequent first; empty when all succeeded. Takes rows with a `status`."""
    counts = Counter(map(readable, items.loc[items["status"] != "ok", "status"]))
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{count} {kind}" for kind, count in ranked)


def times_by_constraint(data: RunData, name: str) -> Table:
    """One row per tokenizer and constraint: every label's time (a key of `BY_CONSTRAINT`), and its ratio."""
    metric = METRICS[name]
    place = ["tokenizer", "constraint"]
    values = data.case_values(metric).groupby(level=place, sort=False).median()
    status = {tuple(entry[:3]): entry[3] for entry in data.failures[[*place, "label", "status"]].to_numpy()}
    rows = []
    for where in dict.fromkeys(zip(data.items["tokenizer"], data.items["constraint"], strict=True)):
        known = values.loc[where] if where in values.index else values.iloc[:0].median()
        row = [text_cell(part) for part in where]
        for label in data.labels:
            failed = status.get((*where, label))
            ratio = ratio_of_row(known, metric, label, data.reference)
            best = known[label] == _best(metric, known)
            missing = math.isnan(known[label]) and failed is not None
            row.append(status_cell(failed) if missing else number_cell(metric, known[label], best, ratio))
        rows.append(tuple(row))
    title = f"{metric.title[:1].upper()}{metric.title[1:]} by constraint and tokenizer"
    return Table(name, title, BY_CONSTRAINT[name], (*place, *data.labels), tuple(rows))


def mask_percentiles(data: RunData) -> Table:
    """One row per tokenizer and label: percentiles of all its mask samples."""
    metric = METRICS["mask_p50"]
    rows = []
    for (tokenizer, label), group in data.samples_of("mask").groupby(["tokenizer", "label"], sort=False):
        seconds = group["ns"] * metric.factor
        times = [*(seconds.quantile(percent / 100) for percent in PERCENTILES), seconds.max(), seconds.mean()]
        allowed = share_cell(float((group["allowed"] / group["vocab_size"]).median()))
        cells = (number_cell(metric, float(time)) for time in times)
        rows.append((text_cell(tokenizer), text_cell(label), count_cell(len(group)), *cells, allowed))
    heads = (*(f"p{percent:g}" for percent in PERCENTILES), "max", "mean")
    note = "All mask samples of the items that succeeded, pooled over constraints and workloads; each counts once."
    columns = ("tokenizer", "backend", "masks", *heads, "share allowed, median")
    return Table("mask_percentiles", "Mask time: percentiles", note, columns, tuple(rows))


def differences(data: RunData) -> Table:
    """Where a label's masks are not those of the reference: one row per label and place with a difference."""
    masks = data.samples_of("mask")
    masks = masks[masks["differs"].notna()]
    place = ["label", "tokenizer", "constraint", "workload"]
    rows = []
    for where, group in masks.groupby(place, sort=False, dropna=False):
        tokens = group.loc[group["differs"] > 0, "differs"]
        if len(tokens):
            counts = (len(group), len(tokens), tokens.median(), tokens.max())
            rows.append((*map(text_cell, where), *(count_cell(float(count)) for count in counts)))
    columns = ("backend", *place[1:], "masks compared", "masks that differ", "tokens, median", "tokens, max")
    note = (
        f"Each mask was compared with that of {data.reference} after the same tokens. "
        "Tokens are the bits that differ in a mask, over the masks that differ."
    )
    return Table("differences", "Where masks differ", note, columns, tuple(rows))


def failures(data: RunData) -> Table:
    """Every failure with its reason; equal reasons of one label and constraint share a row."""
    failed = data.failures.assign(message=data.failures["message"].fillna("").astype(str))
    rows = []
    for where, group in failed.groupby(["label", "constraint", "status", "message"], sort=False, dropna=False):
        label, constraint, status, message = where
        tokenizers = ", ".join(dict.fromkeys(group["tokenizer"].dropna().astype(str)))
        texts = (label, constraint, readable(status), tokenizers, message)
        rows.append((*map(text_cell, texts), count_cell(len(group))))
    columns = ("backend", "constraint", "kind", "tokenizers", "reason", "items")
    return Table("failures", "Failures", "Items that gave no result, with the reason.", columns, tuple(rows))


def plain_results(data: RunData) -> Table:
    """The results as they are stored, for kinds of experiment without tables of their own."""
    import pandas as pd

    def cell(value: Any) -> Cell:
        if pd.api.types.is_scalar(value) and pd.isna(value):
            return NOTHING
        return count_cell(value) if isinstance(value, int | float) else text_cell(value)

    rows = [tuple(map(cell, entry)) for entry in data.results.itertuples(index=False)]
    return Table("results", "Results", "As stored.", tuple(map(str, data.results.columns)), tuple(rows))


def environment(data: RunData) -> Table:
    """Versions, commit, machine and seeds, flattened to one row per key; long lists only by their length."""
    rows = tuple((text_cell(key), text_cell(value)) for key, value in _flatten(data.provenance))
    note = "Recorded with the run; the whole record is provenance.json in its folder."
    return Table("environment", "Environment", note, ("what", "value"), rows)


def _flatten(entries: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in entries.items():
        if isinstance(value, dict | list) and (len(value) > MAX_LISTED or _has_records(value)):
            yield f"{above}{key}", f"{len(value)} entries"
        elif isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key} · ")
        else:
            plain = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield f"{above}{key}", plain


def _has_records(value: Mapping[str, Any] | list[Any]) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
