"""A survey of a large schema: may the code of its parts wait until a text reaches them?

What waits must not be refused when it is too late. So the survey makes the shape of every state that a text can reach,
which finds every broken keyword and pattern, every reference that leads nowhere, and all alternatives that are too
many. It says no where the lowering itself may refuse something: counts of items, items that must differ, demands that
some member meets, names of many kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.json_schema.clauses import EVERYTHING, both
from tokdfa.json_schema.plans import declared_names, value_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.json_schema.clauses import ArrayClause, ObjectClause, State
    from tokdfa.json_schema.expand import Expander


def is_predictable(expander: Expander, root: State) -> bool:
    """See the module's docstring. O(size of the schema). Raises what reading the schema raises."""
    waiting, met = [root], {root}
    while waiting:
        shape = expander.shape(waiting.pop())
        if not all(map(_is_plain_array, shape.arrays)) or not all(map(_is_plain_object, shape.objects)):
            return False
        for array in shape.arrays:
            _add({*array.prefix, array.rest}, met, waiting)
        for clause in shape.objects:
            _add(_member_states(expander, clause), met, waiting)
    return True


def _add(states: Iterable[State], met: set[State], waiting: list[State]) -> None:
    for state in states:
        if state not in met:
            met.add(state)
            waiting.append(state)


def _is_plain_array(clause: ArrayClause) -> bool:
    return not (clause.counts or clause.unique or clause.repeated)


def _is_plain_object(clause: ObjectClause) -> bool:
    has_patterns = sum(len(scope.patterns) for scope in clause.scopes) > 1
    return not (clause.names or clause.demands or clause.most is not None or clause.least > 1 or has_patterns)


def _member_states(expander: Expander, clause: ObjectClause) -> Iterable[State]:
    """The states of the values of a clause's members."""
    if len(clause.scopes) == 1:
        (scope,) = clause.scopes
        return [*scope.properties.values(), *(state for _, state in scope.patterns), scope.additional]
    other = matched = EVERYTHING
    for scope in clause.scopes:
        other = both(other, scope.additional)
        own = [state for _, state in scope.patterns] or [scope.additional]
        for state in own:
            matched = both(matched, state)
    return [*(value_state(expander, clause, name) for name in declared_names(clause)), other, matched]
