"""The experiment on muting literals: its rows, what must hold between them, and what the report makes of them."""

import json

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.literal_muting import KIND, measure
from tokdfa.lab.measure.muting_costs import PHASES, random_words

HTTPS = {"tokenizer": "mistral-v1", "label": "https", "regex": "(https?://)?[a-z]{1,9}", "texts": ["https://abc", "!"]}


def run(**settings):
    return measure({"repeats": 2, "drawn": 20, "max_bytes": 60, **settings}, seed=3)


def part(rows, name):
    return [row for row in rows if row["part"] == name]


@pytest.fixture(scope="module")
def https():
    return run(**HTTPS)


def test_every_variant_has_a_row(https):
    rows = part(https, "cost")
    assert [row["variant"] for row in rows] == [
        *("strings", "strings, muted", "none", "none, muted", "transformations", "transformations, muted"),
    ]
    for row in rows:
        assert (row["constraint"], row["status"], row["samples"], row["vocab_size"]) == ("https", "ok", 2, 32_000)
        assert 0 < sum(row[f"{phase}_s"] or 0 for phase in PHASES) < 2 * row["seconds"]
        assert row["walks_s"] is None or row["token_classes"] != "transformations"
    assert {row["samples"] for row in part(run(**HTTPS | {"drawn": 0, "seconds": 1e-9}), "cost")} == {1}


def test_sizes_do_not_depend_on_the_way_and_muting_needs_fewer_classes(https):
    plain, muted = ([row for row in part(https, "cost") if row["muted"] is which] for which in (False, True))
    for rows in (plain, muted):
        assert len({(row["states"], row["byte_classes"], row["token_classes_made"]) for row in rows}) == 1
    assert [(row["literals"], row["ghosts"]) for row in muted] == [(2, 2)] * 3
    assert [row["literals"] for row in plain] == [None] * 3
    assert muted[0]["class_strings"] < plain[0]["class_strings"]
    assert muted[0]["byte_classes"] < plain[0]["byte_classes"]


def test_texts_are_given_and_drawn(https):
    rows = part(https, "text")
    assert [row["source"] for row in rows] == ["given"] + ["drawn"] * 20
    assert [row["text"] for row in rows if row["source"] == "given"] == ["https://abc"]
    for row in rows:
        assert (row["status"], row["plain_stops_at"], row["literals"]) == ("ok", -1, 2)
        assert row["fewest_count"] <= min(row["muted_count"], row["proper_count"])
        assert row["positions"] == (row["proper_count"] if row["stops_at"] < 0 else row["stops_at"]) + 1
        if not row["text"].startswith("http"):
            assert row["stops_at"] == -1
    assert rows[0]["stops_at"] >= 0  # "https" is one token of this vocabulary


def test_baselines_and_what_cannot_be_muted_have_rows():
    rows = part(run(tokenizer="bytes", label="x", regex="ab?[a-z]", baselines_for=["x"]), "cost")
    assert [(row["variant"], row["status"]) for row in rows[-2:]] == [("token_index", "ok"), ("outlines_core", "ok")]
    assert rows[-2]["states"] == rows[0]["states"]
    rows = run(tokenizer="bytes", regex=r"ab\b ?-", ascii_classes=True)
    for row in part(rows, "cost"):
        assert row["status"] == ("unsupported" if row["muted"] else "ok")
        assert ("word_boundary" in row["message"]) == row["muted"]
        assert (row["seconds"] is None) == row["muted"]
    assert [row["status"] for row in part(rows, "text")] == ["unsupported"]


def test_patterns_grow_with_words_and_with_letters():
    growth = {
        "shapes": {"list": {"each": '"WORD"', "join": ","}},
        **{"counts": [1, 3], "length": 2, "lengths": [1, 4], "count": 2, "repeats": 1},
    }
    rows = run(tokenizer="mistral-v1", label="list", regex=r"\[WORDS\]", growth=growth)
    assert {(row["part"], row["status"]) for row in rows} == {("growth", "ok")}
    sizes = [(row["axis"], row["words"], row["length"]) for row in rows[::4]]
    assert sizes == [("words", 1, 2), ("words", 3, 2), ("length", 2, 1), ("length", 2, 4)]
    assert all(row["literals"] == row["words"] for row in rows if row["muted"])
    words = random_words(300, 2, seed=1)
    assert len(set(words)) == 300
    assert random_words(7, 2, seed=1) == words[:7] != random_words(7, 2, seed=2)


GROWTH = {"shapes": {"x": {}}, "counts": [2], "lengths": [1]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeat": 3}, r"settings\.repeat: extra"),
        ({"token_classes": ["rows"]}, r"settings\.token_classes\.0"),
        ({"growth": {"shapes": {"x": {"each": "[a-z]"}}}}, r"settings\.growth\.shapes\.x\.each"),
        ({"growth": GROWTH}, "no WORDS to put words in"),
        ({"regex": "WORDS", "growth": GROWTH | {"count": 14}}, "14 distinct words of 1 letters"),
        ({"regex": None}, "literal_muting needs"),
    ],
)
def test_faults_name_the_key(settings, message):
    given = {"tokenizer": "bytes", "label": "x", "regex": "a", **settings}
    with pytest.raises(OptionError, match=message):
        run(**{key: value for key, value in given.items() if value is not None})


def made_up():
    """Muting makes url 4 times as fast and date half as fast; one of url's four texts is forbidden, one changed."""
    rows = []
    for constraint, gain, literals in (("url", 4.0, 2), ("date", 0.5, 6), ("email", 1.0, 0)):
        place = {"tokenizer": "small", "constraint": constraint, "status": "ok", "part": "cost"}
        for muted in (False, True):
            variant = {"variant": "strings, muted" if muted else "strings", "token_classes": "strings", "muted": muted}
            counts = {"seconds": 0.1 / (gain if muted else 1), "walks_s": 0.001 if muted else 0.008}
            counts |= {"class_strings": 100 if muted else 1000, "literals": literals if muted else None}
            rows.append({**place, **variant, **counts, "backend": "tokens_dfa"})
            growth = {"part": "growth", "axis": "words", "words": 16, "length": 8, "seconds": 0.1 if muted else 0.3}
            rows.append({**place, **variant, **growth})
        text = {"part": "text", "source": "drawn", "literals": literals, "plain_stops_at": -1, "proper_count": 4}
        spelled = {"proper_tokens": json.dumps(["https", "://"]), "muted_tokens": json.dumps(["http", "s"])}
        for stop in (-1, 1, -1):
            counts = {"stops_at": stop, "positions": 5 if stop < 0 else 2, "fewest_count": 4, "muted_count": 6}
            rows.append({**place, **text, **spelled, **counts, "text": f"{stop}.com"})
        rows.append({**place, **text, "status": "changed", "text": "ﬁ.com", "plain_stops_at": None})
    peer = {"tokenizer": "small", "constraint": "url", "status": "ok", "part": "cost", "token_classes": ""}
    return [*rows, {**peer, "variant": "outlines_core", "backend": "outlines_core", "muted": False, "seconds": 2.0}]


def test_the_report_compares_plain_and_muted():
    told = Told(KIND, made_up())
    assert told.texts("muting_cost") == [
        ["url", "small", "2", "–", "4.00x"], ["date", "small", "6", "–", "0.500x"]
    ]  # fmt: skip
    assert told.values("muting_effects", "class strings, divided by", "walks, divided by")[0] == pytest.approx((10, 8))
    assert told.values("muting_phases", "variant", "outlines_core over it")[:2] == [
        ("strings", pytest.approx(20)), ("strings, muted", pytest.approx(80))
    ]  # fmt: skip
    heads = ("constraint", "followed", "proper tokenizations forbidden", "positions forbidden")
    assert told.values("muting_tokenizations", *heads)[0] == ("url", 3, pytest.approx(1 / 3), pytest.approx(1 / 12))
    assert told.texts("muting_examples")[0] == ["url", "small", "1.com", "https · ://", "://", "http · s"]
    assert told.texts("muting_growth")[0][:4] == ["url", "words", "16", "8"]
    assert "4.00x (4.00x to 4.00x over 1 tokenizers), where 001 reports 19.6x" in told.sentences[0]
    assert "muting forbids 33.3% of the proper tokenizations and 8.33%" in told.sentences[1]
    assert "at least 1.1 times as fast in 1 of 2 cases" in told.sentences[2]
    assert "Without muting 0 of the 9 proper tokenizations are forbidden." in told.sentences
    assert told.sentences[-1] == "22 of 25 rows succeeded; the others: 3 changed."
    assert told.charts["muting_ratio"].panels
    assert told.charts["muting_forbidden"].panels
