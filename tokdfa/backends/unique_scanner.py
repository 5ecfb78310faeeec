"""What a text has come to whose names or items must differ, byte by byte (`tokdfa.backends.unique_items`).

The names of an object are followed beside those that it had (`tokdfa.backends.seen_names`): the quote that ends one of
these is refused.

Within an item of an array two automata run: that of its texts, and that of the texts of the values that were, in all
spellings. As long as both are alive, a byte is refused if everything that can follow spells a value that was; an item
ends only where it is none of these; a comma comes only while there is another value. So there are no dead ends. An item
that is an array or an object is compared when it closes: the bracket is refused if its value was, and the item goes on,
as it always can (`tokdfa.json_schema.solve.unique_items`). A closed object is compared when its last member ends.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import ref

from tokdfa.automata.dfa import Dfa
from tokdfa.backends.seen_names import BACKSLASH, NO_BYTES, QUOTE, Name, Names
from tokdfa.backends.seen_values import HeldText, comparable, is_short, read_json, written_again
from tokdfa.constraint import JsonSchema
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock
from tokdfa.json_schema.sets.number_dfa import numbers_dfa
from tokdfa.json_schema.sets.number_set import NumberSet
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.json_schema.solve.array_states import MAX_REMEMBERED
from tokdfa.json_schema.solve.unique_items import Location
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.json_schema.write.program_automaton import program_dfa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.json_schema.solve.unique_items import Items
    from tokdfa.program.program import Escapes
    from tokdfa.regex.lazy_dfa import LazyDfa

#: Work (`tokdfa.core.budget`) of a byte.
BYTE_WORK = 2_000
#: Answers that are kept, of whether an item can still differ from those before it; some 500 bytes each.
MAX_KNOWN = 4096
BLANKS = b" \t\n\r"
#: In place of a state of the automaton of the former values: the one after the opening quote of a string. Most tokens
#: with a quote end there, and that automaton is made anew for each item, so it is made when a byte behind is asked for.
OPENED = 1 << 30
#: What is open, outermost first; each a tuple that begins with one of these: a value is expected at a location; a
#: string, or another scalar, of which nothing is to be remembered; an object; an array; an item that is compared;
#: between an array and an item of it that is an array or object, the text of that so far; a name of an object. Where no
#: strategy lets a text go on, nothing is open.
VALUE, STRING, SCALAR, OBJECT, ARRAY, ITEM, HELD, NAME = range(8)
State = tuple[tuple[Any, ...], ...]
#: Of a schema of which only names are remembered.
ANYWHERE = Location()
#: In place of the name of a member: one may begin.
BEFORE = True
NO_NAMES = Names()
#: States of the automaton of objects that are compared byte by byte.
MAX_OBJECT_STATES = 50_000
#: The automata of former values are shared and grow.
_stepping = new_lock()
#: Values that were: (whether it is a text, number, constant, array or object, the value as it is compared).
Seen = frozenset[tuple[str, Any]]
START: State = ((VALUE, 1),)


def _step(automaton: Dfa | LazyDfa, state: int, byte: int) -> int:
    if isinstance(automaton, Dfa):
        return int(automaton.transitions[state, automaton.byte_class[byte]])
    return automaton.step(state, byte)


def _begin(automaton: Dfa | LazyDfa) -> int:
    return automaton.start if isinstance(automaton, Dfa) else 0


@lru_cache(256)
def _former(kind: str, seen: Seen, escapes: Escapes, constraint: JsonSchema | None) -> Dfa | LazyDfa | None:
    """The automaton of the texts of the values of a kind that were; None if there are none. `constraint`: how objects
    are written.
    """
    values = [value for other, value in seen if other == kind]
    if not values:
        return None
    if kind == "{":
        assert constraint is not None
        written = ",".join(sorted(map(written_again, filter(is_short, values))))
        if not written:
            return None
        former = constraint.of_schema(f'{{"enum":[{written}]}}')
        return program_dfa(lower_schema(former)[0], "the objects that were", MAX_OBJECT_STATES)
    if kind == '"':
        return string_automaton(StringSet(values=frozenset(values)), escapes)
    if kind == "0":
        short = [value for value in values if is_short(("0", value))]
        return numbers_dfa([NumberSet(low=value, high=value) for value in short], -1) if short else None
    return _constants(tuple(sorted(values)))


@lru_cache(256)
def _has_long(seen: Seen) -> bool:
    """Whether numbers were that are compared at their end."""
    return not all(is_short(value) for value in seen if value[0] == "0")


def _opened(seen: Seen, escapes: Escapes) -> tuple[Dfa | LazyDfa, int]:
    """The automaton of the strings that were, of which there are some, and its state after the opening quote."""
    former = _former('"', seen, escapes, None)
    assert former is not None
    return former, _step(former, _begin(former), 0x22)


#: The opening quote of a name.
OPENING = HeldText(None, QUOTE)


@lru_cache(64)
def _constants(words: tuple[bytes, ...]) -> Dfa:
    from tokdfa.constraint import Choice
    from tokdfa.regex.compile import compile_dfa

    return compile_dfa(Choice([word.decode() for word in words]))


def _kind_of(byte: int) -> str:
    return chr(byte) if byte in b'"{' else "0" if byte in b"-0123456789" else "a"


class Scanner:
    """Reads texts of one schema. Thread-safe.

    `locations`: where items are remembered, none: nowhere; `names`: whether no object may have a name twice;
    `constraint`: how objects are written that are compared byte by byte. Raises LimitExceeded if the automaton of these
    is too large.
    """

    def __init__(self, locations: Sequence[Location], names: bool, constraint: Constraint | None = None) -> None:
        self.locations, self.names = locations or [ANYWHERE] * 2, names
        #: How objects that were may have been written: their members in any order, as this holds all texts of them.
        self._spelled = constraint.in_any_order() if isinstance(constraint, JsonSchema) else None
        programs = {items.objects for location in self.locations for items in location.unique if items.objects}
        self._objects = {each: program_dfa(each, "an object", MAX_OBJECT_STATES) for each in programs}
        #: Answers of `_differs`.
        self._known: dict[tuple[Any, ...], bool] = {}
        #: Whether some items are compared when they close.
        self.holds = any(items.containers for location in locations for items in location.unique)
        #: Whether a quote may end the last member of one of these, which then is compared.
        self.ends_at_quote = any(items.last for location in locations for items in location.unique)

    def step(self, state: State, byte: int) -> State | None:
        """The state after a byte; None if it repeats an item, or leads nowhere but to a repetition."""
        if byte in BLANKS and state[-1][0] == ARRAY and not self.holds:  # as many tokens begin
            return state
        spend(BYTE_WORK)
        following = self._step(state, byte)
        return self._hold(following, byte) if self.holds and following else following

    def _hold(self, state: State, byte: int) -> State | None:
        """`state` with the byte in the texts of items that are arrays or objects; one of these may have closed."""
        if not any(frame[0] == HELD for frame in state):
            return state
        state = tuple((HELD, HeldText(frame[1], byte)) if frame[0] == HELD else frame for frame in state)
        if state[-1][0] != HELD:
            return None if byte in b'"]}' and self._must_differ(state) else state
        *outer, (_, number, count, is_next, seen), (_, text) = state
        value = text.read()
        return None if value in seen else (*outer, (ARRAY, number, count, is_next, seen | {value}))

    def _must_differ(self, state: State) -> bool:
        """Whether the last member of a closed object has ended, and the object is an item that was."""
        if len(state) < 3 or state[-1][0] != OBJECT or state[-1][2] is not None or state[-2][0] != HELD:
            return False
        _, number, count, _, seen = state[-3]
        items = self.locations[number].items(count - 1)
        return bool(items.last) and state[-2][1].read("}", items.last) in seen

    def _step(self, state: State, byte: int) -> State | None:
        *outer, top = state
        here = tuple(outer)
        kind = top[0]
        if kind == STRING:
            return self._in_string(here, top, byte)
        if kind == NAME:
            return self._in_name(here, top, byte)
        if kind == ITEM:
            return self._in_item(here, top, byte)
        if kind == SCALAR:
            return state if byte not in b",]} \t\n\r" else self._step(here, byte) if here else here
        if byte in BLANKS:
            return state
        if kind == VALUE:
            return self._begin_value(here, top[1], byte)
        if kind == OBJECT:
            return self._in_object(here, top, byte)
        return self._in_array(here, top, byte)

    def run(self, state: State, text: bytes) -> State | None:
        """The state after a text."""
        for byte in text:
            following = self.step(state, byte) if state else state
            if following is None:
                return None
            state = following
        return state

    def _begin_value(self, here: State, location: int, byte: int) -> State | None:
        if byte == 0x22:
            return (*here, (STRING, False))
        if byte == 0x7B:
            return (*here, (OBJECT, location, BEFORE, NO_NAMES))
        if byte == 0x5B:
            return (*here, (ARRAY, location, 0, True, frozenset()))
        return (*here, (SCALAR,))

    def _in_string(self, here: State, top: tuple[Any, ...], byte: int) -> State:
        """`top`: whether the byte before was a backslash."""
        if byte == QUOTE and not top[1]:
            return here
        is_escape = byte == BACKSLASH and not top[1]
        return (*here, top) if is_escape == top[1] else (*here, (STRING, is_escape))

    def _in_name(self, here: State, top: tuple[Any, ...], byte: int) -> State | None:
        """`top`: the name as it is compared, and its text so far."""
        _, name, text = top
        if byte != QUOTE or name.is_open:
            return (*here, (NAME, name.step(byte), HeldText(text, byte)))
        if name.ends:
            return None
        _, number, _, names = here[-1]
        read = json.loads(text.written() + b'"', strict=False)
        return (*here[:-1], (OBJECT, number, read, names.add(read) if self.names else names))

    def _in_object(self, here: State, top: tuple[Any, ...], byte: int) -> State:
        """`top`: the location, the name of the member (None behind it), and the names that were."""
        _, number, name, names = top
        if byte == 0x7D:
            return here
        if byte == QUOTE:
            return (*here, (OBJECT, number, None, names), (NAME, Name(names.start if names.size else None), OPENING))
        if byte == 0x3A:
            location = self.locations[number]
            value = location.members.get(name, location.others)
            return (*here, (OBJECT, number, None, names), (VALUE, value))
        return (*here, (OBJECT, number, BEFORE, names))

    def _in_array(self, here: State, top: tuple[Any, ...], byte: int) -> State | None:
        """`top`: the location, items so far, whether the next one may begin, and the values that were."""
        _, number, count, is_next, seen = top
        location = self.locations[number]
        if byte == 0x5D:
            return here
        if byte == 0x2C:
            if location.unique and (count >= MAX_REMEMBERED or not self._has_another(location.items(count), seen)):
                return None
            return (*here, (ARRAY, number, count, True, seen))
        if not is_next:
            return ()  # no strategy allows it
        array = (ARRAY, number, count + 1 if location.unique or count < len(location.first) else count, False, seen)
        value = location.first[count] if count < len(location.first) else location.rest
        if not location.unique:
            return self._begin_value((*here, array), value, byte)
        items = location.items(count)
        if byte in b"{[" and (byte == 0x5B or items.objects is None):
            return self._begin_value((*here, array, (HELD, None)), value, byte) if items.containers else ()
        item = self._advance_item((ITEM, _kind_of(byte), None, b""), items, seen, byte)
        return None if item is None else (*here, array, item)

    def _in_item(self, here: State, top: tuple[Any, ...], byte: int) -> State | None:
        _, kind, states, text = top
        _, number, count, _, seen = here[-1]
        items = self.locations[number].items(count - 1)
        if kind in "0a" and byte in b",] \t\n\r":
            if not states[2]:
                return ()
            value = (kind, read_json(text) if kind == "0" else text)
            if value in seen:
                return None
            return self._step((*here[:-1], (ARRAY, number, count, False, seen | {value})), byte)
        item = self._advance_item(top, items, seen, byte)
        if item is None:
            return None
        if kind in '"{' and item[2][2]:  # the closing quote or brace
            read = read_json(item[3])
            value = kind, read if kind == '"' else comparable(read)
            return None if value in seen else (*here[:-1], (ARRAY, number, count, False, seen | {value}))
        return (*here, item)

    def _advance_item(self, item: tuple[Any, ...], items: Items, seen: Seen, byte: int) -> tuple[Any, ...] | None:
        """An item after a byte. Its third part: states of its automata, that of the former values (-1: dead), whether
        its text may end, and the automaton of the former values: if this is lazy, its states have numbers in it alone.
        """
        _, kind, states, text = item
        with _stepping:
            if states is None and kind == '"' and items.endless and any(other == kind for other, _ in seen):
                # of strings without end there is another one
                first = tuple(map(_begin, items.strings)), -1, False, None
                opened = self._move(kind, first, items, seen, byte)
                pair = None if opened is None else (opened[0], OPENED, False, None)
            else:
                first = self._first(kind, items, seen) if states is None else states
                pair = self._move(kind, first, items, seen, byte)
                if pair is not None and pair[1] >= 0 and not self._may_differ(kind, pair, items, seen):
                    pair = None
            if pair is None:
                return None
        return (ITEM, kind, pair, text + bytes([byte]))

    def _automata(self, kind: str, items: Items) -> tuple[Dfa | LazyDfa, ...]:
        if kind == '"':
            return items.strings
        if kind == "0":
            return () if items.numbers is None else (items.numbers,)
        if kind == "{":
            return () if items.objects is None else (self._objects[items.objects],)
        return (_constants(items.constants),) if items.constants else ()

    def _first(self, kind: str, items: Items, seen: Seen) -> tuple[Any, ...]:
        former = _former(kind, seen, items.escapes, self._spelled)
        states = tuple(map(_begin, self._automata(kind, items)))
        return states, -1 if former is None else _begin(former), False, former

    def _move(self, kind: str, pair: tuple[Any, ...], items: Items, seen: Seen, byte: int) -> tuple[Any, ...] | None:
        """The states after a byte; None if no text of an item goes on so."""
        automata = self._automata(kind, items)
        states = tuple(
            _step(automaton, state, byte) if state >= 0 else -1
            for automaton, state in zip(automata, pair[0], strict=True)
        )
        if all(state < 0 for state in states):
            return None
        _, state, _, former = pair
        if state == OPENED:
            former, state = _opened(seen, items.escapes)
        ends = any(state >= 0 and automaton.accepting[state] for automaton, state in zip(automata, states, strict=True))
        state = _step(former, state, byte) if state >= 0 else -1
        return states, state, bool(ends), former if state >= 0 else None

    def _may_differ(self, kind: str, pair: tuple[Any, ...], items: Items, seen: Seen) -> bool:
        """`_differs`, kept: the tokens of a mask ask the same again and again. No answer keeps an automaton."""
        key = kind, pair[:3], id(items), ref(pair[3])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = self._differs(kind, pair, items, seen)
        return known

    def _differs(self, kind: str, pair: tuple[Any, ...], items: Items, seen: Seen) -> bool:
        """Whether some way on from the states of an item is a text of none of the values that were."""
        todo, met = [pair], {pair}
        for states in todo:
            spend(BYTE_WORK)
            if states[1] < 0 or (states[2] and not states[3].accepting[states[1]]):
                return True
            for byte in self._bytes_on(kind, states, items):
                following = self._move(kind, states, items, seen, byte)
                if following is not None and following not in met:
                    if following[1] < 0:
                        return True
                    met.add(following)
                    todo.append(following)
        return False

    def _bytes_on(self, kind: str, states: tuple[Any, ...], items: Items) -> Sequence[int]:
        """The bytes that may follow in an item."""
        if kind != "{" or items.objects is None:
            return _bytes_of(kind)
        automaton = self._objects[items.objects]
        moves: list[int] = (automaton.transitions[states[0][0]] >= 0)[automaton.byte_class].nonzero()[0].tolist()
        return moves

    def _has_another(self, items: Items, seen: Seen) -> bool:
        """Whether there is an item that was not."""
        if (items.containers and items.objects is None) or items.is_boundless:
            return True
        with _stepping:
            return any(
                bool(self._automata(kind, items))
                and ((first := self._first(kind, items, seen))[1] < 0 or self._may_differ(kind, first, items, seen))
                for kind in '"0a{'
            )

    def is_within(self, state: State) -> bool:
        """Whether an array whose items must differ is open."""
        return any(frame[0] == ARRAY and self.locations[frame[1]].unique for frame in state)

    def is_in_object(self, state: State) -> bool:
        """Whether the innermost array or object that is open is an object, whose end alone may be refused."""
        return next((frame[0] == OBJECT for frame in reversed(state) if frame[0] in (ARRAY, OBJECT)), False)

    def may_exhaust(self, state: State) -> bool:
        """Whether a name that was may be all that can follow: one may begin, or has begun like it."""
        if not state:
            return False
        top = state[-1]
        return bool(top[2] is BEFORE and top[3].size if top[0] == OBJECT else top[0] == NAME and top[1].place)

    def is_new(self, state: State) -> bool:
        """Whether the text is in a string that is an item and cannot be one that was, and another item may follow."""
        if self.holds or not state or state[-1][0] != ITEM or state[-1][1] != '"' or state[-1][2][1] != -1:
            return False
        _, number, count, _, _ = state[-2]
        return count < MAX_REMEMBERED and self.locations[number].items(count).endless

    def watched(self, state: State) -> frozenset[int]:
        """The bytes that may be refused, or lead to one that may, among those that a strategy may allow."""
        if not state:
            return NO_BYTES
        top = state[-1]
        if top[0] == NAME:
            return top[1].watched
        if top[0] == OBJECT:
            return NAME_BEGINNINGS if top[2] is BEFORE and top[3].size else NO_BYTES
        if top[0] != ITEM:
            return BEGINNINGS if top[0] == ARRAY and self.locations[top[1]].unique else NO_BYTES
        kind, (_, former_state, _, former), text = top[1:]
        _, number, count, _, seen = state[-2]
        if kind == "0" and former_state < 0 and b"." not in text and count < MAX_REMEMBERED and not _has_long(seen):
            # neither a digit nor its end nor a comma is refused; points and exponents stand in tokens read as a whole
            location = self.locations[number]
            is_free = location.items(count - 1).takes_digits(text[:1] == b"-") and location.items(count).is_boundless
            return NO_BYTES if is_free else WITHIN[kind]
        if kind in "0a":
            return WITHIN[kind]  # a comma may follow, or the exponent of a number
        if former_state < 0:
            return NO_BYTES
        with _stepping:
            if former_state == OPENED:
                former, former_state = _opened(seen, self.locations[number].items(count - 1).escapes)
            if isinstance(former, Dfa):
                row = former.transitions[former_state]
            else:
                begin = former_state * former.class_count
                former.fill_row(begin)
                row = former.transitions[begin : begin + former.class_count]
            return frozenset((row[former.byte_class] >= 0).nonzero()[0].tolist())


def _bytes_of(kind: str) -> bytes:
    return b"+-.0123456789" if kind == "0" else b"aeflnrstu" if kind == "a" else bytes(range(0x20, 0x100))


#: Bytes that may stand before a name, or begin it; between the items of an array, or begin one; in the midst of a
#: number or a constant, and after.
NAME_BEGINNINGS = frozenset(BLANKS + b'"')
BEGINNINGS = frozenset(BLANKS + b',]"{[-0123456789aeflnrstu')
WITHIN = {kind: frozenset(_bytes_of(kind) + b"eE" + BLANKS + b",]") for kind in "0a"}
