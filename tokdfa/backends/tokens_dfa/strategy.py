"""The tokens DFA: an automaton whose letters are tokens, built by treating tokens as a DFA compiler treats bytes.

Strategy (001, outlines-core pull request 194). The plain index (`tokdfa.backends.token_index`) runs every token from
every state. Here tokens that no state can tell apart are first put into classes, and the table is made for the classes.
Each part of the strategy is an option, so that an experiment can say what it buys (``tokdfa run
experiments/tokens_dfa_ablation.yaml``):

- ``mute_literals``: literals of the pattern become bound tokens, symbols bound to the fewest tokens that spell them
  (`tokdfa.backends.tokens_dfa.muting`). The texts stay the same, the token sequences do not: a literal can only be
  spelled in that one way, and no token may run across its edges. So it is off unless asked for.
- ``token_classes``: ``transformations`` finds the coarsest classes in one walk of the trie
  (`tokdfa.backends.tokens_dfa.transformations`; ours); ``strings`` classifies by strings of byte classes, as 001 does,
  and walks the classes from every state (`tokdfa.token_automata.prefix_graphs`); ``none`` walks the tokens themselves.
- ``dead_bytes``, ``prefix_graphs``: drop tokens with bytes that no transition reads; share the walks of common
  prefixes. Transformations do both by themselves, so these apply to ``strings`` and ``none`` only.
- ``byte_classes``: letters are the automaton's byte classes instead of bytes.
- ``threads``: classes and walks, each for a part of the trie. The reduced table does not depend on it.
- ``reduce``: equal columns and equal rows of the table once (`tokdfa.backends.tokens_dfa.reduced_table`).
- ``proper``: only proper sequences, by the filter of `tokdfa.backends.proper`; exact.
- ``ready_masks``: a mask for every state in advance (`tokdfa.backends.tokens_dfa.ready_masks`); otherwise a mask is put
  together from its token classes each time.

Whatever the options, states, masks and transitions are the same, except with ``mute_literals`` and ``proper``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Option, Phases
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.backends.numbered_states import NumberedMatcher
from tokdfa.backends.proper import WithProper
from tokdfa.backends.tokens_dfa.bound_tokens import BoundTokens, add_bound_tokens, determinize
from tokdfa.backends.tokens_dfa.ready_masks import make_masks
from tokdfa.backends.tokens_dfa.reduced_states import ReducedStates
from tokdfa.backends.tokens_dfa.reduced_table import class_rows, live_rows, reduce_rows
from tokdfa.backends.tokens_dfa.transformations import transformations
from tokdfa.errors import OptionError
from tokdfa.regex.compile import MAX_STATES, explicit_dfa
from tokdfa.token_automata.columns import join, unite
from tokdfa.token_automata.liveness import cannot_spell, cannot_spell_muted, spells_every_byte
from tokdfa.token_automata.parallel import run_in_threads, split_trie
from tokdfa.token_automata.prefix_graphs import build_prefix_graphs, bytes_alive, walk_graphs
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
    from tokdfa.constraint import Constraint
    from tokdfa.token_automata.columns import Columns
    from tokdfa.vocabulary.vocabulary import Vocabulary


class TokensDfa(WithProper):
    """See the module's docstring."""

    name: ClassVar[str] = "tokens_dfa"
    summary: ClassVar[str] = "DFA over token classes: each class and each transition once (outlines-core's V2Index)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    shared_limits: ClassVar[tuple[str, ...]] = ("max_states", "max_transitions")
    options: ClassVar[tuple[Option, ...]] = (
        Option("mute_literals", bool, False, "spell each literal with the fewest tokens, and in no other way"),
        Option(
            "token_classes",
            str,
            "transformations",
            "classes of tokens: by what they do to the states, by their strings of byte classes, or each its own",
            choices=("transformations", "strings", "none"),
        ),
        Option("dead_bytes", bool, True, "drop tokens with bytes that no state reads (strings and none only)"),
        Option("byte_classes", bool, True, "read the automaton's byte classes instead of bytes"),
        Option("prefix_graphs", bool, True, "share the walks of common prefixes (strings and none only)"),
        Option("threads", int, 1, "threads that build the table; the result is the same", minimum=1, maximum=256),
        Option("reduce", bool, True, "keep equal columns and equal rows of the table once"),
        Option("ready_masks", bool, True, "make the mask of every state in advance"),
        Option("minimal", bool, True, "minimise the DFA first"),
        Option("max_states", int, MAX_STATES, "limit on DFA states before minimisation", minimum=1),
        Option("max_transitions", int, 30_000_000, "limit on transitions of token classes, 8 bytes each", minimum=1),
        Option("mask_mb", int, 256, "limit on ready masks, in MB; past it masks are made when asked for", minimum=0),
    )

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        if self.settings["proper"] and self.settings["mute_literals"]:
            raise OptionError("mute_literals spells literals in ways that are mostly not proper; choose one of the two")

    def _load_tables(self, tables: tuple[ReducedTable, dict[str, int]], constraint: Constraint) -> CompiledTokensDfa:
        return CompiledTokensDfa(constraint, self.vocab, tables[0], self.settings, Phases(), tables[1])

    def _compile_plain(self, constraint: Constraint) -> CompiledTokensDfa:
        phases, sizes = Phases(), dict[str, int]()
        dfa, bound_tokens = self._automaton(constraint, phases, sizes)
        columns = self._columns(dfa, phases, sizes)
        with phases.measure("reduce"):
            if bound_tokens is not None:
                columns = add_bound_tokens(columns, bound_tokens)
            rows = class_rows(columns, dfa.accepting, dfa.start)
            if bound_tokens is not None:
                rows = determinize(rows, self.settings["max_states"])
            if not self.vocab.single_byte_tokens.all() and not spells_every_byte(self.vocab, bytes_alive(dfa)):
                rows = live_rows(rows)
                if not rows.accepting[rows.start] and rows.offsets[rows.start] == rows.offsets[rows.start + 1]:
                    if bound_tokens is not None:
                        raise cannot_spell_muted(self.vocab, constraint.name)
                    raise cannot_spell(dfa, self.vocab, constraint.name)
            table = reduce_rows(rows, columns, self.vocab.trie.order, share=self.settings["reduce"])
        return CompiledTokensDfa(constraint, self.vocab, table, self.settings, phases, sizes)

    def _automaton(
        self, constraint: Constraint, phases: Phases, sizes: dict[str, int]
    ) -> tuple[Dfa, BoundTokens | None]:
        """The byte automaton, and the bound tokens if literals are muted."""
        from tokdfa.automata.algebra import minimize, trim

        max_states = self.settings["max_states"]
        finish = minimize if self.settings["minimal"] else trim
        if not self.settings["mute_literals"]:
            dfa = explicit_automaton(constraint, max_states, phases)
            with phases.measure("minimize"):
                dfa = finish(dfa)
            sizes.update(dfa_states=dfa.state_count, byte_classes=dfa.class_count)
            return dfa, None
        from tokdfa.backends.tokens_dfa.contraction import contract
        from tokdfa.backends.tokens_dfa.muting import compile_muted

        with phases.measure("parse"):
            lazy, muting = compile_muted(constraint, self.vocab)
        with phases.measure("automaton"):
            dfa = explicit_dfa(lazy, constraint, max_states)
        with phases.measure("minimize"):
            dfa, targets = contract(finish(dfa), muting)
        sizes.update(
            dfa_states=dfa.state_count,
            byte_classes=dfa.class_count,
            literals=len(muting.literals),
            bound_tokens=len(muting.bound_token_ids),
        )
        return dfa, BoundTokens(self.vocab.trie.rank_of[muting.bound_token_ids], targets)

    def _columns(self, dfa: Dfa, phases: Phases, sizes: dict[str, int]) -> Columns:
        """The token classes and what each does to the states, by the means that the options name."""
        trie, settings = self.vocab.trie, self.settings
        by_class, threads, limit = settings["byte_classes"], settings["threads"], settings["max_transitions"]
        if settings["token_classes"] == "transformations":
            with phases.measure("classes"):
                return transformations(trie, dfa, byte_classes=by_class, threads=threads, max_pairs=limit)
        parts = split_trie(trie.ranked_nodes, len(trie.order), threads)
        with phases.measure("classes"):
            build = partial(
                build_prefix_graphs,
                trie,
                dfa,
                dead_bytes=settings["dead_bytes"],
                byte_classes=by_class,
                merge=settings["token_classes"] == "strings",
            )
            graphs = run_in_threads([partial(build, part) for part in parts])
        sizes.update(
            tokens_left=sum(len(one.ranks) for one in graphs),
            class_strings=sum(one.class_count for one in graphs),
            graph_nodes=sum(len(one.nodes) for one in graphs),
        )
        with phases.measure("walks"):
            shared = settings["prefix_graphs"]
            walk = partial(walk_graphs, dfa=dfa, byte_classes=by_class, prefix_graphs=shared, max_pairs=limit)
            walked = run_in_threads([partial(walk, one) for one in graphs])
        found = [columns for columns, _ in walked]
        sizes["dfa_steps"] = sum(steps for _, steps in walked)
        with phases.measure("reduce"):
            return unite(found) if settings["reduce"] else join(found)


class CompiledTokensDfa(CompiledConstraint, ReducedStates):
    """A tokens DFA; state 0 is the start. Immutable, shareable between threads."""

    def __init__(
        self,
        constraint: Constraint,
        vocab: Vocabulary,
        table: ReducedTable,
        settings: dict[str, object],
        phases: Phases,
        sizes: dict[str, int],
    ) -> None:
        super().__init__(constraint, vocab, TokensDfa.name)
        ReducedStates.__init__(self, vocab, table)
        self.settings, self.phases = dict(settings), phases
        with phases.measure("masks"):
            limit = int(str(settings["mask_mb"])) << 20
            self.masks = MaskStore(limit, masks.mask_words(vocab.size))
            mask_count = 0
            if settings["ready_masks"]:
                ready = make_masks(table, vocab.size, np.array(vocab.end_tokens, dtype=np.int32), limit)
                mask_count = ready.mask_count
                self.masks.keep_all(ready.packed, ready.narrow, ready.nbytes)
        self.sizes = {
            "states": table.state_count,
            **sizes,
            "token_classes": table.class_count,
            "rows": table.row_count,
            "transitions": len(table.classes),
            "masks": mask_count,
            "table_bytes": table.nbytes,
            "mask_bytes": self.masks.nbytes,
            "bytes": table.nbytes + self.masks.nbytes + 16 * table.state_count,
        }

    def _save_tables(self) -> tuple[ReducedTable, dict[str, int]]:
        return self.table, self.sizes

    def _start(self, context: tuple[int, ...]) -> NumberedMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return NumberedMatcher(self)

    def transitions(self, state: int) -> dict[int, int]:
        """The state's row, spelled out: token -> state."""
        row = self.table.row(state)
        entries = zip(self.table.classes[row].tolist(), self.table.targets[row].tolist(), strict=True)
        return {token: target for found, target in entries for token in self.table.members_of(found).tolist()}

    def targets(self, state: int) -> npt.NDArray[np.int32]:
        """The state after each token: int32, shape (V,), -1 where a token is not allowed."""
        found = np.full(self.vocab.size, -1, dtype=np.int32)
        row = self.table.row(state)
        for token_class, target in zip(self.table.classes[row].tolist(), self.table.targets[row].tolist(), strict=True):
            found[self.table.members_of(token_class)] = target
        return found
