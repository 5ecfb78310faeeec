"""The experiment ``kind: canonicity``: what knowing a tokenizer's proper sequences costs, and whether it is right.

One item is a tokenizer. Its rows are figures: ``group``, ``name``, ``value`` with its ``unit`` ("s", "B", "" for a
count), the number of ``samples`` a median is of, a ``note``; a part that could not be measured is a row with a
``status`` and a ``message`` in place of a value. The groups:

- ``build``: the parts of `tokdfa.proper.rules_cache.build_canonicity` one by one, and its whole (``total``); medians;
- ``disk``: writing the file, and reading it with all checks and the comparison with the reference (``load``), of which
  that comparison alone is ``verify``; the size of the ``file``;
- ``count``, ``memory``: of `tokdfa.proper.statistics`;
- ``forbidden``: the ``quantile`` ``at`` 0, 0.01, .. 1 of how many tokens a token forbids next, over all proper tokens;
- ``mask``: forbidden masks of narrow and wide lists (`tokdfa.proper.canonical.NARROW`), the ``first`` of a state and
  later ones (``again``; wide ones are kept); the test of one ``pair`` from Python;
- ``pieces``, ``texts``: sequences judged by us and by the reference library (`tokdfa.lab.measure.judge`), with the
  number of ``mismatches``, and the first of them as rows ``example``;
- ``replay``: the published way (`tokdfa.lab.measure.canonicity_replay`), for the tokenizers that the settings name.

Two tokenizers trained on the spot are measured likewise, as rows of their own, in the item of the tokenizer that the
setting ``trained`` names. What a new process waits for is asked by ``kind: cold_start``, with ``proper: true``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare import Bars, Column, Distribution, Kind, Listing, Pivot, Quotient, Say, Stat, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.canonicity_statistics import measure_tokenizer
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

if TYPE_CHECKING:
    import pandas as pd

#: Texts that tokenizers are trained on.
TRAINING_TEXTS = 60_000
#: Mean seconds that Tran-Thien 2024 reports for the table of a tokenizer, on its own machine.
PUBLISHED = {"mistral-v1": 20.9}


class Settings(Strict):
    """The settings of the experiment.

    `judge`: sequences judged, as pieces and again as texts, each within `seconds`. `repeats`: of what is built, read
    and written. `masks`: of how many narrow and how many wide lists masks are made, once a repeat. `replay`: the
    tokenizers that the published way is run on. `trained`: the tokenizer in whose item two tokenizers of `trained_size`
    tokens are trained and measured; none if it is empty.
    """

    judge: Annotated[int, Field(ge=0, le=100_000_000)] = 1_000_000
    seconds: Annotated[float, Field(gt=0)] = 180.0
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
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
    options = typed.model_dump(include={"judge", "seconds", "repeats", "masks"}) | {"seed": seed}
    rows = measure_tokenizer(load_tokenizer(name), name, replay=name in typed.replay, **options)
    if typed.trained == name:
        for number, kind in enumerate(TRAINED):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "tokenizer.json"
                trained = train_tokenizer(kind, path, typed.trained_size, TRAINING_TEXTS, seed + number)
                rows += measure_tokenizer(load_tokenizer(trained), f"trained {kind}", replay=False, **options)
    return rows


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The figures, each in the column of its unit; what tokens forbid; what was not measured; mismatches."""
    figures = rows.assign(figure=rows["group"] + " " + rows["name"], published_s=rows["tokenizer"].map(PUBLISHED))
    for name, unit in (("value_s", "s"), ("value_bytes", "B"), ("value", "")):
        figures[name] = rows["value"].where(rows["unit"] == unit)
    is_forbidden = rows["group"] == "forbidden"
    return {
        "": figures[~is_forbidden],
        "forbidden": figures[is_forbidden & (rows["value"] > 0)],
        "lost": rows[rows["status"] != OK],
        "examples": rows[rows["name"] == "example"],
    }


def _of(figure: str, column: str = "value_s") -> Stat:
    return Stat(column, where=f"figure == '{figure}'")


def _table(name: str, title: str, note: str, value: str) -> Pivot:
    """A row for each figure, a column for each tokenizer."""
    where = f"{value} == {value}"  # those of the unit
    return Pivot(name, title, note, rows=("group", "name"), value=value, across="tokenizer", ratio=False, where=where)


_BUILD, _REPLAY = _of("build total"), _of("replay seconds")

KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        *(text(name) for name in ("tokenizer", "figure", "group", "note")),
        *(text("name", "figure"), text("status", "ended"), text("message", "reason")),
        seconds("value_s", "time", "of a figure"),
        Column("value_bytes", "memory", "B", "lower", "of a figure"),
        Column("value", "count"),
        Column("published_s", "published", "s", meaning="by Tran-Thien 2024, on its own machine"),
    ),
    engine="figure",
    case=("tokenizer",),
    frames=frames,
    tables=(
        _table(
            "canonicity_times",
            "What it takes",
            "Medians. Build: part by part, in a process where everything has run before, without the tokenizer's own "
            "file and the disk. Load: reading with all checks, and the comparison with the reference library on a "
            "fixed sample, which alone is verify. Mask: of the tokens that may not follow a token, called from Python; "
            "lists that forbid up to 512 tokens are narrow, masks of wide ones are kept after the first; pair: whether "
            "one token may follow another.",
            "value_s",
        ),
        _table(
            "canonicity_memory",
            "What it occupies",
            "Canonicity and marked language: bytes of their arrays. Table: that of the replay.",
            "value_bytes",
        ),
        _table(
            "canonicity_counts",
            "Counts, and verdicts against the reference libraries",
            "Mean list: intervals after a token. Most forbidden: the most tokens that one token forbids. Pieces: "
            "sequences whose text is taken as one piece, so merging alone decides. Texts: sequences that spell whole "
            "texts, pre-tokenizer included. Proper and improper: what the reference library says. Disputed: the "
            "interval lists and the test of a pair differ. Replay: the published algorithm (every rule once, on the "
            "automaton of all strings), on the rules without equal ranks, for which it is exact; its table of all "
            "pairs of tokens is compared with the interval lists row by row.",
            "value",
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
            x="value_s",
            rows="tokenizer",
            by="name",
            where="group == 'build' and name != 'total'",
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
            "{judged} sequences judged as pieces and as texts with {tokenizer:distinct} tokenizers: {mismatches} "
            "mismatches with the reference libraries.",
            blanks={name: Stat("value", "sum", where=f"name == '{name}'") for name in ("judged", "mismatches")},
        ),
        Say(
            "{tokenizer}: the tables are built in {build}; Tran-Thien 2024 reports {published_s} for the same table, "
            "on another machine, {times} times as long.",
            per=("tokenizer",),
            blanks={"build": _BUILD, "times": Quotient("published_s", _BUILD)},
        ),
        Say(
            "{tokenizer}: the published replay of {rules} rules takes {replay} on this machine, {times} times our "
            "whole build; {differing} of {rows} rows of the two tables differ.",
            per=("tokenizer",),
            blanks={
                **{"replay": _REPLAY, "times": Quotient(_REPLAY, _BUILD), "rules": _of("replay rules", "value")},
                "differing": _of("replay rows that differ", "value"),
                "rows": _of("replay rows compared", "value"),
            },
        ),
        Say(
            "{tokenizer}: tables built in {build}, read from the disk, checked and verified in {load}; the first mask "
            "of a wide list takes {first}, again {again}; most tokens are forbidden after {after}: {most}.",
            per=("tokenizer",),
            blanks={
                **{"build": _BUILD, "load": _of("disk load"), "first": _of("mask wide first")},
                "again": _of("mask wide again"),
                "after": Stat("note", "first", where="name == 'most forbidden'"),
                "most": _of("count most forbidden", "value"),
            },
        ),
        Tally("figures"),
    ),
)
