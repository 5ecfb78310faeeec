"""The shipped experiment files: they load, ask for what the README says, and their inputs are what they claim."""

import base64
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
import regex
import yaml

from tests.packages import needs_smollm2
from tokdfa.errors import ConfigError
from tokdfa.lab.config.expand import expand
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.measure.schema_corpus import read_cases

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
REGEXES = EXPERIMENTS / "inputs" / "regexes.yaml"
NAMES = sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))


def regexes():
    return {entry["label"]: entry["regex"] for entry in yaml.safe_load(REGEXES.read_text())}


def texts():
    """The sample texts by the label in the comment above them."""
    found, label = {}, None
    for line in (EXPERIMENTS / "inputs" / "regex_texts.yaml").read_text().splitlines():
        if line.startswith("- "):
            found.setdefault(label, []).extend(yaml.safe_load(line))
        elif line.startswith("# "):
            label = line[2:]
    return found


def test_the_readme_lists_every_file_and_no_other():
    readme = (EXPERIMENTS / "README.md").read_text()
    assert sorted(re.findall(r"^\| `(\w+)\.yaml` \|", readme, flags=re.MULTILINE)) == NAMES


def given(name, folder):
    """The settings that an experiment leaves to the command line: for MaskBench a folder of 600 cases, for the official
    suite one of 1,000.
    """
    if name == "json_schema_suite":
        (folder / "draft7").mkdir()
        (folder / "draft7" / "many.json").write_text(json.dumps([{"schema": True, "tests": []}] * 1_000))
        return {"suite": str(folder)}
    if name not in ("maskbench", "maskbench_fresh"):
        return {}
    for number in range(600):
        (folder / f"case{number:03}.json").write_text('{"schema": true, "tests": []}')
    return {"data": str(folder)}


def loadable(name):
    """A mark for an experiment that needs a package that not every installation has."""
    marks = [needs_smollm2] if name in ("canonicity", "families") else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [loadable(name) for name in NAMES])
def test_experiments_load_and_readme_counts_their_items(name, tmp_path):
    config = load_config(EXPERIMENTS / f"{name}.yaml", given(name, tmp_path))
    assert config.name == name
    assert config.question.endswith("?")
    readme = (EXPERIMENTS / "README.md").read_text()
    row = re.search(rf"^\| `{name}\.yaml` \| .* \| (\d+) \|", readme, flags=re.MULTILINE)
    assert row, "the README has no row for it"
    assert len(expand(config)) == int(row.group(1))


def test_the_benchmark_says_that_it_needs_data():
    with pytest.raises(ConfigError, match=r"maskbench needs a folder of cases.*--set data=DIR"):
        load_config(EXPERIMENTS / "maskbench.yaml")


def test_our_schemas_are_as_many_as_the_readme_says():
    said = re.findall(r"(\d+) JSON schemas of our own", (EXPERIMENTS / "README.md").read_text())
    assert set(map(int, said)) == {len(read_cases(EXPERIMENTS / "inputs" / "schemas"))}


def test_the_example_in_the_readme_is_an_experiment(tmp_path):
    example = re.search(r"```yaml\n(.*?)```", (EXPERIMENTS / "README.md").read_text(), flags=re.DOTALL).group(1)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "regexes.yaml").write_text(REGEXES.read_text())
    (tmp_path / "example.yaml").write_text(example)
    config = load_config(tmp_path / "example.yaml")
    assert len(config.backends) == 3
    assert len(config.constraints) == 4


@pytest.mark.parametrize("label", regexes())
def test_sample_texts_match_their_regex(label):
    pattern = regex.compile(regexes()[label])
    assert all(pattern.fullmatch(text, timeout=10) for text in texts()[label])


def test_the_regexes_have_the_published_numbers_of_states():
    # the cheap ones; outlines-core takes 0.05 to 0.4 s for each on this vocabulary, and seconds for the others
    from outlines_core import Index, Vocabulary

    ranks: dict[bytes, list[int]] = {}
    for line in (files("llama_models") / "llama3" / "tokenizer.model").read_bytes().splitlines():
        token, rank = line.split()
        ranks.setdefault(base64.b64decode(token), []).append(int(rank))
    vocabulary = Vocabulary(128_009, ranks)
    said = dict(re.findall(r"label: (\w+)  # (\d+) states", REGEXES.read_text()))
    assert len(said) == 11
    for label in ("email", "simple_phone", "date", "time", "ip", "simple_json"):
        assert len(Index(regexes()[label], vocabulary).get_transitions()) == int(said[label])
