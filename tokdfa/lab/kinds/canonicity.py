"""The experiment ``kind: canonicity``: what knowing a tokenizer's proper sequences costs.

An item is a tokenizer, and so is a row: the counts, sizes and memory of `tokdfa.proper.statistics`, and times, medians
of `repeats`, in seconds. ``build_s``: from the loaded tokenizer to the lists, without the disk; ``load_s``: reading the
file with all checks, of which the comparison with the reference library, ``verify_s``, is a part; ``narrow_first_s``,
``wide_first_s``, ``wide_again_s``: masks of what may not follow a token, from lists that forbid up to
`tokdfa.proper.canonical.NARROW` tokens and from wider ones, which are kept; ``pair_s``: whether one token may follow
another.

Whether the lists are right is asked by ``python -m tests.proper.judge``, of a million sequences a tokenizer; what the
published way takes by ``python -m tests.proper.replay_table``; what a new process waits for by ``kind: cold_start``,
with ``proper: true``.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Kind, Quotient, Say, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.mask import allocate_mask
from tokdfa.proper.canonical import NARROW, Canonicity
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build
from tokdfa.proper.statistics import collect_statistics
from tokdfa.proper.verify import check_against_reference
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

#: Mean seconds that Tran-Thien 2024 reports for the table of a tokenizer, on its own machine.
PUBLISHED = {"mistral-v1": 20.9}
COUNTS = ("rules", "proper_tokens", "improper_tokens", "irregular_tokens", "byte_tokens", "states", "intervals")
SIZES = ("largest_count", "marked_states", "memory_bytes", "marked_bytes")


class Settings(Strict):
    """The settings of the experiment. `repeats`: of all that is timed; `masks`: of how many narrow and how many wide
    lists masks are made, once a repeat.
    """

    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    masks: Annotated[int, Field(ge=1, le=100_000)] = 200


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """The row of one tokenizer. `settings`: tokenizer (name), and those of `Settings`; `seed` draws lists and pairs.

    Raises OptionError for a constraint, MissingDependency, and TokenizerError for a tokenizer that does not merge.
    """
    if "tokenizer" not in settings or "label" in settings:
        raise OptionError("canonicity takes tokenizers, and no constraints")
    typed = typed_settings(Settings, {key: value for key, value in settings.items() if key != "tokenizer"})
    name = settings["tokenizer"]
    tokenizer = load_tokenizer(name)
    canonicity, found = load_canonicity(tokenizer), collect_statistics(tokenizer)
    row: dict[str, Any] = {"tokenizer": name, "vocab_size": canonicity.size}
    row |= {one: getattr(found, one) for one in (*COUNTS, *SIZES)}
    taken: dict[str, list[int]] = {"build": [], "load": [], "verify": []}
    with tempfile.TemporaryDirectory() as folder, collector_off():
        read_or_build(tokenizer, Path(folder))
        for _ in range(typed.repeats):
            taken["build"].append(time_call(partial(build_canonicity, tokenizer))[1])
            taken["load"].append(time_call(partial(read_or_build, tokenizer, Path(folder)))[1])
            taken["verify"].append(time_call(partial(check_against_reference, canonicity, tokenizer.name))[1])
    taken |= _times_of_masks(canonicity, typed.masks, typed.repeats, np.random.default_rng(seed))
    row |= {f"{part}_s": 1e-9 * float(np.median(samples)) for part, samples in taken.items()}
    return [row]


def _times_of_masks(
    canonicity: Canonicity, count: int, repeats: int, drawn: np.random.Generator
) -> dict[str, list[int]]:
    """Nanoseconds of masks of narrow and of wide lists, first and later ones, in turns; and of the test of a pair."""
    lists, tree = canonicity.lists, canonicity.merge_tree
    one_of_state = tree.order[np.unique(lists.state_of[tree.order], return_index=True)[1]]
    counts = canonicity.forbidden_counts[lists.state_of[one_of_state]]
    choices = {"narrow": one_of_state[(counts > 0) & (counts <= NARROW)], "wide": one_of_state[counts > NARROW]}
    samples = {width: drawn.permutation(tokens)[:count].tolist() for width, tokens in choices.items() if len(tokens)}
    taken: dict[str, list[int]] = {f"{width}_{when}": [] for width in samples for when in ("first", "again")}
    parts = (canonicity.vocabulary, canonicity.source, canonicity.rules, canonicity.derivations, tree, lists)
    out = allocate_mask(canonicity.size)
    with collector_off():
        for _ in range(repeats):
            fresh = Canonicity(*parts, canonicity.fallback)
            for width, tokens in samples.items():
                for when in ("first", "again"):
                    for token in tokens:
                        taken[f"{width}_{when}"].append(time_call(partial(fresh.forbidden_mask, token, out))[1])
        pairs = drawn.choice(tree.order, (count * repeats, 2)).tolist()
        canonicity.pair_is_canonical(*pairs[0])
        taken["pair"] = [time_call(partial(canonicity.pair_is_canonical, *pair))[1] for pair in pairs]
    return taken


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, with what the source reports."""
    return {"": rows.assign(published_s=rows["tokenizer"].map(PUBLISHED))}


_TIMES = ("build_s", "load_s", "verify_s", "narrow_first_s", "wide_first_s", "wide_again_s", "pair_s")

KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        seconds("build_s", "build", "from the loaded tokenizer to the lists"),
        seconds("load_s", "load", "reading the file, with all checks"),
        seconds("verify_s", "verify", "against the reference library"),
        seconds("narrow_first_s", "mask of a narrow list"),
        seconds("wide_first_s", "of a wide list"),
        seconds("wide_again_s", "of a wide list, again"),
        seconds("pair_s", "test of a pair"),
        *map(Column, COUNTS),
        Column("largest_count", "most forbidden", meaning="tokens that one token forbids next"),
        Column("marked_states", "states of the pre-tokenizer"),
        Column("memory_bytes", "rules and lists", "B", "lower"),
        Column("marked_bytes", "pre-tokenizer", "B", "lower"),
        Column("published_s", "published", "s", meaning="by Tran-Thien 2024, on its own machine"),
    ),
    engine="tokenizer",
    case=("tokenizer",),
    frames=frames,
    tables=(
        Summary(
            "canonicity_times",
            "What it takes",
            "Medians. Masks are of the tokens that may not follow a token, called from Python; those of wide lists are "
            "kept after the first.",
            by=("tokenizer",),
            values=_TIMES,
            brief=("tokenizer", "build", "load", "of a wide list"),
        ),
        Summary("canonicity_sizes", "Counts and memory", by=("tokenizer",), values=(*COUNTS, *SIZES)),
    ),
    charts=(Bars("build", "Building time", x="build_s", rows="tokenizer"),),
    sentences=(
        Say(
            "{tokenizer}: the tables are built in {build_s}; Tran-Thien 2024 reports {published_s} for the same table, "
            "on another machine, {times} times as long.",
            per=("tokenizer",),
            blanks={"times": Quotient("published_s", "build_s")},
            where="published_s > 0",
        ),
        Say(
            "{tokenizer}: tables built in {build_s}, read from the disk, checked and verified in {load_s}; the first "
            "mask of a wide list takes {wide_first_s}, again {wide_again_s}; a token forbids {largest_count} at most.",
            per=("tokenizer",),
        ),
    ),
)
