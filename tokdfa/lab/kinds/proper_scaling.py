r"""The experiment ``kind: proper_scaling``: what allowing proper sequences only costs as the constraint grows.

DirectMerge builds the automaton of the proper sequences; 002 warns that it may become overwhelmingly large, and offers
CartesianMerge, which simulates it. Here both are asked for families of regexes that grow, next to the plain token DFA.

One item is a tokenizer and a *family*: a template with a size n, whose values `settings.sizes` gives for its label. In
a template, counts such as ``{n}`` and ``{1,n}`` take the value of n, ``<words>`` is an alternation of n random words,
and ``<members>`` stands for n members of a JSON object, with random names and, in turn, a truth value, one of four
words, a whole number, and a string of at most 20 characters.

A row for each size and engine holds ``compile_s``, all of a compile, and ``own_s``, what is left of it without the byte
DFA and the tokenizer's table (`tokdfa.lab.measure.compile_race`), both medians over the repeats, in which the engines
take turns; then what the engine says of its size: ``index_states``, ``transitions``, ``bytes``. ``states`` are those of
the minimal byte DFA, the same for all.

An engine whose compile takes longer than `seconds`, or breaks a limit, is not asked for larger sizes of the family:
those have the status ``not_asked``. It also takes no further repeats once it has used that time.
"""

from __future__ import annotations

import random
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Curves, Growth, Kind, Pivot, Say, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.variants import exponent
from tokdfa.lab.kinds.scaling import NOT_ASKED
from tokdfa.lab.measure.compile_race import Entrant, compile_in_turns
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.growing import fill_template, is_template, random_words, state_count
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.settings import item_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

_MEMBERS = "<members>"
#: What the members of an object may hold, in turn.
_VALUES = ("(true|false)", '"(red|green|blue|yellow)"', "-?(0|[1-9][0-9]*)", r'"[^"\\\x00-\x1f]{1,20}"')


def _rising(values: list[int]) -> list[int]:
    if sorted(set(values)) != values:
        raise ValueError(f"rising whole numbers are expected, not {values}")
    return values


class Settings(BaseModel):
    """The settings of the experiment: `sizes`: label of a template -> rising values of n; see the module's page."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sizes: dict[str, Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(_rising)]] = (
        Field(min_length=1)
    )
    engines: list[Engine] = Field(min_length=1)
    repeats: Annotated[int, Field(ge=1, le=1000)] = 3
    seconds: Annotated[float, Field(gt=0)] = 2.0

    @model_validator(mode="after")
    def _engines_exist(self) -> Settings:
        check_engines(self.engines)
        return self


def fill_family(template: str, n: int, seed: int) -> str:
    """The regex of size n. Raises OptionError for a template without a place for n."""
    filled = template.replace(_MEMBERS, json_members(n, seed))
    return fill_template(filled, n, seed) if is_template(filled) or filled == template else filled


def json_members(count: int, seed: int) -> str:
    """A regex of `count` members of a JSON object. Those of a smaller count are the first of a larger one."""
    names = random_words(count, random.Random(seed).getrandbits(32))
    return ", ".join(f'"{name}": {_VALUES[place % len(_VALUES)]}' for place, name in enumerate(names))


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one family: a row for each size and engine.

    `settings`: tokenizer (name), label, regex (a template); and those of `Settings`. `seed` chooses random words.
    Raises OptionError if the constraint is no template or has no sizes.
    """
    typed = item_settings(Settings, settings)
    template, label = settings.get("regex", ""), settings.get("label", "")
    if label not in typed.sizes:
        raise OptionError(f"the template {template!r} needs values of n: give settings.sizes an entry {label!r}")
    tokenizer = load_tokenizer(settings["tokenizer"])
    entrants = [Entrant.of(engine, tokenizer.vocabulary) for engine in typed.engines]
    stopped: dict[str, str] = {}
    rows = []
    for size in typed.sizes[label]:
        constraint = Regex(fill_family(template, size, seed))
        entrants = [one.again() for one in entrants]
        compile_in_turns(
            [one for one in entrants if one.engine.name not in stopped], constraint, typed.repeats, typed.seconds
        )
        place = {"tokenizer": tokenizer.name, "family": label, "parameter": size, "states": state_count(constraint)}
        for one in entrants:
            name = one.engine.name
            row = {**place, "engine": name, "backend": one.engine.backend}
            if name in stopped:
                rows.append({**row, "status": NOT_ASKED, "message": stopped[name]})
                continue
            rows.append({**row, **_measured(one)})
            if reason := _reason_to_stop(one, typed.seconds):
                stopped[name] = f"{reason} at {size}"
    return rows


def _measured(one: Entrant[Engine]) -> dict[str, Any]:
    if one.failure is not None:
        return {"status": one.failure.kind, "message": one.failure.message}
    return {
        "status": OK,
        "message": "",
        "compile_s": median(one.compile_s),
        "own_s": median(one.own_s),
        "repeats": len(one.compile_s),
        "index_states": one.sizes.get("states"),
        "transitions": one.sizes.get("transitions"),
        "bytes": one.sizes.get("bytes"),
    }


def _reason_to_stop(one: Entrant[Engine], most: float) -> str:
    """Why an engine is not asked for larger sizes; empty if it is."""
    if one.failure is not None:
        return f"failed ({one.failure.kind})"
    slowest = max(one.compile_s)
    return f"a compile took {slowest:.3g} s, more than {most:g} s," if slowest > most else ""


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and one for each series (a tokenizer and a family) and engine: where it ends, and its exponents."""
    import pandas as pd

    rows = rows.assign(contender=rows["engine"] + ", " + rows["tokenizer"]).reindex(
        columns=[*dict.fromkeys([*rows, "contender", "own_s", "bytes", "transitions", "index_states"])]
    )
    ends = []
    for key, mine in rows.groupby(["tokenizer", "family", "engine"], sort=False):
        done, lost = mine[mine["status"] == OK], mine[mine["status"] != OK]
        states, own, memory = (done[name].astype("float64").tolist() for name in ("states", "own_s", "bytes"))
        known = [] if done["index_states"].isna().all() else [f"{done['index_states'].iloc[-1]:,.0f} states"]
        why = [] if lost.empty else [lost["status"].iloc[0].replace(NOT_ASKED, "too slow")]
        ends.append(
            {
                **dict(zip(("tokenizer", "family", "engine"), key, strict=True)),
                "parameter": done["parameter"].max(),
                "status": OK if len(done) else mine["status"].iloc[0],
                "end": ", then ".join([*known, *why]),
                "is_whole": lost.empty,
                "transitions": done["transitions"].max(),
                "time_exponent": exponent(states, own),
                "memory_exponent": exponent(states, memory),
            }
        )
    return {"": rows, "ends": pd.DataFrame(ends)}


SERIES = ("tokenizer", "family")
KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("family"),
        text("engine"),
        text("contender"),
        text("end"),
        text("status", "ended"),
        Column("parameter", "n", meaning="the size of the family"),
        Column("states", "states of the minimal byte DFA"),
        seconds("own_s", "time", "compile time without byte DFA and tokenizer"),
        seconds("compile_s", "compile time", "all of a compile"),
        Column("bytes", "memory", "B", "lower", "memory of the compiled constraint"),
        Column("index_states", "states of the automaton", "", "lower"),
        Column("transitions", "transitions", "", "lower", "transitions of the automaton"),
        Column("time_exponent", "exponent of time", "", "lower"),
        Column("memory_exponent", "exponent of memory", "", "lower"),
        Column("is_whole", "finished the largest size", "", "higher"),
    ),
    case=(*SERIES, "parameter"),
    frames=frames,
    tables=(
        Pivot(
            "proper_scaling_ends",
            "How far each engine gets",
            "The largest n that the engine finished, with its states, and why it was asked for no larger one.",
            rows=SERIES,
            value="parameter:max",
            detail="end",
            frame="ends",
        ),
        *(
            Growth(
                f"proper_{name}_exponents",
                f"Growth of {name} with the states of the minimal byte DFA",
                f"{note} Missing where fewer than three sizes are known.",
                rows=SERIES,
                x="states",
                value=value,
            )
            for name, value, note in (
                ("time", "own_s", "Compile time without byte DFA and tokenizer."),
                ("memory", "bytes", "Memory of the compiled constraint."),
                ("transitions", "transitions", "Transitions of the automaton."),
            )
        ),
    ),
    charts=tuple(
        Curves(
            f"proper_{name}",
            f"{name.capitalize()} against states of the minimal byte DFA",
            "Curves that end early: the engine failed or was too slow for larger sizes.",
            x="states",
            y=value,
            by="contender",
            panels="family",
            hover=("parameter",),
            log=True,
        )
        for name, value in (("time", "own_s"), ("memory", "bytes"), ("transitions", "transitions"))
    ),
    sentences=(
        Say(
            "{engine}: {whole} of {series} series finished up to the largest size, with up to {most} transitions.",
            per=("engine",),
            blanks={"whole": "is_whole:sum", "series": "is_whole:count", "most": "transitions:max"},
            frame="ends",
        ),
        Say(
            "{engine}: time grows with the states of the byte DFA to the power of {time} (median of {series} series, "
            "{low} to {high}), memory to that of {memory}.",
            per=("engine",),
            blanks={
                "time": "time_exponent",
                "series": "time_exponent:count",
                "low": "time_exponent:min",
                "high": "time_exponent:max",
                "memory": "memory_exponent",
            },
            frame="ends",
        ),
        Tally("measurements"),
    ),
)
