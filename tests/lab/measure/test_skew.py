"""The experiment on the skew of choices: its rows, what fails, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds import skew
from tokdfa.models import registry
from tokdfa.models.ngram import train_ngram
from tokdfa.skew.exact import ideal_distribution
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES: list[dict[str, Any]] = [
    {"backend": "token_index"},
    {"backend": "tokens_dfa"},
    {"backend": "cartesian_merge"},
]
PROMPTS: list[dict[str, Any]] = [
    {"label": "two", "prompt": "It was a", "choices": [" sentence", " word"], "expected": " word", "topic": "words"},
    {"label": "three", "prompt": "The", "choices": [" end", " text", " word"]},
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    return {
        "models": [{"name": "table?seed=5", "tokenizer": name, "label": "m"}],
        "engines": ENGINES,
        "prompts": PROMPTS,
    }


@pytest.fixture(scope="module")
def rows(settings: dict[str, Any]) -> list[dict[str, Any]]:
    return skew.run_item(settings, seed=0)


def of_strategy(rows: list[dict[str, Any]], prompt: str) -> dict[str, dict[str, Any]]:
    return {row["strategy"]: row for row in rows if row["part"] == "strategy" and row["prompt"] == prompt}


def test_every_prompt_has_its_rows(rows: list[dict[str, Any]]) -> None:
    assert [(row["part"], row.get("prompt"), row.get("strategy", row.get("other"))) for row in rows] == [
        ("model", None, None),
        *(("strategy", "two", name) for name in ("ideal", "token_index", "tokens_dfa", "cartesian_merge")),
        ("agreement", "two", "tokens_dfa"),
        *(("strategy", "three", name) for name in ("ideal", "token_index", "tokens_dfa", "cartesian_merge")),
        ("agreement", "three", "tokens_dfa"),
    ]
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["model"] for row in rows} == {"m"}
    computed = sum(row["rows_computed"] for row in rows if row["part"] == "strategy")
    assert rows[0]["rows"] == computed + 1  # one when it was loaded


def test_the_figures_are_those_of_the_distributions(settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    found = of_strategy(rows, "two")
    ideal, plain = (np.array(json.loads(found[name]["probabilities"])) for name in ("ideal", "token_index"))
    tokenizer = load_tokenizer(settings["models"][0]["tokenizer"])
    model = registry.load_model("table?seed=5", tokenizer)
    choices = PROMPTS[0]["choices"]
    again = ideal_distribution(model, tokenizer.encode("It was a"), choices, eos="ignored", tolerance=1e-3)
    assert ideal == pytest.approx(again.distribution.probabilities, abs=1e-15)
    row = found["token_index"]
    assert row["total_variation_low"] <= np.abs(ideal - plain).max() + row["unresolved"] + found["ideal"]["unresolved"]
    assert row["total_variation_low"] <= row["total_variation_high"] <= 1
    assert row["top"] == choices[int(plain.argmax())]
    assert row["top_probability"] == plain.max()
    assert row["count"] == 2
    assert row["topic"] == "words"
    assert json.loads(row["choices"]) == choices
    assert row["language"] == "all"
    assert found["cartesian_merge"]["improper_mass"] == 0 < row["improper_mass"]
    assert found["ideal"]["forced_share"] is None
    assert "total_variation_low" not in found["ideal"]


def test_what_is_on_top_is_said_where_it_is_certain(rows: list[dict[str, Any]]) -> None:
    tops = of_strategy(rows, "two")
    for name, row in tops.items():
        second, first = sorted(json.loads(row["probabilities"]))[-2:]
        assert row["top_certain"] == (first - second > row["unresolved"])
        assert row["top_certain"]  # so that what follows is tested
        assert row["expected_top"] == float(row["top"] == " word")
        if name != "ideal":
            assert row["top_differs"] == float(row["top"] != tops["ideal"]["top"])
    assert all("expected_top" not in row for row in of_strategy(rows, "three").values())


def test_a_tie_is_not_certain(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that finds all tokens equally probable prefers neither of two tokens."""
    monkeypatch.setattr(registry, "_load_table", lambda name, tokenizer, options: _uniform(tokenizer))
    prompts = [{"label": "tie", "prompt": "a", "choices": ["b", "c"], "expected": "b"}]
    found = of_strategy(skew.run_item(settings | {"prompts": prompts, "engines": ENGINES[:2]}, 0), "tie")
    assert all(not row["top_certain"] and "expected_top" not in row for row in found.values())
    assert all("top_differs" not in row for row in found.values())


def _uniform(tokenizer: Any) -> Any:
    from tokdfa.models.table import TableModel

    size = tokenizer.vocabulary.size
    return TableModel(tokenizer.vocabulary, lambda _: np.full(size, 1 / size))


def test_prompts_are_chosen_by_label_size_and_number(settings: dict[str, Any]) -> None:
    def labels(**changes: Any) -> list[str]:
        return [prompt.label for prompt in skew.check_settings(settings | changes).chosen()]

    assert labels() == ["two", "three"]
    assert labels(only=["three"]) == ["three"]
    assert labels(min_choices=3) == ["three"]
    assert labels(limit=1) == ["two"]


def test_failures_are_rows(settings: dict[str, Any]) -> None:
    small = {"backend": "direct_merge", "label": "small", "options": {"max_transitions": 1}}
    rows = skew.run_item(settings | {"engines": [*ENGINES, small], "only": ["two"]}, 0)
    failed = of_strategy(rows, "two")["small"]
    assert failed["status"] == "memory"
    assert "max_transitions" in failed["message"]
    assert "total_variation_low" not in failed
    rows = skew.run_item(settings | {"max_prefixes": 1}, 0)
    assert [(row["part"], row["status"]) for row in rows[1:]] == [("strategy", "memory")] * 2
    rows = skew.run_item(settings | {"seconds": 1e-9}, 0)
    assert [(row["part"], row["status"]) for row in rows[1:]] == [("strategy", "not_asked")] * 2


def test_spellings_need_not_be_followed(settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    short = of_strategy(skew.run_item(settings | {"follow_spellings": False}, 0), "two")
    for name, row in of_strategy(rows, "two").items():
        probabilities, exact = (json.loads(one["probabilities"]) for one in (row, short[name]))
        assert probabilities == pytest.approx(exact, abs=row["unresolved"] + 1e-12)
        if name != "ideal":
            assert short[name]["rows"] <= row["rows"]
            assert short[name]["improper_mass"] is None


def test_a_missing_model_is_a_row(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "is_importable", lambda package: package != "torch")
    first, *others = skew.run_item(settings | {"models": ["smollm2", *settings["models"]], "only": ["two"]}, 0)
    assert first["status"] == "error"
    assert "pip install 'tokdfa[lm]'" in first["message"]
    assert of_strategy(others, "two")["token_index"]["status"] == "ok"


def test_a_disagreement_is_a_row(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from tokdfa.lab.measure import skew_comparison

    monkeypatch.setattr(skew_comparison, "MUTED", "all")  # so that the muted engine is taken for a plain one
    muted = {"backend": "tokens_dfa", "label": "muted", "options": {"mute_literals": True}}
    rows = skew.run_item(settings | {"engines": [ENGINES[0], muted], "only": ["two"]}, 0)
    row = rows[-1]
    assert (row["part"], row["first"], row["other"], row["status"]) == ("agreement", "token_index", "muted", "mismatch")
    assert row["difference"] > 1e-9
    assert "with the same token language" in row["message"]


def test_an_ngram_model_shows_the_skew_for_the_right_reason() -> None:
    """ " theory" begins with a common word, so plain masks make much of it; proper ones hardly change anything."""
    prompt = {"label": "type", "prompt": "Objects of type", "choices": [" string", " tuple", " theory"]}
    model = {"name": "ngram", "tokenizer": "mistral-v1"}
    rows = skew.run_item({"models": [model], "engines": ENGINES, "prompts": [prompt]}, 0)
    found = of_strategy(rows, "type")
    theory = {name: json.loads(row["probabilities"])[2] for name, row in found.items()}
    assert theory["ideal"] < 0.01 < 0.5 < theory["token_index"]
    assert found["cartesian_merge"]["total_variation_high"] < 0.01
    assert found["token_index"]["improper_mass"] > 0.5
    assert rows[0]["fingerprint"] == train_ngram(load_tokenizer("mistral-v1")).fingerprint


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"engines": []}, OptionError, r"settings\.engines"),
        ({"engines": [{"backend": "token_indx"}]}, UnknownNameError, "token_index"),
        ({"engines": [{"backend": "token_index", "label": "ideal"}]}, OptionError, "the model's own distribution"),
        ({"models": ["ngrm"]}, UnknownNameError, "ngram"),
        ({"prompts": [PROMPTS[0], PROMPTS[0]]}, OptionError, "same label"),
        ({"prompts": [{**PROMPTS[0], "choices": [" a", " ab"]}]}, OptionError, r"two: .*beginning of"),
        ({"prompts": [{**PROMPTS[0], "choices": [" a"]}]}, OptionError, r"prompts\.0\.choices"),
        ({"prompts": [{**PROMPTS[0], "expected": " x"}]}, OptionError, "none of its choices"),
        ({"only": ["four"]}, OptionError, "no prompt 'four'"),
        ({"min_choices": 4}, OptionError, "none of the prompts has 4"),
        ({"tolerance": 1.0}, OptionError, r"settings\.tolerance"),
        ({"eos": "maybe"}, OptionError, r"settings\.eos"),
    ],
)
def test_bad_settings_are_refused(
    settings: dict[str, Any], change: dict[str, Any], error: type[TokdfaError], said: str
) -> None:
    with pytest.raises(error, match=said):
        skew.check_settings(settings | change)


def test_texts_that_begin_others_are_taken_with_counted_ends(settings: dict[str, Any]) -> None:
    prompts = [{**PROMPTS[0], "choices": [" a", " ab"], "expected": None}]
    assert skew.check_settings(settings | {"prompts": prompts, "eos": "counted"}).eos == "counted"


def test_axes_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="no tokenizers"):
        skew.run_item(settings | {"tokenizer": "bytes"}, 0)
