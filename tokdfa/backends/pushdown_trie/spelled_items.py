"""Where items go on once they have read their instruction, if only some bytes may be read.

A TERMINAL goes on behind it if its automaton comes to an end (`tokdfa.backends.pushdown_trie.spelled_states`). Strings
of JSON (NAMES, COUNTED) are *plain* if the characters of ASCII and the tails of UTF-8 are available, and the bytes of
names that may not be escaped: then every name can be spelled, wherever one has come to, and any number of characters.
What is not plain is searched: the row that holds this item alone is stepped by available bytes until the item has left
its instruction. If all bytes are available nothing is searched, and an item goes on behind any name of its instruction.

Cost: of what is plain O(names); a search some 50 us a row, and as many rows as the names have bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.name_tries import N_CHARACTER, N_HIGH, N_LOW, T_NODES, T_ORDER
from tokdfa.backends.pushdown_trie.names import AT_ROOT, PHASES, START
from tokdfa.backends.pushdown_trie.spelled_states import is_plain_string, is_plain_table
from tokdfa.core.budget import spend
from tokdfa.program.program import (
    COUNTED,
    COUNTED_TERMINAL,
    FIRST,
    NAMES,
    NAMES_OTHER,
    NAMES_TABLE,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TERMINAL,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.machine import Machine

#: What a row of a search takes, and a name.
NS_PER_ROW, NS_PER_NAME = 50_000, 100
#: The state of COUNTED before its opening quote.
COUNTED_START = 1


class SpelledItems:
    """See the module's docstring. `available`: bool, shape (256,). The lock of the machine's pool is held."""

    def __init__(self, machine: Machine, available: npt.NDArray[np.bool_]) -> None:
        self._machine, self._states = machine, machine.pool.spelled_states(available)
        self._available = np.flatnonzero(available)
        self._lacks = ~available
        self._known: dict[tuple[int, int], list[int]] = {}
        self._plain_tables: dict[int, bool] = {}

    def exits(self, place: int, state: int) -> list[int]:
        """The places at which an item of TERMINAL, NAMES or COUNTED can go on behind its instruction; each once."""
        operation, _, second = self._machine.code[place].tolist()
        if operation == TERMINAL:
            return [second] if self._states.can_end(state) else []
        found = self._known.get((place, state))
        if found is None:
            found = self._known[place, state] = list(dict.fromkeys(self._find(place, state, operation)))
        return found

    def _find(self, place: int, state: int, operation: int) -> list[int]:
        plain = self._is_plain_counted if operation == COUNTED else self._is_plain_names
        if not self._lacks.any() or ((operation == COUNTED or state == START) and plain(place)):
            found = self._machine.places_after(place)
            spend(NS_PER_NAME * len(found))
            return found
        return self._search(place, state)

    def _search(self, place: int, state: int) -> list[int]:
        """The places at which an item goes on, by stepping the row that holds nothing else."""
        machine, found = self._machine, list[int]()
        begin = machine.row_of_item(place, state)
        met, agenda = {begin}, [begin]
        while agenda:
            row = agenda.pop()  # the last one met: it has read most
            spend(NS_PER_ROW)
            following = np.unique(machine.following_rows(row)[self._available])
            for target in following[following >= 0].tolist():
                if target in met:
                    continue
                met.add(target)
                inside = False
                for here, inner, _ in machine.row_content(target):
                    exits = self._exits_of(place, here, inner)
                    inside = inside or exits is None
                    found += exits or []
                if found and machine.code[place, OPERATION] == COUNTED:
                    return found[:1]
                if inside:
                    agenda.append(target)
        return found

    def _exits_of(self, place: int, here: int, state: int) -> list[int] | None:
        """Where an item goes on that the one at `place` has become; None if it is still inside its instruction."""
        machine = self._machine
        operation = int(machine.code[here, OPERATION])
        if operation == COUNTED and machine.code[place, OPERATION] == COUNTED and state != COUNTED_START:
            return None
        if operation == TERMINAL and here in self._strings_of(place) and state != machine.code[here, FIRST]:
            return self.exits(here, state)
        if operation == NAMES and here == place and state != START:
            if not self._is_plain_names(place) or (state - AT_ROOT) % PHASES:
                return None
            node = (state - AT_ROOT) // PHASES
            return self._names_below(place, node)
        return [here]

    def _strings_of(self, place: int) -> list[int]:
        """The terminals that an item becomes one of before its string ends."""
        machine = self._machine
        at = int(machine.code[place, FIRST])
        column = NAMES_OTHER if machine.code[place, OPERATION] == NAMES else COUNTED_TERMINAL
        return [int(machine.arguments[at + column])]

    def _names_below(self, place: int, node: int) -> list[int] | None:
        """The places behind the names below a node of a plain table, and behind other strings; None for a node that
        stands for half a character.
        """
        machine = self._machine
        at = int(machine.code[place, FIRST])
        table, low, high, other, targets = machine.arguments[at : at + NAMES_TARGETS + 1].tolist()
        begin, order = machine.tables[table, [T_NODES, T_ORDER]].tolist()
        if machine.names[begin + node, N_CHARACTER] < 0:
            return None
        first, past = machine.names[begin + node, [N_LOW, N_HIGH]].tolist()
        spend(NS_PER_NAME * (past - first))
        names = [name for name in machine.order[order + first : order + past].tolist() if low <= name <= high]
        found: list[int] = machine.arguments[[targets + name - low for name in names]].tolist()
        return [*found, self._second(other)] if other >= 0 else found

    def _second(self, place: int) -> int:
        return int(self._machine.code[place, SECOND])

    def _is_plain_counted(self, place: int) -> bool:
        """Whether a COUNTED is plain."""
        machine = self._machine
        at = int(machine.arguments[machine.code[place, FIRST] + COUNTED_TERMINAL])
        return is_plain_string(machine.bound.terminal_at(at), self._lacks)

    def _is_plain_names(self, place: int) -> bool:
        """Whether a NAMES is plain."""
        machine = self._machine
        table = int(machine.arguments[machine.code[place, FIRST] + NAMES_TABLE])
        if table not in self._plain_tables:
            self._plain_tables[table] = is_plain_table(machine.program.source.name_tables[table], self._lacks)
        return self._plain_tables[table]
