"""Calls of tools in a finished text: the part that `tokdfa.tools` makes knows how to read its texts.

What is read is text. Markers that are special tokens must be in it by the names they are printed as; decoding with
``skip_special_tokens=True`` loses them, so give the tokens to `Constrained.parse`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.core.locks import cached_property
from tokdfa.errors import ParseError
from tokdfa.grammar.parts import Part

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. `arguments`: the JSON value, mostly a dict."""

    name: str
    arguments: Any


@dataclass(frozen=True)
class ToolCalls(Part):
    """What `tokdfa.tools` makes: the part, and its description (`tokdfa.grammar.tool_formats.ToolFormat`).

    `calls`: the ways to write a call; `ends`: the markers of the description that are end tokens, where the text stops.
    """

    part: Part
    names: tuple[str, ...]
    calls: tuple[str, ...]
    trigger: str
    opening: str
    between: str
    closing: str
    ends: tuple[str, ...]

    def inner(self) -> tuple[Part, ...]:
        return (self.part,)

    def write(self, writer: Any) -> str:
        return self.part.write(writer)

    def read(self, text: str) -> list[ToolCall]:
        """The calls in a text, in order. ParseError for a call that is not whole."""
        return self._read_lists(text) if self.opening else self._read_single(text)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
        """What stands before the arguments of a call, and after them, for each way to write one."""
        cut = [call.partition("ARGUMENTS") for call in self.calls]
        return [(self._pattern(before), self._pattern(after)) for before, _, after in cut]

    def _pattern(self, written: str) -> re.Pattern[str]:
        """The regex of a description: what may be left out, names, identifiers, markers that may be missing."""
        pattern = ""
        for k, piece in enumerate(re.split("⟦(.*?)⟧", written)):
            escaped = re.escape(piece)
            for end in self.ends:
                escaped = escaped.replace(re.escape(end), f"(?:{re.escape(end)})?")
            escaped = escaped.replace("IDENTIFIER", "[a-zA-Z0-9]{9}")
            pattern += f"(?:{escaped})?" if k % 2 else escaped
        names = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        return re.compile(pattern.replace("NAME", f"(?P<name>{names})"))

    def _read_single(self, text: str) -> list[ToolCall]:
        found: list[ToolCall] = []
        place = 0
        while True:
            begun = text.find(self.trigger, place)
            heads = [head.search(text, place) for head, _ in self._patterns]
            starts = [head.start() for head in heads if head is not None]
            if begun < 0 and not starts:
                return found
            begin = min([*starts, *([begun] if begun >= 0 else [])])
            call, place = self._call(text, begin)
            found.append(call)

    def _read_lists(self, text: str) -> list[ToolCall]:
        opening, closing = self._pattern(self.opening), self._pattern(self.closing)
        found: list[ToolCall] = []
        place = 0
        while (opened := opening.search(text, place)) is not None:
            call, place = self._call(text, opened.end())
            found.append(call)
            while (closed := closing.match(text, place)) is None or (not closed[0] and place < len(text)):
                if not text.startswith(self.between, place):
                    raise _cut(text, place)
                call, place = self._call(text, place + len(self.between))
                found.append(call)
            place = closed.end()
        return found

    def _call(self, text: str, begin: int) -> tuple[ToolCall, int]:
        """The call at a place, and the place after it."""
        for head, tail in self._patterns:
            opened = head.match(text, begin)
            if opened is None:
                continue
            try:
                arguments, end = json.JSONDecoder().raw_decode(text, opened.end())
            except (ValueError, RecursionError):
                continue
            closed = tail.match(text, end)
            if closed is not None:
                return ToolCall(opened["name"], arguments), closed.end()
        raise _cut(text, begin)


def _cut(text: str, place: int) -> ParseError:
    shown: Sequence[str] = text[place : place + 40]
    return ParseError(f"the call of a tool at character {place}, {shown!r}, is not whole", text)
