"""The experiment on batches: places, ways, the comparison of masks, and what is timed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.registry import backend_class, create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import batch
from tokdfa.lab.measure.grammar_replay import MASKS_DIFFER, Engine
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Matcher

SHIPPED = Path(__file__).parents[3] / "experiments" / "batch.yaml"
GRAMMAR = 'start: WORD ("," WORD)*\nWORD: /[a-zA-Z]+/\n%ignore / +/\n'
ITEM: dict[str, Any] = {
    **{"tokenizer": "mistral-v1", "label": "words", "grammar": GRAMMAR},
    **{"sizes": [3, 12], "threads": [1, 2], "walks": 2, "steps": 5, "rounds": 2},
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return batch.run_item(ITEM, seed=1)


def test_engines_have_options_of_their_backends() -> None:
    for way in batch.WAYS.values():
        options = {option.name: option for option in backend_class(way.engine.backend).options}
        for name, value in way.engine.options.items():
            assert options[name].check(value) == value
        assert way.call == batch.LOOP or way.engine.backend in batch.BATCH_CALLS


def test_the_shipped_experiment_can_be_run() -> None:
    config = load_config(SHIPPED)
    batch.check_settings(config.settings)
    assert config.settings["sizes"] == [8, 32, 128, 256]
    assert all(entry.grammar or entry.regex for entry in config.constraints)


def test_places_are_different_and_spread_evenly() -> None:
    walks = [(1, 2, 3), (1, 2, 9, 9), (5,)]
    every = [(), (1,), (1, 2), (1, 2, 9)]  # each once, and none where a walk has ended
    assert batch.spread_places(walks, 4) == every
    assert batch.spread_places(walks, 2) == [(), (1, 2)]
    assert batch.spread_places(walks, 6) == [*every, (), (1,)]


def test_there_is_a_row_for_each_size_phase_way_and_number_of_threads(rows: list[dict[str, Any]]) -> None:
    ways = [(label, n) for label, way in batch.WAYS.items() for n in ((1, 2) if way.call == "batch" else (1,))]
    found = [(row["size"], row["phase"], row["way"], row["threads"]) for row in rows]
    assert found == [(size, phase, *way) for size in (3, 12) for phase in ("seen", "first") for way in ways]
    for row in rows:
        assert (row["status"], row["message"], row["rounds"]) == ("ok", "", 2)
        assert 0 < row["ns_min"] <= row["ns_median"]
        assert row["places"] <= row["size"]
        assert 1 < row["distinct_masks"] <= row["places"]
        if row["engine"] != "llguidance":  # which has another lexing rule
            assert row["differing"] == 0


def test_places_of_texts_are_taken_unless_the_decider_refuses_them() -> None:
    settings = {**ITEM, "sizes": [40], "walks": 1, "steps": 1, "ways": ["pushdown_trie loop"]}
    (row, _) = batch.run_item(settings, seed=1)
    assert row["places"] == 1  # before the first token
    (row, _) = batch.run_item({**settings, "texts": ["one, two", "one two"]}, seed=1)
    tokens = load_tokenizer("mistral-v1").encode("one, two")
    assert row["places"] == len(tokens) + 1
    assert row["status"] == "ok"


def test_batches_of_a_regex_have_one_language() -> None:
    regex = {name: value for name, value in ITEM.items() if name != "grammar"} | {"regex": "[a-z]{2,9}", "sizes": [5]}
    for row in batch.run_item(regex, seed=1):
        assert (row["status"], row["differing"]) == ("ok", 0)


def test_ways_with_other_masks_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(matchers: Sequence[Matcher], out: batch.Masks, threads: int) -> None:
        for matcher, row in zip(matchers, out[:-1], strict=False):  # the last one keeps what was there
            matcher.fill_mask(row)

    monkeypatch.setitem(batch.BATCH_CALLS, "pushdown_trie", forgetful)
    found = batch.run_item({**ITEM, "sizes": [4], "threads": [1]}, seed=1)
    status = {row["way"]: (row["status"], row["message"]) for row in found}
    assert status.pop("pushdown_trie batch") == (MASKS_DIFFER, "1 of the 4 masks of a batch")
    assert set(status.values()) == {("ok", "")}
    assert all(row["ns_median"] is None for row in found if row["way"] == "pushdown_trie batch")


def test_a_mask_that_is_wrong_only_when_seen_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spoiling(matchers: Sequence[Matcher], out: batch.Masks, threads: int) -> None:
        for matcher, row in zip(matchers, out, strict=True):
            matcher.fill_mask(row)
        calls.append(len(matchers))
        out[0, 0] ^= len(calls) == 2

    monkeypatch.setitem(batch.BATCH_CALLS, "pushdown_trie", spoiling)
    settings = {**ITEM, "sizes": [4], "threads": [1], "ways": ["pushdown_trie loop", "pushdown_trie batch"]}
    found = {row["way"]: row["status"] for row in batch.run_item(settings, seed=1)}
    assert found == {"pushdown_trie loop": "ok", "pushdown_trie batch": MASKS_DIFFER}


def test_a_way_that_fails_has_rows_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(matchers: Sequence[Matcher], out: batch.Masks, threads: int) -> None:
        raise MemoryError("no room")

    monkeypatch.setitem(batch.BATCH_CALLS, "llguidance", broken)
    no_such = Engine("pushdown_trie", "pushdown_trie", {"max_row_items": 0}, "longest")
    monkeypatch.setitem(batch.WAYS, "pushdown_trie loop", batch.Way(no_such, batch.LOOP))
    ways = ["pushdown_trie loop", "earley_trie loop", "llguidance batch"]
    found = batch.run_item({**ITEM, "sizes": [2], "threads": [1], "ways": ways}, seed=1)
    assert [row["status"] for row in found] == ["error", "ok", "memory"] * 2
    assert "max_row_items" in found[0]["message"]


def test_masks_at_the_end_of_a_text_are_right_in_a_batch() -> None:
    # after the last letter nothing but the end may follow, where llguidance's own mask says so only if asked again
    settings = {name: value for name, value in ITEM.items() if name != "grammar"}
    settings |= {"regex": "a|b", "sizes": [4], "walks": 4, "ways": ["llguidance loop", "llguidance batch"]}
    found = batch.run_item(settings, seed=1)
    assert {row["status"] for row in found} == {"ok"}
    assert {row["distinct_masks"] for row in found} == {2}


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"ways": ["pushdown loop"]}, UnknownNameError, "did you mean 'pushdown_trie loop'"),
        ({"sizes": [0]}, OptionError, "settings.sizes must be a list of positive ints"),
        ({"sizes": []}, OptionError, "settings.sizes must be a list of positive ints"),
        ({"threads": [True]}, OptionError, "settings.threads must be a list of positive ints"),
        ({"threads": 2}, OptionError, "settings.threads must be a list of positive ints"),
        ({"size": [8]}, UnknownNameError, "setting of batch 'size'"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        batch.check_settings(settings)


def test_masks_of_a_batch_are_those_of_its_matchers() -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    prefixes = [(), tuple(load_tokenizer("mistral-v1").encode("one")), ()]
    for name, call in batch.BATCH_CALLS.items():
        compiled = create_backend(name, vocab).compile(Grammar(GRAMMAR))
        matchers = batch._matchers(compiled, prefixes)
        out = np.full((3, masks.mask_words(vocab.size)), -1, dtype=np.int32)
        call(matchers, out, 2)
        alone = masks.allocate_mask(vocab.size)
        for matcher, row in zip(matchers, out, strict=True):
            matcher.fill_mask(alone)
            assert np.array_equal(alone, row)
        assert not np.array_equal(out[0], out[1])
