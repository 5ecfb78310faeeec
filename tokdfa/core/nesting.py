"""How deep inputs may nest: limits that are counted, and room on Python's stack for what nests that deep.

What is too deep is a property of the input: levels are counted, and one too many raises LimitExceeded or its like, with
the place. Python's own limit counts the frames of the caller as well. So what meets it is done once more with room for
all that the limits allow (`with_room`); a RecursionError is never how an input is refused.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from tokdfa.core.locks import new_lock
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")

#: Arrays and objects inside each other in a JSON text that we read, at most.
MAX_JSON_DEPTH = 1_000
#: Python frames that whatever is within the limits may take: some ten for each level of a schema.
ROOM = 20_000
#: Deeper texts are read sign by sign.
_FEW_LEVELS = 64
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SIGNS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)


class _Room:
    """How many are at work with room, and the limit before the first."""

    lock = new_lock()
    users = 0
    before = made = 0


def with_room(do: Callable[[], ResultT]) -> ResultT:
    """What `do` returns. If Python's limit on frames ends it, it is called again with `ROOM` more of them.

    `do` may be called twice. The limit is that of the process; it is put back when nobody needs the room any more.
    """
    try:
        return do()
    except RecursionError:
        pass
    with _Room.lock:
        if not _Room.users:
            _Room.before = sys.getrecursionlimit()
        _Room.users += 1
        _Room.made = max(sys.getrecursionlimit(), _depth() + ROOM)
        sys.setrecursionlimit(_Room.made)
    try:
        return do()
    finally:
        with _Room.lock:
            _Room.users -= 1
            if not _Room.users and sys.getrecursionlimit() == _Room.made:
                sys.setrecursionlimit(_Room.before)


def _depth() -> int:
    """How many Python frames there are."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def read_json(text: str, what: str, decoder: json.JSONDecoder | None = None) -> Any:
    """The value of a JSON text. `what`: whose it is, for messages.

    Raises ValueError for what is no JSON, TypeError for what is no text, and what `check_depth` raises.
    """
    if isinstance(text, str):
        check_depth(text, what)
    return with_room(lambda: json.loads(text) if decoder is None else decoder.decode(text))


#: Writes JSON, without the NaN and Infinity that Python adds.
_encode = json.JSONEncoder(allow_nan=False).encode


def write_json(value: Any, what: str) -> str:
    """The JSON text of a value. Raises as `read_json`, and ValueError or TypeError for what JSON has not."""
    try:
        text = with_room(lambda: _encode(value))
    except RecursionError:
        raise _too_deep(what, _deep_place(value)) from None
    check_depth(text, what)
    return text


def check_depth(text: str, what: str) -> None:
    """Raises LimitExceeded for a JSON text with more than `MAX_JSON_DEPTH` arrays and objects inside each other.

    The message has the JSON pointer of the first that is too deep. O(1) for texts with fewer of them, else O(bytes).
    """
    if text.count("{") + text.count("[") <= MAX_JSON_DEPTH:
        return
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    brackets = outside.encode(errors="ignore").translate(None, _NO_BRACKETS)
    for _ in range(_FEW_LEVELS):  # the innermost ones go first
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    if not brackets:
        return
    #: By level: the key at which we are, and whether the next string is one.
    keys: list[str | int] = []
    is_key: list[bool] = []
    for found in _SIGNS.finditer(text):
        sign = found[0]
        if sign in "[{":
            if len(keys) == MAX_JSON_DEPTH:
                raise _too_deep(what, keys)
            keys.append(0 if sign == "[" else "")
            is_key.append(sign == "{")
        elif not keys:
            continue
        elif sign in "]}":
            keys.pop()
            is_key.pop()
        elif sign == ",":
            last = keys[-1]
            if isinstance(last, int):
                keys[-1] = last + 1
            else:
                is_key[-1] = True
        elif is_key[-1] and sign != ":":
            keys[-1], is_key[-1] = sign[1:-1], False


def _too_deep(what: str, keys: list[str | int]) -> LimitExceeded:
    pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
    return LimitExceeded(
        f"{what} is nested too deep: it has more than {MAX_JSON_DEPTH} arrays and objects inside each other, at"
        f" {pointer}",
        limit="JSON depth",
        value=MAX_JSON_DEPTH,
    )


def _deep_place(value: Any) -> list[str | int]:
    """The keys that lead to the first value that is too deep; some that lead deep if none is."""
    todo: list[tuple[Any, list[str | int]]] = [(value, [])]
    keys: list[str | int] = []
    while todo:
        here, keys = todo.pop()
        if len(keys) == MAX_JSON_DEPTH:
            break
        if isinstance(here, dict):
            todo += [(part, [*keys, str(key)]) for key, part in here.items()]
        elif isinstance(here, list | tuple):
            todo += [(part, [*keys, number]) for number, part in enumerate(here)]
    return keys
