"""The automata of a schema's lexemes: texts by their key, listed names, all others, and strings of bounded length.

*Texts* of a program come with their automata. Explicit ones are kept for later schemas (`text_automaton`).

*Strings.* For names and lengths the pushdown engine has instructions (`tokdfa.backends.pushdown_trie.names`,
`counted`), because automata of all spellings of all names are large. A lexer wants automata. So they are expressions
over JSON text (`tokdfa.json_schema.sets.string_body`), and all of them are states of *one* lazy automaton: what is read
of a name costs a few states, what is not costs nothing, and ends that are alike (any characters up to the closing
quote) are one state.

*Other names* need no complement. Along the tree of the listed names, another string is one that

- ends where no listed name ends; or
- goes on with a character that no listed name goes on with, and then as it likes.

The same tree, with ends the other way round and without the second case, is that of the names themselves.

Cost: up to 4 us a character of a name, less of names that begin alike.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.core.locks import new_lock
from tokdfa.json_schema.sets.string_body import BODY
from tokdfa.regex.char_sets import ALL, Ranges, complement
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import MAX_REPEAT
from tokdfa.regex.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.program.program import Escapes, Terminal

#: States of explicit automata that are kept for later schemas.
KEPT_STATES = 50_000

_kept: OrderedDict[bytes, Dfa] = OrderedDict()
_kept_lock = new_lock()


class _Branch(NamedTuple):
    """A node of the tree of names that is still open: its character, whether a name ends here, and what follows."""

    character: str
    ends: list[bool]
    following: list[tuple[str, int]]


class StringExpressions:
    """Expressions of JSON texts, quotes included, and the automaton of all of them.

    `named`, `others` and `counted` return numbers for `automaton`; none may be asked for once that has been called.
    """

    def __init__(self, escapes: Escapes) -> None:
        self.store = ExpressionStore()
        self._body, self._program = BODY[escapes], Program()
        self._quote = self._program.literal(b'"')
        #: Any characters, and the closing quote.
        self._rest = self._program.concat([self._program.repeat(self._character(ALL), 0, None), self._quote])
        self._numbers: list[int] = []
        self._made: LazyDfa | None = None

    def named(self, names: Iterable[str]) -> int:
        """One of these strings, in any spelling. O(characters)."""
        return self._tree(names, others=False)

    def others(self, names: Iterable[str]) -> int:
        """Any string but these. O(characters)."""
        return self._tree(names, others=True)

    def counted(self, least: int, most: int | None) -> int:
        """Any string of so many characters (None: without end). No text has 2^30, so more than that is all the same."""
        program, high = self._program, None if most is None or most > MAX_REPEAT else most
        body = program.repeat(self._character(ALL), min(least, MAX_REPEAT), high)
        return self._numbered(program.concat([self._quote, body, self._quote]))

    def automaton(self, number: int) -> tuple[LazyDfa, int]:
        """(the automaton of all, the state in which what the number stands for begins). Raises LimitExceeded."""
        if self._made is None:
            self.store.run(self._program)
            self._made = LazyDfa.of_many(self.store, map(self._program.expression, self._numbers))
        return self._made, self._made.state_of(self._program.expression(number))

    def _numbered(self, number: int) -> int:
        self._numbers.append(number)
        return number

    def _character(self, ranges: Ranges) -> int:
        return self._body.char_set(ranges, self._program)

    def _tree(self, names: Iterable[str], others: bool) -> int:
        """Names in order: what a name does not share with the one before it is complete before it."""
        branches, before = [_Branch("", [], [])], ""
        for name in sorted(set(names)):
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, name, strict=False)))
            self._close(branches, shared + 1, others)
            branches += [_Branch(character, [], []) for character in name[shared:]]
            branches[-1].ends.append(True)
            before = name
        self._close(branches, 1, others)
        return self._numbered(self._program.concat([self._quote, self._finish(branches[0], others)]))

    def _close(self, branches: list[_Branch], count: int, others: bool) -> None:
        """Finish open nodes until only `count` are left."""
        while len(branches) > count:
            branch = branches.pop()
            branches[-1].following.append((branch.character, self._finish(branch, others)))

    def _finish(self, branch: _Branch, others: bool) -> int:
        """What may follow the characters that lead to a node."""
        program = self._program
        parts = [] if bool(branch.ends) == others else [self._quote]
        heads: list[tuple[int, int]] = []
        for character, following in branch.following:
            heads.append((ord(character), ord(character)))
            parts.append(program.concat([self._character((heads[-1],)), following]))
        if others:
            parts.append(program.concat([self._character(complement(tuple(heads))), self._rest]))
        return program.union(parts)


def text_automaton(text: Terminal) -> tuple[Dfa | LazyDfa, int]:
    """(the automaton of a text, the state in which it starts). Explicit ones are kept by key, the last used ones."""
    with _kept_lock:
        found = _kept.pop(text.key, None)
        if found is not None:
            _kept[text.key] = found
            return found, found.start
    made = text.make()
    if isinstance(made, LazyDfa):
        return made, 0
    with _kept_lock:
        _kept[text.key] = made
        while sum(automaton.state_count for automaton in _kept.values()) > KEPT_STATES:
            _kept.popitem(last=False)
    return made, made.start
