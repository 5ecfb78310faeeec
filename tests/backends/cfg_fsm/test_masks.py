"""Both ways to make masks against the definition: a token is allowed iff the machine survives its bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, reject, settings

from tests.backends.cfg_fsm.oracles import NAMES, corpus, machine_of, make_machine
from tests.backends.cfg_fsm.random_grammars import random_grammars
from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.speculation import Speculation, Walker
from tokdfa.errors import TokdfaError
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = [b"a", b"b", b"c", b"A", *b"ab ba aa abab bca cc caab ab aabba bcb abcabc".split()]
#: Letters, words of them, two ids for one text, an end token, padding.
PIECES = Vocabulary([*LETTERS, b""], end_tokens=[len(LETTERS)], size=50)


def hopeful_tokens(machine, vocab: Vocabulary, situation: int) -> list[int]:
    """The tokens that leave a hypothesis open, each run by itself."""
    offsets = vocab.offsets.tolist()
    runs = (machine.run(situation, vocab.byte_data, *offsets[token : token + 2]) for token in range(vocab.size))
    return [token for token, after in enumerate(runs) if after >= 0 and offsets[token] < offsets[token + 1]]


def filled(filler, situation: int, vocab: Vocabulary) -> list[int]:
    out = masks.allocate_mask(vocab.size)
    out.fill(-1)
    filler.fill(situation, out)
    return masks.mask_to_ids(out).tolist()


@given(random_grammars())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_masks_of_random_grammars(grammar: str) -> None:
    try:
        machine = make_machine(grammar)
        fillers = [Walker(machine.hypotheses, PIECES.trie), Speculation(machine.hypotheses, PIECES, 1 << 20)]
        rng, here = random.Random(grammar), machine.start
        for _ in range(8):
            allowed = hopeful_tokens(machine, PIECES, here)
            for filler in fillers:
                assert filled(filler, here, PIECES) == allowed
            if not allowed:
                break
            token = rng.choice(allowed)
            begin, end = PIECES.offsets[token : token + 2].tolist()
            here = machine.run(here, PIECES.byte_data, begin, end)
    except TokdfaError:
        reject()


def pieces_of(texts: tuple[str, ...], rng: random.Random) -> Vocabulary:
    """All bytes, and 300 pieces of the texts."""
    joined = [text.encode() for text in texts if text]
    tokens = [bytes([byte]) for byte in range(256)]
    for _ in range(300):
        text = rng.choice(joined)
        begin = rng.randrange(len(text))
        tokens.append(text[begin : begin + rng.randint(1, 9)])
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)], size=len(tokens) + 40)


@pytest.mark.parametrize("name", NAMES)
def test_masks_of_the_corpus(name: str) -> None:
    grammar, accepted, _ = corpus(name)
    rng, machine = random.Random(name), machine_of(grammar)
    vocab = pieces_of(accepted, rng)
    walker, tree = Walker(machine.hypotheses, vocab.trie), Speculation(machine.hypotheses, vocab, 1 << 30)
    checked = 0
    for text in accepted[:8]:
        here, data = machine.start, np.frombuffer(text.encode()[:80], dtype=np.uint8)
        for place in range(len(data)):
            if place % 3 == 0:
                allowed = hopeful_tokens(machine, vocab, here)
                assert filled(walker, here, vocab) == allowed
                assert filled(tree, here, vocab) == allowed
                checked += 1
            here = machine.run(here, data, place, place + 1)
    assert checked > 5
    assert tree.counters["nodes_made"] > 3
    assert walker.counters["nodes_visited"] > 1_000


def test_nodes_are_shared_by_stacks() -> None:
    """Deeper brackets make no new nodes: the tree knows nothing of stacks."""
    machine = machine_of('start: "(" start ")" | "[" start "]" | "a"\n')
    vocab = Vocabulary([b"(", b"[", b")", b"]", b"a", b"((", b"([", b"a)", b"a))", b"])", b""], end_tokens=[10])
    tree, here, made = Speculation(machine.hypotheses, vocab, 1 << 20), machine.start, []
    for token in [0, 1] * 20:
        assert filled(tree, here, vocab) == hopeful_tokens(machine, vocab, here)
        here = machine.run(here, vocab.byte_data, *vocab.offsets[token : token + 2].tolist())
        made.append(tree.counters["nodes_made"])
    assert made[-1] == made[5]


def test_everything_is_forgotten_past_the_limit() -> None:
    grammar, accepted, _ = corpus("json")
    machine, rng = machine_of(grammar), random.Random(3)
    vocab = pieces_of(accepted, rng)
    tree, large = Speculation(machine.hypotheses, vocab, 3_000), Speculation(machine.hypotheses, vocab, 1 << 30)
    here, data = machine.start, np.frombuffer(max(accepted, key=len).encode()[:60], dtype=np.uint8)
    for place in range(len(data)):
        assert filled(tree, here, vocab) == filled(large, here, vocab)
        assert tree.nbytes < 20_000  # the limit, and the node that passed it
        here = machine.run(here, data, place, place + 1)
    assert large.nbytes > 100_000
    assert tree.counters["masks_walked"] > 0
