"""Self-intoxication as an experiment: rows against the library's numbers, what is told of rows made up."""

import math

import numpy as np
import pytest

from tests.lab.kinds.telling import MODEL, Told, check_lost
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.intoxication import BORDER, FLOOR, KIND, complete, measure
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
    return measure(settings, seed=4)


def test_every_row_has_its_part(rows):
    assert [row["part"] for row in rows] == ["model"] + ["shark"] * 4 + ["text"] * 9
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["animal"] for row in rows[1:5]] == list(SHARKS)


def test_sharks_are_those_of_the_library():
    entry = {"name": "table?seed=1", "tokenizer": "mistral-v1"}
    settings = {"models": [entry], "sentences": SENTENCES, "count": 1, "how": ["fewest"], "max_spellings": 3}
    rows = [row for row in measure(settings, seed=0) if row["part"] == "shark"]
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
    once, twice = (measure(settings | {"how": how}, seed=1)[0]["rows"] for how in (["fewest"], ["fewest", "letters"]))
    assert twice == once + 1


def test_too_few_sentences_are_a_row_that_says_so(settings):
    rows = measure(settings | {"count": 11, "how": ["random"]}, seed=0)
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
        complete(settings | change)


def text_row(number, how, kl, distance, extra):
    row = MODEL | {"part": "text", "how": how, "text": f"text {number}", "word": "w", "spelling": "w|w", "kl": kl}
    return row | {"extra_tokens": extra, "distance": distance, "total_variation": 0.1, "same_top": number % 4 != 0}


def shark_row(animal, ratio, kl):
    row = MODEL | {"part": "shark", "animal": animal, "spelling": f" sh|ark{ratio}", "ratio_proper": 0.5, "kl": kl}
    return row | {"ratio": ratio, "mammal": 0.01, "fish": 0.02, "same_top": kl < 1}


def test_what_is_told():
    rows = [MODEL, shark_row("whale", 0.25, 0.5), shark_row("whale", 2.0, 1.5), shark_row("cow", 0.125, 0.1)]
    for number in range(20):
        rows.append(text_row(number, "fewest", 1 / (number + 1), number, 1))
        rows.append(text_row(number, "letters", 1 / (number + 1) + 0.25, number, 5))
    told = Told(KIND, rows)
    whale = told.tables["sharks"].set_index("animal").loc["whale"]
    shown = ["spellings", "ratio, proper", "improper, min", "improper, max", "turned", "new first token"]
    assert whale[shown].tolist() == [2, 0.5, 0.25, 2.0, 1, 1]
    texts = told.tables["texts"].set_index("group")
    middle = (1 / 10 + 1 / 11) / 2
    assert texts["divergence, median"][["fewest", "letters"]].tolist() == pytest.approx([middle, middle + 0.25])
    assert texts["spellings"].to_dict() == {
        "fewest": 20, "letters": 20, "none": 2, "1 to 3": 6, "4 to 15": 24, "16 and more": 8, "1": 20, "4 and more": 20,
    }  # fmt: skip
    assert told.tables["most_moved"]["text"].tolist()[:2] == ["text 0", "text 1"]
    assert "another token becomes the most probable one in 25.0%" in told.sentences[0]
    assert "1 of 3 improper spellings" in told.sentences[2]
    assert "letters less fewest: the divergence differs by 0.250 (95% interval 0.250 to 0.250)" in told.sentences[3]
    assert "the divergence falls with tokens between, rank correlation -0." in told.sentences[4]
    assert "the divergence grows with extra tokens, rank correlation 0." in told.sentences[5]
    assert len(told.panels["sharks"]["small"]) == 8


def test_what_may_be_chance_and_noise_are_not_told():
    kl = [0.3, 0.1, 0.2, 0.25, 0.15, 0.22, 0.12, 0.28, 0.18, 0.2]
    told = Told(KIND, [text_row(number, "fewest", value, number, 1) for number, value in enumerate(kl)])
    assert "small: no dependence of the divergence on tokens between beyond its error." in told.sentences
    noise = Told(KIND, [text_row(number, "fewest", FLOOR / 2, 1, 1) for number in range(8)])
    assert set(noise.tables["texts"]["divergence, max"]) == {0}


def test_nothing_to_tell():
    check_lost(KIND)
