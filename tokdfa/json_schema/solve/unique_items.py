"""Where arrays stand whose items must differ and can have too many values for states: found in advance, along paths.

What such an array has had is no finite state, so the matcher remembers it (`tokdfa.backends.unique_items`). It follows
names and indices from the root, not the program, and so has to know by the path alone whether an array is one of them.
A *location* is the set of states that the value at some path can be in, whatever branches hold; one that has both such
arrays and others, or such arrays of different items, is refused, as is a schema whose items are counted, too.

Items that are arrays or objects are compared when they close. One that may not close must be able to go on, however
long it is: objects by a member of another name, of which there is no end, arrays by an item. A closed object, in the
order of the schema, can if the last member that it may have can be any string, or an array or object that always goes
on: it is compared when this value ends. Other closed objects, of scalars and of such objects, are a regular language:
they are compared byte by byte, as strings are, with the texts of the objects that were. What is none of these is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.sets.blanks import limit_blanks
from tokdfa.json_schema.sets.endless import has_loop, is_endless
from tokdfa.json_schema.sets.number_texts import number_texts
from tokdfa.json_schema.sets.string_set import string_automaton
from tokdfa.json_schema.solve.array_states import MAX_REMEMBERED, ArrayStates
from tokdfa.json_schema.solve.clauses import ANY_NUMBER
from tokdfa.json_schema.solve.distinct import PLACE_WORK, Parts
from tokdfa.json_schema.solve.plain_types import INTEGERS, PLAIN_INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import JsonSchema
    from tokdfa.json_schema.sets.number_set import NumberSet
    from tokdfa.json_schema.sets.string_set import StringSet
    from tokdfa.json_schema.solve.clauses import ArrayClause, Shape, State
    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder
    from tokdfa.program.builder import Program
    from tokdfa.program.program import Escapes
    from tokdfa.regex.lazy_dfa import LazyDfa

#: Memory (`tokdfa.core.budget`) of a location.
LOCATION_BYTES = 1_000
#: Objects inside each other that are compared byte by byte, at most.
MAX_FLAT_DEPTH = 8


@dataclass(frozen=True)
class Items:
    """The texts of the items of an array: sets of strings and of numbers that are not empty, and the constants.

    `containers`: whether items may be arrays or objects, too. `last`: of closed objects, the names of the last
    members, whose values have to make the difference. `natural`, `digits`: how numbers are written. `objects`: the
    program of objects that are compared byte by byte; None if those that there are go on, whatever was.
    """

    string_sets: tuple[StringSet, ...]
    number_sets: tuple[NumberSet, ...]
    constants: tuple[bytes, ...]
    escapes: Escapes
    natural: bool
    digits: int
    containers: bool
    last: frozenset[str]
    objects: Program | None = None

    @cached_property
    def strings(self) -> tuple[Dfa | LazyDfa, ...]:
        """The automata of the strings."""
        return tuple(string_automaton(strings, self.escapes) for strings in self.string_sets)

    @cached_property
    def numbers(self) -> Dfa | None:
        """The automaton of the numbers, without exponents."""
        return number_texts(self.number_sets, self.natural, self.digits, -1) if self.number_sets else None

    @cached_property
    def endless(self) -> bool:
        """Whether there are strings without end among them."""
        return any(map(has_loop, self.strings))

    @cached_property
    def is_boundless(self) -> bool:
        """Whether there always is another scalar, however many of those that are remembered there were."""
        return self.endless or any(map(self._has_many, self.number_sets))

    def _has_many(self, numbers: NumberSet) -> bool:
        """Whether a set has more numbers than are remembered, which is seen at once."""
        if not self.digits:  # what divides them is periodic
            return numbers.low is None or numbers.high is None
        is_divided = numbers.multiples or numbers.not_multiples
        longest = 10 ** (self.digits - 1)  # the least integer of so many digits, of which there are nine times as many
        is_open = numbers.high is None and (numbers.low is None or numbers.low < longest)
        return longest > MAX_REMEMBERED and is_open and numbers.integer is not False and not is_divided

    def takes_digits(self, is_negative: bool) -> bool:
        """Whether a number without a point may go on with any digit that a strategy allows, though numbers have no
        exponents here.
        """
        if self.natural and all(numbers.integer or numbers.plain for numbers in self.number_sets):
            return True  # they have none anywhere
        return any(
            numbers in (ANY_NUMBER, INTEGERS, PLAIN_INTEGERS)
            or (numbers.high is None and not (is_negative or self.digits or numbers.multiples or numbers.not_multiples))
            for numbers in self.number_sets
        )

    @property
    def may_wait(self) -> bool:
        """Whether no limit refuses the automata, which then are made when a text has such items."""
        sure = all(strings.is_easy or strings.simple or strings.values is not None for strings in self.string_sets)
        return sure and not any(numbers.multiples or numbers.not_multiples for numbers in self.number_sets)


@dataclass
class Location:
    """`members`: name -> location; `others`: of other names; `first`, `rest`: of items; `unique`: its items, if they
    must differ, the first ones each by itself. Location 0 is where nothing can be.
    """

    members: dict[str, int] = field(default_factory=dict)
    others: int = 0
    first: list[int] = field(default_factory=list)
    rest: int = 0
    unique: tuple[Items, ...] = ()

    def items(self, index: int) -> Items:
        """The item number `index`, from 0 on, of those that must differ."""
        return self.unique[min(index, len(self.unique) - 1)]


def find_locations(
    shape_builder: ShapeBuilder, root: State, constraint: JsonSchema, write: Callable[[State], Program]
) -> list[Location] | None:
    """The locations of a schema, from 1 on, which is its root; None if there is nothing to remember. O(locations).

    `write`: the program of the objects of a state. Raises SchemaUnsupported where it cannot be known which items must
    differ.
    """
    finder = _Finder(shape_builder, constraint, write)
    finder.find(root)
    return finder.locations if any(location.unique for location in finder.locations) else None


class _Finder:
    def __init__(self, shape_builder: ShapeBuilder, constraint: JsonSchema, write: Callable[[State], Program]) -> None:
        self._builder, self._constraint, self._parts = shape_builder, constraint, Parts(shape_builder)
        self._write = write
        self._numbers: dict[frozenset[State], int] = {}
        self._waiting: list[frozenset[State]] = []
        self.locations: list[Location] = [Location()]

    def find(self, root: State) -> None:
        """Make all locations."""
        self._number(frozenset([root]))
        done = 0
        while done < len(self._waiting):
            states = self._waiting[done]
            done += 1
            self._read(self.locations[self._numbers[states]], states)

    def _number(self, states: frozenset[State]) -> int:
        if not states:
            return 0
        found = self._numbers.get(states)
        if found is None:
            spend(PLACE_WORK, LOCATION_BYTES)
            found = self._numbers[states] = len(self.locations)
            self.locations.append(Location())
            self._waiting.append(states)
        return found

    def _read(self, location: Location, states: frozenset[State]) -> None:
        """What is at a location, and where it leads."""
        objects: list[tuple[dict[str | None, set[State]], tuple[str, ...]]] = []
        arrays: list[ArrayClause] = []
        for shape in map(self._builder.shape_of, states):
            arrays += [array for array in shape.arrays if self._builder.array_has_value(array)]
            for clause, plan in self._parts.plans(shape):
                parts: dict[str | None, set[State]] = {None: set()}
                for part in self._parts.members(clause, plan):
                    parts.setdefault(part.name, set()).add(part.value)
                objects.append((parts, plan.names + plan.excluded))
        names: dict[str, set[State]] = {name: set() for parts, _ in objects for name in parts if name is not None}
        for parts, declared in objects:
            for name, found in names.items():
                found |= parts.get(name, set()) if name in declared else parts[None]
        location.members = {name: self._number(frozenset(found)) for name, found in names.items()}
        location.others = self._number(frozenset().union(*(parts[None] for parts, _ in objects)))
        tracked = [array for array in arrays if array.unique and ArrayStates(self._builder, array).is_remembered]
        if tracked:
            node = self._builder.document.nodes[tracked[0].unique - 1]
            if len(tracked) < len(arrays) or len({(array.rest, array.prefix) for array in arrays}) > 1:
                reason = (
                    "whether the items of an array must differ, or what they are, depends on what else is in the text"
                )
                raise SchemaUnsupported(reason, node.pointer, "uniqueItems")
            values = [*tracked[0].prefix, tracked[0].rest]
            for value in values:
                shape = self._builder.shape_of(value)
                last, program = self._last_names(shape), None
                if not last and not self._goes_on(shape):
                    if not self._is_flat(shape) or not (tracked[0].least <= 1 or self._is_endless(shape)):
                        reason = (
                            "items that must differ may be arrays and objects only if these can always have another"
                            " part, or are closed objects without arrays, as many as there must be"
                        )
                        raise SchemaUnsupported(reason, node.pointer, "uniqueItems")
                    program = self._write(value)
                location.unique += (replace(self._items(shape, last), objects=program),)
            *location.first, location.rest = [self._number(frozenset([value])) for value in values]
            return
        length = max((len(array.prefix) for array in arrays), default=0)
        items: list[set[State]] = [set() for _ in range(length + 1)]
        for array in arrays:
            for part in self._parts.items(array):
                assert part.item is not None
                is_rest = part.item == len(array.prefix)
                for k in range(part.item, length + 1 if is_rest else part.item + 1):
                    items[k].add(part.value)
        *location.first, location.rest = [self._number(frozenset(found)) for found in items]

    def _goes_on(self, shape: Shape) -> bool:
        """Whether arrays and objects of a shape can have one more part wherever they may close, without an end."""
        builder = self._builder
        for clause, plan in self._parts.plans(shape):
            others = [kind.names for kind in plan.kinds if builder.has_value(kind.value)]
            if clause.choices or clause.demands or plan.most is not None or not any(map(is_endless, others)):
                return False
        for array in shape.arrays:
            if builder.array_has_value(array):
                if array.counts or array.unique or array.most is not None:
                    return False
                if not all(builder.has_value(array.at(k)) for k in range(len(array.prefix) + 1)):
                    return False
        return True

    def _is_flat(self, shape: Shape, depth: int = 0) -> bool:
        """Whether there are no arrays, and all objects are closed, of scalars and of such objects."""
        if any(map(self._builder.array_has_value, shape.arrays)) or depth > MAX_FLAT_DEPTH:
            return False
        return all(
            not plan.kinds
            and all(
                self._is_flat(self._builder.shape_of(part.value), depth + 1)
                for part in self._parts.members(clause, plan)
            )
            for clause, plan in self._parts.plans(shape)
        )

    def _is_endless(self, shape: Shape) -> bool:
        """Whether flat objects have a member with values without end, so that there are as many as one likes."""
        return any(
            self._has_endless(self._builder.shape_of(part.value))
            for clause, plan in self._parts.plans(shape)
            for part in self._parts.members(clause, plan)
            if self._builder.has_value(part.value)
        )

    def _has_endless(self, shape: Shape) -> bool:
        strings = [strings for strings in shape.strings if not self._builder.is_empty(strings)]
        has_numbers = any(numbers in (ANY_NUMBER, INTEGERS, PLAIN_INTEGERS) for numbers in shape.numbers)
        return has_numbers or any(map(is_endless, strings)) or self._is_endless(shape)

    def _last_names(self, shape: Shape) -> frozenset[str]:
        """The last names of closed objects of a shape, if their values can always be other ones.

        Nothing if that is not so of all objects of the shape, or its arrays come to an end.
        """
        plans = list(self._parts.plans(shape))
        if self._constraint.order != "schema" or not self._goes_on(shape._replace(objects=())):
            return frozenset()
        for clause, plan in plans:
            ends = plan.kinds or plan.remembered or not plan.names
            if clause.choices or clause.demands or plan.most is not None or ends or not self._is_free(plan.states[-1]):
                return frozenset()
        last = frozenset(plan.names[-1] for _, plan in plans)
        return frozenset() if any(last & {*plan.names[:-1]} for _, plan in plans) else last

    def _is_free(self, state: State) -> bool:
        """Whether all values of a state can be other ones, wherever they may end."""
        value = self._builder.shape_of(state)
        free = all(strings.simple and is_endless(strings) for strings in value.strings)
        is_there = self._builder.has_value(state) and not value.constants and not value.numbers
        return is_there and free and self._goes_on(value)

    def _items(self, shape: Shape, last: frozenset[str]) -> Items:
        """The texts of items of a shape."""
        constraint = self._constraint
        escapes: Escapes = "needed" if constraint.escapes == "needed" else "all"
        sets = [strings for strings in shape.strings if not self._builder.is_empty(strings)]
        strings = [limit_blanks(each) if constraint.blanks == "few" else each for each in sets]
        numbers = tuple(numbers for numbers in shape.numbers if not numbers.is_empty())
        constants = [word for bit, word in ((1, b"null"), (2, b"true"), (4, b"false")) if shape.constants & bit]
        items = Items(
            tuple(strings),
            numbers,
            tuple(constants),
            escapes,
            constraint.numbers == "natural",
            constraint.number_digits,
            bool(shape.arrays or shape.objects),
            last,
        )
        if not items.may_wait:
            _ = items.strings, items.numbers  # what is refused is refused now
        return items
