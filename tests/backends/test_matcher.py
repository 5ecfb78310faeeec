"""Matchers of every kind against a plain twin, in any order of calls, right and wrong ones."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Matcher, StateMatcher
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.numbered_states import NumberedMatcher, NumberedStates, RowTable
from tokdfa.backends.state_matcher import KEPT_STEPS, StepMemo
from tokdfa.constraint import Regex
from tokdfa.errors import ArgumentError, LimitExceeded, TokenRefused
from tokdfa.token_automata.token_index import TokenTable
from tokdfa.vocabulary.mask_store import NARROW, MaskStore
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.mask import Mask

#: More tokens than a narrow mask has, not a multiple of 32, two of which end texts and some of which spell nothing.
SIZE = NARROW + 75
ENDS = (3, SIZE - 30)
VOCAB = Vocabulary(
    [b"" if token in (3, 40, SIZE - 30) else b"%d" % token for token in range(SIZE - 20)],
    end_tokens=ENDS,
    special_tokens={40: "<s>"},
    size=SIZE,
)
WORDS = masks.mask_words(SIZE)
TEXT_TOKENS = [token for token in range(VOCAB.size) if VOCAB.token_bytes(token)]

#: By state, where tokens lead.
Rows = list[dict[int, int]]


class Walk(CompiledConstraint):
    """An automaton over tokens that is given; state 0 is the start. `kind` says what its matchers are."""

    def __init__(self, rows: Rows, accepting: frozenset[int], kind: str) -> None:
        super().__init__(Regex("x"), VOCAB, "walk")
        self.rows, self.accepting, self.kind = rows, accepting, kind
        self.masks, self.steps = MaskStore(1 << 20, WORDS), StepMemo[int]()
        self.states = table(rows, accepting, kind == "narrow rows") if "rows" in kind else None

    def _start(self, context: tuple[int, ...]) -> Matcher:
        if self.kind == "holding":
            return Holding(Stepping(self))
        if self.kind == "states":
            return NumberedMatcher(PlainStates(self))
        return Stepping(self) if self.states is None else NumberedMatcher(self.states)

    def allowed(self, state: int) -> list[int]:
        return [*self.rows[state], *(ENDS if state in self.accepting else ())]

    def __reduce__(self) -> tuple[Callable[..., CompiledConstraint], tuple[Any, ...]]:
        return Walk, (self.rows, self.accepting, self.kind)


KINDS = ("stepping", "kept", "holding", "states", "rows", "narrow rows")


def table(rows: Rows, accepting: frozenset[int], narrow: bool) -> RowTable:
    rank_of = VOCAB.trie.rank_of
    entries = [sorted((int(rank_of[token]), target) for token, target in row.items()) for row in rows]
    found = TokenTable(
        np.cumsum([0, *map(len, entries)], dtype=np.int64),
        np.array([rank for row in entries for rank, _ in row], dtype=np.int32),
        np.array([target for row in entries for _, target in row], dtype=np.int32),
        np.arange(len(rows), dtype=np.int32),
    )
    flags = np.array([state in accepting for state in range(len(rows))])
    return RowTable(VOCAB, found.compact() if narrow else found, flags, 1 << 20)


class Stepping(StateMatcher[int]):
    """All by Python methods, and with `kept` from stores."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(VOCAB, 0)
        self.walk = walk
        if walk.kind == "kept":
            self._serve_from(walk.masks, walk.steps)

    def _step(self, state: int, token: int) -> int | None:
        target = self.walk.rows[state].get(token)
        if target is not None:
            self.walk.steps.keep(state, token, target)
        return target

    def _accepts(self, state: int) -> bool:
        return state in self.walk.accepting

    def _fill(self, state: int, out: Mask) -> None:
        self._count(masks=1)
        out[:] = masks.mask_from_ids(self.walk.allowed(state), SIZE)
        self.walk.masks.keep(state, out)

    def _fork_empty(self) -> Stepping:
        return Stepping(self.walk)


class Holding(Matcher):
    """Another matcher, behind the methods that every strategy writes."""

    def __init__(self, inner: Matcher) -> None:
        super().__init__(inner.vocab)
        self.inner = inner

    def can_end(self) -> bool:
        return self.inner.can_end()

    def is_finished(self) -> bool:
        return self.inner.is_finished()

    def _fill_mask(self, out: Mask) -> None:
        self.inner.fill_mask(out)

    def _advance(self, token: int) -> None:
        assert type(token) is int
        self.inner.advance(token)

    def _allows(self, token: int) -> bool:
        return self.inner.allows(token)

    def _rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def _fork(self) -> Holding:
        return Holding(self.inner.fork())


class PlainStates(NumberedStates):
    def __init__(self, walk: Walk) -> None:
        self.vocab, self.masks, self.walk = VOCAB, walk.masks, walk

    def step(self, state: int, token: int) -> int:
        return self.walk.rows[state].get(token, -1)

    def targets(self, state: int) -> Any:
        raise NotImplementedError

    def accepts(self, state: int) -> bool:
        return state in self.walk.accepting

    def make_mask(self, state: int, out: Mask) -> dict[str, int]:
        out[:] = masks.mask_from_ids(self.walk.allowed(state), SIZE)
        self.masks.keep(state, out)
        return {"masks": 1}


class Twin:
    """What a matcher is, in plain Python."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.taken = walk, list[int]()

    @property
    def state(self) -> int | None:
        """None after an end token."""
        state: int = 0
        for token in self.taken:
            if token in ENDS:
                return None
            state = self.walk.rows[state][token]
        return state

    def allowed(self) -> list[int]:
        return sorted(ENDS if self.state is None else self.walk.allowed(self.state))

    def advance(self, token: int) -> bool:
        if token not in self.allowed():
            return False
        if self.state is not None:
            self.taken.append(token)
        return True

    def can_end(self) -> bool:
        return self.state is None or self.state in self.walk.accepting

    def fork(self) -> Twin:
        other = Twin(self.walk)
        other.taken = self.taken.copy()
        return other


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    count = draw(st.integers(1, 4))
    state = st.integers(0, count - 1)
    few = st.dictionaries(st.sampled_from(TEXT_TOKENS), state, max_size=6)
    wide = state.map(lambda target: dict.fromkeys(TEXT_TOKENS, target))
    rows = draw(st.lists(few | wide, min_size=count, max_size=count))
    return Walk(rows, draw(st.frozensets(state)), draw(st.sampled_from(KINDS)))


#: How a token id may be given.
FORMS: tuple[Callable[[int], Any], ...] = (int, np.int64, np.int32, np.int16, np.array)
TOKENS = st.integers(-2, SIZE + 1) | st.sampled_from([*ENDS, 40, TEXT_TOKENS[0], 1 << 31, 1 << 63, -(1 << 70)])
CALLED = ("allows", "rollback", "fork", "swap", "fill", "same", "wrong", "copy", "pickle")
#: An operation, a token or number, and a choice that what the walk allows makes of a number.
CALLS = st.tuples(
    st.sampled_from([*["advance"] * 3, *CALLED]),
    TOKENS,
    st.integers(0, 1 << 16),
)


@given(walks(), st.lists(CALLS, max_size=40))
def test_any_calls_in_any_order(walk: Walk, calls: list[tuple[str, int, int]]) -> None:
    pairs: list[tuple[Matcher, Twin]] = [(walk.start(), Twin(walk))]
    buffer = masks.allocate_mask(SIZE)
    for call, token, choice in calls:
        matcher, twin = pairs[-1]
        if call in ("advance", "allows"):
            allowed = twin.allowed()
            if choice % 3 and allowed:
                token = allowed[choice % len(allowed)]
            given_as = FORMS[choice % len(FORMS)](token) if 0 <= token < 1 << 15 else token
            if call == "allows":
                assert matcher.allows(given_as) is (token in allowed)
            elif twin.advance(token):
                matcher.advance(given_as)
            else:
                with pytest.raises(TokenRefused) as refused:
                    matcher.advance(given_as)
                assert refused.value.token == token
        elif call == "rollback":
            count = choice % 4
            if count > len(twin.taken):
                with pytest.raises(ArgumentError, match=f"cannot take back {count} tokens"):
                    matcher.rollback(count)
            else:
                matcher.rollback(np.int32(count) if choice % 8 == 0 else count)
                del twin.taken[len(twin.taken) - count :]
        elif call == "fork":
            pairs.append((matcher.fork(), twin.fork()))
        elif call == "swap":
            pairs.insert(0, pairs.pop())
        elif call in ("copy", "pickle"):
            other = pickle.loads(pickle.dumps(matcher)) if call == "pickle" else copy.deepcopy(matcher)
            pairs.insert(choice % len(pairs), (other, twin.fork()))
        elif call == "wrong":
            refuse_wrong_calls(matcher, choice)
        else:
            out = buffer if call == "same" else np.full(WORDS, -1, dtype=np.int32)
            matcher.fill_mask(out)
            assert masks.mask_to_ids(out).tolist() == twin.allowed()
        assert matcher.tokens == tuple(twin.taken)
    rows = masks.allocate_mask(SIZE, len(pairs))
    fill_masks([matcher for matcher, _ in pairs], rows, 1 + len(calls) % 2)
    for (matcher, twin), row in zip(pairs, rows, strict=True):
        assert masks.mask_to_ids(row).tolist() == mask_of(matcher) == twin.allowed()
        assert (matcher.can_end(), matcher.is_finished()) == (twin.can_end(), twin.state is None)


def refuse_wrong_calls(matcher: Matcher, choice: int) -> None:
    read_only = masks.allocate_mask(SIZE)
    read_only.flags.writeable = False
    unaligned = np.zeros(4 * WORDS + 1, dtype=np.uint8)[1:].view(np.int32)
    wrong_masks: tuple[Any, ...] = (
        *(None, [0] * WORDS, b"0" * 4 * WORDS, bytearray(4 * WORDS), memoryview(bytearray(4 * WORDS)).cast("i")),
        *(np.zeros(WORDS, dtype=kind) for kind in ("uint32", "int64", ">i4", "float32", "O", "M8[s]", "i1,i1,i1,i1")),
        *(np.zeros(shape, dtype=np.int32) for shape in (WORDS - 1, WORDS + 1, 0, (1, WORDS), (WORDS, 1), ())),
        *(np.zeros(2 * WORDS, dtype=np.int32)[::2], np.zeros(WORDS, dtype=np.int32)[::-1], read_only, unaligned),
    )
    wrong_tokens: tuple[Any, ...] = (None, True, np.True_, 1.0, np.float64(1), "1", b"1", [1], np.array([1, 2]))
    with pytest.raises(ArgumentError, match="out"):
        matcher.fill_mask(wrong_masks[choice % len(wrong_masks)])
    wrong = wrong_tokens[choice % len(wrong_tokens)]
    for method in (matcher.advance, matcher.allows):
        with pytest.raises(ArgumentError, match=r"token \(a token id\) takes a whole number"):
            method(wrong)
    with pytest.raises(ArgumentError, match="count"):
        matcher.rollback(wrong)
    with pytest.raises(ArgumentError, match="count must be at least 0"):
        matcher.rollback(-1)
    with pytest.raises(ArgumentError, match="cannot take back"):
        matcher.rollback(1 << 70)


def some_walk(kind: str) -> Walk:
    return Walk([{5: 1, 6: 0}, dict.fromkeys(TEXT_TOKENS, 0)], frozenset({1}), kind)


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_tensors(self, kind: str) -> None:
        torch = pytest.importorskip("torch")
        matcher, expected = some_walk(kind).start(), masks.allocate_mask(SIZE)
        matcher.advance(torch.tensor(5))
        matcher.advance(torch.tensor([7], dtype=torch.int32))
        assert matcher.tokens == (5, 7)
        assert matcher.allows(torch.tensor(6))
        matcher.fill_mask(expected)
        out = torch.zeros(WORDS, dtype=torch.int32)
        for _ in range(2):
            matcher.fill_mask(out)  # type: ignore[arg-type]
            assert out.numpy().tolist() == expected.tolist()
            for wrong in (torch.zeros(2 * WORDS, dtype=torch.int32), out.long(), out[:-1]):
                with pytest.raises(ArgumentError, match="shape"):
                    matcher.fill_mask(wrong)  # type: ignore[arg-type]
            out.zero_()

    def test_a_mask_that_was_checked_stays_valid(self, kind: str) -> None:
        """Nobody can take the memory away that a matcher may write to again."""
        matcher = some_walk(kind).start()
        out = np.zeros(WORDS, dtype=np.int32)
        matcher.fill_mask(out)
        with pytest.raises(ValueError, match="resize"):
            out.resize(10 * WORDS)
        out[:] = 0
        for _ in range(2):
            other = np.zeros((3, WORDS), dtype=np.int32)
            for row in other:
                matcher.fill_mask(row)
            assert (other == other[0]).all()
            matcher.fill_mask(out)
            assert out.tolist() == other[0].tolist()
            del other, row
            gc.collect()

    def test_they_can_be_referred_to_weakly_and_are_collected(self, kind: str) -> None:
        matcher = some_walk(kind).start()
        matcher.counters["cycle"] = matcher  # type: ignore[assignment]
        died = weakref.ref(matcher)
        del matcher
        gc.collect()
        assert died() is None

    def test_what_was_refused_is_refused_again(self, kind: str) -> None:
        walk = some_walk(kind)
        matcher, out = walk.start(), masks.allocate_mask(SIZE)
        error = LimitExceeded("too much", limit="step_seconds", value=1.0)
        for step, token in (("mask", -1), ("advance", 5)):
            walk.refusals.note((type(matcher), step, token, (), ()), error, walk.working.budget)
        for do in (lambda: matcher.fill_mask(out), lambda: matcher.advance(5), lambda: matcher.allows(5)):
            with pytest.raises(LimitExceeded, match="too much"):
                do()
        matcher.advance(6)
        matcher.fill_mask(out)
        assert matcher.allows(5)

    def test_keywords(self, kind: str) -> None:
        matcher, out = some_walk(kind).start(), masks.allocate_mask(SIZE)
        matcher.advance(token=5)
        matcher.fill_mask(out=out)
        assert matcher.allows(token=7)
        matcher.rollback(count=1)
        assert matcher.tokens == ()


def test_what_a_strategy_does_not_write() -> None:
    class Bare(StateMatcher[int]):
        pass

    matcher = Bare(VOCAB, 0)
    for do in (matcher.can_end, matcher.fork, lambda: matcher.advance(5), lambda: mask_of(matcher)):
        with pytest.raises(NotImplementedError, match="Bare does not write `_"):
            do()


def test_before_init() -> None:
    for kind in (Matcher, StateMatcher, NumberedMatcher):
        matcher: Any = kind.__new__(kind)
        for name, *taken in (("fill_mask", None), ("advance", 0), ("fork",), ("can_end",)):
            with pytest.raises((ArgumentError, AttributeError, NotImplementedError, TokenRefused, TypeError)):
                getattr(matcher, name)(*taken)
        assert matcher.tokens == ()


def test_too_many_steps_are_forgotten() -> None:
    memo = StepMemo[int]()
    memo.update(((0, token), 0) for token in range(KEPT_STEPS))
    memo.keep(1, 2, 3)
    assert memo == {(1, 2): 3}
