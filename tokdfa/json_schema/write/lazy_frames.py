"""A survey of a large schema: which parts' code may wait until a text reaches them?

What waits must not be refused when it is too late. So the survey makes the shape of every state that a text can reach,
which finds every broken keyword and pattern, every reference that leads nowhere, and all alternatives that are too
many. Where the lowering itself may refuse something a state is *uncertain*: counts of items, items that must differ,
demands that some member meets, names of many kinds, multiples. Those have to be lowered at once. All others that the
survey has met may wait: what they lead to has been met, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.json_schema.solve.clauses import EVERYTHING, LOOKUP_WORK, intersect_states
from tokdfa.json_schema.solve.object_plan import declared_names, value_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.json_schema.solve.clauses import ArrayClause, ObjectClause, Shape, State
    from tokdfa.json_schema.solve.oracle import Oracle


#: Work (`tokdfa.core.budget`) of looking at a state, in nanoseconds.
SURVEY_WORK = 3_000


def survey_states(oracle: Oracle, root: State) -> tuple[set[State], list[State]]:
    """(states that may wait, states that are uncertain). O(size of the schema).

    Raises what reading the schema raises.
    """
    waiting, met, uncertain = [root], {root}, []
    while waiting:
        state = waiting.pop()
        shape = oracle.shape_of(state)
        spend(SURVEY_WORK)
        if not _is_certain(shape):
            uncertain.append(state)
        for array in shape.arrays:
            spend(LOOKUP_WORK * (1 + len(array.prefix)))
            _add({*array.prefix, array.rest}, met, waiting)
        for clause in shape.objects:
            _add(_member_states(oracle, clause), met, waiting)
    return met.difference(uncertain), uncertain


def _is_certain(shape: Shape) -> bool:
    """Whether nothing of a shape can be refused any more."""
    if any(numbers.multiples or numbers.not_multiples for numbers in shape.numbers):
        return False
    return all(map(_is_plain_array, shape.arrays)) and all(map(_is_plain_object, shape.objects))


def _add(states: Iterable[State], met: set[State], waiting: list[State]) -> None:
    for state in states:
        if state not in met:
            met.add(state)
            waiting.append(state)


def _is_plain_array(clause: ArrayClause) -> bool:
    return not (clause.counts or clause.unique or clause.repeated)


def _is_plain_object(clause: ObjectClause) -> bool:
    has_patterns = sum(len(scope.patterns) for scope in clause.scopes) > 1
    return not (
        clause.names or clause.demands or clause.choices or clause.most is not None or clause.least > 1 or has_patterns
    )


def _member_states(oracle: Oracle, clause: ObjectClause) -> Iterable[State]:
    """The states of the values of a clause's members."""
    if len(clause.scopes) == 1:
        (scope,) = clause.scopes
        spend(LOOKUP_WORK * (2 + len(scope.properties) + len(scope.patterns)))
        return [*scope.properties.values(), *(state for _, state in scope.patterns), scope.additional]
    spend(LOOKUP_WORK * sum(1 + len(scope.properties) + len(scope.patterns) for scope in clause.scopes))
    if not any(scope.patterns for scope in clause.scopes):
        return _named_states(clause)
    other = matched = EVERYTHING
    for scope in clause.scopes:
        other = intersect_states(other, scope.additional)
        own = [state for _, state in scope.patterns] or [scope.additional]
        for state in own:
            matched = intersect_states(matched, state)
    return [*(value_state(oracle, clause, name) for name in declared_names(clause)), other, matched]


def _named_states(clause: ObjectClause) -> Iterable[State]:
    """`_member_states` of scopes without patterns, scope by scope: there may be thousands of clauses."""
    found: dict[str, State] = dict.fromkeys(clause.required, EVERYTHING)
    other = EVERYTHING
    for scope in clause.scopes:
        for name, state in scope.properties.items():
            found[name] = intersect_states(found.get(name, EVERYTHING), state)
        other = intersect_states(other, scope.additional)
    for scope in clause.scopes:
        if scope.additional:
            spend(LOOKUP_WORK * len(found))
            for name in found.keys() - scope.properties.keys():
                found[name] = intersect_states(found[name], scope.additional)
    return [*found.values(), other]
