"""CFG-FSM: Lark's LALR(1) parser and contextual lexer, over the tokens of a vocabulary.

Strategy (003, Outlines issue 669; `tokdfa.backends.cfg_fsm` is its page of theory). Lark makes the parser's tables; a
lexer automaton with obligations says for each text so far which lexemes may have ended where. A matcher's state is a
situation, the set of hypotheses that the text leaves open, as one number; so rollback and fork cost nothing, and equal
situations share their masks.

Its language is that of Lark with ``parser="lalr", lexer="contextual"``, which is not always the grammar's own: a
keyword is taken for nothing else where it may stand, and a lexeme is what the first terminal in Lark's order matches.
Ignored text may stand at both ends, too.

Options:

- ``masks``: ``vectors`` keeps, for each lexer state, which tokens stay inside the lexeme, and a tree of the terminals
  that other tokens run through (`tokdfa.backends.cfg_fsm.speculation`); ``walk`` walks the token trie with a table of
  situations (`tokdfa.backends.cfg_fsm.hypotheses`).
- ``memo``: keep the mask of a situation once made. ``memo_steps``: keep where tokens led.
- ``conflicts``: ``refuse`` refuses a grammar that is not LALR(1), as Lark's strict mode does; ``shift`` resolves a
  conflict between a shift and a reduction as Lark does without it, by which texts of the grammar may be lost.

Dead ends. There are none. If the machine is certified (see the package), what can be completed is seen at once; if not,
it is searched, once for each stack (at most ``max_search`` hypotheses a search). If the bytes that are tokens do not
end every lexeme as all bytes do, a token is allowed only if a search by letters finds a way from where it leads to an
end (`tokdfa.backends.coaccessible`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.backends.base import Backend, CompiledConstraint, Option, Phases
from tokdfa.backends.cfg_fsm.machine import build_machine
from tokdfa.backends.cfg_fsm.speculation import Speculation, Walker
from tokdfa.backends.situations import CompiledSituations
from tokdfa.vocabulary.byte_table import walk_collect

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.machine import Machine
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]


class CfgFsm(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "cfg_fsm"
    summary: ClassVar[str] = "Lark's LALR(1) parser and contextual lexer over tokens (RegexFSM concatenation and union)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar")
    known_differences: ClassVar[dict[str, str]] = {
        "compiles": "grammars that are not LALR(1) are refused with Lark's report",
        "texts_accepted": "texts are those that Lark's LALR(1) parser accepts with its contextual lexer",
    }
    own_readings: ClassVar[tuple[str, ...]] = ("grammar",)
    options: ClassVar[tuple[Option, ...]] = (
        Option("masks", str, "walk", "how a new mask is made", choices=("vectors", "walk")),
        Option("memo", bool, True, "keep the mask of a situation once made"),
        Option("memo_steps", bool, True, "keep where each token led from each situation"),
        Option("conflicts", str, "refuse", "what to do with a shift/reduce conflict", choices=("shift", "refuse")),
        Option("max_lexer_states", int, 20_000, "limit on lexer states", minimum=16),
        Option("max_stacks", int, 1_000_000, "limit on parser stacks", minimum=16),
        Option("max_situations", int, 1_000_000, "limit on situations", minimum=16),
        Option("max_search", int, 20_000, "limit on what one search for an end may meet", minimum=1),
        Option("mask_mb", int, 256, "limit on kept masks, and on kept vectors and trees, in MB each", minimum=1),
    )

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        phases = Phases()
        with phases.measure("tables"):
            machine = build_machine(constraint, self.settings, str(self.settings["conflicts"]))
        return CompiledCfgFsm(constraint, self.vocab, machine, dict(self.settings), phases)


class CompiledCfgFsm(CompiledSituations):
    """The machine of a constraint, with the masks and steps made so far.

    Situations seen before are served by `tokdfa.backends.situations`; here is what is done for a new one.
    """

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, machine: Machine, settings: dict[str, Any], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, CfgFsm.name, settings, phases)
        self.machine = machine
        with phases.measure("vocabulary"):
            self.filler: Walker | Speculation = (
                Walker(machine.hypotheses, vocab.trie)
                if settings["masks"] == "walk"
                else Speculation(machine.hypotheses, vocab, self.limit)
            )
        self.sizes = {
            "states": machine.lexer.state_count,
            "terminals": len(machine.tables.terminals),
            "parser_states": len(machine.tables.actions),
            "bytes": machine.nbytes,
        }
        self._begin(machine.start, machine.lexer.is_spelled_by(vocab.single_byte_tokens))

    def _fill_raw(self, situation: int, out: Mask) -> None:
        self.filler.fill(situation, out)

    def _step(self, situation: int, token: int) -> int:
        begin, end = int(self.vocab.offsets[token]), int(self.vocab.offsets[token + 1])
        return self.machine.run(situation, self.vocab.byte_data, begin, end) if end > begin else -1

    def _walk_targets(self, situation: int, trie: TokenTrie) -> Int32:
        hypotheses, room = self.machine.hypotheses, np.empty((2, trie.size + 1), dtype=np.int32)
        tokens, rows = room
        count, _ = walk_collect(trie, hypotheses, situation * hypotheses.class_count, tokens, rows)
        found = np.full(trie.size, -1, dtype=np.int32)
        found[tokens[:count]] = rows[:count] // hypotheses.class_count
        return found

    def _rank(self, situation: int) -> int:
        """How deep the shallowest stack is."""
        hypotheses = self.machine.hypotheses
        return min(hypotheses.stacks.depths[stack] for _, stack in hypotheses.members[situation])

    def _can_end(self, situation: int) -> bool:
        return self.machine.hypotheses.can_end(situation)

    def work(self) -> dict[str, int]:
        return dict(self.filler.counters)
