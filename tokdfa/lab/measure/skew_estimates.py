"""The rows of estimated skew: the figures of each engine, named events, and what differs between engines.

`tokdfa.lab.kinds.skew_regex` has the meanings of the columns.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.decoding.sampling import log_total
from tokdfa.lab.measure.limits import OK
from tokdfa.skew.measured import Z_95, differs, standard_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tokdfa.skew.estimate import Estimate
    from tokdfa.skew.measured import Measured
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: What is measured of every engine, and compared between engines: attributes of `Estimate`.
MEASURES = (
    *("total_variation", "kl_forward", "kl_backward", "jensen_shannon"),
    *("log_mass", "mean_tokens", "forced_share"),
)
#: How many of the most probable texts are kept of each distribution.
SHOWN_TEXTS = 3


def figures(found: Estimate) -> dict[str, Any]:
    """The measures of one engine, with their intervals."""
    row: dict[str, Any] = {
        "samples": len(found.sequences),
        "effective": found.effective_samples,
        "cut_share": found.cut_share,
        "sequences": hashlib.sha256(repr(found.sequences).encode()).hexdigest()[:16],
    }
    for name in MEASURES:
        row |= _columns(name, getattr(found, name))
    if found.improper is not None:
        row |= _columns("improper_masked", found.improper.masked) | _columns("improper_target", found.improper.target)
    return row


def _columns(name: str, measured: Measured) -> dict[str, float]:
    return {name: float(measured.value), f"{name}_low": float(measured.low), f"{name}_high": float(measured.high)}


def kept_share(found: Estimate, first: Estimate) -> dict[str, float]:
    """The mass relative to that of `first`, with an interval of 95 %: paired, or wide where samples were cut."""
    one, other = found.log_mass, first.log_mass
    difference = one.value - other.value
    if one.is_cut or other.is_cut:
        low, high = one.low - other.high, one.high - other.low
    else:
        margin = Z_95 * standard_error(one.influence - other.influence)
        low, high = difference - margin, difference + margin
    return {"kept": float(np.exp(difference)), "kept_low": float(np.exp(low)), "kept_high": float(np.exp(high))}


def probable_texts(found: Estimate, vocabulary: Vocabulary) -> dict[str, str]:
    """The most probable texts under Q and under P, as far as the samples show; a cut sample is no text."""
    shares = np.exp(found.log_weights - log_total(found.log_weights))
    masked: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for tokens, share, complete in zip(found.sequences, shares.tolist(), found.complete.tolist(), strict=True):
        if complete:
            text = vocabulary.spell(tokens).decode(errors="backslashreplace")
            masked[text] += 1 / len(shares)  # type: ignore[assignment]
            target[text] += share

    def listed(most: Counter[str]) -> str:
        return json.dumps([[text, masked[text], target[text]] for text, _ in most.most_common(SHOWN_TEXTS)])

    return {"drawn": listed(masked), "meant": listed(target)}


def event_rows(found: Estimate, patterns: Mapping[str, str], engine: str) -> Iterator[dict[str, Any]]:
    """A row for each named set of texts. `patterns`: name -> regex."""
    for name, event in found.events.items():
        row = {"part": "event", "engine": engine, "event": name, "pattern": patterns[name], "status": OK}
        yield row | _columns("masked", event.masked) | _columns("target", event.target)


def difference_rows(estimates: Mapping[str, Estimate]) -> Iterator[dict[str, Any]]:
    """A row for each pair of engines and each measure."""
    for (name, one), (other_name, other) in itertools.combinations(estimates.items(), 2):
        for measure in MEASURES:
            first, second = getattr(one, measure), getattr(other, measure)
            verdict = {True: "yes", False: "no", None: "unknown"}[differs(first, second)]
            row = {"part": "difference", "engine": name, "other": other_name, "measure": measure, "status": OK}
            yield row | {"value": first.value, "other_value": second.value, "verdict": verdict}
