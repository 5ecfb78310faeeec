"""Several decoding loops at once, over one model: rows in common batches, and kept for whoever asks again.

A loop asks a model for a few rows and goes on when it has them. `run_together` runs each loop in a thread, but one at a
time: a loop runs until it asks for a row that is not kept. When all wait, the model is asked for all their prefixes in
one batch. So the model, which takes little longer for eight rows than for one, is asked rarely; no loop is timed while
another one runs; and what a loop does depends on its rows only, not on who else asks.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from tokdfa.errors import ModelError
from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.models.base import LogProbabilities
    from tokdfa.models.cache import CachedModel

T = TypeVar("T")


class _Stopped(BaseException):
    """Ends the thread of a loop whose rows will not come."""


class _Loop(LanguageModel, Generic[T]):
    """A loop in its thread, and the model that it sees. `prefixes`: what it waits for."""

    rows_are_checked = True

    def __init__(self, kept: CachedModel, work: Callable[[LanguageModel], T]) -> None:
        super().__init__(kept.name, kept.vocabulary)
        self.context_limit, self.start_tokens = kept.context_limit, kept.start_tokens
        self.prefixes: Sequence[tuple[int, ...]] = ()
        self.found: T | BaseException | None = None
        self.is_over = self._is_stopped = False
        self._kept, self._work = kept, work
        self._ours, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def fingerprint(self) -> str:
        return self._kept.fingerprint

    def go_on(self) -> None:
        """Run until rows are missing, or to the end."""
        self._ours.release()
        self._theirs.acquire()

    def stop(self) -> None:
        """End the thread, wherever it waits."""
        self._is_stopped = True
        self._ours.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._wait()
            self.found = self._work(self)
        except BaseException as error:  # whoever reads the result raises it
            self.found = error
        finally:
            self.is_over = True
            self._theirs.release()

    def _wait(self) -> None:
        self._ours.acquire()
        if self._is_stopped:
            raise _Stopped

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        if not self._kept.holds(prefixes):
            self.prefixes = prefixes
            self._theirs.release()
            self._wait()
        return self._kept.log_probabilities(prefixes)


def run_together(kept: CachedModel, works: Sequence[Callable[[LanguageModel], T]]) -> list[T | BaseException]:
    """What each of `works` returns, or raises, when it is called with a model that answers as `kept` does.

    Rows that leave `kept` before they are read are computed again, alone. A batch in which the model finds a fault is
    asked for again loop by loop, so that the fault is that of a loop.
    """
    loops = [_Loop(kept, work) for work in works]
    active = loops
    try:
        while active:
            for loop in active:
                loop.go_on()
            active = [loop for loop in active if not loop.is_over]
            wanted = {prefix for loop in active for prefix in loop.prefixes}
            try:
                kept.log_probabilities(sorted(wanted))
            except ModelError:
                continue
    finally:
        for loop in loops:
            if not loop.is_over:
                loop.stop()
    return [loop.found for loop in loops]  # type: ignore[misc]  # a loop that is over has found something
