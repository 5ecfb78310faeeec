"""maskforge: JSON schemas compiled to byte automata or, where those do not do, to a matcher of JSON values.

A JsonSchema goes to its compiler as it is written; which of its two engines takes it, it decides by itself. What
matters for a comparison:

- *JSON Schema.* Blanks are free, around the value as well, members come in any order, none twice, characters may be
  escaped. Options of the constraint other than the schema are not passed on.
- *Accepted wrongly.* It ignores ``format``. A schema that no value meets compiles, and its first mask is empty.
- *Refused wrongly.* ``-0``, ``1.0`` and ``1e2`` as integers; an escape that a string of ``const`` does not need.
- *Cache.* Its compiler keeps executables of schemas, by their text; with ``cache=False``, ours, it does not, as
  compiling a constraint twice would time a look-up. The trie of the vocabulary is kept in any case.
- *Binding.* The rows of all states of a regular schema are made while compiling where they fit a budget of its own,
  else when they are first asked for.
- *Masks* are written into a bytearray of its own, of which we copy the words: about a microsecond for 128,000 tokens.
- *Tokens.* It knows one end token; where that is allowed, we allow all of ours. A token without bytes is absent to it.
- *Fork and rollback.* It has neither, so matchers start anew and take the same tokens again. A refused token leaves its
  session as it was.
- *Refusals* are errors with a code, a stage and a place in the schema, which are passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import Peer, PerVocabulary, own_errors, require
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.constraint import JsonSchema

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

_PACKAGE = "maskforge"
_LIMIT_WORDS = ("Budget", "Limit", "TooLarge", "TooMany", "Exceeded")


class MaskforgePeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "maskforge"
    summary: ClassVar[str] = "byte automaton or structured matcher of a JSON schema (maskforge)"
    kinds: ClassVar[tuple[str, ...]] = ("json_schema",)
    packages: ClassVar[tuple[str, ...]] = (_PACKAGE,)
    options: ClassVar[tuple[Option, ...]] = (Option("cache", bool, False, "remember compiled schemas by their text"),)
    known_differences: ClassVar[dict[str, str]] = {}

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        require(_PACKAGE)
        self.vocabulary, of_vocabulary = _VOCABULARIES.get(self.vocab)
        self.compiler, of_compiler = _COMPILERS.get(self.vocab, None if self.settings["cache"] else 0)
        self.setup_seconds = of_vocabulary + of_compiler

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        assert isinstance(constraint, JsonSchema)
        return _Compiled(self, constraint)


def _make_vocabulary(vocab: Vocabulary) -> Any:
    tokens = [vocab.token_bytes(token) or None for token in range(vocab.size)]
    return require(_PACKAGE).Vocabulary.from_id_ordered_tokens(tokens, vocab.end_tokens[0], vocab.size)


def _make_compiler(vocab: Vocabulary, cache_bytes: int | None) -> Any:
    """A compiler that has bound a schema, so that the trie of the vocabulary is there."""
    compiler = require(_PACKAGE).Compiler(cache_bytes)
    compiler.compile('{"type": "array", "items": {"type": "string"}}').bind(_VOCABULARIES.get(vocab)[0])
    return compiler


_VOCABULARIES: PerVocabulary[Any] = PerVocabulary(_PACKAGE, _make_vocabulary)
_COMPILERS: PerVocabulary[Any] = PerVocabulary(_PACKAGE, _make_compiler)


class _Compiled(CompiledConstraint):
    """`peer`: maskforge's bound schema, shared by all its sessions."""

    def __init__(self, backend: MaskforgePeer, constraint: JsonSchema) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        with own_errors(_PACKAGE, constraint, _LIMIT_WORDS):
            with self.phases.measure("compile"):
                program = backend.compiler.compile(constraint.text)
            with self.phases.measure("bind"):
                self.peer = program.bind(backend.vocabulary)

    def _start(self, context: tuple[int, ...]) -> _MaskforgeMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _MaskforgeMatcher(self)


class _MaskforgeMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled) -> None:
        super().__init__(compiled.vocab)
        self._compiled = compiled
        self._session = compiled.peer.start_session()
        self._written = bytearray(4 * self._session.mask_word_count)
        self._words = np.frombuffer(self._written, dtype="<i4")
        self._other_ends = len(self.vocab.end_tokens) > 1

    def _fill(self, out: Mask) -> None:
        self._session.write_mask(self._written)
        out[:] = self._words
        if self._other_ends and self._session.is_accepting:
            self.set_end_bits(out)

    def _take(self, token: int) -> bool:
        try:
            self._session.advance(token)
        except require(_PACKAGE).MaskforgeError:
            return False
        return True

    def _would_take(self, token: int) -> bool:
        self._session.write_mask(self._written)
        return bool(self._written[token >> 3] >> (token & 7) & 1)

    def _accepts(self) -> bool:
        return bool(self._session.is_accepting)

    def _restart(self, tokens: list[int]) -> None:
        self._session.reset()
        for token in tokens:
            self._session.advance(token)

    def _fork_peer(self) -> _MaskforgeMatcher:
        twin = _MaskforgeMatcher(self._compiled)
        twin.start_anew(self.taken)
        return twin
