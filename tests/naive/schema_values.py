"""What clauses mean, value by value: a plain evaluator of states, and values that states are said to have.

The evaluator reads the clauses as their docstrings say and knows no automaton of arrays or objects; sets of numbers and
strings answer for themselves. Values are as `json.loads` with ``parse_float=Decimal`` gives them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tokdfa.json_schema.solve.array_states import ArrayStates
from tokdfa.json_schema.solve.clauses import (
    ANY_STRING,
    EVERYTHING,
    FALSE,
    NULL,
    TRUE,
    ArrayClause,
    ObjectClause,
    Scope,
    Shape,
    State,
)
from tokdfa.json_schema.solve.object_plan import ObjectPlan, plan_object
from tokdfa.json_schema.solve.object_states import ObjectStates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder


def is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, objects whatever their order, true is not 1."""
    if is_number(one) and is_number(other):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return one == other


def holds(shape_builder: ShapeBuilder, state: State, value: Any) -> bool:
    """Whether a value is in a state."""
    return not state or shape_holds(shape_builder, shape_builder.shape_of(state), value)


def shape_holds(shape_builder: ShapeBuilder, shape: Shape, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        bit = NULL if value is None else TRUE if value else FALSE
        return bool(shape.constants & bit)
    if is_number(value):
        return any(numbers.holds(value, plain=isinstance(value, int)) for numbers in shape.numbers)
    if isinstance(value, str):
        return any(strings.holds(value) for strings in shape.strings)
    if isinstance(value, list):
        return any(array_holds(shape_builder, clause, value) for clause in shape.arrays)
    return any(object_holds(shape_builder, clause, value) for clause in shape.objects)


def array_holds(shape_builder: ShapeBuilder, clause: ArrayClause, items: list[Any]) -> bool:
    if len(items) < clause.least or (clause.most is not None and len(items) > clause.most):
        return False
    for place, item in enumerate(items):
        wanted = clause.prefix[place] if place < len(clause.prefix) else clause.rest
        if not holds(shape_builder, wanted, item):
            return False
    for first, state, least, most in clause.counts:
        counted = sum(holds(shape_builder, state, item) for item in items[first:])
        if counted < least or (most is not None and counted > most):
            return False
    has_repeated = any(equal(items[k], items[j]) for k in range(len(items)) for j in range(k))
    return not (clause.unique and has_repeated) and not (clause.repeated and not has_repeated)


def object_holds(shape_builder: ShapeBuilder, clause: ObjectClause, members: dict[str, Any]) -> bool:
    if len(members) < clause.least or (clause.most is not None and len(members) > clause.most):
        return False
    if any(name not in members for name in clause.required):
        return False
    if not all(holds(shape_builder, clause.names, name) for name in members):
        return False
    for scope in clause.scopes:
        for name, value in members.items():
            if not all(holds(shape_builder, state, value) for state in _states_of(shape_builder, scope, name)):
                return False
    for choice in clause.choices:
        if not any(object_holds(shape_builder, alternative, members) for alternative in choice):
            return False
    return all(
        any(
            (demand.pattern is None or shape_builder.matches(demand.pattern, name))
            and holds(shape_builder, demand.names, name)
            and (demand.scope is None or not _is_about(shape_builder, demand.scope, name))
            and holds(shape_builder, demand.value, value)
            for name, value in members.items()
        )
        for demand in clause.demands
    )


def _is_about(shape_builder: ShapeBuilder, scope: Scope, name: str) -> bool:
    return name in scope.properties or any(shape_builder.matches(pattern, name) for pattern, _ in scope.patterns)


def _states_of(shape_builder: ShapeBuilder, scope: Scope, name: str) -> list[State]:
    """The states that a scope asks of the value under a name."""
    if not _is_about(shape_builder, scope, name):
        return [scope.additional]
    named = [scope.properties.get(name, EVERYTHING)]
    return named + [state for pattern, state in scope.patterns if shape_builder.matches(pattern, name)]


def array_accepted(shape_builder: ShapeBuilder, clause: ArrayClause, items: list[Any]) -> bool:
    """Whether the automaton of a clause accepts an array. Raises SchemaUnsupported."""
    states = ArrayStates(shape_builder, clause)
    here = {states.start}
    for item in items:
        here = {
            move.following for state in here for move in states.moves(state) if holds(shape_builder, move.value, item)
        }
    return any(map(states.can_close, here)) and states.is_inhabited()


def object_accepted(
    shape_builder: ShapeBuilder, clause: ObjectClause, members: dict[str, Any], any_order: bool
) -> bool:
    """Whether the automaton of a clause accepts an object: in its own order of names, or backwards if `any_order`."""
    plan = plan_object(shape_builder, clause)
    if plan is None:
        return False
    states = ObjectStates(shape_builder, clause, plan, any_order)
    declared = plan.names + plan.excluded
    here = {states.start}
    for name in sorted(members, key=lambda name: plan.names.index(name) if name in plan.names else len(declared)):
        following = set()
        for state in here:
            for move in states.moves(state):
                if _is_named(plan, move.member, name) and holds(shape_builder, move.value, members[name]):
                    following.add(move.following)
        here = following
    return any(map(states.can_close, here)) and states.is_inhabited()


def _is_named(plan: ObjectPlan, member: int, name: str) -> bool:
    """Whether a member of a plan may have a name. Where no set of names is given, declared ones are left out."""
    if member >= 0:
        return plan.names[member] == name
    names = plan.kinds[~member].names
    return names.holds(name) and (names is not ANY_STRING or name not in plan.names + plan.excluded)


class Witnesses:
    """Finds a value of a state, nested `depth` deep at most, among few numbers and strings; None if there is none."""

    def __init__(self, shape_builder: ShapeBuilder, scalars: tuple[Any, ...]) -> None:
        self.shape_builder, self.scalars = shape_builder, scalars
        self._found: dict[tuple[State, int], tuple[Any, ...]] = {}

    def of(self, state: State, depth: int) -> tuple[Any, ...]:
        """The value, in a tuple; () if there is none."""
        key = state, depth
        if key not in self._found:
            shape = self.shape_builder.shape_of(state)
            self._found[key] = next(self._of_shape(shape, depth), ())
        return self._found[key]

    def _of_shape(self, shape: Shape, depth: int) -> Iterator[tuple[Any, ...]]:
        listed = [value for strings in shape.strings for value in sorted(strings.values or ())]
        listed += [number for numbers in shape.numbers for number in (numbers.low, numbers.high) if number is not None]
        for value in (*self.scalars, *listed):
            if shape_holds(self.shape_builder, shape, value):
                yield (value,)
        if depth > 0:
            for clause in shape.arrays:
                yield from self._array(clause, depth)
            for members in shape.objects:
                yield from self._object(members, depth)

    def _array(self, clause: ArrayClause, depth: int) -> Iterator[tuple[Any, ...]]:
        if not self.shape_builder.array_has_value(clause):
            return
        states = ArrayStates(self.shape_builder, clause)
        todo: list[tuple[Any, list[Any]]] = [(states.start, [])]
        met = {states.start}
        for state, items in todo:
            if states.can_close(state):
                yield (items,)
                return
            for value, following in states.moves(state):
                if following not in met and (found := self.of(value, depth - 1)):
                    met.add(following)
                    todo.append((following, [*items, *found]))

    def _object(self, clause: ObjectClause, depth: int) -> Iterator[tuple[Any, ...]]:
        plan = plan_object(self.shape_builder, clause)
        if plan is None:
            return
        states = ObjectStates(self.shape_builder, clause, plan)
        todo: list[tuple[Any, dict[str, Any]]] = [(states.start, {})]
        met = {states.start}
        for state, members in todo:
            if states.can_close(state):
                yield (members,)
                return
            for member, value, following in states.moves(state):
                if following in met:
                    continue
                names = [name for name in self._names(plan, member) if name not in members]
                if names and (found := self.of(value, depth - 1)):
                    met.add(following)
                    todo.append((following, {**members, names[0]: found[0]}))

    def _names(self, plan: ObjectPlan, member: int) -> Iterator[str]:
        """Names that a member of a plan may have."""
        if member >= 0:
            yield plan.names[member]
            return
        listed = (*plan.kinds[~member].names.values,) if plan.kinds[~member].names.values else ()
        for name in (*self.scalars, *listed, *(f"other {k}" for k in range(5)), *"defghijk"):
            if isinstance(name, str) and _is_named(plan, member, name):
                yield name
