"""DirectMerge: an explicit automaton over tokens that accepts exactly the proper tokenizations of the texts.

Strategy (002, Tran-Thien 2024; the theory is in `tokdfa.backends.proper_merge.merging`). The constraint becomes an
automaton over bytes; together with the tokenizer's pre-tokenizer, one that also marks the borders of pieces; over
letters, all its texts are merged at once, rule by rule. The mask in a state is its row. There are far fewer ways
through such an automaton than through a token index, so many states have one way on, and a model need not be asked.

The tokens before the text count (`start(context)`): the first token must not merge with the last one, and a piece that
they have begun goes on. A context without effect on the text shares the table of the empty context. Others get a table
each, and the last few are kept.

Its limit is size: a text that may stand anywhere makes nearly every token a state. `cartesian_merge` simulates the same
automaton without building it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.automata.graph import token_automaton_to_networkx
from tokdfa.backends.base import Backend, CompiledConstraint, Option, Phases
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.numbered_states import NumberedMatcher, RowTable
from tokdfa.backends.proper_merge.context import begun_text, no_way_on, read_context, refuse_isolated
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton, marker_letter
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import MAX_STATES, MAX_TRANSITIONS, merge_rows
from tokdfa.backends.proper_merge.merging_pieces import join_pieces
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.unchanged import check_unchanged
from tokdfa.errors import EmptyLanguageError
from tokdfa.token_automata.liveness import cannot_spell
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.proper_merge.context import Hypotheses
    from tokdfa.constraint import Constraint
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa

#: How many tables for contexts, and merged automata that they come from, are kept beside the table of no context.
CONTEXT_TABLES = 8


class DirectMerge(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "direct_merge"
    summary: ClassVar[str] = "explicit DFA of the proper tokenizations, by merging all texts at once (DirectMerge)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    is_proper = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("minimal", bool, True, "minimise the DFA over bytes before merging and the one over tokens after it"),
        Option("max_states", int, MAX_STATES, "limit on states, at every step", minimum=1),
        Option(
            "max_transitions", int, MAX_TRANSITIONS, "limit on transitions while merging, 250 bytes each", minimum=1
        ),
        Option("mask_mb", int, 256, "limit on cached masks, in MB; past it the cache is emptied", minimum=1),
    )

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        from tokdfa.automata.algebra import minimize, trim
        from tokdfa.proper.piece_borders import load_marked_dfa
        from tokdfa.proper.rules_cache import load_canonicity

        phases = Phases()
        tokenizer = self.vocab.tokenizer
        assert tokenizer is not None  # `supports` has asked
        with phases.measure("tokenizer"):
            canonicity, marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
            stages = tokenizer.keep("merge_stages", lambda: MergeStages(canonicity))
        dfa = explicit_automaton(constraint, self.settings["max_states"], phases)
        with phases.measure("tokenizer"):
            check_unchanged(dfa, tokenizer, constraint.name)
        with phases.measure("automaton"):
            dfa = minimize(dfa) if self.settings["minimal"] else trim(dfa)
        return ProperIndex(self, constraint, dfa, canonicity, marked, stages, phases)


class ProperIndex(CompiledConstraint):
    """The automaton for a text that begins here, and, when they are asked for, those for texts that go on."""

    def __init__(
        self,
        backend: DirectMerge,
        constraint: Constraint,
        dfa: Dfa,
        canonicity: Canonicity,
        marked: MarkedDfa | None,
        stages: MergeStages,
        phases: Phases,
    ) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.dfa, self.phases = dfa, phases
        self.canonicity, self._marked, self._stages, self._settings = canonicity, marked, stages, backend.settings
        beginning = read_context(canonicity, marked, ())
        merged = self._merge(beginning.inside, beginning.hypotheses, phases, self.sizes)
        with phases.measure("determinize"):
            rows = self._join(merged)
            if not rows.state_count:
                if self.vocab.single_byte_tokens.all():
                    raise EmptyLanguageError(f"no text of {constraint.name!r} is text to the tokenizer: none is UTF-8")
                raise cannot_spell(dfa, self.vocab, constraint.name)
            self.table = self._make_table(rows)
        self.sizes |= {
            "states": rows.state_count,
            "transitions": rows.transition_count,
            "bytes": self.table.nbytes,
        }
        self._merge_after = lru_cache(CONTEXT_TABLES)(self._merge)
        self._table_after = lru_cache(CONTEXT_TABLES)(self._find_table)
        self._beginning = (beginning.inside, beginning.hypotheses)

    def _merge(
        self,
        inside: int,
        hypotheses: Hypotheses,
        phases: Phases | None = None,
        sizes: dict[str, int] | None = None,
    ) -> list[tuple[TokenRows, int]]:
        """All merges in the texts that go on where the pre-tokenizer and the byte fallback are in these states.

        One automaton for each piece that a hypothesis has begun; nearly always that is one.
        """
        phases, sizes = Phases() if phases is None else phases, {} if sizes is None else sizes
        max_states, max_transitions = self._settings["max_states"], self._settings["max_transitions"]
        by_node: dict[int, list[int]] = {}
        for state, node in sorted(hypotheses):
            by_node.setdefault(node, []).append(state)
        merged: list[tuple[TokenRows, int]] = []
        nothing: EmptyLanguageError | None = None
        for node, states in by_node.items():
            with phases.measure("pieces"):
                try:
                    product = marked_product(self.dfa, self._marked, states, max_states)
                except EmptyLanguageError as error:  # no text goes on from here, but perhaps from elsewhere
                    nothing = error
                    continue
                refuse_isolated(product, self.canonicity)
            with phases.measure("letters"):
                letters = letter_automaton(product, self.canonicity, inside)
                sizes["letters_states"] = sizes.get("letters_states", 0) + letters.state_count
            with phases.measure("merges"):
                done = merge_rows(letters, self._stages, max_states, max_transitions)
            sizes["rules_applied"] = sizes.get("rules_applied", 0) + done.rules_applied
            merged.append((done.rows, node))
        if nothing is not None and not merged:
            raise nothing
        return merged

    def _join(self, merged: list[tuple[TokenRows, int]], refused: frozenset[int] = frozenset()) -> TokenRows:
        rows = join_pieces(merged, self.canonicity, self._settings["max_states"], refused)
        return rows.minimal() if self._settings["minimal"] else rows

    def _make_table(self, rows: TokenRows) -> RowTable:
        accepting = np.array(rows.accepting, dtype=np.bool_)
        return RowTable(self.vocab, rows.table(self.vocab), accepting, self._settings["mask_mb"] << 20)

    def _find_table(self, inside: int, hypotheses: Hypotheses, refused: frozenset[int]) -> RowTable:
        """The table for texts that go on; `refused`: what would merge with the last token."""
        if (inside, hypotheses) == self._beginning and not refused:
            return self.table
        rows = self._join(self._merge_after(inside, hypotheses), refused)
        if not rows.state_count:
            raise no_way_on(self.constraint.name)
        return self._make_table(rows)

    def _start(self, context: tuple[int, ...]) -> NumberedMatcher:
        """A matcher after the tokens `context`, which the first token must not merge with.

        Reading the context costs a few us a token; one that leaves something new open costs as much as compiling.
        Raises UnsupportedConstraint if no proper sequence goes on from there, VocabularyError for an unknown id,
        LimitExceeded.
        """
        canonicity = self.canonicity
        found = begun_text(canonicity, self._marked, self.dfa, context)
        if found is None:
            return NumberedMatcher(self.table)
        try:
            merged = self._merge_after(found.inside, found.hypotheses)
        except EmptyLanguageError:
            raise no_way_on(self.constraint.name) from None
        first = {token for rows, _ in merged if rows.start >= 0 for token in rows.rows[rows.start]}
        first.discard(marker_letter(canonicity))
        refused = {token for token in first if not canonicity.pair_is_canonical(found.last, token)}
        return NumberedMatcher(self._table_after(found.inside, found.hypotheses, frozenset(refused)))

    def transitions(self, state: int) -> dict[int, int]:
        """The row of a state (0 is the start): token -> state."""
        return self.table.row(state)

    def to_rows(self) -> TokenRows:
        """The automaton as dictionaries, made anew at each call."""
        accepting = self.table.accepting.tolist()
        return TokenRows([self.table.row(state) for state in range(len(accepting))], accepting, 0)

    def to_networkx(self) -> Any:
        """The automaton as `tokdfa.automata.graph.token_automaton_to_networkx` makes it, with the bytes of tokens."""
        rows = self.to_rows()
        edges = [
            (state, self.vocab.token_bytes(token), target)
            for state, row in enumerate(rows.rows)
            for token, target in row.items()
        ]
        return token_automaton_to_networkx(edges, 0, np.flatnonzero(rows.accepting).tolist())
