"""Self-intoxication as an experiment: rows against the library's numbers, and what is told of them."""

import numpy as np
import pytest

from tests.lab.kinds.telling import Told
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.lab.kinds.intoxication import BORDER, KIND
from tokdfa.models.registry import load_model
from tokdfa.skew.intoxication import SHARKS, compare_rows, intoxication, respellings
from tokdfa.vocabulary.tokenizers import load_tokenizer

WORDS = ("first", "second", "last", "green", "hidden", "broken", "wooden", "early", "quiet", "other")
SENTENCES = [f"The {word} machine reads another {word} letter of the sentence." for word in WORDS]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    return {"models": [{"name": "table?seed=1", "tokenizer": name}], "sentences": SENTENCES, "count": 3}


@pytest.fixture(scope="module")
def rows(settings):
    return KIND.measure(settings, 4)


def test_sharks_are_those_of_the_library():
    entry = {"name": "table?seed=1", "tokenizer": "mistral-v1"}
    settings = {"models": [entry], "sentences": SENTENCES, "count": 1, "how": ["fewest"], "max_spellings": 3}
    rows = [row for row in KIND.measure(settings, 0) if row["part"] == "shark"]
    assert [row["animal"] for row in rows] == [animal for animal in SHARKS for _ in range(3)]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    mine = [row for row in rows if row["animal"] == "tiger"]
    for row, one in zip(mine, respellings(tokenizer, "A tiger shark is a kind of", (7, 13)), strict=False):
        assert row["spelling"].replace(BORDER, "") == row["word"] == " shark"
        assert row["spelling"].count(BORDER) == one.span[1] - one.span[0] + one.extra_tokens - 1
        assert row["kl"] == pytest.approx(compare_rows(model, one, tokenizer).kl)
    before = (model, tokenizer, "A tiger", " shark", " is a kind of")
    ratio, _ = intoxication(*before, continuations=(" mammal", " fish")).ratio(" mammal", " fish")
    assert {row["ratio_proper"] for row in mine} == {ratio}
    assert mine[0]["mammal"] / mine[0]["fish"] == pytest.approx(ratio)
    assert len({row["ratio"] for row in mine}) == 3


def test_all_ways_have_the_same_texts_and_words(rows):
    assert [row["part"] for row in rows] == ["model"] + ["shark"] * 4 + ["text"] * 9
    assert {row["status"] for row in rows} == {"ok"}
    by_way = {how: [row for row in rows if row.get("how") == how] for how in ("fewest", "random", "letters")}
    for few, some, many in zip(*by_way.values(), strict=True):
        assert few["extra_tokens"] <= some["extra_tokens"] <= many["extra_tokens"]
        assert len({(row["text"], row["word"], row["distance"]) for row in (few, some, many)}) == 1
        for row in (few, some, many):
            assert row["spelling"].replace(BORDER, "") == row["word"]
            assert row["word"] in row["text"]
            assert row["kl"] > 0
    assert len({row["text"] for row in by_way["fewest"]}) == 3


def test_too_few_sentences_are_a_row_that_says_so(settings):
    row = KIND.measure(settings | {"count": 11, "how": ["random"]}, 0)[-1]
    assert (row["status"], row["how"]) == ("error", "random")
    assert "of 10 texts have a word to respell, not 11" in row["message"]


def test_what_is_told(rows):
    told = Told(KIND, rows)
    found = {how: [row["kl"] for row in rows if row.get("how") == how] for how in ("fewest", "letters")}
    texts = told.tables["texts"].set_index("group")
    for how, values in found.items():
        assert texts["divergence, median"][how] == pytest.approx(np.median(values))
    for split in ("tokens between", "extra tokens"):
        assert texts[texts["split by"] == split]["spellings"].sum() == 9
    sharks = [row for row in rows if row["part"] == "shark"]
    assert told.tables["sharks"]["improper, median"].tolist() == pytest.approx([row["ratio"] for row in sharks])
