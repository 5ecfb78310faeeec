"""Saved calls while a model writes: the rows against the loop itself, and against counts by hand."""

import json
from pathlib import Path

import pytest
import yaml

from tests.lab.kinds.telling import MODEL, Told, check_lost
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.saved_calls_lm import KIND, Settings, all_prompted, complete, measure
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
    return measure(settings, seed=5)


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
    rows = measure(settings | {"prompted": prompted, "engines": [small, ENGINES[0]], "every": 2, "samples": 1}, seed=0)
    assert list(dict.fromkeys(row["constraint"] for row in rows[1:])) == ["0", "2", "4"]
    assert [(row["engine"], row["status"]) for row in rows[1:4]] == [
        ("small", "memory"), ("token_index", "ok"), ("token_index", "ok"),
    ]  # fmt: skip
    rows = measure(settings | {"seconds": 1e-9}, seed=0)
    assert [row["status"] for row in rows[1:]] == ["not_asked"] * 6
    assert [row["constraint"] for row in rows[1:3]] == ["verdict", "word"]
    assert "are over" in rows[-1]["message"]


def test_constraints_get_their_prompts(settings):
    given = [{"label": "a", "regex": "x"}, {"label": "b", "choice": ["y"]}, {"label": "c", "regex": "z"}]
    typed = Settings.model_validate(settings | {"constraints": given, "prompts": {"b": "B", "a": "A"}})
    assert [(entry.label, entry.prompt) for entry in all_prompted(typed)[2:]] == [("b", "B"), ("a", "A")]
    assert all_prompted(typed)[2].build().kind == "choice"


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
    ],
)
def test_wrong_settings(settings, change, error, message):
    with pytest.raises(error, match=message):
        complete(settings | change)


def row(constraint, sample, engine, steps, forced, mask_seconds, **changes):
    found = MODEL | {"part": "text", "constraint": constraint, "sample": sample, "engine": engine, "steps": steps}
    found |= {"language": "proper" if engine == "proper" else "all", "text": f"{constraint}{sample}", "bytes": 30}
    found |= {"sequence": f"[{sample}]", "tokens": steps - 1, "finished": True, "forced": forced}
    found |= {"model_calls": steps - forced, "model_seconds": 0.01 * (steps - forced), "mask_seconds": mask_seconds}
    return found | {"sampling_seconds": 0.001} | changes


def made_up():
    rows = [MODEL]
    for number in range(8):
        for sample in range(2):
            name, forced = f"c{number}", number % 3
            rows.append(row(name, sample, "plain", 10, forced, 0.0001))
            other = {"sequence": "[9]", "text": "another"} if (number, sample) == (3, 1) else {}
            rows.append(row(name, sample, "peer", 10, forced, 0.0016 - 0.0001 * forced, **other))
            rows.append(row(name, sample, "proper", 10, forced + 3, 0.02 if sample == 0 else 0.005))
    rows.append(row("alone", 0, "plain", 100, 90, 5.0))
    failed = {"part": "compile", "constraint": "alone", "engine": "proper", "status": "unsupported", "message": "no"}
    return [*rows, MODEL | failed]


def test_what_is_told():
    told = Told(KIND, made_up())
    forced = 2 * (0 + 1 + 2 + 0 + 1 + 2 + 0 + 1)
    calls = told.tables["saved_calls_lm"].set_index("engine")
    shown = ["texts", "finished", "bytes a text", "tokens a text", "calls", "of", "forced"]
    assert calls.loc["plain", shown].tolist() == [16, 1.0, 30, 9, 160 - forced, 160, forced]
    assert calls["calls saved"].tolist() == pytest.approx([forced / 160, forced / 160, (forced + 48) / 160])
    costs = told.tables["saved_calls_lm_costs"].set_index("engine")
    assert costs["model, a call"].tolist() == pytest.approx([0.01] * 3)
    assert costs.loc["plain", ["masks, a step", "mask share"]].tolist() == pytest.approx([0.00001, 16 * 0.0001 / 1.46])
    turns = told.tables["saved_calls_lm_first"]["proper"].tolist()
    assert turns == pytest.approx([8 * 0.02 / 0.49, 8 * 0.005 / 0.49])
    equal = told.tables["saved_calls_lm_equal"].iloc[0]
    assert equal[["engine", "against", "texts", "equal", "first that differs"]].tolist() == [
        "peer", "plain", 16, 15, "c3: 'another', not 'c31'",
    ]  # fmt: skip
    assert told.tables["not_measured"]["constraint"].tolist() == ["alone"]
    assert "small: peer saves the same share of calls as plain." in told.sentences
    assert (
        "small: proper saves more calls than plain, by 30 percentage points (95% interval 30 to 30)." in told.sentences
    )
    assert any("15 of 16 texts equal" in sentence for sentence in told.sentences)
    assert len(told.panels["saved_calls_lm"]["small"]) == 24


def test_what_may_be_chance_is_not_told():
    rows = [MODEL]
    for number in range(10):
        sign = 1 if number % 2 else -1
        rows.append(row(f"c{number}", 0, "plain", 10, 5, 0.001))
        rows.append(row(f"c{number}", 0, "proper", 10, 5 + 2 * sign, 0.001))
    assert "small: proper saves no more and no fewer calls than plain beyond the error." in Told(KIND, rows).sentences


def test_nothing_to_tell():
    check_lost(KIND)


@needs_smollm2
def test_every_shipped_constraint_goes_on_from_its_prompt():
    settings = load_config(EXPERIMENTS / "saved_calls_lm.yaml").settings
    assert settings["engines"][0] == {"backend": "token_index"}
    models = [{"name": "table?seed=0", "tokenizer": "smollm2"}]
    changes = {"models": models, "engines": [{"backend": "cartesian_merge"}], "samples": 1, "max_tokens": 2}
    prompted = [entry | {"max_tokens": 2} for entry in settings["prompted"]]
    rows = measure(settings | changes | {"prompted": prompted}, seed=0)
    assert [row["message"] for row in rows if row["status"] != "ok"] == []
    assert len({row["constraint"] for row in rows if row["part"] == "text"}) == 32
    prompts = yaml.safe_load((EXPERIMENTS / "saved_calls_lm.yaml").read_text())["settings"]["prompts"]
    assert len(prompts) == 10
