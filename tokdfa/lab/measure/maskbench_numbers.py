"""The rows of ``kind: maskbench`` as its tables read them: the benchmark's numbers by its own definitions, and others.

``TBM`` and ``TTFM`` are the benchmark's: mask + commit of every token of the cases that were judged, and compile +
first mask of their schemas. A *whole case* is all that somebody waits for: compile, first mask, and the masks and
commits of all its instances. Cases that were refused have no times, and neither have those that broke a limit or died,
as in the benchmark; how many there are must be read beside the times. Percentiles are the benchmark's, too: of n values
in order, number n * p // 100, counted from 0.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.measure.maskbench_replay import CRASH, MEMORY, OUTCOMES, OVER, PASSED, REFUSED, TIMEOUT, UNDER

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9, 100)
#: What is timed -> its title.
TIMED = {"tbm_ns": "TBM", "ttfm_ns": "TTFM", "case_ns": "whole case"}
#: Parts of the work -> their titles.
PARTS = {"compile_ns": "compile", "first_ns": "first mask", "mask_ns": "mask", "advance_ns": "commit"}
#: Outcomes as the benchmark's own table calls them.
OFFICIAL = {
    **{PASSED: "passing", CRASH: "crashes", MEMORY: "oom", TIMEOUT: "timeouts", REFUSED: "compile errors"},
    **{OVER: "validation errors", UNDER: "invalidation errors"},
}
MAX_ROWS, MAX_TEXT = 200, 120


def percentile(values: Floats, percent: float) -> float:
    """The benchmark's percentile; NaN of nothing. O(n)."""
    if not len(values):
        return math.nan
    place = min(int(len(values) * percent / 100), len(values) - 1)
    return float(np.partition(values, place)[place])


def _values(column: pd.Series[Any]) -> Floats:
    """All numbers of a column, whose cells may hold float32 numbers each."""
    known = column.dropna()
    if len(known) and isinstance(known.iloc[0], bytes):
        return np.frombuffer(b"".join(known), dtype="<f4").astype(np.float64)
    return known.to_numpy(dtype=np.float64)


def _statistics(column: pd.Series[Any], name: str) -> dict[str, float]:
    """``NAME_mean`` and ``NAME_p50`` and the like."""
    values = _values(column)
    mean = float(values.mean()) if len(values) else math.nan
    return {f"{name}_mean": mean, **{f"{name}_p{percent:g}": percentile(values, percent) for percent in PERCENTILES}}


def _engines(rows: pd.DataFrame, on: str) -> pd.DataFrame:
    """A row for each engine: how its cases ended, and what is timed."""
    import pandas as pd

    found = []
    for engine, mine in rows.groupby("engine", sort=False):
        counts = mine["outcome"].value_counts()
        others = [f"{_words(one)} {counts[one]:,}" for one in OUTCOMES[1:] if counts.get(one)]
        found.append(
            {
                **{"on": on, "engine": engine, "cases": len(mine), "tokens": int(mine["tokens"].sum())},
                **{outcome: int(counts.get(outcome, 0)) for outcome in OUTCOMES},
                **{"share": counts.get(PASSED, 0) / len(mine), "others": ", ".join(others) or "no failure"},
                **{key: value for name in TIMED for key, value in _statistics(mine[name], name).items()},
            }
        )
    return pd.DataFrame(found)


def _words(outcome: str) -> str:
    return f"{outcome}-constrained" if outcome in (OVER, UNDER) else outcome


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with their times, and what tables and sentences are made of, by name."""
    import pandas as pd

    rows = _timed(rows)
    had = {engine: frozenset(mine["case"]) for engine, mine in rows.groupby("engine", sort=False)}
    fields = []
    for given in sorted(set(had.values()), key=len, reverse=True):  # all cases, then each sample with all who had it
        members = [engine for engine, mine in had.items() if given <= mine]
        fields.append(rows[rows["case"].isin(given) & rows["engine"].isin(members)])
    titles = ["all cases", *(f"a sample of {field['case'].nunique():,} cases" for field in fields[1:])]
    engines = pd.concat([_engines(field, title) for field, title in zip(fields, titles, strict=True)])
    rare = [outcome for outcome in OUTCOMES[4:] if not engines[outcome].any()]
    passed = fields[0][fields[0]["outcome"] == PASSED]
    several = fields[0]["engine"].nunique() > 1
    shared = passed.groupby("case")["engine"].nunique() == fields[0]["engine"].nunique()
    common = passed[passed["case"].isin(shared.index[shared])] if several else passed.iloc[:0]
    parts = [
        {"engine": engine, "part": title, "samples": len(_values(mine[name])), **_statistics(mine[name], "part_ns")}
        for engine, mine in rows[rows["ttfm_ns"].notna()].groupby("engine", sort=False)
        for name, title in PARTS.items()
    ]
    by_case = fields[0].groupby("case", sort=False)
    cases = by_case.agg(tests=("tests", "first"), outcomes=("outcome", "nunique")).reset_index()
    outcomes = rows.groupby("case", sort=False)["outcome"].nunique()
    used = (
        rows.assign(keyword_used=rows["keywords"].map(json.loads)).explode("keyword_used").dropna(subset="keyword_used")
    )
    often = used.groupby("keyword_used")["case"].transform("nunique")
    is_suite = bool(rows["suite"].astype(bool).all())
    differ = rows[rows["case"].isin(outcomes.index[outcomes > 1][:MAX_ROWS])]
    told = differ["message"].map(lambda text: f": {_short(str(text))}" if text else "")
    return {
        "": rows,
        "engines": engines.drop(columns=rare),
        "official": _official(_engines(rows, "")),
        "common": _engines(common, f"{common['case'].nunique():,} cases") if len(common) else common,
        "same": common if len(common) else rows,
        "parts": pd.DataFrame(parts),
        "against": _against(rows),
        "cases": cases.assign(same=cases["outcomes"] == 1) if several else cases,
        "splits": rows.iloc[:0] if is_suite else rows.sort_values("split", kind="stable"),
        "keywords": used.iloc[:0]
        if is_suite
        else used.assign(often=-often).sort_values(["often", "keyword_used"], kind="stable"),
        "suite": _suite(rows) if is_suite else rows.iloc[:0],
        "walks": rows[rows["walks_asked"] > 0],
        "faults": _faults(rows),
        "differ": differ.assign(said=differ["outcome"] + told),
        "refusals": _refusals(rows),
    }


def _timed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with TBM, TTFM and the time of the whole case, of those that were judged."""
    import pandas as pd

    names = ("walks_asked", "walks", "walk_tokens", "walks_finished", "walks_unfinished", "dead_ends", "invalid_texts")
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *names, "unjudged_texts", "walk_faults"]))).reset_index(
        drop=True
    )
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
    rows["passed"] = rows["outcome"] == PASSED
    rows["order_only"] = (rows["outcome"] == OVER) & (rows["order_artefacts"] == rows["over_tests"])
    rows["order_only"] &= rows["under_tests"] == 0
    return rows


def _floats(cell: bytes) -> Floats:
    return np.frombuffer(cell, dtype="<f4").astype(np.float64)


def _official(engines: pd.DataFrame) -> pd.DataFrame:
    """The benchmark's own numbers, a row for each and each engine; times in whole microseconds."""
    import pandas as pd

    found = []
    for row in engines.to_dict("records"):
        for name, title in list(TIMED.items())[:2]:
            values = {f"{title} avg (us)": row[f"{name}_mean"]}
            values |= {f"{title} p{percent:g}": row[f"{name}_p{percent:g}"] for percent in PERCENTILES}
            found += [
                (row["engine"], metric, math.trunc(ns * 1e-3) if math.isfinite(ns) else ns)
                for metric, ns in values.items()
            ]
        found += [(row["engine"], metric, row[name]) for metric, name in (("tokens", "tokens"), ("schemas", "cases"))]
        found += [(row["engine"], metric, row[outcome]) for outcome, metric in OFFICIAL.items()]
    return pd.DataFrame(found, columns=["engine", "metric", "value"])


def _against(rows: pd.DataFrame) -> pd.DataFrame:
    """The first engine beside each other one, case by case: how often their outcomes are the same, and how many times
    as long the other takes where both pass.
    """
    base = rows["engine"].iloc[0]
    ours = rows[rows["engine"] == base].set_index("case")[["outcome", "case_ns", "ttfm_ns"]]
    both = rows[rows["engine"] != base].join(ours.add_suffix("_base"), on="case", how="inner")
    pass_both = both["passed"] & (both["outcome_base"] == PASSED)
    ratios = {
        f"{name}_ratio": (both[f"{name}_ns"] / both[f"{name}_ns_base"]).where(pass_both) for name in ("case", "ttfm")
    }
    faster = (ratios["case_ratio"] > 1).astype("float64").where(pass_both)
    return both.assign(base=base, agrees=both["outcome"] == both["outcome_base"], faster=faster, **ratios)


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
        over_other=rows["over_tests"] - rows["order_artefacts"],
        refused_tests=left.where(refused, 0),
        unjudged_tests=left.where(~refused, 0),
    )
    return found.iloc[np.lexsort([key.to_numpy() for key in reversed(order)])]


def _faults(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each walk that came to a dead end or to an invalid text, as far as they were kept."""
    import pandas as pd

    found = [
        (engine, case, outcome, _short(text), message)
        for engine, case, faults in rows[["engine", "case", "walk_faults"]].dropna().itertuples(index=False)
        for outcome, text, message in json.loads(faults)
    ]
    return pd.DataFrame(found, columns=["engine", "case", "outcome", "text", "message"])


def _refusals(rows: pd.DataFrame) -> pd.DataFrame:
    """Who refuses or fails at what: equal messages, numbers and quoted parts apart, the most frequent first."""
    failed = rows[~rows["outcome"].isin([PASSED, OVER, UNDER])]
    failed = failed.assign(reason=failed["message"].map(_reason), keyword=failed["keyword"].fillna(""))
    groups = failed.groupby(["engine", "outcome", "keyword", "reason"], sort=False)
    counted = groups.agg(cases=("case", "size"), tests=("tests", "sum"), example=("case", "first")).reset_index()
    place = {engine: number for number, engine in enumerate(rows["engine"].unique())}
    counted = counted.assign(often=-counted["cases"], place=counted["engine"].map(place))
    return counted.sort_values(["place", "often"], kind="stable")


def _reason(message: str) -> str:
    """A message without what differs from case to case: pointers, quoted parts and numbers."""
    return _short(re.sub(r"#/\S*|'[^']*'|\"[^\"]*\"|`[^`]*`|\d+", "…", message))


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"
