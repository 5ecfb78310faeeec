"""Regions with budgets, on vocabularies whose tokens cross every border and lack bytes.

The oracle is the brute force on the same language as a regex; what fits a budget is found by trying.
"""

from __future__ import annotations

import random
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.packages import backend
from tests.walks import mask_of as allowed_by
from tokdfa.backends.region_budget import think_first
from tokdfa.errors import ArgumentError, TokenRefused, VocabularyCannotSpell
from tokdfa.grammar.parts import choice, regex
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.backends.base import CompiledConstraint, Matcher

ENGINES = ["pushdown_trie", "earley_trie"]


class Twin:
    """The brute force on `begin`, text, `end`, `answer`, and which of its tokens a region and a whole have time for.

    Marks that are special tokens spell U+0001 and U+0002 here, which nothing else does.
    """

    def __init__(self, tokens: list[bytes], begin: str, end: str, answer: str) -> None:
        self.begin, self.end = begin.encode(), end.encode()
        self.vocab = Vocabulary([*tokens, b""], [len(tokens)])
        pattern = f"{re.escape(begin)}((?!{re.escape(end)})[^\x01\x02])*{re.escape(end)}({answer})"
        self.compiled = tokdfa.compile(tokdfa.Regex(pattern), self.vocab, "brute_force")
        self.steps: dict[tuple[int, bool], list[tuple[int, tuple[int, bool]]]] = {}
        self.matchers: dict[tuple[int, bool], Any] = {}
        self.start = self._note(self.compiled.start())

    def _note(self, matcher: Any) -> tuple[int, bool]:
        """A state of the brute force, and whether the region is closed."""
        text = self.vocab.spell(matcher.tokens)
        state = matcher.state, text.startswith(self.begin) and self.end in text[len(self.begin) :]
        self.matchers.setdefault(state, matcher)
        return state

    def after(self, state: tuple[int, bool]) -> list[tuple[int, tuple[int, bool]]]:
        """The tokens that may follow without regard to their number, and the states after them."""
        if state not in self.steps:
            self.steps[state] = []
            for token in allowed_by(self.matchers[state]):
                if token != self.vocab.end_tokens[0]:
                    following = self.matchers[state].fork()
                    following.advance(token)
                    self.steps[state].append((token, self._note(following)))
        return self.steps[state]

    def in_time(self, state: tuple[int, bool], region: int, whole: int | None) -> bool:
        """Whether the region can be closed within `region` tokens, and then the text be ended within `whole`."""
        here = {state}
        for used in range((max(0, region) if whole is None else whole) + 1):
            if any(closed if whole is None else self.matchers[state, closed].can_end() for state, closed in here):
                return True
            steps = ((state, after) for state in here for _, after in self.after(state))
            here = {after for state, after in steps if state[1] or used + 1 + (not after[1]) <= region}
        return False

    def allowed(self, state: tuple[int, bool], region: int, whole: int | None) -> list[int]:
        """The tokens after which both budgets, less that token, can be kept."""
        found = []
        for token, after in self.after(state):
            within = state[1] or 1 + (not after[1]) <= region
            if within and self.in_time(after, region - 1, None if whole is None else whole - 1):
                found.append(token)
        return found + [self.vocab.end_tokens[0]] * self.matchers[state].can_end()


#: (begin, end, samples of thoughts, the answers).
Language = tuple[str, str, list[str], list[str]]
#: \x01 and \x02 stand for special tokens.
LANGUAGES: list[Language] = [
    ("<<", "ab", ["", "a", ">t", "é"], ["<b<b", "<"]),
    ("", "aa", ["", "b", "ba"], ["a", "aab"]),
    ("<", "\n\n", ["}", "\n}"], ["//", "\n/"]),
    ("t", "é", ["", "t", "\u00e8"], ["é", "\u00e8t", ""]),
    ("\x01", "ab", ["", "a", "b"], ["b", "ba"]),
    ("<", "\x02", ["", "<", "é"], ["é", "e"]),
    ("\x01", "\x02", ["", "ab"], ["b", "ab"]),
]


def random_tokens(chance: random.Random, language: Language, missing: bool) -> list[bytes]:
    """Parts of texts of a language, any border and some characters inside them, and some of them twice."""
    begin, end, thoughts, answers = language
    texts = [(begin + thought + end + answer).encode() for thought in thoughts for answer in answers]
    singles = sorted({text[k : k + 1] for text in texts for k in range(len(text))})
    tokens = [] if missing and chance.random() < 0.3 else singles
    if missing:
        tokens = [token for token in tokens if token in (b"\x01", b"\x02") or chance.random() < 0.7]
    for _ in range(7):
        text = chance.choice(texts)
        first = chance.randrange(len(text))
        tokens += re.split(rb"[\x01\x02]", text[first : chance.randrange(first, len(text)) + 1])  # marks stand alone
    tokens = [token for token in tokens if token]
    tokens += chance.sample(tokens, min(2, len(tokens)))
    chance.shuffle(tokens)
    marks = [mark for mark in (begin, end) if mark in ("\x01", "\x02")]
    return [token for token in tokens if token not in (b"\x01", b"\x02")] + [mark.encode() for mark in marks]


@pytest.mark.parametrize("missing", [False, True], ids=["all bytes", "bytes are missing"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("language", LANGUAGES, ids=repr)
def test_masks_are_those_of_the_language_with_every_budget(language: Language, engine: str, missing: bool) -> None:
    """From the least budget to one that binds nothing, after every sequence of tokens; and budgets of the whole."""
    compared = 0
    for twin, make in twins(language, engine, missing):
        if twin is None:
            with pytest.raises(VocabularyCannotSpell):
                make(99)
            continue
        least = next(n for n in range(40) if twin.in_time(twin.start, n, None))
        with pytest.raises(ArgumentError, match=f"which takes {least}"):
            make(least - 1)
        for budget in (least, least + 1, least + 2, 40):
            compiled = make(budget)
            compared += compare_everywhere(compiled.start(), twin, budget, None)
            fewest = next(n for n in range(60) if twin.in_time(twin.start, budget, n))
            with pytest.raises(ArgumentError, match=f"the shortest has {fewest}"):
                compiled.start(max_tokens=fewest - 1)
            for most in (fewest, fewest + 1):
                compared += compare_everywhere(compiled.start(max_tokens=most), twin, budget, most)
    assert compared > 500


@pytest.mark.parametrize("peer", [backend("llguidance")])
@pytest.mark.parametrize("language", [one for one in LANGUAGES if not {*one[:2]} & {"\x01", "\x02"}], ids=repr)
def test_budgets_of_an_engine_that_shows_no_states(language: Language, peer: str) -> None:
    """With marks that are text: llguidance panics on some grammars that begin with a special token."""
    compared = 0
    for twin, make in twins(language, peer, missing=False):
        assert twin is not None
        least = next(n for n in range(40) if twin.in_time(twin.start, n, None))
        with pytest.raises(ArgumentError, match=f"which takes {least}"):
            make(least - 1)
        for budget in (least, least + 1, 40):
            compared += compare_everywhere(make(budget).start(), twin, budget, None)
    assert compared > 100


def twins(
    language: Language, engine: str, missing: bool
) -> Iterator[tuple[Twin | None, Callable[[int], CompiledConstraint]]]:
    """A language on twelve vocabularies: its twin, None if no tokens spell a text, and what compiles it by a budget."""
    begin, end, _, answers = language
    for seed in range(12):
        tokens = random_tokens(random.Random(f"{language} {seed} {missing}"), language, missing)
        special = {token: f"<s{spelled[0]}>" for token, spelled in enumerate(tokens) if spelled in (b"\x01", b"\x02")}
        texts = [b"" if token in special else spelled for token, spelled in enumerate(tokens)]
        vocab = Vocabulary([*texts, b""], [len(tokens)], special)
        first, last = ({"\x01": "<s1>", "\x02": "<s2>"}.get(mark, mark) for mark in (begin, end))
        make = partial(think_first, choice(*answers), vocab, begin=first, end=last, gap="", backend=engine)
        try:
            yield Twin(tokens, begin, end, "|".join(map(re.escape, answers))), make
        except VocabularyCannotSpell:
            yield None, make


def compare_everywhere(matcher: Matcher, twin: Twin, budget: int, most: int | None) -> int:
    """Compare masks after all sequences of at most five tokens, those that the twin cannot tell apart once."""
    agenda, seen = [(matcher, twin.start)], set()
    for here, state in agenda:
        used = len(here.tokens)
        expected = sorted(twin.allowed(state, budget - used, None if most is None else most - used))
        assert allowed_by(here) == expected, (twin.vocab.spell(here.tokens), budget, most)
        assert [t for t in range(twin.vocab.size) if here.allows(t)] == expected
        for token, after in twin.after(state):
            following = here.fork()
            if token not in expected:
                with pytest.raises(TokenRefused):
                    following.advance(token)
            elif used < 5 and (after, used) not in seen:
                seen.add((after, used))
                following.advance(token)
                agenda.append((following, after))
    return len(agenda)


def test_a_token_that_holds_text_the_end_mark_and_the_answer() -> None:
    """As Tekken has them, and with the least budget only such a token closes the region in time."""
    vocab = Vocabulary([b"a", b"b", b"<", b">", b"t", b"/", b"<<", b">tab<", b"ab", b""], end_tokens=[9])
    matcher = think_first(choice("<b<b"), vocab, 6, begin="<<", end="ab").start()
    matcher.advance(6)
    assert matcher.allows(7)
    assert 7 in allowed_by(matcher)
    tekken = tokdfa.load_tokenizer("tekken")
    (token,) = (t for t in tekken.vocabulary.trie.prefixes_of(b"}\n\n//") if len(tekken.vocabulary.token_bytes(t)) == 5)
    matcher = think_first(regex("//[a-z]+"), tekken, 1, begin="", end="\n\n").start()
    assert matcher.allows(token)
    matcher.advance(token)
    assert matcher.allows(tekken.vocabulary.trie.prefixes_of(b"a")[0])
