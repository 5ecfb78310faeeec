"""The experiment on the skew of choices: its rows, what fails and is refused, and what is told of rows made up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.lab.kinds.telling import MODEL, Told, check_lost
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds import skew
from tokdfa.models import registry
from tokdfa.models.ngram import train_ngram
from tokdfa.skew.exact import ideal_distribution
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES: list[dict[str, Any]] = [{"backend": "token_index"}, {"backend": "tokens_dfa"}, {"backend": "cartesian_merge"}]
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
    return skew.measure(settings, seed=0)


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
    found = of_strategy(skew.measure(settings | {"prompts": prompts, "engines": ENGINES[:2]}, 0), "tie")
    assert all(not row["top_certain"] and "expected_top" not in row for row in found.values())
    assert all("top_differs" not in row for row in found.values())


def _uniform(tokenizer: Any) -> Any:
    from tokdfa.models.table import TableModel

    size = tokenizer.vocabulary.size
    return TableModel(tokenizer.vocabulary, lambda _: np.full(size, 1 / size))


def test_failures_are_rows(settings: dict[str, Any]) -> None:
    small = {"backend": "direct_merge", "label": "small", "options": {"max_transitions": 1}}
    rows = skew.measure(settings | {"engines": [*ENGINES, small], "only": ["two"]}, 0)
    failed = of_strategy(rows, "two")["small"]
    assert failed["status"] == "memory"
    assert "max_transitions" in failed["message"]
    assert "total_variation_low" not in failed
    rows = skew.measure(settings | {"max_prefixes": 1}, 0)
    assert [(row["part"], row["status"]) for row in rows[1:]] == [("strategy", "memory")] * 2
    rows = skew.measure(settings | {"seconds": 1e-9}, 0)
    assert [(row["part"], row["status"]) for row in rows[1:]] == [("strategy", "not_asked")] * 2


def test_a_disagreement_is_a_row(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from tokdfa.lab.measure import skew_comparison

    monkeypatch.setattr(skew_comparison, "MUTED", "all")  # so that the muted engine is taken for a plain one
    muted = {"backend": "tokens_dfa", "label": "muted", "options": {"mute_literals": True}}
    rows = skew.measure(settings | {"engines": [ENGINES[0], muted], "only": ["two"]}, 0)
    row = rows[-1]
    assert (row["part"], row["first"], row["other"], row["status"]) == ("agreement", "token_index", "muted", "mismatch")
    assert row["difference"] > 1e-9
    assert "with the same token language" in row["message"]


def test_an_ngram_model_shows_the_skew_for_the_right_reason() -> None:
    """ " theory" begins with a common word, so plain masks make much of it; proper ones hardly change anything."""
    prompt = {"label": "type", "prompt": "Objects of type", "choices": [" string", " tuple", " theory"]}
    model = {"name": "ngram", "tokenizer": "mistral-v1"}
    rows = skew.measure({"models": [model], "engines": ENGINES, "prompts": [prompt]}, 0)
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
        skew.complete(settings | change)


def made_up(
    prompt: str, strategy: str, probability: float, variation: float | None = None, **more: Any
) -> dict[str, Any]:
    """The first of the choices has `probability`; the total variation is `variation`, exactly."""
    choices = [f" {letter}" for letter in "abcdefghijkl"[: more.pop("count", 2)]]
    rest = (1 - probability) / (len(choices) - 1)
    row = MODEL | {
        **{
            "part": "strategy",
            "prompt": prompt,
            "text": f"{prompt}?",
            "topic": "odd" if prompt[-1] in "13579" else "even",
        },
        **{"choices": json.dumps(choices), "count": len(choices), "expected": choices[0], "strategy": strategy},
        **{"language": "proper" if strategy == "proper" else "all", "top": choices[int(probability <= rest)]},
        **{"probabilities": json.dumps([probability, *[rest] * (len(choices) - 1)]), "unresolved": 0.0, "rows": 35.0},
        **{"proper_shares": json.dumps([0.5] * len(choices)), "expected_top": float(probability > rest)},
    }
    if variation is not None:
        row["top_differs"] = float(probability <= rest)
    distances = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
    return row | {f"{name}_{end}": variation for name in distances for end in ("low", "high")} | more


def agreement(prompt: str, difference: float = 0.0) -> dict[str, Any]:
    row = MODEL | {"part": "agreement", "prompt": prompt, "language": "all", "first": "plain", "other": "peer"}
    return row | {"difference": difference, "status": "mismatch" if difference else "ok"}


def many(last: float = 0.0) -> list[dict[str, Any]]:
    """Prompt number i has a skew of i % plain, half of it proper; plain puts another choice on top from 6 on."""
    rows = [MODEL]
    for number in range(12):
        prompt, count = f"q{number}", min(2 + number, 12)
        rows.append(made_up(prompt, "ideal", 0.9, count=count))
        for engine in ("plain", "peer", "proper"):
            variation = number / (200 if engine == "proper" else 100)
            rows.append(
                made_up(prompt, engine, 0.01 if engine != "proper" and number >= 6 else 0.8, variation, count=count)
            )
        rows.append(agreement(prompt, last if number == 11 else 0.0))
    return rows


def test_many_prompts_are_told_by_medians() -> None:
    told = Told(skew.KIND, many())
    overview = told.tables["skew"].set_index("strategy")
    assert overview["total variation"].to_dict() == pytest.approx(
        {"ideal": np.nan, "plain": 0.055, "peer": 0.055, "proper": 0.0275}, nan_ok=True
    )
    assert overview["max"]["plain"] == pytest.approx(0.11)
    assert overview.loc["plain", ["prompts", "other choice on top", "expected on top"]].tolist() == [12, 0.5, 0.5]
    groups = told.tables["skew_groups"].set_index("group")
    assert groups["prompts"].to_dict() == {
        "2": 1, "3": 1, "4": 1, "5": 1, "6 to 9": 4, "10 to 19": 4, "even": 6, "odd": 6,
    }  # fmt: skip
    worst = told.tables["skew_worst"].iloc[0]
    assert worst[["strategy", "prompt"]].tolist() == ["plain (and 1 equal)", "q11"]
    assert worst["on top here"].startswith("' b' 0.00909 → ")
    plain = "small, plain (and 1 equal): "
    assert (
        f"{plain}total variation from the ideal 0.0550 in the median of 12 prompts (p90 0.0990, max 0.110)."
        in told.sentences
    )
    assert (
        f"{plain}another choice is on top than ideally on 50.0% of 12 prompts where both are certain." in told.sentences
    )
    nearer = "small: proper is nearer to the ideal than plain (and 1 equal) on 11 prompts, farther on 0, and neither "
    assert any(sentence.startswith(nearer) for sentence in told.sentences)
    assert any("in 12 of 12 comparisons" in sentence for sentence in told.sentences)


def test_an_engine_that_disagrees_stands_for_itself() -> None:
    told = Told(skew.KIND, many(last=0.2))
    assert any(
        "in 11 of 12 comparisons; the largest difference in any probability is 0.200" in one for one in told.sentences
    )
    assert told.tables["skew_agreement"]["above"].tolist() == [1]
    assert "peer" in told.tables["skew_groups"]


def test_one_prompt_is_told_by_its_choice() -> None:
    rows = [MODEL, made_up("q", "ideal", 0.85), made_up("q", "plain", 0.5, 0.35), made_up("q", "proper", 0.84, 0.01)]
    told = Told(skew.KIND, [*rows, made_up("open", "ideal", 0.5), made_up("open", "plain", 0.5, 0.5, status="memory")])
    assert told.sentences[:2] == [
        "small: P(' a') is 0.850 by the model itself.",
        "small, plain: P(' a') is 0.500, total variation from the ideal 0.350.",
    ]
    assert told.tables["skew_probabilities"][["ideal", "plain", "proper"]].iloc[0].tolist() == [0.85, 0.5, 0.84]
    assert told.tables["not_measured"]["prompt"].tolist() == ["open"]
    assert any("1 prompts are left out" in sentence for sentence in told.sentences)
    assert len(told.panels["skew_choice"]["small"]) == 3


def test_nothing_to_tell() -> None:
    check_lost(skew.KIND)
