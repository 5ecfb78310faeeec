"""What states of listed scalars (`const`, `enum`) hold, seen without making their shapes.

A state that demands two values at once holds nothing, and one that demands a value need not say which others it is not.
Discriminators are made of such states: where hundreds of schemas ask for a tag each, all but a few of their
combinations are found to be void here, before anything is made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.core.budget import spend
from tokdfa.json_schema.read.document import DRAFT_6, DRAFT_7
from tokdfa.json_schema.read.keyword_names import DEMANDING
from tokdfa.json_schema.solve.clauses import (
    ANY_OBJECT,
    EVERYTHING,
    LOOKUP_WORK,
    NEVER,
    NOTHING,
    State,
    intersect_states,
)

if TYPE_CHECKING:
    from tokdfa.json_schema.read.document import Document
    from tokdfa.json_schema.solve.clauses import ObjectClause

#: Values that a state has at most, none of them an array or an object; None: it may have any.
Values = frozenset[Any] | None


class Listed:
    """Answers for the states of one document. `dropped`: as in `tokdfa.json_schema.solve.oracle`."""

    def __init__(self, document: Document, dropped: frozenset[tuple[str, str]]) -> None:
        self._document, self._dropped = document, dropped
        self._bounds: dict[State, Values] = {}
        #: Node -> the values that its schema lists, and whether it asks for nothing else.
        self._nodes: dict[int, tuple[Values, bool]] = {}

    def bound(self, state: State) -> Values:
        """Values among which all of a state are; None if that is not known."""
        if state not in self._bounds:
            found: Values = None
            for literal in state:
                values = frozenset() if literal == NEVER else None if literal & 1 else self._node(literal >> 1)[0]
                if values is not None:
                    found = values if found is None else found & values
            self._bounds[state] = found
        return self._bounds[state]

    def merge(self, first: State, second: State) -> State:
        """What is in both states, without literals that say nothing more; NOTHING if no listed value is in both, or one
        demands the opposite of the other.
        """
        if not first or not second or first == second:
            return first or second
        if any(literal ^ 1 in first for literal in second):
            return NOTHING
        one, other = self.bound(first), self.bound(second)
        if one is not None and other is not None:
            if one.isdisjoint(other):
                return NOTHING
            if one <= other and self._is_exact(second):
                return first
            if other <= one and self._is_exact(first):
                return second
        found = intersect_states(first, second)
        if one is None and other is None:
            return found
        both = other if one is None else one if other is None else one & other
        return found if both is None else self._without_others(found, both)

    def _without_others(self, state: State, values: frozenset[Any]) -> State:
        """A state without the negations of what `values` are not."""
        spend(LOOKUP_WORK * len(state))
        found = [
            literal
            for literal in state
            if not (literal & 1 and literal != NEVER and self._excludes(literal >> 1, values))
        ]
        return state if len(found) == len(state) else frozenset(found)

    def _excludes(self, number: int, values: frozenset[Any]) -> bool:
        listed = self._node(number)[0]
        return listed is not None and listed.isdisjoint(values)

    def _is_exact(self, state: State) -> bool:
        """Whether a state has all the values of its bound."""
        return len(state) == 1 and all(not literal & 1 and self._node(literal >> 1)[1] for literal in state)

    def _node(self, number: int) -> tuple[Values, bool]:
        if number not in self._nodes:
            self._nodes[number] = self._read(number)
        return self._nodes[number]

    def _read(self, number: int) -> tuple[Values, bool]:
        """What a schema says by `const` or `enum` itself."""
        node = self._document.node(number)
        schema = node.schema
        if not isinstance(schema, dict) or (node.draft <= DRAFT_7 and "$ref" in schema):
            return None, False
        values, keyword = None, "const"
        if node.draft >= DRAFT_6 and "const" in schema and not self._is_dropped(number, "const"):
            values = [schema["const"]]
        elif "enum" in schema and not self._is_dropped(number, "enum"):
            values, keyword = schema["enum"], "enum"
        if not isinstance(values, list) or any(isinstance(value, list | dict) for value in values):
            return None, False
        spend(LOOKUP_WORK * len(values))
        alone = schema.keys() & DEMANDING == {keyword}
        return frozenset((isinstance(value, bool), value) for value in values), alone  # true is not 1

    def _is_dropped(self, number: int, keyword: str) -> bool:
        return bool(self._dropped) and (self._document.node(number).pointer, keyword) in self._dropped

    def tags(self, clause: ObjectClause) -> dict[str, frozenset[Any]]:
        """Required names of a clause -> what their values may be, if that is listed."""
        found: dict[str, frozenset[Any]] = {}
        spend(LOOKUP_WORK * (1 + len(clause.required) * len(clause.scopes)))
        for scope in clause.scopes:
            for name in clause.required:
                state = scope.properties.get(name)
                values = None if state is None else self.bound(state)
                if values is not None:
                    found[name] = values & found.get(name, values)
        return found

    def contradicts(self, clause: ObjectClause) -> bool:
        """Whether a required member has no value that is listed for it in every scope."""
        return self._excluded(ANY_OBJECT, clause, {})

    def _excluded(self, clause: ObjectClause, other: ObjectClause, known: dict[str, State]) -> bool:
        """`contradicts` of both clauses together. `known`: what `merge` makes of the values of `clause`, by name."""
        if len(clause.scopes) + len(other.scopes) < 2:
            return False
        names = (*clause.required, *other.required)
        spend(LOOKUP_WORK * (1 + len(names) * (1 + len(other.scopes))))
        for name in names:
            found = known.get(name)
            if found is None:
                found = known[name] = self._merged(EVERYTHING, clause, name)
            if self._merged(found, other, name) is NOTHING:
                return True
        return False

    def _merged(self, found: State, clause: ObjectClause, name: str) -> State:
        """What is in a state and in that of the value of a name in each scope of a clause."""
        for scope in clause.scopes:
            state = scope.properties.get(name)
            if state is None and not scope.patterns:
                state = scope.additional
            if state and found is not NOTHING:
                found = self.merge(found, state)
        return found

    def settle(self, clause: ObjectClause) -> list[ObjectClause]:
        """Clauses for the same objects, without the choices that what is listed decides.

        Alternatives of which a required member has no value go, and choices of which one alternative demands nothing
        more than the clause. So a tag that is required settles at once what a choice says about other tags, and
        branches of `ObjectClause.exactly` that it tells apart are clauses.
        """
        counted = {choice for branches in clause.exactly for choice, _ in branches}
        kept, known = [], dict[str, State]()
        for choice in clause.choices:
            spend(LOOKUP_WORK * len(choice))
            left = choice
            if choice not in counted:
                if any(self._says_nothing(alternative, clause) for alternative in choice):
                    continue
                left = tuple([each for each in choice if not self._excluded(clause, each, known)])
                if not left:
                    return []
            kept.append(left)
        found = clause._replace(choices=tuple(kept))
        return self._apart(found) if len(clause.exactly) == 1 else [found]

    def _apart(self, clause: ObjectClause) -> list[ObjectClause]:
        """The branches of a clause's `exactly`, if a required member tells them apart; otherwise the clause itself."""
        (branches,) = clause.exactly
        counted = {choice for choice, _ in branches}
        plain = clause._replace(choices=tuple([each for each in clause.choices if each not in counted]), exactly=())
        holding = [choice[:count] for choice, count in branches]
        for name in plain.required:
            listed = [self._values_of(name, alternatives) for alternatives in holding]
            known = [values for values in listed if values is not None]
            if len(known) == len(listed) and sum(map(len, known)) == len(frozenset().union(*known)):
                joined = [plain.intersect(alternative) for alternatives in holding for alternative in alternatives]
                return [one for each in joined if not self.contradicts(each) for one in self.settle(each)]
        return [clause]

    def _values_of(self, name: str, alternatives: tuple[ObjectClause, ...]) -> Values:
        """What a member may be by some alternatives; None if one of them does not list that."""
        found: frozenset[Any] = frozenset()
        for alternative in alternatives:
            states = [scope.properties.get(name, frozenset()) for scope in alternative.scopes]
            values = self.bound(frozenset().union(*states))
            if values is None:
                return None
            found |= values
        return found

    def _says_nothing(self, alternative: ObjectClause, clause: ObjectClause) -> bool:
        """Whether an alternative holds wherever a clause does, as far as that is listed."""
        if alternative.demands or not set(clause.required).issuperset(alternative.required):
            return False
        for scope in alternative.scopes:
            if scope.patterns or scope.additional:
                return False
            for name, state in scope.properties.items():
                own: State = frozenset()
                for other in clause.scopes:
                    own = self.merge(own, other.properties.get(name, frozenset()))
                if self.merge(own, state) != own:
                    return False
        return True
