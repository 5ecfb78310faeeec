"""The experiment ``kind: canonicity``: what knowing a tokenizer's proper sequences costs, and whether it is right.

One item is a tokenizer. Its rows are figures: ``group``, ``name``, ``value`` with its ``unit`` ("s", "B", "" for a
count), the number of ``samples`` a median is of, a ``note``; a part that could not be measured is a row with a
``status`` and a ``message`` in place of a value. The groups:

- ``build``: the parts of `tokdfa.proper.rules_cache.build_canonicity` one by one, and its whole (``total``); medians;
- ``disk``: writing the file, and reading it with all checks and the comparison with the reference (``load``), of which
  that comparison alone is ``verify``; the size of the ``file``;
- ``new process``: the same as a program meets it, with an empty folder (``... from scratch``) and then with a full one
  (``... from the disk``): loading the tokenizer, the canonicity, and the marked language of the pre-tokenizer. Kernels
  are compiled already, but loaded by that process; its start is not counted;
- ``count``, ``memory``: of `tokdfa.proper.figures`; ``peak`` is how far the process's memory rises while building;
- ``forbidden``: the ``quantile`` ``at`` 0, 0.01, .. 1 of how many tokens a token forbids next, over all proper tokens;
- ``mask``: forbidden masks of narrow and wide lists (`tokdfa.proper.canonical.NARROW`), the ``first`` of a state and
  later ones (``again``; wide ones are kept); the test of one ``pair`` from Python, and a sequence of two tokens in the
  compiled judge (``pair judged``), which does it in two ways and reads the bytes as well;
- ``pieces``, ``texts``: sequences judged by us and by the reference library (`tokdfa.lab.measure.judge_draws`), with
  the number of ``mismatches``, and the first of them as rows ``example``;
- ``replay``: 002's way (`tokdfa.lab.measure.canonicity_replay`), for the tokenizers that the settings name.

Two tokenizers trained on the spot are measured likewise, as rows of their own, in the item of the tokenizer that the
setting ``trained`` names.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.core.jit import kernel_folder
from tokdfa.errors import LimitExceeded, OptionError, TokdfaError, TokenizerError, UnknownNameError
from tokdfa.lab.measure.canonicity_replay import compare_with_replay, untied_rules, with_rules_only
from tokdfa.lab.measure.clock import ONE_THREAD, collector_off, time_call
from tokdfa.lab.measure.judge import Judge, TokenSequences
from tokdfa.lab.measure.judge_draws import judge_pieces, judge_texts
from tokdfa.lab.measure.limits import OK, failure_of
from tokdfa.lab.measure.memory import read_usage, release_free_memory, reset_peak
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.mask import allocate_mask
from tokdfa.proper.byte_fallback import build_byte_fallback
from tokdfa.proper.canonical import NARROW, Canonicity
from tokdfa.proper.derivations import derive_tokens
from tokdfa.proper.figures import collect_figures
from tokdfa.proper.forest import build_forest
from tokdfa.proper.intervals import build_lists
from tokdfa.proper.merge_rules import extract_rules, letter_tokens
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build, write_canonicity
from tokdfa.proper.verify import check_against_reference
from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: The largest table of tokens x tokens that the replay may make, in bytes.
MAX_REPLAY_BYTES = 1 << 29
#: Pairs of which the compiled test is timed.
COMPILED_PAIRS = 200_000
#: Texts that tokenizers are trained on.
TRAINING_TEXTS = 60_000

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


class Settings(BaseModel):
    """The settings of the experiment.

    `judge`: sequences judged, as pieces and again as texts, each within `seconds`. `repeats`: of what is built, read
    and written; `processes`: new ones, from scratch and from the disk each. `masks`: of how many narrow and how many
    wide lists masks are made, once a repeat. `replay`: the tokenizers that 002's way is run on. `trained`: the
    tokenizer in whose item two tokenizers of `trained_size` tokens are trained and measured; none if it is empty.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    judge: Annotated[int, Field(ge=0, le=100_000_000)] = 1_000_000
    seconds: Annotated[float, Field(gt=0)] = 180.0
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    processes: Annotated[int, Field(ge=0, le=100)] = 3
    masks: Annotated[int, Field(ge=1, le=100_000)] = 200
    replay: list[str] = Field(default_factory=list)
    trained: str = ""
    trained_size: Annotated[int, Field(ge=1_000, le=100_000)] = 8_000


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    known = tokenizer_names()
    for name in filter(None, [*typed.replay, typed.trained]):
        if ":" not in name and name not in known:  # a name that no item has would do nothing, without a word
            raise UnknownNameError("tokenizer", name, known)
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer, and the trained ones if they go with it.

    `settings`: tokenizer (name), and those of `Settings`. `seed` draws sequences, texts and samples. Raises OptionError
    for a constraint, MissingDependency, and TokenizerError for a tokenizer that does not merge.
    """
    if "tokenizer" not in settings or "label" in settings:
        raise OptionError("canonicity takes tokenizers, and no constraints")
    typed = check_settings({key: value for key, value in settings.items() if key != "tokenizer"})
    name = settings["tokenizer"]
    rows = _measure(load_tokenizer(name), name, typed, seed)
    if typed.trained == name:
        for number, kind in enumerate(TRAINED):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "tokenizer.json"
                trained = train_tokenizer(kind, path, typed.trained_size, TRAINING_TEXTS, seed + number)
                rows += _measure(load_tokenizer(trained), f"trained {kind}", typed, seed)
    return rows


class _Figures:
    """The rows of one tokenizer."""

    def __init__(self, label: str, size: int) -> None:
        self.place = {"tokenizer": label, "vocab_size": size}
        self.rows: list[dict[str, Any]] = []

    def add(self, group: str, name: str, value: float | None, unit: str = "", samples: int = 1, **more: Any) -> None:
        """A figure. `more`: at, note, status, message."""
        plain = {"at": None, "note": "", "status": OK, "message": ""}
        figure = {"group": group, "name": name, "value": None if value is None else float(value), "unit": unit}
        self.rows.append({**self.place, **figure, "samples": samples, **plain, **more})

    def attempt(self, group: str, measure: Callable[[], None]) -> None:
        """Call `measure`, which adds figures; if it raises an error of ours, that is a row of the group."""
        try:
            measure()
        except TokdfaError as error:
            failure = failure_of(error)
            self.add(group, "failure", None, status=failure.kind, message=failure.message)

    def medians(self, group: str, seconds: Mapping[str, list[float]]) -> None:
        """The median of each list of seconds."""
        for name, samples in seconds.items():
            self.add(group, name, statistics.median(samples), "s", len(samples))


def _measure(tokenizer: Tokenizer, label: str, settings: Settings, seed: int) -> list[dict[str, Any]]:
    """All figures of one tokenizer."""
    figures = _Figures(label, tokenizer.vocabulary.size)
    canonicity = load_canonicity(tokenizer)
    _measure_build(figures, tokenizer, settings.repeats)
    _measure_disk(figures, tokenizer, canonicity, settings.repeats)
    figures.attempt("new process", lambda: _measure_new_processes(figures, tokenizer, settings.processes))
    figures.attempt("count", lambda: _count(figures, tokenizer, canonicity))
    drawn = np.random.default_rng(seed)
    _measure_masks(figures, canonicity, settings, drawn)
    figures.attempt("mask", lambda: _measure_judge(figures, canonicity, settings.repeats, drawn))
    figures.attempt("pieces", lambda: _judge(figures, "pieces", tokenizer, settings, seed))
    figures.attempt("texts", lambda: _judge(figures, "texts", tokenizer, settings, seed))
    if label in settings.replay:
        figures.attempt("replay", lambda: _replay(figures, canonicity))
    return figures.rows


def _measure_build(figures: _Figures, tokenizer: Tokenizer, repeats: int) -> None:
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
            forest = timed("forest", partial(build_forest, derivations, also))
            timed("interval lists", partial(build_lists, rules, derivations, forest))
            timed("total", partial(build_canonicity, tokenizer))
    figures.medians("build", seconds)


def _build_fallback(source: MergeSource, vocabulary: Vocabulary) -> ByteFallback:
    assert source.byte_tokens is not None
    return build_byte_fallback(source.byte_tokens, letter_tokens(vocabulary, source), vocabulary.size)


def _measure_disk(figures: _Figures, tokenizer: Tokenizer, canonicity: Canonicity, repeats: int) -> None:
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


def _measure_new_processes(figures: _Figures, tokenizer: Tokenizer, count: int) -> None:
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


def _count(figures: _Figures, tokenizer: Tokenizer, canonicity: Canonicity) -> None:
    """Counts, memory, and the distribution of what tokens forbid."""
    found = collect_figures(tokenizer)
    sizes = np.diff(canonicity.lists.list_starts)
    of_tokens = canonicity.lists.state_of[canonicity.forest.order]
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


def _measure_masks(figures: _Figures, canonicity: Canonicity, settings: Settings, drawn: np.random.Generator) -> None:
    """Masks of narrow and of wide lists, first and later ones, in turns; and the test of a pair."""
    one_of_state = canonicity.forest.order[np.unique(canonicity.lists.state_of[canonicity.forest.order], True)[1]]
    counts = canonicity.forbidden_counts[canonicity.lists.state_of[one_of_state]]
    choices = {"narrow": one_of_state[(counts > 0) & (counts <= NARROW)], "wide": one_of_state[counts > NARROW]}
    samples = {
        width: drawn.permutation(tokens)[: settings.masks].tolist() for width, tokens in choices.items() if len(tokens)
    }
    parts = (canonicity.vocabulary, canonicity.source, canonicity.rules, canonicity.derivations, canonicity.forest)
    seconds: dict[str, list[float]] = {f"{width} {when}": [] for width in samples for when in ("first", "again")}
    out = allocate_mask(canonicity.size)
    with collector_off():
        for _ in range(settings.repeats):
            fresh = Canonicity(*parts, canonicity.lists, canonicity.fallback)
            for width, tokens in samples.items():
                for when in ("first", "again"):
                    for token in tokens:
                        _, ns = time_call(partial(fresh.forbidden_mask, token, out))
                        seconds[f"{width} {when}"].append(ns * 1e-9)
        pairs = drawn.choice(canonicity.forest.order, (settings.masks * settings.repeats, 2)).tolist()
        test = canonicity.pair_is_canonical
        test(*pairs[0])
        seconds["pair"] = [time_call(partial(test, *pair))[1] * 1e-9 for pair in pairs]
    figures.medians("mask", seconds)


def _measure_judge(figures: _Figures, canonicity: Canonicity, repeats: int, drawn: np.random.Generator) -> None:
    """A sequence of two tokens in the compiled judge."""
    judge = Judge(canonicity)
    tokens = drawn.choice(canonicity.forest.order, 2 * COMPILED_PAIRS)
    pairs = TokenSequences(tokens, np.arange(0, 2 * COMPILED_PAIRS + 1, 2))
    judge.verdicts(pairs)
    with collector_off():
        seconds = [time_call(partial(judge.verdicts, pairs))[1] * 1e-9 for _ in range(repeats)]
    figures.medians("mask", {"pair judged": [one / COMPILED_PAIRS for one in seconds]})


def _judge(figures: _Figures, group: str, tokenizer: Tokenizer, settings: Settings, seed: int) -> None:
    """Sequences of one piece, or of whole texts, judged by us and by the reference."""

    def run(count: int) -> Any:
        if group == "pieces":
            return judge_pieces(load_canonicity(tokenizer), count, seed, settings.seconds)
        return judge_texts(tokenizer, count, seed, settings.seconds)

    run(min(settings.judge, 100))  # so that no kernel is loaded, and no file read, while the clock runs
    tally, ns = time_call(partial(run, settings.judge))
    counts = ("judged", "distinct", "proper", "improper", "mismatches", "disputed")
    for name in counts:
        figures.add(group, name, getattr(tally, name))
    figures.add(group, "seconds", ns * 1e-9, "s")
    figures.add(group, "our seconds", tally.our_seconds, "s")
    figures.add(group, "reference seconds", tally.reference_seconds, "s")
    for example in tally.examples:
        figures.add(group, "example", None, note=example)
    if tally.judged < settings.judge:
        message = f"{tally.judged} of {settings.judge} sequences were judged in {settings.seconds:g} s"
        figures.add(group, "unfinished", None, status="timeout", message=message)


def _replay(figures: _Figures, canonicity: Canonicity) -> None:
    """002's way, on the rules for which it is exact."""
    table = canonicity.size * ((canonicity.size + 7) // 8)
    if table > MAX_REPLAY_BYTES:
        raise LimitExceeded(
            f"the replay's table would have {table} bytes", limit="MAX_REPLAY_BYTES", value=MAX_REPLAY_BYTES
        )
    result = compare_with_replay(with_rules_only(canonicity, untied_rules(canonicity.rules)))
    figures.add("replay", "seconds", result.seconds, "s")
    figures.add("replay", "rules", result.rules)
    figures.add("replay", "rules left out", len(canonicity.rules) - result.rules)
    figures.add("replay", "table", result.table_bytes, "B")
    figures.add("replay", "rows compared", result.rows)
    figures.add("replay", "rows that differ", result.differing)
