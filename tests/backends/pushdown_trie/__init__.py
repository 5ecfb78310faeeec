"""Machines and compiled constraints made of grammars that no reader has read, for the tests of this package."""

from __future__ import annotations

from tokdfa.backends.base import Phases
from tokdfa.backends.pushdown_trie import row_divisions, state_table, walks
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Choice, Regex
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.program.lower import lower_grammar, lower_regular
from tokdfa.program.program import Terminal
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN
from tokdfa.vocabulary.vocabulary import Vocabulary

LEXERS = ("any", "longest")
#: Every byte is a token, and 256 ends the text.
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])


def machine_of(grammar, lexer="any", vocab=BYTES, **limits) -> Machine:
    """The machine of a grammar, a Cfg or Lark text, in a pool of its own."""
    cfg = read_lark(grammar) if isinstance(grammar, str) else grammar
    return Machine(lower_grammar(cfg, longest=lexer == "longest"), Pool(vocab), **limits)


def accepts(machine: Machine, text: bytes, row: int = 0) -> bool:
    """Whether the machine takes `text` and may end there."""
    row = machine.run_text(text, row)
    return row >= 0 and machine.can_end(row)


def terminal_of(pattern, lazy=False) -> Terminal:
    """The terminal of a regex; `lazy`: whether it ends at its first match."""
    (text,) = lower_regular(Regex(pattern)).source.terminals
    return Terminal(text.label, text.key + bytes([lazy]), text.make, lazy)


def read_states(automata, state, text) -> int:
    """The state after a text, rows of lazy automata being made on the way; DEAD if there is none."""
    for byte in text:
        if automata.transitions[state * 256] == UNKNOWN:
            automata.fill_rows([state])
        state = int(automata.transitions[state * 256 + byte])
        if state < 0:
            assert state == DEAD
            return DEAD
    return state


def compile_cfg(cfg, vocab, **options) -> CompiledPushdown:
    """What the backend makes of a grammar that no reader has read."""
    settings = dict(PushdownTrie(vocab, **options).settings)
    program = lower_grammar(cfg, longest=settings["lexer"] == "longest")
    return CompiledPushdown(Choice(["rules"]), vocab, program, settings, Phases())


def make_everything_wide(monkeypatch) -> None:
    """Let divisions be used where they would not pay, so that small vocabularies meet all that large ones do.

    Every state is wide, and every node with three descendants has a division once a mask has met it.
    """
    monkeypatch.setattr(state_table, "WIDE_BYTES", 1)
    monkeypatch.setattr(state_table, "MOST_BYTES", 0)
    monkeypatch.setattr(walks, "SUBTREE", 2)
    monkeypatch.setattr(row_divisions, "DIVISION_WORK", 0)
    monkeypatch.setattr(row_divisions, "MOST_DUE", 64)
