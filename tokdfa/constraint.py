"""Constraints: what the generated text must be, with its source text. Backends turn them into token masks.

A constraint says nothing about tokens. Each is immutable, hashable and printable, and `name` is what tables show.
"""

from __future__ import annotations

import json
import re
from dataclasses import InitVar, dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from tokdfa.core.arguments import as_bool, as_integer, as_sequence, as_text
from tokdfa.core.nesting import read_json, write_json
from tokdfa.core.schema_forms import unwrapped, unwrapped_text
from tokdfa.core.schema_registry import registry_text
from tokdfa.errors import ArgumentError, EmptyLanguageError, LimitExceeded, OptionError, a_type, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import NoReturn

    from referencing import Registry

#: Grammars that one grammar imports at most, and their bytes together.
MAX_SOURCES, MAX_SOURCE_TEXT = 100, 10_000_000
_IMPORT = re.compile(r"^[ \t]*%import[ \t]+\.?([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)", re.MULTILINE)
#: The largest `max_nesting`, and the largest `number_digits`, of a JsonSchema.
MAX_NESTING, MAX_NUMBER_DIGITS = 100, 1_000

#: Options of a JsonSchema that say how a value is written, whatever the schema.
SPELLING = (
    *("whitespace", "whitespace_pattern", "item_separator", "key_separator"),
    *("escapes", "blanks", "numbers", "number_digits"),
)
_spelling_of = attrgetter(*SPELLING)
#: Profile of a JsonSchema -> the options that it sets; ``generation`` leaves the others as ``all`` has them. 15 digits
#: are what a double keeps of any number, so reading and writing a number again changes nothing.
PROFILES: dict[str, dict[str, Any]] = {
    "all": {
        "order": "schema",
        "duplicates": "declared",
        "asserts": "formats",
        "whitespace": "flexible",
        "whitespace_pattern": "",
        "item_separator": ",",
        "key_separator": ":",
        "escapes": "all",
        "blanks": "all",
        "numbers": "all",
        "number_digits": 0,
    },
    "generation": {
        "duplicates": "refused",
        "whitespace": "compact",
        "item_separator": ", ",
        "key_separator": ": ",
        "escapes": "needed",
        "blanks": "few",
        "numbers": "natural",
        "number_digits": 15,
    },
}
_PROFILE_OPTIONS = {profile: PROFILES["all"] | options for profile, options in PROFILES.items()}
#: Options that no profile sets for schemas in grammars: no matcher remembers the names of what is part of a text.
IN_GRAMMARS: dict[str, Any] = {"duplicates": "declared"}
#: The options of a JsonSchema that are one of a few words.
_OPTION_VALUES = {
    "order": ("schema", "any"),
    "duplicates": ("declared", "refused"),
    "asserts": ("required", "formats", "all"),
    "whitespace": ("flexible", "compact"),
    "escapes": ("all", "needed"),
    "blanks": ("all", "few"),
    "numbers": ("all", "natural"),
}


@dataclass(frozen=True)
class Constraint:
    """Base of all constraints. `label` is an optional short name for tables. `kind`: as experiments spell it."""

    kind: ClassVar[Literal["regex", "choice", "grammar", "json_schema"]]
    label: str = field(default="", kw_only=True, compare=False)

    @property
    def source(self) -> str:
        """The constraint as its author wrote it."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """`label`, or the source shortened to 40 characters."""
        shortened = self.source if len(self.source) <= 40 else self.source[:39] + "…"
        return self.label or shortened


@dataclass(frozen=True)
class Regex(Constraint):
    r"""All texts that match `pattern` (full match), or that contain a match (``search=True``).

    `ascii_classes`: ``\d \w \s`` (and ``\b``) mean ASCII; otherwise Unicode, as in Rust. Where dialects differ:

    ======  ==================================  =============================  =========================================
    class   here, and in Rust                   Python's `re`                  ECMA-262
    ======  ==================================  =============================  =========================================
    ``\d``  Nd                                  the same                       ``[0-9]``
    ``\w``  Alphabetic, M, Nd, Pc,              letters, numbers of all kinds  ``[0-9A-Za-z_]``
            Join_Control                        (``\xb2``), ``_``; no marks
    ``\s``  White_Space                         also U+001C to U+001F          also U+FEFF, without U+0085
    ======  ==================================  =============================  =========================================

    `flags`: any of ``i`` (ignore case), ``s`` (dot matches newline), ``m`` (^ and $ at lines), ``x`` (verbose).
    Text is UTF-8. `$` without ``m`` means the very end, as in ECMA-262 and Rust (not before a last newline).
    """

    kind = "regex"
    pattern: str
    search: bool = False
    ascii_classes: bool = False
    flags: str = ""

    def __post_init__(self) -> None:
        as_text(self.pattern, "pattern")
        as_bool(self.search, "search")
        as_bool(self.ascii_classes, "ascii_classes")
        as_text(self.flags, "flags")
        as_text(self.label, "label")
        unknown = sorted(set(self.flags) - set("isxm"))
        if unknown:
            raise OptionError(f"unknown regex flag {unknown[0]!r}; known: i, s, m, x")

    @property
    def source(self) -> str:
        return self.pattern


@dataclass(frozen=True)
class Choice(Constraint):
    """Exactly one of a set of texts (str, encoded as UTF-8, or bytes). Order and repeats do not matter."""

    kind = "choice"
    choices: tuple[str | bytes, ...]

    def __init__(self, choices: Iterable[str | bytes], *, label: str = "") -> None:
        object.__setattr__(self, "choices", tuple(as_sequence(choices, "choices", "texts")))
        object.__setattr__(self, "label", as_text(label, "label"))
        if not self.choices:
            raise EmptyLanguageError("choices: a Choice needs at least one text")
        for choice in self.choices:
            if not isinstance(choice, str | bytes):
                raise ArgumentError(f"choices: a choice is a str or bytes, not {type(choice).__name__}")

    @property
    def source(self) -> str:
        return " | ".join(choice if isinstance(choice, str) else repr(choice) for choice in self.choices)

    def as_bytes(self) -> list[bytes]:
        """The distinct texts as bytes, sorted. A str with a lone surrogate has no UTF-8 form: OptionError."""
        try:
            return sorted({choice.encode() if isinstance(choice, str) else choice for choice in self.choices})
        except UnicodeEncodeError as error:
            raise OptionError(f"the choice {error.object!r} cannot be encoded as UTF-8: {error.reason}") from None


class Written(NamedTuple):
    """A grammar in another notation, of which Lark's `Grammar.text` was made.

    `made`, `begin`: offsets in the Lark text, ascending, and where what stands there begins in `text`. `names`: what a
    rule is called in the Lark text -> in `text`.
    """

    text: str
    made: tuple[int, ...]
    begin: tuple[int, ...]
    names: Mapping[str, str]


@dataclass(frozen=True)
class Grammar(Constraint):
    """All texts derived from `start` in a Lark grammar. What it ignores may also stand before and behind a text, as in
    Lark: a matcher that can end may allow blanks, too.

    - `text`: the grammar, or what says it as ``str(text)``: a part of `tokdfa.grammar.parts`.
    - `sources`: grammars by name, for ``%import name.rule`` (kept as sorted pairs); `path`: a folder to read them from,
      ``name.lark``, ``folder/name.lark`` for ``%import folder.name.rule``. They are read at once, those that they
      import too: at most `MAX_SOURCES` files, `MAX_SOURCE_TEXT` characters. A file that is missing is reported by its
      ``%import``, when the grammar is compiled.
    - `json_options`: options of `JsonSchema` for all ``%json`` of the grammar (kept as sorted pairs); a schema's own
      member ``x-tokdfa`` overrides them.
    """

    kind = "grammar"
    #: What `text` was made of, if it was written in another notation: errors name its places and its rules.
    written: ClassVar[Written | None] = None
    text: str
    start: str = "start"
    sources: Mapping[str, str] | tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    json_options: Mapping[str, Any] | tuple[tuple[str, Any], ...] = field(default=(), kw_only=True)
    path: InitVar[str | Path | None] = field(default=None, kw_only=True)

    def __post_init__(self, path: str | Path | None) -> None:
        if hasattr(self.text, "as_grammar"):  # a part
            object.__setattr__(self, "text", str(self.text))
        if hasattr(self.text, "read_text"):
            raise ArgumentError("text is a path; write Grammar(path.read_text()), with path=folder for its imports")
        as_text(self.text, "text")
        as_text(self.start, "start")
        as_text(self.label, "label")
        sources = dict(self.sources)
        for name, text in sources.items():
            as_text(text, f"sources[{as_text(name, 'sources')!r}]")
        if path is not None:
            sources = _read_sources(self.text, Path(path), sources)
        if len(sources) > MAX_SOURCES:
            raise OptionError(f"sources has {len(sources)} grammars; at most {MAX_SOURCES} are imported")
        object.__setattr__(self, "sources", tuple(sorted(sources.items())))
        options = dict(self.json_options)
        object.__setattr__(self, "_any_json", JsonSchema(True, **IN_GRAMMARS | dict(_known_options(options))))
        object.__setattr__(self, "json_options", tuple(sorted(options.items())))

    def schema(self, text: str) -> JsonSchema:
        """The constraint of a ``%json`` in this grammar. Raises OptionError for an option that cannot be."""
        if '"x-tokdfa"' not in text:
            any_json: JsonSchema = self._any_json  # type: ignore[attr-defined]
            return any_json.of_schema(text)
        options, schema = IN_GRAMMARS | dict(self.json_options), DECODER.decode(text)
        if isinstance(schema, dict) and "x-tokdfa" in schema:
            own = schema.pop("x-tokdfa")
            if not isinstance(own, dict):
                raise OptionError("x-tokdfa takes an object of JsonSchema's options")
            options |= _known_options(own)
            text = json.dumps(schema, ensure_ascii=False)
        return JsonSchema(text, **options)

    @property
    def source(self) -> str:
        return self.text


@dataclass(frozen=True)
class JsonSchema(Constraint):
    """All JSON texts that are valid under a schema, given as a dict, a bool or JSON text, or in a wrapper of requests
    (`tokdfa.core.schema_forms`).

    The schema is read by the draft that its ``$schema`` declares (4, 6, 7, 2019-09, 2020-12; 2020-12 if none). How the
    values may be written is part of the constraint:

    - `profile`: where the options below that are None begin. ``all``: every way that JSON has, to judge texts by;
      ``generation``: the way people and programs write JSON, for models to write in (`PROFILES`). A text of
      ``generation`` is one of ``all``, and a schema with a valid value has a text in both.
    - `order`: ``schema``: declared properties come in the order of the schema, then others; required ones may come
      first, in the order of ``required``, unless members are counted, depend on each other, or have names of some
      200,000 characters together; ``any``: in any order.
    - `duplicates`: ``declared``: a name that the schema declares comes once in an object, others are not remembered;
      ``refused``: no object has two equal names, however they are escaped, as in ``generation``. The grammar engines
      remember undeclared names (`tokdfa.backends.unique_items`); elsewhere, and in grammars, where ``generation`` has
      ``declared``, a schema with too many of them is refused (`tokdfa.json_schema.solve.distinct`).
    - `asserts`: what the drafts leave open: ``formats``: `format` is asserted; ``all``: so are `contentEncoding` and
      `contentMediaType` of draft 7, and `dependencies` of later drafts, which replaced it; ``required``: none of them.
    - `whitespace`: ``flexible``: blanks, tabs and ends of line around brackets, commas and colons; ``compact``: none.
      `whitespace_pattern`: a regex for the blanks at each of these places, instead; OptionError when it is lowered if
      it takes anything but blanks, tabs and ends of line.
    - `item_separator`, `key_separator`: with blanks they may hold blanks themselves: ``", "`` and ``": "`` are those of
      ``generation``, unless `whitespace` or `whitespace_pattern` is given.
    - `escapes`: ``all``: a string may be spelled in every way that JSON has; ``needed``: characters that may stand raw
      are never escaped.
    - `blanks`: ``all``: strings hold any white space; ``few``: no runaway blanks, unless the schema demands them
      (`tokdfa.json_schema.sets.blanks`). Names of members are not meant.
    - `numbers`: ``all``: every text of a number; ``natural``: integers without point and exponent, no negative zero,
      one text of a listed number (`tokdfa.json_schema.sets.number_texts`).
    - `number_digits`: the most digits of a number before its exponent; 0: any number of them. Where the schema asks for
      numbers that need more, those are taken.
    - `max_nesting`: arrays and objects inside each other at most; None: any number. What is bounded is a regular
      language, which the strategies without a stack need.
    - `registry`: other documents that references lead to: a mapping of URIs to schemas, or a `referencing.Registry`, of
      which the documents that it holds are taken. Nothing is ever fetched, not by the registry either. A document
      without ``$schema`` has the draft that the registry gives it; in a mapping, that of `schema`.
    - `lenient`: keywords that cannot be enforced exactly are dropped, and listed by the compiled constraint, instead of
      refused.

    As an attribute, `registry` is the JSON text of the mapping, sorted by URI; empty if there are no documents.
    `profile` only sets options, so constraints that differ in nothing else are equal.
    """

    kind = "json_schema"
    text: str
    order: str = "schema"
    duplicates: str = "declared"
    asserts: str = "formats"
    whitespace: str = "flexible"
    whitespace_pattern: str = ""
    item_separator: str = ","
    key_separator: str = ":"
    escapes: str = "all"
    blanks: str = "all"
    numbers: str = "all"
    number_digits: int = 0
    max_nesting: int | None = None
    registry: str = ""
    lenient: bool = False
    profile: str = field(default="all", compare=False)

    def __init__(
        self,
        schema: dict[str, Any] | bool | str,
        *,
        profile: str = "all",
        order: str | None = None,
        duplicates: str | None = None,
        asserts: str | None = None,
        whitespace: str | None = None,
        whitespace_pattern: str | None = None,
        item_separator: str | None = None,
        key_separator: str | None = None,
        escapes: str | None = None,
        blanks: str | None = None,
        numbers: str | None = None,
        number_digits: int | None = None,
        max_nesting: int | None = None,
        registry: Mapping[str, Any] | Registry[Any] | str = "",
        lenient: bool = False,
        label: str = "",
    ) -> None:
        text = _schema_text(schema)
        given: dict[str, Any] = {
            "order": order,
            "duplicates": duplicates,
            "asserts": asserts,
            "whitespace": whitespace,
            "whitespace_pattern": whitespace_pattern,
            "item_separator": item_separator,
            "key_separator": key_separator,
            "escapes": escapes,
            "blanks": blanks,
            "numbers": numbers,
            "number_digits": number_digits,
        }
        defaults = _PROFILE_OPTIONS[_one_of(profile, "profile", PROFILES)]
        given = {name: value for name, value in given.items() if value is not None}
        if max_nesting is not None:
            max_nesting = as_integer(max_nesting, "max_nesting", 0, MAX_NESTING)
        self.__dict__.update(
            _with_given(defaults, given) if given else defaults,
            text=text,
            max_nesting=max_nesting,
            registry=registry_text(registry),
            lenient=as_bool(lenient, "lenient"),
            profile=profile,
            label=as_text(label, "label"),
        )

    def of_schema(self, schema: dict[str, Any] | bool | str) -> JsonSchema:
        """The same options for another schema, a tenth of the time of reading them again."""
        return self.changed(text=_schema_text(schema))

    def changed(self, **options: Any) -> JsonSchema:
        """The same with other values of its attributes, which must be known to be right."""
        made = object.__new__(JsonSchema)
        made.__dict__.update(self.__dict__, **options)
        return made

    def in_any_order(self) -> JsonSchema:
        """The same constraint, with the members of objects in any order."""
        made = object.__new__(JsonSchema)
        made.__dict__.update(self.__dict__, order="any", duplicates="declared")
        return made

    @property
    def spelling(self) -> tuple[Any, ...]:
        """The options that say how a value is written, whatever the schema: those of `SPELLING`, in its order."""
        return _spelling_of(self)

    @property
    def source(self) -> str:
        return self.text

    @property
    def schema(self) -> Any:
        """The schema as Python data."""
        return json.loads(self.text)


def _with_given(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a profile but for those that are given, which are checked."""
    own: dict[str, Any] = {}
    if "whitespace" in given or "whitespace_pattern" in given:
        own = {name: PROFILES["all"][name] for name in ("item_separator", "key_separator")}
    options = {**defaults, **own, **given}
    for option, known in _OPTION_VALUES.items():
        _one_of(options[option], option, known)
    for option, sign in (("item_separator", ","), ("key_separator", ":")):
        if as_text(options[option], option).strip(" \t\n\r") != sign:
            raise OptionError(f"{option} is {options[option]!r}; it must be {sign!r}, with blanks around it or without")
    as_text(options["whitespace_pattern"], "whitespace_pattern")
    options["number_digits"] = as_integer(options["number_digits"], "number_digits", 0, MAX_NUMBER_DIGITS)
    return options


def _known_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """`options`, if each is one of JsonSchema; OptionError names the nearest."""
    known = option_names(JsonSchema) - {"label"}
    for name in options:
        if name not in known:
            raise OptionError(f"JsonSchema has no option {name!r}; {nearest(str(name), known)}")
    return options


def _read_sources(text: str, folder: Path, sources: dict[str, str]) -> dict[str, str]:
    """`sources`, and the grammars of a folder that `text` imports, and those that these import."""
    pending, size = [text], 0
    while pending:
        for path in _IMPORT.findall(pending.pop()):
            parts = path.split(".")
            # NAME of %import NAME (a, b), and of %import NAME.a
            for name in (".".join(parts), ".".join(parts[:-1])):
                file = folder.joinpath(*name.split(".")).with_suffix(".lark") if name else folder
                if name in sources or name == "common" or not file.is_file():
                    continue
                size += file.stat().st_size
                if len(sources) >= MAX_SOURCES or size > MAX_SOURCE_TEXT:
                    raise LimitExceeded(
                        f"{file}: a grammar imports at most {MAX_SOURCES} files of {MAX_SOURCE_TEXT} bytes together",
                        limit="imported grammars",
                        value=MAX_SOURCES,
                    )
                try:
                    sources[name] = file.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise OptionError(f"{file} cannot be read: {error}") from None
                pending.append(sources[name])
    return sources


def _one_of(value: Any, option: str, known: Collection[str]) -> str:
    """`value`, if it is one of the values of an option that are known; else OptionError lists them."""
    if as_text(value, option) not in known:
        raise OptionError(f"{option} is {value!r}; it must be one of {', '.join(known)}")
    return str(value)


def _schema_text(schema: Any) -> str:
    """The JSON text of a schema; OptionError if it is none, LimitExceeded if it is nested too deep."""
    if not isinstance(schema, dict | bool | str):
        raise ArgumentError(
            f"schema is a dict, a bool or JSON text, not {a_type(schema)}; for a class take tokdfa.constrain, "
            "or its model_json_schema()"
        )
    try:
        if not isinstance(schema, str):
            return write_json(unwrapped(schema), "the schema")
        return unwrapped_text(schema, read_json(schema, "the schema", DECODER))
    except (ValueError, TypeError) as error:
        raise OptionError(f"the schema is not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


#: Reads JSON, without the NaN and Infinity that Python adds.
DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def option_names(kind: type[Constraint]) -> frozenset[str]:
    """The names of the options of a class of constraints."""
    return frozenset(field.name for field in fields(kind)) - {"pattern", "choices", "text"}


def check_constraint(constraint: Any) -> Constraint:
    """`constraint`, if it is one; else ArgumentError says how to write it."""
    if not isinstance(constraint, Constraint) or type(constraint) is Constraint:
        raise ArgumentError(
            f"constraint is {a_type(constraint)}; write tokdfa.Regex(pattern), tokdfa.Choice(texts), "
            "tokdfa.Grammar(text) or tokdfa.JsonSchema(schema); tokdfa.constrain takes types and texts as they are"
        )
    return constraint
