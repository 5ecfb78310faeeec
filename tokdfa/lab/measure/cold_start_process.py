"""A process that makes a first mask and tells the processor time of each phase (`tokdfa.lab.kinds.cold_start`).

It reads a pickled `Order` from standard input and writes a pickled answer, phase -> nanoseconds or a Failure, to
standard output. What it imports before its first reading is as little as possible: that is the phase ``python``.
"""

from __future__ import annotations

import time

_BEGAN = time.process_time_ns()

import pickle  # noqa: E402
import sys  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from itertools import pairwise  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from tokdfa.backends.base import Backend
    from tokdfa.constraint import Constraint

#: In the order of a process's life; the last comes after the first mask.
PHASES = ("python", "import", "tokenizer", "code", "first", "again")


@dataclass(frozen=True)
class Order:
    """What a process shall do."""

    tokenizer: str
    constraint: Constraint
    backend: str
    options: dict[str, Any]


def measure(order: Order, began_ns: int) -> dict[str, int]:
    """Phase -> nanoseconds of processor time, of all threads. Raises what loading, compiling and masks raise."""
    stamps = [0, began_ns]

    from tokdfa.backends.registry import backend_class
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    engine = backend_class(order.backend)
    stamps.append(time.process_time_ns())
    vocab = load_tokenizer(order.tokenizer).vocabulary
    assert vocab.trie.size
    stamps.append(time.process_time_ns())
    _make_mask(engine(load_tokenizer("bytes").vocabulary, **order.options), order.constraint)
    stamps.append(time.process_time_ns())
    backend = engine(vocab, **order.options)
    for _ in ("first", "again"):
        _make_mask(backend, order.constraint)
        stamps.append(time.process_time_ns())
    return dict(zip(PHASES, (after - before for before, after in pairwise(stamps)), strict=True))


def _make_mask(backend: Backend, constraint: Constraint) -> None:
    from tokdfa.mask import allocate_mask

    backend.compile(constraint).start().fill_mask(allocate_mask(backend.vocab.size))


def main(began_ns: int) -> None:
    """Read an order, carry it out, and answer."""
    # under the module's own name, by which the order was pickled
    from tokdfa.lab.measure.limits import failure_of

    order = pickle.load(sys.stdin.buffer)
    try:
        answer: Any = measure(order, began_ns)
    except Exception as error:
        answer = failure_of(error)
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main(_BEGAN)
