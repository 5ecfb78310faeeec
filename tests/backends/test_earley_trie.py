"""The backend as a whole: against llguidance, against itself with parts switched off, on odd and hostile input."""

from __future__ import annotations

import random
import threading
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import compile_cfg, lexed_cfgs, mask_of
from tests.naive.lexed_earley import LexedEarley
from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.contract_trial import advances
from tokdfa.backends.earley_trie import special_lexemes
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import LimitExceeded, TokenRefused, UnsupportedConstraint, VocabularyCannotSpell, VocabularyError
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

FOLDER = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))
#: llguidance's rules.
PEER_RULES = {"lexer": "one_byte", "ignore": "between"}


@cache
def tokenizer_of(name):
    return load_tokenizer(name)


@cache
def grammar_of(name):
    return Grammar((FOLDER / f"{name}.lark").read_text(), label=name)


def compile_with(backend, constraint, vocab, **options):
    return create_backend(backend, vocab, **options).compile(constraint)


def bytes_start(text, backend="earley_trie", **options):
    """A matcher for a grammar on the vocabulary of single bytes."""
    return compile_with(backend, Grammar(text), tokenizer_of("bytes").vocabulary, **options).start()


def advance_all(matcher, tokens):
    for token in tokens:
        matcher.advance(token)


def accepts(matcher, text):
    """Whether a new matcher on single bytes takes the text and may end there."""
    return all(advances(matcher, byte) for byte in text.encode()) and matcher.can_end()


def walk_all(matchers, tokenizer, text, steps, rng):
    """Equal masks along one walk: first the tokens of `text`, then any. How many masks there were."""
    vocab, planned = tokenizer.vocabulary, tokenizer.encode(text)
    for step in range(steps):
        found = [mask_of(matcher) for matcher in matchers]
        for other in found[1:]:
            assert found[0] == other, (step, vocab.spell(planned[:step]))
        tokens = [token for token in found[0] if token not in vocab.end_token_set]
        if not tokens:
            return step + 1
        chosen = planned[step] if step < len(planned) and planned[step] in found[0] else rng.choice(tokens)
        for matcher in matchers:
            matcher.advance(chosen)
    return steps


# Against llguidance, by its own rules.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("tokenizer", "steps", "walks"), [("bytes", 50, 12), ("mistral-v1", 12, 5)])
def test_masks_are_llguidances(name, tokenizer, steps, walks):
    """No difference is known on these grammars."""
    found, rng = tokenizer_of(tokenizer), random.Random(1)
    ours = compile_with("earley_trie", grammar_of(name), found.vocabulary, **PEER_RULES)
    theirs = compile_with("llguidance", grammar_of(name), found.vocabulary)
    texts = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["accepted"]
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


@pytest.mark.parametrize("name", NAMES)
def test_texts_of_the_grammars(name):
    """By Lark's rules, all that the grammar's texts say of it."""
    listed = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    compiled = compile_with("earley_trie", grammar_of(name), tokenizer_of("bytes").vocabulary)
    assert [text for text in listed["accepted"] if not accepts(compiled.start(), text)] == []
    assert [text for text in listed["refused"] if accepts(compiled.start(), text)] == []


# Against itself: every switch leaves the masks as they are.

SWITCHES = [
    {"mask": "walk", "memo": False, "memo_steps": False},
    {"mask": "partition", "memo": False, "shared_partitions": False},
    {"mask": "partition", "mask_mb": 1},
    {"mask": "slices"},
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
def test_switches_change_no_mask(name, lexer):
    tokenizer, rng = tokenizer_of("mistral-v1"), random.Random(2)
    every = [compile_with("earley_trie", grammar_of(name), tokenizer.vocabulary, lexer=lexer, **o) for o in SWITCHES]
    texts = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["accepted"]
    for text in [*rng.sample(texts, 2), "", ""]:
        matchers = [compiled.start() for compiled in every]
        walk_all(matchers, tokenizer, text, 12, rng)
        vocab = tokenizer.vocabulary
        allowed = set(mask_of(matchers[0]))
        for token in rng.sample(range(vocab.size), 200) + rng.sample(sorted(allowed), min(50, len(allowed))):
            assert matchers[1].allows(token) == (token in allowed)


def test_kept_masks_are_found_again():
    compiled = compile_with("earley_trie", grammar_of("json"), tokenizer_of("bytes").vocabulary)
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


def test_gaps_by_hand():
    """No b alone: what is begun with a must go on to ab, and a text of b is out of reach."""
    vocab = Vocabulary([b"a", b"ab", b"(", b")", b""], end_tokens=[4])
    grammar = Grammar('start: "(" start ")" | "a" "b" | "a" "ab" | "bc"\n')
    compiled = compile_with("earley_trie", grammar, vocab)
    matcher = compiled.start()
    assert mask_of(matcher) == [0, 1, 2]
    matcher.advance(0)
    assert mask_of(matcher) == [1]
    matcher.rollback(1)
    matcher.advance(1)
    assert mask_of(matcher) == [4]
    with pytest.raises(VocabularyCannotSpell, match="lacks bytes"):
        compile_with("earley_trie", Grammar('start: "b" | "a" "b"\n'), Vocabulary([b"a", b""], end_tokens=[1]))


def test_a_lexeme_may_swallow_the_next_one_for_ever():
    """The lexing rules' own kind of dead end, which is not looked for: no text is complete, and masks are not empty."""
    for backend, options in (("earley_trie", {}), ("earley_trie", PEER_RULES), ("llguidance", {})):
        matcher = bytes_start('start: A "a"\nA: /a+/\n', backend, **options)
        for _ in range(5):
            assert mask_of(matcher) == [ord("a")]
            matcher.advance(ord("a"))


def test_a_search_without_end_is_given_up():
    """Brackets can be opened for ever and never closed."""
    vocab = Vocabulary([b"(", b"a", b""], end_tokens=[2])
    grammar = Grammar('start: "(" start ")" | "a"\n')
    compiled = compile_with("earley_trie", grammar, vocab, max_search=100)
    with pytest.raises(LimitExceeded, match="lacks some bytes") as caught:
        mask_of(compiled.start())
    assert (caught.value.limit, caught.value.value) == ("max_search", 100)


# Special tokens.

SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(128)), b"", b"", b"", b"ab"],
    end_tokens=[130],
    special_tokens={128: "<|tool|>", 129: "<|end|>", 130: "</s>"},
)


def test_special_tokens_stand_between_lexemes():
    grammar = Grammar("start: (TEXT | call)*\ncall: <|tool|> /[a-z]+(:[0-9]+)?/ <|end|>\nTEXT: /[^:]+/\n")
    matcher = compile_with("earley_trie", grammar, SPECIAL).start()
    assert {128, 130} <= set(mask_of(matcher))
    assert 129 not in mask_of(matcher)
    advance_all(matcher, (*b"hi", 128, *b"run"))
    assert [token for token in mask_of(matcher) if token > 127] == [129, 131]
    matcher.advance(ord(":"))
    assert mask_of(matcher) == list(b"0123456789")
    matcher.advance(ord("7"))
    matcher.advance(129)
    assert {128, 130} <= set(mask_of(matcher))
    matcher.advance(130)
    assert matcher.is_finished()
    matcher.rollback(9)
    assert {128, 130} <= set(mask_of(matcher))
    with pytest.raises(TokenRefused):
        matcher.advance(129)


@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
def test_special_tokens_by_name_and_number(lexer):
    """All sequences of five tokens, against the definitions."""
    grammar = 'start: <|tool|> A (<[129]> | <[^129]> "b") | "b" start | A start <[128-129]>\nA: "a" | "abb"\n'
    compiled = compile_with("earley_trie", Grammar(grammar), SPECIAL, lexer=lexer)
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


def test_special_tokens_after_a_shorter_match():
    """At a border that only a fallback knows: "1." may become 1.5, and it may be 1 and a point."""
    grammar = Grammar('start: NUMBER "."? <|end|>\nNUMBER: /[0-9]+(\\.[0-9]+)?/\n')
    matcher = compile_with("earley_trie", grammar, SPECIAL).start()
    for token in b"1.":
        matcher.advance(token)
    assert mask_of(matcher) == [*b"0123456789", 129]
    matcher.advance(129)
    assert mask_of(matcher) == [130]


def test_special_tokens_that_are_none():
    with pytest.raises(VocabularyError, match="no special token"):
        compile_with("earley_trie", Grammar("start: <|nothing|>"), SPECIAL)


# Threads.


def test_threads_get_the_masks_of_one():
    """Eight threads on one compiled constraint, each on its own walks, all at once."""
    vocab = tokenizer_of("mistral-v1").vocabulary

    def walks(compiled, seed):
        rng, found = random.Random(seed), []
        for _ in range(3):
            matcher = compiled.start()
            for _ in range(10):
                mask = mask_of(matcher)
                found.append(mask)
                tokens = [token for token in mask if token not in vocab.end_token_set]
                if not tokens:
                    break
                matcher.advance(rng.choice(tokens))
        return found

    shared = compile_with("earley_trie", grammar_of("c_like"), vocab)
    results = {}
    barrier = threading.Barrier(8)

    def work(seed):
        barrier.wait()
        results[seed] = walks(shared, seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = compile_with("earley_trie", grammar_of("c_like"), vocab, memo=False, memo_steps=False, mask="walk")
    for seed in (0, 3, 7):
        assert results[seed] == walks(alone, seed)
    assert len(results) == 8


# Deep and hostile input.


def test_hundred_thousand_choices():
    choices = [f"{number * 7919 % 1_000_003:x}-{number}" for number in range(100_000)]
    matcher = compile_with("earley_trie", Choice(choices), tokenizer_of("bytes").vocabulary).start()
    assert accepts(matcher, choices[77_777])
    assert mask_of(matcher)[-1] == 256
    other = matcher.fork()
    other.rollback(1)
    assert not other.can_end()


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
    compiled = compile_with("earley_trie", Grammar(grammar), tokenizer_of("bytes").vocabulary, **options)
    for _ in range(2):
        assert accepts(compiled.start(), "q")
        matcher = compiled.start()
        with pytest.raises(LimitExceeded) as caught:
            advance_all(matcher, text)
        assert caught.value.limit == limit


# Options and what is refused.


def test_proper_sequences_need_a_tokenizer():
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    with pytest.raises(UnsupportedConstraint, match="tokenizer"):
        compile_with("earley_trie", Regex("a+"), vocab, proper=True)
    assert create_backend("earley_trie", vocab, proper=True).token_language == "proper"


def test_work_is_counted():
    matcher = bytes_start('start: "a" start | "b"\n', memo=False, mask="walk")
    mask_of(matcher)
    assert matcher.counters["masks_made"] == 1
    assert matcher.counters["nodes_visited"] == 256
    sizes = matcher._compiled.sizes
    assert sizes["rules"] >= 2
    assert sizes["lexemes"] == 2
    assert sizes["bytes"] > 1000
