"""What knowing a tokenizer's proper sequences costs, and whether it is right: the figures of one tokenizer, as rows.

See `tokdfa.lab.kinds.canonicity` for the groups of figures and what they mean.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.kernel_store import kernel_folder
from tokdfa.errors import TokenizerError
from tokdfa.lab.measure.canonicity_replay import compare_with_replay, untied_rules, with_rules_only
from tokdfa.lab.measure.clock import ONE_THREAD, collector_off, time_call
from tokdfa.lab.measure.judge import Judge, TokenSequences
from tokdfa.lab.measure.judge_draws import judge_pieces, judge_texts
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.memory import read_usage, release_free_memory, reset_peak
from tokdfa.mask import allocate_mask
from tokdfa.proper.byte_fallback import build_byte_fallback
from tokdfa.proper.canonical import NARROW, Canonicity
from tokdfa.proper.derivations import derive_tokens
from tokdfa.proper.intervals import build_lists
from tokdfa.proper.merge_rules import extract_rules, letter_tokens
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build, write_canonicity
from tokdfa.proper.statistics import collect_statistics
from tokdfa.proper.verify import check_against_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.lab.measure.judge import Tally
    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Pairs of which the compiled test is timed.
COMPILED_PAIRS = 200_000

#: What a new process times, in this order.
_STEPS = ("tokenizer", "canonicity", "marked language")
_NEW_PROCESS = """
import json, sys, time
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer
clock = [time.perf_counter()]
tokenizer = load_tokenizer(sys.argv[1])
clock.append(time.perf_counter())
for load in (load_canonicity, load_marked_dfa):
    load(tokenizer)
    clock.append(time.perf_counter())
print(json.dumps([end - begin for begin, end in zip(clock, clock[1:])]))
"""


class Statistics:
    """The rows of one tokenizer."""

    def __init__(self, label: str, size: int) -> None:
        self.place = {"tokenizer": label, "vocab_size": size}
        self.rows: list[dict[str, Any]] = []

    def add(self, group: str, name: str, value: float | None, unit: str = "", samples: int = 1, **more: Any) -> None:
        """A figure. `more`: at, note, status, message."""
        plain = {"at": None, "note": "", "status": OK, "message": ""}
        figure = {"group": group, "name": name, "value": None if value is None else float(value), "unit": unit}
        self.rows.append({**self.place, **figure, "samples": samples, **plain, **more})

    def attempt(self, group: str, measure: Callable[..., None], *given: Any) -> None:
        """Call `measure`, which adds figures; if it raises, that is a row of the group."""
        failure = attempt(measure, self, *given)
        if isinstance(failure, Failure):
            self.add(group, "failure", None, status=failure.kind, message=failure.message)

    def medians(self, group: str, seconds: Mapping[str, list[float]]) -> None:
        """The median of each list of seconds."""
        for name, samples in seconds.items():
            self.add(group, name, median(samples), "s", len(samples))


def measure_tokenizer(
    tokenizer: Tokenizer,
    label: str,
    *,
    judge: int,
    seconds: float,
    repeats: int,
    processes: int,
    masks: int,
    replay: bool,
    seed: int,
) -> list[dict[str, Any]]:
    """All figures of one tokenizer, under `label`; the options are the experiment's, `replay`: also 002's way."""
    figures, canonicity = Statistics(label, tokenizer.vocabulary.size), load_canonicity(tokenizer)
    _measure_build(figures, tokenizer, repeats)
    _measure_disk(figures, tokenizer, canonicity, repeats)
    figures.attempt("new process", _measure_new_processes, tokenizer, processes)
    _count(figures, tokenizer, canonicity)
    drawn = np.random.default_rng(seed)
    _measure_masks(figures, canonicity, masks, repeats, drawn)
    figures.attempt("mask", _measure_judge, canonicity, repeats, drawn)
    for group in ("pieces", "texts"):
        figures.attempt(group, _judge, group, tokenizer, judge, seconds, seed)
    if replay:
        _replay(figures, canonicity)
    return figures.rows


def _measure_build(figures: Statistics, tokenizer: Tokenizer, repeats: int) -> None:
    """Each part of building, and all of it."""
    source, vocabulary = tokenizer.merges, tokenizer.vocabulary
    seconds: dict[str, list[float]] = {}

    def timed(name: str, function: Callable[[], Any]) -> Any:
        value, ns = time_call(function)
        seconds.setdefault(name, []).append(ns * 1e-9)
        return value

    release_free_memory()
    reset_peak()
    before = read_usage()
    build_canonicity(tokenizer)
    figures.add("memory", "peak", read_usage().peak_over(before), "B")
    with collector_off():
        for _ in range(repeats):
            rules = timed("rules", partial(extract_rules, tokenizer))
            derivations = timed("derivations", partial(derive_tokens, rules))
            also = np.zeros(0, dtype=np.int32)
            if source.byte_tokens is not None:
                also = timed("byte fallback", partial(_build_fallback, source, vocabulary)).used_tokens()
            merge_tree = timed("merge tree", partial(build_merge_tree, derivations, also))
            timed("interval lists", partial(build_lists, rules, derivations, merge_tree))
            timed("total", partial(build_canonicity, tokenizer))
    figures.medians("build", seconds)


def _build_fallback(source: MergeSource, vocabulary: Vocabulary) -> ByteFallback:
    assert source.byte_tokens is not None
    return build_byte_fallback(source.byte_tokens, letter_tokens(vocabulary, source), vocabulary.size)


def _measure_disk(figures: Statistics, tokenizer: Tokenizer, canonicity: Canonicity, repeats: int) -> None:
    """Writing, reading and verifying, in a folder of its own."""
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, collector_off():
        folder = Path(name)
        read_or_build(tokenizer, folder)
        (kept,) = folder.iterdir()
        parts: dict[str, Callable[[], Any]] = {
            "write": partial(write_canonicity, folder / "again", canonicity),
            "load": partial(read_or_build, tokenizer, folder),
            "verify": partial(check_against_reference, canonicity, tokenizer.name),
        }
        for _ in range(repeats):
            for part, function in parts.items():
                seconds.setdefault(part, []).append(time_call(function)[1] * 1e-9)
        figures.medians("disk", seconds)
        figures.add("disk", "file", kept.stat().st_size, "B")


def _measure_new_processes(figures: Statistics, tokenizer: Tokenizer, count: int) -> None:
    """What a program waits for that has just been started, with and without files on the disk."""
    steps = _STEPS if load_marked_dfa(tokenizer) is not None else _STEPS[:-1]
    seconds: dict[str, list[float]] = {}
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, **ONE_THREAD, "XDG_CACHE_HOME": folder}
            environment["NUMBA_CACHE_DIR"] = str(kernel_folder())
            for where in ("scratch", "the disk"):
                run = subprocess.run(
                    [sys.executable, "-c", _NEW_PROCESS, tokenizer.name],
                    capture_output=True,
                    text=True,
                    env=environment,
                    check=False,
                )
                if run.returncode:
                    raise TokenizerError(f"a new process failed: {run.stderr.strip().splitlines()[-1:]}")
                for step, value in zip(steps, json.loads(run.stdout), strict=False):
                    seconds.setdefault(f"{step} from {where}", []).append(value)
    figures.medians("new process", seconds)


def _count(figures: Statistics, tokenizer: Tokenizer, canonicity: Canonicity) -> None:
    """Counts, memory, and the distribution of what tokens forbid."""
    found = collect_statistics(tokenizer)
    sizes = np.diff(canonicity.lists.list_starts)
    of_tokens = canonicity.lists.state_of[canonicity.merge_tree.order]
    figures_of: dict[str, float] = {
        "rules": found.rules,
        "proper tokens": found.proper_tokens,
        "improper tokens": found.improper_tokens,
        "irregular tokens": found.irregular_tokens,
        "byte tokens": found.byte_tokens,
        "whole pieces": found.whole_pieces,
        "states": found.states,
        "intervals": found.intervals,
        "mean list": float(sizes[of_tokens].mean()),
        "largest list": int(sizes.max()),
    }
    for name, value in figures_of.items():
        figures.add("count", name, value)
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
    figures: Statistics, canonicity: Canonicity, count: int, repeats: int, drawn: np.random.Generator
) -> None:
    """Masks of narrow and of wide lists, first and later ones, in turns; and the test of a pair."""
    one_of_state = canonicity.merge_tree.order[
        np.unique(canonicity.lists.state_of[canonicity.merge_tree.order], True)[1]
    ]
    counts = canonicity.forbidden_counts[canonicity.lists.state_of[one_of_state]]
    choices = {"narrow": one_of_state[(counts > 0) & (counts <= NARROW)], "wide": one_of_state[counts > NARROW]}
    samples = {width: drawn.permutation(tokens)[:count].tolist() for width, tokens in choices.items() if len(tokens)}
    parts = (canonicity.vocabulary, canonicity.source, canonicity.rules, canonicity.derivations, canonicity.merge_tree)
    seconds: dict[str, list[float]] = {f"{width} {when}": [] for width in samples for when in ("first", "again")}
    out = allocate_mask(canonicity.size)
    with collector_off():
        for _ in range(repeats):
            fresh = Canonicity(*parts, canonicity.lists, canonicity.fallback)
            for width, tokens in samples.items():
                for when in ("first", "again"):
                    for token in tokens:
                        _, ns = time_call(partial(fresh.forbidden_mask, token, out))
                        seconds[f"{width} {when}"].append(ns * 1e-9)
        pairs = drawn.choice(canonicity.merge_tree.order, (count * repeats, 2)).tolist()
        test = canonicity.pair_is_canonical
        test(*pairs[0])
        seconds["pair"] = [time_call(partial(test, *pair))[1] * 1e-9 for pair in pairs]
    figures.medians("mask", seconds)


def _measure_judge(figures: Statistics, canonicity: Canonicity, repeats: int, drawn: np.random.Generator) -> None:
    """A sequence of two tokens in the compiled judge."""
    judge = Judge(canonicity)
    tokens = drawn.choice(canonicity.merge_tree.order, 2 * COMPILED_PAIRS)
    pairs = TokenSequences(tokens, np.arange(0, 2 * COMPILED_PAIRS + 1, 2))
    judge.verdicts(pairs)
    with collector_off():
        seconds = [time_call(partial(judge.verdicts, pairs))[1] * 1e-9 for _ in range(repeats)]
    figures.medians("mask", {"pair judged": [one / COMPILED_PAIRS for one in seconds]})


def _judge(figures: Statistics, group: str, tokenizer: Tokenizer, count: int, limit: float, seed: int) -> None:
    """Sequences of one piece, or of whole texts, judged by us and by the reference."""

    def run(judged: int) -> Tally:
        if group == "pieces":
            return judge_pieces(load_canonicity(tokenizer), judged, seed, limit)
        return judge_texts(tokenizer, judged, seed, limit)

    run(min(count, 100))  # so that no kernel is loaded, and no file read, while the clock runs
    tally, ns = time_call(partial(run, count))
    counts = ("judged", "distinct", "proper", "improper", "mismatches", "disputed")
    for name in counts:
        figures.add(group, name, getattr(tally, name))
    figures.add(group, "seconds", ns * 1e-9, "s")
    figures.add(group, "our seconds", tally.our_seconds, "s")
    figures.add(group, "reference seconds", tally.reference_seconds, "s")
    for example in tally.examples:
        figures.add(group, "example", None, note=example)
    if tally.judged < count:
        message = f"{tally.judged} of {count} sequences were judged in {limit:g} s"
        figures.add(group, "unfinished", None, status="timeout", message=message)


def _replay(figures: Statistics, canonicity: Canonicity) -> None:
    """002's way, on the rules for which it is exact."""
    result = compare_with_replay(with_rules_only(canonicity, untied_rules(canonicity.rules)))
    figures.add("replay", "seconds", result.seconds, "s")
    figures.add("replay", "rules", result.rules)
    figures.add("replay", "rules left out", len(canonicity.rules) - result.rules)
    figures.add("replay", "table", result.table_bytes, "B")
    figures.add("replay", "rows compared", result.rows)
    figures.add("replay", "rows that differ", result.differing)
