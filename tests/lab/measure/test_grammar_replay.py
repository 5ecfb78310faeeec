"""Driving engines along paths: which paths there are, what is counted, cold and warm rounds, and that faults show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.run.fake_backends import journal
from tokdfa.backends import registry
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.measure.grammar_replay import (
    MASKS_DIFFER,
    RANDOM,
    TEXTS,
    Engine,
    check_numbers,
    chosen,
    constraint_of,
    plan_paths,
    quantiles,
    replay,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENIZER = load_tokenizer("bytes")
END = TOKENIZER.vocabulary.end_tokens[0]
#: A list of words: every comma brings back a row that was there before.
GRAMMAR = Grammar('start: "[" WORD ("," WORD)* "]"\nWORD: /[ab]+/\n', label="words")
EARLEY = Engine("earley", "earley_trie", {}, "ours")
WALK = Engine("walk", "earley_trie", {"mask": "walk", "memo": False, "memo_steps": False}, "ours")
WORDS = [(*b"[a,b,a]", END), (*b"[ab]", END)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The backend "fake" of `tests.lab.run.fake_backends` can be named."""
    monkeypatch.setitem(registry.BUILT_IN, "fake", "tests.lab.run.fake_backends:Fake")
    registry._targets.cache_clear()
    journal.clear()
    yield
    registry._targets.cache_clear()


def fakes(**options: Any) -> Engine:
    return Engine(str(options), "fake", options, "fake")


def test_paths_are_random_walks_and_texts() -> None:
    settings: dict[str, Any] = {"walks": 4, "steps": 6, "texts": ["[a]", "[b,b]"]}
    paths = plan_paths(settings, GRAMMAR, TOKENIZER, EARLEY, seed=3)
    assert list(paths) == [RANDOM, TEXTS]
    assert len(paths[RANDOM]) == 4
    assert all(1 <= len(walk) <= 6 and walk[0] == ord("[") for walk in paths[RANDOM])
    assert paths[TEXTS] == [(*b"[a]", END), (*b"[b,b]", END)]
    assert plan_paths(settings, GRAMMAR, TOKENIZER, EARLEY, seed=3) == paths
    assert plan_paths(settings, GRAMMAR, TOKENIZER, EARLEY, seed=4)[RANDOM] != paths[RANDOM]
    assert list(plan_paths({}, GRAMMAR, TOKENIZER, EARLEY, seed=3)) == [RANDOM]


@pytest.mark.parametrize(("limit", "texts"), [(1, ["[a]"]), (7, ["[a]"]), (8, ["[a]", "[b]"]), (9, ["[a]", "[b]"])])
def test_texts_are_taken_while_they_fit_and_one_in_any_case(limit: int, texts: list[str]) -> None:
    settings = {"texts": ["[a]", "[a,a,a,a,a,a]", "[b]"], "text_tokens": limit}
    found = plan_paths(settings, GRAMMAR, TOKENIZER, EARLEY, seed=0)[TEXTS]
    assert found == [(*text.encode(), END) for text in texts]


def test_a_replay_counts_masks_work_and_what_is_held() -> None:
    earley, walk = replay([EARLEY, WALK], GRAMMAR, TOKENIZER, WORDS, {"rounds": 2})
    size = len(WORDS[0]) + len(WORDS[1])
    for one in (earley, walk):
        assert (one.status, one.message) == ("ok", "")
        assert len(one.compile_ns) == 2
        assert [len(times) for times in (*one.mask_ns, *one.advance_ns)] == [size] * 4
        assert min(map(min, (*one.mask_ns, *one.advance_ns))) > 0
        # "[" is forced, then a or b, then more of the word or an end of it, and only an end token after "]"
        assert one.allowed == [1, 2, 4, 2, 4, 2, 4, 1, 1, 2, 4, 4, 1]
        assert one.held == earley.held
    assert walk.total("masks_made") == size
    # before "[", after "[", in a word, after a comma, in a word after one, at the end; the rest was met before
    assert earley.total("masks_made") == earley.held["situations"] == 6
    assert sum(work["masks_made"] for work in earley.work[len(WORDS[0]) :] if work) == 0
    assert walk.total("nodes_visited") > earley.total("nodes_visited") > 0


def test_rows_are_counted_once_however_they_are_come_by() -> None:
    (one,) = replay([EARLEY], GRAMMAR, TOKENIZER, WORDS, {"rounds": 1})
    held = one.held
    assert held["rows_scanned"] == held["rows_refused"] + held["rows_found"] + held["rows"] - 1
    assert held["rows_found"] > 0  # the word after the second comma ends in the row of the one before
    assert held["rows"] < len(WORDS[0])


def test_cold_rounds_compile_and_warm_ones_do_not(fake: None) -> None:
    walks = [tuple(b"ab")]
    for warm, compiles in ((False, 4), (True, 1)):
        journal.clear()
        (one,) = replay([fakes()], Regex("ab"), TOKENIZER, walks, {"rounds": 3}, warm=warm)
        assert len([what for _, what in journal if what == "compile"]) == compiles
        assert len(one.compile_ns) == compiles - 1
        assert len(one.mask_ns) == 3
    earley = replay([EARLEY], GRAMMAR, TOKENIZER, WORDS, {"rounds": 1}, warm=True)[0]
    assert (earley.total("masks_made"), earley.total("masks_made", first=True)) == (0, 6)
    assert len(earley.first_ns) == len(earley.first_work) == len(earley.allowed)


def test_engines_take_turns(fake: None) -> None:
    replay([fakes(tag=tag) for tag in range(3)], Regex("ab"), TOKENIZER, [tuple(b"ab")], {"rounds": 3})
    assert [tag for tag, what in journal if what == "compile"] == list("012" + "012" + "120" + "201")


@pytest.mark.parametrize(
    ("trick", "status", "said"),
    [
        ({"how": "unsupported"}, "unsupported", "does not take this one"),
        ({"how": "limit"}, "memory", "too many states"),
        ({"how": "panic"}, "crash", "the engine broke down"),
        ({"how": "raise", "where": "init"}, "error", "on purpose"),
        ({"how": "raise", "where": "advance"}, "error", "on purpose"),
        ({"how": "wide"}, MASKS_DIFFER, "at position 0, in 3 tokens"),
        ({"how": "strict"}, MASKS_DIFFER, "a token of the path is refused"),
    ],
)
def test_one_that_fails_says_so_and_holds_up_nobody(fake: None, trick: dict[str, str], status: str, said: str) -> None:
    good, bad = replay([fakes(), fakes(**trick)], Regex("ab"), TOKENIZER, [tuple(b"ab")], {"rounds": 2})
    assert (bad.status, len(bad.mask_ns)) == (status, 0)
    assert said in bad.message
    assert (good.status, len(good.mask_ns)) == ("ok", 2)


def test_masks_are_compared_within_a_language_only(fake: None) -> None:
    other = Engine("other", "fake", {"how": "wide"}, "another")
    assert [one.status for one in replay([fakes(), other], Regex("ab"), TOKENIZER, [tuple(b"ab")], {})] == ["ok", "ok"]


def test_a_round_that_takes_too_long_is_a_failure_and_seconds_end_the_rounds(fake: None) -> None:
    walks = [tuple(b"ab")]
    (slow,) = replay([fakes(how="nap", where="mask")], Regex("ab"), TOKENIZER, walks, {"seconds": 0.05})
    assert (slow.status, slow.mask_ns) == ("timeout", [])
    (one,) = replay([fakes(how="nap", where="mask")], Regex("ab"), TOKENIZER, walks, {"seconds": 0.3, "rounds": 9})
    assert one.status == "ok"
    assert len(one.mask_ns) <= 3  # of 0.12 s each


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"round": 3}, UnknownNameError, "did you mean 'rounds'"),
        ({"rounds": 0}, OptionError, "settings.rounds must be a positive int, not 0"),
        ({"walks": 1.5}, OptionError, "settings.walks must be a positive int"),
        ({"steps": True}, OptionError, "settings.steps"),
        ({"seconds": math.nan}, OptionError, "settings.seconds must be a positive float"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    check_numbers("some kind", {"rounds": 1, "seconds": 2, "more": "x"}, ["more"])
    with pytest.raises(error, match=said):
        check_numbers("some kind", settings)


def test_names_are_chosen_among_those_known() -> None:
    assert chosen({}, "engines", ["a", "b"]) == ["a", "b"]
    assert chosen({"engines": ["b"]}, "engines", ["a", "b"]) == ["b"]
    with pytest.raises(UnknownNameError, match=r"settings\.engines 'c'"):
        chosen({"engines": ["c"]}, "engines", ["a", "b"])
    with pytest.raises(OptionError, match="list of names"):
        chosen({"engines": "a"}, "engines", ["a", "b"])


def test_grammars_and_regexes_are_taken() -> None:
    assert constraint_of({"grammar": 'x: "a"', "start": "x", "label": "g"}) == Grammar('x: "a"', "x", label="g")
    assert constraint_of({"regex": "a", "flags": "i"}) == Regex("a", flags="i")
    with pytest.raises(OptionError, match="each constraint must be one of them"):
        constraint_of({"choice": ["a"]})


def test_quantiles_pool_the_rounds() -> None:
    assert quantiles([[1, 2], [3, 10]], "x") == {"x_p50": 2.5, "x_mean": 4.0, "x_p99": pytest.approx(9.79)}
    assert quantiles([], "x") == {"x_p50": None, "x_mean": None, "x_p99": None}
