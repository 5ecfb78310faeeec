"""Reports on runs of kind ``slices``: what slices and partitions save of the walk, for whom, and how much is left.

A case is a tokenizer, a constraint and a path. An engine is compared with the walk of its own kind within a case: ours
with ``walk``, llguidance with itself without slices (the column ``walk``). Factors are of mean mask times,
since slices are about the few masks that are dear; those of wide masks (at least half of the vocabulary) are told, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, readable, share_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import METRICS, Metric, format_share, short_factor, spread
from tokdfa.lab.report.plots import MAX_GROUPS, Plot, grouped_bars, left_out
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

CASE = ["tokenizer", "constraint", "path"]
#: 000: masks for JSON schemas are made about this many times as fast.
CLAIMED_FACTOR = 10.0
_NUMBERS = (
    *("vocab_size", "trie_nodes", "first_ns_mean", "masks", "wide_masks", "applied", "wide_applied"),
    *("nodes_visited", "wide_nodes", "slice_proofs", "slice_proofs_given_up"),
    *(f"{what}_ns_{which}" for what in ("mask", "wide") for which in ("p50", "mean", "p99")),
)
SPEED = Metric(
    "over_walk",
    "times as fast as the walk",
    "mean mask time of the walk over that of the engine",
    "ratio",
    "results",
    "mask_ns_mean",
    better="higher",
)
LEFT = Metric(
    "nodes_left",
    "share of the walk that is left",
    "nodes visited over those that the walk visits",
    "share",
    "results",
    "nodes_visited",
)


def measured(data: RunData) -> pd.DataFrame:
    """The rows that succeeded, all their numbers as float, NaN where there is none."""
    return complete_columns(data.results[data.results["status"] == "ok"], (), _NUMBERS)


def by_engine(data: RunData, column: str) -> pd.DataFrame:
    """A column of `measured`: one row per case, one column per engine of the run, NaN where there is none."""
    rows = measured(data)
    table = rows.pivot_table(index=CASE, columns="engine", values=column, aggfunc="median", sort=False)
    return table[[engine for engine in dict.fromkeys(rows["engine"]) if engine in table]]


def walks(data: RunData) -> dict[str, str]:
    """Engine -> the walk that it is compared with, of all engines of the run."""
    return dict(zip(data.results["engine"].astype(str), data.results["walk"].astype(str), strict=True))


def factors(data: RunData, column: str = "mask_ns_mean") -> pd.DataFrame:
    """How many times as fast as its walk each engine is: one row per case, one column per engine that has a walk."""
    table = by_engine(data, column)
    pairs = {
        engine: walk for engine, walk in walks(data).items() if engine != walk and engine in table and walk in table
    }
    found = table[list(pairs)].copy()
    for engine, walk in pairs.items():
        found[engine] = table[walk] / table[engine]
    return found


def left(data: RunData) -> pd.DataFrame:
    """The share of the walk's nodes that each of our engines still visits: one row per case."""
    table = by_engine(data, "nodes_visited")
    ours = [engine for engine, walk in walks(data).items() if walk == "walk" != engine and engine in table]
    if "walk" not in table:
        return table[[]]
    return table[ours].div(table["walk"].where(table["walk"] > 0), axis=0)


def build_tables(data: RunData) -> list[Table]:
    """Speed over the walk, what slices apply to and what is left, and what failed."""
    return [speeds(data), coverage(data), broken(data)]


def speeds(data: RunData) -> Table:
    """One row per case, one column per engine: the mean mask time, and the factor over its walk, all and wide masks."""
    times, rows = by_engine(data, "mask_ns_mean"), []
    all_masks, wide = (factors(data, column).to_dict("index") for column in ("mask_ns_mean", "wide_ns_mean"))
    for where, line in zip(times.index.tolist(), times.to_dict("records"), strict=True):
        cells = []
        for engine in times.columns:
            cell = number_cell(METRICS["mask_mean"], line[engine] * 1e-9)
            ratio = all_masks[where].get(engine, math.nan)
            if not math.isnan(ratio):
                of_wide = wide.get(where, {}).get(engine, math.nan)
                said = "" if math.isnan(of_wide) else f", wide {short_factor(of_wide)}x"
                cell = cell._replace(detail=f"{short_factor(ratio)}x{said}", detail_value=ratio)
            cells.append(cell)
        rows.append((*map(text_cell, where), *cells))
    note = (
        "Mean mask time along a path that the engine has met before. The factor is that of the walk (for llguidance, "
        "of its own) over it, over all masks and over those that allow at least half of the vocabulary."
    )
    return Table("slices", "Slices, partitions and the walk", note, (*CASE, *times.columns), tuple(rows))


def coverage(data: RunData) -> Table:
    """One row per case and engine of ours but the walk: masks that slices apply to, nodes left, proofs."""
    remaining, rows = left(data), []
    shares_left = remaining.to_dict("index")
    for _, one in measured(data).iterrows():
        engine, where = one["engine"], tuple(one[name] for name in CASE)
        if engine not in remaining:
            continue
        sliced = one["mask"] == "slices"
        shares = [_share(one["wide_masks"], one["masks"]), _share(one["applied"], one["masks"], sliced)]
        shares.append(_share(one["wide_applied"], one["wide_masks"], sliced))
        first = number_cell(METRICS["mask_mean"], one["first_ns_mean"] * 1e-9)
        nodes = (share_cell(shares_left[where][engine]), count_cell(one["nodes_visited"] / one["masks"]))
        proofs = [count_cell(one[name]) if sliced else NOTHING for name in ("slice_proofs", "slice_proofs_given_up")]
        rows.append((*map(text_cell, (*where, engine)), count_cell(one["masks"]), *shares, *nodes, *proofs, first))
    columns = (
        *(*CASE, "engine", "masks", "wide", "a slice applies", "of the wide"),
        *("nodes left", "nodes a mask", "proofs", "given up", "mean mask, first round"),
    )
    note = (
        "Wide masks allow at least half of the vocabulary. Nodes left: those visited over those that the walk visits, "
        "once partitions are made. Proofs and the first round: of a constraint that was just compiled."
    )
    return Table("coverage", "What slices apply to, and what is left to walk", note, columns, tuple(rows))


def _share(part: float, whole: float, known: bool = True) -> Cell:
    return share_cell(part / whole) if known and whole > 0 else NOTHING


def broken(data: RunData) -> Table:
    """Every engine that failed or gave other masks than its walk, with the reason."""
    columns = (*CASE, "engine", "status", "message")
    rows = [
        tuple(text_cell(readable(one[name]) if name == "status" else one[name]) for name in columns)
        for _, one in data.results[data.results["status"] != "ok"].iterrows()
    ]
    note = "Engines without a result, or whose masks are not those of the walk; they are in no other table."
    return Table("broken", "Failed engines", note, columns, tuple(rows))


def build_plots(data: RunData) -> list[Plot]:
    """How many times as fast as the walk, and what is left of it."""
    if data.results.empty:
        return [left_out("slices", "Slices of the vocabulary", "the run has no results yet")]
    with style.drawing():
        return [
            _bars("over_walk", "How many times as fast as the walk", factors(data), SPEED, CLAIMED_FACTOR),
            _bars("wide_over_walk", "The same, wide masks only", factors(data, "wide_ns_mean"), SPEED, CLAIMED_FACTOR),
            _bars("left", "Nodes that are left to walk", left(data), LEFT, None),
        ]


def _bars(name: str, title: str, table: pd.DataFrame, metric: Metric, claim: float | None) -> Plot:
    """Bars by constraint: the median over tokenizers and paths. `claim`: where to draw the number of 000."""
    values = table.groupby(level="constraint", sort=False).median().dropna(how="all").head(MAX_GROUPS)
    if values.empty:
        return left_out(name, title, "no case has a result of the walk and of another engine")
    figure = grouped_bars(values, metric, style.looks_in_order(list(values.columns)), {})
    if claim is not None:
        figure.axes[0].axvline(1, color=style.INK, linewidth=1)
        figure.axes[0].axvline(claim, color=style.INK, linewidth=1, linestyle="--")
    caption = "Of the cases of a constraint the median."
    return Plot(name, title, caption + (f" Dashed: {claim:g} times, as in 000." if claim else ""), figure)


def headlines(data: RunData) -> list[str]:
    """The factor of each engine, on all constraints and on JSON; how many masks slices apply to; what is left."""
    if data.results.empty:
        return ["The run has no results yet."]
    found, wide = factors(data), factors(data, "wide_ns_mean")
    walk_of = walks(data)
    sentences = [
        _speed_sentence(f"{engine} against {walk_of[str(engine)]}", found[engine].dropna(), wide[engine].dropna())
        for engine in found
    ]
    return [*filter(None, sentences), *_applied(data), *_left(data), _same_masks(data)]


def _speed_sentence(who: str, ratios: pd.Series[Any], wide: pd.Series[Any]) -> str:
    if ratios.empty:
        return ""
    sentence = (
        f"{who}: mean masks {short_factor(ratios.median())} times as fast"
        f"{spread(ratios.min(), ratios.max())}, median of {len(ratios)} cases"
    )
    if len(wide):
        sentence += f"; wide masks {short_factor(wide.median())}{spread(wide.min(), wide.max())}"
    json = ratios[["json" in constraint.lower() for constraint in ratios.index.get_level_values("constraint")]]
    if len(json):
        holds = int((json >= CLAIMED_FACTOR).sum())
        sentence += (
            f"; on JSON {short_factor(json.median())}{spread(json.min(), json.max())}, "
            f"{CLAIMED_FACTOR:g} or more in {holds} of {len(json)} cases"
        )
    return f"{sentence}."


def _applied(data: RunData) -> list[str]:
    rows, sentences = measured(data), []
    for engine, mine in rows[(rows["mask"] == "slices") & (rows["masks"] > 0)].groupby("engine", sort=False):
        said = f"{engine}: a slice applies to {format_share(mine['applied'].sum() / mine['masks'].sum())} of the masks"
        if mine["wide_masks"].sum():
            said += f", and to {format_share(mine['wide_applied'].sum() / mine['wide_masks'].sum())} of the wide ones"
        sentences.append(f"{said}.")
    return sentences


def _left(data: RunData) -> list[str]:
    remaining = left(data)
    told = [
        f"{engine} {format_share(shares.median())} ({format_share(shares.min())} to {format_share(shares.max())})"
        for engine, shares in ((engine, remaining[engine].dropna()) for engine in remaining)
        if len(shares)
    ]
    return [f"Nodes left to walk, median over the cases and range: {'; '.join(told)}."] if told else []


def _same_masks(data: RunData) -> str:
    counted = failure_counts(data.results)
    if not counted:
        return f"All {len(data.results):,} rows succeeded: every engine gave the same masks as its walk."
    return f"Of {len(data.results):,} rows these failed: {counted}."
