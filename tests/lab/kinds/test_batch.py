"""Batches: who takes part, what a batch is made of, that masks of a call are the loop's, and the rates told of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.lab.kinds.telling import Told
from tests.packages import backend
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.errors import ConfigError, OptionError
from tokdfa.lab.config.expand import expand
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import batch
from tokdfa.lab.kinds.batch import KIND, PHASES, complete, frames, measure
from tokdfa.lab.measure import batch_calls
from tokdfa.lab.measure.batch_calls import LOOP, fill_batch
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import Matcher

WORDS = [{"label": f"word {n}", "regex": f"[a-z]{{1,{n}}}", "texts": ["word", "it"]} for n in range(4, 10)]


def measured(*engines: str, **changes: Any) -> list[dict[str, Any]]:
    settings = {
        **{"tokenizer": "bytes", "engines": [{"backend": engine} for engine in engines], "constraints": WORDS},
        **{"sizes": [3, 8], "rounds": 2, **changes},
    }
    return measure(settings, 0)


def calls(rows: list[dict[str, Any]], engine: str) -> set[tuple[Any, ...]]:
    """Size, mixture, threads, phase and round of an engine's times; each is there once."""
    timed = [row for row in rows if row["engine"] == engine and "ns" in row]
    found = {(row["size"], row["mixture"], row["threads"], row["phase"], row["round"]) for row in timed}
    assert len(found) == len(timed)
    return found


def test_every_call_has_both_phases_in_each_round_and_an_engine_without_calls_for_batches_its_loop() -> None:
    rows = measured("token_index", "brute_force")
    assert {row["status"] for row in rows} == {"ok"}
    for engine, threads in (("token_index", (LOOP, 1, 2)), ("brute_force", (LOOP,))):
        assert calls(rows, engine) == {
            (size, mixture, by, phase, number)
            for size in (3, 8)
            for mixture in ("different", "one")
            for by in threads
            for phase in PHASES
            for number in (0, 1)
        }


def test_all_calls_of_a_round_get_one_batch_of_different_constraints_or_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, list[str], list[tuple[int, ...]]]] = []

    def note(name: str, matchers: list[Matcher], out: Any, threads: int) -> None:
        constraints = [str(one.origin[0].constraint) for one in matchers]
        compiled = {id(one.origin[0]) for one in matchers}
        assert len(compiled) == len(set(constraints)), "each is compiled once"
        seen.append((len(matchers), constraints, [one.tokens for one in matchers]))
        fill_batch(name, matchers, out, threads)

    monkeypatch.setattr(batch, "fill_batch", note)
    measured("token_index", "brute_force", rounds=1)
    # of each round: both phases of a loop and two calls, whose masks are made once more, and of the other engine's loop
    fills = 2 + 2 * 3 + 2
    rounds = [seen[begin : begin + fills] for begin in range(0, len(seen), fills)]
    assert len(rounds) == 2 * 2 * 2  # sizes, mixtures, and the round that is not kept
    expected = [(3, 3), (3, 3), (3, 1), (3, 1), (8, 6), (8, 6), (8, 1), (8, 1)]
    for of_round, (size, constraints) in zip(rounds, expected, strict=True):
        assert all(one == of_round[0] for one in of_round)
        assert (of_round[0][0], len(set(of_round[0][1]))) == (size, constraints)
    places = {len(tokens) for _, _, of_fill in seen for tokens in of_fill}
    assert places == {0, 1, 2, 3, 4}, "all places of the texts, their ends too"
    assert len(set(seen[-1][2])) > 4, "of one constraint, each at its own place"


@pytest.mark.parametrize("wrong", PHASES)
def test_an_engine_whose_batches_have_other_masks_loses_its_times(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    fill, fills = batch_calls.BATCH_CALLS["token_index"], {1: 0, 2: 0}

    def spoil(matchers: Any, out: Any, threads: int) -> None:
        fill(matchers, out, threads)
        fills[threads] += 1
        if threads == 2 and fills[2] > 4 and PHASES[(fills[2] - 1) % 2] == wrong:
            out[1, 0] ^= 2

    monkeypatch.setitem(batch_calls.BATCH_CALLS, "token_index", spoil)
    rows = measured("token_index", "tokens_dfa")
    assert not calls(rows, "token_index")
    (lost,) = [row for row in rows if row["status"] != "ok"]
    assert lost["engine"] == "token_index"
    assert lost["message"] == f"1 of 3 {wrong} masks of a batch, 2 threads, are not those of the loop"
    assert len(calls(rows, "tokens_dfa")) == 2 * 2 * 3 * 2 * 2
    told = Told(KIND, rows)
    assert [row[1] for row in told.texts("not_measured")] == ["token_index"]
    assert f"token_index has no times: {lost['message']}" in told.sentences


def test_what_one_engine_refuses_is_in_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    constraints = [
        *WORDS[:2],
        {"label": "nested", "grammar": 'start: "(" start? ")"', "texts": ["(())"]},
        {"label": "other texts", "regex": "[0-9]", "texts": ["x"]},
    ]
    drawn = set()

    def note(name: str, matchers: list[Matcher], out: Any, threads: int) -> None:
        drawn.update(one.origin[0].constraint.label for one in matchers)
        fill_batch(name, matchers, out, threads)

    monkeypatch.setattr(batch, "fill_batch", note)
    rows = measured("pushdown_trie", "token_index", constraints=constraints)
    assert drawn == {"word 4", "word 5"}
    surveyed = {(row["engine"], row["constraint"]): row for row in rows if "constraint" in row}
    assert len(surveyed) == 2 * 4
    refused = {place: row["outcome"] for place, row in surveyed.items() if row["outcome"] != "ok"}
    assert refused == {
        ("token_index", "nested"): "unsupported",
        ("pushdown_trie", "other texts"): "text_refused",
        ("token_index", "other texts"): "text_refused",
    }
    assert {place[1] for place, row in surveyed.items() if row["takes_part"]} == drawn
    assert surveyed["token_index", "word 4"]["along"] == len("word") + len("it")
    assert "bytes: all engines take 2 of 4 constraints, and these take part." in Told(KIND, rows).sentences
    with pytest.raises(OptionError, match="none of 1 constraints is taken by all of pushdown_trie, token_index"):
        measured("pushdown_trie", "token_index", constraints=constraints[2:3])


def test_an_engine_that_cannot_be_made_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    real = batch.EngineSet.backend
    lost = batch.Failure("error", "pip install it")
    monkeypatch.setattr(
        batch.EngineSet, "backend", lambda self, name: lost if name == "tokens_dfa" else real(self, name)
    )
    rows = measured("token_index", "tokens_dfa")
    assert calls(rows, "token_index")
    assert [row["message"] for row in rows if row["engine"] == "tokens_dfa"] == ["pip install it"]


@pytest.mark.parametrize("name", [backend("llguidance"), backend("xgrammar"), "pushdown_trie"])
@pytest.mark.parametrize("size", [256 + 4, 256 + 32])
def test_calls_for_batches_fill_the_masks_of_the_loop(name: str, size: int) -> None:
    """Of different constraints, at the ends of texts, too, and where the last word is not full."""
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), *[b"ab"] * (size - 257), b""], end_tokens=[size - 1])
    engine = create_backend(name, vocab)
    matchers = []
    for constraint, written in (
        (Regex("[a-z]{2,5}"), b"abc"),
        (Regex("ab"), b"ab"),
        (JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}), b'{"a": 1}'),
        (Grammar('start: "(" start? ")"'), b"(("),
    ):
        compiled = engine.compile(constraint)
        for length in range(len(written) + 1):
            matchers.append(compiled.start())
            for byte in written[:length]:
                matchers[-1].advance(byte)
    expected = np.zeros((len(matchers), -(-size // 32)), dtype=np.int32)
    fill_batch(name, matchers, expected, LOOP)
    assert len(np.unique(expected, axis=0)) > 6
    for threads in (1, 2):
        out = np.full_like(expected, 0x55555555)
        fill_batch(name, matchers, out, threads)
        assert np.array_equal(out, expected)


def test_an_item_has_all_constraints_of_its_tokenizer(tmp_path: Path) -> None:
    ours = {"label": "ours", "choice": ["a"], "tokenizers": ["mistral-v1"]}
    data = {
        **{"name": "test", "kind": "batch", "tokenizers": ["bytes", "mistral-v1"], "constraints": [*WORDS, ours]},
        "settings": {"engines": [{"backend": "token_index"}]},
    }
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(data))
    items = expand(load_config(tmp_path / "e.yaml"))
    labels = [[entry["label"] for entry in item.settings["constraints"]] for item in items]
    words = [word["label"] for word in WORDS]
    assert [(item.tokenizer, item.constraint) for item in items] == [("bytes", None), ("mistral-v1", None)]
    assert labels == [words, [*words, "ours"]]
    assert measure(items[0].settings, items[0].seed)
    with pytest.raises(OptionError, match="needs tokenizers"):
        measure({"engines": [{"backend": "token_index"}], "constraints": WORDS}, 0)


def test_schemas_of_a_folder_come_in_place_of_the_constraints(tmp_path: Path) -> None:
    tests = [{"valid": True, "data": {"a": [1, 2]}}, {"valid": False, "data": 1}]
    (tmp_path / "one.json").write_text(json.dumps({"schema": {"type": "object"}, "tests": tests}))
    engines = [{"backend": "token_index"}]
    settings = complete({"engines": engines, "data": str(tmp_path)})
    assert settings == {
        "engines": engines,
        "constraints": [{"label": "one", "json_schema": '{"type":"object"}', "texts": ['{"a": [1, 2]}']}],
    }
    assert complete(settings) == settings
    with pytest.raises(ConfigError, match="no files"):
        complete({"engines": engines, "data": str(tmp_path / "nowhere")})


def test_rates_and_gains() -> None:
    place = {"tokenizer": "t", "engine": "e", "mixture": "one", "phase": "seen", "round": 0, "status": "ok"}
    rows = [
        {**place, "size": 10, "threads": 0, "ns": 20_000},
        {**place, "size": 10, "threads": 2, "ns": 5_000},
        {**place, "size": 10, "threads": 2, "ns": 40_000, "round": 1},
        {**place, "size": 10, "threads": 0, "ns": 10_000, "round": 1},
    ]
    found = frames(pd.DataFrame(rows))[""]
    assert found[["call", "round", "rate", "mask_ns", "gain"]].to_numpy().tolist() == [
        ["loop", 0, 5e5, 2_000, 1],
        ["loop", 1, 1e6, 1_000, 1],
        ["batch, 2 threads", 0, 2e6, 500, 4],
        ["batch, 2 threads", 1, 2.5e5, 4_000, 0.25],
    ]
