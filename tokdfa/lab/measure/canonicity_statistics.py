"""What knowing a tokenizer's proper sequences costs, and whether it is right: the figures of one tokenizer, as rows.

See `tokdfa.lab.kinds.canonicity` for the groups of figures and what they mean.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.measure.canonicity_replay import compare_with_replay, untied_rules, with_rules_only
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.judge import judge_pieces, judge_texts
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.mask import allocate_mask
from tokdfa.proper.byte_fallback import build_byte_fallback
from tokdfa.proper.canonical import NARROW, Canonicity
from tokdfa.proper.derivations import derive_tokens
from tokdfa.proper.intervals import build_lists
from tokdfa.proper.merge_rules import extract_rules, letter_tokens
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build, write_canonicity
from tokdfa.proper.statistics import collect_statistics
from tokdfa.proper.verify import check_against_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.vocabulary.tokenizers import Tokenizer


class Figures:
    """The rows of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, label: str) -> None:
        self.place = {"tokenizer": label, "vocab_size": tokenizer.vocabulary.size}
        self.rows: list[dict[str, Any]] = []

    def add(self, group: str, name: str, value: float | None, unit: str = "", samples: int = 1, **more: Any) -> None:
        """A figure. `more`: at, note, status, message."""
        plain = {"at": None, "note": "", "status": OK, "message": ""}
        figure = {"group": group, "name": name, "value": None if value is None else float(value), "unit": unit}
        self.rows.append({**self.place, **figure, "samples": samples, **plain, **more})

    def add_all(self, group: str, values: Mapping[str, float], unit: str = "") -> None:
        """A figure for each value."""
        for name, value in values.items():
            self.add(group, name, value, unit)

    def medians(self, group: str, ns: Mapping[str, list[int]]) -> None:
        """The median of each list of nanoseconds."""
        for name, samples in ns.items():
            self.add(group, name, 1e-9 * median(samples), "s", len(samples))


def measure_tokenizer(
    tokenizer: Tokenizer, label: str, *, judge: int, seconds: float, repeats: int, masks: int, replay: bool, seed: int
) -> list[dict[str, Any]]:
    """All figures of one tokenizer, under `label`; the options are the experiment's, `replay`: also 002's way."""
    figures, canonicity = Figures(tokenizer, label), load_canonicity(tokenizer)
    _measure_build(figures, tokenizer, repeats)
    _measure_disk(figures, tokenizer, canonicity, repeats)
    _count(figures, tokenizer, canonicity)
    _measure_masks(figures, canonicity, masks, repeats, np.random.default_rng(seed))
    runs = {"pieces": partial(judge_pieces, canonicity), "texts": partial(judge_texts, tokenizer)}
    for group, run in runs.items():
        tally = attempt(run, judge, seed, seconds)
        if isinstance(tally, Failure):
            figures.add(group, "failure", None, status=tally.kind, message=tally.message)
            continue
        counts = ("judged", "distinct", "proper", "improper", "mismatches", "disputed")
        figures.add_all(group, {name: getattr(tally, name) for name in counts})
        figures.add_all(group, {"ours": tally.our_seconds, "reference": tally.reference_seconds}, "s")
        for example in tally.examples:
            figures.add(group, "example", None, note=example)
        if tally.judged < judge:
            message = f"{tally.judged} of {judge} sequences were judged in {seconds:g} s"
            figures.add(group, "unfinished", None, status="timeout", message=message)
    if replay:
        result = compare_with_replay(with_rules_only(canonicity, untied_rules(canonicity.rules)))
        figures.add("replay", "seconds", result.seconds, "s")
        figures.add("replay", "table", result.table_bytes, "B")
        counts_of = {"rules": result.rules, "rules left out": len(canonicity.rules) - result.rules}
        figures.add_all("replay", counts_of | {"rows compared": result.rows, "rows that differ": result.differing})
    return figures.rows


def _measure_build(figures: Figures, tokenizer: Tokenizer, repeats: int) -> None:
    """Each part of building, and all of it."""
    source, size = tokenizer.merges, tokenizer.vocabulary.size
    taken: dict[str, list[int]] = {}

    def timed(name: str, function: Callable[..., Any], *given: Any) -> Any:
        value, ns = time_call(partial(function, *given))
        taken.setdefault(name, []).append(ns)
        return value

    build_canonicity(tokenizer)
    with collector_off():
        for _ in range(repeats):
            rules = timed("rules", extract_rules, tokenizer)
            derivations = timed("derivations", derive_tokens, rules)
            also = np.zeros(0, dtype=np.int32)
            if source.byte_tokens is not None:
                letters = letter_tokens(tokenizer.vocabulary, source)
                also = timed("byte fallback", build_byte_fallback, source.byte_tokens, letters, size).used_tokens()
            merge_tree = timed("merge tree", build_merge_tree, derivations, also)
            timed("interval lists", build_lists, rules, derivations, merge_tree)
            timed("total", build_canonicity, tokenizer)
    figures.medians("build", taken)


def _measure_disk(figures: Figures, tokenizer: Tokenizer, canonicity: Canonicity, repeats: int) -> None:
    """Writing, reading and verifying, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name, collector_off():
        folder = Path(name)
        read_or_build(tokenizer, folder)
        (kept,) = folder.iterdir()
        parts: dict[str, Callable[[], Any]] = {
            "write": partial(write_canonicity, folder / "again", canonicity),
            "load": partial(read_or_build, tokenizer, folder),
            "verify": partial(check_against_reference, canonicity, tokenizer.name),
        }
        turns = [{part: time_call(function)[1] for part, function in parts.items()} for _ in range(repeats)]
        figures.medians("disk", {part: [turn[part] for turn in turns] for part in parts})
        figures.add("disk", "file", kept.stat().st_size, "B")


def _count(figures: Figures, tokenizer: Tokenizer, canonicity: Canonicity) -> None:
    """Counts, memory, and the distribution of what tokens forbid."""
    found, sizes = collect_statistics(tokenizer), np.diff(canonicity.lists.list_starts)
    of_tokens = canonicity.lists.state_of[canonicity.merge_tree.order]
    names = ("rules", "proper_tokens", "improper_tokens", "irregular_tokens", "byte_tokens", "whole_pieces", "states")
    figures.add_all("count", {name.replace("_", " "): getattr(found, name) for name in (*names, "intervals")})
    figures.add_all("count", {"mean list": float(sizes[of_tokens].mean()), "largest list": int(sizes.max())})
    after = ", ".join(repr(tokenizer.vocabulary.token_bytes(token))[1:] for token in found.largest_after[:3])
    figures.add("count", "most forbidden", found.largest_count, note=after)
    if found.marked_states is not None and found.marked_bytes is not None:
        figures.add("count", "marked states", found.marked_states)
        figures.add("memory", "marked language", found.marked_bytes, "B")
    figures.add("memory", "canonicity", found.memory_bytes, "B")
    places, counts = np.linspace(0, 1, 101), canonicity.forbidden_counts[of_tokens]
    for at, value in zip(places, np.quantile(counts, places, method="nearest"), strict=True):
        figures.add("forbidden", "quantile", value, at=float(at))


def _measure_masks(
    figures: Figures, canonicity: Canonicity, count: int, repeats: int, drawn: np.random.Generator
) -> None:
    """Masks of narrow and of wide lists, first and later ones, in turns; and the test of a pair."""
    lists, tree = canonicity.lists, canonicity.merge_tree
    one_of_state = tree.order[np.unique(lists.state_of[tree.order], return_index=True)[1]]
    counts = canonicity.forbidden_counts[lists.state_of[one_of_state]]
    choices = {"narrow": one_of_state[(counts > 0) & (counts <= NARROW)], "wide": one_of_state[counts > NARROW]}
    samples = {width: drawn.permutation(tokens)[:count].tolist() for width, tokens in choices.items() if len(tokens)}
    taken: dict[str, list[int]] = {f"{width} {when}": [] for width in samples for when in ("first", "again")}
    parts = (canonicity.vocabulary, canonicity.source, canonicity.rules, canonicity.derivations, tree, lists)
    out = allocate_mask(canonicity.size)
    with collector_off():
        for _ in range(repeats):
            fresh = Canonicity(*parts, canonicity.fallback)
            for width, tokens in samples.items():
                for when in ("first", "again"):
                    for token in tokens:
                        taken[f"{width} {when}"].append(time_call(partial(fresh.forbidden_mask, token, out))[1])
        pairs = drawn.choice(tree.order, (count * repeats, 2)).tolist()
        canonicity.pair_is_canonical(*pairs[0])
        taken["pair"] = [time_call(partial(canonicity.pair_is_canonical, *pair))[1] for pair in pairs]
    figures.medians("mask", taken)
