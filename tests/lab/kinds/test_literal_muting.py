"""The experiment on muting literals: its rows, what must hold between them, and what the report makes of them."""

import json

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.literal_muting import KIND, measure

HTTPS = {"tokenizer": "mistral-v1", "label": "https", "regex": "(https?://)?[a-z]{1,9}", "texts": ["https://abc", "!"]}


def run(**settings):
    return measure({"drawn": 20, "max_bytes": 60, **settings}, seed=3)


def test_texts_are_given_and_drawn():
    rows = run(**HTTPS)
    assert [row["source"] for row in rows] == ["given"] + ["drawn"] * 20
    assert [row["text"] for row in rows if row["source"] == "given"] == ["https://abc"]
    for row in rows:
        assert (row["status"], row["plain_stops_at"], row["literals"]) == ("ok", -1, 2)
        assert row["fewest_count"] <= min(row["muted_count"], row["proper_count"])
        assert row["positions"] == (row["proper_count"] if row["stops_at"] < 0 else row["stops_at"]) + 1
        if not row["text"].startswith("http"):
            assert row["stops_at"] == -1
    assert rows[0]["stops_at"] >= 0  # "https" is one token of this vocabulary


def test_what_cannot_be_muted_has_a_row():
    (row,) = run(tokenizer="bytes", regex=r"ab\b ?-", ascii_classes=True)
    assert row["status"] == "unsupported"
    assert "word_boundary" in row["message"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drawns": 3}, r"settings\.drawns: extra"),
        ({"drawn": -1}, r"settings\.drawn: "),
        ({"regex": None}, "literal_muting needs"),
    ],
)
def test_faults_name_the_key(settings, message):
    given = {"tokenizer": "bytes", "label": "x", "regex": "a", **settings}
    with pytest.raises(OptionError, match=message):
        run(**{key: value for key, value in given.items() if value is not None})


def test_the_report_counts_what_is_forbidden():
    """One of url's four texts is forbidden, one changed; email has no literals."""
    rows = []
    for constraint, literals in (("url", 2), ("email", 0)):
        text = {"tokenizer": "small", "constraint": constraint, "source": "drawn", "literals": literals}
        text |= {"status": "ok", "plain_stops_at": -1, "proper_count": 4, "message": ""}
        text |= {"proper_tokens": json.dumps(["https", "://"]), "muted_tokens": json.dumps(["http", "s"])}
        for stop in (-1, 1, -1):
            counts = {"stops_at": stop, "positions": 5 if stop < 0 else 2, "fewest_count": 4, "muted_count": 6}
            rows.append({**text, **counts, "text": f"{stop}.com"})
        rows.append({**text, "status": "changed", "text": "ﬁ.com", "plain_stops_at": None})
    told = Told(KIND, rows)
    heads = ("constraint", "followed", "proper tokenizations forbidden", "positions forbidden")
    assert told.values("muting_tokenizations", *heads) == [("url", 3, pytest.approx(1 / 3), pytest.approx(1 / 12))]
    assert told.texts("muting_examples")[0] == ["url", "small", "1.com", "https · ://", "://", "http · s"]
    assert "muting forbids 33.3% of the proper tokenizations and 8.33%" in told.sentences[0]
    assert "Without muting 0 of the 6 proper tokenizations are forbidden." in told.sentences
    assert told.sentences[-1] == "6 of 8 texts succeeded; the others: 2 changed."
    assert told.charts["muting_forbidden"].panels
