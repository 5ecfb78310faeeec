"""Reports on runs of kind ``tokens_dfa_ablation``: what each part of the tokens DFA buys, and in what.

How a switch is judged is explained in `tokdfa.lab.report.tokens_dfa_ablation_data`. Variants that have a name are shown
one by one: the default, 001 as published, both with literals muted, and the baselines. Here are the tables;
`tokdfa.lab.report.tokens_dfa_ablation_plots` and `tokdfa.lab.report.tokens_dfa_ablation_headlines` have the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, readable, text_cell
from tokdfa.lab.report.metrics import METRICS, short_factor, spread
from tokdfa.lab.report.tokens_dfa_ablation_data import (
    BASELINE,
    DEFAULT,
    ENDS,
    NAMED,
    PEER,
    PHASES,
    SEED,
    SETTINGS,
    THREADED,
    THREADS,
    by_regex,
    factors,
    judged,
    measured,
    threaded,
)
from tokdfa.lab.report.tokens_dfa_ablation_headlines import headlines
from tokdfa.lab.report.tokens_dfa_ablation_plots import build_plots

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

__all__ = ["build_plots", "build_tables", "headlines"]

#: Variants whose masks are shown.
MASKED = {**NAMED, "tokens_dfa, no ready_masks": "tokens_dfa, no ready masks"}


def build_tables(data: RunData) -> list[Table]:
    """What each switch buys; compile time by phase; counts; threads; masks; and what failed."""
    return [switches(data), phases(data), counts(data), threads(data), mask_times(data), broken(data)]


def switches(data: RunData) -> Table:
    """One row per setting and switch: median factors with their ranges."""
    rows = []
    for setting, switch, found in judged(data):
        place = (text_cell(SETTINGS.get(setting, setting)), text_cell(switch.title), count_cell(len(found)))
        about = (_factor_cell(found, switch.columns), text_cell(", ".join(switch.phases) or "all"))
        gains = [_factor_cell(found, (column,)) for column in ("size_table_bytes", "mask_ns")]
        rows.append((*place, _factor_cell(found, ("compile_s",)), *about, *gains))
    columns = ("setting", "switch", "pairs", "compile time", "its phases", "which", "table bytes", "mask time")
    note = (
        "Factors: without the switch over with it, so above 1 it pays; median and range over all pairs of variants on "
        "the same tokenizer and regex that differ in it only. Threads: one over two. Its phases are those that it is "
        "about. With muting, the token language is another."
    )
    brief = ("setting", "switch", "compile time", "its phases", "table bytes", "mask time")
    return Table("switches", "What each switch buys", note, columns, tuple(rows), brief)


def _factor_cell(found: pd.DataFrame, columns: tuple[str, ...]) -> Cell:
    ratios = factors(found, columns)
    if ratios.empty:
        return NOTHING
    cell = Cell(f"{short_factor(ratios.median())}x", float(ratios.median()))
    return cell._replace(detail=spread(ratios.min(), ratios.max()).strip(" ()"))


def phases(data: RunData) -> Table:
    """One row per tokenizer, regex and named variant: seconds of the compile and of each phase."""
    metric, rows = METRICS["compile"], []
    for place, found in by_regex(data):
        known = [label for label in NAMED if label in found]
        fastest = min((found[label]["compile_s"] for label in known), default=math.nan)
        for label in known:
            one = found[label]
            whole = number_cell(metric, one["compile_s"], best=one["compile_s"] == fastest)
            if label != PEER and PEER in found:
                ratio = found[PEER]["compile_s"] / one["compile_s"]
                whole = whole._replace(detail=f"{short_factor(ratio)}x", detail_value=ratio)
            parts = [number_cell(metric, one[f"phase_{phase}"]) for phase in PHASES]
            rows.append((*map(text_cell, (*place, NAMED[label])), whole, *parts, count_cell(one["compiles"])))
    columns = ("tokenizer", "constraint", "variant", "compile", *PHASES, "compiles")
    note = (
        "Medians of the timed compiles, one thread; 001 is class strings with all its parts but muting. "
        f"The factor is how many times as fast as {PEER} it is."
    )
    return Table("phases", "Compile time by phase", note, columns, tuple(rows), columns[:4])


def counts(data: RunData) -> Table:
    """One row per tokenizer and regex: what is left of the tokens at each step, and what is kept of the table."""
    steps = ("tokens_left", "class_strings", "graph_nodes")
    kept = ("token_classes", "rows", "transitions", "table_bytes", "mask_bytes")
    rows = []
    for place, found in by_regex(data):
        ours, seed, baseline = (found.get(label) for label in (DEFAULT, SEED, BASELINE))
        sizes = [_size_cell(ours, name) for name in ("dfa_states", "byte_classes")]
        sizes += [_size_cell(seed, name) for name in steps] + [_size_cell(ours, name) for name in kept]
        size = count_cell(next(iter(found.values()))["vocab_size"])
        rows.append((*map(text_cell, place), size, *sizes, _size_cell(baseline, "bytes")))
    names = [name.replace("_", " ") for name in ("dfa_states", "byte_classes", *steps, *kept)]
    columns = ("tokenizer", "constraint", "vocabulary size", *names, f"{BASELINE} bytes")
    note = (
        "Literals not muted. Tokens left after dead bytes, class strings and the nodes of their prefix graphs as in "
        f"001; all others of the default, {DEFAULT}. Memory is that of the arrays, without masks made later."
    )
    brief = ("tokenizer", "constraint", "dfa states", "tokens left", "class strings", "token classes", "table bytes")
    return Table("counts", "What is left of the tokens, and what is kept", note, columns, tuple(rows), brief)


def _size_cell(one: Any, name: str) -> Cell:
    if one is None:
        return NOTHING
    value = float(one[f"size_{name}"])
    return number_cell(METRICS["memory_retained"], value) if name.endswith("bytes") else count_cell(value)


def threads(data: RunData) -> Table:
    """One row per tokenizer, regex and variant of `THREADED`: one thread against two."""
    metric, found, rows = METRICS["compile"], threaded(data), []
    for row in range(len(found)):
        pair = found.iloc[[row]]
        cells = []
        for columns in (THREADS.columns, ("compile_s",)):
            times = [float(pair[[f"{column}_{end}" for column in columns]].sum(axis=1).iloc[0]) for end in ENDS]
            cells += [*(number_cell(metric, seconds) for seconds in times), _factor_cell(pair, columns)]
        one = pair.iloc[0]
        rows.append((*map(text_cell, (one["tokenizer"], one["constraint"], THREADED[one["variant_without"]])), *cells))
    heads = tuple(f"{what}: {part}" for what in ("in parallel", "compile") for part in ("one thread", "two", "factor"))
    note = "In parallel: the phases classes and walks, each thread on a part of the token trie; all else in one thread."
    columns = ("tokenizer", "constraint", "variant", *heads)
    return Table("threads", "One thread and two", note, columns, tuple(rows), (*columns[:3], heads[2], heads[5]))


def mask_times(data: RunData) -> Table:
    """One row per tokenizer and variant: the median over the regexes of their median times, and the slowest regex."""
    rows = []
    for tokenizer, group in measured(data).groupby("tokenizer", sort=False):
        for label, name in MASKED.items():
            mine = group[(group["variant"] == label) & group["mask_ns"].notna()]
            if mine.empty:
                continue
            cells = [text_cell(tokenizer), text_cell(name), count_cell(len(mine))]
            for column, metric in (("mask_ns", METRICS["mask_p50"]), ("advance_ns", METRICS["advance_p50"])):
                slowest = mine.iloc[int(mine[column].argmax())]
                cells.append(number_cell(metric, mine[column].median() * 1e-9))
                cells.append(number_cell(metric, slowest[column] * 1e-9)._replace(detail=str(slowest["constraint"])))
            rows.append(tuple(cells))
    columns = ("tokenizer", "variant", "regexes", "mask", "slowest regex", "advance", "slowest regex to advance")
    note = (
        "Of each regex the median over positions of random walks, each position again and again, the Python call "
        "included; of these the median and the slowest."
    )
    return Table("masks", "Masks and advances", note, columns, tuple(rows), (*columns[:2], *columns[3:6]))


def broken(data: RunData) -> Table:
    """Every contender that failed or gave other masks than the rest, with the reason."""
    columns = ("tokenizer", "constraint", "variant", "status", "message")
    failed = data.results[data.results["status"] != "ok"]
    rows = [
        tuple(text_cell(readable(one[name]) if name == "status" else one[name]) for name in columns)
        for _, one in failed.iterrows()
    ]
    note = "Contenders without a result, or whose masks are not those of the others; they are in no other table."
    return Table("broken", "Failed variants", note, columns, tuple(rows))
