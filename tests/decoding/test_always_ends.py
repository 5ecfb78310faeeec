"""Generation that always ends: every text is whole, whatever the limit, with our loop and with transformers' own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tokdfa
from tests.packages import needs_smollm2
from tokdfa.decoding.loop import generate_batch
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import ArgumentError
from tokdfa.models.ngram import train_ngram

PATTERN = r'\{"says": "[a-z ]{3,60}"\}'


def test_every_text_is_whole() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    model = train_ngram(
        tokenizer, "the rain in spain stays mainly in the plain, and the train in the rain stays in spain"
    )
    compiled = tokdfa.compile(tokdfa.Regex(PATTERN), tokenizer.vocabulary, "token_index")
    shortest = len(compiled.start().shortest_completion())
    cut = 0
    for limit in (shortest + 1, shortest + 4, 40):
        plain = generate_batch(model, compiled, [""] * 20, Sampler(), limit)
        whole = generate_batch(model, compiled, [""] * 20, Sampler(), limit, always_ends=True)
        assert all(one.finished and re.fullmatch(PATTERN, one.text) for one in whole)
        assert max(len(one.tokens) for one in whole) < limit
        cut += sum(not one.finished for one in plain)
        for one, other in zip(plain, whole, strict=True):
            if one.finished and one.tokens == other.tokens:
                np.testing.assert_array_equal(one.step_log_probabilities, other.step_log_probabilities)
    assert cut > 10
    with pytest.raises(ArgumentError, match="max_tokens"):
        generate_batch(model, compiled, [""], Sampler(), shortest, always_ends=True)


@needs_smollm2
def test_transformers_ends_too() -> None:
    import torch

    network, tokenizer = tokdfa.load_model("smollm2").network, tokdfa.load_tokenizer("smollm2")
    constrained = tokdfa.constrain(tokdfa.Regex(PATTERN), tokenizer, network)
    prompt = torch.tensor([tokenizer.encode("As JSON: ")])
    for limit in (12, 20):
        processor = constrained.logits_processor(max_tokens=limit)
        output = network.generate(prompt, logits_processor=[processor], max_new_tokens=limit, do_sample=False)
        text = b"".join(map(constrained.vocabulary.token_bytes, output[0, prompt.shape[1] :].tolist()))
        assert re.fullmatch(PATTERN, text.decode()), text
