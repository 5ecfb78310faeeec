"""Whether a state has a value at all: the least fixed point over states, each looked at once.

A value of a state needs values of its required parts only, so optional parts are not looked at, and most schemas are
answered by a look at their `required` chain. While a state is being asked it counts as empty; an answer "empty" that
rests on this is kept while that question is open, and dropped as soon as anything turns out not to be empty. What can
be decided only with effort (strings with patterns, automata of numbers) is asked of the clauses, which remember.
"""

from __future__ import annotations

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.solve.array_states import ArrayStates
from tokdfa.json_schema.solve.clauses import (
    ANY_ARRAY,
    ANY_OBJECT,
    FEW,
    LOOKUP_WORK,
    NEVER,
    ArrayClause,
    ObjectClause,
    Shape,
    State,
)
from tokdfa.json_schema.solve.object_plan import plan_object, value_state
from tokdfa.json_schema.solve.object_states import ObjectStates
from tokdfa.json_schema.solve.oracle import NO_LOOP, Oracle

#: Schemas inside each other whose values decide whether the outermost has one, at most.
MAX_LEVELS = 500


class InProgress(Exception):
    """A shape was asked for that somebody further out is making."""


class Emptiness(Oracle):
    """While shapes are being made an answer may be True that should be False: some alternative is then not left out
    early.

    *Being made.* A literal whose shape is asked for while it is made is a loop in place. Shapes are asked for here
    while others are made; these are then set aside, and what comes back to one of them cannot be answered yet
    (`InProgress`).
    """

    _lowest = 1 << 30
    #: Questions whether a state has a value inside each other, and the shapes that are made for them.
    _level = 0

    def has_value(self, state: State) -> bool:
        """Whether some value is in a state. Raises SchemaError or SchemaUnsupported."""
        known = self.inhabited.get(state)
        if known is not None:
            return known
        if NEVER in state:
            return False
        if self.active:  # before what was asked: that counts as empty for the questions asked since alone
            return self._ask_meanwhile(state)
        if state in self.asked:
            self._lowest = min(self._lowest, self.asked[state])
            return False
        if state in self.doubtful:
            self._lowest = min(self._lowest, self.doubtful[state])
            return False
        if self.doubtful:
            spend(LOOKUP_WORK * len(self.doubtful))
        shape = self.shape_of(state)
        if not shape.arrays and not shape.objects:  # no other question is asked
            found = self.inhabited[state] = self.shape_has_value(shape)
            return found
        if self._level == MAX_LEVELS:
            pointer = self.document.node(min(state) >> 1).pointer
            raise SchemaUnsupported(
                f"nested too deep: whether it has a value depends on more than {MAX_LEVELS} schemas inside each other",
                pointer,
                "properties",
            )
        depth = len(self.asked)
        self.asked[state] = depth
        before, self._lowest = self._lowest, 1 << 30
        self._level += 1
        try:
            found = self.shape_has_value(shape)
        except BaseException:
            self.doubtful.clear()
            raise
        finally:
            self._level -= 1
            del self.asked[state]
        if found or self._lowest >= depth:
            self.inhabited[state] = found
            if self.doubtful:
                self._settle(found, depth)
            self._lowest = before
        else:
            for other, lowest in self.doubtful.items():
                self.doubtful[other] = min(lowest, self._lowest) if lowest >= depth else lowest
            self.doubtful[state] = self._lowest
            self._lowest = min(before, self._lowest)
        return found

    def _settle(self, found: bool, depth: int) -> None:
        """The state at a place in `asked` is answered: so are those that rest on it, if it is empty."""
        if found:
            self.doubtful.clear()
            return
        for state in [other for other, lowest in self.doubtful.items() if lowest >= depth]:
            del self.doubtful[state]
            self.inhabited[state] = False

    def _ask_meanwhile(self, state: State) -> bool:
        """`has_value` while shapes are being made, which are set aside; True if it depends on these."""
        asked, lowest, doubtful = self.asked, self._lowest, self.doubtful
        active, choices, unions = self.active, self.choices, self.unions
        loop, left_out = self.loop, self.left_out
        added = active.keys() - self.set_aside
        self.set_aside |= added
        self.asked, self._lowest, self.doubtful = {}, 1 << 30, {}
        self.active, self.choices, self.unions, self.loop = {}, 0, 0, NO_LOOP
        try:
            return self.has_value(state)
        except InProgress:
            return True
        finally:
            self.asked, self._lowest, self.doubtful = asked, lowest, doubtful
            self.active, self.choices, self.unions = active, choices, unions
            self.loop, self.left_out = loop, left_out
            self.set_aside -= added

    def shape_has_value(self, shape: Shape) -> bool:
        """Whether some value has this shape."""
        if shape.constants:
            return True
        for numbers in shape.numbers:
            if not numbers.is_empty():
                return True
        for strings in shape.strings:
            if not self.is_empty(strings):
                return True
        return any(map(self.array_has_value, shape.arrays)) or any(map(self.object_has_value, shape.objects))

    def array_has_value(self, clause: ArrayClause) -> bool:
        """Whether some array meets a clause."""
        if clause is ANY_ARRAY:
            return True
        if clause.counts or clause.unique or clause.repeated:
            return clause in self.possible or self._is_possible(clause, ArrayStates(self, clause).is_inhabited())
        if clause.most is not None and clause.most < clause.least:
            return False
        if not clause.least:
            return True
        spend(LOOKUP_WORK * min(clause.least, len(clause.prefix) + 1))
        distinct = dict.fromkeys(clause.at(k) for k in range(min(clause.least, len(clause.prefix) + 1)))
        return all(self.has_value(state) for state in distinct)

    def object_has_value(self, clause: ObjectClause) -> bool:
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
                state = properties.get(name, additional)
                if not (self.inhabited.get(state) or self.has_value(state)):  # of most it is known
                    return False
        elif not all(self.has_value(value_state(self, clause, name)) for name in clause.required):
            return False
        if not (clause.demands or clause.choices) and clause.least <= len(clause.required):
            return True
        if clause in self.possible:
            return True
        plan = plan_object(self, clause)
        return self._is_possible(clause, plan is not None and ObjectStates(self, clause, plan).is_inhabited())

    def _is_possible(self, clause: ArrayClause | ObjectClause, found: bool) -> bool:
        """`found`, which is remembered where no open question can change it: a "no" may rest on one."""
        if found and not (self.widely or self.set_aside):
            self.possible.add(clause)
        return found
