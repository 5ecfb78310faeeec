"""What `tokdfa.backends.pushdown_trie.strategy` keeps of a constraint: its program, machines, masks and steps.

Matchers of one *generation* share its tables; when they pass ``table_mb``, new ones are begun. Everything here is done
under the lock of the vocabulary's pool, which all constraints of the vocabulary share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.coaccessible import CoaccessibleSearch
from tokdfa.backends.matcher import StepMemo
from tokdfa.backends.pushdown_trie.arrays import M_CLOSED, M_NODES
from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
from tokdfa.backends.pushdown_trie.fill import Filler
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool, pool_of
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    from tokdfa.backends.base import Phases
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.program.program import Program
    from tokdfa.vocabulary.vocabulary import Vocabulary


def filler_of(settings: dict[str, Any]) -> Filler:
    """What fills masks in the way that the backend's options ask for."""
    return Filler(settings["partition"], settings["subtrees"])


class TableGeneration:
    """A machine, and what was found out about its rows."""

    def __init__(self, compiled: PushdownTables, machine: Machine) -> None:
        self.machine = machine
        vocab = compiled.vocab
        self.masks = MaskStore(compiled.mask_limit, masks.mask_words(vocab.size), compiled.pool.spare_masks)
        self.steps: StepMemo[int] = StepMemo()
        # refers to the constraint, which refers to this: only where it is needed, so that tables are given back at once
        if not compiled.complete:
            self.live = CoaccessibleSearch(
                lambda row: compiled.targets(self, row), machine.can_end, compiled.max_search
            )


class PushdownTables(CompiledConstraint):
    """The program of a constraint, the machine that runs it, and the masks and steps made so far."""

    def __init__(
        self,
        constraint: Constraint,
        vocab: Vocabulary,
        program: Program,
        settings: dict[str, Any],
        phases: Phases,
        pool: Pool | None = None,
    ) -> None:
        super().__init__(constraint, vocab, "pushdown_trie")
        self.settings, self.phases = settings, phases
        self.mask_limit, self.max_search = settings["mask_mb"] << 20, settings["max_search"]
        self.keeps_masks: bool = settings["memo"]
        if pool is None:
            pool = pool_of(vocab) if settings["shared"] else Pool(vocab)
        self.pool = pool
        self.lock = self.pool.lock
        with phases.measure("tables"):
            with self.lock:
                self.bound = BoundProgram(program, pool.automata, anew=not settings["shared_automata"])
            self.filler = filler_of(settings)
            self.complete = self.bound.is_spelled
            self.generation = self.begin_generation()
        self._resolved: tuple[int, dict[int, set[int]]] = (0, {})
        self._resolve_special()
        with self.lock:
            is_live = self.complete or self.generation.live.is_live(0)
        if not is_live:
            raise VocabularyCannotSpell(
                f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
            )

    @property
    def is_direct(self) -> bool:
        """Whether masks are what one call of a kernel writes, but for counted strings, and are kept."""
        program = self.bound.program
        sets_come = program.source is not None and self.constraint.kind == "grammar"
        return self.keeps_masks and self.complete and not (program.longest or program.token_sets or sets_come)

    @property
    def program(self) -> Program:
        """The program; where code is written when it is needed, as it stands now."""
        return self.bound.program

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
            # a grammar's terminals are few, and gain less than the slices of the vocabulary take
            slices=settings["slices"] and self.constraint.kind != "grammar",
        )
        return TableGeneration(self, machine)

    @property
    def _token_sets(self) -> dict[int, set[int]]:
        """Special token -> the token sets of the program that it is in; code that is written later may bring more."""
        return self._resolve_special()

    def _resolve_special(self) -> dict[int, set[int]]:
        """`_token_sets`. Raises VocabularyError for tokens that the vocabulary does not have."""
        count, found = self._resolved
        token_sets = self.bound.token_sets
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
            "terminals": len(self.program.terminals),
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
        meta = self.generation.machine.meta
        return {
            "nodes_visited": int(meta[M_NODES]),
            "rows_closed": int(meta[M_CLOSED]),
            "rows": self.generation.machine.row_count,
            "stacks": self.generation.machine.stack_count,
            "partitions": self.pool.partitions.made,
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

    def targets(self, generation: TableGeneration, row: int) -> list[int]:
        """The rows that tokens lead to, dead ends among them."""
        machine, vocab = generation.machine, self.vocab
        tokens = masks.mask_to_ids(self.filler.fill(machine, row)).tolist()
        found = [
            machine.run(row, vocab.byte_data, int(vocab.offsets[token]), int(vocab.offsets[token + 1]))
            for token in tokens
        ]
        found += [machine.take(row, sets) for sets in self._token_sets.values()]
        return [target for target in dict.fromkeys(found) if target >= 0]

    def fill(self, generation: TableGeneration, row: int, out: Mask) -> bool:
        """Write the mask of a row; whether it had to be made. Raises MachineFull.

        Rows that differ in what no token can tell share the mask of one of them.
        """
        with self.lock:
            machine, kept, other = generation.machine, generation.masks, row
            if kept.fill(row, out):
                return False
            if self.complete and self.bound.counts:
                # what lies beyond a token may matter to searches for a way to an end
                other = machine.representative(row)
                if other != row and kept.fill(other, out):
                    kept.share(other, row)
                    return False
            signature: int | None = self.filler.write(machine, row, out, not machine.longest)
            tokens = self.filler.listed(machine)
            if machine.longest or not self.complete or self.bound.token_sets:
                self._complete_mask(generation, row, out)
                signature = tokens = None
            if self.keeps_masks:
                kept.keep(other, out, signature, tokens)
                if other != row:
                    kept.share(other, row)
            return True

    def _complete_mask(self, generation: TableGeneration, row: int, out: Mask) -> None:
        """Take out dead ends, and put in special tokens and end tokens."""
        machine = generation.machine
        if not self.complete:
            for token in masks.mask_to_ids(out).tolist():
                if token not in self.vocab.end_token_set and self.step(generation, row, token) < 0:
                    masks.clear_token(out, token)
        allowed = machine.token_sets(row) if self.bound.token_sets else None
        if allowed:
            for token, sets in self._token_sets.items():
                if not sets.isdisjoint(allowed) and self.step(generation, row, token) >= 0:
                    masks.set_token(out, token)
        if machine.longest and machine.can_end(row):
            for token in self.vocab.end_tokens:
                masks.set_token(out, token)
