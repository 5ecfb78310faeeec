"""The index of 2023 against `token_index`, and DirectMerge over its FSM against ours: two ways that share no code."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.backends.proper_merge.token_languages import regexes, sequences
from tests.naive.direct_merge import direct_merge
from tests.proper.small_tokenizers import merge_list
from tests.strategies import regex_patterns
from tests.walks import walk_along
from tokdfa.backends.outlines_2023 import Outlines2023, bytes_of_characters, parse
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import proper_tokenizations
from tokdfa.backends.token_index import TokenIndex
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.token_rows import TokenRows
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.proper.canonical import Canonicity

#: All bytes, words, pieces of characters, two ids for one text.
PIECES = Vocabulary(
    [
        *(bytes([byte]) for byte in range(256)),
        *(b"ab", b"ba", b"a\n", b"-b", b"\xa9a", b"b\xc3", b"\xc3\xa9", b"ab"),
        b"",
    ],
    end_tokens=[264],
)


def same_masks(constraint: Constraint, vocab: Vocabulary, steps: int) -> None:
    """Along a random walk."""
    both = [backend(vocab).compile(constraint).start() for backend in (Outlines2023, TokenIndex)]
    walk_along(both, vocab, (), steps, random.Random(constraint.source))


@given(regex_patterns(anchors=False, look_ahead=False, boundaries=False))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_masks_are_those_of_token_index(pattern: str) -> None:
    constraint = Regex(pattern, ascii_classes=True)
    if Outlines2023(PIECES).supports(constraint):
        try:
            same_masks(constraint, PIECES, 6)
        except EmptyLanguageError:
            with pytest.raises(EmptyLanguageError):
                TokenIndex(PIECES).compile(constraint)
    else:  # a choice of a quantifier that interegular has not
        assert "{,1}" in pattern or "{" in pattern or "??" in pattern or "*?" in pattern


@pytest.mark.parametrize("pattern", ["[^é]b", "[é-ÿ]a|€", ".{1,2}", "[^\\x00-\\x7f]a", "[^à-þ]{2}"])
def test_characters_are_read_by_their_bytes(pattern: str) -> None:
    for _ in range(5):
        same_masks(Regex(pattern), PIECES, 8)
    moves, finals = bytes_of_characters(parse(pattern).to_fsm())
    dfa, rng = compile_dfa(Regex(pattern)), random.Random(pattern)
    alphabet = [*"abé\nà", "\u20ac", "\ud7ff", "\U0010ffff", "\x7f", "ÿ"]
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(4))).encode() for _ in range(300)]
    texts += [bytes(rng.choices(b"\xc3\xa9\xe2\x82\xac\xed\xa0\xf4\x8fab", k=rng.randrange(5))) for _ in range(300)]
    for text in texts:
        state: int | None = 0
        for byte in text:
            state = moves[state].get(byte) if state is not None else None
        assert (state in finals) == dfa.accepts(text), text


def test_the_figure_of_002() -> None:
    """`boolean: ((true)|(false))` has 17 states and 48 transitions, 65 with the byte fallback's tokens."""
    vocab = tokdfa.load_tokenizer("mistral-v1").vocabulary
    compiled = Outlines2023(vocab).compile(Regex("boolean: ((true)|(false))"))
    assert compiled.sizes == {"states": 17, "transitions": 65}
    fallback = set(range(3, 259))
    assert sum(token not in fallback for row in compiled.index for token in row) == 48
    ways_out = [len(set(row) - fallback) for row in compiled.index]
    assert (ways_out.count(1), ways_out.count(0)) == (3, 1)  # "only 3 states with one outgoing transition" of 16
    same_masks(Regex("boolean: ((true)|(false))"), vocab, 12)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (Regex("^a"), "interegular does not read"),
        (Regex(r"\d"), "set ascii_classes=True"),
        (Regex("a", flags="i"), "neither search nor flags"),
        (Choice([b"\xff"]), "no UTF-8"),
    ],
)
def test_what_is_read_otherwise_is_refused(constraint: Constraint, said: str) -> None:
    backend = Outlines2023(PIECES)
    answer = backend.supports(constraint)
    assert not answer
    assert said in answer.reason
    with pytest.raises(UnsupportedConstraint):
        backend.compile(constraint)


def merged_plainly(canonicity: Canonicity, constraint: Constraint) -> TokenRows:
    """Algorithms 1 and 2 of 002, on interegular's FSM."""
    moves, finals = bytes_of_characters(parse(constraint.source).to_fsm().reduce())
    letters = canonicity.letter_tokens
    rows = {state: {letters[bytes([byte])]: target for byte, target in row.items()} for state, row in enumerate(moves)}
    order = canonicity.rules.in_rank_order()
    parts = (canonicity.rules.left, canonicity.rules.right, canonicity.rules.result)
    rules = list(zip(*(part[order].tolist() for part in parts), strict=True))
    made, accepting, start = direct_merge(rows, finals, 0, rules)
    number = {state: place for place, state in enumerate(made)}
    table = [{token: number[target] for token, target in row.items()} for row in made.values()]
    return TokenRows(table, [state in accepting for state in made], number[start])


@st.composite
def rising_merges(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Merges over a, b, c, each of a new text, in the order in which their parts are made: 002's assumptions."""
    texts, merges = list("abc"), []
    for _ in range(draw(st.integers(1, 8))):
        pair = (draw(st.sampled_from(texts)), draw(st.sampled_from(texts)))
        if "".join(pair) not in texts and len("".join(pair)) < 7:
            merges.append(pair)
            texts.append("".join(pair))
    return merges


@given(merges=rising_merges(), pattern=regexes())
@settings(deadline=None, derandomize=True, max_examples=80)
def test_direct_merge_as_printed(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], pattern: str
) -> None:
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    canonicity = build_canonicity(load_tokenizer(merge_list(path, "abc", merges)))
    ours = proper_tokenizations(marked_product(compile_dfa(Regex(pattern)), None), canonicity)
    plain = merged_plainly(canonicity, Regex(pattern))
    assert sequences(plain, canonicity.vocabulary, 7) == sequences(ours, canonicity.vocabulary, 7)


@pytest.mark.parametrize("pattern", ["[ab]{1,4}c?", "(January|June|July) [0-9]{1,2}"])
def test_direct_merge_as_printed_on_a_real_tokenizer(pattern: str) -> None:
    canonicity = load_canonicity(load_tokenizer("mistral-v1"))
    ours = proper_tokenizations(marked_product(compile_dfa(Regex(pattern)), None), canonicity).minimal()
    plain = merged_plainly(canonicity, Regex(pattern)).trimmed().minimal()
    assert (plain.rows, plain.accepting) == (ours.rows, ours.accepting)
