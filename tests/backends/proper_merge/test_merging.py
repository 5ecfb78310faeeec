"""DirectMerge as 002 describes it, and what it refuses; its masks are in `test_encodings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.backends.proper_merge.token_languages import TEXTS, sequences
from tests.backends.proper_oracle import accepted, check_texts
from tests.proper.small_tokenizers import USER_DEFINED, merge_list, real, scored_pieces
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.proper_merge.direct_merge import DirectMerge, ProperIndex
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import proper_tokenizations
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, LimitExceeded, UnsupportedConstraint, VocabularyCannotSpell
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.constraint import Constraint


def compiled_by(tokenizer: Tokenizer, constraint: Constraint, **options: object) -> ProperIndex:
    compiled = DirectMerge(tokenizer.vocabulary, **options).compile(constraint)
    assert isinstance(compiled, ProperIndex)
    return compiled


class TestExamplesOf002:
    @pytest.fixture
    def tokenizer(self, tmp_path: Path) -> Tokenizer:
        return load_tokenizer(merge_list(tmp_path / "abc.json", "abc", [("a", "b"), ("a", "a"), ("a", "c")]))

    def test_table_1(self, tokenizer: Tokenizer) -> None:
        rows = compiled_by(tokenizer, Choice(["aaaabaacac"])).to_rows()
        (tokens,) = sequences(rows, tokenizer.vocabulary)
        assert [tokenizer.vocabulary.token_bytes(token).decode() for token in tokens] == [
            "aa",
            "a",
            "ab",
            "aa",
            "c",
            "ac",
        ]

    def test_all_strings(self, tokenizer: Tokenizer) -> None:
        """The 3 states of the appendix: after a, after aa, after anything else."""
        rows = compiled_by(tokenizer, Regex("(a|b|c)*")).to_rows()
        assert rows.state_count == 3
        assert sequences(rows, tokenizer.vocabulary, 7) == {tuple(tokenizer.encode(text)) for text in TEXTS}

    def test_boolean(self) -> None:
        """One way after another: no model call is needed but one."""
        tokenizer = load_tokenizer("mistral-v1")
        compiled = compiled_by(tokenizer, Regex("boolean: ((true)|(false))"))
        assert (compiled.sizes["states"], compiled.sizes["transitions"]) == (4, 4)
        assert tokenizer.vocabulary.spell(compiled.start().forced_tokens()) == b"boolean:"
        check_texts(compiled, tokenizer, ["boolean: true", "boolean: false"])

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


def test_isolated_tokens_are_refused_where_they_can_be_spelled(tmp_path: Path) -> None:
    scores = {"a": -1.0, "b": -2.0, "ab": -0.5, "aab": 0.0}
    tokenizer = load_tokenizer(scored_pieces(tmp_path / "model", scores, {"aab": USER_DEFINED}))
    with pytest.raises(UnsupportedConstraint, match=r"b'aab'.*isolated token"):
        compiled_by(tokenizer, Regex("(a|b)*"))
    texts = ["", "ab", "abab", "bba", "abba", "b"]
    check_texts(compiled_by(tokenizer, Choice(texts)), tokenizer, texts)
    compiled = compiled_by(tokenizer, Choice(["ab", "b"]))
    with pytest.raises(UnsupportedConstraint, match="isolated"):
        compiled.start(tokenizer.encode("a"))  # across the border
    for context in ("b", "aab"):
        assert compiled.start(tokenizer.encode(context)).allows(tokenizer.encode("ab")[0])


def test_byte_tokens_that_have_begun_a_character() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    tokens = tokenizer.encode("x🫠y")
    assert len(tokens) == 6
    compiled = compiled_by(tokenizer, Choice([b"\xab\xa0y", b"\xa0y", b"y", b"\xff"]))
    for count in (3, 4, 5):
        assert accepted(compiled, context=tokens[:count]) == {tuple(tokens[count:])}
    with pytest.raises(UnsupportedConstraint, match="context"):
        compiled.start(tokens[:2])


def test_the_graph_is_the_table() -> None:
    tokenizer = load_tokenizer("llama3")
    compiled = compiled_by(tokenizer, Regex("(yes|no)+"))
    graph = compiled.to_networkx()
    assert graph.number_of_nodes() == compiled.sizes["states"]
    assert graph.number_of_edges() == compiled.sizes["transitions"]
    for state in range(compiled.sizes["states"]):
        row = compiled.transitions(state)
        edges = {(data["token"], target) for _, target, data in graph.out_edges(state, data=True)}
        assert edges == {(tokenizer.vocabulary.token_bytes(token), target) for token, target in row.items()}
        assert graph.nodes[state]["accepting"] == bool(compiled.table.accepting[state])


def test_errors(tmp_path: Path) -> None:
    tokenizer = load_tokenizer("mistral-v1")
    with pytest.raises(EmptyLanguageError):
        compiled_by(tokenizer, Regex("(?=b)a"))
    for options in ({"max_states": 50}, {"max_transitions": 500}):
        with pytest.raises(LimitExceeded, match="cartesian_merge"):
            compiled_by(tokenizer, Regex('"[a-z ]*"'), **options)
    small = load_tokenizer(merge_list(tmp_path / "merges.json", "ab", [("a", "b")]))
    with pytest.raises(VocabularyCannotSpell, match="'x'"):
        compiled_by(small, Choice(["ax"]))
    with pytest.raises(EmptyLanguageError, match="UTF-8"):
        compiled_by(tokenizer, Choice([b"\xff"]))
    with pytest.raises(EmptyLanguageError, match="pre-tokenizer"):
        compiled_by(load_tokenizer("llama3"), Choice([b"\xff"]))


def test_erasing_markers_meets_the_limit_on_sets_of_states() -> None:
    tokenizer = load_tokenizer("llama3")
    marked = marked_product(compile_dfa(Regex(r"[ab ]{0,8}")), load_marked_dfa(tokenizer))
    rows = proper_tokenizations(marked, real("llama3"), minimal=False)
    with pytest.raises(LimitExceeded, match="cartesian_merge"):
        proper_tokenizations(marked, real("llama3"), max_states=rows.state_count - 1)
