"""The improper mass as an experiment: its rows against the library and the model's own, and what is told of them."""

import json

import numpy as np
import pytest

from tests.lab.kinds.telling import Told, check_lost
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.proper import proper_texts
from tokdfa.lab.kinds.improper_mass import BEFORE, KIND, PREFERRED
from tokdfa.mask import allocate_mask, mask_to_bool
from tokdfa.models.registry import load_model
from tokdfa.skew.improper_mass import improper_mass
from tokdfa.vocabulary.tokenizers import load_tokenizer

TEXT = "A list of the remaining items in the iterable is then assigned to the starred target."


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    texts = [{"label": "one", "kind": "prose", "text": TEXT}, {"label": "two", "kind": "umlauts", "text": "süß"}]
    return {"models": [{"name": "table?seed=1", "tokenizer": name, "label": "m"}], "texts": texts, "batch": 5}


@pytest.fixture(scope="module")
def rows(settings):
    return KIND.measure(settings, 0)


def positions(rows, label="one"):
    return [row for row in rows if row["part"] == "position" and row["label"] == label]


def test_positions_are_those_of_the_library(settings, rows):
    tokenizer = load_tokenizer(settings["models"][0]["tokenizer"])
    model = load_model(settings["models"][0]["name"], tokenizer)
    found, mine = improper_mass(model, tokenizer, TEXT), positions(rows)
    assert [row["log_mass"] for row in mine] == pytest.approx(found.log_mass.tolist())
    assert [row["log_chosen"] for row in mine] == pytest.approx(found.log_chosen.tolist())
    assert "".join(row["token"] for row in mine) == TEXT
    assert "".join(row["token"] for row in positions(rows, "two")) == "s\\xc3\\xbcß"  # ß is a token of its own
    matcher, mask = proper_texts(tokenizer.vocabulary).start(), allocate_mask(tokenizer.vocabulary.size)
    tokens = tokenizer.encode(TEXT)
    for place, row in enumerate(mine):
        assert row["before"] == "".join(one["token"] for one in mine[:place])[-BEFORE:]
        matcher.fill_mask(mask)
        improper = ~mask_to_bool(mask, tokenizer.vocabulary.size) & (tokenizer.vocabulary.lengths > 0)
        (own,) = np.exp(model.log_probabilities([tokens[:place]]))
        most = np.sort(own[improper])[::-1][:PREFERRED]
        assert [value for _, value in json.loads(row["preferred"])] == pytest.approx(most.tolist())
        matcher.advance(tokens[place])


def test_a_text_that_cannot_be_measured_is_a_row(settings, monkeypatch):
    def too_short(name, tokenizer):
        model = load_model(name, tokenizer)
        model.context_limit = 10
        return model

    monkeypatch.setattr("tokdfa.lab.measure.model_entries.load_model", too_short)
    rows = KIND.measure(settings, 0)
    (one,) = positions(rows)
    assert one["status"] == "error"
    assert "longer than the 10" in one["message"]
    assert {row["status"] for row in positions(rows, "two")} == {"ok"}


def test_what_is_told(rows):
    told = Told(KIND, rows)
    masses = {label: np.exp([row["log_mass"] for row in positions(rows, label)]) for label in ("one", "two")}
    both = np.concatenate(list(masses.values()))
    by_kind = told.tables["improper_mass"].set_index("kind")
    assert by_kind["positions"].to_dict() == {"all": len(both), "prose": len(masses["one"]), "umlauts": 4}
    assert by_kind["mean"].to_dict() == pytest.approx(
        {"all": both.mean(), "prose": masses["one"].mean(), "umlauts": masses["two"].mean()}
    )
    assert by_kind["above 0.01"]["all"] == np.mean(both > 0.01)
    texts = told.tables["improper_mass_texts"].set_index("text")
    assert texts["at least one"]["one"] == pytest.approx(1 - np.prod(1 - masses["one"]))
    chosen = [row["log_chosen"] for row in positions(rows)]
    assert texts["perplexity"]["one"] == pytest.approx(np.exp(-np.mean(chosen)))
    largest = told.tables["improper_mass_largest"]
    assert largest["improper mass"].tolist() == sorted(largest["improper mass"], reverse=True)
    assert largest["text"].value_counts().to_dict() == {"one": 3, "two": 3}
    assert "half have an improper mass of at most" in told.sentences[0]
    assert len(told.panels["improper_mass_along"]["m"]) in (len(masses["one"]), 4)
    check_lost(KIND)
