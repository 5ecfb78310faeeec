"""Partitions, walks and single tokens must say the same of every token."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings

from tests.grammar.lexed_cfgs import compile_cfg, lexed_cfgs, make_cfg, mask_of, run
from tests.naive.lexed_earley import LexedEarley
from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.grammar.machine import Machine
from tokdfa.grammar.partition import GROUP_SET, PAST, divide
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = [b"a", b"b", b"c"]
#: All texts of up to four letters, some twice: whatever a lexer state can meet on the way through a token.
DENSE = Vocabulary(
    [bytes(text) for size in range(1, 5) for text in itertools.product(b"abc", repeat=size)] + [b"ab", b""],
    end_tokens=[121],
)


def tokens_one_by_one(compiled, situation):
    """The mask of a situation by reading each token's bytes."""
    vocab, machine = compiled.vocab, compiled.machine
    allowed = [token for token in range(vocab.size) if vocab.token_bytes(token)]
    allowed = [token for token in allowed if run(machine, situation, vocab.token_bytes(token)) >= 0]
    return sorted(allowed + (list(vocab.end_tokens) if machine.can_end(situation) else []))


def check_masks(cfg, vocab, depth, rng, **options):
    """Along random walks: by partition, by walk, by slices of the trie, and token by token."""
    ways = [{"mask": "partition", "shared_partitions": False}, {"mask": "partition"}, {"mask": "walk"}]
    compiled = [compile_cfg(cfg, vocab, memo=False, **way, **options) for way in ways]
    twin = LexedEarley(
        cfg, options.get("lexer", "longest") == "longest", options.get("ignore", "anywhere") == "anywhere"
    )
    matchers = [one.start() for one in compiled]
    text = b""
    for _ in range(depth):
        found = [mask_of(matcher) for matcher in matchers]
        assert found[0] == found[1] == found[2], text
        assert found[0] == tokens_one_by_one(compiled[0], matchers[0].state), text
        named = [token for token in rng.sample(range(vocab.size), 3) if vocab.token_bytes(token)]
        for token in named:
            assert (token in found[0]) == twin.goes_on(text + vocab.token_bytes(token)), (text, token)
        open_ones = [token for token in found[0] if token not in vocab.end_tokens]
        if not open_ones:
            return
        token = rng.choice(open_ones)
        text += vocab.token_bytes(token)
        for matcher in matchers:
            matcher.advance(token)


@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
@pytest.mark.parametrize("ignore", ["anywhere", "between"])
def test_masks_agree(lexer, ignore):
    @settings(max_examples=40)
    @given(lexed_cfgs())
    def check(cfg):
        check_masks(cfg, DENSE, 4, random.Random(0), lexer=lexer, ignore=ignore)

    check()


@settings(max_examples=60)
@given(lexed_cfgs(), vocabularies(b"abc", 20))
def test_masks_agree_on_small_vocabularies(cfg, drawn):
    """Letters alone, so that nothing is a dead end, and tokens as they come, duplicates and long ones."""
    tokens = [*LETTERS, *(drawn.token_bytes(token) for token in range(drawn.size)), b""]
    vocab = Vocabulary(tokens, end_tokens=[len(tokens) - 1])
    for lexer in ("longest", "one_byte"):
        check_masks(cfg, vocab, 5, random.Random(1), lexer=lexer)


def test_a_partition_by_hand():
    """In the state after "a" of a+ (then b, then c): what stays inside, and where the lexeme ends."""
    vocab = Vocabulary([b"a", b"aa", b"ab", b"b", b"bc", b"c", b"aab", b"d", b"abd", b""], end_tokens=[9])
    machine = Machine(make_cfg(("a+", "b", "c"), {"s": [("a+", "b", "c")]}))
    _, state, _ = machine.view(run(machine, machine.start, b"a"))
    partition = divide(machine, vocab.trie, state)
    assert masks.mask_to_ids(partition.inside).tolist() == [0, 1]
    assert {tuple(machine.lexer.lexemes_of(number)) for number in partition.groups[:, GROUP_SET]} == {(0,)}
    starts = {bytes([vocab.trie.byte(int(exit_[0]))]) for exit_ in partition.exits}
    assert starts == {b"b", b"c", b"d"}
    assert np.all(partition.exits[:, PAST] > partition.exits[:, 0])
    assert partition.visited == vocab.trie.node_count - sum(
        vocab.trie.next(int(exit_[0])) - int(exit_[0]) - 1 for exit_ in partition.exits
    )


def test_bytes_given_back_are_read_again():
    """After "list", the e of "listened" or of "ed": by longest match it is read again if the lexeme ended before."""
    cfg = make_cfg(("list|listen", "ed", "es"), {"s": [("list|listen", "ed"), ("list|listen", "es")]})
    letters = [bytes([byte]) for byte in b"listend"]
    vocab = Vocabulary([*letters, b"ed", b"es", b"end", b"ened", b"listed", b"enes", b""], end_tokens=[13])
    compiled = compile_cfg(cfg, vocab)
    machine = compiled.machine
    _, state, _ = machine.view(run(machine, machine.start, b"list"))
    partition = divide(machine, vocab.trie, state)
    assert bytes(partition.again) in (b"ee", b"eee")
    matcher = compiled.start()
    for token in b"list":
        matcher.advance(b"listend".index(token))
    assert [vocab.token_bytes(token) for token in mask_of(matcher)] == [b"e", b"ed", b"es", b"ened", b"enes"]
    narrow = compile_cfg(cfg, vocab, lexer="one_byte").start()
    for token in b"list":
        narrow.advance(b"listend".index(token))
    assert [vocab.token_bytes(token) for token in mask_of(narrow)] == [b"e", b"ened", b"enes"]


def test_many_exits():
    """More exits than there is room for at first, and more bytes to be read again."""
    words = [bytes(text) for size in range(1, 9) for text in itertools.product(b"ab", repeat=size)]
    words += [word + b"c" for word in words] + [b"c", b"d", b""]
    vocab = Vocabulary(words, end_tokens=[len(words) - 1])
    letters = "[ab]|[ab]{2,8}d"
    cfg = make_cfg((letters, "c"), {"s": [(), ("s", letters), ("s", "c")]})
    compiled = compile_cfg(cfg, vocab)
    partition = divide(compiled.machine, vocab.trie, compiled.machine.view(compiled.machine.start)[1])
    assert len(partition.exits) > 500
    assert len(partition.again) > 3000
    check_masks(cfg, vocab, 3, random.Random(2))
