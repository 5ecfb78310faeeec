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

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare import Bars, Column, Distribution, Kind, Listing, Quotient, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.canonicity_figures import measure_tokenizer
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

if TYPE_CHECKING:
    import pandas as pd

#: Texts that tokenizers are trained on.
TRAINING_TEXTS = 60_000
#: Mean seconds that 002 reports for the table of a tokenizer, on its own machine.
PUBLISHED = {"mistral-v1": 20.9}


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

    @model_validator(mode="after")
    def _tokenizers_exist(self) -> Settings:
        known = tokenizer_names()
        for name in filter(None, [*self.replay, self.trained]):
            if ":" not in name and name not in known:  # a name that no item has would do nothing, without a word
                raise UnknownNameError("tokenizer", name, known)
        return self


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer, and the trained ones if they go with it.

    `settings`: tokenizer (name), and those of `Settings`. `seed` draws sequences, texts and samples. Raises OptionError
    for a constraint, MissingDependency, and TokenizerError for a tokenizer that does not merge.
    """
    if "tokenizer" not in settings or "label" in settings:
        raise OptionError("canonicity takes tokenizers, and no constraints")
    typed = typed_settings(Settings, {key: value for key, value in settings.items() if key != "tokenizer"})
    name = settings["tokenizer"]
    options = typed.model_dump(include={"judge", "seconds", "repeats", "processes", "masks"}) | {"seed": seed}
    rows = measure_tokenizer(load_tokenizer(name), name, replay=name in typed.replay, **options)
    if typed.trained == name:
        for number, kind in enumerate(TRAINED):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "tokenizer.json"
                trained = train_tokenizer(kind, path, typed.trained_size, TRAINING_TEXTS, seed + number)
                rows += measure_tokenizer(load_tokenizer(trained), f"trained {kind}", replay=False, **options)
    return rows


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The figures; one row a tokenizer, its figures as columns (``GROUP_NAME``); judged sequences, a row for each kind;
    times of building, part by part; what tokens forbid; what was not measured, and examples of mismatches.
    """
    import pandas as pd

    done, group = rows[rows["value"].notna() & (rows["group"] != "forbidden")], rows["group"]
    wide = pd.DataFrame({"tokenizer": rows["tokenizer"].unique()})
    names = (done["group"] + " " + done["name"]).str.replace(" ", "_")
    for name, figures in done.groupby(names, sort=False):
        wide[str(name)] = wide["tokenizer"].map(figures.set_index("tokenizer")["value"])
    most = rows[rows["name"] == "most forbidden"].set_index("tokenizer")["note"]
    wide["after"], wide["published_s"] = wide["tokenizer"].map(most), wide["tokenizer"].map(PUBLISHED)
    is_judged = done["group"].isin(("pieces", "texts"))
    judged = done[is_judged].pivot(index=["tokenizer", "group"], columns="name", values="value").reset_index()
    parts = done[(done["group"] == "build") & (done["name"] != "total")]
    units = {"value_s": rows["unit"] == "s", "value_bytes": rows["unit"] == "B"}
    return {
        "": rows.assign(
            figure=group + " " + rows["name"],
            **{name: rows["value"].where(of_unit) for name, of_unit in units.items()},
        ),
        "tokenizers": wide,
        "replay": wide[wide["replay_rules"].notna()] if "replay_rules" in wide else wide.iloc[:0],
        "judged": judged.rename(columns=lambda name: f"judged_{name}".replace(" ", "_") if name in JUDGED else name),
        "build": parts.assign(part_s=parts["value"]),
        "forbidden": rows[(group == "forbidden") & (rows["value"] > 0)],
        "lost": rows[rows["status"] != OK],
        "examples": rows[rows["name"] == "example"],
    }


#: Names of figures by group, in the order of tables; those of times, and of memory, are known by their group or name.
BUILD = ("rules", "derivations", "byte fallback", "forest", "interval lists", "total")
WAITING = tuple(
    [f"disk {name}" for name in ("write", "load", "verify")]
    + [
        f"new process {step} from {where}"
        for step in ("tokenizer", "canonicity", "marked language")
        for where in ("scratch", "the disk")
    ]
)
COUNTS = (
    *("rules", "proper tokens", "improper tokens", "irregular tokens", "byte tokens", "whole pieces", "states"),
    *("intervals", "mean list", "largest list", "most forbidden", "marked states"),
)
MEMORY = ("disk file", "memory canonicity", "memory marked language", "memory peak")
MASKS = ("narrow first", "narrow again", "wide first", "wide again", "pair", "pair judged")
JUDGED = (
    *("judged", "distinct", "proper", "improper", "mismatches", "disputed"),
    *("our seconds", "reference seconds", "seconds"),
)
REPLAY = ("rules", "rules left out", "rows compared", "rows that differ")


def _column(group: str, name: str) -> str:
    return f"{group} {name}".strip().replace(" ", "_")


def _stats(group: str, names: tuple[str, ...]) -> tuple[Stat, ...]:
    return tuple(Stat(_column(group, name), title=name.removeprefix("new process ")) for name in names)


def _times(group: str, names: tuple[str, ...]) -> list[Column]:
    return [Column(_column(group, name), name, "s", "lower") for name in names]


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("figure"),
        text("group"),
        text("name", "figure"),
        text("note"),
        text("status", "ended"),
        text("message", "reason"),
        text("after", "most forbidden after"),
        seconds("value_s", "time", "of a figure"),
        Column("value_bytes", "memory", "B", "lower", "of a figure"),
        Column("value", "tokens that may not come next"),
        seconds("part_s", "time to build the tables"),
        Column("published_s", "published", "s", meaning="by 002, on its own machine"),
        *_times("build", BUILD),
        *_times("", WAITING),
        *_times("mask", MASKS),
        *_times("judged", JUDGED[-3:]),
        Column("replay_seconds", "time", "s", "lower", "002's replay of the rules"),
        *(Column(_column("", name), name.removeprefix("memory "), "B", "lower") for name in MEMORY),
        Column("replay_table", "table", "B", "lower"),
        Column("judged_mismatches", "mismatches", "", "lower", "sequences on which we and the reference differ"),
        Column("judged_disputed", "disputed", "", "lower", "sequences on which our two ways of testing a pair differ"),
    ),
    engine="figure",
    case=("tokenizer",),
    frames=frames,
    tables=(
        Summary(
            "canonicity_judged",
            "Verdicts against the reference libraries",
            "Pieces: sequences whose text is taken as one piece, so merging alone decides. Texts: sequences that spell "
            "whole texts, pre-tokenizer included. Proper and improper: what the reference library says. Disputed: our "
            "two ways of testing a pair differ. Seconds: of everything, the drawing too.",
            by=("group", "tokenizer"),
            values=_stats("judged", JUDGED),
            frame="judged",
        ),
        Summary(
            "canonicity_build",
            "Building, part by part",
            "Median of the repeats, in a process where everything has run before. Without the tokenizer's own file, "
            "the disk, and the comparison with the reference.",
            by=("tokenizer",),
            values=_stats("build", BUILD),
            frame="tokenizers",
        ),
        Summary(
            "canonicity_waiting",
            "On the disk, and in a new process",
            "Load: reading with all checks, and the comparison with the reference library on a fixed sample, which "
            "alone is verify. Then what a program waits for that has just been started: kernels are compiled, but "
            "loaded; the start of Python and imports are not counted. From scratch: nothing is on the disk yet, so it "
            "is built, verified and written. Marked language: the automaton of the pre-tokenizer.",
            by=("tokenizer",),
            values=_stats("", WAITING),
            frame="tokenizers",
        ),
        Summary(
            "canonicity_sizes",
            "Counts and memory",
            "Mean list: intervals after a token. Most forbidden: the most tokens that one token forbids. Canonicity "
            "and marked language: bytes of their arrays. Peak: growth of the process while building.",
            by=("tokenizer",),
            values=(*_stats("count", COUNTS), "after", *_stats("", MEMORY)),
            frame="tokenizers",
        ),
        Summary(
            "canonicity_mask",
            "Masks and pairs",
            "The mask of the tokens that may not follow a token, called from Python: lists that forbid up to 512 "
            "tokens are narrow; masks of wide ones are kept after the first. Pair: whether one token may follow "
            "another, from Python; pair judged: a sequence of two in the compiled judge, which tests the pair in two "
            "ways. Medians.",
            by=("tokenizer",),
            values=_stats("mask", MASKS),
            frame="tokenizers",
        ),
        Summary(
            "canonicity_replay",
            "The way of 002",
            "002's algorithm (every rule once, on the automaton of all strings), on the rules without equal ranks, for "
            "which it is exact; its table of all pairs of tokens is compared with the interval lists row by row.",
            by=("tokenizer",),
            values=("published_s", "replay_seconds", "replay_table", *_stats("replay", REPLAY)),
            frame="replay",
        ),
        Listing("canonicity_mismatches", "Mismatches", shown=("tokenizer", "group", "note"), frame="examples"),
        Listing(
            "canonicity_not_measured", "Not measured", shown=("tokenizer", "group", "status", "message"), frame="lost"
        ),
    ),
    charts=(
        Bars(
            "build_parts",
            "Building time by part",
            "Medians of the parts.",
            x="part_s",
            rows="tokenizer",
            by="name",
            frame="build",
            log=True,
        ),
        Distribution(
            "forbidden",
            "How many tokens a token forbids",
            "Of the proper tokens that forbid some next token, the share that forbid at most so many.",
            x="value",
            by="tokenizer",
            frame="forbidden",
        ),
    ),
    sentences=(
        Say(
            "{judged} sequences judged as pieces and as texts with {tokenizers} tokenizers: {mismatches} mismatches "
            "with the reference libraries.",
            blanks={
                "judged": "judged_judged:sum",
                "tokenizers": "tokenizer:distinct",
                "mismatches": "judged_mismatches:sum",
            },
            frame="judged",
        ),
        Say(
            "{tokenizer}: the tables are built in {build}; 002 reports {published} for the same table, on another "
            "machine, {times} times as long.",
            per=("tokenizer",),
            blanks={
                "build": "build_total",
                "published": "published_s",
                "times": Quotient("published_s", "build_total"),
            },
            frame="tokenizers",
        ),
        Say(
            "{tokenizer}: 002's replay of {rules} rules takes {replay} on this machine, {times} times our whole build; "
            "{differing} of {rows} rows of the two tables differ.",
            per=("tokenizer",),
            blanks={
                "rules": "replay_rules",
                "replay": "replay_seconds",
                "times": Quotient("replay_seconds", "build_total"),
                "differing": "replay_rows_that_differ",
                "rows": "replay_rows_compared",
            },
            frame="tokenizers",
        ),
        Say(
            "{tokenizer}: tables built in {build}, read from the disk, checked and verified in {load}; the first mask "
            "of a wide list takes {first}, again {again}; most tokens are forbidden after {after}: {most}.",
            per=("tokenizer",),
            blanks={
                "build": "build_total",
                "load": "disk_load",
                "first": "mask_wide_first",
                "again": "mask_wide_again",
                "after": "after",
                "most": "count_most_forbidden",
            },
            frame="tokenizers",
        ),
        Tally("figures"),
    ),
)
