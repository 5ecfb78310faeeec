"""002's Table 2: every step has its rows, nothing that fails goes missing, and means stand beside published means."""

import sys

import numpy as np
import pytest

from tests.lab.kinds.telling import Told
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMergeMatcher
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds.proper_table2 import KIND, measure
from tokdfa.mask import clear_token, mask_to_ids
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES = [
    {"label": "index", "backend": "token_index", "step": 2},
    {"label": "fixpoint", "backend": "cartesian_merge", "step": 3},
    {"label": "pairs", "backend": "cartesian_merge", "step": 3, "options": {"relevance": "pairs"}},
    {"label": "direct", "backend": "direct_merge", "step": 3},
]
TEXTS = ["2024-05", "1999-12"]


def run(**changes):
    settings = {"tokenizer": "mistral-v1", "label": "month", "regex": "[0-9]{4}-(0[1-9]|1[0-2])", "engines": ENGINES}
    settings |= {"texts": {"month": TEXTS}, "repeats": 2, "walks": 2, "steps": 5}
    return measure(settings | changes, seed=1)


def test_every_step_has_its_rows():
    rows = run()
    assert [(row["step"], row["engine"], row["status"]) for row in rows] == [
        (2, "index", "ok"), (3, "fixpoint", "ok"), (3, "pairs", "ok"), (3, "direct", "ok"),
        (4, "fixpoint", "ok"), (4, "pairs", "ok"), (4, "direct", "ok"),
    ]  # fmt: skip
    for row in rows[:4]:
        assert 0 < row["seconds"] <= row["compile_s"]
        assert row["repeats"] == 2
    assert rows[0]["seconds"] == rows[0]["compile_s"]  # 002's step 2 is all of it
    assert rows[2]["pairs"] == 9
    tokens = [len(load_tokenizer("mistral-v1").encode(text)) for text in TEXTS]
    for row in rows[4:]:
        times = np.frombuffer(row["mask_ns"], dtype="<f4")
        assert (
            2 * len(times) == row["masks"] > 2 * sum(count + 1 for count in tokens)
        )  # both times round, and the walks
        assert row["first_s"] == pytest.approx(times[0] * 1e-9)
        assert row["text_s"] == pytest.approx(times[: tokens[0] + 1].sum() * 1e-9)
        assert row["seconds"] == pytest.approx(np.median(times) * 1e-9)
        assert min(row["again_s"], row["call_s"]) > 0
        assert row["differing"] == 0


def test_limits_are_rows_in_both_steps(monkeypatch):
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    engines = [
        ENGINES[1],
        {"label": "late", "backend": "cartesian_merge", "step": 3, "options": {"relevance": "pairs", "max_seconds": 0}},
        {"label": "direct", "backend": "direct_merge", "step": 3, "options": {"max_transitions": 3}},
        {**ENGINES[2], "tokenizers": ["llama3"]},
        {"label": "peer", "backend": "outlines_core", "step": 2},
    ]
    rows = run(engines=engines, regex="[a-z]{1,5}", texts={})
    assert {(row["step"], row["engine"]): row["status"] for row in rows} == {
        (2, "peer"): "error", (3, "fixpoint"): "ok", (3, "late"): "timeout", (3, "direct"): "memory",
        (4, "fixpoint"): "ok", (4, "late"): "timeout", (4, "direct"): "memory",
    }  # fmt: skip
    assert all(row["message"] and "seconds" not in row for row in rows if row["status"] != "ok")


def test_a_mask_that_differs_and_a_refused_encoding_are_failures(monkeypatch):
    right = CartesianMergeMatcher.fill_mask

    def wrong(self, out):
        right(self, out)
        if type(self.states.table).__name__ == "RelevantPairs":
            clear_token(out, int(mask_to_ids(out)[0]))

    monkeypatch.setattr(CartesianMergeMatcher, "fill_mask", wrong)
    found = {row["engine"]: row for row in run() if row["step"] == 4}
    assert (found["pairs"]["status"], found["fixpoint"]["status"], found["direct"]["status"]) == (
        "mismatch",
        "ok",
        "ok",
    )
    assert found["pairs"]["differing"] > 0
    assert "masks are not those of fixpoint" in found["pairs"]["message"]
    found = {row["engine"]: row for row in run(texts={"month": ["2024-13"]}, walks=0) if row["step"] == 4}
    assert {row["status"] for row in found.values()} == {"mismatch", "ok"}  # that text is outside, the oracle says


def test_a_schema_brings_its_own_texts():
    own = {"label": "unit", "json_schema": {"enum": ["celsius", "fahrenheit"]}, "whitespace": "compact"}
    own |= {"regex": None, "escapes": "needed", "texts": ['"celsius"', '"fahrenheit"'], "walks": 1}
    rows = run(**own)
    assert {(row["status"], row["constraint"]) for row in rows} == {("ok", "unit")}
    assert all(row["states"] > 0 for row in rows if row["step"] < 4)
    refused = run(**own | {"texts": ['"kelvin"'], "walks": 0})
    assert {row["status"] for row in refused if row["step"] == 4} == {"wrong_refusal"}


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"engines": []}, OptionError, r"settings\.engines"),
        ({"engines": [ENGINES[0], ENGINES[0]]}, OptionError, "same label"),
        ({"engines": [{**ENGINES[0], "step": 4}]}, OptionError, r"engines\.0\.step"),
        ({"engines": [{**ENGINES[0], "backend": "token_indx"}]}, UnknownNameError, "token_index"),
        ({"seconds": 0}, OptionError, r"settings\.seconds"),
        ({"text": {}}, OptionError, r"settings\.text:"),
        ({"grammar": 'start: "a"'}, OptionError, "regexes, choices and JSON schemas"),
    ],
)
def test_faults_name_the_key(change, error, said):
    with pytest.raises(error, match=said):
        run(**change)


def made_up():
    """Two constraints; `pairs` takes ten times as long as `fixpoint` for the first one, and fails on the other."""
    rows = []
    for name, factor in (("name", 1), ("date", 3)):
        place = {"tokenizer": "mistral-v1", "constraint": name}
        times = np.array([1000, 2000, 30_000 * factor], dtype="<f4")
        masks = {"seconds": 2e-6, "mask_ns": times.tobytes(), "text_s": 0.001, "masks": 6, "differing": 0}
        for engine, slower in (("fixpoint", 1), ("pairs", 10)):
            lost = {"status": "timeout"} if (engine, name) == ("pairs", "date") else {}
            done = {} if lost else {"seconds": 0.01 * factor * slower}
            rows += [{**place, "step": 3, "engine": engine, **done, **lost}]
            rows += [{**place, "step": 4, "engine": engine, **({} if lost else masks), **lost}]
    return [{"status": "ok", "message": "", **row} for row in rows]


def test_means_medians_and_maxima_stand_beside_published_means():
    told = Told(KIND, made_up())
    heads = ("step", "engine", "published mean", "mean", "median", "max", "finished", "asked")
    found = {row[:2]: row[2:] for row in told.values("proper_table2", *heads)}
    assert found["3", "fixpoint"] == pytest.approx((27.3, 0.02, 0.02, 0.03, 2, 2))
    assert found["3", "pairs"] == pytest.approx((27.3, 0.1, 0.1, 0.1, 1, 2))
    assert found["4", "fixpoint"] == pytest.approx((0.00153, 21e-6, 2e-6, 90e-6, 2, 2))
    ((_, both, *_), *_) = told.values("proper_table2_text", "engine", "steps 3 and 4, mean")
    assert both == pytest.approx(0.021)
    assert "step 3 10x slower, a median mask equal" in " ".join(told.sentences)
    assert "18 masks of proper engines compared bit by bit: 0 differ." in told.sentences
    assert told.texts("proper_table2_failures")[0][:5] == ["mistral-v1", "3", "pairs", "timeout", "1"]
    assert told.charts["proper_table2_steps"].panels


def test_what_a_library_knows_is_not_settled_again():
    """Counted: without parts all is settled when compiling, with parts on first masks, with a library before."""
    engines = [
        {"label": name, "backend": "cartesian_merge", "step": 3, "options": {"vegas": name}}
        for name in ("off", "parts", "library")
    ]
    known = [{"regex": r"height: [^\n]+\n", "texts": ["height: 3 feet\n"]}]
    rows = run(engines=engines, regex=r"weight: [^\n]+\n", texts={"month": ["weight: two\n"]}, walks=0, known=known)
    found = {row["engine"]: row for row in rows if row["step"] == 4}
    settled = {name: row["settled_transitions"] for name, row in found.items()}
    # without parts the first mask, made when compiling, settles what is not full; ends of lines still come
    assert settled["parts"] > 50_000 > 1_000 > settled["library"]
    assert {row["first_masks"] for row in found.values()} == {found["off"]["first_masks"]}
    assert all(row["differing"] == 0 and row["masks"] > 8 for row in found.values())
    compiled = {row["engine"]: row["transitions"] for row in rows if row["step"] == 3}
    assert compiled["off"] > 50_000 > 1_000 > compiled["parts"]


def test_function_calls_take_the_place_of_constraints():
    engines = [{"label": "fixpoint", "backend": "cartesian_merge", "step": 3}]
    spelling = {"whitespace": "compact", "item_separator": ", ", "key_separator": ": ", "escapes": "needed"}
    settings = {"tokenizer": "mistral-v1", "engines": engines, "repeats": 1, "walks": 0, "calls": 3}
    rows = measure({**settings, "spelling": {**spelling, "max_nesting": 4}}, seed=2)
    assert [(row["step"], row["status"]) for row in rows] == [(3, "ok"), (4, "ok")] * 3
    assert len({row["constraint"] for row in rows}) == 3
    assert all(len(np.frombuffer(row["mask_ns"], dtype="<f4")) > 30 for row in rows[1::2])
