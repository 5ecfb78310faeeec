"""Lark's LALR(1) tables and terminals, as arrays.

Lark reads the grammar, simplifies its rules and builds the tables; where a shift and a reduction are both possible, it
shifts. Rows are states, columns terminals, the last one being the end of the text. Terminals are numbered in the order
in which Lark's lexer tries them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.cfg_fsm.lark_errors import not_lalr, place_of, refusal
from tokdfa.backends.cfg_fsm.lark_size import count_expansion
from tokdfa.core.budget import hold, spend
from tokdfa.core.nesting import ROOM, with_room
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

#: What it takes Lark to read a character and a terminal of a grammar, to look at a rule and at an item of a state; and
#: what an item holds.
NS_PER_CHARACTER, NS_PER_TERMINAL, NS_PER_RULE, NS_PER_ITEM, BYTES_PER_ITEM = 10_000, 20_000, 2_500, 2_000, 100
#: So many conflicts are told of.
SHOWN_CONFLICTS = 10
#: What Lark calls the end of the text.
END_NAME = "$END"


@dataclass(frozen=True)
class LarkTerminal:
    """A terminal. `regexp`: as Lark gives it to `re`; `is_string`: written as a string; `flags`: of the pattern."""

    name: str
    shown: str
    regexp: str
    is_string: bool
    value: str
    flags: frozenset[str]
    priority: int


@dataclass(frozen=True, eq=False)
class LalrTables:
    """LALR(1) tables. S states, T terminals, N nonterminals, R rules.

    `terminals`: in the order of the lexer; `ignored`: numbers of those that mean nothing. `actions`: int32, shape
    (S, T + 1), 0 for an error, s + 1 for a shift to s, -r - 1 for a reduction by rule r; the last column is the end of
    the text. `gotos`: int32, shape (S, N), -1 if there is none. `rule_lengths`, `rule_lefts`: int32, shape (R,).
    `start`, `end`: states. `conflicts`: what had to be resolved, in Lark's words. `is_productive`: every nonterminal
    derives some sequence of terminals.
    """

    terminals: tuple[LarkTerminal, ...]
    ignored: frozenset[int]
    actions: npt.NDArray[np.int32]
    gotos: npt.NDArray[np.int32]
    rule_lengths: npt.NDArray[np.int32]
    rule_lefts: npt.NDArray[np.int32]
    start: int
    end: int
    conflicts: tuple[str, ...] = ()
    is_productive: bool = True


def read_tables(text: str, start: str = "start", conflicts: str = "shift") -> LalrTables:
    """The tables of a grammar in Lark's notation.

    `conflicts`: ``shift`` resolves a shift/reduce conflict as Lark does, ``refuse`` raises UnsupportedConstraint as
    Lark's strict mode does. A reduce/reduce conflict is always refused. Raises GrammarSyntaxError and UnknownNameError,
    and GrammarUnsupported for a terminal that may be empty and for what cannot be imported.
    """
    import lark

    spend(NS_PER_CHARACTER * len(text))
    options: dict[str, Any] = {"parser": "lalr", "lexer": _no_lexer(), "start": start}
    options |= {"import_paths": [_imports_of(text)], "_plugins": {"LALR_Parser": _Analysis}}
    try:
        with_room(lambda: count_expansion(text))
        loaded = with_room(lambda: lark.Lark(text, **options))
    except lark.exceptions.LarkError as error:
        raise refusal(str(error), text, start) from None
    except RecursionError:
        raise LimitExceeded("the grammar is nested too deep for Lark", limit="nesting", value=ROOM) from None
    for terminal in loaded.terminals:
        spend(NS_PER_TERMINAL)
        _check_terminal(terminal, text)
    used = {symbol.name for rule in loaded.rules for symbol in rule.expansion if symbol.is_term}
    for name in sorted(used - {terminal.name for terminal in loaded.terminals}):
        reason = f"the terminal {name} is declared without a pattern, so no text can be it; define it"
        raise GrammarUnsupported(reason, text, *(place_of(name, text) or (1, 1)))
    terminals = sorted(loaded.terminals, key=_place_in_order)
    analysis = loaded.parser.parser.analysis
    found = _resolved_conflicts(analysis)
    if found and conflicts == "refuse":
        report = "\n".join(found[:SHOWN_CONFLICTS])
        report += f"\nand {len(found) - SHOWN_CONFLICTS} more" if len(found) > SHOWN_CONFLICTS else ""
        raise not_lalr(report, "; conflicts=shift takes the texts that Lark accepts, and may lose others")
    return _make_tables(loaded, analysis, terminals, start, found)


def _imports_of(text: str) -> Callable[[Any, str], tuple[Any, str]]:
    """What reads grammars that a text imports: those of Lark's library, and no files around."""
    from lark.load_grammar import FromPackageLoader

    library = FromPackageLoader("lark", ("grammars",))

    def read(base: Any, path: str) -> tuple[Any, str]:
        try:
            return library(base, path)
        except OSError:
            name = PurePath(path).with_suffix("")
            shown = ".".join(name.parts)
            reason = f"there is nothing to import from {shown!r}; cfg_fsm imports from Lark's own library only"
            raise GrammarUnsupported(reason, text, *(place_of(name.name, text) or (1, 1))) from None

    return read


def _check_terminal(terminal: Any, text: str) -> None:
    """Raise what Lark's lexer would: for a broken regex, and for a terminal that may be empty."""
    try:
        re.compile(terminal.pattern.to_regexp())
    except re.error as error:
        place = place_of(terminal.name, text) or (1, 1)
        raise GrammarSyntaxError(f"the terminal {terminal.user_repr()} is no regex: {error}", text, *place) from None
    if terminal.pattern.min_width == 0:
        reason = f"the terminal {terminal.user_repr()} may be empty, which Lark's lexer does not allow"
        raise GrammarUnsupported(reason, text, *(place_of(terminal.name, text) or (1, 1)))


class _Analysis:
    """Stands in for Lark's parser: keeps the analysis, which has the lookaheads that the finished table lacks."""

    def __init__(self, parser_conf: Any, debug: bool = False, strict: bool = False) -> None:
        spend(NS_PER_RULE * len(parser_conf.rules))
        self.analysis = _paying_analyzer()(parser_conf)
        self.analysis.compute_lalr()


def _sets_of_lalr(rules: list[Any]) -> tuple[dict[Any, Any], dict[Any, Any], set[Any]]:
    """(FIRST, FOLLOW, NULLABLE) of Lark, the first two empty: its LALR construction asks for NULLABLE alone."""
    return {}, {}, _derived((rule.origin, rule.expansion) for rule in rules)


def _derived(rules: Iterable[tuple[Any, Iterable[Any]]]) -> set[Any]:
    """The least set that holds the left side of each rule whose symbols on the right it holds. Linear in the rules."""
    derived: set[Any] = set()
    lefts, missing = [], []
    uses: dict[Any, list[int]] = {}
    for number, (left, right) in enumerate(rules):
        needed = set(right)
        lefts.append(left)
        missing.append(len(needed))
        for symbol in needed:
            uses.setdefault(symbol, []).append(number)
    waiting = [left for left, count in zip(lefts, missing, strict=True) if count == 0]
    while waiting:
        symbol = waiting.pop()
        if symbol not in derived:
            derived.add(symbol)
            for number in uses.get(symbol, ()):
                missing[number] -= 1
                if missing[number] == 0:
                    waiting.append(lefts[number])
    return derived


def _rebound(function: Any, **names: Any) -> Any:
    """`function`, to which these global names mean something else."""
    code, own = function.__code__, {**function.__globals__, **names}
    return FunctionType(code, own, function.__name__, function.__defaults__, function.__closure__)


@cache
def _paying_analyzer() -> Any:
    """Lark's construction of LALR tables, with each of its stages paid for before it is begun.

    Lark computes FIRST, FOLLOW and NULLABLE by passing over all rules until nothing changes, which is quadratic in a
    chain of rules; `_sets_of_lalr` takes the place of that.
    """
    from lark.parsers.grammar_analysis import GrammarAnalyzer
    from lark.parsers.lalr_analysis import LALR_Analyzer

    analyze = SimpleNamespace(__init__=_rebound(GrammarAnalyzer.__init__, calculate_sets=_sets_of_lalr))

    class PayingAnalyzer(LALR_Analyzer):
        __init__ = _rebound(LALR_Analyzer.__init__, GrammarAnalyzer=analyze)
        nonterminal_transitions: Any

        def expand_rule(self, source_rule: Any, rules_by_origin: Any = None) -> Any:
            found = super().expand_rule(source_rule, rules_by_origin)
            spend(2 * NS_PER_ITEM * (2 + len(found)))
            hold(BYTES_PER_ITEM * (2 + len(found)))
            return found

        def compute_reads_relations(self) -> None:
            spend(NS_PER_ITEM * sum(len(state.closure) for state in self.lr0_itemsets))
            super().compute_reads_relations()

        def compute_includes_lookback(self) -> None:
            """Lark passes over all items of a state for each nonterminal; it is shown those that make it alone."""
            transitions = self.nonterminal_transitions
            for state, group in groupby(transitions, key=itemgetter(0)):
                closure, making = state.closure, dict[Any, list[Any]]()
                spend(NS_PER_ITEM * len(closure))
                for item in closure:
                    making.setdefault(item.rule.origin, []).append(item)
                for transition in group:
                    state.closure, self.nonterminal_transitions = making[transition[1]], [transition]
                    super().compute_includes_lookback()
                state.closure = closure
            self.nonterminal_transitions = transitions

        def compute_lookaheads(self) -> None:
            edges = sum(map(len, self.includes.values())) + sum(map(len, self.reads.values()))
            terminals = len({symbol for symbols in self.directly_reads.values() for symbol in symbols})
            spend(NS_PER_ITEM * edges + NS_PER_ITEM // 20 * terminals * (edges + sum(map(len, self.lookback.values()))))
            super().compute_lookaheads()

        def compute_lalr1_states(self) -> None:
            spend(NS_PER_ITEM * sum(len(state.transitions) + len(state.lookaheads) for state in self.lr0_itemsets))
            super().compute_lalr1_states()

    return PayingAnalyzer


def _no_lexer() -> Any:
    """A lexer for Lark that is never used: contexts and their order are ours (`tokdfa.backends.cfg_fsm.contextual`)."""
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        __future_interface__ = 2

        def __init__(self, conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            raise NotImplementedError

    return NoLexer


def _place_in_order(terminal: Any) -> tuple[int, int, int, str]:
    """The key by which Lark sorts the terminals of a lexer."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


def _resolved_conflicts(analysis: Any) -> tuple[str, ...]:
    """The shift/reduce conflicts, and the reduce/reduce conflicts that priorities of rules decide, in words."""
    found = []
    for itemset in analysis.lr0_itemsets:
        for lookahead, rules in itemset.lookaheads.items():
            if lookahead not in itemset.transitions and len(rules) <= 1:
                continue
            listed = "".join(f"\n * {rule}" for rule in rules)
            if lookahead in itemset.transitions:
                found.append(f"Shift/Reduce conflict for terminal {lookahead.name}:{listed}")
            else:
                found.append(f"Reduce/Reduce conflict for terminal {lookahead.name}, decided by priority:{listed}")
    return tuple(sorted(found))


def _make_tables(
    loaded: Any, analysis: Any, terminals: list[Any], start: str, conflicts: tuple[str, ...]
) -> LalrTables:
    from lark.parsers.lalr_analysis import Shift

    table = analysis.parse_table
    columns = {terminal.name: column for column, terminal in enumerate(terminals)}
    columns[END_NAME] = len(terminals)
    rules = list(dict.fromkeys(arg for row in table.states.values() for kind, arg in row.values() if kind is not Shift))
    rule_numbers = {rule: number for number, rule in enumerate(rules)}
    lefts: dict[str, int] = {}
    for rule in rules:
        lefts.setdefault(rule.origin.name, len(lefts))
    spend(NS_PER_ITEM // 2 * sum(map(len, table.states.values())))
    hold(4 * len(table.states) * (len(columns) + len(lefts) + 1))
    actions = np.zeros((len(table.states), len(columns)), dtype=np.int32)
    gotos = np.full((len(table.states), max(len(lefts), 1)), -1, dtype=np.int32)
    for state, row in table.states.items():
        for name, (kind, arg) in row.items():
            if name in columns:
                actions[state, columns[name]] = arg + 1 if kind is Shift else -rule_numbers[arg] - 1
            elif name in lefts:
                gotos[state, lefts[name]] = arg
    return LalrTables(
        tuple(map(_read_terminal, terminals)),
        frozenset(columns[name] for name in loaded.ignore_tokens),
        actions,
        gotos,
        np.array([len(rule.expansion) for rule in rules], dtype=np.int32),
        np.array([lefts[rule.origin.name] for rule in rules], dtype=np.int32),
        table.start_states[start],
        table.end_states[start],
        conflicts,
        _is_productive(loaded.rules),
    )


def _read_terminal(terminal: Any) -> LarkTerminal:
    pattern = terminal.pattern
    return LarkTerminal(
        terminal.name,
        terminal.user_repr(),
        pattern.to_regexp(),
        pattern.type == "str",
        pattern.value,
        frozenset(pattern.flags),
        terminal.priority,
    )


def _is_productive(rules: list[Any]) -> bool:
    """Whether every nonterminal derives some sequence of terminals."""
    spend(NS_PER_RULE * len(rules))
    needed = ((rule.origin, (symbol for symbol in rule.expansion if not symbol.is_term)) for rule in rules)
    return _derived(needed) >= {rule.origin for rule in rules}


def one_terminal_tables(may_be_empty: bool) -> LalrTables:
    """The tables of a grammar whose texts are the lexemes of one terminal, and perhaps the empty text.

    State 0 shifts the terminal to 1; rule 0 makes the start of it, rule 1 of nothing; state 2 is the end.
    """
    actions = np.array([[2, -2 if may_be_empty else 0], [0, -1], [0, 0]], dtype=np.int32)
    gotos = np.array([[2], [-1], [-1]], dtype=np.int32)
    lengths, lefts = np.array([1, 0], dtype=np.int32), np.zeros(2, dtype=np.int32)
    terminal = LarkTerminal("TEXT", "TEXT", "", False, "", frozenset(), 0)
    return LalrTables((terminal,), frozenset(), actions, gotos, lengths, lefts, 0, 2)
