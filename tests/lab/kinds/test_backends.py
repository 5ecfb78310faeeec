"""What a comparison of backends says of samples whose statistics are known."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.lab.run.experiments import experiment, run_all
from tokdfa.lab.kinds.backends import KIND
from tokdfa.lab.report.contents import build_headlines
from tokdfa.lab.report.data import RunData
from tokdfa.lab.run.store import open_run

#: label -> (options, compile in s, nanoseconds of the masks, tokens that differ)
LABELS = {
    "memo": ({"memo": True}, 0.001, [100, 100, 400], 0),
    "plain": ({"memo": False}, 0.002, [300, 300, 1200], 0),
    "peer": ({}, 0.004, [200, 200, 200], 2),
}


def rows() -> pd.DataFrame:
    found = []
    for constraint, factor in (("a", 1), ("b", 10)):
        for label, (options, compile_s, masks, differs) in LABELS.items():
            item = {
                "item_id": f"{label} {constraint}", "label": label, "backend": label if label == "peer" else "ours",
                "options": json.dumps(options), "tokenizer": "t", "vocab_size": 100, "constraint": constraint,
                "workload": "w", "seed": 1, "status": "ok", "message": None, "compile_s": compile_s * factor,
                "first_mask_s": None, "memory_peak_bytes": None, "memory_retained_bytes": 100.0, "states": 5,
                "counters": json.dumps({"nodes_visited": 7 * factor, "lexeme_ends": 1}), "transitions": None,
                "constraint_kind": "regex",
            }  # fmt: skip
            found += [
                {
                    **item,
                    "measure": "mask",
                    "repeat": 0,
                    "step": step,
                    "ns": ns * factor,
                    "allowed": 60,
                    "differs": differs,
                }
                for step, ns in enumerate(masks)
            ]
    failed = {**found[-1], "item_id": "f", "constraint": "c", "status": "timeout", "measure": None, "ns": None}
    return pd.DataFrame([*found, failed]).assign(phases=json.dumps({"parse": 0.0004, "index": 0.0006}))


@pytest.fixture(scope="module")
def results():
    return KIND.results(rows(), {"parts": [{"part": "memory", "with": "memo", "without": "plain"}]}, "peer")


def table(results, name: str):
    return next(one.build(results) for one in KIND.tables if one.name == name)


def test_the_overview_pairs_case_by_case(results):
    overview = table(results, "overview")
    frame = overview.frame.set_index("backend")
    assert frame["done"].to_dict() == {"memo": "2/2", "plain": "2/2", "peer": "2/3"}
    assert frame["compile time"].to_dict() == pytest.approx({"memo": 0.0055, "plain": 0.011, "peer": 0.022})
    assert frame["compile time: ratio"]["memo"] == pytest.approx(4)
    assert frame["mean mask time: ratio"]["plain"] == pytest.approx(200 / 600)
    assert "peak memory" not in frame  # nothing was measured of it


def test_means_are_of_own_compiles_first_walks_and_all_masks(results):
    """0.4 ms of each compile are of the automaton over bytes, which all engines share."""
    frame = table(results, "means").frame.set_index(["what", "backend"])[["mean", "max", "of"]]
    assert frame.loc["compile, own", "memo"].tolist() == pytest.approx([(0.6e-3 + 9.6e-3) / 2, 9.6e-3, 2])
    assert frame.loc["first walk", "memo"].tolist() == pytest.approx([5.1e-3 + 3.3e-6, 9.6e-3 + 6e-6, 2])
    assert frame.loc["mask", "memo"].tolist() == pytest.approx([1.1e-6, 4e-6, 6])


def test_parts_and_options_say_what_they_buy(results):
    assert table(results, "parts").frame["mean mask time"].tolist() == [3.0]
    (row,) = table(results, "options").rows
    assert [cell.text for cell in row[:5]] == ["ours", "memo", "false", "true", "3.0x slower"]


def test_differences_are_counted(results):
    differing = table(results, "differences").frame
    assert differing["backend"].unique().tolist() == ["peer"]
    assert differing["tokens, max"].tolist() == [2, 2]


def test_what_a_library_knows_is_not_settled_again(tmp_path):
    """Counted: without parts all is settled when compiling, with parts on first masks, with a library before."""
    config = experiment(
        tmp_path,
        {"name": "cartesian_merge", "options": {"vegas": ["off", "parts", "library"]}},
        tokenizers=["mistral-v1"],
        constraints=[{"label": "lines", "regex": r"weight: [^\n]+\n", "texts": ["weight: two\n"]}],
        known=[{"regex": r"height: [^\n]+\n", "texts": ["height: 3 feet\n"]}],
        workloads=[{"kind": "texts"}],
        measures=["compile", "mask"],
    )
    _, items, _ = run_all(config, folder=tmp_path)
    assert {row["status"] for row in items.values()} == {"ok"}
    found = {label.partition("=")[2]: json.loads(row["counters"]) for label, row in items.items()}
    settled = {vegas: counters["settled_transitions"] for vegas, counters in found.items()}
    # without parts the first mask, made when compiling, settles what is not full; ends of lines still come
    assert settled["parts"] > 50_000 > 1_000 > settled["library"]
    assert len({counters["first_masks"] for counters in found.values()}) == 1
    assert items["cartesian_merge vegas=off"]["transitions"] > 50_000


def test_growth_is_told_against_what_grows(tmp_path):
    """On single bytes all engines have a state for each letter; a part of a vocabulary is a size, too."""
    config = experiment(
        tmp_path,
        *({"name": name, "options": {}} for name in ("token_index", "tokens_dfa")),
        tokenizers=["bytes"],
        constraints=[
            {"label": "letters", "regex": "[a-z]{n}", "n": [2, 4, 8, 16]},
            {"label": "digits", "regex": "[0-9]{3}", "tokenizers": [f"mistral-v1?first={n}" for n in (300, 400, 500)]},
        ],
        measures=["compile"],
    )
    summary, _, _ = run_all(config, folder=tmp_path)
    data = RunData.read(open_run(summary.folder))
    told = data.declared
    grown = told.rows("grown")
    sizes = grown[grown["label"] == "token_index"].groupby("against", sort=False)["size"].agg(list).to_dict()
    assert sizes == {"states": [3, 5, 9, 17], "vocabulary size": [301, 401, 501]}
    powers = table(told, "growth_transitions").frame
    assert powers["family"].tolist() == ["letters", "digits"]
    assert powers["token_index"].tolist() == pytest.approx([1.2, 0], abs=0.1)
    assert any(line.startswith("token_index: time grows with states to the power of") for line in build_headlines(data))


def test_a_token_is_told_against_the_length_of_a_text(tmp_path):
    """A list of numbers costs the same all along; who refuses the text has no rows there."""
    config = experiment(
        tmp_path,
        *({"name": name, "options": {}} for name in ("pushdown_trie", "token_index")),
        tokenizers=["bytes"],
        constraints=[{"label": "list", "grammar": 'start: N ("+" N)*\nN: /[0-9]+/', "texts": ["1", "+23"]}],
        workloads=[{"kind": "texts", "repeat": count} for count in (4, 8, 16, 32)],
        measures=["compile", "mask", "advance"],
    )
    summary, items, _ = run_all(config, folder=tmp_path)
    assert {(row["backend"], row["status"]) for row in items.values()} == {
        ("pushdown_trie", "ok"),
        ("token_index", "unsupported"),
    }
    told = RunData.read(open_run(summary.folder)).declared
    grown = told.rows("grown")
    assert grown["size"].tolist() == [4, 8, 16, 32]
    assert grown["token_mean"].min() > 0
    assert grown["own"].isna().all()
    assert table(told, "tokens").frame["workload"].tolist() == [f"{count} tokens" for count in (4, 8, 16, 32)]
    assert table(told, "growth_token").frame["family"].tolist() == ["list"]


def test_a_token_is_its_mask_and_its_advance_in_the_second_half_of_a_walk():
    given = rows()
    item = given[given["item_id"] == "memo a"].iloc[:1].assign(workload="4 tokens")
    walk = [("mask", [9, 9, 10, 20]), ("advance", [7, 7, 2, 4])]
    samples = [item.assign(measure=name, step=step, ns=ns) for name, all_ns in walk for step, ns in enumerate(all_ns)]
    found = KIND.results(pd.concat(samples), {}, "memo").rows("grown")
    assert found[["size", "token_mean"]].to_numpy().tolist() == [[4, 15 + 3]]
