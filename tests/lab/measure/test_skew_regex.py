"""The estimated skew of engines on small languages, of which the exact one is known, and what becomes of failures."""

import json

import numpy as np
import pytest

from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.errors import ConfigError, OptionError, UnknownNameError
from tokdfa.lab.kinds.skew_regex import MEASURES, check_settings, complete_settings, run_item
from tokdfa.models.registry import load_model
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution

MODEL = {"name": "table?seed=3", "tokenizer": "bytes"}
PATTERN, TEXTS = "[ab]c?|b[de]{2}", ["a", "ac", "b", "bc", "bdd", "bde", "bed", "bee"]
SETTINGS = {
    "models": [MODEL],
    "languages": [
        {"label": "small", "prompt": "x", "regex": PATTERN, "max_tokens": 8, "events": {"begins with b": "b.*"}},
        {"label": "endless", "prompt": "x", "regex": "a*", "max_tokens": 1},
    ],
    "engines": [{"backend": "token_index"}, {"backend": "tokens_dfa"}, {"backend": "brute_force"}],
    "events": {"small": {"b": "b"}},
    "samples": 400,
    "batch": 100,
}

LANGUAGE = {"label": "one", "prompt": "x", "max_tokens": 8}


@pytest.fixture(scope="module")
def rows():
    return run_item(dict(SETTINGS), seed=5)


def of(rows, part, language="small"):
    return [row for row in rows if row["part"] == part and row.get("language") == language]


def test_estimates_cover_the_exact_skew(rows):
    model = load_model(MODEL["name"], "bytes")
    context = model.vocabulary.tokenizer.encode("x")
    ideal = ideal_distribution(model, context, TEXTS, eos="counted", tolerance=0)
    compiled = compile(Choice(TEXTS), model.vocabulary)
    masked = masked_distribution(compiled, model, context, TEXTS, eos="counted", tolerance=0)
    exact = compare(ideal.distribution, masked.distribution)  # one spelling a text: sequences are texts
    truth = {
        "total_variation": exact.total_variation.lower,
        "kl_forward": exact.kl_forward.lower,
        "kl_backward": exact.kl_backward.lower,
        "jensen_shannon": exact.jensen_shannon.lower,
        "log_mass": ideal.log_mass.lower,
        "mean_tokens": masked.mean_tokens,
    }
    row = of(rows, "estimate")[0]
    assert (row["status"], row["samples"], row["cut_share"]) == ("ok", 400, 0)
    for name, value in truth.items():
        assert row[f"{name}_low"] <= value <= row[f"{name}_high"], name
        assert abs(row[name] - value) <= 4 * row[f"{name}_se"], name
    events = {row["event"]: row for row in of(rows, "event") if row["engine"] == "token_index"}
    begins = sum(masked.distribution.named(text) for text in TEXTS if text.startswith("b"))
    assert events["begins with b"]["masked_low"] <= begins <= events["begins with b"]["masked_high"]
    assert events["b"]["target_low"] <= ideal.distribution.named("b") <= events["b"]["target_high"]


def test_engines_with_equal_masks_draw_equal_sequences(rows):
    first, *others = of(rows, "estimate")
    assert len(others) == 2
    for other in others:
        assert other["sequences"] == first["sequences"]
        assert all(other[name] == pytest.approx(first[name], abs=1e-12) for name in MEASURES)
        assert (other["kept"], other["kept_low"], other["kept_high"]) == pytest.approx((1, 1, 1))
        assert (other["rows"], other["rows_computed"]) == (first["rows"], 0)
    assert first["rows_computed"] > 0
    compared = of(rows, "difference")
    assert len(compared) == 3 * len(MEASURES)
    assert {row["verdict"] for row in compared} == {"no"}


def test_texts_have_their_shares(rows):
    row = of(rows, "estimate")[0]
    drawn, meant = json.loads(row["drawn"]), json.loads(row["meant"])
    for listed, place in ((drawn, 1), (meant, 2)):
        assert len(listed) == 3
        assert {text for text, *_ in listed} <= set(TEXTS)
        assert all(0 < entry[place] <= 1 for entry in listed)
        assert [entry[place] for entry in listed] == sorted((entry[place] for entry in listed), reverse=True)


def test_a_proper_engine_keeps_a_part_of_the_mass():
    settings = {
        "models": [{"name": "ngram", "tokenizer": "mistral-v1"}],
        "languages": [{"label": "words", "prompt": "It is", "regex": " (the|a) (name|class)", "max_tokens": 9}],
        "engines": [{"backend": "token_index"}, {"backend": "cartesian_merge"}],
        "samples": 300,
    }
    rows = run_item(settings, seed=1)
    plain, proper = of(rows, "estimate", "words")
    assert proper["kept_low"] <= 1
    assert plain["improper_masked"] > proper["improper_masked"] == 0
    # what is kept is what is proper: two ways to estimate it
    assert proper["kept_low"] <= 1 - plain["improper_target_low"] + 1e-9
    assert proper["kept_high"] >= 1 - plain["improper_target_high"] - 1e-9
    (forced,) = (row for row in of(rows, "difference", "words") if row["measure"] == "forced_share")
    assert forced["verdict"] == "yes"
    # proper prefixes are among all prefixes, so the second engine may find all of its rows; by itself it needs them
    assert proper["rows_computed"] < proper["rows"] < plain["rows"] == plain["rows_computed"]


UNITS = ["celsius", "fahrenheit", "kelvin"]


def schema_settings(folder):
    case = {"schema": {"enum": UNITS}, "tests": []}
    (folder / "units.json").write_text(json.dumps(case))
    languages = [
        {"label": "choice", "prompt": "It is", "choice": [f'"{unit}"' for unit in UNITS], "max_tokens": 40},
        {"label": "written", "prompt": "It is", "json_schema": {"enum": UNITS}, "escapes": "needed", "max_tokens": 40},
        {"label": "named", "prompt": "It is", "schema_name": "units", "max_tokens": 40},
    ]
    changes = {"languages": languages, "events": {}, "schemas": str(folder), "json_schema": {"whitespace": "compact"}}
    return SETTINGS | changes | {"engines": [{"backend": "token_index"}, {"backend": "pushdown_trie"}], "samples": 50}


def test_schemas_are_languages_too(tmp_path):
    settings = complete_settings(schema_settings(tmp_path))
    assert "schemas" not in settings  # the folder is not needed any more
    assert settings["languages"][2]["json_schema"] == '{"enum":["celsius","fahrenheit","kelvin"]}'
    assert [language.get("whitespace") for language in settings["languages"]] == [None, "compact", "compact"]
    assert complete_settings(settings) == settings
    found = run_item(settings, seed=2)
    drawn = {name: [row["sequences"] for row in of(found, "estimate", name)] for name in ("choice", "written", "named")}
    assert drawn["written"] == drawn["choice"]  # one spelling of each value: the same language
    assert len(set(drawn["choice"])) == 1
    assert set(drawn["named"]).isdisjoint(drawn["choice"])  # escapes in strings give more of them
    assert {row["status"] for row in of(found, "estimate", "named")} <= {"ok", "all_cut"}


def test_failures_are_rows(rows):
    for row in of(rows, "estimate", "endless"):  # one token at most: what goes on is cut
        assert row["status"] == "ok"
        assert 0 < row["cut_share"] < 1
    settings = SETTINGS | {
        "languages": [{"label": "long", "prompt": "x", "regex": "[a-c]{9}", "max_tokens": 3}],
        "engines": [
            {"backend": "token_index", "options": {"max_states": 4}, "label": "small"},
            {"backend": "llguidance"},
        ],
        "events": {},
    }
    first, second = of(run_item(settings, seed=0), "estimate", "long")
    assert (first["engine"], first["status"]) == ("small", "memory")
    assert "max_states" in first["message"]
    assert second["status"] == "all_cut"
    assert "cut at 3 tokens" in second["message"]


def test_what_is_over_time_is_not_asked():
    rows = run_item(SETTINGS | {"seconds": 1e-9}, seed=0)
    assert [(row["part"], row["status"]) for row in rows] == [("model", "ok")] + [("estimate", "not_asked")] * 2


def test_languages_are_chosen_and_spread():
    languages = [{"label": str(i), "prompt": "x", "regex": "a", "max_tokens": 2} for i in range(6)]
    typed = check_settings(SETTINGS | {"languages": languages, "limit": 2, "events": {}})
    assert [one.label for one in typed.chosen()] == ["0", "3"]
    typed = check_settings(SETTINGS | {"languages": languages, "only": ["5", "2"], "events": {"2": {"e": "a"}}})
    assert [one.label for one in typed.chosen()] == ["2", "5"]
    assert typed.chosen()[0].events == {"e": "a"}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"samples": 1}, OptionError, "samples"),
        ({"models": []}, OptionError, "models"),
        ({"models": ["gpt"]}, UnknownNameError, "gpt"),
        ({"engines": [{"backend": "nothing"}]}, UnknownNameError, "nothing"),
        ({"only": ["none"]}, OptionError, "there is no language 'none'"),
        ({"events": {"none": {}}}, OptionError, "there is no language 'none'"),
        ({"languages": SETTINGS["languages"][:1] * 2}, OptionError, "same label"),
        ({"events": {"small": {"bad": "("}}}, Exception, r"\("),
        ({"sample": 3}, OptionError, "sample"),
        (
            {"json_schema": {"escapes": "some"}, "languages": [{**LANGUAGE, "json_schema": True}]},
            OptionError,
            "escapes",
        ),
        ({"json_schema": ["compact"]}, OptionError, "mapping"),
        ({"schemas": 3}, OptionError, "settings.schemas: this is a folder"),
        (
            {"languages": [{**LANGUAGE, "schema_name": "a", "json_schema": True}], "schemas": "x", "events": {}},
            OptionError,
            "one: give either json_schema or",
        ),
        ({"languages": [{**LANGUAGE, "schema_name": 3}], "schemas": "x", "events": {}}, OptionError, "give either"),
        ({"languages": [{**LANGUAGE, "schema_name": "a"}], "schemas": "nowhere"}, ConfigError, "nowhere"),
        (
            {"languages": [{**LANGUAGE, "schema_name": "unit"}], "events": {}},
            OptionError,
            "schema_name needs settings.schemas",
        ),
        ({"languages": [LANGUAGE], "events": {}}, OptionError, "languages: one: a constraint is exactly one of"),
        (
            {"languages": [{**LANGUAGE, "choice": ["a"], "escapes": "all"}], "events": {}},
            OptionError,
            "escapes does not go with choice",
        ),
        (
            {"languages": [{**LANGUAGE, "json_schema": "{"}], "events": {}},
            OptionError,
            "languages: one: the schema is not JSON",
        ),
    ],
)
def test_faults_of_settings_are_named(changes, error, words):
    with pytest.raises(error, match=words):
        check_settings(SETTINGS | changes)


def test_axes_are_refused():
    with pytest.raises(OptionError, match="no tokenizers"):
        run_item(SETTINGS | {"tokenizer": "bytes"}, seed=0)


def test_weights_are_finite(rows):
    for row in of(rows, "estimate"):
        assert np.isfinite([row[name] for name in MEASURES]).all()
