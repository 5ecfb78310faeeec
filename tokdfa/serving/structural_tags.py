"""Structural tags: the form in which servers, and the tool parsers of vLLM and SGLang, describe free text with tags.

    {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": [...], "tags": [...]}}

A format is an object with a ``type``; what it is made of are parts (`tokdfa.grammar.parts`), by these names:

| type | members |
|---|---|
| ``const_string`` | ``value`` |
| ``regex`` | ``pattern`` |
| ``json_schema`` | ``json_schema``, ``style`` (json only), ``any_order``, ``max_whitespace_cnt`` |
| ``grammar`` | ``grammar``, ``syntax`` (ebnf or lark) |
| ``any_text`` | ``excludes`` |
| ``token`` | ``token``, a special token by id or name |
| ``sequence``, ``or`` | ``elements`` |
| ``optional``, ``star``, ``plus``, ``repeat`` | ``content``; ``min`` and ``max`` |
| ``tag`` | ``begin``, ``content``, ``end`` |
| ``triggered_tags``, ``token_triggered_tags`` | ``triggers``, ``tags``, ``at_least_one``, ``stop_after_first`` |
| ``tags_with_separator`` | ``tags``, ``separator``, ``at_least_one``, ``stop_after_first`` |
| ``dispatch``, ``token_dispatch`` | ``rules``, ``loop`` |

The older form, ``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``, is one of ``triggered_tags``.
Whatever else is said, such as an XML style or a limit on tokens, is refused with the place where it stands.

Source: `structural_tag.py` of xgrammar, which defines the form. Two readings differ, by design: with ``any_order``
members come in any order and are checked as ever, and ``any_text`` is UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import Grammar
from tokdfa.core.arguments import as_bool, as_integer, as_text
from tokdfa.errors import ArgumentError, UnsupportedConstraint
from tokdfa.grammar import parts
from tokdfa.grammar.ebnf import read_ebnf
from tokdfa.grammar.marked_tags import marked_tag, marked_text, marker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.grammar.parts import Part


def read_structural_tag(described: Any, options: Mapping[str, Any], vocab: Any = None) -> Grammar:
    """The grammar of a structural tag, given as data. `options`: those of `JsonSchema` for its schemas. `vocab`: of the
    texts in which markers such as ``<tool_call>`` are its special tokens; without one all texts are characters.

    Raises ArgumentError for what is none, and UnsupportedConstraint for what cannot be enforced, both with the place.
    """
    reader = _Reader(dict(options), vocab)
    if isinstance(described, dict) and "structures" in described:
        part = reader.read(_of_old_form(described), "structural_tag")
    elif isinstance(described, dict) and "format" in described:
        part = reader.read(described["format"], "format")
    else:
        raise ArgumentError(
            'structural_tag: write {"type": "structural_tag", "format": {"type": ..., ...}}, or the older form '
            '{"structures": [{"begin": ..., "schema": ..., "end": ...}], "triggers": [...]}'
        )
    return Grammar(str(part), sources=reader.sources, json_options=options)


def _of_old_form(described: dict[str, Any]) -> dict[str, Any]:
    """The format of a tag in the older form."""
    found = []
    for place, one in enumerate(_list(described, "structures", "structural_tag")):
        where = f"structures[{place}]"
        schema = {"type": "json_schema", "json_schema": _member(one, "schema", where)}
        found.append(
            {"type": "tag", "begin": _member(one, "begin", where), "content": schema, "end": _member(one, "end", where)}
        )
    return {"type": "triggered_tags", "triggers": _member(described, "triggers", "structural_tag"), "tags": found}


@dataclass
class _Reader:
    """Makes parts of formats. `sources`: the grammars that are imported, by name."""

    options: dict[str, Any]
    vocab: Any = None
    sources: dict[str, str] = field(default_factory=dict)

    def read(self, described: Any, where: str) -> Part:
        """The part of a format; `where` it stands, for messages."""
        kind = as_text(_member(described, "type", where), f"{where}.type")
        read = _KINDS.get(kind)
        if read is None:
            raise UnsupportedConstraint(
                f"{where}: the type {kind!r} cannot be enforced here; known: {', '.join(_KINDS)}; write what it allows "
                "as a grammar"
            )
        known, make = read
        unknown = sorted(name for name, value in described.items() if name not in {"type", *known} and value)
        if unknown:
            raise UnsupportedConstraint(
                f"{where}: {unknown[0]} of {kind} cannot be enforced; leave it out, or write what is meant as a grammar"
            )
        return make(self, described, where)

    def const_string(self, described: dict[str, Any], where: str) -> Part:
        return self._text(as_text(_member(described, "value", where), f"{where}.value"))

    def _text(self, written: str) -> Part:
        return parts.text(written) if self.vocab is None else marked_text(written, self.vocab)

    def regex(self, described: dict[str, Any], where: str) -> Part:
        return parts.regex(as_text(_member(described, "pattern", where), f"{where}.pattern"))

    def json_schema(self, described: dict[str, Any], where: str) -> Part:
        if described.get("style", "json") != "json":
            raise UnsupportedConstraint(f"{where}: the style {described['style']!r}; only json is written here")
        own: dict[str, Any] = {}
        if described.get("any_order"):
            own["order"] = "any"
        if described.get("max_whitespace_cnt") is not None:
            most = as_integer(described["max_whitespace_cnt"], f"{where}.max_whitespace_cnt", 0)
            own["whitespace_pattern"] = rf"[ \t\n\r]{{0,{most}}}"
        return parts.json(_member(described, "json_schema", where), **({**self.options, **own} if own else {}))

    def grammar(self, described: dict[str, Any], where: str) -> Part:
        text, syntax = (
            as_text(_member(described, "grammar", where), f"{where}.grammar"),
            described.get("syntax", "ebnf"),
        )
        if syntax not in ("ebnf", "lark"):
            raise ArgumentError(f"{where}.syntax is {syntax!r}; it must be ebnf or lark")
        name = f"grammar{len(self.sources) + 1}"
        read = read_ebnf(text) if syntax == "ebnf" else Grammar(text)
        self.sources[name] = read.text
        return parts.imported(f"{name}.{read.start}")

    def any_text(self, described: dict[str, Any], where: str) -> Part:
        return parts.text_without(*_texts(described, "excludes", where))

    def token(self, described: dict[str, Any], where: str) -> Part:
        return parts.special(_member(described, "token", where))

    def sequence(self, described: dict[str, Any], where: str) -> Part:
        return parts.seq(*self._elements(described, where))

    def one_of(self, described: dict[str, Any], where: str) -> Part:
        return parts.choice(*self._elements(described, where))

    def optional(self, described: dict[str, Any], where: str) -> Part:
        return parts.repeat(self._content(described, where), 0, 1)

    def star(self, described: dict[str, Any], where: str) -> Part:
        return parts.repeat(self._content(described, where))

    def plus(self, described: dict[str, Any], where: str) -> Part:
        return parts.repeat(self._content(described, where), 1)

    def repeat(self, described: dict[str, Any], where: str) -> Part:
        low, high = (as_integer(_member(described, name, where), f"{where}.{name}") for name in ("min", "max"))
        return parts.repeat(self._content(described, where), low, None if high == -1 else high)

    def tag(self, described: dict[str, Any], where: str, trigger: str | None = None) -> parts.Tag:
        """A tag, whose content of any text reaches to the first of its ends."""
        begin, end = (_member(described, name, where) for name in ("begin", "end"))

        def made(content: Part, end: Part | str = "") -> parts.Tag:
            if isinstance(begin, str) and self.vocab is not None:
                return marked_tag(begin, content, end, vocab=self.vocab, trigger=trigger)
            first = parts.text(begin) if isinstance(begin, str) else self.read(begin, f"{where}.begin")
            return parts.tag(first, content, end, trigger=trigger)

        content = _member(described, "content", where)
        ends = end if isinstance(end, list) else [end]
        if (
            isinstance(content, dict)
            and content.get("type") == "any_text"
            and all(isinstance(one, str) for one in ends)
            and all(ends)
        ):
            excluded = _texts(content, "excludes", f"{where}.content")
            self.read(content, f"{where}.content")  # which refuses what cannot be enforced
            tokens = [] if self.vocab is None else [marker(one, self.vocab) for one in ends]
            if tokens and all(tokens):
                return made(parts.text_without(*excluded), parts.choice(*filter(None, tokens)))
            return made(parts.text_until(*ends, excluded=excluded))
        last = [self._text(one) if isinstance(one, str) else self.read(one, f"{where}.end") for one in ends]
        return made(self.read(content, f"{where}.content"), parts.choice(*last))

    def triggered_tags(self, described: dict[str, Any], where: str) -> Part:
        triggers = _texts(described, "triggers", where)
        members = []
        for place, one in enumerate(_list(described, "tags", where)):
            here = f"{where}.tags[{place}]"
            begin = as_text(_member(one, "begin", here), f"{here}.begin")
            trigger = next((trigger for trigger in triggers if begin.startswith(trigger)), None)
            if trigger is None:
                raise ArgumentError(f"{here}: no trigger begins {begin!r}; the triggers are {triggers}")
            members.append(self.tag(one, here, trigger))
        return parts.tags(*members, **_flags(described))

    def token_triggered_tags(self, described: dict[str, Any], where: str) -> Part:
        triggers = _list(described, "trigger_tokens", where)
        members = []
        for place, one in enumerate(_list(described, "tags", where)):
            here = f"{where}.tags[{place}]"
            begin = _member(one, "begin", here)
            if not isinstance(begin, dict) or begin.get("token") not in triggers:
                raise ArgumentError(f"{here}.begin is a token of trigger_tokens, {triggers}")
            members.append(self.tag(one, here))
        return parts.tags(*members, **_flags(described))

    def tags_with_separator(self, described: dict[str, Any], where: str) -> Part:
        flags, separator = _flags(described), as_text(_member(described, "separator", where), f"{where}.separator")
        tags = [self.tag(one, f"{where}.tags[{place}]") for place, one in enumerate(_list(described, "tags", where))]
        one = parts.Rule(parts.choice(*tags))
        several = one if flags["stop_after_first"] else parts.seq(one, parts.repeat(parts.seq(separator, one)))
        return several if flags["at_least_one"] else parts.repeat(several, 0, 1)

    def dispatch(self, described: dict[str, Any], where: str) -> Part:
        """Each rule is a tag that ends with its content."""
        members = []
        for place, rule in enumerate(_list(described, "rules", where)):
            if not isinstance(rule, list) or len(rule) != 2:
                raise ArgumentError(f"{where}.rules[{place}] is a pair of a pattern and a format")
            pattern, content = rule
            begin = parts.text(pattern) if described["type"] == "dispatch" else parts.special(pattern)
            members.append(parts.tag(begin, self.read(content, f"{where}.rules[{place}][1]")))
        return parts.tags(*members, stop_after_first=not as_bool(described.get("loop", True), f"{where}.loop"))

    def _elements(self, described: dict[str, Any], where: str) -> list[Part]:
        listed = _list(described, "elements", where)
        return [self.read(one, f"{where}.elements[{place}]") for place, one in enumerate(listed)]

    def _content(self, described: dict[str, Any], where: str) -> Part:
        return self.read(_member(described, "content", where), f"{where}.content")


_FLAGS = ("at_least_one", "stop_after_first")
#: Type -> the members that are enforced, and what reads it.
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[_Reader, dict[str, Any], str], Part]]] = {
    "const_string": (("value",), _Reader.const_string),
    "regex": (("pattern",), _Reader.regex),
    "json_schema": (("json_schema", "style", "any_order", "max_whitespace_cnt"), _Reader.json_schema),
    "grammar": (("grammar", "syntax"), _Reader.grammar),
    "any_text": (("excludes",), _Reader.any_text),
    "token": (("token",), _Reader.token),
    "sequence": (("elements",), _Reader.sequence),
    "or": (("elements",), _Reader.one_of),
    "optional": (("content",), _Reader.optional),
    "star": (("content",), _Reader.star),
    "plus": (("content",), _Reader.plus),
    "repeat": (("content", "min", "max"), _Reader.repeat),
    "tag": (("begin", "content", "end"), _Reader.tag),
    "triggered_tags": (("triggers", "tags", *_FLAGS), _Reader.triggered_tags),
    "token_triggered_tags": (("trigger_tokens", "tags", *_FLAGS), _Reader.token_triggered_tags),
    "tags_with_separator": (("tags", "separator", *_FLAGS), _Reader.tags_with_separator),
    "dispatch": (("rules", "loop"), _Reader.dispatch),
    "token_dispatch": (("rules", "loop"), _Reader.dispatch),
}


def _flags(described: dict[str, Any]) -> dict[str, bool]:
    return {name: as_bool(described.get(name, False), name) for name in _FLAGS}


def _member(described: Any, name: str, where: str) -> Any:
    if not isinstance(described, dict):
        raise ArgumentError(f"{where} is an object with a type, not {str(described)[:60]!r}")
    if name not in described:
        raise ArgumentError(f"{where}: {name} is missing")
    return described[name]


def _list(described: Any, name: str, where: str) -> list[Any]:
    found = _member(described, name, where)
    if not isinstance(found, list):
        raise ArgumentError(f"{where}.{name} is a list, not {str(found)[:60]!r}")
    return found


def _texts(described: dict[str, Any], name: str, where: str) -> list[str]:
    found = described.get(name) or []
    if not isinstance(found, list):
        raise ArgumentError(f"{where}.{name} is a list of texts, not {str(found)[:60]!r}")
    return [as_text(one, f"{where}.{name}") for one in found]
