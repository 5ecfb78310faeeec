"""tokdfa as a grammar backend of SGLang: an example, never run inside SGLang.

Written against ``sglang/srt/constrained/base_grammar_backend.py``, and tested with a fake of it. Where the server is
started from Python:

    import sglang_backend  # this file, which registers itself

    engine = sglang.Engine(model_path=..., grammar_backend="tokdfa")

Compilations run on SGLang's own threads and are kept by SGLang by the text of the request, and here by content.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (  # type: ignore[import-not-found]
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
)

import tokdfa
from tokdfa.errors import TokdfaError
from tokdfa.serving.requests import read_request


class Grammar(BaseGrammarObject):  # type: ignore[misc]
    """One request."""

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self.compiled, self.matcher = compiled, compiled.start()

    def accept_token(self, token: int) -> None:
        """Take a token; TokenRefused for one that its mask refused. What comes after an end token is ignored."""
        if not self.matcher.is_finished():
            self.matcher.advance(token)

    def rollback(self, k: int) -> None:
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        finished: bool = self.matcher.is_finished()
        return finished

    def copy(self) -> Grammar:
        """The same grammar before its first token, for another request."""
        return Grammar(self.compiled)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """On the CPU, where it is filled, with all bits set."""
        words = tokdfa.allocate_mask(self.compiled.vocab.size, batch_size)
        return torch.full(words.shape, -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.matcher.fill_mask(vocab_mask[idx])

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        tokdfa.apply_masks(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that are forced, if there are any; end tokens are left to the model."""
        forced = [token for token in self.matcher.forced_tokens() if token not in self.compiled.vocab.end_token_set]
        return (forced, "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """Jumps are made of tokens, not of text."""
        return "", -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Follow a text that was tokenized again."""
        self.matcher.rollback(len(self.matcher.tokens))
        for token in new_output_ids:
            self.matcher.advance(token)


class Backend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles requests; one that is refused becomes SGLang's object for that, with the message."""

    def __init__(self, vocabulary: tokdfa.Vocabulary) -> None:
        super().__init__()
        self.vocabulary, self.constraints = vocabulary, tokdfa.ConstraintCache()

    def compile(self, kind: str, text: str) -> BaseGrammarObject:
        try:
            return Grammar(self.constraints.compile(read_request(kind, text, self.vocabulary), self.vocabulary))
        except TokdfaError as error:
            return InvalidGrammarObject(str(error))

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """SGLang writes ``$$ANY$$`` for any JSON object."""
        return self.compile("json_object" if key_string == "$$ANY$$" else "json", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self.compile("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self.compile("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return self.compile("structural_tag", key_string)


def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None = None) -> Backend:
    """What SGLang calls for ``grammar_backend="tokdfa"``."""
    ends = sorted(eos_token_ids or ())
    return Backend(tokdfa.load_tokenizer(tokenizer, vocab_size, end_tokens=ends).vocabulary)


register_grammar_backend("tokdfa", make)
