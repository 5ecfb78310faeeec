"""DirectMerge of a constraint as a whole and by parts, timed round by round; the automata are compared.

See `tokdfa.lab.kinds.vegas` for the four variants and their columns.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from tokdfa.automata.algebra import minimize
from tokdfa.backends.base import Phases
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import merge_rows
from tokdfa.backends.proper_merge.merging_pieces import join_pieces
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.vegas_splice import MergedByParts, PartMerger
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import MAX_STATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.proper_merge.merging import Merged
    from tokdfa.backends.proper_merge.vegas_library import PartLibrary
    from tokdfa.constraint import Constraint
    from tokdfa.token_automata.token_rows import TokenRows
    from tokdfa.vocabulary.tokenizers import Tokenizer


class PartBench:
    """What is fixed for a tokenizer. `repeats` of what is measured; limits of each automaton."""

    def __init__(self, tokenizer: Tokenizer, repeats: int, max_states: int, max_transitions: int) -> None:
        self.canonicity, self.marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
        self.stages, self.merger = MergeStages(self.canonicity), PartMerger(self.canonicity)
        self.repeats, self.limits = repeats, (max_states, max_transitions)

    def measure(self, place: dict[str, Any], constraint: Constraint, library: PartLibrary) -> list[dict[str, Any]]:
        """A row for each variant, with the columns of `place`; round by round, one after the other."""
        dfa = minimize(explicit_automaton(constraint, MAX_STATES, Phases()))
        limits, seen = self.limits, library.in_memory()
        ways: dict[str, Callable[[TokenRows], Merged]] = {
            "whole": lambda letters: merge_rows(letters, self.stages, *limits),
            "parts": lambda letters: self.merger.merge(letters, None, *limits),
            "library": lambda letters: self.merger.merge(letters, library.in_memory(), *limits),
            "seen": lambda letters: self.merger.merge(letters, seen, *limits),
        }
        rows = {variant: {**place, "variant": variant, "status": OK, "message": ""} for variant in ways}
        made: dict[str, TokenRows] = {}
        samples: dict[str, list[tuple[int, int]]] = {variant: [] for variant in ways}
        finding = []
        for turn in range(self.repeats + 1):  # the first turn warms up, and fills the library of `seen`
            if turn and not made:
                break
            for variant, merge in ways.items():
                if rows[variant]["status"] != OK:
                    continue
                with collector_off():
                    found, ns = time_call(partial(attempt, self._make, dfa, merge))
                if isinstance(found, Failure):
                    rows[variant] |= found.columns
                    continue
                merged, made[variant], merge_ns = found
                sizes = {"states": made[variant].state_count, "transitions": made[variant].transition_count}
                known = {"known": merged.from_library} if isinstance(merged, MergedByParts) else {}
                rows[variant] |= {**sizes, **known}
                samples[variant] += [(ns, merge_ns)] * bool(turn)
            letters = letter_automaton(marked_product(dfa, self.marked), self.canonicity)
            division, ns = time_call(partial(self.merger.divide, letters))
            finding.append(ns * 1e-9)
        for variant, row in rows.items():
            if samples[variant]:
                whole, merging = zip(*samples[variant], strict=True)
                row |= {"seconds": median(whole) * 1e-9, "merge_seconds": median(merging) * 1e-9, "repeats": len(whole)}
            if variant != "whole":
                row |= {"parts": len(division.places), "distinct": len(division.parts)}
                row["find_seconds"] = median(finding[1:] or finding)
            both = "whole" in made and variant in made
            row["equal"] = _are_equal(made["whole"], made[variant]) if both else None
        return list(rows.values())

    def _make(self, dfa: Dfa, merge: Callable[[TokenRows], Merged]) -> tuple[Merged, TokenRows, int]:
        """(what merging gives, the minimal automaton over tokens, nanoseconds of merging)."""
        letters = letter_automaton(marked_product(dfa, self.marked), self.canonicity)
        merged, ns = time_call(partial(merge, letters))
        return (
            merged,
            join_pieces([(merged.rows, self.canonicity.whole_pieces.root)], self.canonicity, self.limits[0]).minimal(),
            ns,
        )


def _are_equal(one: TokenRows, other: TokenRows) -> bool:
    """Whether the automata are the same, numbers and all."""
    return (one.rows, one.accepting, one.start) == (other.rows, other.accepting, other.start)
