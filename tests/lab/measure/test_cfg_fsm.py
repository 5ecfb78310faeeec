"""The experiment on LALR(1) grammars: its parts, its settings, and what each part's rows must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.config.expand import expand
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import cfg_fsm
from tokdfa.lab.measure.cfg_fsm_masks import WAYS
from tokdfa.lab.measure.cfg_fsm_names import NOTHING, TREE, WALK
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES

SHIPPED = Path(__file__).parents[3] / "experiments" / "cfg_fsm.yaml"
SETTINGS: dict[str, Any] = {
    "concatenations": ["two"],
    "terminals": {"one of n": [2, 5], "n in a row": [2, 3]},
    "token_bytes": {"tokens": 400, "lengths": [1, 3], "grammars": ["list"]},
    **{"text_tokens": 40, "positions": 8, "rounds": 2, "turns": 3, "seconds": 0.5},
}
LIST: dict[str, Any] = {
    "tokenizer": "bytes",
    "label": "list",
    "grammar": 'start: "[" [WORD ("," WORD)*] "]"\nWORD: /[a-z]+/\n%ignore / +/\n',
    "texts": ["[]", "[one, two]", "[a,b,a]"],
}
TWO: dict[str, Any] = {"tokenizer": "bytes", "label": "two", "grammar": 'start: "A" "B"', "texts": ["AB"]}


def rows_of(entry: dict[str, Any], part: str, **changes: Any) -> list[dict[str, Any]]:
    """The rows of one part of an item."""
    return cfg_fsm.run_item(dict(cfg_fsm.split_settings({**SETTINGS, **entry, **changes}, 1))[part], seed=1)


def test_a_grammar_has_the_parts_that_the_settings_say() -> None:
    def parts(entry: dict[str, Any]) -> list[str]:
        return [title for title, _ in cfg_fsm.split_settings({**SETTINGS, **entry}, 1)]

    assert parts(LIST) == ["masks", "token bytes"]
    assert parts(TWO) == ["concatenation"]
    assert parts({**TWO, "label": "other"}) == ["masks"]
    assert parts({"label": "one of n", "grammar": "start: (<alternatives>)+"}) == ["terminals"]
    with pytest.raises(OptionError, match="takes grammars, no other"):
        cfg_fsm.split_settings({**SETTINGS, "label": "digits", "regex": "[0-9]"}, 1)


def test_the_shipped_experiment_can_be_run() -> None:
    config = load_config(SHIPPED)
    labels = [entry.label for entry in config.constraints]
    settings = config.settings
    assert {*settings["concatenations"], *settings["terminals"], *settings["token_bytes"]["grammars"]} <= {*labels}
    assert all(entry.grammar and (entry.texts or entry.label in settings["terminals"]) for entry in config.constraints)
    parts = [item.part for item in expand(config)]
    assert {part: parts.count(part) for part in dict.fromkeys(parts)} == {
        **{cfg_fsm.MASKS: 18, cfg_fsm.TOKEN_BYTES: 2, cfg_fsm.CONCATENATION: 12, cfg_fsm.TERMINALS: 4}
    }


def test_masks_have_a_row_for_each_engine() -> None:
    rows = rows_of(LIST, "masks", engines=["cfg_fsm vectors", "cfg_fsm walk", "pushdown_trie"])
    assert [row["engine"] for row in rows] == ["cfg_fsm vectors", "cfg_fsm walk", "pushdown_trie"]
    for row in rows:
        assert (row["row"], row["status"], row["message"]) == ("engine", "ok", "")
        assert (row["tokenizer"], row["vocab_size"], row["constraint"]) == ("bytes", 257, "list")
        assert row["differing_masks"] == row["differing_tokens"] == 0


def test_concatenation_has_a_row_for_each_way_and_one_for_the_vocabulary() -> None:
    *ways, split = rows_of(TWO, "concatenation")
    assert [row["way"] for row in ways] == list(WAYS)
    assert {(row["row"], row["part"], row["differs"], row["situations"]) for row in ways} == {
        ("way", "concatenation", 0, 3)
    }
    # single bytes cannot be cut, and each is a rest of its own
    assert (split["row"], split["tokens"], split["cuts"], split["rests"]) == ("split", 256, 0, 256)
    other = rows_of({**TWO, "label": "second"}, "concatenation", concatenations=["two", "second"])
    assert [row["row"] for row in other] == ["way"] * len(WAYS)


def test_families_grow_by_terminals() -> None:
    for template in ("one of n", "n in a row"):
        grammar = {"one of n": "start: (<alternatives>)+", "n in a row": "start: <sequence>"}[template]
        rows = rows_of({"tokenizer": "bytes", "label": template, "grammar": grammar}, "terminals")
        counts = SETTINGS["terminals"][template]
        assert [(row["parameter"], row["way"]) for row in rows] == [
            (count, way) for count in counts for way in (TREE, NOTHING, WALK)
        ]
        assert {row["differs"] for row in rows} == {0}
        assert rows[0]["lexer_states"] < rows[-1]["lexer_states"]
    with pytest.raises(OptionError, match=r"needs numbers of terminals: give settings\.terminals an entry"):
        rows_of({"tokenizer": "bytes", "label": "x", "grammar": "start: <sequence>"}, "terminals")


def test_token_bytes_are_those_of_samples_of_the_vocabulary() -> None:
    rows = rows_of({**LIST, "tokenizer": "mistral-v1"}, "token bytes")
    assert [(row["parameter"], row["way"]) for row in rows] == [
        (n, way) for n in (1, 3) for way in (TREE, NOTHING, WALK)
    ]
    assert [row["tokens"] for row in rows] == [256] * 3 + [400] * 3
    assert [row["mean_token_bytes"] > 1 for row in rows] == [False] * 3 + [True] * 3
    assert {row["differs"] for row in rows} == {0}


def test_grammars_without_texts_cannot_be_measured() -> None:
    with pytest.raises(OptionError, match="give 'list' texts or a texts_file"):
        rows_of({**LIST, "texts": []}, "masks")


def test_good_settings_pass() -> None:
    cfg_fsm.check_settings(SETTINGS)
    cfg_fsm.check_settings({"engines": [*ENGINES]})
    cfg_fsm.check_settings({})


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"turn": 3}, UnknownNameError, "did you mean 'turns'"),
        ({"engines": ["cfg_fsm wolk"]}, UnknownNameError, "did you mean 'cfg_fsm walk'"),
        ({"concatenations": "two"}, OptionError, "settings.concatenations must be a list of labels"),
        ({"terminals": [2, 4]}, OptionError, "settings.terminals is"),
        ({"terminals": {"x": [4, 2]}}, OptionError, r"terminals\['x'\]: rising whole numbers from 2 to 64"),
        ({"terminals": {"x": [2, 65]}}, OptionError, "from 2 to 64"),
        ({"token_bytes": 4}, OptionError, "settings.token_bytes is"),
        ({"token_bytes": {"tokens": 300, "length": [1]}}, UnknownNameError, "did you mean 'lengths'"),
        ({"token_bytes": {"tokens": 10, "lengths": [1]}}, OptionError, r"token_bytes.tokens: rising .* from 256"),
        ({"token_bytes": {"tokens": 300, "lengths": []}}, OptionError, r"token_bytes.lengths"),
        ({"token_bytes": {"tokens": 300, "lengths": [1]}}, OptionError, r"token_bytes.grammars must be a list"),
        ({"rounds": 0}, OptionError, "settings.rounds must be a positive int, not 0"),
        ({"rounds": True}, OptionError, "settings.rounds"),
        ({"seconds": float("nan")}, OptionError, "settings.seconds must be a positive float"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], error: type[TokdfaError], said: str) -> None:
    with pytest.raises(error, match=said):
        cfg_fsm.check_settings(change)
