"""Saved calls while a model writes: the rows against the loop itself, and against counts by hand."""

import json
from pathlib import Path

import pytest

from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds.saved_calls_lm import all_prompted, check_settings, run_item
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.registry import load_model
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
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


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    models = [{"name": "table?seed=1", "tokenizer": name}]
    return {"models": models, "engines": ENGINES, "prompted": PROMPTED, "samples": 3, "max_tokens": 40}


@pytest.fixture(scope="module")
def rows(settings):
    return run_item(settings, seed=5)


def texts(rows, **wanted):
    return [row for row in rows if row["part"] == "text" and all(row[key] == value for key, value in wanted.items())]


def test_all_engines_write_all_texts(rows):
    first = ["compile"] * 4 + ["text"] * 4
    assert [row["part"] for row in rows] == ["model", *first * 2, *["text"] * 16]
    assert {row["status"] for row in rows} == {"ok"}
    # they take turns, text by text
    names = [engine.get("label", engine["backend"]) for engine in ENGINES]
    assert [row["engine"] for row in texts(rows, constraint="verdict")] == names * 3
    assert {row["engine"]: row["language"] for row in texts(rows)} == {
        "token_index": "all", "brute_force": "all", "cartesian_merge": "proper", "muted": "muted",
    }  # fmt: skip


def test_texts_are_those_of_the_loop(rows, settings):
    entry = settings["models"][0]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    compiled = create_backend("token_index", tokenizer.vocabulary).compile(Regex(PROMPTED[0]["regex"]))
    for sample in range(3):
        sampler = Sampler(seed=derive_seed(5, "verdict", sample))
        found = generate(model, compiled, tokenizer.encode(PROMPTED[0]["prompt"]), sampler, 40)
        (row,) = texts(rows, constraint="verdict", sample=sample, engine="token_index")
        assert row["text"] == found.text.decode()
        assert json.loads(row["sequence"]) == [*found.tokens, found.end_token]
        assert (row["steps"], row["model_calls"], row["forced"]) == (
            len(found.tokens) + 1, found.model_calls, found.forced,
        )  # fmt: skip


def test_steps_are_calls_and_forced_steps(rows):
    for row in texts(rows):
        assert row["steps"] == row["model_calls"] + row["forced"] == row["tokens"] + row["finished"]
        assert row["bytes"] == len(row["text"].encode())
        assert min(row["model_seconds"], row["mask_seconds"], row["sampling_seconds"]) >= 0
        assert row["prompt_tokens"] > 0
        if row["constraint"] == "verdict":
            assert row["finished"]
            assert row["text"] in ("answer: true.", "answer: false.")
        else:
            assert row["steps"] <= 3
    # the proper sequence has one choice, between the two answers
    proper = texts(rows, constraint="verdict", engine="cartesian_merge")
    assert {row["model_calls"] for row in proper} == {1}
    assert min(row["model_calls"] for row in texts(rows, constraint="verdict", engine="token_index")) > 1


def test_equal_masks_and_seeds_give_equal_texts(rows):
    for constraint in ("verdict", "word"):
        for sample in range(3):
            index, brute, *_ = texts(rows, constraint=constraint, sample=sample)
            assert (index["engine"], brute["engine"]) == ("token_index", "brute_force")
            assert index["sequence"] == brute["sequence"]
    assert len({row["sequence"] for row in texts(rows, engine="token_index")}) > 2


def test_failures_and_what_is_not_asked_are_rows(settings):
    prompted = [PROMPTED[0] | {"label": str(number)} for number in range(5)]
    small = {"backend": "token_index", "options": {"max_states": 1}, "label": "small"}
    rows = run_item(settings | {"prompted": prompted, "engines": [small, ENGINES[0]], "every": 2, "samples": 1}, seed=0)
    assert list(dict.fromkeys(row["constraint"] for row in rows[1:])) == ["0", "2", "4"]
    assert [(row["engine"], row["status"]) for row in rows[1:4]] == [
        ("small", "memory"), ("token_index", "ok"), ("token_index", "ok"),
    ]  # fmt: skip
    rows = run_item(settings | {"seconds": 1e-9}, seed=0)
    assert [row["status"] for row in rows[1:]] == ["not_asked"] * 6
    assert [row["constraint"] for row in rows[1:3]] == ["verdict", "word"]
    assert "are over" in rows[-1]["message"]


def test_constraints_get_their_prompts(settings):
    given = [{"label": "a", "regex": "x"}, {"label": "b", "choice": ["y"]}, {"label": "c", "regex": "z"}]
    typed = check_settings(settings | {"constraints": given, "prompts": {"b": "B", "a": "A"}})
    assert [(entry.label, entry.prompt) for entry in all_prompted(typed)[2:]] == [("b", "B"), ("a", "A")]
    assert all_prompted(typed)[2].build().kind == "choice"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"prompts": {"x": "y"}}, UnknownNameError, "x"),
        ({"prompted": []}, OptionError, "needs prompted constraints"),
        ({"prompted": [PROMPTED[0]] * 2}, OptionError, "same label"),
        ({"prompted": [{"label": "a", "prompt": "b"}]}, OptionError, "either a regex or choices"),
        ({"engines": ENGINES[:1] * 2}, OptionError, "same label"),
        ({"engines": [{"backend": "token_index", "options": {"nothing": 1}}]}, UnknownNameError, "nothing"),
        ({"samples": 0}, OptionError, "settings.samples"),
    ],
)
def test_wrong_settings(settings, change, error, message):
    with pytest.raises(error, match=message):
        check_settings(settings | change)
