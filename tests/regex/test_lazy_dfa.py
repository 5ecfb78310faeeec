from __future__ import annotations

import gc
import itertools
import re
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.regex.terms import ALPHABET, build, terms
from tests.strategies import examples, short_texts
from tokdfa.automata.algebra import minimize, trim
from tokdfa.constraint import Regex
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.regex import lazy_dfa
from tokdfa.regex.compile import compile_lazy
from tokdfa.regex.expression import ANY_BYTE, NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import IS_LIVE, LazyDfa
from tokdfa.regex.lower import lower_regex
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@examples(300)
@given(terms())
def test_every_state_a_walk_can_reach_is_live(term: tuple) -> None:
    store = ExpressionStore()
    dfa = LazyDfa(store, build(store, term))
    assert dfa.is_empty == (minimize(dfa.to_dfa()).state_count == 0)
    reached = {0} if not dfa.is_empty else set()
    agenda = list(reached)
    while agenda:
        state = agenda.pop()
        dfa.fill_row(state * dfa.class_count)
        row = dfa.transitions[state * dfa.class_count : (state + 1) * dfa.class_count]
        assert (row != UNKNOWN).all()
        for target in (np.unique(row[row >= 0]) // dfa.class_count).tolist():
            assert dfa.live[target] == IS_LIVE
            if target not in reached:
                reached.add(target)
                agenda.append(target)
    assert len(reached) == trim(dfa.to_dfa()).state_count


@pytest.fixture(params=["as it is", "parts", "all", "searches"])
def deciding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How it is decided what is live: in all ways, or mostly in one of them."""
    limits = {"parts": (0, 1, 0), "all": (0, 0, 100_000), "searches": (0, 10_000, 0)}
    if request.param != "as it is":
        monkeypatch.setattr(lazy_dfa, "DESCENTS", 0)
        for name, limit in zip(("SEARCHED_FIRST", "SEARCHED", "DECIDED_AT_ONCE"), limits[request.param], strict=True):
            monkeypatch.setattr(lazy_dfa, name, limit)
    return request.param


def same_rows(one: LazyDfa, other: LazyDfa, start: int = 0, other_start: int = 0) -> int:
    """How many states the automata have, whose rows must be the same but for the states' numbers; all are made."""
    found, agenda = {start: other_start}, [start]
    while agenda:
        state = agenda.pop()
        one.fill_row(state * one.class_count)
        assert one.accepting[state] == other.accepting[found[state]]
        for byte in one.representatives.tolist():
            entry = found[state] * other.class_count + int(other.byte_class[byte])
            target, expected = one.step(state, byte), int(other.transitions[entry])
            assert expected != UNKNOWN
            assert (target < 0) == (expected == DEAD)
            if target >= 0 and target not in found:
                agenda.append(target)
            assert (
                target < 0 or found.setdefault(target, expected // other.class_count) == expected // other.class_count
            )
    assert len(set(found.values())) == len(found)
    return len(found)


def fill_by_layers(dfa: LazyDfa) -> None:
    """Make all rows, those of all states that are met for the first time together, some of them named twice."""
    layer, met = [0], {0}
    while layer and not dfa.is_empty:
        dfa.fill_rows(np.array([*layer, *layer[:2]], dtype=np.int32))
        rows = dfa.transitions.reshape(-1, dfa.class_count)[layer]
        layer = [state for state in (np.unique(rows[rows >= 0]) // dfa.class_count).tolist() if state not in met]
        met.update(layer)


def test_rows_of_many_states_at_once_are_those_made_one_by_one(deciding: str) -> None:
    @given(terms())
    def check(term: tuple) -> None:
        alone, together = (LazyDfa(store, build(store, term)) for store in (ExpressionStore(), ExpressionStore()))
        assert alone.is_empty == together.is_empty == (minimize(alone.to_dfa()).state_count == 0)
        fill_by_layers(together)
        if not together.is_empty:
            store = ExpressionStore()
            same_rows(LazyDfa(store, build(store, term)), together)

    check()


def asserting(store: ExpressionStore) -> int:
    """Intersection, complement, assertions and look-ahead in loops."""
    letters = store.byte_set(b"abc ")
    word = store.concat(store.assertion("word_boundary"), store.literal(b"ab"), store.look_ahead(letters))
    no_cc = store.look_ahead(store.literal(b"cc"), negative=True)
    loop = store.repeat(store.union([word, store.concat(no_cc, letters)]), 1, 9)
    without = store.complement(store.concat(store.repeat(letters, 0, None), store.literal(b"ba"), letters))
    return store.intersection([loop, without, store.repeat(letters, 2, 7)])


def test_rows_of_many_states_with_assertions(deciding: str) -> None:
    alone, together = (LazyDfa(store, asserting(store)) for store in (ExpressionStore(), ExpressionStore()))
    fill_by_layers(together)
    assert same_rows(alone, together) > 20


def holds_one_word(store: ExpressionStore) -> int:
    """Texts in which the first of five words is, and none of the others."""
    anything = store.repeat(store.byte_set(b"abcdefgh"), 0, None)
    one, *others = (
        store.concat(anything, store.literal(word), anything) for word in (b"abc", b"bcd", b"def", b"fag", b"hah")
    )
    return store.intersection([one, *map(store.complement, others)])


LOOKING = (
    r"((?=.{3}a|.{5}b)[a-z]|(?!.{2}d)[0-9])*",
    r"(((?!\sgf)\w){2,5}){1,3}",
    r"(?:a\b|^b|^c|d$|\n)*e?",
    r"(?m)(?:^a|b$|\n)*(?=x|y)[xyz]",
    r"\b(?:ab|\Ba|b(?=a\b))*",
)


@pytest.mark.parametrize("pattern", [*LOOKING, "(a|b)*a(a|b){12}", "(?=.*a)(?=.*b)(?=.*c)[a-d]{3,40}"])
def test_what_a_budget_interrupts_goes_on_where_it_was(pattern: str) -> None:
    """Explored in slices of work, each ended by LimitExceeded, an automaton is the same as one made at once."""
    regex, interrupted = Regex(pattern, ascii_classes=True), 0
    whole, sliced = compile_lazy(regex), compile_lazy(regex)
    whole.explore(20_000)
    while sliced.explored < sliced.state_count:
        with spending(Budget(0.01, 500), "an automaton"):
            try:
                sliced.explore(20_000)
            except LimitExceeded:
                interrupted += 1
    count = whole.state_count
    assert sliced.state_count == count
    entries = count * whole.class_count
    assert np.array_equal(sliced.raw[:entries], whole.raw[:entries])
    assert np.array_equal(sliced.accepting[:count], whole.accepting[:count])
    assert interrupted > 0 or count < 1_000


def test_proofs_count_towards_the_budget_and_are_not_remembered_half_done() -> None:
    """A product of periods: to decide whether anything is left takes many states; each attempt ends at the budget."""
    dfa = compile_lazy(Regex("(?=(.{97})*$)(?=(.{89})*$)(?=(.{83})*$).*"))
    for _ in range(3):
        with spending(Budget(0.05, 500), "a row") as account, pytest.raises(LimitExceeded, match="compile_seconds"):
            dfa.fill_row(0)
        assert account.work_done < 0.06e9
        assert dfa.transitions[0] == UNKNOWN
    with spending(Budget(50, 5), "a row"), pytest.raises(LimitExceeded, match="compile_mb"):
        dfa.fill_row(0)


class Stopped(Exception):
    """What a signal raises here."""


@pytest.fixture
def alarm() -> Iterator[None]:
    """SIGALRM raises Stopped, which no callback of the collector swallows."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("pattern", "make"),
    [
        ("(?:a|b)*a(?:a|b){30}", lambda dfa: dfa.explore()),
        ("(?:a|b)*a(?:a|b){30}", lambda dfa: dfa.to_dfa()),
        (r"(?:a|b)*a(?:a|b|\b-){30}", lambda dfa: dfa.explore()),
        ("(?=(.{97})*$)(?=(.{89})*$)(?=(.{83})*$).*", lambda dfa: dfa.fill_row(0)),
    ],
)
def test_a_signal_ends_the_making_of_states(pattern: str, make: Callable[[LazyDfa], object]) -> None:
    """Each of these takes seconds, and ends in an error, unless signals are looked at. What was made stays usable."""
    dfa, twin = (compile_lazy(Regex(pattern, ascii_classes=True), max_states=limit) for limit in (2_000_000, 1_000_000))
    for _ in range(2):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            with pytest.raises(Stopped):
                make(dfa)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    for text in map(str.encode, short_texts(2, "ab-")):
        if "=" not in pattern:  # each row of that one takes seconds
            assert dfa.accepts(text) == twin.accepts(text)
            assert (dfa.run(text) < 0) == (twin.run(text) < 0)


def test_what_is_empty_because_two_parts_are_takes_few_states() -> None:
    store = ExpressionStore(without_laws=("union_absorb",))  # by which few states are left to be made
    dfa, every = (LazyDfa(store, store.concat(holds_one_word(store), store.literal(b"!"))) for _ in range(2))
    assert dfa.run(b"ahfag") == dfa.run(b"ahdef") == dfa.run(b"abchdef") == -1
    assert dfa.accepts(b"hhabch!")
    every.explore()
    assert 2 * dfa.state_count < every.state_count


def test_states_with_assertions_count_for_the_limit_as_they_are_made() -> None:
    store = ExpressionStore()
    dfa = LazyDfa(store, lower_regex(Regex("(?:a(?=[^x]*y)|b){40}.*"), store))
    begun = dfa.state_count  # to see that it accepts something
    with pytest.raises(LimitExceeded, match="more than 10 states"):
        dfa.to_dfa(10)
    assert dfa.state_count <= begun + dfa.class_count


def test_limit_in_the_middle_of_many_rows() -> None:
    """What was made before is still there, and what was not is UNKNOWN."""
    store = ExpressionStore()
    words = store.union(
        [store.concat(store.literal(bytes([byte])), store.repeat(ANY_BYTE, 5, 90 + byte)) for byte in range(9)]
    )
    for root in (words, store.intersection([words, store.complement(store.literal(b"abc"))])):
        dfa = LazyDfa(store, root, max_states=60)
        with pytest.raises(LimitExceeded, match="more than 60 states"):
            fill_by_layers(dfa)
        rows = dfa.transitions[: dfa.state_count * dfa.class_count].reshape(-1, dfa.class_count)
        known = (rows != UNKNOWN).all(axis=1)
        assert (known | (rows == UNKNOWN).all(axis=1)).all()
        assert 10 <= known.sum() < dfa.state_count <= 60
        dfa.fill_rows(np.flatnonzero(known).astype(np.int32))
        with pytest.raises(LimitExceeded):
            dfa.fill_rows(np.flatnonzero(~known).astype(np.int32))


@pytest.mark.parametrize(
    ("pattern", "alphabet", "length"),
    [
        ("(?:(?!ab)[abc])*c", "abc", 6),
        (r"(?:(?:^|c)a|b\b| )+", "abc ", 6),
        (r"(?:[a ]\B[a ])*", "a ", 8),
        (r"(?m:(?:^a{0,2}$\n?){1,3})", "a\n", 7),
        (r"(?:(?=a)[abc]{0,2}|b|$){2,3}", "abc", 6),
        (r"(?:(?=[ab](?!b))[ab])*", "ab", 8),
    ],
)
def test_assertions_in_loops_mean_what_re_says(pattern: str, alphabet: str, length: int) -> None:
    """Empty rounds use up the minimum; assertions look across the rounds."""
    dfa, oracle = compile_lazy(Regex(pattern, ascii_classes=True)), re.compile(pattern, re.ASCII)
    explicit = minimize(compile_lazy(Regex(pattern, ascii_classes=True)).to_dfa())
    for text in short_texts(length, alphabet):
        if text or r"\B" not in pattern:  # Python before 3.14 has no \B in an empty text
            expected = oracle.fullmatch(text) is not None
            assert dfa.accepts(text.encode()) == explicit.accepts(text.encode()) == expected, text


@given(st.lists(terms(), min_size=1, max_size=4))
def test_many_expressions_share_one_automaton(many: list[tuple]) -> None:
    """Each is what it would be by itself, whatever the others are."""
    store = ExpressionStore()
    expressions = [build(store, term) for term in many]
    together = LazyDfa.of_many(store, expressions)
    words = [bytes(word) for length in range(5) for word in itertools.product(ALPHABET + b"z", repeat=length)]
    for expression in expressions:
        start, alone = together.state_of(expression), LazyDfa(store, expression)
        assert (start < 0) == alone.is_empty
        if start < 0:
            continue
        for word in words:
            state = together.run(word, start)
            assert (state >= 0 and bool(together.accepting[state])) == alone.accepts(word)


def test_limit_leaves_the_automaton_usable() -> None:
    """States are made on demand."""
    store = ExpressionStore()
    dfa = LazyDfa(store, store.repeat(ANY_BYTE, 0, 1_000_000), max_states=100)
    assert dfa.accepts(b"x" * 50)
    assert dfa.state_count < 60
    with pytest.raises(LimitExceeded, match="more than 100 states"):
        dfa.to_dfa()
    assert dfa.accepts(b"x" * 50)


def test_empty_languages_are_found_out() -> None:
    store = ExpressionStore()
    a_star = store.repeat(store.byte_set(b"a"), 0, None)
    odd = store.concat(store.byte_set(b"a"), store.repeat(store.literal(b"aa"), 0, None))
    even = store.repeat(store.literal(b"aa"), 0, None)
    assert LazyDfa(store, store.intersection([odd, even])).is_empty
    assert not LazyDfa(store, store.intersection([store.complement(odd), a_star])).is_empty
    assert LazyDfa(store, NOTHING).is_empty


def test_states_must_be_there() -> None:
    dfa = compile_lazy(Regex("ab*|c"))
    for wrong in (-1, dfa.state_count, 1 << 20):
        with pytest.raises(IndexError, match="no state"):
            dfa.expression(wrong)
        with pytest.raises(IndexError, match="no state"):
            dfa.step(wrong, 97)
        with pytest.raises(IndexError, match="no state"):
            dfa.fill_row(wrong * dfa.class_count)
        with pytest.raises(IndexError, match="no state"):
            dfa.fill_rows(np.array([0, wrong], dtype=np.int32))
    assert dfa.accepts(b"abb")
