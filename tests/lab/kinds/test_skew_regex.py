"""The estimated skew of engines on small languages, of which the exact one is known, and what becomes of failures."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.lab.kinds.telling import MODEL as ROW
from tests.lab.kinds.telling import Told, check_lost
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.errors import ConfigError, OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.skew_regex import KIND, Settings, complete, measure
from tokdfa.lab.measure.skew_estimates import MEASURES
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
    return measure(dict(SETTINGS), seed=5)


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
        assert row[name] == pytest.approx(value, rel=0.2)
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


def test_a_proper_engine_keeps_a_part_of_the_mass():
    settings = {
        "models": [{"name": "ngram", "tokenizer": "mistral-v1"}],
        "languages": [{"label": "words", "prompt": "It is", "regex": " (the|a) (name|class)", "max_tokens": 9}],
        "engines": [{"backend": "token_index"}, {"backend": "cartesian_merge"}],
        "samples": 300,
    }
    rows = measure(settings, seed=1)
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
    settings = complete(schema_settings(tmp_path))
    assert "schemas" not in settings  # the folder is not needed any more
    assert settings["languages"][2]["json_schema"] == '{"enum":["celsius","fahrenheit","kelvin"]}'
    assert [language.get("whitespace") for language in settings["languages"]] == [None, "compact", "compact"]
    found = measure(settings, seed=2)
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
    first, second = of(measure(settings, seed=0), "estimate", "long")
    assert (first["engine"], first["status"]) == ("small", "memory")
    assert "max_states" in first["message"]
    assert second["status"] == "all_cut"
    assert "cut at 3 tokens" in second["message"]


def test_what_is_over_time_is_not_asked():
    rows = measure(SETTINGS | {"seconds": 1e-9}, seed=0)
    assert [(row["part"], row["status"]) for row in rows] == [("model", "ok")] + [("estimate", "not_asked")] * 2


def test_languages_are_chosen_and_spread():
    languages = [{"label": str(i), "prompt": "x", "regex": "a", "max_tokens": 2} for i in range(6)]
    typed = Settings.model_validate(SETTINGS | {"languages": languages, "limit": 2, "events": {}})
    assert [one.label for one in typed.chosen()] == ["0", "3"]
    typed = Settings.model_validate(
        SETTINGS | {"languages": languages, "only": ["5", "2"], "events": {"2": {"e": "a"}}}
    )
    assert [one.label for one in typed.chosen()] == ["2", "5"]
    assert typed.chosen()[0].events == {"e": "a"}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"samples": 1}, OptionError, "samples"),
        ({"models": ["gpt"]}, UnknownNameError, "gpt"),
        ({"engines": [{"backend": "nothing"}]}, UnknownNameError, "nothing"),
        ({"only": ["none"]}, OptionError, "there is no language 'none'"),
        ({"languages": SETTINGS["languages"][:1] * 2}, OptionError, "same label"),
        ({"events": {"small": {"bad": "("}}}, Exception, r"\("),
        ({"sample": 3}, OptionError, "sample"),
        (
            {"json_schema": {"escapes": "some"}, "languages": [{**LANGUAGE, "json_schema": True}]},
            OptionError,
            "escapes",
        ),
        ({"json_schema": ["compact"]}, OptionError, "settings.json_schema"),
        ({"schemas": 3}, OptionError, "settings.schemas"),
        (
            {"languages": [{**LANGUAGE, "schema_name": "a", "json_schema": True}], "schemas": "x", "events": {}},
            OptionError,
            "one: give either json_schema or",
        ),
        ({"languages": [{**LANGUAGE, "schema_name": "a"}], "schemas": "nowhere"}, ConfigError, "nowhere"),
        ({"languages": [{**LANGUAGE, "schema_name": "a"}], "events": {}}, OptionError, "needs settings.schemas"),
        ({"languages": [LANGUAGE], "events": {}}, OptionError, "languages: one: a constraint is exactly one of"),
        (
            {"languages": [{**LANGUAGE, "json_schema": "{"}], "events": {}},
            OptionError,
            "languages: one: the schema is not JSON",
        ),
    ],
)
def test_faults_of_settings_are_named(changes, error, words):
    with pytest.raises(error, match=words):
        complete(SETTINGS | changes)


def estimate(language, engine, tv, **changes):
    row = ROW | {"part": "estimate", "language": language, "engine": engine, "samples": 100, "effective": 50.0}
    for name in ("total_variation", "improper_masked", "improper_target", "forced_share"):
        value = tv if name == "total_variation" else 0.5
        row |= {name: value, f"{name}_low": value - 0.1, f"{name}_high": value + 0.1}
    row |= {"kept": 0.9, "kept_low": 0.8, "kept_high": 1.0, "cut_share": 0.0, "rows": 70}
    row |= {"sequences": f"{language} {engine}".replace("peer", "plain")}
    row |= {"drawn": json.dumps([["one", 0.5, 0.1]]), "meant": json.dumps([["t" * 99, 0.01, 0.7]])}
    return row | changes


def difference(language, other, value, other_value, verdict, engine="plain"):
    row = ROW | {"part": "difference", "language": language, "engine": engine, "other": other}
    return row | {"measure": "total_variation", "verdict": verdict, "value": value, "other_value": other_value}


def made_up():
    rows = [ROW | {"seconds": 9.0}]
    for language, tv, proper_tv, verdict in (
        ("date", 0.6, 0.2, "yes"), ("price", 0.4, 0.5, "no"), ("url", 0.8, 0.9, "yes"), ("name", 0.3, 0.1, "unknown"),
    ):  # fmt: skip
        weak = {"effective": 3.0} if language == "name" else {}
        rows += [estimate(language, "plain", tv, kept=1.0, kept_low=1.0, kept_high=1.0, **weak)]
        rows += [estimate(language, "peer", tv, **weak), estimate(language, "proper", proper_tv)]
        rows += [difference(language, "peer", tv, tv, "no"), difference(language, "proper", tv, proper_tv, verdict)]
        rows += [difference(language, "proper", tv, proper_tv, verdict, engine="peer")]
    rows += [estimate("lost", "plain", 0.7, cut_share=0.2)]
    rows += [ROW | {"part": "estimate", "language": "lost", "engine": "proper", "status": "memory"}]
    event = ROW | {"part": "event", "language": "date", "engine": "plain", "event": "old", "pattern": "1.*"}
    event |= {
        "masked": 0.6,
        "masked_low": 0.5,
        "masked_high": 0.7,
        "target": 0.2,
        "target_low": 0.1,
        "target_high": 0.3,
    }
    return [*rows, event]


def test_what_is_told():
    told = Told(KIND, made_up())
    overview = told.tables["skew_regex"].set_index("engine")
    assert overview["languages"].tolist() == [4, 4, 4]
    assert overview["total variation"].tolist() == pytest.approx([0.5, 0.5, 0.35])
    assert overview["weak"].tolist() == [1, 1, 0]
    assert overview.loc["proper", ["below", "above", "no difference", "undecided"]].tolist() == [1, 1, 1, 1]
    # those of the peer, which drew what plain drew, are not told again
    apart = told.tables["skew_regex_differences"]
    assert apart[["language", "engine", "value", "other engine", "its value"]].to_numpy().tolist() == [
        ["date", "plain", 0.6, "proper", 0.2], ["url", "plain", 0.8, "proper", 0.9],
    ]  # fmt: skip
    kept = told.tables["skew_regex_kept"].set_index("language")["proper"]
    assert kept["date"] == 0.9
    assert np.isnan(kept["name"])  # the first engine is weak there
    texts = told.tables["skew_regex_texts"]
    assert len(texts) == 9
    assert texts.loc[0, ["engines with these samples", "drawn", "meant"]].tolist() == [
        "plain, peer", "'one' 50.0%", f"'{'t' * 59}…' 70.0%",
    ]  # fmt: skip
    assert told.tables["not_measured"]["language"].tolist() == ["lost"]
    assert told.sentences == [
        "small, plain: median total variation from its own target 50.0% over 4 languages.",
        "small, peer: median total variation from its own target 50.0% over 4 languages.",
        "small, proper: median total variation from its own target 35.0% over 4 languages.",
        "small: beyond its error, the total variation of proper is below that of plain in 1 of 4 languages and above "
        "it in 1; no difference beyond the error in 1, undecided in 1.",
        "plain, peer drew equal sequences in every language.",
        "small: 2 of 13 estimates rest on fewer than 30 effective samples, and 1 on samples of which more than 5% were "
        "cut.",
        "1 measurements failed or were left out.",
    ]


def test_a_mass_above_that_of_all_spellings_is_told():
    rows = [estimate("url", "plain", 0.9), estimate("url", "proper", 0.8, kept=40.0, kept_low=3.0, kept_high=500.0)]
    assert any("in 1 languages the mass of proper is estimated above" in one for one in Told(KIND, rows).sentences)
    rows[1]["kept_low"] = 0.5
    assert not any("estimated above" in one for one in Told(KIND, rows).sentences)


def test_nothing_to_tell():
    check_lost(KIND)


def test_the_shipped_experiment_asks_for_languages_and_events_that_there_are():
    experiment = load_config(Path(__file__).parents[3] / "experiments" / "skew_regex.yaml")
    typed = Settings.model_validate(experiment.settings)
    assert len(typed.chosen()) == len(typed.only) == 13
    assert set(typed.events) <= set(typed.only)
    assert typed.seconds < experiment.limits.seconds
