"""A process that makes a first mask and tells the time of each phase (`tokdfa.lab.kinds.cold_start`).

It reads the pickled arguments of `measure` from standard input and writes a pickled answer to standard output, an
`Answer` or a Failure. What it imports before its first reading is as little as possible: that is the phase ``python``.
"""

from __future__ import annotations

import time

_BEGAN = time.process_time_ns(), time.monotonic_ns()

import pickle  # noqa: E402
import sys  # noqa: E402
from itertools import pairwise  # noqa: E402
from typing import TYPE_CHECKING, Any, NamedTuple  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.constraint import Constraint

#: In the order of a process's life; the last comes after the first mask.
PHASES = ("python", "import", "tokenizer", "backend", "compile", "mask", "again")


class Answer(NamedTuple):
    """Nanoseconds of each phase, of the processor and by the clock."""

    processor: list[int]
    clock: list[int]


def measure(
    began: int, tokenizer: str, constraint: Constraint, backend: str, options: dict[str, Any], stored: Path, loads: bool
) -> Answer:
    """Time each phase. `began`: when the process was started, by `time.monotonic_ns`.

    Pickles the compiled constraint to the file `stored` in the end. With `loads` reads it from there and makes a mask,
    in place of the phases from ``backend`` on. Raises what loading, compiling and masks raise.
    """
    stamps = [(0, began), _BEGAN]

    def stamp() -> None:
        stamps.append((time.process_time_ns(), time.monotonic_ns()))

    from tokdfa.backends.registry import backend_class
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    engine = backend_class(backend)
    stamp()
    vocab = load_tokenizer(tokenizer).vocabulary
    assert vocab.trie.size
    stamp()
    if loads:
        _fill_mask(pickle.loads(stored.read_bytes()))
        stamp()
    else:
        made = engine(vocab, **options)
        stamp()
        compiled = made.compile(constraint)
        stamp()
        _fill_mask(compiled)
        stamp()
        _fill_mask(made.compile(constraint))
        stamp()
        stored.write_bytes(pickle.dumps(compiled))
    spent = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(stamps)]
    return Answer([processor for processor, _ in spent], [clock for _, clock in spent])


def _fill_mask(compiled: CompiledConstraint) -> None:
    from tokdfa.mask import allocate_mask

    compiled.start().fill_mask(allocate_mask(compiled.vocab.size))


def main() -> None:
    """Read an order, carry it out, and answer."""
    order = pickle.load(sys.stdin.buffer)
    try:
        answer: Any = tuple(measure(*order))
    except Exception as error:
        from tokdfa.lab.measure.limits import failure_of

        answer = failure_of(error)
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
