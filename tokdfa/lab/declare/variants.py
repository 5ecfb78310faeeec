"""Declared tables of variants: parts of an ablation (`Pairs`) and values of options (`Options`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, text_cell
from tokdfa.lab.declare.columns import short_factor
from tokdfa.lab.declare.stats import Value, key_parts, paired, per_case, value_of
from tokdfa.lab.declare.tables import Declared

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.columns import Column, Ratio
    from tokdfa.lab.declare.results import Results


@dataclass(frozen=True)
class Variants(Declared):
    """Contenders that differ in one thing, pair by pair: `values` of each case (`over`), and their ratios."""

    values: Sequence[Value] = ()
    over: Sequence[str] = ()

    def numbers(self, results: Results) -> tuple[list[Column], dict[str, list[pd.Series[Any]]]]:
        """What the values are, and of each contender the value of each case."""
        rows = results.rows(self.frame, self.where)
        stats = [value_of(value) for value in self.values]
        groups = rows.groupby(results.engine, sort=False) if results.engine in rows else ()
        over = self.over or results.case
        found = {str(name): [per_case(stat, group, over, results.columns) for stat in stats] for name, group in groups}
        return [stat.described(results.columns) for stat in stats], found


@dataclass(frozen=True)
class Pairs(Variants):
    """What each part of an ablation buys: for each of the experiment's ``parts`` ({part, with, without}) the variant
    without it over the variant with it. Cells: the median over the cases and their range, above 1 if the part pays.
    """

    def build(self, results: Results) -> Table:
        columns, numbers = self.numbers(results)
        built = []
        for part in results.config.get("parts") or []:
            if part["with"] in numbers and part["without"] in numbers:
                having, lacking = numbers[part["with"]], numbers[part["without"]]
                ratios = map(paired, having, lacking, columns)
                ends = _extremes(having[0], lacking[0], columns[0])
                built.append([text_cell(part["part"]), *map(_factor_cell, ratios), *ends])
        return self.known(["part", *(column.head for column in columns), "most for", "least for"], built)


@dataclass(frozen=True)
class Options(Variants):
    """What each value of an option changes against its first value, over all contenders of one backend that differ in
    this option alone. The rows have the columns ``backend`` and ``options``, JSON.
    """

    def build(self, results: Results) -> Table:
        rows = results.rows(self.frame, self.where)
        columns, numbers = self.numbers(results)
        built = []
        changes = _single_changes(rows, results.engine) if numbers and "options" in rows else {}
        for names, pairs in changes.items():
            cells = [text_cell(name) for name in names]
            for place, column in enumerate(columns):
                ratio = _pooled([(numbers[mine][place], numbers[theirs][place]) for mine, theirs in pairs], column)
                cells.append(NOTHING if ratio is None else Cell(ratio.describe(column), ratio.median))
            built.append([*cells, Cell(f"{len(pairs):,}", float(len(pairs)))])
        return self.known(["backend", "option", "value", "against", *(one.head for one in columns), "pairs"], built)


def _single_changes(rows: pd.DataFrame, engine: str) -> dict[tuple[str, str, str, str], list[tuple[str, str]]]:
    """(backend, option, its value, its first value) -> pairs of contenders that differ in nothing else."""
    known = rows.drop_duplicates(engine)[[engine, "backend", "options"]].itertuples(index=False)
    given = [(str(name), str(backend), json.loads(options or "{}")) for name, backend, options in known]
    first: dict[tuple[str, str], Any] = {}
    for _, backend, options in given:
        for option, value in options.items():
            first.setdefault((backend, option), value)
    places = {(backend, json.dumps(options, sort_keys=True)): name for name, backend, options in given}
    found: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
    for name, backend, options in given:
        for option, value in options.items():
            base = first[backend, option]
            other = places.get((backend, json.dumps({**options, option: base}, sort_keys=True)))
            if value != base and other is not None:
                key = (backend, option, json.dumps(value), json.dumps(base))
                found.setdefault(key, []).append((name, other))
    return found


def _pooled(pairs: Sequence[tuple[pd.Series[Any], pd.Series[Any]]], column: Column) -> Ratio | None:
    """The ratio over the cases of all pairs together."""
    import pandas as pd

    mine, theirs = (pd.concat({place: pair[side] for place, pair in enumerate(pairs)}) for side in (0, 1))
    return paired(mine, theirs, column)


def _factor_cell(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return NOTHING
    detail = f"{short_factor(ratio.low)}–{short_factor(ratio.high)}"
    return Cell(f"{short_factor(ratio.median)}x", ratio.median, detail=detail)


def _extremes(mine: pd.Series[Any], theirs: pd.Series[Any], column: Column) -> list[Cell]:
    """The case that the part helps most, and the one that it helps least."""
    ratios = (theirs / mine if column.better != "higher" else mine / theirs).dropna()
    if ratios.empty:
        return [NOTHING, NOTHING]
    names = list(ratios.index.names)
    told = [
        place
        for place, name in enumerate(names)
        if name != "seed" and ratios.index.get_level_values(place).nunique() > 1
    ]
    ends = [key_parts(one) for one in (ratios.idxmax(), ratios.idxmin())]
    return [text_cell(", ".join(str(one[place]) for place in told)) for one in ends]
