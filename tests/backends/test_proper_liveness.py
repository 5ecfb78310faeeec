"""The bit sets against the filter written down plainly, and generations against the tokenizers' own encoders."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.backends.grammar_walks import grammar_of, texts_of, tokenizer_of
from tests.backends.proper_oracle import END, allowed, merge_pairs, piece_texts
from tests.proper.small_tokenizers import BYTE, ranked_pieces, scored_pieces, trained_byte_level
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.base import StateMatcher
from tokdfa.backends.earley_trie.strategy import CompiledEarley, EarleyTrie
from tokdfa.backends.matcher_situations import MatcherSituations
from tokdfa.backends.proper import ProperFilter, proper_texts
from tokdfa.backends.proper_liveness import ProperLiveness
from tokdfa.constraint import Grammar
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

REAL = ("llama3", "tekken")
#: What ends of texts are spelled with: the printable ASCII characters, each a token.
ENDINGS = "\n" + "".join(map(chr, range(32, 127)))


class PlainFilter(StateMatcher[tuple[Any, Any]]):
    """The filter as its definition says it, one token after another."""

    def __init__(self, text: StateMatcher[Any], proper: StateMatcher[Any], lookahead: int) -> None:
        super().__init__(text.vocab, (text.state, proper.state))
        self.text, self.proper, self.lookahead = text, proper, lookahead

    def _step(self, state, token):
        found = self.step_both(state, token)
        return found if found is not None and self.goes_on(found, self.lookahead) else None

    def step_both(self, state, token):
        text = self.text._step(state[0], token)
        proper = None if text is None else self.proper._step(state[1], token)
        return None if proper is None else (text, proper)

    def _accepts(self, state):
        return self.text._accepts(state[0]) and self.proper._accepts(state[1])

    def allowed_by_both(self, state):
        one, other = (masks.allocate_mask(self.vocab.size) for _ in range(2))
        self.text._fill(state[0], one)
        self.proper._fill(state[1], other)
        return one & other

    def _fill(self, state, out):
        out[:] = self.allowed_by_both(state)
        for token in masks.mask_to_ids(out).tolist():
            if token not in self.vocab.end_token_set and self._step(state, token) is None:
                masks.clear_token(out, token)

    def goes_on(self, state, tokens):
        if tokens == 0 or self._accepts(state):
            return True
        following = (self.step_both(state, token) for token in masks.mask_to_ids(self.allowed_by_both(state)).tolist())
        return any(found is not None and self.goes_on(found, tokens - 1) for found in following)

    def _fork_empty(self):
        return PlainFilter(self.text, self.proper, self.lookahead)


@cache
def compiled_grammar(tokenizer_name: str, grammar: str) -> CompiledEarley:
    found = EarleyTrie(tokenizer_of(tokenizer_name).vocabulary).compile(grammar_of(grammar))
    assert isinstance(found, CompiledEarley)
    return found


@cache
def shared_liveness(tokenizer_name: str, grammar: str, lookahead: int) -> ProperLiveness:
    plain = compiled_grammar(tokenizer_name, grammar)
    states = proper_texts(plain.vocab).states
    return ProperLiveness(plain, states, lookahead, to_an_end=tokenizer_name == "mistral-v1")


def filter_of(tokenizer_name: str, grammar: str, lookahead: int = 8) -> ProperFilter:
    plain = compiled_grammar(tokenizer_name, grammar)
    liveness = shared_liveness(tokenizer_name, grammar, lookahead)
    return ProperFilter(plain.start(), proper_texts(plain.vocab).start(), liveness)


SMALL_GRAMMARS = (
    'start: "a" start "b" | " " | /[0-9]+/\n',
    'start: (WORD | NUMBER | "\'s")+\nWORD: /[ab]+/\nNUMBER: /1{1,4}/\n%ignore " "\n',
    'start: "\\"" INNER "\\"" | "ab" "a"*\nINNER: /(a|b|\\u00e9|1 )*/\n',
    'start: ("aab" | "aba") "b" | /a {2,3}b/\n',
)


def check_all_masks(
    name: str, grammar: str, lookahead: int, most_states: int, bulk: bool, max_bytes: int = 1 << 24
) -> int:
    """Masks of the states that are met first, and all steps from them; returns how many tokens were left out."""
    vocabulary = load_tokenizer(name).vocabulary
    plain = EarleyTrie(vocabulary).compile(Grammar(grammar))
    assert isinstance(plain, CompiledEarley)
    compiled = proper_texts(vocabulary)
    texts = plain if bulk else MatcherSituations(plain.start())
    liveness = ProperLiveness(texts, compiled.states, lookahead, max_bytes)
    found = ProperFilter(plain.start(), compiled.start(), liveness)
    twin = PlainFilter(plain.start(), compiled.start(), lookahead)
    assert found.state == twin.state
    agenda, left_out = [found.state], 0
    seen = set(agenda)
    ours, theirs = (masks.allocate_mask(vocabulary.size) for _ in range(2))
    for state in agenda:  # grows on the way
        found._fill(state, ours)
        twin._fill(state, theirs)
        assert masks.mask_to_ids(ours).tolist() == masks.mask_to_ids(theirs).tolist(), state
        both = masks.mask_to_ids(twin.allowed_by_both(state)).tolist()
        left_out += len(both) - masks.count(ours)
        for token in both:
            if token in vocabulary.end_token_set:
                continue
            following = found._step(state, token)
            assert (following is not None) == masks.contains(ours, token)
            if following is not None and following not in seen and len(seen) < most_states:
                seen.add(following)
                agenda.append(following)
    return left_out


@settings(deadline=None, derandomize=True, max_examples=12)
@given(
    pieces=piece_texts("ab 1'", 4),
    grammar=st.sampled_from(SMALL_GRAMMARS),
    lookahead=st.integers(1, 3),
    bulk=st.booleans(),
)
def test_every_mask_of_ranked_pieces(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], grammar: str, lookahead: int, bulk: bool
) -> None:
    """tiktoken: whole pieces, irregular tokens, borders."""
    name = ranked_pieces(tmp_path_factory.mktemp("t") / "ranks.tiktoken", pieces)
    check_all_masks(name, grammar, lookahead, 25, bulk)


def test_every_mask_of_a_trained_tokenizer(tmp_path: Path) -> None:
    """ByteLevel with its pre-tokenizer, trained on a few texts; enough masks for some tokens to be left out."""
    name = trained_byte_level(tmp_path / "tokenizer.json")
    assert sum(check_all_masks(name, grammar, 1, 25, bulk) for grammar in SMALL_GRAMMARS for bulk in (True, False)) > 0


def test_what_is_dropped_is_made_anew(tmp_path: Path) -> None:
    name = trained_byte_level(tmp_path / "tokenizer.json")
    for grammar in SMALL_GRAMMARS:
        kept, dropped = (check_all_masks(name, grammar, 2, 12, True, max_bytes) for max_bytes in (1 << 24, 0))
        assert kept == dropped


@pytest.mark.parametrize("lookahead", [1, 3])
@pytest.mark.parametrize("name", REAL)
def test_samples_of_masks_along_a_walk(name: str, lookahead: int) -> None:
    """JSON with a real tokenizer: of each mask some tokens that it holds and some that it leaves out."""
    rng = random.Random(name)
    matcher = filter_of(name, "json", lookahead)
    twin = PlainFilter(matcher._text, matcher._proper, lookahead)
    vocabulary = tokenizer_of(name).vocabulary
    mask = masks.allocate_mask(vocabulary.size)
    compared = 0
    for token in walk_tokens(name, "json"):
        matcher.fill_mask(mask)
        both = twin.allowed_by_both(matcher.state)
        left_out = [
            found for found in masks.mask_to_ids(both & ~mask).tolist() if found not in vocabulary.end_token_set
        ]
        inside = [found for found in masks.mask_to_ids(mask).tolist() if found not in vocabulary.end_token_set]
        assert not np.any(mask & ~both)
        for found in rng.sample(inside, min(4, len(inside))):
            assert twin._step(matcher.state, found) == matcher._step(matcher.state, found) is not None
            compared += 1
        for found in rng.sample(left_out, min(4, len(left_out))):
            assert twin._step(matcher.state, found) is matcher._step(matcher.state, found) is None
            compared += 1
        matcher.advance(token)
    assert compared > 100


def walk_tokens(name: str, grammar: str) -> list[int]:
    """The tokens of a text of the grammar that has many kinds of places in it."""
    return tokenizer_of(name).encode(max(texts_of(grammar)["accepted"], key=len))[:40]


@pytest.mark.parametrize("name", [*REAL, "mistral-v1"])
@pytest.mark.parametrize("grammar", ["json", "sql", "c_like"])
def test_encodings_of_texts_are_taken(name: str, grammar: str) -> None:
    """No token of a properly spelled text is refused."""
    for text in texts_of(grammar)["accepted"]:
        matcher = filter_of(name, grammar)
        for token in tokenizer_of(name).encode(text):
            assert matcher.allows(token), text
            matcher.advance(token)
        assert matcher.can_end(), text


@pytest.mark.parametrize("name", [*REAL, "mistral-v1"])
@pytest.mark.parametrize("grammar", ["json", "sql", "c_like"])
def test_generations_are_what_the_tokenizer_makes_of_them(name: str, grammar: str) -> None:
    """Some tokens at random, then to an end: no dead end, and the library encodes the text as the tokens taken."""
    rng = random.Random(f"{name} {grammar}")
    tokens = generate(filter_of(name, grammar), tokenizer_of(name), rng, 25)
    assert len(tokens) >= 25
    assert tokenizer_of(name).encode(tokenizer_of(name).vocabulary.spell(tokens).decode()) == tokens


def products(parts: str | Sequence[str], counts: Iterable[int]) -> list[str]:
    return ["".join(chosen) for count in counts for chosen in itertools.product(parts, repeat=count)]


#: Grammars, and texts that hold all of theirs of up to 12 characters.
LANGUAGES = {
    'start: "a" start "b" | "é"\n': ["a" * count + "é" + "b" * count for count in range(8)],
    'start: ("ab" | "ba")+ "b"\n': [text + "b" for text in products(["ab", "ba"], range(1, 7))],
    'start: "(" start? ")" start?\n': products("()", range(0, 13, 2)),
    'start: ("aab" | "aba") "b" | /a{2,3}bé?/\n': products("abé", range(6)),
}


@settings(deadline=None, derandomize=True, max_examples=25, phases=[Phase.generate])
@given(pairs=merge_pairs("ab()", 4), grammar=st.sampled_from(sorted(LANGUAGES)))
def test_without_pre_tokenizer_masks_are_exact(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], grammar: str
) -> None:
    """SentencePiece models: a token is allowed iff the library encodes some text with it at this place."""
    pieces = [*"\u2581ab()", *dict.fromkeys(one + other for one, other in pairs)]
    scores = {f"<0x{byte:02X}>": 0.0 for byte in range(256)} | {text: -float(k) for k, text in enumerate(pieces)}
    kinds = dict.fromkeys(list(scores)[:256], BYTE)
    tokenizer = load_tokenizer(scored_pieces(tmp_path_factory.mktemp("t") / "pieces.model", scores, kinds))
    plain = EarleyTrie(tokenizer.vocabulary).compile(Grammar(grammar))
    texts = [text for text in LANGUAGES[grammar] if accepts(plain, text)]
    following: dict[tuple[int, ...], set[int]] = {}
    for tokens in map(tokenizer.encode, texts):
        for length, token in enumerate([*tokens, END]):
            following.setdefault(tuple(tokens[:length]), set()).add(token)
    compiled = EarleyTrie(tokenizer.vocabulary, proper=True).compile(Grammar(grammar))
    compared = 0
    for prefix, expected in following.items():
        if len(tokenizer.vocabulary.spell(prefix)) > 2:
            continue  # tokens have up to four characters, and as many may close what is open: all that follows is known
        matcher = compiled.start()
        for token in prefix:
            matcher.advance(token)
        assert allowed(matcher, tokenizer.vocabulary) == expected, (prefix, pieces)
        compared += 1
    assert compared


def accepts(compiled: CompiledConstraint, text: str) -> bool:
    """Whether a text of single characters is one of the constraint."""
    matcher = compiled.start()
    for byte in text.encode():
        token = 3 + byte
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.can_end()


def test_too_short_a_search_for_an_end_says_so() -> None:
    """Three byte tokens spell a character that Mistral v1 lacks, and one token ahead is not where it ends."""
    backend = EarleyTrie(tokenizer_of("mistral-v1").vocabulary, proper=True, lookahead=1)
    with pytest.raises(LimitExceeded, match="raise lookahead"):
        mask_of(backend.compile(Grammar('start: "\u1680" "a"\n')).start())


def test_a_dead_end_is_seen_from_afar() -> None:
    """In SQL only DELETE goes on from " DE", and Llama 3 has tokens for more of it; the next token alone looks fine."""
    tokenizer = tokenizer_of("llama3")
    (token,) = tokenizer.encode(" DE")
    seen = [filter_of("llama3", "sql", lookahead).allows(token) for lookahead in (1, 8)]
    assert seen == [True, False]
    assert tokenizer.encode(" DELETE FROM a")[0] != token


def generate(matcher: ProperFilter, tokenizer: Tokenizer, rng: random.Random, steps: int) -> list[int]:
    """So many tokens drawn evenly from the mask, and then those that spell a shortest end of the text."""
    vocabulary = tokenizer.vocabulary
    taken: list[int] = []
    while len(taken) < steps or not matcher.can_end():
        assert len(taken) < steps + 200, f"no end: {vocabulary.spell(taken)!r}"
        allowed = np.setdiff1d(mask_of(matcher), vocabulary.end_tokens)
        if not len(allowed) and matcher.can_end():
            break
        assert len(allowed), f"a dead end: {vocabulary.spell(taken)!r}"
        wanted = []
        if len(taken) >= steps:
            spelled = shortest_end(matcher._text._compiled, matcher.state[0], tokenizer)
            wanted = [token for token in vocabulary.trie.prefixes_of(spelled) if token in allowed]
        taken.append(wanted[-1] if wanted else int(rng.choice(allowed)))
        matcher.advance(taken[-1])
    return taken


def shortest_end(compiled: CompiledEarley, situation: int, tokenizer: Tokenizer) -> bytes:
    """A text that ends what has been read, whatever its tokens: breadth first. b"" inside a character."""
    letters = [token for letter in ENDINGS for token in tokenizer.encode(letter)]
    came_by = {situation: b""}
    agenda = [situation]
    for here in agenda:  # grows on the way
        if compiled.can_end(here):
            return came_by[here]
        for letter in letters:
            following = compiled.step(here, letter)
            if following >= 0 and following not in came_by:
                came_by[following] = came_by[here] + compiled.vocab.token_bytes(letter)
                agenda.append(following)
        assert len(agenda) < 20_000, "so many brackets are open that no end is found"
    return b""
