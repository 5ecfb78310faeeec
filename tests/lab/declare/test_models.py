"""What kinds on models declare alike: frames by part, the models, and what could not be measured."""

import pandas as pd

from tests.lab.kinds.telling import MODEL
from tokdfa.lab.declare import Results
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts


def test_rows_by_part():
    rows = [
        MODEL | {"seconds": 5.0},
        MODEL | {"model": "big", "status": "error", "message": "pip install it", "rows": None},
        MODEL | {"part": "text", "label": "a"},
        MODEL | {"part": "text", "label": "b", "status": "all_cut", "message": "too long"},
        MODEL | {"part": "place", "label": "c"},
    ]
    frames = parts(pd.DataFrame(rows), "text")
    assert set(frames) == {"", "place", "models", "failed"}
    assert frames[""]["label"].tolist() == ["a"]
    results = Results(frames, {column.name: column for column in COLUMNS})
    models = MODELS.build(results).frame
    assert models["time a row"].dropna().tolist() == [0.5]
    assert models["not loaded because"].tolist()[1] == "pip install it"
    assert not_measured("label").build(results).frame[["label", "kind", "reason"]].iloc[0].tolist() == [
        "b", "all cut", "too long",
    ]  # fmt: skip
    assert [line for sentence in FAILURES for line in sentence.sentences(results)] == [
        "big was not measured: pip install it",
        "1 measurements failed or were left out.",
    ]
