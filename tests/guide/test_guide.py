"""The guide view: the same walks on both sides, going back, copies, and random walks beside the index and its masks."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import numpy as np
import outlines_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.guide.sides import BACKENDS, END, SIDES, index, mask_tokens, vocabulary
from tests.strategies import regex_patterns
from tokdfa.guide import Guide, GuideError, Index, create_mask

sides = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.__name__)
PATTERNS = ["[0-9]{1,3}", "ab*c", "(dog|cat)s?"]


def start(side: Any, pattern: str, **limit: int) -> Any:
    if side is outlines_core:
        return outlines_core.Guide(outlines_core.Index(pattern, vocabulary(side)), **limit)
    return Guide(index(pattern), **limit)


@sides
def test_a_text_from_start_to_end(side: Any) -> None:
    guide = start(side, "[0-9]{1,3}")
    first = guide.get_state()
    assert (guide.is_finished(), guide.get_allowed_rollback(), END in guide.get_tokens()) == (False, 0, False)
    following = guide.advance(15)  # "12"
    assert sorted(following) == [0, 1, 2, 3, END] == sorted(guide.get_tokens())
    assert (guide.is_finished(), guide.get_allowed_rollback()) == (True, 1)
    assert guide.advance(token_id=0, return_tokens=False) is None
    assert guide.get_tokens() == [END]
    assert guide.is_finished()
    state = guide.get_state()
    for refused in (END, 0, 4, 99999):
        with pytest.raises(ValueError, match=str(refused)):
            guide.advance(refused)
    assert (guide.get_state(), guide.get_allowed_rollback()) == (state, 2)
    guide.reset()
    assert guide.get_state() == first
    assert isinstance(guide.advance(np.int64(15), None), list)


@sides
def test_accepts_tokens(side: Any) -> None:
    guide = start(side, "[0-9]{1,3}")
    guide.advance(15)
    state = guide.get_state()
    for accepted in ([], [0], (3,)):
        assert guide.accepts_tokens(accepted) is True
    for refused in ([END], [0, END], [END, 0], [0, 0], [4], [99999]):
        assert guide.accepts_tokens(sequence=refused) is False
    assert (guide.get_state(), guide.get_allowed_rollback()) == (state, 1)
    for wrong in ("12", ["1"], [None], 3):
        with pytest.raises(TypeError):
            guide.accepts_tokens(wrong)


@sides
def test_rollback(side: Any) -> None:
    guide = start(side, "b*", max_rollback=3)
    states = [guide.get_state()]
    for _ in range(5):
        guide.advance(5, False)
        states.append(guide.get_state())
    assert guide.get_allowed_rollback() == 3
    with pytest.raises(ValueError, match=r"max_rollback ?= ?3"):
        guide.rollback_state(4)
    assert guide.rollback_state(0) is None
    assert (guide.get_state(), guide.get_allowed_rollback()) == (states[5], 3)
    assert guide.rollback_state(n=2) is None
    assert (guide.get_state(), guide.get_allowed_rollback()) == (states[3], 1)
    with pytest.raises(ValueError, match="2"):
        guide.rollback_state(2)
    guide.rollback_state(1)
    assert (guide.get_state(), guide.get_allowed_rollback()) == (states[2], 0)
    with pytest.raises(TypeError):
        guide.rollback_state("1")
    thirty_three = start(side, "b*")
    for _ in range(33):
        thirty_three.advance(5, return_tokens=False)
    assert thirty_three.get_allowed_rollback() == 32


def test_rollback_differs_where_outlines_core_is_wrong() -> None:
    theirs, ours = start(outlines_core, "ab*c"), start(tokdfa.guide, "ab*c")
    for guide in (theirs, ours):
        guide.advance(4)
        guide.reset()
        guide.advance(4)
    assert (theirs.get_allowed_rollback(), ours.get_allowed_rollback()) == (2, 1)
    with pytest.raises(GuideError, match="max_rollback is a number from 0"):
        Guide(index("ab*c"), -1)


@sides
def test_equality_copies_and_pickles(side: Any) -> None:
    guide = start(side, "[0-9]{1,3}", max_rollback=3)
    fresh = start(side, "[0-9]{1,3}", max_rollback=5)
    assert guide == fresh
    assert guide != start(side, "[0-9]{1,2}")
    assert guide != 3
    guide.advance(0)
    assert guide != fresh
    guide.advance(0)
    other_way = start(side, "[0-9]{1,3}")
    other_way.advance(34)
    assert (guide.get_tokens() == other_way.get_tokens(), guide == other_way) == (True, False)
    for twin in (copy.copy(guide), copy.deepcopy(guide), pickle.loads(pickle.dumps(guide))):
        assert twin == guide
        assert (twin.get_state(), twin.get_allowed_rollback()) == (guide.get_state(), 2)
        assert twin.get_tokens() == guide.get_tokens()
        twin.rollback_state(2)
        assert twin == fresh
        assert twin != guide
        assert guide.get_allowed_rollback() == 2
    with pytest.raises(TypeError):
        hash(guide)


def test_a_pickle_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    written = pickle.dumps(Guide(index("b*")))
    monkeypatch.setattr(tokdfa, "__version__", "99.0")
    with pytest.raises(GuideError, match=r"cannot be unpickled by 99\.0"):
        pickle.loads(written)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_walks_on_both_sides(pattern: str, backend: str) -> None:
    """One program, twenty texts each, with steps back; masks as outlines_core writes them."""
    our_index, their_index = index(pattern, backend), outlines_core.Index(pattern, vocabulary(outlines_core))
    draw = random.Random(0)
    taken = 0
    for _ in range(20):
        ours, theirs = Guide(our_index), outlines_core.Guide(their_index)
        for _ in range(8):
            tokens = ours.get_tokens()
            assert sorted(theirs.get_tokens()) == tokens
            assert ours.is_finished() == theirs.is_finished()
            token = draw.choice(tokens)
            if token == END:
                break
            assert sorted(theirs.advance(token)) == ours.advance(token)
            taken += 1
            if draw.random() < 0.3:
                back = draw.randint(1, ours.get_allowed_rollback())
                ours.rollback_state(back)
                theirs.rollback_state(back)
            assert ours.get_allowed_rollback() == theirs.get_allowed_rollback()
            masks = np.full((2, 2), -1, np.int32)
            for guide, mask in ((ours, masks[0]), (theirs, masks[1])):
                guide.write_mask_into(mask.ctypes.data, mask.size, mask.itemsize)
            assert masks[0].tolist() == masks[1].tolist()
    assert taken > 30


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_walk_any_vocabulary(backend: str) -> None:
    """get_tokens = the mask's bits = get_allowed_tokens(get_state()) = the table's row, wherever steps lead."""
    walked = []

    @settings(deadline=None, derandomize=True, max_examples=60)
    @given(
        st.lists(st.sampled_from("ab-é").flatmap(lambda letter: st.text(f"{letter}ab-", max_size=4)), max_size=20),
        regex_patterns(anchors=False, look_ahead=False, boundaries=False).map(lambda pattern: f"(?:{pattern})+b*"),
        st.integers(0, 4),
        st.lists(
            st.tuples(st.sampled_from(["advance", "advance", "mask", "rollback", "reset"]), st.integers(0, 99)),
            min_size=8,
        ),
    )
    def check(texts: list[str], pattern: str, limit: int, steps: list[tuple[str, int]]) -> None:
        tokens = [b"a", b"b", b"-", b"\xc3", b"\xa9", b"", *(text.encode() for text in texts), b""]
        vocab = tokdfa.Vocabulary(tokens, [5, len(tokens) - 1], size=len(tokens) + len(pattern))
        try:
            made = Index(pattern, vocab, backend=backend)
        except GuideError:
            return  # a newline, which no token has
        table, ends = made.get_transitions(), set(vocab.end_tokens)
        guide, history = Guide(made, limit), [0]
        mask = create_mask(vocab.size)
        reach = 0  # how many steps the guide can go back
        for kind, number in steps:
            if kind == "rollback":
                back = number % (reach + 1)
                guide.rollback_state(back)
                reach -= back
                history = history[: len(history) - back]
            elif kind == "reset":
                guide.reset()
                history, reach = [0], 0
            elif following := sorted(set(table[history[-1]]) - ends):
                token = following[number % len(following)]
                guide.advance(token, False) if kind == "advance" else guide.advance(token, mask)
                assert kind == "advance" or mask_tokens(mask) == sorted(guide.get_tokens())
                history.append(table[history[-1]][token])
                reach = min(reach + 1, limit)
                walked.append(token)
            state = guide.get_state()
            assert (state, guide.get_allowed_rollback()) == (history[-1], reach)
            allowed = guide.get_tokens()
            guide.get_tokens(mask)
            assert allowed == mask_tokens(mask) == made.get_allowed_tokens(state) == sorted(table[state])
            assert guide.is_finished() == bool(ends & set(allowed)) == (state in made.get_final_states())
            assert all(guide.accepts_tokens([token]) == (token not in ends) for token in allowed)
            with pytest.raises(GuideError):
                guide.rollback_state(reach + 1)

    check()
    assert len(walked) > 100
