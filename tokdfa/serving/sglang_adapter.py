"""tokdfa as a grammar backend of SGLang (``sglang.srt.constrained.base_grammar_backend``).

Written against that interface as of 2025, and tested with a fake of it; it has not been run in SGLang. Where the server
is started from Python:

    from tokdfa.serving.sglang_adapter import register

    register()
    engine = sglang.Engine(model_path=..., grammar_backend="tokdfa")

Compilations run on SGLang's own threads and are kept by SGLang by the text of the request, and here by content.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.core.packages import derived, import_library
from tokdfa.decoding.torch_masks import apply_masks
from tokdfa.errors import TokdfaError
from tokdfa.serving.compiling import ConstraintCache
from tokdfa.serving.requests import read_request
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Where SGLang keeps the classes that a backend derives from, and what for.
INTERFACE = "sglang.srt.constrained.base_grammar_backend", "the adapter for SGLang"
_logger = logging.getLogger(__name__)


class RequestGrammar:
    """One request: what SGLang calls a BaseGrammarObject."""

    def __init__(self, compiled: CompiledConstraint) -> None:
        super().__init__()  # SGLang's own attributes
        self._compiled = compiled
        self._matcher: Matcher = compiled.start()
        self.finished = False

    def accept_token(self, token: int) -> None:
        """Take a token; TokenRefused for one that its mask refused. What comes after an end token is ignored."""
        if not self._matcher.is_finished():
            self._matcher.advance(token)

    def rollback(self, k: int) -> None:
        """Take tokens back."""
        self._matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether an end token has been taken."""
        return self._matcher.is_finished()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """An int32 tensor of shape (batch_size, ceil(V/32)) on the CPU, where it is filled, with all bits set."""
        torch = import_library("torch", "masks for SGLang")
        return torch.full((batch_size, masks.mask_words(self._compiled.vocab.size)), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        """Write the mask into a row."""
        self._matcher.fill_mask(vocab_mask[idx])

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """The masks on a device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """Set the logits of refused tokens to minus infinity, in place."""
        apply_masks(logits, vocab_mask)

    def copy(self) -> Any:
        """The same grammar before its first token, for another request."""
        return type(self)(self._compiled)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that are forced, if there are any; end tokens are left to the model."""
        forced = [token for token in self._matcher.forced_tokens() if token not in self._compiled.vocab.end_token_set]
        return (forced, "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """Jumps are made of tokens, not of text."""
        return "", -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Follow a text that was tokenized again: back to where both agree, and on."""
        shared = next(
            (k for k, (old, new) in enumerate(zip(old_output_ids, new_output_ids, strict=False)) if old != new),
            min(len(old_output_ids), len(new_output_ids)),
        )
        self._matcher.rollback(len(self._matcher.tokens) - shared)
        for token in new_output_ids[shared:]:
            self._matcher.advance(token)


class EngineBackend:
    """What SGLang calls a BaseGrammarBackend.

    `backend` and `options`: the strategy that compiles, by default that of the constraint's kind; `cache`: what keeps
    compilations.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        backend: str | None = None,
        cache: ConstraintCache | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._vocabulary, self._backend, self._options = vocabulary, backend, options
        self._constraints = ConstraintCache() if cache is None else cache

    def dispatch_json(self, key_string: str) -> Any:
        """SGLang writes ``$$ANY$$`` for any JSON object."""
        return self._dispatch("json_object" if key_string == "$$ANY$$" else "json", key_string)

    def dispatch_regex(self, key_string: str) -> Any:
        """A pattern."""
        return self._dispatch("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> Any:
        """A grammar, in any notation that `read_request` reads."""
        return self._dispatch("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """Tags in free text."""
        return self._dispatch("structural_tag", key_string)

    def _dispatch(self, kind: str, text: str) -> Any:
        """The grammar of a request; for one that is refused, what SGLang has for that, and a line in the log."""
        try:
            constraint = read_request(kind, text)
            compiled = self._constraints.compile(constraint, self._vocabulary, self._backend, **self._options)
        except TokdfaError as error:
            _logger.warning("the %s of a request is refused: %s", kind, error)
            return getattr(import_library(*INTERFACE), "INVALID_GRAMMAR_OBJ", None)
        return derived(RequestGrammar, *INTERFACE, "BaseGrammarObject")(compiled)


def register(name: str = "tokdfa", backend: str | None = None, **options: Any) -> None:
    """Have SGLang know tokdfa as the grammar backend `name`. Raises MissingDependency without SGLang."""

    def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None = None) -> Any:
        vocabulary = as_vocabulary(tokenizer, sorted(eos_token_ids or ()), vocab_size)
        return derived(EngineBackend, *INTERFACE, "BaseGrammarBackend")(vocabulary, backend, **options)

    import_library(*INTERFACE).register_grammar_backend(name, make)
