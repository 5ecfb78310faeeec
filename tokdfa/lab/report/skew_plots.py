"""The plots of a run of kind ``skew``: one choice through all engines, or how skew is spread over many prompts.

Engines that agree are drawn once, under their leader's name (`tokdfa.lab.report.skew_data`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.lab.report import style
from tokdfa.lab.report.model_rows import models
from tokdfa.lab.report.plots import Plot
from tokdfa.lab.report.skew_data import (
    FEW,
    IDEAL,
    LANGUAGES,
    SEED,
    engines,
    grouped,
    is_seed,
    leader_label,
    leaders,
    probabilities_of,
    prompt_count,
    shown_choice,
)

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData


def build(data: RunData, rows: pd.DataFrame) -> list[Plot]:
    """All plots of rows with at least one engine."""
    named = rows[rows["strategy"] != IDEAL]
    look = style.looks(dict(zip(named["strategy"].astype(str), named["backend"].astype(str), strict=True)))
    with style.drawing():
        if prompt_count(rows) == 1:
            return [_one_choice(data, rows, look)]
        if prompt_count(rows) <= FEW:
            return [_by_prompt(data, rows, look)]
        return [_ecdf(data, rows, look), _by_size(data, rows, look), _by_topic(data, rows, look)]


def _measured(data: RunData, rows: pd.DataFrame) -> list[str]:
    """The models with at least one engine compared."""
    found = set(rows.loc[rows["strategy"] != IDEAL, "model"])
    return [model for model in models(data) if model in found]


def _distance_axis(axes: object, label: str = "total variation from the ideal (lower is better)") -> None:
    axes.set_xlabel(label)  # type: ignore[attr-defined]


def _one_choice(data: RunData, rows: pd.DataFrame, look: dict[str, style.Look]) -> Plot:
    """The probability of one choice with each engine, a panel for each model; 002's figures in one of their own."""
    ideals = rows[rows["strategy"] == IDEAL]
    choice = shown_choice(ideals.iloc[0])
    lines = {name: (name, look[name]) for name in engines(rows)}
    panels = [
        (model, {str(row["strategy"]): probabilities_of(row)[choice] for _, row in mine.iterrows()}, lines)
        for model in _measured(data, rows)
        if len(mine := rows[rows["model"] == model])
    ]
    if is_seed(ideals.iloc[0]):
        leading = {
            str(rows.loc[rows["strategy"] == leader, "language"].iloc[0]): leader for leader in leaders(data, rows)
        }
        theirs = {
            language: (LANGUAGES[language], look[leading[language]])
            for language in SEED.probabilities
            if language in leading
        }
        panels.append((f"published: {SEED.model}", SEED.probabilities, theirs))
    heights = [max(2, len(drawn)) for _, _, drawn in panels]
    figure, all_axes = style.new_figure(
        len(panels), 0.5 + 0.21 * sum(heights) / len(panels), sharex=True, height_ratios=heights
    )
    for axes, (title, values, drawn) in zip(all_axes, panels, strict=True):
        axes.axvline(values[IDEAL], color=style.INK, linewidth=1.4)
        shown = [name for name in drawn if name in values]
        for place, name in enumerate(shown):
            axes.hlines(place, values[IDEAL], values[name], color=style.MUTED, linewidth=1.2)
            one = style.points(drawn[name][1]) | {"s": 38}
            axes.scatter([values[name]], [place], zorder=3, clip_on=False, **one)
        axes.set_yticks(range(len(shown)), [style.drawable(drawn[name][0], 26) for name in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.02)
        axes.set_title(style.drawable(title, 40))
        style.bare_rows(axes)
    shown_text = style.drawable(repr(choice), 40)
    all_axes[-1].set_xlabel(f"probability of {shown_text}")
    caption = "Upright line: the model's own distribution. Points: with each engine."
    return Plot("skew_choice", f"Probability of {shown_text}", caption, figure)


def _by_prompt(data: RunData, rows: pd.DataFrame, look: dict[str, style.Look]) -> Plot:
    """The total variation of each leader on each prompt, a panel for each model."""
    led = leaders(data, rows)
    shown = _measured(data, rows)
    prompts = [str(name) for name in dict.fromkeys(rows["prompt"])]
    figure, panels = style.new_figure(len(shown), 0.5 + 0.26 * len(prompts), sharex=True)
    for axes, model in zip(panels, shown, strict=True):
        for leader in led:
            mine = rows[(rows["model"] == model) & (rows["strategy"] == leader)]
            places = [prompts.index(str(prompt)) for prompt in mine["prompt"]]
            axes.scatter(mine["total_variation"], places, clip_on=False, zorder=3, **style.points(look[leader]))
        axes.set_yticks(range(len(prompts)), [style.drawable(name, 26) for name in prompts])
        axes.set_ylim(len(prompts) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.02)
        axes.set_title(style.drawable(model, 40))
        style.bare_rows(axes)
    _distance_axis(panels[-1])
    _leader_legend(figure, led, look, "points")
    return Plot(
        "skew_prompts", "Skew of each prompt", "Middles of the bounds; engines that agree share a point.", figure
    )


def _ecdf(data: RunData, rows: pd.DataFrame, look: dict[str, style.Look]) -> Plot:
    """The share of prompts with at most so much skew."""
    led = leaders(data, rows)
    shown = _measured(data, rows)
    figure, panels = style.new_figure(len(shown), 2.5, sharex=True)
    for axes, model in zip(panels, shown, strict=True):
        mine = rows[rows["model"] == model]
        for leader in led:
            values = np.sort(mine.loc[mine["strategy"] == leader, "total_variation"].to_numpy())
            shares = np.arange(1, len(values) + 1) / max(1, len(values))
            axes.plot([0, *values, 1], [0, *shares, 1], drawstyle="steps-post", **style.curve(look[leader]))
        axes.set_title(f"{style.drawable(model, 30)}, {prompt_count(mine):,} prompts")
        axes.set(ylabel="share of prompts", ylim=(0, 1.03), xlim=(-0.01, 1.01))
    _distance_axis(panels[-1], "total variation from the ideal (left is better)")
    _leader_legend(figure, led, look, "curves")
    title = "Skew: share of prompts with at most so much"
    return Plot("skew_ecdf", title, "Engines that agree on every prompt to 1e-9 share a curve.", figure)


def _by_size(data: RunData, rows: pd.DataFrame, look: dict[str, style.Look]) -> Plot:
    return _by_group(data, rows, look, "count", "skew_by_count", "Skew by number of choices")


def _by_topic(data: RunData, rows: pd.DataFrame, look: dict[str, style.Look]) -> Plot:
    return _by_group(data, rows, look, "topic", "skew_by_topic", "Skew by topic")


def _by_group(
    data: RunData, rows: pd.DataFrame, look: dict[str, style.Look], column: str, name: str, title: str
) -> Plot:
    """A strip of points for each group and leader, a panel for each model; the medians stand out."""
    led = leaders(data, rows)
    shown = _measured(data, rows)
    of_row, names = grouped(rows, column)
    step = len(led) + 0.8
    figure, panels = style.new_figure(len(shown), 0.5 + 0.115 * step * len(names), sharex=True)
    for axes, model in zip(panels, shown, strict=True):
        for lane, leader in enumerate(led):
            for place, group in enumerate(names):
                chosen = (rows["model"] == model) & (rows["strategy"] == leader) & (of_row == group)
                values = rows.loc[chosen, "total_variation"].to_numpy()
                if not len(values):
                    continue
                height = np.full(len(values), place * step + lane)
                one = style.points(look[leader])
                axes.scatter(values, height, clip_on=False, **(one | {"s": 9, "alpha": 0.4}))
                axes.scatter([np.median(values)], height[:1], zorder=3, clip_on=False, **(one | {"s": 34}))
        middle = (len(led) - 1) / 2
        axes.set_yticks(np.arange(len(names)) * step + middle, [style.drawable(group, 20) for group in names])
        axes.set_ylim(len(names) * step - 0.5, -0.9)
        axes.set_xlim(-0.01, 1.01)
        axes.set_title(style.drawable(model, 40))
        axes.set_ylabel({"count": "choices of a prompt", "topic": "topic"}[column])
        style.bare_rows(axes)
    _distance_axis(panels[-1])
    _leader_legend(figure, led, look, "points")
    return Plot(name, title, "Small points: prompts; large ones: their median.", figure)


def _leader_legend(figure: object, led: dict[str, list[str]], look: dict[str, style.Look], of: str) -> None:
    labels = {leader_label(leader, others): look[leader] for leader, others in led.items()}
    style.legend(figure, list(labels), labels, of)  # type: ignore[arg-type]
