"""Masks against every token tried by itself, with and without divisions, on vocabularies small and real."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import LEXERS, machine_of, make_everything_wide
from tests.grammar.lexed_cfgs import byte_cfgs, lexed_cfgs, short_texts
from tests.vocabulary.vocabularies import ODD
from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie import row_divisions, slices, walks
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.backends.pushdown_trie.items import OWN
from tokdfa.backends.pushdown_trie.state_table import LOOPS
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

WAYS = [(False, False), (True, False), (True, True)]


def by_trial(machine, row, vocab):
    """The tokens whose bytes can be read from a row."""
    found = []
    for token in vocab.trie.order.tolist():
        data = np.frombuffer(vocab.token_bytes(token), dtype=np.uint8)
        if machine.run(row, data, 0, len(data)) >= 0:
            found.append(token)
    return sorted(found)


def fillers_of(machine):
    return [Filler(*way) for way in WAYS]


def tokens_of(filler, machine, row):
    words = filler.fill(machine, row)
    assert words.dtype == np.int32
    assert words.shape == (masks.mask_words(machine.pool.masks.flat.size),)
    return masks.mask_to_ids(words).tolist()


def check_walk(machine, vocab, seed, steps=6):
    """All ways to fill along one walk, each first on some rows and last on others. Tokens per mask."""
    rng, fillers, row = random.Random(seed), fillers_of(machine), 0
    sizes = []
    for _ in range(steps):
        rng.shuffle(fillers)
        found = [tokens_of(filler, machine, row) for filler in fillers]
        expected = by_trial(machine, row, vocab)
        assert found == [expected] * len(WAYS)
        sizes.append(len(expected))
        if not expected:
            break
        data = np.frombuffer(vocab.token_bytes(rng.choice(expected)), dtype=np.uint8)
        row = machine.run(row, data, 0, len(data))
    return sizes


def dense_vocabularies():
    """All texts of one and two of the letters a, b and c, longer ones, and duplicates."""
    longer = st.lists(st.text("abc", max_size=7).map(str.encode), max_size=30)
    return longer.map(lambda tokens: Vocabulary([*short_texts(b"abc", 2)[1:], *tokens, b""], [12 + len(tokens)]))


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("grammars", [byte_cfgs(), lexed_cfgs()], ids=["bytes", "lexemes"])
def test_random_grammars_and_vocabularies(grammars, lexer, monkeypatch):
    """Every state counts as wide, every node as large: divisions and subtrees come up all the time."""
    make_everything_wide(monkeypatch)
    made, lengths = Counter(), Counter()

    @settings(max_examples=40)
    @given(grammars, dense_vocabularies(), st.integers(0, 1000))
    def check(cfg, vocab, seed):
        machine = machine_of(cfg, lexer, vocab)
        sizes = check_walk(machine, vocab, seed)
        made[machine.pool.masks.divisions.made > 0] += 1
        lengths.update(sizes)

    check()
    assert made[True] > 10, made
    assert sum(lengths[size] for size in lengths if size > 2) > 15


WIDE = [
    'start: S ("," S)*\nS: /"[^"]*"/\n',
    'start: S ("," S)*\nS: /"[^"]{0,5000}"/\n',
    'start: (W | S | N)*\nW: /[a-z]+/\nS: /[^"]+"/\nN: /[0-9]+(\\.[0-9]+)?/\n%ignore / +/\n',
    'start: "a" x "!" | y\nx[lazy]: /(.|\\n)*END/\ny: /[^E]+/ x\n',
    "start: (x | y)+\nx[lazy]: /(.|\\n)*END/\ny: /(.|\\n)+/\n",
    'start: (x "!" | c | y)+\nx[lazy]: /(.|\\n)*END/\nc[lazy]: /[^!]*[dD]/\ny: /(.|\\n)+/\n',
    "start: W+\nW: /[^ ]+ ?/\n%ignore /#[^\\n]*\\n/\n",
    "start: A | B | C\nA: /[^a]*a/\nB: /[^b]*b/\nC: /[^c]*c/\n",
    'start: (W | C W | B "!")*\nW: /[a-z]+/\nC: " "\nB: / [a-m]/\n',
]


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("grammar", WIDE)
def test_wide_texts_of_a_real_vocabulary(grammar, lexer, prepared, monkeypatch):
    """Token by token over part of a real vocabulary, with more subtrees than usual."""
    monkeypatch.setattr(walks, "SUBTREE", 20)
    whole = load_tokenizer("mistral-v1").vocabulary
    rng = random.Random(5)
    tokens = [whole.token_bytes(token) for token in sorted({*range(3, 262), *rng.sample(range(262, 32_000), 3000)})]
    vocab = Vocabulary([*tokens, b""], end_tokens=[len(tokens)])
    machine = machine_of(grammar, lexer, vocab)
    if prepared:
        monkeypatch.setattr(row_divisions, "LEAST_NODES", 0)
        monkeypatch.setattr(slices, "LEAST_TOKENS", 10)
        machine.pool.masks.slices.make_all()
        assert any(machine.pool.masks.slices.made.values())
    sizes = [size for seed in range(2) for size in check_walk(machine, vocab, seed, 4)]
    assert max(sizes) > 500


@pytest.mark.parametrize("behind", ["[a-z]", "1b"])
def test_the_row_behind_a_terminal_that_may_end_in_one_place_or_two(behind):
    """What stands behind the end is walked from one row if there is one, and not if the terminal may go on there."""
    texts = [*(bytes([byte]) for byte in b"abcxyz1!"), b"a!1b", b"b!1bx", b"c!1bb"]
    vocab = Vocabulary([*texts, b""], end_tokens=[len(texts)])
    machine = machine_of(f"start: A B\nA: /[a-z]![0-9]?/\nB: /{behind}/\n", "any", vocab)
    plain, *_, fast = fillers_of(machine)
    assert b"a!1b" in [texts[token] for token in tokens_of(fast, machine, 0)]
    assert tokens_of(fast, machine, 0) == tokens_of(plain, machine, 0)


@pytest.mark.parametrize("letters", ["[0-9]", "[0-9a-z]"])
def test_what_a_lazy_terminal_cuts_off_is_taken_from_no_division(letters):
    """Behind the first 5 nothing more may come, though the other terminal could read it over and over."""
    texts = [*(b"%d" % number for number in range(1000)), b"(", b")", *(bytes([letter]) for letter in b"abcdefghijkl")]
    vocab = Vocabulary([*texts, b""], end_tokens=[len(texts)])
    machine = machine_of(f'start: "(" start ")" | a | B\na[lazy]: /{letters}*5/\nB: /{letters}+/\n', "longest", vocab)
    plain, *_, fast = fillers_of(machine)
    row = 0
    for _ in range(40):  # the division would be there after some
        assert tokens_of(fast, machine, row) == tokens_of(plain, machine, row)
        row = machine.run_text(b"(", row)
    assert 555 not in tokens_of(fast, machine, row)


def test_most_tokens_begin_with_two_blanks(monkeypatch):
    """What serves below one blank does not serve below two."""
    monkeypatch.setattr(row_divisions, "LEAST_NODES", 0)
    monkeypatch.setattr(slices, "LEAST_TOKENS", 10)
    monkeypatch.setattr(walks, "SUBTREE", 20)
    words = [bytes(word) for word in itertools.product(b"abcdefgh", repeat=3)]
    texts = [*(b"  " + word for word in words), *(b" " + word[:2] for word in words), *words]
    vocab = Vocabulary([*dict.fromkeys(texts), b" ", b"  ", b""], end_tokens=[2 + len(dict.fromkeys(texts))])
    for lexer in LEXERS:
        machine = machine_of("start: W+\nW: /[a-z]+/\n%ignore / +/\n", lexer, vocab)
        machine.pool.masks.slices.make_all()
        for seed in range(4):
            check_walk(machine, vocab, seed)


def test_a_vocabulary_without_texts():
    vocab = Vocabulary([b"", b""], end_tokens=[0])
    machine = machine_of('start: "a"*\n', "any", vocab)
    for filler in fillers_of(machine):
        assert tokens_of(filler, machine, 0) == []


def test_more_subtrees_than_were_reckoned_with(monkeypatch):
    """Two hundred are put off at once."""
    make_everything_wide(monkeypatch)
    texts = [bytes([first, second, third]) for first in range(200) for second in b"ab" for third in b"ab"]
    vocab = Vocabulary([*texts, b""], end_tokens=[len(texts)])
    machine = machine_of("start: A A*\nA: /[\\x00-\\x7f]/\n", "any", vocab)
    plain, *_, fast = fillers_of(machine)
    assert tokens_of(fast, machine, 0) == tokens_of(plain, machine, 0) == by_trial(machine, 0, vocab)


@pytest.mark.parametrize("lexer", LEXERS)
def test_many_wide_items(lexer, monkeypatch):
    """Fifty wide texts in one row, and one division that serves it."""
    make_everything_wide(monkeypatch)
    grammar = "start: " + " | ".join(f'/[^{chr(97 + k % 26)}{k % 10}]{{1,{k + 1}}}/ "{k % 10}"' for k in range(50))
    vocab = load_tokenizer("mistral-v1").vocabulary
    part = Vocabulary([vocab.token_bytes(token) for token in range(300, 2300)] + [b""], end_tokens=[2000])
    machine = machine_of(grammar + "\n", lexer, part)
    check_walk(machine, part, 3, 3)
    assert machine.pool.masks.divisions.made > 10


def test_masks_are_right_while_divisions_are_dropped(monkeypatch):
    """So little room that every mask drops what others have made."""
    make_everything_wide(monkeypatch)
    monkeypatch.setattr(row_divisions, "LIMIT", 0)
    grammar = 'start: A | B | "c" start\nA: /a[abc]*b/\nB: /b[ab]*/\n'
    for lexer in LEXERS:
        machine = machine_of(grammar, lexer, ODD)
        for seed in range(6):
            check_walk(machine, ODD, seed)
        assert machine.pool.masks.divisions.made > machine.pool.masks.divisions.count


LOOPING = [
    'start: V ("," V)*\nV: /[0-9]+(\\.[0-9]+)?/\n%ignore /[ \\n\\t]+/\n',
    "start: (W | N)*\nW: /[a-z]+/\nN: /[0-9]+(\\.[0-9]+)?/\n%ignore / +/\n",
    "start: A | B\nA: /[ab]+x/\nB: /[bc]+y/\n",
    'start: /a+/ | /[a0-9]+/ | / *!/ | "ab" | "0x"\n',
]


@pytest.mark.parametrize("first_bytes", [True, False])
@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("grammar", LOOPING)
def test_states_that_loop(grammar, lexer, first_bytes, monkeypatch):
    """Blanks, digits and names from divisions of their own, beside the walk of the vocabulary's trie, branches or
    not."""
    monkeypatch.setattr(row_divisions, "DIVISION_WORK", 0)
    vocab = load_tokenizer("mistral-v1").vocabulary
    machine = machine_of(grammar, lexer, vocab)
    machine.prunes = first_bytes
    assert (machine.pool.automata.flags & LOOPS).any()
    rng = random.Random(11)
    for _ in range(4):
        row = 0
        for _ in range(6):
            found = [tokens_of(filler, machine, row) for filler in fillers_of(machine)]
            assert found[0] == found[1] == found[2]
            if not found[0]:
                break
            row = machine.run_text(vocab.token_bytes(rng.choice(found[0])), row)
    assert any(state & OWN for state in machine.pool.masks.divisions.states())
