r"""How far the answers of a way to decode are from the model's own distribution over some choices, by draws.

The total variation of a way's distribution q from the ideal p is wanted, half the sum of |q - p|. Two estimates from
the shares q' of R independent answers have it between them, in expectation:

- *plug-in*: that of q' from p. Too large on average, since the absolute value is convex: even exact draws from p show
  the *noise floor*, for R draws half the sum of E|X - Rp| / R with X binomial (De Moivre's closed form).
- *cross-fitted*: TV is the largest value of half the sum of s (q - p) over signs s. One half of the runs says which
  signs, the other half estimates the sum with them, and the other way round. For fixed signs that is unbiased and at
  most TV; so it is too small on average, by what wrong signs cost, and its mean is 0 if q is p. It may be negative.

The standard error is that of the cross-fitted value over runs, on the safe side: both halves are taken as fully
correlated, and each has two more values, the ends of the range that an answer may have (so Agresti and Coull 1998 treat
shares). Otherwise some runs with the same answer would look like certainty.
"""

from __future__ import annotations

import json
from math import exp, floor, lgamma, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.errors import OptionError
from tokdfa.skew.distances import total_variation
from tokdfa.skew.measured import Z_95

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

#: The name of the model's own distribution among the ways.
IDEAL = "ideal"
#: With fewer runs, five in each half, an error is anybody's guess.
LEAST_RUNS = 10


class DrawnDistance(NamedTuple):
    """The total variation from the ideal, by draws; see the module. All four are shares."""

    cross_fitted: float
    standard_error: float
    plug_in: float
    noise_floor: float


def drawn_distance(shares: Floats, ideal: Floats) -> DrawnDistance:
    """The distance of the strategy with these runs from `ideal`. O(R k).

    `shares`: float64, shape (R, k), each row adding up to 1, in the order of independent runs; `ideal`: float64, shape
    (k,). Raises OptionError for fewer than `LEAST_RUNS` runs.
    """
    runs = len(shares)
    if runs < LEAST_RUNS:
        raise OptionError(f"a distance with an error needs at least {LEAST_RUNS} runs, not {runs}")
    plug_in = float(np.abs(shares.mean(axis=0) - ideal).sum()) / 2
    halves = shares[::2], shares[1::2]
    values, variances = [], []
    for fitted, judged in (halves, halves[::-1]):
        signs = np.sign(fitted.mean(axis=0) - ideal)
        each = (judged - ideal) @ signs / 2
        values.append(float(each.mean()))
        ends = (np.array([signs.min(), signs.max()]) - ideal @ signs) / 2
        variances.append(float(np.append(each, ends).var(ddof=1)) / len(each))
    return DrawnDistance(
        float(np.mean(values)), float(np.sqrt(np.mean(variances))), plug_in, expected_distance(ideal, runs)
    )


def expected_distance(ideal: Floats, draws: int) -> float:
    """The mean total variation between `ideal` and the shares of so many exact draws from it. O(k).

    E|X - np| = 2 (m + 1) C(n, m + 1) p^(m+1) (1 - p)^(n - m) with m = floor(np), for X binomial (De Moivre 1730;
    Diaconis and Zabell 1991).
    """
    total = 0.0
    for p in ideal.tolist():
        if 0 < p < 1:
            m = floor(draws * p)
            log_choose = lgamma(draws + 1) - lgamma(m + 2) - lgamma(draws - m)
            total += 2 * exp(log(m + 1) + log_choose + (m + 1) * log(p) + (draws - m) * log(1 - p))
    return total / draws / 2


def skew_of_ways(answers: pd.DataFrame, exact: pd.DataFrame) -> pd.DataFrame:
    """A row for each model and way: the mean of its distances over the ``prompts`` where it has one.

    `exact`: a row for each prompt and way whose distribution is known, the ideal among them. ``tv`` is exact for these,
    and cross-fitted for the others, with the ends of its 95 % interval (``tv_from``, ``tv_to``).
    """
    import pandas as pd

    known: dict[Any, Floats] = {}
    places: dict[Any, Callable[[str], int]] = {}
    for row in exact.to_dict("records"):
        known[row["model"], row["item"], row["way"]] = np.array(json.loads(row["probabilities"]))
        places[row["model"], row["item"]] = json.loads(row["choices"]).index
    told = []
    for (model, way), mine in answers.groupby(["model", "way"], sort=False):
        found: list[DrawnDistance] = []
        for prompt, drawn in mine[mine["valid"].astype(bool)].groupby("prompt", sort=False):
            if (ideal := known.get((model, prompt, IDEAL))) is None:
                continue
            goal = ideal / ideal.sum()
            if (own := known.get((model, prompt, way))) is not None:
                found.append(DrawnDistance(total_variation(own / own.sum(), goal), 0.0, np.nan, np.nan))
            elif len(drawn) >= LEAST_RUNS:
                found.append(drawn_distance(np.eye(len(goal))[drawn["text"].map(places[model, prompt])], goal))
        if found:
            tv, _, plug_in, noise_floor = np.mean(found, axis=0).tolist()
            margin = Z_95 * float(np.linalg.norm([one.standard_error for one in found])) / len(found)
            place = {"model": model, "way": way, "prompts": len(found), "tv": tv, "tv_from": tv - margin}
            told.append({**place, "tv_to": tv + margin, "plug_in": plug_in, "noise_floor": noise_floor})
    return pd.DataFrame(told, columns=None if told else ["model", "way"])
