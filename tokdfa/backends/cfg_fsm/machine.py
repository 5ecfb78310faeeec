"""From a grammar, a regex or a choice to a `Machine`: tables, lexer states, stacks and hypotheses in one.

A regex or a choice is a grammar of one terminal, whose automaton is the plain one of its language: where the longest
lexeme has to be the whole text, any lexeme that is not the longest is followed by something, and that is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.cfg_fsm.contextual import Contextual, LexerContext
from tokdfa.backends.cfg_fsm.hypotheses import Hypotheses
from tokdfa.backends.cfg_fsm.lark_errors import place_of
from tokdfa.backends.cfg_fsm.lark_tables import one_terminal_tables, read_tables
from tokdfa.backends.cfg_fsm.match_automata import match_automaton
from tokdfa.backends.cfg_fsm.stacks import Stacks
from tokdfa.constraint import Grammar
from tokdfa.core.budget import spend
from tokdfa.errors import EmptyLanguageError, GrammarUnsupported, LimitExceeded, RegexSyntaxError, UnsupportedConstraint
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.cfg_fsm.lark_tables import LalrTables, LarkTerminal
    from tokdfa.constraint import Constraint

#: What it takes to run a string through an automaton.
NS_PER_STRING = 3_000


class Machine:
    """A recogniser of bytes whose states are situations. Not thread-safe.

    `limits`: ``max_lexer_states``, ``max_stacks``, ``max_situations``, ``max_search``. `is_certified`: what is live is
    seen at once (see the package); otherwise it is searched. Raises LimitExceeded, and EmptyLanguageError if no text is
    accepted.
    """

    def __init__(self, tables: LalrTables, automata: Sequence[Dfa], limits: Mapping[str, int]) -> None:
        self.tables = tables
        contexts, context_of = _contexts(tables, automata)
        following, first = _following(tables, context_of), int(context_of[tables.start])
        self.lexer = Contextual(automata, contexts, tables.ignored, following, first, limits["max_lexer_states"])
        self.is_certified = self.lexer.is_certified and not tables.conflicts and tables.is_productive
        self.stacks = Stacks(tables, context_of, limits["max_stacks"])
        self.hypotheses = Hypotheses(
            self.lexer, self.stacks, not self.is_certified, limits["max_situations"], limits["max_search"]
        )
        self.start = 0
        if not self.hypotheses.is_live:
            raise EmptyLanguageError(
                "Lark accepts no text by this grammar: its lexer or its resolution of conflicts is in the way of each"
            )

    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
        """The situation after ``data[begin:end]`` (uint8), -1 if that cannot be completed."""
        return self.hypotheses.run(situation, data, begin, end)

    @property
    def nbytes(self) -> int:
        """Bytes held by the parser's tables, and by the lexer's and the situations' transitions."""
        return (
            self.tables.actions.nbytes
            + self.tables.gotos.nbytes
            + self.lexer.nbytes
            + self.hypotheses.transitions.nbytes
        )


def build_machine(constraint: Constraint, limits: Mapping[str, int], conflicts: str = "shift") -> Machine:
    """The machine of a Grammar, Regex or Choice. `conflicts`: see `tokdfa.backends.cfg_fsm.lark_tables.read_tables`.

    Raises what `read_tables` and `compile_dfa` raise, and GrammarUnsupported for a terminal that cannot be matched
    byte by byte.
    """
    if not isinstance(constraint, Grammar):
        dfa = compile_dfa(constraint)
        return Machine(one_terminal_tables(bool(dfa.accepting[dfa.start])), [dfa], limits)
    refuse_additions(constraint)
    tables = read_tables(constraint.text, constraint.start, conflicts)
    return Machine(tables, [_automaton(terminal, constraint.text) for terminal in tables.terminals], limits)


def refuse_additions(grammar: Grammar) -> None:
    """UnsupportedConstraint for what Lark's notation lacks and our own has: schemas, %regex, grammars of one's own."""
    found = [
        directive for directive in ("%json", "%regex") if re.search(rf"^[^#/\"\n]*{directive}\b", grammar.text, re.M)
    ]
    if grammar.sources:
        found.append("%import of one's own grammars")
    if found:
        raise UnsupportedConstraint(
            f"cfg_fsm takes what Lark's LALR(1) parser takes, not {found[0]}; earley_trie and pushdown_trie do"
        )


def _automaton(terminal: LarkTerminal, text: str) -> Dfa:
    try:
        return match_automaton(terminal.regexp)
    except RegexSyntaxError as error:
        message = f"the terminal {terminal.shown}, {terminal.regexp!r}: {error.reason}"
        raise GrammarUnsupported(message, text, *(place_of(terminal.name, text) or (1, 1))) from None
    except LimitExceeded as error:
        raise LimitExceeded(f"{terminal.shown}: {error}", limit=error.limit, value=error.value) from None


def _contexts(tables: LalrTables, automata: Sequence[Dfa]) -> tuple[list[LexerContext], npt.NDArray[np.int32]]:
    """The distinct contexts, and the context of each state (int32)."""
    taken = _strings_of_regexes(tables.terminals, automata)
    numbers: dict[frozenset[int], int] = {}
    context_of = np.zeros(len(tables.actions), dtype=np.int32)
    for state, row in enumerate(tables.actions[:, :-1]):
        context_of[state] = numbers.setdefault(frozenset(np.flatnonzero(row).tolist()), len(numbers))
    return [_context(tables, accepted, taken) for accepted in numbers], context_of


def _context(tables: LalrTables, accepted: frozenset[int], taken: Mapping[int, Sequence[int]]) -> LexerContext:
    present = sorted(accepted | tables.ignored)
    names: dict[int, tuple[int, ...]] = {}
    embedded: set[int] = set()
    for regex in present:
        strings = tuple(string for string in taken.get(regex, ()) if string in present)
        if strings:
            names[regex] = strings
            flags = tables.terminals[regex].flags
            embedded |= {string for string in strings if tables.terminals[string].flags <= flags}
    return LexerContext(tuple(terminal for terminal in present if terminal not in embedded), names, accepted)


def _strings_of_regexes(terminals: Sequence[LarkTerminal], automata: Sequence[Dfa]) -> dict[int, tuple[int, ...]]:
    """Regex -> the strings of its priority that it matches as a whole; those Lark gives it when both may come."""
    strings = [(number, one.priority, one.value.encode()) for number, one in enumerate(terminals) if one.is_string]
    found = {}
    for number, terminal in enumerate(terminals):
        if not terminal.is_string:
            spend(NS_PER_STRING * len(strings))
            found[number] = tuple(
                other
                for other, priority, text in strings
                if priority == terminal.priority and automata[number].accepts(text)
            )
    return found


def _following(tables: LalrTables, context_of: npt.NDArray[np.int32]) -> list[list[int]]:
    """Terminal -> the contexts that the parser can be in after it."""
    found = []
    for column in range(len(tables.terminals)):
        shifts = tables.actions[:, column]
        found.append(sorted(set(context_of[shifts[shifts > 0] - 1].tolist())))
    return found
