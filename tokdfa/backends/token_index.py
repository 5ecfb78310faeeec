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

import numpy as np

from tokdfa import mask as masks
from tokdfa.automata.liveness import coaccessible_states
from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.lazy_liveness import LazyLiveness
from tokdfa.backends.numbered_states import NumberedMatcher, NumberedStates, RowTable, set_ends
from tokdfa.backends.proper import WithProper
from tokdfa.constraint import JsonSchema
from tokdfa.core.jit import kernel
from tokdfa.token_automata.liveness import cannot_spell, spells_every_byte
from tokdfa.token_automata.prefix_graphs import bytes_alive
from tokdfa.token_automata.token_index import build_token_table
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN, walk, walk_collect
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import Phases
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
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
        from tokdfa.automata.algebra import minimize, trim
        from tokdfa.backends.base import Phases
        from tokdfa.regex.compile import compile_lazy, explicit_dfa

        phases = Phases()
        if isinstance(constraint, JsonSchema):
            dfa = explicit_automaton(constraint, self.settings["max_states"], phases)
            with phases.measure("minimize"):
                dfa = minimize(dfa) if self.settings["minimal"] else trim(dfa)
            complete = spells_every_byte(self.vocab, bytes_alive(dfa))
            return ExplicitTokenIndex(self, constraint, dfa, phases, complete)
        with phases.measure("parse"):
            automaton = compile_lazy(constraint, max_states=LAZY_STATES)
        spellable = self.vocab.single_byte_tokens
        complete = bool(spellable.all()) or LazyLiveness(automaton, spellable).always
        if self.settings["lazy"] and complete:
            return LazyTokenIndex(self, constraint, automaton, phases)
        with phases.measure("automaton"):
            dfa = explicit_dfa(automaton, constraint, self.settings["max_states"])
        with phases.measure("minimize"):
            dfa = minimize(dfa) if self.settings["minimal"] else trim(dfa)
        return ExplicitTokenIndex(self, constraint, dfa, phases, complete)


class LazyTokenIndex(CompiledConstraint, NumberedStates):
    """The index on demand: a lazy DFA, and the masks asked for so far. States are row offsets of the DFA's table."""

    def __init__(self, backend: TokenIndex, constraint: Constraint, automaton: LazyDfa, phases: Phases) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.automaton = automaton
        self.phases = phases
        self.masks = MaskStore(backend.settings["mask_mb"] << 20, masks.mask_words(self.vocab.size))
        self._keep = bool(backend.settings["cache_masks"])
        self._per_token = backend.settings["walk"] == "per_token"
        self._update_sizes()

    def _update_sizes(self) -> None:
        self.sizes = {
            "states": self.automaton.state_count,
            "byte_classes": self.automaton.class_count,
            "bytes": self.automaton.nbytes + self.masks.nbytes,
        }

    def _start(self, context: tuple[int, ...]) -> NumberedMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return NumberedMatcher(self)

    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return bool(self.automaton.accepting[state // self.automaton.class_count])

    def step(self, state: int, token: int) -> int:
        """The state after `token`, or -1."""
        automaton, vocab = self.automaton, self.vocab
        position, end = int(vocab.offsets[token]), int(vocab.offsets[token + 1])
        if position == end:
            return DEAD
        while True:
            state, position, known = _read_bytes_kernel(
                automaton.transitions, automaton.byte_class, vocab.byte_data, position, end, state
            )
            if known:
                return int(state)
            with self.masks.lock, self.working:
                automaton.fill_row(int(state))

    def targets(self, state: int) -> npt.NDArray[np.int32]:
        """The state after each token, by one walk: int32, shape (V,), -1 where a token is not allowed."""
        size = self.vocab.size
        tokens, reached = np.empty(size + 1, dtype=np.int32), np.empty(size + 1, dtype=np.int32)
        with self.masks.lock, self.working:
            count, _ = walk_collect(self.vocab.trie, self.automaton, state, tokens, reached)
        found = np.full(size, DEAD, dtype=np.int32)
        found[tokens[:count]] = reached[:count]
        return found

    def make_mask(self, state: int, out: Mask) -> dict[str, int]:
        """Write the mask of `state` by a walk, and keep it if masks are cached."""
        out.fill(0)
        with self.masks.lock, self.working:
            if self._per_token:
                allowed = [token for token in self.vocab.trie.order.tolist() if self.step(state, token) >= 0]
                out |= masks.mask_from_ids(allowed, self.vocab.size)
                work = {"tokens_run": self.vocab.trie.order.size}
            else:
                visited, skipped, filled = walk(self.vocab.trie, self.automaton, state, out)
                work = {"trie_nodes_visited": visited, "trie_nodes_skipped": skipped, "rows_filled": filled}
            if self.accepts(state):
                set_ends(out, self.vocab)
            if self._keep:
                self.masks.keep(state, out)
                self._update_sizes()
        return {"masks_made": 1, **work}


class ExplicitTokenIndex(CompiledConstraint):
    """The index of all states that tokens can reach, as a `RowTable`."""

    def __init__(self, backend: TokenIndex, constraint: Constraint, dfa: Dfa, phases: Phases, complete: bool) -> None:
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


@kernel
def _read_bytes_kernel(transitions, byte_class, byte_data, position, end, row):  # type: ignore[no-untyped-def]
    """Read bytes position..end-1 from `row`. Returns (row, position, True), or where an UNKNOWN entry stopped it."""
    while position < end:
        target = transitions[row + byte_class[byte_data[position]]]
        if target < 0:
            if target == UNKNOWN:
                return np.int64(row), position, False
            return np.int64(DEAD), position, True
        row = np.int64(target)
        position += 1
    return np.int64(row), position, True


def _warm_up() -> None:
    """Run every kernel of this backend once."""
    from tokdfa.constraint import Choice
    from tokdfa.vocabulary.vocabulary import Vocabulary

    vocab = Vocabulary([b"a", b"b", b"ab", b""], end_tokens=[3])
    mask = masks.allocate_mask(vocab.size)
    for options in ({"lazy": True}, {"walk": "per_token"}, {"cache_masks": False}):
        matcher = TokenIndex(vocab, **options).compile(Choice(["ab", "b"])).start()
        matcher.fill_mask(mask)
        matcher.fill_mask(mask)  # the second time from the cache
        matcher.advance(0)
    TokenIndex(Vocabulary([b"ab", b""], end_tokens=[1])).compile(Choice(["ab", "a"]))
