"""Smaller grammars for the same texts: without useless symbols, and with short-cuts through single rules.

Both return a new grammar; symbols are numbered anew, in the old order. `remove_useless` is for every grammar: a parser
that never meets a useless symbol always allows something that leads on. `inline` is an option: fewer symbols and
completions, at the price of names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
    return _renumber(cfg, kept, [(left, right) for left, right in rules if left in kept])


def inline(cfg: Cfg) -> Cfg:
    """`cfg` without useless symbols and with nonterminals that have only one rule replaced by its right side.

    That is done wherever the right side comes down to at most one symbol, and where the nonterminal stands in one place
    only. The start stays. O(size): no longer right side is copied more than once. Source: 000 (llguidance removes
    short-cuts in two passes); here one pass, from the innermost nonterminals outwards.
    """
    cfg = remove_useless(cfg)
    by_left = defaultdict(list)
    for left, right in cfg.rules:
        by_left[left].append(right)
    uses = Counter(symbol for _, right in cfg.rules for symbol in right)
    single = {left: rights[0] for left, rights in by_left.items() if len(rights) == 1 and left != cfg.start}
    short: dict[int, tuple[int, ...]] = {}  # derives one text of at most one symbol: replaced everywhere
    long: dict[int, tuple[int, ...]] = {}  # stands in one place: replaced there
    for symbol in _parts_first(single):
        right = tuple(piece for part in single[symbol] for piece in short.get(part, (part,)))
        if len(right) <= 1 and not long.keys() & right:
            short[symbol] = right
        elif uses[symbol] == 1:
            long[symbol] = right
    replaced = short | long
    rules = [(left, _expand(right, replaced)) for left, right in cfg.rules if left not in replaced]
    kept = {cfg.start, *(symbol for left, right in rules for symbol in (left, *right))}
    return _renumber(cfg, kept, [(left, right) for left, right in rules if right != (left,)])


def _parts_first(single: Mapping[int, tuple[int, ...]]) -> list[int]:
    """The keys of `single`, each behind those in its right side. (A productive symbol with one rule is not in it.)"""
    order: list[int] = []
    seen: set[int] = set()
    pending = list(single)
    while pending:
        symbol = pending.pop()
        if symbol < 0:  # all that is in it has been appended
            order.append(~symbol)
        elif symbol not in seen:
            seen.add(symbol)
            pending.append(~symbol)
            pending += [part for part in single[symbol] if part in single]
    return order


def _expand(right: tuple[int, ...], replaced: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """`right` with symbols replaced, again and again."""
    found: list[int] = []
    pending = [*reversed(right)]
    while pending:
        symbol = pending.pop()
        if symbol in replaced:
            pending.extend(reversed(replaced[symbol]))
        else:
            found.append(symbol)
    return tuple(found)


def _renumber(cfg: Cfg, kept: Iterable[int], rules: Iterable[tuple[int, tuple[int, ...]]]) -> Cfg:
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
