"""A smaller grammar for the same texts: without useless symbols.

A parser that never meets a useless symbol always allows something that leads on. The result is a new grammar; symbols
are numbered anew, in the old order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg

if TYPE_CHECKING:
    from collections.abc import Iterable


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
