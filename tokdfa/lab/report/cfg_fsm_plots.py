"""The plots of runs of kind ``cfg_fsm``: new masks by grammar, masks a second of terminals in a row, growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.measure.cfg_fsm_names import KEPT
from tokdfa.lab.report import style
from tokdfa.lab.report.cfg_fsm_data import (
    GROWTH,
    MASK,
    RATE,
    SOURCE_RATE,
    SOURCE_TOKENIZER,
    TIMES,
    by_engine,
    engines,
    growth,
    rates,
)
from tokdfa.lab.report.metrics import Metric
from tokdfa.lab.report.plots import MAX_GROUPS, Plot, grouped_bars, left_out, slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: What the growth is drawn against.
_SIZES = {
    part: Metric(slug(part), words, words, "", "results", "parameter", better="neither")
    for part, words in GROWTH.items()
}
#: Column of engines -> the title and the caption of its bars.
_BARS = {
    "cold_ns_p50": ("New masks after a compile", "Medians. What an engine builds while it makes them is included."),
    "again_ns_p50": (
        "Masks made again",
        "Medians. All is built, no mask is kept; engines that cannot do so have no bar.",
    ),
}


def build_plots(data: RunData) -> list[Plot]:
    """Bars by grammar and tokenizer, bars of masks a second, and curves of growth."""
    if data.results.empty:
        return [left_out("cfg_fsm", "LALR(1) with a contextual lexer", "the run has no results yet")]
    with style.drawing():
        return [*_by_grammar(data), *_concatenation(data), *(_growth(data, part) for part in GROWTH)]


def _by_grammar(data: RunData) -> Iterator[Plot]:
    rows = engines(data)
    if rows.empty:
        yield left_out("grammars", "Masks by grammar", "no engine has replayed a grammar")
        return
    look = style.looks(dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True)))
    for column, (title, caption) in _BARS.items():
        table = by_engine(data, column)
        for tokenizer in dict.fromkeys(table.index.get_level_values("tokenizer")):
            mine = table.loc[tokenizer].dropna(how="all").head(MAX_GROUPS)
            name = f"{column.partition('_')[0]}_{slug(str(tokenizer))}"
            yield Plot(name, f"{title}: {tokenizer}", caption, grouped_bars(mine, TIMES[column], look, {}))


def _concatenation(data: RunData) -> Iterator[Plot]:
    table = rates(data).drop(columns=KEPT, errors="ignore")
    if table.empty:
        yield left_out("concatenation", "Masks per second of terminals in a row", "no case was measured")
        return
    look = style.looks_in_order([str(way) for way in table.columns])
    for tokenizer in dict.fromkeys(table.index.get_level_values("tokenizer")):
        figure = grouped_bars(table.loc[tokenizer], RATE, look, {})
        figure.axes[0].axvline(SOURCE_RATE, color=style.INK, linewidth=1, linestyle="--")
        caption = (
            f"By what is kept between masks, which is no mask. Dashed: the {SOURCE_RATE:,.0f} that 003 reports of its "
            f"own way, with {SOURCE_TOKENIZER}, on its author's machine."
        )
        title = f"Masks per second of terminals in a row: {tokenizer}"
        yield Plot(f"concatenation_{slug(str(tokenizer))}", title, caption, figure)


def _growth(data: RunData, part: str) -> Plot:
    """A panel per tokenizer and grammar, a curve per way."""
    name, title = f"by_{slug(part)}", f"A mask against {GROWTH[part]}"
    table = growth(data, part)
    if table.empty:
        return left_out(name, title, "no sizes were measured")
    present = [str(way) for way in table.columns]
    look = style.looks_in_order(present)
    groups = list(table.groupby(level=["tokenizer", "constraint"], sort=False))
    figure, panels = style.new_figure(len(groups), 1.6, sharex=True, sharey=True)
    for axes, ((tokenizer, constraint), group) in zip(panels, groups, strict=True):
        _curves(axes, group, look)
        axes.set_title(style.drawable(f"{constraint}, {tokenizer}", 40))
        style.set_axis(axes, "y", MASK, "mask", log=True)
    style.set_axis(panels[-1], "x", _SIZES[part])
    style.legend(figure, present, look, "curves")
    caption = "A new mask, a mean over the situations, by what is kept between masks. Both axes are logarithmic."
    return Plot(name, title, caption, figure)


def _curves(axes: object, group: pd.DataFrame, look: dict[str, style.Look]) -> None:
    sizes = group.index.get_level_values("parameter")
    for way in group.columns:
        one = look[str(way)]
        axes.plot(sizes, group[way], marker=one.marker, markersize=4, **style.curve(one))  # type: ignore[attr-defined]
