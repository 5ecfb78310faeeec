from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.backends.tokens_dfa.muting_oracle import spells_muted
from tests.strategies import short_texts
from tests.walks import mask_of
from tokdfa.automata.algebra import minimize
from tokdfa.backends.tokens_dfa.contraction import contract
from tokdfa.backends.tokens_dfa.muting import (
    NOT_IN_UTF8,
    Muting,
    compile_muted,
    mute_choice,
    mute_regex,
)
from tokdfa.backends.tokens_dfa.strategy import TokensDfa
from tokdfa.constraint import Choice, JsonSchema, Regex
from tokdfa.errors import EmptyLanguageError, LimitExceeded, RegexSyntaxError, UnsupportedConstraint
from tokdfa.regex.compile import compile_dfa, explicit_dfa
from tokdfa.regex.parse import parse
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import CompiledConstraint, Matcher

INPUTS = Path(__file__).parents[3] / "experiments" / "inputs"
PATTERNS = {entry["label"]: entry["regex"] for entry in yaml.safe_load((INPUTS / "regexes.yaml").read_text())}
TEXTS = yaml.safe_load((INPUTS / "regex_texts.yaml").read_text())


BYTES = tokdfa.load_tokenizer("bytes").vocabulary


def found_literals(pattern: str, **options: object) -> dict[str, int]:
    _, muting = mute_regex(Regex(pattern, **options), BYTES)
    return {literal.text.decode(): literal.occurrences for literal in muting.literals}


# Finding.


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("https?", {"http": 1, "s": 1}),
        ("abc+", {"ab": 1, "c": 1}),
        ("(abc)*d", {"abc": 1, "d": 1}),
        ("(?:abc)def", {"abcdef": 1}),
        ("ab(cd|e-f|)gh", {"ab": 1, "cd": 1, "e": 1, "f": 1, "gh": 1}),
        ("ab|ab-ab", {"ab": 3}),
        ("a_b", {"a": 1, "b": 1}),  # \w has the underscore, alphanumeric has not
        ("x[ab]y[z]", {"x": 1, "yz": 1}),
        ("ab{2}c", {"a": 1, "c": 1}),
        ("(ab?){2,3}c", {"c": 1}),
        ("(ab){1}c{0,1}d{0,}e{1,}", {"ab": 1, "c": 1, "d": 1, "e": 1}),
        ("(?i)ab1", {"1": 1}),
        ("(?i:a)b", {"b": 1}),
        (r"\x41\u00e9\d\.", {"Aé": 1}),
        ("straße日本²", {"straße日本²": 1}),
        (r"\ud800a", {"a": 1}),
        ("--", {}),
        ("", {}),
        ("^ab$", {"ab": 1}),
        ("^^(a|b)$", {"a": 1, "b": 1}),
        (r"\Aab\Z", {"ab": 1}),
        ("((((a)?b)?c)?d)?", {"d": 1, "c": 1, "b": 1, "a": 1}),
        ("(" * 200 + "a" + "|b-)?" * 200, {"a": 1, "b": 200}),  # no nesting exhausts the stack
    ],
)
def test_literals_of_a_regex(pattern: str, literals: dict[str, int]) -> None:
    assert found_literals(pattern) == literals


@pytest.mark.parametrize(
    ("pattern", "options", "named"),
    [
        ("a(?=bc)b", {}, "look_ahead"),
        ("^a|b", {}, "text_start"),
        ("a$b", {}, "text_end"),
        (r"\ba", {"ascii_classes": True}, "word_boundary"),
        ("^a$", {"flags": "m"}, "line_end, line_start"),
        ("a(^b){2}", {}, "text_start"),
        ("$^", {}, "text_end, text_start"),
    ],
)
@pytest.mark.parametrize("search", [False, True])
def test_assertions_are_refused(pattern: str, options: dict[str, object], named: str, search: bool) -> None:
    with pytest.raises(UnsupportedConstraint, match=f"{named} inside.*mute_literals=False"):
        compile_muted(Regex(pattern, search=search, **options), BYTES)


def test_other_errors() -> None:
    with pytest.raises(UnsupportedConstraint, match="json_schema"):
        compile_muted(JsonSchema(True), BYTES)
    with pytest.raises(RegexSyntaxError):
        compile_muted(Regex("a("), BYTES)
    with pytest.raises(EmptyLanguageError, match="no text"):
        compile_muted(Regex(r"\ud800a"), BYTES)
    automaton, _ = compile_muted(Regex("[ab]{50}"), BYTES, max_states=10)
    with pytest.raises(LimitExceeded):
        automaton.to_dfa()


@pytest.mark.parametrize(
    ("choices", "literals"),
    [
        (["foo bar", "bar", "a_b-", ""], {b"foo": 1, b"bar": 2, b"a": 1, b"b": 1}),
        (["é1 ²", "日本"], {"é1".encode(): 1, "²".encode(): 1, "日本".encode(): 1}),
        ([b"\xffab\xc3\xa9c", b"ab"], {b"ab": 2, b"c": 1}),  # not UTF-8: only ASCII is alphanumeric
    ],
)
def test_literals_of_a_choice(choices: list[str | bytes], literals: dict[bytes, int]) -> None:
    _, muting = mute_choice(Choice(choices), BYTES)
    assert {literal.text: literal.occurrences for literal in muting.literals} == literals


# The language.


LETTERS = "ab-é"
atoms = st.sampled_from(["a", "b", "ab", "ba", "aab", "-", "é", ".", "[ab]", "[^a]", "[a]"])
patterns = st.lists(
    st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda options: f"({'|'.join(options)})"),
            st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "{0,}"])).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=5,
    ),
    min_size=1,
    max_size=3,
).map("".join)


@st.composite
def toy_vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Every byte of LETTERS and some longer tokens, doubles among them."""
    longer = st.lists(st.sampled_from(list("abab-é".encode())), min_size=1, max_size=4).map(bytes)
    tokens = draw(
        st.permutations(
            [*(bytes([byte]) for byte in sorted(set(LETTERS.encode()))), *draw(st.lists(longer, max_size=6))]
        )
    )
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])


def sequences(compiled: CompiledConstraint, longest: int) -> dict[tuple[int, ...], bool]:
    """Every token sequence of at most `longest` bytes that masks allow, and whether it may end."""
    vocab, found = compiled.vocab, {}
    agenda: list[tuple[tuple[int, ...], Matcher]] = [((), compiled.start())]
    for tokens, matcher in agenda:  # grows on the way
        found[tokens] = matcher.can_end()
        for token in mask_of(matcher):
            longer = (*tokens, token)
            if token not in vocab.end_token_set and len(vocab.spell(longer)) <= longest:
                agenda.append((longer, matcher.fork()))
                agenda[-1][1].advance(token)
    return found


@settings(max_examples=200)
@given(patterns, toy_vocabularies(), st.booleans(), st.sampled_from(["transformations", "strings", "none"]))
def test_texts_stay_the_same_and_their_tokens_are_those_of_the_definition(
    pattern: str, vocab: Vocabulary, search: bool, token_classes: str
) -> None:
    """All sequences of up to three bytes: the definition says which are complete, Python's `re` what is spelled."""
    constraint, python = Regex(pattern, search=search), re.compile(pattern)
    found = sequences(TokensDfa(vocab, mute_literals=True, token_classes=token_classes).compile(constraint), 3)
    _, muting = mute_regex(constraint, vocab)
    assert muting.unspelled == ()
    spellings = {literal.text.decode(): literal.tokens for literal in muting.literals}
    tree = parse(pattern)
    for length in range(4):
        for tokens in itertools.product(range(vocab.size - 1), repeat=length):
            if len(vocab.spell(tokens)) <= 3:
                assert found.get(tokens, False) == spells_muted(tree, tokens, spellings, vocab, search=search)
    matches = python.search if search else python.fullmatch
    expected = {text.encode() for text in short_texts(3, LETTERS) if len(text.encode()) <= 3 and matches(text)}
    assert {vocab.spell(tokens) for tokens, is_complete in found.items() if is_complete} == expected


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(("pattern", "python"), [("^ab$", r"ab\Z"), ("^ab", "ab"), ("ab$", r"ab\Z"), ("^^$", r"\Z")])
def test_anchors_at_the_ends(pattern: str, python: str, search: bool) -> None:
    vocab = Vocabulary([b"a", b"b", b"-", b"ab", b"b-", b""], end_tokens=[5])
    found = sequences(TokensDfa(vocab, mute_literals=True).compile(Regex(pattern, search=search)), 4)
    matches = {"^": re.match, "a": re.search}[pattern[0]] if search else re.fullmatch
    expected = {text.encode() for text in short_texts(4, "ab-") if matches(python, text)}
    assert {vocab.spell(tokens) for tokens, is_complete in found.items() if is_complete} == expected


@given(
    st.sets(
        st.lists(st.sampled_from([b"a", b"b", b"-", b"\xc3", b"\xa9", b"\xff", b"\xc0"]), max_size=4).map(b"".join),
        min_size=1,
    ),
    toy_vocabularies(),
)
def test_a_choice_keeps_its_texts(texts: set[bytes], toy: Vocabulary) -> None:
    tokens = [toy.token_bytes(token) for token in range(toy.size - 1)]
    vocab = Vocabulary([*tokens, b"\xff", b"\xc0", b"\xffa", b""], end_tokens=[len(tokens) + 3])
    found = sequences(TokensDfa(vocab, mute_literals=True).compile(Choice(texts)), 8)
    assert {vocab.spell(tokens) for tokens, is_complete in found.items() if is_complete} == texts


# The eleven regexes on a real vocabulary.


def test_a_text_goes_on_where_no_token_does() -> None:
    """After the muted ``b`` nothing can follow, and after the other one no token can."""
    compiled = TokensDfa(Vocabulary([b"b", b""], end_tokens=[1]), mute_literals=True).compile(Choice(["b", "ba"]))
    matcher = compiled.start()
    assert mask_of(matcher) == [0]
    matcher.advance(0)
    assert mask_of(matcher) == [1]


@pytest.fixture(scope="module")
def mistral() -> Vocabulary:
    return tokdfa.load_tokenizer("mistral-v1").vocabulary


def accepts_text(
    dfa: Dfa, bound_targets: npt.NDArray[np.int32], muting: Muting, vocab: Vocabulary, text: bytes
) -> bool:
    """Whether some string of bytes and bound tokens that spells `text` is accepted."""
    ahead: list[set[int]] = [set() for _ in range(len(text) + 1)]
    ahead[0].add(dfa.start)
    bound_tokens = [
        (bound_token, vocab.token_bytes(token)) for bound_token, token in enumerate(muting.bound_token_ids.tolist())
    ]
    for place, byte in enumerate(text):
        for state in ahead[place]:
            if (target := dfa.step(state, byte)) >= 0:
                ahead[place + 1].add(target)
            for bound_token, spelled in bound_tokens:
                target = int(bound_targets[state, bound_token])
                if target >= 0 and text.startswith(spelled, place):
                    ahead[place + len(spelled)].add(target)
    return any(dfa.accepting[state] for state in ahead[-1])


EXPECTED_LITERALS = {
    "email": "",
    "complex_phone": "",
    "simple_phone": "",
    "date": "0 1 2 3 19 20",
    "time": "0 1 am pm",
    "ip": "25 2",  # 2[0-4] has its own; [01]? has none
    "url": "http s",
    "ssn": "",
    "simple_json": "name age armor strength 0 leather chainmail plate",
    "complex_json": "id work recording artists 0 name composer functions",
}


@pytest.mark.parametrize("label", PATTERNS)
def test_eleven_regexes(label: str, mistral: Vocabulary) -> None:
    constraint = Regex(PATTERNS[label], label=label)
    automaton, muting = compile_muted(constraint, mistral)
    coded = minimize(explicit_dfa(automaton, constraint, 100_000))
    dfa, bound_targets = contract(coded, muting)
    plain = compile_dfa(constraint)

    assert muting.unspelled == ()
    for literal in muting.literals:
        assert mistral.spell(literal.tokens) == literal.text
        assert literal.text.decode().isalnum()
        assert literal.occurrences >= 1
    if label == "span":
        words = {literal.text.decode() for literal in muting.literals}
        assert len(words) == 55
        assert all(literal.occurrences == 2 for literal in muting.literals)
        assert words == set(re.findall(r"[A-Za-z]+", PATTERNS[label].split("(?:")[1].split(")")[0]))
    else:
        assert " ".join(literal.text.decode() for literal in muting.literals) == EXPECTED_LITERALS[label]

    used = [token for literal in muting.literals for token in literal.tokens]
    assert muting.bound_token_ids.tolist() == list(dict.fromkeys(used))
    assert len(muting.codes) == len(muting.bound_token_ids) == bound_targets.shape[1]
    assert (bound_targets >= 0).any(axis=0).all(), "a bound token leads nowhere"
    assert dfa.state_count == len(bound_targets) <= coded.state_count
    live_bytes = (dfa.byte_table() >= 0).any(axis=0)
    assert not live_bytes[list(NOT_IN_UTF8)].any()
    assert (live_bytes <= (plain.byte_table() >= 0).any(axis=0)).all()

    for text in TEXTS:
        data = text.encode()
        assert accepts_text(dfa, bound_targets, muting, mistral, data) == plain.accepts(data)
        assert not accepts_text(dfa, bound_targets, muting, mistral, data + b"\x00")
    assert any(plain.accepts(text.encode()) for text in TEXTS)
