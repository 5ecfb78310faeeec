"""Complements: the shape of all values that a shape does not hold.

De Morgan, one level deep: the complement of alternatives is the intersection of their complements, and that of a clause
has one alternative for each of its demands. A demand on a part of the value becomes the demand that some part breaks
it: an object's member (`Demand`), an array's item (`Count`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.formats import outside_of
from tokdfa.json_schema.sets.number_set import NumberSet
from tokdfa.json_schema.solve.clauses import (
    ANYTHING,
    CLAUSE_BYTES,
    CLAUSE_WORK,
    EVERYTHING,
    NEVER,
    NOTHING,
    ArrayClause,
    ClauseT,
    Count,
    Demand,
    ObjectClause,
    Scope,
    Shape,
    State,
    lone_scope,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal

    from tokdfa.json_schema.solve.listed import Listed


class NotOneState(Exception):
    """The negation of several demands at once is not one state."""


def complement(shape: Shape, join: Callable[[Shape, Shape], Shape], known: Listed) -> Shape:
    """All values that `shape` does not hold. `join` intersects two shapes, and may refuse what comes out.

    Raises NotOneState, and UnsupportedConstraint for a format that cannot be negated.
    """
    spend(CLAUSE_WORK)
    result = ANYTHING._replace(constants=ANYTHING.constants & ~shape.constants)
    singles = []
    for numbers in shape.numbers:
        if numbers.low is not None and numbers == NumberSet(low=numbers.low, high=numbers.low):
            singles.append(numbers.low)
        else:
            result = join(result, ANYTHING._replace(numbers=tuple(numbers.complement())))
    result = join(result, ANYTHING._replace(numbers=_gaps(sorted(singles))))
    for strings in shape.strings:
        for name in strings.formats:
            outside_of(name)  # some formats have no complement
        result = join(result, ANYTHING._replace(strings=tuple(strings.complement())))
    for array in shape.arrays:
        result = join(result, ANYTHING._replace(arrays=_counted(complement_array(array))))
    tags = _tag_states(shape.objects, known) if len(shape.objects) > 1 else None
    if tags is not None:
        return join(result, ANYTHING._replace(objects=_outside_of_tagged(shape.objects, *tags, join)))
    for members in shape.objects:
        result = join(result, ANYTHING._replace(objects=_outside_of(members, join)))
    return result


def _outside_of(members: ObjectClause, join: Callable[[Shape, Shape], Shape]) -> tuple[ObjectClause, ...]:
    """`complement_object`, choices included. Raises NotOneState for one of many branches, too."""
    if members.exactly:
        raise NotOneState
    found = _counted(complement_object(members))
    for choice in members.choices:
        broken = ANYTHING
        for alternative in choice:
            broken = join(broken, ANYTHING._replace(objects=_counted(complement_object(alternative))))
        found += broken.objects
    return found


def _tag_states(clauses: tuple[ObjectClause, ...], known: Listed) -> tuple[str, list[State]] | None:
    """A name that all clauses require, and the state that each has its value in; None unless no two have a value in
    common, and each state is one literal.
    """
    values = [known.tags(clause) for clause in clauses]
    for name in values[0]:
        if not all(name in each for each in values):
            continue
        states = [clause.scopes[0].properties.get(name, EVERYTHING) for clause in clauses]
        bounds = [known.bound(state) for state in states]
        listed = [bound for bound in bounds if bound is not None]
        is_apart = len(frozenset().union(*listed)) == sum(map(len, listed))
        if len(listed) == len(clauses) and is_apart and all(len(state) == 1 for state in states):
            return name, states
    return None


def _outside_of_tagged(
    clauses: tuple[ObjectClause, ...], name: str, states: list[State], join: Callable[[Shape, Shape], Shape]
) -> tuple[ObjectClause, ...]:
    """What none of some clauses holds that tell their objects apart by a tag: at most one of them needs to be broken.

    A sum over the clauses, where the intersection of their complements is a product.
    """
    absent = ObjectClause(scopes=(lone_scope(name, NOTHING),))
    others = [_negation(state) for state in states]
    found = [absent, ObjectClause(scopes=(lone_scope(name, frozenset().union(*others)),), required=(name,))]
    for clause, state, other in zip(clauses, states, others, strict=True):
        tagged = ObjectClause(scopes=(lone_scope(name, state),), required=(name,))
        broken = [
            each for each in _outside_of(clause, join) if each.scopes not in (absent.scopes, (lone_scope(name, other),))
        ]
        found += join(ANYTHING._replace(objects=(tagged,)), ANYTHING._replace(objects=tuple(broken))).objects
    return tuple(found)


def _counted(clauses: Iterator[ClauseT]) -> tuple[ClauseT, ...]:
    """The clauses, each counted towards the budget before the next is made."""
    found = []
    for clause in clauses:
        spend(CLAUSE_WORK, CLAUSE_BYTES)
        found.append(clause)
    return tuple(found)


def _gaps(values: list[int | Decimal]) -> tuple[NumberSet, ...]:
    """All numbers but some, in order: what lies between them. One value after the other would be quadratic."""
    bounds = [None, *values, None]
    spend(CLAUSE_WORK * len(bounds))
    return tuple(NumberSet(low, low is not None, high, high is not None) for low, high in pairwise(bounds))


def negations(state: State) -> Iterator[State]:
    """States whose union is all values that are not in `state`."""
    for literal in sorted(state):
        yield EVERYTHING if literal == NEVER else frozenset([literal ^ 1])


def _negation(state: State) -> State:
    """The values that are not in `state`, as one state. Raises NotOneState."""
    if not state:
        return NOTHING
    if len(state) > 1:
        raise NotOneState
    return next(negations(state))


def complement_object(clause: ObjectClause) -> Iterator[ObjectClause]:
    """Clauses that hold for exactly the objects for which `clause` does not, whose choices are left to the caller.

    Raises NotOneState.
    """
    for name in clause.required:
        yield ObjectClause(scopes=(lone_scope(name, NOTHING),))
    if clause.least > 0:
        yield ObjectClause(most=clause.least - 1)
    if clause.most is not None:
        yield ObjectClause(least=clause.most + 1)
    for scope in clause.scopes:
        for name, state in scope.properties.items():
            for broken in negations(state):
                yield ObjectClause(scopes=(lone_scope(name, broken),), required=(name,))
        for pattern, state in scope.patterns:
            for broken in negations(state):
                yield ObjectClause(demands=(Demand(pattern, EVERYTHING, None, broken),))
        for broken in negations(scope.additional):
            yield ObjectClause(demands=(Demand(None, EVERYTHING, scope, broken),))
    for broken in negations(clause.names):
        yield ObjectClause(demands=(Demand(None, broken, None, EVERYTHING),))
    for demand in clause.demands:
        yield _no_member(demand)


def _no_member(demand: Demand) -> ObjectClause:
    """No member meets a demand."""
    kept = _negation(demand.value)
    if demand.pattern is not None:
        return ObjectClause(scopes=(Scope({}, ((demand.pattern, kept),), EVERYTHING),))
    if demand.scope is not None:
        properties = dict.fromkeys(demand.scope.properties, EVERYTHING)
        patterns = tuple((pattern, EVERYTHING) for pattern, _ in demand.scope.patterns)
        return ObjectClause(scopes=(Scope(properties, patterns, kept),))
    return ObjectClause(names=_negation(demand.names))


def complement_array(clause: ArrayClause) -> Iterator[ArrayClause]:
    """Clauses that hold for exactly the arrays for which `clause` does not."""
    if clause.least > 0:
        yield ArrayClause(most=clause.least - 1)
    if clause.most is not None:
        yield ArrayClause(least=clause.most + 1)
    for place, state in enumerate(clause.prefix):
        for broken in negations(state):
            spend(10 * place, 8 * place)
            yield ArrayClause(prefix=(*(EVERYTHING,) * place, broken), least=place + 1)
    for broken in negations(clause.rest):
        yield ArrayClause(counts=(Count(len(clause.prefix), broken, 1, None),))
    for first, value, least, most in clause.counts:
        if least > 0:
            yield ArrayClause(counts=(Count(first, value, 0, least - 1),))
        if most is not None:
            yield ArrayClause(counts=(Count(first, value, most + 1, None),))
    if clause.unique:
        yield ArrayClause(repeated=clause.unique)
    if clause.repeated:
        yield ArrayClause(unique=clause.repeated)
