"""Which states of a vocabulary's automata come to an end if only some bytes may be read.

Of an explicit automaton that is coreachability with the other bytes taken away, found for all of its states when one
is first asked for, O(transitions); of a lazy one see `tokdfa.backends.lazy_liveness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.liveness import leading_to
from tokdfa.backends.lazy_liveness import LazyLiveness
from tokdfa.core.budget import spend
from tokdfa.program.json_text import SPELLED_BY, escapes_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.program.program import NameTable, Terminal

    Bools = npt.NDArray[np.bool_]

#: What an entry of an automaton's table takes.
NS_PER_ENTRY = 10


class SpelledStates:
    """See the module's docstring. `available`: bool, shape (256,). The lock of the table's pool is held."""

    def __init__(self, automata: AutomatonTable, available: Bools) -> None:
        self._automata, self._available, self._is_everything = automata, available, bool(available.all())
        #: By the first state of an explicit automaton, and by the number of a lazy one.
        self._explicit: dict[int, Bools] = {}
        self._lazy: dict[int, LazyLiveness] = {}

    def can_end(self, state: int) -> bool:
        """Whether available bytes lead from a state to an end of its terminal. Raises LimitExceeded."""
        if self._is_everything:
            return True
        automata, available = self._automata, self._available
        state = automata.start_of_waiting(state)
        owner = int(automata.owner[state])
        if owner >= 0:
            if owner not in self._lazy:
                self._lazy[owner] = LazyLiveness(automata.lazy_automata[owner][0], available)
            return self._lazy[owner].can_end(int(automata.inner[state]))
        made = automata.explicit_of(state)
        if made.first not in self._explicit:
            spend(NS_PER_ENTRY * made.table.size)
            self._explicit[made.first] = leading_to(
                made.table[:, np.unique(made.byte_class[available])], made.accepting
            )
        return bool(self._explicit[made.first][state - made.first])


def is_plain_string(terminal: Terminal, lacks: Bools) -> bool:
    """Whether JSON strings of any length that a terminal takes can be ended without the lacking bytes, wherever one has
    come to, with as many characters as ever.
    """
    if escapes_of(terminal) is None and terminal.spelled_by is None:
        return False
    return not lacks[list(terminal.spelled_by or SPELLED_BY)].any()


def is_plain_table(table: NameTable, lacks: Bools) -> bool:
    """Whether each of the names, and any other string, can be ended so. O(characters of the names).

    Where only needed escapes may be written, the bytes of the names are needed, too.
    """
    raw = "".join(table.names).encode() if table.escapes == "needed" else b""
    return not lacks[[*SPELLED_BY, *(byte for byte in set(raw) if byte >= 0x20)]].any()
