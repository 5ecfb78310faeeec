"""Clauses and shapes: the disjunctive normal form of what a value may be, one level deep.

A *literal* is a number: 2 * n for the node n of the document, 2 * n + 1 for its negation. A *state* is a frozenset of
literals that all hold; EVERYTHING is the empty one, and NOTHING holds the literal that never does. A *clause* is a
conjunction of demands on the values of one JSON type, a *shape* the alternatives of each type.

Intersecting clauses joins their demands; intersecting shapes joins each clause with each. No demand is evaluated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

from tokdfa.json_schema.number_set import NumberSet
from tokdfa.json_schema.string_set import StringSet

State = frozenset[int]

EVERYTHING: State = frozenset()
NEVER = -1
NOTHING: State = frozenset([NEVER])

#: Bits of `Shape.constants`.
NULL, TRUE, FALSE = 1, 2, 4

ANY_NUMBER, ANY_STRING = NumberSet(), StringSet()


def both(first: State, second: State) -> State:
    """What both states demand."""
    if not first:
        return second
    if not second:
        return first
    return NOTHING if NEVER in first or NEVER in second else first | second


class Scope(NamedTuple):
    """The keywords that look at the names of one schema object: which state the value under a name has to be in.

    `properties`: name -> state; `patterns`: (pattern, state); `additional`: for names that neither of these is about.
    """

    properties: dict[str, State]
    patterns: tuple[tuple[str, State], ...]
    additional: State


@lru_cache(4096)
def lone_scope(name: str, state: State) -> Scope:
    """A scope that says something about one name only; equal ones are one object."""
    return Scope({name: state}, (), EVERYTHING)


class Demand(NamedTuple):
    """Some member of an object has a value in `value`, and a name that matches `pattern` (if not None), is in `names`
    (a state), and is not what the properties and patterns of `scope` (if not None) are about. Two of these are trivial.
    """

    pattern: str | None
    names: State
    scope: Scope | None
    value: State


class ObjectClause(NamedTuple):
    """A conjunction of demands on an object. `required`: in the order of the schema; `names`: a state for all names."""

    scopes: tuple[Scope, ...] = ()
    required: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    names: State = EVERYTHING
    demands: tuple[Demand, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for clauses with the very same scopes and equal demands; hashable, as scopes are not."""
        return (tuple(map(id, self.scopes)), *self[1:5], tuple(map(id, self.demands)))

    def intersect(self, other: ObjectClause) -> ObjectClause:
        """Both."""
        if self == ANY_OBJECT:
            return other
        if other == ANY_OBJECT:
            return self
        required = self.required + tuple(name for name in other.required if name not in self.required)
        return ObjectClause(
            self.scopes + other.scopes,
            required,
            max(self.least, other.least),
            _least(self.most, other.most),
            both(self.names, other.names),
            self.demands + tuple(demand for demand in other.demands if demand not in self.demands),
        )


class Count(NamedTuple):
    """So many items of an array, from the index `first` on, are in the state `value`."""

    first: int
    value: State
    least: int
    most: int | None


class ArrayClause(NamedTuple):
    """A conjunction of demands on an array. `prefix`: the states of the first items; `rest`: of all others.

    `unique`: no two items are equal; `repeated`: two are; each 0, or 1 + the number of the node that demands it.
    """

    prefix: tuple[State, ...] = ()
    rest: State = EVERYTHING
    least: int = 0
    most: int | None = None
    counts: tuple[Count, ...] = ()
    unique: int = 0
    repeated: int = 0

    @property
    def identity(self) -> ArrayClause:
        """What tells clauses apart: all of it."""
        return self

    def intersect(self, other: ArrayClause) -> ArrayClause:
        """Both."""
        if self == ANY_ARRAY:
            return other
        if other == ANY_ARRAY:
            return self
        size = max(len(self.prefix), len(other.prefix))
        return ArrayClause(
            tuple(both(self.at(k), other.at(k)) for k in range(size)),
            both(self.rest, other.rest),
            max(self.least, other.least),
            _least(self.most, other.most),
            self.counts + tuple(count for count in other.counts if count not in self.counts),
            self.unique or other.unique,
            self.repeated or other.repeated,
        )

    def at(self, index: int) -> State:
        """The state of an item."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


ClauseT = TypeVar("ClauseT", NumberSet, StringSet, ArrayClause, ObjectClause)
PartsT = TypeVar("PartsT", ArrayClause, ObjectClause)
ANY_OBJECT, ANY_ARRAY = ObjectClause(), ArrayClause()


def _least(first: int | None, second: int | None) -> int | None:
    if first is None:
        return second
    return first if second is None else min(first, second)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value may be: the constants (bits), and the alternative clauses of each other type."""

    constants: int = 0
    numbers: tuple[NumberSet, ...] = ()
    strings: tuple[StringSet, ...] = ()
    arrays: tuple[ArrayClause, ...] = ()
    objects: tuple[ObjectClause, ...] = ()

    @property
    def size(self) -> int:
        """How many clauses there are."""
        return len(self.numbers) + len(self.strings) + len(self.arrays) + len(self.objects)

    @property
    def is_nothing(self) -> bool:
        """Whether there is no alternative at all."""
        return not (self.constants or self.numbers or self.strings or self.arrays or self.objects)


ANYTHING = Shape(NULL | TRUE | FALSE, (ANY_NUMBER,), (ANY_STRING,), (ANY_ARRAY,), (ANY_OBJECT,))
IMPOSSIBLE = Shape()


def unite(shapes: list[Shape]) -> Shape:
    """Any of the shapes."""
    kept = [shape for shape in shapes if not shape.is_nothing]
    if len(kept) == 1:
        return kept[0]
    if not kept:
        return IMPOSSIBLE
    constants = 0
    for shape in kept:
        constants |= shape.constants
    return Shape(
        constants,
        _unite_clauses([shape.numbers for shape in kept], ANY_NUMBER),
        _unite_clauses([shape.strings for shape in kept], ANY_STRING),
        _unite_clauses([shape.arrays for shape in kept], ANY_ARRAY),
        _unite_clauses([shape.objects for shape in kept], ANY_OBJECT),
    )


def _unite_clauses(alternatives: list[tuple[ClauseT, ...]], unrestricted: ClauseT) -> tuple[ClauseT, ...]:
    """The clauses of all alternatives, each once; the unrestricted one alone if it is among them."""
    found: list[ClauseT] = []
    for clauses in alternatives:
        for clause in clauses:
            if clause == unrestricted:
                return (unrestricted,)
            if clause not in found:
                found.append(clause)
    return tuple(found)


def intersect(first: Shape, second: Shape) -> Shape:
    """What both shapes hold. O(product of the clauses of each type)."""
    if first is ANYTHING:
        return second
    if second is ANYTHING:
        return first
    numbers = [a.intersect(b) for a in first.numbers for b in second.numbers]
    strings = [a.intersect(b) for a in first.strings for b in second.strings]
    return Shape(
        first.constants & second.constants,
        tuple(clause for clause in dict.fromkeys(numbers) if not clause.is_empty()),
        tuple(dict.fromkeys(strings)),
        _intersect_clauses(first.arrays, second.arrays),
        _intersect_clauses(first.objects, second.objects),
    )


def _intersect_clauses(first: tuple[PartsT, ...], second: tuple[PartsT, ...]) -> tuple[PartsT, ...]:
    if len(first) == 1 and len(second) == 1:
        return (first[0].intersect(second[0]),)
    found: dict[object, PartsT] = {}
    for a in first:
        for b in second:
            clause = a.intersect(b)
            found.setdefault(clause.identity, clause)
    return tuple(found.values())
