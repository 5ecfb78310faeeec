"""Sets of strings without end: whatever strings were, there is another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.string_set import EXPLICIT_STATES, string_automaton

if TYPE_CHECKING:
    from tokdfa.json_schema.sets.string_set import StringSet
    from tokdfa.regex.lazy_dfa import LazyDfa

#: Work (`tokdfa.core.budget`) of a state of an automaton that is looked at for loops, in nanoseconds.
STATE_WORK = 50_000
#: `explicit_states` of automata of which is asked whether they have a loop.
LOOP_STATES = 4 * EXPLICIT_STATES


def is_endless(strings: StringSet) -> bool:
    """Whether a set has strings without end, as far as its automaton is small enough to tell. O(transitions)."""
    if strings.values is not None or strings.max_length is not None:
        return False
    if strings.simple:
        return True
    return has_loop(string_automaton(strings, "needed", LOOP_STATES))


def has_loop(automaton: Dfa | LazyDfa) -> bool:
    """Whether an automaton, if it is small enough to tell, has a loop: every state reaches an end."""
    if not isinstance(automaton, Dfa):
        return False
    targets = automaton.transitions
    spend(STATE_WORK * len(targets))
    goes_on: npt.NDArray[np.bool_] = np.ones(len(targets), dtype=np.bool_)
    while True:
        kept = np.any(goes_on[targets] & (targets >= 0), axis=1)
        if np.array_equal(kept, goes_on):
            return bool(kept.any())
        goes_on = kept
