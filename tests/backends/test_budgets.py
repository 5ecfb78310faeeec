"""Adversarial inputs under small budgets: they end in LimitExceeded, and leave no trace in what is shared."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import pytest

import tokdfa
from tests.walks import masks_along
from tokdfa.constraint import Constraint, Grammar, Regex
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.vocabulary import Vocabulary

PIECES = [bytes([byte]) for byte in range(256)] + [b"ab", b"aab", b"ba", b"aaaa", b"xyz", b"a1", b"\xc3\xa4b", b"1a"]


def rules(count: int) -> str:
    return "start: r0\n" + "".join(f'r{k}: "a{k}" | r{k + 1}\n' for k in range(count)) + f'r{count}: "z"\n'


def choices(count: int) -> str:
    return f"start: ({'|'.join(f'r{k}' for k in range(count))})*\n" + "".join(
        f'r{k}: "k{k}" "x" r{k * 7 % count}?\n' for k in range(count)
    )


#: Through a second rule, as a join is read as a list.
AMBIGUOUS = 'start: pair | "a" | "b"\npair: start start\n'
CONFLICTS = 'start: e\ne: e "+" e | e "*" e | "(" e ")" | "n"\n'
MANY_WAYS = 'start: r ";"\nr: (T r r)* | "z"\nT: "foo"i | /[ \\t]+/\n'
DEEP = "start: T start~0..2 T\nT: /a+b/\n"
LOOPS = Regex(r"(((?!\sggf)(\p{L})){2,6}){2,4}")
FAR = Regex(r"(a|b)*a(a|b){13}")
PERIODS = Regex("(?=([ab]{23})*$)(?=([ab]{19})*$)(?=([ab]{7})*$)[ab]*")
COMPILES: list[tuple[Constraint, str, dict[str, Any]]] = [
    (LOOPS, "tokens_dfa", {}),
    (LOOPS, "token_index", {"lazy": False}),
    (FAR, "tokens_dfa", {}),
    (FAR, "token_index", {"lazy": False}),
    (Grammar(rules(1_000)), "pushdown_trie", {}),
    (Grammar(rules(1_000)), "earley_trie", {}),
    (Grammar(choices(150)), "cfg_fsm", {"conflicts": "shift"}),
    (Grammar('start: A "x" B "x" C\nA: /(a|b)*a(a|b){9}/\nB: /(a|b)*b(a|b){9}/\nC: /[ab]+/\n'), "cfg_fsm", {}),
]
STEPS: list[tuple[Constraint, str, dict[str, Any], bytes]] = [
    (PERIODS, "pushdown_trie", {}, b""),
    (PERIODS, "token_index", {"lazy": True}, b""),
    (Grammar(AMBIGUOUS), "earley_trie", {}, b"ab" * 150),
    (Grammar(CONFLICTS), "cfg_fsm", {"masks": "walk", "conflicts": "shift"}, b"n+n*(n+n"),
    (Grammar(CONFLICTS), "cfg_fsm", {"masks": "vectors", "conflicts": "shift"}, b"n+n*(n+n"),
]


def vocabulary() -> Vocabulary:
    return Vocabulary([*PIECES, b""], end_tokens=[len(PIECES)])


@pytest.mark.parametrize(("constraint", "backend", "options"), COMPILES)
def test_a_compile_that_is_refused_leaves_no_trace(constraint: Constraint, backend: str, options: Any) -> None:
    vocab = vocabulary()
    vocab.trie  # noqa: B018 - what belongs to the vocabulary is no constraint's work
    for seconds in (0.001, 0.002, 0.004):
        with pytest.raises(LimitExceeded, match="compile_seconds") as raised:
            tokdfa.compile(constraint, vocab, backend=backend, compile_seconds=seconds, **options)
        assert raised.value.limit == "compile_seconds"
    plenty = {"compile_seconds": 100.0, "compile_mb": 2_000.0, **options}
    after = tokdfa.compile(constraint, vocab, backend=backend, **plenty)
    fresh = tokdfa.compile(constraint, vocabulary(), backend=backend, **plenty)
    for seed in range(2):
        assert masks_along(after, seed) == masks_along(fresh, seed)


@pytest.mark.parametrize(("constraint", "backend", "options", "text"), STEPS)
def test_a_step_that_is_refused_leaves_the_matcher_as_it_was(
    constraint: Constraint, backend: str, options: Any, text: bytes
) -> None:
    vocab, fresh = vocabulary(), vocabulary()
    out, expected = tokdfa.allocate_mask(vocab.size), tokdfa.allocate_mask(vocab.size)
    matcher = tokdfa.compile(constraint, vocab, backend=backend, **options).start()
    other = tokdfa.compile(constraint, fresh, backend=backend, **options).start()
    refused = 0

    def step(call: Any, *arguments: Any) -> None:
        """Call under small budgets, each ended by LimitExceeded, and at last without one."""
        nonlocal refused
        for milliseconds in (0.02, 0.1, 0.5):
            try:
                with spending(Budget(milliseconds / 1_000, 256, "step"), "a step"):
                    call(*arguments)
                return
            except LimitExceeded:
                refused += 1
        call(*arguments)

    for byte in text:
        step(matcher.advance, byte)
        other.advance(byte)
    for _ in range(3):
        step(matcher.fill_mask, out)
        other.fill_mask(expected)
        assert out.tolist() == expected.tolist()
        tokens = [token for token in tokdfa.mask_to_ids(out).tolist() if token not in vocab.end_tokens]
        if not tokens:
            break
        step(matcher.advance, tokens[-1])
        other.advance(tokens[-1])
    assert refused > 0


@pytest.mark.parametrize("backend", ["pushdown_trie", "earley_trie"])
def test_work_on_rules_grows_with_their_number_only(backend: str) -> None:
    """Counted, not timed: twice as many rules take about twice as much work."""
    work = []
    for count in (400, 800, 1_600):
        with spending(Budget(100, 2_000), "a grammar") as account:
            tokdfa.compile(Grammar(rules(count)), vocabulary(), backend=backend)
        work.append(account.work_done)
    assert work[0] > 1_000_000
    assert work[2] - work[1] < 2.5 * (work[1] - work[0])


def test_work_on_stacks_grows_with_their_number_only() -> None:
    """A search for an end meets stacks that are ever deeper; each takes as much work as the ones before."""
    work = []
    for limit in (500, 1_000, 2_000):
        options: dict[str, Any] = {"conflicts": "shift", "max_search": limit}
        matcher = tokdfa.compile(Grammar(DEEP), vocabulary(), backend="cfg_fsm", **options).start()
        with spending(Budget(100, 2_000), "a step") as account, pytest.raises(LimitExceeded, match="max_search"):
            list(map(matcher.advance, b"abab"))
        work.append(account.work_done)
    assert 1_000_000 < work[1] < 3 * work[0]
    assert work[2] < 3 * work[1]


def test_rows_of_many_items_count_in_the_first_call_of_a_mask_too() -> None:
    """Few nodes are visited, but each row has thousands of items, whose stacks have hundreds of entries."""
    spaces = Vocabulary([*PIECES, b" " * 20, b""], end_tokens=[len(PIECES) + 1])
    options = {"lexer": "any", "shared": False, "step_seconds": 0.02}
    matcher = tokdfa.compile(Grammar(MANY_WAYS), spaces, backend="pushdown_trie", **options).start()
    mask = tokdfa.allocate_mask(spaces.size)

    def follow() -> None:
        for _ in range(8):
            matcher.advance(len(PIECES))
            matcher.fill_mask(mask)

    with pytest.raises(LimitExceeded, match="step_seconds"):
        follow()
    patient = tokdfa.compile(Grammar(MANY_WAYS), spaces, backend="pushdown_trie", lexer="any").start()
    patient.advance(len(PIECES))
    assert patient.allows(ord(";"))


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_step_is_bounded_with_proper_tokenization_too(seconds: float) -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    options = {"proper": True, "step_seconds": seconds}
    matcher = tokdfa.compile(Regex("[a-z]{1,200}x"), tokenizer, backend="earley_trie", **options).start()
    (token,) = tokenizer.encode("box")
    if seconds:
        matcher.advance(token)
    else:
        with pytest.raises(LimitExceeded, match="step_seconds"):
            matcher.advance(token)


def refusal(call: Any) -> tuple[str, float, str] | None:
    """The limit that refuses a call, or None."""
    try:
        call()
    except LimitExceeded as error:
        return error.limit, error.value, str(error)
    return None


@pytest.mark.parametrize(("constraint", "backend", "options"), COMPILES)
def test_a_refused_compile_is_refused_again(constraint: Constraint, backend: str, options: Any) -> None:
    vocab = vocabulary()
    vocab.trie  # noqa: B018 - as above
    seconds = 0.002

    def compile_within() -> None:
        tokdfa.compile(constraint, vocab, backend=backend, compile_seconds=seconds, **options)

    first = refusal(compile_within)
    assert first is not None
    assert first[:2] == ("compile_seconds", seconds)
    assert [refusal(compile_within) for _ in range(5)] == [first] * 5
    # whoever has more goes on, and leaves everything made behind
    for other, other_backend, other_options in ((constraint, backend, options), *COMPILES[:3]):
        plenty = {"compile_seconds": 100.0, "compile_mb": 2_000.0, **other_options}
        tokdfa.compile(other, vocab, backend=other_backend, **plenty)
        assert refusal(compile_within) == first
    seconds = 0.0015
    assert refusal(compile_within) is not None  # with less, too
    fresh = vocabulary()
    fresh.trie  # noqa: B018
    seconds, vocab = 0.002, fresh
    assert refusal(compile_within) == first


@pytest.mark.parametrize(("constraint", "backend", "options"), COMPILES)
def test_what_is_refused_keeps_no_vocabulary(constraint: Constraint, backend: str, options: Any) -> None:
    """Nor does a step: the error that is remembered has no frames, in which what was worked on would stand."""
    vocab = vocabulary()
    matcher = tokdfa.compile(PERIODS, vocab, backend="pushdown_trie", step_seconds=0.000_05).start()
    step = partial(matcher.fill_mask, tokdfa.allocate_mask(vocab.size))
    call = partial(tokdfa.compile, constraint, vocab, backend=backend, compile_seconds=0.002, **options)
    assert None not in map(refusal, (step, step, call, call))
    gone = weakref.ref(vocab)
    del vocab, matcher, step, call
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(("constraint", "backend", "options", "text"), STEPS)
def test_a_refused_step_is_refused_again(constraint: Constraint, backend: str, options: Any, text: bytes) -> None:
    small = Budget(0.000_05, 256, "step")

    def steps(matcher: Any) -> list[Any]:
        """What is refused of a text's steps within a small budget; those are then made without one."""
        found = []
        out = tokdfa.allocate_mask(matcher.vocab.size)
        for byte in (*text, None):
            calls = [lambda: matcher.fill_mask(out)]
            if byte is not None:
                calls += [lambda: matcher.allows(byte), lambda: matcher.advance(byte)]  # noqa: B023
            for call in calls:
                before = len(matcher.tokens)
                with spending(small, "a step"):
                    found.append(refusal(call))
                if found[-1] is not None:
                    for _ in range(3):
                        with spending(small, "a step"):
                            assert refusal(call) == found[-1]
                    if byte is None or call is not calls[-1]:
                        call()  # made with the budget of a step, and kept
                        with spending(small, "a step"):
                            assert refusal(call) == found[-1]
                if byte is not None and call is calls[-1] and len(matcher.tokens) == before:
                    matcher.advance(byte)
        return found

    compiled = tokdfa.compile(constraint, vocabulary(), backend=backend, **options)
    first = steps(compiled.start())
    assert any(one is not None for one in first)
    # another matcher of the constraint, which finds everything made, and a fork that goes back
    assert steps(compiled.start()) == first
    matcher = compiled.start().fork()
    for byte in text:
        matcher.advance(byte)
    matcher.rollback(len(text))
    assert steps(matcher) == first
    # a constraint, a vocabulary and tables of its own
    assert steps(tokdfa.compile(constraint, vocabulary(), backend=backend, **options).start()) == first


def test_no_budget_reads_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clocks say, the same work is refused."""
    import time

    found = []
    for speed in (0, 10**15):
        for name in ("perf_counter_ns", "monotonic_ns", "time_ns", "thread_time_ns", "process_time_ns"):
            ticks = iter(range(0, 10**30, speed + 1))
            monkeypatch.setattr(time, name, lambda ticks=ticks: next(ticks))
        vocab = vocabulary()
        vocab.trie  # noqa: B018
        for constraint, backend, options in COMPILES[4:6]:
            plan = {"backend": backend, "compile_seconds": 0.002, **options}
            found.append(refusal(partial(tokdfa.compile, constraint, vocab, **plan)))
    assert None not in found
    assert found[:2] == found[2:]


def test_a_limit_that_is_no_budget_is_met_again() -> None:
    options: dict[str, Any] = {"conflicts": "shift", "max_search": 500}
    compiled = tokdfa.compile(Grammar(DEEP), vocabulary(), backend="cfg_fsm", **options)
    outcomes = []
    for _ in range(3):
        matcher = compiled.start()
        outcomes.append(refusal(lambda matcher=matcher: list(map(matcher.advance, b"abab"))))
        assert outcomes[-1] is not None
        token = b"abab"[len(matcher.tokens)]
        assert refusal(lambda matcher=matcher, token=token: matcher.advance(token)) == outcomes[-1]
    assert outcomes == [outcomes[0]] * 3
