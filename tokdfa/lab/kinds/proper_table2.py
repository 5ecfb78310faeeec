"""The experiment ``kind: proper_table2``: 002's Table 2, its steps measured on one machine.

002 reports what the four steps of CartesianMerge take, for JSON strings and Mistral's tokenizer, on its own machine, as
*means* (`STEPS`). The first, the table of a tokenizer's proper sequences, is measured by ``canonicity.yaml``, 002's own
way included. One item is a tokenizer and a constraint; or a tokenizer and all of so many ``calls``, function calls
drawn by the experiment's seed (`tokdfa.lab.measure.function_calls`), one after the other in one process. Each row has
a ``step`` and an ``engine``:

2. the token DFA of the constraint, which the engines with ``step: 2`` build; ``seconds`` is their whole compile.
3. what makes the masks free of dead ends, for the engines with ``step: 3``, all of which allow proper sequences only.
   ``seconds`` is the compile but for the byte DFA and the tokenizer's table, which are steps of their own;
   ``compile_s`` is all of it. An engine without a token DFA has its step 2 in this.
4. a mask, for the same engines, replayed along the encodings of the constraint's `texts` and along random walks
   (`tokdfa.lab.measure.measure.replay`). ``mask_ns`` has every mask of the first time round (float32, little-endian),
   in which engines that put work off do it: the first mask of all is ``first_s``, all masks of the first text
   ``text_s``. ``seconds`` and ``p99_s`` are of the same, ``again_s`` is the median of a second time round. ``call_s``
   is what timing a Python call that does nothing reports. ``masks`` were compared with the first engine's,
   ``differing`` are not the same, which is a failure (``mismatch``). ``first_masks``, ``settled_states`` and
   ``settled_transitions`` are what matchers have counted.

Compiles are medians over the repeats, in which the engines take turns; an engine that has used `seconds` takes no
further repeats. Nothing stops a compile from outside: slow engines bring limits of their own (``max_seconds`` of the
search over pairs, ``max_transitions`` of direct_merge).
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Against, Bars, Column, Kind, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import clock_overhead_ns
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, item_constraint, item_settings
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.function_calls import draw_calls
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.measure import Contender, check_support, make_contenders, measure_compiles, replay
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.lab.measure.workloads import RandomWalk, Texts, plan_walks
from tokdfa.mask import allocate_mask
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: step -> what it does, and the mean seconds that 002 reports for it, with Mistral's tokenizer.
STEPS: dict[int, tuple[str, float]] = {
    2: ("token DFA of the constraint", 0.687),
    3: ("relevant pairs, or what takes their place", 27.3),
    4: ("a mask", 0.00153),
}
#: The tokenizer of 002.
PUBLISHED_WITH = "mistral-v1"
#: The status of an engine whose masks are not those of the first one.
MISMATCH = "mismatch"
#: Seconds that all masks of an engine may take.
REPLAY_SECONDS = 600.0
_SIZES = ("states", "transitions", "pairs", "bytes")
#: What matchers count of what is settled for masks: see `tokdfa.backends.proper_merge.cartesian_merge`.
_COUNTERS = ("first_masks", "settled_states", "settled_transitions")
Count = Annotated[int, Field(ge=1, le=100_000)]


class StepEngine(Engine):
    """A backend with its options, in a step. `tokenizers`: those that it is measured on; empty: on all."""

    step: Literal[2, 3]
    tokenizers: list[str] = Field(default_factory=list)


class Settings(Strict):
    """The settings of the experiment; see the module's page.

    `engines`: the first with step 3 is what masks are compared with. `texts`: label of a constraint -> its texts; in an
    item of a constraint that brings texts, those. `repeats`: of compiles; `seconds`: after which an engine takes no
    further repeats. `walks` random walks of at most `steps` tokens. `known`: constraints with texts whose masks the
    engines of step 3 make before anything is measured, for those that keep parts for the next constraint.

    `calls`: how many function calls take the place of constraints, with the options `spelling` of JSON schemas.
    """

    engines: list[StepEngine] = Field(min_length=1)
    texts: dict[str, list[str]] | list[str] = Field(default_factory=dict)
    repeats: Count = 3
    seconds: Annotated[float, Field(gt=0)] = 5.0
    walks: Annotated[int, Field(ge=0, le=10_000)] = 5
    steps: Count = 60
    known: list[ConstraintEntry] = Field(default_factory=list)
    calls: Annotated[int, Field(ge=0, le=10_000)] = 0
    spelling: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _engines_exist(self) -> Settings:
        check_engines(self.engines)
        return self


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint, or one tokenizer and all calls: a row for each step and engine.

    `settings`: tokenizer (name); the fields of a constraint, if no `calls` are asked for; and those of `Settings`.
    `seed` draws the walks and the calls. Raises OptionError for a grammar, whose automaton has no end of states.
    """
    if "grammar" in settings:
        raise OptionError("proper_table2 takes regexes, choices and JSON schemas: a grammar has no token automaton")
    if settings.get("calls"):
        typed = typed_settings(Settings, {key: value for key, value in settings.items() if key != "tokenizer"})
        rows = []
        for label, schema, texts in draw_calls(typed.calls, seed):
            entry = {"label": label, "json_schema": schema, **typed.spelling}
            call = typed.model_copy(update={"texts": texts})
            rows += _measure_one(settings["tokenizer"], ConstraintEntry(**entry).build(), call, seed)
        return rows
    constraint = item_constraint({**settings, "texts": []}).build()
    return _measure_one(settings["tokenizer"], constraint, item_settings(Settings, settings), seed)


def _measure_one(name: str, constraint: Constraint, typed: Settings, seed: int) -> list[dict[str, Any]]:
    """The rows of one tokenizer and one constraint."""
    tokenizer = load_tokenizer(name)
    engines = [one for one in typed.engines if not one.tokenizers or tokenizer.name in one.tokenizers]
    made = make_contenders(engines, tokenizer.vocabulary, constraint.kind)
    racing = [one for one in made.values() if isinstance(one, Contender)]
    check_support(racing, constraint)
    for entry in typed.known:
        for engine in engines:
            if engine.step == 3 and isinstance(one := made[engine.name], Contender):
                _make_known(one, entry, tokenizer)
    measure_compiles(racing, constraint, typed.repeats, first_mask=False, seconds=typed.seconds)
    rows = [_compile_row(engine, made[engine.name]) for engine in engines]
    rows += _mask_rows([one for one in engines if one.step == 3], made, constraint, tokenizer, typed, seed)
    return [{"tokenizer": tokenizer.name, "constraint": constraint.name, **row} for row in rows]


def _make_known(one: Contender, entry: ConstraintEntry, tokenizer: Tokenizer) -> None:
    """Make all masks of the texts of a constraint, untimed. An engine that cannot will not know its parts."""
    compiled = attempt(one.backend.compile, entry.build())
    if isinstance(compiled, Failure):
        return
    mask = allocate_mask(tokenizer.vocabulary.size)
    for written in entry.texts:
        matcher = compiled.start()
        for token in tokenizer.encode(written):
            matcher.fill_mask(mask)
            matcher.advance(token)


def _row(engine: StepEngine, step: int, one: Contender | Failure) -> dict[str, Any]:
    row = {"step": step, "engine": engine.name, "backend": engine.backend}
    if isinstance(one, Failure):
        return row | one.columns
    return {**row, "status": one.outcome.status, "message": one.outcome.message}


def _compile_row(engine: StepEngine, one: Contender | Failure) -> dict[str, Any]:
    row = _row(engine, engine.step, one)
    if isinstance(one, Failure) or row["status"] != OK:
        return row
    compile_s, sizes = one.outcome.compile_seconds(), one.outcome.sizes
    return row | {
        "seconds": median(one.outcome.own_seconds() if engine.step == 3 else compile_s),
        "compile_s": median(compile_s),
        "repeats": len(compile_s),
        **{name: sizes.get(name) for name in _SIZES},
    }


def _mask_rows(
    engines: list[StepEngine],
    made: dict[str, Contender | Failure],
    constraint: Constraint,
    tokenizer: Tokenizer,
    typed: Settings,
    seed: int,
) -> list[dict[str, Any]]:
    """Step 4: the walks twice, with the samples of each time round."""
    racing = {name: one for name, one in made.items() if isinstance(one, Contender) and not one.dropped}
    racing = {engine.name: racing[engine.name] for engine in engines if engine.name in racing}
    rounds: list[dict[str, list[int]]] = []
    first_text, reference = 0, next(iter(racing), "")
    if racing:
        texts = typed.texts.get(constraint.label, []) if isinstance(typed.texts, dict) else typed.texts
        walks = plan_walks(Texts(texts=texts), constraint, tokenizer, None, seed)
        first_text = len(walks[0].tokens) if walks else 0
        if typed.walks:
            # a compile of its own: the timed one is to meet new states
            start = racing[reference].backend.compile(constraint).start
            walks += plan_walks(RandomWalk(walks=typed.walks, steps=typed.steps), constraint, tokenizer, start, seed)
        for one in racing.values():
            one.outcome.samples = []
        for _ in range(2):
            before = {name: len(one.outcome.samples) for name, one in racing.items()}
            replay([*racing.values()], walks, reference, REPLAY_SECONDS, _nobody, frozenset({"mask"}))
            rounds.append({name: one.outcome.ns("mask")[before[name] :] for name, one in racing.items()})
    call_s = clock_overhead_ns() * 1e-9
    rows = []
    for engine in engines:
        row = _row(engine, 4, made[engine.name])
        if (contender := racing.get(engine.name)) is not None:
            times, again = (np.array(each[engine.name], dtype=np.float64) for each in rounds)
            differs = [one.differs for one in contender.outcome.samples if one.differs is not None]
            row |= {"call_s": call_s, "masks": len(differs), "differing": int(np.count_nonzero(differs))}
            row |= {name: contender.outcome.counters.get(name) for name in _COUNTERS}
            if row["differing"] and row["status"] == OK:
                row |= {"status": MISMATCH, "message": f"{row['differing']} masks are not those of {reference}"}
            if len(times):
                row |= {
                    "seconds": float(np.median(times)) * 1e-9,
                    "p99_s": float(np.percentile(times, 99)) * 1e-9,
                    "again_s": float(np.median(again)) * 1e-9 if len(again) else None,
                    "first_s": float(times[0]) * 1e-9,
                    "text_s": float(times[:first_text].sum()) * 1e-9,
                    "mask_ns": times.astype("<f4").tobytes(),
                }
        rows.append(row)
    return rows


def _nobody(index: int, phase: str) -> None:
    """Nobody watches: the kinds of failure here are those that an engine raises."""


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with what 002 published, and with steps 3 and 4 for a first text; their samples, and those of the first
    engine of each step with 002's tokenizer; what did not finish.
    """
    columns = ("seconds", "compile_s", "again_s", "first_s", "text_s", "call_s", "masks", "differing", "mask_ns")
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *columns, *_SIZES, *_COUNTERS])]).sort_values(
        "step", kind="stable"
    )
    done, is_mask = rows["status"] == OK, rows["step"] == 4
    rows["published_s"] = rows["step"].map({step: mean for step, (_, mean) in STEPS.items()})
    rows["activity"] = rows["step"].map({step: activity for step, (activity, _) in STEPS.items()})
    rows["what"] = rows["step"].astype(str) + " " + rows["engine"]
    place = ["tokenizer", "constraint", "engine"]
    compiled = rows[(rows["step"] == 3) & done].set_index(place)["seconds"]
    rows["both_s"] = rows["text_s"] + rows[place].apply(tuple, axis=1).map(compiled)
    # a sample is the one time of a compile, or a mask
    samples = rows.assign(sample_ns=rows["seconds"].map(_one_sample).where(~is_mask, rows["mask_ns"]).where(done))
    ours = samples[rows.groupby(["tokenizer", "step"])["engine"].transform("first") == rows["engine"]]
    return {
        "": rows,
        "samples": samples,
        "ours": ours[ours["tokenizer"] == PUBLISHED_WITH],
        "lost": rows[~done],
    }


def _one_sample(value: float) -> bytes | None:
    return None if math.isnan(value) else np.array([1e9 * value], dtype="<f4").tobytes()


_STATISTICS = tuple(Stat("sample_ns", how, how) for how in ("mean", "median", "max"))
_STEP = Say(
    "{tokenizer}, step {step} ({activity}): {engine} takes {mean} in the mean, {median} in the median, {most} at most; "
    "002 published a mean of {published}, on another machine.",
    per=("tokenizer", "step", "activity", "engine"),
    blanks={
        "mean": "sample_ns:mean",
        "median": "sample_ns:median",
        "most": "sample_ns:max",
        "published": "published_s:first",
    },
    frame="ours",
)
KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("constraint"),
        text("step", meaning="of 002's Table 2"),
        text("activity"),
        text("engine"),
        text("what", "step and engine"),
        text("status", "ended"),
        text("message", "reason"),
        Column("published_s", "published mean", "s", "neither", "by 002, on its own machine, for 1,000 JSON strings"),
        seconds("sample_ns", "time", "of a step: one time a compile, or each mask"),
        seconds("seconds", "time of the step", "of a constraint, median"),
        seconds("compile_s", "compile time", "all of a compile"),
        seconds("first_s", "first mask", "the first mask after the compile"),
        seconds("mask_ns", "mask", "every mask of the first time round"),
        seconds("again_s", "again", "median mask of the second time round"),
        Column("call_s", "empty call", "s", "neither", "what timing a Python call that does nothing reports"),
        seconds("text_s", "masks of a text", "all masks of the first text"),
        seconds("both_s", "steps 3 and 4", "step 3 and all masks of the first text"),
        Column("masks", "compared", meaning="masks compared with those of the first engine"),
        Column("differing", "differ", "", "lower", "masks that are not those of the first engine"),
        Column("states", "states", "", "lower"),
        Column("transitions", "transitions"),
        Column("pairs", "pairs visited"),
        Column("bytes", "memory", "B", "lower"),
        Column("first_masks", "first masks", "", "neither", "masks of states that no mask was asked for before"),
        Column("settled_states", "states settled", "", "lower", "when masks needed them, along all walks"),
        Column("settled_transitions", "transitions settled", "", "lower", "when masks needed them, along all walks"),
    ),
    reference="fixpoint",
    case=("tokenizer", "constraint", "step"),
    frames=frames,
    tables=(
        Summary(
            "proper_table2",
            "The steps of CartesianMerge, like with like",
            "Mean, median and maximum: of steps 2 and 3 over the constraints that the engine finished, of step 4 over "
            "all masks, first masks and the Python call included. Published are means: 002, on another machine, 1,000 "
            "JSON strings, Mistral's tokenizer. Step 2 is the whole compile; step 3 leaves the byte DFA and the "
            "tokenizer's table out, which is step 1 and measured by canonicity.yaml.",
            by=("step", "tokenizer", "engine"),
            values=(
                "published_s:first",
                *_STATISTICS,
                Stat("sample_ns", "count", "finished"),
                Stat("engine", "count", "asked"),
            ),
            frame="samples",
        ),
        Summary(
            "proper_table2_text",
            "Steps 3 and 4 for a first text",
            "What a first text waits for: step 3 of its constraint, and all its masks, in which an engine that settles "
            "states when a mask needs them does what others have done in step 3. Means and maxima over constraints.",
            by=("tokenizer", "engine"),
            values=(
                *(Stat("both_s", how, f"steps 3 and 4, {how}") for how in ("mean", "median", "max")),
                Stat("text_s", "mean", "masks of the text, mean"),
                Stat("first_s", "mean", "first mask, mean"),
                Stat("first_s", "max", "first mask, max"),
            ),
            where="step == 4",
        ),
        Summary(
            "proper_table2_masks",
            "Masks along texts and random walks",
            "Percentiles of all masks of the first time round; the median of a second time round. Compared: masks that "
            "were compared with those of the first engine, bit by bit.",
            by=("tokenizer", "engine"),
            values=(
                *(Stat("mask_ns", how, how) for how in ("median", "p90", "p99", "p99.9", "max")),
                "again_s",
                "call_s",
                Stat("masks", "sum", "compared"),
                Stat("differing", "sum", "differ"),
            ),
            where=f"step == 4 and status == '{OK}'",
        ),
        Summary(
            "proper_table2_settled",
            "What masks had to settle",
            "Counted, not timed: masks that no matcher of the constraint had asked for before, and the states and "
            "transitions settled for them, beyond those of step 3. Sums over the constraints.",
            by=("tokenizer", "engine"),
            values=(*(Stat(name, "sum") for name in _COUNTERS), Stat("masks", "sum", "of masks")),
            where=f"step == 4 and status == '{OK}' and first_masks.notna()",
        ),
        Summary(
            "proper_table2_automata",
            "Automata",
            "Medians over the constraints that the engine finished. An engine that settles states when a mask needs "
            "them has the transitions of those that it has settled.",
            by=("tokenizer", "engine"),
            values=("compile_s", *_SIZES, Stat("states", "max", "states, max"), Stat("bytes", "max", "memory, max")),
            where=f"step in (2, 3) and status == '{OK}'",
        ),
        Summary(
            "proper_table2_failures",
            "What did not finish",
            "An engine that fails in step 3 makes no masks, so it is listed for step 4 as well.",
            by=("tokenizer", "step", "engine", "status"),
            values=(Stat("constraint", "distinct", "constraints"), "message"),
            frame="lost",
        ),
    ),
    charts=(
        Bars(
            "proper_table2_steps",
            "The mean time of each step",
            "Means, as 002 published them: 687 ms, 27.3 s and 1.53 ms, on another machine.",
            x="sample_ns:mean",
            rows="what",
            by="tokenizer",
            frame="samples",
            log=True,
        ),
        Bars(
            "proper_table2_constraints",
            "Steps 3 and 4 for a first text, by constraint",
            x="both_s",
            rows="constraint",
            panels="tokenizer",
            where="step == 4 and both_s > 0",
            log=True,
        ),
    ),
    sentences=(
        _STEP,
        Against(
            (
                Stat("seconds", title="step 3", where="step == 3"),
                Stat("seconds", title="a median mask", where="step == 4"),
                Stat("both_s", title="steps 3 and 4 for a first text", where="step == 4"),
            ),
            over=("tokenizer", "constraint"),
            where=f"step in (3, 4) and status == '{OK}'",
        ),
        Say(
            "{masks} masks of proper engines compared bit by bit: {differing} differ.",
            blanks={"masks": "masks:sum", "differing": "differing:sum"},
            where="step == 4",
        ),
        Tally("measurements"),
    ),
)
