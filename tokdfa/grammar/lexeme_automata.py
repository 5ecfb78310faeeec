"""The automata of a grammar's lexemes: small ones minimal and made together, large ones lazy, chains written down.

The automata of most grammars are some hundred states. One derivation and one minimisation for all of them take half
of what they take one by one, or less, as nearly all of that is calls (`minimal_together`).

Most lexemes of a grammar are keywords. An expression that is a sequence of byte sets (a literal, a literal whatever its
case) is a *chain*: its minimal automaton has one state more than there are sets, and is written down without deriving
or minimising anything. 5,000 keywords take 24 ms so, 1.8 s otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.automata.byte_classes import byte_classes
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize, minimize_from
from tokdfa.automata.moves import part_from
from tokdfa.core.budget import hold, spend
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.grammar.cfg import Lexeme, SpecialTokens
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.byte_table import DEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import Cfg
    from tokdfa.regex.expression import ExpressionStore

Int32 = npt.NDArray[np.int32]

#: An automaton of more states than this stays lazy.
EXPLICIT_STATES = 2_000
#: What it takes to find a chain and to make an automaton, without its states, and what an automaton holds.
NS_PER_CHAIN, NS_PER_AUTOMATON, BYTES_PER_AUTOMATON = 5_000, 80_000, 1_500


def read_automata(cfg: Cfg, max_states: int) -> Automata:
    """Find the chains, and make the automata of the other lexemes: explicit if they have few states, or lazy.

    `max_states` bounds the states of a lazy one. Raises EmptyLanguageError, which names the terminal.
    """
    found, store = Automata(cfg), cfg.store
    others: dict[int, int] = {}
    for symbol, lexeme in enumerate(cfg.lexemes):
        spend(NS_PER_CHAIN)
        if isinstance(lexeme, SpecialTokens):
            found[symbol] = None
            continue
        assert isinstance(lexeme, Lexeme), "schemas are expanded before"
        if lexeme.automaton is not None:
            found[symbol], found.starts[symbol] = lexeme.automaton()
            continue
        chain = read_chain(store, lexeme.expression, EXPLICIT_STATES - 2)
        if chain is not None:
            found.chains[symbol] = chain
            continue
        others[symbol] = lexeme.expression
    together = minimal_together(store, list(others.values()), max_states)
    if together is not None:
        automaton, starts = together
        found.update(zip(others, parts_from(automaton, starts), strict=True))
        return found
    for symbol, expression in others.items():
        lexeme = cfg.lexemes[symbol]
        found[symbol] = automaton_of(store, expression, f"the terminal {lexeme.name} (line {lexeme.line})", max_states)
    return found


def minimal_together(
    store: ExpressionStore, expressions: Sequence[int], max_states: int = EXPLICIT_STATES
) -> tuple[Dfa, Int32] | None:
    """One minimal automaton for many languages, and the state in which the texts of each begin, int32.

    None if that takes more than `max_states` or EXPLICIT_STATES states, or if an expression needs a proof that it has
    texts.
    """
    if not expressions or any(store.is_boolean(expression) for expression in expressions):
        return None
    lazy = LazyDfa.of_many(store, expressions)
    starts = [lazy.state_of(expression) for expression in expressions]
    if min(starts) < 0:
        return None
    try:
        return minimize_from(lazy.to_dfa(min(max_states, EXPLICIT_STATES), min(starts)), starts)
    except LimitExceeded as error:
        if error.limit != "max_states":
            raise
        return None


def automaton_of(store: ExpressionStore, expression: int, where: str, max_states: int = 1_000_000) -> Dfa | LazyDfa:
    """The automaton of an expression: minimal if it has at most EXPLICIT_STATES states, lazy otherwise, and then of at
    most `max_states`.

    Raises EmptyLanguageError, which names `where`.
    """
    chain = read_chain(store, expression, EXPLICIT_STATES - 2)
    if chain is not None and len(chain):
        return chain_automaton(store, chain)
    lazy = LazyDfa(store, expression, max_states)
    if lazy.is_empty:
        raise EmptyLanguageError(f"no text matches {where}; nothing could be generated")
    try:
        return minimize(lazy.to_dfa(EXPLICIT_STATES))
    except LimitExceeded as error:  # a new one: the states made in vain would count against its limit
        if error.limit != "max_states":
            raise
        return LazyDfa(store, expression, max_states)


class Part(NamedTuple):
    """What can be reached from a state of an automaton: a minimal automaton that starts in its state 0; see `Dfa`."""

    transitions: Int32
    byte_class: npt.NDArray[np.uint8]
    accepting: npt.NDArray[np.bool_]


def parts_from(automaton: Dfa, starts: Int32) -> list[Part]:
    """The part of an automaton from each of these states on. O(its states x classes) for each."""
    found = []
    for start in starts.tolist():
        rows, order = part_from(automaton.transitions, start)
        found.append(Part(rows, automaton.byte_class, automaton.accepting[order]))
    return found


class Automata(dict[int, Dfa | Part | LazyDfa | None]):
    """The automata of a grammar's lexemes by symbol: minimal, or lazy, or None for special tokens.

    `chains`: the byte sets of each chain, by symbol: int32, expressions of the store. The automaton of a chain is made
    when it is asked for; iterating passes over those that were not. `starts`: the state in which the text of a symbol
    begins, if that is not 0; a lazy automaton may serve many symbols so.
    """

    def __init__(self, cfg: Cfg) -> None:
        super().__init__()
        self.store, self.chains = cfg.store, dict[int, Int32]()
        self.starts: dict[int, int] = {}

    def __missing__(self, symbol: int) -> Dfa:
        made = self[symbol] = chain_automaton(self.store, self.chains[symbol])
        return made

    def common_classes(self) -> tuple[npt.NDArray[np.uint8], Int32]:
        """(byte -> class, a byte of each class): the coarsest classes that no automaton divides."""
        distinct = np.unique(np.concatenate([np.empty(0, dtype=np.int32), *self.chains.values()]))
        divisions = [byte_sets(self.store, distinct)]
        divisions += [automaton.byte_class[None] for automaton in self.values() if automaton is not None]
        classes, representatives = byte_classes(np.concatenate(divisions))
        return classes, representatives.astype(np.int32)


def chain_automaton(store: ExpressionStore, sets: Int32) -> Dfa:
    """The minimal automaton of a sequence of byte sets, none of them empty: int32, expressions of the store."""
    spend(NS_PER_AUTOMATON + 500 * len(sets))
    hold(BYTES_PER_AUTOMATON + 40 * len(sets))
    members = byte_sets(store, sets)
    byte_class, representatives = byte_classes(members)
    table = np.full((len(members) + 1, len(representatives)), DEAD, dtype=np.int32)
    table[:-1] = np.where(members[:, representatives], np.arange(1, len(table))[:, None], DEAD)
    return Dfa(table, byte_class, np.arange(len(table)) == len(members), 0)


def read_chain(store: ExpressionStore, expression: int, longest: int) -> Int32 | None:
    """The byte sets that an expression is a sequence of, int32; None if it is none, or has more than `longest`."""
    sets = store.chain(expression, longest)
    return None if sets is None else np.array(sets, dtype=np.int32)


def byte_sets(store: ExpressionStore, expressions: Int32) -> npt.NDArray[np.uint8]:
    """The members of byte sets: uint8, 0 or 1, shape (expressions, 256)."""
    bits = b"".join(map(store.bits_of, expressions.tolist()))
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8).reshape(-1, 32), axis=1, bitorder="little")
