"""A program bound to a vocabulary's automata: the arrays of the program that machines run.

In the program a TERMINAL names an automaton; here it has the state in which that begins in the table. The names of
NAMES are tries (`tokdfa.backends.pushdown_trie.names`).

*Growth.* Code that is written later (`ProgramBuilder.lazy`) is appended here, with its terminals and names, and only
that is bound. There is room for some; what outgrows it is copied to new arrays, **the code always among them**. Several
machines run one program, and each holds the arrays that it has seen. A machine with old code meets the LAZY there that
its old arrays know nothing beyond, asks for it, and gets the new arrays (`Rows.write_code`). A machine with the present
code sees what is appended in place; all that it may lead to is in arrays that it has, too.

Threads: `write` is called under the lock of the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.names import T_NODES, T_ORDER, bind_code
from tokdfa.backends.pushdown_trie.rows import PLACE_BITS
from tokdfa.backends.pushdown_trie.spelled_states import is_plain_string, is_plain_table
from tokdfa.errors import LimitExceeded
from tokdfa.program.program import COUNTED, COUNTED_TERMINAL, FIRST, OPERATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.program.program import Program, Terminal

Int32 = npt.NDArray[np.int32]

#: Items have 20 bits for a place.
MAX_PLACES = (1 << PLACE_BITS) - 1
#: Arrays of a program.
FIELDS = ("code", "alternatives", "entries", "arguments", "tables", "names", "order")
#: Room for code written later: so many times what there is, and so many more.
SPARE_TIMES, SPARE = 2, 64


class BoundProgram:
    """See the module's docstring. `anew`: build all automata, as if no constraint had had them before; that is to
    measure what it takes.

    Raises what making an automaton raises, and LimitExceeded.
    """

    def __init__(self, program: Program, automata: AutomatonTable, anew: bool = False) -> None:
        self.program, self._automata, self._anew = program, automata, anew
        self._starts: list[int] = []  # by terminal
        source = program.source
        #: Whether every state of all terminals and names can reach an end by bytes that are tokens by themselves.
        self.is_spelled = automata.has_all_bytes or _spells_strings(program, automata.available)
        with source.lock:  # other threads may be writing
            self._followed = len(source.written)
            self.code, self.alternatives, self.entries, self.arguments = source.copy_arrays()
            terminals, name_tables = source.terminals[:], source.name_tables[:]
        _check_size(len(self.code), len(self.entries))
        self._starts = self._new_starts(terminals)
        counts, self.names, self.order, self.tables = bind_code(self.code, self._starts, name_tables)
        self._used: dict[str, int] = {}  # of each array, from when it first grows
        if counts:
            self._count_characters(self.code, self.code, self.arguments)

    def write(self, place: int) -> None:
        """Write the code of the LAZY at a place, and bind it. Raises what making it raises, and LimitExceeded.

        If it raises, the program is as it was.
        """
        source = self.program.source
        with source.lock:
            source.write(place)
            begins = self._used or {name: len(getattr(self, name)) for name in FIELDS}
            begin = begins["code"]
            code = np.array(source.code[3 * begin :], dtype=np.int32).reshape(-1, 3)
            _check_size(begin + len(code), len(source.entries))
            # all that may raise comes first
            starts = self._starts + self._new_starts(source.terminals[len(self._starts) :])
            counts, names, order, tables = bind_code(code, starts, source.name_tables[begins["tables"] :])
            tables[:, T_NODES] += begins["names"]
            tables[:, T_ORDER] += begins["order"]
            added = {
                "alternatives": np.array(source.alternatives[begins["alternatives"] :], dtype=np.int32),
                "entries": np.array(source.entries[begins["entries"] :], dtype=np.int32),
                "arguments": np.array(source.arguments[begins["arguments"] :], dtype=np.int32),
                "tables": tables, "names": names, "order": order, "code": code,
            }  # fmt: skip
            past = {name: begins[name] + len(part) for name, part in added.items()}
            arrays = {name: getattr(self, name) for name in added}
            outgrown = [name for name, array in arrays.items() if past[name] > len(array)]
            for name in {*outgrown, "code"} if outgrown else ():
                grown = np.zeros((SPARE_TIMES * past[name] + SPARE, *arrays[name].shape[1:]), dtype=np.int32)
                grown[: begins[name]] = arrays[name][: begins[name]]
                arrays[name] = grown
            for name, part in added.items():
                arrays[name][begins[name] : past[name]] = part
            arrays["entries"][: begins["entries"]] = source.entries[: begins["entries"]]
            if counts:
                self._count_characters(code, arrays["code"], arrays["arguments"])
            vars(self).update(arrays, _starts=starts, _used=past)  # all at once, whatever is raised before
            for written in source.written[self._followed :]:
                if written < begin:
                    self.code[written] = source.code[3 * written : 3 * written + 3]
            self._followed = len(source.written)

    def terminal_at(self, place: int) -> Terminal:
        """What the TERMINAL at a place reads."""
        source = self.program.source
        return source.terminals[source.code[3 * place + FIRST]]

    def _count_characters(self, code: Int32, bound: Int32, arguments: Int32) -> None:
        """Have characters counted in the automata of the COUNTED of some code, whose terminals begin where these do.

        `bound`, `arguments`: of the whole program, with this code.
        """
        for at in code[code[:, OPERATION] == COUNTED, FIRST].tolist():
            place = arguments[at + COUNTED_TERMINAL]
            bound[place, FIRST] = self._automata.count_characters(int(bound[place, FIRST]))

    def _new_starts(self, terminals: Sequence[Terminal]) -> list[int]:
        """The states in which terminals begin."""
        automata = self._automata
        starts = automata.starts_of(terminals, self._anew)
        if not automata.has_all_bytes:
            self.is_spelled = self.is_spelled and all(automata.spelled[start] for start in starts)
        return starts


def _check_size(instructions: int, frames: int) -> None:
    if instructions > MAX_PLACES or frames > MAX_PLACES:
        raise LimitExceeded(
            f"the constraint needs {instructions} instructions; at most {MAX_PLACES} fit. Split it, or write long lists"
            " of alternatives as one terminal",
            limit="instructions",
            value=MAX_PLACES,
        )


def _spells_strings(program: Program, available: npt.NDArray[np.bool_]) -> bool:
    """Whether every name and every counted string, and what is written later, can be ended, wherever one has come to,
    by `available` bytes. Of counted strings it may be so if it is not known.
    """
    code, source, later = program.code, program.source, program.source.spelled_by
    if source.makes and (later is None or not available[list(later)].all()):
        return False
    terminals = code[program.arguments[code[code[:, OPERATION] == COUNTED, FIRST] + COUNTED_TERMINAL], FIRST]
    counted = [source.terminals[number] for number in set(terminals.tolist())]
    return all(is_plain_string(terminal, ~available) for terminal in counted) and all(
        is_plain_table(table, ~available) for table in source.name_tables
    )
