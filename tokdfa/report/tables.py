"""The tables of a report, each from the run's data alone.

A `Table` holds cells: a text for people and a value for sorting and for further work (`Table.frame` is a pandas
DataFrame of the values). The same cells become Markdown, HTML and the terminal's summary. The best number of a column
group is marked, with "best" as its metric defines it.

Medians of different labels may be over different cases when some items failed; ratios never are, since they are paired
(`tokdfa.report.data`). Each table's note says what its numbers are.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.report.data import paired_ratio
from tokdfa.report.metrics import METRICS, MISSING, PERCENTILES, format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from tokdfa.report.data import RunData
    from tokdfa.report.metrics import Metric

#: What the overview shows of each label, in this order; a metric that nothing was measured of is left out.
OVERVIEW = (
    "compile first_mask mask_p50 mask_p90 mask_p99 mask_max advance_p50 memory_peak memory_retained".split()
)
#: The overview's metrics that also get a column of ratios to the reference.
WITH_RATIO = ("compile", "first_mask", "mask_p50", "advance_p50", "memory_peak", "memory_retained")


class Cell(NamedTuple):
    """One cell: `text` as people read it, `value` as a number or a text, and whether it is the best of its group."""

    text: str
    value: float | str | None = None
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A titled table. `columns` are the heads; every row of `rows` has as many cells. `note` explains the numbers."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The values as a DataFrame: base units (seconds, bytes), NaN or None where there is none."""
        import pandas as pd

        return pd.DataFrame([[cell.value for cell in row] for row in self.rows], columns=list(self.columns))

    def markdown(self) -> str:
        """The table as GitHub Markdown, numbers to the right."""
        heads = [escape_markdown(head) for head in self.columns]
        rows = [[f"**{escape_markdown(c.text)}**" if c.best else escape_markdown(c.text) for c in r] for r in self.rows]
        widths = [max(3, *(len(row[i]) for row in [heads, *rows])) for i in range(len(heads))]
        right = self.right_aligned()
        rule = [f"{'-' * (width - 1)}:" if right[i] else "-" * width for i, width in enumerate(widths)]
        return "\n".join(f"| {' | '.join(_pad(row, widths, right))} |" for row in [heads, rule, *rows])

    def right_aligned(self) -> list[bool]:
        """For each column whether it holds numbers."""
        columns: Iterable[tuple[Cell, ...]] = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return [any(isinstance(cell.value, float) for cell in column) for column in columns]


def _pad(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [text.rjust(widths[i]) if right[i] else text.ljust(widths[i]) for i, text in enumerate(row)]


def escape_markdown(text: str) -> str:
    """`text` so that Markdown shows it as it is, on one line; control characters become visible escapes."""
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return re.sub(r"([\\`*_|<>\[\]~#$])", r"\\\1", visible)


def number(metric: Metric, value: float | None, best: bool = False) -> Cell:
    """A cell for a metric's value in base units."""
    missing = value is None or math.isnan(value)
    return Cell(metric.format(value), math.nan if missing else float(value or 0), best and not missing)


def text(value: object) -> Cell:
    """A cell for a text."""
    shown = MISSING if value is None or value == "" else str(value)
    return Cell(shown, shown)


def count_cell(value: float) -> Cell:
    """A cell for a plain count."""
    return Cell(format_count(value), float(value))


def build_tables(data: RunData) -> list[Table]:
    """All tables that a run of this kind has something to say in."""
    if data.kind == "trie_walk":
        tables = [trie_walk(data)]
    elif data.kind == "regex_states":
        tables = [regex_states(data)]
    elif len(data.results):
        tables = [plain_results(data)]
    else:
        tables = []
    if len(data.items):
        tables += [overview(data), compile_times(data), mask_percentiles(data), differences(data), failures(data)]
    return [table for table in tables if table.rows] + [environment(data)]


def overview(data: RunData) -> Table:
    """One row per label: medians over its cases, ratios to the reference, failures by kind."""
    shown = [(METRICS[name], data.case_values(METRICS[name])) for name in OVERVIEW]
    shown = [(metric, values) for metric, values in shown if values.notna().to_numpy().any()]
    columns, rows = ["backend", "done"], []
    for metric, _ in shown:
        columns += [metric.title, f"{metric.title} vs {data.reference}"] if _has_ratio(data, metric) else [metric.title]
    medians = [values.median() for _, values in shown]
    for label in data.labels:
        mine = data.items[data.items["label"] == label]
        done = int((mine["status"] == "ok").sum())
        row = [text(label), Cell(f"{done}/{len(mine)}", float(done))]
        for (metric, values), median in zip(shown, medians, strict=True):
            row.append(number(metric, median[label], best=median[label] == best_of(metric, median)))
            if _has_ratio(data, metric):
                row.append(ratio_cell(data, metric, values, label))
        rows.append((*row, text(failure_counts(mine))))
    note = "Medians over cases (a case is a tokenizer, a constraint and a workload)"
    if data.reference:
        note += f"; ratios to {data.reference} are paired case by case: median (lowest–highest), below 1 is worse"
    return Table("overview", "Backends side by side", f"{note}.", (*columns, "failures"), tuple(rows))


def _has_ratio(data: RunData, metric: Metric) -> bool:
    return data.reference is not None and metric.name in WITH_RATIO


def best_of(metric: Metric, values: pd.Series[Any]) -> float:
    """The best of some values; NaN (equal to nothing) unless at least two are there to compare."""
    if values.notna().sum() < 2 or metric.better == "neither":
        return math.nan
    return float(values.max() if metric.better == "higher" else values.min())


def ratio_cell(data: RunData, metric: Metric, values: pd.DataFrame, label: str) -> Cell:
    """The paired ratio of a label to the run's reference."""
    if label == data.reference:
        return Cell("reference", 1.0)
    ratio = paired_ratio(values, metric, label, data.reference) if data.reference else None
    return Cell(ratio.describe(metric), ratio.median) if ratio else Cell(MISSING, math.nan)


def failure_counts(items: pd.DataFrame) -> str:
    """``2 timeout, 1 unsupported``; empty when all items succeeded."""
    counts = items.loc[items["status"] != "ok", "status"].value_counts()
    return ", ".join(f"{count} {str(kind).replace('_', ' ')}" for kind, count in counts.items())


def compile_times(data: RunData) -> Table:
    """One row per tokenizer and constraint: every label's compile time and its ratio to the reference."""
    metric = METRICS["compile"]
    place = ["tokenizer", "constraint"]
    values = data.case_values(metric).groupby(level=place, sort=False).median()
    failed = {tuple(row[:3]): row[3] for row in data.failures[[*place, "label", "status"]].astype(str).to_numpy()}
    with_ratio = [label for label in data.labels if data.reference and label != data.reference]
    columns = [*place]
    for label in data.labels:
        columns += [label, f"{label} vs {data.reference}"] if label in with_ratio else [label]
    rows = []
    for where in dict.fromkeys(zip(data.items["tokenizer"], data.items["constraint"], strict=True)):
        row = [text(part) for part in where]
        known = values.loc[where] if where in values.index else values.iloc[:0].median()
        for label in data.labels:
            value = float(known[label])
            status = failed.get((str(where[0]), str(where[1]), label))
            if math.isnan(value) and status:
                row.append(Cell(status.replace("_", " "), math.nan))
            else:
                row.append(number(metric, value, best=value == best_of(metric, known)))
            if label in with_ratio:
                ratio = paired_ratio(known.to_frame().T, metric, label, str(data.reference))
                row.append(Cell(ratio.describe(metric), ratio.median) if ratio else Cell(MISSING, math.nan))
        rows.append(tuple(row))
    note = "Median of the repeats (and of the workloads, when there are several). The fastest of a row is marked."
    return Table("compile", "Compile time by constraint and tokenizer", note, tuple(columns), tuple(rows))


def mask_percentiles(data: RunData) -> Table:
    """One row per label and tokenizer: percentiles of all its mask samples."""
    metric = METRICS["mask_p50"]
    heads = [f"p{percent:g}" for percent in PERCENTILES]
    rows = []
    samples = data.samples_of("mask")
    for (tokenizer, label), group in samples.groupby(["tokenizer", "label"], sort=False):
        seconds = group["ns"] * 1e-9
        cells = [number(metric, float(seconds.quantile(percent / 100))) for percent in PERCENTILES]
        cells += [number(metric, float(seconds.max())), number(metric, float(seconds.mean()))]
        allowed = group["allowed"].median()
        share = allowed / group["vocab_size"].iloc[0]
        rows.append((text(tokenizer), text(label), count_cell(len(group)), *cells, Cell(_share(share), float(share))))
    note = "All mask samples of the items that succeeded, pooled over constraints and workloads; every sample counts once."
    columns = ("tokenizer", "backend", "masks", *heads, "max", "mean", "allowed (median)")
    return Table("mask_percentiles", "Mask time: percentiles", note, columns, tuple(rows))


def _share(share: float) -> str:
    return MISSING if math.isnan(share) else format_share(share)


def differences(data: RunData) -> Table:
    """Where a label's masks are not those of the reference: one row per label and case with a difference."""
    masks = data.samples_of("mask")
    masks = masks[masks["differs"].notna()]
    rows = []
    for (label, *case), group in masks.groupby(["label", *CASE_COLUMNS], sort=False, dropna=False):
        tokens = group.loc[group["differs"] > 0, "differs"]
        if len(tokens):
            rows.append(
                (
                    text(label),
                    *(text(part) for part in case),
                    count_cell(len(group)),
                    count_cell(len(tokens)),
                    count_cell(float(tokens.median())),
                    count_cell(float(tokens.max())),
                )
            )
    columns = ("backend", *CASE_COLUMNS, "masks compared", "masks that differ", "tokens (median)", "tokens (max)")
    note = (
        f"Each mask was compared with that of {data.reference} after the same tokens. "
        "Tokens counts the bits that differ in a mask, over the masks that differ."
    )
    return Table("differences", "Where masks differ", note, columns, tuple(rows))


CASE_COLUMNS = ("tokenizer", "constraint", "workload")


def difference_summary(data: RunData) -> str:
    """One sentence on how many masks were compared with the reference's, and how many differ."""
    masks = data.samples_of("mask")
    compared = masks[masks["differs"].notna() & (masks["label"] != data.reference)]
    if compared.empty:
        return "No masks were compared: the run has no reference whose masks were recorded beside the others'."
    differ = compared[compared["differs"] > 0]
    if differ.empty:
        return f"All {len(compared):,} masks that were compared equal those of {data.reference}."
    who = ", ".join(f"{label} {count:,}" for label, count in differ["label"].value_counts().items())
    return f"{len(differ):,} of {len(compared):,} compared masks differ from those of {data.reference}: {who}."


def failures(data: RunData) -> Table:
    """Every failure with its reason; equal reasons of one label and constraint share a row."""
    rows = []
    keys = ["label", "constraint", "status", "message"]
    failed = data.failures.assign(message=data.failures["message"].fillna("").astype(str))
    for key, group in failed.groupby(keys, sort=False, dropna=False):
        label, constraint, status, message = key
        places = ", ".join(dict.fromkeys(group["tokenizer"].astype(str)))
        rows.append(
            (text(label), text(constraint), text(str(status).replace("_", " ")), text(places), text(message), count_cell(len(group)))
        )
    columns = ("backend", "constraint", "kind", "tokenizers", "reason", "items")
    return Table("failures", "Failures", "Items that gave no result, with the reason.", columns, tuple(rows))


def trie_walk(data: RunData) -> Table:
    """One row per tokenizer, pattern and engine of a `trie_walk` run, with the ratio of tokdfa to each peer."""
    time, node = METRICS["walk_time"], METRICS["node_time"]
    rows = []
    for (_, _), group in data.results.groupby(["tokenizer", "pattern"], sort=False):
        ours = group.loc[group["engine"] == "tokdfa", "ns_median"]
        for entry in group.itertuples():
            against = MISSING
            ratio = math.nan
            if entry.engine != "tokdfa" and len(ours) and ours.iloc[0] > 0:
                ratio = float(entry.ns_median) / float(ours.iloc[0])
                against = f"{ratio:.2g}x"
            rows.append(
                (
                    text(entry.tokenizer),
                    text(entry.label or entry.pattern),
                    text(entry.engine),
                    count_cell(entry.allowed),
                    Cell(format_share(entry.density), float(entry.density)),
                    count_cell(entry.nodes_visited) if entry.nodes_visited == entry.nodes_visited else text(None),
                    number(time, entry.ns_median * 1e-9),
                    number(time, entry.ns_min * 1e-9),
                    number(node, entry.ns_per_node * 1e-9),
                    Cell(against, ratio),
                )
            )
    columns = tuple("tokenizer,pattern,engine,allowed,share,nodes visited,median,fastest,per node,over tokdfa".split(","))
    note = "One mask for a pattern's state, repeated. Per node divides the median by the nodes that tokdfa's walk visits."
    return Table("trie_walk", "Trie walks", note, columns, tuple(rows))


def regex_states(data: RunData) -> Table:
    """One row per constraint, one column per variant: states, or why there are none."""
    results = data.results
    variants = [str(variant) for variant in dict.fromkeys(results["variant"])]
    rows = []
    for constraint, group in results.groupby("constraint", sort=False):
        cells = [text(constraint)]
        found = {str(entry.variant): entry for entry in group.itertuples()}
        for variant in variants:
            entry = found.get(variant)
            if entry is None:
                cells.append(Cell(MISSING, math.nan))
            elif entry.status != "ok":
                cells.append(Cell(str(entry.status).replace("_", " "), math.nan))
            else:
                cells.append(count_cell(entry.states))
        rows.append(tuple(cells))
    note = "States of the byte automaton that each variant builds for the same language."
    return Table("regex_states", "States by simplification law", note, ("constraint", *variants), tuple(rows))


def plain_results(data: RunData) -> Table:
    """The results as they are stored, for kinds of experiment without a table of their own."""
    rows = [
        tuple(count_cell(value) if isinstance(value, int | float) else text(value) for value in entry)
        for entry in data.results.itertuples(index=False)
    ]
    return Table("results", "Results", "As stored.", tuple(map(str, data.results.columns)), tuple(rows))


def environment(data: RunData) -> Table:
    """Versions, commit, machine and seeds, flattened to one row per key."""
    rows = tuple((text(key), text(value)) for key, value in _flatten(data.provenance))
    return Table("environment", "Environment", "Recorded when the run was started.", ("what", "value"), rows)


def _flatten(entries: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in entries.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key} · ")
        else:
            yield f"{above}{key}", value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
