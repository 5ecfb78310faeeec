from __future__ import annotations

import subprocess
import sys

from tests.lab.run.experiments import experiment
from tokdfa.lab.config.expand import expand, expand_groups
from tokdfa.lab.run.plan import describe
from tokdfa.lab.run.store import RunStore

AXES = {
    "constraints": [{"label": "a", "choice": ["a"]}, {"label": "b", "choice": ["b"]}],
    "workloads": [{"kind": "random_walk", "walks": 1}, {"kind": "strings", "texts": ["a"]}],
}


def test_items_are_the_product_in_the_experiments_order(tmp_path):
    config = experiment(tmp_path, "fake", {"name": "fake", "options": {"tag": [1, 2]}}, **AXES)
    items = expand(config)
    assert [(item.constraint.label, item.workload.kind, item.label) for item in items] == [
        (constraint, workload, label)
        for constraint in "ab"
        for workload in ("random_walk", "strings")
        for label in ("fake", "fake tag=1", "fake tag=2")
    ]
    assert len({item.item_id for item in items}) == 12
    groups = expand_groups(config)
    assert [item for group in groups for item in group.items] == items
    assert [len(group.items) for group in groups] == [3, 3, 3, 3]
    assert [group.file_name for group in groups] == sorted(group.file_name for group in groups)
    assert groups[1].title == "bytes / a / strings 1"


def test_all_of_a_group_share_a_seed_that_depends_on_its_own_axes_only(tmp_path):
    config = experiment(tmp_path, "fake", "fake_peer", **AXES)
    seeds = [{item.seed for item in group.items} for group in expand_groups(config)]
    assert all(len(seed) == 1 for seed in seeds)
    assert len(set.union(*seeds)) == 4
    # another backend, measure or constraint beside it changes no walk; a label is only a name
    narrower = experiment(
        tmp_path,
        "fake",
        constraints=[{"label": "renamed", "choice": ["b"]}],
        workloads=AXES["workloads"],
        measures=["mask"],
    )
    assert [{item.seed} for item in expand(narrower)] == seeds[2:]
    other = experiment(tmp_path, "fake", "fake_peer", **AXES, seed=1)
    assert not {item.seed for item in expand(other)} & set.union(*seeds)


def test_expansion_does_not_depend_on_the_process(tmp_path):
    experiment(tmp_path, {"name": "token_index", "options": {"lazy": [True, False]}}, **AXES)
    script = (
        "import sys; from tokdfa.lab.config.resolve import load_config; from tokdfa.lab.config.expand import expand;"
        "print([(item.item_id, item.seed) for item in expand(load_config(sys.argv[1]))])"
    )
    found = {
        subprocess.check_output(
            [sys.executable, "-c", script, str(tmp_path / "e.yaml")], env={"PYTHONHASHSEED": salt}, text=True
        )
        for salt in ("1", "2")
    }
    assert len(found) == 1
    assert found.pop().count("(") == 8


def test_a_plan_counts_what_is_left(tmp_path):
    config = experiment(tmp_path, "fake", "fake_peer", **AXES)
    plan = describe(config)
    assert (plan.items, plan.groups, plan.finished) == (8, 4, 0)
    assert plan.seconds == 8 * 2
    assert not plan.folder.exists()  # describing leaves nothing behind
    timed = describe(config.model_copy(update={"minutes": 4}))
    assert "about 4 min to go, as its file says" in str(timed)
    assert "8 items in 4 groups (1 tokenizer x 2 constraints x 2 workloads x 2 backends); 0 finished" in str(plan)

    store, group = RunStore.locate(config), expand_groups(config)[0]
    store.create(config)
    store.write_group(group, {"items": [{"item_id": item.item_id, "seconds": 10.0} for item in group.items]})
    plan = describe(config)
    assert (plan.finished, plan.seconds) == (2, 60.0)
    assert "about 60 s to go, from the groups measured so far" in str(plan)
    assert describe(config, tmp_path / "elsewhere").finished == 0
    for group in expand_groups(config):
        store.write_group(group, {"items": [{"item_id": item.item_id} for item in group.items]})
    assert "nothing is left to do" in str(describe(config))
    fresh = describe(config, fresh=True)
    assert (fresh.finished, fresh.seconds) == (0, 16.0)
    next((store.folder / "items").iterdir()).write_bytes(b"damaged")
    assert describe(config, fresh=True) == fresh  # what is damaged is dropped, not read
