"""The backend as a whole: against llguidance and the definitions, on odd and hostile input."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends import grammar_walks
from tests.backends.grammar_walks import (
    NAMES,
    accepts,
    advance_all,
    compile_with,
    grammar_of,
    texts_of,
    tokenizer_of,
    walk_all,
)
from tests.grammar.lexed_cfgs import compile_cfg, lexed_cfgs, mask_of
from tests.naive.lexed_earley import LexedEarley
from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.earley_trie.strategy import special_lexemes
from tokdfa.constraint import Grammar
from tokdfa.errors import LimitExceeded, VocabularyCannotSpell
from tokdfa.vocabulary.vocabulary import Vocabulary

#: llguidance's rules.
PEER_RULES = {"lexer": "one_byte", "ignore": "between"}


def earley(constraint, vocab, **options):
    return compile_with(constraint, vocab, "earley_trie", **options)


def bytes_start(constraint, backend="earley_trie", **options):
    return grammar_walks.bytes_start(constraint, backend, **options)


# Against llguidance, by its own rules.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("tokenizer", "steps", "walks"), [("bytes", 50, 12), ("mistral-v1", 12, 5)])
def test_masks_are_llguidances(name, tokenizer, steps, walks):
    """No difference is known on these grammars."""
    found, rng = tokenizer_of(tokenizer), random.Random(1)
    ours = earley(grammar_of(name), found.vocabulary, **PEER_RULES)
    theirs = compile_with(grammar_of(name), found.vocabulary, "llguidance")
    texts = texts_of(name)["accepted"]
    masks = 0
    for number in range(walks):
        text = texts[number % len(texts)] if number % 2 else ""
        masks += walk_all([ours.start(), theirs.start()], found, text, steps, rng)
    assert masks > 2 * walks


#: (grammar, texts that both take, texts that llguidance and the rules `one_byte` and `between` refuse, of which the
#: rules `longest` and `anywhere` take these).
VECTORS = [
    ('start: STEM SUFFIX\nSTEM: "list" | "listen"\nSUFFIX: "ed"', ["listened"], ["listed", "listenned"], ["listed"]),
    ('start: "if" "(" | ID "="\nID: /[a-z]+/', ["if(", "if=", "iff="], ["iff(", "=", "if"], []),
    ('start: /aaa/ | /a+b/ "x"', ["aaa", "aaabx", "abx"], ["aaaa", "aaab", "aa"], []),
    ("start: ID ID\nID: /[a-z]+/\n%ignore / +/", ["ab  cd"], ["abcd", " ab cd", "ab cd "], [" ab cd", "ab cd "]),
    ('start: "a" W "b"\nW: / +/\n%ignore / +/', [], ["a b", "ab", "a  b"], ["a b", "a  b"]),
    ('start: "a" "b"\n%ignore / {1,2}/', ["a   b", "ab", "a     b"], ["a", "a  "], []),
    ('start: "a" "b"\n%ignore / +/\n%ignore /#[^\\n]*\\n/', ["a # c\nb", "a#\n#\n b"], ["a # c b"], []),
    ('start: x "b"\nx[lazy]: /a*/', ["b", "ab"], ["aab"], []),
    ("start: x\nx[lazy]: /.*END/", ["fooEND", "END"], ["fooENDx", "fooENDEND", "foo"], []),
    ('start: "a"{,2}', ["", "a", "aa"], ["aaa"], []),
    ('start: "a".."f"', ["a", "c", "f"], ["g", ""], []),
    ("start: /a*/", ["", "aaa"], ["b"], []),
    ('start: "(" start ")" start |', ["", "(())()", "()"], ["(", "())", ")("], []),
    (
        'start: NUMBER DOT NAME\nNUMBER: /[0-9]+(\\.[0-9]+)?/\nDOT: "."\nNAME: /[a-z]+/',
        ["1.5.x"],
        ["1.x", "1.5x"],
        ["1.x"],
    ),
]


@pytest.mark.parametrize(("grammar", "taken", "refused", "by_longest"), VECTORS, ids=lambda value: str(value)[:30])
def test_conformance(grammar, taken, refused, by_longest):
    for text in taken + refused:
        expected = text in taken
        assert accepts(bytes_start(grammar, "llguidance"), text) == expected, text
        assert accepts(bytes_start(grammar, **PEER_RULES), text) == expected, text
        assert accepts(bytes_start(grammar), text) == (expected or text in by_longest), text


def test_boolean_terminals():
    """``a & ~b`` is our dialect's; llguidance has it in terminals, too."""
    grammar = "start: T\nT: /[a-z]+/ & ~/.*b.*/"
    for backend in ("earley_trie", "llguidance"):
        assert [accepts(bytes_start(grammar, backend), text) for text in ("aac", "ab", "")] == [True, False, False]


# What is kept and counted.


def test_kept_masks_are_found_again():
    compiled = earley(grammar_of("json"), tokenizer_of("bytes").vocabulary)
    matcher = compiled.start()
    for _ in range(3):
        for byte in b'{"a":[1,':
            mask_of(matcher)
            matcher.advance(byte)
    # nested thrice; then the same list elements again and again, in situations that are met before
    before = None
    for _ in range(20):
        before = len(compiled.masks)
        for byte in b"1,":
            mask_of(matcher)
            matcher.advance(byte)
    assert len(compiled.masks) == before


# Vocabularies that lack bytes.


def test_no_dead_ends_with_gaps():
    """What tokens can still spell, by search over all texts of up to nine bytes made of tokens.

    A mask may hold what leads to longer texts only; it must hold all that leads to a short one, and a walk along masks
    must never come to a place with an empty mask.
    """
    outcomes = Counter()

    @settings(max_examples=60)
    @given(lexed_cfgs(), vocabularies(b"abc", 6), st.integers(0, 100))
    def check(cfg, vocab, seed):
        outcomes[walk_with_gaps(cfg, vocab, random.Random(seed))] += 1

    check()
    assert outcomes["walked"] > 20
    assert outcomes["unspellable"] > 5
    assert outcomes["max_search"] < 15


def walk_with_gaps(cfg, vocab, rng):
    """Check the masks along one walk; the limit that ended it, if one did."""
    twin = LexedEarley(cfg)
    spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
    try:
        matcher = compile_cfg(cfg, vocab, max_search=200).start()
        text = b""
        for _ in range(5):
            found = mask_of(matcher)
            assert found, text
            for token, addition in enumerate(spelled):
                if addition and token not in found:
                    tails = token_texts(spelled, 2)
                    assert not any(twin.accepts(text + addition + tail) for tail in tails), (text, token)
            tokens = [token for token in found if token not in vocab.end_tokens]
            if not tokens:
                break
            token = rng.choice(tokens)
            matcher.advance(token)
            text += spelled[token]
    except VocabularyCannotSpell:
        assert not any(twin.accepts(text) for text in token_texts(spelled, 4))
        return "unspellable"
    except LimitExceeded as error:
        return error.limit
    return "walked"


def token_texts(spelled, count):
    """All texts of up to `count` tokens, and at most nine bytes."""
    parts = sorted({part for part in spelled if part})
    texts = {b""}
    for _ in range(count):
        texts |= {text + part for text in texts for part in parts if len(text + part) <= 9}
    return texts


def test_a_lexeme_may_swallow_the_next_one_for_ever():
    """The lexing rules' own kind of dead end, which is not looked for: no text is complete, and masks are not empty."""
    for backend, options in (("earley_trie", {}), ("earley_trie", PEER_RULES), ("llguidance", {})):
        matcher = bytes_start('start: A "a"\nA: /a+/\n', backend, **options)
        for _ in range(5):
            assert mask_of(matcher) == [ord("a")]
            matcher.advance(ord("a"))


# Special tokens.

SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(128)), b"", b"", b"", b"ab"],
    end_tokens=[130],
    special_tokens={128: "<|tool|>", 129: "<|end|>", 130: "</s>"},
)


@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
def test_special_tokens_by_name_and_number(lexer):
    """All sequences of five tokens, against the definitions."""
    grammar = 'start: <|tool|> A (<[129]> | <[^129]> "b") | "b" start | A start <[128-129]>\nA: "a" | "abb"\n'
    compiled = earley(Grammar(grammar), SPECIAL, lexer=lexer)
    cfg = compiled.machine.cfg
    twin, specials = LexedEarley(cfg, lexer == "longest"), special_lexemes(cfg, SPECIAL)
    assert sorted(specials) == [128, 129]
    tokens = {ord("a"): b"a", ord("b"): b"b", 128: None, 129: None, 131: b"ab"}
    agenda, taken = [()], 0
    while agenda:
        sequence = agenda.pop()
        matcher = compiled.start()
        for token in sequence:
            matcher.advance(token)
        text = [symbol for token in sequence for symbol in (tokens[token] or [frozenset(specials[token])])]
        assert matcher.can_end() == twin.accepts(text)
        found = mask_of(matcher)
        for token, spelled in tokens.items():
            allowed = twin.goes_on([*text, *(spelled or [frozenset(specials[token])])])
            assert (token in found) == allowed == matcher.allows(token), (sequence, token)
            if allowed and len(sequence) < 5:
                agenda.append((*sequence, token))
        taken += matcher.can_end()
    assert taken > 8


# Deep and hostile input.


def test_five_thousand_keywords():
    words = [f"k{number:x}" for number in range(5000)]
    rule = "start: (word /,/)* \nword: " + " | ".join(f'"{word}"' for word in words)
    matcher = bytes_start(rule)
    assert accepts(matcher, words[4321] + "," + words[170] + ",")
    assert not accepts(bytes_start(rule), "kx,")


def test_a_repeat_of_a_hundred_thousand():
    matcher = bytes_start('start: X "y"\nX: "x"{0,100000} "z"\n')
    for _ in range(3000):
        matcher.advance(ord("x"))
    assert mask_of(matcher) == list(b"xz")
    assert len(matcher._compiled.machine.lexer.components.places) < 3100


def test_exponentially_many_parses():
    matcher = bytes_start('start: start start | "a" | "aa" | start start start\n')
    assert accepts(matcher, "a" * 150)
    assert mask_of(matcher) == [ord("a"), 256]


def test_ten_thousand_brackets():
    matcher = bytes_start('start: "(" start ")" | "[" start "]" | \n')
    for byte in b"([" * 5000:
        matcher.advance(byte)
    assert mask_of(matcher) == list(b"([]")
    for byte in b"])" * 5000:
        matcher.advance(byte)
    assert mask_of(matcher) == [256]


@pytest.mark.parametrize(
    ("options", "limit", "text"),
    [
        ({"max_rows": 100}, "max_rows", b"(" * 500),
        ({"max_row_items": 16}, "max_row_items", b"x"),
        ({"max_lexer_states": 100}, "max_lexer_states", b"y" * 500),
    ],
)
def test_limits_are_raised_and_survived(options, limit, text):
    many = " | ".join(f'"x" "{letter}" x' for letter in "abcdefghijklmnopq")
    grammar = f'start: "(" start ")" | x | /y{{400,4000}}/ | "q"\nx: "q" | "x" t\nt: {many}'
    compiled = earley(Grammar(grammar), tokenizer_of("bytes").vocabulary, **options)
    for _ in range(2):
        assert accepts(compiled.start(), "q")
        matcher = compiled.start()
        with pytest.raises(LimitExceeded) as caught:
            advance_all(matcher, text)
        assert caught.value.limit == limit


# Options and what is refused.


def test_work_is_counted():
    matcher = bytes_start('start: "a" start | "b"\n', memo=False, mask="walk")
    mask_of(matcher)
    assert matcher.counters["masks_made"] == 1
    assert matcher.counters["nodes_visited"] == 256
    sizes = matcher._compiled.sizes
    assert sizes["rules"] >= 2
    assert sizes["lexemes"] == 2
    assert sizes["bytes"] > 1000
