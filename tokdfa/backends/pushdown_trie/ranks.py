"""The ranks of rows: how far an end is, for searches for one (`tokdfa.backends.some_end`).

The rank of a place is the least number of instructions that must still read something until its frame returns, that of
a row the least of its items' ranks with those of the places to which their stacks return. Code that is written later
counts as no way, and is written where there is no other.

Cost: O(instructions reached), once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.backends.pushdown_trie.stacks import ROOT, ROW_PLACE
from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.program.program import ANY, CALL, LAZY, OPERATION, RETURN_PLACE, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.backends.pushdown_trie.machine import Machine

#: What an instruction takes.
NS_PER_PLACE = 2_000


class Ranks:
    """See the module's docstring. `machine`: that of the rows; the lock of its pool is held."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._places: dict[int, int] = {RETURN_PLACE: 0}
        self._stacks: dict[int, int] = {ROOT: 0}

    def of_row(self, row: int) -> int:
        """The rank of a row."""
        items = self._machine.items(row)
        settle_ranks((stack for _, _, stack in items), self._stacks, self._ways_out)
        self._settle_places(place for place, _, _ in items)
        return min((self._places[place] + self._stacks[stack] for place, _, stack in items), default=FAR)

    def _ways_out(self, stack: int) -> list[tuple[int, int]]:
        """See `settle_ranks`."""
        entries = [entry for entry in self._machine.stack(stack) if entry[0] != ROW_PLACE]
        self._settle_places(place for place, _ in entries)
        return [(self._places[place], below) for place, below in entries]

    def _settle_places(self, places: Iterable[int]) -> None:
        """Know the ranks of places; write code where no other leads to an end."""
        asked = [place for place in places if place not in self._places]
        while asked:
            reached = self._reached(asked)
            self._relax(reached)
            asked = [place for place in asked if place not in self._places]
            if not (asked and self._write(place for place in reached if self._machine.code[place, OPERATION] == LAZY)):
                self._places.update(dict.fromkeys(asked, FAR))
                break

    def _reached(self, places: list[int]) -> list[int]:
        """These places and those that they lead to whose ranks are not known."""
        reached = dict.fromkeys(places)
        agenda = list(reached)
        while agenda:
            for after in self._after(agenda.pop()):
                if after not in reached and after not in self._places:
                    reached[after] = None
                    agenda.append(after)
        return list(reached)

    def _relax(self, places: list[int]) -> None:
        """Lower the ranks of places until they are those of what they lead to; places without a way get none."""
        changed = True
        while changed:
            changed = False
            for place in reversed(places):
                rank = self._rank_of_place(place)
                if rank < self._places.get(place, FAR):
                    self._places[place], changed = rank, True
            spend(NS_PER_PLACE * len(places))

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
        return written

    def _after(self, place: int) -> list[int]:
        """The places whose ranks make that of a place."""
        machine = self._machine
        operation, first, second = machine.code[place].tolist()
        if operation == ANY:
            found: list[int] = machine.alternatives[first:second].tolist()
            return found
        if operation == TOKEN:
            return []  # which no byte reads
        return [*([int(machine.entries[first])] if operation == CALL else []), *machine.places_after(place)]

    def _rank_of_place(self, place: int) -> int:
        operation = int(self._machine.code[place, OPERATION])
        ranks = [self._places.get(after, FAR) for after in self._after(place)]
        if operation == CALL:
            return sum(ranks)
        return min(ranks, default=FAR) + (operation != ANY)
