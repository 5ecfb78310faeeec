r"""Grammars from parts: combinators whose ``str`` is the Lark text that they are, so there is one way to an engine.

A *part* is a text (a str stands for itself), `special`, `regex`, `json`, `text_until`, `imported`, or made of parts by
`seq`, `choice`, `repeat`, `tag` and `tags`. ``tokdfa.Grammar(part)`` is its constraint.

*Free text and tags.* `tags` is free text with tags in it. A tag begins where its *trigger*, a text or a special token,
is complete for the first time since the last tag ended. So free text is a regular language, the texts without any
trigger inside, and masks are exact about triggers: within a token, over several, or in the midst of other text. With
triggers t1 | t2, free text up to t1 is the terminal ``/.*t1/s & ~/.*(t1|t2).+/s``, the rest ``~/.*(t1|t2).*/s``. A
trigger inside another one would always come first, and is refused.

Cost: a trigger costs states by its length; all triggers of one `tags` stand in each of its terminals, so give tags that
begin alike one `trigger`.
"""

from __future__ import annotations

import json as json_text
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import JsonSchema
from tokdfa.core.arguments import as_bool, as_integer, as_text
from tokdfa.errors import ArgumentError, OptionError, a_type
from tokdfa.grammar.special import parse_special

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Any JSON text, read as all options have it.
ANY_JSON = JsonSchema(True)
_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n"})


@dataclass(frozen=True)
class Part:
    """Base of all parts. ``str(part)`` is a grammar whose rule ``start`` is the part."""

    def inner(self) -> tuple[Part, ...]:
        """The parts that it is made of."""
        return ()

    def write(self, writer: _Writer) -> str:
        """The part as it stands in a rule; what it needs beside is given to `writer`."""
        raise NotImplementedError

    def as_grammar(self) -> str:
        """The Lark text."""
        writer = _Writer()
        body = self.write(writer)
        return "\n".join([f"start: {body}", *writer.lines, ""])

    def __str__(self) -> str:
        return self.as_grammar()


class _Writer:
    """The statements that a text needs beside its start; equal ones are written once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def name(self, statement: str, prefix: str) -> str:
        """What `statement` calls by a zero, written under a name of its own."""
        if statement not in self._names:
            name = self._names[statement] = f"{prefix}{len(self._names) + 1}"
            self.lines.append(statement.replace("\0", name))
        return self._names[statement]


@dataclass(frozen=True)
class Written(Part):
    """A part that is written as it is, or that is what a `statement` defines, which calls it by a zero."""

    written: str
    statement: str = ""

    def write(self, writer: _Writer) -> str:
        if self.statement:
            return writer.name(self.statement, "r" if self.statement.startswith("%") else "T")
        return self.written


@dataclass(frozen=True)
class Group(Part):
    """Parts one after another, or one of them."""

    parts: tuple[Part, ...]
    sign: str

    def inner(self) -> tuple[Part, ...]:
        return self.parts

    def write(self, writer: _Writer) -> str:
        return "(" + self.sign.join(part.write(writer) for part in self.parts) + ")"


@dataclass(frozen=True)
class Repeat(Part):
    """A part several times."""

    part: Part
    count: str

    def inner(self) -> tuple[Part, ...]:
        return (self.part,)

    def write(self, writer: _Writer) -> str:
        body = self.part.write(writer)
        return (body if isinstance(self.part, Group) else f"({body})") + self.count


@dataclass(frozen=True)
class Rule(Part):
    """A part that is written once, as a rule of its own."""

    part: Part

    def inner(self) -> tuple[Part, ...]:
        return (self.part,)

    def write(self, writer: _Writer) -> str:
        return writer.name(f"\0: {self.part.write(writer)}", "r")


@dataclass(frozen=True)
class Tag(Part):
    """See `tag`."""

    begin: Part
    content: Part
    end: Part
    trigger: Part

    def inner(self) -> tuple[Part, ...]:
        return self.begin, self.content, self.end

    def write(self, writer: _Writer) -> str:
        return seq(*self.inner()).write(writer)

    def after_trigger(self) -> Part:
        """What stands between the trigger and the end."""
        rest = literal(self.begin)[len(literal(self.trigger)) :] if is_text(self.begin) else ""
        return seq(rest, self.content)


@dataclass(frozen=True)
class Tags(Part):
    """See `tags`."""

    members: tuple[Tag, ...]
    at_least_one: bool
    stop_after_first: bool
    free_text: bool

    def inner(self) -> tuple[Part, ...]:
        return self.members

    def write(self, writer: _Writer) -> str:
        by_trigger: dict[Part, dict[Part, list[Part]]] = {}  # and by end, which is then written once
        for member in self.members:
            by_trigger.setdefault(member.trigger, {}).setdefault(member.end, []).append(member.after_trigger())
        triggers = [literal(trigger) for trigger in by_trigger if is_text(trigger)]
        until = {literal(trigger): trigger for trigger in by_trigger if is_text(trigger)}
        free: Part = NOTHING
        if self.free_text:
            free = text_without(*triggers)
            until = {trigger: _first_of([trigger], triggers) for trigger in triggers}
        bodies = []
        for trigger, by_end in by_trigger.items():
            head = until[literal(trigger)] if is_text(trigger) else seq(free, trigger)
            bodies.append(seq(head, choice(*(seq(choice(*rests), end) for end, rests in by_end.items()))))
        body = choice(*bodies)
        if self.stop_after_first:
            return (body if self.at_least_one else choice(body, free)).write(writer)
        return seq(repeat(body, 1 if self.at_least_one else 0), free).write(writer)


def text(characters: str) -> Written:
    """Exactly these characters. OptionError for a surrogate without its other half."""
    try:
        as_text(characters, "text").encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"{characters!r} cannot be encoded as UTF-8: {error.reason}") from None
    escaped = characters.translate(_ESCAPED)
    if not escaped.isprintable():
        escaped = "".join(map(_in_string, characters))
    return Written(f'"{escaped}"')


#: The empty text.
NOTHING = text("")


def special(name: str | int) -> Part:
    """A special token by name (``"<|tool|>"``) or id; OptionError for a name that grammars have no notation for."""
    written = f"<[{as_integer(name, 'special', 0)}]>" if isinstance(name, int) else as_text(name, "special")
    if not re.fullmatch(r"<[^<>\s]+>|<\[[^\]\n]*\]>", written):
        raise OptionError(f"special: {written!r} is not written <name>; give its id, vocabulary.special_tokens has it")
    try:
        parse_special(written)
    except ValueError as error:
        raise OptionError(f"special: {error}") from None
    return Written(written)


def regex(pattern: str, flags: str = "") -> Part:
    """The texts that a pattern matches in full. Raises OptionError for ``""`` and for other flags than imsux."""
    if not as_text(pattern, "pattern") or set(as_text(flags, "flags")) - set("imsux"):
        raise OptionError("a regex has a pattern, and flags of imsux; nothing at all is text('')")
    slashed = re.sub(r"(\\.)|/", lambda match: match[1] or r"\/", pattern, flags=re.DOTALL)
    if "x" not in flags:
        slashed = re.sub(r"\\?\n", r"\\n", slashed)
    return Written(f"/{slashed}/{flags}")


def json(schema: dict[str, Any] | bool | str, **options: Any) -> Part:
    """The JSON texts that are valid under a schema. `options`: those of `JsonSchema`, for this schema alone.

    Raises what JsonSchema raises; what is wrong with the schema itself is said when the grammar is compiled.
    """
    constraint = JsonSchema(schema, **options) if options else ANY_JSON.of_schema(schema)
    written = constraint.text
    if options:
        given = constraint.schema
        given = {"not": {}} if given is False else {} if given is True else given
        written = json_text.dumps({**given, "x-tokdfa": options}, ensure_ascii=False)
    return Written(f"%json {written}")


def imported(path: str) -> Part:
    """A rule of a grammar that the constraint is given as a source: ``imported("dates.day")``."""
    if not re.fullmatch(r"\.?[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*\._?[a-z][a-z0-9_-]*", as_text(path, "path")):
        raise OptionError(f"imported: {path!r} is no name.rule")
    return Written("", f"%import {path} -> \0")


def seq(*parts: Part | str) -> Part:
    """The parts one after another."""
    found = tuple(part for part in map(_part, parts) if part != NOTHING)
    return found[0] if len(found) == 1 else Group(found, " ") if found else NOTHING


def choice(*parts: Part | str) -> Part:
    """One of the parts. OptionError if there are none."""
    if not parts:
        raise OptionError("a choice needs at least one part")
    found = tuple(dict.fromkeys(map(_part, parts)))
    return found[0] if len(found) == 1 else Group(found, " | ")


def repeat(part: Part | str, low: int = 0, high: int | None = None) -> Part:
    """A part from `low` to `high` times; None: any number of times."""
    as_integer(low, "low", 0)
    if high is not None and as_integer(high, "high", 0) < low:
        raise OptionError(f"repeat: high is {high}, below low, {low}")
    return Repeat(_part(part), f"{{{low},{'' if high is None else high}}}")


def text_until(*stops: str, excluded: Sequence[str] = ()) -> Part:
    """Any text up to the first of some stops, and that stop; nothing that is `excluded` comes before or with it.

    Raises OptionError for no stop, or an empty one.
    """
    return _first_of(list(stops), [*stops, *excluded])


def up_to(mark: Part) -> Part:
    """Any text up to the first place of a mark, a text or a special token, and the mark. OptionError for no mark."""
    if not _is_special(mark) and not (is_text(mark) and literal(mark)):
        raise OptionError("any text needs an end: a text that is not empty, or a special token")
    return text_until(literal(mark)) if is_text(mark) else seq(text_without(), mark)


def text_without(*stops: str) -> Part:
    """Any text, also none, that has no stop inside. Raises OptionError for a stop that is empty."""
    if "" in stops:
        raise OptionError("text_without: an empty stop is in every text; leave it out")
    stopped = "|".join(map(pattern_of, stops))
    return Written("", f"\0: /.*/s & ~/.*({stopped}).*/s" if stops else "\0: /.*/s")


def tag(
    begin: Part | str, content: Part | str | None = None, end: Part | str = "", *, trigger: str | None = None
) -> Tag:
    """`begin`, `content`, `end`, as one part, alone or in `tags`.

    `begin`: a text or a special token; `content`: None for any text up to `end`, which then is a text or a special
    token that is not empty; `trigger`: with what of `begin` the tag has begun, None: all of it. Raises OptionError for
    a trigger that is empty or not the beginning of `begin`, and for a tag inside itself.
    """
    first, last = _part(begin), _part(end)
    if content is None:
        content, last = up_to(last), NOTHING
    trigger_part = first if trigger is None else text(trigger)
    if not _is_special(first) and not is_text(first):
        raise OptionError("tag: begin is a text or a special token; what follows belongs to the content")
    if is_text(trigger_part) and (
        not literal(trigger_part) or not is_text(first) or not literal(first).startswith(literal(trigger_part))
    ):
        raise OptionError(
            f"tag: the trigger {literal(trigger_part)!r} must be a text, not empty, that begin starts with"
        )
    found = Tag(first, _part(content), last, trigger_part)
    for part in _within(found.content):
        if isinstance(part, Tags) and part.free_text:
            raise OptionError("tag: free text inside a tag would swallow its end; list what may stand there instead")
        if isinstance(part, Tag) and part.begin == first:
            raise OptionError(f"tag: the tag {first.write(_Writer())} stands inside itself")
    return found


def tags(*members: Tag, at_least_one: bool = False, stop_after_first: bool = False, free_text: bool = True) -> Part:
    """Free text with tags in it, any number of them (see the module).

    `at_least_one`: it does not end without a tag; `stop_after_first`: it ends with the first tag; `free_text`: with
    False there is none. Raises OptionError for no tags, for equal tags, and for a trigger that has another one inside.
    """
    for member in members:
        if not isinstance(member, Tag):
            raise ArgumentError(f"tags: a member is made by tag(...), not {a_type(member)}")
    if not members or len(set(members)) < len(members):
        raise OptionError("tags: one tag is needed at least, and none twice")
    triggers = list(dict.fromkeys(literal(one.trigger) for one in members if is_text(one.trigger)))
    joined = "\0".join(triggers)
    for trigger in triggers:
        if joined.count(trigger) > 1:
            longer = next(other for other in triggers if other != trigger and trigger in other)
            raise OptionError(
                f"tags: the trigger {longer!r} has {trigger!r} inside, which is always complete before it or with it; "
                "give both tags the shorter trigger"
            )
    return Tags(
        members,
        as_bool(at_least_one, "at_least_one"),
        as_bool(stop_after_first, "stop_after_first"),
        as_bool(free_text, "free_text"),
    )


def _first_of(ends: list[str], stops: list[str]) -> Part:
    """Any text up to the first of some stops, which is one of `ends`."""
    if not stops or not all(as_text(stop, "stop") for stop in stops):
        raise OptionError("text_until needs a stop, and none that is empty")
    end, stopped = "|".join(map(pattern_of, ends)), "|".join(map(pattern_of, stops))
    return Written("", f"\0: /.*({end})/s & ~/.*({stopped}).+/s")


def _part(part: Part | str) -> Part:
    if isinstance(part, Part):
        return part
    if not isinstance(part, str):
        raise ArgumentError(
            "a part is a text or made by tokdfa.grammar.parts, such as json(schema) or regex(pattern), not "
            f"{a_type(part)}"
        )
    return text(part)


def _within(part: Part) -> Iterator[Part]:
    pending = [part]
    while pending:
        yield (part := pending.pop())
        pending += part.inner()


def is_text(part: Part) -> bool:
    """Whether a part is characters; `literal` gives them."""
    return isinstance(part, Written) and part.written.startswith('"')


def _is_special(part: Part) -> bool:
    return isinstance(part, Written) and part.written.startswith("<")


def literal(part: Part) -> str:
    """The characters of a text."""
    assert isinstance(part, Written)
    return _unescaped(part.written[1:-1])


@lru_cache(1024)
def _unescaped(written: str) -> str:
    return re.sub(
        r"\\U(.{8})|\\(.)",
        lambda match: chr(int(match[1], 16)) if match[1] else match[2].replace("n", "\n"),
        written,
    )


def _in_string(character: str) -> str:
    if character in '"\\\n':
        return "\\" + character.replace("\n", "n")
    return character if character.isprintable() else f"\\U{ord(character):08X}"


def pattern_of(characters: str) -> str:
    """A regex, between slashes, for exactly these characters."""
    return "".join(
        "\\" + character if character in r"/^$.|?*+()[]{}-" else _in_string(character).replace('\\"', '"')
        for character in characters
    )
