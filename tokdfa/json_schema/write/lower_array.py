"""Lowering of arrays: first items, then the rest in a loop; or, with counts and unique items, by states.

Bounds on the number of items are a chain of places, one for each number of items; past the first few its code is
written only when it is reached, so ``maxItems: 10000`` costs nothing before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import proxy

from tokdfa.core.budget import spend
from tokdfa.json_schema.solve.array_states import ArrayStates, Items
from tokdfa.json_schema.solve.clauses import LOOKUP_WORK
from tokdfa.program.program import RETURN_PLACE

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.clauses import ArrayClause
    from tokdfa.json_schema.write.lower_value import ValueWriter

#: Work and memory (`tokdfa.core.budget`) of writing an item.
ITEM_WORK, ITEM_BYTES = 5_000, 500
#: Places of a chain that are written from the start, and at once when one is reached that is not written.
FROM_START, AT_ONCE = 4, 16


def lower_array(writer: ValueWriter, clause: ArrayClause) -> int:
    """The place at which an array of a clause that some array meets is read, before RETURN."""
    if clause.counts or clause.unique or clause.repeated:
        lowering = _StateLowering(writer, clause)
        if not lowering.states.is_remembered:
            return lowering.lower()
        clause = clause._replace(unique=0)
    return _Chain(writer, clause).lower()


class _Chain:
    """The code of one array by the number of its items alone."""

    def __init__(self, writer: ValueWriter, clause: ArrayClause) -> None:
        self.writer: ValueWriter = proxy(writer)  # which keeps what it is to write later
        self.clause = clause
        has_value = writer.oracle.has_value
        self.most = clause.most
        spend(LOOKUP_WORK * len(clause.prefix))
        for k in range(min(len(clause.prefix) + 1, 1 << 30 if self.most is None else self.most)):
            if not has_value(clause.at(k)):
                self.most = k
                break
        self._places: dict[int, int] = {}
        #: The first number of items from which on all are alike.
        self.tail = max(len(clause.prefix), clause.least)

    def lower(self) -> int:
        """The place at which the array is read."""
        writer, starts = self.writer, []
        if self.most is None or self.most > 0:
            starts.append(writer.value(self.clause.at(0), self._after(1, FROM_START)))
        if self.clause.least == 0:
            starts.append(writer.no_item)
        return writer.read(writer.bracket, writer.any_of(starts))

    def _after(self, count: int, at_once: int) -> int:
        """The place after so many items."""
        if self.most is None and count > self.tail:
            count = max(self.tail, 1)
        found = self._places.get(count)
        if found is not None:
            return found
        writer = self.writer
        if self.most is None and count >= self.tail:
            frame = writer.frame("more items")
            self._places[count] = place = writer.call(frame, RETURN_PLACE)
            try:
                writer.enter(frame, self._next(count, at_once))
            except BaseException:
                del self._places[count]  # nothing is there yet
                raise
            return place
        place = writer.lazy(partial(self._next, count, AT_ONCE)) if at_once == 0 else self._next(count, at_once - 1)
        self._places[count] = place
        return place

    def _next(self, count: int, at_once: int) -> int:
        spend(ITEM_WORK, ITEM_BYTES)
        writer, places = self.writer, []
        if self.most is None or count < self.most:
            value = writer.value(self.clause.at(count), self._after(count + 1, at_once))
            places.append(writer.read(writer.comma, value))
        if count >= self.clause.least:
            places.append(writer.close_array)
        return writer.any_of(places)


class _StateLowering:
    """The code of one array whose items are counted by what they are, or have to differ."""

    def __init__(self, writer: ValueWriter, clause: ArrayClause) -> None:
        self.writer: ValueWriter = proxy(writer)
        self.states = ArrayStates(writer.oracle, clause)
        self._frames: dict[Items, int] = {}

    def lower(self) -> int:
        """The place at which the array is read."""
        writer, start = self.writer, self.states.start
        starts = self._values(start)
        if self.states.can_close(start):
            starts.append(writer.no_item)
        return writer.read(writer.bracket, writer.any_of(starts))

    def _values(self, state: Items) -> list[int]:
        return [self.writer.value(value, self._after(following)) for value, following in self.states.moves(state)]

    def _after(self, state: Items) -> int:
        """The place after an item: its code is written when it is first reached."""
        frame = self._frames.get(state)
        if frame is None:
            frame = self._frames[state] = self.writer.frame(f"items {tuple(state)}")
            self.writer.enter(frame, self.writer.lazy(partial(self._next, state)))
        return self.writer.call(frame, RETURN_PLACE)

    def _next(self, state: Items) -> int:
        """The place of a comma and what follows it, or of the end."""
        values = self._values(state)
        places = [self.writer.read(self.writer.comma, self.writer.any_of(values))] if values else []
        if self.states.can_close(state):
            places.append(self.writer.close_array)
        return self.writer.any_of(places)
