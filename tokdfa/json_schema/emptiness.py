"""Whether a state has a value at all: the least fixed point over states, each looked at once.

A value of a state needs values of its required parts only, so optional parts are not looked at, and most schemas are
answered by a look at their `required` chain. While a state is being asked it counts as empty; an answer "empty" that
rests on this is kept while that question is open, and dropped as soon as anything turns out not to be empty. What can
be decided only with effort (strings with patterns, automata of numbers) is asked of the clauses, which remember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.json_schema.array_states import ArrayStates
from tokdfa.json_schema.clauses import (
    ANY_ARRAY,
    ANY_OBJECT,
    FEW,
    LOOKUP_WORK,
    NEVER,
    SHAPE_WORK,
    ArrayClause,
    ObjectClause,
    Shape,
    State,
)
from tokdfa.json_schema.making import InProgress
from tokdfa.json_schema.object_plan import plan_object, value_state
from tokdfa.json_schema.object_states import ObjectStates
from tokdfa.json_schema.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.json_schema.making import Making
    from tokdfa.json_schema.schema_states import SchemaStates


class Emptiness:
    """Answers for the states and shapes of one document. `shape_of`: the shape of a state; `making`: those on the way.

    While shapes are being made an answer may be True that should be False: some alternative is then not left out early.
    """

    def __init__(
        self,
        schemas: SchemaStates,
        shape_of: Callable[[State], Shape],
        making: Making,
        distinct: bool,
        remembers: bool = False,
    ) -> None:
        self._making = making
        #: For those who ask about clauses, as this does.
        self.oracle = Oracle(schemas, shape_of, self.state, distinct, remembers)
        self._known = schemas.inhabited
        self._asked: dict[State, int] = {}
        self._lowest = 1 << 30
        #: States that are empty if the states asked are, up from some place in `_asked`.
        self._doubtful: dict[State, int] = {}

    def state(self, state: State) -> bool:
        """Whether some value is in a state. Raises SchemaError or SchemaUnsupported."""
        known = self._known.get(state)
        if known is not None:
            return known
        if NEVER in state:
            return False
        if self._making.active:  # before what was asked: that counts as empty for the questions asked since alone
            return self._ask_meanwhile(state)
        if state in self._asked:
            self._lowest = min(self._lowest, self._asked[state])
            return False
        if state in self._doubtful:
            self._lowest = min(self._lowest, self._doubtful[state])
            return False
        spend(SHAPE_WORK + LOOKUP_WORK * len(self._doubtful))
        depth = len(self._asked)
        self._asked[state] = depth
        before, self._lowest = self._lowest, 1 << 30
        try:
            found = self.shape(self.oracle.shape_of(state))
        except BaseException:
            self._doubtful.clear()
            raise
        finally:
            del self._asked[state]
        if found or self._lowest >= depth:
            self._known[state] = found
            if self._doubtful:
                self._settle(found, depth)
            self._lowest = before
        else:
            for other, lowest in self._doubtful.items():
                self._doubtful[other] = min(lowest, self._lowest) if lowest >= depth else lowest
            self._doubtful[state] = self._lowest
            self._lowest = min(before, self._lowest)
        return found

    def _settle(self, found: bool, depth: int) -> None:
        """The state at a place in `_asked` is answered: so are those that rest on it, if it is empty."""
        if found:
            self._doubtful.clear()
            return
        for state in [other for other, lowest in self._doubtful.items() if lowest >= depth]:
            del self._doubtful[state]
            self._known[state] = False

    def _ask_meanwhile(self, state: State) -> bool:
        """`state` while shapes are being made; True if it depends on these."""
        asked, lowest, doubtful = self._asked, self._lowest, self._doubtful
        self._asked, self._lowest, self._doubtful = {}, 1 << 30, {}
        try:
            with self._making.suspended():
                return self.state(state)
        except InProgress:
            return True
        finally:
            self._asked, self._lowest, self._doubtful = asked, lowest, doubtful

    def shape(self, shape: Shape) -> bool:
        """Whether some value has this shape."""
        if shape.constants or (shape.numbers and any(not numbers.is_empty() for numbers in shape.numbers)):
            return True
        if shape.strings and any(not self.oracle.is_empty(strings) for strings in shape.strings):
            return True
        return any(map(self.array, shape.arrays)) or any(map(self.object, shape.objects))

    def array(self, clause: ArrayClause) -> bool:
        """Whether some array meets a clause."""
        if clause is ANY_ARRAY:
            return True
        if clause.counts or clause.unique or clause.repeated:
            return ArrayStates(self.oracle, clause).is_inhabited()
        if clause.most is not None and clause.most < clause.least:
            return False
        spend(LOOKUP_WORK * min(clause.least, len(clause.prefix) + 1))
        distinct = dict.fromkeys(clause.at(k) for k in range(min(clause.least, len(clause.prefix) + 1)))
        return all(self.state(state) for state in distinct)

    def object(self, clause: ObjectClause) -> bool:
        """Whether some object meets a clause."""
        if clause is ANY_OBJECT:
            return True
        if clause.most is not None and clause.most < max(clause.least, len(clause.required)):
            return False
        scopes = clause.scopes
        if len(scopes) == 1 and not scopes[0].patterns and not clause.names:
            if len(clause.required) > FEW:
                spend(LOOKUP_WORK * len(clause.required))
            properties, additional = scopes[0].properties, scopes[0].additional
            for name in clause.required:
                if not self.state(properties.get(name, additional)):
                    return False
        elif not all(self.state(value_state(self.oracle, clause, name)) for name in clause.required):
            return False
        if not (clause.demands or clause.choices) and clause.least <= len(clause.required):
            return True
        plan = plan_object(self.oracle, clause)
        return plan is not None and ObjectStates(self.oracle, clause, plan).is_inhabited()
