"""The ranks of rows: how far an end is, for searches for one (`tokdfa.backends.some_end`).

The rank of a place is the least number of instructions that must still read something until its frame returns, that of
a row the least of its items' ranks with those of the places to which their stacks return. Code that is written later
counts as no way, and is written where there is no other.

Cost: O(instructions reached), once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.rows import ROOT, ROW_PLACE
from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.program.program import ANY, CALL, LAZY, NAMES, OPERATION, RETURN_PLACE, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.machine import Machine

    Int32 = npt.NDArray[np.int32]

#: What an instruction takes, and each place that it leads to.
NS_PER_PLACE, NS_PER_AFTER = 4_000, 5


class Ranks:
    """See the module's docstring. `machine`: that of the rows; the lock of its pool is held."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: By place: int64, its rank, FAR where none is known; bool, whether that was settled.
        self._places = np.full(len(machine.code), FAR, dtype=np.int64)
        self._settled = np.zeros(len(machine.code), dtype=np.bool_)
        self._places[RETURN_PLACE], self._settled[RETURN_PLACE] = 0, True
        self._stacks: dict[int, int] = {ROOT: 0}

    def of_row(self, row: int) -> int:
        """The rank of a row."""
        items = self._machine.items(row)
        settle_ranks((stack for _, _, stack in items), self._stacks, self._ways_out)
        ranks = self._ranks_of([place for place, _, _ in items])
        return min((rank + self._stacks[stack] for rank, (_, _, stack) in zip(ranks, items, strict=True)), default=FAR)

    def _ways_out(self, stack: int) -> list[tuple[int, int]]:
        """See `settle_ranks`."""
        entries = [entry for entry in self._machine.stack(stack) if entry[0] != ROW_PLACE]
        ranks = self._ranks_of([place for place, _ in entries])
        return [(rank, below) for rank, (_, below) in zip(ranks, entries, strict=True)]

    def _ranks_of(self, places: list[int]) -> list[int]:
        """The ranks of places; code is written where no other leads to an end."""
        self._follow_program()
        asked = [place for place in dict.fromkeys(places) if not self._settled[place]]
        while asked:
            reached = self._reached(asked)
            self._relax(reached)
            asked = [place for place in asked if not self._settled[place]]
            if not (asked and self._write(place for place in reached if self._machine.code[place, OPERATION] == LAZY)):
                self._settled[asked] = True
                break
        found: list[int] = self._places[places].tolist()
        return found

    def _reached(self, places: list[int]) -> list[int]:
        """These places and those that they lead to whose ranks are not known."""
        met = self._settled.copy()
        met[places] = True
        reached = list(places)
        for place in reached:
            after = self._after(place)
            fresh = after[~met[after]]
            if len(fresh):
                met[fresh] = True
                reached += dict.fromkeys(fresh.tolist())
        return reached

    def _relax(self, places: list[int]) -> None:
        """Lower the ranks of places until they are those of what they lead to; places without a way get none."""
        changed = True
        while changed:
            changed = False
            for place in reversed(places):
                rank = self._rank_of_place(place)
                if rank < self._places[place]:
                    self._places[place], changed = rank, True
        self._settled[places] = self._places[places] < FAR

    def _write(self, places: Iterable[int]) -> bool:
        """Write the code of these places; whether there was any."""
        written = False
        for place in places:
            try:
                self._machine.bound.write(place)
            except (LimitExceeded, UnsupportedConstraint) as error:
                if isinstance(error, LimitExceeded) and is_spent(error):
                    raise
                continue  # said when it is needed
            written = True
        self._machine.follow_program()
        self._follow_program()
        return written

    def _follow_program(self) -> None:
        """Make room for code that was written."""
        more = len(self._machine.code) - len(self._places)
        if more > 0:
            self._places = np.append(self._places, np.full(more, FAR, dtype=np.int64))
            self._settled = np.append(self._settled, np.zeros(more, dtype=np.bool_))

    def _after(self, place: int) -> Int32:
        """The places whose ranks make that of a place."""
        machine = self._machine
        operation, first, second = machine.code[place].tolist()
        if operation == ANY:
            found: Int32 = machine.alternatives[first:second]
        elif operation == NAMES:
            found = np.append(machine.named(place), np.array(machine.after_other(place), dtype=np.int32))
        elif operation == TOKEN:  # which no byte reads
            found = np.empty(0, dtype=np.int32)
        else:
            calls = [int(machine.entries[first])] if operation == CALL else []
            found = np.array([*calls, *machine.places_after(place)], dtype=np.int32)
        spend(NS_PER_PLACE + NS_PER_AFTER * len(found))
        return found

    def _rank_of_place(self, place: int) -> int:
        operation, ranks = int(self._machine.code[place, OPERATION]), self._places[self._after(place)]
        if operation == CALL:
            return int(ranks.sum())
        return int(ranks.min(initial=FAR)) + (operation != ANY)
