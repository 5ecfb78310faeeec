"""The automata of a schema's lexemes: texts by their key, listed names, all others, and strings of bounded length.

*Texts* of a program come with their automata. Explicit ones are kept for later schemas (`text_automaton`).

*Strings.* For names and lengths the pushdown engine has instructions (`tokdfa.backends.pushdown_trie.names`,
`counted`), because automata of all spellings of all names are large. A lexer wants automata. So they are expressions
over JSON text (`tokdfa.json_schema.sets.string_set`), and all of them are states of *one* lazy automaton: what is read
of a name costs a few states, what is not costs nothing, and ends that are alike (any characters up to the closing
quote) are one state.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from tokdfa.core.locks import new_lock
from tokdfa.json_schema.sets.string_set import StringSet, string_expression
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import MAX_REPEAT

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.program.program import Escapes, Terminal

#: States of explicit automata that are kept for later schemas.
KEPT_STATES = 50_000

_kept: OrderedDict[bytes, Dfa] = OrderedDict()
_kept_lock = new_lock()


class StringExpressions:
    """The expressions of sets of strings as JSON texts, quotes included, and the automaton of all of them.

    `add` and `counted` return what `automaton` takes; none may be asked for once that has been called.
    """

    def __init__(self, escapes: Escapes) -> None:
        self.store = ExpressionStore()
        self._escapes: Escapes = escapes
        self._expressions: list[int] = []
        self._made: LazyDfa | None = None

    def add(self, strings: StringSet) -> int:
        """The strings of a set, in any spelling."""
        self._expressions.append(string_expression(strings, self.store, self._escapes))
        return self._expressions[-1]

    def counted(self, least: int, most: int | None) -> int:
        """Any string of so many characters (None: without end). No text has 2^30, so more than that is all the same."""
        high = None if most is None or most > MAX_REPEAT else most
        return self.add(StringSet(min_length=min(least, MAX_REPEAT), max_length=high))

    def automaton(self, expression: int) -> tuple[LazyDfa, int]:
        """(the automaton of all, the state in which one begins). Raises LimitExceeded."""
        if self._made is None:
            self._made = LazyDfa.of_many(self.store, self._expressions)
        return self._made, self._made.state_of(expression)


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
