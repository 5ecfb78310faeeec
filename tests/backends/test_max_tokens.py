"""Exact ends: distances, shortest completions and masks of `max_tokens` against a search over forks of matchers."""

from __future__ import annotations

import copy
import pickle
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tokdfa
from tests.walks import mask_of as allowed_by
from tokdfa.backends.pushdown_trie.compiled import PushdownTables
from tokdfa.backends.shortest_ends import ShortestEnds
from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.some_end import SomeEnd
from tokdfa.backends.spelled_ends import fewest_tokens
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import (
    ArgumentError,
    EmptyLanguageError,
    GrammarUnsupported,
    LimitExceeded,
    TokenRefused,
    UnsupportedConstraint,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher

BYTES = [bytes([byte]) for byte in range(256)]
LONGER = [b"aa", b"ab", b"a(", b"((", b"))", b")]", b'":', b'{"', b'"a":', b"1,", b"]]", b'"}', b"abb", b"[1", b"true"]
VOCAB = Vocabulary([*BYTES, *LONGER, b""], end_tokens=[256 + len(LONGER)])

NESTED = 'start: "(" [start] ")" | "[" item "]" | "ab"\nitem: start ("," start)*\n'
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 1}, "ok": {"type": "boolean"}},
    "required": ["a", "ok"],
    "additionalProperties": False,
}
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("token_index", {}, tokdfa.Regex(r"a+(\(\(|b{2,5})\)\)")),
    ("token_index", {"lazy": True}, tokdfa.Regex(r"a+(\(\(|b{2,5})\)\)")),
    ("tokens_dfa", {}, tokdfa.Regex(r"(ab|a\(){2,4}")),
    ("tokens_dfa", {"mute_literals": True}, tokdfa.Regex(r"true(ab|a\(){2,4}")),
    ("earley_trie", {}, tokdfa.Grammar(NESTED)),
    ("pushdown_trie", {}, tokdfa.Grammar(NESTED)),
    ("cfg_fsm", {}, tokdfa.Grammar('start: "(" inner ")" | "ab"\ninner: start | "[1" "]"\n')),
    ("pushdown_trie", {}, tokdfa.JsonSchema(SCHEMA, whitespace="compact")),
    ("brute_force", {}, tokdfa.Regex(r"(ab|a\(){1,2}")),
]


def ids(case: tuple[str, dict[str, Any], Any]) -> str:
    return "-".join([case[0], *case[1], case[2].kind])


def distance_by_forks(matcher: Matcher, limit: int) -> int | None:
    """Breadth first over forks, the states told apart by what they do next."""
    agenda, seen = [matcher.fork()], set()
    for steps in range(limit + 1):
        following = []
        for here in agenda:
            if here.can_end():
                return steps
            for token in allowed_by(here):
                after = here.fork()
                after.advance(token)
                if after.whereabouts() not in seen:
                    seen.add(after.whereabouts())
                    following.append(after)
        agenda = following
    return None


@pytest.mark.parametrize("case", CASES, ids=map(ids, CASES))
def test_shortest_completions_are_shortest_and_complete(case: tuple[str, dict[str, Any], Any]) -> None:
    backend, options, constraint = case
    compiled = tokdfa.compile(constraint, VOCAB, backend, **options)
    for matcher in walks(compiled, count=6, length=6):
        ends = matcher.shortest_completion()
        assert len(ends) == distance_by_forks(matcher, len(ends))
        for token in ends:
            assert not matcher.can_end()
            matcher.advance(token)
        assert matcher.can_end()
        assert matcher.shortest_completion() == []


def walks(compiled: CompiledConstraint, count: int, length: int) -> list[Matcher]:
    """Matchers after some random tokens."""
    chance, found = random.Random(1), []
    for _ in range(count):
        matcher = compiled.start()
        for _ in range(chance.randrange(length)):
            allowed = allowed_by(matcher)
            if not allowed:
                break
            matcher.advance(chance.choice(allowed))
        if not matcher.is_finished():
            found.append(matcher)
    return found


@pytest.mark.parametrize("case", CASES, ids=map(ids, CASES))
def test_masks_hold_what_can_be_closed_in_time_and_nothing_else(case: tuple[str, dict[str, Any], Any]) -> None:
    backend, options, constraint = case
    compiled = tokdfa.compile(constraint, VOCAB, backend, **options)
    shortest = len(compiled.start().shortest_completion())
    chance = random.Random(2)
    for spare in (0, 1, 3, 30):
        plain, ending = compiled.start(), compiled.start(max_tokens=shortest + spare)
        for step in range(shortest + spare + 1):
            left = shortest + spare - step
            expected = []
            for token in allowed_by(plain):
                after = plain.fork()
                after.advance(token)
                if after.is_finished() or (left and distance_by_forks(after, left - 1) is not None):
                    expected.append(token)
            assert allowed_by(ending) == expected
            assert [token for token in range(VOCAB.size) if ending.allows(token)] == expected
            texts = [token for token in expected if token not in VOCAB.end_tokens]
            if not texts:
                break
            assert step < shortest + spare
            token = chance.choice(texts)
            plain.advance(token)
            ending.advance(token)
        assert ending.can_end()


def test_what_comes_too_late_is_refused_and_changes_nothing() -> None:
    compiled = tokdfa.compile(tokdfa.Grammar(NESTED), VOCAB, "pushdown_trie")
    matcher = compiled.start(max_tokens=3)
    matcher.advance(ord("("))
    before = allowed_by(matcher)
    with pytest.raises(TokenRefused, match="2 tokens left"):
        matcher.advance(256 + LONGER.index(b"(("))
    assert allowed_by(matcher) == before
    twin = matcher.fork()
    for token in twin.shortest_completion():
        twin.advance(token)
    assert twin.can_end()
    assert not matcher.can_end()
    for other in (copy.copy(matcher), pickle.loads(pickle.dumps(matcher))):
        assert allowed_by(other) == before
        assert other.tokens == matcher.tokens
    matcher.rollback(1)
    assert matcher.tokens_left == 3
    assert allowed_by(matcher) == allowed_by(compiled.start(max_tokens=3))


def test_special_tokens_of_a_grammar_count() -> None:
    vocab = Vocabulary([*BYTES, b"", b""], end_tokens=[256], special_tokens={257: "<|tool|>"})
    grammar = tokdfa.Grammar('start: /[a-z]{3,9}/ | <|tool|> "x"\n')
    for backend in ("earley_trie", "pushdown_trie"):
        matcher = tokdfa.compile(grammar, vocab, backend).start(max_tokens=2)
        assert allowed_by(matcher) == [257]
        assert matcher.shortest_completion() == [257, ord("x")]


class Unguided(SituationSource):
    """A source without its waypoints, so that a search expands whatever is near."""

    def __init__(self, source: SituationSource) -> None:
        self.number, self.step, self.targets = source.number, source.step, source.targets
        self.fill, self.can_end = source.fill, source.can_end


def random_grammar(chance: random.Random) -> tokdfa.Grammar:
    """Rules over a few letters and brackets, nested, some optional; each comes to an end by its first alternative."""

    def symbol() -> str:
        kind = chance.randrange(5)
        if kind == 0:
            return chance.choice(("/[ab]+/", "/a{0,9}b/", "/(ab|c)*d/"))
        if kind < 3:
            return f"n{chance.randrange(4)}" + chance.choice(("", "", "?", "*"))
        return '"' + "".join(chance.choices("abcd[],", k=chance.randint(1, 5))) + '"'

    def row() -> str:
        return " ".join(symbol() for _ in range(chance.randint(1, 4)))

    rules = []
    for number in range(4):
        first = '"' + "".join(chance.choices("abcd[],", k=chance.randint(1, 3))) + '"'
        rules.append(f"n{number}: " + " | ".join([first, *(row() for _ in range(chance.randint(1, 3)))]))
    required = " ".join(f"n{chance.randrange(4)}" for _ in range(3))
    return tokdfa.Grammar("\n".join([f'start: "[" {required} "]"', *rules]))


#: Of 15 random grammars. Two of those drawn have dead ends with more and more brackets or letters to come, so that a
#: search of them has no end: behind "dd" two /[ab]+/ in a row would have to follow, say, which are one.
MOST_REFUSED = 2


def compile_unless_astray(
    constraint: Any, vocab: Vocabulary, backend: str, options: dict[str, Any]
) -> CompiledConstraint | None:
    """None if the longest match may keep texts from their end, and a search does not find out where."""
    if options.get("lexer", "any") == "any":
        return tokdfa.compile(constraint, vocab, backend, **options)
    try:
        return tokdfa.compile(constraint, vocab, backend, **options)
    except GrammarUnsupported as error:
        if "may swallow" not in str(error):
            raise
        return None


def random_vocabulary(chance: random.Random, letters: str) -> Vocabulary:
    longer = {"".join(chance.choices(letters, k=chance.randint(2, 5))).encode() for _ in range(25)}
    tokens = [*BYTES, *sorted(longer), b""]
    return Vocabulary(tokens, end_tokens=[len(tokens) - 1])


def random_schema(chance: random.Random) -> tokdfa.JsonSchema:
    """Objects of objects, members of any JSON and short strings among them, some required."""

    def value(depth: int) -> Any:
        plain: list[Any] = [{}, {"type": "array"}, {"type": "boolean"}, {"type": "string", "maxLength": 3}]
        plain.append({"enum": ["abc", "bca"]})
        return members(depth - 1) if depth and chance.random() < 0.3 else chance.choice(plain)

    def members(depth: int) -> dict[str, Any]:
        names = sorted({"".join(chance.choices("abc", k=chance.randint(1, 6))) for _ in range(3)})
        properties = {name: value(depth) for name in names}
        required, is_open = chance.sample(names, chance.randint(1, len(names))), chance.random() < 0.5
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": is_open}

    return tokdfa.JsonSchema(members(2), whitespace="compact", escapes="needed")


@pytest.mark.parametrize("kind", ["longest", "any", "schema"])
def test_what_waypoints_spare_is_no_shorter(kind: str) -> None:
    compared, plain_work, guided_work, slack, refused = 0, 0, 0, 0, 0
    for seed in range(15):
        chance = random.Random(seed)
        if kind == "schema":
            constraint: Any = random_schema(chance)
            vocab = random_vocabulary(chance, 'abc"{}[],:')
            options: dict[str, Any] = {}
        else:
            constraint, vocab = random_grammar(chance), random_vocabulary(chance, "abcd[],")
            options = {"lexer": kind}
        compiled = compile_unless_astray(constraint, vocab, "pushdown_trie", options)
        if compiled is None:
            refused += 1
            continue
        for matcher in walks(compiled, count=2, length=4):
            plain = ShortestEnds(Unguided(matcher.situation_source()), vocab)
            try:
                with spending(Budget(0.3, 256, "step"), "a search without waypoints"):
                    expected = len(plain.path(matcher.whereabouts()))
            except LimitExceeded:
                continue  # too many situations are near: what waypoints are for
            except EmptyLanguageError:
                with pytest.raises(EmptyLanguageError, match="no tokens lead"):
                    matcher.shortest_completion()
                continue
            ends = matcher.shortest_completion()
            assert len(ends) == expected, (seed, str(constraint))
            for token in ends:
                matcher.advance(token)
            assert matcher.can_end()
            guided = next(iter(compiled.ends.values()))
            for situation, (least, most) in plain._bounds.items():
                if least == most and situation in guided._bounds:
                    low, high = guided._bounds[situation]
                    assert low <= least <= high
            compared += 1
            plain_work += len(plain._edges)
            guided_work += len(guided._edges)
            slack += sum(tokens > 1 for tokens in guided._slacks.values())
    assert refused <= MOST_REFUSED
    assert compared > 10
    assert slack  # some ends of tokens take two tokens and more
    assert guided_work < plain_work or kind == "any"  # to know the slack of a waypoint is to expand it


@pytest.mark.parametrize(
    "engine",
    [
        *("pushdown_trie longest", "pushdown_trie any", "pushdown_trie schema"),
        *("earley_trie longest", "earley_trie one_byte", "earley_trie schema", "cfg_fsm nested"),
    ],
)
def test_some_end_is_an_end_and_no_nearer_than_the_nearest(engine: str) -> None:
    (backend, kind), found, refused = engine.split(), 0, 0
    for seed in range(15):
        chance, options = random.Random(seed), dict[str, Any]()
        if kind == "schema":
            constraint: Any = random_schema(chance)
        elif kind == "nested":
            constraint = tokdfa.Grammar(NESTED)
        else:
            constraint, options = random_grammar(chance), {"lexer": kind}
        vocab = random_vocabulary(chance, 'abcd"{}[],:')
        compiled = compile_unless_astray(constraint, vocab, backend, options)
        if compiled is None:
            refused += 1
            continue
        for matcher in walks(compiled, count=3, length=6):
            source = matcher.situation_source()
            assert source is not None
            way = SomeEnd(source).way(source.number(matcher.whereabouts()))
            if way is None:
                assert kind in ("longest", "one_byte")  # the longest match may cut off every text
                continue
            text, situations = way
            bound = fewest_tokens(vocab, text)[0]
            if bound <= 2:  # a search without bounds goes that far
                assert ShortestEnds(Unguided(source), vocab).is_within(matcher.whereabouts(), bound)
            for byte, situation in zip(text, situations, strict=False):
                assert source.number(matcher.whereabouts()) == situation
                matcher.advance(byte)
            assert matcher.can_end()
            found += 1
    assert refused <= MOST_REFUSED
    assert found > 10


@pytest.mark.parametrize("backend", ["pushdown_trie", "earley_trie"])
def test_many_required_members_are_bounded_where_tokens_are_left(backend: str) -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    members: dict[str, Any] = {f"{k}th_of_many": {"type": "string", "format": "uuid"} for k in range(20)}
    schema = {"properties": members, "required": list(members)[::2], "type": "object"}
    compiled = tokdfa.compile(tokdfa.JsonSchema(schema), tokenizer.vocabulary, backend, step_seconds=0.3)
    with pytest.raises(LimitExceeded, match="step_seconds"):
        compiled.start().shortest_completion()  # exactly: too many ways
    plain, ending = compiled.start(), compiled.start(max_tokens=800)
    for token in tokenizer.encode('{"0th_of_many": "01234567-89ab-cdef-0123-456789abcdef", "2'):
        assert allowed_by(ending) == allowed_by(plain)
        plain.advance(token)
        ending.advance(token)


def test_an_end_is_found_without_writing_all_orders_of_members() -> None:
    """A way to the end is followed to the end, and not begun anew at each member."""
    schema = tokdfa.JsonSchema({"type": "object", "required": [f"a{number}" for number in range(16)]}, order="any")
    compiled = tokdfa.compile(schema, VOCAB, "pushdown_trie")
    assert isinstance(compiled, PushdownTables)
    compiled.start(max_tokens=2000)
    assert len(compiled.program.source.written) < 500


def test_free_json_between_required_members_is_settled() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    members: dict[str, Any] = {
        f"{word}Of{k}": {} for k, word in enumerate(("replicas", "conditions", "metrics", "kind"))
    }
    schema = {"properties": members, "required": list(members), "additionalProperties": False, "type": "object"}
    compiled = tokdfa.compile(tokdfa.JsonSchema(schema), tokenizer.vocabulary, "pushdown_trie")
    matcher = compiled.start()
    with pytest.raises(LimitExceeded, match="step_seconds"), spending(compiled.working.budget, "without waypoints"):
        ShortestEnds(Unguided(matcher.situation_source()), tokenizer.vocabulary).path(matcher.whereabouts())
    ends = matcher.shortest_completion()
    ending = compiled.start(max_tokens=len(ends))
    for token in ends:
        ending.advance(token)
    assert ending.can_end()
    with pytest.raises(ArgumentError, match=f"the shortest has {len(ends)}"):
        compiled.start(max_tokens=len(ends) - 1)


def test_errors_say_what_to_do() -> None:
    compiled = tokdfa.compile(tokdfa.JsonSchema(SCHEMA, whitespace="compact"), VOCAB, "pushdown_trie")
    shortest = len(compiled.start().shortest_completion())
    with pytest.raises(ArgumentError, match=f"the shortest has {shortest}"):
        compiled.start(max_tokens=shortest - 1)
    compiled.start(max_tokens=shortest)
    with pytest.raises(ArgumentError, match="max_tokens"):
        compiled.start(max_tokens=-1)
    with pytest.raises(ArgumentError, match="max_tokens"):
        compiled.start(max_tokens="many")  # type: ignore[arg-type]
    peer = tokdfa.compile(tokdfa.Regex("a+"), VOCAB, "llguidance")
    with pytest.raises(UnsupportedConstraint, match="own backends"):
        peer.start(max_tokens=3)
    with pytest.raises(UnsupportedConstraint, match="own backends"):
        peer.start().shortest_completion()


def test_a_search_without_end_is_bounded_and_keeps_what_it_found() -> None:
    vocab = Vocabulary([b"a", b"b", b"c", b""], end_tokens=[3])
    compiled = tokdfa.compile(tokdfa.Regex("[abc]{5000}"), vocab, "token_index", lazy=True)
    with pytest.raises(LimitExceeded, match="step_seconds"):
        compiled.start().shortest_completion()
    known = len(next(iter(compiled.ends.values()))._edges)
    assert known > 100
    patient = tokdfa.compile(tokdfa.Regex("[abc]{5000}"), vocab, "token_index", lazy=True, step_seconds=60)
    assert len(patient.start().shortest_completion()) == 5000


def test_proper_sequences_end_too() -> None:
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    compiled = tokdfa.compile(tokdfa.Regex("(true|false) [a-c]{2}"), tokenizer.vocabulary, "cartesian_merge")
    ends = compiled.start().shortest_completion()
    matcher = compiled.start(max_tokens=len(ends))
    for token in ends:
        assert token in allowed_by(matcher)
        matcher.advance(token)
    assert matcher.can_end()
    assert np.all(np.isin(allowed_by(matcher), tokenizer.vocabulary.end_tokens))
