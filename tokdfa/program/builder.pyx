# cython: auto_pickle=False
"""Writing programs: instruction by instruction, back to front.

Each method of `ProgramBuilder` returns the place of an instruction that goes on at a given place, so what comes last in
a text is written first. Equal instructions are one place: they are interned by their operation and what tells them from
others of it, which is not where their arguments begin.

What is written so far, and how more is written when it is first needed, is a `GrowingCode`.

Cost: some 30 ns an instruction from compiled code, 0.1 us from Python.
"""

from cpython.array cimport array, resize_smart
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort, unique

from tokdfa.program.operations cimport (
    ANY, CALL, COUNTED, LAZY, NAMES, NAMES_HIGH, NAMES_LOW, NAMES_OTHER, NAMES_TARGETS, RETURN, RETURN_PLACE,
    TERMINAL, TOKEN,
)

from functools import partial
from operator import methodcaller
from os.path import commonprefix
from weakref import proxy

import numpy as np

from tokdfa.core.locks import new_lock
from tokdfa.core.nesting import with_room
from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.program.json_text import escapes_of, string_terminal
from tokdfa.program.program import COUNT_LIMIT, COUNT_STATES, MAX_WRITTEN, TABLE_CHARACTERS, UNBOUNDED, NameTable


cdef int32_t* number_at(array numbers, Py_ssize_t place) noexcept:
    return <int32_t*>numbers.data.as_ints + place


cdef int append(array numbers, const int32_t* added, Py_ssize_t count) except -1:
    """Append numbers to an array of int32."""
    cdef Py_ssize_t size = len(numbers)
    resize_smart(numbers, size + count)
    memcpy(number_at(numbers, size), added, 4 * count)
    return 0


cdef object rows_of(array numbers):
    """The numbers as they are: int32, shape (n,)."""
    cdef object found = np.empty(len(numbers), dtype=np.int32)
    cdef int32_t[::1] out = found
    if out.shape[0]:
        memcpy(&out[0], number_at(numbers, 0), 4 * out.shape[0])
    return found


def split_names(tuple names):
    """First and past of each stretch of names that one table takes; most lists are one. O(length of the names)."""
    cdef Py_ssize_t length = 0
    for name in names:
        length += len(name)
    if length <= TABLE_CHARACTERS // 2:  # characters beyond U+FFFF count twice
        return [(0, len(names))] if names else []
    found, first, size, before = [], 0, 0, ""
    for index, name in enumerate(names):
        own = name[len(commonprefix((before, name))):]
        units = len(own.encode("utf-16-le", "surrogatepass")) // 2
        if index > first and size + units > TABLE_CHARACTERS:
            found.append((first, index))
            first, size, units = index, 0, len(name.encode("utf-16-le", "surrogatepass")) // 2
        size, before = size + units, name
    return [*found, (first, len(names))]


cdef class GrowingCode:
    """See builder.pyi."""

    def __cinit__(self):
        self.spelled_by, self.open_names = None, "none"

    def __init__(self):
        self.terminals, self.token_sets, self.name_tables, self.frame_names, self.makes = [], [], [], [], []
        self.code, self.written = array("i", (RETURN, 0, 0)), array("i")
        self.alternatives, self.arguments, self.entries = array("i"), array("i"), array("i")
        self.lock = new_lock()

    def write(self, int32_t place):
        cdef int32_t target
        cdef int32_t* instruction
        with self.lock:
            if self.code[3 * place] == LAZY:
                make = self.makes[self.code[3 * place + 1]]
                if self.code[3 * place + 2]:
                    make = partial(make, self.code[3 * place + 2] - 1)
                target = with_room(make)
                append(self.alternatives, &target, 1)
                instruction = number_at(self.code, 3 * place)
                instruction[0], instruction[2] = ANY, len(self.alternatives)
                instruction[1] = instruction[2] - 1
                append(self.written, &place, 1)

    def write_all(self):
        cdef int32_t place = 0
        while 3 * place < len(self.code):
            if len(self.code) > 3 * MAX_WRITTEN:
                raise UnsupportedConstraint(
                    f"the constraint writes its instructions when they are needed, and has more than {MAX_WRITTEN};"
                    " compile it anew instead of saving it"
                )
            self.write(place)
            place += 1

    def copy_arrays(self):
        return rows_of(self.code).reshape(-1, 3), *map(rows_of, (self.alternatives, self.entries, self.arguments))

    def build(self, int32_t start, *, int32_t skip=-1, bint longest=False):
        cdef GrowingCode source = self
        if longest and (len(self.arguments) or self.makes):
            raise UnsupportedConstraint("names, counted strings and code written later need lexer=any, not longest")
        if not self.makes:  # what only serves to write more is not kept
            source = GrowingCode.__new__(GrowingCode)
            source.share(self)
        return Program(source, start, skip, longest)

    def calls_below(self, int32_t first, int32_t frame):
        cdef int32_t place
        for place in range(first, len(self.code) // 3):
            if number_at(self.code, 3 * place)[0] == CALL and number_at(self.code, 3 * place)[1] < frame:
                return True
        return False

    cdef int share(self, GrowingCode other) except -1:
        """Have what another code has, which is from now on the same."""
        self.terminals, self.token_sets, self.name_tables = other.terminals, other.token_sets, other.name_tables
        self.frame_names, self.makes, self.lock = other.frame_names, other.makes, other.lock
        self.code, self.alternatives, self.arguments = other.code, other.alternatives, other.arguments
        self.entries, self.written = other.entries, other.written
        self.spelled_by, self.open_names = other.spelled_by, other.open_names
        return 0


cdef class ProgramBuilder(GrowingCode):
    """See builder.pyi."""

    def __init__(self, escapes="all"):
        GrowingCode.__init__(self)
        self.escapes, self.any_string = escapes, -1
        self.terminal_numbers, self.table_numbers, self.counted_places = {}, {}, {}

    def copy(self):
        cdef ProgramBuilder made
        if self.makes:
            raise ValueError("code that is written later belongs to one builder")
        made = type(self).__new__(type(self))
        made.share(self)
        made.terminals, made.token_sets, made.name_tables = self.terminals[:], self.token_sets[:], self.name_tables[:]
        made.frame_names, made.makes = self.frame_names[:], []
        made.code, made.alternatives, made.arguments = self.code[:], self.alternatives[:], self.arguments[:]
        made.entries, made.written = self.entries[:], self.written[:]
        made.escapes, made.any_string = self.escapes, self.any_string
        made.terminal_numbers, made.table_numbers = self.terminal_numbers.copy(), self.table_numbers.copy()
        made.counted_places = {}
        if hasattr(self, "__dict__"):  # of a subclass
            made.__dict__.update(self.__dict__)
        return made

    def terminal(self, terminal not None):
        number = self.terminal_numbers.setdefault(terminal.key, len(self.terminals))
        if number == len(self.terminals):
            self.terminals.append(terminal)
        return number

    @property
    def string_terminal(self):
        if self.any_string < 0:
            self.any_string = self.terminal(string_terminal(self.escapes))
        return self.any_string

    def name_table(self, tuple names, escapes="all"):
        key = names, escapes
        number = self.table_numbers.get(key)
        if number is None:
            self.name_tables.append(NameTable.of(names, escapes))
            number = self.table_numbers[key] = len(self.name_tables) - 1
        return number

    def name_tables_of(self, tuple names, escapes="all"):
        return [(self.name_table(names[first:past], escapes), first) for first, past in split_names(names)]

    def frame(self, name):
        cdef int32_t entry = RETURN_PLACE
        self.frame_names.append(name)
        append(self.entries, &entry, 1)
        return len(self.frame_names) - 1

    def enter(self, Py_ssize_t frame, int32_t place):
        self.entries[frame] = place

    def read(self, int32_t terminal, int32_t following):
        return self.put(TERMINAL, terminal, following)

    def skip(self, int32_t terminal):
        return self.append(TERMINAL, terminal, RETURN_PLACE)

    def take(self, tokens, int32_t following):
        if tokens not in self.token_sets:
            self.token_sets.append(tokens)
        return self.put(TOKEN, self.token_sets.index(tokens), following)

    def call(self, int32_t frame, int32_t following):
        return self.put(CALL, frame, following)

    def any_of(self, places):
        cdef Py_ssize_t count = len(places)
        if count == 1:
            return places[0]
        if count == 2:  # most have two
            return self.either(places[0], places[1])
        self.words.clear()
        self.words.push_back(ANY)
        for place in places:
            self.words.push_back(place)
        return self.any_word()

    cdef int32_t either(self, int32_t first, int32_t second) except -1:
        """ANY of two places."""
        if first == second:
            return first
        self.words.clear()
        self.words.push_back(ANY)
        self.words.push_back(first)
        self.words.push_back(second)
        return self.any_word()

    cdef int32_t any_word(self) except -1:
        """ANY of the places in `words`, which begins with it."""
        cdef int32_t number, place, begin = len(self.alternatives)
        sort(self.words.begin() + 1, self.words.end())
        self.words.erase(unique(self.words.begin() + 1, self.words.end()), self.words.end())
        if self.words.size() == 2:
            return self.words[1]
        place = self.known(self.words.data(), self.words.size(), &number)
        if place < 0:
            append(self.alternatives, self.words.data() + 1, self.words.size() - 1)
            place = self.place_of[number] = self.append(ANY, begin, len(self.alternatives))
        return place

    def names(self, int32_t table, int32_t low, int32_t high, targets, int32_t other=-1):
        cdef int32_t number, place, size = len(self.name_tables[table].names), begin = len(self.arguments)
        cdef int32_t count = len(targets)
        if not count and other >= 0:
            low, high = size, -1  # no name is allowed, only others
        elif not 0 <= low <= high < size or count != high - low + 1:
            raise ValueError(f"names {low} to {high} with {count} targets do not fit their table")
        self.words.clear()
        for word in (NAMES, table, low, high, other):
            self.words.push_back(word)
        for word in targets:
            self.words.push_back(word)
        place = self.known(self.words.data(), self.words.size(), &number)
        if place < 0:
            self.check_other(other)
            append(self.arguments, self.words.data() + 5, count)
            place = self.place_of[number] = self.window(table, low, high, begin, other)
        return place

    def reserve_targets(self, Py_ssize_t count):
        cdef Py_ssize_t begin = len(self.arguments)
        resize_smart(self.arguments, begin + count)
        memset(number_at(self.arguments, begin), 0, 4 * count)
        return begin

    def names_at(self, int32_t table, int32_t low, int32_t high, int32_t targets, int32_t other=-1):
        self.check_other(other)
        return self.window(table, low, high, targets, other)

    cdef int32_t window(self, int32_t table, int32_t low, int32_t high, int32_t targets, int32_t other) except -1:
        """`names_at` of what fits."""
        cdef int32_t[5] added = [table, low, high, other, targets]
        cdef int32_t begin = len(self.arguments)
        append(self.arguments, added, 5)
        return self.append(NAMES, begin, 0)

    def names_instead(self, int32_t key, int32_t table, int32_t index, int32_t place):
        cdef const int32_t* instruction
        cdef const int32_t* of_names
        cdef int32_t here, low, high, begin
        cdef list found = [], waiting = [key] if key >= 0 else []
        while waiting:
            here = waiting.pop()
            instruction = number_at(self.code, 3 * here)
            if instruction[0] == ANY:
                waiting += self.alternatives[instruction[1]:instruction[2]]
                continue
            if instruction[0] == NAMES:
                of_names = number_at(self.arguments, instruction[1])
                if of_names[NAMES_LOW] <= index <= of_names[NAMES_HIGH]:
                    low, high, begin = of_names[NAMES_LOW], of_names[NAMES_HIGH], of_names[NAMES_TARGETS]
                    changed = self.arguments[begin:begin + high - low + 1]
                    changed[index - low] = place
                    here, place = self.names(table, low, high, changed, of_names[NAMES_OTHER]), -1
            found.append(here)
        return self.any_of(found if place < 0 else [*found, self.names(table, index, index, [place])])

    def check_other(self, int32_t other):
        if other >= 0 and (
            self.code[3 * other] != TERMINAL or not escapes_of(self.terminals[self.code[3 * other + 1]])
        ):
            raise ValueError(f"what reads other strings is a TERMINAL of any string, not instruction {other}")

    def counted(self, minimum, maximum, int32_t following, terminal=None, states=22):
        cdef int32_t begin, text = self.put(TERMINAL, self.string_terminal if terminal is None else terminal, following)
        if minimum <= 0 and maximum is None:
            return text
        if maximum is not None and maximum < max(minimum, 0):
            raise EmptyLanguageError(f"no string has at least {minimum} and at most {maximum} characters")
        minimum = max(minimum, 0)
        key = minimum, maximum, text
        found = self.counted_places.get(key)
        if found is None:
            whole = maximum if maximum is not None else minimum
            cap = min(whole, COUNT_LIMIT, COUNT_STATES // states - 1)
            beyond = min(whole - cap, UNBOUNDED - 1) if maximum is not None else UNBOUNDED
            on = -1
            if whole > cap:
                rest = None if maximum is None else maximum - cap
                # a string so long is rarely read, and its maximum may be so high that nobody could write all its code
                go_on = methodcaller("counted", minimum - cap, rest, following, terminal, states)
                on = self.lazy(partial(go_on, proxy(self)))
            begin = len(self.arguments)
            self.arguments.extend(array("i", (text, minimum, cap, on, beyond)))
            found = self.counted_places[key] = self.append(COUNTED, begin, following)
        return found

    def lazy(self, make):
        self.makes.append(make)
        return self.append(LAZY, len(self.makes) - 1, 0)

    def lazy_run(self, make, numbers):
        cdef int32_t first = len(self.code) // 3, number
        self.makes.append(make)
        for number in numbers:
            self.append(LAZY, len(self.makes) - 1, number + 1)
        return first

    cdef int32_t put(self, int32_t operation, int32_t first, int32_t second) except -1:
        """The place of an instruction without arguments."""
        cdef int32_t[3] content = [operation, first, second]
        cdef int32_t number, place = self.known(content, 3, &number)
        if place < 0:
            place = self.place_of[number] = self.append(operation, first, second)
        return place

    cdef int32_t known(self, const int32_t* content, size_t size, int32_t* number) except -2:
        """The place of a content, or -1: then whoever asks writes it and notes its place by its number."""
        number[0] = self.contents.intern(content, size)
        if number[0] >= <int32_t>self.place_of.size():
            self.place_of.resize(number[0] + 1, -1)
        return self.place_of[number[0]]

    cdef int32_t append(self, int32_t operation, int32_t first, int32_t second) except -1:
        """The place of a new instruction."""
        cdef int32_t[3] added = [operation, first, second]
        append(self.code, added, 3)
        return len(self.code) // 3 - 1


class Program:
    """See builder.pyi."""

    def __init__(self, source, start, skip=-1, longest=False):
        self.source, self.start, self.skip, self.longest = source, start, skip, longest
        self._arrays, self._copied = None, (0, 0)

    def arrays(self):
        source = self.source
        with source.lock:  # other threads may be writing
            stand = len(source.code), len(source.written)
            if self._arrays is None or self._copied != stand:
                self._arrays, self._copied = source.copy_arrays(), stand
            return self._arrays

    @property
    def code(self):
        return self.arrays()[0]

    @property
    def alternatives(self):
        return self.arrays()[1]

    @property
    def entries(self):
        return self.arrays()[2]

    @property
    def arguments(self):
        return self.arrays()[3]

    def frame_name(self, frame):
        name = self.source.frame_names[frame]
        return name if isinstance(name, str) else name()
