"""The experiment ``kind: scaling``: how compile time and memory grow with the constraint and the vocabulary.

One item is a tokenizer and a constraint, and one series of sizes for each *axis*:

- ``states``: a template (`tokdfa.lab.measure.growing`) with the values of n that `settings.states` gives for its label;
- ``vocabulary``: a regex on the first tokens of the vocabulary, as many as `settings.vocabulary` says;
- ``token_length``: a regex on samples with tokens of at most so many bytes.

A row for each size and engine: ``compile_s``, all of a compile, and ``own_s``, without the `SHARED_PHASES` that are the
same for all engines, medians over the repeats, in which engines take turns; what the engine says of its size;
``fixed_own_s``, what a one-letter regex on the single bytes takes it, since a cost near that tells nothing of growth.
``states`` are those of the minimal byte DFA, the same for all.

An engine whose compile takes longer than `settings.seconds`, or breaks a limit, is not asked for the larger sizes of
that series: those have the status ``not_asked``. It also takes no further repeats once it has used that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Curves, Growth, Kind, Pivot, Say, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.variants import exponent
from tokdfa.lab.measure.constraint_entry import item_settings
from tokdfa.lab.measure.engines import Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.growing import (
    fill_template,
    first_tokens,
    is_template,
    sample_by_length,
    state_count,
    sub_vocabulary,
)
from tokdfa.lab.measure.limits import NOT_ASKED, OK, Failure
from tokdfa.lab.measure.measure import Contender, Outcome, check_support, make_contenders, measure_compiles
from tokdfa.lab.measure.settings import Rising, Strict
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Compiles that the fixed cost is the median of, and how many times as much a cost must be to tell of growth.
FIXED_REPEATS, ABOVE_FIXED = 25, 2
#: Axis -> what it changes: its title, and its column.
AXES = {
    "states": ("DFA states", "states"),
    "vocabulary": ("vocabulary size", "vocab_tokens"),
    "token_length": ("mean token bytes", "mean_token_bytes"),
}


class TokenLength(Strict):
    """Vocabularies of `tokens` tokens of at most so many bytes each."""

    tokens: Annotated[int, Field(ge=1)]
    lengths: Rising


class Settings(Strict):
    """The settings of the experiment.

    `states`: the label of a template -> the values of n. `vocabulary`: numbers of tokens. `repeats`: compiles of each
    size. `seconds`: what one compile, and all repeats of a size, may take before the engine is left alone.
    """

    states: dict[str, Rising] = Field(default_factory=dict)
    vocabulary: Rising | None = None
    token_length: TokenLength | None = None
    engines: Engines
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
    fixed = _compiled(make_contenders(typed.engines, sub_vocabulary(vocab, [])), Regex("a"), FIXED_REPEATS, typed)
    fixed_s = {name: float(np.median(one.own_seconds())) for name, one in fixed.items() if one.phases}
    rows = []
    for axis, cases in _series(settings, typed, vocab, seed):
        stopped: dict[str, str] = {}
        made: dict[str, Contender | Failure] = {}
        previous: Vocabulary | None = None
        for case in cases:
            if case.vocab is not previous:
                made = make_contenders([one for one in typed.engines if one.name not in stopped], case.vocab)
            previous = case.vocab
            asked = {name: one for name, one in made.items() if name not in stopped}
            outcomes = _compiled(asked, case.constraint, typed.repeats, typed)
            place = {
                "tokenizer": settings["tokenizer"],
                "axis": axis,
                "family": settings.get("label") or settings["regex"],
                "parameter": case.parameter,
                "states": case.states,
                "vocab_tokens": int(np.count_nonzero(case.vocab.lengths)),
                "mean_token_bytes": float(case.vocab.lengths[case.vocab.lengths > 0].mean()),
            }
            for name in (engine.name for engine in typed.engines):
                known = name in outcomes
                row = _costs(outcomes[name]) if known else {"status": NOT_ASKED, "message": stopped[name]}
                rows.append({**place, "engine": name, "fixed_own_s": fixed_s.get(name), **row})
                if known and (reason := _reason_to_stop(outcomes[name], typed.seconds)):
                    stopped[name] = f"{reason} at {case.parameter}"
    return rows


def _compiled(
    made: dict[str, Contender | Failure], constraint: Regex, repeats: int, typed: Settings
) -> dict[str, Outcome]:
    """label -> how the engines compile the constraint, in turns; each begins anew."""
    outcomes = {name: Outcome(name) for name in made}
    racing = [Contender(0, one.backend, outcomes[name]) for name, one in made.items() if isinstance(one, Contender)]
    for name, one in made.items():
        if isinstance(one, Failure):
            outcomes[name].fail(one)
    check_support(racing, constraint)
    measure_compiles(racing, constraint, repeats, first_mask=False, seconds=typed.seconds, keep=False)
    return outcomes


def _costs(one: Outcome) -> dict[str, Any]:
    """The columns of one engine at one size."""
    if one.status != OK:
        return {"status": one.status, "message": one.message}
    return {
        "status": OK,
        "message": "",
        "compile_s": float(np.median(one.compile_seconds())),
        "own_s": float(np.median(one.own_seconds())),
        "repeats": len(one.phases),
        "index_states": one.sizes.get("states"),
        **{name: one.sizes.get(name) for name in ("transitions", "bytes", "token_classes")},
    }


def _reason_to_stop(one: Outcome, limit: float) -> str:
    """Why an engine is not asked for larger sizes; empty if it is."""
    if one.status != OK:
        return f"failed ({one.status})" if one.status in ("memory", "timeout") else ""
    slowest = max(one.compile_seconds())
    return f"a compile took {slowest:.3g} s, more than {limit:g} s," if slowest > limit else ""


def _series(
    settings: dict[str, Any], typed: Settings, vocab: Vocabulary, seed: int
) -> Iterator[tuple[str, Iterator[Case]]]:
    """The series of one item: an axis and its cases, made one by one."""
    pattern, names = settings["regex"], ("search", "ascii_classes", "flags")
    options = {name: settings[name] for name in names if name in settings}
    label = settings.get("label") or pattern
    if label in typed.states:
        grown = ((n, Regex(fill_template(pattern, n, seed), **options)) for n in typed.states[label])
        yield "states", (Case(n, one, state_count(one), vocab) for n, one in grown)
        return
    if is_template(pattern):
        raise OptionError(f"the template {pattern!r} needs values of n: give settings.states an entry {label!r}")
    constraint = Regex(pattern, **options)
    count = state_count(constraint)
    if typed.vocabulary:
        there = int(np.count_nonzero(vocab.lengths))
        sizes = sorted({min(size, there) for size in typed.vocabulary})
        yield "vocabulary", (Case(size, constraint, count, first_tokens(vocab, size)) for size in sizes)
    if (wanted := typed.token_length) is not None:
        samples = ((most, sample_by_length(vocab, most, wanted.tokens, seed)) for most in wanted.lengths)
        yield "token_length", (Case(most, constraint, count, sample) for most, sample in samples)


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with the size that their axis changes; as ``grown`` those whose cost is well above the fixed one; and
    for each series and engine where it ends, and its exponents.
    """
    import pandas as pd

    names = ("own_s", "fixed_own_s", "bytes", "transitions", "index_states")
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *names])])
    size = sum(rows[column].astype("float64").where(rows["axis"] == axis, 0.0) for axis, (_, column) in AXES.items())
    rows = rows.assign(size=size, against=rows["axis"].map({axis: title for axis, (title, _) in AXES.items()}))
    rows["series"] = rows["tokenizer"] + ", " + rows["family"]
    is_grown = rows["own_s"] > ABOVE_FIXED * rows["fixed_own_s"].astype("float64").fillna(0.0)
    rows["grown_s"] = rows["own_s"].where(is_grown)
    ends = []
    for key, mine in rows.groupby([*SERIES, "engine"], sort=False):
        done, lost = mine[mine["status"] == OK], mine[mine["status"] != OK]
        known = [] if done["index_states"].isna().all() else [f"{done['index_states'].iloc[-1]:,.0f} states"]
        why = [] if lost.empty else [lost["status"].iloc[0].replace(NOT_ASKED, "too slow")]
        ends.append(
            {
                **dict(zip((*SERIES, "engine"), key, strict=True)),
                "parameter": done["parameter"].max(),
                "status": OK if len(done) else mine["status"].iloc[0],
                "end": ", then ".join([*known, *why]),
                "is_whole": lost.empty,
                "transitions": done["transitions"].max(),
                "time_exponent": exponent(done["size"].tolist(), done["grown_s"].tolist()),
                "memory_exponent": exponent(done["size"].tolist(), done["bytes"].astype("float64").tolist()),
            }
        )
    return {"": rows, "ends": pd.DataFrame(ends)}


SERIES = ("against", "tokenizer", "family")
KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        *map(text, ("engine", "tokenizer", "family", "axis", "against", "end")),
        text("status", "ended"),
        Column("size"),
        Column("parameter", "n", meaning="the size that was asked for"),
        Column("states", "states of the minimal byte DFA"),
        Column("vocab_tokens", "vocabulary size"),
        Column("mean_token_bytes", "mean token bytes"),
        seconds("compile_s", "compile time", "all of a compile"),
        seconds("own_s", "time", "compile time without byte DFA and tokenizer; of a peer the whole compile"),
        Column("bytes", "memory", "B", "lower", "memory of the compiled constraint"),
        Column("index_states", "states of the automaton", "", "lower"),
        Column("transitions", "transitions", "", "lower", "transitions of the automaton"),
        Column("token_classes", "token classes"),
        Column("time_exponent", "exponent of time", "", "lower"),
        Column("memory_exponent", "exponent of memory", "", "lower"),
        Column("is_whole", "finished the largest size", "", "higher"),
    ),
    case=("tokenizer", "axis", "family", "parameter"),
    frames=frames,
    tables=(
        Pivot(
            "ends",
            "How far each engine gets",
            "The largest n that the engine finished, with its states, and why it was asked for no larger one.",
            rows=SERIES,
            value="parameter:max",
            detail="end",
            ratio=False,
            frame="ends",
        ),
        *(
            Growth(
                f"growth_{name}",
                f"Growth of {name}: exponents",
                f"{note} The exponent p of cost = c * size^p: median slope of all pairs of points in logarithms; "
                "missing where fewer than three sizes are known.",
                rows=SERIES,
                x="size",
                value=value,
            )
            for name, value, note in (
                (
                    *("time", "grown_s"),
                    "Compile time without byte DFA and tokenizer (of a peer all of it), where it is twice the engine's "
                    "fixed cost or more.",
                ),
                ("memory", "bytes", "Memory of the compiled constraint."),
                ("transitions", "transitions", "Transitions of the automaton."),
            )
        ),
    ),
    charts=tuple(
        Curves(
            f"{name}_{axis}",
            f"{name.capitalize()} against {title}",
            "Curves that end early: the engine failed or was too slow for larger sizes.",
            x="size",
            y=value,
            panels="series",
            hover=("parameter",),
            log=True,
            where=f"axis == '{axis}'",
        )
        for axis, (title, _) in AXES.items()
        for name, value in (("time", "own_s"), ("memory", "bytes"))
    ),
    sentences=(
        Say(
            "{engine}: {whole} of {series} series finished up to the largest size.",
            per=("engine",),
            blanks={"whole": "is_whole:sum", "series": "is_whole:count"},
            frame="ends",
        ),
        Say(
            "{engine}: time grows with {against} to the power of {time} (median of {series} series, {low} to {high}).",
            per=("against", "engine"),
            blanks={
                **{"time": "time_exponent", "series": "time_exponent:count"},
                **{"low": "time_exponent:min", "high": "time_exponent:max"},
            },
            frame="ends",
        ),
        Say(
            "{engine}: memory grows with {against} to the power of {memory}.",
            per=("against", "engine"),
            blanks={"memory": "memory_exponent"},
            frame="ends",
        ),
        Tally("measurements"),
    ),
)
