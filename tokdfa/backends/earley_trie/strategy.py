"""Earley rows and a lazy lexer along the token trie: llguidance's way, with every part of it a switch.

Strategy (000, llguidance; the parts and their order are in `tokdfa.backends.earley_trie`). A lexer made of the lexemes'
automata reads bytes; where a lexeme ends, an Earley parser moves to its next row. A mask is a walk over the token trie:
the lexer alone decides at nearly every node. Rows are interned by content (`tokdfa.backends.earley_trie.rows`), so a
matcher's state is one number, rollback and fork cost nothing, and equal situations share their masks. A JSON schema is
read as a grammar, too, the same language as that of `pushdown_trie` (`tokdfa.json_schema.write.program_grammar`).

Options:

- ``mask``: ``effects`` keeps for each lexer state what tokens do to it, in tables that all rows share, and asks the
  parser once for each string of lexemes that some token completes (`tokdfa.masks`); ``slices`` ORs the masks of
  vocabulary slices that are proved to stay inside a lexeme (llguidance; `tokdfa.masks.slices`); ``walk`` walks the
  whole trie.
- ``patience``: with ``mask=effects``, how often a part of the trie is walked before its table is made. With 1 no mask
  costs more than the walk; with 0 all is made at once, which pays where a text comes by again.
- ``clip_counters``: lexer states that no token tells apart share a table, so that a string with room for 200 more
  characters is one with room for 300. ``shared_effects``: so do those of other grammars
  (`tokdfa.masks.shared_divisions`). With ``mask=effects``, the latter with ``clip_counters`` only.
- ``row_stack``: walks look for the row after a lexeme first where one was pushed last at that height, as llguidance
  does, and count how often it is there (``rows_reused``); else it is looked up by row and lexemes.
- ``slices``: with ``mask=slices``, which ones: ``json``, ``general``, or regexes of one's own, one a line.
- ``memo``: keep the mask of a situation once made. ``memo_steps``: keep where tokens led.
- ``lexer``: ``longest`` is maximal munch, as Lark means it; ``one_byte`` is llguidance's rule
  (`tokdfa.backends.earley_trie.machine`).
- ``ignore``: ``anywhere`` lets %ignore match before the first and after the last lexeme, too, as Lark does;
  ``between`` only between two lexemes, as llguidance does.
- ``proper``: only proper sequences; ``lookahead``: how far is looked ahead for them (`tokdfa.backends.proper`).
- ``max_instructions``: how large a JSON schema may be with all that it counts; `pushdown_trie` writes that as it is
  reached.

Dead ends. There are none. Every row can be completed, and every lexer state can reach the end of a lexeme; but a lexeme
may swallow what should follow it, as in ``start: /a+/ "a"``, and bytes may be no tokens. If the bytes that are tokens
by themselves suffice to end every lexeme from every state, and to keep lexemes apart, which is proved when a grammar is
compiled (`tokdfa.backends.longest_match`), nothing is left to do. If not, a token is allowed only if tokens lead from
it to an end: what no bytes of tokens can end is seen by the rules (`ranks`), the rest is searched, by letters
(`tokdfa.backends.coaccessible`; at most ``max_search`` situations). EmptyLanguageError if no text is left;
GrammarUnsupported, with the two lexemes, if such a search may not end.

Threads: a compiled constraint holds a lock while it makes something new; masks and steps that are kept need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Option, Phases
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.ranks import Ranks
from tokdfa.backends.earley_trie.spelled_components import SpelledComponents
from tokdfa.backends.earley_trie.walks import EarleyMasks
from tokdfa.backends.longest_match import PROVED
from tokdfa.backends.proper import WithProper
from tokdfa.backends.situations import CompiledSituations
from tokdfa.backends.some_end import FAR
from tokdfa.masks.shared_divisions import shared_divisions
from tokdfa.masks.slices import Slicer, slice_set

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
    from tokdfa.json_schema.read.document import Dropped
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]


class EarleyTrie(WithProper):
    """See the module's docstring."""

    name: ClassVar[str] = "earley_trie"
    summary: ClassVar[str] = "Earley parser and lazy lexer along the token trie (llguidance's way)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    looks_ahead: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("mask", str, "effects", "how a new mask is made", choices=("effects", "slices", "walk")),
        Option("patience", int, 1, "walks before a table is made (mask=effects)", minimum=0, maximum=1_000),
        Option("shared_effects", bool, True, "share tables between grammars of one vocabulary (with clip_counters)"),
        Option("clip_counters", bool, True, "share tables of states that no token tells apart (mask=effects)"),
        Option("slices", str, "json", "slices of the vocabulary: json, general, or regexes, one a line"),
        Option("slice_budget", int, 1_000, "limit on the pairs that a slice's proof meets", minimum=1, maximum=100_000),
        Option("memo", bool, True, "keep the mask of a situation once made"),
        Option("memo_steps", bool, True, "keep where each token led from each situation"),
        Option("row_stack", bool, False, "look for a row first where one was pushed last (in walks)"),
        Option("lexer", str, "longest", "where a lexeme ends", choices=("longest", "one_byte")),
        Option("ignore", str, "anywhere", "where ignored text may stand", choices=("anywhere", "between")),
        Option("max_instructions", int, 100_000, "limit on the size of a JSON schema's program", minimum=16),
        Option("max_rows", int, 1_000_000, "limit on parser rows", minimum=16),
        Option("max_row_items", int, 200_000, "limit on the items of one row", minimum=16),
        Option("max_lexer_states", int, 250_000, "limit on lexer states", minimum=16),
        Option("max_search", int, 20_000, "limit on situations searched for a way to an end", minimum=1),
        Option("mask_mb", int, 256, "limit on kept masks and tables, in MB each", minimum=1),
    )

    def _compile_plain(self, constraint: Constraint) -> CompiledConstraint:
        from tokdfa.constraint import Grammar, JsonSchema
        from tokdfa.grammar.builder import regular_cfg

        phases = Phases()
        dropped: tuple[Dropped, ...] = ()
        with phases.measure("parse"):
            if isinstance(constraint, JsonSchema):
                from tokdfa.json_schema.write.program_grammar import schema_grammar

                cfg, dropped = schema_grammar(constraint, self.settings["max_instructions"], names=True)
            elif isinstance(constraint, Grammar):
                from tokdfa.grammar.lark_reader import read_grammar
                from tokdfa.json_schema.write.expand import expand_schemas

                skip_at_ends = self.settings["ignore"] == "anywhere"
                cfg, dropped = expand_schemas(read_grammar(constraint), self.settings["max_instructions"], skip_at_ends)
            else:
                cfg = regular_cfg(constraint)
        compiled = CompiledEarley(constraint, self.vocab, cfg, dict(self.settings), phases)
        compiled.dropped, compiled.open_names = dropped, cfg.open_names
        return compiled


class CompiledEarley(CompiledSituations):
    """The machine of a grammar, with the masks, tables and steps made so far.

    Situations seen before are served by `tokdfa.backends.situations`; here is what is done for a new one.
    """

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, cfg: Cfg, settings: dict[str, Any], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, EarleyTrie.name, settings, phases)
        with phases.measure("tables"):
            self.machine = Machine(
                cfg,
                longest=settings["lexer"] == "longest",
                skip_at_ends=settings["ignore"] == "anywhere",
                max_rows=settings["max_rows"],
                max_row_items=settings["max_row_items"],
                max_lexer_states=settings["max_lexer_states"],
            )
            shares = settings["mask"] == "effects" and settings["shared_effects"]
            self.builder = EarleyMasks(
                self.machine,
                vocab.trie,
                row_stack=settings["row_stack"],
                limit=self.limit,
                patience=settings["patience"],
                names=settings["clip_counters"],
                shared=shared_divisions(vocab) if shares else None,
            )
        self.slicer: Slicer | None = None
        if settings["mask"] == "slices":
            with phases.measure("slices"):
                slices = slice_set(vocab, str(settings["slices"]))
                self.slicer = Slicer(self.machine.lexer, slices, settings["slice_budget"])
        self._specials = special_lexemes(cfg, vocab)
        self._ranks = Ranks(self.machine)
        self.sizes = {
            "states": self.machine.lexer.state_count,
            "rows": self.machine.rows.row_count,
            "lexemes": len(cfg.lexemes),
            "rules": len(cfg.rules),
            "bytes": self.machine.nbytes,
        }
        components = self.machine.lexer.components
        is_spelled = SpelledComponents(components, vocab.single_byte_tokens).everywhere
        with phases.measure("proof"):
            longest = settings["lexer"] == "longest"
            blocked = PROVED.blocked(constraint, cfg, vocab, is_spelled, longest=longest, components=components)
        complete = is_spelled and blocked is None
        #: Without a rank by the bytes that occur in tokens there is no way to an end.
        self._possible = None if complete else Ranks(self.machine, SpelledComponents(components, vocab.used_bytes))
        self._begin(self.machine.start, complete, blocked)

    def _fill_raw(self, situation: int, out: Mask) -> None:
        machine, builder = self.machine, self.builder
        if self.settings["mask"] == "effects":
            builder.fill(situation, out)
        elif self.slicer is None or machine.view(situation)[2] >= 0:
            builder.walk(situation, out)
        else:
            plan = self.slicer.use(machine.view(situation)[1])
            builder.walk(situation, out, plan.trie, plan.mask)
        if self._specials:
            row = machine.row_at_border(situation)
            allowed = set(machine.rows.allowed(row)) if row >= 0 else set()
            for token, symbols in self._specials.items():
                if not allowed.isdisjoint(symbols):
                    masks.set_token(out, token)

    def _step(self, situation: int, token: int) -> int:
        if self.vocab.offsets[token] < self.vocab.offsets[token + 1]:
            return self.builder.step(situation, token)
        row = self.machine.row_at_border(situation) if token in self._specials else -1
        return self._take_special(row, token) if row >= 0 else -1

    def _take_special(self, row: int, token: int) -> int:
        """The situation after a special token in a row, -1 if it may not stand there."""
        following = self.machine.next_row(row, self.machine.lexer.set_of(self._specials[token]))
        return self.machine.intern(following, self.machine.start_state(following), -1) if following >= 0 else -1

    def _special_targets(self, situation: int) -> dict[int, int]:
        row = self.machine.row_at_border(situation) if self._specials else -1
        found = {token: self._take_special(row, token) for token in (self._specials if row >= 0 else ())}
        return {token: target for token, target in found.items() if target >= 0}

    def _can_end(self, situation: int) -> bool:
        return self.machine.can_end(situation)

    def _walk_targets(self, situation: int, trie: TokenTrie) -> Int32:
        return self.builder.targets(situation, trie)

    def _rank(self, situation: int) -> int:
        return (self._possible or self._ranks).of_situation(situation)

    def _outlook(self, situation: int) -> bool | None:
        return False if self._rank(situation) >= FAR else None

    def work(self) -> dict[str, int]:
        """Totals of the work done on masks, by name."""
        builder = self.builder
        done = {
            "nodes_visited": builder.nodes_visited,
            "lexeme_ends": builder.borders,
            "rows_scanned": self.machine.scans,
        }
        if self.settings["row_stack"]:
            done["rows_reused"] = builder.rows_reused
        if self.settings["mask"] == "effects":
            done["effects_made"] = builder.divisions.made
        return done if self.slicer is None else {**done, **self.slicer.counters}


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
