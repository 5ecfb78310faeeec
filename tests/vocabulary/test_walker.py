"""Laws of the walker for steps of several kinds, against the recursive walk; and what a specialisation is on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokdfa
from tests.vocabulary.test_byte_table import ALPHABET
from tests.vocabulary.vocabularies import vocabularies
from tokdfa.core.jit import kernel
from tokdfa.vocabulary import walk_forms
from tokdfa.vocabulary.walker import DEAD, set_bit, specialise, write_pair

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

STATES = 4


@kernel
def _step_both(strategy, stack, depth, byte):  # type: ignore[no-untyped-def]
    """Two automata at once; a state is two numbers, the result both in one. Stops when there is no patience left."""
    first, second, patience = strategy
    if patience[0] == 0:
        return np.int64(-7)
    patience[0] -= 1
    one, other = first[stack[depth, 0], byte], second[stack[depth, 1], byte]
    if one < 0 or other < 0:
        return np.int64(DEAD)
    stack[depth + np.uint64(1), 0], stack[depth + np.uint64(1), 1] = one, other
    return np.int64(one * STATES + other)


@kernel
def write_target(targets, count, token, target):  # type: ignore[no-untyped-def]
    """The spare id has an entry, too, which means nothing."""
    targets[token] = target
    return count


_set_bits = specialise(f"{__name__}._set_bits", _step_both, set_bit)
_write_pairs = specialise(f"{__name__}._write_pairs", _step_both, write_pair)
_write_targets = specialise(f"{__name__}._write_targets", _step_both, write_target)

tables = st.lists(st.integers(-1, STATES - 1), min_size=STATES * 4, max_size=STATES * 4)


class Both:
    """The same two automata as a recogniser in Python."""

    def __init__(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> None:
        self.first, self.second = first, second

    def step(self, state: tuple[int, int], byte: int) -> tuple[int, int] | None:
        after = int(self.first[state[0], byte]), int(self.second[state[1], byte])
        return None if min(after) < 0 else after


def automaton(entries: list[int]) -> npt.NDArray[np.int64]:
    table = np.full((STATES, 256), -1, dtype=np.int64)
    table[:, list(ALPHABET)] = np.array(entries).reshape(STATES, 4)
    return table


def walk_in_steps(walk: Any, vocab: Vocabulary, both: Both, out: Any, patience: int) -> tuple[int, int, int]:
    """(what `take` counted, nodes visited, nodes skipped) of a walk that stops after every `patience` steps."""
    trie = vocab.trie
    stack = np.zeros((trie.depth_limit + 1, 2), dtype=np.int64)
    left = np.array([patience])
    position = count = visited = skipped = 0
    while True:
        position, count, seen, passed = walk(
            trie.nodes, position, trie.node_count, (both.first, both.second, left), stack, out, count
        )
        visited, skipped = visited + seen, skipped + passed
        if position >= trie.node_count:
            return count, visited, skipped
        assert left[0] == 0
        left[0] = patience


@given(vocabularies(ALPHABET), tables, tables, st.integers(1, 9))
def test_every_walk_takes_what_the_recursive_walk_allows(
    vocab: Vocabulary, first: list[int], second: list[int], patience: int
) -> None:
    """Wherever it stops in between, and whatever is done with the tokens."""
    both = Both(automaton(first), automaton(second))
    tree = walk_forms.build_tree((token, vocab.token_bytes(token)) for token in range(vocab.size))
    allowed = walk_forms.walk_recursive(tree, walk_forms.StackOfStates(both, (0, 0)))
    targets = {}
    for token in allowed:
        state: Any = (0, 0)
        for byte in vocab.token_bytes(token):
            state = both.step(state, byte)
        targets[token] = state[0] * STATES + state[1]

    words = np.zeros(vocab.size // 32 + 1, dtype=np.uint32)
    work = walk_in_steps(_set_bits, vocab, both, words, patience)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: vocab.size]
    assert set(np.flatnonzero(bits).tolist()) == allowed
    assert work[0] == 0
    assert work[1] + work[2] == vocab.trie.node_count

    tokens, found = np.empty((2, vocab.size + 1), dtype=np.int64)
    count, *others = walk_in_steps(_write_pairs, vocab, both, (tokens, found, vocab.size), patience)
    assert tokens[:count].tolist() == [token for token in vocab.trie.order.tolist() if token in allowed]
    assert dict(zip(tokens[:count].tolist(), found[:count].tolist(), strict=True)) == targets
    assert tuple(others) == work[1:]

    by_token = np.full(vocab.size + 1, -1, dtype=np.int64)
    assert walk_in_steps(_write_targets, vocab, both, by_token, patience) == work
    assert by_token[:-1].tolist() == [targets.get(token, -1) for token in range(vocab.size)]


STRATEGY = """
import numpy as np
from limits import LAST
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.walker import specialise

@kernel
def step(bonus, stack, depth, byte):
    stack[depth + np.uint64(1)] = stack[depth] + np.int64(byte){more}
    return stack[depth + np.uint64(1)] if byte <= np.uint64(LAST) else np.int64(-1)

@kernel
def other_step(bonus, stack, depth, byte):
    return np.int64(bonus[0])

@kernel
def write_target(targets, count, token, target):
    targets[token] = target
    return count

walk = specialise(f"{{__name__}}.walk", step, write_target)
other_walk = specialise(f"{{__name__}}.other_walk", other_step, write_target)
"""
USER = """
import numpy as np
from strategy import other_walk, walk
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.vocabulary import Vocabulary

@kernel
def walk_both(nodes, bonus, stack, targets):
    walk(nodes, 0, len(nodes), bonus, stack, targets, 0)
    other_walk(nodes, 0, 0, bonus, stack, targets, 0)

nodes = Vocabulary([b"b", b"ab", b"c", b""], end_tokens=[3]).trie.nodes
bonus, stack, targets = np.zeros(1, dtype=np.int64), np.zeros(3, dtype=np.int64), np.full(5, -1)
"""
FROM_PYTHON = """
walk(nodes, 0, len(nodes), bonus, stack, targets, 0)
other_walk(nodes, 0, 0, bonus, stack, targets, 0)
used = walk, other_walk
"""
FROM_A_KERNEL = """
walk_both(nodes, bonus, stack, targets)
used = [walk_both]
"""
ANSWER = """
print(*targets[:3], *(sum(one.stats.cache_hits.values()) for one in used))
"""


@pytest.mark.parametrize("use", [FROM_PYTHON, FROM_A_KERNEL])
def test_a_specialisation_is_kept_on_disk_until_its_step_changes(tmp_path: Path, use: str) -> None:
    """Or a number that the step has from another file; be it called by Python or by a kernel of a third file."""
    # Python itself would take a file that is rewritten within a second, and as long as before, for the same
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = f"{tmp_path}:{Path(tokdfa.__file__).parents[1]}"
    (tmp_path / "user.py").write_text(USER + use + ANSWER)
    targets, hits = [], []
    for more, last in (("", 98), ("", 98), (" + 1", 98), (" + 1", 98), (" + 1", 99), ("", 98)):
        (tmp_path / "strategy.py").write_text(STRATEGY.format(more=more))
        (tmp_path / "limits.py").write_text(f"LAST = {last}\n")
        command = [sys.executable, "-c", "import user"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answer = [int(word) for word in done.stdout.split()]
        targets.append(answer[:3])
        hits.append(set(answer[3:]))
    first, changed = [98, 195, -1], [99, 197, -1]
    assert targets == [first, first, changed, changed, [99, 197, 100], first]
    assert hits == [{0}, {1}, {0}, {1}, {0}, {1}]
