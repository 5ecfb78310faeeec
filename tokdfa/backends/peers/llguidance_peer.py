r"""llguidance (Microsoft; source 000): lazy derivatives, an Earley parser, a trie walk for each mask, slices.

A regex or a choice becomes a grammar of one lexeme, ``start: /.../``; a Grammar is passed on in llguidance's own Lark
dialect, a JsonSchema as ``%json`` or, with forcing, by the JSON route. What matters for a comparison:

- *Forcing* is its own default: where the next bytes are determined, its mask has only the token that the model's own
  tokenizer would make of them. ``forcing=False``, ours, asks for the full sets of the contract, by ``no_forcing``.
  llguidance takes that as an option of a Lark grammar and nowhere else, and reading a Lark grammar, however short,
  takes it some 0.4 ms. ``forcing=True`` passes a schema on as ``{"grammars": [{"json_schema": ...}]}``, its documented
  and cheapest call; it needs the encoder of the vocabulary's tokenizer, which goes over as ranks where there are some
  and is called in Python otherwise. Proper tokenizations get the same verdicts by both.
- *JSON Schema.* The schema is passed on with the white space, the separators and the leniency of the constraint, not
  with its order and escapes. Properties come in the order of the schema, required ones no earlier than others before
  them there, others after them; a key that is not listed may be repeated. Blanks are free inside a value, never
  before or after it. Characters are escaped only where they
  must be, constants and keys not at all; ``1.0`` and ``1e2`` are no integers; a required key counts as listed. All is
  read as draft 2020-12, whatever the schema declares. A keyword or format beyond it is refused; a lenient reading
  ignores them, lets branches of ``oneOf`` overlap, and leaves a list in `warnings` of the compiled constraint.
- *Slices.* With ``slices="default"`` tokens such as those without quotes and control characters are sorted out in
  advance, and a state that allows a whole slice takes its ready mask; ``off`` walks the trie, whose speed 000 and 004
  discuss.
- *Memory of the last mask.* Asked twice in the same state, llguidance returns the last mask again.
- *Vocabulary.* Tokens that begin with byte FF mean special tokens to it; they occur in no UTF-8 text. It knows several
  end tokens; we never let it take one.
- *Errors.* It reports nothing but goes into an error state; the matcher asks for it and raises LimitExceeded.
- *Dead ends.* It does not look whether the vocabulary can spell what remains. A text that no token can continue is an
  error state to it, from which it cannot go back, so the matcher starts anew then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import (
    DIALECT,
    GAPS,
    Peer,
    PerVocabulary,
    first_lines,
    limit_exceeded,
    require,
)
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.backends.peers.rust_regex import escape_slashes, with_start_rule
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import OptionError, TokdfaError, TokenizerError, UnsupportedConstraint
from tokdfa.grammar.lark_syntax import parse_statements
from tokdfa.grammar.lark_tree import Definition, Structured

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

_HEADER = '%llguidance {"no_forcing": true}\n'
_LIMIT_WORDS = ("too big", "too many", "too complex", "limit", "fuel")
#: What its error begins with if no token of the vocabulary continues the text.
_DEAD_END = "NoExtensionBias"


class LlguidancePeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "llguidance"
    summary: ClassVar[str] = "lazy derivatives, Earley parser and trie walk (llguidance, Microsoft)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    packages: ClassVar[tuple[str, ...]] = ("llguidance",)
    options: ClassVar[tuple[Option, ...]] = (
        DIALECT,
        Option(
            "slices", str, "default", "default: ready masks of common token sets; off: walk", choices=("default", "off")
        ),
        Option("forcing", bool, False, "its default: where bytes are determined, only the tokenizer's own token"),
        Option("step_fuel", int, 200_000, "limit on the lexer's work in one mask", minimum=1),
        Option("max_states", int, 250_000, "limit on lexer states", minimum=1),
    )
    known_differences: ClassVar[dict[str, str]] = GAPS

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self._module = require("llguidance")
        self.forces: bool = self.settings["forcing"]
        if self.forces and self.vocab.tokenizer is None:
            raise OptionError("forcing needs the encoder of a tokenizer; this vocabulary was made without one")
        self.tokenizer, self.setup_seconds = _TOKENIZERS.get(self.vocab, self.settings["slices"], self.forces)
        self._limits = self._module.LLParserLimits(
            step_lexer_fuel=self.settings["step_fuel"], max_lexer_states=self.settings["max_states"]
        )

    @property
    def token_language(self) -> Literal["all", "forced"]:
        return "forced" if self.forces else "all"

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        grammar = self._grammar(constraint)
        return _Compiled(self, constraint, grammar, self._limits)

    def _grammar(self, constraint: Constraint) -> str:
        header = "" if self.forces else _HEADER
        if isinstance(constraint, Grammar):
            return header + with_start_rule(_translated(constraint))
        if isinstance(constraint, JsonSchema):
            schema = _schema_text(constraint)
            return (
                f'{{"grammars": [{{"json_schema": {schema}}}]}}' if self.forces else f"{header}start: %json {schema}\n"
            )
        assert isinstance(constraint, Regex | Choice)
        return f"{header}start: /{escape_slashes(self.fitted_pattern(constraint).pattern)}/\n"


def _translated(grammar: Grammar) -> Grammar:
    """A grammar whose ``%json`` say their options in llguidance's way."""
    if grammar.sources:
        raise UnsupportedConstraint("llguidance imports no grammars of one's own; earley_trie and pushdown_trie do")
    parts, done = [], 0
    for statement in parse_statements(grammar.text) if "%json" in grammar.text else ():
        for part in statement.leaves if isinstance(statement, Definition) else ():
            if isinstance(part, Structured) and part.directive == "%json":
                schema = grammar.schema(grammar.text[part.begin : part.end])
                parts += [grammar.text[done : part.begin], _schema_text(schema)]
                done = part.end
    return Grammar("".join([*parts, grammar.text[done:]]), grammar.start, label=grammar.label)


def _schema_text(constraint: JsonSchema) -> str:
    """The schema with the constraint's options as ``x-guidance``, where llguidance looks for them."""
    chosen: dict[str, Any] = {}
    if constraint.whitespace == "compact":
        chosen["whitespace_flexible"] = False
    if constraint.whitespace_pattern:
        chosen["whitespace_pattern"] = constraint.whitespace_pattern
    if (constraint.item_separator, constraint.key_separator) != (",", ":"):
        chosen["item_separator"], chosen["key_separator"] = constraint.item_separator, constraint.key_separator
    if constraint.lenient:
        chosen["lenient"] = True
    if not chosen:
        return constraint.text  # as it is: reading it here would be work that llguidance does anyhow
    schema = {} if constraint.schema is True else constraint.schema
    if not isinstance(schema, dict):
        return constraint.text
    return json.dumps({**schema, "x-guidance": {**schema.get("x-guidance", {}), **chosen}})


class _Wrapper:
    """A vocabulary in the form that LLTokenizer reads. `encode`: the tokens of a text; None if nobody will ask."""

    bos_token_id = None
    is_tokenizer_wrapper = True

    def __init__(self, vocab: Vocabulary, encode: Callable[[str], list[int]] | None) -> None:
        self.eos_token_id = vocab.end_tokens[0]
        self.special_token_ids = sorted({*vocab.special_tokens, *vocab.end_tokens})
        self.tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
        self._encode = encode

    def __call__(self, text: str) -> list[int]:
        if self._encode is None:
            raise TokdfaError("llguidance asked for an encoder, which it does not need without forcing")
        return self._encode(text)


def _make_tokenizer(vocab: Vocabulary, slices: str, forces: bool) -> Any:
    """LLTokenizer for `vocab`: its token trie and, unless they are off, the tries and masks of its slices.

    With `forces` it can encode: by itself if the tokenizer is one of tiktoken's, otherwise by asking the tokenizer.
    """
    tokenizer_class = require("llguidance").LLTokenizer
    chosen: list[str] | None = None if slices == "default" else []
    ends = list(vocab.end_tokens)
    if not forces:
        return tokenizer_class(_Wrapper(vocab, None), eos_token=ends, slices=chosen)
    pattern = _tiktoken_pattern(vocab.tokenizer)
    if pattern is None:
        return tokenizer_class(_Wrapper(vocab, vocab.tokenizer.encode), eos_token=ends, slices=chosen)
    spelled = {vocab.token_bytes(token): token for token in range(vocab.size)}
    spelled.pop(b"", None)
    silent = {f"<|{token}|>": token for token in range(vocab.size) if not vocab.lengths[token]}
    return tokenizer_class.from_tiktoken(
        encoder=spelled, special_tokens=silent, pattern=pattern, eos_token=ends, n_vocab=vocab.size, slices=chosen
    )


def _tiktoken_pattern(tokenizer: Tokenizer) -> str | None:
    """The pattern by which a tokenizer of tiktoken's cuts texts; None for another tokenizer."""
    try:
        source = tokenizer.merges.pre_tokenizer
    except TokenizerError:
        return None
    return source.pattern if source is not None and source.dialect == "tiktoken" else None


_TOKENIZERS: PerVocabulary[Any] = PerVocabulary("llguidance", _make_tokenizer)


class _Compiled(CompiledConstraint):
    """A parsed grammar in its start state, which each matcher copies. `warnings`: what a lenient reading ignores."""

    def __init__(self, backend: LlguidancePeer, constraint: Constraint, grammar: str, limits: Any) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        with self.phases.measure("compile"):
            self.prototype = backend._module.LLMatcher(backend.tokenizer, grammar, log_level=0, limits=limits)
        if self.prototype.is_error():
            said = first_lines(self.prototype.get_error())
            if any(word in said for word in _LIMIT_WORDS):
                raise limit_exceeded("llguidance", constraint, said)
            raise UnsupportedConstraint(f"llguidance cannot compile {constraint.name!r}: {said}")
        self.warnings = tuple(self.prototype.get_grammar_warnings())

    def _start(self, context: tuple[int, ...]) -> _LlguidanceMatcher:
        """A matcher before the first token; `context` does not matter without forcing."""
        return _LlguidanceMatcher(self, self.prototype.deep_copy())


class _LlguidanceMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled, peer: Any) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self.peer = compiled, peer
        self._nbytes = 4 * ((self.vocab.size + 31) // 32)

    def _fill(self, out: Mask) -> None:
        peer = self.peer
        peer.unsafe_compute_mask_ptr(self.address(out), self._nbytes)
        if peer.is_stopped():
            out.fill(0)  # what it says now is "end", whether or not the text is complete
            if peer.is_accepting():
                self.set_end_bits(out)
            else:
                self._raise_error()

    def _take(self, token: int) -> bool:
        return self.peer.try_consume_tokens([token]) == 1 or self._raise_error()

    def _would_take(self, token: int) -> bool:
        return self.peer.validate_tokens([token]) == 1 or self._raise_error()

    def _raise_error(self) -> bool:
        """Raise what llguidance has to say if it has given up; False if it has not, or is at a dead end."""
        said = self.peer.get_error()
        if said and not said.startswith(_DEAD_END):
            raise limit_exceeded("llguidance", self._compiled.constraint, first_lines(said))
        return False

    def _accepts(self) -> bool:
        return bool(self.peer.is_accepting())

    def _go_back(self, count: int) -> None:
        if self.peer.is_error() or not self.peer.rollback(count):
            super()._go_back(count)

    def _restart(self, tokens: list[int]) -> None:
        self.peer = self._compiled.prototype.deep_copy()
        self.peer.try_consume_tokens(tokens)

    def _fork_peer(self) -> _LlguidanceMatcher:
        return _LlguidanceMatcher(self._compiled, self.peer.deep_copy())
