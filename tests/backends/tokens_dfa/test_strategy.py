from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples, regex_patterns
from tests.vocabulary.vocabularies import ODD
from tests.walks import mask_of as allowed_by
from tokdfa.backends.token_index import ExplicitTokenIndex, TokenIndex
from tokdfa.backends.tokens_dfa import contraction
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa, TokensDfa
from tokdfa.constraint import Constraint, Regex
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    OptionError,
    UnsupportedConstraint,
    VocabularyCannotSpell,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

ALL_TOGETHER: dict[str, tuple] = {
    "token_classes": ("transformations", "strings", "none"),
    "dead_bytes": (True, False),
    "byte_classes": (True, False),
    "prefix_graphs": (True, False),
    "threads": (1, 2, 256),
    "reduce": (True, False),
    "ready_masks": (True, False),
}
VARIANTS = [dict(zip(ALL_TOGETHER, values, strict=True)) for values in itertools.product(*ALL_TOGETHER.values())]
#: 42 of 288, in which any three options meet with all of their values.
SOME = VARIANTS[::7]
LETTERS = Vocabulary(
    [b"a", b"b", b"-", b"\n", b"\xc3", b"\xa9", *"ab aa ba- é aé abab".encode().split(), b"b\n", b""],
    end_tokens=[13],
    name="letters",
)
WORDS = Vocabulary(
    [bytes([letter]) for letter in b'abcdefhilmnopst:/.01"{} ']
    + [b"http", b"https", b"ht", b"tp", b"file", b"name", b"filename", b"://", b"s:", b'":', b"01", b"abc", b""],
    end_tokens=[36],
    name="words",
)


def compiled(constraint: Constraint, vocab: Vocabulary, **options: object) -> CompiledTokensDfa:
    made = TokensDfa(vocab, **options).compile(constraint)
    assert isinstance(made, CompiledTokensDfa)
    return made


def mask_of(made: CompiledTokensDfa, state: int) -> list[int]:
    matcher = made.start()
    matcher.state = state
    return allowed_by(matcher)


def the_same_as_the_index(made: CompiledTokensDfa, index: ExplicitTokenIndex) -> None:
    """Transitions, acceptance and masks of every state that can be reached, walking both side by side."""
    matcher = index.start()
    partner = {0: 0}
    agenda = [0]
    while agenda:
        state = agenda.pop()
        ours, theirs = made.transitions(state), index.transitions(partner[state])
        assert ours.keys() == theirs.keys()
        for token, target in ours.items():
            if target not in partner:
                partner[target] = theirs[token]
                agenda.append(target)
            assert partner[target] == theirs[token]
        assert made.accepts(state) == index.accepts(partner[state])
        matcher.state = partner[state]
        assert mask_of(made, state) == allowed_by(matcher)
    assert len(partner) == made.sizes["states"]


def tables_are_equal(one: CompiledTokensDfa, other: CompiledTokensDfa) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(one.table, other.table, strict=True))


@pytest.mark.parametrize("options", SOME, ids=lambda options: "-".join(map(str, options.values())))
def test_every_variant_is_the_token_index(options: dict[str, object]) -> None:
    for pattern, vocab in (("(ab|b-)*é?\n{0,3}", LETTERS), ("a{2,5}|[^b]{1,2}", LETTERS), ("(a|ab|c|é)*", ODD)):
        index = TokenIndex(vocab).compile(Regex(pattern))
        assert isinstance(index, ExplicitTokenIndex)
        made = compiled(Regex(pattern), vocab, **options)
        the_same_as_the_index(made, index)
        if options["reduce"]:
            assert tables_are_equal(made, compiled(Regex(pattern), vocab))


@examples(150)
@given(regex_patterns(boundaries=False), st.sampled_from(VARIANTS))
def test_random_regexes(pattern: str, options: dict[str, object]) -> None:
    try:
        index = TokenIndex(LETTERS).compile(Regex(pattern))
    except (EmptyLanguageError, VocabularyCannotSpell) as error:
        with pytest.raises(type(error)):
            compiled(Regex(pattern), LETTERS, **options)
        return
    assert isinstance(index, ExplicitTokenIndex)
    the_same_as_the_index(compiled(Regex(pattern), LETTERS, **options), index)


def the_benchmark_regexes() -> list[tuple[str, str]]:
    import yaml

    from tests.lab.report.test_experiments import EXPERIMENTS

    entries = yaml.safe_load((EXPERIMENTS / "inputs" / "regexes.yaml").read_text())
    return [(entry["label"], entry["regex"]) for entry in entries]


@pytest.mark.parametrize(("label", "pattern"), the_benchmark_regexes())
def test_the_benchmark_regexes_on_a_real_vocabulary(label: str, pattern: str) -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    index = TokenIndex(vocab).compile(Regex(pattern))
    assert isinstance(index, ExplicitTokenIndex)
    made = compiled(Regex(pattern), vocab)
    the_same_as_the_index(made, index)
    assert all(made.transitions(state) == index.transitions(state) for state in range(made.sizes["states"]))
    for options in (
        {"threads": 2},
        {"token_classes": "strings"},
        {"token_classes": "strings", "threads": 2},
        {"token_classes": "none", "byte_classes": False, "dead_bytes": False},
    ):
        assert tables_are_equal(made, compiled(Regex(pattern), vocab, **options)), options


# Muted literals; what they are, and what is then allowed, is in `test_muting`.


def test_threads_make_the_same_muted_table() -> None:
    muted = Regex('"filename":"[a-z]*"|(http|[a-z]+)(file)?')
    one, other = (compiled(muted, WORDS, mute_literals=True, threads=threads) for threads in (1, 2))
    assert tables_are_equal(one, other)


def test_muting_needs_a_pattern_without_assertions() -> None:
    with pytest.raises(UnsupportedConstraint, match="mute_literals=False"):
        compiled(Regex(r"(?!foo)[a-z]+"), WORDS, mute_literals=True)


# Limits, sizes, threads


def test_limits() -> None:
    for token_classes in ("transformations", "strings", "none"):
        with pytest.raises(LimitExceeded, match="max_transitions") as caught:
            compiled(Regex("[ab]{1,3000}"), LETTERS, max_transitions=500, token_classes=token_classes)
        assert caught.value.limit == "max_transitions"
    with pytest.raises(LimitExceeded, match="max_transitions"):  # from a thread of its own
        compiled(Regex("[ab-]{1,3000}"), LETTERS, max_transitions=500, threads=3)
    with pytest.raises(LimitExceeded, match="max_states"):
        compiled(Regex("[ab]{1,3000}"), LETTERS, max_states=100)
    with pytest.raises(LimitExceeded, match="max_states"):
        compiled(Regex("(https?://)?[a-z.]{1,4}"), WORDS, mute_literals=True, max_states=4)
    with pytest.raises(OptionError, match="threads"):
        TokensDfa(LETTERS, threads=257)


def test_too_many_transitions_by_muted_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contraction, "MAX_TARGETS", 1)
    with pytest.raises(LimitExceeded, match="mute_literals=False"):
        compiled(Regex("(https?://)?[a-z.]{1,4}"), WORDS, mute_literals=True)


def test_a_muted_constraint_that_cannot_be_spelled_says_so() -> None:
    vocab = Vocabulary([b"http", b"a", b""], end_tokens=[2], name="poor")
    for pattern in ("http[0-9]", "[0-9]http", "http://a"):
        with pytest.raises(VocabularyCannotSpell, match=r"'poor' cannot spell any text .* set mute_literals=False"):
            compiled(Regex(pattern), vocab, mute_literals=True)
