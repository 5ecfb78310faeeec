"""The setting `models`: what is refused before a run, what becomes a row inside it."""

import pytest
from pydantic import TypeAdapter

from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import LimitExceeded, ModelError, OptionError, UnknownNameError
from tokdfa.lab.measure.model_bench import ModelSettings, measure_models
from tokdfa.lab.measure.model_entries import ModelEntry, Models, finish_row, load_models
from tokdfa.models import registry
from tokdfa.models.table import TableModel


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        (["smollm3"], UnknownNameError, "smollm2"),
        (["ngram"], OptionError, "needs a tokenizer, as in {name: ngram, tokenizer"),
        ([ModelEntry(name="ngram", tokenizer="no-such")], UnknownNameError, "no-such"),
        (["smollm2", ModelEntry(name="hf:x", label="smollm2")], OptionError, "two models have the same label"),
    ],
)
def test_mistakes_are_refused_before_anything_is_loaded(models, error, message):
    with pytest.raises(error, match=message):
        TypeAdapter(Models).validate_python(models)


def test_a_model_that_cannot_be_loaded_is_a_row(tokenizer, monkeypatch):
    known = registry.load_model

    def load(name, tokenizer):
        if name == "smollm2":
            raise missing_dependency("torch", "the model smollm2")
        return known(name, tokenizer)

    monkeypatch.setattr("tokdfa.lab.measure.model_entries.load_model", load)
    rows = []
    models = ["smollm2", ModelEntry(name="table?seed=3", tokenizer=tokenizer, label="small")]
    (loaded,) = load_models(models, 1, rows)
    assert [row["model"] for row in rows] == ["smollm2", "small"]
    assert rows[0]["status"] == "unavailable"
    assert "pip install 'tokdfa[lm]'" in rows[0]["message"]
    assert rows[1]["status"] == "ok"
    assert rows[1]["fingerprint"] == loaded.model.fingerprint
    assert loaded.place == {"model": "small", "tokenizer": loaded.tokenizer.name}
    before = loaded.model.counts.rows
    loaded.model.log_probabilities([(), (1,)])
    finish_row(loaded)
    assert rows[1]["rows"] == before + 2


def test_a_model_without_a_row_for_nothing_begins_with_an_end_token(tokenizer, monkeypatch):
    entry = ModelEntry(name="table?seed=0", tokenizer=tokenizer)
    (plain,) = load_models([entry], 1, [])
    assert plain.begin == ()

    def refuse(self, prefixes):
        raise ModelError("no row for the empty prefix")

    monkeypatch.setattr(TableModel, "_log_probabilities", refuse)
    (loaded,) = load_models([entry], 1, [])
    assert loaded.begin == loaded.model.vocabulary.end_tokens[:1]


def test_turns_become_rows_and_failures_end_them(tokenizer):
    settings = ModelSettings(models=[ModelEntry(name="table?seed=3", tokenizer=tokenizer, label="small")], seconds=60.0)

    def measured():
        yield {"value": 1}
        raise LimitExceeded("too many states", limit="max_states", value=3)

    def turns(loaded, settings, seed):
        yield {"label": "a"}, measured()
        yield {"label": "b"}, [{"value": seed}, {"part": "other", "status": "mismatch"}]

    model, *rows = measure_models(settings, turns, 7, "text")
    assert model["part"] == "model"
    assert [(row["part"], row["model"], row["label"], row.get("value"), row["status"]) for row in rows] == [
        ("text", "small", "a", 1, "ok"),
        ("text", "small", "a", None, "memory"),
        ("text", "small", "b", 7, "ok"),
        ("other", "small", "b", None, "mismatch"),
    ]
    late = measure_models(settings.model_copy(update={"seconds": 1e-9}), turns, 7, "text")
    assert [(row["status"], row["label"]) for row in late[1:]] == [("not_asked", "a"), ("not_asked", "b")]
    assert "are over" in late[1]["message"]
