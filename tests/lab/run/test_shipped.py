"""The experiments that come with the package, found by name; what they name and is not installed."""

from __future__ import annotations

import pytest

from tests.lab.run.experiments import experiment
from tokdfa.backends import registry
from tokdfa.errors import UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.config.shipped import Missing, find_experiment, missing_packages, shipped_experiments
from tokdfa.lab.config.yaml_source import read_yaml


def test_a_bare_name_is_a_shipped_experiment_unless_there_is_such_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quickstart = find_experiment("quickstart")
    assert quickstart == shipped_experiments()["quickstart"]
    assert load_config("quickstart").source == quickstart
    for path in ("quickstart.yaml", "./quickstart.yaml", "elsewhere/quickstart", tmp_path / "quickstart"):
        assert str(find_experiment(path)) == str(path).removeprefix("./")
    with pytest.raises(UnknownNameError, match="did you mean 'quickstart'"):
        find_experiment("quickstat")
    (tmp_path / "quickstart").touch()
    assert str(find_experiment("quickstart")) == "quickstart"


def test_results_of_an_installed_experiment_go_to_the_current_folder(tmp_path, monkeypatch):
    config = experiment(tmp_path, "fake")
    assert config.results_folder == tmp_path / "results"
    monkeypatch.setattr("tokdfa.lab.config.experiment.installed_folder", lambda: tmp_path)
    assert str(config.results_folder) == "results"


def test_every_shipped_experiment_says_what_it_asks_and_how_long_it_takes():
    assert len(shipped_experiments()) > 30
    for name, path in shipped_experiments().items():
        data = read_yaml(path).data
        assert data["name"] == name
        assert data["question"].endswith("?")
        assert 0 < data["minutes"] <= 360


def test_what_is_missing_is_named_once_with_what_installs_it(monkeypatch):
    everything = {
        "name": "llguidance",  # the experiment's own
        "tokenizers": ["bytes", "llama3", "hf:/a/file.json"],
        "backends": ["token_index", {"name": "llguidance", "label": "outlines_core"}, "no such backend"],
        "settings": {
            "models": [{"name": "ngram?order=3", "tokenizer": "smollm2"}, "hf:NAME"],
            "skew": {"engines": [{"backend": "glrmask", "options": {"name": "xgrammar"}}, {"backend": "llguidance"}]},
        },
    }
    assert not {one.name for one in missing_packages({"tokenizers": ["bytes"], "models": ["ngram"]})}
    monkeypatch.setattr(registry, "installed_version", lambda package: None)
    monkeypatch.setattr("tokdfa.core.packages.is_importable", lambda package: False)
    assert missing_packages(everything)[:2] == [
        Missing("tokenizer", "llama3", ("pip install 'tokdfa[llama3]'",)),
        Missing("backend", "llguidance", ("pip install 'tokdfa[peers]'",)),
    ]
    assert [(one.what, one.name) for one in missing_packages(everything)[2:]] == [
        ("tokenizer", "smollm2"),
        ("model", "hf:NAME"),
        ("backend", "glrmask"),
    ]
