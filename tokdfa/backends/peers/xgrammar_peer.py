r"""xgrammar (MLC): grammars as pushdown automata, with masks kept for the states of the automaton.

Tokens whose fate does not depend on the stack are sorted out for every state of the automaton in advance; a mask looks
up that state and runs an Earley parser on the few that remain. A regex or a choice goes to its regex reader, a Grammar
to its Lark reader, a JsonSchema to its schema reader. What matters for a comparison:

- *Masks of states on demand, or in advance.* With ``on_demand=True``, ours, the masks of a state are sorted out when a
  matcher first comes there (``enable_dynamic_compilation``, since 0.2.9); with ``False``, its own default, while
  compiling, which takes hundreds of milliseconds for a schema of MaskBench, and first masks a few microseconds.
  The masks are the same. ``threads`` are its threads while compiling. Its cache, which keeps whole grammars and the
  masks of equal rules, is off: compiling a constraint twice would time a look-up. ``cache=True`` is its own default,
  without a bound; what a server of many schemas would take.
- *Tags in free text.* Its Lark reader has no terminals with ``&`` and ``~``, of which ours are made. A grammar may say
  what it is as one of xgrammar's structural tags, in a line ``// xgrammar: {"type": "structural_tag", ...}``: a comment
  to everybody else.
- *JSON Schema.* ``strict_mode=False`` reads objects and arrays as JSON Schema does; its own default refuses properties
  and items that are not listed. Properties come in the order of the schema, others after them, keys that are not
  listed may be repeated. With ``any_order=True`` the order is free, and neither a missing nor a repeated key is
  noticed. Blanks are free inside a value, never before or after it (``any_whitespace``, its default); with
  ``whitespace="compact"`` of the constraint, separators are exactly the constraint's. Other options of the constraint
  are not passed on.
- *Accepted wrongly.* It ignores in silence ``not``, ``if``, what hangs on members that are there
  (``dependentRequired``, ``dependentSchemas``), ``unevaluatedProperties`` and ``unevaluatedItems``, ``contains``,
  ``uniqueItems``, ``$dynamicRef`` and required keys that are not listed as properties; with a warning on the standard
  error output, ``multipleOf`` of numbers, all of ``allOf`` with several members, lengths beside a pattern, look-ahead,
  overlap in ``oneOf``, remote ``$ref``. Dates need not exist, and strings with a length may contain raw control
  characters.
- *Refused wrongly.* A pattern must match the whole string, and characters that it would have to escape are left out;
  an escape counts as more than one character of a length; ``-0`` and ``1.0`` are no integers; values of ``const`` and
  ``enum`` and keys only as ``json.dumps`` writes them; a schema without ``type`` beside ``properties`` admits objects
  only.
- *Tokens.* It knows several end tokens; we never let it take one. A token that spells nothing is refused by us,
  because it would write a warning for each.
- *Dead ends.* It does not look whether the vocabulary can spell what remains.
- *Hard schemas.* Compiling takes time that grows fast with the nesting of a schema: 4 s at depth 500 for 260 tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import (
    DIALECT,
    GAPS,
    FittedPattern,
    Peer,
    PerVocabulary,
    own_errors,
    require,
)
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.backends.peers.rust_regex import with_start_rule
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: A code point as Rust's regexes write it.
_CODE_POINT = re.compile(r"\\x\{([0-9a-f]+)\}")
#: What a grammar is in xgrammar's own notation: see the module.
_STRUCTURAL_TAG = re.compile(r"^// xgrammar: (\{.*\})$", re.MULTILINE)


class XgrammarPeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "xgrammar"
    summary: ClassVar[str] = "pushdown automaton with masks kept for its states (xgrammar, MLC)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    packages: ClassVar[tuple[str, ...]] = ("xgrammar",)
    options: ClassVar[tuple[Option, ...]] = (
        DIALECT,
        Option("strict_mode", bool, False, "JSON schemas: refuse properties and items that are not listed"),
        Option("any_order", bool, False, "JSON schemas: properties in any order, neither complete nor distinct"),
        Option("on_demand", bool, True, "sort out the masks of a state when a text first comes there, not in advance"),
        Option("cache", bool, False, "remember compiled grammars and the masks of equal rules, without a bound"),
        Option("threads", int, 1, "threads that compile", minimum=1),
    )
    known_differences: ClassVar[dict[str, str]] = GAPS

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.module = require("xgrammar")
        self.tokenizer, of_tokenizer = _TOKENIZERS.get(self.vocab)
        self.compiler, of_compiler = _COMPILERS.get(
            self.vocab, self.settings["threads"], self.settings["cache"], self.settings["on_demand"]
        )
        #: One byte for each token: whether it spells something.
        self.spells = bytes(self.vocab.lengths > 0)
        self.setup_seconds = of_tokenizer + of_compiler

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        return FittedPattern(xgrammar_pattern(pattern))

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def _load_tables(self, tables: str, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint, self.module.CompiledGrammar.deserialize_json(tables, self.tokenizer))

    def compile_peer(self, constraint: Constraint) -> Any:
        """xgrammar's compiled grammar. Raises what xgrammar raises."""
        if isinstance(constraint, Grammar):
            own = _STRUCTURAL_TAG.search(constraint.text)
            if own:
                return self.compiler.compile_structural_tag(own[1])
            return self.compiler.compile_lark(with_start_rule(constraint))
        if isinstance(constraint, JsonSchema):
            return self.compiler.compile_json_schema(
                constraint.text,
                any_whitespace=constraint.whitespace == "flexible",
                separators=(constraint.item_separator, constraint.key_separator),
                strict_mode=self.settings["strict_mode"],
                any_order=self.settings["any_order"],
            )
        assert isinstance(constraint, Regex | Choice)
        return self.compiler.compile_regex(self.fitted_pattern(constraint).pattern)


def xgrammar_pattern(pattern: str) -> str:
    """A Rust regex with its code points as xgrammar writes them."""
    return _CODE_POINT.sub(r"\\u{\1}", pattern)


def _make_tokenizer(vocab: Vocabulary) -> Any:
    """xgrammar's TokenizerInfo; a token without bytes is a special token to it."""
    module = require("xgrammar")
    tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
    return module.TokenizerInfo(tokens, module.VocabType.RAW, stop_token_ids=list(vocab.end_tokens))


_TOKENIZERS: PerVocabulary[Any] = PerVocabulary("xgrammar", _make_tokenizer)


def _make_compiler(vocab: Vocabulary, threads: int, cache: bool, on_demand: bool) -> Any:
    module = require("xgrammar")
    return module.GrammarCompiler(
        _TOKENIZERS.get(vocab)[0], max_threads=threads, cache_enabled=cache, enable_dynamic_compilation=on_demand
    )


_COMPILERS: PerVocabulary[Any] = PerVocabulary("xgrammar", _make_compiler)


class _Compiled(CompiledConstraint):
    """`peer`: xgrammar's compiled grammar, shared by all its matchers."""

    def __init__(self, backend: XgrammarPeer, constraint: Constraint, stored: Any = None) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self._new_matcher, self.spells = backend.module.GrammarMatcher, backend.spells
        with own_errors("xgrammar", constraint), self.phases.measure("compile"):
            self.peer = backend.compile_peer(constraint) if stored is None else stored

    @property
    def sizes(self) -> dict[str, int]:
        """Its memory, counted when asked for: that takes up to a third of a compile."""
        return {"bytes": self.peer.memory_size_bytes}

    @sizes.setter
    def sizes(self, sizes: dict[str, int]) -> None:
        """Nothing is kept."""

    def _save_tables(self) -> str:
        return str(self.peer.serialize_json())

    def _start(self, context: tuple[int, ...]) -> XgrammarMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return XgrammarMatcher(self, self._new_matcher(self.peer))


class XgrammarMatcher(PeerMatcher):
    """`peer`: xgrammar's matcher."""

    def __init__(self, compiled: Any, peer: Any) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self.peer = compiled, peer

    def _fill(self, out: Mask) -> None:
        self.peer.fill_next_token_bitmask(out)
        self.clear_padding(out)

    def _take(self, token: int) -> bool:
        return bool(self._compiled.spells[token]) and self.peer.accept_token(token)

    def _would_take(self, token: int) -> bool:
        if not self._take(token):
            return False
        self.peer.rollback(1)
        return True

    def _accepts(self) -> bool:
        return bool(self.peer.is_completed())

    def _go_back(self, count: int) -> None:
        self.peer.rollback(count)

    def _fork_peer(self) -> XgrammarMatcher:
        return type(self)(self._compiled, self.peer.fork())
