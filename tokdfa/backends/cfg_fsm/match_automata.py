"""Match automata: which text of a terminal `re` would find, as a DFA over bytes.

A backtracking matcher tries ordered choices; the first way that succeeds decides where the match ends. Keep all ways at
once, in order of preference, as *threads*. When a thread reaches the end of the pattern, the threads behind it have
lost and are dropped; those before it may still win, with a longer match or a shorter one. So a state is an ordered list
of threads, and a flag that says whether a thread has just matched; the preferred match ends where that flag was last
set before the last thread died (R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009, leftmost
match by priorities; here determinised).

Seen from outside, a match automaton is a DFA: it accepts where the flag is set. So it is minimised like one, and states
that cannot accept any more are removed: the automaton dies as soon as the match is decided.

Cost: one step for each state and each byte class of it, a few microseconds each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import minimize
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.cfg_fsm.match_program import DONE, MATCH, NONE, Loop, MatchProgram, Read, Split
from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

#: A thread: an instruction that reads a character, and the node in its automaton.
Thread = tuple[int, int]
#: States of one terminal, before minimisation.
MAX_MATCH_STATES = 20_000
#: What a state takes, a target of it, and a thread of either; and what a state holds.
NS_PER_STATE, NS_PER_TARGET, NS_PER_THREAD, BYTES_PER_STATE = 60_000, 3_000, 700, 1_500


def match_automaton(pattern: str, max_states: int = MAX_MATCH_STATES) -> Dfa:
    """The match automaton of `pattern`: minimal, only live states; no states if it never matches.

    Raises RegexSyntaxError, RegexUnsupported or LimitExceeded.
    """
    program = MatchProgram(pattern)
    threads, accepts = _close(program, [program.entry])
    states: dict[tuple[tuple[Thread, ...], bool], int] = {(threads, accepts): 0}
    pending = [threads]
    table: list[npt.NDArray[np.int32]] = []
    for threads in pending:  # grows on the way
        spend(NS_PER_STATE)
        hold(BYTES_PER_STATE)
        row = np.full(256, NONE, dtype=np.int32)
        for members, following in _successors(program, threads):
            spend(NS_PER_TARGET + NS_PER_THREAD * (len(threads) + len(following[0])))
            number = states.setdefault(following, len(states))
            if number == len(pending):
                pending.append(following[0])
                if number >= max_states:
                    raise LimitExceeded(
                        f"the terminal {pattern!r} needs more than {max_states} states; lower its repeat bounds",
                        limit="max_match_states",
                        value=max_states,
                    )
            row[members] = number
        table.append(row)
    accepting = np.array([accepts for _, accepts in states], dtype=np.bool_)
    return minimize(Dfa.from_table(np.array(table), accepting, 0))


def _close(program: MatchProgram, entries: Iterable[int | Thread]) -> tuple[tuple[Thread, ...], bool]:
    """The threads from `entries` on, in order, up to the first that has matched; and whether one has."""
    found: dict[Thread, None] = {}
    seen: set[int] = set()
    for entry in entries:
        if isinstance(entry, tuple):
            found.setdefault(entry)
            continue
        agenda = [entry]
        while agenda:
            place = agenda.pop()
            instruction = program.instructions[place]
            if place in seen:
                if isinstance(instruction, Loop) and instruction.following not in seen:
                    agenda.append(instruction.following)
                continue
            seen.add(place)
            if place == MATCH:
                return tuple(found), True
            if isinstance(instruction, Loop):
                agenda += (instruction.following, instruction.body)
            elif isinstance(instruction, Split):
                agenda += (instruction.second, instruction.first)
            elif isinstance(instruction, Read):
                found.setdefault((place, instruction.node))
    return tuple(found), False


def _successors(
    program: MatchProgram, threads: tuple[Thread, ...]
) -> list[tuple[npt.NDArray[np.intp], tuple[tuple[Thread, ...], bool]]]:
    """The bytes on which some thread goes on, in sets that lead to one state, and that state."""
    if not threads:
        return []
    rows = np.stack([program.nodes.rows[node] for _, node in threads])
    columns, classes = np.unique(rows, axis=1, return_inverse=True)
    classes = classes.reshape(-1)
    found = []
    for number, column in enumerate(columns.T.tolist()):
        entries: list[int | Thread] = []
        for (place, _), target in zip(threads, column, strict=True):
            instruction = program.instructions[place]
            if target == DONE and isinstance(instruction, Read):
                entries.append(instruction.following)
            elif target != NONE:
                entries.append((place, target))
        if entries:
            found.append((np.flatnonzero(classes == number), _close(program, entries)))
    return found
