"""Compiling in the background: `compile_async`, and `ConstraintCache`, which keeps what was compiled.

Each request has a future of its own (`concurrent.futures.Future`; ``asyncio.wrap_future`` makes it one of asyncio).
Requests for equal constraints share one compilation. `cancel()` of a future gives up its own request only; with the
last one the compilation ends, too: at once if it waits for a thread, else where the strategy counts its work next,
which is every few milliseconds. The peers, whose work is not counted, run to their end.

What is *equal* is decided by content: the constraint without its label, the token bytes and the tokenizer, the backend
and all its options.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import backend_for
from tokdfa.core import budget
from tokdfa.core.arguments import as_integer
from tokdfa.core.locks import new_lock
from tokdfa.errors import ArgumentError, a_type

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Threads that compile unless another number is asked for.
THREADS = min(4, os.cpu_count() or 1)


class ConstraintCache:
    """Compiled constraints by content, the least recently used dropped first. Safe to share between threads.

    `max_count`: how many are kept; 0 keeps none, but equal requests still share a compilation. `max_bytes`: of their
    tables together, as their ``sizes["bytes"]`` say it whenever one is added (tables grow as texts are read); a peer
    that does not say it counts 0, and what constraints share by their vocabulary counts for each. `threads`: how many
    compile at once. `hits`, `misses`, `evictions` count; a request that joins a compilation under way is a hit.
    Failures are not kept.
    """

    def __init__(self, max_count: int = 256, max_bytes: int = 1 << 30, threads: int = THREADS) -> None:
        self.max_count = as_integer(max_count, "max_count", 0)
        self.max_bytes = as_integer(max_bytes, "max_bytes", 0)
        self._threads = as_integer(threads, "threads", 1)
        self._lock = new_lock()
        self._kept: OrderedDict[Hashable, CompiledConstraint] = OrderedDict()
        self._under_way: dict[Hashable, _Compilation] = {}
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        self.hits = self.misses = self.evictions = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<ConstraintCache: {len(self)} of {self.max_count}, {self.nbytes} of {self.max_bytes} bytes>"

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept, as it is now."""
        with self._lock:
            return sum(map(_size_of, self._kept.values()))

    def compile(
        self, constraint: Constraint, vocab: Vocabulary | Tokenizer, backend: str | None = None, **options: Any
    ) -> CompiledConstraint:
        """As `tokdfa.compile`, from what is kept where it can be. Waits, for a compilation under way too."""
        future = self.compile_async(constraint, vocab, backend, **options)
        try:
            return future.result()
        finally:
            future.cancel()  # if waiting was interrupted

    def compile_async(
        self, constraint: Constraint, vocab: Vocabulary | Tokenizer, backend: str | None = None, **options: Any
    ) -> Future[CompiledConstraint]:
        """A future of the compiled constraint; done already if it is kept.

        Raises at once for arguments that no compilation could take (a backend or option that does not exist, a kind of
        constraint that the backend does not have); everything else is raised by the future.
        """
        strategy = backend_for(constraint, vocab, backend, options)
        key = _key_of(constraint, strategy)
        future: Future[CompiledConstraint] = Future()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                self.hits += 1
                future.set_result(kept)
                return future
            workers = self._workers()
            found = self._under_way.get(key)
            if found is None:
                self.misses += 1
                found = self._under_way[key] = _Compilation(strategy, constraint)
                found.job = workers.submit(self._run, key, found)
            else:
                self.hits += 1
            found.waiting.append(future)
        future.add_done_callback(partial(self._leave, key, found))
        return future

    def clear(self) -> None:
        """Drop all that is kept; compilations under way go on, and are kept when they are done."""
        with self._lock:
            self._kept.clear()

    def _workers(self) -> ThreadPoolExecutor:
        """The threads; new ones in the child of a fork, which has none, nor what they were at."""
        if self._pool is None or self._pool[0] != os.getpid():
            self._under_way.clear()
            self._pool = os.getpid(), ThreadPoolExecutor(self._threads, thread_name_prefix="tokdfa-compile")
        return self._pool[1]

    def _run(self, key: Hashable, compilation: _Compilation) -> None:
        try:
            compiled = compilation.run()
        except BaseException as error:
            with self._lock:
                waiting = self._close(key, compilation)
            for future in waiting:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            return
        with self._lock:
            waiting = self._close(key, compilation)
            self._keep(key, compiled)
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(compiled)

    def _close(self, key: Hashable, compilation: _Compilation) -> list[Future[CompiledConstraint]]:
        """Who waits for a compilation; nobody can join it any more."""
        if self._under_way.get(key) is compilation:
            del self._under_way[key]
        return compilation.waiting

    def _keep(self, key: Hashable, compiled: CompiledConstraint) -> None:
        self._kept[key] = compiled
        sizes = {name: _size_of(one) for name, one in self._kept.items()}
        total = sum(sizes.values())
        while self._kept and (len(self._kept) > self.max_count or total > self.max_bytes):
            total -= sizes[self._kept.popitem(last=False)[0]]
            self.evictions += 1

    def _leave(self, key: Hashable, compilation: _Compilation, future: Future[CompiledConstraint]) -> None:
        """A future is done; if it was cancelled, and nobody else waits, the compilation ends."""
        if not future.cancelled():
            return
        with self._lock:
            if any(not other.cancelled() for other in compilation.waiting):
                return
            self._close(key, compilation)
        compilation.stop()


class _Compilation:
    """One compilation, who waits for it, and how to end it."""

    def __init__(self, strategy: Backend, constraint: Constraint) -> None:
        self._strategy, self._constraint = strategy, constraint
        self._stopped = threading.Event()
        self.job: Future[None] | None = None
        self.waiting: list[Future[CompiledConstraint]] = []

    def run(self) -> CompiledConstraint:
        """Compile. Raises CancelledError if it is stopped."""
        what = f"compiling {self._constraint.kind} {self._constraint.name!r}"
        with budget.spending(self._strategy.compile_budget, what, self._stopped):  # the outermost account rules
            return self._strategy.compile(self._constraint)

    def stop(self) -> None:
        self._stopped.set()
        if self.job is not None:
            self.job.cancel()


def _size_of(compiled: CompiledConstraint) -> int:
    return compiled.sizes.get("bytes", 0)


def _key_of(constraint: Constraint, strategy: Backend) -> Hashable:
    """What equal requests have in common."""
    tokenizer = strategy.vocab.tokenizer
    # a tokenizer that was made by hand has no fingerprint, and is equal to itself only
    merges = None if tokenizer is None else getattr(tokenizer, "fingerprint", tokenizer)
    return constraint, strategy.vocab.fingerprint, merges, strategy.name, tuple(sorted(strategy.settings.items()))


#: Keeps nothing: what `compile_async` compiles with if it is given no cache.
_uncached = ConstraintCache(max_count=0)


def compile_async(
    constraint: Constraint,
    vocab: Vocabulary | Tokenizer,
    backend: str | None = None,
    *,
    cache: ConstraintCache | None = None,
    **options: Any,
) -> Future[CompiledConstraint]:
    """`tokdfa.compile` on a thread of its own: a future of the compiled constraint, which `cancel()` ends.

    `cache`: where it is looked for first and kept; None: nowhere. Raises at once for arguments that no compilation
    could take; the future raises what `tokdfa.compile` raises, and CancelledError.
    """
    if cache is not None and not isinstance(cache, ConstraintCache):
        raise ArgumentError(f"cache is a tokdfa.ConstraintCache, not {a_type(cache)}")
    return (_uncached if cache is None else cache).compile_async(constraint, vocab, backend, **options)
