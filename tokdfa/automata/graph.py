r"""Automata as graphs: networkx for analysis, DOT for other tools, `draw` for figures.

Nodes are state numbers with the attributes `start` and `accepting`; edges have a readable `label`: a byte (``a``), a
set of bytes (``[a-z0-9]``, ``[^"]``), all bytes (``·``), or a token. A space is shown as ``␣``, other bytes that do
not print as escapes (``\n``, ``\xe2``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.drawing import draw
from tokdfa.core.packages import import_library
from tokdfa.errors import AutomatonError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa

__all__ = ["byte_set_label", "draw", "to_dot", "to_networkx", "token_automaton_to_networkx", "token_label"]

_ESCAPES = {9: r"\t", 10: r"\n", 13: r"\r", 32: "␣"}


def to_networkx(dfa: Dfa, *, by_class: bool = False) -> Any:
    """A networkx MultiDiGraph of a byte automaton; the dead state is not a node.

    One edge for each pair of neighbouring states, or with `by_class` one for each byte class between them. Edge
    attributes: `label`, and `bytes` (bytes, ascending).
    """
    networkx = import_library("networkx", "a graph")

    graph = networkx.MultiDiGraph(start=dfa.start)
    for state in range(dfa.state_count):
        graph.add_node(state, start=state == dfa.start, accepting=bool(dfa.accepting[state]))
    for state, row in enumerate(dfa.transitions):
        groups: dict[Any, tuple[int, list[int]]] = {}
        for column, target in enumerate(row.tolist()):
            if target >= 0:
                groups.setdefault((target, column) if by_class else target, (target, []))[1].append(column)
        for target, columns in groups.values():
            members = np.isin(dfa.byte_class, columns)
            spelled = np.flatnonzero(members).astype(np.uint8).tobytes()
            graph.add_edge(state, target, label=byte_set_label(members), bytes=spelled)
    return graph


def token_automaton_to_networkx(
    edges: Iterable[tuple[int, bytes | str | int, int]], start: int = 0, accepting: Iterable[int] = ()
) -> Any:
    """A networkx MultiDiGraph of an automaton over tokens, given as (source, token or its bytes or text, target).

    One edge for each triple, in order, with the attributes `label` and `token` (what was given).
    """
    networkx = import_library("networkx", "a graph")

    graph = networkx.MultiDiGraph(start=start)
    ends = set(accepting)
    triples = list(edges)
    for state in sorted({start, *ends, *(state for source, _, target in triples for state in (source, target))}):
        graph.add_node(state, start=state == start, accepting=state in ends)
    for source, token, target in triples:
        graph.add_edge(source, target, label=token_label(token), token=token)
    return graph


def byte_set_label(members: npt.NDArray[np.bool_]) -> str:
    r"""A set of bytes (bool, shape (256,)) as one would write it in a pattern: ``a``, ``[a-z0-9]``, ``[^"]``, ``·``."""
    if members.shape != (256,) or members.dtype != np.bool_:
        raise AutomatonError(f"a byte set is a boolean array of shape (256,), not {members.dtype} {members.shape}")
    count = int(members.sum())
    if count == 256:
        return "·"
    if count == 1:
        return _byte_text(int(np.argmax(members)))
    listed, excluded = f"[{_ranges(members)}]", f"[^{_ranges(~members)}]"
    return listed if len(listed) <= len(excluded) else excluded


def token_label(token: bytes | str | int) -> str:
    r"""A token for display: its text with ``␣`` for spaces and escapes for what does not print; an id as a number."""
    if isinstance(token, int):
        return str(token)
    if isinstance(token, str):
        return "".join(map(_character_text, token))
    try:
        return token_label(token.decode())
    except UnicodeDecodeError:
        return "".join(map(_byte_text, token))


def to_dot(graph: Any) -> str:
    """The text of a Graphviz file that draws a graph of this module from left to right."""
    lines = ["digraph automaton {", "  rankdir=LR;", "  node [shape=circle];"]
    for node, data in graph.nodes(data=True):
        shape = " [shape=doublecircle]" if data["accepting"] else ""
        lines.append(f"  {node}{shape};")
        if data["start"]:
            lines += ["  start [shape=point];", f"  start -> {node};"]
    for source, target, data in graph.edges(data=True):
        label = data["label"].replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {source} -> {target} [label="{label}"];')
    return "\n".join([*lines, "}", ""])


def _character_text(character: str) -> str:
    if character.isascii():
        return _byte_text(ord(character))
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _byte_text(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 32 < byte < 127 else f"\\x{byte:02x}"


def _ranges(members: npt.NDArray[np.bool_]) -> str:
    """The inside of a bracketed class: letters, digits, the rest. Runs of three or more are written as a range."""
    edges = np.flatnonzero(np.diff(members.astype(np.int8), prepend=0, append=0)).tolist()
    parts = []
    for first, past in sorted(zip(edges[::2], edges[1::2], strict=True), key=_rank):
        if past - first < 3:
            parts += [_class_text(byte) for byte in range(first, past)]
        else:
            parts.append(f"{_class_text(first)}-{_class_text(past - 1)}")
    return "".join(parts)


def _rank(run: tuple[int, int]) -> int:
    """Where a run of bytes stands in a bracketed class; within a rank, runs ascend."""
    members = bytes(range(*run))
    kinds = (members.islower, members.isupper, members.isdigit)
    return next((rank for rank, kind in enumerate(kinds) if members.isalnum() and kind()), len(kinds))


def _class_text(byte: int) -> str:
    return f"\\{chr(byte)}" if byte in b"\\[]^-" else _byte_text(byte)
