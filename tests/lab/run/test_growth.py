"""A run that engines join and leave: each is measured once, beside the reference, and nothing is lost or doubled."""

from __future__ import annotations

from tests.lab.run.experiments import experiment, run_all, trick
from tests.lab.run.test_interruption import complete
from tokdfa.lab.config.expand import expand
from tokdfa.lab.run import execute
from tokdfa.lab.run.plan import describe
from tokdfa.lab.run.store import open_run

TWO = {"constraints": [{"label": text, "choice": [text, text * 2]} for text in "ab"]}


def test_an_engine_that_joins_is_measured_alone_and_compared_with_the_reference(tmp_path):
    before, _, old = run_all(experiment(tmp_path, "fake", "fake_peer", **TWO, reference="fake"))
    # in front of the others, so its rows must be put in order; its masks are wider than the reference's
    grown = experiment(tmp_path, trick("wide"), "fake", "fake_peer", **TWO, reference="fake")
    assert (describe(grown).finished, describe(grown).items) == (4, 6)
    after = execute.run(grown)
    assert after.folder == before.folder
    assert (after.found, after.measured) == (4, 2)
    complete(grown, after)
    stored = open_run(after.folder)
    samples = stored.samples()
    new = set(stored.items().query("label == 'wide'")["item_id"])
    kept = samples[~samples["item_id"].isin(new)].reset_index(drop=True)
    assert kept.equals(old)
    masks = samples[samples["item_id"].isin(new) & (samples["measure"] == "mask")]
    assert masks["differs"].gt(0).all()
    at_once = open_run(execute.run(grown, tmp_path / "at once").folder)
    assert stored.items()["item_id"].tolist() == at_once.items()["item_id"].tolist()
    columns = ["item_id", "measure", "repeat", "step", "allowed", "differs"]  # all but the times: the same walks, too
    assert samples[columns].equals(at_once.samples()[columns])


def test_an_engine_that_leaves_is_not_reported_and_comes_back_as_it_was(tmp_path):
    both = experiment(tmp_path, "fake", "fake_peer", reference="fake")
    first, rows, samples = run_all(both)
    narrowed = experiment(tmp_path, "fake", reference="fake")
    second, left, _ = run_all(narrowed)
    assert second.folder == first.folder
    assert list(left) == ["fake"]
    third, again, same = run_all(experiment(tmp_path, "fake", "fake_peer", reference="fake"))
    assert third.measured == second.measured == 0
    assert again.keys() == rows.keys()
    assert same.equals(samples)


def test_an_engine_with_other_options_under_the_same_label_is_another(tmp_path):
    run_all(experiment(tmp_path, "fake", trick("honest", label="b", tag=1)))
    summary, rows, _ = run_all(experiment(tmp_path, "fake", trick("honest", label="b", tag=2)))
    assert (summary.found, summary.measured) == (1, 1)
    assert '"tag": 2' in rows["b"]["options"]


def test_another_reference_is_another_run(tmp_path):
    engines = ("fake", "fake_peer")
    first, second = (experiment(tmp_path, *engines, reference=label) for label in engines)
    assert first.fingerprint != second.fingerprint
    assert not {item.item_id for item in expand(first)} & {item.item_id for item in expand(second)}
    options = experiment(tmp_path, trick("honest", label="fake", tag=1), "fake_peer", reference="fake")
    assert options.fingerprint != first.fingerprint
