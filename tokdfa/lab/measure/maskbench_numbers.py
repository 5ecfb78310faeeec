"""The rows of ``kind: maskbench`` as its tables read them.

``TBM`` and ``TTFM`` are the benchmark's: mask + commit of every token of the cases that were judged, and compile +
first mask of their schemas. A *whole case* is all that somebody waits for: compile, first mask, and the masks and
commits of all its instances. Cases that were refused have no times, and neither have those that broke a limit or died,
as in the benchmark; how many there are must be read beside the times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.lab.measure.maskbench_replay import OUTCOMES, OVER, PASSED, REFUSED, UNDER

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

MAX_TEXT = 120
#: So many cases are told one by one.
FEW = 60


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with their times, and what tables and sentences are made of, by name.

    ``fields``: all cases with the engines that had all of them, then each sample with all who had it; ``same``: the
    cases that all engines with all cases pass; ``against``: the first engine beside each other one, case by case;
    ``pairs``: the rows of both on the cases that both pass; ``setups``: a row for each process of an engine.
    """
    import pandas as pd

    rows = _timed(rows)
    had = {engine: frozenset(mine["case"]) for engine, mine in rows.groupby("engine", sort=False)}
    fields: list[pd.DataFrame] = []
    for given in sorted(set(had.values()), key=len, reverse=True):
        members = [engine for engine, mine in had.items() if given <= mine]
        field = rows[rows["case"].isin(given) & rows["engine"].isin(members)]
        fields.append(field.assign(on=f"a sample of {len(given):,} cases" if fields else "all cases"))
    every = fields[0]
    passed = every[every["outcome"] == PASSED]
    by_all = passed.groupby("case")["engine"].nunique() == every["engine"].nunique()
    same = passed[passed["case"].isin(by_all.index[by_all])] if every["engine"].nunique() > 1 else passed.iloc[:0]
    cases = every.groupby("case", sort=False).agg(outcomes=("outcome", "nunique"))
    is_suite = bool(rows["suite"].astype(bool).all())
    return {
        "": rows,
        "fields": pd.concat(fields),
        "same": same if len(same) else rows,
        "common": same.assign(on=f"{same['case'].nunique():,} cases"),
        "against": _against(rows),
        "pairs": _pairs(rows),
        "setups": rows.drop_duplicates(["engine", "setup_ns"]).dropna(subset=["setup_ns"]),
        "cases": cases.assign(same=cases["outcomes"] == 1).reset_index(),
        "splits": rows.iloc[:0] if is_suite else rows.sort_values("split", kind="stable"),
        "suite": _suite(rows) if is_suite else rows.iloc[:0],
        "refusals": _refusals(rows),
        "few": rows if len(cases) <= FEW else rows.iloc[:0],
    }


def _timed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with TBM, TTFM and the time of the whole case, of those that were judged."""
    import pandas as pd

    rows = rows.reset_index(drop=True)
    if "setup_ns" not in rows:  # of runs before it was measured
        rows["setup_ns"] = np.nan
    judged = rows["outcome"].isin([PASSED, OVER, UNDER])
    for name in ("compile_ns", "first_ns"):
        rows[name] = pd.to_numeric(rows[name]).astype("float64").where(judged)
    for name in ("mask_ns", "advance_ns"):
        rows[name] = rows[name].where(judged, None)
    both = [
        _floats(mask) + _floats(advance) if known else np.empty(0)
        for known, mask, advance in zip(judged, rows["mask_ns"], rows["advance_ns"], strict=True)
    ]
    rows["tbm_ns"] = [one.astype("<f4").tobytes() if known else None for known, one in zip(judged, both, strict=True)]
    rows["ttfm_ns"] = rows["compile_ns"] + rows["first_ns"]
    rows["case_ns"] = rows["ttfm_ns"] + [float(one.sum()) for one in both]
    for outcome in OUTCOMES:
        rows[outcome] = rows["outcome"] == outcome
    return rows


def _floats(cell: bytes) -> Floats:
    return np.frombuffer(cell, dtype="<f4").astype(np.float64)


def _against(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times as long as the first engine another takes for a case that both pass."""
    base = rows["engine"].iloc[0]
    ours = rows[(rows["engine"] == base) & rows[PASSED]].set_index("case")["case_ns"].rename("base_ns")
    both = rows[(rows["engine"] != base) & rows[PASSED]].join(ours, on="case", how="inner")
    ratio = both["case_ns"] / both["base_ns"]
    return both.assign(base=base, case_ratio=ratio, faster=(ratio > 1).astype("float64"))


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """The first engine and each other one, on the cases that both pass: the rows of both, with who it is about."""
    import pandas as pd

    passed = rows[rows[PASSED]]
    base = rows["engine"].iloc[0]
    ours, found = passed[passed["engine"] == base], [rows.iloc[:0].assign(pair="", peer="", base="")]
    for peer, theirs in passed[passed["engine"] != base].groupby("engine", sort=False):
        both = ours[ours["case"].isin(theirs["case"])]
        theirs = theirs[theirs["case"].isin(both["case"])]
        pair = f"{base} and {peer}, {len(both):,} cases"
        found.append(pd.concat([both, theirs]).assign(pair=pair, peer=peer, base=base))
    return pd.concat(found)


@dataclass(frozen=True)
class Beside:
    """A statistic of two engines on the cases that both pass, in ns. `ratio`: the peer's over the base's."""

    what: str
    base: float
    peer: float

    @property
    def ratio(self) -> float:
        return self.peer / self.base if self.base else float("nan")


def beside(pair: pd.DataFrame) -> list[Beside]:
    """The statistics that a served engine is judged by, of both engines of a pair: medians, tails, longest, sums."""
    base = pair["base"].iloc[0]
    sides = [pair[pair["engine"] == base], pair[pair["engine"] != base]]
    found = []
    for title, column, how in JUDGED:
        values = [
            np.concatenate([_floats(cell) for cell in side[column]]) if column == "tbm_ns" else side[column].to_numpy()
            for side in sides
        ]
        found.append(Beside(title, *(float(how(one)) for one in values)))
    return found


def _percentile(rank: float) -> Callable[[Floats], float]:
    return lambda values: float(np.percentile(values, rank))


#: What two engines are compared by: title, column, statistic. The same as an outside check takes.
JUDGED: tuple[tuple[str, str, Callable[[Floats], float]], ...] = (
    ("whole case, p50", "case_ns", _percentile(50)),
    ("whole cases, sum", "case_ns", np.sum),
    *((f"TTFM, p{rank}", "ttfm_ns", _percentile(rank)) for rank in (50, 90, 99)),
    ("TTFM, longest", "ttfm_ns", np.max),
    ("TTFM, sum", "ttfm_ns", np.sum),
    *((f"TBM, p{rank}", "tbm_ns", _percentile(rank)) for rank in (50, 90, 99, 99.9)),
    ("TBM, longest", "tbm_ns", np.max),
    ("TBM, sum", "tbm_ns", np.sum),
)


def _suite(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a test suite with draft, part of the suite, and the tests that nobody judged."""
    split = rows["split"].astype(str)
    part = split.map(
        lambda name: "formats" if "/optional/format" in name else "optional" if "/opt" in name else "required"
    )
    judged = rows["right_tests"] + rows["over_tests"] + rows["under_tests"]
    # one that is refused as empty judges its tests
    left, refused = rows["tests"] - judged, rows["outcome"] == REFUSED
    draft = split.str.partition("/")[0]
    order = [draft.str.len(), draft, part.map({"required": 0, "optional": 1, "formats": 2})]
    found = rows.assign(
        draft=draft,
        part_of_suite=part,
        refused_tests=left.where(refused, 0),
        unjudged_tests=left.where(~refused, 0),
    )
    return found.iloc[np.lexsort([key.to_numpy() for key in reversed(order)])]


def _refusals(rows: pd.DataFrame) -> pd.DataFrame:
    """Who refuses or fails at what: equal messages, numbers and quoted parts apart, the most frequent first."""
    failed = rows[~rows["outcome"].isin([PASSED, OVER, UNDER])]
    failed = failed.assign(reason=failed["message"].map(_reason))
    groups = failed.groupby(["engine", "outcome", "reason"], sort=False)
    counted = groups.agg(cases=("case", "size"), tests=("tests", "sum"), example=("case", "first")).reset_index()
    asked = rows["engine"].value_counts()
    counted = counted.assign(share_of_cases=counted["cases"] / counted["engine"].map(asked).astype("float64"))
    place = {engine: number for number, engine in enumerate(rows["engine"].unique())}
    counted = counted.assign(often=-counted["cases"], place=counted["engine"].map(place))
    return counted.sort_values(["place", "often"], kind="stable")


def _reason(message: str) -> str:
    """A message without what differs from case to case: pointers, quoted parts and numbers."""
    line = " ".join(re.sub(r"#/\S*|'[^']*'|\"[^\"]*\"|`[^`]*`|\d+", "…", message).split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"
