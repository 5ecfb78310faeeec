"""Our own engine: a lazily determinised pushdown automaton over bytes, and divisions of the vocabulary.

Strategy (`tokdfa.backends.pushdown_trie` is its page of theory). A constraint is lowered to a byte-level program; rows,
the sets of places where the program may be, are interned by content and stepped once for each byte. A mask is what the
terminals alive in a row allow by themselves, known once for a vocabulary, and a walk over the little that is left of
its trie.

Options:

- ``lexer``, for grammars: ``longest`` is maximal munch, as Lark means it; ``any`` takes every way to cut the text into
  lexemes (scannerless). With ``longest`` the masks are those of `earley_trie`. ``auto`` is ``any`` for a grammar with
  ``%json`` and ``longest`` for others: a schema's program is scannerless.
- ``partition``: divisions of the whole trie; ``subtrees``: of what is below large nodes, too. Without them the whole
  trie is walked.
- ``first_bytes``: when the items of a row are found, note the bytes that any of them reads, and walk only these;
  otherwise a walk comes to every byte, and each is tried on each item.
- ``memo``: keep the mask of a row once made.
- ``shared``: use the automata and divisions of other constraints of the vocabulary, and leave them one's own.
  ``shared_automata``: without it automata are built anew for each constraint, and only divisions are shared: what a
  constraint costs whose terminals nobody has had before.
- ``proper``: only proper sequences; ``lookahead``: how far is looked ahead for them (`tokdfa.backends.proper`).

Limits. `table_mb` bounds the rows and stacks of a constraint. When they pass it, new ones are begun: matchers that are
alive read their tokens again (0.05 to 0.5 µs a byte) and go on: transparent, apart from latency. One text that fills
the tables alone is refused by LimitExceeded.

Dead ends. There are none. If the tokens of one byte do not suffice to end every text from everywhere, or if by longest
match a lexeme may swallow what should follow it (`tokdfa.backends.longest_match`), a token is allowed only if tokens
lead from it to an end. Bytes tell (`spelled_rows`), and where some token contains a byte that is none, or by longest
match, a search by letters (`tokdfa.backends.coaccessible`; at most ``max_search`` rows).

Threads: what is made is made under the lock of the vocabulary's pool; kept masks and steps need none.
"""

from __future__ import annotations

import io
import time
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from tokdfa.backends.base import CompiledConstraint, Option, Phases
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.proper import WithProper, remembering
from tokdfa.backends.pushdown_trie.compiled import PushdownTables
from tokdfa.backends.pushdown_trie.filler import Filler
from tokdfa.backends.pushdown_trie.matcher import PushdownMatcher
from tokdfa.backends.pushdown_trie.pool import POOL_MEGABYTES, Pool, pool_of
from tokdfa.backends.pushdown_trie.schema_tables import prepare_tables
from tokdfa.constraint import Grammar, JsonSchema
from tokdfa.errors import (
    OptionError,
    SavedIndexError,
    UnknownNameError,
    UnsupportedConstraint,
)
from tokdfa.grammar.cfg import SchemaTexts
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
    from tokdfa.json_schema.read.document import Dropped
    from tokdfa.json_schema.solve.unique_items import Location
    from tokdfa.program.builder import Program
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

__all__ = ["CompiledPushdown", "PushdownMatcher", "PushdownTrie", "fill_masks"]


class PushdownTrie(WithProper):
    """See the module's docstring."""

    name: ClassVar[str] = "pushdown_trie"
    summary: ClassVar[str] = "lazily determinised pushdown automaton over bytes, with divisions (ours)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    looks_ahead: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("lexer", str, "auto", "how a grammar's text is cut into lexemes", choices=("auto", "longest", "any")),
        Option("partition", bool, True, "take what terminals allow by themselves from divisions of the vocabulary"),
        Option("subtrees", bool, True, "make divisions of the trie's large subtrees, too"),
        Option("first_bytes", bool, True, "note which bytes a row reads when its items are found, and walk only these"),
        Option("memo", bool, True, "keep the mask of a row once made"),
        Option("shared", bool, True, "share automata and divisions between constraints of one vocabulary"),
        Option(
            *("shared_mb", int, POOL_MEGABYTES, "shared automata and divisions, in MB; past it new ones are begun"),
            minimum=0,
        ),
        Option("shared_automata", bool, True, "take automata that constraints before had, instead of building them"),
        Option("max_row_items", int, 200_000, "limit on the items of one row", minimum=16),
        Option("max_search", int, 20_000, "limit on rows searched for a way to an end", minimum=1),
        Option("table_mb", int, 64, "rows and stacks kept, in MB", minimum=1),
        Option("mask_mb", int, 64, "masks kept, in MB", minimum=1),
    )

    def prepare(self, kind: str) -> None:
        """For "json_schema": make the tables that most schemas need; for "grammar": slices of plain text.

        Some tenths of a second for 128,000 tokens.
        """
        if kind not in ("json_schema", "grammar") or not self.settings["shared"]:
            return
        pool = pool_of(self.vocab, self.settings["shared_mb"])
        with pool.lock:
            if kind in pool.prepared:
                return
            if kind == "json_schema":
                prepare_tables(pool, Filler(self.settings["partition"], self.settings["subtrees"]))
            else:
                pool.masks.slices.make_all()
            pool.prepared.add(kind)  # now, so that what was interrupted is done again

    def _compile_plain(self, constraint: Constraint) -> CompiledConstraint:
        phases, dropped = Phases(), ()  # type: tuple[Phases, tuple[Dropped, ...]]
        locations: list[Location] | None = None
        cfg: Cfg | None = None
        pool = pool_of(self.vocab, self.settings["shared_mb"]) if self.settings["shared"] else Pool(self.vocab)
        if isinstance(constraint, JsonSchema):
            began = time.perf_counter_ns()
            program, dropped, locations = _schema_lowering()(constraint, not self.settings["proper"])
            phases.add("lower", began)
        elif isinstance(constraint, Grammar):
            from tokdfa.grammar.lark_reader import read_grammar
            from tokdfa.json_schema.write.expand import SchemaPrograms
            from tokdfa.program.lower import lower_grammar

            with phases.measure("parse"):
                cfg = read_grammar(constraint)
            schemas = [lexeme.constraint for lexeme in cfg.lexemes if isinstance(lexeme, SchemaTexts)]
            lexer = self.settings["lexer"]
            with phases.measure("lower"):
                programs = SchemaPrograms()
                longest = lexer == "longest" or (lexer == "auto" and not schemas)
                program = lower_grammar(cfg, longest=longest, schema=programs)
                dropped = tuple(programs.dropped)
        else:
            from tokdfa.program.lower import lower_regular

            with phases.measure("lower"):
                program = lower_regular(constraint)
        compiled = CompiledPushdown(constraint, self.vocab, program, self.settings, phases, pool, cfg)
        compiled.dropped, compiled.locations = dropped, locations or ()
        return compiled

    def _load_tables(self, tables: tuple[bytes, tuple[Dropped, ...]], constraint: Constraint) -> CompiledConstraint:
        from tokdfa.program.program_file import read_program

        phases = Phases()
        with phases.measure("load"):
            program, *_ = read_program(io.BytesIO(tables[0]))
        return self._of_program(program, constraint, tables[1], phases)

    def _of_program(
        self, program: Program, constraint: Constraint, dropped: tuple[Dropped, ...], phases: Phases
    ) -> CompiledConstraint:
        """What a program that was saved is, with what matchers of its constraint have to remember."""
        cfg, locations = None, None
        with phases.measure("load"):
            if program.longest:
                from tokdfa.grammar.lark_reader import read_grammar

                assert isinstance(constraint, Grammar)
                cfg = read_grammar(constraint)
            if isinstance(constraint, JsonSchema) and not self.settings["proper"]:
                from tokdfa.json_schema.write.lower import remembered_locations

                locations = remembered_locations(constraint)
        compiled = CompiledPushdown(constraint, self.vocab, program, self.settings, phases, cfg=cfg)
        compiled.dropped, compiled.locations = dropped, locations or ()
        return remembering(compiled)


class CompiledPushdown(PushdownTables):
    """A compiled constraint that can be saved and loaded."""

    def save(self, path: str | Path) -> None:
        """Write the program and the constraint to a file. Raises UnsupportedConstraint for automata too large to
        save.
        """
        from tokdfa.program.program_file import write_program

        dropped = [astuple(one) for one in self.dropped]
        with self.lock:  # masks that are being made explore the same automata
            write_program(path, self.program, self.constraint, self.settings, dropped=dropped)

    def _save_tables(self) -> tuple[bytes, tuple[Dropped, ...]] | None:
        from tokdfa.program.program_file import write_program

        if self.program.source.makes:
            return None  # lowering it anew costs less than all that is written later
        written = io.BytesIO()
        try:
            with self.lock:
                write_program(written, self.program, self.constraint, self.settings, most_states=0)
        except UnsupportedConstraint:  # to compile it anew costs less than to explore what is lazy
            return None
        return written.getvalue(), self.dropped

    @classmethod
    def load(cls, path: str | Path, vocab: Vocabulary | Tokenizer) -> CompiledConstraint:
        """What `save` wrote, for any vocabulary. SavedIndexError for a file that is damaged or no such file.

        A schema with `uniqueItems` is lowered once more, to find out what matchers have to remember.
        """
        from tokdfa.json_schema.read.document import Dropped
        from tokdfa.program.program_file import read_program

        phases, vocab = Phases(), as_vocabulary(vocab)
        with phases.measure("load"):
            program, constraint, settings, dropped = read_program(path)
            try:
                backend = PushdownTrie(vocab, **settings)
            except (OptionError, UnknownNameError, TypeError) as error:
                raise SavedIndexError(f"{path} has options that cannot be: {error}; make it again") from None
        return backend.finish(backend._of_program(program, constraint, tuple(Dropped(*one) for one in dropped), phases))


@cache
def _schema_lowering() -> Callable[..., tuple[Program, tuple[Dropped, ...], list[Location] | None]]:
    """`lower_and_remember`, which only schemas need; to import it each time takes up to 20 µs."""
    from tokdfa.json_schema.write.lower import lower_and_remember

    return lower_and_remember
