"""The example for llama-cpp-python with a fake of it: logits are numpy arrays, and one call asks for one token."""

from __future__ import annotations

import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokdfa
from tokdfa.errors import ModelError, TokenRefused

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "llama_cpp_answer.py"
PAGE = runpy.run_path(str(EXAMPLE))
ConstraintLogits = PAGE["ConstraintLogits"]
BYTES = tokdfa.load_tokenizer("bytes")
END = 256


class FakeLlama:
    """Random logits; samples greedily as llama-cpp-python does: a view of logits in, what comes out written back."""

    def __init__(self, path: str, **options: Any) -> None:
        self.random = np.random.default_rng(len(path))

    def n_vocab(self) -> int:
        return 257

    def create_completion(self, prompt: str, max_tokens: int, logits_processor: list[Any]) -> dict[str, Any]:
        tokens = [END, *prompt.encode()]  # a begin token, which spells nothing
        written: list[int] = []
        while len(written) < max_tokens and END not in written:
            table = np.zeros(257, dtype=[("id", np.intc), ("logit", np.single), ("p", np.single)])
            table["logit"] = self.random.normal(size=257)
            table["logit"][[ord('"'), END]] += 3  # texts end soon
            for processor in logits_processor:
                table["logit"][:] = processor(np.array(tokens + written, dtype=np.intc), table["logit"])
            written.append(int(table["logit"].argmax()))
        return {"choices": [{"text": bytes(written[:-1]).decode()}]}


def test_the_page_answers_in_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = types.ModuleType("llama_cpp")
    fake.Llama, fake.LogitsProcessorList = FakeLlama, list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", fake)
    names = []
    monkeypatch.setattr(tokdfa, "load_tokenizer", lambda name, size: names.append((name, size)) or BYTES, raising=False)
    PAGE["main"](["model.gguf", "Which animal? "])
    answer = json.loads(capsys.readouterr().out)
    assert answer.keys() == {"animal", "legs"}
    assert answer["legs"] >= 0
    assert names == [("gguf:model.gguf", 257)]


def test_what_is_not_allowed_is_minus_infinity_and_the_input_is_kept() -> None:
    processor = ConstraintLogits(tokdfa.compile(tokdfa.Regex("a|bc"), BYTES.vocabulary))
    logits = np.linspace(0, 1, 257, dtype=np.single)
    given = logits.copy()
    masked = processor(np.array([END, 7], dtype=np.intc), logits)
    assert (logits == given).all()
    assert masked.dtype == np.single
    assert np.flatnonzero(np.isfinite(masked)).tolist() == [ord("a"), ord("b")]
    assert (masked[[97, 98]] == given[[97, 98]]).all()
    masked = processor(np.array([END, 7, ord("a")], dtype=np.intc), logits)
    assert np.flatnonzero(np.isfinite(masked)).tolist() == [END]
    masked = processor(np.array([END, 7, ord("a"), END], dtype=np.intc), logits)
    assert np.flatnonzero(np.isfinite(masked)).tolist() == [END]


def test_the_context_is_the_prompt_without_special_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tokdfa.compile(tokdfa.Regex("a"), BYTES.vocabulary)
    start, seen = compiled.start, []
    monkeypatch.setattr(compiled, "start", lambda context: seen.append(context) or start(context))
    ConstraintLogits(compiled)(np.array([END, 5, 6], dtype=np.intc), np.zeros(257, dtype=np.single))
    assert seen == [[5, 6]]


def test_errors() -> None:
    processor = ConstraintLogits(tokdfa.compile(tokdfa.Regex("ab"), BYTES.vocabulary))
    logits = np.zeros(257, dtype=np.single)
    with pytest.raises(ModelError, match=r"logits of shape \(9,\) and the vocabulary 257 tokens"):
        processor(np.array([1], dtype=np.intc), logits[:9])
    processor(np.array([1], dtype=np.intc), logits)
    for other in ([1], [2, 97], [1, 97, 98]):
        with pytest.raises(ModelError, match="make a ConstraintLogits for each text"):
            processor(np.array(other, dtype=np.intc), logits)
    with pytest.raises(TokenRefused, match="token 122 is not allowed"):
        processor(np.array([1, 122], dtype=np.intc), logits)
