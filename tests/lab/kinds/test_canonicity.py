"""``kind: canonicity`` on small settings: its rows, what must hold between them, and what the report says."""

import json

import pytest

from tests.lab.kinds.telling import Told
from tests.vocabulary.tokenizer_files import byte_level
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds import canonicity
from tokdfa.lab.kinds.canonicity import KIND, measure
from tokdfa.lab.measure.trained_tokenizers import train_tokenizer
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

SMALL = {"judge": 300, "repeats": 2, "masks": 5, "trained_size": 1_200}
BUILD = ["rules", "derivations", "merge tree", "interval lists", "total"]


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    """A byte-level tokenizer with some 1,200 tokens and no isolated ones."""
    return train_tokenizer("byte_level", tmp_path_factory.mktemp("trained") / "tokenizer.json", 1_200, 1_500, seed=1)


@pytest.fixture(scope="module")
def rows(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonicity, "TRAINING_TEXTS", 1_500)
        return measure({"tokenizer": name, **SMALL, "replay": [name], "trained": name}, seed=2)


def group(rows, tokenizer, wanted):
    return {row["name"]: row["value"] for row in rows if (row["tokenizer"], row["group"]) == (tokenizer, wanted)}


def test_rows(rows, name):
    labels = [name, "trained byte_level", "trained metaspace"]
    assert list(dict.fromkeys(row["tokenizer"] for row in rows)) == labels
    assert {row["status"] for row in rows} == {"ok"}
    assert all(row["value"] > 0 for row in rows if row["unit"] == "s")
    for label in labels:
        assert list(group(rows, label, "build")) == BUILD[:2] + ["byte fallback"] * ("metaspace" in label) + BUILD[2:]
        assert list(group(rows, label, "disk")) == ["write", "load", "verify", "file"]
        for kind in ("pieces", "texts"):
            found = group(rows, label, kind)
            assert found["judged"] == 300 == found["proper"] + found["improper"]
            assert (found["mismatches"], found["disputed"]) == (0, 0)
    made, counts = load_canonicity(load_tokenizer(name)), group(rows, name, "count")
    assert (counts["rules"], counts["states"]) == (len(made.rules), made.lists.state_count)
    assert counts["most forbidden"] == made.forbidden_counts.max()
    assert counts["largest list"] >= counts["mean list"] > 0
    forbidden = [row["value"] for row in rows if row["tokenizer"] == name and row["group"] == "forbidden"]
    assert len(forbidden) == 101
    assert forbidden == sorted(forbidden)
    assert not group(rows, "trained byte_level", "replay")
    replay = group(rows, name, "replay")
    assert (replay["rows that differ"], replay["rules left out"]) == (0, 0)
    assert replay["rows compared"] == load_tokenizer(name).vocabulary.size


def test_what_is_told(rows, name):
    told = Told(KIND, rows)
    assert told.sentences[0].startswith("1,800 sequences judged as pieces and as texts with 3 tokenizers: 0 mismatches")
    assert f"{name}: the published replay of" in told.sentences[1]
    for table, unit in (("times", "s"), ("memory", "B"), ("counts", "")):
        shown = told.tables[f"canonicity_{table}"].set_index(["group", "figure"])[name].dropna()
        of_unit = {
            (row["group"], row["name"]): row["value"]
            for row in rows
            if (row["tokenizer"], row["unit"]) == (name, unit) and row["group"] != "forbidden"
        }
        assert shown.to_dict() == pytest.approx({key: value for key, value in of_unit.items() if value is not None})
    assert "canonicity_not_measured" not in told.tables
    assert all(points for panels in told.panels.values() for points in panels.values())


def test_what_cannot_be_measured_is_a_row(tmp_path, monkeypatch):
    """A tokenizer of bytes alone has no pre-tokenizer; isolated tokens are cut out of texts first; time runs out; a
    reference that calls everything improper.
    """
    rows = measure({"tokenizer": "bytes", **SMALL}, seed=0)
    assert set(group(rows, "bytes", "mask")) == {"pair"}  # no token forbids another
    table = Told(KIND, rows).texts("canonicity_not_measured")
    assert table[0][:3] == ["bytes", "texts", "error"]
    assert "without a pre-tokenizer" in table[0][3]

    monkeypatch.setattr("tokdfa.lab.measure.judge.CHUNK", 50)
    monkeypatch.setattr("tokdfa.lab.measure.judge.reproduces", lambda *given: False)
    isolated = f"hf:{byte_level(tmp_path / 'tokenizer.json')}"
    told = Told(KIND, measure({"tokenizer": isolated, **SMALL, "judge": 10**7, "seconds": 0.05}, 0))
    lost = {line[1]: line[2:] for line in told.texts("canonicity_not_measured")}
    assert lost["pieces"][0] == "timeout"
    assert "of 10000000 sequences were judged in 0.05 s" in lost["pieces"][1]
    assert lost["texts"][0] == "unsupported"
    assert all("proper, but the reference says improper" in line[-1] for line in told.texts("canonicity_mismatches"))
    assert ": 0 mismatches" not in told.sentences[0]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"judge": -1}, OptionError, "settings.judge: input should be greater than or equal to 0"),
        ({"replay": ["mistral"]}, UnknownNameError, "no tokenizer 'mistral'; did you mean 'mistral-v1'"),
        ({"label": "digits", "regex": "[0-9]"}, OptionError, "takes tokenizers, and no constraints"),
    ],
)
def test_faults_name_the_key(settings, error, message):
    with pytest.raises(error, match=message):
        measure({"tokenizer": "bytes", **settings}, seed=0)


def test_trained_metaspace(tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer = load_tokenizer(train_tokenizer("metaspace", path, 1_100, 1_000, seed=0))
    assert tokenizer.vocabulary.size == 1_100
    assert {entry["special"] for entry in json.loads(path.read_text())["added_tokens"]} == {True}
    assert tokenizer.merges.byte_tokens is not None
    for text in ("", " a  b", "naïve 日本語\n\t\U0001f389", "it's 123"):
        assert tokenizer.spell(tokenizer.encode(text)) == text.encode()
