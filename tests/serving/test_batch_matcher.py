"""A batch against its matchers one by one, mixed with forks, rollback, beams and threads."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.brute_force import BruteForceMatcher
from tokdfa.core.budget import spending
from tokdfa.errors import ArgumentError, TokenRefused
from tokdfa.serving.batch_matcher import BatchMatcher
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher

TOKENS = [*(bytes([byte]) for byte in range(128)), b"ab", b'{"', b'":', b"]]", b"12", b"a,"]
VOCAB = Vocabulary([*TOKENS, b"", b""], end_tokens=[len(TOKENS), len(TOKENS) + 1])
END = VOCAB.end_tokens[0]
SCHEMA = {"type": "object", "properties": {"ab": {"type": "array", "items": {"type": "integer"}}}}


def compiled_constraints() -> list[CompiledConstraint]:
    """Some that keep masks in a store, some that do not, and none that are alike."""
    return [
        tokdfa.compile(tokdfa.Regex("[ab]{2,5}(12)*"), VOCAB, "token_index"),
        tokdfa.compile(tokdfa.JsonSchema(SCHEMA), VOCAB),
        tokdfa.compile(tokdfa.Grammar('start: "[" [start ("," start)*] "]"'), VOCAB, "earley_trie"),
        tokdfa.compile(tokdfa.Regex("(a|b|1)*"), VOCAB, "pushdown_trie", memo=False),
        tokdfa.compile(tokdfa.Choice(["ab", "a,b", "12"]), VOCAB, "brute_force"),
    ]


def expected(matcher: Matcher | None) -> list[int]:
    """The mask of a row, from a fork of its own."""
    if matcher is None:
        return list(range(VOCAB.size))
    if matcher.is_finished():
        return list(VOCAB.end_tokens)
    return mask_of(matcher.fork())


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_its_matchers(threads: int) -> None:
    """Every row follows a matcher of the test's own, through whatever happens to batches."""
    compiled, chance = compiled_constraints(), random.Random(threads)
    batch = BatchMatcher(VOCAB, rows=6, threads=threads)
    twins: list[Matcher | None] = [None] * 6
    own = masks.allocate_mask(VOCAB.size, 6)
    happened = dict.fromkeys(("put", "advance", "rollback", "reorder", "finished"), 0)
    for _ in range(150):
        what = chance.choice(["put", "advance", "advance", "advance", "rollback", "reorder"])
        happened[what] += 1
        if what == "put":
            row = chance.randrange(6)
            one = chance.choice([*compiled, None])
            limited = chance.random() < 0.3 and one is not None and one.backend_name != "brute_force"
            started = None if one is None else one.start(max_tokens=6 if limited else None)
            batch.put(row, started)
            twins[row] = None if started is None else started.fork()
        elif what == "advance":
            tokens = [chance.choice(expected(twin) or [END]) for twin in twins]
            chosen: Any = tokens if chance.random() < 0.5 else {row: tokens[row] for row in chance.sample(range(6), 3)}
            batch.advance(chosen)
            for row in chosen if isinstance(chosen, dict) else range(6):
                twin = twins[row]
                if twin is not None and not twin.is_finished():
                    twin.advance(tokens[row])
        elif what == "rollback":
            counts = {row: chance.randrange(len(twin.tokens) + 1) for row, twin in enumerate(twins) if twin is not None}
            batch.rollback([counts.get(row, 0) for row in range(6)] if chance.random() < 0.5 else counts)
            for row, count in counts.items():
                twins[row].rollback(count)  # type: ignore[union-attr]
        else:
            parents = [chance.randrange(6) for _ in range(6)]
            batch.reorder(parents)
            twins = [twin and twin.fork() for twin in (twins[parent] for parent in parents)]
        happened["finished"] += sum(batch.finished())
        out = chance.choice([None, own])
        filled = batch.fill_async(out).result() if chance.random() < 0.5 else batch.fill(out)
        assert filled is (batch.masks if out is None else own)
        for row, twin in zip(filled, twins, strict=True):
            assert masks.mask_to_ids(row).tolist() == expected(twin)
    assert min(happened.values()) > 5, happened


def test_all_rows_move_or_none() -> None:
    batch = BatchMatcher(VOCAB, rows=3)
    ab = tokdfa.compile(tokdfa.Regex("ab*"), VOCAB)
    batch.put(0, ab.start())
    batch.put(2, ab.start())
    before = batch.fill().copy()
    with pytest.raises(TokenRefused, match="token 98 is not allowed: row 2: its bytes b'b' cannot come next"):
        batch.advance([ord("a"), ord("z"), ord("b")])
    assert np.array_equal(batch.fill(), before)
    batch.advance({0: ord("a")})
    batch.advance({0: END})
    batch.advance({0: END, 1: 3})  # an end token again, and anything without a constraint
    assert batch.finished() == [True, False, False]
    with pytest.raises(TokenRefused, match="row 0"):
        batch.advance({0: ord("a")})


def test_taking_back_moves_all_rows_or_none() -> None:
    batch = BatchMatcher(VOCAB, rows=3)
    ab = tokdfa.compile(tokdfa.Regex("ab*"), VOCAB)
    batch.put(0, ab.start())
    batch.put(2, ab.start())
    batch.advance([97, 0, 97])
    with pytest.raises(ArgumentError, match="row 2 must be at least 0 and at most 1, not 9"):
        batch.rollback({0: 1, 2: 9})
    with pytest.raises(ArgumentError, match="counts: 2 for 3 rows"):
        batch.rollback([1, 0])
    assert [matcher and matcher.tokens for matcher in batch] == [(97,), None, (97,)]
    batch.rollback([1, 0, 0])
    assert [matcher and matcher.tokens for matcher in batch] == [(), None, (97,)]
    assert None in batch
    assert batch[2] in batch


def test_changes_wait_until_masks_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller goes on at once, and what it then changes does not show in the masks under way."""
    batch = BatchMatcher(VOCAB, rows=1)
    batch.put(0, tokdfa.compile(tokdfa.Regex("ab"), VOCAB, "brute_force").start())
    go, real = threading.Event(), BruteForceMatcher._fill

    def slow(self: Any, state: int, out: Any) -> None:
        assert go.wait(60)
        real(self, state, out)

    monkeypatch.setattr(BruteForceMatcher, "_fill", slow)
    filled = batch.fill_async()
    assert not filled.done()
    threading.Timer(0.05, go.set).start()
    batch.advance([ord("a")])
    assert filled.done(), "advance waited"
    assert masks.mask_to_ids(filled.result()[0]).tolist() == [ord("a"), TOKENS.index(b"ab")]
    assert masks.mask_to_ids(batch.fill()[0]).tolist() == [ord("b")]


def test_a_child_of_a_fork_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = BatchMatcher(VOCAB, rows=1)
    batch.put(0, tokdfa.compile(tokdfa.Regex("ab"), VOCAB, "brute_force").start())
    batch.fill_async().result(30)
    go, real = threading.Event(), BruteForceMatcher._fill

    def slow(self: Any, state: int, out: Any) -> None:
        assert go.wait(60)
        real(self, state, out)

    monkeypatch.setattr(BruteForceMatcher, "_fill", slow)
    filled = batch.fill_async()  # the child has no thread that would ever end it
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            monkeypatch.undo()
            batch.advance([ord("a")])
            os._exit(masks.mask_to_ids(batch.fill_async().result(20)[0]).tolist() != [ord("b")])
        finally:
            os._exit(1)
    go.set()
    filled.result(60)
    assert os.waitpid(child, 0)[1] == 0


def test_masks_of_torch_and_those_that_do_not_fit() -> None:
    torch = pytest.importorskip("torch")
    batch = BatchMatcher(VOCAB, rows=2)
    batch.put(0, tokdfa.compile(tokdfa.Regex("a"), VOCAB).start())
    out = torch.zeros((2, masks.mask_words(VOCAB.size)), dtype=torch.int32)
    assert batch.fill_async(out).result() is out
    logits = torch.zeros(2, VOCAB.size)
    tokdfa.apply_masks(logits, out)
    assert torch.isfinite(logits).sum(1).tolist() == [1, VOCAB.size]
    for wrong in (out[:1], out.long(), np.zeros((2, 99), dtype=np.int32)):
        with pytest.raises(ArgumentError, match="out"):
            batch.fill_async(wrong)


def test_errors() -> None:
    batch = BatchMatcher(VOCAB, rows=2)
    matcher = tokdfa.compile(tokdfa.Regex("a+"), VOCAB).start()
    batch.put(0, matcher)
    batch.put(0, matcher)
    with pytest.raises(ArgumentError, match=r"matcher\.fork"):
        batch.put(1, matcher)
    with pytest.raises(ArgumentError, match="257 tokens"):
        batch.put(1, tokdfa.compile(tokdfa.Regex("a+"), tokdfa.load_tokenizer("bytes")).start())
    with pytest.raises(ArgumentError, match=r"CompiledConstraint\.start"):
        batch.put(1, "a+")  # type: ignore[arg-type]
    for call, message in (
        (lambda: batch.put(2, None), "row must be at least 0 and at most 1, not 2"),
        (lambda: batch.advance([1]), "tokens: 1 for 2 rows"),
        (lambda: batch.reorder([0]), "parents: 1 for 2 rows"),
        (lambda: BatchMatcher(VOCAB, 0), "rows must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_one_comes_when_all_are_done(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    compiled = tokdfa.compile(tokdfa.Regex("[ab]+"), VOCAB, "brute_force")
    matchers = [compiled.start() for _ in range(5)]
    matchers.append(matchers[0])  # twice the same matcher: one thread fills both rows
    seen: dict[int, set[int]] = {}
    real = type(matchers[0])._fill

    def noted(self: Any, state: Any, out: Any) -> None:
        seen.setdefault(id(self), set()).add(threading.get_ident())
        if self is matchers[2]:
            raise KeyError("2")
        real(self, state, out)

    monkeypatch.setattr(type(matchers[0]), "_fill", noted)
    out = masks.allocate_mask(VOCAB.size, len(matchers))
    with pytest.raises(KeyError):
        fill_masks(matchers, out, threads)
    assert len(seen) == 5
    assert all(len(of_matcher) == 1 for of_matcher in seen.values())
    one = out[0].copy()
    assert one.any()
    assert [np.array_equal(row, one) for row in out] == [True, True, False, True, True, True]


def test_threads_make_new_masks_at_the_same_time_unless_they_share_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks that wait for another one: two threads let them pass, one thread does not."""
    barrier = threading.Barrier(2)

    class Waiting(spending):
        def __enter__(self) -> Self:
            barrier.wait(0.5)
            return super().__enter__()

    for backend, meet in (("brute_force", True), ("pushdown_trie", False)):
        compiled = [tokdfa.compile(tokdfa.Regex(f"[ab]{{{n}}}"), VOCAB, backend) for n in (1, 2)]
        if meet:
            monkeypatch.setattr(BruteForceMatcher, "_fill", lambda *given: barrier.wait(60))
        else:
            for each in compiled:
                each.working = Waiting(each.working.budget, "a mask")
        pair = [each.start() for each in compiled]
        with nullcontext() if meet else pytest.raises(threading.BrokenBarrierError):
            fill_masks(pair, masks.allocate_mask(VOCAB.size, 2), threads=2)
