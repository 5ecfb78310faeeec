"""A constraint inside llama-cpp-python: a logits processor of numpy arrays, made of any compiled constraint.

    pip install -e . llama-cpp-python    # in a clone of tokdfa
    python llama_cpp_answer.py MODEL.gguf "Which animal has eight legs? Answer as JSON: "

llama.cpp reads the model and its tokenizer from one GGUF file, and tokdfa reads the tokenizer from the same file, so
the token ids agree. Before each token llama-cpp-python calls its logits processors with all tokens so far (intc, shape
(n,)) and the logits of the next one (float32, shape (V,)), and takes what they return. Generation stops at the model's
end token, which the mask lets through only where the text may end.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import tokdfa
from tokdfa.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher

ANSWER = {
    "type": "object",
    "properties": {"animal": {"type": "string", "maxLength": 20}, "legs": {"type": "integer", "minimum": 0}},
    "required": ["animal", "legs"],
    "additionalProperties": False,
}


class ConstraintLogits:
    """Called as ``processor(tokens, logits)``: the logits, minus infinity for what is not allowed.

    The tokens of the first call are the prompt; each later call must have one token more. An object serves one text.
    Begin tokens and other tokens that spell nothing are left out of the context, which proper tokenization looks at.
    Costs what the matcher costs and two passes over V numbers.
    """

    def __init__(self, compiled: CompiledConstraint) -> None:
        self._compiled = compiled
        self._mask = tokdfa.allocate_mask(compiled.vocab.size)
        self._matcher: Matcher | None = None
        self._tokens: list[int] = []

    def __call__(self, tokens: npt.NDArray[np.intc], logits: npt.NDArray[np.single]) -> npt.NDArray[np.single]:
        """Raises ModelError for what does not fit, and TokenRefused. After the end, only ends are left."""
        size = self._compiled.vocab.size
        if logits.shape != (size,):
            raise ModelError(f"the model has logits of shape {logits.shape} and the vocabulary {size} tokens")
        matcher = self._follow(tokens.tolist())
        matcher.fill_mask(self._mask)
        return np.where(tokdfa.mask_to_bool(self._mask, size), logits, np.single(-np.inf))

    def _follow(self, tokens: list[int]) -> Matcher:
        """The matcher after `tokens`."""
        if self._matcher is None:
            spelled = [token for token in tokens if self._compiled.vocab.token_bytes(token)]
            self._matcher = self._compiled.start(context=spelled)
        elif tokens[:-1] == self._tokens:
            self._matcher.advance(tokens[-1])
        else:
            raise ModelError("these tokens do not go on from the last call's; make a ConstraintLogits for each text")
        self._tokens = tokens
        return self._matcher


def main(arguments: Sequence[str]) -> None:
    """Answer a prompt by a model, both from the command line."""
    from llama_cpp import Llama, LogitsProcessorList

    path, prompt = arguments
    model: Any = Llama(path, n_ctx=2048, verbose=False)
    tokenizer = tokdfa.load_tokenizer(f"gguf:{path}", size=model.n_vocab())
    answers = tokdfa.JsonSchema(ANSWER, whitespace="compact", escapes="needed")
    compiled = tokdfa.compile(answers, tokenizer.vocabulary, backend="pushdown_trie")
    processors = LogitsProcessorList([ConstraintLogits(compiled)])
    answer = model.create_completion(prompt, max_tokens=64, logits_processor=processors)
    print(answer["choices"][0]["text"])


if __name__ == "__main__":
    main(sys.argv[1:])
