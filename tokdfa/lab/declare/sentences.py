"""Declared sentences: templates with statistics in their blanks, who is best, how items ended.

What a sentence lacks a number for is left unsaid, so a report of an unfinished run says what it can.
"""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import between, short_factor
from tokdfa.lab.declare.stats import Quotient, Stat, Value, is_known, key_parts, per_case, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

    from tokdfa.lab.declare.results import Results


@dataclass(frozen=True)
class Say:
    """A template, once for each group `per`: its blanks are columns of `per`, names of `blanks`, or statistics.

    ``Say("{tokenizer}: {engine} takes {mask_ns:p99}.", per=("tokenizer", "engine"))``; `blanks` are for what needs more
    words than that. Ratios (`Quotient`) are written as ``3.2``. With a `lead` all groups make one sentence: the lead,
    whose blanks are of all rows, then the groups with semicolons between.
    """

    template: str
    per: Sequence[str] = ()
    blanks: Mapping[str, Value] = field(default_factory=dict)
    frame: str = ""
    where: str = ""
    lead: str = ""

    def sentences(self, results: Results) -> list[str]:
        """The sentences of a run's results."""
        rows = results.rows(self.frame, self.where)
        if rows.empty:
            return []
        by = [name for name in self.per if name in rows]
        said = []
        for key, group in rows.groupby(by, sort=False, dropna=False) if by else [((), rows)]:
            names = dict(zip(by, map(str, key_parts(key)), strict=True))
            said += self._filled(self.template, names, group, results)
        if not self.lead or not said:
            return said
        return [f"{lead} {'; '.join(said)}." for lead in self._filled(self.lead, {}, rows, results)]

    def _filled(self, template: str, known: dict[str, str], rows: pd.DataFrame, results: Results) -> list[str]:
        """The template with its blanks filled; nothing if one lacks a number."""
        said = []
        for literal, name, how, _ in string.Formatter().parse(template):
            said.append(literal)
            if name:
                blank = f"{name}:{how}" if how else name
                stat = self.blanks.get(blank, blank)
                written = known[blank] if blank in known else _written(value_of(stat), rows, results)
                if written is None:
                    return []
                said.append(written)
        return ["".join(said)]


def _written(stat: Any, rows: Any, results: Results) -> str | None:
    value, column = stat.compute(rows, results.columns), stat.described(results.columns)
    if not is_known(value):
        return None
    if isinstance(value, str):
        return value
    if isinstance(stat, Quotient) and stat.unit == "ratio":
        return short_factor(value)
    ends = stat.interval(rows, results.columns)
    return column.format(value) + (f" (95% interval {between(ends, column)})" if ends else "")


@dataclass(frozen=True)
class Ranking:
    """For each of `values` who is best, and who comes next, over the cases that all contenders completed: by medians,
    or by means for shares and means, as the median of a yes or no says little.
    """

    values: Sequence[Value]
    over: Sequence[str] = ()

    def sentences(self, results: Results) -> list[str]:
        """The sentences of a run's results."""
        import pandas as pd

        rows = results.rows()
        if results.engine not in rows:
            return []
        said = []
        for stat in map(value_of, self.values):
            column = stat.described(results.columns)
            found = {
                str(name): per_case(stat, group, self.over or results.case, results.columns)
                for name, group in rows.groupby(results.engine, sort=False)
            }
            known = {name: values for name, values in found.items() if values.notna().any()}
            cases = pd.DataFrame(known).dropna()
            if len(known) < 2 or cases.empty:
                continue
            middle = "mean" if isinstance(stat, Stat) and stat.how in ("share", "mean") else "median"
            ranked = cases.agg(middle).sort_values(ascending=column.better != "higher", kind="stable")
            first, *others = (f"{engine} with {column.format(value)}" for engine, value in ranked.head(3).items())
            end = "Highest" if column.better == "higher" else "Lowest"
            over = f"{middle}s over the {len(cases):,} cases that all completed" if len(cases) > 1 else "one case"
            said.append(f"{end} {column.head}: {first}, then {' and '.join(others)} ({over}).")
        return said


@dataclass(frozen=True)
class Tally:
    """How rows ended: "All 120 items succeeded.", or how many did not, by kind."""

    what: str = "items"
    frame: str = ""
    where: str = ""

    def sentences(self, results: Results) -> list[str]:
        """One sentence, none without rows."""
        rows = results.rows(self.frame, self.where)
        if rows.empty or "status" not in rows:
            return []
        failed = failure_counts(rows)
        if not failed:
            return [f"All {len(rows):,} {self.what} succeeded."]
        done = int((rows["status"] == "ok").sum())
        return [f"{done:,} of {len(rows):,} {self.what} succeeded; the others: {failed}."]


def failure_counts(rows: pd.DataFrame) -> str:
    """``2 timeout, 1 unsupported``, the most frequent first; empty when all succeeded. Takes rows with a `status`."""
    counts = Counter(map(readable, rows.loc[rows["status"] != "ok", "status"]))
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


@dataclass(frozen=True)
class Computed:
    """What no template says: `function` gives the sentences."""

    function: Callable[[Results], list[str]]

    def sentences(self, results: Results) -> list[str]:
        """The sentences of a run's results."""
        return self.function(results)


Sentence = Say | Ranking | Tally | Computed
