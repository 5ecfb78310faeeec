"""tokdfa as a backend of vLLM's structured outputs: an example, which nobody has run in vLLM itself.

Written against ``vllm/v1/structured_output/backend_types.py``, and tested with a fake of it that has its abstract
methods. vLLM has no registry of backends: its `StructuredOutputManager` makes one for the first request unless it has
one. So give it this one before:

    manager.backend = Backend(vllm_config, tokenizer, vllm_config.model_config.get_vocab_size())

Requests are validated earlier by the backend that their parameters name, so what that one refuses does not get here.
Newer interfaces also ask for `find_jump_string`; None says that there is no jump.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar  # type: ignore[import-not-found]

import tokdfa
from tokdfa.serving.requests import read_request


class Grammar(StructuredOutputGrammar):  # type: ignore[misc]
    """One request. Used by one thread at a time."""

    def __init__(self, compiled: Any) -> None:
        self.compiled, self.matcher = compiled, compiled.start()

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Take all the tokens; False, and none taken, if one is refused. What comes after an end token is ignored."""
        before = len(self.matcher.tokens)
        for token in tokens:
            if self.matcher.is_finished():
                break
            if not self.matcher.allows(token):
                self.matcher.rollback(len(self.matcher.tokens) - before)
                return False
            self.matcher.advance(token)
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens, from the first, that could be taken; nothing is."""
        ahead, accepted = self.matcher.fork(), []
        for token in tokens:
            if not ahead.allows(token):
                break
            ahead.advance(token)
            accepted.append(token)
        return accepted

    def find_jump_string(self) -> str | None:
        return None

    def rollback(self, num_tokens: int) -> None:
        """Take tokens back. Those that were ignored after an end token were never taken."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.matcher.fill_mask(bitmask[batch_index])

    def is_terminated(self) -> bool:
        finished: bool = self.matcher.is_finished()
        return finished

    def reset(self) -> None:
        self.matcher = self.compiled.start()


class Backend(StructuredOutputBackend):  # type: ignore[misc]
    """Compiles requests, on vLLM's own threads, and keeps what it compiled."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size
        self.vocabulary = tokdfa.load_tokenizer(tokenizer, vocab_size).vocabulary
        self.cache = tokdfa.ConstraintCache()

    def compile_grammar(self, request_type: Any, grammar_spec: str) -> Grammar:
        """`request_type`: a StructuredOutputOptions. Raises tokdfa's errors."""
        return Grammar(
            self.cache.compile(read_request(request_type.name, grammar_spec, self.vocabulary), self.vocabulary)
        )

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.from_numpy(tokdfa.allocate_mask(self.vocabulary.size, max_num_seqs))

    def destroy(self) -> None:
        self.cache.clear()
