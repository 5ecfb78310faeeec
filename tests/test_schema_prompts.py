"""The prompts of experiments/inputs/skew_schemas.yaml, checked as experiments/skew_json.yaml uses them."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.packages import needs_smollm2
from tokdfa.backends.base import Phases
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.skew import Settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SOURCE = (EXPERIMENTS / "inputs" / "skew_schemas.yaml").read_text()
CONFIG = load_config(EXPERIMENTS / "skew_json.yaml")
LANGUAGES = {one.label: one for one in Settings.model_validate(CONFIG.settings).chosen()}


def examples(language):
    """The answers that a prompt gives itself: the lines below the one that is its last."""
    *lines, last, empty = language.prompt.split("\n")
    assert not empty
    return [answer for before, answer in pairwise(lines) if before == last]


def test_there_are_as_many_as_said():
    assert len(LANGUAGES) == 9
    assert SOURCE.startswith("# Nine JSON schemas")
    folder = EXPERIMENTS / "inputs" / "schemas"
    named = re.findall(r"# that of inputs/schemas/(.*)\.json\n  json_schema: (.*)\n", SOURCE)
    assert len(named) == 8
    for name, schema in named:
        assert json.loads(schema) == json.loads((folder / f"{name}.json").read_text())["schema"]
    assert all(language.prompt.endswith(":\n") for language in LANGUAGES.values())


@pytest.mark.parametrize("label", LANGUAGES)
def test_the_examples_of_a_prompt_are_texts_of_its_language(label):
    language = LANGUAGES[label]
    schema = language.build().schema
    automaton = explicit_automaton(language.build(), 30_000, Phases())
    given = examples(language)
    assert given
    for answer in given:
        value = json.loads(answer)
        assert Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).is_valid(value)
        assert json.dumps(value) == answer
        assert automaton.accepts(answer.encode())
        assert not automaton.accepts(answer.encode() + b"\n")


@needs_smollm2
@pytest.mark.parametrize("label", LANGUAGES)
def test_tokens_of_a_prompt_begin_those_of_the_whole(label):
    tokenizer, language = load_tokenizer("smollm2"), LANGUAGES[label]
    prompt = tokenizer.encode(language.prompt)
    for answer in examples(language):
        assert tokenizer.encode(language.prompt + answer)[: len(prompt)] == prompt
        assert len(tokenizer.encode(answer)) < language.max_tokens / 1.5
