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
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.coaccessible import LACKS_BYTES, CoaccessibleSearch
from tokdfa.backends.longest_match import MOST_SEARCHED, NO_END_FOUND, PROVED, settle
from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.matcher import PushdownMatcher
from tokdfa.backends.pushdown_trie.pool import Pool, pool_of
from tokdfa.backends.pushdown_trie.rows import MachineFull
from tokdfa.backends.pushdown_trie.spelled_rows import SpelledRows
from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.some_end import FAR
from tokdfa.backends.state_matcher import StepMemo
from tokdfa.core.budget import spend
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.base import Phases
    from tokdfa.backends.longest_match import Blocked
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg, OpenNames
    from tokdfa.mask import Mask
    from tokdfa.program.builder import Program
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: What a walk from a row takes, and a node of its trie.
NS_PER_WALK, NS_PER_NODE = 20_000, 10


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
        self.mask_limit, self.max_search = settings["mask_mb"] << 20, settings["max_search"]
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
        #: Whether every beginning of a text can be finished: the bytes that this takes are tokens, and no lexeme
        #: swallows what should follow it.
        self.complete = self.bound.is_spelled and blocked is None
        self.generation = self.begin_generation()
        phases.add("tables", began)
        self._resolved: tuple[int, dict[int, set[int]]] = (0, {})
        if program.source.token_sets:
            self._resolve_special()
        if blocked is not None:
            self.max_search = max(self.max_search, MOST_SEARCHED)
            self._settle(blocked)
        if not self.complete:
            with self.lock:
                is_live = self.generation.live.is_live(0)
            if not is_live:
                raise VocabularyCannotSpell(
                    f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
                )

    def _settle(self, blocked: Blocked) -> None:
        """See `settle`, which raises GrammarUnsupported and EmptyLanguageError."""
        generation = self.generation
        search, successors = generation.search(self, MOST_SEARCHED), partial(self.successors, generation)
        try:
            with self.lock:
                settle(blocked, self.constraint, self.vocab, 0, search, successors)
        except MachineFull:
            raise blocked.error(self.constraint, "and the tables are full before all texts were followed") from None

    def _start(self, context: tuple[int, ...]) -> PushdownMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return PushdownMatcher(self)

    def situations(self, generation: TableGeneration) -> PushdownSituations:
        """The rows of a generation as situations."""
        return PushdownSituations(self, generation)

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
        settings = self.settings
        machine = Machine(
            self.bound.program,
            self.pool,
            settings["max_row_items"],
            settings["table_mb"] << 20,
            bound=self.bound,
            first_bytes=settings["first_bytes"],
        )
        return TableGeneration(self, machine)

    @property
    def _token_sets(self) -> dict[int, set[int]]:
        """Special token -> the token sets of the program that it is in; code that is written later may bring more."""
        return self._resolve_special()

    def _resolve_special(self) -> dict[int, set[int]]:
        """`_token_sets`. Raises VocabularyError for tokens that the vocabulary does not have."""
        count, found = self._resolved
        token_sets = self.program.source.token_sets
        if len(token_sets) != count:
            from tokdfa.grammar.special import resolve

            found = {}
            for number, tokens in enumerate(token_sets):
                for token in resolve(tokens, self.vocab).tolist():
                    found.setdefault(token, set()).add(number)
            self._resolved = len(token_sets), found
        return found

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

    def work(self) -> dict[str, int]:
        """Totals of the work done, by name, since the tables were begun."""
        machine = self.generation.machine
        return {
            "nodes_visited": machine.nodes_visited,
            "rows_closed": machine.rows_closed,
            "rows": machine.row_count,
            "stacks": machine.stack_count,
            "divisions": self.pool.masks.divisions.made,
        }

    def step(self, generation: TableGeneration, row: int, token: int) -> int:
        """The row after a token that is no end token, -1 if it is not allowed. Raises MachineFull."""
        machine, vocab = generation.machine, self.vocab
        begin, end = int(vocab.offsets[token]), int(vocab.offsets[token + 1])
        with self.lock:
            if end > begin:
                found = machine.run(row, vocab.byte_data, begin, end)
            else:
                machine.token_sets(row)  # code that is needed to know them is written
                found = machine.take(row, self._token_sets.get(token, set()))
            return found if found < 0 or self.complete or generation.live.is_live(found) else -1

    def targets(self, generation: TableGeneration, row: int) -> Int32:
        """The row after each token, by one walk over the token trie: int32, shape (V,), -1 where a token is not
        allowed. Special tokens count as not allowed. The lock is held. Raises MachineFull.
        """
        trie = self.vocab.trie
        found = generation.machine.targets(row, trie)
        if not self.complete:
            spend(NS_PER_NODE * trie.node_count)
            reached = np.unique(found)
            dead = [target for target in reached[reached >= 0].tolist() if not generation.live.is_live(target)]
            if dead:
                found[np.isin(found, dead)] = -1
        return found

    def successors(self, generation: TableGeneration, row: int) -> list[int]:
        """The rows that letters and special tokens lead to, dead ends among them."""
        machine, letters = generation.machine, self.vocab.letters.trie
        spend(NS_PER_WALK + NS_PER_NODE * letters.node_count)
        reached = np.unique(machine.targets(row, letters))
        found = reached[reached >= 0].tolist()
        if machine.token_sets(row):
            found += [machine.take(row, set(sets)) for sets in {*map(frozenset, self._token_sets.values())}]
        return [target for target in found if target >= 0]

    def make_mask(self, generation: TableGeneration, row: int, out: Mask) -> bool:
        """Write and keep the mask of a row; whether it had to be made. Raises MachineFull."""
        with self.lock:
            machine, kept = generation.machine, generation.masks
            if self.complete and not self.program.source.token_sets:
                return self.filler.keep(machine, kept, row, out, self.working, self.keeps_masks)
            self.filler.fill_whole(machine, row, out, self.working)
            with self.working:
                self._complete_mask(generation, row, out)
            if self.keeps_masks:
                kept.keep(row, out)
            return True

    def _complete_mask(self, generation: TableGeneration, row: int, out: Mask) -> None:
        """Take out dead ends, and put in special tokens."""
        machine = generation.machine
        if not self.complete:
            dead = masks.mask_to_bool(out, self.vocab.size) & (self.targets(generation, row) < 0)
            dead[list(self.vocab.end_tokens)] = False
            for token in np.flatnonzero(dead).tolist():
                masks.clear_token(out, token)
        allowed = machine.token_sets(row) if self.program.source.token_sets else None
        if allowed:
            for token, sets in self._token_sets.items():
                if not sets.isdisjoint(allowed) and self.step(generation, row, token) >= 0:
                    masks.set_token(out, token)


class TableGeneration:
    """A machine, and what was found out about its rows."""

    def __init__(self, compiled: PushdownTables, machine: Machine) -> None:
        self.machine = machine
        vocab = compiled.vocab
        pool = compiled.pool
        self.masks = MaskStore(compiled.mask_limit, masks.mask_words(vocab.size), pool.spare_masks, pool.lock)
        self.steps: StepMemo[int] = StepMemo()
        self.ranks: SpelledRows | None = None  # made when they are asked for
        # refers to the constraint, which refers to this: only where it is needed, so that tables are given back at once
        if not compiled.complete:
            self.live = self.search(compiled, compiled.max_search)

    def search(self, compiled: PushdownTables, limit: int) -> CoaccessibleSearch[int]:
        """A search for ends over the rows of the machine."""
        machine, letters = self.machine, compiled.vocab.letters
        possible = SpelledRows(machine, compiled.vocab.used_bytes)
        surely = SpelledRows(machine, letters.spellable) if letters.crossing else possible

        def outlook(row: int) -> bool | None:
            if not machine.program.longest and surely.rank(row) < FAR:
                return True
            return False if possible.rank(row) >= FAR else None

        message = NO_END_FOUND if compiled.bound.is_spelled else LACKS_BYTES
        successors = partial(compiled.successors, self)
        return CoaccessibleSearch(successors, machine.can_end, limit, possible.rank, message, outlook)

    def rank(self, row: int) -> int:
        """How far an end is from a row, byte by byte."""
        self.ranks = self.ranks or SpelledRows(self.machine, np.ones(256, dtype=np.bool_), special=False)
        return self.ranks.rank(row)


@dataclass(frozen=True)
class PushdownSituations(SituationSource):
    """The rows of a compiled constraint in one generation, each its own number, as `tokdfa.backends.situation_source`
    asks for them.
    """

    compiled: PushdownTables
    generation: TableGeneration

    def number(self, state: int) -> int:
        """The state itself."""
        return state

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        return self.compiled.step(self.generation, situation, token)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""
        with self.compiled.lock:
            return self.generation.machine.can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""
        if not self.generation.masks.fill(situation, out):
            self.compiled.make_mask(self.generation, situation, out)

    def read(self, situation: int, text: bytes) -> int:
        """The situation after some bytes, -1 if they are not allowed."""
        with self.compiled.lock:
            return self.generation.machine.run_text(text, situation)

    def waypoints(self, situation: int, calls: bool) -> list[int]:
        """See `SituationSource.waypoints`."""
        with self.compiled.lock:
            return self.generation.machine.waypoints(situation, calls)

    def following(self, situation: int) -> Int32 | None:
        """See `SituationSource.following`."""
        with self.compiled.lock:
            return self.generation.machine.following_rows(situation) if self.compiled.complete else None

    def rank(self, situation: int) -> int:
        """See `SituationSource.rank`."""
        with self.compiled.lock:
            return self.generation.rank(situation)

    def targets(self, situation: int) -> Int32:
        """The situation after each token, by one walk over the token trie: 0.5 to 2 ms.

        int32, shape (V,), -1 where a token is not allowed. Special tokens count as not allowed.
        """
        with self.compiled.lock:
            return self.compiled.targets(self.generation, situation)
