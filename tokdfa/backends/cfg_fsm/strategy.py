"""CFG-FSM: Lark's LALR(1) parser and contextual lexer, over the tokens of a vocabulary.

Strategy (003; `tokdfa.backends.cfg_fsm` is its page of theory). Lark makes the parser's tables; a lexer automaton with
obligations says for each text so far which lexemes may have ended where. A matcher's state is a situation, the set of
hypotheses that the text leaves open, as one number; so rollback and fork cost nothing, and equal situations share
their masks.

Its language is that of Lark with ``parser="lalr", lexer="contextual"``, which is not always the grammar's own: a
keyword is taken for nothing else where it may stand, a lexeme is what the first terminal in Lark's order matches, and a
conflict between a shift and a reduction is a shift. Ignored text may stand at both ends, too.

Options:

- ``masks``: ``vectors`` keeps, for each lexer state, which tokens stay inside the lexeme, and a tree of the terminals
  that other tokens run through (`tokdfa.backends.cfg_fsm.speculation`); ``walk`` walks the token trie with sets of
  hypotheses.
- ``memo``: keep the mask of a situation once made. ``memo_steps``: keep where tokens led.
- ``conflicts``: ``shift`` resolves them as Lark does, ``refuse`` refuses the grammar, as Lark's strict mode does.

Dead ends. There are none. If the machine is certified (see the package), what can be completed is seen at once; if not,
it is searched, once for each stack (at most ``max_search`` hypotheses a search). If the vocabulary lacks bytes that the
terminals read, each token of a mask is tried, and allowed only if a search finds a way of tokens to an end.

Threads: a compiled constraint holds a lock while it makes something new; masks and steps that are kept need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, Phases, StateMatcher
from tokdfa.backends.cfg_fsm.machine import build_machine
from tokdfa.backends.cfg_fsm.speculation import Speculation
from tokdfa.backends.cfg_fsm.walk import Walker
from tokdfa.backends.live_search import LiveSearch
from tokdfa.backends.matcher import StepMemo
from tokdfa.core.locks import new_lock
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.mask_store import MaskStore

if TYPE_CHECKING:
    from tokdfa.backends.cfg_fsm.machine import Machine
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


class CfgFsm(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "cfg_fsm"
    summary: ClassVar[str] = "Lark's LALR(1) parser and contextual lexer over tokens (RegexFSM concatenation and union)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar")
    known_differences: ClassVar[dict[str, str]] = {
        "texts_accepted": "texts are those that Lark's LALR(1) parser accepts with its contextual lexer"
    }
    own_readings: ClassVar[tuple[str, ...]] = ("grammar",)
    options: ClassVar[tuple[Option, ...]] = (
        Option("masks", str, "vectors", "how a new mask is made", choices=("vectors", "walk")),
        Option("memo", bool, True, "keep the mask of a situation once made"),
        Option("memo_steps", bool, True, "keep where each token led from each situation"),
        Option("conflicts", str, "shift", "what to do with a shift/reduce conflict", choices=("shift", "refuse")),
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


class CompiledCfgFsm(CompiledConstraint):
    """The machine of a constraint, with the masks and steps made so far."""

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, machine: Machine, settings: dict[str, Any], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, CfgFsm.name)
        self.machine, self.settings, self.phases = machine, settings, phases
        self.lock = new_lock()
        limit = settings["mask_mb"] << 20
        self.masks = MaskStore(limit, masks.mask_words(vocab.size))
        self.steps: StepMemo[int] = StepMemo()
        with phases.measure("vocabulary"):
            self.filler: Walker | Speculation = (
                Walker(machine.hypotheses, vocab.trie)
                if settings["masks"] == "walk"
                else Speculation(machine.hypotheses, vocab, limit)
            )
        self.complete = bool(vocab.single_byte_tokens[machine.lexer.bytes_read].all())
        self._live = LiveSearch(self._targets, machine.hypotheses.can_end, settings["max_search"])
        self.sizes = {
            "states": machine.lexer.state_count,
            "terminals": len(machine.tables.terminals),
            "parser_states": len(machine.tables.actions),
            "bytes": machine.nbytes,
        }
        if not self.complete and not self._live.is_live(machine.start):
            raise VocabularyCannotSpell(
                f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
            )

    def _start(self, context: tuple[int, ...]) -> CfgFsmMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return CfgFsmMatcher(self)

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        found = self.steps.get((situation, token))
        if found is None:
            with self.lock, self.working:
                found = self._step(situation, token)
                if found >= 0 and not self.complete and not self._live.is_live(found):
                    found = -1
                if found >= 0 and self.settings["memo_steps"]:
                    self.steps.keep(situation, token, found)
        return found

    def _step(self, situation: int, token: int) -> int:
        begin, end = int(self.vocab.offsets[token]), int(self.vocab.offsets[token + 1])
        return self.machine.run(situation, self.vocab.byte_data, begin, end) if end > begin else -1

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        with self.lock, self.working:
            return self.machine.hypotheses.can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Write the mask of a situation, and keep it."""
        with self.lock, self.working:
            self.filler.fill(situation, out)
            if not self.complete:
                for token in masks.mask_to_ids(out).tolist():
                    if self.step(situation, token) < 0:
                        masks.clear_token(out, token)
            if self.can_end(situation):
                for token in self.vocab.end_tokens:
                    masks.set_token(out, token)
            if self.settings["memo"]:
                self.masks.keep(situation, out)

    def _targets(self, situation: int) -> list[int]:
        """The situations that tokens lead to, dead ends among them."""
        mask = masks.allocate_mask(self.vocab.size)
        self.filler.fill(situation, mask)
        found = (self._step(situation, token) for token in masks.mask_to_ids(mask).tolist())
        return [target for target in dict.fromkeys(found) if target >= 0]


class CfgFsmMatcher(StateMatcher[int]):
    """A matcher whose state is the number of a situation."""

    def __init__(self, compiled: CompiledCfgFsm) -> None:
        super().__init__(compiled.vocab, compiled.machine.start)
        self._compiled = compiled
        self._serve_from(compiled.masks, compiled.steps)

    def _step(self, state: int, token: int) -> int | None:
        target = self._compiled.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state: int) -> bool:
        return self._compiled.can_end(state)

    def _fill(self, state: int, out: Mask) -> None:
        before = dict(self._compiled.filler.counters)
        self._compiled.fill(state, out)
        self._count(
            masks_made=1, **{name: total - before[name] for name, total in self._compiled.filler.counters.items()}
        )

    def _fork_empty(self) -> CfgFsmMatcher:
        return CfgFsmMatcher(self._compiled)


def _warm_up() -> None:
    """Run every kernel of this backend and of `tokdfa.backends.cfg_fsm` once; many brackets make the stacks grow."""
    from tokdfa.constraint import Grammar
    from tokdfa.vocabulary.vocabulary import Vocabulary

    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b"()", b"xy", b""], end_tokens=[258])
    grammar = Grammar('start: "(" start? ")" | /x+y?/\n%ignore " "\n')
    mask = masks.allocate_mask(vocab.size)
    for way in ("vectors", "walk"):
        compiled = CfgFsm(vocab, masks=way).compile(grammar)
        for text in (b"(" * 300, b"xxy"):
            matcher = compiled.start()
            for byte in text:
                matcher.advance(byte)
            for _ in range(2):  # a new mask, and a kept one
                matcher.fill_mask(mask)
