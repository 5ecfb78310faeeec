"""Token healing against all sequences of tokens that spell the head and a text, found without any engine."""

from __future__ import annotations

import pickle
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.packages import backend
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.token_healing import Healed, HealedConstraint, heal
from tokdfa.errors import ArgumentError, TokenRefused, UnsupportedConstraint
from tokdfa.serving.batch_matcher import BatchMatcher
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher

LETTERS = "abc"
ENGINES = ["token_index", "tokens_dfa", "earley_trie", "pushdown_trie", "brute_force", backend("llguidance")]


class Spellings:
    """Which tokens may follow, from the texts alone: a token may, if tokens spell what is then left of some text."""

    def __init__(self, vocab: Vocabulary, texts: list[bytes]) -> None:
        self.vocab, self.texts = vocab, texts
        self.tokens = [(token, vocab.token_bytes(token)) for token in range(vocab.size) if vocab.token_bytes(token)]
        self.spelled = cache(self._spelled)

    def _spelled(self, text: bytes) -> bool:
        return not text or any(text.startswith(of) and self.spelled(text[len(of) :]) for _, of in self.tokens)

    def fewest(self, text: bytes) -> int:
        """Of all ways to go on after a text: the least number of tokens."""
        return min(self._count(other[len(text) :]) for other in self.texts if other.startswith(text))

    def _count(self, text: bytes) -> int:
        rests = [text[len(of) :] for _, of in self.tokens if text.startswith(of)]
        return 1 + min(map(self._count, rests)) if text else 0

    def after(self, text: bytes) -> list[int]:
        left = [other[len(text) :] for other in self.texts if other.startswith(text)]
        found = {t for t, of in self.tokens for one in left if one.startswith(of) and self.spelled(one[len(of) :])}
        return sorted(found | (set(self.vocab.end_tokens) if b"" in left else set()))


words = st.text(LETTERS, min_size=1, max_size=4).map(str.encode)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=25)
@given(
    longer=st.lists(words, max_size=8),
    texts=st.lists(words, min_size=1, max_size=4),
    head=words,
    data=st.data(),
)
def test_masks_are_those_of_all_spellings(
    engine: str, longer: list[bytes], texts: list[bytes], head: bytes, data: st.DataObject
) -> None:
    vocab = Vocabulary([*(letter.encode() for letter in LETTERS), *longer, b"", b""], [len(longer) + 4])
    inner = tokdfa.compile(tokdfa.Choice(texts), vocab, engine)
    matcher = HealedConstraint(inner, head).start()
    spellings = Spellings(vocab, [head + text for text in texts])
    kept: list[tuple[Matcher, list[int]]] = []
    taken: list[int] = []
    for _ in range(12):
        allowed = mask_of(matcher)
        finished = matcher.is_finished()
        assert allowed == (list(vocab.end_tokens) if finished else spellings.after(vocab.spell(taken)))
        assert [matcher.allows(token) for token in range(vocab.size)] == [t in allowed for t in range(vocab.size)]
        assert matcher.can_end() == (vocab.end_tokens[0] in allowed)
        assert matcher.tokens == tuple(taken)
        what = data.draw(st.sampled_from(["advance", "advance", "rollback", "fork", "swap"]))
        if what == "advance" and allowed:
            token = data.draw(st.sampled_from(allowed))
            matcher.advance(token)
            taken += [] if finished else [token]  # what follows an end token is not taken
        elif what == "rollback":
            count = data.draw(st.integers(0, len(taken)))
            matcher.rollback(count)
            del taken[len(taken) - count :]
        elif what == "fork":
            kept.append((matcher.fork(), taken.copy()))
        elif kept:
            matcher, taken = kept.pop()
        for token in set(range(vocab.size)) - set(mask_of(matcher)):
            with pytest.raises(TokenRefused):
                matcher.advance(token)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if isinstance(engine, str)])
@settings(max_examples=25)
@given(
    longer=st.lists(words, max_size=8),
    texts=st.lists(words, min_size=1, max_size=4),
    head=words,
    spare=st.integers(0, 3),
    data=st.data(),
)
def test_budgets_hold_from_the_head_on(
    engine: str, longer: list[bytes], texts: list[bytes], head: bytes, spare: int, data: st.DataObject
) -> None:
    vocab = Vocabulary([*(letter.encode() for letter in LETTERS), *longer, b"", b""], [len(longer) + 4])
    healed = Healed((), head, HealedConstraint(tokdfa.compile(tokdfa.Choice(texts), vocab, engine), head))
    spellings = Spellings(vocab, [head + text for text in texts])
    shortest = spellings.fewest(b"")
    with pytest.raises(ArgumentError, match=f"the shortest has {shortest}"):
        healed.start(max_tokens=shortest - 1)
    matcher, kept, used = healed.start(max_tokens=shortest + spare), [], 0
    while not matcher.is_finished():
        text, left = vocab.spell(matcher.tokens), shortest + spare - len(matcher.tokens)
        assert len(matcher.shortest_completion()) == spellings.fewest(text) <= left
        allowed = [
            token
            for token in spellings.after(text)
            if token in vocab.end_tokens or spellings.fewest(text + vocab.token_bytes(token)) < left
        ]
        assert mask_of(matcher) == allowed
        assert [matcher.allows(token) for token in range(vocab.size)] == [t in allowed for t in range(vocab.size)]
        kept.append((matcher.fork(), allowed))
        matcher.advance(data.draw(st.sampled_from(allowed)))
        if used < 4 and data.draw(st.booleans()):
            used += 1
            matcher.rollback(data.draw(st.integers(0, len(matcher.tokens))))
    for twin, allowed in kept:
        assert mask_of(twin) == allowed
        assert pickle.loads(pickle.dumps(twin)).tokens == twin.tokens


def test_the_fewest_tokens_of_a_healed_prompt() -> None:
    """The grammar engines show where all tokens lead at once; a token from the head's midst may end the text."""
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

    @cache
    def fewest(text: bytes) -> int:
        lengths = [
            len(tokenizer.vocabulary.token_bytes(token)) for token in tokenizer.vocabulary.trie.prefixes_of(text)
        ]
        return 1 + min(fewest(text[length:]) for length in lengths) if text else 0

    for name in ("pushdown_trie", "earley_trie"):
        compiled = tokdfa.compile(tokdfa.JsonSchema(schema, whitespace="compact"), tokenizer, name)
        healed = heal(compiled, tokenizer.encode("Write it: "), 1)
        found = healed.start().shortest_completion()
        matcher = healed.start(max_tokens=len(found))
        for token in found:
            assert token in mask_of(matcher)
            matcher.advance(token)
        assert matcher.can_end()
        assert len(found) == min(fewest(healed.head + text) for text in (b'{"ok":true}', b'{"ok":false}'))


@pytest.mark.parametrize("peer", [backend("llguidance")])
def test_nobody_counts_tokens_of_an_engine_that_shows_no_states(peer: str) -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    with pytest.raises(UnsupportedConstraint, match=f"{peer}: the engine does not show its states"):
        heal(tokdfa.compile(tokdfa.Regex("a"), tokenizer, peer), tokenizer.encode("http:"), 1).start(max_tokens=9)


@settings(max_examples=60)
@given(
    tokens=st.lists(words, min_size=1, max_size=7, unique=True),
    texts=st.lists(words, min_size=1, max_size=3),
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=3),
)
def test_without_single_bytes_what_is_allowed_can_be_completed(
    tokens: list[bytes], texts: list[bytes], prompt: list[int]
) -> None:
    """Some tokens are left out, whose remainder no tokens spell; none is allowed that leads nowhere."""
    vocab = Vocabulary([*tokens, b""], [len(tokens)])
    head = vocab.spell(token % len(tokens) for token in prompt)
    try:
        inner = tokdfa.compile(tokdfa.Choice(texts), vocab, "token_index")
    except tokdfa.TokdfaError:
        return  # no tokens spell any of the texts
    spellings = Spellings(vocab, [head + text for text in texts])
    agenda = [HealedConstraint(inner, head).start()]
    while agenda:
        matcher = agenda.pop()
        if matcher.is_finished():
            continue
        allowed = mask_of(matcher)
        assert allowed
        assert set(allowed) <= set(spellings.after(vocab.spell(matcher.tokens)))
        for token in allowed:
            agenda.append(matcher.fork())
            agenda[-1].advance(token)


def test_a_part_of_the_head_is_allowed_if_only_a_token_across_its_end_goes_on() -> None:
    vocab = Vocabulary([b"a", b"bc", b"c", b""], [3])
    matcher = HealedConstraint(tokdfa.compile(tokdfa.Choice(["c"]), vocab, "token_index"), b"ab").start()
    assert mask_of(matcher) == [0]
    matcher.advance(0)
    assert mask_of(matcher) == [1]


def test_the_last_tokens_that_a_longer_one_begins_with_are_taken_back() -> None:
    vocab = Vocabulary([b"h", b"t", b"p", b"s", b":", b"/", b"http", b"://", b"ht", b"x", b"https", b"", b""], [11])
    compiled = tokdfa.compile(tokdfa.Regex("//[hst]+|://ht"), vocab)
    by_text = {vocab.token_bytes(token): token for token in range(11)}
    for prompt, head in (
        ([b"x", b"http", b":"], b":"),  # "://" goes on
        ([b"x", b"h", b"t"], b"ht"),  # "http" does
        ([b"h", b"s", b"p"], b""),  # "p", "sp" and "hsp" begin nothing
        ([b"x", b"http"], b"http"),
        ([b"x"], b""),
        ([], b""),
    ):
        healed = heal(compiled, [by_text[text] for text in prompt])
        assert healed.head == head
        assert vocab.spell(healed.prompt) + head == b"".join(prompt)
        assert (healed.compiled is compiled) == (not head)
    healed = heal(compiled, [by_text[b"x"], by_text[b":"]])
    assert mask_of(healed.start()) == [by_text[b":"], by_text[b"://"]]
    matcher = healed.start()
    matcher.advance(by_text[b"://"])
    assert mask_of(matcher) == sorted(by_text[text] for text in (b"h", b"t", b"s", b"ht"))
    assert heal(compiled, [12, by_text[b":"]], taken_back=1).prompt == (12,)
    for count, message in ((2, "take 1"), (3, "at most 2"), (-1, "at least 0")):
        with pytest.raises(ArgumentError, match=message):
            heal(compiled, [12, by_text[b":"]], taken_back=count)


def test_proper_sequences_are_refused() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    prompt = tokenizer.encode("http:")
    for name, options in (("token_index", {}), ("tokens_dfa", {"proper": True}), ("cartesian_merge", {})):
        compiled = tokdfa.compile(tokdfa.Regex("//[a-z]+"), tokenizer, name, **options)
        if name == "token_index":
            assert heal(compiled, prompt, taken_back=1).head
            continue
        with pytest.raises(UnsupportedConstraint, match="proper"):
            heal(compiled, prompt, taken_back=1)
    with pytest.raises(ArgumentError, match="compiled"):
        heal(tokdfa.Regex("a"), prompt)


@pytest.mark.parametrize("kind", ["schema", "grammar"])
def test_a_real_vocabulary_in_every_place(kind: str) -> None:
    """Each cut of a text into prompt and rest: the whole text's own tokens are allowed, and so are single bytes."""
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    vocab = tokenizer.vocabulary
    constraint = (
        tokdfa.JsonSchema({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
        if kind == "schema"
        else tokdfa.Grammar('start: "{" /"name": ?/ STRING "}"\nSTRING: /"[^"]*"/\n%ignore " "')
    )
    compiled, answer = tokdfa.compile(constraint, tokenizer), '{"name": "Ann Lee"}'
    prompt = tokenizer.encode("Write it as JSON: ")
    healed = heal(compiled, prompt)
    assert healed.head
    head = healed.head.decode()
    chance = random.Random(0)
    for _ in range(20):
        matcher, left = healed.start(), (head + answer).encode()
        while left:
            allowed = mask_of(matcher)
            fitting = [t for t in vocab.trie.prefixes_of(left) if t in set(allowed)]
            assert fitting == vocab.trie.prefixes_of(left), "every way to cut the text is allowed"
            for token in allowed[:: max(1, len(allowed) // 20)]:
                spelled = vocab.token_bytes(token)
                assert spelled.startswith(matcher.head_left) or matcher.head_left.startswith(spelled)
            token = chance.choice(fitting)
            matcher.advance(token)
            left = left[len(vocab.token_bytes(token)) :]
        assert matcher.can_end()
        again = pickle.loads(pickle.dumps(matcher))
        assert again.tokens == matcher.tokens
        assert mask_of(again) == mask_of(matcher)


def test_it_goes_wherever_compiled_constraints_go() -> None:
    vocab = Vocabulary([b"a", b"b", b"ab", b"bb", b"", b""], [4])
    healed = heal(tokdfa.compile(tokdfa.Regex("b{2,3}"), vocab), [0])
    batch = BatchMatcher(vocab, rows=2, threads=2)
    batch.put(0, healed.start())
    batch.put(1, healed.start())
    batch.advance([0, 2])
    assert [masks.mask_to_ids(row).tolist() for row in batch.fill()] == [[1, 3], [1, 3]]
    out = masks.allocate_mask(vocab.size, 2)
    assert tokdfa.fill_tree(healed.start(), [2, 3], [-1, 0], out).tolist() == [True, True]
    assert healed.start().forced_bytes() == b"abb"
    assert np.array_equal(out[0], batch.masks[1])


class EncodingVocabulary:
    """A tokenizer as llguidance reads one."""

    bos_token_id, is_tokenizer_wrapper = None, True

    def __init__(self, tokenizer: Any) -> None:
        vocab = tokenizer.vocabulary
        self.eos_token_id = vocab.end_tokens[0]
        self.special_token_ids = sorted({*vocab.special_tokens, *vocab.end_tokens})
        self.tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
        self._encode = tokenizer.encode

    def __call__(self, text: str | bytes) -> list[int]:
        found: list[int] = self._encode(text if isinstance(text, str) else text.decode())
        return found


def test_llguidance_takes_back_the_same_tokens() -> None:
    llguidance = pytest.importorskip("llguidance")
    tokenizer, pattern = tokdfa.load_tokenizer("llama3"), "(//|[0-9]+ )[a-z.]+"
    prompt = tokenizer.encode("See http:")
    healed = tokdfa.heal(tokdfa.compile(tokdfa.Regex(pattern), tokenizer), prompt)
    grammar = llguidance.LLMatcher.grammar_from_regex(pattern)
    options = {"enable_backtrack": False, "enable_ff_tokens": False, "log_level": 0}
    peer = llguidance.LLInterpreter(llguidance.LLTokenizer(EncodingVocabulary(tokenizer)), grammar, **options)
    assert peer.process_prompt(prompt) == list(healed.prompt)
    by_token, _ = peer.compute_mask()  # a byte for each token
    mask = masks.allocate_mask(tokenizer.vocabulary.size)
    healed.start().fill_mask(mask)
    assert [token for token, allowed in enumerate(by_token) if allowed] == masks.mask_to_ids(mask).tolist()
