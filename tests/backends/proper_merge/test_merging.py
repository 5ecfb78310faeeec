"""DirectMerge against the reference libraries: the tokens of every text of a language, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.backends.proper_merge.token_languages import TEXTS, finite_languages, regexes, sequences
from tests.proper.small_tokenizers import (
    USER_DEFINED,
    merge_list,
    merge_lists,
    piece_sets,
    ranked_pieces,
    real,
    scored_pieces,
)
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import proper_tokenizations
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.constraint import Constraint
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.token_automata.token_rows import TokenRows

ABC = [("a", "b"), ("a", "a"), ("a", "c")]
BOOLEAN = Regex("boolean: ((true)|(false))")


def tokenize(canonicity: Canonicity, constraint: Constraint, **options: bool) -> TokenRows:
    """One piece, no pre-tokenizer."""
    return proper_tokenizations(marked_product(compile_dfa(constraint), None), canonicity, **options)


def check(canonicity: Canonicity, constraint: Constraint, longest: int) -> int:
    """Whether exactly the reference's encodings of texts of up to `longest` bytes are accepted; how many there are."""
    dfa = compile_dfa(constraint)
    expected = {
        tuple(canonicity.source.encode_piece(text))
        for text in (constraint.as_bytes() if isinstance(constraint, Choice) else map(str.encode, TEXTS))
        if dfa.accepts(text)
    }
    for minimal in (True, False):
        rows = tokenize(canonicity, constraint, minimal=minimal)
        assert sequences(rows, canonicity.vocabulary, longest) == expected
    return len(expected)


class TestExamplesOf002:
    @pytest.fixture
    def canonicity(self, tmp_path: Path) -> Canonicity:
        return build_canonicity(load_tokenizer(merge_list(tmp_path / "abc.json", "abc", ABC)))

    def test_table_1(self, canonicity: Canonicity) -> None:
        rows = tokenize(canonicity, Choice(["aaaabaacac"]))
        found = sequences(rows, canonicity.vocabulary)
        spelled = [[canonicity.vocabulary.token_bytes(token).decode() for token in tokens] for tokens in found]
        assert spelled == [["aa", "a", "ab", "aa", "c", "ac"]]

    def test_all_strings(self, canonicity: Canonicity) -> None:
        """The 3 states of the appendix: after a, after aa, after anything else."""
        rows = tokenize(canonicity, Regex("(a|b|c)*"))
        assert rows.state_count == 3
        check(canonicity, Regex("(a|b|c)*"), 7)

    def test_boolean(self) -> None:
        canonicity = real("mistral-v1")
        rows = tokenize(canonicity, BOOLEAN)
        assert (rows.state_count, rows.transition_count) == (4, 4)
        expected = {tuple(canonicity.source.encode_piece(f"boolean: {word}".encode())) for word in ("true", "false")}
        assert sequences(rows, canonicity.vocabulary) == expected

    def test_boolean_from_an_automaton_that_is_not_minimal(self) -> None:
        """As 002 counts: its automaton over characters ends in two states, and nothing is minimised."""
        table = np.full((25, 256), -1, dtype=np.int32)
        here = 0
        for byte in b"boolean: ":
            table[here, byte] = here = here + 1
        last, ends = here, []
        for word in (b"true", b"false"):
            state = here
            for byte in word:
                last += 1
                table[state, byte] = state = last
            ends.append(last)
        accepting = np.isin(np.arange(last + 1), ends)
        dfa = Dfa.from_table(table[: last + 1], accepting, 0)
        rows = proper_tokenizations(marked_product(dfa, None), real("mistral-v1"), minimal=False)
        assert (rows.state_count, rows.transition_count) == (5, 4)


@given(merges=merge_lists(), texts=finite_languages(), whole=st.booleans())
def test_finite_languages_with_merge_lists(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], texts: list[str], whole: bool
) -> None:
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    check(build_canonicity(load_tokenizer(merge_list(path, "abc", merges, ignore_merges=whole))), Choice(texts), 100)


@given(
    scored=st.booleans(),
    texts=piece_sets(),
    language=finite_languages(),
    scores=st.lists(st.integers(0, 3), min_size=12),
)
def test_finite_languages_with_pieces(
    tmp_path_factory: pytest.TempPathFactory, scored: bool, texts: list[str], language: list[str], scores: list[int]
) -> None:
    """Several splits of one token; with scores many ties; with ranks whole pieces."""
    check(
        build_canonicity(load_tokenizer(_with_pieces(tmp_path_factory, scored, texts, scores))), Choice(language), 100
    )


def _with_pieces(folder: pytest.TempPathFactory, scored: bool, texts: list[str], scores: list[int]) -> str:
    path = folder.mktemp("pieces") / "model"
    if not scored:
        return ranked_pieces(path, texts)
    scored_texts = {text: -float(score) for text, score in zip(texts, scores, strict=False)}
    return scored_pieces(path, dict.fromkeys("abc", -9.0) | scored_texts)


@given(merges=merge_lists(), pattern=regexes())
@example(merges=[("a", "a"), ("aa", "a")], pattern="a*")
@example(merges=[("aa", "a"), ("a", "a")], pattern="(a|b)*")  # aaa is irregular
@example(merges=[("ab", "ab"), ("ab", "a"), ("b", "ab"), ("a", "b")], pattern="[abc]*")
def test_infinite_languages_with_merge_lists(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], pattern: str
) -> None:
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    check(build_canonicity(load_tokenizer(merge_list(path, "abc", merges))), Regex(pattern), 7)


@given(scored=st.booleans(), texts=piece_sets(), pattern=regexes(), scores=st.lists(st.integers(0, 3), min_size=12))
@example(scored=True, texts=["aa", "aaa"], pattern="a*", scores=[0] * 12)
@example(scored=True, texts=["aa", "aaa", "aab", "baa"], pattern="[ab]*", scores=[0] * 12)
@example(scored=False, texts=["aaa", "aa", "aaaaa"], pattern="[ab]*", scores=[0] * 12)
def test_infinite_languages_with_pieces(
    tmp_path_factory: pytest.TempPathFactory, scored: bool, texts: list[str], pattern: str, scores: list[int]
) -> None:
    check(build_canonicity(load_tokenizer(_with_pieces(tmp_path_factory, scored, texts, scores))), Regex(pattern), 7)


@pytest.mark.parametrize(
    "scores",
    [
        {"aa": 1, "aaa": 3, "aaaa": 0, "aaaaa": 3, "aaaaaa": 0, "aaaaaaaa": 1},
        {"aaa": 2, "ba": 1, "baa": 2, "aaba": 1, "abab": 1, "baba": 2, "baaaa": 3, "bbbbab": 3, "bbbbbab": 0}
        | {"aaabaab": 2, "aababbbb": 2, "baabbabb": 0},
    ],
)
def test_ties_in_irregular_tokens(tmp_path: Path, scores: dict[str, float]) -> None:
    canonicity = build_canonicity(
        load_tokenizer(scored_pieces(tmp_path / "model", dict.fromkeys("abc", -9.0) | scores))
    )
    assert len(canonicity.derivations.irregular_tokens())
    check(canonicity, Regex("[ab]*c?"), 7)
    rows = tokenize(canonicity, Regex("[ab]*"))
    random = np.random.default_rng(0)
    for size in range(8, 40):
        text = bytes(random.choice(list(b"ab"), size).tolist())
        assert rows.accepts(canonicity.source.encode_piece(text))


class TestWholePieces:
    def test_between_markers(self) -> None:
        """Every improper token of Llama 3, as a piece of its own and as part of a longer text."""
        tokenizer = load_tokenizer("llama3")
        canonicity, marked = real("llama3"), load_marked_dfa(tokenizer)
        whole = [canonicity.vocabulary.token_bytes(token) for token in canonicity.whole_piece_encodings]
        some = [spelled.decode() for spelled in whole if _is_text(spelled)][::7]
        assert len(some) > 50
        texts = {form for text in some for form in (text, f"{text} {text}", f"{text}s", f"x{text}\n{text}", f"{text},")}
        rows = proper_tokenizations(marked_product(compile_dfa(Choice(texts)), marked), canonicity)
        assert sequences(rows, canonicity.vocabulary) == {tuple(tokenizer.encode(text)) for text in texts}
        used = {token for row in rows.rows for token in row}
        assert len(used & canonicity.whole_piece_encodings.keys()) >= len(some)

    def test_on_a_cycle(self, tmp_path: Path) -> None:
        """abab merges to a ba b: as the whole text it is one token, inside a longer one it is not."""
        canonicity = build_canonicity(load_tokenizer(ranked_pieces(tmp_path / "ranks", ["ba", "ab", "abab"])))
        assert len(canonicity.whole_piece_encodings) == 1
        assert check(canonicity, Regex("(ab)*a?"), 7) == 8


def _is_text(spelled: bytes) -> bool:
    try:
        return len(spelled.decode()) > 0
    except UnicodeDecodeError:
        return False


class TestIsolatedTokens:
    def tokenizer_with(self, path: Path) -> Canonicity:
        scores = {"a": -1.0, "b": -2.0, "ab": -0.5, "aab": 0.0}
        return build_canonicity(load_tokenizer(scored_pieces(path, scores, {"aab": USER_DEFINED})))

    def test_refused_where_it_can_be_spelled(self, tmp_path: Path) -> None:
        canonicity = self.tokenizer_with(tmp_path / "model")
        assert canonicity.source.isolated
        with pytest.raises(UnsupportedConstraint, match=r"b'aab'.*isolated token"):
            tokenize(canonicity, Regex("(a|b)*"))
        rows = tokenize(canonicity, Regex("(ab|b)*a?"))
        assert rows.state_count
        texts = ["", "ab", "abab", "bba", "abba"]
        for text in texts:
            assert rows.accepts(canonicity.source.encode_piece(text.encode()))


class TestLimits:
    def test_sets_of_states(self) -> None:
        """Erasing markers meets the limit as well."""
        tokenizer = load_tokenizer("llama3")
        marked = marked_product(compile_dfa(Regex(r"[ab ]{0,8}")), load_marked_dfa(tokenizer))
        rows = proper_tokenizations(marked, real("llama3"), minimal=False)
        with pytest.raises(LimitExceeded, match="cartesian_merge"):
            proper_tokenizations(marked, real("llama3"), max_states=rows.state_count - 1)
