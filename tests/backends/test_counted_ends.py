"""Searches for ends under budgets: their work is counted, so a step beyond its budget ends after bounded work.

What is done is counted by what is visited, not by time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends.max_tokens import ends_of
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.shortest_ends import ShortestEnds
from tokdfa.backends.some_end import SomeEnd, settle_ranks
from tokdfa.backends.spelled_ends import fewest_tokens
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.parts import json
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.matcher import Matcher

LONG = [b"aa", b'","', b'{"', b'":', b'"}', b"value", b"prop", b"<think>", b"</think>", b'"value 1', b'"a"', b" " * 9]
VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONG, b""], end_tokens=[256 + len(LONG)])
#: A visited place takes a few nanoseconds at least.
NS_PER_VISIT = 4


def names(count: int) -> JsonSchema:
    properties = {f"prop{k * 7919 % 9999991}": {"type": "string"} for k in range(count)}
    return JsonSchema({"type": "object", "properties": properties, "additionalProperties": False})


def listed(count: int) -> JsonSchema:
    return JsonSchema({"enum": [f"value {k * 7919 % 9999991}" for k in range(count)]})


def matcher_after(constraint: Any, text: bytes, most: int | None, backend: str = "pushdown_trie") -> Matcher:
    compiled = tokdfa.compile(constraint, VOCAB, backend, step_seconds=1_000.0, step_mb=10_000.0)
    matcher = compiled.start(max_tokens=most)
    for byte in text:
        matcher.advance(byte)
    return matcher


@pytest.mark.parametrize(
    ("constraint", "text", "most"),
    [(names(600), b'{"prop7919":"a","', 30), (listed(60_000), b'"value 1', 12)],
    ids=["within a name", "within a text"],
)
def test_places_that_names_lead_to_are_counted(
    constraint: JsonSchema, text: bytes, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hundreds of names no row is made, and no list for each situation."""
    vocab, visited, made = tokdfa.load_tokenizer("mistral-v1").vocabulary, 0, 0
    matcher = tokdfa.compile(constraint, vocab, "pushdown_trie", step_seconds=1_000.0).start(max_tokens=most)
    for byte in text:
        matcher.advance(vocab.trie.prefixes_of(bytes([byte]))[0])
    after, intern = Machine.places_after, Machine.make_row

    def places_after(machine: Machine, place: int) -> list[int]:
        nonlocal visited
        found = after(machine, place)
        visited += len(found)
        return found

    def count(machine: Machine, following: list[tuple[int, int]]) -> int:
        nonlocal made
        made += 1
        return intern(machine, following)

    monkeypatch.setattr(Machine, "places_after", places_after)
    monkeypatch.setattr(Machine, "make_row", count)
    with spending(Budget(1_000, 10_000, "step"), "a mask") as account:
        mask_of(matcher)
    assert account.work_done > NS_PER_VISIT * visited
    assert made < 10_000, "rows that no search looks at"


# Each part, under a budget that is used up at once.


def source_of(matcher: Matcher) -> Any:
    return matcher.situation_source()


def some_end() -> Callable[[], Any]:
    source = source_of(matcher_after(names(20), b'{"prop', None))
    ways = SomeEnd(source)
    return lambda: ways.way(source.number(0))


def ranks() -> Callable[[], Any]:
    source = source_of(matcher_after(names(40), b"{", None))
    return lambda: source.rank(0)


def ranks_of_rows() -> Callable[[], Any]:
    matcher = matcher_after(names(40), b"{", None, "earley_trie")
    source = source_of(matcher)
    situation = source.number(matcher.whereabouts())
    source.rank(situation)  # what is kept of the grammar and of the row's origins
    return lambda: source.rank(situation)


def waypoints() -> Callable[[], Any]:
    matcher = matcher_after(listed(3_000), b'"value 1', None)
    source = source_of(matcher)
    return lambda: source.waypoints(source.number(matcher.whereabouts()), False)


def targets_of_plain_matchers() -> Callable[[], Any]:
    compiled = tokdfa.compile(Regex("[a-z]*"), VOCAB, "brute_force")
    matcher = compiled.start()
    source = ends_of(compiled, matcher).source
    situation = source.number(matcher.whereabouts())
    return lambda: source.targets(situation).tolist()


def both_budgets() -> Callable[[], Any]:
    compiled = tokdfa.think_first(json({"type": "boolean"}), VOCAB, 9)
    matcher = compiled.start()
    source = source_of(matcher)
    situation = source.number(matcher.whereabouts())
    return lambda: set(np.flatnonzero(source.targets(situation) >= 0))


def healed() -> Callable[[], Any]:
    compiled = tokdfa.compile(Regex('a"[a-z]+|alue 1'), VOCAB, "token_index")
    matcher = tokdfa.heal(compiled, [ord('"'), ord("v")]).start()
    source = source_of(matcher)
    situation = source.number(matcher.whereabouts())
    return lambda: set(np.flatnonzero(source.targets(situation) >= 0))


def shared_stacks() -> Callable[[], Any]:
    known = {0: 0}

    def settle() -> int:
        settle_ranks([5_000], known, lambda stack: [(1, stack - 1)])
        return known[5_000]

    return settle


PARTS: dict[str, tuple[Callable[[], Callable[[], Any]], float]] = {
    "the fewest tokens of a text": (lambda: lambda: fewest_tokens(VOCAB, b"a" * 1_000)[:2], 1e-4),
    "some way to an end": (some_end, 1e-4),
    "the ranks of instructions": (ranks, 1e-4),
    "the ranks of stacks": (shared_stacks, 1e-4),
    "the ranks of rows": (ranks_of_rows, 5e-6),
    "the waypoints of many names": (waypoints, 1e-4),
    "targets, a token at a time": (targets_of_plain_matchers, 5e-5),
    "targets in two budgets": (both_budgets, 2e-5),
    "targets behind a head": (healed, 1e-5),
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_counted_and_repeats_what_it_was_refused(part: str) -> None:
    """Refused again and again in the same way; with work to spare it finds what it finds without a budget."""
    make, seconds = PARTS[part]
    refused, fresh = make(), make()
    for _ in range(3):
        with pytest.raises(LimitExceeded, match="step_seconds"), spending(Budget(seconds, 256, "step"), "a step"):
            refused()
    assert refused() == fresh()


@pytest.mark.parametrize("most", [12, 40])
def test_what_restricts_a_mask_is_counted_by_its_targets(most: int) -> None:
    """A mask whose tokens lead to hundreds of situations, the second time, when all is known but their distances."""
    grammar = Grammar("start: " + " | ".join(f'"{chr(97 + k % 26)}{k}" r{k}' for k in range(300)) + "\n" + "".join(
        f'r{k}: "{k}x" r{(k + 1) % 300}?\n' for k in range(300)
    ))  # fmt: skip
    compiled = tokdfa.compile(grammar, VOCAB, "pushdown_trie")
    matcher = compiled.start()
    ends = ends_of(compiled, matcher)
    mask = tokdfa.allocate_mask(VOCAB.size)
    matcher.fill_mask(mask)
    before = mask.copy()
    ends.restrict(matcher.whereabouts(), most, mask)
    counted = []
    for _ in range(2):
        with spending(Budget(1_000, 10_000, "step"), "a mask") as account:
            ends.restrict(matcher.whereabouts(), most, before.copy())
        counted.append(account.work_done)
    assert counted[0] == counted[1] >= 1_000 * len(ends._edges_of(0)[0])


def test_the_mask_of_a_head_is_counted() -> None:
    """Behind a blank lies half of a vocabulary, each token of which may begin a text."""
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    prompt, masks_made = tokenizer.encode("a ")[:-1] + tokenizer.vocabulary.trie.prefixes_of(b" ")[:1], []
    for seconds in (0.02, 0.02, 10.0):
        compiled = tokdfa.compile(Regex("[a-z]+"), tokenizer, "token_index", step_seconds=seconds)
        matcher = tokdfa.heal(compiled, prompt, 1).start()
        if seconds < 1:
            for _ in range(2):
                with pytest.raises(LimitExceeded, match="step_seconds"):
                    mask_of(matcher)
        else:
            masks_made = mask_of(matcher)
    assert len(masks_made) > 1_000


def test_a_refused_search_leaves_what_is_true() -> None:
    """Whatever a search under a small budget left behind, the distance is that of a fresh one."""
    for seconds in (1e-5, 1e-4, 1e-3, 1e-2):
        matcher = matcher_after(names(30), b'{"prop', None)
        source = source_of(matcher)
        ends = ShortestEnds(source, VOCAB)
        with suppress(LimitExceeded), spending(Budget(seconds, 256, "step"), "a step"):
            ends.path(matcher.whereabouts())
        fresh = ShortestEnds(source, VOCAB)
        assert len(ends.path(matcher.whereabouts())) == len(fresh.path(matcher.whereabouts()))
