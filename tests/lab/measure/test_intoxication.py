"""Self-intoxication as an experiment: the rows against the library's own numbers, on models over a small tokenizer."""

import math

import numpy as np
import pytest

from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.intoxication import BORDER, check_settings, run_item
from tokdfa.models.registry import load_model
from tokdfa.skew.intoxication import SHARKS, intoxication, respellings
from tokdfa.vocabulary.tokenizers import load_tokenizer

WORDS = ("first", "second", "last", "green", "hidden", "broken", "wooden", "early", "quiet", "other")
SENTENCES = [f"The {word} machine reads another {word} letter of the sentence." for word in WORDS]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    models = [{"name": "table?seed=1", "tokenizer": name, "label": "table"}]
    return {"models": models, "sentences": SENTENCES, "count": 3}


@pytest.fixture(scope="module")
def rows(settings):
    return run_item(settings, seed=4)


def test_every_row_has_its_part(rows):
    assert [row["part"] for row in rows] == ["model"] + ["shark"] * 4 + ["text"] * 9
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["animal"] for row in rows[1:5]] == list(SHARKS)


def test_sharks_are_those_of_the_library():
    entry = {"name": "table?seed=1", "tokenizer": "mistral-v1"}
    settings = {"models": [entry], "sentences": SENTENCES, "count": 1, "how": ["fewest"], "max_spellings": 3}
    rows = [row for row in run_item(settings, seed=0) if row["part"] == "shark"]
    assert [row["animal"] for row in rows] == [animal for animal in SHARKS for _ in range(3)]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    mine = [row for row in rows if row["animal"] == "tiger"]
    for row, one in zip(mine, respellings(tokenizer, "A tiger shark is a kind of", (7, 13)), strict=False):
        begin, end = one.span
        spelled = [tokenizer.vocabulary.token_bytes(token).decode() for token in one.improper]
        assert row["spelling"] == BORDER.join(spelled[begin : end + one.extra_tokens])
        assert row["spelling"].replace(BORDER, "") == row["word"] == " shark"
        proper, improper = model.log_probabilities([one.proper, one.improper])
        possible = proper > -math.inf
        gaps = proper[possible] - improper[possible]
        assert row["kl"] == pytest.approx(float(np.exp(proper[possible]) @ gaps))
    before = (model, tokenizer, "A tiger", " shark", " is a kind of")
    ratio, _ = intoxication(*before, continuations=(" mammal", " fish")).ratio(" mammal", " fish")
    assert {row["ratio_proper"] for row in mine} == {ratio}
    assert mine[0]["mammal"] / mine[0]["fish"] == pytest.approx(ratio)
    assert len({row["ratio"] for row in mine}) == 3


def test_all_ways_have_the_same_texts_and_words(rows):
    texts = [row for row in rows if row["part"] == "text"]
    by_way = {how: [row for row in texts if row["how"] == how] for how in ("fewest", "random", "letters")}
    places = [[(row["text"], row["word"], row["distance"]) for row in mine] for mine in by_way.values()]
    assert places[0] == places[1] == places[2]
    assert len({text for text, _, _ in places[0]}) == 3
    for few, some, many in zip(*by_way.values(), strict=True):
        assert few["extra_tokens"] <= some["extra_tokens"] <= many["extra_tokens"]
        for row in (few, some, many):
            assert row["spelling"].replace(BORDER, "") == row["word"]
            assert row["word"] in row["text"]
            assert row["kl"] > 0


def test_rows_of_proper_tokens_are_computed_once(settings):
    settings = settings | {"count": 1}
    once, twice = (run_item(settings | {"how": how}, seed=1)[0]["rows"] for how in (["fewest"], ["fewest", "letters"]))
    assert twice == once + 1


def test_too_few_sentences_are_a_row_that_says_so(settings):
    rows = run_item(settings | {"count": 11, "how": ["random"]}, seed=0)
    assert rows[-1]["status"] == "error"
    assert "of 10 texts have a word to respell, not 11" in rows[-1]["message"]
    assert rows[-1]["how"] == "random"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"how": ["fewest", "fewest"]}, "a way is given twice"),
        ({"how": ["loud"]}, "settings.how"),
        ({"count": 0}, "settings.count"),
        ({"models": []}, "settings.models"),
        ({"unknown": 1}, "settings.unknown"),
    ],
)
def test_wrong_settings(settings, change, message):
    with pytest.raises(OptionError, match=message):
        check_settings(settings | change)
