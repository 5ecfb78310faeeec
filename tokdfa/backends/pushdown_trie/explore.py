"""Exploring: the explicit automaton of a program whose texts are a regular language.

The rows of a machine are the states of a deterministic automaton over bytes. If calls nest only so deep, there are
finitely many, and stepping each by every byte finds them all. This gives strategies without a stack the very language
that the machine reads, JSON schemas with `max_nesting` among them.

Cost: about 10 µs a row, 256 steps most of which lead nowhere; then minimisation.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import trim
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.pushdown_trie.arrays import ROW_BYTES
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.machine_tables import MachineFull
from tokdfa.backends.pushdown_trie.pool import pool_of
from tokdfa.backends.pushdown_trie.rows import BIAS
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.program.program import Program


def program_dfa(program: Program, name: str, max_states: int) -> Dfa:
    """The automaton of a program's texts, without dead states, not minimal. `name` is for messages.

    Raises LimitExceeded past `max_states` rows, which a program that nests without bound always reaches.
    """
    pool = pool_of(_bytes_vocabulary())
    with pool.lock:
        machine = Machine(program, pool, max_bytes=(max_states + 64) * ROW_BYTES)
        row = 0
        while row < machine.row_count:
            if row >= max_states:
                raise _too_many(name, max_states)
            try:
                machine.following_rows(row)
            except MachineFull:
                raise _too_many(name, max_states) from None
            row += 1
        count = machine.row_count
        table = machine.transitions[: count * 256].reshape(count, 256) - BIAS
        accepting = np.array([machine.can_end(row) for row in range(count)], dtype=np.bool_)
    return trim(Dfa.from_table(np.where(table < 0, -1, table).astype(np.int32), accepting, 0))


def _too_many(name: str, max_states: int) -> LimitExceeded:
    return LimitExceeded(
        f"the automaton of {name!r} has more than {max_states} states: bound the nesting of its values"
        " (max_nesting of a JsonSchema), lower counts, or raise max_states",
        limit="max_states",
        value=max_states,
    )


@cache
def _bytes_vocabulary() -> Vocabulary:
    """Every byte a token, and an end token."""
    return Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])


def warm_up() -> None:
    """Compile the kernel of this module."""
    from tokdfa.program.builder import ProgramBuilder
    from tokdfa.program.program import RETURN_PLACE

    builder = ProgramBuilder()
    program_dfa(builder.build(builder.read(builder.string_terminal, RETURN_PLACE)), "a string", 100)
