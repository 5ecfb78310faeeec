"""Nondeterministic automata from regular expressions, and the subset construction: the textbook road to a DFA.

This is the baseline that the derivative automata of `tokdfa.regex` are compared with. The automaton of an expression is
its *position automaton* (V. M. Glushkov, "The abstract theory of automata", 1961; R. McNaughton and H. Yamada, 1960): a
state for each *position*, that is each occurrence of a byte set in the expression, and a start state. A position's
successors are the positions that can follow it, so there are up to quadratically many moves.

An expression is a tree of nested tuples:

    ("empty",)                       the empty word
    ("nothing",)                     no word
    ("bytes", bool[256])             one byte of a set
    ("concat", [tree, ...])          one after another
    ("union", [tree, ...])           any of them
    ("repeat", tree, low, high)      low to high times; high None: without bound

Counted repeats are expanded into copies: ``x{2,4}`` is ``x x (x (x)?)?`` and ``x{2,}`` is ``x x+``. The expansion is
measured before it is made, so that ``((x{1000}){1000}){1000}`` is refused at once. Trees may be deeper than Python's
stack and may share subtrees.

Sets of states are Python integers, bit i standing for state i: union is one machine operation for 60 states or so, and
equal sets are equal dictionary keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.byte_classes import classes_of_sets
from tokdfa.automata.explore import STATE_LIMIT, explore
from tokdfa.errors import AutomatonError, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa

    Tree = tuple[Any, ...]

#: How many positions an expanded expression may have unless its caller says otherwise. Sets of states are as long as
#: there are states, so memory grows with the square: some 100 MB here.
POSITION_LIMIT = 5_000


@dataclass(frozen=True, eq=False, repr=False)
class Nfa:
    """A nondeterministic automaton over bytes; sets of states are integers, bit i for state i.

    `moves[s]`: label -> set of next states; `labels`: bool, shape (n, 256), the byte set of each label; `starts`,
    `accepting`: sets of states. Raises AutomatonError if a label or a state does not exist.
    """

    moves: tuple[dict[int, int], ...]
    labels: npt.NDArray[np.bool_]
    starts: int
    accepting: int

    def __post_init__(self) -> None:
        states = len(self.moves)
        sets = [self.starts, self.accepting, *(targets for row in self.moves for targets in row.values())]
        if any(states_set < 0 or states_set.bit_length() > states for states_set in sets):
            raise AutomatonError(f"a set of states is a number from 0 to 2**{states} - 1, for {states} states")
        if any(not 0 <= label < len(self.labels) for row in self.moves for label in row):
            raise AutomatonError(f"a move has a label that is not one of the {len(self.labels)} byte sets")

    @property
    def state_count(self) -> int:
        """The number of states."""
        return len(self.moves)

    @property
    def move_count(self) -> int:
        """The number of moves: triples (state, label, next state)."""
        return sum(targets.bit_count() for row in self.moves for targets in row.values())

    def __repr__(self) -> str:
        return f"Nfa({self.state_count} states, {self.move_count} moves, {len(self.labels)} labels)"


def subset_construction(nfa: Nfa, limit: int = STATE_LIMIT) -> Dfa:
    """The automaton of the sets of states that words lead to; the empty set is dead. Neither trimmed nor minimised.

    Up to 2**states sets: LimitExceeded at set number `limit` + 1. A set of k states costs O(k x classes) unions.
    """
    byte_class, representatives = classes_of_sets(nfa.labels)
    classes_of_label = [np.flatnonzero(row).tolist() for row in nfa.labels[:, representatives]]
    # Per state: (byte class, set of next states), so that a subset's successors are plain unions.
    steps: list[list[tuple[int, int]]] = []
    for row in nfa.moves:
        by_class: dict[int, int] = {}
        for label, targets in row.items():
            for column in classes_of_label[label]:
                by_class[column] = by_class.get(column, 0) | targets
        steps.append(list(by_class.items()))

    def successors(states: int) -> list[int | None]:
        following = [0] * len(representatives)
        for state in _members(states):
            for column, targets in steps[state]:
                following[column] |= targets
        return [states_set or None for states_set in following]

    return explore(nfa.starts or None, successors, lambda states: bool(states & nfa.accepting), byte_class, limit)


def glushkov(tree: Tree, limit: int = POSITION_LIMIT) -> Nfa:
    """The position automaton of an expression: state 0 starts, state i is position i. `limit` bounds the positions.

    LimitExceeded if the expanded expression has more positions, AutomatonError if `tree` is not one.
    """
    _check_size(tree, limit)
    return _Construction().build(tree)


@dataclass(frozen=True)
class _Fragment:
    """What is known of a part: does it contain the empty word, which positions can be first, which last?"""

    nullable: bool
    first: int
    last: int


class _Construction:
    """Builds the position automaton bottom-up, a fragment for each node of the tree. State 0 is the start, state i > 0
    says that position i was read last.
    """

    def __init__(self) -> None:
        self.label_numbers: dict[bytes, int] = {}
        self.label_of: list[int] = [-1]
        self.follow: list[int] = [0]

    def build(self, tree: Tree) -> Nfa:
        """The whole automaton of `tree`."""
        whole = self.fragment(tree)
        self.follow[0] = whole.first
        with_label = [0] * len(self.label_numbers)
        for position, label in enumerate(self.label_of[1:], start=1):
            with_label[label] |= 1 << position
        moves = tuple(
            {label: found for label, members in enumerate(with_label) if (found := followers & members)}
            for followers in self.follow
        )
        labels = np.frombuffer(b"".join(self.label_numbers), dtype=np.bool_).reshape(len(self.label_numbers), 256)
        return Nfa(moves, labels, 1, whole.last | whole.nullable)

    def fragment(self, tree: Tree) -> _Fragment:
        """The fragment of `tree`: a walk in post-order that visits the body of a repeat once a copy."""
        done: list[_Fragment] = []
        tasks: list[tuple[Tree, bool]] = [(tree, False)]
        while tasks:
            node, parts_are_done = tasks.pop()
            parts, copies = _parts(node)
            expanded = parts * copies
            if expanded and not parts_are_done:
                tasks.append((node, True))
                tasks += ((part, False) for part in reversed(expanded))
                continue
            fragments = done[len(done) - len(expanded) :]
            del done[len(done) - len(expanded) :]
            done.append(self.combine(node, fragments))
        return done[0]

    def combine(self, node: Tree, parts: list[_Fragment]) -> _Fragment:
        """The fragment of a node from the fragments of its parts."""
        match node[0]:
            case "bytes":
                return self.one_byte(self.label_numbers.setdefault(node[1].tobytes(), len(self.label_numbers)))
            case "concat" | "empty":
                return self.concat(parts)
            case "repeat":
                return self.repeat(parts, node[2], node[3])
        return self.union(parts)

    def one_byte(self, label: int) -> _Fragment:
        self.label_of.append(label)
        self.follow.append(0)
        position = 1 << (len(self.label_of) - 1)
        return _Fragment(False, position, position)

    def concat(self, parts: list[_Fragment]) -> _Fragment:
        whole = parts[0] if parts else _Fragment(True, 0, 0)
        for part in parts[1:]:
            whole = self.then(whole, part)
        return whole

    def then(self, left: _Fragment, right: _Fragment) -> _Fragment:
        self.link(left.last, right.first)
        return _Fragment(
            left.nullable and right.nullable,
            left.first | right.first if left.nullable else left.first,
            left.last | right.last if right.nullable else right.last,
        )

    def union(self, parts: list[_Fragment]) -> _Fragment:
        first = last = 0
        for part in parts:
            first, last = first | part.first, last | part.last
        return _Fragment(any(part.nullable for part in parts), first, last)

    def repeat(self, copies: list[_Fragment], low: int, high: int | None) -> _Fragment:
        if high is None:
            self.link(copies[-1].last, copies[-1].first)
            return replace(copies[-1], nullable=True) if low == 0 else self.concat(copies)
        needed, rest = copies[:low], copies[low:]
        if rest:
            tail = replace(rest[-1], nullable=True)
            for copy in reversed(rest[:-1]):
                tail = replace(self.then(copy, tail), nullable=True)
            needed.append(tail)
        return self.concat(needed)

    def link(self, before: int, after: int) -> None:
        """Let each position of the set `after` follow each of `before`."""
        for position in _members(before):
            self.follow[position] |= after


def _parts(node: Tree) -> tuple[list[Tree], int]:
    """The subtrees of a node, and how often each is copied. AutomatonError if it is no node."""
    match node:
        case ("empty" | "nothing",):
            return [], 1
        case ("bytes", np.ndarray() as members) if members.dtype == np.bool_ and members.shape == (256,):
            return [], 1
        case ("concat" | "union", [*parts]):
            return parts, 1
        case ("repeat", body, int() as low, None) if low >= 0:
            return [body], max(low, 1)
        case ("repeat", body, int() as low, int() as high) if 0 <= low <= high:
            return [body], high
    raise AutomatonError(
        f"not an expression: {short_repr(node)}; it is one of ('empty',), ('nothing',), ('bytes', bool[256]), "
        "('concat', trees), ('union', trees), ('repeat', tree, low, high or None) with 0 <= low <= high"
    )


def _check_size(tree: Tree, limit: int) -> None:
    """Count the leaves of the expanded tree without expanding it; LimitExceeded if there are more than `limit`.

    Leaves, not byte sets alone: a billion copies of the empty word are too many as well.
    """
    leaves: dict[int, int] = {}  # by identity, so that shared subtrees are counted once
    tasks = [tree]
    while tasks:
        node = tasks[-1]
        parts, copies = _parts(node)
        unknown = [part for part in parts if id(part) not in leaves]
        if unknown:
            tasks += unknown
            continue
        leaves[id(node)] = min(max(1, copies * sum(leaves[id(part)] for part in parts)), limit + 1)
        tasks.pop()
    if leaves[id(tree)] > limit:
        raise LimitExceeded(
            f"the expression has more than {limit} positions once its counted repeats are expanded; "
            f"shorten the repeats or pass a larger limit than limit={limit}",
            limit="positions",
            value=limit,
        )


def _members(states: int) -> Iterator[int]:
    """The members of a set of states, ascending."""
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest
