from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.errors import ArgumentError, LimitExceeded, TokdfaError
from tokdfa.vocabulary import walk_forms
from tokdfa.vocabulary.byte_table import (
    DEAD,
    UNKNOWN,
    ByteTable,
    RecognizerTable,
    walk,
    walk_collect,
    walk_with_address,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.walk_layout import source_nodes, walk_source

ALPHABET = b"ab\x00\xff"


class TableRecognizer:
    """A random automaton, as a Python recogniser; counts its steps."""

    def __init__(self, moves: dict[tuple[int, int], int]) -> None:
        self.moves, self.steps = moves, 0

    def step(self, state: int, byte: int) -> int | None:
        self.steps += 1
        return self.moves.get((state, byte))


recognizers = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from(list(ALPHABET))), st.integers(0, 3), max_size=16
).map(TableRecognizer)


def brute_force(vocab: Vocabulary, recognizer: Any, state: int) -> dict[int, int]:
    """Allowed token -> state reached."""
    found = {}
    for token in range(vocab.size):
        here: int | None = state
        for byte in vocab.token_bytes(token):
            here = None if here is None else recognizer.step(here, byte)
        if vocab.token_bytes(token) and here is not None:
            found[token] = here
    return found


def mask_of(vocab: Vocabulary, tokens: set[int]) -> list[int]:
    return masks.mask_from_ids(sorted(tokens), vocab.size).tolist()


@examples(300)
@given(vocabularies(ALPHABET), recognizers)
def test_all_forms_allow_what_brute_force_allows(vocab: Vocabulary, recognizer: TableRecognizer) -> None:
    expected = brute_force(vocab, recognizer, 0)
    table = RecognizerTable(recognizer)
    mask = masks.allocate_mask(vocab.size)
    work = walk(vocab.trie, table, table.row(0), mask)
    assert mask.tolist() == mask_of(vocab, set(expected))

    flat = np.array(table.transitions, dtype=np.int32)
    words = np.zeros(vocab.size // 32 + 1, dtype=np.uint32)
    seen = walk_source(vocab.trie, source_nodes(vocab.trie), flat, table.byte_class, table.row(0), words)
    assert seen == (work.nodes_visited, seen[1])
    assert [token for token in range(vocab.size) if words[token >> 5] >> (token & 31) & 1] == sorted(expected)

    plain = masks.allocate_mask(vocab.size)
    plain_work = walk_forms.walk_by_depth(vocab.trie, recognizer, 0, plain)
    assert plain.tolist() == mask.tolist()
    assert (work.nodes_visited, work.nodes_skipped) == (plain_work.nodes_visited, plain_work.nodes_skipped)
    assert work.nodes_visited + work.nodes_skipped == vocab.trie.node_count

    tree = walk_forms.build_tree((token, vocab.token_bytes(token)) for token in range(vocab.size))
    flat = walk_forms.flatten(tree)
    for form, nodes in (
        (walk_forms.walk_recursive, tree),
        (walk_forms.walk_array, flat),
        (walk_forms.walk_flat, flat),
    ):
        stack = walk_forms.StackOfStates(recognizer, 0)
        assert form(nodes, stack) == set(expected)  # type: ignore[operator]
        assert stack.height == 0

    room = np.empty(vocab.size + 1, dtype=np.int32)
    targets = np.empty(vocab.size + 1, dtype=np.int32)
    count, collect_work = walk_collect(vocab.trie, table, table.row(0), room, targets)
    collected = {int(t): table.state(int(row)) for t, row in zip(room[:count], targets[:count], strict=True)}
    assert collected == expected
    assert collect_work.nodes_visited == work.nodes_visited
    assert vocab.trie.rank_of[room[:count]].tolist() == sorted(vocab.trie.rank_of[room[:count]].tolist())


@given(vocabularies(ALPHABET), recognizers, st.randoms(use_true_random=False))
def test_a_filtered_trie_allows_the_filtered_tokens(
    vocab: Vocabulary, recognizer: TableRecognizer, random: Any
) -> None:
    keep = np.array([random.random() < 0.5 for _ in range(vocab.size)])
    table = RecognizerTable(recognizer)
    mask = masks.allocate_mask(vocab.size)
    walk(vocab.trie.filter(keep), table, table.row(0), mask)
    assert mask.tolist() == mask_of(vocab, {token for token in brute_force(vocab, recognizer, 0) if keep[token]})


@pytest.mark.parametrize("size", [31, 32, 33, 63, 64, 65])
def test_the_spare_bit_never_shows(size: int) -> None:
    """Nodes without a token write bit V, which lies in the last word for some V and beyond it for others."""

    class AnyByte:
        def step(self, state: int, byte: int) -> int:
            return state

    vocab = Vocabulary([b"abcdef", b""], end_tokens=[1], size=size)
    table = RecognizerTable(AnyByte())
    mask = masks.allocate_mask(size)
    walk(vocab.trie, table, table.row(0), mask)
    assert masks.mask_to_ids(mask).tolist() == [0]


class MovingTable(ByteTable):
    """A random automaton over bytes in two classes, whose rows are made one by one, each time in another array."""

    def __init__(self, targets: list[tuple[int, int]], error_at: int = -1) -> None:
        self.targets, self.error_at, self.made = targets, error_at, [0]
        byte_class = np.zeros(256, dtype=np.uint8)
        byte_class[ord("b")] = byte_class[0xFF] = 1
        super().__init__(np.full(2, UNKNOWN, dtype=np.int32), byte_class)

    def fill_row(self, row: int) -> None:
        following = []
        for target in self.targets[self.made[row // 2]]:
            if target < 0:
                following.append(DEAD)
                continue
            if target == self.error_at:
                raise LimitExceeded("no more states", limit="max_states", value=1)
            if target not in self.made:
                self.made.append(target)
            following.append(2 * self.made.index(target))
        longer = np.full(2 * len(self.made), UNKNOWN, dtype=np.int32)
        longer[: len(self.transitions)] = self.transitions
        longer[row : row + 2] = following
        self.transitions[:] = 1 << 30  # whoever reads the old array goes astray
        self.transitions = longer

    def step(self, state: int, byte: int) -> int | None:
        target = self.targets[state][int(self.byte_class[byte])]
        return target if target >= 0 else None


STATES = 6
targets = st.lists(
    st.tuples(st.integers(-1, STATES - 1), st.integers(-1, STATES - 1)), min_size=STATES, max_size=STATES
)


@given(vocabularies(ALPHABET), targets)
def test_a_table_may_move_under_a_walk(vocab: Vocabulary, targets: list[tuple[int, int]]) -> None:
    table = MovingTable(targets)
    expected = brute_force(vocab, table, 0)
    tokens, rows = np.empty((2, vocab.size + 1), dtype=np.int32)
    count, work = walk_collect(vocab.trie, table, 0, tokens, rows)
    found = zip(tokens[:count].tolist(), rows[:count].tolist(), strict=True)
    assert {token: table.made[row // 2] for token, row in found} == expected
    again = walk_collect(vocab.trie, table, 0, tokens, rows)
    assert again == (count, work._replace(rows_filled=0))

    other, flat = MovingTable(targets), vocab.trie.flat
    for token in range(-1, vocab.size + 1):
        row = other.row_after(0, flat, token)
        assert (other.made[row // 2] if row >= 0 else None) == expected.get(token)


@given(vocabularies(ALPHABET), targets, st.integers(1, STATES - 1))
def test_what_filling_a_row_raises_ends_the_walk(
    vocab: Vocabulary, targets: list[tuple[int, int]], error_at: int
) -> None:
    """The mask is as it was, and the table stays usable."""
    table = MovingTable(targets, error_at)
    mask = masks.mask_from_ids([vocab.size - 1], vocab.size)
    try:
        walk(vocab.trie, table, 0, mask)
        raised = False
    except LimitExceeded:
        raised = True
        assert masks.mask_to_ids(mask).tolist() == [vocab.size - 1]
    table.error_at = -1
    fresh = masks.mask_from_ids([vocab.size - 1], vocab.size)
    work = walk(vocab.trie, table, 0, fresh)
    assert masks.mask_to_ids(fresh).tolist() == sorted({*brute_force(vocab, table, 0), vocab.size - 1})
    assert work.rows_filled or not raised


@pytest.mark.parametrize("entry", [UNKNOWN, -3, 2, 1 << 30])
def test_a_row_that_leads_nowhere_is_refused(entry: int) -> None:
    class Wrong(ByteTable):
        def fill_row(self, row: int) -> None:
            self.transitions[row] = entry

    table = Wrong(np.full(1, UNKNOWN, dtype=np.int32), np.zeros(256, dtype=np.uint8))
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    for _ in range(2 if entry == UNKNOWN else 1):
        with pytest.raises(TokdfaError, match="filling row 0"):
            walk(vocab.trie, table, 0, masks.allocate_mask(vocab.size))
    with pytest.raises(NotImplementedError):
        ByteTable(np.full(1, UNKNOWN, dtype=np.int32), np.zeros(256, dtype=np.uint8)).row_after(0, vocab.trie.flat, 0)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_a_row_is_made_ends_the_walk() -> None:
    class Interrupted(RecognizerTable):
        waits = True

        def fill_row(self, row: int) -> None:
            if self.waits:
                self.waits = False
                signal.raise_signal(signal.SIGINT)
            super().fill_row(row)

    vocab, table = Vocabulary([b"ab", b""], end_tokens=[1]), Interrupted(TableRecognizer({(0, 97): 1, (1, 98): 1}))
    mask = masks.allocate_mask(vocab.size)
    with pytest.raises(KeyboardInterrupt):
        walk(vocab.trie, table, table.row(0), mask)
    walk(vocab.trie, table, table.row(0), mask)
    assert masks.mask_to_ids(mask).tolist() == [0]


def test_wrong_arguments_are_refused() -> None:
    vocab = Vocabulary([b"a", b"b", b""], end_tokens=[2], size=40)
    table = ByteTable.of_states(np.array([[0]]), np.zeros(256, dtype=np.uint8))
    mask, room = masks.allocate_mask(vocab.size), np.empty(vocab.size, dtype=np.int32)
    for state in (-1, 1, 1 << 30):
        with pytest.raises(ArgumentError, match="no row"):
            walk(vocab.trie, table, state, mask)
        assert table.row_after(state, vocab.trie.flat, 0) == DEAD
    with pytest.raises(ArgumentError, match="words"):
        walk(vocab.trie, table, 0, mask[:1])
    with pytest.raises(ArgumentError, match="room for 41"):
        walk_collect(vocab.trie, table, 0, room, room)
    with pytest.raises(ArgumentError, match="only grow"):
        table.transitions = table.transitions[:0]
    with pytest.raises(ArgumentError, match="class 1"):
        ByteTable(table.transitions, np.arange(256, dtype=np.uint8) % 2, 1)
    with pytest.raises(ArgumentError, match="lead to states"):
        ByteTable.of_states(np.array([[1]]), np.zeros(256, dtype=np.uint8))
    with pytest.raises(ArgumentError, match="address"):
        walk_with_address(vocab.trie, 0, 0, mask)
    without = ByteTable.__new__(ByteTable)  # nobody called __init__
    with pytest.raises(ArgumentError, match="no row"):
        walk(vocab.trie, without, 0, mask)


STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@given(vocabularies(ALPHABET), recognizers, recognizers)
def test_a_step_at_an_address_is_a_step(vocab: Vocabulary, first: TableRecognizer, second: TableRecognizer) -> None:
    """Two automata at once, their states in one number."""
    counted = ctypes.c_int64(0)

    def step(user: int, state: int, byte: int) -> int:
        ctypes.cast(user, ctypes.POINTER(ctypes.c_int64))[0] += 1
        one, other = first.step(state >> 40, byte), second.step(state & 0xFF, byte)
        return -1 if one is None or other is None else one << 40 | other

    address = ctypes.cast(function := STEP(step), ctypes.c_void_p).value
    assert address
    mask = masks.allocate_mask(vocab.size)
    work = walk_with_address(vocab.trie, address, 0, mask, ctypes.addressof(counted))
    assert mask.tolist() == mask_of(vocab, brute_force(vocab, first, 0).keys() & brute_force(vocab, second, 0).keys())
    assert work.nodes_visited == counted.value
    assert work.nodes_visited + work.nodes_skipped == vocab.trie.node_count
    del function


def test_a_step_at_an_address_that_returns_nonsense_is_told() -> None:
    vocab, function = Vocabulary([b"ab", b""], end_tokens=[1]), STEP(lambda user, state, byte: byte - 105)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    with pytest.raises(TokdfaError, match=r"step\(user, 3, 97\) returned -8"):
        walk_with_address(vocab.trie, address, 3, masks.allocate_mask(vocab.size))


class FirstByte:
    """The state is the first byte; each is met when the walk comes to it, most of them after thousands of nodes."""

    def step(self, state: int, byte: int) -> int | None:
        return byte if state < 0 else state if byte % 7 else None


def test_rows_are_made_long_after_the_lock_was_let_go() -> None:
    """And two threads may walk two tables at once."""
    vocab, found = load_tokenizer("mistral-v1").vocabulary, []

    def run() -> None:
        table = RecognizerTable(FirstByte())
        mask = masks.allocate_mask(vocab.size)
        found.append((walk(vocab.trie, table, table.row(-1), mask), mask.tolist()))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plain = masks.allocate_mask(vocab.size)
    expected = walk_forms.walk_by_depth(vocab.trie, FirstByte(), -1, plain)
    for work, mask in found:
        assert mask == plain.tolist()
        assert work[:2] == expected[:2]
        assert work.rows_filled > 100


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="sanitizers hold back what is freed")
def test_tables_leave_nothing_behind() -> None:
    vocab = Vocabulary([b"a", b"ab", b"b" * 30, b""], end_tokens=[3])
    mask = masks.allocate_mask(vocab.size)

    def make(count: int) -> int:
        for number in range(count):
            table = MovingTable([(1, 2), (0, -1), (2, 2)], 2 if number % 3 == 0 else -1)
            with suppress(LimitExceeded):
                walk(vocab.trie, table, 0, mask)
        gc.collect()
        return int(psutil.Process().memory_info().rss)

    before = make(1_000)
    assert make(10_000) - before < 2 << 20
