"""The numbers of a run in one frame, whatever its kind: a row for each value of an engine, a case and a column.

What is compared follows from the kind's declaration: every column with a better end whose unit is seconds, bytes or a
count. `Kind.engine` says who is compared, `Kind.case` on what, and `Kind.place` tells the samples of a case apart: the
repeat and the step of a walk, say. Two runs of one experiment have the same engines, cases and places, whatever their
items' ids are, so values are found again in another run by these. A cell that holds an array (float32, little end
first) is as many samples.

Two kinds of frames are read: the main one, and those that have all columns of `Kind.place`, one row a place. The main
one holds the statistics of each case; the others hold samples, so they are compared case by case only.

*Outcomes* are what has no ratio: the status of an item or a row, and the stored columns that a kind declares as texts
or as counts. Of a count with a better end only a change from zero or to zero is one; others are ratios. Counts of
samples, such as the tokens that a mask allows, are added up over a case: another walk gives another number.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import text
from tokdfa.lab.declare.stats import is_known
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.report.kinds import declared_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.report.data import RunData

#: What a series of values is of.
KEY = ["engine", "case", "column"]
#: The columns of a source that tell where a row belongs, under names that no kind has.
_WHERE = {"_engine": "engine", "_case": "case", "_place": "place"}


class Source(NamedTuple):
    """A frame that is compared, its rows keyed by `_WHERE`. `columns`: those declared columns that it has, but for the
    keys; `stored`: the columns of the store.
    """

    kind: str
    rows: pd.DataFrame
    columns: Sequence[Column]
    stored: frozenset[str]
    is_main: bool

    def values(self, column: str) -> pd.DataFrame:
        """Engine, case, place and value of each row that has one."""
        found = self.rows[[*_WHERE]].rename(columns=_WHERE).assign(value=self.rows[column])
        return found[found["value"].notna()]


def sources(data: RunData) -> Iterator[Source]:
    """The frames of a run, and of what it has measured beside, that are compared; of how each item ended, where the run
    says so of the contenders, the status.
    """
    for run in (data, *data.sections.values()):
        if (results := declared_results(run)) is None:
            continue
        place, keys = find_kind(run.kind).place, (results.engine, *results.case)
        stored = frozenset({"status", *run.items, *run.samples, *run.results})
        for name, rows in results.frames.items():
            is_main = name in ("", "items")
            if not len(rows) or not (is_main or _is_of_samples(rows, keys, place)):
                continue
            declared = [] if name == "items" else results.columns.values()
            columns = [one for one in declared if one.name in rows and one.name not in (*keys, *place, "status")]
            if "status" in rows and (not name or results.engine in rows):
                columns.append(text("status"))
            yield Source(run.kind, _keyed(rows, results, place), columns, stored, is_main)


def _is_of_samples(rows: pd.DataFrame, keys: Sequence[str], place: Sequence[str]) -> bool:
    """Whether a frame has one row for each place of a case."""
    by = [name for name in (*keys, *place) if name in rows]
    return bool(place) and set(place) <= set(by) and not rows.duplicated(by).any()


def _keyed(rows: pd.DataFrame, results: Results, place: Sequence[str]) -> pd.DataFrame:
    """The rows with engine, case and place as texts; equal places are told apart by their order."""
    case = [name for name in results.case if name in rows and name != results.engine]
    cases = rows[case].itertuples(index=False, name=None) if case else [()] * len(rows)
    named = [name for name in place if name in rows]
    places = rows[named].itertuples(index=False, name=None) if named else [()] * len(rows)
    keyed = rows.reset_index(drop=True).assign(
        _engine=[str(one) if is_known(one) else "all" for one in rows.get(results.engine, ["all"] * len(rows))],
        _case=[" · ".join(filter(None, map(_said, case, values))) for values in cases],
        _place=[" ".join(map(str, values)) for values in places],
    )
    order = keyed.groupby([*_WHERE], sort=False).cumcount()
    return keyed.assign(_place=keyed["_place"] + " " + order.astype(str))


def _said(name: str, value: Any) -> str:
    """A part of a case as text; a number with the name of its column, nothing for what is not known."""
    if not is_known(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral) or not float(value).is_integer():
        return f"{name} {value}"
    return f"{name} {float(value):.0f}"


def is_measure(column: Column) -> bool:
    """Whether ratios of a column say that something got better or worse."""
    return column.better != "neither" and column.unit in ("s", "B", "")


def read_values(data: RunData) -> tuple[pd.DataFrame, dict[str, Column]]:
    """All values of a run above zero, in base units, with engine, case, column, place, and whether their median stands
    for the case where engines are compared (``of_engine``); and the columns. Cost: O(rows) for each column.
    """
    import pandas as pd

    found: dict[tuple[str, str], pd.DataFrame] = {}
    columns: dict[str, Column] = {}
    for source in sources(data):
        for column in source.columns:
            if not is_measure(column) or (source.kind, column.name) in found:
                continue
            values = source.values(column.name).assign(column=column.name, of_engine=source.is_main)
            if len(values) and isinstance(values["value"].iloc[0], bytes):
                values = values.assign(value=values["value"].map(partial(np.frombuffer, dtype="<f4"))).explode("value")
                values["place"] += "," + values.groupby(level=0).cumcount().astype(str)
            number = values["value"].astype("float64") * column.factor
            values["value"] = number.clip(lower=column.resolution).where(number >= 0)
            found[source.kind, column.name] = values[values["value"] > 0]
            columns.setdefault(column.name, column)
    nothing = pd.DataFrame(columns=[*KEY, "place", "value", "of_engine"])
    return pd.concat(found.values()) if found else nothing, columns


def differences(before: RunData, after: RunData) -> pd.DataFrame:
    """The outcomes that differ, where both runs have one: engine, what it is, both as texts, and the cases; equal
    changes of an engine are one row.
    """
    by = ["engine", "case", "place", "what"]
    both = _outcomes(before).merge(_outcomes(after), on=by, suffixes=("_before", "_after"))
    is_ratio = both["has_ratio_before"].astype(bool) & both["has_ratio_after"].astype(bool)
    changed = both[(both["text_before"] != both["text_after"]) & ~is_ratio]
    changes = changed.groupby(["engine", "what", "text_before", "text_after"], sort=False)["case"].unique()
    return changes.rename("cases").reset_index().rename(columns={"text_before": "before", "text_after": "after"})


def one_sided(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """For each engine with series that only one run has: how many on each side, and of which cases."""
    keys = [values[KEY].drop_duplicates() for values in (before, after)]
    every = keys[0].merge(keys[1], on=KEY, how="outer", indicator="side")
    alone = every[every["side"] != "both"]
    alone = alone.assign(before=alone["side"] == "left_only", after=alone["side"] == "right_only")
    groups = alone.groupby("engine", sort=False)
    return groups.agg(before=("before", "sum"), after=("after", "sum"), cases=("case", "unique")).reset_index()


def _outcomes(data: RunData) -> pd.DataFrame:
    """What each engine got, by case, place and what it is: its text, and whether a ratio says it."""
    import pandas as pd

    found = []
    for source in sources(data):
        for column in source.columns:
            if column.name not in source.stored or column.unit not in (("", "text") if source.is_main else ("",)):
                continue
            values = source.values(column.name)
            if not source.is_main:
                values = values.groupby(["engine", "case"], sort=False, as_index=False)["value"].sum().assign(place="")
            texts = [column.unit == "text" or isinstance(value, str | bytes) for value in values["value"]]
            told = zip(values["value"], texts, strict=True)
            values["text"] = [readable(value) if is_text else column.format(float(value)) for value, is_text in told]
            told = zip(values["value"], texts, strict=True)
            values["has_ratio"] = [not is_text and is_measure(column) and value > 0 for value, is_text in told]
            found.append(values.assign(what=column.head).drop(columns="value"))
    names = ["engine", "case", "place", "what", "text", "has_ratio"]
    every = pd.concat(found) if found else pd.DataFrame(columns=names)
    return every.drop_duplicates(names[:4])
