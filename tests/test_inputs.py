"""The constraints of experiments/inputs/proper_regexes.yaml and their texts: distinct, matching, of the size said."""

import re
from itertools import chain
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
#: Those shaped like JSON and YAML: they stand before the dates.
SHAPED = list(ENTRIES)[: list(ENTRIES).index("iso_date")]


@pytest.fixture(scope="module")
def constraints(tmp_path_factory):
    """label -> constraint, read as an experiment reads them."""
    experiment = tmp_path_factory.mktemp("experiment") / "one.yaml"
    (experiment.parent / "regexes.yaml").write_text(SOURCE)
    experiment.write_text(
        "name: one\ntokenizers: [bytes]\nconstraints: [{file: regexes.yaml}]\nbackends: [token_index]\n"
    )
    return {entry.label: entry.build() for entry in load_config(experiment).constraints}


def test_there_are_enough_and_none_is_given_twice(constraints):
    listed = yaml.safe_load(SOURCE)
    assert len(listed) == len(ENTRIES) == len(constraints) >= 44
    assert len({str({key: value for key, value in entry.items() if key != "label"}) for entry in listed}) == len(listed)
    assert len(SHAPED) >= 20
    assert all(any("\n" in text or "{" in text or '"' in text for text in TEXTS[label]) for label in SHAPED)
    assert f"The first {len(SHAPED)} are shaped like JSON and YAML" in SOURCE
    assert SOURCE.startswith(f"# {len(listed)} constraints")


def test_every_constraint_has_its_own_texts(constraints):
    assert list(TEXTS) == list(ENTRIES)
    together = list(chain.from_iterable(TEXTS.values()))
    assert len(set(together)) == len(together)
    for label, texts in TEXTS.items():
        assert len(texts) >= (10 if label in SHAPED else 2 if label in ("boolean", "presidents") else 4), label


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
