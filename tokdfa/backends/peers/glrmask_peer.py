r"""glrmask: grammars compiled for a vocabulary, either into a deterministic automaton over tokens or for a trie walk.

A regex or a choice becomes a grammar of one terminal, ``start: /.../``; a Grammar is passed on in glrmask's own Lark
dialect, a JsonSchema as it is. What matters for a comparison:

- *Wrong texts.* glrmask takes a terminal for finished whenever its automaton is back in its start state, so ``c*a``
  accepts ``ac``. If the minimal automaton of a pattern comes back to its start, a character is put in front of it,
  which each matcher takes before the text begins; then nothing leads back. With ``dialect="own"`` and in grammars the
  fault stays.
- *Where the work is.* ``mask_strategy="parser_dwa"`` does nearly all of it while compiling, ``token_trie`` while
  masking; ``auto`` chooses. ``parser`` tunes the trie walk.
- *End tokens.* It has none; their bits are added when it says that the text is complete.
- *Fork and rollback.* It has no rollback, and its copy is as dear as a new start, so matchers go back by starting
  anew. A refused token spoils its state: `advance` then starts anew too (and raises TokenRefused), and `allows` looks
  into the mask.
- *Dead ends.* It does not look whether the vocabulary can spell what remains.
- *JSON Schema.* Only the schema itself is passed on, no option of the constraint. A text is laid out exactly as
  ``json.dumps`` does it, with ``", "`` and ``": "``. Properties come in the order of the schema, others after them,
  and a required key counts as listed. Characters are escaped only where they must be; ``1.0`` and ``1e2`` are no
  integers. All is read as draft 2020-12. ``format`` is ignored in silence; another keyword beyond it is refused. A
  schema that no value meets compiles, and its first mask is empty.
- *Crashes.* Two kinds of schemas make it overflow the stack, which kills the process: an item count such as
  ``minItems: 100000``, and a ``$ref`` that leads back to its own schema beside other keywords. `refuse_crashes` keeps
  them away. Large counts below that, of items or of characters, and patterns with exponential automata can take
  minutes and gigabytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import (
    DIALECT,
    GAPS,
    PRIMER,
    FittedPattern,
    Peer,
    PerVocabulary,
    byte_language,
    limit_exceeded,
    own_errors,
    require,
)
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.backends.peers.rust_regex import escape_slashes, with_start_rule
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import OptionError, UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

_LIMIT_WORDS = ("too large", "limit")
#: What a vocabulary is prepared with: an object, a string, a number.
_FIRST_SCHEMA = (
    '{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"]}'
)
#: glrmask 0.5.0 builds 20,000 items in minutes and dies at 100,000.
_MAX_ITEMS = 50_000
_ITEM_COUNT = re.compile(r'"minItems"\s*:\s*(\d+)')


class GlrmaskPeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "glrmask"
    summary: ClassVar[str] = "automaton over tokens compiled from a grammar, or trie walk (glrmask)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "grammar", "json_schema")
    packages: ClassVar[tuple[str, ...]] = ("glrmask",)
    options: ClassVar[tuple[Option, ...]] = (
        DIALECT,
        Option(
            "mask_strategy",
            str,
            "auto",
            "parser_dwa: slow to compile, fast masks; token_trie: the reverse; auto: chooses by size",
            choices=("auto", "parser_dwa", "token_trie"),
        ),
        Option(
            "parser",
            str,
            "lr_table",
            "how token_trie runs the parser: lr_table compiles faster, template_dfa masks faster",
            choices=("lr_table", "template_dfa"),
        ),
    )
    known_differences: ClassVar[dict[str, str]] = GAPS

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        if self.settings["mask_strategy"] != "token_trie" and self.settings["parser"] != "lr_table":
            raise OptionError("option 'parser' acts with mask_strategy='token_trie' only")
        self._module = require("glrmask")
        self.vocabulary, self.setup_seconds = _VOCABULARIES.get(self.vocab)

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        language = byte_language(constraint)
        if language is None or (language.transitions == language.start).any():
            return FittedPattern(f"{PRIMER}(?:{pattern})", primed=True)
        return FittedPattern(pattern)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def grammar(self, constraint: Constraint) -> tuple[Any, bool]:
        """The constraint as a glrmask.Grammar, and whether it is primed. Raises what glrmask raises: ValueError."""
        if isinstance(constraint, JsonSchema):
            refuse_crashes(constraint)
            return self._module.Grammar.from_json_schema(constraint.text), False
        if isinstance(constraint, Grammar):
            return self._module.Grammar.from_lark(with_start_rule(constraint)), False
        assert isinstance(constraint, Regex | Choice)
        fitted = self.fitted_pattern(constraint)
        return self._module.Grammar.from_lark(f"start: /{escape_slashes(fitted.pattern)}/\n"), fitted.primed

    def mask_strategy(self) -> Any:
        """The strategy in glrmask's terms."""
        module, settings = self._module, self.settings
        if settings["mask_strategy"] != "token_trie":
            return getattr(module.MaskStrategy, settings["mask_strategy"].upper())
        return module.TokenTrie(parser_backend=getattr(module.ParserBackend, settings["parser"].upper()))


def refuse_crashes(constraint: JsonSchema) -> None:
    """Raise for schemas that are known to kill the process (see the module's docstring). Linear in their size."""
    if any(int(count) >= _MAX_ITEMS for count in _ITEM_COUNT.findall(constraint.text)):
        raise limit_exceeded("glrmask", constraint, f"it may crash from minItems {_MAX_ITEMS} up")
    if '"$ref"' in constraint.text and _has_loop(constraint.schema):
        raise UnsupportedConstraint(
            f"glrmask would crash on {constraint.name!r}: a $ref with other keywords beside it leads back to it"
        )


def _has_loop(root: Any) -> bool:
    """Whether a local ``$ref`` leads to itself through nothing but ``$ref`` and ``allOf``, with something beside it."""
    done: set[int] = set()

    def walk(node: Any, path: dict[int, bool]) -> bool:
        """`path`: the schemas that apply to the same value as `node`; whether each says more than one thing."""
        if not isinstance(node, dict):
            return False
        if id(node) in path:
            inside = list(path)[list(path).index(id(node)) :]
            return any(path[schema] for schema in inside)
        if id(node) in done:
            return False
        members = node["allOf"] if isinstance(node.get("allOf"), list) else []
        target = _resolve(root, node.get("$ref"))
        longer = {**path, id(node): len(node) > 1 or len(members) > 1}
        found = any(walk(part, longer) for part in (target, *members))
        done.add(id(node))
        return found

    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and walk(node, {}):
            return True
        if isinstance(node, dict | list):
            pending.extend(node.values() if isinstance(node, dict) else node)
    return False


def _resolve(root: Any, pointer: Any) -> Any:
    """What a local JSON pointer such as ``#/$defs/a`` leads to; None if it leads nowhere or elsewhere."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    found = root
    for step in pointer[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict):
            found = found.get(key)
        else:
            return None
    return found


def _make_vocabulary(vocab: Vocabulary) -> Any:
    """glrmask's vocabulary: all tokens that spell something.

    It is used once, because glrmask prepares it while compiling for the first time: 0.8 s for 128,000 tokens.
    """
    spelled = {token: vocab.token_bytes(token) for token in range(vocab.size)}
    module = require("glrmask")
    made = module.Vocab.from_id_to_bytes({token: data for token, data in spelled.items() if data})
    module.Grammar.from_json_schema(_FIRST_SCHEMA).compile(made)
    return made


_VOCABULARIES: PerVocabulary[Any] = PerVocabulary("glrmask", _make_vocabulary)


class _Compiled(CompiledConstraint):
    """`peer`: glrmask's compiled constraint, shared by all its states."""

    def __init__(self, backend: GlrmaskPeer, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        with own_errors("glrmask", constraint, _LIMIT_WORDS):
            with self.phases.measure("parse"):
                grammar, self._primed = backend.grammar(constraint)
            with self.phases.measure("compile"):
                self.peer = grammar.compile(backend.vocabulary, mask_strategy=backend.mask_strategy())

    def _start(self, context: tuple[int, ...]) -> _GlrmaskMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _GlrmaskMatcher(self, self.start_peer())

    def start_peer(self) -> Any:
        """glrmask's state before the first token of the text."""
        state = self.peer.start()
        if self._primed:
            state.commit_bytes(PRIMER.encode())
        return state


class _GlrmaskMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled, peer: Any) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self.peer = compiled, peer
        #: Its mask after `taken`, filled when `allows` first asks; None when it must be filled anew.
        self._seen: Mask | None = None

    def _fill(self, out: Mask) -> None:
        self.peer.fill_mask(out)
        if self.peer.is_accepting():
            self.set_end_bits(out)

    def _take(self, token: int) -> bool:
        if self.peer.commit_token(token):
            self._seen = None
            return True
        self.start_anew(self.taken)
        return False

    def _would_take(self, token: int) -> bool:
        if self._seen is None:
            self._seen = masks.allocate_mask(self.vocab.size)
            self.peer.fill_mask(self._seen)
        return masks.contains(self._seen, token)

    def _accepts(self) -> bool:
        return bool(self.peer.is_accepting())

    def _restart(self, tokens: list[int]) -> None:
        self.peer, self._seen = self._compiled.start_peer(), None
        self.peer.commit_tokens(tokens)

    def _fork_peer(self) -> _GlrmaskMatcher:
        return _GlrmaskMatcher(self._compiled, self.peer.copy())
