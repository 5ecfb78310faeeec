"""What a model writes under schemas: the rows against the loop itself, and what is told of rows made by hand."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.lab.kinds.telling import MODEL, Told, check_lost
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.generation import KIND, Settings
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.registry import load_model
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
ENGINES = [
    {"backend": "pushdown_trie", "json_schema": {"profile": "generation"}, "label": "clean"},
    {"backend": "earley_trie", "json_schema": {"profile": "generation"}, "label": "clean too"},
    {"backend": "pushdown_trie", "label": "all"},
    {"backend": "token_index", "options": {"max_states": 1}, "json_schema": {"max_nesting": 1}, "label": "small"},
]
TASKS = [
    {"label": "choose one", "prompt": "Which?\n", "json_schema": {"enum": ["sentence", "letter", 2]}},
    {"label": "number whole", "prompt": "How many?\n", "json_schema": {"type": "integer", "minimum": 0, "maximum": 99}},
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    name = trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json")
    models = [{"name": "table?seed=1", "tokenizer": name}]
    return {"models": models, "engines": ENGINES, "tasks": TASKS, "samples": 2, "max_tokens": 12}


@pytest.fixture(scope="module")
def rows(settings):
    return KIND.measure(settings, seed=5)


def texts(rows, **wanted):
    return [row for row in rows if row["part"] == "text" and all(row[name] == value for name, value in wanted.items())]


def test_answers_are_those_of_the_loop_and_judged_by_the_library(rows, settings):
    entry = settings["models"][0]
    tokenizer = load_tokenizer(entry["tokenizer"])
    model = load_model(entry["name"], tokenizer)
    backend = create_backend("pushdown_trie", tokenizer.vocabulary)
    for task in TASKS:
        compiled = backend.compile(JsonSchema(task["json_schema"], profile="generation"))
        for decoding, sample in (("greedy", 0), ("sampled", 0), ("sampled", 1)):
            drawn = derive_seed(5, task["label"], sample)
            sampler = Sampler(0.8, greedy=decoding == "greedy", seed=drawn)
            found = generate(model, compiled, tokenizer.encode(task["prompt"]), sampler, 12)
            (row,) = texts(rows, schema=task["label"], decoding=decoding, sample=sample, engine="clean")
            assert row["text"] == found.text.decode()
            assert (row["tokens"], row["finished"]) == (len(found.tokens), found.finished)
            assert row["steps"] == row["model_calls"] + row["forced"] == row["tokens"] + row["finished"]
    for row in texts(rows):
        schema = next(task["json_schema"] for task in TASKS if task["label"] == row["schema"])
        if row["finished"]:
            assert row["parses"]
            assert row["valid"] == jsonschema.Draft202012Validator(schema).is_valid(json.loads(row["text"]))
        else:
            assert not row["parses"]
            assert not row["valid"]


def test_engines_of_one_language_write_the_same(rows):
    clean, same = (
        {(row["schema"], row["decoding"], row["sample"]): row["text"] for row in texts(rows, engine=engine)}
        for engine in ("clean", "clean too")
    )
    assert clean == same
    assert len(clean) == 6


def test_failures_and_what_is_not_asked_are_rows(rows, settings):
    failed = [row for row in rows if row["status"] != "ok"]
    assert {(row["part"], row["engine"], row["status"]) for row in failed} == {("compile", "small", "memory")}
    late = KIND.measure(settings | {"seconds": 1e-9}, seed=5)[1:]
    assert {(row["schema"], row["status"]) for row in late} == {(task["label"], "not_asked") for task in TASKS}
    assert len(texts(KIND.measure(settings | {"most": 1, "decodings": ["greedy"]}, seed=5))) == 3


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"engines": [{"backend": "pushdown"}]}, UnknownNameError, "pushdown"),
        ({"engines": [{"backend": "pushdown_trie", "json_schema": {"profile": "x"}}]}, OptionError, "profile"),
        ({"engines": [{"backend": "pushdown_trie", "json_schema": {"profil": "all"}}]}, OptionError, "profil"),
        ({"tasks": [TASKS[0], TASKS[0]]}, OptionError, "choose one"),
        ({"models": ["nobody"]}, UnknownNameError, "nobody"),
        ({"samples": 0}, OptionError, "samples"),
    ],
)
def test_wrong_settings_are_named_before_the_run(settings, change, error, words):
    typed_settings(Settings, settings)
    with pytest.raises(error, match=words):
        typed_settings(Settings, settings | change)


def row(schema, engine, valid, tokens, status="ok"):
    made = {"part": "text", "model": "small", "schema": schema, "sort": schema.split()[0], "engine": engine}
    made |= {"decoding": "greedy", "sample": 0, "status": status, "message": "", "text": "1", "fault": ""}
    return made | {
        "tokens": tokens, "steps": tokens + 1, "forced": 1, "model_calls": tokens, "finished": valid, "parses": valid,
        "valid": valid,
    }  # fmt: skip


def test_shares_are_of_the_answers_that_all_engines_gave():
    made = [MODEL, row("a x", "one", True, 10), row("a x", "two", False, 30)]
    made += [row("b y", "one", True, 20), row("b y", "two", True, 20), row("c z", "one", False, 90)]
    told = Told(KIND, made)
    table = told.tables["generation"].set_index("engine")
    assert table["answers"].tolist() == [2, 2]
    assert table["valid"].tolist() == [1, 0.5]
    assert table["tokens an answer"].tolist() == [15, 25]
    assert len(told.tables["generation_invalid"]) == 1
    assert any("small, greedy, two" in sentence for sentence in told.sentences)


def test_nothing_to_tell():
    check_lost(KIND)


def test_the_shipped_schemas_can_be_written_by_both_profiles():
    tasks = yaml.safe_load((EXPERIMENTS / "inputs" / "generation_schemas.yaml").read_text())
    assert len(tasks) == 50
    config = load_config(EXPERIMENTS / "generation_profile.yaml")
    assert config.settings["tasks"] == tasks
    vocabulary = load_tokenizer("bytes").vocabulary
    backend = create_backend("pushdown_trie", vocabulary)
    for task in tasks:
        jsonschema.Draft202012Validator.check_schema(task["json_schema"])
        for profile in ("all", "generation"):
            assert not backend.compile(JsonSchema(task["json_schema"], profile=profile)).dropped
        assert task["prompt"].endswith("\n")
