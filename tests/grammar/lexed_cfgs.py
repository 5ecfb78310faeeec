"""Hypothesis strategies for grammars made of plain rules, and helpers to read texts with a machine.

`byte_cfgs`: lexemes of one byte each, so that nothing but the parser matters. `lexed_cfgs`: lexemes of several bytes
that overlap in every way, lazy ones, and skipped ones. No reader of a grammar notation is involved.
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from tokdfa.backends.base import Phases
from tokdfa.backends.earley_trie.strategy import CompiledEarley, EarleyTrie
from tokdfa.constraint import Choice, Regex
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import ExpressionStore

PATTERNS = ("a", "b", "ab", "aa", "aaa", "a+", "a+b", "a|a+b", "(ab)+", "ab|abab", "a(bb)*", "b+", "b?ab", "[ab]")
MORE_PATTERNS = ("[ab]+", "b+a", "aba|b", "a{2}(b{3})?", "c", "ca|a")
SKIPS = ("c", "c+", "c|b", "cc", "b+", "a?c")


def make_cfg(patterns, rules, skip=-1, lazy=()) -> Cfg:
    """A grammar with the lexemes `patterns`; `rules`: {nonterminal: right sides}, each with patterns and nonterminals.

    The first nonterminal is the start; `skip` and `lazy` are places in `patterns`.
    """
    store = ExpressionStore()
    lexemes = tuple(
        Lexeme(pattern, lower_constraint(Regex(pattern), store), place in lazy)
        for place, pattern in enumerate(patterns)
    )
    names = (*patterns, *rules)
    number = {name: place for place, name in enumerate(names)}
    flat = tuple((number[left], tuple(number[name] for name in right)) for left in rules for right in rules[left])
    return Cfg(lexemes, names, flat, len(patterns), skip, store)


@st.composite
def cfgs_over(draw, patterns, skip: int = -1, lazy=(), count: int = 4) -> Cfg:
    """Rules over the lexemes `patterns`: recursion, cycles, empty rules and ambiguity of every kind.

    Each nonterminal derives some text: its first right side has nonterminals behind it only.
    """
    lexemes = [pattern for place, pattern in enumerate(patterns) if place != skip or draw(st.booleans())]
    names = [f"n{number}" for number in range(draw(st.integers(1, count)))]
    rules = {}
    for number, name in enumerate(names):
        later = st.lists(st.sampled_from([*lexemes, *names[number + 1 :]]), max_size=3).map(tuple)
        every = st.lists(st.sampled_from([*lexemes, *names, *names]), max_size=3).map(tuple)
        rules[name] = list(dict.fromkeys([draw(later), *draw(st.lists(every, max_size=3))]))
    return make_cfg(patterns, rules, skip, lazy)


def byte_cfgs() -> st.SearchStrategy[Cfg]:
    """Grammars over the bytes a and b."""
    return cfgs_over(("a", "b"))


@st.composite
def lexed_cfgs(draw) -> Cfg:
    """Grammars over two to four lexemes of the letters a, b and c; one may be skipped, by rules read or not, some may
    be lazy.
    """
    patterns = draw(st.lists(st.sampled_from((*PATTERNS, *MORE_PATTERNS)), min_size=2, max_size=4, unique=True))
    lazy = draw(st.sets(st.integers(0, len(patterns) - 1), max_size=1)) if draw(st.booleans()) else set()
    skip = -1
    if draw(st.booleans()):
        skip = len(patterns)
        patterns.append(draw(st.sampled_from([pattern for pattern in SKIPS if pattern not in patterns])))
    return draw(cfgs_over(tuple(patterns), skip, lazy, count=3))


def run(machine, situation: int, text: bytes) -> int:
    """The situation after `text`, or -1."""
    return machine.run(situation, np.frombuffer(text, dtype=np.uint8), 0, len(text)) if text else situation


def accepts(machine, text: bytes) -> bool:
    """Whether the machine takes `text` and may end there."""
    situation = run(machine, machine.start, text)
    return situation >= 0 and machine.can_end(situation)


def short_texts(letters: bytes, length: int) -> list[bytes]:
    """All texts of up to `length` letters, the shortest first."""
    return [bytes(text) for size in range(length + 1) for text in itertools.product(letters, repeat=size)]


def compile_cfg(cfg, vocab, **options) -> CompiledEarley:
    """What the backend makes of a grammar that no reader has read."""
    backend = EarleyTrie(vocab, **options)
    return CompiledEarley(Choice(["rules"]), vocab, cfg, dict(backend.settings), Phases())
