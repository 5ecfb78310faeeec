"""Smaller inputs that fail in the same way: parts are left out, first halves, then quarters, down to single items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Body = str | bytes | tuple[object, ...]


def shrink(body: Body, fails: Callable[[Body], bool], smaller: Callable[[Body], Iterator[Body]], tries: int) -> Body:
    """The smallest body found that `fails`, after at most so many questions.

    `smaller`: bodies that an entry knows to be smaller; whatever it gives is tried before parts are left out.
    """
    asked = 0

    def first(candidates: Iterator[Body]) -> Body | None:
        nonlocal asked
        for candidate in candidates:
            if asked >= tries:
                return None
            asked += 1
            if fails(candidate):
                return candidate
        return None

    while (found := first(smaller(body))) is not None or (found := first(without_parts(body))) is not None:
        body = found
    return body


def without_parts(body: Body) -> Iterator[Body]:
    """`body` without one part of it: large parts first."""
    size = len(body)
    while size:
        for begin in range(0, len(body), size):
            yield body[:begin] + body[begin + size :]
        size //= 2


def smaller_json(text: str) -> Iterator[str]:
    """JSON texts with one value less, or with a value in place of the one around it. Nothing for what is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    places = sorted(_places(value), key=lambda place: -place[1])
    for path, _ in places:
        inner = _at(value, path)
        if path:
            yield json.dumps(_with(value, path, drop=True))
        for small in (*(inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()),):
            yield json.dumps(_with(value, path, small))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """(path, size) of every value inside."""
    size = 1
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        for place in _places(inner, (*path, key)):
            size += len(place[0]) == len(path) + 1 and place[1]
            yield place
    yield path, size


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(value: Any, path: tuple[Any, ...], small: Any = None, drop: bool = False) -> Any:
    """A copy of `value` with `small` at `path`, or without what is there."""
    if not path:
        return small
    key, rest = path[0], path[1:]
    copy = dict(value) if isinstance(value, dict) else list(value)
    if drop and not rest:
        del copy[key]
    else:
        copy[key] = _with(value[key], rest, small, drop)
    return copy
