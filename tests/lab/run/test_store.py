from __future__ import annotations

import subprocess
import sys

import pytest

from tests.lab.run.experiments import experiment
from tokdfa.core.stored_file import write_atomically
from tokdfa.errors import StoreError
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.run.store import COLUMNS, RunStore, open_run


@pytest.fixture
def config(tmp_path):
    constraints = [{"label": text, "choice": [text]} for text in "abc"]
    return experiment(tmp_path, "fake", "fake_peer", constraints=constraints)


@pytest.fixture
def store(config):
    store = RunStore.locate(config)
    store.create(config)
    return store


def rows(group, samples=3):
    return {
        "items": [{"item_id": item.item_id, "label": item.label, "status": "ok"} for item in group.items],
        "samples": [
            {"item_id": item.item_id, "measure": "mask", "step": step, "ns": 100 + step, "allowed": step or None}
            for item in group.items
            for step in range(samples)
        ],
    }


def test_rows_come_back_in_the_order_of_the_experiment(config, store):
    groups = expand_groups(config)
    for group in reversed(groups):
        store.write_group(group, rows(group))
    run = open_run(store.folder)
    items, samples = run.items(), run.samples()
    assert items["item_id"].tolist() == [item.item_id for group in groups for item in group.items]
    assert list(items.columns) == list(COLUMNS["items"])
    assert items["states"].isna().all()
    assert len(samples) == 18
    assert samples["ns"].tolist() == [100, 101, 102] * 6
    assert samples["allowed"].dtype == "Int32"  # counts stay whole numbers, missing ones stay missing
    assert samples["allowed"].isna().sum() == 6
    assert store.progress() == ({item.item_id: "ok" for group in groups for item in group.items}, None)


def test_an_empty_run_has_empty_frames_with_all_columns(store, config):
    run = open_run(store.folder)
    assert list(run.items().columns) == list(COLUMNS["items"])
    assert list(run.samples().columns) == list(COLUMNS["samples"])
    assert list(run.results().columns) == ["item_id"]
    assert run.provenance == {}
    assert run.config["name"] == "test"
    assert run.config["constraints"][0] == {"label": "a", "choice": ["a"]}


def test_results_may_have_other_columns_and_types_in_each_part(config, store):
    parts = (
        [{"item_id": "x", "n": 1, "s": None, "b": True}],
        [{"item_id": "y", "n": 2.5, "s": "text"}],
        [{"item_id": "z", "more": [1, 2], "s": 7, "b": 3}, {"item_id": "u", "more": {"b": 1, "a": [True]}, "s": "one"}],
    )
    for group, results in zip(expand_groups(config), parts, strict=True):
        store.write_group(group, {"items": rows(group)["items"], "results": results})
    results = open_run(store.folder).results()
    assert results["item_id"].tolist() == ["x", "y", "z", "u"]
    assert results["n"].tolist()[:2] == [1.0, 2.5]
    assert results["s"].tolist()[1:] == ["text", "7", "one"]  # what is of several types becomes text
    assert results["b"].tolist()[:3:2] == ["true", "3"]
    assert results["more"].tolist()[2:] == ["[1, 2]", '{"b": 1, "a": [true]}']


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_group_is_there_in_whole_or_not_at_all(config, store, monkeypatch, written):
    """Killed after so many of its three files."""
    group, left = expand_groups(config)[0], iter(range(written))
    tables = {**rows(group), "results": [{"item_id": group.items[0].item_id}]}

    def write(path, content):
        if next(left, None) is None:
            raise KeyboardInterrupt
        write_atomically(path, content)

    with monkeypatch.context() as patch:
        patch.setattr("tokdfa.lab.run.store.write_atomically", write)
        with pytest.raises(KeyboardInterrupt):
            store.write_group(group, tables)
    run = open_run(store.folder)
    assert store.progress() == ({}, None)
    assert run.samples().empty
    assert run.results().empty
    store.write_group(group, tables)
    run = open_run(store.folder)
    assert (len(run.items()), len(run.samples()), len(run.results())) == (2, 6, 1)


def test_what_a_killed_write_leaves_behind_is_removed(config, store):
    for place in (store.folder, store.folder / "items"):
        (place / "x.parquet.123.tmp").write_bytes(b"half")
    store.create(config)
    assert not list(store.folder.rglob("*.tmp"))


def damage(path, how):
    content = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "text":
        path.write_bytes(b"not a part at all")
    else:  # one bit of the first column's data: only a checksum can tell
        position = 40
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])


@pytest.mark.parametrize("how", ["empty", "cut", "text", "bit"])
@pytest.mark.parametrize("table", ["items", "samples"])
def test_a_damaged_part_is_named_with_the_remedy_and_the_remedy_works(config, store, table, how):
    first, second, _ = expand_groups(config)
    for group in (first, second):
        store.write_group(group, rows(group))
    bad = store.folder / table / f"{second.file_name}.parquet"
    damage(bad, how)
    run = open_run(store.folder)
    with pytest.raises(StoreError) as caught:
        getattr(run, table)()
    remedy = store.folder / "items" / bad.name
    assert str(caught.value).startswith(f"{bad} is damaged or edited (")
    assert f"delete {remedy} and start the run again" in str(caught.value)
    if table == "items":
        with pytest.raises(StoreError, match="is damaged"):
            store.progress()
    remedy.unlink()
    run = open_run(store.folder)
    assert len(run.items()) == 2
    assert len(run.samples()) == 6
    assert set(store.progress()[0]) == {item.item_id for item in first.items}


@pytest.mark.parametrize("name", ["config.yaml", "provenance.json"])
@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1, 2", b"3"])
def test_damaged_records_are_named(store, name, content):
    (store.folder / name).write_bytes(content)
    run = open_run(store.folder)
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        _ = run.config if name == "config.yaml" else run.provenance
    with pytest.raises(StoreError, match="is not a run folder"):
        open_run(store.folder / "items")


def test_an_edited_config_is_refused(config, store):
    path = store.folder / "config.yaml"
    store.create(config.model_copy(update={"question": "better?"}))  # another wording is taken over
    assert open_run(store.folder).config["question"] == "better?"
    path.write_text(path.read_text().replace("repeats: 2", "repeats: 3"))
    with pytest.raises(StoreError, match="edited"):
        store.create(config)
    store.create(config, fresh=True)
    assert "repeats: 2" in path.read_text()


def test_a_fresh_start_drops_what_was_measured_and_nothing_else(config, store):
    for group in expand_groups(config):
        store.write_group(group, rows(group))
    store.write_provenance({"a": 1})
    (store.folder / "report.html").write_text("mine")
    (store.folder / "items" / "notes.txt").write_text("mine")
    store.create(config, fresh=True)
    assert open_run(store.folder).items().empty
    assert store.read_provenance() is None
    assert (store.folder / "report.html").exists()
    assert (store.folder / "items" / "notes.txt").exists()


def test_two_runs_do_not_share_a_folder_and_a_killed_one_leaves_no_lock(store):
    script = (
        "import sys, time; from pathlib import Path; from tokdfa.lab.run.store import RunStore\n"
        "with RunStore(Path(sys.argv[1])).lock():\n    print('locked', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(store.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(StoreError, match="another run is writing"), store.lock():
            pass
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with store.lock():
        pass
