"""Many literal texts as one expression.

A literal tree has common prefixes once (a radix tree, built bottom-up); since expressions are interned, equal ends are
one expression, too. So choices between tens of thousands of words stay small: the automaton has a state for each
distinct set of possible ends, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.regex.expression import ExpressionStore


def literal_tree(texts: Sequence[bytes], store: ExpressionStore) -> int:
    """The expression of exactly `texts`, which are distinct and sorted. O(bytes) constructor work."""
    program = Program()
    value = write_literal_tree(texts, program)
    store.run(program)
    return program.expression(value)


def write_literal_tree(texts: Sequence[bytes], program: Program) -> int:
    """The same as a value of `program`.

    The texts are visited in order. An open node is (length of the prefix it stands for, expressions behind it); the
    open nodes are those on the way to the current text, shallowest first.
    """
    nodes: list[tuple[int, list[int]]] = [(0, [])]
    for index, text in enumerate(texts):
        shared = _common_prefix(text, texts[index + 1]) if index + 1 < len(texts) else 0
        if shared > nodes[-1][0]:
            nodes.append((shared, []))
        nodes[-1][1].append(program.literal(text[nodes[-1][0] :]))
        while nodes[-1][0] > shared:
            depth, behind = nodes.pop()
            if nodes[-1][0] < shared:
                nodes.append((shared, []))
            edge = program.literal(text[nodes[-1][0] : depth])
            nodes[-1][1].append(program.concat((edge, program.union(behind))))
    return program.union(nodes[0][1])


def _common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes `one` and `other` begin with alike."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
