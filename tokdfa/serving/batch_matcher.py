"""`BatchMatcher`: the matchers of a batch, and their masks in one buffer, filled while the model works.

    batch = BatchMatcher(vocabulary, rows=8, threads=4)
    batch.put(0, compiled.start())                # when a request joins
    while ...:
        filled = batch.fill_async()               # threads write masks, without the GIL where the work is long,
        logits = model(...)                       # ... while the model works
        apply_masks(logits, filled.result())
        batch.advance(sample(logits))

A *row* is a place of the batch; it holds a matcher, or none. The mask of a row without one has all bits, as such a
sequence is not constrained. The mask of a matcher that is finished has its end tokens, so that a batch that goes on
until its last sequence ends can sample something harmless there; taking that changes nothing.
"""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.backends.batch import fill_rows
from tokdfa.backends.matcher import Matcher
from tokdfa.core.arguments import as_integer, as_sequence, as_token
from tokdfa.errors import ArgumentError, TokenRefused, a_type, counted
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary


class BatchMatcher:
    """Up to `rows` matchers for one vocabulary, and a buffer for their masks: int32, shape (rows, ceil(V/32)).

    `threads`: how many threads fill a buffer. The methods are for one thread, that of the loop; while a `fill_async` is
    under way, those that change matchers wait for it. Its own thread ends with it.
    """

    def __init__(self, vocab: Vocabulary | Tokenizer, rows: int, threads: int = 1) -> None:
        self.vocab = as_vocabulary(vocab)
        self._threads = as_integer(threads, "threads", 1)
        self._matchers: list[Matcher | None] = [None] * as_integer(rows, "rows", 1)
        #: The masks of the last fill that was given no buffer.
        self.masks: Mask = masks.allocate_mask(self.vocab.size, len(self._matchers))
        self._all = masks.mask_from_ids(range(self.vocab.size), self.vocab.size)
        self._filling: Future[Any] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._matchers)

    def __getitem__(self, row: int) -> Matcher | None:
        """The matcher of a row."""
        self._wait()
        return self._matchers[self._row(row)]

    def __iter__(self) -> Iterator[Matcher | None]:
        """The matchers of all rows."""
        self._wait()
        return iter([*self._matchers])

    def put(self, row: int, matcher: Matcher | None) -> None:
        """Give a row a matcher, or None for a sequence without a constraint.

        A matcher belongs to one row: ArgumentError for one that has another row, and for another vocabulary's.
        """
        self._wait()
        row = self._row(row)
        if matcher is not None:
            if not isinstance(matcher, Matcher):
                raise ArgumentError(f"matcher is {a_type(matcher)}; pass what `CompiledConstraint.start` gives")
            if matcher.vocab.size != self.vocab.size:
                raise ArgumentError(
                    f"matcher: its vocabulary has {matcher.vocab.size} tokens, that of the batch {self.vocab.size}"
                )
            if any(other is matcher for k, other in enumerate(self._matchers) if k != row):
                raise ArgumentError("matcher: another row has it already; give this one matcher.fork()")
        self._matchers[row] = matcher

    def reorder(self, parents: Sequence[int]) -> None:
        """Row k goes on from where row ``parents[k]`` was, as after a step of beam search; forks where rows double."""
        chosen = [self._row(parent, "parents") for parent in as_sequence(parents, "parents", "row numbers")]
        if len(chosen) != len(self):
            raise ArgumentError(f"parents: {len(chosen)} for {counted(len(self), 'row')}; each row has one")
        self._wait()
        taken: set[int] = set()
        found: list[Matcher | None] = []
        for parent in chosen:
            matcher = self._matchers[parent]
            found.append(matcher.fork() if matcher is not None and parent in taken else matcher)
            taken.add(parent)
        self._matchers = found

    def advance(self, tokens: Mapping[int, int] | Sequence[int]) -> None:
        """Append a token to each row, or with a mapping of row -> token to those rows.

        Rows without a matcher take anything, finished ones their end tokens. All rows or none: if a token is refused,
        TokenRefused names its row, and no row has moved.
        """
        self._wait()
        pairs = [(row, as_token(token)) for row, token in self._by_row(tokens, "tokens", "token ids")]
        moved: list[Matcher] = []
        for row, token in pairs:
            matcher = self._matchers[row]
            if matcher is None:
                continue
            ended = matcher.is_finished()
            try:
                matcher.advance(token)
            except BaseException as error:
                for other in moved:
                    other.rollback(1)
                if isinstance(error, TokenRefused):
                    raise TokenRefused(token, f"row {row}: {error.reason}") from None
                raise
            if not ended:  # what follows an end token is not taken
                moved.append(matcher)

    def rollback(self, counts: Mapping[int, int] | Sequence[int]) -> None:
        """Take so many tokens back from each row, or with a mapping of row -> count from those rows.

        All rows or none: if a row has taken fewer, ArgumentError names it, and no row has moved.
        """
        self._wait()
        pairs: list[tuple[Matcher, int]] = []
        for row, count in self._by_row(counts, "counts", "numbers of tokens"):
            matcher = self._matchers[row]
            number = as_integer(count, f"counts: row {row}", 0, None if matcher is None else len(matcher.tokens))
            if matcher is not None:
                pairs.append((matcher, number))
        for matcher, number in pairs:
            matcher.rollback(number)

    def finished(self) -> list[bool]:
        """By row, whether its text has ended; False for a row without a matcher."""
        self._wait()
        return [matcher is not None and matcher.is_finished() for matcher in self._matchers]

    def fill(self, out: Any = None) -> Any:
        """Write the masks of all rows into `out`, or the batch's own buffer, and return it.

        `out`: int32, C-contiguous, shape (rows, words), a numpy array or a torch tensor on the CPU (pinned, too).
        Raises ArgumentError if it does not fit, and what a matcher raises.
        """
        self._wait()
        return self._fill(self._fitting(out), out)

    def fill_async(self, out: Any = None) -> Future[Any]:
        """As `fill`, on another thread: a future of the buffer."""
        self._wait()
        rows = self._fitting(out)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="tokdfa-batch")
            weakref.finalize(self, self._pool.shutdown, wait=False)
        self._filling = self._pool.submit(self._fill, rows, out)
        return self._filling

    def _by_row(self, values: Any, name: str, of: str) -> list[tuple[int, Any]]:
        """What is given for each row, or in a mapping for some."""
        given: list[tuple[Any, Any]]
        if hasattr(values, "items"):
            given = list(values.items())
        else:
            given = list(enumerate(as_sequence(values, name, of)))
            if len(given) != len(self):
                rows = counted(len(self), "row")
                raise ArgumentError(f"{name}: {len(given)} for {rows}; a mapping names the rows it is for")
        pairs = [(self._row(row, name), value) for row, value in given]
        if len({row for row, _ in pairs}) < len(pairs):
            raise ArgumentError(f"{name}: a row stands there twice")
        return pairs

    def _fitting(self, out: Any) -> Mask:
        return self.masks if out is None else masks.check_mask(out, self.vocab.size, len(self), "out")

    def _fill(self, rows: Mask, out: Any) -> Any:
        fill_rows(self._matchers, rows, self._threads)
        for k, matcher in enumerate(self._matchers):
            if matcher is None:
                rows[k] = self._all
        return self.masks if out is None else out

    def _wait(self) -> None:
        """Until nobody fills; its errors are for whoever asks the future."""
        filling, self._filling = self._filling, None
        if self._process != os.getpid():  # the child of a fork has no thread that fills
            self._process, self._pool, filling = os.getpid(), None, None
        if filling is not None:
            filling.exception()

    def _row(self, row: Any, name: str = "row") -> int:
        return as_integer(row, name, 0, len(self) - 1)
