"""A process that makes a first mask and tells the processor time of each phase (`tokdfa.lab.kinds.cold_start`).

It reads the pickled arguments of `measure` from standard input and writes a pickled answer, its result or a Failure, to
standard output. What it imports before its first reading is as little as possible: that is the phase ``python``.
"""

from __future__ import annotations

import time

_BEGAN = time.process_time_ns()

import pickle  # noqa: E402
import sys  # noqa: E402
from itertools import pairwise  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint

#: In the order of a process's life; the last comes after the first mask.
PHASES = ("python", "import", "tokenizer", "code", "first", "again")


def measure(
    tokenizer: str, constraint: Constraint, backend: str, options: dict[str, Any], stored: Path, loads: bool
) -> list[int]:
    """Nanoseconds of processor time of each phase, all threads. Raises what loading, compiling and masks raise.

    Pickles the compiled constraint to the file `stored` in the end. With `loads` reads it from there for the phase
    ``first``, which is the last one then.
    """
    stamps = [0, _BEGAN]

    from tokdfa.backends.registry import backend_class
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    engine = backend_class(backend)
    stamps.append(time.process_time_ns())
    vocab = load_tokenizer(tokenizer).vocabulary
    assert vocab.trie.size
    stamps.append(time.process_time_ns())
    _make_mask(engine(load_tokenizer("bytes").vocabulary, **options), constraint)
    stamps.append(time.process_time_ns())
    if loads:
        _fill_mask(pickle.loads(stored.read_bytes()))
        stamps.append(time.process_time_ns())
    else:
        made = engine(vocab, **options)
        for _ in ("first", "again"):
            compiled = _make_mask(made, constraint)
            stamps.append(time.process_time_ns())
        stored.write_bytes(pickle.dumps(compiled))
    return [after - before for before, after in pairwise(stamps)]


def _make_mask(backend: Backend, constraint: Constraint) -> CompiledConstraint:
    compiled = backend.compile(constraint)
    _fill_mask(compiled)
    return compiled


def _fill_mask(compiled: CompiledConstraint) -> None:
    from tokdfa.mask import allocate_mask

    compiled.start().fill_mask(allocate_mask(compiled.vocab.size))


def main() -> None:
    """Read an order, carry it out, and answer."""
    from tokdfa.lab.measure.limits import failure_of

    order = pickle.load(sys.stdin.buffer)
    try:
        answer: Any = measure(*order)
    except Exception as error:
        answer = failure_of(error)
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
