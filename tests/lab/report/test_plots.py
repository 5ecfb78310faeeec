from pathlib import Path

import numpy as np
import pytest

from tests.lab.report.synthetic import HOSTILE, LABELS, FakeRun, backend_run, config
from tokdfa.lab.report import plots, style
from tokdfa.lab.report.data import RunData

FOLDER = Path("made-up")


@pytest.fixture(scope="module")
def run():
    return backend_run(FOLDER, fail={("glrmask", "url"): ("timeout", "too slow")})


@pytest.fixture(scope="module")
def built(run):
    return {plot.name: plot for plot in plots.build_plots(RunData.read(run))}


def bars_of(axes):
    """Rows of bars from the top: (place, end)."""
    return sorted((bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in axes.patches)


def test_all_plots_are_drawn(built):
    names = ["mask_ecdf", "compile_1_small", "compile_2_large", "memory", "cost_states", "cost_vocabulary"]
    assert list(built) == names
    assert all(plot.figure is not None and not plot.reason for plot in built.values())


def test_ecdf_curves_are_the_sorted_samples(run, built):
    samples = run.samples().merge(run.items()[["item_id", "label", "tokenizer"]], on="item_id")
    axes = built["mask_ecdf"].figure.axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_title(loc="left") == "small (32,000 tokens)"
    assert len(axes.lines) == len(LABELS)
    colours = style.looks(LABELS)
    for label, line in zip(LABELS, axes.lines, strict=True):
        assert line.get_color() == colours[label].colour
        mine = np.sort(samples.query("measure == 'mask' and tokenizer == 'small' and label == @label")["ns"]) * 1e-9
        for time, share in zip(line.get_xdata(), line.get_ydata(), strict=True):
            at_most = np.searchsorted(mine, time * (1 + 1e-12), side="right") / len(mine)
            below = np.searchsorted(mine, time * (1 - 1e-12), side="left") / len(mine)
            assert below - 1e-9 <= share <= at_most + 1e-9


def test_compile_bars_have_lengths_and_ratios(built):
    axes = built["compile_1_small"].figure.axes[0]
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["email", "date", "url", "yes or no"]
    # four constraints and five labels, less the failed one
    widths = [width for _, width in bars_of(axes)]
    expected = [
        number * 0.1 / factor
        for number in (1, 2, 3, 4)
        for label, factor in (("t", 8), ("l", 400), ("g", 900), ("o", 1), ("m", 0.5))
        if (number, label) != (3, "m")
    ]
    assert widths == pytest.approx(expected)
    notes = [text.get_text() for text in axes.texts]
    assert notes.count("8.0x") == 4
    assert notes.count("400x") == 4
    assert notes.count("0.50x") == 3
    assert "missing bar" in built["compile_1_small"].caption
    assert "outlines_core" in built["compile_1_small"].caption


def test_without_a_reference_bars_have_no_ratios():
    drawn = plots.build_plots(RunData.read(backend_run(FOLDER, reference="")))
    bars = next(plot for plot in drawn if plot.name.startswith("compile_1"))
    assert {text.get_text() for text in bars.figure.axes[0].texts} == {""}
    assert bars.caption == ""


def test_many_constraints_are_cut_and_said_to_be():
    names = tuple(f"constraint {number}" for number in range(plots.MAX_GROUPS + 3))
    run = backend_run(FOLDER, constraints=names, tokenizers=(("small", 32_000),), steps=1)
    bars = next(plot for plot in plots.build_plots(RunData.read(run)) if plot.name == "compile_1_small")
    assert len(bars.figure.axes[0].get_yticklabels()) == plots.MAX_GROUPS
    assert f"The first {plots.MAX_GROUPS} of {len(names)} constraints" in bars.caption


def test_memory_bars_are_medians(built):
    peak, retained = built["memory"].figure.axes
    assert [width for _, width in bars_of(retained)] == pytest.approx([2e6, 3e5, 2e5, 4e7, 6e6])
    assert [width for _, width in bars_of(peak)] == pytest.approx([6e6, 9e5, 6e5, 12e7, 18e6])
    assert retained.get_xscale() == "log"
    assert [text.get_text() for text in retained.texts] == ["2.00 MB", "300 kB", "200 kB", "40.0 MB", "6.00 MB"]


def test_memory_of_zero_makes_the_axis_linear():
    run = backend_run(FOLDER)
    run.frames["items"].loc[run.frames["items"]["label"] == "llguidance", "memory_retained_bytes"] = 0
    memory = next(plot for plot in plots.build_plots(RunData.read(run)) if plot.name == "memory")
    peak, retained = memory.figure.axes
    assert (peak.get_xscale(), retained.get_xscale()) == ("log", "linear")


def test_cost_against_states_takes_the_fewest_states(built):
    compile_axes, mask_axes = built["cost_states"].figure.axes
    assert compile_axes.get_xscale() == compile_axes.get_yscale() == mask_axes.get_yscale() == "log"
    # llguidance reports no states itself, and is drawn at those of the others
    points = compile_axes.collections[list(LABELS).index("llguidance")].get_offsets()
    assert sorted(points[:, 0]) == [10, 10, 20, 20, 30, 30, 40, 40]
    assert points[0, 1] == pytest.approx(0.1 / 900)


def test_cost_against_vocabulary_joins_medians(built):
    axes = built["cost_vocabulary"].figure.axes[0]
    line = axes.lines[list(LABELS).index("outlines_core")]
    assert list(line.get_xdata()) == [32_000, 131_072]
    assert line.get_ydata()[0] == pytest.approx(0.25)  # of 0.1, 0.2, 0.3, 0.4 s


def reasons(run):
    return {plot.name: plot.reason for plot in plots.build_plots(RunData.read(run)) if plot.figure is None}


def test_what_would_be_empty_is_left_out_with_the_reason():
    one = backend_run(FOLDER, constraints=("email",), tokenizers=(("small", 32_000),))
    assert reasons(one) == {
        "cost_states": "fewer than two cases with different numbers of states",
        "cost_vocabulary": "the run has 1 vocabulary size; this needs two",
    }
    bare = backend_run(FOLDER)
    bare.frames["samples"] = bare.frames["samples"].iloc[:0]
    bare.frames["items"] = bare.frames["items"].drop(
        columns=["compile_s", "memory_peak_bytes", "memory_retained_bytes"]
    )
    unmeasured = "neither compile times nor mask times were measured"
    assert reasons(bare) == {
        "mask_ecdf": "no mask times were measured",
        "compile_1_small": "no compile times were measured with this tokenizer",
        "compile_2_large": "no compile times were measured with this tokenizer",
        "memory": "memory was not measured",
        "cost_states": unmeasured,
        "cost_vocabulary": unmeasured,
    }


def test_a_run_without_success_says_so():
    fail = {(label, "email"): ("crash", "gone") for label in LABELS}
    assert reasons(backend_run(FOLDER, constraints=("email",), fail=fail)) == {
        "backends": "no item of the run has succeeded"
    }
    assert reasons(FakeRun(FOLDER, config(), {})) == {"backends": "the run has no items yet"}


def test_hostile_names_are_drawn_without_a_warning():
    run = backend_run(FOLDER, constraints=(HOSTILE, "x"), tokenizers=((HOSTILE, 32_000), ("<b>", 40_000)), steps=3)
    drawn = plots.build_plots(RunData.read(run))
    names = [plot.name for plot in drawn]
    assert len(set(names)) == len(names)
    assert all(name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in names)
    for plot in drawn:
        assert style.to_png(plot.figure).startswith(b"\x89PNG")
