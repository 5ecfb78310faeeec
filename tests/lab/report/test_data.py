from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.report.synthetic import FakeRun, backend_run, config
from tokdfa.lab.report.data import RunData, paired_ratio, ratio_of_row
from tokdfa.lab.report.metrics import MEMORY_RESOLUTION, METRICS, RETAINED_RESOLUTION

FOLDER = Path("made-up")


def test_ratios_are_paired_case_by_case():
    data = RunData.read(backend_run(FOLDER))
    values = data.case_values(METRICS["compile"])
    assert values.shape == (8, 5)
    ratio = paired_ratio(values, METRICS["compile"], "token_index", "outlines_core")
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high, ratio.cases) == (
        pytest.approx(8),
        pytest.approx(8),
        pytest.approx(8),
        8,
    )
    # unpaired medians of different cases would give another number: the reference is given only the dear constraints
    masked = values.copy()
    masked.iloc[:4, list(masked.columns).index("outlines_core")] = np.nan
    ratio = paired_ratio(masked, METRICS["compile"], "token_index", "outlines_core")
    assert ratio is not None
    assert (ratio.median, ratio.cases) == (pytest.approx(8), 4)
    assert masked["outlines_core"].median() / masked["token_index"].median() > 10


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.tuples(st.floats(1e-6, 1e3) | st.none(), st.floats(1e-6, 1e3) | st.none()), max_size=12))
def test_paired_ratio_is_that_of_a_plain_loop(pairs):
    values = pd.DataFrame(pairs, columns=["mine", "theirs"], dtype="float64")
    ratio = paired_ratio(values, METRICS["compile"], "mine", "theirs")
    plain = sorted(theirs / mine for mine, theirs in pairs if mine is not None and theirs is not None)
    if not plain:
        assert ratio is None
    else:
        middle = (plain[(len(plain) - 1) // 2] + plain[len(plain) // 2]) / 2
        assert ratio == pytest.approx((middle, plain[0], plain[-1], len(plain)))


def test_no_ratio_without_a_reference_to_itself_or_from_zero():
    values = pd.DataFrame({"mine": [0.0, 2.0], "theirs": [1.0, 4.0]})
    compile_time = METRICS["compile"]
    assert paired_ratio(values, compile_time, "mine", None) is None
    assert paired_ratio(values, compile_time, "mine", "mine") is None
    ratio = paired_ratio(values, compile_time, "mine", "theirs")
    assert ratio is not None
    assert (ratio.median, ratio.cases) == (2.0, 1)
    assert ratio_of_row(values.iloc[0], compile_time, "mine", "theirs") is None


@pytest.mark.parametrize(
    ("metric", "resolution"), [("memory_retained", RETAINED_RESOLUTION), ("memory_peak", MEMORY_RESOLUTION)]
)
def test_memory_below_the_resolution_counts_as_the_resolution(metric, resolution):
    values = pd.DataFrame({"mine": [0.0, 10.0], "theirs": [50 * resolution, 20.0]})
    ratio = paired_ratio(values, METRICS[metric], "mine", "theirs")
    assert ratio is not None
    assert (ratio.low, ratio.high, ratio.cases) == (1.0, 50.0, 2)


def test_only_items_that_succeeded_are_compared():
    run = backend_run(FOLDER, fail={("glrmask", "url"): ("wrong_refusal", "no")})
    item = run.frames["items"]["status"] == "wrong_refusal"
    run.frames["items"].loc[item, "compile_s"] = 1e-9  # measured before it failed; must not count
    data = RunData.read(run)
    values = data.case_values(METRICS["compile"])
    assert values["glrmask"].isna().sum() == 2
    assert len(data.failures) == 2
    assert set(data.samples_of("mask")["label"]) == set(data.labels)


def test_sample_quantiles_are_those_of_numpy():
    run = backend_run(FOLDER, constraints=("email",), tokenizers=(("small", 32_000),))
    data = RunData.read(run)
    samples = run.samples()
    mine = samples[(samples["item_id"] == "small/0/random_walk/glrmask") & (samples["measure"] == "mask")]
    for name, quantile in (("mask_p50", 50), ("mask_p90", 90), ("mask_p99", 99), ("mask_max", 100)):
        expected = np.percentile(mine["ns"].to_numpy(), quantile) * 1e-9
        assert data.case_values(METRICS[name])["glrmask"].iloc[0] == pytest.approx(expected)


def test_the_reference_is_a_label_or_a_backend():
    by_label = RunData.read(backend_run(FOLDER, reference="token_index lazy"))
    assert by_label.reference == "token_index lazy"
    run = backend_run(FOLDER, reference="token_index")
    run.frames["items"] = run.frames["items"].query("label != 'token_index'").reset_index(drop=True)
    assert RunData.read(run).reference == "token_index lazy"
    for reference in ("", None, "nobody"):
        assert RunData.read(backend_run(FOLDER, reference=reference)).reference is None


def test_order_is_that_of_the_experiment():
    data = RunData.read(backend_run(FOLDER, constraints=("z", "a", "m")))
    assert data.labels == ["token_index", "token_index lazy", "llguidance", "outlines_core", "glrmask"]
    assert data.constraints == ["z", "a", "m"]
    assert data.tokenizers == ["small", "large"]
    assert list(data.case_values(METRICS["compile"]).index.get_level_values("constraint")) == ["z", "a", "m"] * 2


def test_a_run_without_anything_is_empty_not_broken():
    data = RunData.read(FakeRun(FOLDER, config(), {}))
    assert data.labels == []
    assert data.reference is None
    assert data.case_values(METRICS["compile"]).empty
    assert data.case_values(METRICS["mask_p50"]).empty
    assert data.samples_of("mask").empty
