"""Tokenizers made on the spot by transformers' own classes, each with the steps that its models have."""

from __future__ import annotations

from typing import Any

import pytest

import tokdfa
from tests.packages import needs_torch
from tests.vocabulary.tokenizer_files import CORPUS, TEXTS
from tokdfa.errors import TokdfaError, TokenizerError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

pytestmark = needs_torch

MERGING = (
    *("CodeLlama", "Cohere", "GPT2", "GPTNeoX", "Gemma", "Llama", "Nllb", "Qwen2", "Qwen3_5", "Reformer", "Roberta"),
    "Whisper",
)
UNIGRAM = ("Albert", "MBart50", "T5", "XGLM", "XLMRoberta")
MARKING_WORDS = ("Bert", "CLIP", "DistilBert", "OpenAIGPT")


def trained(name: str) -> Any:
    transformers: Any = pytest.importorskip("transformers")
    made = getattr(transformers, f"{name}Tokenizer")
    return made().train_new_from_iterator(CORPUS, 600)


def kept(tokenizer: Tokenizer) -> list[str]:
    """Texts that the tokenizer leaves as they are, and has tokens for."""
    found = []
    for text in TEXTS:
        try:
            tokens = tokenizer.encode(text)
        except TokdfaError:
            continue
        if tokenizer.spell(tokens) == text.encode():
            found.append(text)
    return found


@pytest.mark.parametrize("name", [*MERGING, *UNIGRAM])
def test_a_tokenizer_of_transformers(name: str) -> None:
    own = trained(name)
    tokenizer = load_tokenizer(own)
    assert own.eos_token_id in tokenizer.vocabulary.end_tokens or own.eos_token_id is None
    assert set(own.all_special_ids) <= set(tokenizer.vocabulary.special_tokens)
    for text in TEXTS[1:]:
        assert tokenizer.encode(text, special=True) == own(text, add_special_tokens=False)["input_ids"]
    texts = kept(tokenizer)
    assert len(texts) > 2
    for text in texts:
        tokens = tokenizer.encode(text)
        assert tokenizer.decode(tokens) == text
        if text:
            matcher = tokdfa.compile(tokdfa.Choice([text]), own).start()
            for token in tokens:
                matcher.advance(token)
            assert matcher.can_end()


@pytest.mark.parametrize("name", MERGING)
def test_its_proper_sequences(name: str) -> None:
    own = trained(name)
    tokenizer = load_tokenizer(own)
    texts = [
        text for text in ("Hello world", " a 12", "it's 123", "été") if text in map(spelled_back(tokenizer), [text])
    ]
    assert len(texts) > 1
    mask = tokdfa.allocate_mask(tokenizer.vocabulary.size)
    for text in texts:
        matcher = tokdfa.compile(tokdfa.Choice([text]), own, proper=True).start()
        for token in tokenizer.encode(text):
            matcher.fill_mask(mask)
            assert tokdfa.mask_to_ids(mask).tolist() == [token]
            matcher.advance(token)
        assert matcher.can_end()


def spelled_back(tokenizer: Tokenizer) -> Any:
    return lambda text: tokenizer.spell(tokenizer.encode(text)).decode()


@pytest.mark.parametrize("name", MARKING_WORDS)
def test_tokenizers_whose_tokens_have_no_bytes_are_refused_by_name(name: str) -> None:
    with pytest.raises(TokenizerError, match=f"{name}Tokenizer: .* no exact bytes"):
        load_tokenizer(trained(name))
