"""What two runs of one experiment got differently, times apart: outcomes, masks, and rows that only one of them has.

*Outcomes* are the status of an item and, in special kinds, the columns of `WORDS` and `COUNTS`. Masks are compared by
the number of tokens they allow at the same place of the same walk, and by how many differ from those of the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.report.compare_series import row_keys

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tokdfa.lab.report.compare_series import Key
    from tokdfa.lab.report.data import RunData

#: Columns of special results that say how something ended ...
WORDS = ("status", "outcome", "keyword", "equal", "same_top", "finished")
#: ... and how often something is not as it should be, or what a mask allows.
COUNTS = (
    *("differs", "differing", "right_tests", "over_tests", "under_tests", "unended_tests", "order_artefacts"),
    "allowed",
)


@dataclass(frozen=True)
class Difference:
    """One outcome that has changed in the same way for `places`: what it is, before and after, of which engine."""

    engine: str
    what: str
    before: str
    after: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class OneSided:
    """How many series of an engine only one of the runs has, and of which cases."""

    engine: str
    before: int
    after: int
    cases: tuple[str, ...]


def differences(before: RunData, after: RunData) -> list[Difference]:
    """The outcomes that differ, where both runs have one; equal changes of an engine are one entry."""
    old, new = _outcomes(before), _outcomes(after)
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for key, value in old.items():
        if key in new and new[key] != value:
            engine, case, _, what = key
            found.setdefault((engine, what, value, new[key]), []).append(" · ".join(case))
    return [Difference(*change, tuple(dict.fromkeys(places))) for change, places in found.items()]


def one_sided(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> list[OneSided]:
    """For each engine with series that only one run has: how many on each side."""
    found: dict[str, tuple[list[Key], list[Key]]] = {}
    for side, (mine, other) in enumerate(((before, after), (after, before))):
        for key in mine:
            if key not in other:
                found.setdefault(key.engine, ([], []))[side].append(key)
    return [
        OneSided(engine, len(old), len(new), tuple(dict.fromkeys(" · ".join(key.case) for key in [*old, *new])))
        for engine, (old, new) in found.items()
    ]


_Where = tuple[str, tuple[str, ...], "Hashable", str]


def _outcomes(data: RunData) -> dict[_Where, str]:
    found: dict[_Where, str] = {}
    if data.kind == "backends":
        found |= _of_items(data)
    elif len(data.results):
        columns = [name for name in (*WORDS, *COUNTS) if name in data.results]
        keys = row_keys(data.results)
        for column in columns:
            for (engine, case, place), value in zip(keys, data.results[column], strict=True):
                if not _is_missing(value):
                    found[engine, case, place, column] = str(value)
    for section in data.sections.values():
        found |= _outcomes(section)
    return found


def _of_items(data: RunData) -> dict[_Where, str]:
    """The status of each item, and of its masks how many differ and how many tokens they allow in all."""
    masks = data.samples_of("mask").groupby("item_id", sort=False)
    # the tokens that all masks of a walk allow: another walk, or another mask on it, gives another number
    sums = {
        "masks that differ from the reference": masks["differs"].agg(lambda differs: float((differs > 0).sum())),
        "tokens allowed by all masks": masks["allowed"].sum(),
    }
    found: dict[_Where, str] = {}
    columns = ("item_id", "label", "tokenizer", "constraint", "workload", "status")
    for item, label, *case, status in data.items[list(columns)].itertuples(index=False, name=None):
        where = (str(label), tuple(str(part) for part in case if not _is_missing(part)), 0)
        found[*where, "status"] = readable(status)
        for what, values in sums.items():
            if item in values.index:
                found[*where, what] = f"{values[item]:,.0f}"
    return found


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) if pd.api.types.is_scalar(value) else value is None
