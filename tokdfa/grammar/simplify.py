"""What a grammar's symbols can derive, and a smaller grammar for the same texts: without useless symbols, equal
nonterminals, and trees of joins.

Words. A symbol is *nullable* if it derives the empty text, *productive* if it derives any text, *reachable* if the
start derives something with it. A symbol that lacks one of the last two is *useless*. The size of a grammar is the
number of symbols in its rules.

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

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.cfg import Cfg

if TYPE_CHECKING:
    from collections.abc import Iterable

    Rule = tuple[int, tuple[int, ...]]

#: Equality that shows only after more mergers is not looked for: each round takes as long as the grammar is large.
ROUNDS = 8


def nullable_symbols(cfg: Cfg) -> frozenset[int]:
    """The nonterminals that derive the empty text. O(size)."""
    return _derived_from(cfg, ())


def productive_symbols(cfg: Cfg) -> frozenset[int]:
    """The symbols that derive some text: all lexemes, and nonterminals. O(size)."""
    return _derived_from(cfg, range(len(cfg.lexemes)))


def reachable_symbols(cfg: Cfg) -> frozenset[int]:
    """The start and the symbols in what it derives. O(size)."""
    _count_rules(cfg)
    by_left = defaultdict[int, list[int]](list)
    for left, right in cfg.rules:
        by_left[left].extend(right)
    found, pending = {cfg.start}, [cfg.start]
    while pending:
        new = set(by_left[pending.pop()]) - found
        found |= new
        pending += new
    return frozenset(found)


def _count_rules(cfg: Cfg) -> None:
    """Pay for a pass over all rules, of about 1 us a rule and 0.2 us a symbol."""
    spend(1_000 * len(cfg.rules) + 200 * sum([len(right) for _, right in cfg.rules]))


def _derived_from(cfg: Cfg, known: Iterable[int]) -> frozenset[int]:
    """`known`, and every nonterminal with a rule whose right side consists of such symbols (the smallest such set)."""
    _count_rules(cfg)
    found = set(known)
    for _ in range(3):  # most rules stand before those of what they are made of
        for left, right in reversed(cfg.rules):
            if found.issuperset(right):
                found.add(left)
        if len(found) == len(cfg.names):
            return frozenset(found)
    missing = [len(right) for _, right in cfg.rules]  # symbols of each rule not found yet
    users = defaultdict(list)  # symbol -> a rule for each time it stands in one
    for number, (_, right) in enumerate(cfg.rules):
        for symbol in right:
            users[symbol].append(number)
    pending = list(found)
    while pending:
        for number in users[pending.pop()]:
            missing[number] -= 1
            left = cfg.rules[number][0]
            if not missing[number] and left not in found:
                found.add(left)
                pending.append(left)
    return frozenset(found)


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
    if len(productive) < len(cfg.names):
        rules = tuple(rule for rule in cfg.rules if rule[0] in productive and productive.issuperset(rule[1]))
        cfg = Cfg(cfg.lexemes, cfg.names, rules, cfg.start, cfg.skip, cfg.store)
    kept = reachable_symbols(cfg)
    if len(kept | {cfg.skip} - {-1}) == len(cfg.names):
        return cfg  # as most are
    return _renumber(cfg, kept, [rule for rule in cfg.rules if rule[0] in kept], cfg.start)


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
    alternatives: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for left, right in cfg.rules:
        alternatives[left].append(right)
    start, count = cfg.start, len(alternatives)
    for _ in range(ROUNDS):
        first: dict[frozenset[tuple[int, ...]], int] = {}
        same = {symbol: first.setdefault(frozenset(rights), symbol) for symbol, rights in alternatives.items()}
        same = {symbol: other for symbol, other in same.items() if symbol != other}
        if not same:
            break
        is_kept, start = same.keys().isdisjoint, same.get(start, start)
        alternatives = {
            left: [
                right if is_kept(right) else tuple([same.get(symbol, symbol) for symbol in right]) for right in rights
            ]
            for left, rights in alternatives.items()
            if left not in same
        }
    if len(alternatives) == count:
        return cfg
    rules = [(left, right) for left, rights in alternatives.items() for right in rights]
    return _renumber(cfg, {start, *alternatives, *(symbol for _, right in rules for symbol in right)}, rules, start)


def _renumber(cfg: Cfg, kept: Iterable[int], rules: Iterable[Rule], start: int) -> Cfg:
    """`cfg` with `rules` and `start` instead of its own and with the symbols `kept` and the skip lexeme only."""
    symbols = sorted({*kept, *([cfg.skip] if cfg.skip >= 0 else [])})
    number = {symbol: position for position, symbol in enumerate(symbols)}
    return Cfg(
        tuple(cfg.lexemes[symbol] for symbol in symbols if cfg.is_lexeme(symbol)),
        tuple(cfg.names[symbol] for symbol in symbols),
        tuple(dict.fromkeys([(number[left], tuple([number[symbol] for symbol in right])) for left, right in rules])),
        number[start],
        number.get(cfg.skip, -1),
        cfg.store,
    )
