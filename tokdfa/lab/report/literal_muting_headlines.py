"""What a ``literal_muting`` run found, in sentences computed from its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.report.literal_muting_data import (
    CLAIM,
    MUTED,
    https_cases,
    muting_pairs,
    rows_of,
    tokenization_counts,
    with_literals,
)
from tokdfa.lab.report.metrics import format_share, short_factor, spread
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Muting pays where it makes compiling this many times as fast.
PAYS = 1.1


def headlines(data: RunData) -> list[str]:
    """The HTTPS ratio beside the claim, where muting pays, how costs grow, and what is forbidden."""
    if data.results.empty:
        return ["The run has no results yet."]
    pairs = with_literals(muting_pairs(rows_of(data, "cost")))
    sentences = [*_https(data, pairs), *_pays(pairs), *_acts_on(pairs), *_growth(data), *_forbidden(data)]
    lost = data.results[data.results["status"] != "ok"]
    if len(lost):
        sentences.append(f"{len(lost)} of {len(data.results)} rows have no result: {failure_counts(lost)}.")
    return sentences


def _https(data: RunData, pairs: pd.DataFrame) -> list[str]:
    sentences = []
    frame = rows_of(data, "cost")
    for constraint in https_cases(data):
        mine = pairs[pairs["constraint"] == constraint]
        parts = []
        for classes, group in mine.groupby("token_classes", sort=False):
            named = zip(group["tokenizer"], group["ratio"], strict=True)
            parts.append(f"{classes}: " + ", ".join(f"{short_factor(ratio)} ({name})" for name, ratio in named))
        if parts:
            sentences.append(
                f"{constraint}: plain over muted compile time, {'; '.join(parts)}; 001 reports {short_factor(CLAIM)}."
            )
        strings = mine[mine["token_classes"] == "strings"]
        if len(strings):
            fewer = strings["class_strings_plain"] / strings["class_strings_muted"]
            walks = strings["walks_s_plain"] / strings["walks_s_muted"]
            share = strings["walks_s_plain"] / strings["seconds_plain"]
            sentences.append(
                f"{constraint}, strings: muting divides the class strings by {_range(fewer)} and the walks over them "
                f"by {_range(walks)}; the walks are {format_share(share.median())} of the plain compile time (medians "
                f"of {len(strings)} tokenizers)."
            )
        sentences += _outlines(frame[frame["constraint"] == constraint], constraint)
    return sentences


def _outlines(frame: pd.DataFrame, constraint: str) -> list[str]:
    done = frame[frame["status"] == "ok"]
    theirs = done[done["backend"] == "outlines_core"].set_index("tokenizer")["seconds"]
    parts = []
    for (classes, muted), group in done[done["token_classes"] != ""].groupby(["token_classes", "muted"], sort=False):
        ratios = (theirs / group.set_index("tokenizer")["seconds"]).dropna().astype(float)
        if len(ratios):
            parts.append(f"{classes}{MUTED if muted else ''} {_range(ratios)}")
    return [f"{constraint}: outlines_core's compile time over that of tokens_dfa: {'; '.join(parts)}."] if parts else []


def _range(values: pd.Series[float]) -> str:
    return f"{short_factor(float(values.median()))}{spread(float(values.min()), float(values.max()))}"


def _pays(pairs: pd.DataFrame) -> list[str]:
    sentences = []
    for classes, group in pairs.groupby("token_classes", sort=False):
        paying = group[group["ratio"] >= PAYS]
        best = group.iloc[int(group["ratio"].argmax())]
        sentences.append(
            f"{classes}: muting makes compiling at least {PAYS:g} times as fast in {len(paying)} of {len(group)} cases "
            f"with literals; plain over muted compile time {_range(group['ratio'])}, highest for {best['constraint']} "
            f"on {best['tokenizer']}."
        )
    return sentences


def _acts_on(pairs: pd.DataFrame) -> list[str]:
    strings = pairs[pairs["token_classes"] == "strings"]
    if strings.empty:
        return []
    fewer = strings["class_strings_plain"] / strings["class_strings_muted"]
    walks = strings["walks_s_plain"] / strings["walks_s_muted"]
    return [
        f"strings: over these {len(strings)} cases muting divides the class strings by {_range(fewer)} and the walks "
        f"by {_range(walks)}."
    ]


def _growth(data: RunData) -> list[str]:
    pairs = muting_pairs(rows_of(data, "growth"), ["axis", "words", "length"])
    sentences = []
    for constraint, mine in pairs.groupby("constraint", sort=False):
        parts = []
        for axis, unit in (("words", "words"), ("length", "letters a word")):
            along = mine[mine["axis"] == axis]
            for classes, group in along[along[axis] == along[axis].max()].groupby("token_classes", sort=False):
                parts.append(f"{group[axis].iloc[0]:,.0f} {unit}, {classes}: {_range(group['ratio'])}")
        sentences.append(f"{constraint}: plain over muted compile time at {'; '.join(parts)}.")
    return sentences


def _forbidden(data: RunData) -> list[str]:
    counts = tokenization_counts(data)
    if counts.empty:
        return []
    sentences = []
    followed = counts[(counts["followed"] > 0) & (counts["literals"] > 0)]
    for source, group in followed.groupby("source", sort=False):
        texts = (group["forbidden"] / group["followed"]).astype(float)
        positions = (group["forbidden"] / group["positions"]).astype(float)
        tokens = (group["muted_count"] / group["proper_count"]).astype(float).dropna()
        what = "given texts" if source == "given" else "drawn texts"
        sentences.append(
            f"{what}: muting forbids {_shares(texts)} of the proper tokenizations and {_shares(positions)} of the "
            f"positions they reach (lowest, median and highest of {len(group)} cases with literals); the shortest "
            f"allowed sequence has {_range(tokens)} times as many tokens as the proper one."
        )
    plain, total = int(counts["plain_stops"].sum()), int(counts["followed"].sum())
    sentences.append(
        f"Without muting {'none' if not plain else f'{plain:,}'} of the {total:,} proper tokenizations is forbidden."
    )
    changed = int(counts["changed"].sum())
    if changed:
        sentences.append(f"{changed:,} texts were not followed, since their tokenizer changes them.")
    return sentences


def _shares(values: pd.Series[float]) -> str:
    return " – ".join(format_share(float(value)) for value in (values.min(), values.median(), values.max()))
