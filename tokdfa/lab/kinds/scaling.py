"""The experiment ``kind: scaling``: how compile cost grows with DFA states, vocabulary size and token length.

A strategy that runs every token from every state pays states x tokens x bytes of a token; one that shares prefixes, or
puts tokens into classes first, should pay less and grow more slowly (001). One item is a tokenizer and a constraint. A
*series* changes one thing, its *axis*, and keeps the rest; its rows say what each engine needed at each size:

- ``states``: the constraint is a template, called a *family*. A count such as ``{n}`` or ``{1,n}`` and the alternation
  ``<words>`` (n random words) take the values that `settings.states` has for its label. The vocabulary is the whole
  one. Cost is to be read against the states of the minimal byte DFA, which is the same for all engines.
- ``vocabulary``: any other constraint, with vocabularies made of the first N tokens by id, all single bytes and an end
  token. Early tokens of a byte-pair vocabulary are shorter, so the mean length grows along this axis too.
- ``token_length``: with vocabularies of N tokens of at most L bytes: the single bytes and a seeded sample, the samples
  of different L being as equal as they can be. Short tokens are few, so small L may have fewer than N tokens.

``compile_s`` is the whole compile. ``index_s`` is what depends on the strategy: the compile without the phases that all
of our own backends share (`SHARED_PHASES`). A peer does not tell its phases apart in this way, so its whole compile
stands in both, and ``index_part`` says so. Both are medians over the repeats, in which the engines take turns (A B C,
B C A, ...); ``fixed_*`` are the same for the regex ``a`` on the single bytes, so what a compile costs at the least.

An engine whose compile takes longer than `settings.seconds`, or breaks a limit, is not asked for the larger sizes of
that series: those have the status ``not_asked``. It also takes no further repeats once it has used that time.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.backends.registry import backend_class, create_backend
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded, OptionError, UnknownNameError
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tokdfa.backends.base import Backend

#: What is measured unless the experiment names its own engines.
ENGINES: list[dict[str, Any]] = [
    {"label": "token_index", "backend": "token_index"},
    {"label": "token_index per_token", "backend": "token_index", "options": {"walk": "per_token"}},
    {"label": "tokens_dfa", "backend": "tokens_dfa"},
    {"label": "tokens_dfa strings", "backend": "tokens_dfa", "options": {"token_classes": "strings"}},
    {"label": "tokens_dfa none", "backend": "tokens_dfa", "options": {"token_classes": "none"}},
    {"label": "outlines_core", "backend": "outlines_core"},
]
#: From the constraint to its minimal byte DFA: equal work in all of our own backends.
SHARED_PHASES = frozenset({"parse", "automaton", "minimize"})
#: Compiles that the fixed cost is the median of.
FIXED_REPEATS = 25
#: Status of a size that an engine was not asked for.
NOT_ASKED = "not_asked"

_COUNT = re.compile(r"\{(\d+,)?n\}")
_WORDS = "<words>"
_WORD_LETTERS = (4, 10)
_KEYS = ("states", "vocabulary", "token_length", "engines", "repeats", "seconds")


class Case(NamedTuple):
    """One size of a series. `parameter`: the size asked for; `states`: of the minimal byte DFA, None if too many."""

    parameter: int
    constraint: Regex
    states: int | None
    vocab: Vocabulary


@dataclass
class _Entrant:
    """One engine at one size: its backend or why there is none, and what was measured, in seconds."""

    backend: Backend | None
    failure: Failure | None = None
    compile_s: list[float] = field(default_factory=list)
    index_s: list[float] = field(default_factory=list)
    index_part: str = ""
    sizes: dict[str, int] = field(default_factory=dict)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint: a row for each series, size and engine.

    `settings`: tokenizer (name); label, regex (and search, ascii_classes, flags); and what `check_settings` describes.
    `seed` chooses random words and samples of tokens. Raises OptionError if the constraint is a template without
    values, has values but is no template, or is no regex.
    """
    if "regex" not in settings:
        raise OptionError("scaling takes regexes and templates of regexes, no other constraints")
    engines = settings.get("engines") or ENGINES
    repeats, seconds = int(settings.get("repeats", 5)), float(settings.get("seconds", 2.0))
    vocab = load_tokenizer(settings["tokenizer"]).vocabulary
    smallest = sub_vocabulary(vocab, [])
    fixed = _measure(_entrants(engines, smallest), Regex("a"), FIXED_REPEATS, seconds)
    rows = []
    for axis, cases in _series(settings, vocab, seed):
        stopped: dict[str, str] = {}
        entrants: dict[str, _Entrant] = {}
        previous: Vocabulary | None = None
        for case in cases:
            fresh = _entrants(engines, case.vocab, stopped) if case.vocab is not previous else _again(entrants)
            entrants, previous = fresh, case.vocab
            asked = {label: one for label, one in entrants.items() if label not in stopped}
            _measure(asked, case.constraint, repeats, seconds)
            place = {
                "tokenizer": settings["tokenizer"],
                "axis": axis,
                "family": settings.get("label") or settings["regex"],
                "parameter": case.parameter,
                "states": case.states,
                "vocab_tokens": int(np.count_nonzero(case.vocab.lengths)),
                "mean_token_bytes": float(case.vocab.lengths[case.vocab.lengths > 0].mean()),
            }
            for engine in engines:
                label = engine["label"]
                if label in stopped:
                    row = {"status": NOT_ASKED, "message": stopped[label]}
                else:
                    row = _measured(asked[label], fixed[label])
                    reason = _reason_to_stop(asked[label], seconds)
                    if reason:
                        stopped[label] = f"{reason} at {case.parameter}"
                rows.append({**place, "engine": label, "backend": engine["backend"], **row})
    return rows


def check_settings(settings: dict[str, Any]) -> None:
    """Check the settings of an experiment before anything runs. Raises OptionError or UnknownNameError.

    `states`: {label of a template: rising values of n}; `vocabulary`: rising numbers of tokens; `token_length`:
    {tokens: N, lengths: rising values of L}; `engines`: list of {label, backend, options}, by default `ENGINES`;
    `repeats`: compiles of each size (default 5); `seconds`: what one compile, and all repeats of a size, may take
    before the engine is left alone (default 2).
    """
    check_keys("setting of scaling", settings, _KEYS)
    for label, values in _mapping("states", settings.get("states", {})).items():
        _check_rising(f"states[{label!r}]", values)
    if "vocabulary" in settings:
        _check_rising("vocabulary", settings["vocabulary"])
    if "token_length" in settings:
        lengths = _mapping("token_length", settings["token_length"])
        check_keys("key of token_length", lengths, ("tokens", "lengths"))
        _check_rising("token_length.tokens", [lengths.get("tokens")])
        _check_rising("token_length.lengths", lengths.get("lengths"))
    if not set(settings) & {"states", "vocabulary", "token_length"}:
        raise OptionError("scaling needs at least one of the settings states, vocabulary and token_length")
    _check_rising("repeats", [settings.get("repeats", 1)])
    seconds = settings.get("seconds", 1)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < float("inf"):
        raise OptionError(f"seconds is a number above 0, not {seconds!r}")
    engines = settings.get("engines", ENGINES)
    if not isinstance(engines, list) or not engines:
        raise OptionError("engines is a list of {label, backend, options}")
    for engine in engines:
        _check_engine(engine)
    labels = [engine["label"] for engine in engines]
    if len(set(labels)) < len(labels):
        raise OptionError(f"two engines have the same label: {', '.join(labels)}")


def _check_engine(engine: Any) -> None:
    check_keys("key of an engine", _mapping("an engine", engine), ("label", "backend", "options"))
    for key in ("label", "backend"):
        if not isinstance(engine.get(key), str) or not engine[key]:
            raise OptionError(f"an engine needs a {key}, a text: {engine!r}")
    known = {option.name: option for option in backend_class(engine["backend"]).options}
    for name, value in _mapping("options", engine.get("options", {})).items():
        check_keys(f"option of backend {engine['backend']}", [name], known)
        known[name].check(value)


def check_keys(what: str, given: Iterable[Any], known: Collection[str]) -> None:
    """Raise UnknownNameError for a key that is not known; `what` is said of it."""
    for key in given:
        if key not in known:
            raise UnknownNameError(what, str(key), known)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError(f"{name} is keys and values, not {value!r}")
    return value


def _check_rising(name: str, values: Any) -> None:
    whole = isinstance(values, list) and all(type(value) is int and value > 0 for value in values)
    if not whole or not values or sorted(set(values)) != values:
        raise OptionError(f"{name}: rising whole numbers above 0 are expected, not {values!r}")


def fill_template(template: str, n: int, seed: int) -> str:
    """`template` with n for each count written as ``n`` and n random words for ``<words>``; OptionError if it has none.

    The words of a smaller n are among those of a larger one.
    """
    if not is_template(template):
        raise OptionError(f"{template!r} is no template: it has neither a count such as {{1,n}} nor {_WORDS}")
    filled = _COUNT.sub(lambda match: f"{{{match[1] or ''}{n}}}", template)
    return filled.replace(_WORDS, "|".join(random_words(n, seed)))


def is_template(pattern: str) -> bool:
    """Whether a pattern has a place for n."""
    return _WORDS in pattern or _COUNT.search(pattern) is not None


def random_words(count: int, seed: int) -> list[str]:
    """`count` distinct words of 4 to 10 letters a to z, the same for the same seed. Expected O(count)."""
    choose = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(choose.choices("abcdefghijklmnopqrstuvwxyz", k=choose.randint(*_WORD_LETTERS)))] = None
    return list(words)


def sub_vocabulary(vocab: Vocabulary, tokens: Sequence[int]) -> Vocabulary:
    """The given tokens in their order, then the single bytes that are not among them, then an end token."""
    spelled = [vocab.token_bytes(int(token)) for token in tokens]
    present = set(spelled)
    spelled += [one for one in (bytes([byte]) for byte in range(256)) if one not in present]
    return Vocabulary([*spelled, b""], [len(spelled)], name=f"{len(spelled)} tokens of {vocab.name}")


def first_tokens(vocab: Vocabulary, count: int) -> Vocabulary:
    """The first `count` tokens by id that spell something, with all single bytes and an end token."""
    return sub_vocabulary(vocab, np.flatnonzero(vocab.lengths)[:count].tolist())


def sample_by_length(vocab: Vocabulary, longest: int, count: int, seed: int) -> Vocabulary:
    """`count` tokens of at most `longest` bytes: the single bytes and a sample of the others; fewer if there are fewer.

    Each sample takes the first that fit from one shuffled list, so samples of different lengths share what they can.
    """
    shuffled = np.random.default_rng(seed).permutation(vocab.size)
    lengths = vocab.lengths[shuffled]
    fitting = shuffled[(lengths > 1) & (lengths <= longest)]
    return sub_vocabulary(vocab, fitting[: max(0, count - 256)].tolist())


def _series(settings: dict[str, Any], vocab: Vocabulary, seed: int) -> Iterator[tuple[str, Iterator[Case]]]:
    """The series of one item: an axis and its cases, made one by one."""
    pattern, states = settings["regex"], settings.get("states", {})
    names = ("search", "ascii_classes", "flags")
    options = {name: settings[name] for name in names if name in settings}
    label = settings.get("label") or pattern
    if label in states:
        yield "states", _cases_by_states(pattern, options, states[label], vocab, seed)
        return
    if is_template(pattern):
        raise OptionError(f"the template {pattern!r} needs values of n: give settings.states an entry {label!r}")
    constraint = Regex(pattern, **options)
    count = state_count(constraint)
    if "vocabulary" in settings:
        there = int(np.count_nonzero(vocab.lengths))
        sizes = sorted({min(size, there) for size in settings["vocabulary"]})
        yield "vocabulary", (Case(size, constraint, count, first_tokens(vocab, size)) for size in sizes)
    if "token_length" in settings:
        wanted = settings["token_length"]
        yield (
            "token_length",
            (
                Case(length, constraint, count, sample_by_length(vocab, length, wanted["tokens"], seed))
                for length in wanted["lengths"]
            ),
        )


def _cases_by_states(
    template: str, options: dict[str, Any], values: Sequence[int], vocab: Vocabulary, seed: int
) -> Iterator[Case]:
    for value in values:
        constraint = Regex(fill_template(template, value, seed), **options)
        yield Case(value, constraint, state_count(constraint), vocab)


def state_count(constraint: Regex) -> int | None:
    """The states of the minimal byte DFA, None if it has too many."""
    try:
        return compile_dfa(constraint).state_count
    except LimitExceeded:
        return None  # the engines get their own chance, and their rows say what became of it


def _entrants(
    engines: Sequence[dict[str, Any]], vocab: Vocabulary, stopped: dict[str, str] | None = None
) -> dict[str, _Entrant]:
    """Every engine that is still in the race, built and warm for this vocabulary."""
    entrants = {}
    for engine in engines:
        if stopped and engine["label"] in stopped:
            continue
        try:
            backend = create_backend(engine["backend"], vocab, **engine.get("options", {}))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a package that is not installed, or an engine that does not take the tokens
            entrants[engine["label"]] = _Entrant(None, failure_of(error))
            continue
        warm_up(backend)
        entrants[engine["label"]] = _Entrant(backend)
    return entrants


def _again(entrants: dict[str, _Entrant]) -> dict[str, _Entrant]:
    """The same backends for another constraint; a backend that could not be built keeps its failure."""
    return {label: _Entrant(one.backend, None if one.backend else one.failure) for label, one in entrants.items()}


def _measure(entrants: dict[str, _Entrant], constraint: Regex, repeats: int, seconds: float) -> dict[str, _Entrant]:
    """Compile `constraint` up to `repeats` times with each entrant, taking turns; the entrants hold what was found."""
    for one in entrants.values():
        if one.backend is not None:
            one.failure = _refusal(one.backend, constraint)
    with collector_off():
        for repeat in range(repeats):
            for one in rotated(list(entrants.values()), repeat):
                if one.backend is not None and one.failure is None and sum(one.compile_s) <= seconds:
                    _compile_once(one, one.backend, constraint)
    return entrants


def _refusal(backend: Backend, constraint: Regex) -> Failure | None:
    """Why an engine does not take a constraint. Untimed: a peer translates the pattern here, which is not its cost."""
    try:
        answer = backend.supports(constraint)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return failure_of(error)
    return None if answer else Failure("unsupported", answer.reason)


def _compile_once(one: _Entrant, backend: Backend, constraint: Regex) -> None:
    try:
        started = time.perf_counter_ns()
        compiled = backend.compile(constraint)
        taken = (time.perf_counter_ns() - started) * 1e-9
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever an engine raises is its failure, panics of compiled engines included
        one.failure = failure_of(error)
        return
    own = [spent for phase, spent in compiled.phases.items() if phase not in SHARED_PHASES]
    whole = bool(backend.packages) or not compiled.phases
    one.compile_s.append(taken)
    one.index_s.append(taken if whole else sum(own))
    one.index_part = "whole compile" if whole else "own phases"
    one.sizes = dict(compiled.sizes)


def _measured(one: _Entrant, fixed: _Entrant) -> dict[str, Any]:
    """The columns of one engine at one size."""
    if one.failure is not None:
        return {"status": one.failure.kind, "message": one.failure.message}
    return {
        "compile_s": float(np.median(one.compile_s)),
        "index_s": float(np.median(one.index_s)),
        "index_part": one.index_part,
        "repeats": len(one.compile_s),
        "fixed_compile_s": float(np.median(fixed.compile_s)) if fixed.compile_s else None,
        "fixed_index_s": float(np.median(fixed.index_s)) if fixed.index_s else None,
        "bytes": one.sizes.get("bytes"),
        "token_classes": one.sizes.get("token_classes"),
        "status": OK,
        "message": "",
    }


def _reason_to_stop(one: _Entrant, seconds: float) -> str:
    """Why an engine is not asked for larger sizes; empty if it is."""
    if one.failure is not None:
        return f"failed ({one.failure.kind})" if one.failure.kind in ("memory", "timeout") else ""
    slowest = max(one.compile_s)
    return f"a compile took {slowest:.3g} s, more than {seconds:g} s," if slowest > seconds else ""
