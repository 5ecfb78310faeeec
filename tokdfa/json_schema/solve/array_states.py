"""Arrays as automata over their items: for bounds on their number, `contains`, and `uniqueItems` of few values.

A state knows how many items there were (as far as anybody cares), how many were counted for each `Count`, and, if items
must differ, which values there were. An item is counted if its value is in the state counted; where there is an upper
bound, an item that is not counted reads a value that is not in it, and otherwise any value.

Items that must differ are followed if their values are few (constants, strings and numbers of an enum, and integers
between bounds), or if there is at most one. Otherwise the set of values that were is no finite state: a matcher
may remember it (`is_remembered`, `tokdfa.json_schema.solve.unique_items`), or the keyword is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.solve.clauses import EVERYTHING, FALSE, NULL, TRUE, State, intersect_states
from tokdfa.json_schema.solve.complement import negations
from tokdfa.json_schema.solve.ends import Ends, TooManyStates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.sets.number_set import Number, NumberSet
    from tokdfa.json_schema.solve.clauses import ArrayClause, Shape
    from tokdfa.json_schema.solve.oracle import Oracle

#: States looked at to see whether one comes to an end, at most; values of items that must differ, at most.
MAX_STATES, MAX_VALUES = 100_000, 64


#: Items of an array that a matcher remembers; such arrays have no more.
MAX_REMEMBERED = 1_000

#: Work (`tokdfa.core.budget`) of a move, in nanoseconds.
MOVE_WORK = 2_000


class Items(NamedTuple):
    """A state: items so far, counted ones for each count, values that were (bits)."""

    length: int
    counted: tuple[int, ...]
    seen: int


class Move(NamedTuple):
    """An item: the state of its value, and what follows."""

    value: State
    following: Items


class ArrayStates:
    """The automaton of one clause. Raises SchemaUnsupported."""

    def __init__(self, oracle: Oracle, clause: ArrayClause) -> None:
        self.oracle, self.clause = oracle, clause
        if clause.repeated:
            self._refuse("that two items are equal cannot be demanded", clause.repeated)
        counted = max((count.first for count in clause.counts), default=0)
        #: Items are counted up to here.
        self.cap = max(len(clause.prefix), counted, clause.least if clause.most is None else clause.most)
        self.start = Items(0, (0,) * len(clause.counts), 0)
        self.values: list[State] = []
        self._ends = Ends[Items](MAX_STATES)
        #: Whether items must differ, and are remembered by whoever matches the text.
        self.is_remembered = False
        self._are_enough = True
        if clause.unique and not self._at_most_one():
            try:
                self.values = self._item_values()
            except SchemaUnsupported:
                if not oracle.remembers:
                    raise
                self._remember()

    def _remember(self) -> None:
        """Leave what items have been to the matcher. Raises SchemaUnsupported.

        Each of the items that there must be has a value left whatever those before it are: it has more values than
        there are items before it.
        """
        clause = self.clause
        if clause.counts:
            self._refuse("items that must differ are not compared beside contains")
        if clause.least > MAX_REMEMBERED:
            self._refuse(f"at most {MAX_REMEMBERED} items that must differ are remembered")
        for place in range(len(clause.prefix) + 1):
            enough = max(min(place + 1, clause.least) if place < len(clause.prefix) else clause.least, 1)
            shape = self.oracle.shape_of(clause.at(place))
            has_parts = bool(shape.arrays or shape.objects)  # of these `unique_items` lets in what there is no end of
            count = enough if has_parts else count_values(self.oracle, shape, enough)
            if count is None or (place < clause.least and clause.prefix and 0 < count < enough):
                self._refuse("it is not known how many values items that must differ can have")
            self._are_enough &= place >= clause.least or count >= enough
        self.is_remembered = True

    def _at_most_one(self) -> bool:
        most = self.clause.most
        return (most is not None and most <= 1) or not self.oracle.has_value(self.clause.at(1))

    def _item_values(self) -> list[State]:
        """A state for each value that some item may have. Raises SchemaUnsupported if they are not few."""
        found: dict[Any, State] = {}
        for place in range(len(self.clause.prefix) + 1):
            shape = self.oracle.shape_of(self.clause.at(place))
            constants = (NULL, None), (TRUE, True), (FALSE, False)
            values: list[Any] = [value for bit, value in constants if shape.constants & bit]
            for numbers in shape.numbers:
                values += self._numbers(numbers)
            for strings in shape.strings:
                if strings.values is None:
                    self._refuse()
                values += sorted(text for text in strings.values or () if strings.holds(text))
            if shape.arrays or shape.objects:
                self._refuse()
            for value in values:
                root = self.oracle.document.root
                key = (type(value).__name__ if value is True or value is False or value is None else "", value)
                node = self.oracle.synthesize(root, f"/(value {key})", {"enum": [value]})
                found[key] = self.oracle.state(node)
        if len(found) > MAX_VALUES:
            self._refuse()
        return list(found.values())

    def _numbers(self, numbers: NumberSet) -> list[Number]:
        """The values of a set of numbers: of one, or of integers between bounds. Raises SchemaUnsupported."""
        low, high = numbers.low, numbers.high
        if low is not None and low == high:
            return [low]
        if low is None or high is None or high - low > MAX_VALUES or not (numbers.integer or numbers.plain):
            self._refuse()
        return [value for value in range(math.ceil(low), math.floor(high) + 1) if numbers.holds(value, True)]

    def _refuse(
        self, reason: str = "items that must differ can have too many values to remember", demanded_by: int = 0
    ) -> NoReturn:
        node = self.oracle.document.nodes[(demanded_by or self.clause.unique) - 1]
        raise SchemaUnsupported(reason, node.pointer, "uniqueItems")

    def can_close(self, state: Items) -> bool:
        """Whether the array may end."""
        clause = self.clause
        if state.length < clause.least:
            return False
        return all(
            count.least <= counted and (count.most is None or counted <= count.most)
            for count, counted in zip(clause.counts, state.counted, strict=True)
        )

    def _all_moves(self, state: Items) -> Iterator[Move]:
        """The moves from a state, dead ends among them."""
        clause, oracle = self.clause, self.oracle
        if clause.most is not None and state.length >= clause.most:
            return
        index = min(state.length + 1, self.cap)
        options: list[tuple[State, tuple[int, ...]]] = [(clause.at(state.length), ())]
        for k, count in enumerate(clause.counts):
            if state.length < count.first:
                options = [(value, (*counted, 0)) for value, counted in options]
                continue
            here = state.counted[k]
            limit = count.least if count.most is None else count.most
            others = [EVERYTHING] if count.most is None else list(negations(count.value))
            as_many = [(intersect_states(v, other), (*counted, here)) for v, counted in options for other in others]
            one_more = [(intersect_states(v, count.value), (*counted, here + 1)) for v, counted in options]
            # those that are needed first: a search for an end need not go through all lengths then
            options = one_more + as_many if here < count.least else as_many + one_more * (here < limit)
            spend(MOVE_WORK * len(options))
        for value, counted in options:
            if not self.values:
                if oracle.has_value(value):
                    yield Move(value, Items(index, counted, 0))
                continue
            spend(MOVE_WORK * len(self.values))
            for k, single in enumerate(self.values):
                claim = intersect_states(value, single)
                if not state.seen >> k & 1 and oracle.has_value(claim):
                    yield Move(claim, Items(index, counted, state.seen | 1 << k))

    def _following(self, state: Items) -> Iterator[Items]:
        return (move.following for move in self._all_moves(state))

    def moves(self, state: Items) -> list[Move]:
        """The moves from which the array can come to an end."""
        return [move for move in self._all_moves(state) if self.alive(move.following)]

    def is_inhabited(self) -> bool:
        """Whether the array can come to an end at all."""
        if self.is_remembered:
            return self._are_enough and (self.clause.most is None or self.clause.most >= self.clause.least)
        clause, has_value = self.clause, self.oracle.has_value
        for count in clause.counts:  # no length has an item that nothing could be: what most complements come to
            places = range(len(clause.prefix) + 1)
            if count.least and not any(has_value(intersect_states(clause.at(k), count.value)) for k in places):
                return False
        return self.alive(self.start)

    def alive(self, state: Items) -> bool:
        """Whether a state can come to an end. Raises SchemaUnsupported."""
        try:
            return self._ends.alive(state, self.can_close, self._following)
        except TooManyStates:
            place = self.oracle.document.root.pointer
            raise SchemaUnsupported("too many ways to count items", place, "minItems") from None


def count_values(oracle: Oracle, shape: Shape, most: int) -> int | None:
    """How many scalars a shape has, `most` for that many or more; None if that is not known."""
    found: float = shape.constants.bit_count()
    texts: set[str] = set()
    for strings in shape.strings:
        listed = strings.listed(most)
        if listed is None:
            return most
        texts |= listed
    counts = [_count_numbers(numbers) for numbers in shape.numbers if not numbers.is_empty()]
    if any(count is None for count in counts):
        return None
    singles = {numbers.low for numbers in shape.numbers if numbers.is_single and not numbers.is_empty()}
    ranges = [count for count in counts if count is not None and count > 1]
    found += len(texts) + max(len(singles), *ranges, 0)
    if found < most and len(ranges) + bool(singles) > 1:
        return None  # they may overlap
    return int(min(found, most))


def _count_numbers(numbers: NumberSet) -> float | None:
    normal = numbers.normal
    assert normal is not None
    if normal.is_single:
        return 1
    if normal.low is None or normal.high is None or not normal.multiples:
        return math.inf
    if normal.not_multiples:
        return None
    return int((Fraction(normal.high) - Fraction(normal.low)) / Fraction(normal.multiples[0])) + 1
