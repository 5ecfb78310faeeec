"""The experiment ``kind: vegas``: what it saves to merge the parts of a constraint once, and to have them in a library.

The claim under test (Tran-Thien 2024, end, and its Figure 6): parts that no token leaves can be computed once, and
those of the usual types of JSON and YAML kept for all constraints. One item is a tokenizer. A *case* is a constraint:
an object of one of the `FORMS` with so many members, whose types take turns, or one of the given regexes and JSON
schemas. From its minimal DFA over bytes to the minimal automaton over tokens it is made in four ways (``variant``):

- ``whole``: DirectMerge as it is;
- ``parts``: by parts, each distinct one once; nothing is known before;
- ``library``: by parts, with a library of the usual types that has never seen this constraint;
- ``seen``: by parts, with a library that has seen this constraint, so that nothing is merged.

Rows have a ``family`` (the form, ``regex`` or ``json_schema``), a ``case``, a ``variant``; `tokdfa.lab.measure
.part_merging` says what is measured. ``equal`` tells whether the automaton is the one of ``whole``, None if there is
none. Rows of the family ``library`` are about making it: the case is a type, or ``read`` for reading it all from the
disk. What is fixed for a tokenizer (its rules, `MergeStages`, the trie of spellings) is made before and not counted.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from tokdfa.backends.proper_merge.merging import MAX_STATES, MAX_TRANSITIONS
from tokdfa.backends.proper_merge.vegas_library import PartLibrary
from tokdfa.backends.proper_merge.vegas_usual import FORMS, TYPES, build_library, object_pattern
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.declare import Column, Curves, Kind, Pivot, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.constraint_entry import ConstraintEntry  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.part_merging import PartBench
from tokdfa.lab.measure.schema_corpus import read_cases
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: variant -> what it is called in tables.
VARIANTS = {
    "whole": "as a whole",
    "parts": "by parts",
    "library": "library of usual types",
    "seen": "all parts known",
}
#: Names for the members of objects.
KEYS = (
    *("id", "active", "created", "price", "parent", "starts", "updated", "count", "visible", "born", "weight", "owner"),
    *("opens", "seen", "rank", "public", "due", "height", "editor", "closes", "paid", "size", "verified", "expires"),
    *("score", "source", "alarm", "shipped", "level", "deleted", "since", "ratio"),
)


class Settings(Strict):
    """The settings of the experiment.

    `members`: how many members the objects have, one object for each number and each of `forms`; `kinds`: the types
    that take turns in them. `regexes`: further cases, each with a label, and a regex, a choice or a schema; `schemas`:
    a folder of cases (`tokdfa.lab.measure.schema_corpus`), `schema_names` of which, all by default, become such cases
    with the options `json_schema`; `only`: the labels that are measured of `regexes`, all if it is empty. `library`:
    the types of the library. A variant with more than `max_states` states or `max_transitions` transitions has failed.
    """

    members: list[Annotated[int, Field(ge=1, le=len(KEYS))]] = Field(default_factory=list)
    kinds: list[str] = Field(default_factory=lambda: ["integer"], min_length=1)
    forms: list[str] = Field(default_factory=lambda: list(FORMS))
    regexes: list[ConstraintEntry] = Field(default_factory=list)
    schemas: str = ""
    schema_names: list[str] = Field(default_factory=list)
    json_schema: dict[str, Any] = Field(default_factory=dict)
    only: list[str] = Field(default_factory=list)
    library: list[str] = Field(default_factory=lambda: list(TYPES))
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    max_states: Annotated[int, Field(ge=1)] = MAX_STATES
    max_transitions: Annotated[int, Field(ge=1)] = MAX_TRANSITIONS

    @model_validator(mode="after")
    def _names_exist(self) -> Settings:
        labels = [entry.label for entry in self.regexes]
        for name, known in (("kinds", TYPES), ("library", TYPES), ("forms", FORMS), ("only", labels)):
            for one in getattr(self, name):
                if one not in known:
                    raise OptionError(f"settings.{name}: there is no {one!r}; there are {', '.join(known)}")
        for entry in self.regexes:
            if not entry.label or entry.grammar is not None:
                raise OptionError("settings.regexes: each has a label, and either regex, choice or json_schema")
            try:
                entry.build()
            except TokdfaError as error:
                raise OptionError(f"settings.regexes: {entry.label}: {error}") from None
        return self


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with a case in ``regexes`` for each schema of the folder. Raises for what is wrong with these."""
    settings = dict(settings)
    folder, names = settings.pop("schemas", ""), settings.pop("schema_names", None)
    options = settings.pop("json_schema", {})
    if folder:
        cases = read_cases(Path(folder), names)
        found = [{"label": case.name, "json_schema": case.schema_text, **options} for case in cases]
        settings["regexes"] = [*settings.get("regexes", []), *found]
        if settings.get("only"):
            settings["only"] = [*settings["only"], *(case.name for case in cases)]
    typed_settings(Settings, settings)
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all cases with one tokenizer.

    `settings`: tokenizer (name), and those of `Settings`. `seed` is not used: nothing is random. Raises OptionError for
    a constraint, and TokenizerError for a tokenizer that does not merge.
    """
    typed = typed_settings(Settings, {key: value for key, value in settings.items() if key != "tokenizer"})
    tokenizer = load_tokenizer(settings["tokenizer"])
    bench = PartBench(tokenizer, typed.repeats, typed.max_states, typed.max_transitions)
    with tempfile.TemporaryDirectory() as folder:
        library, rows = _make_library(tokenizer, typed, Path(folder))
    for place, constraint in _cases(typed):
        rows += bench.measure(place, constraint, library)
    return [{"tokenizer": tokenizer.name, **row} for row in rows]


def object_members(count: int, kinds: list[str]) -> list[tuple[str, str]]:
    """(key, type) of the first `count` members."""
    return [(key, kinds[place % len(kinds)]) for place, key in enumerate(KEYS[:count])]


def _cases(settings: Settings) -> Iterator[tuple[dict[str, Any], Constraint]]:
    """(family, case and members; the constraint)."""
    for form in settings.forms:
        for count in settings.members:
            pattern = object_pattern(object_members(count, settings.kinds), form)
            yield {"family": form, "case": f"{form} {count}", "members": count}, Regex(pattern)
    for entry in settings.regexes:
        if not settings.only or entry.label in settings.only:
            family = "regex" if entry.json_schema is None else "json_schema"
            yield {"family": family, "case": entry.label, "members": None}, entry.build()


def _make_library(tokenizer: Tokenizer, settings: Settings, folder: Path) -> tuple[PartLibrary, list[dict[str, Any]]]:
    """The library of the usual types, in memory, and how it was made."""
    library = PartLibrary(tokenizer.fingerprint, folder)
    rows = []
    for kind in settings.library:
        before = len(library)
        left_out, ns = time_call(partial(build_library, tokenizer, library, (kind,)))
        message = left_out.get(kind, "")
        row = {"family": "library", "case": kind, "status": "memory" if message else OK, "message": message}
        rows.append({**row, "seconds": ns * 1e-9, "parts": len(library) - before})
    counts, nanoseconds = zip(
        *(time_call(PartLibrary(tokenizer.fingerprint, folder).__len__) for _ in range(settings.repeats)), strict=True
    )
    size = sum(path.stat().st_size for path in folder.iterdir())
    read = {"family": "library", "case": "read", "status": OK, "message": "", "seconds": median(nanoseconds) * 1e-9}
    rows.append({**read, "parts": counts[0], "bytes": size})
    return library.in_memory(), rows


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of cases with how much faster they are than as a whole; the largest of each family; the library."""
    columns = ("variant", "members", "seconds", "merge_seconds", "equal")
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *columns])])
    library, rows = rows[rows["family"] == "library"], rows[rows["family"] != "library"]
    place = ["tokenizer", "family", "case"]
    whole = rows[rows["variant"] == "whole"].set_index(place)[["seconds", "merge_seconds"]]
    rows = rows.join(whole.add_suffix("_whole"), on=place).assign(way=rows["variant"].map(VARIANTS))
    rows["gain"] = rows["seconds_whole"] / rows["seconds"]
    rows["merge_gain"] = rows["merge_seconds_whole"] / rows["merge_seconds"]
    most = rows.groupby(["tokenizer", "family"])["members"].transform("max")
    finished = rows.groupby(place)["seconds"].transform("count") > 0
    return {
        "": rows,
        "shown": rows[finished & (rows["members"].isna() | (rows["members"] == most))],
        "library": library,
    }


_FASTER = (
    *(Stat("gain", how, f"faster, {how}") for how in ("median", "min", "max")),
    Stat("merge_gain", "median", "merging faster, median"),
)
_PARTS = (
    *(Stat(name, "max", name) for name in ("parts", "distinct")),
    Stat("known", "max", "in library", "variant == 'library'"),
)
KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    columns=(
        *(text("tokenizer"), text("family"), text("case"), text("way", "way of merging")),
        text("message", "left out because"),
        Column("members", meaning="members of the object"),
        seconds("seconds", "preprocessing", "from the DFA over bytes to the minimal automaton over tokens, median"),
        Column("gain", "faster than as a whole", "ratio", "higher"),
        Column("merge_gain", "merging faster than as a whole", "ratio", "higher"),
        seconds("find_seconds", "finding parts", "finding and taking out parts alone"),
        *(Column(name, name, meaning="of the minimal automaton over tokens") for name in ("states", "transitions")),
        Column("equal", "equal", "", "higher", "automata that are those of merging the whole, numbers and all"),
        Column("bytes", "size", "B", "lower", "on the disk"),
    ),
    engine="way",
    reference=VARIANTS["whole"],
    case=("tokenizer", "family", "case"),
    frames=frames,
    tables=(
        Summary(
            "vegas_gains",
            "What parts save",
            "How many times less time than as a whole, from the DFA over bytes to the minimal automaton over tokens, "
            "and for merging alone, over the cases that both finished. Equal: automata that are, numbers and all, "
            "those of merging the whole.",
            by=("tokenizer", "way"),
            values=(*_FASTER, Stat("gain", "count", "cases"), Stat("equal", "sum", "equal")),
            where="variant != 'whole'",
        ),
        Pivot(
            "vegas_families",
            "What parts save, by family",
            "Median over the cases of the family.",
            rows=("tokenizer", "family"),
            value="gain",
            beside=(Stat("case", "distinct", "cases"),),
            ratio=False,
            where="variant != 'whole'",
        ),
        Pivot(
            "vegas_cases",
            "The largest objects, regexes and schemas",
            "Preprocessing, of those that some way finished; the store has the others, which exceed limits. Parts that "
            "no token leaves, how many of them are distinct, and how many of these the library of usual types had; the "
            "size of the automaton over tokens.",
            rows=("tokenizer", "case"),
            value="seconds",
            beside=(*_PARTS, "states:max", "transitions:max", Stat("find_seconds", "max", "finding parts")),
            frame="shown",
        ),
        Summary(
            "vegas_library",
            "The library of usual types",
            "Parts that each type adds to those before it, in the order of the table, and how long that takes; the "
            "last row is reading it from the disk. A type that exceeds the limits is left out in the forms where it "
            "does. Parts of a few transitions are not put on the disk.",
            by=("tokenizer", "case"),
            values=(Stat("parts", "max", "new parts"), Stat("seconds", title="time"), "bytes", "message"),
            frame="library",
        ),
    ),
    charts=(
        Curves(
            "vegas",
            "Preprocessing by number of members",
            "From the minimal DFA over bytes to the minimal automaton over tokens; medians over the forms of objects.",
            x="members",
            y="seconds",
            panels="tokenizer",
            where="members > 0",
            log=True,
        ),
    ),
    sentences=(
        Say(
            "{equal:sum} of {equal:count} automata made by parts are the automaton that merging the whole makes, "
            "numbers and all.",
            where="variant != 'whole'",
        ),
        Say(
            "{tokenizer}, {way}: {gain} as fast as merging the whole (median of {gain:count} cases, {gain:min} to "
            "{gain:max}), merging alone {merge_gain}.",
            per=("tokenizer", "way"),
            where="variant in ('library', 'parts')",
        ),
        Tally("measurements"),
    ),
)
