"""Strings of bounded length: against Python's json, against automata that spell the bounds out, all options alike."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import BYTES, accepts, make_everything_wide
from tests.backends.pushdown_trie.json_programs import TOKENS, check_rows, machine_for, text_of
from tests.backends.pushdown_trie.test_fill import by_trial
from tests.json_schema.spellings import LETTERS, meaning, spelled, words
from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.program import builder as programs
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.json_text import string_dfa
from tokdfa.program.program import COUNTED, OPERATION, RETURN_PLACE
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

BOUNDS = [(0, 0), (0, 1), (1, 1), (0, 3), (2, 3), (3, None), (1, None), (2, 40), (30, 40), (30, None), (0, None)]


def counted_program(*bounds, escapes="all"):
    """Strings within any of some bounds, with the number of the bounds after it."""
    builder = ProgramBuilder(escapes=escapes)
    ends = [builder.read(builder.terminal(text_of(b"%d" % k)), RETURN_PLACE) for k in range(len(bounds))]
    return builder.build(builder.any_of([builder.counted(*pair, end) for pair, end in zip(bounds, ends, strict=True)]))


def bounds_of():
    """A least count and a greatest, or none."""
    return st.tuples(st.integers(0, 5), st.integers(0, 6) | st.none()).map(
        lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
    )


@pytest.mark.parametrize("limit", [90_000, 3, 1])
def test_lengths_are_counted_in_characters(limit, monkeypatch):
    """A low limit makes chains of instructions, whose code is written when it is needed."""
    monkeypatch.setattr(programs, "COUNT_LIMIT", limit)
    outcomes = Counter()

    @settings(max_examples=80)
    @given(
        bounds_of(),
        st.sampled_from(["all", "needed"]),
        st.lists(words(11), max_size=5),
        st.randoms(use_true_random=False),
    )
    def check(bounds, escapes, texts, rng):
        low, high = bounds
        machine = machine_for(counted_program(bounds, escapes=escapes))
        edges = [max(low - 1, 0), low, low + 1, *([high, high + 1] if high is not None else [])]
        for word in [*texts, *("".join(rng.choice(LETTERS) for _ in range(count)) for count in edges)]:
            data = spelled(word, rng.choice, needed=rng.random() < 0.5)
            broken = bytearray(data)
            broken[rng.randrange(len(data))] = rng.choice(b'"\\u0aD\x80\xc3')
            for string in (data, bytes(broken)):
                word = meaning(string)
                inside = word is not None and low <= len(word) and (high is None or len(word) <= high)
                inside = inside and (escapes == "all" or string_dfa("needed").accepts(string))
                assert accepts(machine, string + b"0") == inside, (bounds, string)
                outcomes[inside] += 1

    check()
    assert min(outcomes.values()) > 300, outcomes


@pytest.mark.parametrize("wide", [False, True])
def test_all_ways_to_fill_agree(wide, monkeypatch):
    """Several counters in one row, too, and counters beside a plain string."""
    if wide:
        make_everything_wide(monkeypatch)
    totals = []

    @settings(max_examples=25)
    @given(st.lists(st.sampled_from(BOUNDS), min_size=1, max_size=3, unique=True), st.integers(0, 1000))
    def check(bounds, seed):
        totals.append(check_rows(counted_program(*bounds), TOKENS, seed, 12))

    check()
    assert max(totals) > 1000


def real_vocabulary() -> Vocabulary:
    """Part of a real one: short tokens, long ones, and all that have a quote."""
    whole = load_tokenizer("llama3").vocabulary
    texts = [whole.token_bytes(token) for token in range(100_000)]
    kept = {text for number, text in enumerate(texts) if number < 1500 or b'"' in text or len(text) > 24}
    kept |= {bytes([byte]) for byte in range(256)}
    return Vocabulary([*sorted(kept - {b""}), b""], end_tokens=[len(kept - {b""})])


def test_tokens_of_a_real_vocabulary():
    """Near both bounds and far from them, where tokens are as long as 128 characters."""
    vocab = real_vocabulary()
    depth = vocab.trie.depth_limit
    assert depth > 60
    machine = machine_for(counted_program((2 * depth, 5 * depth)), vocab)
    filler = Filler()
    kinds = Counter()
    for count in (0, 1, depth - 1, depth, depth + 1, 2 * depth - 2, 2 * depth - 1, 2 * depth, 3 * depth, 4 * depth - 1,
                  4 * depth, 4 * depth + 1, 5 * depth - 9, 5 * depth - 1, 5 * depth):  # fmt: skip
        for text in (
            b'"' + b"x" * count,
            b'"' + b"x" * (count - 1) + b"\xf0\x9f",
            b'"' + b"x" * (count - 1) + b"\\u00",
        ):
            row = machine.run_text(text)
            found = masks.mask_to_ids(filler.fill(machine, row)).tolist()
            assert found == by_trial(machine, row, vocab)
            other = machine.representative(row)
            assert masks.mask_to_ids(filler.fill(machine, other)).tolist() == found
            kinds[other == row] += 1
    assert kinds[False] > 10
    assert kinds[True] > 10


def test_a_count_of_more_than_an_item_holds():
    """The greatest count that one instruction has, and the next one, which then has to be written."""
    limit = programs.COUNT_LIMIT
    program = counted_program((limit + 2, 1_000_000))
    machine = machine_for(program, BYTES, max_bytes=1 << 28)
    row = machine.run_text(b'"' + b"x" * limit)
    assert (program.code[:, OPERATION] == COUNTED).sum() == 1
    assert [machine.step(row, byte) >= 0 for byte in b'"x\xc3\\'] == [False, True, True, True]
    assert machine.representative(row) == 1
    assert (program.code[:, OPERATION] == COUNTED).sum() == 2
    assert [accepts(machine, b"x" * count + b'"0', row) for count in range(4)] == [False, False, True, True]
