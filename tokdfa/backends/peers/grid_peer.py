"""GRID (Evolution ID): schemas lowered to LALR(1) tables, with masks of configurations walked over a trie and kept.

A JsonSchema goes to its own reader, which gives a grammar in its own notation and the names of the constraints that it
has not enforced. Its scanner cuts a text into lexemes, its parser's stack and what is read of the present lexeme are a
configuration, and the mask of one is kept once made. The walk is Rust (the package grid-core); without that package it
is Python. What matters for a comparison:

- *Little in silence.* With ``strict=False``, its own default, most constraints that it cannot enforce are named, and
  accepted; here they are in `recorded` of the compiled constraint. With ``strict=True`` such a schema is refused.
- *Accepted wrongly*, and named: ``uniqueItems``, ``contains``, ``multipleOf``, bounds of numbers that are no integers,
  ``not`` of single values, overlap in ``oneOf``, required keys that are not listed as properties, patterns that it
  cannot read. Not named: ``$dynamicRef`` and ``$recursiveRef``, dates that do not exist, and what a listed key is bound
  to where the key is spelled with an escape.
- *Refused wrongly.* Listed keys, and strings of ``const`` and ``enum``, with an escape that they do not need; integers
  with an exponent. Schemas whose grammar is not LALR(1), such as ``dependentRequired`` alone, are no use to it.
- *No texts.* ``false`` takes a NUL and nothing else.
- *Repeated keys.* A listed key may come again and again, as with xgrammar's ``any_order``.
- *Blanks* are free between lexemes. Options of the constraint other than the schema are not passed on.
- *Tokens.* It knows one end token; all of ours are allowed where that is. Tokens are bytes to it.
- *What it keeps.* Tables of grammars on disk are off unless its own environment variables say otherwise; the token
  trie is made once for a vocabulary (`setup_seconds`).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import Peer, PerVocabulary, own_errors, require
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.core.locks import new_lock

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint, JsonSchema
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


_PACKAGE = "grid-guardrail"


class GridPeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "grid"
    summary: ClassVar[str] = "LALR(1) tables, masks of configurations walked over a trie and kept (GRID, Evolution ID)"
    kinds: ClassVar[tuple[str, ...]] = ("json_schema",)
    packages: ClassVar[tuple[str, ...]] = (_PACKAGE,)
    options: ClassVar[tuple[Option, ...]] = (
        Option("strict", bool, False, "refuse schemas with constraints that it does not enforce"),
    )
    known_differences: ClassVar[dict[str, str]] = {}

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        require("grid")
        (self.tokenizer, self.trie), self.setup_seconds = _TOKENIZERS.get(self.vocab)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def guide(self, constraint: JsonSchema) -> tuple[Any, frozenset[str]]:
        """A GridGuide, and what it does not enforce. Raises what GRID raises."""
        store = require("grid.serving.artifact_store")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice on grammars that it has written itself
            read = require("grid.jsonschema").compile_json_schema
            source, recorded = read(constraint.schema, strict=self.settings["strict"])
            grammar = require("grid.grammar.spec").load(source)
            projection = require("grid.grammar.projection").RoleProjection.full(grammar).build()
            tables = store.load_or_compile_tables(projection, frozenset())
            scanner = store.load_or_build_scanner(grammar)
            guide = require("grid.guide").GridGuide(tables, scanner, self.trie, self.tokenizer)
        return guide, frozenset(recorded)


class _Tokenizer:
    """A vocabulary as GRID asks for one."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocabulary = {str(token): token for token in range(vocab.size)}
        self.eos_token_id = self.pad_token_id = int(vocab.end_tokens[0])
        self.eos_token = str(self.eos_token_id)
        self.token_bytes = vocab.token_bytes
        self.special_token_ids = frozenset(token for token in range(vocab.size) if not vocab.token_bytes(token))
        self.special_tokens = {str(token) for token in self.special_token_ids}


def _make_tokenizer(vocab: Vocabulary) -> tuple[_Tokenizer, Any]:
    made = _Tokenizer(vocab)
    return made, require("grid.serving.artifact_store").load_or_build_trie(made)


_TOKENIZERS: PerVocabulary[tuple[_Tokenizer, Any]] = PerVocabulary(_PACKAGE, _make_tokenizer)


class _Compiled(CompiledConstraint):
    """`peer`: GRID's guide, shared by all matchers, under a lock; `recorded`: what it does not enforce."""

    def __init__(self, backend: GridPeer, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.lock = new_lock()
        with own_errors(_PACKAGE, constraint), self.phases.measure("compile"):
            self.peer, self.recorded = backend.guide(constraint)  # type: ignore[arg-type]

    def _start(self, context: tuple[int, ...]) -> _GridMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _GridMatcher(self, [self.peer.initial_state])


class _GridMatcher(PeerMatcher):
    """`states`: GRID's state before the text and after each token; they never change."""

    def __init__(self, compiled: _Compiled, states: list[Any]) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self._states = compiled, states

    def _fill(self, out: Mask) -> None:
        with self._compiled.lock:
            self._compiled.peer.fill_bitmask(self._states[-1], out.view("<u4"))
        self.clear_padding(out)
        if self._accepts():
            self.set_end_bits(out)

    def _after(self, token: int) -> Any:
        with self._compiled.lock:
            return self._compiled.peer._advance(self._states[-1], token, audit=False)

    def _take(self, token: int) -> bool:
        after = self._after(token) if self.vocab.token_bytes(token) else None
        if after is not None:
            self._states.append(after)
        return after is not None

    def _would_take(self, token: int) -> bool:
        return bool(self.vocab.token_bytes(token)) and self._after(token) is not None

    def _accepts(self) -> bool:
        return bool(self._compiled.peer.can_terminate_state(self._states[-1]))

    def _go_back(self, count: int) -> None:
        del self._states[-count:]

    def _fork_peer(self) -> _GridMatcher:
        return _GridMatcher(self._compiled, self._states.copy())
