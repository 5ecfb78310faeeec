"""CartesianMerge: the token automaton of the texts and the automaton of proper sequences, run side by side.

Strategy (002, Tran-Thien 2024). The proper tokenizations of a constraint's texts are the sequences that spell such a
text and are proper. Neither condition needs an automaton over tokens to be built for the other: a mask is the
intersection of what the text allows and what the last token allows. The difficulty is *relevance*: a token may be
allowed by both and lead nowhere. 002 searches through all pairs of states, in half a minute a regex; here a fixpoint
over states settles it in milliseconds (`tokdfa.backends.proper_merge.proper_table`), and a mask is two bit sets
(`tokdfa.backends.proper_merge.proper_states`).

Pre-tokenizers are part of it: the text is read with its borders of pieces
(`tokdfa.backends.proper_merge.marked_product`).

Options:

- ``relevance``: ``fixpoint``, or ``pairs``, 002's search, for comparison
  (`tokdfa.backends.proper_merge.relevant_pairs`), all at once when compiling. ``max_pairs``, ``max_seconds`` and
  ``skip_visited``, as its notebook does, are for it alone.
- ``lazy``: settle states when a mask first needs them. Otherwise all that can be reached are settled when compiling.
- ``vegas``: states are settled part by part, between places that no token runs across, equal parts once: those of the
  constraint (``parts``), or of all constraints for the tokenizer (``library``), as 002 proposes at its end
  (`tokdfa.backends.proper_merge.vegas`). For tokenizers without whole pieces and lazy
  tables only; with the others it is ``off``.

The tokens before the text count (`start(context)`), as in `tokdfa.backends.proper_merge.direct_merge`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from tokdfa.backends.base import Backend, CompiledConstraint, Option, Phases, StateMatcher
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.proper_merge.context import begun_text, no_way_on, refuse_isolated
from tokdfa.backends.proper_merge.marked_product import marked_product, marked_product_from, piece_automaton
from tokdfa.backends.proper_merge.proper_states import ProperStates, State, begin_state
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.backends.proper_merge.relevant_pairs import MAX_PAIRS, RelevantPairs
from tokdfa.backends.proper_merge.spellable import spellable_part
from tokdfa.backends.proper_merge.unchanged import check_unchanged
from tokdfa.backends.proper_merge.vegas import PartTables, VegasTable, load_part_tables
from tokdfa.errors import EmptyLanguageError
from tokdfa.regex.compile import MAX_STATES
from tokdfa.token_automata.liveness import cannot_spell

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.proper_merge.context import Hypotheses
    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How many tables for contexts are kept beside that of the empty context.
CONTEXT_TABLES = 16


class CartesianMerge(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "cartesian_merge"
    summary: ClassVar[str] = "only proper tokenizations: automata of text and of merges side by side (CartesianMerge)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    is_proper = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("relevance", str, "fixpoint", "how dead ends are found", choices=("fixpoint", "pairs")),
        Option("lazy", bool, True, "settle states when a mask first needs them"),
        Option(
            *("vegas", str, "off", "equal parts that no token leaves are settled once (lazy, relevance=fixpoint only)"),
            choices=("off", "parts", "library"),
        ),
        Option("minimal", bool, True, "minimise the DFA first"),
        Option("max_states", int, MAX_STATES, "limit on DFA states before the pre-tokenizer comes in", minimum=1),
        Option(
            "max_piece_states", int, 1_000_000, "limit on DFA states with the pre-tokenizer, 0.5 kB each", minimum=1
        ),
        Option("max_transitions", int, 30_000_000, "limit on transitions of settled states, 13 bytes each", minimum=1),
        Option("max_pairs", int, MAX_PAIRS, "limit on visited pairs of states (relevance=pairs only)", minimum=1),
        Option(
            *("max_seconds", float, None, "limit on the time of the search (relevance=pairs only)"),
            minimum=0,
            optional=True,
        ),
        Option("skip_visited", bool, False, "leave out what leads to visited pairs (relevance=pairs only)"),
        Option("mask_mb", int, 256, "limit on kept bit sets, in MB; past it they are made anew", minimum=0),
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
            canonicity.prepare()
        dfa = explicit_automaton(constraint, self.settings["max_states"], phases)
        with phases.measure("tokenizer"):
            check_unchanged(dfa, tokenizer, constraint.name)
        with phases.measure("minimize"):
            part = spellable_part(dfa, tokenizer, canonicity, self.settings["max_states"])
            if not part.state_count:
                raise cannot_spell(dfa, self.vocab, constraint.name)
            dfa = minimize(part) if self.settings["minimal"] else trim(part)
        return CompiledCartesianMerge(self, constraint, dfa, canonicity, marked, phases)


class CompiledCartesianMerge(CompiledConstraint):
    """The states of a text that begins here, and, when asked for, those of texts that go on after a context."""

    def __init__(
        self,
        backend: CartesianMerge,
        constraint: Constraint,
        dfa: Dfa,
        canonicity: Canonicity,
        marked: MarkedDfa | None,
        phases: Phases,
    ) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.dfa, self.phases = dfa, phases
        self._canonicity, self._marked, self._settings = canonicity, marked, backend.settings
        tokenizer = backend.vocab.tokenizer
        assert tokenizer is not None
        self._parts = load_part_tables(tokenizer) if backend.settings["vegas"] == "library" else PartTables()
        with phases.measure("pieces"):
            product = marked_product(dfa, marked, limit=self._settings["max_piece_states"])
            refuse_isolated(product, canonicity)
            automaton = piece_automaton(product, canonicity.fallback, limit=self._settings["max_piece_states"])
        with phases.measure("relevance"):
            if automaton.starts[0] < 0:
                raise cannot_spell(dfa, self.vocab, constraint.name)
            self.states = self._make_states(automaton)
            self.table = self.states.table
            self._begin = begin_state(self.table)
            if self._settings["lazy"]:
                self.states.prepare(self._begin)
            else:
                self.states.settle_all(self._begin)
        self._states_after = lru_cache(CONTEXT_TABLES)(self._find_states)
        self.sizes = {
            "states": automaton.state_count,
            "dfa_states": dfa.state_count,
            "settled_states": self.table.settled_states,
            "transitions": self.table.transitions,
            "dead_transitions": self.table.dead_transitions,
            "bytes": self.states.nbytes,
        }
        if isinstance(self.table, VegasTable):
            self.sizes |= {"cuts": int(self.table.is_cut.sum()), "parts": self.table.parts_found}
        if isinstance(self.table, RelevantPairs):
            self.sizes |= {"pairs": self.table.visited_pairs, "edges": self.table.edges}

    def _start(self, context: tuple[int, ...]) -> CartesianMergeMatcher:
        """A matcher after the tokens `context`, which the first token must not merge with.

        Reading the context costs a few us a token; one that leaves something new open costs as much as compiling.
        Raises UnsupportedConstraint if no proper sequence goes on from there, VocabularyError for an unknown id.
        """
        found = begun_text(self._canonicity, self._marked, self.dfa, context)
        if found is None:
            return CartesianMergeMatcher(self.vocab, self.states, self._begin)
        try:
            states, keys = self._states_after(found.inside, found.hypotheses, found.last if self._by_pairs else -1)
        except EmptyLanguageError:
            states, keys = self.states, ()
        alive = tuple(key for key in keys if states.table.is_live(key, found.last))
        if not alive:
            raise no_way_on(self.constraint.name)
        return CartesianMergeMatcher(self.vocab, states, (found.last, alive))

    def _find_states(self, inside: int, hypotheses: Hypotheses, last: int) -> tuple[ProperStates, tuple[int, ...]]:
        """The states of texts that go on with these hypotheses, and the keys they begin with.

        `last`: the last token for a search over pairs, which begins with it; -1 otherwise.
        """
        whole = self._canonicity.whole_pieces
        listed = sorted(hypotheses)
        product, starts = marked_product_from(
            self.dfa, self._marked, [state for state, _ in listed], self._settings["max_piece_states"]
        )
        automaton = piece_automaton(
            product, self._canonicity.fallback, starts, inside, self._settings["max_piece_states"]
        )
        found = {
            start * whole.node_count + node
            for start, (_, node) in zip(automaton.starts, listed, strict=True)
            if start >= 0
        }
        keys = tuple(sorted(found))
        return self._make_states(automaton, (last, keys)), keys

    @property
    def _by_pairs(self) -> bool:
        return bool(self._settings["relevance"] == "pairs")

    def _make_states(self, automaton: PieceAutomaton, start: State | None = None) -> ProperStates:
        """The states over one automaton. `start`: where a search over pairs begins, if not where the text does."""
        settings, canonicity = self._settings, self._canonicity
        if self._by_pairs:
            limits = {name: settings[name] for name in ("max_transitions", "max_pairs", "max_seconds", "skip_visited")}
            table: ProperTable = RelevantPairs(automaton, canonicity, start, **limits)
        elif settings["vegas"] != "off" and settings["lazy"] and canonicity.whole_pieces.node_count == 1:
            table = VegasTable(automaton, canonicity, self._parts, settings["max_transitions"])
        else:
            table = ProperTable(automaton, canonicity, settings["max_transitions"])
        return ProperStates(table, settings["mask_mb"] << 20)


class CartesianMergeMatcher(StateMatcher[State]):
    """A matcher over proper states.

    Counters: `first_masks`, those of states that no matcher had been in before; `settled_states` and
    `settled_transitions`, what had to be settled for them.
    """

    def __init__(self, vocab: Vocabulary, states: ProperStates, start: State) -> None:
        super().__init__(vocab, start)
        self.states = states

    def _step(self, state: State, token: int) -> State | None:
        return self.states.step(state, token)

    def _accepts(self, state: State) -> bool:
        return self.states.can_end(state)

    def _fill(self, state: State, out: Mask) -> None:
        settled = self.states.fill(state, out)
        if settled is not None:
            self._count(first_masks=1, settled_states=settled[0], settled_transitions=settled[1])

    def _fork_empty(self) -> CartesianMergeMatcher:
        return CartesianMergeMatcher(self.vocab, self.states, self.state)
