"""What masks are worth, as an experiment: rows against the loops themselves, what is told of made rows, resumption."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

import tokdfa
from tests.lab.kinds.telling import MODEL, Told
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.decoding.cars import draw_by_cars
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.worth import KIND, Settings
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel
from tokdfa.models.registry import load_model
from tokdfa.tasks.registry import load_task
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
WAYS = [
    {"method": "none"},
    {"method": "masks"},
    {"method": "masks", "skip_forced": False, "label": "asked"},
    {"method": "masks", "always_ends": True, "label": "ends"},
    {"method": "reason", "size": 3},
    {"method": "cars", "size": 3},
    *({"method": method, "size": 2} for method in ("rejection", "smc", "awrs", "asap", "mcmc")),
    {"method": "adaptrack", "size": 20},
]
NAMES = [way.get("label", way["method"]) for way in WAYS]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    models = [{"name": "table?seed=1", "tokenizer": name, "label": "m"}]
    return {"models": models, "tasks": ["topics", "dates"], "ways": WAYS, "items": 2, "cache_mb": 50}


@pytest.fixture(scope="module")
def rows(settings):
    return [row for row in KIND.measure(settings, seed=5) if row["part"] == "answer"]


def test_every_item_is_answered_in_every_way(rows):
    assert all(row["status"] == "ok" for row in rows), [row["message"] for row in rows]
    asked = {(row["task"], row["item"], row["way"]) for row in rows}
    assert len(asked) == len(rows) == 2 * 2 * len(WAYS)
    assert {row["way"] for row in rows} == set(NAMES)
    for row in rows:
        task = load_task(row["task"])
        item = next(item for item in task.items if item.label == row["item"])
        assert row["valid"] == (row["finished"] and task.is_valid(item, row["text"]))
        assert row["score"] == (task.score(item, row["text"]) if row["valid"] else 0)
        assert row["outcome"] == ("valid" if row["valid"] else "silent" if row["finished"] else "named")
        assert 0 <= row["mask_seconds"] < row["seconds"]
        if row["way"] == "ends" or (row["way"] != "none" and row["finished"]):
            assert row["valid"], "masks leave nothing else"


def test_answers_and_passes_are_those_of_the_loops(rows, settings):
    entry = settings["models"][0]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    for name in settings["tasks"]:
        task = load_task(name)
        for item in task.items[:2]:
            compiled = tokdfa.compile(item.constraint, tokenizer, backend="pushdown_trie")
            context, seed = tokenizer.encode(item.prompt), derive_seed(5, name, item.label)
            mine = {row["way"]: row for row in rows if (row["task"], row["item"]) == (name, item.label)}
            found = generate(model, compiled, context, Sampler(seed=seed), task.max_tokens)
            assert (mine["masks"]["text"], mine["masks"]["passes"]) == (found.text, found.model_calls)
            assert mine["asked"]["text"] == mine["masks"]["text"]
            assert mine["asked"]["passes"] == mine["masks"]["passes"] + found.forced
            kept = CachedModel(model, 50)
            drawn = draw_by_cars(
                kept, compiled, context, samples=1, max_drafts=3, max_tokens=task.max_tokens, seed=seed
            )
            assert mine["cars"]["finished"] == bool(drawn.sequences)
            assert mine["cars"]["passes"] == kept.misses


def test_each_way_pays_for_its_own_masks(settings, monkeypatch):
    made = []

    def create(*given, **options):
        backend = create_backend(*given, **options)
        compile_one = backend.compile
        monkeypatch.setattr(backend, "compile", lambda constraint: made.append(compile_one(constraint)) or made[-1])
        return backend

    monkeypatch.setattr("tokdfa.lab.kinds.worth.create_backend", create)
    ways = [{"method": "masks"}, {"method": "masks", "temperature": 0.5, "label": "cold"}]
    rows = KIND.measure(settings | {"tasks": ["dates"], "ways": ways}, seed=5)
    assert [row["status"] for row in rows if row["part"] == "answer"] == ["ok"] * 4
    assert len(made) == 2, "the two items share a constraint, the two ways do not"


def test_a_line_of_reasoning_has_the_temperature_of_its_way(settings):
    ways = [
        {"method": "reason", "size": 3, "greedy": True},
        {"method": "reason", "size": 3, "temperature": 1e-9, "label": "cold"},
    ]
    rows = KIND.measure(settings | {"tasks": ["topics"], "ways": ways, "items": 1}, seed=5)
    greedy, cold = (row for row in rows if row["part"] == "answer")
    assert greedy["text"] == cold["text"]
    assert greedy["passes"] == cold["passes"]


PROMPTS = [
    {"label": "choose one", "prompt": "Which?\n", "json_schema": {"enum": ["sentence", "letter", 2]}},
    {"label": "number whole", "prompt": "How many?\n", "json_schema": {"type": "integer", "minimum": 0, "maximum": 99}},
    {"label": "word", "prompt": "A word:\n", "choice": ["sentence", "letter"], "max_tokens": 1},
]
ENGINES = [
    {"method": "masks", "json_schema": {"profile": "generation"}, "temperature": 0.8, "label": "clean"},
    {"method": "masks", "json_schema": {"profile": "generation"}, "temperature": 0.8, "backend": "earley_trie"},
    {"method": "masks", "backend": "token_index", "options": {"max_states": 1}, "label": "small"},
    {"method": "masks", "greedy": True, "label": "greedy"},
]


def test_prompts_of_the_experiment_are_a_task_whose_ways_have_engines_of_their_own(settings):
    asked = {"tasks": [], "prompted": PROMPTS[1:], "constraints": PROMPTS[:1], "prompts": {"choose one": "Which?\n"}}
    asked |= {"ways": ENGINES, "items": 100, "samples": 2, "max_tokens": 12}
    (part,) = KIND.split(settings | asked, 5)
    assert part[0] == "m, prompted"
    rows = [row for row in KIND.measure(part[1], seed=5) if row["part"] == "answer"]
    assert {(row["way"], row["status"]) for row in rows if row["status"] != "ok"} == {("small", "memory")}
    mine = {(row["item"], row["way"]): row for row in rows if row["status"] == "ok"}
    assert len(mine) == 3 * 2 * 3
    entry = settings["models"][0]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    compiled = tokdfa.compile(JsonSchema(PROMPTS[0]["json_schema"], profile="generation"), tokenizer)
    sampler = Sampler(0.8, seed=derive_seed(5, "prompted", "choose one, 1"))
    found = generate(model, compiled, tokenizer.encode("Which?\n"), sampler, 12)
    row = mine["choose one, 1", "clean"]
    assert row["text"] == found.text
    assert (row["passes"], row["forced"], row["steps"]) == (found.model_calls, found.forced, len(found.tokens) + 1)
    for item, way in mine:
        assert mine[item, way]["tokens"] <= (1 if item.startswith("word") else 12)
        assert mine[item, "clean"]["text"] == mine[item, "masks"]["text"]  # engines of one language
        if mine[item, way]["finished"]:
            assert mine[item, way]["valid"]
    told = Told(KIND, [row for row in rows if row["way"] != "small"])
    assert told.tables["worth_valid"]["task"].tolist() == ["number", "word", "choose"]


@needs_smollm2
def test_every_shipped_constraint_goes_on_from_its_prompt():
    settings = load_config(EXPERIMENTS / "saved_calls_lm.yaml").settings
    ways = [{"method": "masks", "backend": "cartesian_merge"}]
    prompted = [entry | {"max_tokens": 2} for entry in settings["prompted"]]
    changes = {"models": [{"name": "table?seed=0", "tokenizer": "smollm2"}], "ways": ways, "prompted": prompted}
    rows = KIND.measure(settings | changes | {"samples": 1, "max_tokens": 2}, 0)
    assert [row["message"] for row in rows if row["status"] != "ok"] == []
    assert len({row["item"] for row in rows if row["part"] == "answer"}) == 32


def test_the_shipped_schemas_can_be_written_by_both_profiles():
    tasks = yaml.safe_load((EXPERIMENTS / "inputs" / "generation_schemas.yaml").read_text())
    assert len(tasks) == 50
    assert load_config(EXPERIMENTS / "generation_profile.yaml").settings["prompted"] == tasks
    backend = create_backend("pushdown_trie", load_tokenizer("bytes").vocabulary)
    for task in tasks:
        jsonschema.Draft202012Validator.check_schema(task["json_schema"])
        for profile in ("all", "generation"):
            assert not backend.compile(JsonSchema(task["json_schema"], profile=profile)).dropped
        assert task["prompt"].endswith("\n")


def test_what_is_not_asked_is_a_row_and_a_shorter_run_has_the_same_answers(rows, settings):
    late = [row for row in KIND.measure(settings | {"seconds": 1e-9}, seed=5) if row["part"] == "answer"]
    assert {row["status"] for row in late} == {"not_asked"}
    fewer = [row for row in KIND.measure(settings | {"items": 1}, seed=5) if row["part"] == "answer"]
    assert [row["text"] for row in fewer] == [row["text"] for row in rows if row["item"] == "000"]


def test_samplers_come_nearer_to_the_models_own_distribution_than_masks():
    texts = {"small": ["ab", "ac", "bad", "bed"], "forced": ["qa", "qb"]}
    asked = {
        "models": [{"name": "table?seed=2&concentration=0.2", "tokenizer": "bytes", "label": "m"}],
        "prompted": [{"label": label, "prompt": "x", "choice": choice} for label, choice in texts.items()],
        "ways": [
            {"method": name, "size": size, "label": f"{name} {size}"}
            for name, size in (("masks", 1), ("rejection", 2), ("smc", 32))
        ],
        **{"samples": 60, "items": 120, "max_tokens": 4, "eos": "ignored", "exact": 1000},
    }
    rows = KIND.measure(asked, 5)
    exact = {(row["item"], row["way"]): json.loads(row["probabilities"]) for row in rows if row["part"] == "exact"}
    assert {way for _, way in exact} == {"ideal", "masks 1"}
    table = Told(KIND, rows).tables["cost_vs_skew"].set_index("way")
    apart = [sum(abs(np.subtract(exact[label, "ideal"], exact[label, "masks 1"]))) / 2 for label in texts]
    assert table["total variation"]["masks 1"] == pytest.approx(np.mean(apart))
    assert table["total variation"]["smc 32"] < table["plug-in"]["smc 32"] + 1e-9 < table["total variation"]["masks 1"]
    # two drafts hardly ever give one of a few texts of a model over 257 tokens
    assert "rejection 2" not in table.index
    assert table.loc["smc 32", "prompts"] == 2
    few = KIND.measure(asked | {"samples": 9}, 5)
    assert Told(KIND, few).tables["cost_vs_skew"]["way"].tolist() == ["masks 1"]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tasks": ["sum"]}, UnknownNameError, "sums"),
        ({"tasks": ["sums", {"name": "sums"}]}, OptionError, "same label"),
        ({"tasks": ["gsm8k"]}, OptionError, "folder"),
        ({"ways": [WAYS[0], WAYS[0]]}, OptionError, "none"),
        ({"ways": [{"method": "beam"}]}, OptionError, "method"),
        ({"items": 0}, OptionError, "items"),
        ({"tasks": []}, OptionError, "needs tasks, or prompted"),
        ({"prompts": {"x": "y"}}, UnknownNameError, "x"),
        ({"prompted": [PROMPTS[0]] * 2}, OptionError, "same label"),
        ({"prompted": [{"label": "a", "prompt": "b"}]}, OptionError, "a constraint is exactly one of"),
        ({"prompted": [{"label": "a", "prompt": "b", "grammar": 'start: "a"'}]}, OptionError, "cannot be judged"),
        ({"ways": [{"method": "masks", "backend": "pushdown"}]}, UnknownNameError, "pushdown"),
        ({"ways": [{"method": "masks", "json_schema": {"profil": "all"}}]}, UnknownNameError, "profile"),
        ({"ways": [{"method": "smc", "temperature": 0.8}]}, OptionError, "smc takes no temperature; leave it out"),
        ({"ways": [{"method": "none", "label": "a", "greedy": True}]}, OptionError, "a: none takes no greedy"),
    ],
)
def test_wrong_settings_are_named_before_the_run(settings, change, error, words):
    typed_settings(Settings, settings)
    with pytest.raises(error, match=words):
        typed_settings(Settings, settings | change)


def row(item, way, score, passes, outcome="valid", status="ok"):
    made = {"part": "answer", "model": "small", "task": "t", "item": item, "way": way, "method": way, "status": status}
    return made | {
        "message": "", "text": "x", "finished": outcome != "named", "valid": outcome == "valid", "score": score,
        "passes": passes, "tokens": 3, "steps": 4, "seconds": 1.0, "mask_seconds": 0.25, "outcome": outcome,
    }  # fmt: skip


def test_the_front_and_shares_are_of_items_that_all_ways_answered():
    made = [MODEL]
    for item in ("a", "b"):
        made += [row(item, "none", 0.0, 2, "silent"), row(item, "masks", 0.5, 4), row(item, "dear", 0.5, 9)]
    made += [row("c", "none", 1.0, 2), row("c", "masks", 1.0, 2)]  # the third way has no answer to it
    told = Told(KIND, made)
    table = told.tables["worth"].set_index("way")
    assert table["answers"].tolist() == [2, 2, 2]
    assert table["score"].tolist() == [0, 0.5, 0.5]
    assert table["silent"].tolist() == [1, 0, 0]
    assert table["masks"].tolist() == [0.25] * 3
    points = told.panels["worth_pareto"]["small"]
    assert {(point["way"], point["x"], point["y"], point["front"]) for point in points} == {
        ("none", 2, 0, "yes"), ("masks", 4, 0.5, "yes"), ("dear", 9, 0.5, "no"),
    }  # fmt: skip
