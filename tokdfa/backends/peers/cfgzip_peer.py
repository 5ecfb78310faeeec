"""cfgzip on top of xgrammar: tokens that a grammar treats alike are one, and xgrammar sees one of each class.

A regex or a choice goes to xgrammar's regex reader, a Grammar to its Lark reader; what that has read is printed in
GBNF, of which cfgzip computes the classes of tokens (the *displacements* of a pushdown automaton's stack), and xgrammar
compiles the same GBNF over the classes' representatives. A mask is xgrammar's mask of classes, spread over the tokens.
What matters for a comparison:

- *Offline.* The classes belong to a grammar and a vocabulary and are meant to be computed once and stored. They are in
  the phase ``classes`` of a compile: seconds for a regex, minutes for a grammar, over 32,000 tokens. The package's
  Rust program for it takes tokenizers by their names on a hub only, so its Python function, which is called
  deprecated, does it here.
- *Not taken.* It does not read counted repetitions, which are written out for it up to `MAX_COPIES` copies, and of a
  grammar with characters beyond ASCII or with an escaped bound of a negated set it makes an error, which `supports`
  passes on. JSON schemas are not passed on: what xgrammar prints of them has both.
- *Masks* are spread by an index of classes, 8 bits a token, and packed.
- *Tokens, fork and rollback* are as with xgrammar (`xgrammar_peer`).
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.backends.base import CompiledConstraint, Option, Support
from tokdfa.backends.peers.common import DIALECT, GAPS, FittedPattern, Peer, own_errors, require
from tokdfa.backends.peers.rust_regex import with_start_rule
from tokdfa.backends.peers.xgrammar_peer import XgrammarMatcher, xgrammar_pattern
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import LimitExceeded, TokdfaError, UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: So many copies of a symbol are written out in the place of a counted repetition.
MAX_COPIES = 64
#: A string, a set of characters, or a counted repetition of a symbol, as xgrammar prints them.
_PRINTED = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?P<symbol>\w+)\{(?P<low>\d+), (?P<high>-?\d+)\}')
_START = "cfgzip_start"
#: What cfgzip is told that the end token spells: no token of a vocabulary is so long.
_END_TEXT = "\0" * 5000


class CfgzipPeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "xgrammar_cfgzip"
    summary: ClassVar[str] = "xgrammar over classes of tokens that the grammar treats alike (cfgzip)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar")
    packages: ClassVar[tuple[str, ...]] = ("xgrammar", "cfgzip")
    options: ClassVar[tuple[Option, ...]] = (
        DIALECT,
        Option("on_demand", bool, False, "sort out the masks of a state when a text first comes there, not in advance"),
    )
    known_differences: ClassVar[dict[str, str]] = {
        "masks_equal": "its classes lose tokens that go over a repetition of parts that may be empty",
        **GAPS,
    }

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.xgrammar, self.cfgzip = require("xgrammar"), require("cfgzip")
        self.setup_seconds = 0.0

    def supports(self, constraint: Constraint) -> Support:
        """Reads the grammar as cfgzip does, some milliseconds; classes of tokens are not looked for."""
        answer = super().supports(constraint)
        if answer:
            try:
                with own_errors("cfgzip", constraint):
                    _check_readable(written_out(self.grammar(constraint)))
            except (UnsupportedConstraint, LimitExceeded) as error:
                return Support(False, str(error))
            except TokdfaError:
                return answer  # a fault of the constraint, which `compile` reports as such
        return answer

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        return FittedPattern(xgrammar_pattern(pattern))

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def grammar(self, constraint: Constraint) -> str:
        """The constraint in GBNF. Raises what xgrammar raises."""
        reader = self.xgrammar.Grammar
        if isinstance(constraint, Grammar):
            return str(reader.from_lark(with_start_rule(constraint)))
        assert isinstance(constraint, Regex | Choice)
        return str(reader.from_regex(self.fitted_pattern(constraint).pattern))

    def classes(self, grammar: str) -> Any:
        """cfgzip's EquivalenceClassData. Raises what cfgzip raises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # see the module: its program takes other tokenizers only
            return self.cfgzip.preprocess(
                written_out(grammar), _Tokenizer(self.vocab), start_symbol=_START, n_logits=self.vocab.size
            )


def written_out(grammar: str) -> str:
    """GBNF without counted repetitions, and with a start symbol `_START` that no rule uses: cfgzip fails with one that
    is used. LimitExceeded where one takes more than `MAX_COPIES` copies."""

    def copies(found: re.Match[str]) -> str:
        if found["symbol"] is None:
            return found[0]
        symbol, low, high = found["symbol"], int(found["low"]), int(found["high"])
        if max(low, high) > MAX_COPIES:
            raise LimitExceeded(
                f"{found[0]} is a repetition of more than {MAX_COPIES}, which cfgzip does not read",
                limit="copies",
                value=max(low, high),
            )
        if high < 0:
            return f"({' '.join([symbol] * low)} {symbol}*)"
        optional = ""
        for _ in range(high - low):
            optional = f"({symbol} {optional})?" if optional else f"{symbol}?"
        return f"({' '.join([symbol] * low)} {optional})" if high else '""'

    return f"{_START} ::= (root)\n{_PRINTED.sub(copies, grammar)}"


@lru_cache(maxsize=64)
def _check_readable(grammar: str) -> None:
    """Raise what cfgzip raises when it reads a grammar."""
    module = require("cfgzip.preprocessing.parse_cfg_str")
    parsed, automata, _, labels = module.parse_cfg_str(grammar, start_symbol=_START)
    require("cfgzip.preprocessing.normalize_cfg").normalize_cfg(parsed, automata, labels)


class _Tokenizer:
    """A vocabulary in the form that cfgzip reads: each byte of a token is the character of that number."""

    byte_decoder: ClassVar[dict[str, int]] = {chr(byte): byte for byte in range(256)}

    def __init__(self, vocab: Vocabulary) -> None:
        self.eos_token_id = vocab.end_tokens[0]
        self._texts = {token: vocab.token_bytes(token).decode("latin-1") for token in range(vocab.size)}
        self._texts = {token: text for token, text in self._texts.items() if text}
        self._texts[self.eos_token_id] = _END_TEXT

    def convert_ids_to_tokens(self, token: int) -> str:
        return self._texts[token]

    def get_vocab(self) -> dict[int, int]:
        """Its values are the ids; several tokens may have equal bytes, so the keys are ids as well."""
        return {token: token for token in self._texts}


class _Compiled(CompiledConstraint):
    """`peer`: xgrammar's grammar over classes; `class_of`: intp, the class of each token, the last one is nothing."""

    def __init__(self, backend: CfgzipPeer, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self._new_matcher = backend.xgrammar.GrammarMatcher
        with own_errors("cfgzip", constraint):
            with self.phases.measure("read"):
                text = backend.grammar(constraint)
            with self.phases.measure("classes"):
                found = backend.classes(text)
            with self.phases.measure("compile"):
                self.peer = _compile_classes(backend, text, found)
        representatives = found.class_representatives
        self.class_count = len(representatives)
        self.class_of = found.token_classes.numpy().astype(np.intp)
        self.class_of[self.class_of < 0] = self.class_count
        self.class_of[found.invalid_tokens.numpy()] = self.class_count
        self.class_of[[*self.vocab.special_tokens, *self.vocab.end_tokens]] = self.class_count
        self.sizes["classes"] = self.class_count
        self.sizes["bytes"] = self.peer.memory_size_bytes + self.class_of.nbytes

    def _start(self, context: tuple[int, ...]) -> _CfgzipMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _CfgzipMatcher(self, self._new_matcher(self.peer))


def _compile_classes(backend: CfgzipPeer, grammar: str, found: Any) -> Any:
    module, end = backend.xgrammar, int(found.token_classes[backend.vocab.end_tokens[0]])
    if len(found.class_representatives) < 2:
        raise UnsupportedConstraint("no token of the vocabulary is of use to the grammar")
    tokenizer = module.TokenizerInfo(found.class_representatives, module.VocabType.RAW, stop_token_ids=[end])
    compiler = module.GrammarCompiler(
        tokenizer, max_threads=1, cache_enabled=False, enable_dynamic_compilation=backend.settings["on_demand"]
    )
    return compiler.compile_grammar(grammar)


class _CfgzipMatcher(XgrammarMatcher):
    def __init__(self, compiled: _Compiled, peer: Any) -> None:
        super().__init__(compiled, peer)
        self._classes = np.zeros((compiled.class_count + 31) // 32, dtype=np.int32)
        #: One byte a class, and a zero for tokens of none.
        self._allowed = np.zeros(compiled.class_count + 1, dtype=np.uint8)
        self._bits = np.zeros(32 * ((self.vocab.size + 31) // 32), dtype=np.uint8)

    def _fill(self, out: Mask) -> None:
        self.peer.fill_next_token_bitmask(self._classes)
        count = self._compiled.class_count
        self._allowed[:count] = np.unpackbits(self._classes.view(np.uint8), count=count, bitorder="little")
        np.take(self._allowed, self._compiled.class_of, out=self._bits[: self.vocab.size])
        out[:] = np.packbits(self._bits, bitorder="little").view("<i4")
        if self._accepts():
            self.set_end_bits(out)

    def _take(self, token: int) -> bool:
        place = int(self._compiled.class_of[token])
        return place < self._compiled.class_count and bool(self.peer.accept_token(place))
