"""A constraint as experiment files spell it: one entry, with the options of its kind beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tokdfa.constraint import (
    MAX_NESTING,
    MAX_NUMBER_DIGITS,
    SPELLING,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Regex,
)
from tokdfa.errors import ConfigError, listed
from tokdfa.lab.measure.settings import Strict, Typed, typed_settings
from tokdfa.lab.measure.workloads import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Options of JSON schemas, by the names that `JsonSchema` has for them.
SCHEMA_OPTIONS = ("profile", "order", "duplicates", "asserts", *SPELLING, "max_nesting", "registry", "lenient")
#: What says which kind of constraint an entry is -> the options that go with it.
CONSTRAINT_KEYS: dict[str, frozenset[str]] = {
    "regex": frozenset({"search", "ascii_classes", "flags"}),
    "choice": frozenset(),
    "grammar": frozenset({"start"}),
    "json_schema": frozenset(SCHEMA_OPTIONS),
}


class ConstraintEntry(Strict):
    """One constraint: exactly one of `regex`, `choice`, `grammar` (Lark text) and `json_schema`, with its options.

    `texts` are texts of its language, by which the workload ``texts`` and some special kinds drive along. In a file,
    ``grammar_file``, ``schema_file`` and ``texts_file`` name files in place of `grammar`, `json_schema` and `texts`
    (`tokdfa.lab.config.constraints`). `tokenizers`: those it is measured with, by default the experiment's.
    """

    label: str = ""
    regex: str | None = None
    search: bool = False
    ascii_classes: bool = False
    flags: str = ""
    choice: list[str] | None = None
    grammar: str | None = None
    start: str = "start"
    json_schema: dict[str, Any] | bool | str | None = None
    profile: Literal["all", "generation"] | None = None
    order: Literal["schema", "any"] | None = None
    duplicates: Literal["declared", "refused"] | None = None
    asserts: Literal["required", "formats", "all"] | None = None
    whitespace: Literal["flexible", "compact"] | None = None
    whitespace_pattern: str | None = None
    item_separator: str | None = None
    key_separator: str | None = None
    escapes: Literal["all", "needed"] | None = None
    blanks: Literal["all", "few"] | None = None
    numbers: Literal["all", "natural"] | None = None
    number_digits: Annotated[int, Field(ge=0, le=MAX_NUMBER_DIGITS)] | None = None
    max_nesting: Annotated[int, Field(ge=0, le=MAX_NESTING)] | None = None
    registry: dict[str, dict[str, Any] | bool] | None = None
    lenient: bool = False
    texts: list[str] = Field(default_factory=list)
    tokenizers: list[str] = Field(default_factory=list)

    def build(self) -> Constraint:
        """The constraint. Raises OptionError or EmptyLanguageError."""
        if self.regex is not None:
            return Regex(self.regex, self.search, self.ascii_classes, self.flags, label=self.label)
        if self.choice is not None:
            return Choice(self.choice, label=self.label)
        if self.grammar is not None:
            return Grammar(self.grammar, self.start, label=self.label)
        if self.json_schema is not None:
            given = {name: getattr(self, name) for name in SCHEMA_OPTIONS}
            options = {name: value for name, value in given.items() if value is not None}
            return JsonSchema(self.json_schema, label=self.label, **options)
        raise ConfigError(f"constraint {self.label!r} has none of {', '.join(CONSTRAINT_KEYS)}")

    def key(self) -> str:
        """What its language depends on, as canonical JSON: everything but label, texts and tokenizers."""
        told = {"label", "texts", "tokenizers"}
        return canonical_json(self.model_dump(mode="json", exclude=told, exclude_defaults=True))


def fault_of_keys(given: Iterable[str]) -> tuple[str, str] | None:
    """What is wrong with the keys of an entry, and the key that it is about ("": all of them); None if nothing is.

    An entry has exactly one kind of constraint, and no options of other kinds. Other keys are left alone.
    """
    given = list(given)
    kinds = [key for key in CONSTRAINT_KEYS if key in given]
    if len(kinds) != 1:
        said = f"has {listed(kinds)}" if kinds else "says nothing"
        return f"a constraint is exactly one of {', '.join(CONSTRAINT_KEYS)}; this one {said}", ""
    options = frozenset().union(*CONSTRAINT_KEYS.values()) - CONSTRAINT_KEYS[kinds[0]]
    return next(((f"{key} does not go with {kinds[0]}", key) for key in given if key in options), None)


def item_settings(kind: type[Typed], settings: Mapping[str, Any]) -> Typed:
    """The typed settings of an item, which stand beside its tokenizer and the fields of its constraint."""
    others = {"tokenizer", *ConstraintEntry.model_fields} - {*kind.model_fields}
    return typed_settings(kind, {key: value for key, value in settings.items() if key not in others})


def item_constraint(settings: Mapping[str, Any]) -> ConstraintEntry:
    """The constraint of an item. Raises OptionError for settings with none."""
    return typed_settings(
        ConstraintEntry, {key: settings[key] for key in ConstraintEntry.model_fields if key in settings}
    )
