"""Nanoseconds a trie node of walks whose steps are given in different ways: ``python -m tests.vocabulary.step_times``.

All walks follow the automaton of a JSON string over the tokens of a tokenizer, by a table that has all its rows; only
how a step is called differs. The step in C is compiled with the C compiler of the PATH. Minima of some runs, in turns.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_lazy
from tokdfa.vocabulary.byte_table import walk, walk_with_address
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

#: A JSON string: nearly everything is allowed.
PATTERN = r'[^"\\\x00-\x1f]*'
SOURCE = """
#include <stdint.h>
struct table { const int32_t *transitions; const uint8_t *byte_class; };
int64_t step(void *user, int64_t state, int64_t byte) {
    const struct table *table = user;
    return table->transitions[state + table->byte_class[byte]];
}
"""
STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Table(ctypes.Structure):
    _fields_ = (("transitions", ctypes.c_void_p), ("byte_class", ctypes.c_void_p))


def compiled_step(folder: str) -> ctypes.CDLL:
    """The library with the step in C."""
    source, library = Path(folder, "step.c"), Path(folder, "step.so")
    source.write_text(SOURCE)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def time_steps(tokenizer: str, folder: str, repeats: int) -> dict[str, float]:
    """Nanoseconds a node, by how the step is given."""
    vocab = load_tokenizer(tokenizer).vocabulary
    trie, table, mask = vocab.trie, compile_lazy(Regex(PATTERN)), masks.allocate_mask(vocab.size)
    nodes = walk(trie, table, 0, mask).nodes_visited  # the rows are filled
    expected, mask[:] = mask.copy(), 0
    transitions, classes = table.transitions, table.byte_class
    library = compiled_step(folder)
    given = Table(transitions.ctypes.data, classes.ctypes.data)
    in_c = ctypes.cast(library.step, ctypes.c_void_p).value
    rows, class_of = transitions.tolist(), classes.tolist()
    function = STEP(lambda user, state, byte: rows[state + class_of[byte]])
    in_python = ctypes.cast(function, ctypes.c_void_p).value
    assert in_c
    assert in_python
    ways: dict[str, Callable[[], object]] = {
        "in the loop": lambda: walk(trie, table, 0, mask),
        "C, by its address": lambda: walk_with_address(trie, in_c, 0, mask, ctypes.addressof(given)),
        "Python through ctypes": lambda: walk_with_address(trie, in_python, 0, mask),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, do in ways.items():
            began = time.perf_counter_ns()
            do()
            least[name] = min(least[name], (time.perf_counter_ns() - began) / nodes)
            assert np.array_equal(mask, expected)
            mask[:] = 0
    return least


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", default="tekken")
    parser.add_argument("--repeats", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, nanoseconds in time_steps(chosen.tokenizer, folder, chosen.repeats).items():
            print(f"{name:22} {nanoseconds:8.2f} ns a node")
