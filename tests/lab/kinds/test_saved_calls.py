"""Forced steps and calls left: along given texts counted by hand, in written ones against the loop itself."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.lab.kinds.telling import Told, check_lost
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import ConfigError, OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.saved_calls import KIND, Settings, measure
from tokdfa.lab.measure.forced_steps import follow_text
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.registry import load_model
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
GIVEN = [{"backend": "token_index"}, {"backend": "tokens_dfa"}]
ENGINES = [
    {"backend": "token_index"},
    {"backend": "brute_force"},
    {"backend": "cartesian_merge"},
    {"backend": "tokens_dfa", "options": {"mute_literals": True}, "label": "muted"},
]
PROMPTED = [
    {"label": "verdict", "prompt": "Is it true?\n", "regex": "answer: (true|false)\\."},
    {"label": "word", "prompt": "A word:\n", "choice": ["sentence", "letter"], "max_tokens": 3},
]


def given(pattern, *texts, tokenizer="bytes", engines=GIVEN, **settings):
    one = {"tokenizer": tokenizer, "label": "one", "regex": pattern, "texts": {"one": list(texts)}, "engines": engines}
    return measure(one | settings, 0)


@pytest.mark.parametrize(
    ("pattern", "text", "calls", "forced_text"),
    [
        ("ab(c|d)e", "abce", 1, 3),  # a, b, e and the end are forced
        ("ab(c)?", "abc", 1, 3),  # after ab the text may end, or go on with c
        ("ab(c)?", "ab", 1, 2),  # at the end there is a choice
        ("a*", "", 1, 0),  # a text without tokens has an end only
    ],
)
def test_counts_by_hand(pattern, text, calls, forced_text):
    for row in given(pattern, text):
        counts = (len(text), len(text) + 1, calls, forced_text, forced_text)
        assert tuple(row[name] for name in ("tokens", "steps", "calls", "forced_text", "forced_002")) == counts


def test_tokens_of_the_byte_fallback_are_left_out_as_published():
    # x is a token and the byte 0x78 another; a line end is a byte token only, so it is forced in any count
    for row in given("x\n", "x\n", tokenizer="mistral-v1"):
        assert (row["status"], row["tokens"]) == ("ok", 2)
        assert (row["forced_text"], row["forced_002"]) == (1, 2)


def test_refusals_and_failures_are_rows():
    (row, _) = given("ab", "ac")
    assert (row["status"], row["text"]) == ("wrong_refusal", "ac")
    assert "is refused at position 1 of 2" in row["message"]
    (row, _) = given("abc", "ab")
    assert row["message"] == "the end is refused after 2 tokens"
    small = {"backend": "token_index", "options": {"max_states": 1}, "label": "small"}
    assert [row["status"] for row in given("abc", "abc", engines=[small, *GIVEN])] == ["memory", "ok", "ok"]
    compiled = create_backend("token_index", load_tokenizer("bytes").vocabulary).compile(Regex("[a-zA-Z]+"))
    upper = SimpleNamespace(encode=lambda text: list(text.upper().encode()), vocabulary=compiled.vocab)
    assert follow_text(compiled, "abc", upper)["status"] == "changed"


def test_texts_of_the_constraint_itself():
    settings = {"tokenizer": "bytes", "engines": GIVEN, "label": "flag", "json_schema": {"type": "boolean"}}
    rows = measure(settings | {"max_nesting": 1, "whitespace": "compact", "texts": ["true", "false"]}, 0)
    assert [(row["constraint"], row["text"], row["calls"]) for row in rows] == [
        ("flag", "true", 1), ("flag", "false", 1)
    ] * 2  # fmt: skip
    with pytest.raises(OptionError, match="has no texts"):
        measure(settings, 0)
    with pytest.raises(ConfigError, match="has none of regex"):
        measure({"tokenizer": "bytes", "engines": GIVEN, "texts": ["a"]}, 0)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    models = [{"name": "table?seed=1", "tokenizer": name, "label": "m"}]
    return {"models": models, "engines": ENGINES, "prompted": PROMPTED, "samples": 3, "max_tokens": 40}


@pytest.fixture(scope="module")
def rows(settings):
    return measure(settings, 5)


def written(rows, **wanted):
    return [row for row in rows if row["part"] == "text" and all(row[key] == value for key, value in wanted.items())]


def test_written_texts_are_those_of_the_loop(rows, settings):
    assert {row["status"] for row in rows} == {"ok"}
    names = [engine.get("label", engine["backend"]) for engine in ENGINES]
    assert [row["engine"] for row in written(rows, constraint="verdict")] == names * 3  # they take turns
    entry = settings["models"][0]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    compiled = create_backend("token_index", tokenizer.vocabulary).compile(Regex(PROMPTED[0]["regex"]))
    for sample in range(3):
        sampler = Sampler(seed=derive_seed(5, "verdict", sample))
        found = generate(model, compiled, tokenizer.encode(PROMPTED[0]["prompt"]), sampler, 40)
        index, brute, *_ = written(rows, constraint="verdict", sample=sample)
        assert index["text"] == found.text.decode()
        assert json.loads(index["sequence"]) == [*found.tokens, found.end_token]
        assert (index["steps"], index["calls"]) == (len(found.tokens) + 1, found.model_calls)
        assert index["steps"] - index["calls"] == found.forced
        assert brute["sequence"] == index["sequence"]  # equal masks and seeds
    assert len({row["sequence"] for row in written(rows, engine="token_index")}) > 2


def test_proper_sequences_leave_one_choice_between_two_answers(rows):
    assert {row["calls"] for row in written(rows, constraint="verdict", engine="cartesian_merge")} == {1}
    assert min(row["calls"] for row in written(rows, constraint="verdict", engine="token_index")) > 1
    assert {row["text"] for row in written(rows, constraint="verdict")} <= {"answer: true.", "answer: false."}
    assert max(row["steps"] for row in written(rows, constraint="word")) <= 3


def test_a_failure_is_said_once_and_every_other_constraint_is_left_out(settings):
    prompted = [PROMPTED[0] | {"label": str(number)} for number in range(3)]
    small = {"backend": "token_index", "options": {"max_states": 1}, "label": "small"}
    rows = measure(settings | {"prompted": prompted, "engines": [small, ENGINES[0]], "every": 2, "samples": 2}, 0)
    assert [(row["constraint"], row["engine"], row["status"]) for row in rows[1:]] == [
        ("0", "small", "memory"), ("0", "token_index", "ok"), ("2", "small", "memory"), ("2", "token_index", "ok"),
        ("0", "token_index", "ok"), ("2", "token_index", "ok"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"prompts": {"x": "y"}}, UnknownNameError, "x"),
        ({"prompted": []}, OptionError, "needs prompted constraints"),
        ({"prompted": [PROMPTED[0]] * 2}, OptionError, "same label"),
        ({"prompted": [{"label": "a", "prompt": "b"}]}, OptionError, "a constraint is exactly one of"),
        ({"engines": ENGINES[:1] * 2}, OptionError, "same label"),
        ({"engines": [{"backend": "token_index", "options": {"nothing": 1}}]}, UnknownNameError, "nothing"),
        ({"samples": 0}, OptionError, "settings.samples"),
        ({"limit": 3}, OptionError, r"settings\.limit"),
    ],
)
def test_wrong_settings(settings, change, error, message):
    with pytest.raises(error, match=message):
        typed_settings(Settings, settings | change)


def test_what_is_told_of_given_texts():
    rows = given("(red|green)", "red", "green", "blue")  # blue is refused
    told = Told(KIND, rows)
    overview = told.tables["saved_calls"].set_index("engine")
    # the first byte is free; the others, and the end, are forced
    assert overview.loc["tokens_dfa", ["texts", "steps", "forced", "calls left"]].tolist() == [2, 10, 8, 2]
    assert overview["share as published"].tolist() == pytest.approx([6 / 8] * 2)
    assert told.tables["saved_calls_constraints"]["token_index"].tolist() == pytest.approx([8 / 10])
    assert told.tables["not_measured"]["kind"].tolist() == ["wrong refusal"] * 2
    assert "given, bytes, token_index: 80.0% of the calls are saved, 2 of 10 are left." in told.sentences
    assert any("beyond what token_index saves, tokens_dfa saves 0% of the calls" in line for line in told.sentences)
    assert any("750 with the plain token DFA" in sentence for sentence in told.sentences)


def test_what_is_told_of_written_texts(rows):
    told = Told(KIND, rows)
    overview = told.tables["saved_calls"].set_index("engine")
    mine = written(rows, engine="cartesian_merge")
    assert overview.loc["cartesian_merge", ["texts", "steps", "calls left"]].tolist() == [
        len(mine), sum(row["steps"] for row in mine), sum(row["calls"] for row in mine),
    ]  # fmt: skip
    costs = told.tables["saved_calls_costs"].set_index("engine").loc["cartesian_merge"]
    spent = [sum(row[name] for row in mine) for name in ("mask_seconds", "model_seconds", "calls")]
    assert costs["mask share"] == pytest.approx(spent[0] / spent[1])
    assert costs["model, a call"] == pytest.approx(spent[1] / spent[2])
    assert told.tables["saved_calls_first"]["turn"].tolist() == ["first text", "later texts"]
    assert any("6 of 6 texts equal that of the first engine" in sentence for sentence in told.sentences)
    assert not any("Published" in sentence for sentence in told.sentences)
    check_lost(KIND)


def test_the_shipped_experiment_takes_all_that_is_shaped_like_json_and_yaml():
    loaded = yaml.safe_load((EXPERIMENTS / "saved_calls.yaml").read_text())
    (constraints,) = loaded["constraints"]
    labels = [entry["label"] for entry in yaml.safe_load((EXPERIMENTS / constraints["file"]).read_text())]
    assert constraints["only"] == labels[: labels.index("iso_date")]
    texts = yaml.safe_load((EXPERIMENTS / loaded["settings"]["texts"]["file"]).read_text())
    assert set(constraints["only"]) <= set(texts)


@needs_smollm2
def test_every_shipped_constraint_goes_on_from_its_prompt():
    settings = load_config(EXPERIMENTS / "saved_calls_lm.yaml").settings
    models = [{"name": "table?seed=0", "tokenizer": "smollm2"}]
    changes = {"models": models, "engines": [{"backend": "cartesian_merge"}], "samples": 1, "max_tokens": 2}
    prompted = [entry | {"max_tokens": 2} for entry in settings["prompted"]]
    rows = measure(settings | changes | {"prompted": prompted}, 0)
    assert [row["message"] for row in rows if row["status"] != "ok"] == []
    assert len({row["constraint"] for row in rows if row["part"] == "text"}) == 32
