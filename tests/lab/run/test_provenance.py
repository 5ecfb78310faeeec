from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import tokdfa
from tests.lab.run.experiments import experiment
from tokdfa.backends import registry
from tokdfa.backends.registry import backend_class
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.measure.interpreters import code_fingerprint
from tokdfa.lab.run.provenance import PACKAGES, collect, differences, git_state


def test_all_that_is_needed_to_judge_a_number_is_there(tmp_path):
    config = experiment(tmp_path, "fake_peer", "token_index", seed=4)
    groups = expand_groups(config)
    found = json.loads(json.dumps(collect(config, groups)))
    assert found["tokdfa"] == tokdfa.__version__
    assert found["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert found["seeds"] == {"experiment": 4, "groups": {"000000": groups[0].items[0].seed}}
    assert found["environment"]["OMP_NUM_THREADS"] == "1"
    assert found["way"] == "served"
    assert found["code"] == code_fingerprint(Path(tokdfa.__file__).parent)
    assert {"machine", "python", "started", "ended", "git"} <= set(found)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    hooks = ["-c", "core.hooksPath=/dev/null"]
    done = subprocess.run(
        ["git", "-C", folder, *identity, *hooks, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_and_whether_it_was_changed(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("x = 1\n")
    assert git_state(package) is None  # no checkout
    git(tmp_path, "init", "-q")
    assert git_state(package) is None  # in a checkout, but no part of it
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_state(package) == {"commit": commit, "dirty": False}
    (tmp_path / "unrelated.txt").write_text("y")
    assert git_state(package) == {"commit": commit, "dirty": False}
    (package / "__init__.py").write_text("x = 2\n")
    assert git_state(package) == {"commit": commit, "dirty": True}


def test_the_peers_versions_are_kept_of_every_experiment():
    built_in = [backend_class(name).packages for name in registry.BUILT_IN if name not in ("fake", "fake_peer")]
    assert {package for packages in built_in for package in packages} <= set(PACKAGES)


def test_interpreters_apart_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(tokdfa.__file__).parents[1]))
    there, gone = sys.executable, str(tmp_path / "none")
    config = experiment(tmp_path, "token_index").model_copy(update={"pythons": {"syncode": there, "xgrammar": gone}})
    found = collect(config, expand_groups(config))
    apart = found["pythons"]["syncode"]
    assert (apart["path"], apart["python"], apart["code"]) == (there, found["python"], found["code"])
    assert apart["packages"] == found["packages"]
    assert found["pythons"]["xgrammar"]["missing"].startswith(f"there is no Python interpreter at {gone}")
    newer = json.loads(json.dumps(found))
    newer["pythons"]["syncode"]["packages"]["numpy"] = "9.9"
    (said,) = differences(found, newer)
    assert said == f"syncode's numpy was {found['packages']['numpy']} and is 9.9"
