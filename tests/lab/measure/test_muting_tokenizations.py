"""Where a muted constraint stops a token sequence, against sequences listed by hand and by brute force."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa, TokensDfa
from tokdfa.constraint import Regex
from tokdfa.lab.measure.muting_tokenizations import MutedSpellings, find_stop, follow_text
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOKENS = ["http", "s", "https", "://", ":", "/", "a", "b", "ab", "b:", "p", "t", "h", "!", "é"]


@dataclass
class ToyTokenizer:
    """Encodes by the longest token each time; what no token spells is dropped, as by a normaliser."""

    vocabulary: Vocabulary

    def encode(self, text: str) -> list[int]:
        tokens = []
        while text:
            fitting = [word for word in TOKENS if text.startswith(word)]
            best = max(fitting, key=len, default="")
            tokens += [TOKENS.index(best)] if best else []
            text = text[len(best) or 1 :]
        return tokens


VOCAB = Vocabulary([word.encode() for word in TOKENS] + [b""], end_tokens=[len(TOKENS)])
TOKENIZER = ToyTokenizer(VOCAB)


def compile_both(pattern: str) -> tuple[CompiledTokensDfa, CompiledTokensDfa]:
    found = [TokensDfa(VOCAB, mute_literals=muted).compile(Regex(pattern)) for muted in (False, True)]
    plain, muted = (one for one in found if isinstance(one, CompiledTokensDfa))
    return plain, muted


def ids(*words: str) -> list[int]:
    return [TOKENS.index(word) for word in words]


@pytest.mark.parametrize(
    ("pattern", "words", "stop"),
    [
        ("https?://[ab]+", ["https", "://", "ab"], 0),  # muted: http, then s
        ("https?://[ab]+", ["http", "s", "://", "ab"], -1),
        ("https?://[ab]+", ["http", "s", "://", "ab", "!"], 4),
        ("https?://[ab]+", ["http", "s", "://"], 3),  # the end
        ("ab:!", ["a", "b:", "!"], 0),
        ("ab:!", ["ab", ":", "!"], -1),
        ("ab|[a-c]{2}!", ["a", "b"], 2),  # allowed on the way, but as the other option
        ("[a-z]+:", ["a", "b:"], -1),  # no literals
    ],
)
def test_the_first_stop(pattern: str, words: list[str], stop: int) -> None:
    _, muted = compile_both(pattern)
    assert find_stop(muted, ids(*words)) == stop


def test_a_row_of_a_text() -> None:
    plain, muted = compile_both("(https?://)?[a-z]+")
    row = follow_text("https://ab", TOKENIZER, plain, muted, MutedSpellings(muted))
    assert (row["status"], row["stops_at"], row["positions"], row["plain_stops_at"]) == ("ok", 1, 2, -1)
    assert (row["proper_count"], row["fewest_count"], row["muted_count"]) == (3, 3, 4)
    assert json.loads(row["proper_tokens"]) == ["https", "://", "ab"]
    assert json.loads(row["muted_tokens"]) == ["http", "s", "://", "ab"]
    allowed = follow_text("tab", TOKENIZER, plain, muted, MutedSpellings(muted))
    assert (allowed["stops_at"], allowed["positions"], allowed["proper_count"]) == (-1, 3, 2)


def test_a_text_that_the_tokenizer_changes_is_not_followed() -> None:
    plain, muted = compile_both("[abx]+")
    row = follow_text("axb", TOKENIZER, plain, muted, MutedSpellings(muted))
    assert row["status"] == "changed"
    assert "stops_at" not in row


def sequences(text: bytes) -> Iterator[list[int]]:
    """All token sequences that spell `text`."""
    if not text:
        yield []
    for token, word in enumerate(TOKENS):
        if text.startswith(word.encode()):
            yield from ([token, *rest] for rest in sequences(text[len(word.encode()) :]))


def accepted(compiled: CompiledTokensDfa, tokens: Sequence[int]) -> bool:
    state = 0
    for token in tokens:
        state = compiled.transitions(state).get(token, -1)
        if state < 0:
            return False
    return compiled.accepts(state)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(["(https?://)?[abéhtps:/]+", "(ab|[ab:]*)!?", "(ab:|b[a:])*", "[ab]*ab?[:é]?"]),
    st.lists(st.sampled_from(["ab", "b", "a", ":", "http", "s", "://", "é", "!"]), max_size=5).map("".join),
)
def test_the_shortest_muted_sequence_is_that_of_brute_force(pattern: str, text: str) -> None:
    _, muted = compile_both(pattern)
    found = MutedSpellings(muted).shortest(text.encode())
    lengths = [len(tokens) for tokens in sequences(text.encode()) if accepted(muted, tokens)]
    assert (found is None) == (not lengths)
    if found is not None:
        assert accepted(muted, found)
        assert VOCAB.spell(found) == text.encode()
        assert len(found) == min(lengths)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["ab", "b", "a", ":", "http", "s", "!"]), max_size=4).map("".join))
def test_stops_agree_with_the_transitions(text: str) -> None:
    plain, muted = compile_both("(https?[ab:]*|ab|[a-b]*:?)!?")
    for compiled, tokens in itertools.product((plain, muted), sequences(text.encode())):
        assert (find_stop(compiled, tokens) == -1) == accepted(compiled, tokens)
