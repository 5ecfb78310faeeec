"""Values that a text had, as they are compared: exactly, and equal where JSON Schema says so.

Numbers are compared by value, objects whatever the order of their members. `HeldText` keeps the text of an item that is
still open, `comparable` is what is remembered of a closed one, and `written_again` writes it as JSON.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tokdfa.json_schema.sets.number_set import DIGITS

if TYPE_CHECKING:
    from collections.abc import Hashable


class HeldText:
    """A text as its last byte and what was before: states of a long item share what they have in common."""

    __slots__ = ("_hash", "before", "byte")

    def __init__(self, before: HeldText | None, byte: int) -> None:
        self.before, self.byte = before, byte
        self._hash: int = hash((byte, None if before is None else before._hash))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        one: HeldText | None = self
        two = other if isinstance(other, HeldText) else None
        while one is not two:
            if one is None or two is None or one._hash != two._hash or one.byte != two.byte:
                return False
            one, two = one.before, two.before
        return True

    def read(self, end: str = "", last: frozenset[str] | None = None) -> tuple[str, Any]:
        """The value of the text and `end`, as it is remembered; None if its last member is not in `last`. O(bytes)."""
        written = self.written().decode() + end
        value = read_json(written)
        return written[0], None if last is not None and next(reversed(value)) not in last else comparable(value)

    def written(self) -> bytes:
        """All of it. O(bytes)."""
        found, here = bytearray(), self  # type: bytearray, HeldText | None
        while here is not None:
            found.append(here.byte)
            here = here.before
        return bytes(reversed(found))


def read_number(text: str) -> Decimal | tuple[str, int]:
    """A number exactly; where its exponent is past what Decimal holds, as (sign and digits, exponent of the last)."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        whole, _, behind = mantissa.partition(".")
        digits = (whole + behind).lstrip("-").lstrip("0")
        kept = digits.rstrip("0")
        if not kept:
            return Decimal(0)
        sign = "-" if whole.startswith("-") else ""
        return sign + kept, int(exponent) - len(behind) + len(digits) - len(kept)


def read_json(text: str | bytes) -> Any:
    """A value with numbers as `read_number` has them."""
    return json.loads(text, parse_float=read_number, parse_int=Decimal)


def comparable(value: Any) -> Hashable:
    """A value read from JSON, numbers exactly, as something that is equal where JSON Schema says so."""
    if isinstance(value, dict):
        return "{", frozenset((name, comparable(part)) for name, part in value.items())
    if isinstance(value, list):
        return "[", tuple(map(comparable, value))
    return (value,) if value is None or isinstance(value, bool | str) else ("0", value)


def is_short(value: Any) -> bool:
    """Whether there is an automaton for a value: of long numbers there is none, so these are compared at their end."""
    if value[0] == "{" and len(value) == 2:
        return all(is_short(part) for _, part in value[1])
    if value[0] != "0" or len(value) == 1:
        return True
    if not isinstance(value[1], Decimal):
        return False
    return len(value[1].as_tuple().digits) + abs(value[1].adjusted()) < DIGITS


def written_again(value: Any) -> str:
    """A text of a value, which is as `comparable` has it."""
    if value[0] == "{" and len(value) == 2:
        return "{" + ",".join(f"{json.dumps(name)}:{written_again(part)}" for name, part in sorted(value[1])) + "}"
    if value[0] == "0" and len(value) == 2:
        return str(value[1])
    return json.dumps(value[0])
