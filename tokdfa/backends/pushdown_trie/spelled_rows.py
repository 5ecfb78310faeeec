"""Which rows come to an end if only some bytes may be read, and how far the end is.

With all bytes, ranks lead searches for an end (`tokdfa.backends.some_end`).

A terminal counts only where its automaton can come to an end by the available bytes, a name only if they spell it
(`tokdfa.backends.pushdown_trie.spelled_items`). What is left are the rules of a grammar whose terminals have fewer
texts; which of them have texts at all is ordinary emptiness.

The *rank* of a place is the least number of instructions that must still read something until its frame returns, FAR if
none can: a shortest path in a graph of places in which a call adds two ways (Knuth 1977, "A generalization of
Dijkstra's algorithm"). It is found once for each place. Ranks add up along a stack, which has one if some place to
which it returns has one, with the stack below. A row has the least of its items. It is a least number of what was
looked at: code and names that nothing depends on are not.

If terminals may be cut in any way, a row has a rank iff some text of available bytes leads from it to an end. With the
longest match it is necessary only, as a terminal may swallow what would end the text.

*Code that is written later* counts as no way, and is written where there is no other: what was met last, which mostly
lies behind what was written before and leads on to the end, and what was met first, taking turns, lest one of them goes
on for ever. So are the names of a long list, but for the last few of them, which mostly tell. Turns double in length:
each turn of the other kind leaves the last place met elsewhere, and a short turn from there reaches no end far away.

Cost: 2 us an instruction reached, once; a row some 5 us.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.backends.pushdown_trie.rows import ROOT, ROW_PLACE
from tokdfa.backends.pushdown_trie.spelled_items import SpelledItems
from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.core.budget import spend
from tokdfa.program.program import ANY, CALL, COUNTED, LAZY, NAMES, OPERATION, RETURN_PLACE, TERMINAL, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.machine import Machine

#: What an instruction takes, each place that it leads to, and an item of a row.
NS_PER_PLACE, NS_PER_AFTER, NS_PER_ITEM = 2_000, 200, 2_000
#: So many places of a longer list are met first.
FEW = 8


class SpelledRows:
    """See the module's docstring. `machine`: that of the rows; the lock of its pool is held. `available`: bool, shape
    (256,); `special`: whether special tokens lead on, too.
    """

    def __init__(self, machine: Machine, available: npt.NDArray[np.bool_], special: bool = True) -> None:
        self._machine, self._spelled, self._special = machine, SpelledItems(machine, available), special
        self._forget()

    def _forget(self) -> None:
        """Know nothing."""
        #: The least ranks known; that of a place may fall when more code is written.
        self._places: dict[int, int] = {RETURN_PLACE: 0}
        #: By place that was met: those whose ranks make its own, and those whose ranks it makes.
        self._after: dict[int, list[int]] = {RETURN_PLACE: []}
        self._users: defaultdict[int, list[int]] = defaultdict(list)
        #: Code that was not written yet when it was met, in the order of meeting; so much of what was written later was
        #: looked at since.
        self._unwritten: dict[int, None] = {}
        self._followed = 0
        #: Places that lead to many, of which only some were met: all of them.
        self._long: dict[int, list[int]] = {}
        #: Places that have no rank, and never will.
        self._closed: set[int] = set()
        self._stacks: dict[int, int] = {ROOT: 0}
        self._rows: dict[int, int] = {}

    def rank(self, row: int) -> int:
        """The rank of a row, FAR if there is none. Raises what writing code raises, and LimitExceeded."""
        try:
            return self._rank(row)
        except BaseException:  # between things that belong together
            self._forget()
            raise

    def _rank(self, row: int) -> int:
        """The least rank of the row, its fallbacks, and the borders that are skipped from."""
        waiting = [row]
        while waiting:
            here = waiting[-1]
            below = [] if here in self._rows else self._rows_below(here)
            needed = [other for other in below if other not in self._rows]
            if needed:
                waiting += needed
            else:
                waiting.pop()
                if here not in self._rows:
                    self._rows[here] = self._of_items(here)
        return self._rows[row]

    def _rows_below(self, row: int) -> list[int]:
        """The rows that a row may go on as: its fallback, and the borders at which its skipped terminals began."""
        machine, (_, fallback) = self._machine, self._machine.row_kind(row)
        found = [fallback] if fallback >= 0 else []
        if machine.program.longest:
            for _, _, stack in machine.row_content(row):
                found += [below for place, below in machine.stack(stack) if place == ROW_PLACE]
        return [below for below in found if below != row]

    def _of_items(self, row: int) -> int:
        items = self._machine.row_content(row)
        spend(NS_PER_ITEM * (1 + len(items)))
        rank = min((self._rows[below] for below in self._rows_below(row)), default=FAR)
        settle_ranks((stack for _, _, stack in items), self._stacks, self._ways_out)
        for place, state, stack in items:
            if self._stacks[stack] < FAR:
                rank = min(rank, self._of_item(place, state) + self._stacks[stack])
        return min(rank, FAR)

    def _of_item(self, place: int, state: int) -> int:
        """The rank of an item without its stack; of many names that it may read, by the last that leads to an end."""
        for after in reversed(self._spelled.exits(place, state)) if state else [place]:
            self._settle([after])
            if after in self._places:
                return self._places[after] + bool(state)
        return FAR

    def _ways_out(self, stack: int) -> list[tuple[int, int]]:
        """See `settle_ranks`."""
        entries = [entry for entry in self._machine.stack(stack) if entry[0] != ROW_PLACE]
        self._settle([place for place, _ in entries])
        return [(self._places.get(place, FAR), below) for place, below in entries]

    def _settle(self, places: Iterable[int]) -> None:
        """Know the ranks of places, or that they have none; write code where no other leads to an end."""
        for asked in places:
            if asked in self._places or asked in self._closed:
                continue
            self._meet(asked)
            self._follow()
            below, turn = {asked}, 0
            self._spread(asked, below)
            while asked not in self._places:
                turn += 1
                order = reversed(self._unwritten) if turn.bit_length() % 2 else iter(self._unwritten)
                place = next((each for each in order if each in below), -1)
                if place >= 0:
                    self._machine.bound.write(place)
                    self._machine.follow_program()
                    self._follow()
                else:
                    place = next((each for each in self._long if each in below and each not in self._places), -1)
                    if place < 0:
                        self._closed.update(each for each in below if each not in self._places)
                        break
                    self._lead_on(place, self._long.pop(place))
                self._spread(place, below)

    def _spread(self, place: int, below: set[int]) -> None:
        """Add to `below` what lies below a place and might give it a rank."""
        agenda = [place]
        while agenda:
            for after in self._after[agenda.pop()]:
                if after not in below and after not in self._places and after not in self._closed:
                    below.add(after)
                    agenda.append(after)
                    spend(NS_PER_PLACE)

    def _meet(self, place: int) -> None:
        """Meet a place and what it leads to, and find their ranks."""
        agenda = [place]
        while agenda:
            here = agenda.pop()
            if here not in self._after:
                after = self._read_after(here)
                if len(after) > FEW:
                    self._long[here], after = after, after[-FEW:]
                agenda += self._lead(here, after)

    def _lead_on(self, place: int, after: list[int]) -> None:
        """A place leads to other places than when it was met."""
        for each in self._lead(place, after):
            self._meet(each)

    def _lead(self, place: int, after: list[int]) -> list[int]:
        """Note what a place leads to, and find its rank; the places that were not met before."""
        spend(NS_PER_PLACE + NS_PER_AFTER * len(after))
        if place not in self._after and self._machine.code[place, OPERATION] == LAZY:
            self._unwritten[place] = None
        self._after[place] = after
        for each in after:
            self._users[each].append(place)
        self._improve(place)
        return [each for each in after if each not in self._after]

    def _improve(self, place: int) -> None:
        """Find the rank of a place, and lower those that it makes."""
        agenda = [place]
        while agenda:
            here = agenda.pop()
            rank = self._rank_of_place(here)
            if rank < self._places.get(here, FAR):
                self._places[here] = rank
                agenda += self._users[here]
                spend(NS_PER_PLACE)

    def _follow(self) -> None:
        """Take in what was written since, here or by whoever else runs the program."""
        written = self._machine.program.source.written
        while self._followed < len(written):
            place = written[self._followed]
            if self._machine.code[place, OPERATION] == LAZY:  # the machine has not followed yet
                break
            self._followed += 1
            if place in self._unwritten:
                del self._unwritten[place]
                self._lead_on(place, self._read_after(place))

    def _read_after(self, place: int) -> list[int]:
        """The places whose ranks make that of a place; none if it cannot be read."""
        machine = self._machine
        operation, first, second = machine.code[place].tolist()
        if operation == ANY:
            found: list[int] = machine.alternatives[first:second].tolist()
            return found
        if operation == CALL:
            return [int(machine.entries[first]), second]
        if operation == TOKEN:
            return [second] if self._special else []
        if operation in (TERMINAL, NAMES, COUNTED):
            return self._spelled.exits(place, first if operation == TERMINAL else 1)
        return []

    def _rank_of_place(self, place: int) -> int:
        operation = int(self._machine.code[place, OPERATION])
        ranks = [self._places.get(after, FAR) for after in self._after[place]]
        if operation == CALL:
            return sum(ranks)
        return min(ranks, default=FAR) + (operation != ANY)
