"""The plots of runs of kind ``tokens_dfa_ablation``.

Compile times are drawn in units of the token index's on the same regex, since regexes differ by a hundred times; the
times themselves stand at the bars. A switch is a dot and a range on a logarithmic axis, so that twice as fast and half
as fast are equally far from 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_seconds, short_factor
from tokdfa.lab.report.plots import MAX_GROUPS, Plot, left_out
from tokdfa.lab.report.tokens_dfa_ablation_data import (
    BASELINE,
    DEFAULT,
    NAMED,
    PEER,
    PHASES,
    SEED,
    SETTINGS,
    by_regex,
    factors,
    judged,
    largest_vocabulary,
    measured,
    speeds,
)

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

FACTOR = Metric(
    "switch_factor",
    "without the switch over with it",
    "what a variant without a switch takes over what one with it takes",
    "ratio",
    "results",
    "compile_s",
    better="higher",
)
OVER_BASELINE = Metric(
    "over_baseline",
    f"compile time over that of {BASELINE}",
    f"compile time over that of {BASELINE} on the same tokenizer and regex",
    "ratio",
    "results",
    "compile_s",
    scale="linear",
)
COUNT = Metric(
    "narrowing",
    "tokens or classes",
    "what is left of the vocabulary",
    "",
    "results",
    "size_token_classes",
    better="neither",
)


def build_plots(data: RunData) -> list[Plot]:
    """Compile time by phase, the factors of the switches, and what is left of the tokens."""
    if data.results.empty:
        return [left_out("tokens_dfa_ablation", "Parts of the tokens DFA", "the run has no results yet")]
    with style.drawing():
        return [phase_bars(data), switch_factors(data), narrowing(data)]


def phase_bars(data: RunData) -> Plot:
    """Stacked bars of the phases, one panel per named variant, in units of the token index's compile time."""
    name, title = "compile_phases", "Compile time by phase"
    rows = measured(data)
    base = rows[rows["variant"] == BASELINE]
    if base.empty:
        return left_out(name, title, f"{BASELINE}, which the bars are measured by, has no result")
    tokenizer = largest_vocabulary(base)
    rows = rows[(rows["tokenizer"] == tokenizer) & rows["variant"].isin([label for label in NAMED if label != PEER])]
    unit = base[base["tokenizer"] == tokenizer].set_index("constraint")["compile_s"].head(MAX_GROUPS)
    labels = [label for label in NAMED if (rows["variant"] == label).any()]
    used = [phase for phase in PHASES if rows[f"phase_{phase}"].notna().any()]
    look = style.looks_in_order(used)
    figure, panels = style.new_figure(len(labels), 0.45 + 0.16 * len(unit), sharex=True)
    for axes, label in zip(panels, labels, strict=True):
        mine = rows[rows["variant"] == label].set_index("constraint").reindex(unit.index)
        left = unit * 0
        for phase in used:
            widths = (mine[f"phase_{phase}"] / unit).fillna(0)
            axes.barh(range(len(unit)), widths, left=left, height=0.8, **{**style.bars(look[phase]), "linewidth": 0})
            left = left + widths
        for place, (end, seconds) in enumerate(zip(left, mine["compile_s"], strict=True)):
            style.annotate_end(axes, end, place, "no result" if math.isnan(seconds) else format_seconds(seconds), 8)
        axes.set_yticks(range(len(unit)), [style.drawable(str(constraint), 18) for constraint in unit.index])
        axes.tick_params(axis="y", labelsize=8.5)
        axes.set_ylim(len(unit) - 0.4, -0.6)
        axes.set_title(NAMED[label])
        style.bare_rows(axes)
        axes.margins(x=0.16)
    style.set_axis(panels[-1], "x", OVER_BASELINE, f"over {BASELINE}'s (lower is better)")
    style.legend(figure, used, look, "bars")
    caption = f"{tokenizer}, one thread; at the bars their compile time."
    peer = [speed.factor for speed in speeds(data, BASELINE, PEER) if speed.tokenizer == tokenizer]
    if peer:
        caption += f" Not drawn: {PEER}, {short_factor(peer[0])} to {short_factor(peer[-1])} times {BASELINE}."
    return Plot(name, title, caption, figure)


def switch_factors(data: RunData) -> Plot:
    """A dot and a range for each switch, over its pairs: of the whole compile, and of its own phases."""
    name, title = "switches", "What each switch buys"
    found = judged(data)
    if not found:
        return left_out(name, title, "no two variants differ in one switch only")
    settings = {setting: [entry[1:] for entry in found if entry[0] == setting] for setting, _, _ in found}
    heights = [len(entries) + 1.2 for entries in settings.values()]
    panel_height = 0.36 * sum(heights) / len(settings)
    figure, panels = style.new_figure(len(settings), panel_height, sharex=True, height_ratios=heights)
    look = style.looks_in_order(["whole compile", "its phases"])
    for axes, (setting, entries) in zip(panels, settings.items(), strict=True):
        axes.set_xscale("log")
        axes.axvline(1, color=style.INK, linewidth=1)
        for place, (switch, pair) in enumerate(entries):
            _draw_factors(axes, place - 0.16, factors(pair, ("compile_s",)), look["whole compile"])
            if switch.phases:
                _draw_factors(axes, place + 0.16, factors(pair, switch.columns), look["its phases"])
        axes.set_yticks(range(len(entries)), [style.drawable(switch.title, 26) for switch, _ in entries])
        axes.set_ylim(len(entries) - 0.4, -0.6)
        axes.set_title(SETTINGS.get(setting, setting))
        style.bare_rows(axes)
    style.set_axis(panels[-1], "x", FACTOR, "without it over with it (above 1 it pays)")
    style.legend(figure, list(look), look, "points")
    return Plot(name, title, "Dots: median over all pairs; thick: the middle half; thin: lowest to highest.", figure)


def _draw_factors(axes: Any, place: float, ratios: pd.Series[float], look: style.Look) -> None:
    if len(ratios):
        for low, high, width in ((0.0, 1.0, 0.9), (0.25, 0.75, 2.8)):
            ends = [ratios.quantile(low), ratios.quantile(high)]
            axes.plot(ends, [place, place], color=look.colour, linewidth=width, solid_capstyle="butt")
        axes.plot(ratios.median(), place, color=look.colour, marker=look.marker, markersize=5)


def narrowing(data: RunData) -> Plot:
    """From tokens to token classes: one line per regex, for the largest vocabulary."""
    name, title = "narrowing", "From tokens to token classes"
    both = {place: found for place, found in by_regex(data) if DEFAULT in found and SEED in found}
    if not both:
        return left_out(name, title, f"no regex has a result of both {NAMED[DEFAULT]!r} and {NAMED[SEED]!r}")
    tokenizer = max(both, key=lambda place: both[place][DEFAULT]["vocab_size"])[0]
    shown = {constraint: found for (place, constraint), found in both.items() if place == tokenizer}
    look = style.looks_in_order(list(shown)[:MAX_GROUPS])
    figure, (axes,) = style.new_figure(1, 3.2)
    for constraint, one in look.items():
        seed = shown[constraint][SEED]
        values = [seed[column] for column in ("vocab_size", "size_tokens_left", "size_class_strings")]
        values.append(shown[constraint][DEFAULT]["size_token_classes"])
        axes.plot(range(len(values)), values, color=one.colour, marker=one.marker, markersize=5)
    axes.set_xticks(range(4), ["tokens", "without\ndead bytes", "class\nstrings", "token\nclasses"])
    style.set_axis(axes, "y", COUNT)
    style.legend(figure, list(look), look, "points")
    caption = f"{tokenizer}. Class strings are what 001 walks from every state; token classes are the table's columns."
    return Plot(name, title, caption, figure)
