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
of our own backends share (`tokdfa.lab.measure.compile_race`). A peer does not tell its phases apart in this way, so its
whole compile stands in both. Both are medians over the repeats, in which the engines take turns (A B C, B C A, ...);
``fixed_*`` are the same for the regex ``a`` on the single bytes, so what a compile costs at the least.

An engine whose compile takes longer than `settings.seconds`, or breaks a limit, is not asked for the larger sizes of
that series: those have the status ``not_asked``. It also takes no further repeats once it has used that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Computed, Curves, Custom, Growth, Kind, Results, Tally
from tokdfa.lab.declare.cells import Cell, text_cell
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.compile_race import Entrant, compile_in_turns
from tokdfa.lab.measure.engines import Engine, attempt, check_engines
from tokdfa.lab.measure.growing import (
    fill_template,
    first_tokens,
    is_template,
    sample_by_length,
    state_count,
    sub_vocabulary,
)
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.settings import item_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Compiles that the fixed cost is the median of, and how many times as much a cost must be to tell of growth.
FIXED_REPEATS, ABOVE_FIXED = 25, 2
#: Status of a size that an engine was not asked for.
NOT_ASKED = "not_asked"


def _rising(values: list[int]) -> list[int]:
    if sorted(set(values)) != values:
        raise ValueError(f"rising numbers are expected, not {values}")
    return values


def _known(engines: list[Engine]) -> list[Engine]:
    check_engines(engines)
    return engines


Engines = Annotated[list[Engine], Field(min_length=1), AfterValidator(_known)]
Rising = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(_rising)]


class TokenLength(BaseModel):
    """Vocabularies of `tokens` tokens of at most so many bytes each."""

    model_config = ConfigDict(extra="forbid")

    tokens: Annotated[int, Field(ge=1)]
    lengths: Rising


#: What is measured unless the experiment names its own engines.
ENGINES = [
    Engine(label="token_index", backend="token_index"),
    Engine(label="token_index per_token", backend="token_index", options={"walk": "per_token"}),
    Engine(label="tokens_dfa", backend="tokens_dfa"),
    Engine(label="tokens_dfa strings", backend="tokens_dfa", options={"token_classes": "strings"}),
    Engine(label="tokens_dfa none", backend="tokens_dfa", options={"token_classes": "none"}),
    Engine(label="outlines_core", backend="outlines_core"),
]


class Settings(BaseModel):
    """The settings of the experiment.

    `states`: the label of a template -> the values of n. `vocabulary`: numbers of tokens. `repeats`: compiles of each
    size. `seconds`: what one compile, and all repeats of a size, may take before the engine is left alone.
    """

    model_config = ConfigDict(extra="forbid")

    states: dict[str, Rising] = Field(default_factory=dict)
    vocabulary: Rising | None = None
    token_length: TokenLength | None = None
    engines: Engines = Field(default_factory=lambda: list(ENGINES))
    repeats: Annotated[int, Field(ge=1)] = 5
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 2.0

    @model_validator(mode="after")
    def _complete(self) -> Settings:
        if not (self.states or self.vocabulary or self.token_length):
            raise ValueError("at least one of states, vocabulary and token_length is needed")
        return self


class Case(NamedTuple):
    """One size of a series. `parameter`: the size asked for; `states`: of the minimal byte DFA, None if too many."""

    parameter: int
    constraint: Regex
    states: int | None
    vocab: Vocabulary


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A row for each series, size and engine, of one tokenizer and one regex or template.

    `seed` chooses random words and samples of tokens. Raises OptionError if the constraint is a template without
    values, has values but is no template, or is no regex.
    """
    if "regex" not in settings:
        raise OptionError("scaling takes regexes and templates of regexes, no other constraints")
    typed = item_settings(Settings, settings)
    vocab = load_tokenizer(settings["tokenizer"]).vocabulary
    fixed = {engine.name: Entrant.of(engine, sub_vocabulary(vocab, [])) for engine in typed.engines}
    _compile(list(fixed.values()), Regex("a"), FIXED_REPEATS, typed.seconds)
    rows = []
    for axis, cases in _series(settings, typed, vocab, seed):
        stopped: dict[str, str] = {}
        made: dict[str, Entrant[Engine]] = {}
        previous: Vocabulary | None = None
        for case in cases:
            left = [engine for engine in typed.engines if engine.name not in stopped]
            reused = made if case.vocab is previous else {}
            made = {
                one.name: reused[one.name].again() if one.name in reused else Entrant.of(one, case.vocab)
                for one in left
            }
            previous = case.vocab
            _compile(list(made.values()), case.constraint, typed.repeats, typed.seconds)
            place = {
                "tokenizer": settings["tokenizer"],
                "axis": axis,
                "family": settings.get("label") or settings["regex"],
                "parameter": case.parameter,
                "states": case.states,
                "vocab_tokens": int(np.count_nonzero(case.vocab.lengths)),
                "mean_token_bytes": float(case.vocab.lengths[case.vocab.lengths > 0].mean()),
            }
            for engine in typed.engines:
                if engine.name in made:
                    row = _costs(made[engine.name], fixed[engine.name])
                else:
                    row = {"status": NOT_ASKED, "message": stopped[engine.name]}
                rows.append({**place, "engine": engine.name, **row})
            for name, entrant in made.items():
                if reason := _reason_to_stop(entrant, typed.seconds):
                    stopped[name] = f"{reason} at {case.parameter}"
    return rows


def _compile(racing: Sequence[Entrant[Engine]], constraint: Regex, repeats: int, limit: float) -> None:
    """Compile up to `repeats` times with each, taking turns, as long as its compiles take less than `limit` seconds.

    Whether an engine takes the constraint is asked first, untimed: a peer translates the pattern then.
    """
    for one in racing:
        answer = attempt(one.backend.supports, constraint) if one.backend is not None else one.failure
        if isinstance(answer, Failure):
            one.failure = answer
        elif answer is not None and not answer:
            one.failure = Failure("unsupported", answer.reason)
    compile_in_turns(racing, constraint, repeats, limit)


def _costs(one: Entrant[Engine], fixed: Entrant[Engine]) -> dict[str, Any]:
    """The columns of one engine at one size."""
    if one.failure is not None:
        return {"status": one.failure.kind, "message": one.failure.message}
    return {
        "compile_s": float(np.median(one.compile_s)),
        "index_s": float(np.median(one.own_s)),
        "fixed_compile_s": float(np.median(fixed.compile_s)) if fixed.compile_s else None,
        "fixed_index_s": float(np.median(fixed.own_s)) if fixed.own_s else None,
        "repeats": len(one.compile_s),
        "bytes": one.sizes.get("bytes"),
        "token_classes": one.sizes.get("token_classes"),
        "status": OK,
        "message": "",
    }


def _reason_to_stop(one: Entrant[Engine], limit: float) -> str:
    """Why an engine is not asked for larger sizes; empty if it is."""
    if one.failure is not None:
        return f"failed ({one.failure.kind})" if one.failure.kind in ("memory", "timeout") else ""
    slowest = max(one.compile_s)
    return f"a compile took {slowest:.3g} s, more than {limit:g} s," if slowest > limit else ""


def _series(
    settings: dict[str, Any], typed: Settings, vocab: Vocabulary, seed: int
) -> Iterator[tuple[str, Iterator[Case]]]:
    """The series of one item: an axis and its cases, made one by one."""
    pattern, states = settings["regex"], typed.states
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
    if typed.vocabulary:
        there = int(np.count_nonzero(vocab.lengths))
        sizes = sorted({min(size, there) for size in typed.vocabulary})
        yield "vocabulary", (Case(size, constraint, count, first_tokens(vocab, size)) for size in sizes)
    if wanted := typed.token_length:
        yield (
            "token_length",
            (
                Case(length, constraint, count, sample_by_length(vocab, length, wanted.tokens, seed))
                for length in wanted.lengths
            ),
        )


def _cases_by_states(
    template: str, options: dict[str, Any], values: Sequence[int], vocab: Vocabulary, seed: int
) -> Iterator[Case]:
    for value in values:
        constraint = Regex(fill_template(template, value, seed), **options)
        yield Case(value, constraint, state_count(constraint), vocab)


_AGAINST = {"states": "DFA states", "vocabulary": "vocabulary size", "token_length": "mean token bytes"}


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with the size that their axis changes, and as ``grown`` those whose cost is well above the fixed one."""
    size = rows["vocab_tokens"].astype("float64")
    size = size.where(rows["axis"] != "states", rows["states"])
    size = size.where(rows["axis"] != "token_length", rows["mean_token_bytes"])
    rows = rows.assign(size=size, against=rows["axis"].map(_AGAINST), series=rows["tokenizer"] + ", " + rows["family"])
    costly = rows[rows["index_s"] > ABOVE_FIXED * rows["fixed_index_s"]] if "index_s" in rows else rows.iloc[:0]
    return {"": rows, "grown": costly}


_GROWTH = Growth(
    "growth",
    "Growth by series: exponents",
    "The exponent p of cost = c * size^p, cost being what depends on the strategy (of a peer the whole compile): median"
    " slope of all pairs of points in logarithms, over the sizes that cost twice as much as the fixed cost or more.",
    rows=("against", "tokenizer", "family"),
    x="size",
    value="index_s",
    frame="grown",
)


def _exponents(results: Results) -> dict[str, pd.DataFrame]:
    """What cost grows with -> the exponents, a row a series and a column an engine."""
    frame = _GROWTH.build(results).frame
    engines = [name for name in frame if name in results.engines(results.rows())]
    return {str(name): group[engines] for name, group in frame.groupby("against", sort=False)} if len(frame) else {}


def _by_axis(results: Results) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    """The median exponent of the series of each axis, with their range."""
    found = _exponents(results)
    engines = results.engines(results.rows("grown"))
    rows = []
    for against, exponents in found.items():
        cells = [text_cell(against)]
        for engine in engines:
            known = exponents[engine].dropna() if engine in exponents else exponents.iloc[:0, 0]
            shown = f"{known.median():.2f}" if len(known) else ""
            detail = f"{known.min():.2f} to {known.max():.2f}, {len(known)} series" if len(known) else ""
            cells.append(Cell(shown or "too cheap", float(known.median()) if len(known) else np.nan, detail=detail))
        rows.append(cells)
    return ["against", *engines], rows


def _told(results: Results) -> list[str]:
    said = []
    for against, exponents in _exponents(results).items():
        parts = [f"{name} {column.median():.2f}" for name, column in exponents.items() if column.notna().any()]
        said.append(
            f"Compile cost against {against}, exponent (median of {len(exponents)} series): {', '.join(parts)}."
        )
    return said


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("engine"),
        text("tokenizer"),
        text("family"),
        text("axis"),
        text("against"),
        Column("size"),
        Column("parameter"),
        Column("states"),
        Column("vocab_tokens", "vocabulary size"),
        Column("mean_token_bytes", "mean token bytes"),
        seconds("compile_s", "compile time"),
        seconds("index_s", "compile time without parse, automaton, minimisation"),
        Column("bytes", "memory of the index", "B", "lower"),
        Column("token_classes", "token classes"),
    ),
    case=("tokenizer", "axis", "family", "parameter"),
    frames=frames,
    tables=(
        Custom(
            "growth_by_axis",
            "Growth: exponents by axis",
            "Median over the series (a tokenizer and a family), their range, and how many could be fitted.",
            _by_axis,
        ),
        _GROWTH,
    ),
    charts=tuple(
        Curves(
            f"cost_{axis}",
            f"Compile cost against {against}",
            "What depends on the strategy; of a peer the whole compile.",
            x="size",
            y="index_s",
            panels="series",
            where=f"axis == '{axis}'",
        )
        for axis, against in _AGAINST.items()
    ),
    sentences=(Computed(_told), Tally("measurements")),
)
