"""Reports on runs of kind ``skew``: each engine's distribution over the choices of prompts, beside the ideal one.

What is told of a distance is its middle, and differences are counted only where their intervals are apart
(`tokdfa.lab.report.skew_data`). A choice is on top only if it is certain to be. The figures that 002 published are for
another model; they stand beside ours and are compared with nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, share_cell, text_cell
from tokdfa.lab.report import skew_plots
from tokdfa.lab.report.metrics import significant
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models, models_table
from tokdfa.lab.report.plots import left_out
from tokdfa.lab.report.skew_data import (
    DISTANCES,
    FEW,
    IDEAL,
    LANGUAGES,
    OPEN,
    SEED,
    agreements,
    choices_of,
    engines,
    grouped,
    is_seed,
    leader_label,
    leaders,
    left_out_prompts,
    nearer,
    probabilities_of,
    prompt_count,
    shown_choice,
    strategies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.plots import Plot

#: Of each model and leader, so many of the prompts with the largest skew are listed.
WORST = 5
#: Choices that are shown of a prompt, the most probable ones.
SHOWN_CHOICES = 6
_KL_NAMES = {"kl_forward": "KL(ideal || it)", "kl_backward": "KL(it || ideal)", "jensen_shannon": "Jensen-Shannon"}


def build_tables(data: RunData) -> list[Table]:
    """All prompts together; few prompts one by one, or the worst of many and groups of them; agreement; failures."""
    rows = strategies(data)
    built = [overview(data, rows)]
    if prompt_count(rows) <= FEW:
        built.append(probabilities(data, rows))
    else:
        built += [worst(data, rows), groups(data, rows, "count"), groups(data, rows, "topic")]
    return [*built, agreement_table(data), models_table(data), failures_table(data, ("prompt", "strategy"))]


def overview(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per model and strategy."""
    several = prompt_count(rows) > 1
    expects = bool(rows["expected"].notna().any())
    lines = []
    for model in models(data):
        for strategy in [IDEAL, *engines(rows)]:
            mine = rows[(rows["model"] == model) & (rows["strategy"] == strategy)]
            if len(mine):
                lines.append((text_cell(model), *_overview_cells(mine, strategy, several, expects)))
    columns = [
        *("model", "strategy", "spellings", "prompts", "total variation"),
        *(("p90", "max") if several else ()),
        *_KL_NAMES.values(),
        *("improper mass", "tokens", "forced"),
        *(("other choice on top",) if several else ()),
        *(("expected on top",) if expects else ()),
        "model rows",
    ]
    middle = "medians over the prompts, " if several else ""
    note = (
        f"Distances from the model's own distribution over the choices, in nats but for total variation: {middle}"
        "middles of their bounds; \u2265: there is no upper bound. Improper mass: of sequences that the tokenizer "
        "would not make. Tokens: of a text. Forced: steps with one allowed token. Model rows: what each strategy needs "
        "by itself, a prompt; in this run rows were shared. Only prompts that every engine went through."
    )
    brief = ("model", "strategy", "total variation", "improper mass", *(("expected on top",) if expects else ()))
    return Table("skew", "Distribution skew", note, tuple(columns), tuple(lines), brief)


def _overview_cells(mine: pd.DataFrame, strategy: str, several: bool, expects: bool) -> Iterator[Cell]:
    language = str(mine["language"].iloc[0])
    yield text_cell(strategy)
    yield text_cell("the model itself" if strategy == IDEAL else LANGUAGES.get(language, language))
    yield count_cell(len(mine))
    is_ideal = strategy == IDEAL
    variation = mine["total_variation"]
    if several:
        for value in (variation.median(), variation.quantile(0.9), variation.max()):
            yield NOTHING if is_ideal else _number(float(value))
    else:
        yield NOTHING if is_ideal else _bounded(mine, "total_variation")
    for name in DISTANCES[1:]:
        yield NOTHING if is_ideal else _bounded(mine, name)
    yield share_cell(float(mine["improper_mass"].median()))
    yield count_cell(float(mine["mean_tokens"].median()))
    yield share_cell(float(mine["forced_share"].median()))
    if several:
        yield NOTHING if is_ideal else _ratio_cell(mine["top_differs"])
    if expects:
        yield _ratio_cell(mine["expected_top"])
    yield count_cell(float(mine["rows"].median()))


def _number(value: float) -> Cell:
    return NOTHING if np.isnan(value) else Cell(significant(float(value)), float(value))


def _bounded(mine: pd.DataFrame, name: str) -> Cell:
    """The median of a distance; a lower bound if one of the prompts has no upper one."""
    value = float(mine[name].median())
    cell = _number(value)
    open_ended = not np.isfinite(mine[f"{name}_high"].dropna()).all()
    return cell._replace(text=f"\u2265 {cell.text}") if open_ended and np.isfinite(value) else cell


def _ratio_cell(flags: pd.Series[float]) -> Cell:
    """``21 of 45``: how many of those that are certain."""
    known = flags.dropna()
    if known.empty:
        return NOTHING
    return Cell(f"{known.sum():.0f} of {len(known)}", float(known.mean()))


def probabilities(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per model, prompt and strategy: the probabilities of the choices."""
    ideals = rows[rows["strategy"] == IDEAL]
    same = {tuple(choices_of(row)) for _, row in ideals.iterrows()}
    columns = sorted(next(iter(same)), key=next(iter(same)).index) if len(same) == 1 else []
    columns = columns if len(columns) <= SHOWN_CHOICES else []
    lines = []
    for model in models(data):
        mine = rows[rows["model"] == model]
        for prompt in dict.fromkeys(mine["prompt"]):
            of_prompt = mine[mine["prompt"] == prompt]
            order = _order(of_prompt)
            for _, row in of_prompt.iterrows():
                found = probabilities_of(row)
                cells = [_probability(found[choice]) for choice in columns] if columns else [_listed(found, order)]
                shares = text_cell(_proper_shares(row)) if row["strategy"] == IDEAL else NOTHING
                lines.append(
                    (*map(text_cell, (model, prompt, row["strategy"])), *cells, _number(row["unresolved"]), shares)
                )
    if columns and any(is_seed(row) for _, row in ideals.iterrows()):
        for language, value in SEED.probabilities.items():
            known = {choice: value if choice == SEED.choice else 1 - value for choice in columns}
            strategy = "ideal" if language == IDEAL else f"published, {LANGUAGES[language]}"
            cells = [_probability(known[choice]) for choice in columns]
            lines.append((*map(text_cell, (SEED.model, "the same", strategy)), *cells, NOTHING, NOTHING))
    heads = [repr(choice) for choice in columns] or ["choices"]
    note = (
        "Probability of each choice, given that it is one of them. Unresolved: what may still be added, to any of "
        "them. Proper share: of the ideal's mass for a choice, what its proper spelling has."
    )
    return Table(
        "skew_probabilities",
        "Probabilities of the choices",
        note,
        ("model", "prompt", "strategy", *heads, "unresolved", "proper share"),
        tuple(lines),
    )


def _order(of_prompt: pd.DataFrame) -> list[str]:
    """The choices of a prompt, the most probable of the ideal first."""
    found = probabilities_of(of_prompt[of_prompt["strategy"] == IDEAL].iloc[0])
    return sorted(found, key=lambda choice: -found[choice])


def _probability(value: float) -> Cell:
    return Cell(f"{value:.5f}", float(value))


def _listed(found: dict[str, float], order: list[str]) -> Cell:
    shown = ", ".join(f"{choice!r} {significant(found[choice])}" for choice in order[:SHOWN_CHOICES])
    return text_cell(shown + (f" and {len(order) - SHOWN_CHOICES} others" if len(order) > SHOWN_CHOICES else ""))


def _proper_shares(row: pd.Series[Any]) -> str:
    """``' William' 99.99%, ...`` of the choices with the most mass."""
    shares = dict(zip(dict.fromkeys(choices_of(row)), json.loads(str(row["proper_shares"])), strict=True))
    found = probabilities_of(row)
    order = sorted(found, key=lambda choice: -found[choice])[:SHOWN_CHOICES]
    return ", ".join(f"{choice!r} {100 * shares[choice]:.4f}%" for choice in order if shares[choice] is not None)


def worst(data: RunData, rows: pd.DataFrame) -> Table:
    """The prompts with the largest skew, for each model and leader."""
    lines = []
    led = leaders(data, rows)
    for model in models(data):
        mine = rows[rows["model"] == model]
        ideals = {str(row["prompt"]): row for _, row in mine[mine["strategy"] == IDEAL].iterrows()}
        for leader in led:
            bent = mine[mine["strategy"] == leader].nlargest(WORST, "total_variation")
            for _, row in bent.iterrows():
                ideal = ideals[str(row["prompt"])]
                true, found = probabilities_of(ideal), probabilities_of(row)
                pair = [
                    text_cell(f"{choice!r} {significant(true[choice])} \u2192 {significant(found[choice])}")
                    for choice in (str(ideal["top"]), str(row["top"]))
                ]
                prompt = text_cell(row["prompt"])._replace(detail=_ending(str(row["text"])))
                cells = (count_cell(row["count"]), _number(row["total_variation"]))
                lines.append((text_cell(model), text_cell(leader_label(leader, led[leader])), prompt, *cells, *pair))
    note = (
        "The most probable choice of the model itself, and that of the engine: its probability by the model alone, "
        "and with the engine. Below a prompt's name: its end."
    )
    columns = ("model", "strategy", "prompt", "choices", "total variation", "on top ideally", "on top here")
    return Table("skew_worst", "Where the skew is largest", note, columns, tuple(lines))


def _ending(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"...{text[-limit:]}"


def groups(data: RunData, rows: pd.DataFrame, column: str) -> Table:
    """One row per model and group, one column per leader: the median of the total variation."""
    led = leaders(data, rows)
    of_row, names = grouped(rows, column)
    lines = []
    for model in models(data):
        for name in names:
            mine = rows[(rows["model"] == model) & (of_row == name)]
            if mine.empty:
                continue
            found = [mine.loc[mine["strategy"] == leader, "total_variation"] for leader in led]
            cells = [_number(one.median())._replace(detail=f"max {significant(one.max())}") for one in found]
            lines.append((text_cell(model), text_cell(name), count_cell(prompt_count(mine)), *cells))
    title = {"count": "Total variation by number of choices", "topic": "Total variation by topic"}[column]
    heads = tuple(leader_label(leader, led[leader]) for leader in led)
    note = "Median over the prompts of a group, and the maximum."
    return Table(
        f"skew_by_{column}", title, note, ("model", title.partition(" by ")[2], "prompts", *heads), tuple(lines)
    )


def agreement_table(data: RunData) -> Table:
    """One row per model and pair of engines that were compared."""
    lines = []
    pairs = ["model", "language", "first", "other"]
    for where, group in agreements(data).groupby(pairs, sort=False):
        model, language, first, other = map(str, where)
        wrong = int((group["status"] != "ok").sum())
        difference = float(group["difference"].max())
        cells = (count_cell(len(group)), Cell(f"{difference:.2g}", difference), count_cell(wrong))
        lines.append((*map(text_cell, (model, LANGUAGES.get(language, language), first, other)), *cells))
    note = (
        "Engines of one token language, compared with the first of it on every prompt: the largest difference in the "
        "probability of any choice, and on how many prompts it is above 1e-9."
    )
    columns = ("model", "spellings", "engine", "compared", "prompts", "largest difference", "above 1e-9")
    return Table("skew_agreement", "Engines of the same token language", note, columns, tuple(lines))


def build_plots(data: RunData) -> list[Plot]:
    """Few prompts: the probability of one choice with every engine, or distances; many: their distribution."""
    if data.results.empty:
        return [left_out("skew", "Distribution skew", "the run has no results yet")]
    rows = strategies(data)
    if not engines(rows):
        return [left_out("skew", "Distribution skew", "no prompt has a distribution of every engine")]
    return skew_plots.build(data, rows)


def headlines(data: RunData) -> list[str]:
    """Agreement; each model's skew by leader; who is nearer to the ideal; 002's figures; what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = strategies(data)
    led = leaders(data, rows)
    sentences = list(_agreement_sentence(data))
    for model in models(data):
        mine = rows[rows["model"] == model]
        if mine.empty:
            continue
        if prompt_count(mine) == 1:
            sentences.append(_one_prompt(mine, model, led))
        else:
            sentences += _many_prompts(mine, model, led)
    if any(is_seed(row) for _, row in rows[rows["strategy"] == IDEAL].iterrows()):
        ideal, plain, proper = (SEED.probabilities[key] for key in (IDEAL, "all", "proper"))
        sentences.append(
            f"Published for Mistral-7B on this prompt (002): P({SEED.choice!r}) is {ideal} ideally, {plain} with all "
            f"spellings, {proper} with proper ones only."
        )
    width = float((rows["total_variation_high"] - rows["total_variation_low"]).max())
    if not np.isnan(width):
        sentences.append(f"Exact up to what was left unresolved: no total variation is open by more than {width:.2g}.")
    sentences += [
        f"{model}: {count} prompt{'s' * (count > 1)} left out of all figures, as an engine failed there or its bounds "
        f"are more than {OPEN:g} apart."
        for model, count in left_out_prompts(data, rows).items()
    ]
    return [*sentences, *failure_sentences(data)]


def _agreement_sentence(data: RunData) -> Iterator[str]:
    compared = agreements(data)
    if compared.empty:
        return
    wrong = int((compared["status"] != "ok").sum())
    largest = f"the largest difference in any probability is {compared['difference'].max():.2g}"
    if wrong:
        yield f"Engines of the same token language DIFFER in {wrong} of {len(compared):,} comparisons: {largest}."
    else:
        yield (
            f"Engines of the same token language have the same distribution to 1e-9 in all {len(compared):,} "
            f"comparisons: {largest}."
        )


def _one_prompt(mine: pd.DataFrame, model: str, led: dict[str, list[str]]) -> str:
    """``smollm2: P(' William') is 0.924 ideally, 0.0108 with token_index (and 4 equal), ...``."""
    by_strategy = {str(row["strategy"]): row for _, row in mine.iterrows()}
    choice = shown_choice(by_strategy[IDEAL])
    parts = [f"{probabilities_of(by_strategy[IDEAL])[choice]:.5f} ideally"]
    for leader, others in led.items():
        if leader in by_strategy:
            row = by_strategy[leader]
            value = probabilities_of(row)[choice]
            distance = significant(float(row["total_variation"]))
            parts.append(f"{value:.5f} with {leader_label(leader, others)}, total variation {distance}")
    return f"{model}: P({choice!r}) is {'; '.join(parts)}."


def _many_prompts(mine: pd.DataFrame, model: str, led: dict[str, list[str]]) -> Iterator[str]:
    parts, tops = [], []
    for leader, others in led.items():
        one = mine[mine["strategy"] == leader]
        variation = one["total_variation"]
        if variation.empty:
            continue
        label = leader_label(leader, others)
        values = [significant(float(value)) for value in (variation.median(), variation.quantile(0.9), variation.max())]
        parts.append(f"{label} {values[0]} (p90 {values[1]}, max {values[2]})")
        known = one["top_differs"].dropna()
        if len(known):
            tops.append(f"{label} on {known.sum():.0f} of {len(known)}")
    count = prompt_count(mine)
    yield f"{model}, {count:,} prompts: total variation from the ideal, median: {', '.join(parts)}."
    if tops:
        yield f"{model}: another choice is on top than ideally: {', '.join(tops)} prompts where both are certain."
    yield from _expected(mine, model, led)
    first, *rest = led
    for other in rest:
        found = nearer(mine, model, other, first)
        if sum(found):
            yield (
                f"{model}: {other} is nearer to the ideal than {first} on {found.nearer} prompts, farther on "
                f"{found.farther}, and neither for certain on {found.open}."
            )


def _expected(mine: pd.DataFrame, model: str, led: dict[str, list[str]]) -> Iterator[str]:
    """How often the expected choice is on top, over the prompts where that is certain for everybody."""
    shown = [IDEAL, *(leader for leader in led if (mine["strategy"] == leader).any())]
    flags = mine[mine["strategy"].isin(shown)].pivot_table(
        index="prompt", columns="strategy", values="expected_top", sort=False, dropna=False
    )
    flags = flags.reindex(columns=shown).dropna()
    if len(flags):
        parts = [f"{flags[name].sum():.0f} with {leader_label(name, led.get(name, []))}" for name in shown]
        parts[0] = parts[0].replace(f"with {IDEAL}", "ideally")
        yield f"{model}: the expected choice is on top {', '.join(parts)}, of {len(flags)} prompts certain for all."
