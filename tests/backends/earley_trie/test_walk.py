"""The walk over the trie, with fallbacks alive at its beginning, through growth, and on part of a vocabulary."""

from __future__ import annotations

from tests.grammar.lexed_cfgs import make_cfg, run
from tokdfa import mask as masks
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.walks import EarleyMasks
from tokdfa.vocabulary.vocabulary import Vocabulary


def walked(builder, situation, trie=None):
    """The tokens that a walk allows; divisions must allow the same."""
    found = []
    for way in (lambda out: builder.walk(situation, out, trie), lambda out: builder.fill(situation, out)):
        mask = masks.allocate_mask(builder.flat.size)
        way(mask)
        found.append(masks.mask_to_ids(mask).tolist())
    assert trie is not None or found[0] == found[1]
    return found[0]


def test_everything_grows_on_the_way():
    """A token of 600 brackets makes as many rows in one walk, and 600 lexer states."""
    deep = [b"(" * size for size in (1, 2, 100, 600)] + [b")" * size for size in (1, 99, 101, 600)] + [b"x" * 600, b"x"]
    vocab = Vocabulary([*deep, b""], end_tokens=[len(deep)])
    counted = "x{0,5000}y"
    cfg = make_cfg((r"\(", r"\)", counted), {"s": [(r"\(", "s", r"\)"), (), (counted,)]})
    machine = Machine(cfg)
    builder = EarleyMasks(machine, vocab.trie, patience=0)
    assert walked(builder, machine.start) == [0, 1, 2, 3, 8, 9]
    assert machine.rows.row_count > 600
    assert machine.lexer.state_count > 600
    assert walked(builder, run(machine, machine.start, b"(" * 100)) == [0, 1, 2, 3, 4, 5, 8, 9]
    assert walked(builder, machine.start) == [0, 1, 2, 3, 8, 9]
