"""A schema as a context-free grammar over lexemes, for an engine with a lexer and a parser.

The program of a schema (`tokdfa.program.program`) is read as rules, so the grammar has the program's very language, and
nothing of a schema is interpreted twice. A frame is a nonterminal, and so is a place where a text may go on in several
ways, or that several places lead to; what lies between is one right side. So "read t, call f, go on at r" is ``q -> t f
r``, and a chain of members or items, which ends where its frame does, is right recursion, which the parser runs in one
row (`tokdfa.backends.earley_trie.rows`).

*Lexemes.* A text is a lexeme with the automaton that its key names; names and counted strings become lexemes as
`tokdfa.json_schema.write.lexemes` says, counted strings of a pattern those of its product with the length. The names
that one NAMES may read begin a list, ``w -> name value | w'``, where w' is the list of those behind; so all windows of
an object, one for each member, together are as long as the object.

*Where a lexeme ends.* A program may be cut into texts in any way, a lexer takes the longest match. For JSON that is the
same: a string or a constant ends where nothing goes on; what may follow a number or the blanks of some punctuation
begins with a byte that these do not go on with. All that is needed is that blanks are blanks, which
`tokdfa.json_schema.sets.blanks.check_blanks` sees to. llguidance's rule (``lexer="one_byte"``) then is the same, too.

*Code that is written later* (LAZY) is written at once: a parser wants all rules before the first text. The language is
the same, but a schema that counts far is refused by LimitExceeded, which names the place: some ten thousand items, or
sets of what has been, of more than some dozen values of ``uniqueItems``, names with ``order="any"``, or undeclared
names with ``duplicates="refused"``.

Cost: about 10 us an instruction, names included; the automata of lexemes are made afterwards, by the lexer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.write.lexemes import StringExpressions, text_automaton
from tokdfa.json_schema.write.lower import lower_and_remember
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    LAZY,
    NAMES,
    RETURN,
    TERMINAL,
    CountedString,
    NameWindow,
)
from tokdfa.regex.expression import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.constraint import JsonSchema
    from tokdfa.json_schema.read.document import Dropped
    from tokdfa.program.builder import Program
    from tokdfa.program.program import Escapes, Terminal

#: A symbol while rules are written: a lexeme is a negative number, a nonterminal one from 0 on.
Symbol: TypeAlias = int

BLANKS = frozenset(b" \t\n\r")


def schema_grammar(
    constraint: JsonSchema, max_instructions: int = 100_000, names: bool = False
) -> tuple[Cfg, tuple[Dropped, ...]]:
    """The grammar of a schema, and the keywords that it does not enforce (none unless `lenient`).

    `names`: names that may come twice are left to the matcher, as `lower_and_remember` does.

    `max_instructions` bounds what is written of the program. Raises what `lower_schema` raises; and LimitExceeded,
    which names the place of the schema.
    """
    program, dropped, _ = lower_and_remember(constraint, items=False, names=names)
    writer = _ProgramGrammar(program, "needed" if constraint.escapes == "needed" else "all", max_instructions)
    cfg = writer.cfg()
    return replace(cfg, open_names=program.source.open_names), dropped


class _ProgramGrammar:
    """One run of `schema_grammar`."""

    def __init__(self, program: Program, escapes: Escapes, max_instructions: int) -> None:
        self.program, self.limit = program, max_instructions
        #: Those of the program: they grow in place, while numpy's are slow to read number by number.
        self.source = source = program.source
        self.code, self.alternatives = source.code, source.alternatives
        self.arguments, self.entries = source.arguments, source.entries
        self.strings = StringExpressions(escapes)
        self._uses: Counter[int] = Counter()
        self._lexemes: list[Lexeme] = []
        self._lexeme_of: dict[tuple[object, ...], Symbol] = {}
        self._names: list[str] = []
        self._rules: dict[tuple[Symbol, tuple[Symbol, ...]], None] = {}
        self._of_frame: dict[int, Symbol] = {}
        self._of_place: dict[int, Symbol] = {}
        #: (table, last name) -> the first name and the places after the names of a list, and by the name with which it
        #: begins the nonterminal of each part.
        self._lists: dict[tuple[int, int], tuple[int, list[int], dict[int, Symbol]]] = {}
        #: Nonterminals whose rules are to be written, and the place at which each begins.
        self._waiting: list[tuple[Symbol, int]] = []

    def cfg(self) -> Cfg:
        """The grammar."""
        self._count_uses()
        start = self._nonterminal("text", self.program.start)
        while self._waiting:
            symbol, place = self._waiting.pop()
            for alternative in self._spread(place):
                if self.code[3 * alternative] == NAMES:
                    self._add_names(symbol, NameWindow.read(self.arguments, self.code[3 * alternative + 1]))
                else:
                    self._add_rule(symbol, self._sequence([], alternative))
        count = len(self._lexemes)
        rules = tuple(
            (left + count, tuple([symbol + count if symbol >= 0 else ~symbol for symbol in right]))
            for left, right in self._rules
        )
        names = (*(lexeme.name for lexeme in self._lexemes), *self._names)
        return Cfg(tuple(self._lexemes), names, rules, start + count, -1, self.strings.store)

    def _count_uses(self) -> None:
        """Write what is to be written later, and count from how many places each place is led to."""
        uses, callers, written = self._uses, {-1: -1}, Counter[int]()
        frames, met, named = [(-1, self.program.start)], set[int](), set[int]()
        while frames:
            frame, entry = frames.pop()
            pending = [entry]
            while pending:
                place = self._resolve(pending.pop())
                uses[place] += 1
                if place in met:
                    continue
                met.add(place)
                written[frame] += 1
                if len(met) > self.limit:
                    raise self._too_large(written, callers)
                operation, first, second = self.code[3 * place : 3 * place + 3]
                if operation == ANY:
                    pending += self.alternatives[first:second]
                elif operation == NAMES:
                    # all windows of an object lead to the same places, which the rules share as lists of names
                    fresh = {*self._after_names(NameWindow.read(self.arguments, first))} - named
                    named |= fresh
                    pending += fresh
                elif operation != RETURN:
                    pending.append(second)
                if operation == CALL and first not in callers:
                    callers[first] = frame
                    frames.append((first, self.entries[first]))

    def _too_large(self, written: Counter[int], callers: dict[int, int]) -> LimitExceeded:
        """The error that names the schema with most instructions; frames without a schema belong to their caller's."""
        program, found = self.program, Counter[str]()
        for frame, count in written.items():
            while frame >= 0 and not program.frame_name(frame).startswith(("#", "not #")):
                frame = callers[frame]
            found[program.frame_name(frame) if frame >= 0 else "#"] += count
        [(place, _)] = found.most_common(1)
        return LimitExceeded(
            f"{place}: all that may be read there comes to more than {self.limit} instructions, and a parser needs all"
            " of them before the first text; lower the counts, raise max_instructions, or take pushdown_trie, which"
            " writes them as they are reached",
            limit="max_instructions",
            value=self.limit,
        )

    def _resolve(self, place: int) -> int:
        """A place, written if it was to be written later, and past what is no choice."""
        while True:
            operation, first, second = self.code[3 * place : 3 * place + 3]
            if operation == LAZY:
                self.source.write(place)
            elif operation == ANY and second == first + 1:
                place = self.alternatives[first]
            else:
                return place

    def _after_names(self, window: NameWindow) -> list[int]:
        """The places after the names of a window, and after other strings, if it reads them."""
        return window.targets if window.other < 0 else [*window.targets, self.code[3 * window.other + 2]]

    def _spread(self, place: int) -> list[int]:
        """The places that are alternatives at a place, none of them ANY."""
        found: dict[int, None] = {}
        pending, met = [place], set[int]()
        while pending:
            place = self._resolve(pending.pop())
            if place in met:
                continue
            met.add(place)
            operation, first, second = self.code[3 * place : 3 * place + 3]
            if operation == ANY:
                pending += reversed(self.alternatives[first:second])
            else:
                found[place] = None
        return list(found)

    def _sequence(self, right: list[Symbol], place: int) -> list[Symbol]:
        """`right`, and what is read from `place` on: up to a choice, or a place that others lead to, too."""
        while True:
            place = self._resolve(place)
            operation, first, second = self.code[3 * place : 3 * place + 3]
            if operation == RETURN:
                return right
            is_last = operation == TERMINAL and self.code[3 * second] == RETURN
            if operation in (ANY, NAMES) or (right and self._uses[place] > 1 and not is_last):
                if place not in self._of_place:
                    self._of_place[place] = self._nonterminal(f"place {place}", place)
                return [*right, self._of_place[place]]
            if operation == TERMINAL:
                right.append(self._symbol_of(self.source.terminals[first]))
            elif operation == COUNTED:
                right.append(self._counted(CountedString.read(self.arguments, first)))
            else:
                assert operation == CALL, "a schema has no special tokens"
                if first not in self._of_frame:
                    self._of_frame[first] = self._nonterminal(self.program.frame_name(first), self.entries[first])
                right.append(self._of_frame[first])
            place = second

    def _add_names(self, symbol: Symbol, window: NameWindow) -> None:
        """The rules of a NAMES."""
        table, low, high, other, targets = window
        names = self.source.name_tables[table].names
        if other >= 0:
            others = StringSet(not_values=frozenset(names))
            lexeme = self._strings((NAMES, table), f"none of {len(names)} names", lambda: self.strings.add(others))
            self._add_rule(symbol, self._sequence([lexeme], self.code[3 * other + 2]))
        if not targets:
            return
        first, known, parts = self._lists.get((table, high), (high + 1, [], {}))
        if low < first or known[low - first :] != targets:
            parts = self._add_parts(names, low, targets)
            self._lists[table, high] = low, targets, parts
        self._add_part(symbol, names, low, low, targets, parts)

    def _add_parts(self, names: Sequence[str], low: int, targets: Sequence[int]) -> dict[int, Symbol]:
        """The nonterminals of all parts of a list of names, `low` and those behind it, but the whole."""
        parts: dict[int, Symbol] = {}
        first = low + len(targets)
        while first > low:
            past = first
            while first > low and targets[first - 1 - low] == targets[past - 1 - low]:
                first -= 1
            if first > low:
                parts[first] = self._new(f"{names[first]!r} or a later name")
                self._add_part(parts[first], names, first, low, targets, parts)
        return parts

    def _add_part(
        self,
        symbol: Symbol,
        names: Sequence[str],
        first: int,
        low: int,
        targets: Sequence[int],
        parts: dict[int, Symbol],
    ) -> None:
        """The rules of a list from name `first` on: the names up to the next that lead elsewhere, or the rest."""
        past, high = first + 1, low + len(targets)
        while past < high and targets[past - low] == targets[first - low]:
            past += 1
        read = tuple(names[first:past])
        named = StringSet(values=frozenset(read))
        lexeme = self._strings((NAMES, read), _label(read), lambda: self.strings.add(named))
        self._add_rule(symbol, self._sequence([lexeme], targets[first - low]))
        if past < high:
            self._add_rule(symbol, [parts[past]])

    def _counted(self, count: CountedString) -> Symbol:
        text, least, most = self.source.terminals[self.code[3 * count.terminal + 1]], count.least, count.most
        if text.bounded is not None:
            return self._symbol_of(text.bounded(least, most))
        name = f"string of {least} or more characters" if most is None else f"string of {least} to {most} characters"
        return self._strings((COUNTED, least, most), name, lambda: self.strings.counted(least, most))

    def _strings(self, key: tuple[object, ...], name: str, write: Callable[[], int]) -> Symbol:
        """The symbol of a lexeme that is an expression, which `write` writes."""
        if key not in self._lexeme_of:
            self._lexemes.append(Lexeme(name, NOTHING, automaton=partial(self.strings.automaton, write())))
            self._lexeme_of[key] = -len(self._lexemes)
        return self._lexeme_of[key]

    def _symbol_of(self, text: Terminal) -> Symbol:
        """The symbol of a lexeme that is a text."""
        key = TERMINAL, text.key
        if key not in self._lexeme_of:
            make = partial(text_automaton, text)
            self._lexemes.append(Lexeme(text.label, NOTHING, automaton=make, key=text.key, spelled_by=text.spelled_by))
            self._lexeme_of[key] = -len(self._lexemes)
        return self._lexeme_of[key]

    def _nonterminal(self, name: str, place: int) -> Symbol:
        """A new nonterminal for what is read from a place on; its rules are written in time."""
        symbol = self._new(name)
        self._waiting.append((symbol, place))
        return symbol

    def _new(self, name: str) -> Symbol:
        self._names.append(name)
        return len(self._names) - 1

    def _add_rule(self, left: Symbol, right: Sequence[Symbol]) -> None:
        self._rules[left, tuple(right)] = None


def _label(names: Sequence[str]) -> str:
    """The name of a lexeme that is any of these names."""
    return " | ".join(map(repr, names[:4])) + (" | ..." if len(names) > 4 else "")
