"""The token index: for every automaton state, which tokens may follow and which state each leads to.

Strategy (Outlines; Willard and Louf, arXiv 2307.09702, and the baseline of 001, outlines-core pull request 194). The
constraint becomes a DFA over bytes; a token leads from one of its states to another by its bytes. The *index* is the
table state x token -> state. A mask is the set of tokens in one row of it.

Options, each of them a variant that the literature has used:

- ``lazy``: no table at all. The DFA's states are made when first visited, and a state's mask by a trie walk when first
  asked for. Compiling then costs only the parse. Without it, the table of every state that tokens can reach is built in
  advance, in compressed rows (CSR): for each state the allowed tokens, as ranks in byte order, and their targets.
- ``walk``: ``trie`` shares the prefixes of tokens (`tokdfa.vocabulary.byte_table`); ``per_token`` runs every token from
  every state byte by byte, as Outlines first did.
- ``cache_masks``: keep the mask of a state once made (see `tokdfa.vocabulary.mask_store`). Without it each mask is made
  anew, from the table or by a walk.
- ``minimal``: minimise the DFA before indexing (explicit index only).
- ``proper``: only proper sequences (`tokdfa.backends.proper`).

Whether a token's text can still be completed is a matter of bytes if the vocabulary has every byte as a token, or if
bytes that are tokens end the text from every state (`tokdfa.backends.lazy_liveness`); else of tokens, and then the
index is explicit even if ``lazy`` is asked for (see `tokdfa.token_automata.liveness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.lazy_states import LazyStates
from tokdfa.backends.numbered_states import NumberedMatcher, RowTable
from tokdfa.backends.proper import WithProper
from tokdfa.constraint import JsonSchema
from tokdfa.core.locks import cached_property
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import Phases
    from tokdfa.constraint import Constraint
    from tokdfa.regex.lazy_dfa import LazyDfa


#: The most states that a lazy index ever makes: a generation visits few, so this only bounds memory.
LAZY_STATES = 10_000_000


class TokenIndex(WithProper):
    """See the module's docstring."""

    name: ClassVar[str] = "token_index"
    summary: ClassVar[str] = "DFA state x token -> state, explicit or on demand (the Outlines index)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    shared_limits: ClassVar[tuple[str, ...]] = ("max_states", "max_transitions")
    options: ClassVar[tuple[Option, ...]] = (
        Option("lazy", bool, False, "make states and masks when first needed instead of indexing all states"),
        Option("walk", str, "trie", "how the tokens allowed in a state are found", choices=("trie", "per_token")),
        Option("cache_masks", bool, True, "keep each state's packed mask once made"),
        Option("minimal", bool, True, "minimise the DFA before indexing it (explicit index only)"),
        Option("max_states", int, 100_000, "limit on DFA states before minimisation (explicit index only)", minimum=1),
        Option(
            "max_transitions", int, 30_000_000, "limit on index entries, 8 bytes each (explicit index only)", minimum=1
        ),
        Option("mask_mb", int, 256, "limit on cached masks, in MB; past it the cache is emptied", minimum=1),
    )

    def _compile_plain(self, constraint: Constraint) -> CompiledConstraint:
        from tokdfa.backends.base import Phases
        from tokdfa.regex.compile import compile_lazy, explicit_dfa

        phases = Phases()
        if isinstance(constraint, JsonSchema):
            from tokdfa.backends.explicit_automaton import explicit_automaton

            dfa = self._reduce(explicit_automaton(constraint, self.settings["max_states"], phases), phases)
            from tokdfa.token_automata.liveness import spells_every_byte
            from tokdfa.token_automata.prefix_graphs import bytes_alive

            complete = spells_every_byte(self.vocab, bytes_alive(dfa))
            return ExplicitTokenIndex(self, constraint, dfa, phases, complete)
        with phases.measure("parse"):
            automaton = compile_lazy(constraint, max_states=LAZY_STATES)
        spellable = self.vocab.single_byte_tokens
        complete = bool(spellable.all())
        if not complete:
            from tokdfa.backends.lazy_liveness import LazyLiveness

            complete = LazyLiveness(automaton, spellable).always
        if self.settings["lazy"] and complete:
            return LazyTokenIndex(self, constraint, automaton, phases)
        with phases.measure("automaton"):
            dfa = explicit_dfa(automaton, constraint, self.settings["max_states"])
        return ExplicitTokenIndex(self, constraint, self._reduce(dfa, phases), phases, complete)

    def _reduce(self, dfa: Dfa, phases: Phases) -> Dfa:
        """The automaton without states that are not needed."""
        from tokdfa.automata.algebra import minimize, trim

        with phases.measure("minimize"):
            return minimize(dfa) if self.settings["minimal"] else trim(dfa)


class LazyTokenIndex(CompiledConstraint):
    """The index on demand: a lazy DFA, and the masks asked for so far. States are row offsets of the DFA's table."""

    def __init__(self, backend: TokenIndex, constraint: Constraint, automaton: LazyDfa, phases: Phases) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.automaton, self.phases, self._settings = automaton, phases, backend.settings
        self.masks = MaskStore(backend.settings["mask_mb"] << 20, masks.mask_words(self.vocab.size))

    @property
    def sizes(self) -> dict[str, int]:
        """What was made so far."""
        return {
            "states": self.automaton.state_count,
            "byte_classes": self.automaton.class_count,
            "bytes": self.automaton.nbytes + self.masks.nbytes,
        }

    @sizes.setter
    def sizes(self, sizes: dict[str, int]) -> None:
        pass  # they are counted, not set

    @cached_property
    def states(self) -> LazyStates:
        """The states, made when the first matcher is, as they need the trie of the vocabulary."""
        keep, per_token = bool(self._settings["cache_masks"]), self._settings["walk"] == "per_token"
        return LazyStates(self.vocab, self.automaton, self.masks, self.working, keep, per_token)

    def _start(self, context: tuple[int, ...]) -> NumberedMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return NumberedMatcher(self.states)


class ExplicitTokenIndex(CompiledConstraint):
    """The index of all states that tokens can reach, as a `RowTable`."""

    def __init__(self, backend: TokenIndex, constraint: Constraint, dfa: Dfa, phases: Phases, complete: bool) -> None:
        from tokdfa.automata.liveness import coaccessible_states
        from tokdfa.token_automata.liveness import cannot_spell
        from tokdfa.token_automata.token_index import build_token_table

        super().__init__(constraint, backend.vocab, backend.name)
        self.dfa, self.phases, settings = dfa, phases, backend.settings
        with phases.measure("index"):
            by_trie = settings["walk"] == "trie"
            table = build_token_table(self.vocab, dfa, by_trie=by_trie, max_entries=settings["max_transitions"])
            accepting = dfa.accepting[table.dfa_states]
            if not complete:
                live = coaccessible_states(table.offsets, table.targets, accepting)
                if not live[0]:
                    raise cannot_spell(dfa, self.vocab, constraint.name)
                table = table.keep(live)
            cache_bytes = settings["mask_mb"] << 20
            self.states = RowTable(self.vocab, table.compact(), accepting, cache_bytes, settings["cache_masks"])
        self.sizes = {
            "states": len(accepting),
            "transitions": len(self.states.table.ranks),
            "byte_classes": dfa.class_count,
            "bytes": self.states.nbytes + dfa.nbytes,
        }

    def _start(self, context: tuple[int, ...]) -> NumberedMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return NumberedMatcher(self.states)

    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return self.states.accepts(state)

    def transitions(self, state: int) -> dict[int, int]:
        """The state's row of the index: token -> state."""
        return self.states.row(state)
