"""A compiled constraint: its tables, and the masks and steps that are made with them.

A matcher's state is the number of a row. A mask or a step that was met before is served by `StateMatcher`, from what is
kept of the constraint. For others the machine and the filler of masks make what is missing, within the budget of a
step. If the tables are full, the matcher moves to new ones (`tokdfa.backends.pushdown_trie.matcher`).

Matchers of one *generation* share its tables; when they pass ``table_mb``, new ones are begun, and a matcher moves to
them by reading its tokens again. Everything new is made under the lock of the vocabulary's pool, which all constraints
of the vocabulary share.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.coaccessible import LACKS_BYTES
from tokdfa.backends.longest_match import MOST_SEARCHED, NO_END_FOUND, PROVED
from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.matcher import PushdownMatcher
from tokdfa.backends.pushdown_trie.pool import Pool, pool_of
from tokdfa.backends.pushdown_trie.rows import MachineFull
from tokdfa.backends.pushdown_trie.spelled_rows import SpelledRows
from tokdfa.backends.situations import Situations
from tokdfa.backends.some_end import FAR
from tokdfa.core.locks import cached_property
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.base import Phases
    from tokdfa.backends.longest_match import Blocked
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg, OpenNames
    from tokdfa.mask import Mask
    from tokdfa.program.builder import Program
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]


class PushdownTables(CompiledConstraint):
    """The program of a constraint, the machine that runs it, and the masks and steps made so far.

    `cfg`: the grammar that the program was lowered from, if it is one and read by longest match.
    """

    def __init__(
        self,
        constraint: Constraint,
        vocab: Vocabulary,
        program: Program,
        settings: dict[str, Any],
        phases: Phases,
        pool: Pool | None = None,
        cfg: Cfg | None = None,
    ) -> None:
        super().__init__(constraint, vocab, "pushdown_trie")
        self.settings, self.phases = settings, phases
        self.keeps_masks: bool = settings["memo"]
        if pool is None:
            pool = pool_of(vocab, settings["shared_mb"]) if settings["shared"] else Pool(vocab)
        self.pool = pool
        self.lock = self.pool.lock
        began = time.perf_counter_ns()
        with self.lock:
            self.bound = BoundProgram(program, pool.automata, anew=not settings["shared_automata"])
        self.filler = Filler(settings["partition"], settings["subtrees"])
        blocked: Blocked | None = None
        if cfg is not None and program.longest:
            with phases.measure("proof"):
                blocked = PROVED.blocked(constraint, cfg, vocab, self.bound.is_spelled)
        #: See `Situations`.
        self.complete = self.bound.is_spelled and blocked is None
        self.max_search = max(settings["max_search"], 0 if blocked is None else MOST_SEARCHED)
        self.generation = self.begin_generation()
        phases.add("tables", began)
        if program.source.token_sets:
            self.generation.token_sets()
        try:
            self.generation.check_start(0, constraint, blocked)
        except MachineFull:
            if blocked is None:
                raise
            raise blocked.error(constraint, "and the tables are full before all texts were followed") from None

    def _start(self, context: tuple[int, ...]) -> PushdownMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return PushdownMatcher(self)

    @property
    def program(self) -> Program:
        """The program that it runs."""
        return self.bound.program

    @property
    def open_names(self) -> OpenNames:  # type: ignore[override]
        """See `CompiledConstraint`; code that is written later may have more."""
        return self.program.source.open_names

    @property
    def may_open_names(self) -> bool:  # type: ignore[override]
        """Whether code is written later."""
        return bool(self.program.source.makes)

    def begin_generation(self) -> TableGeneration:
        """New tables, which nobody has yet."""
        return TableGeneration(self)

    @property
    def sizes(self) -> dict[str, int]:
        """What was built so far; tables grow as texts are read."""
        machine = self.generation.machine
        return {
            "instructions": len(self.program.code),
            "terminals": len(self.program.source.terminals),
            "rows": machine.row_count,
            "stacks": machine.stack_count,
            "bytes": machine.nbytes,
        }

    @sizes.setter
    def sizes(self, sizes: dict[str, int]) -> None:
        """Nothing: they are measured when they are asked."""

    def renew(self, full: TableGeneration) -> None:
        """Begin new tables in place of full ones; matchers that have those keep them until they move."""
        with self.lock:
            if self.generation is full:
                self.generation = self.begin_generation()


class TableGeneration(Situations):
    """The rows of a machine as situations, each its own number.

    It does not refer to the constraint, so that tables are given back as soon as nobody uses them.
    """

    def __init__(self, compiled: PushdownTables) -> None:
        settings, pool = compiled.settings, compiled.pool
        self.machine = Machine(
            compiled.bound.program,
            pool,
            settings["max_row_items"],
            settings["table_mb"] << 20,
            bound=compiled.bound,
            first_bytes=settings["first_bytes"],
        )
        store = MaskStore(settings["mask_mb"] << 20, masks.mask_words(compiled.vocab.size), pool.spare_masks, pool.lock)
        self._keep_in(compiled.vocab, store, compiled.working, settings["memo"])
        self.complete, self.filler = compiled.complete, compiled.filler
        self._resolved: tuple[int, dict[int, set[int]]] = (0, {})
        if not self.complete:
            message = NO_END_FOUND if compiled.bound.is_spelled else LACKS_BYTES
            self.live = self._search(compiled.max_search, message)

    @cached_property
    def _possible(self) -> SpelledRows:
        """Which rows come to an end, by all bytes, or if some are missing as tokens by those that occur in tokens."""
        available = np.ones(256, dtype=np.bool_) if self.complete else self.vocab.used_bytes
        return SpelledRows(self.machine, available, special=not self.complete)

    @cached_property
    def _surely(self) -> SpelledRows:
        """Which do so by bytes that are tokens."""
        letters = self.vocab.letters
        return SpelledRows(self.machine, letters.spellable) if letters.crossing else self._possible

    def token_sets(self) -> dict[int, set[int]]:
        """Special token -> the token sets of the program that it is in; code that is written later may bring more.

        Raises VocabularyError for tokens that the vocabulary does not have.
        """
        count, found = self._resolved
        token_sets = self.machine.program.source.token_sets
        if len(token_sets) != count:
            from tokdfa.grammar.special import resolve

            found = {}
            for number, tokens in enumerate(token_sets):
                for token in resolve(tokens, self.vocab).tolist():
                    found.setdefault(token, set()).add(number)
            self._resolved = len(token_sets), found
        return found

    def _step(self, situation: int, token: int) -> int:
        begin, end = int(self.vocab.offsets[token]), int(self.vocab.offsets[token + 1])
        if end > begin:
            return self.machine.run(situation, self.vocab.byte_data, begin, end)
        self.machine.token_sets(situation)  # code that is needed to know them is written
        return self.machine.take(situation, self.token_sets().get(token, set()))

    def _can_end(self, situation: int) -> bool:
        return self.machine.can_end(situation)

    def _fill_raw(self, situation: int, out: Mask) -> None:
        out[:] = self.filler.fill(self.machine, situation)
        for token in self._special_targets(situation):
            masks.set_token(out, token)

    def _walk_targets(self, situation: int, trie: TokenTrie) -> Int32:
        return self.machine.targets(situation, trie)

    def _special_targets(self, situation: int) -> dict[int, int]:
        allowed = self.machine.token_sets(situation)
        if not allowed:
            return {}
        sets_of = {token: frozenset(sets & allowed) for token, sets in self.token_sets().items()}
        targets = {sets: self.machine.take(situation, set(sets)) for sets in set(sets_of.values())}
        return {token: targets[sets] for token, sets in sets_of.items() if targets[sets] >= 0}

    def _following(self, situation: int) -> Int32:
        return self.machine.following_rows(situation)

    def _rank(self, situation: int) -> int:
        return self._possible.rank(situation)

    def _outlook(self, situation: int) -> bool | None:
        if not self.machine.program.longest and self._surely.rank(situation) < FAR:
            return True
        return False if self._possible.rank(situation) >= FAR else None

    def make_mask(self, situation: int, out: Mask) -> bool:
        """Write the mask of a row, and keep it; whether it had to be made. Raises MachineFull."""
        if not self.complete or self.machine.program.source.token_sets:
            return super().make_mask(situation, out)
        with self.lock:
            return self.filler.keep(self.machine, self.masks, situation, out, self.working, self._keeps_masks)

    def read(self, situation: int, text: bytes) -> int:
        with self.lock:
            return self.machine.run_text(text, situation)

    def waypoints(self, situation: int, calls: bool) -> list[int]:
        with self.lock:
            return self.machine.waypoints(situation, calls)
