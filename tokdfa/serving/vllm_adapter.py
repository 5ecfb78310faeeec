"""tokdfa as a backend of vLLM's structured outputs (``vllm.v1.structured_output.backend_types``).

Written against that interface as of 2025, and tested with a fake of it; it has not been run in vLLM. vLLM has no
registry of backends: its `StructuredOutputManager` makes one of its own for the first request unless it has one. So
give it this one before:

    from tokdfa.serving.vllm_adapter import make_backend

    manager.backend = make_backend(vllm_config, tokenizer, vllm_config.model_config.get_vocab_size())

Requests are validated earlier by the backend that their parameters name, so what that one refuses does not get here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.core.packages import derived, import_library
from tokdfa.serving.compiling import ConstraintCache
from tokdfa.serving.requests import read_request
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher

#: Where vLLM keeps the classes that a backend derives from, and what for.
INTERFACE = "vllm.v1.structured_output.backend_types", "the adapter for vLLM"


class RequestGrammar:
    """One request: what vLLM calls a StructuredOutputGrammar. Used by one thread at a time."""

    def __init__(self, compiled: CompiledConstraint) -> None:
        self._compiled = compiled
        self._matcher: Matcher = compiled.start()

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Take all the tokens; False, and none taken, if one is refused. What comes after an end token is ignored."""
        for taken, token in enumerate(tokens):
            if self._matcher.is_finished():
                break
            if not self._matcher.allows(token):
                self._matcher.rollback(taken)
                return False
            self._matcher.advance(token)
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """How many of the tokens, from the first, could be taken; nothing is."""
        accepted: list[int] = []
        for token in tokens:
            if not self._matcher.allows(token):
                break
            self._matcher.advance(token)
            accepted.append(token)
        self._matcher.rollback(len(accepted))
        return accepted

    def rollback(self, num_tokens: int) -> None:
        """Take tokens back. Those that were ignored after an end token were never taken."""
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Write the mask into a row of an int32 tensor on the CPU, shape (rows, words)."""
        self._matcher.fill_mask(bitmask[batch_index])

    def is_terminated(self) -> bool:
        """Whether an end token has been taken."""
        return self._matcher.is_finished()

    def reset(self) -> None:
        """Before the first token again."""
        self._matcher = self._compiled.start()


class EngineBackend:
    """What vLLM calls a StructuredOutputBackend: it compiles requests, on vLLM's own threads.

    `tokenizer`: the model's, in any form that `tokdfa.constrain` takes; `vocab_size`: its logit width. `backend` and
    `options`: the strategy that compiles, by default that of the constraint's kind; `cache`: what keeps compilations.
    """

    def __init__(
        self,
        vllm_config: Any,
        tokenizer: Any,
        vocab_size: int,
        backend: str | None = None,
        cache: ConstraintCache | None = None,
        **options: Any,
    ) -> None:
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size
        self._vocabulary = as_vocabulary(tokenizer, size=vocab_size)
        self._cache = ConstraintCache() if cache is None else cache
        self._backend, self._options = backend, options

    def compile_grammar(self, request_type: Any, grammar_spec: str) -> Any:
        """The grammar of a request. `request_type`: a StructuredOutputOptions. Raises tokdfa's errors."""
        constraint = read_request(request_type.name, grammar_spec)
        compiled = self._cache.compile(constraint, self._vocabulary, self._backend, **self._options)
        return derived(RequestGrammar, *INTERFACE, "StructuredOutputGrammar")(compiled)

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """An int32 tensor of shape (max_num_seqs, ceil(V/32))."""
        torch = import_library("torch", "masks for vLLM")
        return torch.from_numpy(masks.allocate_mask(self._vocabulary.size, max_num_seqs))

    def destroy(self) -> None:
        """Drop what is kept."""
        self._cache.clear()


def make_backend(vllm_config: Any, tokenizer: Any, vocab_size: int, **options: Any) -> Any:
    """An `EngineBackend` that is a StructuredOutputBackend of the installed vLLM; see the module.

    Raises MissingDependency without vLLM, and what reading the tokenizer raises.
    """
    return derived(EngineBackend, *INTERFACE, "StructuredOutputBackend")(vllm_config, tokenizer, vocab_size, **options)
