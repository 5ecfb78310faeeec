"""Batches of masks and lists of tokens against masks filled one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.batch import fill_rows
from tokdfa.backends.earley_trie.strategy import EarleyTrie
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie, fill_masks
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import ArgumentError
from tokdfa.vocabulary.mask_store import BLOCK_MASKS, NARROW, MaskStore
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher

TEXTS = Grammar('start: "[" [item ("," item)*] "]"\nitem: start | NAME\nNAME: /"[^"]*"|[0-9]+/\n')


def walked(compiled, count: int, seed: int = 0) -> list[Matcher]:
    """Matchers after 0 to count - 1 random tokens; the last is finished."""
    rng = np.random.default_rng(seed)
    vocabulary = compiled.vocab
    mask, found = masks.allocate_mask(vocabulary.size), []
    for length in range(count):
        matcher = compiled.start()
        for _ in range(length % 9):
            matcher.fill_mask(mask)
            tokens = [t for t in masks.mask_to_ids(mask).tolist() if t not in vocabulary.end_token_set]
            if not tokens:
                break
            matcher.advance(int(rng.choice(tokens)))
        found.append(matcher)
    return found


def one_by_one(matchers: list[Matcher]) -> np.ndarray:
    out = np.empty((len(matchers), masks.mask_words(matchers[0].vocab.size)), dtype=np.int32)
    for matcher, row in zip(matchers, out, strict=True):
        matcher.fill_mask(row)
    return out


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("memo", [True, False])
def test_a_batch_is_masks_one_by_one(threads: int, memo: bool) -> None:
    """Kept and new masks, wide and narrow, of two constraints and another engine, one of them finished."""
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    numbers = PushdownTrie(vocabulary, memo=memo).compile(Regex("[0-9]{3}"))
    finished = numbers.start()
    for byte in b"123":
        finished.advance(vocabulary.trie.prefixes_of(bytes([byte]))[0])
    finished.advance(vocabulary.end_tokens[0])
    matchers = walked(PushdownTrie(vocabulary, memo=memo).compile(TEXTS), 40)
    matchers += [*walked(numbers, 5), *walked(EarleyTrie(vocabulary).compile(TEXTS), 5), finished]
    expected = one_by_one([matcher.fork() for matcher in matchers])
    for chosen in (list(range(len(matchers))), [3, 1, 3, 50, 45], list(range(40)), [50]):
        out = np.full((len(chosen), expected.shape[1]), -1, dtype=np.int32)
        for _ in range(2):
            fill_masks([matchers[k] for k in chosen], out, threads)
            assert np.array_equal(out, expected[chosen])
    for words in (0, 9):
        fill_masks([], np.empty((0, words), dtype=np.int32))
    for wrong in ((), (9,), (1, 9)):
        with pytest.raises(ArgumentError, match="out must be a mask"):
            fill_masks([], np.empty(wrong, dtype=np.int32))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_not_lost_among_errors(threads: int) -> None:
    class Failing:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def fill_mask(self, row: np.ndarray) -> None:
            raise self.error

    failing = [Failing(error) for error in (ValueError(), KeyboardInterrupt(), ValueError())]
    with pytest.raises(KeyboardInterrupt):
        fill_rows(failing, np.zeros((3, 1), dtype=np.int32), threads)  # type: ignore[arg-type]


def test_batches_survive_masks_that_are_dropped() -> None:
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    compiled = PushdownTrie(vocabulary).compile(TEXTS)
    matchers = walked(compiled, 30)
    expected = one_by_one(matchers)
    out = np.empty_like(expected)
    fill_masks(matchers, out)
    kept = compiled.generation.masks  # type: ignore[attr-defined]
    kept.limit = 0  # from now on every new mask drops the others
    for _ in range(3):
        for matcher in walked(compiled, 5, seed=7):
            matcher.fill_mask(out[0])
        fill_masks(matchers, out)
        assert np.array_equal(out, expected)


def test_what_is_kept_comes_back() -> None:
    """Masks of all densities, the narrow ones as lists, equal wide ones once; whatever the caller knows of them."""
    rng = np.random.default_rng(5)
    for size in (1, 31, 32, 33, 1_000, 40_000):
        for given in ("nothing", "signature"):
            kept = MaskStore(1 << 24, masks.mask_words(size))
            for row, share in enumerate((0.0, 0.001, 0.01, 0.5, 1.0, 1.0)):
                flags = rng.random(size) < share
                mask = masks.mask_from_ids(np.flatnonzero(flags), size)
                narrow = int(flags.sum()) <= NARROW
                kept.keep(row, mask, None if given == "nothing" else 7)
                again = masks.allocate_mask(size)
                assert kept.fill(row, again)
                assert np.array_equal(again, mask)
                assert (kept.place(row)[1] >= 0) == (narrow and given != "signature")
            if kept.place(4)[1] < 0:
                assert kept.place(4) == kept.place(5)


def test_the_store_stays_below_its_limit() -> None:
    wide, out = masks.mask_from_ids(range(NARROW + 1), 5000), masks.allocate_mask(5000)
    kept = MaskStore(1 << 20, len(wide))
    for row in range(10):
        assert not kept.fill(row, out)
        kept.keep(row, wide)
    assert wide.nbytes <= kept.nbytes < 2 * wide.nbytes + 2_000, "equal masks are kept once"
    kept.limit = 0
    kept.keep(99, masks.mask_from_ids([0], 5000))
    assert len(kept) == 1


def test_more_wide_masks_than_a_block_has_come_back_from_memory_that_another_store_had_too() -> None:
    rng, spare = np.random.default_rng(0), []
    for seed in range(2):
        kept, out = MaskStore(1 << 30, 200, spare), masks.allocate_mask(6400)
        given = rng.integers(-(2**31), 2**31, (2 * BLOCK_MASKS + 3, 200), dtype=np.int32)
        for row, mask in enumerate(given):
            kept.keep(row, mask, signature=seed)
        assert len(spare) == 0
        for row, mask in enumerate(given):
            assert kept.fill(row, out)
            assert np.array_equal(out, mask)
        del kept
        assert len(spare) == 3
