"""The experiment on skew: exact rows of choices, estimated ones of languages of which the exact skew is known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.lab.kinds.telling import Told
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds.skew import KIND
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_rows import DISTANCES
from tokdfa.lab.measure.skew_settings import Settings
from tokdfa.models import registry
from tokdfa.models.registry import load_model
from tokdfa.models.table import TableModel
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution

ENGINES: list[dict[str, Any]] = [{"backend": "token_index"}, {"backend": "tokens_dfa"}, {"backend": "cartesian_merge"}]
PROMPTS: list[dict[str, Any]] = [
    {"label": "two", "prompt": "It was a", "choices": [" sentence", " word"], "expected": " word", "topic": "words"},
    {"label": "three", "prompt": "The", "choices": [" end", " text", " word"]},
]
TABLE = {"name": "table?seed=3", "tokenizer": "bytes"}
PATTERN, TEXTS = "[ab]c?|b[de]{2}", ["a", "ac", "b", "bc", "bdd", "bde", "bed", "bee"]
ESTIMATED: dict[str, Any] = {
    "models": [TABLE],
    "languages": [
        {"label": "small", "prompt": "x", "regex": PATTERN, "max_tokens": 8},
        {"label": "endless", "prompt": "x", "regex": "a*", "max_tokens": 1},
    ],
    "engines": [{"backend": "token_index"}, {"backend": "tokens_dfa"}, {"backend": "brute_force"}],
    "samples": 400,
    "batch": 100,
}
LANGUAGE = {"label": "one", "prompt": "x", "max_tokens": 8}
Rows = list[dict[str, Any]]


def measure(settings: dict[str, Any], seed: int = 0) -> Rows:
    assert KIND.measure is not None
    return KIND.measure(settings, seed)


def of(rows: Rows, prompt: str, part: str = "engine") -> dict[str, dict[str, Any]]:
    return {row["engine"]: row for row in rows if row["part"] == part and row["prompt"] == prompt}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    model = {"name": "table?seed=5", "tokenizer": name, "label": "m"}
    return {"models": [model], "engines": ENGINES, "prompts": PROMPTS}


@pytest.fixture(scope="module")
def exact(settings: dict[str, Any]) -> Rows:
    return measure(settings)


@pytest.fixture(scope="module")
def estimated() -> Rows:
    return measure(ESTIMATED, 5)


def test_what_is_on_top_is_said_where_it_is_certain(
    settings: dict[str, Any], exact: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    tops = of(exact, "two")
    for name, row in tops.items():
        second, first = sorted(json.loads(row["probabilities"]))[-2:]
        assert row["top_certain"] == (first - second > row["unresolved"])
        assert row["top_certain"]  # so that what follows is tested
        assert row["expected_top"] == float(row["top"] == " word")
        if name != "ideal":
            assert row["top_differs"] == float(row["top"] != tops["ideal"]["top"])
    assert all("expected_top" not in row for row in of(exact, "three").values())

    def uniform(name: str, tokenizer: Any, options: Any) -> TableModel:
        size = tokenizer.vocabulary.size
        return TableModel(tokenizer.vocabulary, lambda _: np.full(size, 1 / size))

    monkeypatch.setattr(registry, "_load_table", uniform)
    tie = [{"label": "tie", "prompt": "a", "choices": ["b", "c"], "expected": "b"}]
    found = of(measure(settings | {"prompts": tie, "engines": ENGINES[:2]}), "tie")
    assert all(not {"expected_top", "top_differs"} & row.keys() for row in found.values())


def test_estimates_cover_the_exact_skew(estimated: Rows) -> None:
    model = load_model(TABLE["name"], "bytes")
    assert model.vocabulary.tokenizer is not None
    context = model.vocabulary.tokenizer.encode("x")
    ideal = ideal_distribution(model, context, TEXTS, eos="counted", tolerance=0)
    compiled = compile(Choice(TEXTS), model.vocabulary)
    masked = masked_distribution(compiled, model, context, TEXTS, eos="counted", tolerance=0)
    truth = compare(ideal.distribution, masked.distribution)._asdict()  # one spelling a text: sequences are texts
    row = of(estimated, "small")["token_index"]
    assert (row["status"], row["method"], row["cut_share"]) == ("ok", "estimated", 0)
    for name, bounds in truth.items():
        assert row[f"{name}_low"] <= bounds.lower <= row[f"{name}_high"], name
        assert row[name] == pytest.approx(bounds.lower, rel=0.2)
    assert row["mean_tokens"] == pytest.approx(masked.mean_tokens, rel=0.2)


def test_engines_with_equal_masks_draw_equal_sequences(estimated: Rows) -> None:
    first, *others = of(estimated, "small").values()
    assert first["rows_computed"] > 0
    for other in others:
        assert (other["first"], other["same"], other["verdict"]) == ("token_index", True, "no difference")
        assert all(other[name] == pytest.approx(first[name], abs=1e-12) for name in DISTANCES)
        assert (other["kept"], other["kept_low"], other["kept_high"]) == pytest.approx((1, 1, 1))
        assert (other["rows"], other["rows_computed"]) == (first["rows"], 0)
    for row in of(estimated, "endless").values():  # one token at most: what goes on is cut
        assert 0 < row["cut_share"] < 1


def test_a_proper_engine_keeps_a_part_of_the_mass(settings: dict[str, Any]) -> None:
    language = {"label": "words", "prompt": "x", "regex": "[ab]{3,5}", "max_tokens": 9}
    engines = [ENGINES[0], ENGINES[2]]
    even = [{"name": "table?seed=5&concentration=50", "tokenizer": settings["models"][0]["tokenizer"]}]
    rows = measure({"models": even, "languages": [language], "engines": engines, "samples": 300}, 1)
    plain, proper = of(rows, "words").values()
    assert plain["improper"] > proper["improper"] == 0
    assert proper["kept_low"] <= 1
    # what is kept is what is proper: two ways to estimate it
    assert proper["kept_low"] - 0.1 <= 1 - plain["improper_target"] <= proper["kept_high"] + 0.1
    assert plain["rows"] == plain["rows_computed"]


def test_failures_are_rows(settings: dict[str, Any]) -> None:
    small = {"backend": "direct_merge", "label": "small", "options": {"max_transitions": 1}}
    failed = of(measure(settings | {"engines": [*ENGINES, small], "only": ["two"]}), "two")["small"]
    assert failed["status"] == "memory"
    assert "max_transitions" in failed["message"]
    assert [row["status"] for row in measure(settings | {"max_prefixes": 1})[1:]] == ["memory"] * 2
    small = {"backend": "token_index", "options": {"max_states": 4}, "label": "small"}
    long = [{"label": "long", "prompt": "x", "regex": "[a-c]{9}", "max_tokens": 3}]
    engines = [small, {"backend": "llguidance"}]
    first, second = of(measure(ESTIMATED | {"languages": long, "engines": engines}), "long").values()
    assert (first["status"], second["status"]) == ("memory", "all_cut")
    assert "cut at 3 tokens" in second["message"]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"engines": [{"backend": "token_index", "label": "ideal"}]}, OptionError, "the model's own distribution"),
        ({"models": ["ngrm"]}, UnknownNameError, "ngram"),
        ({"prompts": [{**PROMPTS[0], "choices": [" a", " ab"]}]}, OptionError, r"two: .*beginning of"),
        ({"prompts": [{**PROMPTS[0], "expected": " x"}]}, OptionError, "none of its choices"),
        ({"only": ["four"]}, OptionError, "no prompt 'four'"),
        ({"prompts": []}, OptionError, "there is no prompt, and no language"),
        ({"languages": [LANGUAGE]}, OptionError, "one: a constraint is exactly one of"),
    ],
)
def test_bad_settings_are_refused(
    settings: dict[str, Any], change: dict[str, Any], error: type[TokdfaError], said: str
) -> None:
    with pytest.raises(error, match=said):
        typed_settings(Settings, settings | change)


def test_what_is_told_of_choices(exact: Rows) -> None:
    told = Told(KIND, exact)
    overview = told.tables["skew"].set_index("engine")
    mine = [of(exact, prompt)["token_index"] for prompt in ("two", "three")]
    assert overview["total variation"]["token_index"] == np.median([row["total_variation"] for row in mine])
    assert overview["max"]["token_index"] == max(row["total_variation"] for row in mine)
    assert overview.loc["token_index", ["distances", "prompts"]].tolist() == ["exact", 2]
    choices = told.tables["skew_probabilities"].set_index(["prompt", "choice"])
    assert choices["ideal"]["two"].tolist() == json.loads(of(exact, "two")["ideal"]["probabilities"])
    assert told.tables["skew_prompts"]["token_index"].tolist() == [row["total_variation"] for row in mine]
