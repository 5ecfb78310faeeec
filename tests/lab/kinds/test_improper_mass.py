"""Improper mass as an experiment: rows against the library's numbers, what is told against sums by hand."""

import json
import math

import numpy as np
import pytest

from tests.lab.kinds.telling import MODEL, Told, check_lost
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.improper_mass import BEFORE, KIND, complete, measure
from tokdfa.mask import allocate_mask, mask_to_bool
from tokdfa.models.registry import load_model
from tokdfa.skew.improper_mass import improper_mass, proper_texts
from tokdfa.vocabulary.tokenizers import load_tokenizer

TEXT = "The function reads another letter, and then the sentence: f(x) = 12."


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    texts = [{"label": "one", "kind": "prose", "text": TEXT}, {"label": "two", "kind": "umlauts", "text": "süß"}]
    models = [{"name": "table?seed=1", "tokenizer": name}]
    return {"models": models, "texts": texts, "largest": 4, "preferred": 2, "batch": 5}


@pytest.fixture(scope="module")
def rows(settings):
    return measure(settings, seed=0)


@pytest.fixture(scope="module")
def model(settings):
    tokenizer = load_tokenizer(settings["models"][0]["tokenizer"])
    return load_model(settings["models"][0]["name"], tokenizer), tokenizer


def of(rows, part, label="one"):
    return [row for row in rows if row["part"] == part and row.get("label") == label]


def test_positions_are_those_of_the_library(rows, model):
    found = improper_mass(*model, TEXT)
    mine = of(rows, "position")
    assert [row["log_mass"] for row in mine] == pytest.approx(found.log_mass.tolist())
    assert [row["log_chosen"] for row in mine] == pytest.approx(found.log_chosen.tolist())
    assert "".join(row["token"] for row in mine) == TEXT
    for place, row in enumerate(mine):
        assert row["before"] == "".join(one["token"] for one in mine[:place])[-BEFORE:]
    (text,) = of(rows, "text")
    assert text["positions"] == len(mine)
    assert text["mean"] == pytest.approx(np.exp(found.log_mass).mean())
    assert text["perplexity"] == pytest.approx(math.exp(-found.log_chosen.mean()))
    assert 0 < text["any_improper"] <= 1


def test_the_largest_positions_name_their_tokens(rows, model):
    language_model, tokenizer = model
    mine = of(rows, "position")
    named = [row for row in mine if row["preferred"]]
    assert len(named) == 4
    assert min(row["log_mass"] for row in named) >= max(row["log_mass"] for row in mine if not row["preferred"])
    tokens = tokenizer.encode(TEXT)
    for row in named:
        matcher, mask = proper_texts(tokenizer).start(), allocate_mask(tokenizer.vocabulary.size)
        for token in tokens[: row["position"]]:
            matcher.advance(token)
        matcher.fill_mask(mask)
        improper = ~mask_to_bool(mask, tokenizer.vocabulary.size) & (tokenizer.vocabulary.lengths > 0)
        (own,) = np.exp(language_model.log_probabilities([tokens[: row["position"]]]))
        expected = np.sort(own[improper])[::-1][:2]
        preferred = json.loads(row["preferred"])
        assert [value for _, value in preferred] == pytest.approx(expected.tolist())
        assert len(preferred) == 2


def test_characters_that_are_cut_are_shown_as_bytes(rows):
    spelled = "".join(row["token"] for row in of(rows, "position", "two"))
    assert spelled == "s\\xc3\\xbcß"  # ß is a token of its own


def test_a_text_that_cannot_be_measured_is_a_row(settings, monkeypatch):
    def too_short(name, tokenizer):
        model = load_model(name, tokenizer)
        model.context_limit = 10
        return model

    monkeypatch.setattr("tokdfa.lab.measure.model_entries.load_model", too_short)
    rows = measure(settings, seed=0)
    (one,), (two,) = of(rows, "text"), of(rows, "text", "two")
    assert (one["status"], two["status"]) == ("error", "ok")
    assert "longer than the 10" in one["message"]
    assert not of(rows, "position")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": []}, "settings.texts"),
        ({"texts": [{"label": "a", "kind": "b", "text": ""}]}, "settings.texts.0.text"),
        ({"texts": [{"label": "a", "kind": "b", "text": "c"}] * 2}, "two texts have the label 'a'"),
        ({"largest": 0}, "settings.largest"),
        ({"models": ["ngram"]}, "needs a tokenizer"),
    ],
)
def test_wrong_settings(settings, change, message):
    with pytest.raises(OptionError, match=message):
        complete(settings | change)


def text_rows(label, kind, masses):
    """A text with these masses; the largest names its tokens."""
    place = {"model": "small", "tokenizer": "tiny", "status": "ok", "message": "", "label": label, "kind": kind}
    text = {"part": "text", "positions": len(masses), "mean": float(np.mean(masses)), "any_improper": 0.25}
    yield place | text | {"perplexity": 20.0}
    for position, one in enumerate(masses):
        preferred = json.dumps([["ing\n", one / 2], ["s", one / 4]]) if one == max(masses) else ""
        logs = {"log_mass": math.log(one) if one else -math.inf, "log_chosen": -1.0, "preferred": preferred}
        yield place | logs | {"part": "position", "position": position, "before": label, "token": " on"}


def test_what_is_told():
    rows = [MODEL | {"seconds": 1.0}, *text_rows("none", "code", [0.0, 1e-15, 0.5])]
    for number in range(8):
        rows += text_rows(f"t{number}", "prose", [1e-6, 1e-4, 9e-3, 2e-2 + number / 100])
    rows.append(MODEL | {"part": "text", "label": "long", "status": "error", "message": "too long"})
    told = Told(KIND, rows)
    by_kind = told.tables["improper_mass"].set_index("kind")
    assert by_kind["positions"].to_dict() == {"all": 35, "code": 3, "prose": 32}
    prose = (8 * (1e-6 + 1e-4 + 9e-3 + 2e-2) + 0.28) / 32
    assert by_kind["mean"].to_dict() == pytest.approx({"all": (32 * prose + 0.5) / 35, "code": 0.5 / 3, "prose": prose})
    assert by_kind["above 0.01"].to_dict() == pytest.approx({"all": 9 / 35, "code": 1 / 3, "prose": 8 / 32})
    largest = told.tables["improper_mass_largest"]
    assert largest["text"].tolist()[:2] == ["none", "t7"]
    assert largest["improper tokens"][0] == '"ing\\n" 0.25, "s" 0.125'
    assert told.tables["not_measured"]["reason"].tolist() == ["too long"]
    assert "half have an improper mass of at most 1.00e-4" in told.sentences[0]
    assert "95% interval" in told.sentences[0]
    assert "25.0% (median of 9 texts" in told.sentences[1]
    assert len(told.panels["improper_mass_along"]["small"]) == 2  # one of three is 0


def test_nothing_to_tell():
    check_lost(KIND)
