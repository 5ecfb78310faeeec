"""Our own engine: a lazily determinised pushdown automaton over bytes, and partitions of the vocabulary.

Strategy (`tokdfa.pushdown` is its page of theory). A constraint is lowered to a byte-level program; rows, the sets of
places where the program may be, are interned by content and stepped once for each byte. A mask is what the texts alive
in a row allow by themselves, known once for a vocabulary, and a walk over the little that is left of its trie.

Options:

- ``lexer``, for grammars: ``longest`` is maximal munch, as Lark means it; ``any`` takes every way to cut the text into
  lexemes (scannerless). With ``longest`` the masks are those of `earley_trie`.
- ``partition``: partitions of the whole trie; ``subtrees``: of what is below large nodes, too. Without them the whole
  trie is walked.
- ``slices``: partitions begin with what plain text a state reads; otherwise each takes a walk of the whole trie, as it
  does for grammars.
- ``exits``: what may follow a text is walked once for all tokens that end the text; otherwise once for each of them.
- ``first_bytes``: when the items of a row are found, note the bytes that any of them reads, and walk only these;
  otherwise a walk comes to every byte, and each is tried on each item.
- ``memo``: keep the mask of a row once made.
- ``shared``: use the automata and partitions of other constraints of the vocabulary, and leave them one's own.
  ``shared_automata``: without it automata are built anew for each constraint, and only partitions are shared: what a
  constraint costs whose texts nobody has had before.
- ``disk``: if this is the vocabulary's first constraint, begin with the automata and partitions of a file that
  `tokdfa.pushdown.pool.save_pool` wrote.
- ``proper``: only proper sequences, by the filter of `tokdfa.backends.proper_filter`. It is exact for a regex, a choice
  and a JSON schema with ``max_nesting``, as `cartesian_merge` knows all states of their texts; grammars and other
  schemas are looked ahead in, ``lookahead`` tokens as there.

Limits. `table_mb` bounds the rows and stacks of a constraint. When they pass it, new ones are begun: matchers that are
alive read their tokens again (0.05 to 0.5 µs a byte) and go on; nobody notices but by the time it takes. One text that
fills the tables alone is refused by LimitExceeded.

Dead ends: as in `tokdfa.backends.earley_trie`.

Threads: what is made is made under the lock of the vocabulary's pool; kept masks and steps need none.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import NO_TOKENIZER, Backend, CompiledConstraint, Option, Phases
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.cartesian_merge import CONTEXT_TABLES, CartesianMerge, CartesianMergeMatcher
from tokdfa.backends.live_search import LiveSearch
from tokdfa.backends.matcher import StepMemo
from tokdfa.backends.proper_filter import ProperFilter, proper_texts
from tokdfa.backends.proper_liveness import ProperLiveness
from tokdfa.backends.pushdown_matcher import PushdownMatcher
from tokdfa.backends.text_situations import PushdownTexts
from tokdfa.errors import (
    OptionError,
    SavedIndexError,
    UnknownNameError,
    UnsupportedConstraint,
    VocabularyCannotSpell,
)
from tokdfa.pushdown.arrays import M_CLOSED, M_NODES
from tokdfa.pushdown.machine import Machine
from tokdfa.pushdown.pool import Pool, pool_of
from tokdfa.vocabulary import mask_store
from tokdfa.vocabulary.mask_store import MaskStore
from tokdfa.vocabulary.vocabulary import as_vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import Matcher, Support
    from tokdfa.constraint import Constraint, JsonSchema
    from tokdfa.json_schema.document import Dropped
    from tokdfa.mask import Mask
    from tokdfa.pushdown.form import Form
    from tokdfa.token_automata.proper_states import ProperStates
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

__all__ = ["CompiledPushdown", "Epoch", "PushdownMatcher", "PushdownTrie", "fill_masks"]


class PushdownTrie(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "pushdown_trie"
    summary: ClassVar[str] = "lazily determinised pushdown automaton over bytes, with partitions (ours)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    options: ClassVar[tuple[Option, ...]] = (
        Option("lexer", str, "longest", "how a grammar's text is cut into lexemes", choices=("longest", "any")),
        Option("partition", bool, True, "take what texts allow by themselves from partitions of the vocabulary"),
        Option("subtrees", bool, True, "make partitions of the trie's large subtrees, too"),
        Option("slices", bool, True, "make partitions with slices of plain text, but for grammars"),
        Option("exits", bool, True, "walk what may follow a text once, not once for each token that ends it"),
        Option("first_bytes", bool, True, "note which bytes a row reads when its items are found, and walk only these"),
        Option("memo", bool, True, "keep the mask of a row once made"),
        Option("shared", bool, True, "share automata and partitions between constraints of one vocabulary"),
        Option("shared_automata", bool, True, "take automata that constraints before had, instead of building them"),
        Option("disk", bool, False, "begin with the automata and partitions that `save_pool` wrote for the vocabulary"),
        Option("proper", bool, False, "allow only what the tokenizer itself would make of the text"),
        Option("lookahead", int, 8, "tokens looked ahead with proper grammars and schemas", minimum=1, maximum=64),
        Option("max_row_items", int, 200_000, "limit on the items of one row", minimum=16),
        Option("max_search", int, 20_000, "limit on rows searched for a way to an end", minimum=1),
        Option("table_mb", int, 64, "rows and stacks kept, in MB", minimum=1),
        Option("mask_mb", int, 64, "masks kept, in MB", minimum=1),
    )

    @property
    def token_language(self) -> Literal["all", "proper"]:
        return "proper" if self.settings["proper"] else "all"

    def supports(self, constraint: Constraint) -> Support:
        if self.settings["proper"] and self.vocab.tokenizer is None:
            return NO_TOKENIZER
        return super().supports(constraint)

    def _prepare(self, pool: Pool, constraint: JsonSchema) -> None:
        """Make the tables that most schemas need of the vocabulary, if this is its first schema."""
        from tokdfa.backends.schema_tables import prepare_tables

        with pool.lock:
            prepare_tables(pool, pool.filler(*_ways(self.settings)), constraint)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        from tokdfa.constraint import Grammar, JsonSchema
        from tokdfa.pushdown.lower import lower_grammar, lower_regular

        phases, dropped = Phases(), ()  # type: tuple[Phases, tuple[Dropped, ...]]
        pool = pool_of(self.vocab, self.settings["disk"]) if self.settings["shared"] else Pool(self.vocab)
        if isinstance(constraint, JsonSchema):
            from tokdfa.json_schema.lower import lower_schema

            if self.settings["shared"] and self.settings["shared_automata"]:
                with phases.measure("vocabulary"):
                    self._prepare(pool, constraint)
            with phases.measure("lower"):
                form, dropped = lower_schema(constraint)
        elif isinstance(constraint, Grammar):
            from tokdfa.grammar.lark_reader import read_lark

            with phases.measure("parse"):
                cfg = read_lark(constraint.text, constraint.start)
            with phases.measure("lower"):
                form = lower_grammar(cfg, longest=self.settings["lexer"] == "longest")
        else:
            with phases.measure("lower"):
                form = lower_regular(constraint)
        compiled = CompiledPushdown(constraint, self.vocab, form, self.settings, phases, pool)
        compiled.dropped = dropped
        if not self.settings["proper"]:
            return compiled
        # a bounded schema is a regular language, and `cartesian_merge` takes it: nothing is left to look ahead for
        bounded = isinstance(constraint, JsonSchema) and constraint.max_nesting is not None
        regular = bounded or not isinstance(constraint, Grammar | JsonSchema)
        with phases.measure("proper"):
            proper = CartesianMerge(self.vocab).compile(constraint) if regular else proper_texts(self.vocab)
        return ProperPushdown(compiled, proper, 0 if regular else self.settings["lookahead"])

    def _load_tables(self, tables: tuple[bytes, tuple[Dropped, ...]], constraint: Constraint) -> CompiledPushdown:
        from tokdfa.pushdown.store import read_form

        phases = Phases()
        with phases.measure("load"):
            form, _, _ = read_form(io.BytesIO(tables[0]))
        compiled = CompiledPushdown(constraint, self.vocab, form, self.settings, phases)
        compiled.dropped = tables[1]
        return compiled


def _ways(settings: dict[str, Any]) -> tuple[bool, bool, bool]:
    """What a vocabulary's `Pool.filler` is known by."""
    return settings["partition"], settings["subtrees"], settings["exits"]


class Epoch:
    """A machine, and what was found out about its rows."""

    def __init__(self, compiled: CompiledPushdown, machine: Machine) -> None:
        self.machine = machine
        vocab = compiled.vocab
        self.masks = MaskStore(compiled.mask_limit, masks.mask_words(vocab.size), compiled.pool.spare_masks)
        self.steps: StepMemo[int] = StepMemo()
        # refers to the constraint, which refers to this: only where it is needed, so that tables are given back at once
        if not compiled.complete:
            self.live = LiveSearch(lambda row: compiled.targets(self, row), machine.can_end, compiled.max_search)


class CompiledPushdown(CompiledConstraint):
    """The form of a constraint, and the machine that runs it."""

    def __init__(
        self,
        constraint: Constraint,
        vocab: Vocabulary,
        form: Form,
        settings: dict[str, Any],
        phases: Phases,
        pool: Pool | None = None,
    ) -> None:
        super().__init__(constraint, vocab, PushdownTrie.name)
        self.settings, self.phases = settings, phases
        #: Keywords of a JSON schema that are not enforced; none unless the constraint is `lenient`.
        self.dropped: tuple[Dropped, ...] = ()
        self.mask_limit, self.max_search = settings["mask_mb"] << 20, settings["max_search"]
        self.keeps_masks: bool = settings["memo"]
        if pool is None:
            pool = pool_of(vocab, settings["disk"]) if settings["shared"] else Pool(vocab)
        self.pool = pool
        self.lock = self.pool.lock
        with phases.measure("tables"):
            with self.lock:
                self.program = self.pool.link(form, anew=not settings["shared_automata"])
            self.filler = self.pool.filler(*_ways(settings))
            self.complete = self.program.is_spelled
            self.epoch = self.begin_epoch()
        self._resolved: tuple[int, dict[int, set[int]]] = (0, {})
        self._resolve_special()
        with self.lock:
            is_live = self.complete or self.epoch.live.is_live(0)
        if not is_live:
            raise VocabularyCannotSpell(
                f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
            )

    @property
    def is_direct(self) -> bool:
        """Whether masks are what one call of a kernel writes, but for counted strings, and are kept."""
        form = self.program.form
        sets_come = form.source is not None and self.constraint.kind == "grammar"
        return self.keeps_masks and self.complete and not (form.longest or form.token_sets or sets_come)

    @property
    def form(self) -> Form:
        """The program; where code is written when it is needed, as it stands now."""
        return self.program.form

    def begin_epoch(self) -> Epoch:
        """New tables, which nobody has yet."""
        settings = self.settings
        machine = Machine(
            self.program.form,
            self.pool,
            settings["max_row_items"],
            settings["table_mb"] << 20,
            linked=self.program,
            first_bytes=settings["first_bytes"],
            # a grammar's texts are few, and gain less than the slices of the vocabulary take
            slices=settings["slices"] and self.constraint.kind != "grammar",
        )
        return Epoch(self, machine)

    @property
    def _token_sets(self) -> dict[int, set[int]]:
        """Special token -> the token sets of the form that it is in; code that is written later may bring more."""
        return self._resolve_special()

    def _resolve_special(self) -> dict[int, set[int]]:
        """`_token_sets`. Raises VocabularyError for tokens that the vocabulary does not have."""
        count, found = self._resolved
        token_sets = self.program.token_sets
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
        machine = self.epoch.machine
        return {
            "instructions": len(self.form.code),
            "texts": len(self.form.texts),
            "rows": machine.row_count,
            "stacks": machine.stack_count,
            "bytes": machine.nbytes,
        }

    @sizes.setter
    def sizes(self, sizes: dict[str, int]) -> None:
        """Nothing: they are measured when they are asked."""

    def save(self, path: str | Path) -> None:
        """Write the form and the constraint to a file. Raises UnsupportedConstraint for automata too large to save."""
        from tokdfa.pushdown.store import write_form

        write_form(path, self.form, self.constraint, self.settings)

    def _save_tables(self) -> tuple[bytes, tuple[Dropped, ...]] | None:
        from tokdfa.pushdown.store import write_form

        if self.form.source is not None:
            return None  # lowering it anew costs less than all that is written later
        written = io.BytesIO()
        try:
            write_form(written, self.form, self.constraint, self.settings)
        except UnsupportedConstraint:  # too large to be saved
            return None
        return written.getvalue(), self.dropped

    @classmethod
    def load(cls, path: str | Path, vocab: Vocabulary | Tokenizer) -> CompiledPushdown:
        """What `save` wrote, for any vocabulary. SavedIndexError for a file that is damaged or no such file."""
        from tokdfa.pushdown.store import read_form

        phases, vocab = Phases(), as_vocabulary(vocab)
        with phases.measure("load"):
            form, constraint, settings = read_form(path)
            try:
                backend = PushdownTrie(vocab, **settings)
            except (OptionError, UnknownNameError, TypeError) as error:
                raise SavedIndexError(f"{path} has options that cannot be: {error}; make it again") from None
        compiled = cls(constraint, backend.vocab, form, backend.settings, phases)
        backend._finish(compiled)
        return compiled

    def renew(self, full: Epoch) -> None:
        """Begin new tables in place of full ones; matchers that have those keep them until they move."""
        with self.lock:
            if self.epoch is full:
                self.epoch = self.begin_epoch()

    def work(self) -> dict[str, int]:
        """Totals of the work done, by name, since the tables were begun."""
        meta = self.epoch.machine.meta
        return {
            "nodes_visited": int(meta[M_NODES]),
            "rows_closed": int(meta[M_CLOSED]),
            "rows": self.epoch.machine.row_count,
            "stacks": self.epoch.machine.stack_count,
            "partitions": self.pool.partitions.made,
        }

    def _start(self, context: tuple[int, ...]) -> PushdownMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return PushdownMatcher(self)

    def step(self, epoch: Epoch, row: int, token: int) -> int:
        """The row after a token that is no end token, -1 if it is not allowed. Raises MachineFull."""
        machine, vocab = epoch.machine, self.vocab
        begin, end = int(vocab.offsets[token]), int(vocab.offsets[token + 1])
        with self.lock:
            if end > begin:
                found = machine.run(row, vocab.byte_data, begin, end)
            else:
                machine.token_sets(row)  # code that is needed to know them is written
                found = machine.take(row, self._token_sets.get(token, set()))
            return found if found < 0 or self.complete or epoch.live.is_live(found) else -1

    def targets(self, epoch: Epoch, row: int) -> list[int]:
        """The rows that tokens lead to, dead ends among them."""
        machine, vocab = epoch.machine, self.vocab
        tokens = masks.mask_to_ids(self.filler.fill(machine, row)).tolist()
        found = [
            machine.run(row, vocab.byte_data, int(vocab.offsets[token]), int(vocab.offsets[token + 1]))
            for token in tokens
        ]
        found += [machine.take(row, sets) for sets in self._token_sets.values()]
        return [target for target in dict.fromkeys(found) if target >= 0]

    def fill(self, epoch: Epoch, row: int, out: Mask) -> bool:
        """Write the mask of a row; whether it had to be made. Raises MachineFull.

        Rows that differ in what no token can tell share the mask of one of them.
        """
        with self.lock:
            machine, kept, alike = epoch.machine, epoch.masks, row
            if kept.fill(row, out):
                return False
            if self.complete and self.program.counts:
                # what lies beyond a token may matter to searches for a way to an end
                alike = machine.representative(row)
                if alike != row and kept.fill(alike, out):
                    kept.share(alike, row)
                    return False
            signature: int | None = self.filler.write(machine, row, out, not machine.longest)
            tokens = self.filler.listed(machine)
            if machine.longest or not self.complete or self.program.token_sets:
                self._complete_mask(epoch, row, out)
                signature = tokens = None
            if self.keeps_masks:
                kept.keep(alike, out, signature, tokens)
                if alike != row:
                    kept.share(alike, row)
            return True

    def _complete_mask(self, epoch: Epoch, row: int, out: Mask) -> None:
        """Take out dead ends, and put in special tokens and end tokens."""
        machine = epoch.machine
        if not self.complete:
            for token in masks.mask_to_ids(out).tolist():
                if token not in self.vocab.end_token_set and self.step(epoch, row, token) < 0:
                    masks.clear_token(out, token)
        allowed = machine.token_sets(row) if self.program.token_sets else None
        if allowed:
            for token, sets in self._token_sets.items():
                if not sets.isdisjoint(allowed) and self.step(epoch, row, token) >= 0:
                    masks.set_token(out, token)
        if machine.longest and machine.can_end(row):
            for token in self.vocab.end_tokens:
                masks.set_token(out, token)


class ProperPushdown(CompiledConstraint):
    """The machine of a constraint, and the automaton of proper sequences beside it."""

    def __init__(self, plain: CompiledPushdown, proper: CompiledConstraint, lookahead: int) -> None:
        super().__init__(plain.constraint, plain.vocab, PushdownTrie.name)
        self.plain, self.proper, self.phases, self.lookahead = plain, proper, plain.phases, lookahead
        self.dropped = plain.dropped
        self.sizes = {**plain.sizes, "bytes": plain.sizes["bytes"] + proper.sizes["bytes"]}
        self._liveness = lru_cache(CONTEXT_TABLES + 1)(self._make_liveness)

    def _start(self, context: tuple[int, ...]) -> Matcher:
        """A matcher after the tokens `context`, which the first token must not merge with."""
        proper, text = self.proper._start(context), self.plain._start(())
        assert isinstance(proper, CartesianMergeMatcher)
        liveness = self._liveness(proper._states, text._epoch) if self.lookahead else None
        return ProperFilter(text, proper, self.lookahead, liveness)

    def _make_liveness(self, states: ProperStates, epoch: Epoch) -> ProperLiveness:
        return ProperLiveness(PushdownTexts(self.plain, epoch), states, self.lookahead)


def _warm_up() -> None:
    """Run every kernel of this backend and of `tokdfa.pushdown` once; the brackets make every table grow."""
    from tokdfa.constraint import Grammar
    from tokdfa.pushdown import explore, lacking, lengths, slices
    from tokdfa.vocabulary.vocabulary import Vocabulary

    mask_store.warm_up()
    lacking._warm_up()
    lengths._warm_up()
    slices._warm_up()
    explore._warm_up()
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b"()", b"xy", b""], end_tokens=[258])
    text = 'start: "(" start? ")" | sum | start "+" "a"\nsum: sum "-" TEXT | TEXT\nTEXT: /"[^"]*"|x{1,90}y?/\n'
    out = np.zeros((2, masks.mask_words(vocab.size)), dtype=np.int32)
    for lexer in ("longest", "any"):
        for partition in (True, False):
            backend = PushdownTrie(vocab, lexer=lexer, partition=partition, shared=False)
            compiled = backend.compile(Grammar(text + '%ignore " "\n'))
            compiled.start().can_end()
            for word in (b"(" * 100, b"x" * 90, b'"a', b'"" -  ""'):
                matcher = compiled.start()
                for byte in word:
                    matcher.advance(byte)
                fill_masks([matcher, matcher], out)
                fill_masks([matcher, matcher], out)
                matcher.can_end()
                matcher.forced_bytes()
    _warm_up_strings(vocab)


def _warm_up_strings(vocab: Vocabulary) -> None:
    """Names, counted strings and code written later."""
    from tokdfa.constraint import Choice
    from tokdfa.pushdown.form import RETURN_PLACE
    from tokdfa.pushdown.form_builder import FormBuilder

    builder = FormBuilder()
    string = builder.read(builder.string_text, RETURN_PLACE)
    counted = builder.later(lambda: builder.counted(1, 3, RETURN_PLACE))
    start = builder.names(builder.name_table(("a", "b")), 0, 0, [counted], string)
    settings, pool = dict(PushdownTrie(vocab).settings), Pool(vocab)
    for _ in range(2):  # the second has the tables of the first
        compiled = CompiledPushdown(Choice(["strings"]), vocab, builder.build(start), settings, Phases(), pool)
        matcher = compiled.start()
        for byte in b'"a""xyz"':
            matcher.advance(byte)
            matcher.fill_mask(masks.allocate_mask(vocab.size))
        del matcher, compiled
