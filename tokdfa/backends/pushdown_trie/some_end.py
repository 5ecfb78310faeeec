"""Some way from a row to an end of the text, not always the shortest: it bounds the least number of tokens from above.

Words. The *rank* of a place is the least number of instructions that must still read something until its frame
returns, that of a row the least of its items' ranks with those of the places to which their stacks return. Code that
is written later counts as no way, and is written where there is no other.

A search over rows, byte by byte, takes the row of the least rank first (greedy best-first search, Russell and Norvig,
"Artificial Intelligence", section 3.5). Ranks fall along a way to an end, so it goes straight through the members that
an object requires, and what is read inside one instruction is met breadth first. A search ends where an earlier one
has passed.

Cost: ranks O(instructions reached), once; a search some 30 us a row, and as many rows as the end has bytes if nothing
leads astray.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.stacks import ROOT, ROW_PLACE
from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.program.program import ANY, CALL, LAZY, OPERATION, RETURN_PLACE, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.backends.pushdown_trie.machine import Machine

#: No way is known.
FAR = 1 << 30
#: Rows of one search at most.
MOST_ROWS = 5_000
#: What a row and an instruction take.
NS_PER_ROW, NS_PER_PLACE = 30_000, 2_000


class SomeEnd:
    """See the module's docstring. `machine`: that of the rows; the lock of its pool is held."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._places: dict[int, int] = {RETURN_PLACE: 0}
        self._stacks: dict[int, int] = {ROOT: 0}
        #: Row -> the byte that leads nearer to an end, and the row after it.
        self._ways: dict[int, tuple[int, int]] = {}

    def way(self, row: int) -> tuple[bytes, list[int]] | None:
        """Bytes that lead from a row to an end, and the rows before each of them and after the last; None if none are
        found.
        """
        if not self._find(row):
            return None
        text, rows = bytearray(), [row]
        while rows[-1] in self._ways:
            byte, after = self._ways[rows[-1]]
            text.append(byte)
            rows.append(after)
        return bytes(text), rows

    def _find(self, row: int) -> bool:
        """Search for an end, and note the way to it."""
        machine = self._machine
        came_from: dict[int, tuple[int, int]] = {row: (-1, 0)}
        agenda = [(0, 0, row)]
        while agenda and len(came_from) <= MOST_ROWS:
            here = heappop(agenda)[2]
            spend(NS_PER_ROW)
            if here in self._ways or machine.can_end(here):
                while here != row:
                    before, byte = came_from[here]
                    self._ways[before] = byte, here
                    here = before
                return True
            following = machine.following_rows(here)
            for byte in np.flatnonzero(following >= 0).tolist():
                target = int(following[byte])
                if target not in came_from:
                    came_from[target] = here, byte
                    heappush(agenda, (self._rank(target), len(came_from), target))
        return False

    def _rank(self, row: int) -> int:
        if row in self._ways or self._machine.can_end(row):
            return 0
        items = self._machine.items(row)
        self._settle_stacks(stack for _, _, stack in items)
        self._settle_places(place for place, _, _ in items)
        return min((self._places[place] + self._stacks[stack] for place, _, stack in items), default=FAR)

    def _settle_stacks(self, stacks: Iterable[int]) -> None:
        """Know the ranks of stacks, the innermost first."""
        waiting = [stack for stack in stacks if stack not in self._stacks]
        while waiting:
            stack = waiting[-1]
            entries = [entry for entry in self._machine.stack(stack) if entry[0] != ROW_PLACE]
            if stack not in self._stacks:
                self._stacks[stack] = FAR  # of a frame that calls itself first: another caller is nearer
                waiting += [rest for _, rest in entries if rest not in self._stacks]
                continue
            waiting.pop()
            self._settle_places(place for place, _ in entries)
            ranks = [self._places[place] + self._stacks[rest] for place, rest in entries]
            self._stacks[stack] = min(ranks, default=FAR)

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
