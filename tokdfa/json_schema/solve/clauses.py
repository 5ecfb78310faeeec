"""Clauses and shapes: the disjunctive normal form of what a value may be, one level deep.

A *literal* is a number: 2 * n for the node n of the document, 2 * n + 1 for its negation. A *state* is a frozenset of
literals that all hold; EVERYTHING is the empty one, and NOTHING holds the literal that never does. A *clause* is a
conjunction of demands on the values of one JSON type, a *shape* the alternatives of each type.

Intersecting clauses joins their demands, equal ones once; intersecting shapes joins each clause with each, which counts
towards the budget and stops as soon as there are too many. No demand is evaluated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.sets.number_set import Number, NumberSet
from tokdfa.json_schema.sets.string_set import StringSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.json_schema.read.document import Node

State = frozenset[int]

EVERYTHING: State = frozenset()
NEVER = -1
NOTHING: State = frozenset([NEVER])

#: Work (`tokdfa.core.budget`) of making one clause and of looking up one name, in nanoseconds.
CLAUSE_WORK, LOOKUP_WORK = 3_000, 100
#: So many lookups are not worth counting.
FEW = 16
#: Memory of a clause, and work of making the shape of a literal or state beside that of its clauses.
CLAUSE_BYTES, SHAPE_WORK = 500, 5_000

#: Clauses of one shape at most.
MAX_CLAUSES = 3_000

#: Clauses of objects that are multiplied out at most; more are chosen from while an object is read.
MULTIPLIED = 16

#: Bits of `Shape.constants`.
NULL, TRUE, FALSE = 1, 2, 4

ANY_NUMBER, ANY_STRING = NumberSet(), StringSet()


def intersect_states(first: State, second: State) -> State:
    """What both states demand."""
    if not first:
        return second
    if not second:
        return first
    return NOTHING if NEVER in first or NEVER in second else first | second


class Scope:
    """The keywords that look at the names of one schema object: which state the value under a name has to be in.

    `properties`: name -> state; `patterns`: (pattern, state); `additional`: for names that neither of these is about.
    Not to be changed: scopes are equal, and hash, by content. The hash is computed once, in O(properties).
    """

    __slots__ = ("_hash", "additional", "patterns", "properties")

    def __init__(
        self, properties: dict[str, State], patterns: tuple[tuple[str, State], ...], additional: State
    ) -> None:
        self.properties, self.patterns, self.additional = properties, patterns, additional
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            spend(LOOKUP_WORK * len(self.properties))
            self._hash = hash((frozenset(self.properties.items()), self.patterns, self.additional))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Scope) or hash(self) != hash(other):
            return False
        return (self.properties, self.patterns, self.additional) == (other.properties, other.patterns, other.additional)

    def __repr__(self) -> str:
        return f"Scope({self.properties!r}, {self.patterns!r}, {self.additional!r})"


def lone_scope(name: str, state: State) -> Scope:
    """A scope that says something about one name only."""
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
    """A conjunction of demands on an object. `required`: in the order of the schema; `names`: a state for all names.

    `choices`: of each of these, one clause holds; all of them are simple (`is_simple`). `exactly`: lists of some of the
    choices, each with how many of its alternatives, the first ones, say that a branch holds, while the others say that
    it does not; of each list, one branch holds.
    """

    scopes: tuple[Scope, ...] = ()
    required: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    names: State = EVERYTHING
    demands: tuple[Demand, ...] = ()
    choices: tuple[tuple[ObjectClause, ...], ...] = ()
    exactly: tuple[tuple[tuple[tuple[ObjectClause, ...], int], ...], ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether it says which names are there, and what their values are, and nothing else; or `one_outside`."""
        if self.demands:
            return self.one_outside is not None
        return not (self.names or self.choices or self.least or self.most is not None)

    @property
    def one_outside(self) -> Scope | None:
        """The scope of which it says that a member has a name that the properties are not about, if that is all."""
        if len(self.demands) != 1 or self != ObjectClause(demands=self.demands):
            return None
        pattern, names, scope, value = self.demands[0]
        return None if pattern is not None or names or value or scope is None or scope.patterns else scope

    def intersect(self, other: ObjectClause) -> ObjectClause:
        """Both."""
        if self == ANY_OBJECT:
            return other
        if other == ANY_OBJECT:
            return self
        size = len(self.scopes) + len(other.scopes) + len(self.required) + len(other.required)
        size += len(self.choices) + len(other.choices)
        if size > FEW:
            spend(LOOKUP_WORK * size)
        return ObjectClause(
            _join(self.scopes, other.scopes),
            _join(self.required, other.required),
            max(self.least, other.least),
            _least(self.most, other.most),
            intersect_states(self.names, other.names),
            _join(self.demands, other.demands),
            _join(self.choices, other.choices),
            _join(self.exactly, other.exactly),
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

    def intersect(self, other: ArrayClause) -> ArrayClause:
        """Both."""
        if self == ANY_ARRAY:
            return other
        if other == ANY_ARRAY:
            return self
        size = max(len(self.prefix), len(other.prefix))
        spend(LOOKUP_WORK * (2 * size + len(self.counts) + len(other.counts)))
        return ArrayClause(
            tuple(intersect_states(self.at(k), other.at(k)) for k in range(size)),
            intersect_states(self.rest, other.rest),
            max(self.least, other.least),
            _least(self.most, other.most),
            _join(self.counts, other.counts),
            self.unique or other.unique,
            self.repeated or other.repeated,
        )

    def at(self, index: int) -> State:
        """The state of an item."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


ClauseT = TypeVar("ClauseT", NumberSet, StringSet, ArrayClause, ObjectClause)
PartT = TypeVar("PartT")
ANY_OBJECT, ANY_ARRAY = ObjectClause(), ArrayClause()


def _join(first: tuple[PartT, ...], second: tuple[PartT, ...]) -> tuple[PartT, ...]:
    """The parts of both, each once, in the order in which they come."""
    if not second or first is second:
        return first
    if not first:
        return second
    if len(second) == 1:  # most are
        return first if second[0] in first else first + second
    return tuple(dict.fromkeys(first + second))


def _least(first: int | None, second: int | None) -> int | None:
    if first is None:
        return second
    return first if second is None else min(first, second)


class Shape(NamedTuple):
    """What a value may be: the constants (bits), and the alternative clauses of each other type."""

    constants: int = 0
    numbers: tuple[NumberSet, ...] = ()
    strings: tuple[StringSet, ...] = ()
    arrays: tuple[ArrayClause, ...] = ()
    objects: tuple[ObjectClause, ...] = ()

    @property
    def size(self) -> int:
        """How many clauses there are; numbers that are listed one by one are one clause."""
        ranges = len(self.numbers)
        if ranges > FEW:
            ranges = 1 + sum(not numbers.is_single for numbers in self.numbers)
        return ranges + len(self.strings) + len(self.arrays) + len(self.objects)

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
    found: dict[ClauseT, None] = {}
    for clauses in alternatives:
        if len(clauses) > FEW:
            spend(CLAUSE_WORK * len(clauses))
        found.update(dict.fromkeys(clauses))
    return (unrestricted,) if unrestricted in found else tuple(found)


class TooManyClauses(Exception):
    """An intersection has more clauses than were allowed."""


def intersect(
    first: Shape, second: Shape, most: int | None = None, is_void: Callable[[ObjectClause], bool] | None = None
) -> Shape:
    """What both shapes hold. O(product of the clauses of each type); many simple clauses of objects become choices.

    Clauses that contradict themselves at a glance, or of objects are `is_void`, are left out. Raises TooManyClauses as
    soon as more than `most` are left of one type, or are of all types together.
    """
    if first is ANYTHING or second is ANYTHING:
        joined = second if first is ANYTHING else first
    else:
        spend(CLAUSE_WORK)
        joined = Shape(
            first.constants & second.constants,
            _product_of_numbers(first.numbers, second.numbers, most) if first.numbers and second.numbers else (),
            _product(first.strings, second.strings, most, None) if first.strings and second.strings else (),
            _product(first.arrays, second.arrays, most, None) if first.arrays and second.arrays else (),
            _product_of_objects(first.objects, second.objects, most, is_void)
            if first.objects and second.objects
            else (),
        )
    if most is not None and joined.size > most:
        raise TooManyClauses
    return joined


def check_size(shape: Shape, node: Node, keyword: str) -> Shape:
    """Refuse a shape of too many clauses."""
    if shape.size > MAX_CLAUSES:
        raise too_many_clauses(node, keyword)
    return shape


def too_many_clauses(node: Node, keyword: str) -> SchemaUnsupported:
    """The error for a keyword that brings more than MAX_CLAUSES."""
    message = f"more than {MAX_CLAUSES} alternatives have to be told apart"
    return SchemaUnsupported(message, node.pointer, keyword)


def _product(
    first: tuple[ClauseT, ...],
    second: tuple[ClauseT, ...],
    most: int | None,
    is_void: Callable[[ClauseT], bool] | None,
) -> tuple[ClauseT, ...]:
    """Each clause of `first` with each of `second`, each result once."""
    if len(first) == len(second) == 1 and is_void is not NumberSet.is_empty:  # most are, and what is void is seen later
        return (first[0].intersect(second[0]),)
    found: dict[ClauseT, None] = {}
    for clause in first:
        spend(CLAUSE_WORK * len(second))
        joined = map(clause.intersect, second)
        found.update(dict.fromkeys(joined if is_void is None else (each for each in joined if not is_void(each))))
        if most is not None and len(found) > most:
            raise TooManyClauses
    return tuple(found)


def _product_of_numbers(
    first: tuple[NumberSet, ...], second: tuple[NumberSet, ...], most: int | None
) -> tuple[NumberSet, ...]:
    """`_product`, of numbers that are listed one by one on both sides in linear time."""
    if len(first) * len(second) <= FEW:
        return _product(first, second, most, NumberSet.is_empty)
    by_value: dict[Number | None, list[NumberSet]] = {None: []}
    for numbers in second:
        by_value.setdefault(numbers.low if numbers.is_single else None, []).append(numbers)
    found: dict[NumberSet, None] = {}
    for numbers in first:
        others = (*by_value.get(numbers.low, ()), *by_value[None]) if numbers.is_single else second
        spend(CLAUSE_WORK * len(others))
        found.update(dict.fromkeys(one for other in others if not (one := numbers.intersect(other)).is_empty()))
        if most is not None and not numbers.is_single and Shape(numbers=tuple(found)).size > most:
            raise TooManyClauses
    return tuple(found)


def _product_of_objects(
    first: tuple[ObjectClause, ...],
    second: tuple[ObjectClause, ...],
    most: int | None,
    is_void: Callable[[ObjectClause], bool] | None,
) -> tuple[ObjectClause, ...]:
    """`_product` of few clauses; of more, what can be is left to be chosen while an object is read."""
    if len(first) > 1 or len(second) > 1:
        is_open = any(clause.choices for clause in first) or any(clause.choices for clause in second)
        if is_open or len(first) * len(second) > MULTIPLIED:
            first, second = _as_choice(first), _as_choice(second)
    if is_void is None:
        return _product(first, second, most, _contradicts)
    return _product(first, second, most, lambda clause: _contradicts(clause) or is_void(clause))


def _as_choice(clauses: tuple[ObjectClause, ...]) -> tuple[ObjectClause, ...]:
    """One clause with a choice, if they can be one."""
    return (ObjectClause(choices=(clauses,)),) if is_choice(clauses) else clauses


def is_choice(clauses: tuple[ObjectClause, ...]) -> bool:
    """Whether clauses can be chosen from while an object is read: all are simple, and more than one."""
    return len(clauses) > 1 and all(clause.is_simple for clause in clauses)


def exactly_one(branches: list[tuple[tuple[ObjectClause, ...], tuple[ObjectClause, ...]]]) -> ObjectClause:
    """The objects of one of some branches and no other: of each, the simple clauses of its objects, and of others."""
    counted = tuple([((*inside, *outside), len(inside)) for inside, outside in branches])
    return ObjectClause(choices=tuple(dict.fromkeys(choice for choice, _ in counted)), exactly=(counted,))


def _contradicts(clause: ObjectClause) -> bool:
    """Whether a name is required that may not be there, seen at a glance."""
    if clause is ANY_OBJECT:
        return False
    if clause.most is not None and (clause.most < clause.least or clause.most < len(clause.required)):
        return True
    if len(clause.required) * len(clause.scopes) > FEW:
        spend(LOOKUP_WORK * len(clause.required) * len(clause.scopes))
    for name in clause.required:
        for scope in clause.scopes:
            state = scope.properties.get(name)
            if state is NOTHING or (state is None and scope.additional is NOTHING and not scope.patterns):
                return True
    return False
