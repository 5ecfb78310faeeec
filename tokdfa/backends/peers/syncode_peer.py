r"""SynCode (University of Illinois): Lark's lexer and LALR(1) parser in Python, over masks kept for terminals' states.

Compiling makes a mask of each state of a terminal's automaton and each terminal that may follow: the tokens that stay
inside the first, or end it and begin the second. For a mask the whole text is lexed and parsed again, which tells the
last terminal, how far it is, and what may follow; the masks that are kept of these are united. What matters for a
comparison:

- *An environment of its own.* 0.4.16 asks for transformers 4.53.2, other peers for transformers 5; an experiment names
  its interpreter (``pythons``).
- *Below its logits processor.* Its makers' call masks a tensor of scores (``SyncodeLogitsProcessor``). The adapter
  makes the same parser and the same store of masks, and asks them for the mask alone; the masks are equal. The
  processor also writes both to files in the current folder, and reads them again for equal grammars; the adapter does
  not.
- *Modes.* In ``grammar_mask``, ours, a token that ends a terminal need only begin the next one, whatever its other
  bytes. In ``grammar_strict``, the default of its class ``Syncode``, the rest of it has to be inside the next one.
- *Accepted wrongly.* Where a terminal may be complete or go on, all that is kept of its state is allowed, the end of
  the text included: after ``12+`` of a sum, the end. Its automata take any byte for a character that a pattern does
  not name, and a tab for four blanks.
- *Refused wrongly.* A token over two terminals where none has begun (``1+`` at the start of a sum), and one that goes
  on with a complete terminal and leaves it incomplete (the point of ``1.5`` after ``1``, the first byte of an ``é``).
  Terminals are told apart before they are parsed, the longest match first and keywords before names; conflicts of
  LALR(1) are resolved by shifting.
- *Dead ends.* Its parser may fail at a token that it has offered; it then stops masking. Here the mask is empty.
- *Compiling* is a loop in Python over states, tokens and terminals; its log says that it may take more than ten
  minutes.
- *Fork and rollback* cost nothing: what it knows is the text. A fork parses the text from its beginning.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import Peer, PerVocabulary, own_errors, require
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.backends.peers.rust_regex import with_start_rule
from tokdfa.errors import VocabularyError
from tokdfa.mask import mask_from_bool
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.constraint import Constraint, Grammar
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

_PACKAGE = "syncode"


class SyncodePeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "syncode"
    summary: ClassVar[str] = "LALR(1) parser over masks kept for terminals' states, in Python (SynCode, Illinois)"
    kinds: ClassVar[tuple[str, ...]] = ("grammar",)
    packages: ClassVar[tuple[str, ...]] = (_PACKAGE,)
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "mode",
            str,
            "grammar_mask",
            "grammar_mask: more than the language; grammar_strict: less where a token ends a terminal",
            choices=("grammar_mask", "grammar_strict"),
        ),
    )
    known_differences: ClassVar[dict[str, str]] = {
        "no_dead_end": "its parser fails at tokens that it has offered",
        "texts_in_language": "it offers the end of the text where the last terminal may go on",
        "texts_accepted": "it refuses tokens over two terminals where none has begun, and tells terminals apart first",
    }

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        _import()
        self.tokenizer, self.setup_seconds = _TOKENIZERS.get(self.vocab)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)  # type: ignore[arg-type]


def _import() -> None:
    """Import SynCode, whose files warn of escapes, and which sends the program's log to the standard output."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require(_PACKAGE)
    root.handlers[:] = handlers
    root.setLevel(level)


class _Name(str):
    """A token's name. Two tokens may have equal bytes, so it is equal to itself only."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class _Tokenizer:
    """A vocabulary as SynCode reads a tokenizer of transformers: byte-level names, as GPT-2 has them."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
        for data in self.spelled:
            if data.startswith(b"<0x") and data.endswith(b">"):  # the names of tokens would be taken for those of bytes
                raise VocabularyError(f"{_PACKAGE} reads a vocabulary with a token {data!r} otherwise")
        self._alphabet, self.vocab_size = byte_alphabet(), vocab.size
        self.eos_token_id = int(vocab.end_tokens[0])
        self.all_special_ids = [token for token, data in enumerate(self.spelled) if not data]
        self._ids = {_Name(self._name(token)): token for token in range(vocab.size)}

    def _name(self, token: int) -> str:
        if token == self.eos_token_id:
            return "\u2581"  # it tells byte-level names by a blank in one of them, which a small vocabulary may lack
        return "".join(self._alphabet[byte] for byte in self.spelled[token])

    def get_vocab(self) -> dict[_Name, int]:
        return self._ids

    def decode(self, tokens: Sequence[int]) -> str:
        return b"".join(self.spelled[token] for token in tokens).decode(errors="replace")


_TOKENIZERS: PerVocabulary[_Tokenizer] = PerVocabulary(_PACKAGE, _Tokenizer)


class _Compiled(CompiledConstraint):
    """`store`: SynCode's kept masks; `parser`: Lark's, of which each matcher makes its own. Shared by all matchers."""

    def __init__(self, backend: SyncodePeer, constraint: Grammar) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        parsers, reading = require("syncode.parsers"), require("syncode.grammar_mask.grammar_constrainer")
        self.split_text = reading.GrammarConstrainer._bytes_to_string
        self.states = require("syncode.parse_result").RemainderState
        self.new_parser = require("syncode.parsers.incremental_parser").IncrementalParser
        with own_errors(_PACKAGE, constraint):
            with self.phases.measure("parser"):
                grammar = require("syncode.parsers.grammars").Grammar(with_start_rule(constraint))
                self.parser = parsers.create_base_parser(grammar)
            with self.phases.measure("masks"):
                self.store = require("syncode.mask_store.mask_store").MaskStore(
                    self.parser.terminals,
                    backend.tokenizer,
                    simplifications=grammar.simplifications(),
                    mode=backend.settings["mode"],
                    ignore_terminals=self.parser.ignore_tokens,
                    parse_table=self.parser.parser.parser._parse_table,
                )
        self.ignores_blanks = self.store._ignore_whitespace
        self.spells = self.vocab.lengths > 0
        self.end = backend.tokenizer.eos_token_id
        self.sizes["states"] = len(self.store._fsms.states())

    def _start(self, context: tuple[int, ...]) -> _SyncodeMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _SyncodeMatcher(self, b"")


class _SyncodeMatcher(PeerMatcher):
    """`text`: what has been spelled. The mask after it is kept until the next token."""

    def __init__(self, compiled: _Compiled, text: bytes) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self._text = compiled, text
        self._parser = compiled.new_parser(compiled.parser, ignore_whitespace=compiled.ignores_blanks)
        self._allowed: npt.NDArray[np.bool_] | None = None

    def _current(self) -> npt.NDArray[np.bool_]:
        """Which tokens it allows: bool, one a token, its end token included."""
        if self._allowed is None:
            self._allowed = self._ask()
        return self._allowed

    def _ask(self) -> npt.NDArray[np.bool_]:
        compiled = self._compiled
        whole, part = compiled.split_text(self._text)
        try:
            found = self._parser.get_acceptable_next_terminals(whole)
        except Exception:  # as in its logits processor, which stops masking then
            return np.zeros(self.vocab.size, dtype=np.bool_)
        found.remainder = found.remainder.encode() + part
        if part:
            found.remainder_state = compiled.states.INCOMPLETE
        allowed: npt.NDArray[np.bool_] = compiled.store.get_accept_mask(found).numpy()
        return allowed

    def _fill(self, out: Mask) -> None:
        out[:] = mask_from_bool(self._current() & self._compiled.spells)
        if self._accepts():
            self.set_end_bits(out)

    def _take(self, token: int) -> bool:
        if not self._would_take(token):
            return False
        self._text += self.vocab.token_bytes(token)
        self._allowed = None
        return True

    def _would_take(self, token: int) -> bool:
        return bool(self._compiled.spells[token] and self._current()[token])

    def _accepts(self) -> bool:
        return bool(self._current()[self._compiled.end])

    def _go_back(self, count: int) -> None:
        self._text = self._text[: -len(self.vocab.spell(self.taken[-count:]))]
        self._allowed = None

    def _fork_peer(self) -> _SyncodeMatcher:
        return _SyncodeMatcher(self._compiled, self._text)
