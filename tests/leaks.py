"""Constraints made, used and dropped by the thousand: does memory stay flat?

    python -m tests.leaks --constraints 10000

Regexes and choices, by `token_index` lazy and eager, each another one; masks are made, tokens taken, taken back and
forked. A line for every 1,000 constraints says what the process has in memory and what is allocated.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import random
import sys
from typing import TYPE_CHECKING

import psutil

import tokdfa
from tokdfa.backends.token_index import TokenIndex

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: What a constraint may leave behind, in bytes: caches that level off later.
ALLOWED = 100


class _Mallinfo(ctypes.Structure):
    """Ten counts of glibc, from 2.33 on."""

    _fields_ = (("counts", ctypes.c_size_t * 10),)


#: Of these: the bytes of mapped blocks, and of all others.
_MAPPED, _IN_USE = 4, 7


def allocated() -> int:
    """Bytes that are allocated: by the sanitizer's count where there is one, else by glibc's and Python's."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "__sanitizer_get_current_allocated_bytes"):
        count = library["__sanitizer_get_current_allocated_bytes"]
        count.restype = ctypes.c_size_t
        return int(count())
    mallinfo = library["mallinfo2"]
    mallinfo.restype = _Mallinfo
    counts = mallinfo().counts
    return int(counts[_MAPPED] + counts[_IN_USE] + 64 * sys.getallocatedblocks())


def resident() -> int:
    """Bytes of the process in memory."""
    return int(psutil.Process().memory_info().rss)


def constraint(number: int) -> tokdfa.Constraint:
    """A constraint that no other number has."""
    if number % 2:
        return tokdfa.Choice([f"{number} apples", f"{number} pears", "none", f"{number:x}"])
    return tokdfa.Regex(rf"({number}|[a-z]{{1,{number % 7 + 2}}})(, [A-Z]?\d+)*")


def use(backend: TokenIndex, number: int) -> None:
    """Make a constraint, walk a bit, and drop everything."""
    rng = random.Random(number)
    compiled = backend.compile(constraint(number))
    matcher = compiled.start()
    mask = tokdfa.allocate_mask(backend.vocab.size)
    for step in range(6):
        matcher.fill_mask(mask)
        allowed = [token for token in tokdfa.mask_to_ids(mask).tolist() if token not in backend.vocab.end_token_set]
        if not allowed:
            break
        matcher.advance(rng.choice(allowed))
        if step % 3 == 2:
            matcher.rollback(1)
            matcher = matcher.fork()
    matcher.shortest_completion()


def backends(vocabulary: Vocabulary) -> list[TokenIndex]:
    return [TokenIndex(vocabulary, lazy=True), TokenIndex(vocabulary)]


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--constraints", type=int, default=10_000)
    parser.add_argument("--tokenizer", default="mistral-v1")
    chosen = parser.parse_args()
    made = backends(tokdfa.load_tokenizer(chosen.tokenizer).vocabulary)
    for number in range(chosen.constraints):
        if number % 1_000 == 0:
            show(number)
        use(made[number // 2 % len(made)], number)
    show(chosen.constraints)


def show(number: int) -> None:
    """Print a line."""
    print(f"{number:6}: {resident() / 1e6:8.1f} MB in memory, {allocated() / 1e6:8.2f} MB allocated", flush=True)


if __name__ == "__main__":
    main()
