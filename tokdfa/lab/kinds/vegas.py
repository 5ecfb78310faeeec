"""The experiment ``kind: vegas``: what it saves to merge the parts of a constraint once, and to have them in a library.

The claim under test (002, end, and its Figure 6): parts that no token leaves can be computed once, and those of the
usual types of JSON and YAML kept for all constraints. One item is a tokenizer. A *case* is a constraint: an object of
one of the `FORMS` with so many members, whose types take turns, or one of the given regexes and JSON schemas. From its
minimal DFA over bytes to the minimal automaton over tokens it is made in four ways (``variant``):

- ``whole``: DirectMerge as it is;
- ``parts``: by parts, each distinct one once; nothing is known before;
- ``library``: by parts, with a library of the usual types that has never seen this constraint;
- ``seen``: by parts, with a library that has seen this constraint, so that nothing is merged.

Rows: ``family`` (the form, ``regex`` or ``json_schema``), ``case``, ``members``, ``variant``, ``status`` and
``message`` (of a variant that exceeds a limit), ``seconds`` (all of it) and ``merge_seconds`` (merging alone: finding
and taking out parts, merging, splicing), medians of ``repeats``; ``find_seconds`` (finding and taking out parts alone);
``parts``, ``distinct``, ``known`` (of the distinct ones, from the library); ``states`` and ``transitions``; ``equal``:
whether the automaton is the one of ``whole``, None if there is none.

Rows of the family ``library`` are about making it: the case is a type, or ``read`` for reading it all from the disk.
What is fixed for a tokenizer (its rules, `MergeStages`, the trie of spellings) is made before and not counted.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.automata.algebra import minimize
from tokdfa.backends.base import Phases
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import MAX_STATES, MAX_TRANSITIONS, merge_rows
from tokdfa.backends.proper_merge.merging_pieces import join_pieces
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.vegas_library import PartLibrary
from tokdfa.backends.proper_merge.vegas_splice import MergedByParts, PartMerger
from tokdfa.backends.proper_merge.vegas_usual import FORMS, TYPES, build_library, object_pattern
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.limits import OK, failure_of
from tokdfa.lab.measure.schema_corpus import read_cases
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import MAX_STATES as MAX_TEXT_STATES
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.proper_merge.merging import Merged
    from tokdfa.constraint import Constraint
    from tokdfa.token_automata.token_rows import TokenRows
    from tokdfa.vocabulary.tokenizers import Tokenizer

VARIANTS = ("whole", "parts", "library", "seen")
#: Names for the members of objects.
KEYS = (
    *("id", "active", "created", "price", "parent", "starts", "updated", "count", "visible", "born", "weight", "owner"),
    *("opens", "seen", "rank", "public", "due", "height", "editor", "closes", "paid", "size", "verified", "expires"),
    *("score", "source", "alarm", "shipped", "level", "deleted", "since", "ratio"),
)

Members = Annotated[int, Field(ge=1, le=len(KEYS))]


class Settings(BaseModel):
    """The settings of the experiment.

    `members`: how many members the objects have, one object for each number and each of `forms`; `kinds`: the types
    that take turns in them. `regexes`: further cases, each with ``label`` and ``regex``, ``choice`` or ``json_schema``
    (options beside it); `only`: the labels that are measured of them, all if it is empty. `library`: the types of the
    library. A variant with more than `max_states` states or `max_transitions` transitions counts as failed.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    members: list[Members] = Field(default_factory=list)
    kinds: list[str] = Field(default_factory=lambda: ["integer"], min_length=1)
    forms: list[str] = Field(default_factory=lambda: list(FORMS))
    regexes: list[dict[str, Any]] = Field(default_factory=list)
    only: list[str] = Field(default_factory=list)
    library: list[str] = Field(default_factory=lambda: list(TYPES))
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    max_states: Annotated[int, Field(ge=1)] = MAX_STATES
    max_transitions: Annotated[int, Field(ge=1)] = MAX_TRANSITIONS


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError, which names what is wrong."""
    typed = typed_settings(Settings, complete_settings(settings))
    labels = [str(entry.get("label")) for entry in typed.regexes]
    for name, given, known in (
        ("kinds", typed.kinds, TYPES),
        ("library", typed.library, TYPES),
        ("forms", typed.forms, FORMS),
        ("only", typed.only, labels),
    ):
        for one in given:
            if one not in known:
                raise OptionError(f"settings.{name}: there is no {one!r}; there are {', '.join(known)}")
    for entry in typed.regexes:
        if "label" not in entry or fault_of_keys(entry) or "grammar" in entry:
            raise OptionError("settings.regexes: each has a label, and either regex, choice or json_schema")
        _entry(entry)
    return typed


def complete_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with a case in ``regexes`` for each schema that they name.

    Beside those of `Settings` there may be ``schemas``: a folder of cases (`tokdfa.lab.measure.schema_corpus`);
    ``schema_names``: which of them, all by default; and ``json_schema``: their options. Raises OptionError, ConfigError
    or UnknownNameError for what is wrong with these.
    """
    settings = dict(settings)
    folder, names = settings.pop("schemas", None), settings.pop("schema_names", None)
    options = settings.pop("json_schema", {})
    if folder is None:
        if names is not None or options:
            raise OptionError("settings.schemas: schema_names and json_schema are about a folder of schemas")
        return settings
    if not isinstance(folder, str) or not isinstance(options, dict) or not isinstance(names, list | None):
        raise OptionError("settings.schemas is a folder, schema_names a list, json_schema a mapping of options")
    cases = read_cases(Path(folder), None if names is None else list(map(str, names)))
    found = [{"label": case.name, "json_schema": case.schema_text, **options} for case in cases]
    only = [*settings["only"], *(case.name for case in cases)] if settings.get("only") else []
    return {**settings, "regexes": [*settings.get("regexes", []), *found], "only": only}


def _entry(fields: dict[str, Any]) -> ConstraintEntry:
    """A case of ``regexes``, typed. Raises OptionError."""
    place = f"settings.regexes: {fields.get('label')}: "
    entry = typed_settings(ConstraintEntry, fields, place)
    try:
        entry.build()
    except OptionError as error:
        raise OptionError(f"{place}{error}") from None
    return entry


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all cases with one tokenizer.

    `settings`: tokenizer (name), and those of `Settings`. `seed` is not used: nothing is random. Raises OptionError for
    a constraint, and TokenizerError for a tokenizer that does not merge.
    """
    if "tokenizer" not in settings or "label" in settings:
        raise OptionError("vegas takes tokenizers, and no constraints; regexes belong into its settings")
    typed = check_settings({key: value for key, value in settings.items() if key != "tokenizer"})
    tokenizer = load_tokenizer(settings["tokenizer"])
    bench = _Bench(tokenizer, typed)
    with tempfile.TemporaryDirectory() as folder:
        library, rows = _make_library(tokenizer, typed, Path(folder))
    for family, name, members, pattern in _cases(typed):
        rows += bench.measure(family, name, members, pattern, library)
    return [{"tokenizer": tokenizer.name, **row} for row in rows]


def object_members(count: int, kinds: list[str]) -> list[tuple[str, str]]:
    """(key, type) of the first `count` members."""
    return [(key, kinds[place % len(kinds)]) for place, key in enumerate(KEYS[:count])]


def _cases(settings: Settings) -> Iterator[tuple[str, str, int | None, Constraint]]:
    """(family, name, members, constraint)."""
    for form in settings.forms:
        for count in settings.members:
            members = object_members(count, settings.kinds)
            yield form, f"{form} {count}", count, Regex(object_pattern(members, form))
    for entry in settings.regexes:
        if not settings.only or entry["label"] in settings.only:
            family = "json_schema" if "json_schema" in entry else "regex"
            yield family, entry["label"], None, _entry(entry).build()


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
    seconds = []
    for _ in range(settings.repeats):
        again = PartLibrary(tokenizer.fingerprint, folder)
        count, ns = time_call(again.__len__)
        seconds.append(ns * 1e-9)
    size = sum(path.stat().st_size for path in folder.iterdir())
    read = {"family": "library", "case": "read", "status": OK, "message": "", "seconds": statistics.median(seconds)}
    rows.append({**read, "parts": count, "bytes": size})
    return library.in_memory(), rows


class _Bench:
    """What is fixed for a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, settings: Settings) -> None:
        self.canonicity, self.marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
        self.stages, self.merger = MergeStages(self.canonicity), PartMerger(self.canonicity)
        self.fingerprint, self.settings = tokenizer.fingerprint, settings

    def measure(
        self, family: str, name: str, members: int | None, constraint: Constraint, library: PartLibrary
    ) -> list[dict[str, Any]]:
        """A row for each variant; round by round, one after the other."""
        dfa = minimize(explicit_automaton(constraint, MAX_TEXT_STATES, Phases()))
        limits = (self.settings.max_states, self.settings.max_transitions)
        seen = library.in_memory()
        ways: dict[str, Callable[[TokenRows], Merged]] = {
            "whole": lambda letters: merge_rows(letters, self.stages, *limits),
            "parts": lambda letters: self.merger.merge(letters, None, *limits),
            "library": lambda letters: self.merger.merge(letters, library.in_memory(), *limits),
            "seen": lambda letters: self.merger.merge(letters, seen, *limits),
        }
        rows: dict[str, dict[str, Any]] = {
            variant: {
                "family": family,
                "case": name,
                "members": members,
                "variant": variant,
                "status": OK,
                "message": "",
            }
            for variant in ways
        }
        made: dict[str, TokenRows] = {}
        samples: dict[str, list[tuple[float, float]]] = {variant: [] for variant in ways}
        finding = []
        for turn in range(self.settings.repeats + 1):  # the first turn warms up, and fills the library of `seen`
            if all(row["status"] != OK for row in rows.values()):
                break
            for variant, merge in ways.items():
                if rows[variant]["status"] != OK:
                    continue
                try:
                    with collector_off():
                        ((merged, tokens), merge_ns), ns = time_call(partial(self._make, dfa, merge))
                except TokdfaError as error:
                    failure = failure_of(error)
                    rows[variant] |= {"status": failure.kind, "message": failure.message}
                    continue
                made[variant] = tokens
                rows[variant] |= _figures(merged, tokens)
                if turn:
                    samples[variant].append((ns * 1e-9, merge_ns * 1e-9))
            letters = letter_automaton(marked_product(dfa, self.marked), self.canonicity)
            division, ns = time_call(partial(self.merger.divide, letters))
            finding.append(ns * 1e-9)
        for variant, row in rows.items():
            if samples[variant]:
                row["seconds"], row["merge_seconds"] = map(statistics.median, zip(*samples[variant], strict=True))
                row["repeats"] = len(samples[variant])
            if variant != "whole":
                row |= {"parts": len(division.places), "distinct": len(division.parts)}
                row["find_seconds"] = statistics.median(finding[1:] or finding)
            both = "whole" in made and variant in made
            row["equal"] = _are_equal(made["whole"], made[variant]) if both else None
        return list(rows.values())

    def _make(self, dfa: Dfa, merge: Callable[[TokenRows], Merged]) -> tuple[tuple[Merged, TokenRows], int]:
        """((what merging gives, the minimal automaton over tokens), nanoseconds of merging)."""
        letters = letter_automaton(marked_product(dfa, self.marked), self.canonicity)
        merged, ns = time_call(partial(merge, letters))
        return (merged, join_pieces([(merged.rows, ())], self.canonicity, self.settings.max_states).minimal()), ns


def _figures(merged: Merged, tokens: TokenRows) -> dict[str, int]:
    figures = {"states": tokens.state_count, "transitions": tokens.transition_count}
    if isinstance(merged, MergedByParts):
        figures["known"] = merged.from_library
    return figures


def _are_equal(one: TokenRows, other: TokenRows) -> bool:
    """Whether the automata are the same, numbers and all."""
    return (one.rows, one.accepting, one.start) == (other.rows, other.accepting, other.start)
