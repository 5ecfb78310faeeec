"""Nondeterministic automata from regular expressions, and the subset construction: the textbook road to a DFA.

This is the baseline that the derivative automata of `tokdfa.regex` are compared with. Two constructions are given.

- *Thompson* (K. Thompson, "Regular expression search algorithm", CACM 11, 1968): a few states and *empty moves* (moves
  that read nothing) for each operator. Linear size.
- *Glushkov* (V. M. Glushkov, "The abstract theory of automata", 1961; R. McNaughton and H. Yamada, 1960): a state for
  each *position*, that is each occurrence of a byte set in the expression, and a start state; no empty moves. A
  position's successors are the positions that can follow it, so up to quadratically many moves.

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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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

FragmentT = TypeVar("FragmentT")


@dataclass(frozen=True, eq=False, repr=False)
class Nfa:
    """A nondeterministic automaton over bytes; sets of states are integers, bit i for state i.

    `moves[s]`: label -> set of next states; `empty_moves[s]`: the states reached by reading nothing; `labels`: bool,
    shape (n, 256), the byte set of each label; `starts`, `accepting`: sets of states. Raises AutomatonError if a label
    or a state does not exist.
    """

    moves: tuple[dict[int, int], ...]
    empty_moves: tuple[int, ...]
    labels: npt.NDArray[np.bool_]
    starts: int
    accepting: int

    def __post_init__(self) -> None:
        states = len(self.moves)
        if len(self.empty_moves) != states:
            raise AutomatonError(f"there are {states} states, but empty_moves has {len(self.empty_moves)} entries")
        sets = [self.starts, self.accepting, *self.empty_moves]
        sets += (targets for row in self.moves for targets in row.values())
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
        """The number of moves, empty ones included: triples (state, label, next state)."""
        labelled = sum(targets.bit_count() for row in self.moves for targets in row.values())
        return labelled + sum(targets.bit_count() for targets in self.empty_moves)

    def closures(self) -> list[int]:
        """The set of states that empty moves lead to from each state, itself included.

        Unions along the empty moves, targets first, until nothing changes: one round if there are no cycles, and about
        one more for each loop inside a loop.
        """
        order = self._targets_first()
        closed = [1 << state for state in range(self.state_count)]
        changed = True
        while changed:
            changed = False
            for state in order:
                reached = closed[state] | _union_of(closed, self.empty_moves[state])
                changed |= reached != closed[state]
                closed[state] = reached
        return closed

    def _targets_first(self) -> list[int]:
        """The states with empty moves in the post-order of a depth-first search along them."""
        order, seen = [], [False] * self.state_count
        for root in range(self.state_count):
            path = [] if seen[root] or not self.empty_moves[root] else [(root, _members(self.empty_moves[root]))]
            while path:
                state, untried = path[-1]
                seen[state] = True
                target = next((target for target in untried if not seen[target]), None)
                if target is None:
                    order.append(state)
                    path.pop()
                elif self.empty_moves[target]:
                    path.append((target, _members(self.empty_moves[target])))
        return order

    def __repr__(self) -> str:
        return f"Nfa({self.state_count} states, {self.move_count} moves, {len(self.labels)} labels)"


def subset_construction(nfa: Nfa, limit: int = STATE_LIMIT) -> Dfa:
    """The automaton of the sets of states that words lead to; the empty set is dead. Neither trimmed nor minimised.

    Up to 2**states sets: LimitExceeded at set number `limit` + 1. A set of k states costs O(k x classes) unions.
    """
    byte_class, representatives = classes_of_sets(nfa.labels)
    classes_of_label = [np.flatnonzero(row).tolist() for row in nfa.labels[:, representatives]]
    closures = nfa.closures()
    # Per state: (byte class, closed set of next states), so that a subset's successors are plain unions.
    steps: list[list[tuple[int, int]]] = []
    for row in nfa.moves:
        by_class: dict[int, int] = {}
        for label, targets in row.items():
            closed = _union_of(closures, targets)
            for column in classes_of_label[label]:
                by_class[column] = by_class.get(column, 0) | closed
        steps.append(list(by_class.items()))

    def successors(states: int) -> list[int | None]:
        following = [0] * len(representatives)
        for state in _members(states):
            for column, closed in steps[state]:
                following[column] |= closed
        return [states_set or None for states_set in following]

    start = _union_of(closures, nfa.starts)
    return explore(start or None, successors, lambda states: bool(states & nfa.accepting), byte_class, limit)


def glushkov(tree: Tree, limit: int = POSITION_LIMIT) -> Nfa:
    """The position automaton of an expression: state 0 starts, state i is position i. `limit` bounds the positions.

    LimitExceeded if the expanded expression has more positions, AutomatonError if `tree` is not one.
    """
    return _Glushkov().build(tree, limit)


def thompson(tree: Tree, limit: int = POSITION_LIMIT) -> Nfa:
    """Thompson's automaton of an expression, with empty moves. `limit` and errors are those of `glushkov`."""
    return _Thompson().build(tree, limit)


class _Construction(ABC, Generic[FragmentT]):
    """Builds an automaton bottom-up, a fragment for each node of the tree; subclasses say what a fragment is."""

    def __init__(self) -> None:
        self.moves: list[dict[int, int]] = []
        self.empty_moves: list[int] = []
        self.label_numbers: dict[bytes, int] = {}

    def build(self, tree: Tree, limit: int) -> Nfa:
        """The whole automaton of `tree`."""
        _check_size(tree, limit)
        starts, accepting = self.finish(self.fragment(tree))
        labels = np.frombuffer(b"".join(self.label_numbers), dtype=np.bool_).reshape(len(self.label_numbers), 256)
        return Nfa(tuple(self.moves), tuple(self.empty_moves), labels, starts, accepting)

    def fragment(self, tree: Tree) -> FragmentT:
        """The fragment of `tree`: a walk in post-order that visits the body of a repeat once a copy."""
        done: list[FragmentT] = []
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

    def combine(self, node: Tree, parts: list[FragmentT]) -> FragmentT:
        """The fragment of a node from the fragments of its parts."""
        match node[0]:
            case "bytes":
                return self.one_byte(self.label_numbers.setdefault(node[1].tobytes(), len(self.label_numbers)))
            case "concat":
                return self.concat(parts)
            case "union":
                return self.union(parts)
            case "repeat":
                return self.repeat(parts, node[2], node[3])
            case "empty":
                return self.concat([])
        return self.union([])

    def concat(self, parts: list[FragmentT]) -> FragmentT:
        whole = parts[0] if parts else self.empty()
        for part in parts[1:]:
            whole = self.then(whole, part)
        return whole

    def repeat(self, copies: list[FragmentT], low: int, high: int | None) -> FragmentT:
        if high is None:
            copies[-1] = self.plus(copies[-1])
            return self.optional(copies[-1]) if low == 0 else self.concat(copies)
        needed, rest = copies[:low], copies[low:]
        if rest:
            tail = self.optional(rest[-1])
            for copy in reversed(rest[:-1]):
                tail = self.optional(self.then(copy, tail))
            needed.append(tail)
        return self.concat(needed)

    def new_state(self) -> int:
        self.moves.append({})
        self.empty_moves.append(0)
        return len(self.moves) - 1

    @abstractmethod
    def finish(self, whole: FragmentT) -> tuple[int, int]:
        """The sets of starting and of accepting states of the whole automaton."""

    @abstractmethod
    def empty(self) -> FragmentT:
        """The empty word."""

    @abstractmethod
    def one_byte(self, label: int) -> FragmentT:
        """One byte of a labelled set."""

    @abstractmethod
    def then(self, left: FragmentT, right: FragmentT) -> FragmentT:
        """One after the other."""

    @abstractmethod
    def union(self, parts: list[FragmentT]) -> FragmentT:
        """Any of the parts; no word if there are none."""

    @abstractmethod
    def optional(self, part: FragmentT) -> FragmentT:
        """The part or the empty word."""

    @abstractmethod
    def plus(self, part: FragmentT) -> FragmentT:
        """The part once or more often."""


@dataclass(frozen=True)
class _Positions:
    """Glushkov's view of a part: does it contain the empty word, which positions can be first, which last?"""

    nullable: bool
    first: int
    last: int


class _Glushkov(_Construction[_Positions]):
    """State 0 is the start, state i > 0 says that position i was read last."""

    def __init__(self) -> None:
        super().__init__()
        self.label_of: list[int] = [-1]
        self.follow: list[int] = [0]

    def finish(self, whole: _Positions) -> tuple[int, int]:
        self.follow[0] = whole.first
        with_label = [0] * len(self.label_numbers)
        for position, label in enumerate(self.label_of[1:], start=1):
            with_label[label] |= 1 << position
        for followers in self.follow:
            row = self.moves[self.new_state()]
            row.update({label: found for label, members in enumerate(with_label) if (found := followers & members)})
        return 1, whole.last | whole.nullable

    def empty(self) -> _Positions:
        return _Positions(True, 0, 0)

    def one_byte(self, label: int) -> _Positions:
        self.label_of.append(label)
        self.follow.append(0)
        position = 1 << (len(self.label_of) - 1)
        return _Positions(False, position, position)

    def then(self, left: _Positions, right: _Positions) -> _Positions:
        self._link(left.last, right.first)
        return _Positions(
            left.nullable and right.nullable,
            left.first | right.first if left.nullable else left.first,
            left.last | right.last if right.nullable else right.last,
        )

    def union(self, parts: list[_Positions]) -> _Positions:
        first = last = 0
        for part in parts:
            first, last = first | part.first, last | part.last
        return _Positions(any(part.nullable for part in parts), first, last)

    def optional(self, part: _Positions) -> _Positions:
        return _Positions(True, part.first, part.last)

    def plus(self, part: _Positions) -> _Positions:
        self._link(part.last, part.first)
        return part

    def _link(self, before: int, after: int) -> None:
        for position in _members(before):
            self.follow[position] |= after


@dataclass(frozen=True)
class _Ends:
    """Thompson's view of a part: it is entered by `start`, which nothing in it leads to, and left by `end`."""

    start: int
    end: int


class _Thompson(_Construction[_Ends]):
    """No state has both a labelled and an empty move, and none more than one labelled move."""

    def finish(self, whole: _Ends) -> tuple[int, int]:
        return 1 << whole.start, 1 << whole.end

    def empty(self) -> _Ends:
        whole = self.union([])
        self._add_empty(whole.start, whole.end)
        return whole

    def one_byte(self, label: int) -> _Ends:
        part = self._new_ends()
        self.moves[part.start][label] = 1 << part.end
        return part

    def then(self, left: _Ends, right: _Ends) -> _Ends:
        self._add_empty(left.end, right.start)
        return _Ends(left.start, right.end)

    def union(self, parts: list[_Ends]) -> _Ends:
        whole = self._new_ends()
        for part in parts:
            self._add_empty(whole.start, part.start)
            self._add_empty(part.end, whole.end)
        return whole

    def optional(self, part: _Ends) -> _Ends:
        whole = self.union([part])
        self._add_empty(whole.start, whole.end)
        return whole

    def plus(self, part: _Ends) -> _Ends:
        whole = self.union([part])
        self._add_empty(part.end, part.start)
        return whole

    def _new_ends(self) -> _Ends:
        return _Ends(self.new_state(), self.new_state())

    def _add_empty(self, source: int, target: int) -> None:
        self.empty_moves[source] |= 1 << target


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


def _union_of(sets: list[int], members: int) -> int:
    """The union of ``sets[i]`` for i in the set `members`."""
    union = 0
    for member in _members(members):
        union |= sets[member]
    return union


def _members(states: int) -> Iterator[int]:
    """The members of a set of states, ascending."""
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest
