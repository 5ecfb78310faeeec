"""The constraints of experiments/inputs/proper_regexes.yaml and their texts: distinct, matching, of the size said."""

import re
from pathlib import Path

import pytest
import regex
import yaml

from tokdfa.backends.registry import create_backend
from tokdfa.lab.config.resolve import load_config
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

INPUTS = Path(__file__).parents[1] / "experiments" / "inputs"
SOURCE = (INPUTS / "proper_regexes.yaml").read_text()
TEXTS = yaml.safe_load((INPUTS / "proper_texts.yaml").read_text())
ENTRIES = {entry["label"]: entry for entry in yaml.safe_load(SOURCE)}


@pytest.fixture(scope="module")
def constraints(tmp_path_factory):
    """label -> constraint, read as an experiment reads them."""
    experiment = tmp_path_factory.mktemp("experiment") / "one.yaml"
    (experiment.parent / "regexes.yaml").write_text(SOURCE)
    experiment.write_text(
        "name: one\ntokenizers: [bytes]\nconstraints: [{file: regexes.yaml}]\nbackends: [token_index]\n"
    )
    return {entry.label: entry.build() for entry in load_config(experiment).constraints}


@pytest.mark.parametrize("label", ENTRIES)
def test_texts_match(label, constraints):
    entry = ENTRIES[label]
    if "choice" in entry:
        assert len(set(entry["choice"])) == len(entry["choice"])
        assert set(TEXTS[label]) <= set(entry["choice"])
    else:
        module = regex if r"\p" in entry["regex"] else re
        pattern = module.compile(entry["regex"])
        assert [text for text in TEXTS[label] if not pattern.fullmatch(text)] == []


def test_states_are_as_the_comments_say(constraints):
    said = {label: int(states) for label, states in re.findall(r"label: (\w+)  # (\d+) states", SOURCE)}
    assert list(said) == list(ENTRIES)
    for label, constraint in constraints.items():
        language = compile_dfa(constraint)
        assert language.state_count == said[label], label
        assert all(language.accepts(text.encode()) for text in TEXTS[label]), label


def test_every_constraint_compiles_for_a_real_vocabulary(constraints):
    tokenizer = load_tokenizer("mistral-v1")
    backend = create_backend("token_index", tokenizer.vocabulary)
    for label, constraint in constraints.items():
        compiled = backend.compile(constraint)
        matcher = compiled.start()
        for token in tokenizer.encode(TEXTS[label][0]):
            matcher.advance(token)
        assert matcher.can_end(), label
