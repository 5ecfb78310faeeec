"""The experiment ``kind: tokens_dfa_ablation``: what does each part of the tokens DFA buy?

The strategy of 001 is a list of optimisations, and `tokdfa.backends.tokens_dfa.strategy` has a switch for each of them.
One item is a tokenizer and a regex. It is compiled under every *variant* (one value for each switch) and by *baselines*
(other backends), and each of them gets a row:

- ``compile_s``, ``phase_*``: seconds of a whole compile and of its phases, medians of the timed compiles. All compile
  the regex once untimed, then in rounds. Each round has an order of its own, by chance, since a compile of less than a
  millisecond depends on what its predecessor has left in the caches. One whose compiles have used up `seconds` sits out
  the rest, so ``compiles`` says how many there were: `repeats` for the fast, one at least for the slow.
- ``size_*``: all that the backend counts in its `sizes`.
- ``mask_ns``, ``advance_ns``: medians over the positions of seeded random walks, every position again and again. As in
  `tokdfa.lab.kinds.seen_masks` each contender works in blocks of its own and every position has a matcher of its own,
  so this is the cost of a state that has been seen, the Python call included.
- ``status``: ``ok``; what made it fail, one of `tokdfa.lab.measure.limits.FAILURES`; or ``masks differ``.

Muting literals forbids token sequences, so contenders that mute and those that do not walk under walks of their own.
The walk is made with the first variant that compiles; grids should begin with the default. All others of the same kind
must take its tokens and give its masks, bit for bit: one that does not has a defect, and the status ``masks differ``.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.registry import backend_class, create_backend
from tokdfa.backends.tokens_dfa.strategy import TokensDfa
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, TokenRefused, UnknownNameError
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import Failure, failure_of
from tokdfa.lab.measure.measure import Contender, Outcome, Sample, check_support, rotated
from tokdfa.lab.measure.workloads import RandomWalk, canonical_json, plan_walks
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.backends.base import Matcher
    from tokdfa.lab.measure.workloads import Encoder, Walk
    from tokdfa.vocabulary.vocabulary import Vocabulary

MASKS_DIFFER = "masks differ"

#: What is measured beside the variants unless the experiment names its own.
BASELINES: tuple[dict[str, Any], ...] = (
    {"backend": "token_index"},
    {"backend": "token_index", "options": {"walk": "per_token"}},
    {"backend": "outlines_core"},
)
#: Settings that are numbers: their defaults.
NUMBERS: dict[str, float] = {"repeats": 7, "seconds": 0.3, "walks": 2, "steps": 15, "rounds": 5}
#: A grid of all switches has fewer variants; more are a slip.
MAX_VARIANTS = 1_000


@dataclass(frozen=True)
class Entry:
    """A contender before it is built: a backend with a value for each of its options, and its name in tables."""

    backend: str
    options: dict[str, Any]
    label: str

    @property
    def mutes(self) -> bool:
        """Whether it mutes literals, and so has another token language than the others."""
        return bool(self.options.get("mute_literals", False))


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    known = ("grids", "baselines", *NUMBERS)
    for name in settings:
        if name not in known:
            raise UnknownNameError("setting of tokens_dfa_ablation", str(name), known)
    for name, default in NUMBERS.items():
        value = settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | type(default)) or not value > 0:
            raise OptionError(f"settings.{name} must be a positive {type(default).__name__}, not {value!r}")
    entries(settings)


def entries(settings: dict[str, Any]) -> list[Entry]:
    """The variants that `settings` ask for, in their order and each once, then the baselines."""
    found = [*_variants(settings.get("grids")), *_baselines(settings.get("baselines", BASELINES))]
    labels = [entry.label for entry in found]
    for label in labels:
        if labels.count(label) > 1:
            raise OptionError(f"two contenders are called {label!r}; give the baseline a label of its own")
    return found


def _variants(grids: Any) -> list[Entry]:
    """All combinations of each grid (option -> value or list of values), those that were there before left out."""
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
        raise OptionError("settings.grids must be a list of grids, each a mapping: option -> value or list of values")
    found: dict[str, Entry] = {}
    for place, grid in enumerate(grids):
        choices = [value if isinstance(value, list) else [value] for value in grid.values()]
        size = math.prod(len(values) for values in choices)
        if not 0 < size <= MAX_VARIANTS:
            raise OptionError(
                f"settings.grids[{place}] has {size:,} combinations; between 1 and {MAX_VARIANTS:,} can be run"
            )
        for values in itertools.product(*choices):
            entry = _entry(TokensDfa.name, dict(zip(grid, values, strict=True)))
            found.setdefault(canonical_json(entry.options), entry)
    return list(found.values())


def _baselines(given: Any) -> list[Entry]:
    """The baselines as given, each a mapping with a backend's name, and perhaps its options and a label."""
    kinds = {"backend": str, "options": dict, "label": str}
    found = []
    for place, one in enumerate(given if isinstance(given, list | tuple) else [given]):
        if not isinstance(one, dict) or "backend" not in one:
            raise OptionError(f"settings.baselines[{place}] must be a mapping with the key backend, not {one!r}")
        for key, value in one.items():
            if key not in kinds:
                raise UnknownNameError(f"key of settings.baselines[{place}]", str(key), kinds)
            if not isinstance(value, kinds[key]):
                raise OptionError(f"settings.baselines[{place}].{key} must be a {kinds[key].__name__}, not {value!r}")
        found.append(_entry(one["backend"], one.get("options", {}), one.get("label", "")))
    return found


def _entry(backend: str, options: dict[str, Any], label: str = "") -> Entry:
    """An entry with every option spelled out. Without a label it is called after what is not as by default."""
    known = {option.name: option for option in backend_class(backend).options}
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of backend {backend}", str(name), known)
    full = {name: option.check(options.get(name, option.default)) for name, option in known.items()}
    changes = [_change(name, value) for name, value in full.items() if value != known[name].default]
    return Entry(backend, full, label or ", ".join([backend, *changes]))


def _change(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return value if isinstance(value, str) else f"{name}={value}"


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one regex; a row for each variant and each baseline.

    `settings`: tokenizer (name), label, regex (and search, ascii_classes, flags); grids (`TokensDfa` options -> value
    or list of values), baselines (backend, options, label); repeats (compiles, default 7), seconds (after which a
    contender stops compiling, and likewise making masks, default 0.3), walks, steps (random walks and their length,
    default 2 and 15), rounds (masks of each position, default 5). `seed` decides the walks and the order of compiles.
    """
    if "regex" not in settings:
        raise OptionError("the kind tokens_dfa_ablation compares compilers of regexes: each constraint needs a regex")
    names = ("search", "ascii_classes", "flags")
    constraint = Regex(settings["regex"], **{name: settings[name] for name in names if name in settings})
    tokenizer = load_tokenizer(settings["tokenizer"])
    vocab, numbers = tokenizer.vocabulary, {name: settings.get(name, default) for name, default in NUMBERS.items()}
    asked = entries(settings)
    outcomes = [Outcome(entry.label) for entry in asked]
    contenders = [
        Contender(index, backend, outcomes[index])
        for index, entry in enumerate(asked)
        if (backend := _build(entry, vocab, outcomes[index])) is not None
    ]
    check_support(contenders, constraint)
    _compile_in_rounds(contenders, constraint, int(numbers["repeats"]), numbers["seconds"], random.Random(seed))
    positions = {}
    for mutes in (False, True):
        group = [contender for contender in contenders if asked[contender.index].mutes == mutes]
        walks = _plan(group, constraint, tokenizer, seed, numbers)
        positions[mutes] = sum(len(walk.tokens) for walk in walks)
        _walk_in_turns(group, walks, int(numbers["rounds"]), numbers["seconds"])
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": vocab.size,
        "constraint": settings.get("label") or constraint.name,
    }
    return [
        {**place, **_row(entry, outcome), "positions": positions[entry.mutes]}
        for entry, outcome in zip(asked, outcomes, strict=True)
    ]


def _build(entry: Entry, vocab: Vocabulary, outcome: Outcome) -> Any:
    """The backend; None if it cannot be built, for which the outcome has the reason."""
    try:
        return create_backend(entry.backend, vocab, **entry.options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        outcome.fail(failure_of(error))
        return None


@contextmanager
def _blame(contender: Contender) -> Iterator[None]:
    """Whatever is raised inside is the contender's failure, panics of compiled engines included."""
    try:
        yield
    except TokenRefused as refusal:  # only walks have tokens, and these are allowed
        contender.drop(Failure(MASKS_DIFFER, f"a token of the walk is refused: {refusal}"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        contender.drop(failure_of(error))


def _compile_in_rounds(
    contenders: Sequence[Contender], constraint: Regex, repeats: int, seconds: float, order: random.Random
) -> None:
    """One untimed round, then at most `repeats` rounds of those whose timed compiles have not used up `seconds`.

    The constraint compiled last stays with its contender.
    """
    for turn in range(repeats + 1):
        racing = [one for one in contenders if not one.dropped and one.spent_ns < seconds * 1e9]
        with collector_off():
            for contender in order.sample(racing, len(racing)):
                contender.compiled = None  # freed outside the clock
                with _blame(contender):
                    started = time.perf_counter_ns()
                    compiled = contender.backend.compile(constraint)
                    ns = time.perf_counter_ns() - started
                    contender.compiled = compiled
                    contender.outcome.sizes = dict(compiled.sizes)
                    if turn:
                        contender.spent_ns += ns
                        contender.outcome.samples.append(Sample("compile", turn - 1, 0, ns))
                        contender.outcome.phases.append(dict(compiled.phases))


def _plan(
    group: Sequence[Contender], constraint: Regex, tokenizer: Encoder, seed: int, numbers: dict[str, float]
) -> list[Walk]:
    """The walks of a group, decided by the first of it that can; it stays the one that others are compared with."""
    workload = RandomWalk(walks=int(numbers["walks"]), steps=int(numbers["steps"]))
    for contender in group:
        if contender.compiled is not None:
            with _blame(contender):
                return plan_walks(workload, constraint, tokenizer, contender.compiled.start, seed)
    return []


def _walk_in_turns(group: Sequence[Contender], walks: Sequence[Walk], rounds: int, seconds: float) -> None:
    """Compare the masks along the walks, then time `rounds` blocks of masks and advances of each contender."""
    standing: dict[int, list[Matcher]] = {}
    expected: list[masks.Mask] = []
    for contender in group:
        if contender.dropped:
            continue
        with _blame(contender):
            standing[contender.index] = _stand(contender, walks)
            found = [_fill(matcher) for matcher in standing[contender.index]]
            expected = expected or found
            differs = [masks.count(mask ^ right) for mask, right in zip(found, expected, strict=True)]
            if any(differs):
                wrong = [place for place, count in enumerate(differs) if count]
                contender.outcome.fail(
                    Failure(
                        MASKS_DIFFER,
                        f"{len(wrong)} of {len(differs)} masks; the first at position {wrong[0]}, in "
                        f"{differs[wrong[0]]:,} tokens",
                    )
                )
    spent = dict.fromkeys(standing, 0)
    with collector_off():
        for turn in range(rounds):
            for contender in rotated(group, turn):
                if not contender.dropped and spent[contender.index] < seconds * 1e9:
                    with _blame(contender):
                        spent[contender.index] += _time_block(contender, standing[contender.index], walks, turn)


def _stand(contender: Contender, walks: Sequence[Walk]) -> list[Matcher]:
    """A matcher before each token of the walks."""
    assert contender.compiled is not None
    standing = []
    for walk in walks:
        matcher = contender.compiled.start()
        for token in walk.tokens:
            standing.append(matcher.fork())
            matcher.advance(token)
    return standing


def _fill(matcher: Matcher) -> masks.Mask:
    mask = masks.allocate_mask(matcher.vocab.size)
    matcher.fill_mask(mask)
    return mask


def _time_block(contender: Contender, standing: Sequence[Matcher], walks: Sequence[Walk], turn: int) -> int:
    """One mask at each position, then the walks token by token. Returns the nanoseconds that all of it took."""
    assert contender.compiled is not None
    begun = time.perf_counter_ns()
    mask, samples = masks.allocate_mask(contender.backend.vocab.size), contender.outcome.samples
    for matcher in standing[:1]:
        matcher.fill_mask(mask)  # brings the contender's code back into the caches
    for step, matcher in enumerate(standing):
        started = time.perf_counter_ns()
        matcher.fill_mask(mask)
        samples.append(Sample("mask", turn, step, time.perf_counter_ns() - started))
    for walk in walks:
        matcher = contender.compiled.start()
        for step, token in enumerate(walk.tokens):
            started = time.perf_counter_ns()
            matcher.advance(token)
            samples.append(Sample("advance", turn, step, time.perf_counter_ns() - started))
    return time.perf_counter_ns() - begun


def _row(entry: Entry, outcome: Outcome) -> dict[str, Any]:
    """What was found of one contender. Options that a baseline does not have are None, like all that is not known."""
    ours = entry.backend == TokensDfa.name
    compiles, fills, advances = (outcome.ns(measure) for measure in ("compile", "mask", "advance"))
    compile_ns = _median(compiles)
    phases = dict.fromkeys(name for compile_phases in outcome.phases for name in compile_phases)
    return {
        "variant": entry.label,
        "backend": entry.backend,
        "options": canonical_json(entry.options),
        **{option.name: entry.options[option.name] if ours else None for option in TokensDfa.options},
        "status": outcome.status,
        "message": outcome.message,
        "compiles": len(compiles),
        "compile_s": None if compile_ns is None else compile_ns * 1e-9,
        **{f"phase_{name}": _median([one[name] for one in outcome.phases]) for name in phases},
        **{f"size_{name}": value for name, value in outcome.sizes.items()},
        "masks": len(fills),
        "mask_ns": _median(fills),
        "advances": len(advances),
        "advance_ns": _median(advances),
    }


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
