"""Texts replayed by several engines: which texts, which positions, whose masks are compared, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tokdfa.constraint import Grammar
from tokdfa.errors import GrammarSyntaxError, UnsupportedConstraint
from tokdfa.lab.measure import cfg_fsm_replay
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES, first_line, replay_texts
from tokdfa.lab.measure.grammar_replay import MASKS_DIFFER, Engine
from tokdfa.vocabulary.tokenizers import load_tokenizer

GRAMMARS = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars"
BYTES, MISTRAL = load_tokenizer("bytes"), load_tokenizer("mistral-v1")
NUMBERS: dict[str, float] = {"text_tokens": 40, "rounds": 2, "seconds": 5.0}
WORDS = Grammar('start: "[" WORD ("," WORD)* "]"\nWORD: /[ab]+/\n', label="words")
#: Lark takes "if" for the keyword wherever that may come; so "if" is no name here, and "ifx" is one.
KEYWORD = Grammar('start: "if" NAME | NAME "="\nNAME: /[a-z]+/\n%ignore / +/\n', label="keyword")


def corpus(name: str) -> tuple[Grammar, list[str]]:
    texts = yaml.safe_load((GRAMMARS / f"{name}.yaml").read_text())["accepted"]
    return Grammar((GRAMMARS / f"{name}.lark").read_text(), label=name), texts


def test_new_positions_and_samples_are_counted() -> None:
    rows = replay_texts(WORDS, BYTES, ["[a,b]", "[ab]"], [*ENGINES], {**NUMBERS, "text_tokens": 9})
    assert [row["engine"] for row in rows] == [*ENGINES]
    for row in rows:
        assert (row["status"], row["message"], row["rounds"]) == ("ok", "", 2)
        # "[ab]" and its end token would be 11 tokens together
        assert (row["texts"], row["texts_refused"], row["masks"]) == (1, 0, 6)
        # before "[", after it, in a word, after the comma, in a word after one, at the end
        assert row["new_masks"] == row["compared"] == 6
        assert (row["conflicts"], row["certified"]) == (0, True)
        assert row["compile_s"] > 0
        assert 0 < row["cold_ns_p50"] <= row["cold_ns_p99"]
        assert row["seen_ns_p50"] > 0
        assert row["advance_ns_p50"] > 0
        is_ours = row["engine"] != "llguidance"
        assert (row["again_ns_p50"] is not None) == (row["held_bytes"] is not None) == is_ours


def test_situations_that_come_back_are_not_new() -> None:
    rows = replay_texts(WORDS, BYTES, ["[a,b]", "[b,a]"], ["cfg_fsm vectors"], NUMBERS)
    assert (rows[0]["masks"], rows[0]["new_masks"]) == (12, 6)


@pytest.mark.parametrize("name", ["json", "csv"])
def test_where_the_lexers_agree_all_our_engines_have_the_same_masks(name: str) -> None:
    grammar, texts = corpus(name)
    ours = ["cfg_fsm vectors", "cfg_fsm walk", "earley_trie", "pushdown_trie"]
    rows = replay_texts(grammar, MISTRAL, texts, ours, {**NUMBERS, "rounds": 1, "text_tokens": 60})
    for row in rows:
        assert (row["status"], row["differing_masks"], row["differing_tokens"]) == ("ok", 0, 0)
        assert row["compared"] == row["new_masks"] > 15


def test_where_the_lexers_differ_it_is_said_in_how_many_masks() -> None:
    vectors, pushdown = replay_texts(KEYWORD, BYTES, ["if x", "ifx ="], ["cfg_fsm vectors", "pushdown_trie"], NUMBERS)
    assert (vectors["status"], vectors["differing_masks"]) == ("ok", 0)
    assert pushdown["status"] == "ok"
    # after "if" the plain grammar has the name "if" as well, which "=" may follow
    assert pushdown["differing_masks"] >= 1
    assert pushdown["differing_tokens"] >= 1


def test_texts_that_lark_refuses_are_left_out_and_counted() -> None:
    rows = replay_texts(KEYWORD, BYTES, ["if =", "ifx =", "if x"], ["cfg_fsm vectors"], NUMBERS)
    assert (rows[0]["texts"], rows[0]["texts_refused"]) == (2, 1)
    (row,) = replay_texts(KEYWORD, BYTES, ["if ="], ["cfg_fsm vectors"], NUMBERS)
    assert (row["row"], row["message"]) == ("refused", "Lark takes none of the texts")


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("sql", "unsupported", "Reduce/Reduce collision in Terminal('RPAR') between the following rules:"),
        ("tool_call_lazy", "error", "Lark cannot read the grammar: Unexpected token"),
    ],
)
def test_a_grammar_that_lark_refuses_is_a_row_with_the_first_line_of_its_report(
    name: str, status: str, said: str
) -> None:
    grammar, texts = corpus(name)
    (row,) = replay_texts(grammar, BYTES, texts, [*ENGINES], NUMBERS)
    assert (row["row"], row["status"]) == ("refused", status)
    assert row["message"].startswith(said)
    assert "\n" not in row["message"]


def test_reports_begin_after_our_own_words() -> None:
    assert (
        first_line(UnsupportedConstraint("no, says Lark:\n\nCollision in X\n - a\n - b\nuse another"))
        == "Collision in X"
    )
    assert first_line(GrammarSyntaxError("broken", "a\nb", 1, 1)).startswith("broken")


def test_an_engine_that_fails_has_a_row_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {
        "small": Engine("small", "cfg_fsm", {"max_lexer_states": 16}, "Lark's"),
        "other": Engine("other", "pushdown_trie", {"lexer": "any"}, "Lark's"),
    }
    monkeypatch.setattr(cfg_fsm_replay, "ENGINES", {**ENGINES, **wrong})
    long = Grammar('start: "if" NAME | NAME "="\nNAME: /[a-z]{1,30}/\n%ignore / +/\n', label="long")
    rows = replay_texts(long, BYTES, ["if x", "ifx ="], ["small", "cfg_fsm vectors", "other"], NUMBERS)
    assert [row["status"] for row in rows] == ["memory", "ok", MASKS_DIFFER]
    assert "more than 16 states" in rows[0]["message"]
    assert "masks are not those of cfg_fsm vectors" in rows[2]["message"]
    assert rows[0]["compile_s"] is rows[0]["differing_masks"] is None
    assert [row["rounds"] for row in rows] == [0, 2, 0]


def test_seconds_end_the_rounds_of_an_engine() -> None:
    (row,) = replay_texts(WORDS, BYTES, ["[a]"], ["cfg_fsm walk"], {**NUMBERS, "rounds": 9, "seconds": 1e-9})
    assert (row["status"], row["rounds"]) == ("ok", 1)
