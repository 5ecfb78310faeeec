"""Reports on runs of kind ``trie_walk``: what one walk of the token trie costs, by mask density and vocabulary size.

A wide mask visits nearly all nodes of the trie, a narrow one skips most subtrees; the time per visited node tells how
good the inner loop is, the time per mask how good the skipping is (004). Both engines are divided by the nodes that
tokdfa's walk visits, so their times per node compare like their times. Building the trie is paid once a vocabulary.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tokdfa.lab.report import style
from tokdfa.lab.report.cells import NOTHING, Cell, Table, count_cell, number_cell, share_cell, text_cell
from tokdfa.lab.report.metrics import METRICS, format_seconds, short_factor
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

OURS = "tokdfa"


def build_tables(data: RunData) -> list[Table]:
    """The walks, and the tries that are walked."""
    return [walks(data), tries(data)]


def walks(data: RunData) -> Table:
    """One row per tokenizer and pattern, one column per engine: time of one mask, time per node, and time over ours."""
    rows = []
    for _, group in data.results.groupby(["tokenizer", "pattern"], sort=False):
        found = {str(entry["engine"]): entry for _, entry in group.iterrows()}
        ours = float(found[OURS]["ns_median"]) if OURS in found else math.nan
        one = group.iloc[0]
        cells = [_time_cell(found[engine], ours) if engine in found else NOTHING for engine in _engines(data)]
        place = (text_cell(one["tokenizer"]), text_cell(one["label"] or one["pattern"]))
        counts = (count_cell(one["allowed"]), share_cell(one["density"]), count_cell(one["nodes_visited"]))
        rows.append((*place, *counts, *cells, count_cell(group["differs"].max())))
    columns = ("tokenizer", "pattern", "allowed", "share", "nodes", *_engines(data), "differs")
    note = (
        f"The mask of a pattern's first state, again and again: median, time over that of {OURS}, time per node. "
        f"Nodes are those that {OURS}'s walk visits. Differs counts tokens in which some engine's mask is not that of "
        f"{OURS}."
    )
    brief = ("tokenizer", "pattern", "share", *_engines(data))
    return Table("trie_walk", "Walks of the token trie", note, columns, tuple(rows), brief)


def _time_cell(entry: pd.Series[Any], ours: float) -> Cell:
    time, node = METRICS["walk_time"], METRICS["node_time"]
    cell = number_cell(time, entry["ns_median"] * time.factor)
    detail = f"{node.format(entry['ns_per_node'] * node.factor)} a node"
    if entry["engine"] == OURS or math.isnan(ours):
        return cell._replace(detail=detail)
    ratio = float(entry["ns_median"]) / ours
    return cell._replace(detail=f"{short_factor(ratio)}x ({detail})", detail_value=ratio)


def tries(data: RunData) -> Table:
    """One row per tokenizer: nodes of its trie, and the time to build it."""
    build = METRICS["trie_time"]
    rows = []
    for tokenizer, group in data.results.groupby("tokenizer", sort=False):
        one = group.iloc[0]
        counts = (one["vocab_size"], one["trie_nodes"], one["trie_nodes"] / one["vocab_size"])
        rows.append(
            (text_cell(tokenizer), *map(count_cell, counts), number_cell(build, one["build_ms"] * build.factor))
        )
    columns = ("tokenizer", "vocabulary size", "trie nodes", "nodes per token", "build time")
    return Table("tries", "The tries", "Median of five builds.", columns, tuple(rows))


def build_plots(data: RunData) -> list[Plot]:
    """Time per node against mask density (a panel per tokenizer), and against vocabulary size."""
    if data.results.empty:
        return [left_out("trie_walk", "Time per trie node", "the run has no results yet")]
    with style.drawing():
        look = style.looks({engine: _program(engine) for engine in _engines(data)})
        return [by_density(data, look), by_vocabulary(data, look)]


def _engines(data: RunData) -> list[str]:
    return [str(engine) for engine in dict.fromkeys(data.results["engine"])]


def _program(engine: str) -> str:
    """The name before the first space or comma: ``llguidance slices off`` is llguidance."""
    return re.split("[ ,]", engine)[0]


def by_density(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Time per node against the share of the vocabulary that is allowed."""
    name, title = "node_time_density", "Time per trie node by mask density"
    known = data.results[(data.results["density"] > 0) & data.results["ns_per_node"].notna()]
    if known.empty:
        return left_out(name, title, "no pattern allows a token")
    metric = METRICS["node_time"]
    tokenizers = [str(tokenizer) for tokenizer in dict.fromkeys(known["tokenizer"])]
    figure, panels = style.new_figure(len(tokenizers), 2.1, sharex=True)
    for axes, tokenizer in zip(panels, tokenizers, strict=True):
        mine = known[known["tokenizer"] == tokenizer]
        for engine, one in look.items():
            points = mine[mine["engine"] == engine].sort_values("density")
            marks = {"marker": one.marker, "markersize": 5}
            axes.plot(points["density"], points["ns_per_node"] * metric.factor, **style.curve(one), **marks)
        axes.set_title(f"{style.drawable(tokenizer, 40)} ({mine['vocab_size'].iloc[0]:,.0f} tokens)")
        axes.set_yscale("log")
        style.set_axis(axes, "y", metric, "per node", log=True)
    style.set_axis(panels[-1], "x", METRICS["density"], "share of the vocabulary allowed")
    style.legend(figure, list(look), look, "curves")
    return Plot(name, title, "One point per pattern; lower is better.", figure)


def by_vocabulary(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Time per node of each tokenizer's widest mask against the vocabulary size."""
    name, title = "node_time_vocabulary", "Time per trie node of the widest mask by vocabulary size"
    widest = widest_masks(data)
    if widest["vocab_size"].nunique() < 2:
        return left_out(name, title, "fewer than two vocabulary sizes")
    metric = METRICS["node_time"]
    figure, (axes,) = style.new_figure(1, 2.3)
    for engine, one in look.items():
        points = widest[widest["engine"] == engine].sort_values("vocab_size")
        marks = {"marker": one.marker, "markersize": 5}
        axes.plot(points["vocab_size"], points["ns_per_node"] * metric.factor, **style.curve(one), **marks)
    axes.set_ylim(bottom=0)
    style.set_axis(axes, "y", metric, "per node")
    style.set_axis(axes, "x", METRICS["vocab_size"], "vocabulary size (tokens)")
    style.legend(figure, list(look), look, "curves")
    return Plot(name, title, "Of each tokenizer the pattern that allows most tokens; lower is better.", figure)


def widest_masks(data: RunData) -> pd.DataFrame:
    """The results of the pattern that allows most tokens, for each tokenizer."""
    results = data.results
    most = results.groupby("tokenizer")["allowed"].transform("max")
    patterns = set(map(tuple, results.loc[results["allowed"] == most, ["tokenizer", "pattern"]].to_numpy()))
    chosen = [
        (tokenizer, pattern) in patterns
        for tokenizer, pattern in zip(results["tokenizer"], results["pattern"], strict=True)
    ]
    return results[chosen]


def headlines(data: RunData) -> list[str]:
    """For each tokenizer's widest mask: our time and time per node, and each peer's time over ours."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    for tokenizer, group in widest_masks(data).groupby("tokenizer", sort=False):
        ours = group[group["engine"] == OURS]
        if ours.empty:
            continue
        one = ours.iloc[0]
        node = format_seconds(one["ns_per_node"] * 1e-9)
        sentence = f"{tokenizer}: the widest mask ({one['allowed']:,.0f} tokens) takes tokdfa "
        sentence += f"{format_seconds(one['ns_median'] * 1e-9)}, {node} a node"
        for _, peer in group[[_program(engine) != OURS for engine in group["engine"]]].iterrows():
            ratio = short_factor(peer["ns_median"] / one["ns_median"])
            sentence += f"; {peer['engine']} takes {format_seconds(peer['ns_median'] * 1e-9)}, {ratio} times as long"
        sentences.append(f"{sentence}.")
    return sentences
