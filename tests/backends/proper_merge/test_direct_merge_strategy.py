"""The backend against the tokenizers themselves: whole texts, and texts that go on after a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.proper_merge.token_languages import sequences
from tests.proper.small_tokenizers import USER_DEFINED, merge_list, ranked_pieces, scored_pieces
from tokdfa import mask as masks
from tokdfa.automata.algebra import words
from tokdfa.backends.proper_merge.direct_merge import DirectMerge, ProperIndex
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    TokenRefused,
    UnsupportedConstraint,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokdfa.backends.base import Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

REAL = ["mistral-v1", "llama3", "tekken"]
#: Runs of spaces and of letters, rules, digits, contractions, line ends, characters that need byte fallback.
PATTERNS = [
    r" {0,20}x?",
    r"a{0,30}",
    r"(-|=){0,8}",
    r"[ab ]{0,6}",
    r"(yes|no|maybe)( |\n){0,4}(foo|bar)",
    r"é?[αβ]{1,3}ẟ?",
    r"[0-2]{0,6}",
    r"(\.:){0,12}",
    r"( |\t){0,5}[1a]?",
    r"(é|ẟ|🎉|a| |\u200d){0,3}",
    r"('s|S'|'LL| 't){0,3}[a1]",
    r"[0-9]{2}-(01|12)-[0-3]1",
]


def compiled_by(tokenizer: Tokenizer, constraint: Constraint, **options: object) -> ProperIndex:
    compiled = DirectMerge(tokenizer.vocabulary, **options).compile(constraint)
    assert isinstance(compiled, ProperIndex)
    return compiled


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_exactly_what_the_tokenizer_makes_of_each_text(name: str, pattern: str) -> None:
    tokenizer = load_tokenizer(name)
    texts = [word.decode() for word in words(compile_dfa(Regex(pattern)), 2000)]
    assert 10 < len(texts) < 2000
    for minimal in (True, False):
        compiled = compiled_by(tokenizer, Regex(pattern), minimal=minimal)
        assert sequences(compiled.to_rows(), tokenizer.vocabulary) == {tuple(tokenizer.encode(text)) for text in texts}


@pytest.mark.parametrize("name", REAL)
def test_an_infinite_language(name: str) -> None:
    """Encodings of drawn texts are accepted; the same texts in other tokens are not."""
    tokenizer = load_tokenizer(name)
    matcher = compiled_by(tokenizer, Regex(r"[ab1 \n-]*")).start()
    random = np.random.default_rng(0)
    others = 0
    for _ in range(200):
        text = "".join(random.choice(list("aab  --11\n"), int(random.integers(1, 20))))
        proper = tokenizer.encode(text)
        assert _accepts(matcher, proper)
        place = int(random.integers(len(proper)))
        spelled = tokenizer.vocabulary.token_bytes(proper[place])
        cut = int(random.integers(len(spelled)))
        parts = [token for part in (spelled[:cut], spelled[cut:]) for token in tokenizer.encode(part.decode())]
        other = [*proper[:place], *parts, *proper[place + 1 :]]
        assert _accepts(matcher, other) == (other == proper)
        others += other != proper
    assert others > 20


def _accepts(matcher: Matcher, tokens: Sequence[int]) -> bool:
    ahead = matcher.fork()
    for token in tokens:
        if not ahead.allows(token):
            with pytest.raises(TokenRefused):
                ahead.advance(token)
            return False
        ahead.advance(token)
    return ahead.can_end()


def reachable(matcher: Matcher, vocabulary: Vocabulary) -> set[tuple[int, ...]]:
    """The sequences that a matcher accepts, by its masks."""
    found = set()
    agenda: list[tuple[tuple[int, ...], Matcher]] = [((), matcher)]
    mask = masks.allocate_mask(vocabulary.size)
    while agenda:
        tokens, here = agenda.pop()
        here.fill_mask(mask)
        allowed = masks.mask_to_ids(mask).tolist()
        assert allowed, "a dead end"
        assert here.can_end() == any(token in vocabulary.end_token_set for token in allowed)
        if here.can_end():
            found.add(tokens)
        for token in allowed:
            if token not in vocabulary.end_token_set:
                ahead = here.fork()
                ahead.advance(token)
                agenda.append(((*tokens, token), ahead))
    return found


class TestContext:
    def check(self, tokenizer: Tokenizer, context: list[int], texts: list[str]) -> bool:
        """What follows the context in the encoding of the whole, wherever the whole begins with the context.

        Returns whether anything can follow.
        """
        before = tokenizer.decode(context)
        whole = [tokenizer.encode(before + text) for text in texts]
        expected = {tuple(tokens[len(context) :]) for tokens in whole if tokens[: len(context)] == context}
        compiled = compiled_by(tokenizer, Choice(texts))
        if expected:
            assert reachable(compiled.start(context), tokenizer.vocabulary) == expected, (before, context)
        else:
            with pytest.raises(UnsupportedConstraint, match="context"):
                compiled.start(context)
        return bool(expected)

    @pytest.mark.parametrize("name", REAL)
    def test_real_tokenizers(self, name: str) -> None:
        tokenizer = load_tokenizer(name)
        texts = ["", " world", "world", "s", "'s", " ", "  x", " 1", "23", "4567", "\n", "\n\n x", "...", "é", "\u0301"]
        befores = ["Hello", "Hello ", "a  ", "it", "it'", "x 1", "12", "\n", " \n ", "x..", "A\u200d", "caf", "  "]
        outcomes = [self.check(tokenizer, tokenizer.encode(before), texts) for before in befores]
        assert all(outcomes)  # the empty text can follow

    @pytest.mark.parametrize("name", REAL)
    def test_any_border_inside_a_text(self, name: str) -> None:
        """The context is the beginning of an encoding, and the rest follows."""
        tokenizer = load_tokenizer(name)
        text = "It's   1234 things:\n\n    don't   \t--- naïve 🎉"
        tokens = tokenizer.encode(text)
        for cut in range(len(tokens) + 1):
            rest = tokenizer.vocabulary.spell(tokens[cut:])
            matcher = compiled_by(tokenizer, Choice([rest, b"xyz"])).start(tokens[:cut])
            assert _accepts(matcher, tokens[cut:])

    @settings(max_examples=40)
    @given(
        data=st.data(),
        kind=st.sampled_from(["merges", "ranks", "scores"]),
        before=st.text("ab", max_size=7),
        texts=st.lists(st.text("ab", max_size=5), min_size=1, max_size=6, unique=True),
    )
    def test_small_tokenizers(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kind: str, before: str, texts: list[str]
    ) -> None:
        path = tmp_path_factory.mktemp("context") / "tokenizer.json"
        pieces = data.draw(st.lists(st.text("ab", min_size=2, max_size=5), min_size=1, max_size=8, unique=True))
        if kind == "merges":
            known = ["a", "b"]
            merges = []
            for _ in pieces:
                merges.append((data.draw(st.sampled_from(known)), data.draw(st.sampled_from(known))))
                known.append("".join(merges[-1]))
            name = merge_list(path, "ab", list(dict.fromkeys(merges)), ignore_merges=data.draw(st.booleans()))
        elif kind == "ranks":
            name = ranked_pieces(path, pieces)
        else:
            scores = dict.fromkeys("ab", -9.0) | {text: -float(data.draw(st.integers(0, 2))) for text in pieces}
            name = scored_pieces(path, scores)
        tokenizer = load_tokenizer(name)
        whole = tokenizer.encode(before + data.draw(st.sampled_from(texts)))
        self.check(tokenizer, tokenizer.encode(before), texts)
        self.check(tokenizer, whole[: data.draw(st.integers(0, len(whole)))], texts)

    def test_a_whole_piece_that_the_context_has_begun(self) -> None:
        """Llama 3: with the rest of an improper token, the piece would have become that token at once."""
        tokenizer = load_tokenizer("llama3")
        compiled = compiled_by(tokenizer, Choice([" x", "x"]))
        canonicity = compiled.canonicity
        tried = 0
        for encoding, token in list(canonicity.whole_piece_of.items())[::5]:
            text = tokenizer.vocabulary.token_bytes(token)
            if len(tokenizer.vocabulary.spell(encoding[:1])) < 2 or not text.isascii():
                continue
            before, rest = list(encoding[:1]), tokenizer.vocabulary.spell(encoding[1:]).decode()
            if tokenizer.encode(tokenizer.decode(before)) == before:
                self.check(tokenizer, before, [rest, rest + "x", rest + ".", rest + " y"])
                self.check(tokenizer, [token], ["", "x", " x", ".", "\n"])
                behind = tokenizer.encode("1\n\n" + tokenizer.decode(before))
                if behind[-1:] == before:  # the piece begins behind a border of the context
                    self.check(tokenizer, behind, [rest, rest + "x"])
                tried += 1
        assert tried > 2

    def test_byte_tokens_that_have_begun_a_character(self) -> None:
        tokenizer = load_tokenizer("mistral-v1")
        tokens = tokenizer.encode("x🫠y")
        assert len(tokens) == 6
        compiled = compiled_by(tokenizer, Choice([b"\xab\xa0y", b"\xa0y", b"y", b"\xff"]))
        assert reachable(compiled.start(tokens[:3]), tokenizer.vocabulary) == {tuple(tokens[3:])}
        assert reachable(compiled.start(tokens[:4]), tokenizer.vocabulary) == {tuple(tokens[4:])}
        assert reachable(compiled.start(tokens[:5]), tokenizer.vocabulary) == {tuple(tokens[5:])}
        with pytest.raises(UnsupportedConstraint, match="context"):
            compiled.start(tokens[:2])

    def test_an_isolated_token_across_the_border(self, tmp_path: Path) -> None:
        scores = {"a": -1.0, "b": -2.0, "ab": -0.5, "aab": 0.0}
        tokenizer = load_tokenizer(scored_pieces(tmp_path / "model", scores, {"aab": USER_DEFINED}))
        compiled = compiled_by(tokenizer, Choice(["ab", "b"]))
        with pytest.raises(UnsupportedConstraint, match="isolated"):
            compiled.start(tokenizer.encode("a"))
        self.check(tokenizer, tokenizer.encode("b"), ["ab", "b"])
        self.check(tokenizer, tokenizer.encode("aab"), ["ab", "b", "a"])

    def test_an_improper_context_is_taken_as_it_is(self) -> None:
        tokenizer = load_tokenizer("tekken")
        letters = [token for letter in "Hello" for token in tokenizer.encode(letter)]
        compiled = compiled_by(tokenizer, Choice([" world", "world"]))
        expected = {tuple(tokenizer.encode(" world"))}
        assert expected <= reachable(compiled.start(letters), tokenizer.vocabulary)
        with pytest.raises(VocabularyError, match="outside"):
            compiled.start([tokenizer.vocabulary.size])


class TestMatcher:
    def test_the_boolean_has_one_way_after_another(self) -> None:
        """As in 002: no model call is needed but one."""
        tokenizer = load_tokenizer("mistral-v1")
        compiled = compiled_by(tokenizer, Regex("boolean: ((true)|(false))"))
        matcher = compiled.start()
        forced = matcher.forced_tokens()
        assert tokenizer.vocabulary.spell(forced) == b"boolean:"
        assert (compiled.sizes["states"], compiled.sizes["transitions"]) == (4, 4)


class TestCompiled:
    def test_the_graph_is_the_table(self) -> None:
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

    def test_errors(self, tmp_path: Path) -> None:
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
