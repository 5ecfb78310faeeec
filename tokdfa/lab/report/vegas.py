"""Reports on runs of kind ``vegas``: preprocessing a constraint as a whole, by parts, and with a library of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import Metric, significant
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: variant -> what tables and plots call it, in their order.
VARIANTS = {
    "whole": "as a whole",
    "parts": "by parts",
    "library": "library of usual types",
    "seen": "all parts known",
}
SECONDS = Metric("vegas_seconds", "preprocessing", "from the DFA over bytes, median", "s", "results", "seconds")
MERGING = Metric("vegas_merging", "merging", "merging alone, median", "s", "results", "merge_seconds")
_BYTES = Metric("library_bytes", "library", "bytes on the disk", "B", "results", "bytes")
_MEMBERS = Metric("members", "members", "members of the object", "", "results", "members", better="neither")
_NUMBERS = (
    *("members", "seconds", "merge_seconds", "find_seconds", "parts", "distinct", "known"),
    *("states", "transitions", "bytes"),
)


class Gain(NamedTuple):
    """How many cases were measured in two ways, and the median and range of the factors of seconds."""

    cases: int
    median: float
    low: float
    high: float


def measured(data: RunData) -> pd.DataFrame:
    """The rows of the run, with floating-point numbers (NaN where there is none)."""
    rows = complete_columns(data.results, (), _NUMBERS)
    for column in ("variant", "equal"):
        if column not in rows:
            rows[column] = None
    return rows


def cases(rows: pd.DataFrame) -> pd.DataFrame:
    """Those about constraints."""
    return rows[rows["family"] != "library"]


def gain(rows: pd.DataFrame, variant: str, column: str = "seconds") -> Gain | None:
    """How much faster than as a whole `variant` is, over the cases of `rows`; None if there are none."""
    of = rows.pivot(index=["tokenizer", "case"], columns="variant", values=column)
    if not {"whole", variant} <= set(of):
        return None
    factors = (of["whole"] / of[variant]).dropna()
    return Gain(len(factors), factors.median(), factors.min(), factors.max()) if len(factors) else None


def build_tables(data: RunData) -> list[Table]:
    """Gains by family, the objects, the regexes and schemas, and the library."""
    rows = measured(data)
    named = cases(rows)
    objects, regexes = named[named["members"].notna()], named[named["members"].isna()]
    return [
        _gains(named),
        _cases_table(objects, "vegas_objects", "Objects by number of members"),
        _cases_table(regexes, "vegas_regexes", "Regexes and schemas"),
        _library(rows[rows["family"] == "library"]),
    ]


def _gains(rows: pd.DataFrame) -> Table:
    """One row per tokenizer and family: how many times faster each variant is."""
    entries = []
    for (tokenizer, family), group in rows.groupby(["tokenizer", "family"], sort=False):
        cells = [
            _gain_cell(gain(group, variant, column))
            for column in ("seconds", "merge_seconds")
            for variant in list(VARIANTS)[1:]
        ]
        count = group["case"].nunique()
        entries.append((text_cell(tokenizer), text_cell(family), count_cell(count), *cells))
    names = list(VARIANTS.values())[1:]
    columns = ("tokenizer", "family", "cases", *names, *(f"merging: {name}" for name in names))
    note = (
        "How many times less time than as a whole, from the DFA over bytes to the minimal automaton over tokens, and "
        "for merging alone: median over the cases that both finished, with the range."
    )
    return Table("vegas_gains", "What parts save", note, columns, tuple(entries))


def _gain_cell(found: Gain | None) -> Cell:
    if found is None:
        return NOTHING
    detail = f"{significant(found.low)} to {significant(found.high)}, {found.cases} cases"
    return Cell(f"{significant(found.median)}x", found.median, detail=detail)


def _cases_table(rows: pd.DataFrame, name: str, title: str) -> Table:
    """One row per case: its parts, and the seconds of each variant."""
    entries = []
    for (tokenizer, case), group in rows.groupby(["tokenizer", "case"], sort=False):
        of = {str(row["variant"]): row for _, row in group.iterrows()}
        best = group["seconds"].min()
        times = []
        for variant in VARIANTS:
            row = of.get(variant)
            if row is None or np.isnan(row["seconds"]):
                times.append(NOTHING if row is None else status_cell(row["status"]))
            else:
                merging = f"merging {MERGING.format(row['merge_seconds'])}"
                times.append(number_cell(SECONDS, row["seconds"], row["seconds"] == best)._replace(detail=merging))
        counts = (group["parts"].max(), group["distinct"].max(), of["library"]["known"] if "library" in of else np.nan)
        sizes = (group["states"].max(), group["transitions"].max())
        find = number_cell(MERGING, group["find_seconds"].max())
        entries.append(
            (text_cell(tokenizer), text_cell(case), *map(count_cell, (*counts, *sizes)), find, *times, _equality(group))
        )
    columns = (
        *("tokenizer", "case", "parts", "distinct", "in library", "states", "transitions", "finding parts"),
        *VARIANTS.values(),
        "equal",
    )
    note = (
        "Parts that no token leaves, how many of them are distinct, and how many of these the library of usual types "
        "had; the size of the automaton over tokens; seconds, with those of merging behind them. The lowest is bold. "
        "Equal: whether all variants gave the automaton that merging the whole gives, numbers and all."
    )
    return Table(name, title, note, columns, tuple(entries))


def _equality(group: pd.DataFrame) -> Cell:
    answers = [bool(answer) for answer in group["equal"].dropna()]
    return text_cell("" if not answers else "yes" if all(answers) else "NO")


def _library(rows: pd.DataFrame) -> Table:
    """One row per tokenizer and type."""
    entries = []
    for _, row in rows.iterrows():
        what = "reading it from the disk" if row["case"] == "read" else row["case"]
        cells = (count_cell(row["parts"]), number_cell(SECONDS, row["seconds"]), number_cell(_BYTES, row["bytes"]))
        entries.append((text_cell(row["tokenizer"]), text_cell(what), *cells, text_cell(row["message"])))
    note = (
        "Parts that each type adds to those before it, in the order of the table, and how long that takes. A type that "
        "exceeds the limits is left out in the forms where it does. Parts of a few transitions are not put on the disk."
    )
    columns = ("tokenizer", "type", "new parts", "time", "size", "left out because")
    return Table("vegas_library", "The library of usual types", note, columns, tuple(entries))


def build_plots(data: RunData) -> list[Plot]:
    """For each tokenizer: preprocessing against the number of members, a panel per form."""
    title = "Preprocessing by number of members"
    if data.results.empty:
        return [left_out("vegas", title, "the run has no results yet")]
    rows = cases(measured(data))
    objects = rows[rows["members"].notna() & rows["seconds"].notna()]
    if objects.empty:
        return [left_out("vegas", title, "no object was measured")]
    with style.drawing():
        return [_lines(mine, str(tokenizer)) for tokenizer, mine in objects.groupby("tokenizer", sort=False)]


def _lines(rows: pd.DataFrame, tokenizer: str) -> Plot:
    look = style.looks_in_order(list(VARIANTS.values()))
    forms = [str(form) for form in dict.fromkeys(rows["family"])]
    figure, panels = style.new_figure(len(forms), 1.75, sharex=True, sharey=True)
    for axes, form in zip(panels, forms, strict=True):
        for variant, name in VARIANTS.items():
            mine = rows[(rows["family"] == form) & (rows["variant"] == variant)].sort_values("members")
            one = look[name]
            axes.plot(mine["members"], mine["seconds"], **style.curve(one))
            axes.plot(mine["members"], mine["seconds"], color=one.colour, marker=one.marker, linestyle="", markersize=4)
        axes.set_title(style.drawable(form, 40))
        axes.set_yscale("log")
        axes.set_xscale("log")
    for axes in panels:
        style.set_axis(axes, "y", SECONDS, "", log=True)
    figure.supylabel("preprocessing (lower is better)", fontsize=style.RC["axes.labelsize"])
    style.set_axis(panels[-1], "x", _MEMBERS, "members of the object", log=True)
    ticks = sorted(set(rows["members"].astype(int)))
    panels[-1].set_xticks(ticks, [f"{tick}" for tick in ticks])
    style.legend(figure, list(look), look, "curves")
    caption = "From the minimal DFA over bytes to the minimal automaton over tokens, medians; both axes logarithmic."
    return Plot(f"vegas_{slug(tokenizer)}", f"Preprocessing by number of members: {tokenizer}", caption, figure)


def headlines(data: RunData) -> list[str]:
    """Whether the automata are equal, what parts save, what the library holds, and what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = measured(data)
    named = cases(rows)
    compared = named[(named["variant"] != "whole") & named["equal"].notna()]
    equal = int(compared["equal"].astype(bool).sum())
    sentences = [
        f"{equal:,} of {len(compared):,} automata made by parts are the automaton that merging the whole makes, "
        "numbers and all."
    ]
    for tokenizer, group in named.groupby("tokenizer", sort=False):
        parts = []
        for variant, name in list(VARIANTS.items())[1:]:
            found = gain(group, variant)
            if found is not None:
                low, high = significant(found.low), significant(found.high)
                parts.append(f"{name} {significant(found.median)}x ({low} to {high})")
        if parts:
            sentences.append(f"{tokenizer}, speed against merging the whole, median (range): {'; '.join(parts)}.")
        objects = group[group["members"].notna()]
        largest = objects[objects["members"] == objects["members"].max()]
        for form, mine in largest.groupby("family", sort=False):
            sentences += _largest(str(tokenizer), str(form), mine)
    failed = rows[rows["status"] != "ok"]
    if len(failed):
        sentences.append(f"{len(failed)} of {len(rows)} measurements exceed a limit or fail: {failure_counts(failed)}.")
    return sentences


def _largest(tokenizer: str, form: str, rows: pd.DataFrame) -> list[str]:
    """``mistral-v1, yaml, 32 members: 54 parts, 35 distinct, 3 of them in the library; 97 ms as a whole, ...``."""
    times = [
        f"{SECONDS.format(row['seconds'])} {VARIANTS[str(row['variant'])]}"
        for _, row in rows.iterrows()
        if not np.isnan(row["seconds"])
    ]
    if not times:
        return []
    known = rows.loc[rows["variant"] == "library", "known"].max()
    in_library = f", {known:.0f} of them in the library" if not np.isnan(known) else ""
    members = rows["members"].iloc[0]
    return [
        f"{tokenizer}, {form}, {members:.0f} members: {rows['parts'].max():.0f} parts, {rows['distinct'].max():.0f} "
        f"distinct{in_library}; {', '.join(times)}."
    ]
