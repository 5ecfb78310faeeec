"""The rows of a run of kind ``skew``, ready for tables, plots and sentences.

A distance is known by its bounds; where one number stands for it, it is their middle (the lower bound, if there is no
upper one). A *leader* is the first engine of its token language, and stands for all that agree with it on every prompt
to 1e-9, so that equal curves are drawn once. A prompt is *closed* for an engine if the bounds of the total variation
are at most `OPEN` apart; figures over several prompts are over those that are there and closed for every engine, so
that nobody gains by having failed on a hard one. One engine is nearer to the ideal than another on a prompt only if the
intervals of their total variations do not touch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.lab.report.model_rows import part

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: What the rows of the ideal distribution are called.
IDEAL = "ideal"
#: token language -> how people call it.
LANGUAGES = {"all": "all spellings", "proper": "proper only", "muted": "muted literals"}
DISTANCES = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
#: A total variation whose bounds are further apart says too little to be counted.
OPEN = 0.05
#: At most so many prompts are shown one by one.
FEW = 8
#: Numbers of choices that belong together, by the least of each.
SIZES = {"2": 2, "3": 3, "4": 4, "5": 5, "6 to 9": 6, "10 to 19": 10, "20 to 39": 20, "40 and more": 40}

_TEXTS = (
    *("prompt", "text", "topic", "choices", "expected", "strategy", "backend", "language", "top"),
    *("probabilities", "proper_shares"),
)
_NUMBERS = (
    *("count", "unresolved", "top_probability", "top_certain", "expected_top", "top_differs", "improper_mass"),
    *("mean_tokens", "forced_share", "rows", "rows_computed", "seconds", "compile_seconds"),
    *(f"{name}_{end}" for name in DISTANCES for end in ("low", "high")),
)


class Published(NamedTuple):
    """What 002 (challenge 1) prints: the probability of `choice` by token language, for another model than ours."""

    prompt: str
    choices: tuple[str, ...]
    choice: str
    model: str
    probabilities: dict[str, float]


SEED = Published(
    "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon fraternity?"
    "\nAnswer:",
    (" William", " Theodore"),
    " William",
    "Mistral-7B (002)",
    {IDEAL: 0.85879, "all": 0.52852, "proper": 0.85872},
)


def strategies(data: RunData) -> pd.DataFrame:
    """The rows of the ideals and the engines on the prompts that are there and closed for all engines of a model.

    Each distance's middle is in a column of its name. An engine without any row does not count.
    """
    rows = _measured(data)
    complete = rows.groupby(["model", "prompt"], sort=False)["strategy"].transform("nunique")
    wanted = rows["model"].map(rows.groupby("model")["strategy"].nunique())
    width = rows["total_variation_high"] - rows["total_variation_low"]
    is_open = (width > OPEN).groupby([rows["model"], rows["prompt"]]).transform("any")
    return rows[(complete == wanted) & ~is_open].reset_index(drop=True)


def left_out_prompts(data: RunData, rows: pd.DataFrame) -> dict[str, int]:
    """Model -> how many of its prompts are not in `rows` although something of them was measured or tried."""
    results = data.results.reindex(columns=["part", "model", "prompt"])
    tried = results[results["part"] == "strategy"].groupby("model", sort=False)["prompt"].nunique()
    kept = rows.groupby("model")["prompt"].nunique()
    missing = {str(model): int(count) - int(kept.get(model, 0)) for model, count in tried.items()}
    return {model: count for model, count in missing.items() if count}


def _measured(data: RunData) -> pd.DataFrame:
    rows = part(data, "strategy", _TEXTS, _NUMBERS)
    for name in DISTANCES:
        low, high = rows[f"{name}_low"], rows[f"{name}_high"]
        rows[name] = ((low + high) / 2).where(np.isfinite(high), low)
    return rows


def engines(rows: pd.DataFrame) -> list[str]:
    """The engines in the order of the experiment, the ideal left out."""
    return [str(name) for name in dict.fromkeys(rows["strategy"]) if name != IDEAL]


def prompt_count(rows: pd.DataFrame) -> int:
    """How many prompts have a row."""
    return int(rows["prompt"].nunique())


def agreements(data: RunData) -> pd.DataFrame:
    """The rows of engines compared within a language, those that differ included."""
    import pandas as pd

    rows = data.results.reindex(
        columns=["part", "model", "prompt", "language", "first", "other", "difference", "status"]
    )
    rows = rows[rows["part"] == "agreement"]
    return rows.assign(difference=pd.to_numeric(rows["difference"]).astype("float64"))


def leaders(data: RunData, rows: pd.DataFrame) -> dict[str, list[str]]:
    """Leader -> the engines that it stands for besides itself, over all models."""
    compared = agreements(data)
    apart = set(compared.loc[compared["status"] != "ok", "other"].astype(str))
    first: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for engine in engines(rows):
        language = str(rows.loc[rows["strategy"] == engine, "language"].iloc[0])
        leader = first.setdefault(language, engine)
        if leader == engine or engine in apart:
            found[engine] = []
        else:
            found[leader].append(engine)
    return found


def leader_label(leader: str, others: Iterable[str]) -> str:
    """``token_index (and 4 equal)``."""
    count = len(list(others))
    return f"{leader} (and {count} equal)" if count else leader


def by_prompt(rows: pd.DataFrame, model: str, column: str) -> pd.DataFrame:
    """One model's `column`: a row for each prompt, a column for each strategy."""
    mine = rows[rows["model"] == model]
    return mine.pivot_table(index="prompt", columns="strategy", values=column, sort=False, dropna=False)


class Nearer(NamedTuple):
    """On how many prompts one engine is nearer to the ideal than another, farther, or neither for certain."""

    nearer: int
    farther: int
    open: int


def nearer(rows: pd.DataFrame, model: str, one: str, other: str) -> Nearer:
    """How `one` compares with `other` over the prompts that both have."""
    low, high = (by_prompt(rows, model, f"total_variation_{end}") for end in ("low", "high"))
    if one not in low or other not in low:
        return Nearer(0, 0, 0)
    both = low[one].notna() & low[other].notna()
    nearer_count = int((high[one] < low[other])[both].sum())
    farther_count = int((low[one] > high[other])[both].sum())
    return Nearer(nearer_count, farther_count, int(both.sum()) - nearer_count - farther_count)


def choices_of(row: pd.Series[Any]) -> list[str]:
    """The choices of a row's prompt."""
    return [str(choice) for choice in json.loads(str(row["choices"]))]


def probabilities_of(row: pd.Series[Any]) -> dict[str, float]:
    """choice -> its (resolved) probability."""
    values: npt.NDArray[np.float64] = np.array(json.loads(str(row["probabilities"])), dtype=np.float64)
    return dict(zip(dict.fromkeys(choices_of(row)), values.tolist(), strict=True))


def is_seed(row: pd.Series[Any]) -> bool:
    """Whether the prompt and the choices are those of 002."""
    return bool(row["text"] == SEED.prompt) and sorted(choices_of(row)) == sorted(SEED.choices)


def shown_choice(row: pd.Series[Any]) -> str:
    """The choice to follow through the engines: the expected one, else the first."""
    if is_seed(row):
        return SEED.choice
    return str(row["expected"]) if isinstance(row["expected"], str) else choices_of(row)[0]


def size_of(count: float) -> str:
    """The group of a number of choices."""
    return [name for name, least in SIZES.items() if least <= count][-1]


def grouped(rows: pd.DataFrame, column: str) -> tuple[pd.Series[str], list[str]]:
    """The group of each row, by number of choices (``count``) or by ``topic``, and the groups in their order."""
    if column == "count":
        of_row = rows["count"].map(size_of)
        return of_row, [name for name in SIZES if (of_row == name).any()]
    of_row = rows["topic"].fillna("").replace("", "no topic").astype(str)
    return of_row, sorted(set(of_row))
