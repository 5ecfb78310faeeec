"""Compiling in the background: one compilation for equal requests, bounds, cancelling, failures, forks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.threads import run_together
from tokdfa.backends.token_index import TokenIndex
from tokdfa.core import budget
from tokdfa.core.budget import spend
from tokdfa.errors import ArgumentError, LimitExceeded, UnknownNameError, UnsupportedConstraint
from tokdfa.serving.compiling import ConstraintCache, compile_async
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint

#: 2**40 states.
ENDLESS = "(a|b)*a(a|b){40}"
BYTES = tokdfa.load_tokenizer("bytes")


class Gate:
    """Compilations of token_index wait here, counting work, until they may pass."""

    def __init__(self) -> None:
        self.begun, self.open, self.ended = threading.Semaphore(0), threading.Event(), threading.Semaphore(0)
        self.compiled: list[str] = []

    def compile(self, real: Any, backend: Backend, constraint: Constraint) -> CompiledConstraint:
        self.begun.release()
        try:
            while not self.open.wait(0.002):
                spend(1)
            self.compiled.append(constraint.source)
            return real(backend, constraint)
        finally:
            self.ended.release()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate, real = Gate(), TokenIndex._compile
    monkeypatch.setattr(TokenIndex, "_compile", lambda self, constraint: gate.compile(real, self, constraint))
    yield gate
    gate.open.set()


def test_equal_requests_share_one_compilation_each_with_a_future_of_its_own(gate: Gate) -> None:
    cache = ConstraintCache()
    again = Vocabulary([BYTES.vocabulary.token_bytes(token) for token in range(256)] + [b""], [256], name="other")
    alone = Vocabulary([BYTES.vocabulary.token_bytes(token) for token in range(256)] + [b""], [256])
    futures = [cache.compile_async(tokdfa.Regex("ab*", label=label), again) for label in ("x", "y", "")]
    futures.append(cache.compile_async(tokdfa.Regex("ab*"), alone))
    others = [
        cache.compile_async(tokdfa.Regex("ab*"), BYTES),  # with a tokenizer
        cache.compile_async(tokdfa.Regex("ab*", flags="i"), again),
        cache.compile_async(tokdfa.Regex("ab*"), again, lazy=True),
        cache.compile_async(tokdfa.Regex("ab*"), again, "tokens_dfa"),
    ]
    assert not any(future.done() for future in futures)
    gate.open.set()
    found = [future.result(60) for future in futures]
    assert len(set(map(id, found))) == 1
    assert len({id(found[0]), *(id(future.result(60)) for future in others)}) == 5
    assert (cache.hits, cache.misses, len(cache)) == (3, 5, 5)
    assert cache.compile(tokdfa.Regex("ab*"), again) is found[0]


def test_the_least_recently_used_goes_first() -> None:
    cache = ConstraintCache(max_count=2)
    compiled = [cache.compile(tokdfa.Regex(pattern), BYTES) for pattern in ("a", "b")]
    assert cache.compile(tokdfa.Regex("a"), BYTES) is compiled[0]
    cache.compile(tokdfa.Regex("c"), BYTES)
    assert (len(cache), cache.evictions) == (2, 1)
    assert cache.compile(tokdfa.Regex("a"), BYTES) is compiled[0]
    assert cache.compile(tokdfa.Regex("b"), BYTES) is not compiled[1]
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 0)


def test_bytes_are_bounded() -> None:
    sizes = {p: tokdfa.compile(tokdfa.Regex(p), BYTES).sizes["bytes"] for p in ("a", "b", "c", "[ab]{900}")}
    cache = ConstraintCache(max_bytes=sizes["a"] + sizes["b"])
    for pattern in ("a", "b", "c"):
        cache.compile(tokdfa.Regex(pattern), BYTES)
        assert cache.nbytes <= cache.max_bytes
    assert len(cache) == 2
    large = cache.compile(tokdfa.Regex("[ab]{900}"), BYTES)  # larger than all that may be kept
    assert large.sizes["bytes"] > cache.max_bytes
    assert len(cache) == 0
    assert ConstraintCache(max_count=0).compile(tokdfa.Regex("a"), BYTES).start().allows(ord("a"))


def test_tables_that_grew_count_when_the_next_is_added() -> None:
    cache = ConstraintCache()
    compiled = cache.compile(tokdfa.Regex("([a-z]+ )*"), BYTES, "pushdown_trie", shared=False)
    cache.max_bytes = cache.nbytes
    mask, matcher = tokdfa.allocate_mask(257), compiled.start()
    for token in b"some text ":
        matcher.fill_mask(mask)
        matcher.advance(token)
    assert compiled.sizes["bytes"] > cache.max_bytes
    cache.compile(tokdfa.Regex("a"), BYTES)
    assert len(cache) == 1


def test_cancelling_gives_up_one_request_and_the_last_one_ends_the_compilation(gate: Gate) -> None:
    cache = ConstraintCache(threads=1)
    first, second = (cache.compile_async(tokdfa.Regex("ab"), BYTES) for _ in range(2))
    queued = cache.compile_async(tokdfa.Regex("cd"), BYTES)
    assert gate.begun.acquire(timeout=60)
    assert queued.cancel()
    assert first.cancel()
    assert not second.done()
    assert second.cancel()
    assert gate.ended.acquire(timeout=60), "a compilation that counts its work is ended"
    assert gate.compiled == []
    third = cache.compile_async(tokdfa.Regex("ab"), BYTES)  # none that was ended is joined
    gate.open.set()
    assert third.result(60).start().allows(ord("a"))
    assert gate.compiled == ["ab"]
    for future in (first, second, queued):
        with pytest.raises(CancelledError):
            future.result()
    assert not third.cancel()


def test_one_that_is_cancelled_does_not_take_it_from_the_other(gate: Gate) -> None:
    cache = ConstraintCache()
    first, second = (cache.compile_async(tokdfa.Regex("ab"), BYTES) for _ in range(2))
    assert gate.begun.acquire(timeout=60)
    first.cancel()
    gate.open.set()
    assert second.result(60) is cache.compile(tokdfa.Regex("ab"), BYTES)


def test_compiled_code_of_a_compilation_ends_too() -> None:
    """Work that strategies count, not the gate's: far more than anybody waits for. The thread is free again."""
    cache = ConstraintCache(threads=1)
    most = {"compile_seconds": 1e6, "compile_mb": 1e6, "max_states": 10_000_000}
    future = compile_async(tokdfa.Regex(ENDLESS), BYTES, "token_index", cache=cache, **most)
    while cache._workers()._work_queue.qsize():
        time.sleep(0.001)
    time.sleep(0.2)
    assert future.cancel()
    after = cache.compile(tokdfa.Regex("ab"), BYTES)
    assert after.start().allows(ord("a"))


def test_the_budget_of_a_compilation_holds_and_the_thread_has_none_left_open() -> None:
    cache = ConstraintCache(threads=1)
    for _ in range(2):  # failures are not kept
        with pytest.raises(LimitExceeded, match="compile_seconds"):
            cache.compile(tokdfa.Regex(ENDLESS), BYTES, compile_seconds=0.01)
    assert (cache.misses, len(cache)) == (2, 0)
    assert cache._workers().submit(budget.ruling).result() is None


def test_arguments_are_refused_at_once_and_constraints_by_the_future() -> None:
    with pytest.raises(UnknownNameError, match="backend"):
        compile_async(tokdfa.Regex("a"), BYTES, "token_indx")
    with pytest.raises(UnknownNameError, match="option"):
        compile_async(tokdfa.Regex("a"), BYTES, lasy=True)
    with pytest.raises(UnsupportedConstraint, match="backends that take a grammar"):
        compile_async(tokdfa.Grammar('start: "a"'), BYTES, "token_index")
    with pytest.raises(ArgumentError):
        ConstraintCache(threads=0)
    future = compile_async(tokdfa.Regex("(a"), BYTES)
    assert isinstance(future.exception(60), tokdfa.TokdfaError)


def test_futures_are_awaited() -> None:
    async def both() -> list[CompiledConstraint]:
        cache = ConstraintCache()
        futures = [compile_async(tokdfa.Regex("a+"), BYTES, cache=cache) for _ in range(2)]
        return await asyncio.gather(*map(asyncio.wrap_future, futures))

    one, other = asyncio.run(both())
    assert one is other


def test_many_threads_ask_and_cancel() -> None:
    """Whoever does not cancel gets the constraint that was asked for."""
    cache = ConstraintCache(max_count=3, threads=2)

    def ask(number: int) -> None:
        for step in range(40):
            pattern = f"[{'abcde'[(number + step) % 5]}]x"
            future = cache.compile_async(tokdfa.Regex(pattern), BYTES)
            if (number * 7 + step) % 3 == 0 and future.cancel():
                continue
            assert future.result(60).constraint.source == pattern

    run_together([partial(ask, number) for number in range(6)])
    assert len(cache) <= 3
    assert cache.compile(tokdfa.Regex("zx"), BYTES).start().allows(ord("z"))
    assert not cache._under_way


def test_a_child_of_a_fork_compiles() -> None:
    cache = ConstraintCache(threads=1)
    cache.compile(tokdfa.Regex("ab"), BYTES)
    child = os.fork()
    if not child:
        try:
            cache.compile_async(tokdfa.Regex("abc"), BYTES).result(30)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
