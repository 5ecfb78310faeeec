"""Writing forms: instruction by instruction, back to front.

Each method of `FormBuilder` returns the place of an instruction that goes on at a given place, so what comes last in a
text is written first. Equal instructions are one place.

*Code that is written later.* `FormBuilder.later` takes a function that writes a part of the program when it is first
needed: most of a large schema is never read by one text. Places never change their numbers.
`tokdfa.pushdown.program` follows the growth.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import EmptyLanguageError, LimitExceeded, UnsupportedConstraint
from tokdfa.locks import new_lock
from tokdfa.pushdown.form import (
    ANY,
    CALL,
    COUNT_LIMIT,
    COUNTED,
    LATER,
    NAMES,
    RETURN,
    RETURN_PLACE,
    TEXT,
    TOKEN,
    UNBOUNDED,
    Form,
    FrameNames,
    MemberChain,
    NameTable,
    Text,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.pushdown.json_text import Escapes

#: Instructions that may be written before a form is saved.
MAX_WRITTEN = 200_000
#: Keys of the texts of any string.
_STRING_KEYS = (b"json string all", b"json string needed")


@dataclass(eq=False)
class FormBuilder:
    """Writes a form back to front: each method returns the place of an instruction that goes on at a given place.

    Not thread-safe; `write`, which is called while texts are read, holds `lock`.
    """

    texts: list[Text] = field(default_factory=list)
    token_sets: list[SpecialTokens] = field(default_factory=list)
    name_tables: list[NameTable] = field(default_factory=list)
    #: Tables and texts that NAMES puts together.
    pairs: list[tuple[int, int]] = field(default_factory=list)
    #: The instructions, three numbers each, and what they refer to.
    code: array[int] = field(default_factory=lambda: array("i", (RETURN, 0, 0)))
    alternatives: array[int] = field(default_factory=lambda: array("i"))
    arguments: array[int] = field(default_factory=lambda: array("i"))
    entries: array[int] = field(default_factory=lambda: array("i"))
    #: Places of which code was written later, in the order of writing.
    written: array[int] = field(default_factory=lambda: array("i"))
    #: How a string is written that `counted` reads; not to be changed later.
    escapes: Escapes = "all"
    lock: threading.RLock = field(default_factory=new_lock)
    _string_text: int = -1
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _names: list[str | Callable[[], str]] = field(default_factory=list)
    _text_numbers: dict[tuple[bytes, bool], int] = field(default_factory=dict)
    _table_numbers: dict[tuple[tuple[str, ...], str], int] = field(default_factory=dict)
    _pair_numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _makes: list[Callable[[], int]] = field(default_factory=list)

    def copy(self) -> FormBuilder:
        """A builder that has written the same and goes on by itself. Raises ValueError if code waits to be written."""
        if self._makes:
            raise ValueError("code that is written later belongs to one builder")
        return FormBuilder(
            self.texts.copy(),
            self.token_sets.copy(),
            self.name_tables.copy(),
            self.pairs.copy(),
            self.code[:],
            self.alternatives[:],
            self.arguments[:],
            self.entries[:],
            self.written[:],
            self.escapes,
            _string_text=self._string_text,
            _places=self._places.copy(),
            _names=self._names.copy(),
            _text_numbers=self._text_numbers.copy(),
            _table_numbers=self._table_numbers.copy(),
            _pair_numbers=self._pair_numbers.copy(),
        )

    def text(self, text: Text) -> int:
        """The number of a text; texts of equal key and laziness have one number."""
        number = self._text_numbers.setdefault((text.key, text.lazy), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    @property
    def string_text(self) -> int:
        """The number of the text of any JSON string."""
        if self._string_text < 0:
            from tokdfa.pushdown.json_text import string_text

            self._string_text = self.text(string_text(self.escapes))
        return self._string_text

    def name_table(self, names: tuple[str, ...], escapes: Escapes = "all") -> int:
        """The number of a table of names; tables of equal content have one number. O(length of the names).

        `escapes`: ``all``: any character may be escaped; ``needed``: only those that cannot stand raw. Raises
        UnsupportedConstraint for a name with a surrogate alone, ValueError for no names or equal ones.
        """
        key = names, escapes
        number = self._table_numbers.get(key)
        if number is None:
            self.name_tables.append(NameTable.of(names, escapes))
            number = self._table_numbers[key] = len(self.name_tables) - 1
        return number

    def frame(self, name: str | Callable[[], str]) -> int:
        """The number of a new frame; `enter` says later where it begins. `name`: or what makes it, if anybody asks."""
        self._names.append(name)
        self.entries.append(RETURN_PLACE)
        return len(self._names) - 1

    def enter(self, frame: int, place: int) -> None:
        """Let a frame begin at a place."""
        self.entries[frame] = place

    def read(self, text: int, following: int) -> int:
        """TEXT."""
        instruction = TEXT, text, following
        found = self._places.get(instruction)
        if found is None:  # as `_put`; most instructions are made here, and a call costs as much as the rest
            code = self.code
            found = self._places[instruction] = len(code) // 3
            code.extend(instruction)
        return found

    def take(self, tokens: SpecialTokens, following: int) -> int:
        """TOKEN."""
        if tokens not in self.token_sets:
            self.token_sets.append(tokens)
        return self._put(TOKEN, self.token_sets.index(tokens), following)

    def call(self, frame: int, following: int) -> int:
        """CALL."""
        return self._put(CALL, frame, following)

    def any_of(self, places: Sequence[int]) -> int:
        """ANY of places, which reads nothing if there are none; of one it is that place."""
        if len(places) == 1:
            return places[0]
        if len(places) == 2:  # most have two
            first, second = places
            if first == second:
                return first
            distinct: tuple[int, ...] = (first, second) if first < second else (second, first)
        else:
            distinct = tuple(sorted(set(places)))
            if len(distinct) == 1:
                return distinct[0]
        found = self._places.get((ANY, distinct))
        if found is None:
            begin = len(self.alternatives)
            self.alternatives.extend(distinct)
            found = self._places[ANY, distinct] = self._append(ANY, begin, begin + len(distinct))
        return found

    def names(self, table: int, low: int, high: int, targets: Sequence[int], other: int = -1) -> int:
        """NAMES: a JSON string that spells one of the names `low` to `high` (inclusive) of a table, in any spelling.

        It goes on at ``targets[i - low]`` after the closing quote of name i. `other`: the place of a TEXT that reads
        every string that is none of the table's names, from its opening quote on; or -1. A name of the table outside
        of the window is refused, with `other`, too; without targets all names are. The text must be that of any JSON
        string: it holds the names, and when they are taken away nothing becomes a dead end. Raises ValueError if the
        arguments do not fit.
        """
        key = NAMES, table, low, high, tuple(targets), other
        found = self._places.get(key)
        if found is None:
            size = len(self.name_tables[table].names)
            if not targets and other >= 0:
                low, high = size, -1  # no name is allowed, only others
            elif not 0 <= low <= high < size or len(targets) != high - low + 1:
                raise ValueError(f"names {low} to {high} with {len(targets)} targets do not fit their table")
            begin = len(self.arguments)
            self.arguments.extend(targets)
            found = self._places[key] = self.names_at(table, low, high, begin, other)
        return found

    def reserve_targets(self, count: int) -> int:
        """Where in `arguments` the targets of so many names begin; whoever reserved them fills them in."""
        begin = len(self.arguments)
        self.arguments.extend(array("i", bytes(self.arguments.itemsize * count)))
        return begin

    def names_at(self, table: int, low: int, high: int, targets: int, other: int = -1) -> int:
        """`names`, the targets being in `arguments` from an index on: windows of one list of members share them."""
        pair = self._pair_of(table, other) if other >= 0 else -1
        begin = len(self.arguments)
        self.arguments.extend((table, low, high, other, pair, targets))
        return self._append(NAMES, begin, 0)

    def other_members(
        self, table: int, string: int, comma: int, colon: int, close: int, value: Callable[[int], int]
    ) -> tuple[int, int, int]:
        """(what follows any member, a name that is in no table, the first member): members of any other names, if
        the last is read first.

        `table`: of the names that they must not have, or -1; `string`: the text of any string; `value`: writes what
        reads a value before a place. As `frame`, `read`, `names` and `any_of` would write it, with fewer calls.
        """
        code, alternatives = self.code, self.alternatives
        loop = self.frame("more members")
        after = self._append(CALL, loop, RETURN_PLACE)
        named = value(after)
        place = len(code) // 3
        code.extend((TEXT, colon, named, TEXT, string, place))
        other = more = place + 1
        if table >= 0:
            begin = len(self.arguments)
            size = len(self.name_tables[table].names)
            self.arguments.extend((table, size, -1, other, self._pair_of(table, other), begin))
            code.extend((NAMES, begin, 0))
            more = place + 2
        begin = len(alternatives)
        alternatives.extend((more + 1, close) if close > more + 1 else (close, more + 1))
        code.extend((TEXT, comma, more, ANY, begin, begin + 2))
        self.entries[loop] = more + 2
        return after, other, more

    def member_chain(self, chain: MemberChain) -> int:
        """The members of an object that come in order: the place of the first name.

        See `MemberChain`. What `read`, `names` and `any_of` would write one by one, with fewer calls, and with one list
        of targets for all windows: O(members).
        """
        code, arguments, alternatives = self.code, self.arguments, self.alternatives
        table, other, comma, colon, close = chain.table, chain.other, chain.comma, chain.colon, chain.close
        pair = self._pair_of(table, other) if other >= 0 else -1
        after, key, is_done, reach = chain.after, chain.more, True, len(chain.values) - 1
        targets = self.reserve_targets(len(chain.values))
        for k in range(reach, -1, -1):
            value = chain.values[k]
            place = len(code) // 3
            if not isinstance(value, int):
                value = value(after)
                place = len(code) // 3
                code.extend((TEXT, colon, value))
                arguments[targets + k] = place
                key = place + 1
            else:
                read, number = (TEXT, value) if value >= 0 else (CALL, ~value)
                code.extend((read, number, after, TEXT, colon, place))
                arguments[targets + k] = place + 1
                key = place + 2
            if chain.required[k]:
                is_done, reach = False, k
            begin = len(arguments)
            arguments.extend((table, k, reach, other if is_done else -1, pair if is_done else -1, targets + k))
            after = key + 1
            if is_done:
                begin_any = len(alternatives)
                alternatives.extend((after, close))
                code.extend((NAMES, begin, 0, TEXT, comma, key, ANY, begin_any, begin_any + 2))
                after += 1
            else:
                code.extend((NAMES, begin, 0, TEXT, comma, key))
        return key

    def _pair_of(self, table: int, other: int) -> int:
        """The number of a table and the text of the TEXT that reads other strings. Raises ValueError if it is none."""
        if self.code[3 * other] != TEXT or self.texts[self.code[3 * other + 1]].key not in _STRING_KEYS:
            raise ValueError(f"what reads other strings is a TEXT of any string, not instruction {other}")
        both = table, self.code[3 * other + 1]
        pair = self._pair_numbers.setdefault(both, len(self.pairs))
        if pair == len(self.pairs):
            self.pairs.append(both)
        return pair

    def counted(self, minimum: int, maximum: int | None, following: int) -> int:
        """COUNTED: any JSON string of `minimum` to `maximum` (None: any number of) characters, then `following`.

        A character is a code point, however it is written. Raises EmptyLanguageError if there is no such number.
        """
        text = self.read(self.string_text, following)
        if minimum <= 0 and maximum is None:
            return text
        if maximum is not None and maximum < max(minimum, 0):
            raise EmptyLanguageError(f"no string has at least {minimum} and at most {maximum} characters")
        minimum = max(minimum, 0)
        key = COUNTED, minimum, maximum, following
        found = self._places.get(key)
        if found is None:
            whole = maximum if maximum is not None else minimum
            cap = min(whole, COUNT_LIMIT)
            beyond = min(whole - cap, UNBOUNDED - 1) if maximum is not None else UNBOUNDED
            on = -1
            if whole > cap:
                rest = None if maximum is None else maximum - cap
                # a string so long is rarely read, and its maximum may be so high that nobody could write all its code
                on = self.later(lambda: self.counted(minimum - cap, rest, following))
            begin = len(self.arguments)
            self.arguments.extend((text, minimum, cap, on, beyond))
            found = self._places[key] = self._append(COUNTED, begin, following)
        return found

    def later(self, make: Callable[[], int]) -> int:
        """LATER: where `make` says, which writes the code with this builder and returns the place to go on at.

        It is called once, when the instruction is first to be read; if it raises, that is raised where the text is
        read, and it is called again when the instruction is needed again.
        """
        self._makes.append(make)
        return self._append(LATER, len(self._makes) - 1, 0)

    def write(self, place: int) -> None:
        """Write the code of a LATER, unless it is written. Raises what making it raises, and leaves it as it was."""
        with self.lock:
            if self.code[3 * place] == LATER:
                target = self._makes[self.code[3 * place + 1]]()
                self.alternatives.append(target)
                count = len(self.alternatives)
                self.code[3 * place : 3 * place + 3] = array("i", (ANY, count - 1, count))
                self.written.append(place)

    def write_next(self, place: int, count: int) -> None:
        """Write the code of up to `count` LATERs after a place, the nearest first, as long as that raises nothing."""
        with self.lock:
            while count and 3 * place < len(self.code):
                if self.code[3 * place] == LATER:
                    try:
                        self.write(place)
                    except (LimitExceeded, UnsupportedConstraint):
                        return  # said when it is needed
                    count -= 1
                place += 1

    def write_all(self) -> None:
        """Write all code that is to be written later. Raises UnsupportedConstraint if that comes to no end."""
        place = 0
        while 3 * place < len(self.code):
            if len(self.code) > 3 * MAX_WRITTEN:
                raise UnsupportedConstraint(
                    f"the constraint writes its instructions when they are needed, and has more than {MAX_WRITTEN};"
                    " compile it anew instead of saving it"
                )
            self.write(place)
            place += 1

    def _put(self, operation: int, first: int, second: int) -> int:
        instruction = operation, first, second
        found = self._places.get(instruction)
        if found is None:
            found = self._places[instruction] = self._append(operation, first, second)
        return found

    def _append(self, operation: int, first: int, second: int) -> int:
        self.code.extend((operation, first, second))
        return len(self.code) // 3 - 1

    def build(self, start: int, *, skip: int = -1, longest: bool = False) -> Form:
        """The form. O(instructions). Raises UnsupportedConstraint for NAMES, COUNTED or LATER with `longest`."""
        if longest and (self.arguments or self._makes):
            raise UnsupportedConstraint("names, counted strings and code written later need lexer=any, not longest")
        return Form(
            np.array(self.code, dtype=np.int32).reshape(-1, 3),
            np.array(self.alternatives, dtype=np.int32),
            np.array(self.entries, dtype=np.int32),
            FrameNames(self._names),
            tuple(self.texts),
            tuple(self.token_sets),
            start,
            skip,
            longest,
            np.array(self.arguments, dtype=np.int32),
            tuple(self.name_tables),
            tuple(self.pairs),
            self if self._makes else None,
            len(self.written),
        )
