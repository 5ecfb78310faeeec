"""What a run of kind ``tokens_dfa_ablation`` found, in sentences computed from its data."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tokdfa.lab.report.metrics import format_seconds, short_factor, spread
from tokdfa.lab.report.tables import failure_counts
from tokdfa.lab.report.tokens_dfa_ablation_data import (
    BASELINE,
    DEFAULT,
    MUTING,
    PEER,
    SETTINGS,
    THREADED,
    THREADS,
    factors,
    judged,
    largest_vocabulary,
    measured,
    pairs,
    speeds,
    threaded,
)

if TYPE_CHECKING:
    from tokdfa.lab.report.data import RunData

#: What a switch can buy: column -> (in words, the median factor from which on it pays). Equal masks of a microsecond
#: differ by a tenth from run to run, equal compiles of some milliseconds by less than a fiftieth.
GAINS = {
    "compile_s": ("compile time", 1.02),
    "size_table_bytes": ("table bytes", 1.02),
    "mask_ns": ("mask time", 1.2),
}
#: Compile times closer than this are called equal.
EQUAL = 1.02


def headlines(data: RunData) -> list[str]:
    """Against the baselines, what the switches buy, threads, masks, and whether all gave the same masks."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = [*_against_baseline(data), *_against_peer(data)]
    for setting in SETTINGS:
        sentences += [*_what_pays(data, setting), *_muting(data, setting)]
    return [*sentences, *_two_threads(data), *_mask_sentence(data), _same_masks(data)]


def _against_baseline(data: RunData) -> list[str]:
    found = speeds(data, DEFAULT, BASELINE)
    if not found:
        return []
    slower = [f"{speed} ({short_factor(speed.factor)})" for speed in found if speed.factor < 1 / EQUAL]
    named = f"slower in {len(slower)}: {', '.join(slower[:6])}{', ...' if len(slower) > 6 else ''}"
    return [
        f"{DEFAULT} compiles {short_factor(median(speed.factor for speed in found))} times as fast as {BASELINE}"
        f"{spread(found[0].factor, found[-1].factor)}, median of {len(found)} cases; at least as fast "
        f"(within {EQUAL - 1:.0%}) in {len(found) - len(slower)}, {named if slower else 'slower in none'}."
    ]


def _against_peer(data: RunData) -> list[str]:
    found = speeds(data, DEFAULT, PEER)
    if not found:
        return []
    return [
        f"{DEFAULT} compiles {short_factor(median(speed.factor for speed in found))} times as fast as {PEER}, median "
        f"of {len(found)} cases; {short_factor(found[0].factor)} at least ({found[0]}), "
        f"{short_factor(found[-1].factor)} at most ({found[-1]})."
    ]


def _what_pays(data: RunData, setting: str) -> list[str]:
    """Which switches buy something in their median pair, and which do not. Muting has a sentence of its own."""
    pay, idle = [], []
    for place, switch, found in judged(data):
        if place != setting or switch == MUTING:
            continue
        medians = {column: float(factors(found, (column,)).median()) for column in GAINS}
        gains = [
            f"{short_factor(medians[column])} in {what}"
            for column, (what, least) in GAINS.items()
            if medians[column] >= least
        ]
        if gains:
            pay.append(f"{switch.title} ({', '.join(gains)})")
        else:
            idle.append(f"{switch.title} ({short_factor(medians['compile_s'])} in compile time)")
    if not pay and not idle:
        return []
    return [
        f"With {SETTINGS[setting]}, these pay, as factors of the median pair: {', '.join(pay) or 'none'}; "
        f"these do not: {', '.join(idle) or 'none'}."
    ]


def _muting(data: RunData, setting: str) -> list[str]:
    found = pairs(data, MUTING, setting)
    if found.empty:
        return []
    ratios = factors(found, ("compile_s",))
    by_regex = ratios.groupby(found["constraint"]).median()
    return [
        f"Muting literals, with {SETTINGS[setting]}: compiles {short_factor(ratios.median())} times as fast"
        f"{spread(ratios.min(), ratios.max())}; it does most for {by_regex.idxmax()} "
        f"({short_factor(by_regex.max())}) and least for {by_regex.idxmin()} ({short_factor(by_regex.min())})."
    ]


def _two_threads(data: RunData) -> list[str]:
    """The three regexes of the largest vocabulary that take longest with one thread, variant by variant."""
    found = threaded(data).rename(columns={"vocab_size_with": "vocab_size"})
    sentences = []
    for label, name in THREADED.items():
        mine = found[found["variant_without"] == label]
        if mine.empty:
            continue
        tokenizer = largest_vocabulary(mine)
        mine = mine[mine["tokenizer"] == tokenizer].nlargest(3, "compile_s_without")
        ratios = zip(mine["constraint"], factors(mine, THREADS.columns), factors(mine, ("compile_s",)), strict=True)
        told = [f"{regex} {short_factor(parallel)} ({short_factor(whole)})" for regex, parallel, whole in ratios]
        sentences.append(
            f"Two threads, {name}, the slowest regexes on {tokenizer}, times as fast in the phases that run in "
            f"parallel (in the whole compile): {', '.join(told)}."
        )
    return sentences


def _mask_sentence(data: RunData) -> list[str]:
    mine = measured(data)
    mine = mine[(mine["variant"] == DEFAULT) & mine["mask_ns"].notna()]
    if mine.empty:
        return []
    slowest = mine.iloc[int(mine["mask_ns"].argmax())]
    return [
        f"A mask of {DEFAULT} takes {format_seconds(mine['mask_ns'].median() * 1e-9)} (median of {len(mine)} cases), "
        f"in the slowest {format_seconds(slowest['mask_ns'] * 1e-9)} "
        f"({slowest['constraint']} on {slowest['tokenizer']})."
    ]


def _same_masks(data: RunData) -> str:
    counted = failure_counts(data.results)
    if not counted:
        return f"All {len(data.results):,} rows succeeded: contenders of one token language gave the same masks."
    return f"Of {len(data.results):,} rows these failed: {counted}."
