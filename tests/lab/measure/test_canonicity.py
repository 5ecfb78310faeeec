"""The experiment ``canonicity`` on small settings: its rows, what must hold between them, and what it refuses."""

from __future__ import annotations

import json
import math
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.vocabulary.tokenizer_files import byte_level, rank_file
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds import canonicity
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

SMALL = {"judge": 600, "repeats": 2, "processes": 1, "masks": 5, "trained_size": 1_200}
BUILD = ["rules", "derivations", "forest", "interval lists", "total"]
STEPS = ["tokenizer", "canonicity", "marked language"]


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level tokenizer with some 1,200 tokens and no isolated ones."""
    return train_tokenizer("byte_level", tmp_path_factory.mktemp("trained") / "tokenizer.json", 1_200, 1_500, seed=1)


@pytest.fixture(scope="module")
def rows(name: str) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonicity, "TRAINING_TEXTS", 1_500)
        return canonicity.run_item({"tokenizer": name, **SMALL, "replay": [name], "trained": name}, seed=2)


def group(rows: list[dict[str, Any]], tokenizer: str, wanted: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows if (row["tokenizer"], row["group"]) == (tokenizer, wanted)}


def test_every_group_is_measured(rows: list[dict[str, Any]], name: str) -> None:
    labels = [name, "trained byte_level", "trained metaspace"]
    assert list(dict.fromkeys(row["tokenizer"] for row in rows)) == labels
    assert {row["status"] for row in rows} == {"ok"}
    assert len({tuple(row) for row in rows}) == 1  # the same columns everywhere
    for label in labels:
        assert list(group(rows, label, "build")) == BUILD[:2] + ["byte fallback"] * ("metaspace" in label) + BUILD[2:]
        assert list(group(rows, label, "disk")) == ["write", "load", "verify", "file"]
        names = [f"{step} from {where}" for where in ("scratch", "the disk") for step in STEPS]
        assert list(group(rows, label, "new process")) == names
        assert set(group(rows, label, "memory")) == {"peak", "canonicity", "marked language"}
        for row in rows:
            if row["tokenizer"] == label and row["unit"] == "s":
                assert row["value"] > 0, row
    build = group(rows, name, "build")
    assert all(row["samples"] == 2 for row in build.values())
    assert group(rows, name, "disk")["file"]["value"] > group(rows, name, "memory")["canonicity"]["value"]


def test_counts_are_those_of_the_tokenizer(rows: list[dict[str, Any]], name: str) -> None:
    made, counts = load_canonicity(load_tokenizer(name)), group(rows, name, "count")
    assert counts["rules"]["value"] == len(made.rules)
    assert counts["states"]["value"] == made.lists.state_count
    assert counts["most forbidden"]["value"] == made.forbidden_counts.max()
    assert counts["most forbidden"]["note"] == "' '"
    assert counts["largest list"]["value"] >= counts["mean list"]["value"] > 0
    assert counts["marked states"]["value"] == 1437
    forbidden = [row for row in rows if row["tokenizer"] == name and row["group"] == "forbidden"]
    assert [row["at"] for row in forbidden] == pytest.approx([k / 100 for k in range(101)])
    values = [row["value"] for row in forbidden]
    assert values == sorted(values)
    assert values[-1] == made.forbidden_counts.max()


def test_verdicts_agree(rows: list[dict[str, Any]], name: str) -> None:
    for label in (name, "trained byte_level", "trained metaspace"):
        for kind in ("pieces", "texts"):
            found = {key: row["value"] for key, row in group(rows, label, kind).items()}
            assert found["judged"] == 600 == found["proper"] + found["improper"]
            assert (found["mismatches"], found["disputed"]) == (0, 0)
            assert "example" not in found
            assert found["our seconds"] + found["reference seconds"] < found["seconds"]
    assert not group(rows, "trained byte_level", "replay")
    replay = {key: row["value"] for key, row in group(rows, name, "replay").items()}
    assert replay["rows that differ"] == 0
    assert replay["rules left out"] == 0
    assert replay["rows compared"] == load_tokenizer(name).vocabulary.size


def test_no_pre_tokenizer_has_no_marked_language() -> None:
    """A tokenizer of bytes alone: nothing merges, and its texts cannot be judged, which is a row."""
    rows = canonicity.run_item({"tokenizer": "bytes", **SMALL, "processes": 1}, seed=0)
    assert list(group(rows, "bytes", "new process")) == [
        f"{step} from {where}" for where in ("scratch", "the disk") for step in STEPS[:2]
    ]
    (failure,) = group(rows, "bytes", "texts").values()
    assert (failure["status"], failure["value"]) == ("error", None)
    assert "without a pre-tokenizer" in failure["message"]
    assert group(rows, "bytes", "pieces")["mismatches"]["value"] == 0
    assert "marked states" not in group(rows, "bytes", "count")
    assert set(group(rows, "bytes", "mask")) == {"pair", "pair judged"}  # no token forbids another


def test_isolated_tokens_and_time_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"hf:{byte_level(tmp_path / 'tokenizer.json')}"
    rows = canonicity.run_item({"tokenizer": name, **SMALL, "processes": 0}, seed=0)
    failures = {row["group"]: row["message"] for row in rows if row["status"] != "ok"}
    assert set(failures) == {"mask", "pieces", "texts"}
    assert all("isolated tokens cannot be judged" in message for message in failures.values())
    monkeypatch.setattr("tokdfa.lab.measure.judge_draws.CHUNK", 50)
    ranks = f"tiktoken:{rank_file(tmp_path / 'ranks', {b'ab': 256})}?pattern=gpt2"
    settings = {**SMALL, "judge": 10_000_000, "seconds": 0.05, "processes": 0}
    rows = canonicity.run_item({"tokenizer": ranks, **settings}, seed=0)
    unfinished = group(rows, ranks, "texts")["unfinished"]
    assert unfinished["status"] == "timeout"
    assert "of 10000000 sequences were judged in 0.05 s" in unfinished["message"]
    assert not group(rows, ranks, "new process")


def test_a_new_process_that_fails_is_a_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonicity, "_NEW_PROCESS", "raise SystemExit('no luck')")
    rows = canonicity.run_item({"tokenizer": name, **SMALL}, seed=0)
    (failure,) = group(rows, name, "new process").values()
    assert failure["status"] == "error"
    assert "no luck" in failure["message"]


def test_a_large_table_is_not_replayed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonicity, "MAX_REPLAY_BYTES", 1_000)
    rows = canonicity.run_item({"tokenizer": name, **SMALL, "processes": 0, "replay": [name]}, seed=0)
    (failure,) = group(rows, name, "replay").values()
    assert failure["status"] == "memory"
    assert "the replay's table would have" in failure["message"]


def test_mismatches_are_rows_and_no_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that calls everything improper."""
    monkeypatch.setattr(
        "tokdfa.lab.measure.judge_draws.reference_on_pieces",
        lambda made, sequences: made.usable[: len(sequences)] & False,
    )
    rows = canonicity.run_item({"tokenizer": name, **SMALL, "processes": 0}, seed=0)
    pieces = group(rows, name, "pieces")
    assert pieces["mismatches"]["value"] > 200
    examples = [row["note"] for row in rows if row["group"] == "pieces" and row["name"] == "example"]
    assert len(examples) == 5
    assert all("proper, but the reference says improper" in example for example in examples)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": -1}, "settings.judge: input should be greater than or equal to 0"),
        ({"repeats": 0}, "settings.repeats"),
        ({"judges": 1}, "settings.judges: extra inputs are not permitted"),
        ({"replay": "mistral-v1"}, "settings.replay: input should be a valid list"),
        ({"trained": True}, "settings.trained: input should be a valid string"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        canonicity.check_settings(settings)
    for unknown in ({"replay": ["mistral"]}, {"trained": "mistral"}):
        with pytest.raises(UnknownNameError, match="no tokenizer 'mistral'; did you mean 'mistral-v1'"):
            canonicity.check_settings(unknown)


def test_constraints_are_refused() -> None:
    for settings in ({}, {"tokenizer": "bytes", "label": "digits", "regex": "[0-9]"}):
        with pytest.raises(OptionError, match="takes tokenizers, and no constraints"):
            canonicity.run_item(settings, seed=0)


@pytest.mark.parametrize("kind", TRAINED)
def test_trained_tokenizers(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = load_tokenizer(train_tokenizer(kind, path, 1_100, 1_000, seed=0))
    content = json.loads(path.read_text())
    assert tokenizer.vocabulary.size == 1_100
    assert {entry["special"] for entry in content["added_tokens"]} == {True}
    assert tokenizer.merges.isolated == ()
    assert (tokenizer.merges.byte_tokens is not None) == (kind == "metaspace")
    for text in ("", " a  b", "naïve 日本語\n\t\U0001f389", "it's 123"):
        assert tokenizer.spell(tokenizer.encode(text)) == text.encode()


def test_the_new_process_is_a_program(name: str) -> None:
    """What it prints are three times in the order of the steps."""
    import sys

    run = subprocess.run([sys.executable, "-c", canonicity._NEW_PROCESS, name], capture_output=True, check=True)
    times = json.loads(run.stdout)
    assert len(times) == len(STEPS)
    assert all(value > 0 and math.isfinite(value) for value in times)
