"""The minimal automaton, by merging equivalent states (`tokdfa.automata.moves`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.automata.liveness import dfa_of, live_part
from tokdfa.core.budget import hold, spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.automata.liveness import States

#: What it takes to refine the partitions by a move; log m does not show.
NS_PER_MOVE = 60


def minimize(dfa: Dfa) -> Dfa:
    """The minimal automaton of the language of `dfa`, in canonical form.

    O(states x classes + m log m) for m moves (Valmari and Lehtinen 2008).
    """
    return minimize_from(dfa, [dfa.start])[0]


def minimize_from(dfa: Dfa, starts: Sequence[int]) -> tuple[Dfa, States]:
    """The minimal automaton of the languages that `dfa` accepts from each of `starts`, and the state in which each of
    them begins there, -1 for one without texts. Its own start is the first of these.
    """
    live = live_part(dfa.transitions, dfa.byte_class, dfa.accepting, starts)
    spend(NS_PER_MOVE * live.move_count)
    hold(28 * (live.move_count + live.state_count))
    live.merge_equivalent()
    return dfa_of(live), live.starts
