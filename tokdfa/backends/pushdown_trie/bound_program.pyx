# cython: auto_pickle=False
"""A program bound to a vocabulary's automata: the arrays of the program that machines run.

In the program a TERMINAL names an automaton; here it has the state in which that begins in the table. The names of
NAMES are tries (`tokdfa.backends.pushdown_trie.names`).

*Growth.* Code that is written later (`ProgramBuilder.lazy`) is appended here, with its terminals and names, and only
that is bound. All arrays are in one piece of memory, with room for some more numbers each; when one outgrows it, all
are copied to a larger one. Several machines run one program, and each holds the memory that it has seen. A machine with
an old one meets the LAZY there that its code knows nothing beyond, asks for it, and gets the new one
(`Rows.write_code`). A machine with the present one sees what is appended in place.

Threads: `write` is called under the lock of the pool.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from tokdfa.backends.pushdown_trie.name_tries cimport Name, NameTables, NameTrie, add_tables
from tokdfa.program.builder cimport GrowingCode, number_at
from tokdfa.program.operations cimport COUNTED, COUNTED_TERMINAL, TERMINAL

import numpy as np

from tokdfa.errors import LimitExceeded

#: Items have 20 bits for a place.
MAX_PLACES = (1 << 20) - 1

ctypedef const void* ConstVoid

cdef enum:
    # numbers of an entry
    INSTRUCTION = sizeof(Instruction) // sizeof(int32_t)
    TABLE = sizeof(NameTrie) // sizeof(int32_t)
    NODE = sizeof(Name) // sizeof(int32_t)
    # Room for code written later: so many times what there is, and so many more entries.
    SPARE_TIMES = 2
    SPARE = 64

cdef int64_t[PARTS] WIDTHS = [INSTRUCTION, 1, 1, 1, TABLE, NODE, 1]


cdef class ProgramArrays:
    """See bound_program.pyi."""

    cdef int32_t* at(self, int part) noexcept:
        return self.data + self.begin[part]

    def array(self, int part):
        cdef int64_t begin = self.begin[part], used = self.used[part]
        if self.views[part] is None or self.seen[part] != used:
            view = self.memory[begin:begin + used]
            self.views[part] = view.reshape(-1, WIDTHS[part]) if WIDTHS[part] > 1 else view
            self.seen[part] = used
        return self.views[part]

    @property
    def nbytes(self):
        return self.memory.nbytes


cdef ProgramArrays new_arrays(const int64_t* room):
    """Empty arrays with room for so many numbers each."""
    cdef ProgramArrays made = ProgramArrays.__new__(ProgramArrays)
    cdef int64_t past = 0
    cdef int part
    cdef int32_t[::1] memory
    for part in range(PARTS):
        made.begin[part], made.used[part], made.room[part] = past, 0, room[part]
        past += room[part]
    made.memory, made.views = np.empty(past, dtype=np.int32), [None] * PARTS
    memory = made.memory
    made.data = &memory[0]  # there is a RETURN
    return made


cdef class BoundProgram:
    """See bound_program.pyi."""

    def __init__(self, program, automata, anew=False):
        self.program, self.source, self.automata, self.anew = program, program.source, automata, anew
        self.starts = []
        self.is_spelled = automata.has_all_bytes or _spells_strings(program, automata.available)
        with self.source.lock:  # other threads may be writing
            self.extend()
            self.followed = len(self.source.written)

    def write(self, int64_t place):
        cdef int64_t begin
        cdef int32_t written
        with self.source.lock:
            self.source.write(place)
            begin = self.arrays.used[CODE]
            self.extend()
            for written in self.source.written[self.followed:]:
                if INSTRUCTION * written < begin:
                    memcpy(
                        self.arrays.at(CODE) + INSTRUCTION * written,
                        number_at(self.source.code, INSTRUCTION * written),
                        sizeof(Instruction),
                    )
            self.followed = len(self.source.written)

    def terminal_at(self, int64_t place):
        return self.source.terminals[self.source.code[INSTRUCTION * place + 1]]

    cdef int extend(self) except -1:
        """Bind what the source has more. If it raises, the program is as it was."""
        cdef ProgramArrays now = self.arrays, then = now
        cdef NameTables names
        cdef int64_t[PARTS] had
        cdef int64_t[PARTS] have
        cdef int64_t[PARTS] room
        cdef ConstVoid[PARTS] added
        cdef Instruction* instruction
        cdef bint is_outgrown = now is None
        cdef int part
        cdef int64_t place
        cdef GrowingCode source = self.source
        for part in range(PARTS):
            had[part] = 0 if now is None else now.used[part]
        _check_size(len(source.code) // INSTRUCTION, len(source.entries))
        starts = self.starts + self.new_starts(source.terminals[len(self.starts):])
        add_tables(source.name_tables[had[TABLES] // TABLE:], &names, had[NODES] // NODE, had[ORDER])
        have[CODE], have[ALTERNATIVES], have[ENTRIES] = len(source.code), len(source.alternatives), len(source.entries)
        have[ARGUMENTS], have[TABLES] = len(source.arguments), had[TABLES] + TABLE * <int64_t>names.tables.size()
        have[NODES] = had[NODES] + NODE * <int64_t>names.nodes.size()
        have[ORDER] = had[ORDER] + <int64_t>names.order.size()
        for part in range(PARTS):
            is_outgrown = is_outgrown or have[part] > now.room[part]
            room[part] = have[part] if now is None else SPARE_TIMES * have[part] + SPARE * WIDTHS[part]
        if is_outgrown:
            then = new_arrays(room)
            for part in range(PARTS if now is not None else 0):
                memcpy(then.at(part), now.at(part), 4 * had[part])
        added[CODE] = number_at(source.code, had[CODE])
        added[ALTERNATIVES] = number_at(source.alternatives, had[ALTERNATIVES])
        added[ENTRIES] = number_at(source.entries, had[ENTRIES])
        added[ARGUMENTS] = number_at(source.arguments, had[ARGUMENTS])
        added[TABLES], added[NODES], added[ORDER] = names.tables.data(), names.nodes.data(), names.order.data()
        for part in range(PARTS):
            if have[part] > had[part]:
                memcpy(then.at(part) + had[part], added[part], 4 * (have[part] - had[part]))
        if had[ENTRIES]:  # of frames that were entered later
            memcpy(then.at(ENTRIES), number_at(source.entries, 0), 4 * had[ENTRIES])
        for place in range(had[CODE] // INSTRUCTION, have[CODE] // INSTRUCTION):
            instruction = <Instruction*>then.at(CODE) + place
            if instruction.operation == TERMINAL:
                instruction.first = starts[instruction.first]
        for place in range(had[CODE] // INSTRUCTION, have[CODE] // INSTRUCTION):
            instruction = <Instruction*>then.at(CODE) + place
            if instruction.operation == COUNTED:  # its terminal begins where its characters are counted
                instruction = <Instruction*>then.at(CODE) + then.at(ARGUMENTS)[instruction.first + COUNTED_TERMINAL]
                instruction.first = self.automata.count_characters(instruction.first)
        for part in range(PARTS):
            then.used[part] = have[part]
        self.starts, self.arrays = starts, then
        return 0

    cdef list new_starts(self, list terminals):
        """The states in which terminals begin."""
        found = self.automata.starts_of(terminals, self.anew)
        if not self.automata.has_all_bytes:
            self.is_spelled = self.is_spelled and all([self.automata.spelled[start] for start in found])
        return found


def _check_size(int64_t instructions, int64_t frames):
    if instructions > MAX_PLACES or frames > MAX_PLACES:
        raise LimitExceeded(
            f"the constraint needs {instructions} instructions; at most {MAX_PLACES} fit. Split it, or write long lists"
            " of alternatives as one terminal",
            limit="instructions",
            value=MAX_PLACES,
        )


def _spells_strings(program, available):
    """Whether every name and every counted string, and what is written later, can be ended, wherever one has come to,
    by `available` bytes. Of counted strings it may be so if it is not known.
    """
    from tokdfa.backends.pushdown_trie.spelled_states import is_plain_string, is_plain_table

    code, source, later = program.code, program.source, program.source.spelled_by
    if source.makes and (later is None or not available[list(later)].all()):
        return False
    terminals = code[program.arguments[code[code[:, 0] == COUNTED, 1] + COUNTED_TERMINAL], 1]
    counted = [source.terminals[number] for number in set(terminals.tolist())]
    return all([is_plain_string(terminal, ~available) for terminal in counted]) and all(
        [is_plain_table(table, ~available) for table in source.name_tables]
    )
