"""A smaller grammar for the same texts: without useless symbols, equal nonterminals, and trees of joins.

A parser that never meets a useless symbol always allows something that leads on. Masks depend on the language alone,
but what an engine keeps of a text grows with the number of ways to derive it: under ``s: s s | "a"`` a text of n words
has as many trees as there are binary trees of n leaves (Alpay and Senturk 2026, arXiv 2603.05540). Two rewritings take
the common cases of that away:

- Nonterminals with the same alternatives become one, `ROUNDS` times at most.
- A join ``A -> A b A`` becomes ``A -> A b B | B``, where B has the alternatives that do not begin with A. With those
  that do, ``A -> A d``, the language is ``B (d | b B)*`` both before and after: to join two such texts, or to go on
  with d, gives another one, and each is made so.

The result is a new grammar; symbols are numbered anew, in the old order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg

if TYPE_CHECKING:
    from collections.abc import Iterable

    Rule = tuple[int, tuple[int, ...]]

#: Equality that shows only after more mergers is not looked for: each round takes as long as the grammar is large.
ROUNDS = 8


def remove_useless(cfg: Cfg) -> Cfg:
    """`cfg` without rules and symbols that stand in no derivation of a text. O(size).

    Raises EmptyLanguageError if the start derives no text.
    """
    productive = productive_symbols(cfg)
    if cfg.start not in productive:
        endless = [cfg.names[symbol] for symbol in sorted(reachable_symbols(cfg) - productive)]
        shown = ", ".join(endless[:10]) + (", ..." if len(endless) > 10 else "")
        raise EmptyLanguageError(
            f"{cfg.names[cfg.start]!r} derives no text: each of its alternatives needs a rule that never ends; "
            f"give one of these an alternative without itself: {shown}"
        )
    rules = [(left, right) for left, right in cfg.rules if left in productive and productive.issuperset(right)]
    kept = reachable_symbols(Cfg(cfg.lexemes, cfg.names, tuple(rules), cfg.start, cfg.skip, cfg.store))
    if len(rules) == len(cfg.rules) and len(kept | {cfg.skip} - {-1}) == len(cfg.names):
        return cfg  # as most are
    return _renumber(cfg, kept, [(left, right) for left, right in rules if left in kept])


def remove_ambiguity(cfg: Cfg) -> Cfg:
    """`cfg`, whose symbols are all useful, with equal nonterminals once and without trees of joins. O(size)."""
    cfg = _merge_equal(cfg)
    joined = {left for left, right in cfg.rules if len(right) > 1 and right[0] == right[-1] == left}
    if not joined:
        return cfg
    names = list(cfg.names)
    apart = {}
    for symbol in sorted(joined):
        apart[symbol] = len(names)
        names.append(names[symbol])
    rules: list[Rule] = [(symbol, (one,)) for symbol, one in apart.items()]
    for left, right in cfg.rules:
        if left in joined and right[:1] == (left,):
            # with itself alone on the right side it derives nothing new
            if len(right) > 1:
                rules.append((left, (*right[:-1], apart[left]) if right[-1] == left else right))
        else:
            rules.append((apart.get(left, left), right))
    return Cfg(cfg.lexemes, tuple(names), tuple(rules), cfg.start, cfg.skip, cfg.store)


def _merge_equal(cfg: Cfg) -> Cfg:
    """`cfg` with one nonterminal in place of those with the same alternatives."""
    rules, start = cfg.rules, cfg.start
    for _ in range(ROUNDS):
        alternatives: dict[int, dict[tuple[int, ...], None]] = {}
        for left, right in rules:
            alternatives.setdefault(left, {})[right] = None
        first: dict[frozenset[tuple[int, ...]], int] = {}
        same = {symbol: first.setdefault(frozenset(rights), symbol) for symbol, rights in alternatives.items()}
        if len(first) == len(same):
            break
        start = same[start]
        rules = tuple(
            (left, tuple(same.get(symbol, symbol) for symbol in right)) for left, right in rules if same[left] == left
        )
    if rules is cfg.rules:
        return cfg
    kept = {start, *(symbol for left, right in rules for symbol in (left, *right))}
    return _renumber(Cfg(cfg.lexemes, cfg.names, rules, start, cfg.skip, cfg.store), kept, rules)


def _renumber(cfg: Cfg, kept: Iterable[int], rules: Iterable[Rule]) -> Cfg:
    """`cfg` with `rules` instead of its own and with the symbols `kept` and the skip lexeme only."""
    symbols = sorted({*kept, *([cfg.skip] if cfg.skip >= 0 else [])})
    number = {symbol: position for position, symbol in enumerate(symbols)}
    return Cfg(
        tuple(cfg.lexemes[symbol] for symbol in symbols if cfg.is_lexeme(symbol)),
        tuple(cfg.names[symbol] for symbol in symbols),
        tuple(dict.fromkeys((number[left], tuple(number[symbol] for symbol in right)) for left, right in rules)),
        number[cfg.start],
        number.get(cfg.skip, -1),
        cfg.store,
    )
