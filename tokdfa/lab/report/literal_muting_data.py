"""The rows of a ``literal_muting`` run, taken apart for its tables and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Plain over muted compile time of the HTTPS regex in 001: 27.68 s before muting, 1.41 s after.
CLAIM = 27.68 / 1.41
#: What the label of a muted variant ends with.
MUTED = ", muted"
PHASES = ("parse", "automaton", "minimize", "classes", "walks", "reduce", "masks", "index")
_NUMBERS = (
    *("vocab_size", "samples", "seconds", "seconds_min", "seconds_max", *(f"{phase}_s" for phase in PHASES)),
    *("states", "dfa_states", "byte_classes", "tokens_left", "class_strings", "graph_nodes", "token_classes_made"),
    *("literals", "ghosts", "transitions", "bytes", "words", "length"),
    *("proper_count", "fewest_count", "muted_count", "stops_at", "plain_stops_at", "positions"),
)
_TEXTS = ("variant", "backend", "token_classes", "axis", "source", "text", "proper_tokens", "muted_tokens")


def rows_of(data: RunData, part: str) -> pd.DataFrame:
    """The rows of one part, with all columns that some part has: numbers as float, NaN for missing; texts as str."""
    import pandas as pd

    results = data.results
    frame = results[results["part"] == part].reset_index(drop=True) if len(results) else pd.DataFrame({"part": []})
    columns: dict[str, pd.Series[float] | pd.Series[str] | pd.Series[bool]] = {}
    for name in ("tokenizer", "constraint", "status", "message", *_TEXTS):
        found = frame[name] if name in frame else pd.Series("", index=frame.index, dtype=object)
        columns[name] = found.astype(object).where(found.notna(), "").astype(object)
    for name in _NUMBERS:
        columns[name] = (
            pd.to_numeric(frame[name]).astype("float64")
            if name in frame
            else pd.Series(float("nan"), index=frame.index)
        )
    muted = frame["muted"] if "muted" in frame else pd.Series(False, index=frame.index)
    columns["muted"] = muted.astype("boolean").fillna(False).astype(bool)
    return pd.DataFrame(columns, index=frame.index)


def muting_pairs(frame: pd.DataFrame, place: Sequence[str] = ()) -> pd.DataFrame:
    """Plain and muted variants side by side: one row per tokenizer, constraint, `place` and token_classes that both
    compiled; columns end with ``_plain`` or ``_muted``, `ratio` is the plain compile time over the muted one.
    """
    keys = ["tokenizer", "constraint", *place, "token_classes"]
    done = frame[(frame["status"] == "ok") & (frame["token_classes"] != "")]
    values = [name for name in _NUMBERS if name not in place]
    plain, muted = (done[done["muted"] == which][[*keys, *values]] for which in (False, True))
    pairs = plain.merge(muted, on=keys, suffixes=("_plain", "_muted"))
    return pairs.assign(ratio=pairs["seconds_plain"] / pairs["seconds_muted"])


def with_literals(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs in which something was muted."""
    return pairs[pairs["literals_muted"] > 0]


def https_cases(data: RunData) -> list[str]:
    """The constraints that were also compiled with baselines."""
    frame = rows_of(data, "cost")
    return [str(name) for name in dict.fromkeys(frame.loc[frame["token_classes"] == "", "constraint"])]


def tokenization_counts(data: RunData) -> pd.DataFrame:
    """One row per tokenizer, constraint and source of texts.

    `texts`, of these `followed` and `changed` (by the tokenizer); of those followed `forbidden` with muting and
    `plain_stops` without, `positions` reached, and mean numbers of tokens; `literals` of the constraint.
    """
    import pandas as pd

    frame = rows_of(data, "text")
    frame = frame[frame["source"] != ""]
    rows = []
    for (tokenizer, constraint, source), group in frame.groupby(["tokenizer", "constraint", "source"], sort=False):
        done = group[group["status"] == "ok"]
        rows.append(
            {
                "tokenizer": tokenizer,
                "constraint": constraint,
                "source": source,
                "literals": group["literals"].max(),
                "texts": len(group),
                "followed": len(done),
                "changed": int((group["status"] == "changed").sum()),
                "forbidden": int((done["stops_at"] >= 0).sum()),
                "plain_stops": int((done["plain_stops_at"] >= 0).sum()),
                "positions": int(done["positions"].sum()),
                **{name: done[name].mean() for name in ("proper_count", "fewest_count", "muted_count")},
            }
        )
    columns = ("tokenizer", "constraint", "source", "literals", "texts", "followed", "changed", "forbidden")
    more = ("plain_stops", "positions", "proper_count", "fewest_count", "muted_count")
    return pd.DataFrame(rows, columns=[*columns, *more])
