"""A batch of requests, each with a constraint of its own, on a model of transformers: masks while the model works.

    pip install -e '.[lm]'    # in a clone of tokdfa
    python transformers_batch.py MODEL

Constraints are compiled in the background and kept (`tokdfa.ConstraintCache`); `tokdfa.BatchMatcher` fills the masks of
all rows on threads of its own while the model computes the logits that they are for. For one constraint, generate()
with `constrained.logits_processor()` is less code.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import tokdfa

if TYPE_CHECKING:
    from collections.abc import Sequence

REQUESTS: list[tuple[str, tokdfa.Constraint]] = [
    ("An animal with eight legs, as JSON: ", tokdfa.JsonSchema({"enum": ["spider", "scorpion"]}, profile="generation")),
    ("The year in which the first man stood on the moon: ", tokdfa.Regex("(19|20)[0-9]{2}")),
    ("Is the earth flat? Answer: ", tokdfa.Choice(["yes", "no"])),
]


def answer(model: Any, tokenizer: Any, requests: Sequence[tuple[str, tokdfa.Constraint]], steps: int = 32) -> list[str]:
    """The most probable tokens for each prompt, within its constraint; `steps` tokens at most."""
    import torch

    vocabulary = tokdfa.constrain(["any"], tokenizer, model).vocabulary  # as wide as the model's logits
    cache = tokdfa.ConstraintCache(max_count=100)
    compiled = [cache.compile_async(constraint, vocabulary) for _, constraint in requests]

    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.eos_token
    inputs = tokenizer([prompt for prompt, _ in requests], return_tensors="pt", padding=True)
    tokens, attention = inputs["input_ids"], inputs["attention_mask"]

    batch = tokdfa.BatchMatcher(vocabulary, rows=len(requests), threads=2)
    for row, future in enumerate(compiled):
        batch.put(row, future.result().start())
    with torch.inference_mode():
        for _ in range(steps):
            filled = batch.fill_async()
            # without a cache of keys and values, whose argument has another name from version to version
            logits = model(input_ids=tokens, attention_mask=attention).logits[:, -1].float()
            tokdfa.apply_masks(logits, filled.result())
            chosen = logits.argmax(dim=-1, keepdim=True)
            batch.advance(chosen.flatten().tolist())
            if all(batch.finished()):
                break
            tokens = torch.cat([tokens, chosen], dim=1)
            attention = torch.cat([attention, torch.ones_like(chosen)], dim=1)
    ends = vocabulary.end_token_set
    texts = []
    for row in range(len(batch)):
        matcher = batch[row]
        assert matcher is not None
        texts.append(vocabulary.spell(token for token in matcher.tokens if token not in ends).decode())
    return texts


def main(arguments: Sequence[str]) -> None:
    """Answer the requests by a model from the command line."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (name,) = arguments
    model: Any = AutoModelForCausalLM.from_pretrained(name)
    for (prompt, _), text in zip(REQUESTS, answer(model, AutoTokenizer.from_pretrained(name), REQUESTS), strict=True):
        print(prompt + text)


if __name__ == "__main__":
    main(sys.argv[1:])
