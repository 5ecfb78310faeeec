"""Merging by parts gives the automaton that merging the whole gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.backends.proper_merge.test_merging import merge_lists, pieces
from tests.backends.proper_merge.token_languages import regexes
from tests.proper.small_tokenizers import merge_list, ranked_pieces, real, trained_byte_level, trained_metaspace
from tokdfa.automata.algebra import minimize
from tokdfa.backends.proper_merge.direct_merge import DirectMerge
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import merge_rows
from tokdfa.backends.proper_merge.merging_pieces import join_pieces
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.vegas_library import PartLibrary
from tokdfa.backends.proper_merge.vegas_splice import PartMerger
from tokdfa.backends.proper_merge.vegas_usual import object_pattern
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LimitExceeded
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.proper_merge.vegas_splice import MergedByParts
    from tokdfa.constraint import Constraint
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa
    from tokdfa.token_automata.token_rows import TokenRows

LIMIT = 100_000


def assert_equal(one: TokenRows, other: TokenRows) -> None:
    assert one.rows == other.rows
    assert [list(row) for row in one.rows] == [list(row) for row in other.rows]
    assert (one.accepting, one.start) == (other.accepting, other.start)


def check(
    canonicity: Canonicity, constraint: Constraint, marked: MarkedDfa | None = None, library: PartLibrary | None = None
) -> MergedByParts:
    """Equal automata, with markers and without."""
    product = marked_product(minimize(compile_dfa(constraint)), marked)
    whole = merge_rows(letter_automaton(product, canonicity), MergeStages(canonicity)).rows
    merged = PartMerger(canonicity).merge(letter_automaton(product, canonicity), library)
    assert_equal(merged.rows.minimal(), whole.minimal())
    joined = (
        join_pieces([(rows, canonicity.whole_pieces.root)], canonicity, LIMIT).minimal()
        for rows in (whole, merged.rows)
    )
    assert_equal(*joined)
    return merged


@given(merges=merge_lists(), pattern=regexes(), whole=st.booleans())
@example(merges=[("a", "b")], pattern="(ab|ca)*", whole=False)
@example(merges=[("b", "c"), ("a", "b")], pattern="a(bc)*", whole=False)
def test_merge_lists(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], pattern: str, whole: bool
) -> None:
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    name = merge_list(path, "abc", merges, ignore_merges=whole)
    check(build_canonicity(load_tokenizer(name)), Regex(pattern))


@settings(max_examples=60)
@given(merges=merge_lists(), parts=st.lists(regexes(), min_size=1, max_size=4), order=st.lists(st.integers(0, 3)))
def test_concatenations(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], parts: list[str], order: list[int]
) -> None:
    """Parts between delimiters, many of them several times, also from a library that has seen them one by one."""
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    canonicity = build_canonicity(load_tokenizer(merge_list(path, "abcxy", merges)))
    library = PartLibrary("", None)
    alone = [check(canonicity, Regex(f"x({part})y"), None, library) for part in parts]
    assert sum(one.distinct - one.from_library for one in alone) == len(library)
    used = [parts[place % len(parts)] for place in order]
    pattern = "".join(f"x({part})y" for part in used)
    first = check(canonicity, Regex(pattern), None, library)
    second = check(canonicity, Regex(pattern), None, library)
    assert (first.parts, first.distinct) == (second.parts, second.distinct)
    assert second.from_library == second.distinct
    assert second.rules_applied == 0


@settings(max_examples=40)
@given(texts=pieces(), pattern=regexes())
@example(texts=["ba", "ab", "abab"], pattern="(ab)*c?")
def test_pieces(tmp_path_factory: pytest.TempPathFactory, texts: list[str], pattern: str) -> None:
    path = tmp_path_factory.mktemp("pieces") / "ranks"
    check(build_canonicity(load_tokenizer(ranked_pieces(path, texts))), Regex(pattern))


@pytest.mark.parametrize("trained", [trained_byte_level, trained_metaspace])
def test_trained_tokenizers(tmp_path: Path, trained: object) -> None:
    tokenizer = load_tokenizer(trained(tmp_path / "tokenizer.json"))  # type: ignore[operator]
    canonicity, marked = build_canonicity(tokenizer), load_marked_dfa(tokenizer)
    check(
        canonicity, Choice(["the quick fox", "the the", " ", "   x", "12 34", "don't", "ééé", "日本", "a\nb"]), marked
    )
    check(canonicity, Regex("(the|fox|[0-9]+)( (the|fox|[0-9]+))*"), marked)


#: Of several shapes: members, what may be left out, what is repeated, borders that depend on what follows.
SHAPES = [
    object_pattern([("id", "integer"), ("on", "boolean"), ("off", "boolean"), ("day", "date")], "json_spaced"),
    object_pattern([("a", "number"), ("b", "number")], "json_compact"),
    object_pattern([("day", "date"), ("until", "date")], "yaml"),
    r'\[(\{"a": (true|null)(, "b": [0-9]{2})?\}(, \{"a": (true|null)(, "b": [0-9]{2})?\})*)?\]',
    r"(- [a-z]{1,2} ?\n)+",
    "( ?[a-c.é]{1,3}){2}",
    "",
]


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
@pytest.mark.parametrize("pattern", SHAPES)
def test_real_tokenizers(name: str, pattern: str) -> None:
    check(real(name), Regex(pattern), load_marked_dfa(load_tokenizer(name)))


def test_whole_pieces_of_llama_3() -> None:
    """Improper tokens that are whole pieces, alone and inside longer texts."""
    canonicity = real("llama3")
    texts = [canonicity.vocabulary.token_bytes(token) for token in canonicity.whole_piece_encodings]
    some = [text.decode() for text in texts if text.isascii()][::3]
    assert len(some) > 20
    forms = [form for text in some for form in (text, f"{text} {text}", f"{text}s", f"x{text}\n{text}", f"{text},")]
    merged = check(canonicity, Choice(forms), load_marked_dfa(load_tokenizer("llama3")))
    assert merged.parts > 1


def test_members_are_merged_once() -> None:
    canonicity = real("mistral-v1")
    members = [(f"{letter}", "boolean") for letter in "abcdefgh"]
    merged = check(canonicity, Regex(object_pattern(members, "json_spaced")))
    fewer = check(canonicity, Regex(object_pattern(members[:3], "json_spaced")))
    assert merged.parts > merged.distinct
    assert merged.distinct == fewer.distinct
    assert merged.parts - fewer.parts == 5 * (merged.parts // 8)


class TestLimits:
    def test_of_new_parts_and_of_the_result(self) -> None:
        canonicity = real("mistral-v1")
        pattern = object_pattern([(f"{letter}", "boolean") for letter in "abcdefgh"], "json_spaced")
        letters = letter_automaton(marked_product(minimize(compile_dfa(Regex(pattern))), None), canonicity)
        merger = PartMerger(canonicity)
        rows = merger.merge(letters).rows
        with pytest.raises(LimitExceeded, match="max_states"):
            merger.merge(letters, None, rows.state_count - 1)
        for limit in (1, rows.transition_count // 3, rows.transition_count - 1):
            with pytest.raises(LimitExceeded, match="max_transitions"):
                merger.merge(letters, None, LIMIT, limit)


class TestBackend:
    @pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
    def test_same_automaton_with_and_without_context(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        tokenizer = load_tokenizer(name)
        constraint = Regex(object_pattern([("a", "date"), ("b", "date"), ("c", "boolean")], "json_spaced"))
        plain, by_parts = (
            DirectMerge(tokenizer.vocabulary, vegas=vegas).compile(constraint) for vegas in (False, True)
        )
        assert_equal(by_parts.to_rows(), plain.to_rows())  # type: ignore[attr-defined]
        sizes = by_parts.sizes
        assert sizes["parts"] > sizes["parts_distinct"] > 0
        assert sizes["parts_known"] == 0
        assert "parts" not in plain.sizes
        again = DirectMerge(tokenizer.vocabulary, vegas=True).compile(constraint)
        assert again.sizes["parts_known"] == sizes["parts_distinct"]
        context = tokenizer.encode("The answer:\n")
        tables = [one.start(context).table for one in (plain, by_parts)]  # type: ignore[attr-defined]
        rows = [[table.row(state) for state in range(len(table.accepting))] for table in tables]
        assert rows[0] == rows[1]
