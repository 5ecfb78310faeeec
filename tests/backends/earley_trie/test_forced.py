"""Forced bytes against the definitions, against brute force over words, and forced tokens against llguidance."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import llguidance
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.earley_trie.test_machine import RULES
from tests.grammar.lexed_cfgs import lexed_cfgs, make_cfg, mask_of, run, short_texts
from tests.naive.lexed_earley import LexedEarley
from tests.packages import needs_smollm2
from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.backends.earley_trie.forced import begins_longer_token, encode_bytes, forced_bytes, forced_mask_tokens
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.peers.rust_regex import with_start_rule
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import LimitExceeded, VocabularyCannotSpell
from tokdfa.grammar.cfg import Cfg, SpecialTokens
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.proper.toy_tokenizers import toy_with_pieces
from tokdfa.vocabulary.loading import LoadedTokenizer
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

FOLDER = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars"
#: An object with the keys that a schema would fix, and values of every kind.
FIXED_KEYS = Grammar(
    r"""
    start: "{\"name\": " STRING ", \"age\": " NUMBER ", \"address\": {\"street\": " STRING ", \"kind\": " kind "}}"
    kind: "\"residential\"" | "\"residence of a company\"" | "\"other\""
    STRING: /"[^"\\\x00-\x1f]*"/
    NUMBER: /[1-9][0-9]*/
    """,
    label="fixed keys",
)
#: What follows a forced stretch begins where a token may go on: with a blank, a letter, a character of three bytes.
ENDS = Grammar(
    'start: "The answer is" (" yes" | " no, " /[a-z]+/ | "€" | "₤") ", as it was said" /[a-z]/\n', label="ends"
)


def _grammar_of(name):
    return Grammar((FOLDER / f"{name}.lark").read_text(), label=name)


def compile_on(vocab, constraint, backend="earley_trie", **options):
    return create_backend(backend, vocab, **options).compile(constraint)


# Bytes.


@pytest.mark.parametrize(("longest", "skip_at_ends"), RULES)
def test_forced_bytes_are_their_definition(longest, skip_at_ends):
    """After every text of up to three letters: as long as it is not complete and one letter can come, it comes."""
    found = set()

    @settings(max_examples=60)
    @given(lexed_cfgs())
    def check(cfg):
        machine, twin = (
            Machine(cfg, longest=longest, skip_at_ends=skip_at_ends),
            LexedEarley(cfg, longest, skip_at_ends),
        )
        for text in short_texts(b"abc", 3):
            situation = run(machine, machine.start, text)
            if situation < 0:
                continue
            expected = b""
            while len(expected) < 5 and not twin.accepts(text + expected):
                letters = [letter for letter in (b"a", b"b", b"c") if twin.goes_on(text + expected + letter)]
                if len(letters) != 1:
                    break
                expected += letters[0]
            assert forced_bytes(machine, situation, 5) == expected, text
            found.add(expected)

    check()
    assert len(found) > 10


def test_a_counter_forces_as_far_as_asked():
    """Also where every byte makes a state of an automaton that stays lazy."""
    count = EXPLICIT_STATES + 1000
    machine = Machine(make_cfg((f"x{{{count}}}", "y"), {"s": [(f"x{{{count}}}", "y")]}))
    assert forced_bytes(machine, machine.start) == b"x" * 256
    assert forced_bytes(machine, machine.start, 10) == b"x" * 10
    assert forced_bytes(machine, machine.start, 10_000) == b"x" * count + b"y"
    assert forced_bytes(machine, machine.start, 0) == b""


def test_a_limit_is_raised_and_survived():
    machine = Machine(make_cfg(("x{9000}",), {"s": [("x{9000}",)]}), max_lexer_states=100)
    with pytest.raises(LimitExceeded, match="max_lexer_states"):
        forced_bytes(machine, machine.start, 1000)
    assert forced_bytes(machine, machine.start, 50) == b"x" * 50


def test_nothing_is_forced_where_a_special_token_may_come():
    plain = make_cfg(("ab", "c"), {"s": [("ab", "c")]})
    names = (*plain.names[:2], "<x>", "s")
    lexemes = (*plain.lexemes, SpecialTokens(names=("<x>",)))
    cases = {((0, 1),): b"abc", ((0, 2, 1),): b"ab", ((0, 1), (2, 1)): b"", ((0, 1), (0, 2)): b"ab"}
    for rights, expected in cases.items():
        machine = Machine(Cfg(lexemes, names, tuple((3, right) for right in rights), 3, -1, plain.store))
        assert forced_bytes(machine, machine.start) == expected


# Bytes from masks.


@pytest.mark.parametrize("grammar", [FIXED_KEYS, ENDS, _grammar_of("json")], ids=lambda grammar: grammar.label)
def test_masks_force_what_the_machine_forces(grammar):
    """Every byte is a token, so tokens can spell what the grammar allows."""
    vocab, rng = load_tokenizer("mistral-v1").vocabulary, random.Random(0)
    compiled = compile_on(vocab, grammar)
    forced = 0
    for _ in range(3):
        matcher = compiled.start()
        for _ in range(12):
            expected = forced_bytes(compiled.machine, matcher.state, 40)
            assert matcher.forced_bytes(40) == expected
            assert matcher.forced_bytes(3) == expected[:3]
            forced += len(expected) > 1
            tokens = [token for token in mask_of(matcher) if token not in vocab.end_token_set]
            if not tokens:
                break
            matcher.advance(rng.choice(tokens))
    assert forced > 0


WORDS = st.lists(st.text("ab", min_size=1, max_size=8), min_size=1, max_size=4, unique=True)


def test_masks_force_what_words_have_in_common():
    """Vocabularies with gaps, in which not every word can be spelled, nor every beginning be gone on from."""
    found = set()

    @given(WORDS, vocabularies(b"ab", 8), st.integers(0, 100))
    def check(words, vocab, seed):
        try:
            matcher = compile_on(vocab, Choice(words), "token_index").start()
        except VocabularyCannotSpell:
            return
        spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
        rng, text = random.Random(seed), b""
        for _ in range(3):
            rests = [word.encode()[len(text) :] for word in words if word.encode().startswith(text)]
            expected = os.path.commonprefix([rest for rest in rests if _can_spell(rest, spelled)])  # noqa: RUF071
            assert matcher.forced_bytes() == expected
            found.add(expected)
            tokens = [token for token in mask_of(matcher) if spelled[token]]
            if not tokens:
                break
            token = rng.choice(tokens)
            matcher.advance(token)
            text += spelled[token]

    check()
    assert len(found) > 5


def _can_spell(text, spelled):
    return not text or any(
        part and text.startswith(part) and _can_spell(text[len(part) :], spelled) for part in spelled
    )


def test_masks_of_proper_sequences_force_what_they_have_in_common():
    """A token that can only be a whole piece: what was spelled does not say which state it is."""
    vocab = toy_with_pieces().vocabulary
    for pattern in ("aab\\.(ab\\.)*b", "(ab\\.)?aab+\\.b", "a{3}b?\\.", "(aab\\.){3}|(aab\\.){2}ab\\."):
        compiled = compile_on(vocab, Regex(pattern), "cartesian_merge")
        agenda = [compiled.start()]
        for matcher in agenda:
            found = _texts_from(matcher)
            assert matcher.forced_bytes() == os.path.commonprefix(found)[:30]  # noqa: RUF071
            if len(agenda) < 10:
                agenda += _after_each_token(matcher)


def _after_each_token(matcher):
    after = []
    for token in mask_of(matcher):
        if matcher.vocab.token_bytes(token):
            after.append(matcher.fork())
            after[-1].advance(token)
    return after


def _texts_from(matcher, text=b"", limit=30):
    """What sequences of tokens go on with, up to `limit` bytes."""
    if len(text) >= limit or matcher.can_end():
        return [text]
    return [
        found
        for token in mask_of(matcher)
        for following in [matcher.fork()]
        for _ in [following.advance(token)]
        for found in _texts_from(following, text + matcher.vocab.token_bytes(token), limit)
    ]


def test_matchers_that_do_not_know_their_states():
    """A peer's: every way of spelling the text is followed by itself, so only as far as the limit of masks allows."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    matcher = compile_on(vocab, FIXED_KEYS, "llguidance").start()
    found = matcher.forced_bytes()
    assert len(found) > 3
    assert b'{"name": "'.startswith(found)
    assert mask_of(matcher) == mask_of(compile_on(vocab, FIXED_KEYS).start())


# Tokens.


@cache
def _peer_tokenizer(name):
    """llguidance's form of a tokenizer, with its encoder."""
    tokenizer = load_tokenizer(name)
    vocab = tokenizer.vocabulary

    class Wrapper:
        def __init__(self):
            self.bos_token_id, self.is_tokenizer_wrapper, self.eos_token_id = None, True, vocab.end_tokens[0]
            self.special_token_ids = sorted({*vocab.special_tokens, *vocab.end_tokens})
            self.tokens = [vocab.token_bytes(token) for token in range(vocab.size)]

        def __call__(self, text):
            return tokenizer.encode(text)

    return llguidance.LLTokenizer(Wrapper(), eos_token=list(vocab.end_tokens))


GRAMMARS = [FIXED_KEYS, ENDS, *map(_grammar_of, ("tool_call", "sql"))]


@pytest.mark.parametrize("name", ["mistral-v1", pytest.param("smollm2", marks=needs_smollm2)])
@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.label)
def test_forced_tokens_are_llguidances(grammar, name):
    """Along walks that take what is forced, and along walks that take any token, which may cut a forced one short."""
    tokenizer, rng = load_tokenizer(name), random.Random(1)
    vocab = tokenizer.vocabulary
    ours = compile_on(vocab, grammar, lexer="one_byte", ignore="between")
    theirs = llguidance.LLMatcher(_peer_tokenizer(name), with_start_rule(grammar), log_level=0)
    texts = (
        yaml.safe_load(path.read_text())["accepted"] if (path := FOLDER / f"{grammar.label}.yaml").exists() else [""]
    )
    out, forced = masks.allocate_mask(vocab.size), 0
    for walk in range(6):
        matcher, peer, last = ours.start(), theirs.deep_copy(), None
        planned = tokenizer.encode(texts[walk % len(texts)]) if walk % 2 else []
        for step in range(20):
            tokens = forced_mask_tokens(ours.machine, matcher.state, tokenizer, last)
            assert forced_bytes(ours.machine, matcher.state) == peer.compute_ff_bytes()
            assert tokens == peer.compute_ff_tokens()
            complete = mask_of(matcher)
            allowed = [token for token in complete if token not in vocab.end_token_set]
            if not allowed:
                break
            peer.unsafe_compute_mask_ptr(out.ctypes.data, out.nbytes)
            assert masks.mask_to_ids(out).tolist() == (tokens[:1] or complete)
            forced += bool(tokens)
            last = rng.choice(allowed)
            if step < len(planned) and planned[step] in allowed:
                last = planned[step]
            elif tokens and walk % 3:
                last = tokens[0]
            matcher.advance(last)
            assert peer.consume_token(last)
    assert forced > 1


def test_a_tokenizer_that_changes_the_text_forces_no_tokens():
    """Its tokens would spell something else than what is forced."""
    vocab = load_tokenizer("bytes").vocabulary
    machine = compile_on(vocab, Regex("AB[cd]")).machine
    for change, expected in ((str.lower, []), (str.upper, [ord("A"), ord("B")])):
        own = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], vocab.end_tokens)
        loaded = LoadedTokenizer(own, lambda text, change=change: list(change(text).encode()), str, b"", list)
        assert forced_mask_tokens(machine, machine.start, Tokenizer("changing", loaded)) == expected


def test_bytes_that_are_no_text_are_encoded():
    tokenizer = load_tokenizer("mistral-v1")
    for data in (b"", b"plain text", "a€".encode()[:-1], b"\xa9 and \xe2\x82 more\xff", "€".encode(), b"\xc3\xa9\x80"):
        assert tokenizer.spell(encode_bytes(tokenizer, data)) == data
    assert encode_bytes(tokenizer, b"plain text") == tokenizer.encode("plain text")
    head, tail = tokenizer.encode(" and "), encode_bytes(tokenizer, b"\xa9")
    assert encode_bytes(tokenizer, b"\xa9 and \xa9") == [*tail, *head, *tail]
    toy = toy_with_pieces()
    assert encode_bytes(toy, b"\xff\xfe") == []


@settings(max_examples=60)
@given(lexed_cfgs(), vocabularies(b"abc", 12), st.text("abc", max_size=2), st.text("abc", min_size=1, max_size=3))
def test_whether_a_longer_token_may_come(cfg, vocab, text, begun):
    machine, begun = Machine(cfg), begun.encode()
    situation = run(machine, machine.start, text.encode())
    if situation < 0:
        return
    spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
    rests = {token[len(begun) :] for token in spelled if token.startswith(begun)} - {b""}
    expected = any(run(machine, situation, rest) >= 0 for rest in rests)
    assert begins_longer_token(machine, situation, vocab.trie, begun) == expected
