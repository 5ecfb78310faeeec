"""Reports on runs of kind ``engine_ablation``: what each part of a grammar engine buys, and what 000 says of it.

Variants are compared within a case (a tokenizer, a constraint and a path: `tokdfa.lab.report.engine_ablation_data`).
Here are the tables and the sentences; `tokdfa.lab.report.engine_ablation_plots` has the plots.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, readable, share_cell, text_cell
from tokdfa.lab.report.data import factors
from tokdfa.lab.report.engine_ablation_data import (
    CASE,
    CLAIMED_SHARE,
    DEFAULT,
    SHARES,
    SWITCHES,
    WALK,
    ends,
    measured,
    reach,
    reuse,
    times,
)
from tokdfa.lab.report.engine_ablation_plots import build_plots
from tokdfa.lab.report.metrics import METRICS, format_seconds, format_share, short_factor, spread
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

__all__ = ["build_plots", "build_tables", "headlines"]

#: Columns of mask times that are compared.
_TIMES = {"median": "mask_ns_p50", "mean": "mask_ns_mean", "p99": "mask_ns_p99"}
#: What a part is about -> (in words, its column).
_ABOUT = {
    "mask": ("the mean mask is made", "mask_ns_mean"),
    "advance": ("the mean advance is", "advance_ns_mean"),
    "compile": ("a compile is", "compile_s"),
}
#: Columns of `reuse` that are counts, and that are shares -> their heads; what the second mean.
_COUNTS = {
    **{name: name for name in ("masks", "situations", "rows", "stacks")},
    "partitions": "partitions of the vocabulary",
    "lexer_states": "lexer states",
}
_RATES = {
    "mask_hits": "masks remembered",
    "row_hits": "rows looked up",
    "equal_rows": "new rows that were there",
}
_MEANT = {
    "row_hits": "Rows looked up: of the lexemes that end in walks over the whole trie.",
    "equal_rows": "New rows that were there: of the rows that the parser made, those equal to an older one.",
}


def build_tables(data: RunData) -> list[Table]:
    """What each part buys; times by variant and by case; work of the walks; what is found again; and what failed.

    The work of the walks is that of an engine with a parser beside its lexer; other engines have no such table.
    """
    return [switches(data), variants(data), by_case(data), nodes(data), rates(data), broken(data)]


def switches(data: RunData) -> Table:
    """One row per entry of `SWITCHES` but those of compiles: factors of mask times, mean advance and compile."""
    tables = {column: times(data, column) for column in (*_TIMES.values(), "advance_ns_mean", "compile_s")}
    rows = []
    for title, without, value, about in SWITCHES:
        found = {column: factors(table, without, value) for column, table in tables.items()}
        judged = found[_ABOUT[about][1]]
        if len(judged) and about != "compile":  # of those the table has a column
            cells = (*map(_factor_cell, found.values()), *map(text_cell, ends(judged)))
            rows.append((text_cell(title), count_cell(len(judged)), *cells))
    columns = (
        *("part", "cases", *(f"{name} mask time" for name in _TIMES), "mean advance", "compile"),
        *("most for", "least for"),
    )
    note = (
        "Factors: without the part over with it, so above 1 it pays; median over the cases, and their range. Most and "
        "least: by the mean mask time (of steps remembered: by the advance). Those above masks remembered compare ways "
        "to make a mask, and remember nothing."
    )
    return Table("switches", "What each part buys", note, columns, tuple(rows), columns[:5])


def _factor_cell(ratios: pd.Series[Any]) -> Cell:
    middle = float(ratios.median())
    return Cell(
        f"{short_factor(middle)}x", middle, detail=spread(float(ratios.min()), float(ratios.max())).strip(" ()")
    )


def variants(data: RunData) -> Table:
    """One row per path and variant: medians over its cases."""
    rows = []
    columns = {**_TIMES, "advance": "advance_ns_p50"}
    for (path, variant), group in measured(data).groupby(["path", "variant"], sort=False):
        cells = [number_cell(METRICS["mask_p50"], group[column].median() * 1e-9) for column in columns.values()]
        compile_cell = number_cell(METRICS["compile"], group["compile_s"].median())
        made = _share(float(group["masks_made"].sum(min_count=1) / group["masks"].sum()))
        left = count_cell(float((group["nodes_visited"] / group["masks"]).median()))
        rows.append((text_cell(path), text_cell(variant), count_cell(len(group)), *cells, made, left, compile_cell))
    heads = (
        *("path", "variant", "cases", "mask, median", "mask, mean", "mask, p99", "advance"),
        *("masks made", "nodes a mask", "compile"),
    )
    note = (
        "Of each case the number; of these the median over the cases. Masks made: the share that was not remembered. "
        "Nodes a mask: those visited over all masks, remembered ones included."
    )
    return Table("variants", "Variants side by side", note, heads, tuple(rows), heads[:6])


def by_case(data: RunData) -> Table:
    """One row per case, one column per variant: the mean mask time, and how many times as fast as the walk it is."""
    table, rows = times(data), []
    for where, line in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        known = [value for value in line.values() if not math.isnan(value)]
        best = min(known) if len(known) > 1 else math.nan
        cells = []
        for variant in table.columns:
            cell = number_cell(METRICS["mask_mean"], line[variant], line[variant] == best)
            if variant != WALK and WALK in table and not math.isnan(line[variant] + line[WALK]):
                ratio = float(line[WALK] / line[variant])
                cell = cell._replace(detail=f"{short_factor(ratio)}x", detail_value=ratio)
            cells.append(cell)
        rows.append((*map(text_cell, where), *cells))
    note = f"Mean mask time along the whole path, from a cold start. The factor is that of {WALK} over it."
    return Table("cases", "Mean mask time by constraint", note, (*CASE, *table.columns), tuple(rows))


def nodes(data: RunData) -> Table:
    """One row per case and walk: how many nodes there were, and at how many of them the parser was needed."""
    rows = []
    for _, one in reach(data).iterrows():
        shares = (share_cell(one["end_share"]), share_cell(one["scan_share"]))
        node = number_cell(METRICS["node_time"], one["node_ns"] * 1e-9)
        counts = (count_cell(one["nodes_visited"] / one["masks"]), *shares, node)
        rows.append((*(text_cell(one[name]) for name in (*CASE, "variant")), *counts))
    columns = (*CASE, "variant", "nodes a mask", "a lexeme ends", "new to the parser", "time a node")
    note = (
        "Of the nodes that walks over the whole trie visit: the share at which a lexeme ends, so that the parser is "
        "asked, and the share at which it has not been asked the same before. 000 says of the parser: under "
        f"{format_share(CLAIMED_SHARE)} of the nodes. Time a node: mean mask time over nodes, the Python call included."
    )
    return Table("nodes", "Nodes that reach the parser", note, columns, tuple(rows))


def rates(data: RunData) -> Table:
    """One row per case: what is held in the end, and what is found again, of masks and of rows, as far as known."""
    found = reuse(data)
    counts, shares = (
        {column: head for column, head in heads.items() if found[column].notna().any()} for heads in (_COUNTS, _RATES)
    )
    rows = []
    for _, one in found.iterrows():
        cells = [number_cell(METRICS["memory_retained"], one["bytes"])] if found["bytes"].notna().any() else []
        cells = [*(count_cell(one[name]) for name in counts), *cells, *(_share(one[name]) for name in shares)]
        rows.append((*(text_cell(one[name]) for name in CASE), *cells))
    size = ("tables",) if found["bytes"].notna().any() else ()
    note = " ".join(
        [f"Variant {DEFAULT}, from a cold start.", *(_MEANT[column] for column in shares if column in _MEANT)]
    )
    columns = (*CASE, *counts.values(), *size, *shares.values())
    return Table("rates", "What is held, and what is found again", note, columns, tuple(rows))


def _share(value: float) -> Cell:
    return NOTHING if math.isnan(value) else share_cell(value)


def broken(data: RunData) -> Table:
    """Every variant that failed or gave other masks than the rest, with the reason."""
    failed = data.results[(data.results["row"] == "variant") & (data.results["status"] != "ok")]
    columns = (*CASE, "variant", "status", "message")
    rows = [
        tuple(text_cell(readable(one[name]) if name == "status" else one[name]) for name in columns)
        for _, one in failed.iterrows()
    ]
    note = "Variants without a result, or whose masks are not those of the others; they are in no other table."
    return Table("broken", "Failed variants", note, columns, tuple(rows))


def headlines(data: RunData) -> list[str]:
    """What each part buys, whether the shares of 000 hold, what is found again, and whether all masks agree."""
    if data.results.empty:
        return ["The run has no results yet."]
    return [*_what_pays(data), *_nodes(data), *_rates(data), _same_masks(data)]


def _what_pays(data: RunData) -> list[str]:
    sentences = []
    for title, without, value, about in SWITCHES:
        words, column = _ABOUT[about]
        ratios = factors(times(data, column), without, value)
        if len(ratios):
            most, least = ends(ratios)
            sentences.append(
                f"{title[:1].upper()}{title[1:]}: {words} {short_factor(ratios.median())} times as fast"
                f"{spread(ratios.min(), ratios.max())}, median of {len(ratios)} cases; most for "
                f"{most}, least for {least}."
            )
    return sentences


def _nodes(data: RunData) -> list[str]:
    found = reach(data)
    found = found[found["variant"] == SHARES]
    if found.empty:
        return []
    share = found["end_share"]
    most = found.iloc[int(share.to_numpy().argmax())]
    ended, new = (found[name].sum() / found["nodes_visited"].sum() for name in ("lexeme_ends", "mask_scans"))
    return [
        f"A lexeme ends at {format_share(share.median())} of the nodes of a walk (median of {len(found)} cases), at "
        f"most at {format_share(share.max())} ({most['constraint']}, {most['path']}); under the "
        f"{format_share(CLAIMED_SHARE)} of 000 in {int((share < CLAIMED_SHARE).sum())} of {len(found)}. Of the "
        f"nodes of all cases together: at {format_share(ended)}; and at {format_share(new)} the parser is asked what "
        "it was not asked before.",
        f"A node takes {format_seconds(found['node_ns'].median() * 1e-9)} (median of {len(found)} cases), from "
        f"{format_seconds(found['node_ns'].min() * 1e-9)} to {format_seconds(found['node_ns'].max() * 1e-9)}.",
    ]


def _rates(data: RunData) -> list[str]:
    found = reuse(data)
    if found.empty:
        return []
    masks, rows, equal = (found[name].dropna() for name in ("mask_hits", "row_hits", "equal_rows"))
    sentence = f"From a cold start {format_share(masks.median())} of the masks are remembered ones"
    if len(rows):
        sentence += (
            f"; after all but {format_share(1 - rows.median())} of the lexemes that end in walks the row is known"
        )
    if len(equal):
        sentence += f"; {format_share(equal.median())} of the rows that are made were there already"
    return [f"{sentence} (medians of {len(found)} cases)."]


def _same_masks(data: RunData) -> str:
    rows = data.results[data.results["row"] == "variant"]
    counted = failure_counts(rows)
    if not counted:
        return f"All {len(rows):,} variants of all cases succeeded: those of one lexing rule gave the same masks."
    return f"Of {len(rows):,} variants of all cases these failed: {counted}."
