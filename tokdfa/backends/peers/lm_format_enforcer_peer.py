r"""lm-format-enforcer (Gat): a parser of characters and a trie of the characters of tokens, both in plain Python.

For each mask the trie is walked along the characters that the parser allows; inside a free string, ready lists of
tokens by length take its place. We build its `TokenEnforcerTokenizerData` from the vocabulary, as its integrations
build it from a tokenizer: a token that is no whole UTF-8 counts as U+FFFD characters. What matters for a comparison:

- *Where the work is.* Compiling only reads the schema; parts are looked at when the text gets there. It has no call
  for taking a token: the next mask parses it. Its answer is a list of ids, as in all its
  integrations, which is packed here; the counter ``packing_ns`` says how long that took.
- *All texts are kept.* It remembers every prefix that it has seen with its list, so fork and rollback cost nothing,
  and a text that begins as an earlier one did is looked up. The matchers of one compiled constraint share that memory,
  which grows with the square of a text's length, under a lock: its parsers are not made for threads.
- *Faults become errors.* If a part of the schema is beyond it, it logs that while filling a mask, and offers the end
  of the text. Here that is UnsupportedConstraint, from `fill_mask` or `advance`.
- *JSON Schema.* The order of properties is free. Blanks are free everywhere, also after the value, up to 12 in a row.
  Arrays without maxItems have no bound; its own default is 20. Options of the constraint besides the schema are not
  passed on.
- *Accepted wrongly.* It ignores in silence ``not``, ``if``, ``format``, ``uniqueItems``, ``multipleOf``, bounds of
  numbers, ``minProperties``, ``patternProperties`` and ``prefixItems``; of a ``$ref`` it reads the last part, as a
  name in the schema's definitions. Strings may contain raw control characters, and need not be UTF-8. A character with
  which no token begins, once it is spelled inside a string, ends all open values: the text may
  end there.
- *Refused wrongly.* Keys that are not listed, if any are listed; schemas without ``type`` and many others
  ("Unsupported type None"); ``allOf`` and ``oneOf`` but for objects; a pattern together with a length; values of
  ``const`` that are no strings. A pattern must match the whole string, and quotes and backslashes are left out of it.
- *Hard schemas.* A pattern whose automaton is exponential takes all time and memory there is: patterns become automata
  in Python, without a limit.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.peers.common import (
    Peer,
    PerVocabulary,
    first_lines,
    own_errors,
    pack_tokens,
    require,
)
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.core.locks import new_lock
from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tokdfa.constraint import Constraint, JsonSchema
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

_PACKAGE, _MODULE = "lm-format-enforcer", "lmformatenforcer"


class LmFormatEnforcerPeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "lm_format_enforcer"
    summary: ClassVar[str] = "parser of characters and trie of tokens' characters in Python (lm-format-enforcer, Gat)"
    kinds: ClassVar[tuple[str, ...]] = ("json_schema",)
    packages: ClassVar[tuple[str, ...]] = (_PACKAGE,)
    known_differences: ClassVar[dict[str, str]] = {
        "texts_in_language": "JSON strings may contain raw control characters and bytes that are no UTF-8",
    }

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.module = require(_MODULE)
        self.tokenizer, self.setup_seconds = _TOKENIZERS.get(self.vocab)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def enforcer(self, constraint: JsonSchema) -> Any:
        """A TokenEnforcer at the start of the text. Raises what lm-format-enforcer raises."""
        module = self.module
        config = module.CharacterLevelParserConfig(
            alphabet=self.tokenizer.tokenizer_alphabet,
            max_consecutive_whitespaces=12,
            force_json_field_order=False,
            max_json_array_length=0,
        )
        schema = constraint.schema
        if not isinstance(schema, dict):
            raise ValueError(f"a schema must be an object, not {schema!r}")
        with _MAKING:
            # its automata of patterns hold the characters of one vocabulary, but are shared by all parsers
            module.JsonSchemaParser._Context.regex_parser_cache.clear()
            parser = module.JsonSchemaParser(schema, config)
            parser.context.regex_parser_cache = {}
        made = module.TokenEnforcer(self.tokenizer, parser)
        parser.config = config  # TokenEnforcer has put the defaults in its place
        return made


_MAKING = new_lock()


def _make_tokenizer(vocab: Vocabulary) -> Any:
    """Its tokenizer data: a trie of Python dictionaries over characters, and lists of tokens for free strings.

    A token of whole characters is marked as the beginning of a word, which spares decoding the word so far again and
    again: what it adds to a text does not depend on the tokens before.
    """
    spelled = [vocab.token_bytes(token) for token in range(vocab.size)]

    def decode(tokens: Sequence[int]) -> str:
        return b"".join(spelled[token] for token in tokens).decode(errors="replace").rstrip("\ufffd")

    regular = [
        (token, text, text.encode() == data)
        for token, data in enumerate(spelled)
        if (text := data.decode(errors="replace"))
    ]
    require(_MODULE)
    from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

    return TokenEnforcerTokenizerData(regular, decode, list(vocab.end_tokens), False, vocab.size)


_TOKENIZERS: PerVocabulary[Any] = PerVocabulary("lm-format-enforcer", _make_tokenizer)


class _Compiled(CompiledConstraint):
    """`enforcer`: shared by all matchers, under a lock."""

    def __init__(self, backend: LmFormatEnforcerPeer, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self._lock = new_lock()
        self._stopped = require("lmformatenforcer.characterlevelparser").ForceStopParser
        with own_errors(_PACKAGE, constraint), self.phases.measure("compile"):
            self.enforcer = backend.enforcer(constraint)  # type: ignore[arg-type]

    def _start(self, context: tuple[int, ...]) -> _LmFormatEnforcerMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _LmFormatEnforcerMatcher(self)

    def allowed_tokens(self, taken: list[int]) -> list[int]:
        """The allowed tokens. The states of all prefixes of `taken` must have been asked before."""
        with self._lock, _Listener() as listener:
            try:
                found: list[int] = self.enforcer.get_allowed_tokens(taken).allowed_tokens
            except Exception as error:
                listener.error = error
            key = tuple(taken)
            if listener.error is None and type(self.enforcer.prefix_states[key].parser) is self._stopped:
                listener.error = ValueError("it cannot parse a token that it has offered")
            if listener.error is not None:
                self.enforcer.prefix_states.pop(key, None)  # or else it would offer the end from now on
                said = first_lines(listener.error) or type(listener.error).__name__
                raise UnsupportedConstraint(f"{_PACKAGE} cannot go on with {self.constraint.name!r}: {said}")
            return found


class _Listener(logging.Filter):
    """While it is entered: catches the error that lm-format-enforcer only logs, and keeps it off the log."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        #: With a handler there, lm-format-enforcer does not configure the program's logging.
        self._handler = logging.NullHandler()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.module != "tokenenforcer" or not record.exc_info:
            return True
        self.error = record.exc_info[1]
        return False

    def __enter__(self) -> Self:
        logging.root.addHandler(self._handler)
        logging.root.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.root.removeFilter(self)
        logging.root.removeHandler(self._handler)


class _LmFormatEnforcerMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled) -> None:
        super().__init__(compiled.vocab)
        self._compiled = compiled
        #: The mask after `taken`; None until somebody asks.
        self._mask: Mask | None = None

    def _current(self) -> Mask:
        if self._mask is None:
            allowed = self._compiled.allowed_tokens(self.taken)
            started = time.perf_counter_ns()
            self._mask = pack_tokens(allowed, self.vocab.size)
            self.counters["packing_ns"] = self.counters.get("packing_ns", 0) + time.perf_counter_ns() - started
        return self._mask

    def _fill(self, out: Mask) -> None:
        out[:] = self._current()

    def _take(self, token: int) -> bool:
        if not self._would_take(token):
            return False
        self._mask = None
        return True

    def _would_take(self, token: int) -> bool:
        return masks.contains(self._current(), token)

    def _accepts(self) -> bool:
        return masks.contains(self._current(), self.vocab.end_tokens[0])

    def _go_back(self, count: int) -> None:
        self._mask = None

    def _fork_peer(self) -> _LmFormatEnforcerMatcher:
        return _LmFormatEnforcerMatcher(self._compiled)
