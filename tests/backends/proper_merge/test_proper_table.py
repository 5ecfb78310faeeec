"""Rows and their liveness against plain reading and a plain fixpoint over all pairs of states and last tokens."""

from __future__ import annotations

import itertools
import random
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proper.small_tokenizers import MAKERS, merge_list, real
from tests.proper.toy_tokenizers import toy_with_byte_fallback, toy_with_pieces
from tests.strategies import examples
from tokdfa import mask as masks
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge
from tokdfa.backends.proper_merge.marked_product import BORDERS, ENDS, INSIDE
from tokdfa.backends.proper_merge.proper_rows import ProperRows
from tokdfa.backends.proper_merge.proper_states import ProperStates, SplitMask
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.backends.proper_merge.relevant_pairs import RelevantPairs
from tokdfa.constraint import Regex
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.proper.whole_pieces import WHOLE
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer

    Flags = npt.NDArray[np.bool_]

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
#: Of many tokens: nothing but the end is full, and rows are longer than those that have no suspects.
LONG = (r"[a-z0-9]+!", r"([a-z0-9]{3})+!", r"[a-z0-9]*(ab|c!)", r"a[a-z0-9]{0,5}", r"([a-z]{1,2}|[0-9]+!)+!")


def new_table(tokenizer: Tokenizer, pattern: str) -> ProperTable:
    table = CartesianMerge(tokenizer.vocabulary).compile(Regex(pattern)).table  # type: ignore[attr-defined]
    return ProperTable(table.automaton, table.canonicity)


def key_count(table: ProperTable) -> int:
    return table.automaton.state_count * table.node_count


def plain_row(table: ProperTable, key: int) -> dict[int, int]:
    """token -> key, by reading every token."""
    automaton, canonicity = table.automaton, table.canonicity
    whole, fallback = canonicity.whole_pieces, canonicity.fallback
    rows = automaton.table.reshape(-1, automaton.classes)
    state, node = divmod(key, table.node_count)
    row = {}
    for token in range(canonicity.size):
        byte = -1 if fallback is None else int(fallback.byte_of[token])
        is_whole = token in canonicity.whole_piece_encodings and node == whole.root
        spelled = [automaton.byte_class[byte] for byte in canonicity.vocabulary.token_bytes(token)]
        if byte >= 0:
            spelled = [automaton.fallback_class[byte]]
        elif not canonicity.usable[token] and not is_whole:
            continue
        target = state
        for column in spelled:
            target = int(rows[target, column]) // automaton.classes if target >= 0 <= column else -1
        if target < 0 or not spelled or (node == WHOLE and table.node_count > 1):
            continue
        if is_whole and not canonicity.usable[token]:
            if automaton.can_stop[target] & (ENDS | BORDERS):
                row[token] = target * table.node_count + WHOLE
        else:
            row[token] = target * table.node_count + (0 if byte >= 0 else whole.after(node, token))
    return row


def is_full(table: ProperTable, key: int) -> bool:
    state, node = divmod(key, table.node_count)
    stop = int(table.automaton.can_stop[state])
    return bool(stop & INSIDE) or (stop != 0 and not table.canonicity.whole_pieces.terminal[node])


def allowed_pairs(canonicity: Canonicity) -> Flags:
    """bool, shape (V, V): whether the second token may follow the first in one piece."""
    pairs = np.ones((canonicity.size, canonicity.size), dtype=np.bool_)
    for token in range(canonicity.size):
        pairs[token, masks.mask_to_ids(canonicity.forbidden_after(token))] = False
    return pairs


def plain_liveness(table: ProperTable, rows: list[dict[int, int]]) -> Flags:
    """bool, shape (keys, V): whether (key, last token) is live."""
    pairs = allowed_pairs(table.canonicity)
    live = np.zeros((len(rows), table.canonicity.size), dtype=np.bool_)
    for key in range(len(rows)):
        live[key] = is_full(table, key)
    changed = True
    while changed:
        changed = False
        for key, row in enumerate(rows):
            following = [token for token, target in row.items() if live[target, token]]
            found = live[key] | pairs[:, following].any(axis=1)
            changed |= bool((found != live[key]).any())
            live[key] = found
    return live


def met_pairs(table: ProperTable, rows: list[dict[int, int]]) -> set[tuple[int, int]]:
    """The pairs (key, last token) that some text comes to."""
    pairs = allowed_pairs(table.canonicity)
    starts = [state * table.node_count + table.canonicity.whole_pieces.root for state in table.automaton.starts]
    waiting = [(target, token) for start in starts for token, target in rows[start].items()]
    met = set(waiting)
    while waiting:
        key, last = waiting.pop()
        new = {(target, token) for token, target in rows[key].items() if pairs[last, token]} - met
        waiting += new
        met |= new
    return met


def check(table: ProperTable) -> int:
    """Compare everything that a table says; returns how many entries are dead."""
    rows = [plain_row(table, key) for key in range(key_count(table))]
    live, met, dead, canonicity = plain_liveness(table, rows), met_pairs(table, rows), 0, table.canonicity
    order = list(range(len(rows)))
    random.Random(len(rows)).shuffle(order)
    for key in order:
        tokens, keys, flags = table.row(key)
        assert dict(zip(tokens.tolist(), keys.tolist(), strict=True)) == rows[key]
        assert len(tokens) == len(rows[key])
        assert [live[target, token] for token, target in rows[key].items()] == [
            dict(zip(tokens.tolist(), flags.tolist(), strict=True))[token] for token in rows[key]
        ]
        dead += int((~flags).sum())
        mask = masks.allocate_mask(canonicity.size)
        table.add_live_tokens(key, mask)
        assert sorted(tokens[flags].tolist()) == masks.mask_to_ids(mask).tolist()
        again = table.read_row(key)
        assert np.array_equal(again[0], tokens)
        assert np.array_equal(again[1], keys)
        for token in range(canonicity.size):
            target = rows[key].get(token, -1)
            assert table.read(key, token) == target
            assert table.step(key, token) == (target if target >= 0 and live[target, token] else -1)
            if canonicity.state_of(token) >= 0 and (key, token) in met:  # nothing is said about what follows others
                assert table.is_live(key, token) == live[key, token]
    return dead


@pytest.mark.parametrize("pattern", LONG)
@examples(3)
@given(seed=st.integers(0, 1 << 30))
def test_long_rows(tmp_path_factory: pytest.TempPathFactory, pattern: str, seed: int) -> None:
    """Over a thousand merges in any order, so that some letters are followed by few tokens or none."""
    rng = random.Random(seed)
    pairs = list(itertools.product(LETTERS, repeat=2))
    rng.shuffle(pairs)
    pairs = [(left + middle, right) for (left, middle), right in zip(pairs[:200], LETTERS * 6, strict=False)] + pairs
    rng.shuffle(pairs)
    first = [pair for pair in pairs if pair[0] == "a"]  # before all others: hardly anything follows an a
    pairs = first + [pair for pair in pairs if pair not in first]
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", LETTERS + "!", pairs))
    check(new_table(tokenizer, pattern))


@pytest.mark.parametrize("kind", MAKERS)
def test_random_tokenizers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @examples(60)
    @given(MAKERS[kind], st.sampled_from(["(a|b)*", "(ab|ca)*", "a(a|b){2,}b", "(a{3})*", "[abc]{1,4}c"]))
    def check_one(make: Callable[[Path], str], pattern: str) -> None:
        tokenizer = load_tokenizer(make(tmp_path_factory.mktemp("random") / "model"))
        check(new_table(tokenizer, pattern))

    check_one()


def test_a_letter_that_merges_with_the_only_one_that_may_follow_is_dead(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path / "tokenizer.json", "abc", [("a", "c")]))
    assert check(new_table(tokenizer, "[abc]{1,4}c")) > 0


def test_byte_fallback_and_whole_pieces() -> None:
    check(new_table(toy_with_byte_fallback(), "(a|b|é)+"))
    check(new_table(toy_with_byte_fallback(), "(é|aa)*b"))
    check(new_table(toy_with_pieces(), r"([ab]+\.){1,3}"))
    check(new_table(toy_with_pieces(), r"(aab\.|a|b\.)*"))


# What is refused leaves tables as they were.


def test_a_spent_budget_leaves_rows_that_are_settled_later() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    table, other = (new_table(tokenizer, "([a-z]{1,6} ?){1,9}!") for _ in range(2))
    begin, expected = table.automaton.starts[0], masks.allocate_mask(tokenizer.vocabulary.size)
    other.add_live_tokens(begin, expected)
    assert other.transitions > 800_000
    refused = 0
    for megabytes in (1, 4, 16, 64, 256):
        mask = masks.allocate_mask(tokenizer.vocabulary.size)
        try:
            with spending(Budget(0.002 * megabytes, megabytes, "step"), "a mask"):
                table.add_live_tokens(begin, mask)
        except LimitExceeded:
            refused += 1
    table.add_live_tokens(begin, mask)
    assert refused
    assert np.array_equal(mask, expected)
    assert (table.settled_states, table.transitions) == (other.settled_states, other.transitions)
    assert table.dead_transitions == other.dead_transitions


def test_a_limit_forgets_all_rows() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    full = new_table(tokenizer, "(a|[a-z]{1,6}!)")
    table = ProperTable(full.automaton, full.canonicity, max_transitions=2_000)
    mask = masks.allocate_mask(tokenizer.vocabulary.size)
    with pytest.raises(LimitExceeded, match=r"more than 2000 transitions .* raise max_transitions"):
        table.add_live_tokens(table.automaton.starts[0], mask)
    assert (table.settled_states, table.transitions, table.dead_transitions) == (0, 0, 0)
    assert not mask.any()
    end = next(key for key in range(key_count(table)) if table.is_full(key) and not len(table.read_row(key)[0]))
    before = next(key for key in range(key_count(table)) if set(full.row(key)[1].tolist()) == {end})
    for found, expected in zip(table.row(before), full.row(before), strict=True):
        assert np.array_equal(found, expected)


def test_an_interrupt_leaves_the_table_usable() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    table, other = (new_table(tokenizer, "([a-z]{1,6} ?){1,9}!") for _ in range(2))
    begin = table.automaton.starts[0]
    interrupted = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for milliseconds in (1, 3, 10, 30, 60, 100):
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1e3)
        try:
            table.row(begin)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert interrupted
    for found, expected in zip(table.row(begin), other.row(begin), strict=True):
        assert np.array_equal(found, expected)


def test_states_and_tokens_that_do_not_exist_are_refused() -> None:
    table = new_table(toy_with_pieces(), r"([ab]+\.){1,3}")
    mask = masks.allocate_mask(table.canonicity.size)
    for key in (-1, key_count(table), 1 << 40):
        for ask in (table.row, table.read_row, table.is_full):
            with pytest.raises(IndexError, match="no state"):
                ask(key)
        with pytest.raises(IndexError, match="no state"):
            table.add_live_tokens(key, mask)
        for ask_pair in (table.read, table.step, table.is_live):
            with pytest.raises(IndexError, match="no state"):
                ask_pair(key, 0)
    for token in (-1, table.canonicity.size):
        for ask_pair in (table.read, table.step, table.is_live):
            with pytest.raises(IndexError, match="no token"):
                ask_pair(0, token)
    with pytest.raises(ValueError, match="words"):
        table.add_live_tokens(0, mask[:0])
    with pytest.raises(ValueError, match="crossed"):
        table.reader.mark_crossed(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.bool_))


# Masks of hypotheses.


@given(
    words=st.integers(1, 90),
    narrow=st.booleans(),
    begins=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_split_masks(words: int, narrow: bool, begins: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def random_mask(share: float) -> masks.Mask:
        bits = rng.random((words, 32)) < share
        return np.packbits(bits, axis=1, bitorder="little").view(np.int32).ravel()

    direct, after_border, forbidden = (random_mask(share) for share in ((0.01, 0.02, 0.5) if narrow else (0.5,) * 3))
    choices = SplitMask(direct.copy(), after_border.copy(), begins)

    class Forbidding:
        kept_masks = {7: forbidden}  # noqa: RUF012

        def forbidden_after(self, token: int) -> masks.Mask:
            assert token == 8
            return forbidden

    for last in (7, 8):
        out = random_mask(0.5)
        choices.fill(last, Forbidding(), out)  # type: ignore[arg-type]
        assert np.array_equal(out, direct & ~forbidden | after_border)
    choices.fill(-1, Forbidding(), out)  # type: ignore[arg-type]
    assert np.array_equal(out, direct)
    with pytest.raises(ValueError, match="words"):
        choices.fill(7, Forbidding(), np.zeros(words + 1, dtype=np.int32))  # type: ignore[arg-type]


def test_a_step_is_what_the_mask_says() -> None:
    """With masks that are kept and without, for all tokens."""
    canonicity = real("llama3")
    vocabulary = canonicity.vocabulary
    compiled = CartesianMerge(vocabulary).compile(Regex(r"[0-9]{1,4}(, [a-z]+)*\.?"))
    states: ProperStates = compiled.states  # type: ignore[attr-defined]
    rng, compared = random.Random(0), 0
    for _ in range(4):
        state = compiled.start().state
        for _ in range(8):
            without = ProperStates(states.table, max_bytes=0)
            mask = masks.allocate_mask(vocabulary.size)
            states.fill(state, mask)
            allowed = {token for token in masks.mask_to_ids(mask).tolist() if token not in vocabulary.end_token_set}
            tried = rng.sample(sorted(allowed), min(len(allowed), 60))
            for token in {*tried, *rng.choices(range(vocabulary.size), k=60)} - vocabulary.end_token_set:
                after = states.step(state, token)
                assert (after is not None) == (token in allowed)
                assert after == without.step(state, token)
                compared += 1
            if not tried:
                break
            state = states.step(state, tried[0])
            assert state is not None
    assert compared > 1_000


def test_rows_of_every_state() -> None:
    """`ProperRows` with full states and states behind borders: closed, in order of appearance."""
    table = new_table(toy_with_pieces(), r"([ab]+\.){1,3}")
    rows = ProperRows(table.reader, 1 << 40, every_state=True)
    begin = table.automaton.starts[0] * table.node_count + table.root
    assert rows.number(begin) == 0
    rows.close()
    keys = rows.keys().tolist()
    offsets, tokens, targets = (array.tolist() for array in rows.entries())
    assert len(offsets) == rows.count + 1 == len(keys) + 1
    seen, states = [begin], iter(range(len(keys)))
    for state in states:
        row = {
            token: keys[target]
            for token, target in zip(
                *(part[offsets[state] : offsets[state + 1]] for part in (tokens, targets)), strict=True
            )
        }
        assert row == plain_row(table, keys[state])
        border = ProperStates(table).behind_border(keys[state])
        for key in (*(keys[target] for target in targets[offsets[state] : offsets[state + 1]]), border):
            if key >= 0 and key not in seen:
                seen.append(key)
    assert seen == keys
    assert rows.find(begin) == 0
    assert rows.find(1 << 33) == -1


def test_pairs_ask_for_what_the_start_leads_to() -> None:
    """The search over pairs answers like the fixpoint wherever the start leads, and knows no other pairs."""
    compiled = CartesianMerge(toy_with_pieces().vocabulary, relevance="pairs").compile(Regex(r"([ab]+\.){1,3}"))
    table: RelevantPairs = compiled.table  # type: ignore[attr-defined]
    assert isinstance(table, RelevantPairs)
    fixpoint = ProperTable(table.automaton, table.canonicity)
    for key in range(key_count(table)):
        for token, target, live in zip(*table.row(key), strict=True):
            assert table.is_live(target, token) == live <= fixpoint.is_live(target, token)
