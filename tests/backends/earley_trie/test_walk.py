"""The walk over the trie, with fallbacks alive at its beginning, through growth, and on part of a vocabulary."""

from __future__ import annotations

import numpy as np

from tests.grammar.lexed_cfgs import make_cfg, run
from tokdfa import mask as masks
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.walk import Walker
from tokdfa.vocabulary.vocabulary import Vocabulary


def walked(walker, situation):
    """The tokens that a walk over the whole trie allows."""
    walker.words[:] = 0
    walker.walk_all(situation)
    allowed = masks.allocate_mask(walker.trie.size + 1)
    allowed[:] = walker.words.view(np.int32)[: len(allowed)]
    return [token for token in masks.mask_to_ids(allowed).tolist() if token < walker.trie.size]


def test_everything_grows_on_the_way():
    """A token of 600 brackets makes as many rows in one walk, and 600 lexer states."""
    deep = [b"(" * size for size in (1, 2, 100, 600)] + [b")" * size for size in (1, 99, 101, 600)] + [b"x" * 600, b"x"]
    vocab = Vocabulary([*deep, b""], end_tokens=[len(deep)])
    counted = "x{0,5000}y"
    cfg = make_cfg((r"\(", r"\)", counted), {"s": [(r"\(", "s", r"\)"), (), (counted,)]})
    machine = Machine(cfg)
    walker = Walker(machine, vocab.trie)
    assert walked(walker, machine.start) == [0, 1, 2, 3, 8, 9]
    assert machine.rows.row_count > 600
    assert machine.lexer.state_count > 600
    assert walked(walker, run(machine, machine.start, b"(" * 100)) == [0, 1, 2, 3, 4, 5, 8, 9]
    assert walked(walker, machine.start) == [0, 1, 2, 3, 8, 9]
