"""What holds for every engine of grammars, by each way to cut a text into lexemes."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.cfg_fsm.oracles import LALR
from tests.backends.grammar_walks import (
    EVERY,
    NAMES,
    SPECIAL,
    compile_with,
    grammar_of,
    texts_of,
    tokenizer_of,
    walk_all,
)
from tests.backends.pushdown_trie import compile_cfg as pushdown_compile
from tests.grammar.lexed_cfgs import PATTERNS, byte_cfgs, lexed_cfgs, make_cfg
from tests.grammar.lexed_cfgs import compile_cfg as earley_compile
from tests.naive.cfg_recogniser import CfgRecogniser
from tests.naive.lexed_earley import LexedEarley
from tests.vocabulary.vocabularies import vocabularies
from tests.walks import accepts, advance_all, mask_of
from tokdfa.backends.earley_trie.strategy import special_lexemes
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.errors import (
    LimitExceeded,
    SchemaUnsupported,
    UnsupportedConstraint,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.vocabulary.vocabulary import Vocabulary


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_texts_of_the_grammars(backend, lexer, name):
    """By Lark's rules, all that the grammar's texts say of it; cut in any way, more texts are taken."""
    compiled = compile_with(grammar_of(name), tokenizer_of("bytes").vocabulary, backend, lexer=lexer)
    assert [text for text in texts_of(name)["accepted"] if not accepts(compiled.start(), text)] == []
    if lexer == "longest":
        assert [text for text in texts_of(name)["refused"] if accepts(compiled.start(), text)] == []


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        ('start: (line ";")+\nline: "x" NL\nNL: "\\n"\n%ignore NL', ["x\n;", "\nx\n\n;x\n;\n"]),
        ('start: "b" "a"\n%ignore "a"', ["ba", "baa", "abaaa"]),
        ('start: x "b"\nx: "a"\n%ignore "a"', ["ab", "aab", "aba"]),
        ('start: "(" start ")" | "a"\n%ignore "a"', ["(((a(aa(a)a))aa))a"]),
    ],
)
def test_what_is_ignored_may_end_a_rule(grammar, texts, backend, lexer):
    compiled = compile_with(grammar, tokenizer_of("bytes").vocabulary, backend, lexer=lexer)
    assert [text for text in texts if not accepts(compiled.start(), text.encode())] == []


# The definitions of the lexing rules, byte by byte.

EVERY_RULE = [*EVERY, ("earley_trie", "one_byte")]
COMPILED_BY = {"earley_trie": earley_compile, "pushdown_trie": pushdown_compile}


@pytest.mark.parametrize(
    "options",
    [
        ("earley_trie", {"lexer": "longest", "ignore": "anywhere"}),
        ("earley_trie", {"lexer": "longest", "ignore": "between"}),
        ("earley_trie", {"lexer": "one_byte", "ignore": "anywhere"}),
        ("earley_trie", {"lexer": "one_byte", "ignore": "between"}),
        ("pushdown_trie", {"lexer": "longest"}),
    ],
    ids=str,
)
def test_texts_are_read_as_defined(options):
    """All texts of up to six letters: which go on, and which are complete; and a long one, in which fallbacks live
    long and have fallbacks of their own."""
    backend, rules = options
    outcomes = Counter()

    @settings(max_examples=50)
    @given(lexed_cfgs() | byte_cfgs() | lists_of_lexemes(), st.text("ab", min_size=10, max_size=40).map(str.encode))
    def check(cfg, long):
        matcher = COMPILED_BY[backend](cfg, tokenizer_of("bytes").vocabulary, **rules).start()
        twin = LexedEarley(cfg, rules["lexer"] == "longest", rules.get("ignore", "anywhere") == "anywhere")
        agenda = [(matcher.fork(), b"")]
        for here, text in agenda:  # grows on the way
            assert here.can_end() == twin.accepts(text), text
            outcomes[here.can_end()] += 1
            for letter in b"abc" if len(text) < 6 else b"":
                longer = text + bytes([letter])
                assert here.allows(letter) == twin.goes_on(longer), longer
                if here.allows(letter):
                    agenda.append((here.fork(), longer))
                    agenda[-1][0].advance(letter)
        for size, byte in enumerate(long, 1):
            assert matcher.allows(byte) == twin.goes_on(long[:size]), long[:size]
            if not matcher.allows(byte):
                break
            matcher.advance(byte)
            assert matcher.can_end() == twin.accepts(long[:size]), long[:size]

    check()
    assert min(outcomes[True], outcomes[False]) > 500


def lists_of_lexemes():
    """One list of all lexemes, in any order."""
    patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True).map(tuple)
    return patterns.map(lambda each: make_cfg(each, {"s": [(), *(("s", pattern) for pattern in each)]}))


#: Every switch leaves the masks as they are.
SWITCHES = {
    "earley_trie": [
        {"mask": "walk", "memo": False, "memo_steps": False},
        {"mask": "effects", "memo": False, "shared_effects": False},
        {"mask": "effects", "mask_mb": 1, "patience": 0},
        {"mask": "walk", "row_stack": True, "memo": False},
        {"mask": "slices"},
        {"mask": "slices", "slices": "general", "slice_budget": 400},
    ],
    "cfg_fsm": [
        {"masks": "vectors", "memo": False},
        {"masks": "walk", "memo": False},
        {"memo_steps": False},
        {"mask_mb": 1},
    ],
    "pushdown_trie": [
        {"partition": False, "subtrees": False, "memo": False, "shared": False},
        {"first_bytes": False, "shared_automata": False},
        {"partition": True, "subtrees": False, "memo": False},
        {"partition": True, "subtrees": True, "memo": True},
        {"partition": True, "subtrees": True, "memo": True, "shared": False, "mask_mb": 1},
        {"partition": False, "memo": True},
    ],
}


@pytest.mark.parametrize(
    ("backend", "options", "name"),
    [
        *((backend, {"lexer": lexer}, name) for backend, lexer in EVERY_RULE for name in NAMES),
        *(("cfg_fsm", {}, name) for name in LALR),
    ],
    ids=str,
)
def test_switches_change_no_mask(backend, options, name):
    tokenizer, rng = tokenizer_of("mistral-v1"), random.Random(2)
    ways = [options | switches for switches in SWITCHES[backend]]
    every = [compile_with(grammar_of(name), tokenizer.vocabulary, backend, **way) for way in ways]
    for text in (rng.choice(texts_of(name)["accepted"]), ""):
        matchers = [compiled.start() for compiled in every]
        walk_all(matchers, tokenizer, text, 12, rng)
        allowed = set(mask_of(matchers[0]))
        some = rng.sample(sorted(allowed), min(50, len(allowed)))
        for token in rng.sample(range(tokenizer.vocabulary.size), 100) + some:
            assert [matcher.allows(token) for matcher in matchers] == [token in allowed] * len(matchers)


# Vocabularies that lack bytes.


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_brackets_that_no_token_closes_are_not_opened(backend, lexer):
    """No search is needed for that: what cannot be written is taken out of the rules."""
    vocab = Vocabulary([b"(", b"a", b""], end_tokens=[2])
    compiled = compile_with(Grammar('start: "(" start ")" | "a"\n'), vocab, backend, lexer=lexer, max_search=1)
    assert mask_of(compiled.start()) == [1]


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_a_search_without_end_is_given_up(backend, lexer):
    """Brackets can be opened for ever and never closed, though a token has a closing one."""
    vocab = Vocabulary([b"(", b"a", b"", b"b)"], end_tokens=[2])
    compiled = compile_with(Grammar('start: "(" start ")" | "a"\n'), vocab, backend, lexer=lexer, max_search=100)
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="lacks some bytes") as caught:
            mask_of(compiled.start())
        assert (caught.value.limit, caught.value.value) == ("max_search", 100)


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_no_dead_ends_with_gaps(backend, lexer):
    """What tokens can still spell: a mask is never empty, and holds all tokens that lead to a short text."""
    outcomes = Counter()

    @settings(max_examples=50)
    @given(lexed_cfgs(), vocabularies(b"abc", 6), st.integers(0, 100))
    def check(cfg, vocab, seed):
        outcomes[walk_with_gaps(cfg, vocab, random.Random(seed), backend, lexer)] += 1

    check()
    assert outcomes["walked"] > 15
    assert outcomes["unspellable"] > 3
    assert outcomes["max_search"] < 15


def walk_with_gaps(cfg, vocab, rng, backend, lexer):
    """Check the masks along one walk; the limit that ended it, if one did."""
    twin, limit = (LexedEarley(cfg), 9) if lexer == "longest" else (CfgRecogniser(cfg, outer_skip=True), 6)
    spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
    try:
        matcher, text = COMPILED_BY[backend](cfg, vocab, lexer=lexer, max_search=200).start(), b""
        for _ in range(4):
            found = mask_of(matcher)
            assert found, text
            for token, addition in enumerate(spelled):
                assert matcher.allows(token) == (token in found)
                if addition and token not in found and len(text) < limit:
                    tails = token_texts(spelled, 2, limit - len(text))
                    assert not any(twin.accepts(text + addition + tail) for tail in tails), (text, token)
            tokens = [token for token in found if token not in vocab.end_tokens]
            if not tokens:
                break
            token = rng.choice(tokens)
            matcher.advance(token)
            text += spelled[token]
    except VocabularyCannotSpell:
        assert not any(twin.accepts(text) for text in token_texts(spelled, 4, limit))
        return "unspellable"
    except LimitExceeded as error:
        return error.limit
    return "walked"


def token_texts(spelled, count, limit):
    """All texts of up to `count` tokens, and at most `limit` bytes."""
    parts = sorted({part for part in spelled if part})
    texts = {b""}
    for _ in range(count):
        texts |= {text + part for text in texts for part in parts if len(text + part) <= limit}
    return texts


# Special tokens.


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_special_tokens_after_a_shorter_match(backend, lexer):
    """At a border that only a fallback knows: "1." may become 1.5, and it may be 1 and a point."""
    grammar = Grammar('start: NUMBER "."? <|end|>\nNUMBER: /[0-9]+(\\.[0-9]+)?/\n')
    matcher = compile_with(grammar, SPECIAL, backend, lexer=lexer).start()
    advance_all(matcher, b"1.")
    assert mask_of(matcher) == [*b"0123456789", 129]
    matcher.advance(129)
    assert mask_of(matcher) == [130]


@pytest.mark.parametrize(
    ("backend", "lexer"), [("earley_trie", "longest"), ("earley_trie", "one_byte"), ("pushdown_trie", "longest")]
)
def test_special_tokens_by_name_and_number(backend, lexer):
    """All sequences of five tokens, against the definitions."""
    grammar = 'start: <|tool|> A (<[129]> | <[^129]> "b") | "b" start | A start <[128-129]>\nA: "a" | "abb"\n'
    compiled = compile_with(grammar, SPECIAL, backend, lexer=lexer)
    cfg = compile_with(grammar, SPECIAL, "earley_trie").machine.cfg
    twin, specials = LexedEarley(cfg, lexer == "longest"), special_lexemes(cfg, SPECIAL)
    assert sorted(specials) == [128, 129]
    tokens = {ord("a"): b"a", ord("b"): b"b", 128: None, 129: None, 131: b"ab"}
    agenda, taken = [()], 0
    while agenda:
        sequence = agenda.pop()
        matcher = compiled.start()
        advance_all(matcher, sequence)
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


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_special_tokens_that_are_none(backend, lexer):
    with pytest.raises(VocabularyError, match="no special token"):
        compile_with(Grammar("start: <|nothing|>"), SPECIAL, backend, lexer=lexer)


# What is kept, counted and refused.


CALL = {
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "kelvin"]}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
    "type": "object",
}


def call_schema(max_nesting):
    spelling = {"whitespace": "compact", "item_separator": ", ", "key_separator": ": ", "escapes": "needed"}
    return JsonSchema(CALL, max_nesting=max_nesting, **spelling)


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_proper_masks_are_those_of_cartesian_merge(name):
    """Of a schema that nests no deeper anyway: exact if its bound is known, else found by looking ahead."""
    tokenizer, rng = tokenizer_of(name), random.Random(4)
    engines = ("pushdown_trie", "earley_trie")
    every = [
        compile_with(call_schema(depth), tokenizer.vocabulary, engine, proper=True)
        for depth in (2, None)
        for engine in engines
    ]
    assert [compiled.lookahead for compiled in every] == [0, 0, 8, 8]
    every.append(compile_with(call_schema(2), tokenizer.vocabulary, "cartesian_merge"))
    for text in ('{"city": "San José", "unit": "kelvin", "days": 14}', '{"city": ""}', "", ""):
        walk_all([compiled.start() for compiled in every], tokenizer, text, 24, rng)


@pytest.mark.parametrize("backend", ["earley_trie", "pushdown_trie"])
def test_what_a_lenient_schema_drops_is_listed(backend):
    schema = {"type": "array", "contains": {"type": "string"}, "uniqueItems": True}
    vocab = tokenizer_of("mistral-v1").vocabulary
    with pytest.raises(SchemaUnsupported, match="uniqueItems"):
        compile_with(JsonSchema(schema), vocab, backend)
    lenient = JsonSchema(schema, lenient=True, max_nesting=1)
    plain, proper = (compile_with(lenient, vocab, backend, proper=proper) for proper in (False, True))
    assert [(one.pointer, one.keyword) for one in plain.dropped] == [("", "uniqueItems")]
    assert [(one.pointer, one.keyword) for one in proper.dropped] == [("", "uniqueItems")]  # for a reason of its own


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_proper_sequences_need_a_tokenizer(backend, lexer):
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    with pytest.raises(UnsupportedConstraint, match="tokenizer"):
        compile_with(Regex("a+"), vocab, backend, lexer=lexer, proper=True)
    assert create_backend(backend, vocab, proper=True).token_language == "proper"
