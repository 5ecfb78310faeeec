"""Earley rows and a lazy lexer along the token trie: llguidance's way, with every part of it a switch.

Strategy (000; `tokdfa.grammar` is its page of theory). A lexer made of the lexemes' automata reads bytes; where a
lexeme ends, an Earley parser moves to its next row. A mask is a walk over the token trie: the lexer alone decides at
nearly every node. Rows are interned by content (`tokdfa.grammar.earley`), so a matcher's state is one number, rollback
and fork cost nothing, and equal situations share their masks.

Options:

- ``mask``: ``partition`` asks the lexer once for each of its states which tokens stay inside a lexeme, and walks only
  what is left (`tokdfa.grammar.partition`); ``slices`` ORs the masks of vocabulary slices that are proved to stay
  inside (000; `tokdfa.grammar.slices`); ``walk`` walks the whole trie.
- ``slices``: with ``mask=slices``, which ones: ``json``, ``general``, or regexes of one's own, one a line.
- ``memo``: keep the mask of a situation once made. ``memo_steps``: keep where tokens led.
- ``lexer``: ``longest`` is maximal munch, as Lark means it; ``one_byte`` is llguidance's rule
  (`tokdfa.grammar.machine`).
- ``ignore``: ``anywhere`` lets %ignore match before the first and after the last lexeme, too, as Lark does;
  ``between`` only between two lexemes, as llguidance does.
- ``proper``: only proper sequences, by the filter of `tokdfa.backends.proper_filter`: exact for regular constraints;
  for grammars with a look-ahead of ``lookahead`` tokens.

Dead ends. Every row can be completed, and every lexer state can reach the end of a lexeme; so if the bytes that are
tokens by themselves suffice to end every lexeme from every state, there are none. If not, a token is allowed only if a
search (at most ``max_search`` situations) finds a way from it to an end. What is not looked for is a lexeme that can
swallow all that might follow it: with ``start: /a+/ "a"`` no text is ever complete, though the mask is never empty. The
lexing rules make such grammars, and llguidance's masks are the same.

Threads: a compiled constraint holds a lock while it makes something new; masks and steps that are kept need none.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import NO_TOKENIZER, Backend, CompiledConstraint, Option, Phases, StateMatcher
from tokdfa.backends.mask_cache import MaskCache, _write_tokens_kernel
from tokdfa.backends.proper_filter import ProperFilter, all_texts
from tokdfa.errors import LimitExceeded, VocabularyCannotSpell
from tokdfa.grammar.machine import S_ENDS, S_NODES, S_SCANS, Machine
from tokdfa.grammar.partition_masks import PartitionMasks
from tokdfa.grammar.shared_partitions import shared_partitions
from tokdfa.grammar.slices import Slicer, slice_set
from tokdfa.grammar.walk import Walker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Matcher, Support
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: numpy's only dtype object for native int32 (a mask with another object for it is checked the slow way).
INT32 = np.dtype(np.int32)
#: How many (situation, token) -> situation are kept, about 100 bytes each.
KEPT_STEPS = 200_000


class EarleyTrie(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "earley_trie"
    summary: ClassVar[str] = "Earley parser and lazy lexer along the token trie (llguidance's way)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar")
    options: ClassVar[tuple[Option, ...]] = (
        Option("mask", str, "partition", "how a new mask is made", choices=("partition", "slices", "walk")),
        Option("shared_partitions", bool, True, "share partitions between grammars of one vocabulary (mask=partition)"),
        Option("slices", str, "json", "slices of the vocabulary: json, general, or regexes, one a line"),
        Option("slice_budget", int, 1_000, "limit on the pairs that a slice's proof meets", minimum=1, maximum=100_000),
        Option("memo", bool, True, "keep the mask of a situation once made"),
        Option("memo_steps", bool, True, "keep where each token led from each situation"),
        Option("lexer", str, "longest", "where a lexeme ends", choices=("longest", "one_byte")),
        Option("ignore", str, "anywhere", "where ignored text may stand", choices=("anywhere", "between")),
        Option("proper", bool, False, "allow only what the tokenizer itself would make of the text"),
        Option("lookahead", int, 1, "tokens looked ahead with proper grammars", minimum=1, maximum=8),
        Option("max_rows", int, 1_000_000, "limit on parser rows", minimum=16),
        Option("max_row_items", int, 200_000, "limit on the items of one row", minimum=16),
        Option("max_lexer_states", int, 250_000, "limit on lexer states", minimum=16),
        Option("max_search", int, 20_000, "limit on situations searched for a way to an end", minimum=1),
        Option("mask_mb", int, 256, "limit on kept masks and partitions, in MB each", minimum=1),
    )

    @property
    def token_language(self) -> Literal["all", "proper"]:
        return "proper" if self.settings["proper"] else "all"

    def supports(self, constraint: Constraint) -> Support:
        if self.settings["proper"] and self.vocab.tokenizer is None:
            return NO_TOKENIZER
        return super().supports(constraint)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        from tokdfa.constraint import Grammar
        from tokdfa.grammar.regular import regular_cfg

        phases = Phases()
        with phases.measure("parse"):
            if isinstance(constraint, Grammar):
                from tokdfa.grammar.lark_reader import read_lark

                cfg = read_lark(constraint.text, constraint.start)
            else:
                cfg = regular_cfg(constraint)
        compiled = CompiledEarley(constraint, self.vocab, cfg, dict(self.settings), phases)
        if not self.settings["proper"]:
            return compiled
        from tokdfa.backends.cartesian_merge import CartesianMerge

        regular = not isinstance(constraint, Grammar)
        with phases.measure("proper"):
            assert self.vocab.tokenizer is not None
            inner = constraint if regular else all_texts(self.vocab.tokenizer)
            proper = CartesianMerge(self.vocab).compile(inner)
        return ProperEarley(compiled, proper, 0 if regular else self.settings["lookahead"])


class CompiledEarley(CompiledConstraint):
    """The machine of a grammar, with the masks, partitions and steps made so far."""

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, cfg: Cfg, settings: dict[str, object], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, EarleyTrie.name)
        self.settings, self.phases = settings, phases
        self.lock = threading.RLock()
        with phases.measure("tables"):
            self.machine = Machine(
                cfg,
                longest=settings["lexer"] == "longest",
                skip_at_ends=settings["ignore"] == "anywhere",
                max_rows=int(settings["max_rows"]),  # type: ignore[call-overload]
                max_row_items=int(settings["max_row_items"]),  # type: ignore[call-overload]
                max_lexer_states=int(settings["max_lexer_states"]),  # type: ignore[call-overload]
            )
            self.walker = Walker(self.machine, vocab.trie)
        self.slicer: Slicer | None = None
        if settings["mask"] == "slices":
            with phases.measure("slices"):
                slices = slice_set(vocab, str(settings["slices"]))
                self.slicer = Slicer(self.machine, slices, int(settings["slice_budget"]))  # type: ignore[call-overload]
        self.limit = int(settings["mask_mb"]) << 20  # type: ignore[call-overload]
        self.masks = MaskCache(self.limit)
        self.steps: dict[tuple[int, int], int] = {}
        shared = shared_partitions(vocab) if settings["shared_partitions"] else None
        self.partitions = PartitionMasks(self.machine, vocab.trie, self.limit, shared)
        self._specials = special_lexemes(cfg, vocab)
        self.complete = self.machine.lexer.ends_by(vocab.single_byte_tokens)
        self._live: dict[int, bool] = {}
        self.sizes = self._sizes()
        if not self.complete and not self.is_live(self.machine.start):
            raise VocabularyCannotSpell(
                f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
            )

    def _sizes(self) -> dict[str, int]:
        machine = self.machine
        return {
            "states": machine.lexer.state_count,
            "rows": machine.rows.row_count,
            "lexemes": len(machine.cfg.lexemes),
            "rules": len(machine.cfg.rules),
            "bytes": machine.nbytes,
        }

    def work(self) -> dict[str, int]:
        """Totals of the work done on masks, by name."""
        counts = (("nodes_visited", S_NODES), ("lexeme_ends", S_ENDS), ("rows_scanned", S_SCANS))
        walked = {name: self.machine.counter(which) for name, which in counts}
        return walked if self.slicer is None else {**walked, **self.slicer.counters}

    def start(self, context: Sequence[int] = ()) -> EarleyMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return EarleyMatcher(self)

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        found = self.steps.get((situation, token))
        if found is None:
            with self.lock:
                found = self._step(situation, token)
                if found >= 0 and not self.complete and not self.is_live(found):
                    found = -1
                if self.settings["memo_steps"]:
                    if len(self.steps) >= KEPT_STEPS:
                        self.steps.clear()
                    self.steps[situation, token] = found
        return found

    def _step(self, situation: int, token: int) -> int:
        begin, end = int(self.vocab.offsets[token]), int(self.vocab.offsets[token + 1])
        if end > begin:
            return self.machine.run(situation, self.vocab.byte_data, begin, end)
        if token not in self._specials:
            return -1
        row = self.machine.row_at_border(situation)
        if row < 0:
            return -1
        following = self.machine.next_row(row, self.machine.lexer.set_of(self._specials[token]))
        return self.machine.intern(following, self.machine.start_state(following), -1) if following >= 0 else -1

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        with self.lock:
            return self.machine.can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Write the mask of a situation, and keep it."""
        with self.lock:
            self._fill_raw(situation, out)
            if not self.complete:
                for token in masks.mask_to_ids(out).tolist():
                    if self.step(situation, token) < 0:
                        masks.clear_token(out, token)
            if self.machine.can_end(situation):
                for token in self.vocab.end_tokens:
                    masks.set_token(out, token)
            if self.settings["memo"]:
                self.masks.keep(situation, out)

    def _fill_raw(self, situation: int, out: Mask) -> None:
        """Write the tokens that the text allows, without end tokens and without regard to what tokens can spell."""
        walker, machine = self.walker, self.machine
        _, _, fallback = machine.view(situation)
        walker.words[:] = 0
        if self.settings["mask"] == "walk" or fallback >= 0:
            walker.walk_all(situation)
            out[:] = walker.words[: len(out)].view(np.int32)
        elif self.settings["mask"] == "partition":
            self.partitions.fill(situation, walker)
            out[:] = walker.words[: len(out)].view(np.int32)
        else:
            assert self.slicer is not None
            self.slicer.fill(situation, walker)
            out[:] = walker.words[: len(out)].view(np.int32)
        if self.vocab.size & 31:
            out[-1] &= np.int32((1 << (self.vocab.size & 31)) - 1)  # the spare bit
        if self._specials:
            row = machine.row_at_border(situation)
            allowed = set(machine.rows.allowed(row)) if row >= 0 else set()
            for token, symbols in self._specials.items():
                if not allowed.isdisjoint(symbols):
                    masks.set_token(out, token)

    def is_live(self, situation: int) -> bool:
        """Whether tokens lead from a situation to an end: a search. Raises LimitExceeded past ``max_search``."""
        known = self._live.get(situation)
        if known is not None:
            return known
        came_from = {situation: situation}
        agenda = deque([situation])
        mask = masks.allocate_mask(self.vocab.size)
        limit = int(self.settings["max_search"])  # type: ignore[call-overload]
        while agenda:
            here = agenda.popleft()
            if self._live.get(here) or self.machine.can_end(here):
                while here != situation:
                    self._live[here] = True
                    here = came_from[here]
                self._live[situation] = True
                return True
            self._fill_raw(here, mask)
            for token in masks.mask_to_ids(mask).tolist():
                target = self._step(here, token)
                if target >= 0 and target not in came_from and self._live.get(target) is not False:
                    came_from[target] = here
                    (agenda.appendleft if self._live.get(target) or self.machine.can_end(target) else agenda.append)(
                        target
                    )
            if len(came_from) > limit:
                raise LimitExceeded(
                    f"the vocabulary lacks some bytes as tokens, and no way to an end was found among {limit}"
                    " situations; raise max_search, or use a vocabulary that has every byte",
                    limit="max_search",
                    value=limit,
                )
        self._live.update(dict.fromkeys(came_from, False))
        return False


class EarleyMatcher(StateMatcher[int]):
    """A matcher whose state is the number of a situation."""

    def __init__(self, compiled: CompiledEarley) -> None:
        super().__init__(compiled.vocab, compiled.machine.start)
        self._compiled = compiled
        self._narrow, self._wide = compiled.masks.narrow, compiled.masks.wide
        self._shape = (masks.mask_words(compiled.vocab.size),)

    def fill_mask(self, out: Mask) -> None:
        # kept masks, with as little Python as possible; everything else goes the usual way
        if out.dtype is INT32 and out.shape == self._shape and out.flags.carray and self.state is not self._FINISHED:
            tokens = self._narrow.get(self.state)
            if tokens is not None:
                _write_tokens_kernel(tokens, out)
                return
            packed = self._wide.get(self.state)
            if packed is not None:
                np.copyto(out, packed)
                return
        super().fill_mask(out)

    def _step(self, state: int, token: int) -> int | None:
        target = self._compiled.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state: int) -> bool:
        return self._compiled.can_end(state)

    def _fill(self, state: int, out: Mask) -> None:
        before = self._compiled.work()
        self._compiled.fill(state, out)
        for name, total in self._compiled.work().items():
            self.counters[name] = self.counters.get(name, 0) + total - before[name]
        self.counters["masks_made"] = self.counters.get("masks_made", 0) + 1

    def _fork_empty(self) -> EarleyMatcher:
        return EarleyMatcher(self._compiled)


class ProperEarley(CompiledConstraint):
    """The machine of a grammar, and the automaton of proper sequences beside it."""

    def __init__(self, plain: CompiledEarley, proper: CompiledConstraint, lookahead: int) -> None:
        super().__init__(plain.constraint, plain.vocab, EarleyTrie.name)
        self.plain, self.proper, self.phases, self.lookahead = plain, proper, plain.phases, lookahead
        self.sizes = {**plain.sizes, "bytes": plain.sizes["bytes"] + proper.sizes["bytes"]}

    def start(self, context: Sequence[int] = ()) -> Matcher:
        """A matcher before the first token; `context` says where the first piece began."""
        proper = self.proper.start(context)
        assert isinstance(proper, StateMatcher)
        return ProperFilter(self.plain.start(), proper, self.lookahead)


def special_lexemes(cfg: Cfg, vocab: Vocabulary) -> dict[int, tuple[int, ...]]:
    """Special token -> the lexemes it is, ascending."""
    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.grammar.special import resolve

    found: dict[int, list[int]] = {}
    for symbol, lexeme in enumerate(cfg.lexemes):
        if isinstance(lexeme, SpecialTokens):
            for token in resolve(lexeme, vocab).tolist():
                found.setdefault(token, []).append(symbol)
    return {token: tuple(symbols) for token, symbols in found.items()}


def _warm_up() -> None:
    """Run every kernel of this backend and of `tokdfa.grammar` once; a hundred brackets make every table grow."""
    from tokdfa.constraint import Grammar
    from tokdfa.vocabulary.vocabulary import Vocabulary

    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b"()", b"xy", b""], end_tokens=[258])
    grammar = Grammar('start: "(" start? ")" | TEXT | /x{1,90}y?/\nTEXT: /"[^"]*"/\n%ignore " "\n')
    mask = masks.allocate_mask(vocab.size)
    for way in ("partition", "slices", "walk"):
        compiled = EarleyTrie(vocab, mask=way, shared_partitions=False).compile(grammar)
        for text in (b"(" * 100, b"x" * 90, b'"a'):
            matcher = compiled.start()
            for byte in text:
                matcher.advance(byte)
            for _ in range(2):  # a new mask, and a kept one
                matcher.fill_mask(mask)
