"""The experiment ``canonicity`` on small settings: its rows, what must hold between them, and what the report says."""

import json

import pytest

from tests.lab.kinds.telling import Told
from tests.vocabulary.tokenizer_files import byte_level, rank_file
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds import canonicity
from tokdfa.lab.kinds.canonicity import KIND, measure
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

SMALL = {"judge": 600, "repeats": 2, "processes": 1, "masks": 5, "trained_size": 1_200}
BUILD = ["rules", "derivations", "merge tree", "interval lists", "total"]
STEPS = ["tokenizer", "canonicity", "marked language"]


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
    return {row["name"]: row for row in rows if (row["tokenizer"], row["group"]) == (tokenizer, wanted)}


def test_every_group_is_measured(rows, name):
    labels = [name, "trained byte_level", "trained metaspace"]
    assert list(dict.fromkeys(row["tokenizer"] for row in rows)) == labels
    assert {row["status"] for row in rows} == {"ok"}
    for label in labels:
        assert list(group(rows, label, "build")) == BUILD[:2] + ["byte fallback"] * ("metaspace" in label) + BUILD[2:]
        assert list(group(rows, label, "disk")) == ["write", "load", "verify", "file"]
        names = [f"{step} from {where}" for where in ("scratch", "the disk") for step in STEPS]
        assert list(group(rows, label, "new process")) == names
        assert set(group(rows, label, "memory")) == {"peak", "canonicity", "marked language"}
    assert all(row["value"] > 0 for row in rows if row["unit"] == "s")
    assert all(row["samples"] == 2 for row in group(rows, name, "build").values())
    assert group(rows, name, "disk")["file"]["value"] > group(rows, name, "memory")["canonicity"]["value"]


def test_counts_are_those_of_the_tokenizer(rows, name):
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


def test_verdicts_and_replay_agree(rows, name):
    for label in (name, "trained byte_level", "trained metaspace"):
        for kind in ("pieces", "texts"):
            found = {key: row["value"] for key, row in group(rows, label, kind).items()}
            assert found["judged"] == 600 == found["proper"] + found["improper"]
            assert (found["mismatches"], found["disputed"]) == (0, 0)
            assert found["our seconds"] + found["reference seconds"] < found["seconds"]
    assert not group(rows, "trained byte_level", "replay")
    replay = {key: row["value"] for key, row in group(rows, name, "replay").items()}
    assert (replay["rows that differ"], replay["rules left out"]) == (0, 0)
    assert replay["rows compared"] == load_tokenizer(name).vocabulary.size


def test_what_is_told(rows, name):
    told = Told(KIND, rows)
    assert told.sentences[0].startswith("3,600 sequences judged as pieces and as texts with 3 tokenizers: 0 mismatches")
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
    """A tokenizer of bytes alone has no pre-tokenizer; isolated tokens are cut out of texts first; time runs out."""
    rows = measure({"tokenizer": "bytes", **SMALL}, seed=0)
    assert len(group(rows, "bytes", "new process")) == 4  # no marked language
    (failure,) = group(rows, "bytes", "texts").values()
    assert (failure["status"], failure["value"]) == ("error", None)
    assert "without a pre-tokenizer" in failure["message"]
    assert set(group(rows, "bytes", "mask")) == {"pair", "pair judged"}  # no token forbids another
    assert Told(KIND, rows).texts("canonicity_not_measured")[0][:3] == ["bytes", "texts", "error"]

    name = f"hf:{byte_level(tmp_path / 'tokenizer.json')}"
    monkeypatch.setattr("tokdfa.lab.measure.canonicity_statistics._NEW_PROCESS", "raise SystemExit('no luck')")
    failures = {row["group"]: row["message"] for row in measure({"tokenizer": name, **SMALL}, 0) if row["message"]}
    assert "no luck" in failures.pop("new process")
    assert set(failures) == {"mask", "pieces", "texts"}
    assert all("isolated tokens cannot be judged" in message for message in failures.values())

    monkeypatch.setattr("tokdfa.lab.measure.judge_draws.CHUNK", 50)
    ranks = f"tiktoken:{rank_file(tmp_path / 'ranks', {b'ab': 256})}?pattern=gpt2"
    rows = measure({"tokenizer": ranks, **SMALL, "judge": 10_000_000, "seconds": 0.05, "processes": 0}, seed=0)
    unfinished = group(rows, ranks, "texts")["unfinished"]
    assert unfinished["status"] == "timeout"
    assert "of 10000000 sequences were judged in 0.05 s" in unfinished["message"]


def test_mismatches_are_rows_and_no_errors(name, monkeypatch):
    """A reference that calls everything improper."""
    wrong = "tokdfa.lab.measure.judge_draws.reference_on_pieces"
    monkeypatch.setattr(wrong, lambda made, sequences: made.usable[: len(sequences)] & False)
    rows = measure({"tokenizer": name, **SMALL, "processes": 0}, seed=0)
    assert group(rows, name, "pieces")["mismatches"]["value"] > 200
    told = Told(KIND, rows)
    assert len(told.tables["canonicity_mismatches"]) == 5
    assert all("proper, but the reference says improper" in line[-1] for line in told.texts("canonicity_mismatches"))
    assert ": 0 mismatches" not in told.sentences[0]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"judge": -1}, OptionError, "settings.judge: input should be greater than or equal to 0"),
        ({"judges": 1}, OptionError, "settings.judges: extra inputs are not permitted"),
        ({"trained": True}, OptionError, "settings.trained: input should be a valid string"),
        ({"replay": ["mistral"]}, UnknownNameError, "no tokenizer 'mistral'; did you mean 'mistral-v1'"),
        ({"label": "digits", "regex": "[0-9]"}, OptionError, "takes tokenizers, and no constraints"),
    ],
)
def test_faults_name_the_key(settings, error, message):
    with pytest.raises(error, match=message):
        measure({"tokenizer": "bytes", **settings}, seed=0)


@pytest.mark.parametrize("kind", TRAINED)
def test_trained_tokenizers(kind, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer = load_tokenizer(train_tokenizer(kind, path, 1_100, 1_000, seed=0))
    content = json.loads(path.read_text())
    assert tokenizer.vocabulary.size == 1_100
    assert {entry["special"] for entry in content["added_tokens"]} == {True}
    assert tokenizer.merges.isolated == ()
    assert (tokenizer.merges.byte_tokens is not None) == (kind == "metaspace")
    for text in ("", " a  b", "naïve 日本語\n\t\U0001f389", "it's 123"):
        assert tokenizer.spell(tokenizer.encode(text)) == text.encode()
