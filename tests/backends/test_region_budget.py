"""Budgets of regions against a search over all sequences of tokens of a small vocabulary."""

from __future__ import annotations

import pickle
import random
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

import tokdfa
from tests.walks import mask_of as allowed_by
from tokdfa.backends.region_budget import think_first
from tokdfa.backends.region_states import RegionStates
from tokdfa.backends.shortest_ends import ShortestEnds
from tokdfa.errors import (
    ArgumentError,
    OptionError,
    TokenRefused,
    UnsupportedConstraint,
)
from tokdfa.grammar.parts import json, regex
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher

ENGINES = ["pushdown_trie", "earley_trie"]
#: b"/>a" reaches from the end mark into the answer; no token is b"/>". Two special tokens are marks.
SPECIAL = {11: "<t>", 12: "<e>"}
VOCAB = Vocabulary(
    [b"a", b"b", b"<", b"/", b">", b"/>a", b"ab", b"a<", b"<b", b"b<", b"", b"", b"", b""], [10], SPECIAL
)
#: As the search spells tokens.
SPELLED = {token: VOCAB.token_bytes(token).decode() for token in range(10)} | {11: "T", 12: "E"}


class Search:
    """What may follow a text and a number of tokens, by trying: texts are those of `re`."""

    def __init__(self, budget: int, begin: str, end: str, most: int = 99) -> None:
        self.budget, self.begin, self.end, self.most = budget, begin, end, most
        self.whole = re.compile(rf"{begin}((?!{end})[ab</>])*?{end}[ab]{{1,2}}")
        self.after = cache(self._after)

    def is_closed(self, text: str) -> bool:
        return self.end in text[len(self.begin) :]

    def _after(self, text: str, used: int) -> list[int]:
        """Tokens after which the text can be completed, its region within the budget."""
        return [token for token, spelled in SPELLED.items() if self.completes(text + spelled, used + 1)]

    @cache  # noqa: B019
    def completes(self, text: str, used: int) -> bool:
        if used > self.most:
            return False
        if not (text.startswith(self.begin) or self.begin.startswith(text)):
            return False
        if not self.is_closed(text) and (used >= self.budget or set(text[len(self.begin) :]) & set("TE")):
            return False
        if self.whole.fullmatch(text):
            return True
        if self.is_closed(text) and not re.fullmatch(r"[ab]{0,2}", text[len(self.begin) :].split(self.end, 1)[1]):
            return False
        return bool(self.after(text, used))


@pytest.mark.parametrize("spare", [None, 0, 1, 3])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("budget", "begin", "end"),
    [
        (4, "", "</>"),
        (6, "<b>", "</>"),
        (3, "", "</>"),
        (2, "", "</>"),
        (4, "<t>", "<e>"),
        (2, "<t>", "<e>"),
        (5, "<t>", "</>"),
        (3, "", "<e>"),
        (4, "<b>", "<e>"),
    ],
)
def test_masks_are_those_of_a_search(engine: str, budget: int, begin: str, end: str, spare: int | None) -> None:
    """Without and with a budget of the whole, of the fewest tokens there are or some to spare."""
    compiled = think_first(regex("[ab]{1,2}"), VOCAB, budget, begin=begin, end=end, backend=engine)
    marks = {"<t>": "T", "<e>": "E"}
    of_marks, chance = (marks.get(begin, begin), marks.get(end, end)), random.Random(budget)
    most = next(n for n in range(20) if Search(budget, *of_marks, n).completes("", 0))
    assert len(compiled.start().shortest_completion()) == most
    with pytest.raises(ArgumentError, match=f"the shortest has {most}"):
        compiled.start(max_tokens=most - 1)
    search = Search(budget, *of_marks) if spare is None else Search(budget, *of_marks, most + spare)
    for _ in range(25 if spare is None else 10):
        matcher: Matcher = compiled.start(max_tokens=None if spare is None else most + spare)
        other = matcher.fork()
        while not matcher.is_finished():
            text = "".join(SPELLED[token] for token in matcher.tokens)
            expected = search.after(text, len(matcher.tokens))
            if search.whole.fullmatch(text):
                expected = sorted([*expected, 10])
            assert allowed_by(matcher) == expected, (text, matcher.tokens)
            assert [matcher.allows(token) for token in range(14)] == [token in expected for token in range(14)]
            assert expected, "a region can always be closed"
            for token in set(range(14)) - set(expected):
                with pytest.raises(TokenRefused):
                    matcher.advance(token)
            matcher.advance(chance.choice(expected))
            if chance.random() < 0.2:
                matcher.rollback(chance.randrange(len(matcher.tokens) + 1))
            if chance.random() < 0.2:
                matcher, other = other.fork(), matcher
                if matcher.is_finished():
                    break


def test_thinking_is_cut_and_the_answer_is_whole() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    compiled = think_first(json({"type": "boolean"}), tokenizer, 20)
    matcher = compiled.start()
    thoughts = tokenizer.encode("<think>" + "Let me see. " * 20)
    for token in thoughts:
        if not matcher.allows(token):
            break
        matcher.advance(token)
    while matcher.tokens_left is not None:  # type: ignore[attr-defined]
        matcher.advance(allowed_by(matcher)[-1])
    text = tokenizer.vocabulary.spell(matcher.tokens).decode()
    assert len(matcher.tokens) <= 20
    assert text.count("</think>") == 1
    for token in tokenizer.vocabulary.trie.prefixes_of(b"true")[-1:]:
        matcher.advance(token)
    assert matcher.can_end()


def test_long_answers_and_both_budgets() -> None:
    """The answer takes more tokens than are left to the region, so neither budget implies the other."""
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    with pytest.raises(ArgumentError, match="the shortest has"):
        think_first(json({"type": "boolean"}), tokenizer, 12).start(max_tokens=2)
    compiled = think_first(json({"const": "abcdefghijklmnopqrstuvwxyz0123456789"}), tokenizer, 8)
    shortest = len(compiled.start().shortest_completion())
    matcher = compiled.start(max_tokens=shortest + 2)
    for token in tokenizer.encode("<think>Hm" * 9):
        if not matcher.allows(token):
            break
        matcher.advance(token)
    twin = pickle.loads(pickle.dumps(matcher))
    ends = matcher.shortest_completion()
    assert len(matcher.tokens) + len(ends) <= shortest + 2
    for token in ends:
        assert token in allowed_by(twin)
        twin.advance(token)
    assert twin.can_end()


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="which takes 2"):
        think_first("a", VOCAB, 1, begin="", end="</>")
    with pytest.raises(ArgumentError, match="which takes 2"):
        think_first("a", VOCAB, 1, begin="<t>", end="<e>")
    for end in ("", regex("a|b")):
        with pytest.raises(OptionError, match="needs an end"):
            think_first("a", VOCAB, 9, end=end)
    with pytest.raises(UnsupportedConstraint, match="leave proper=True out"):
        think_first("a", tokdfa.load_tokenizer("mistral-v1"), 20, proper=True)


def test_an_error_leaves_a_matcher_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = think_first("a", VOCAB, 5, begin="<t>", end="<e>")
    for matcher, asked, name in (
        (compiled.start(), RegionStates, "is_near"),
        (compiled.start(max_tokens=9), ShortestEnds, "is_within"),
    ):
        before = allowed_by(matcher)

        def interrupted(*_: object) -> bool:
            raise KeyboardInterrupt  # a LimitExceeded would be raised again below

        with monkeypatch.context() as patch:
            patch.setattr(asked, name, interrupted)
            for ask in (matcher.allows, matcher.advance):
                with pytest.raises(KeyboardInterrupt):
                    ask(before[0])
        assert allowed_by(matcher) == before
        matcher.advance(before[0])


@pytest.mark.parametrize("backend", ENGINES)
def test_blank_lines_before_the_answer(backend: str) -> None:
    """As reasoning models write: up to two ends of line, unless another gap is asked for."""
    tokenizer = tokdfa.load_tokenizer("bytes")

    def takes(text: bytes, **options: object) -> bool:
        matcher = think_first(regex("[0-9]+"), tokenizer, 40, backend=backend, **options).start()
        for byte in text:
            if not matcher.allows(byte):
                return False
            matcher.advance(byte)
        return matcher.can_end()

    for lines in range(4):
        text = b"<think>so</think>" + b"\n" * lines + b"42"
        assert takes(text) == (lines <= 2)
        assert takes(text, gap="") == (lines == 0)
        assert takes(text, gap="\n\n\n") == (lines == 3)
