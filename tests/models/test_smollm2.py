from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2, needs_torch
from tokdfa.models.smollm2 import load_smollm2

if TYPE_CHECKING:
    from tokdfa.models.transformers_model import TransformersModel

torch = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
pytest.importorskip("gguf", reason="gguf is not installed (extra lm)")
# Test workers share the cores; threads that wait for each other make small networks ten times slower.
torch.set_num_threads(1)
pytestmark = [needs_torch, needs_smollm2]

QUESTION = (
    "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon fraternity?\n"
    "Answer:"
)
#: Facts of general knowledge with numbers and spaces before them, where a wrong pre-tokenizer would differ.
TEXT = (
    "The whale shark is the largest living fish. It can be 12 metres long and lives for up to 130 years. "
    "It feeds on plankton, which it filters from the water, and it is not dangerous to humans."
)


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    return load_smollm2()


def perplexity(model: TransformersModel, tokens: list[int]) -> float:
    """Per byte of the text, so that different splits can be compared; the first token is not counted."""
    rows = model.log_probabilities([tokens[:length] for length in range(1, len(tokens))])
    total = rows[np.arange(len(rows)), tokens[1:]].sum()
    return float(np.exp(-total / len(model.vocabulary.spell(tokens[1:]))))


def test_published_probabilities(model: TransformersModel) -> None:
    tokenizer = model.vocabulary.tokenizer
    assert tokenizer is not None
    row = np.exp(model.log_probabilities([tokenizer.encode(QUESTION)])[0])
    for word, shown in (
        (" The", "2.515e-01"), (" William", "2.48e-04"), (" Theodore", "2.0e-05"), (" T", "2.5e-04"), (" W", "1.0e-04"),
    ):  # fmt: skip
        (token,) = tokenizer.encode(word)
        assert f"{row[token]:.{len(shown) - 6}e}" == shown


def test_what_it_is(model: TransformersModel) -> None:
    assert (model.name, model.vocabulary.size, model.context_limit, model.start_tokens) == ("smollm2", 49_152, 8192, ())
    assert model.fingerprint == load_smollm2().fingerprint


def test_it_understands_its_own_tokens_best(model: TransformersModel) -> None:
    tokenizer = model.vocabulary.tokenizer
    assert tokenizer is not None
    proper = perplexity(model, tokenizer.encode(TEXT))
    characters = perplexity(model, [token for letter in TEXT for token in tokenizer.encode(letter)])
    words = perplexity(model, [token for word in TEXT.split(" ") for token in tokenizer.encode(word + " ")])
    # a model of English needs about one bit a byte
    assert 1.3 < proper < 2.2
    assert proper < 0.95 * words
    assert proper < 0.5 * characters


def test_batched_is_single_is_kept(model: TransformersModel) -> None:
    tokenizer = model.vocabulary.tokenizer
    assert tokenizer is not None
    context = tokenizer.encode(QUESTION)
    prefixes = [[*context, *tokenizer.encode(text)] for text in (" William", " Theodore Roosevelt", "", " The name is")]
    singles = []
    for prefix in prefixes:
        model.forget()
        singles.append(model.log_probabilities([prefix])[0])
    model.forget()
    for _ in range(2):  # without and with kept states
        rows = model.log_probabilities(prefixes)
        likely = np.array(singles) > np.log(1e-8)
        np.testing.assert_allclose(rows[likely], np.array(singles)[likely], atol=1e-4)
