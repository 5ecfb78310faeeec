"""The setting `models` of experiments on language models: names, checked before a run and loaded inside it.

An entry is a name of `tokdfa.models.registry`, or ``{name: ngram, tokenizer: mistral-v1}`` for a model without a
tokenizer of its own. Whether its packages are installed is not checked before a run: a model that cannot be loaded is a
result, a row that holds the reason and the command that installs what is missing.

Every model of a run has one row with ``part: model``, made by `load_models`: ``model`` (the entry's label),
``tokenizer``, ``status`` and ``message``, ``load_seconds``, ``fingerprint``. `finish_row` adds what the run asked of
it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from tokdfa.errors import ModelError, OptionError, UnknownNameError
from tokdfa.lab.measure.limits import OK, failure_of
from tokdfa.lab.measure.settings import Strict, distinct
from tokdfa.models.registry import load_model, model_names
from tokdfa.vocabulary.tokenizers import load_tokenizer, tokenizer_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.tokenizers import Tokenizer


#: The part of the rows about models.
PART = "model"


class ModelEntry(Strict):
    """A model by name, with the tokenizer of those that bring none. `label`: its name in tables."""

    name: str
    tokenizer: str | None = None
    label: str = ""


@dataclass(frozen=True)
class Loaded:
    """A model of the run. `tokenizer`: makes its tokens, its vocabulary is the model's; `row`: see the module.

    `begin`: the tokens before a text that begins a document: the model's start tokens, or else none if it has a row for
    the empty prefix, or else the first end token, as models are trained on documents with one between them.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    row: dict[str, Any]
    begin: tuple[int, ...]

    @property
    def place(self) -> dict[str, str]:
        """What every row about this model begins with."""
        return {"model": self.row["model"], "tokenizer": self.row["tokenizer"]}


def entries(models: Sequence[str | ModelEntry]) -> list[ModelEntry]:
    """The entries with their labels: the name, followed by the tokenizer where one is given."""
    found = []
    for model in models:
        entry = ModelEntry(name=model) if isinstance(model, str) else model
        label = entry.label or " ".join(filter(None, (entry.name, entry.tokenizer and f"({entry.tokenizer})")))
        found.append(entry.model_copy(update={"label": label}))
    return found


def _check_model(given: str | ModelEntry) -> str | ModelEntry:
    """Raise UnknownNameError for the name of a model or a tokenizer, OptionError for a model that lacks one.

    Nothing is loaded, but for tokenizers that are given as files.
    """
    known = {info.name.partition("?")[0].partition("NAME")[0]: info for info in model_names()}
    (entry,) = entries([given])
    key = "hf:" if entry.name.startswith("hf:") else entry.name.partition("?")[0]
    if key not in known:
        raise UnknownNameError("model", entry.name, known)
    if entry.tokenizer is None:
        if not known[key].own_tokenizer:
            raise OptionError(
                f"settings.models: {entry.name} needs a tokenizer, as in {{name: {entry.name}, tokenizer: smollm2}}"
            )
    elif entry.tokenizer not in tokenizer_names():
        load_tokenizer(entry.tokenizer)
    return given


#: The type of the setting: names and entries.
Models = Annotated[
    list[Annotated[str | ModelEntry, AfterValidator(_check_model)]],
    Field(min_length=1),
    distinct("models", lambda one: entries([one])[0].label),
]


def load_models(models: Sequence[str | ModelEntry], threads: int, rows: list[dict[str, Any]]) -> Iterator[Loaded]:
    """Each model, loaded when its turn comes; its row is appended to `rows`, also where it cannot be loaded.

    `threads`: of torch, where a model uses it. 0.1 to 25 s a model.
    """
    for entry in entries(models):
        row: dict[str, Any] = {
            "part": PART,
            "model": entry.label,
            "tokenizer": entry.tokenizer or "",
            "status": OK,
            "message": "",
        }
        rows.append(row)
        started = time.perf_counter_ns()
        try:
            model = load_model(entry.name, entry.tokenizer)
            tokenizer = model.vocabulary.tokenizer
            if tokenizer is None:
                raise OptionError(f"the vocabulary of {entry.label} has no tokenizer, so texts have no tokens")
            begin = _begin(model)
        except Exception as error:
            row |= failure_of(error).columns
            continue
        if "torch" in sys.modules:  # imported by a model
            sys.modules["torch"].set_num_threads(threads)
        row |= {"load_seconds": (time.perf_counter_ns() - started) * 1e-9, "fingerprint": model.fingerprint}
        row["tokenizer"] = tokenizer.name
        yield Loaded(model, tokenizer, row, begin)


def _begin(model: LanguageModel) -> tuple[int, ...]:
    """See `Loaded.begin`."""
    if model.start_tokens:
        return tuple(model.start_tokens)
    try:
        model.log_probabilities([()])
    except ModelError:
        return model.vocabulary.end_tokens[:1]
    return ()


def finish_row(loaded: Loaded) -> None:
    """Write into the model's row what the run has asked of it: batches, rows, tokens and seconds of the model."""
    counts = loaded.model.counts
    loaded.row.update(batches=counts.batches, rows=counts.rows, tokens=counts.tokens, seconds=counts.seconds)
