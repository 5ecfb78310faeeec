"""``tokdfa skew``, run as a user runs it: the tables, what failed, and what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.command_line import command
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.lab.measure import skew_rows
from tokdfa.models.registry import load_model
from tokdfa.skew.exact import ideal_distribution
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tests.command_line import Command

CHOICES = ("-c", " sentence", "-c", " word", "-c", " end")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")


@pytest.fixture
def skew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("skew", 120, monkeypatch, capsys)


def test_the_tables(skew: Command, tokenizer: str) -> None:
    backends = ("-b", "token_index", "-b", "tokens_dfa", "-b", "tokens_dfa?proper=true")
    status, lines, _ = skew("-m", "table?seed=5", "-t", tokenizer, "-p", "It was a", *CHOICES, *backends)
    assert status == 0
    assert lines[0].split() == ["choice", "ideal", "token_index", "tokens_dfa", "tokens_dfa?proper=true"]
    model = load_model("table?seed=5", tokenizer)
    context = load_tokenizer(tokenizer).encode("It was a")
    ideal = ideal_distribution(model, context, [" sentence", " word", " end"], eos="ignored", tolerance=1e-3)
    expected = {text.decode(): value for text, value in zip(*_parts(ideal), strict=True)}
    printed = {line.split("'")[1]: line.rpartition("'")[2].split() for line in lines[1:4]}
    assert list(printed) == sorted(expected, key=lambda text: -expected[text])
    for text, values in printed.items():
        assert values[0] == f"{expected[text]:.5f}"
        assert values[1] == values[2]
    by_strategy = {line.split()[0]: line.split() for line in lines[5:9]}
    assert list(by_strategy) == ["ideal", "token_index", "tokens_dfa", "tokens_dfa?proper=true"]
    assert by_strategy["ideal"][-1] == str(ideal.prefixes)
    assert by_strategy["tokens_dfa?proper=true"][5] == "0.00%"
    assert lines[-1] == "equal     tokens_dfa and token_index: at most 0 apart in the probability of any choice"
    assert lines[-2].startswith("model     table?seed=5: ")


def _parts(result: object) -> tuple[tuple[bytes, ...], list[float]]:
    distribution = result.distribution  # type: ignore[attr-defined]
    return distribution.texts, distribution.probabilities.tolist()


def test_a_backend_that_fails_is_said(skew: Command, tokenizer: str) -> None:
    arguments = ("-m", "table", "-t", tokenizer, "-p", "It was a", *CHOICES)
    status, lines, _ = skew(*arguments, "-b", "token_index", "-b", "direct_merge?max_transitions=1")
    assert status == 1
    assert lines[-1].startswith("failed    direct_merge?max_transitions=1: memory: ")


def test_a_disagreement_is_said(skew: Command, tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew_rows, "MUTED", "all")  # so that the muted engine is taken for a plain one
    arguments = ("-m", "table?seed=5", "-t", tokenizer, "-p", "It was a", *CHOICES)
    status, lines, _ = skew(*arguments, "-b", "token_index", "-b", "tokens_dfa?mute_literals=true")
    assert status == 1
    assert lines[-1].startswith("DIFFER    tokens_dfa?mute_literals=true and token_index: at most 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "tabl", *CHOICES), "did you mean 'table'"),
        (("-m", "table", "-c", " a"), "at least two choices"),
        (("-m", "table", "-c", " a", "-c", " ab"), "eos='counted'"),
        (("-m", "table", *CHOICES, "--eos", "maybe"), "not 'maybe'"),
        (("-m", "table", *CHOICES, "-b", "token_index?lay=true"), "did you mean 'lazy'?"),
        (("-m", "table", *CHOICES, "-b", "token_index?lazy"), "NAME=VALUE"),
        (("-m", "table", *CHOICES, "-b", "token_index", "-b", "token_index"), "same label"),
        (("-m", "table", *CHOICES), "needs a tokenizer"),
    ],
)
def test_errors(skew: Command, arguments: tuple[str, ...], message: str) -> None:
    status, lines, error = skew(*arguments)
    assert (status, lines) == (1, [])
    assert message in error
