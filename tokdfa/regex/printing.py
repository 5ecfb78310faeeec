"""Expressions in the notation of the theory, to be read: for notebooks and for looking at what a law does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.automata.graph import byte_set_label

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

#: What binds how tightly: unions, intersections, sequences, repeats and complements, all else.
_UNION, _INTERSECTION, _CONCAT, _REPEAT, _ATOM = range(5)


def expression_text(store: ExpressionStore, expression: int) -> str:
    """The expression in one line: ∅ nothing, ε the empty text, ``&`` both, ``~`` not. No pattern to compile."""
    return _write(store, expression, _UNION)


def expression_tree(store: ExpressionStore, expression: int) -> str:
    """The expression with a line for each node, parts indented below the whole."""
    lines: list[str] = []
    waiting = [(expression, 0)]
    while waiting:
        node, depth = waiting.pop()
        kind, parts = store.view(node)[0], _parts(store, node)
        lines.append(
            "  " * depth + (f"{kind}  {_write(store, node, _UNION)}" if parts else _write(store, node, _UNION))
        )
        waiting += [(part, depth + 1) for part in reversed(parts)]
    return "\n".join(lines)


def _parts(store: ExpressionStore, expression: int) -> list[int]:
    kind, *rest = store.view(expression)
    if kind in ("union", "intersection"):
        return list(rest[0])
    return {"concat": rest, "repeat": rest[:1], "complement": rest, "look_ahead": rest[:1]}.get(kind, [])


def _write(store: ExpressionStore, expression: int, around: int) -> str:
    kind, *rest = store.view(expression)
    if kind in ("nothing", "empty"):
        return {"nothing": "∅", "empty": "ε"}[kind]
    if kind == "bytes":
        return byte_set_label(rest[0])
    if kind == "assertion":
        return f"<{rest[0]}>"
    if kind == "look_ahead":
        return f"(?{'!' if rest[1] else '='}{_write(store, rest[0], _UNION)})"
    if kind == "complement":
        written, binds = f"~{_write(store, rest[0], _ATOM)}", _REPEAT
    elif kind == "repeat":
        part, low, high = rest
        count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
        if count is None:
            count = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
        written, binds = f"{_write(store, part, _ATOM)}{count}", _REPEAT
    elif kind == "concat":
        written, binds = "".join(_write(store, part, _CONCAT) for part in rest), _CONCAT
    else:
        binds = _UNION if kind == "union" else _INTERSECTION
        written = ("|" if kind == "union" else "&").join(_write(store, part, binds + 1) for part in rest[0])
    return f"({written})" if binds < around else written
