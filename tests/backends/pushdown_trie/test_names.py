"""Names as JSON strings: against Python's json, against automata that spell everything out, and all options alike."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import accepts, make_everything_wide
from tests.backends.pushdown_trie.json_programs import (
    TOKENS,
    check_rows,
    machine_for,
    names_program,
    text_of,
)
from tests.json_schema.spellings import LETTERS, meaning, spelled, words
from tests.walks import mask_of
from tokdfa.backends.pushdown_trie import name_tries
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.json_text import string_dfa
from tokdfa.program.printing import format_program
from tokdfa.program.program import RETURN_PLACE
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary


@st.composite
def windows(draw, letters=LETTERS):
    """(names, low, high, other, escapes)."""
    names = draw(st.lists(words(4, letters), min_size=1, max_size=5, unique=True))
    low = draw(st.integers(0, len(names) - 1))
    high = draw(st.integers(low, len(names) - 1))
    return names, low, high, draw(st.booleans()), draw(st.sampled_from(["all", "needed"]))


def expected(data: bytes, names, low, high, other, escapes) -> bool:
    """Whether a text is in the language of `names_program`, by what its string means."""
    string, end = data[:-1], data[-1:]
    word = meaning(string)
    if word is None or (escapes == "needed" and not string_dfa("needed").accepts(string)):
        return False
    if word in names:
        return low <= names.index(word) <= high and end == b"%d" % names.index(word)
    return other and end == b"o"


def test_spellings_are_read_and_nothing_else():
    outcomes = Counter()

    @settings(max_examples=150)
    @given(windows(), st.randoms(use_true_random=False), st.lists(words(5), max_size=6))
    def check(window, rng, others):
        names = window[0]
        machine = machine_for(names_program(*window))
        for word in [*names, *others, *(name[:-1] for name in names), *(name + "a" for name in names)]:
            data = spelled(word, rng.choice, needed=rng.random() < 0.5)
            ends = [b"o", b"%d" % names.index(word) if word in names else b"0"]
            broken = bytearray(data)
            broken[rng.randrange(len(data))] = rng.choice(b'"\\u0aD\x80\xc3')
            for text in [data + rng.choice(ends) for _ in range(2)] + [bytes(broken) + ends[0], data]:
                taken = accepts(machine, text)
                assert taken == expected(text, *window), (text, window)
                outcomes[taken, text[-1:] == b"o"] += 1

    check()
    assert min(outcomes[True, True], outcomes[True, False], outcomes[False, True], outcomes[False, False]) > 100, (
        outcomes
    )


@pytest.mark.parametrize("wide", [False, True])
def test_all_ways_to_fill_agree(wide, monkeypatch):
    """With everything wide, divisions and subtrees come up at every node."""
    if wide:
        make_everything_wide(monkeypatch)
    totals = []

    @settings(max_examples=25)
    @given(windows('ab"\né😀😁'), st.integers(0, 1000))
    def check(window, seed):
        totals.append(check_rows(names_program(*window), TOKENS, seed))

    check()
    assert max(totals) > 500


def test_tokens_of_a_real_vocabulary():
    whole = load_tokenizer("llama3").vocabulary
    rng = random.Random(5)
    tokens = {bytes([byte]) for byte in range(256)} | {whole.token_bytes(rng.randrange(128_000)) for _ in range(4000)}
    tokens |= {
        token for token in map(whole.token_bytes, range(40_000)) if token.startswith((b'"', b"na")) or b'"' in token
    }
    vocab = Vocabulary([*sorted(tokens - {b""}), b""], end_tokens=[len(tokens - {b""})])
    names = ["name", "names", "number", "na", "", "type", "description", "id", "naïve", "日本", "a/b"]
    for other in (False, True):
        program = names_program(names, 1, 8, other)
        totals = [check_rows(program, vocab, seed, 4) for seed in range(3)]
        assert (max(totals) > 3000) == other


def several_windows(names, parts, text=False):
    """At one place: windows (low, high, other) of one table, and with `text` any string."""
    builder = ProgramBuilder()
    table = builder.name_table(tuple(names))
    after = builder.read(builder.terminal(text_of(b"0", b"1")), RETURN_PLACE)
    other = builder.read(builder.string_terminal, after)
    places = [
        builder.names(table, low, high, [after] * (high - low + 1), other if open_ else -1)
        for low, high, open_ in parts
    ]
    return builder.build(builder.any_of(places + [other] * text))


@pytest.mark.parametrize("wide", [False, True])
def test_several_windows_at_once(wide, monkeypatch):
    if wide:
        make_everything_wide(monkeypatch)
    names = ["ab", "abc", 'a"', "é", "😀", "b"]
    windows = [(0, 1, False), (2, 3, True), (1, 1, False), (4, 5, False)]
    for count in (2, 3, 4):
        for text in (False, True):
            for seed in range(2):
                check_rows(several_windows(names, windows[:count], text), TOKENS, seed)


def test_several_windows_cost_as_much_as_one():
    """What dies within a string is refused by all of them: only tokens with a quote are walked."""
    vocab, visited = load_tokenizer("llama3").vocabulary, []
    for parts in ([(0, 1, True)], [(0, 0, False), (1, 1, True)]):
        machine = machine_for(several_windows(["left", "right"], parts), vocab)
        row = machine.run_text(b'"')
        Filler().fill(machine, row)
        before = machine.nodes_visited
        Filler().fill(machine, row)
        visited.append(machine.nodes_visited - before)
    assert visited[1] <= visited[0] < 1_000


@pytest.mark.parametrize("more", [[], [b"me"], [b'e"'], [b'":']], ids=str)
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"name": False}}, '{"name'),
        ({"properties": {"": False, "n": {}}}, '{"'),
        ({"properties": {"name": {}}}, '{"name": 1, "na\\u006de'),
        ({"properties": {"name": {}}}, '{"zz": 1, "name'),
    ],
)
def test_a_name_that_is_refused_cannot_be_closed(schema, text, more):
    """Also where no token goes on behind the quote, so that the division of the string leaves nothing."""
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), *more, b""], end_tokens=[256 + len(more)])
    matcher = PushdownTrie(vocab).compile(JsonSchema(schema)).start()
    for byte in text.encode():
        matcher.advance(byte)
        assert mask_of(matcher) == [token for token in range(vocab.size) if matcher.allows(token)]
    assert not matcher.allows(ord('"'))


def test_a_name_is_read_without_the_rows_on_the_way():
    vocab = load_tokenizer("llama3").vocabulary
    machine = machine_for(names_program(["description", "descriptor", "type"]), vocab)
    row = machine.run_text(b'"')
    before = machine.row_count
    read = machine.run_text(b"descript", row)
    assert machine.row_count == before + 1
    for byte in b"descript":
        row = machine.step(row, byte)
    assert row == read
    made = []
    for divides in (True, False):  # without them, all rows are made
        before, mask = machine.row_count, Filler(divides).fill(machine, read)
        made.append((machine.row_count - before, mask.tobytes()))
    assert made[0][0] == 0 < made[1][0]
    assert made[0][1] == made[1][1]


def test_no_name_but_others():
    """An empty window: every name of the table is refused."""
    builder = ProgramBuilder()
    other = builder.read(builder.string_terminal, RETURN_PLACE)
    program = builder.build(builder.names(builder.name_table(("a", "ab")), 0, -1, [], other))
    machine = machine_for(program)
    assert [accepts(machine, text) for text in (b'"a"', b'"ab"', b'""', b'"abc"', b'"\\u0061"')] == [0, 0, 1, 1, 0]
    for seed in range(4):
        check_rows(program, TOKENS, seed)
    assert "none of 2 names" in format_program(program)


def test_what_is_refused(monkeypatch):
    builder = ProgramBuilder()
    with pytest.raises(UnsupportedConstraint, match="surrogate"):
        builder.name_table(("\ud800",))
    for names in ((), ("a", "a")):
        with pytest.raises(ValueError, match="one name or more"):
            builder.name_table(names)
    table = builder.name_table(("a", "b"))
    for low, high, targets in ((0, 2, [0, 0, 0]), (1, 0, []), (0, 1, [0]), (-1, 0, [0, 0])):
        with pytest.raises(ValueError, match="do not fit"):
            builder.names(table, low, high, targets)
    with pytest.raises(ValueError, match="is a TERMINAL"):
        builder.names(table, 0, 0, [0], other=RETURN_PLACE)
    place = builder.names(table, 0, 1, [0, 0])
    with pytest.raises(UnsupportedConstraint, match="lexer=any"):
        builder.build(place, longest=True)
    monkeypatch.setattr(name_tries, "MAX_NAME_NODES", 2)
    with pytest.raises(LimitExceeded, match="more than 2 characters"):
        machine_for(builder.build(place))
