"""Speed beside skew: of an experiment on backends that has measured ``skew``, too, each contender's costs and
distances.

Contenders are joined by label, and a model's prompts by its tokenizer: costs are medians over the regexes and choices
of that tokenizer, distances means over its prompts. Grammars have no distances, so they are in a table of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare import Column, Points, Results, Summary
from tokdfa.lab.declare.columns import seconds, text

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Backend -> the family of strategies that it belongs to.
FAMILIES = {
    **dict.fromkeys(("earley_trie", "llguidance"), "lexer and Earley rows, trie walk"),
    **dict.fromkeys(("pushdown_trie", "glrmask", "grid"), "pushdown automaton, trie walk"),
    **dict.fromkeys(("cfg_fsm", "xgrammar", "xgrammar_cfgzip"), "pushdown automaton, masks of its states"),
    **dict.fromkeys(("token_index", "tokens_dfa", "outlines_core", "outlines_2023"), "automaton over tokens"),
    **dict.fromkeys(("direct_merge", "cartesian_merge"), "proper automaton over tokens"),
}
_COSTS = ("set_up_s", "compile", "first_mask", "mask_p50", "mask_mean", "mask_p99", "mask_max", "advance_p50")
_MEMORY = ("memory_peak_bytes", "memory_retained_bytes")

COLUMNS = {
    column.name: column
    for column in (
        *(text(name) for name in ("tokenizer", "family", "model")),
        text("label", "strategy"),
        *(
            Column(name, title, "s", "lower", "", 1e-9)
            for name, title in (
                ("compile", "compile"),
                ("first_mask", "time to first mask"),
                ("mask_p50", "mask, p50"),
                ("mask_mean", "mask, mean"),
                ("mask_p99", "mask, p99"),
                ("mask_max", "longest mask"),
                ("advance_p50", "advance, p50"),
            )
        ),
        seconds("set_up_s", "set-up"),
        Column("memory_peak_bytes", "peak memory", "B", "lower"),
        Column("memory_retained_bytes", "retained memory", "B", "lower"),
        Column("tv", "total variation", "", "lower", "exact, mean over the prompts"),
        Column("tv_open", "open", "", "lower", "between the bounds of the total variation, at most"),
    )
}
TABLES = (
    Summary(
        "speed_and_skew",
        "Speed and skew",
        "Regexes and choices: medians over the constraints of what a compile, masks, an advance and the memory "
        "take; a p99 is a median of p99s. Total variation: of the answers that masks give to prompts "
        "with the same choices from the model's own distribution, exact up to `open`, mean over the prompts.",
        by=("tokenizer", "family", "label"),
        values=(*_COSTS, *_MEMORY, "tv", "tv_open"),
        brief=("tokenizer", "strategy", "compile", "mask, mean", "total variation"),
    ),
    Summary(
        "speed_of_grammars",
        "Speed, of grammars",
        "The same for grammars, of strategies that take them.",
        by=("tokenizer", "family", "label"),
        values=(*_COSTS, *_MEMORY),
        frame="grammars",
    ),
)
CHARTS = (
    Points(
        "speed_against_skew",
        "Speed against skew: mean time of a mask, and total variation",
        "One point a strategy: better is down and to the left.",
        x="mask_mean",
        y="tv",
        panels="tokenizer",
        hover=("family", "compile", "memory_retained_bytes"),
        where="tv.notna()",
    ),
)


def together(data: RunData) -> Results | None:
    """The rows of a run by contender and tokenizer; None if it has not measured both."""
    section = data.sections.get("skew")
    if section is None or data.kind != "backends":
        return None
    items, skew = data.declared.rows(), section.declared.rows()
    if items.empty or skew.empty:
        return None
    regular = items[items["constraint_kind"].isin(["regex", "choice"])]
    joined = _costs(regular).merge(_distances(skew, section), on=["tokenizer", "label"], how="left")
    grammars = _costs(items[items["constraint_kind"] == "grammar"])
    return Results({"": joined, "grammars": grammars}, COLUMNS, "label", ("tokenizer",))


def _costs(items: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in (*_COSTS, *_MEMORY) if name in items]
    done = items[items["status"] == "ok"]
    found = done.groupby(["tokenizer", "label", "backend"], sort=False)[names].median().reset_index()
    return found.assign(family=found["backend"].map(FAMILIES).fillna("other"))


def _distances(skew: pd.DataFrame, section: RunData) -> pd.DataFrame:
    """The mean total variation of each engine on the prompts of a model, by the model's tokenizer."""
    tokenizer_of = {}
    for model in section.config["settings"]["models"]:
        name, tokenizer = (model["name"], model.get("tokenizer")) if isinstance(model, dict) else (model, None)
        tokenizer_of[name] = tokenizer or name
    by = ["model", "engine"]
    found = skew.groupby(by, sort=False).agg(tv=("total_variation", "mean"), tv_open=("width", "max")).reset_index()
    names = found["model"].map(lambda name: tokenizer_of.get(str(name).partition(" ")[0], name))
    return found.rename(columns={"engine": "label"}).assign(tokenizer=names).drop(columns="model")
