"""Masks over vocabularies that lack bytes: by the plain search, by the laws that spare it, and in counted work."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tokdfa
from tests.backends.gap_cases import WAYS, constraint_of, vocabulary_of
from tests.naive.token_liveness import TokenLiveness
from tests.packages import needs_smollm2
from tests.walks import mask_of
from tokdfa.automata.liveness import coaccessible_states
from tokdfa.backends.lazy_liveness import LazyLiveness
from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import EmptyLanguageError, LimitExceeded, TokdfaError, UnsupportedConstraint, VocabularyCannotSpell
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.program.json_text import SPELLED_BY
from tokdfa.regex.compile import compile_lazy
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
INPUTS = Path(__file__).parents[2] / "experiments" / "inputs"


# Against the plain search.


@pytest.mark.parametrize(("kind", "count"), [("regex", 30), ("grammar", 40), ("schema", 40)])
def test_masks_are_those_of_the_plain_search(kind, count):
    outcomes = Counter()
    for seed in range(count):
        rng = random.Random(f"{kind} {seed}")
        constraint, vocab = constraint_of(kind, rng), vocabulary_of(kind, rng)
        for backend, options in WAYS[kind]:
            try:
                outcomes[walk(constraint, vocab, backend, options, random.Random(seed))] += 1
            except LimitExceeded:
                outcomes["limit"] += 1
    assert outcomes["walked"] > outcomes.total() / 3
    assert outcomes["unspellable"] > 2
    assert outcomes["unknown"] + outcomes["limit"] < outcomes.total() / 10


def walk(constraint, vocab, backend, options, rng):
    """Compare the masks along one walk; how it ended."""
    searches = {} if backend in ("token_index", "tokens_dfa") else {"max_search": 2_000}
    try:
        judge = tokdfa.compile(constraint, BYTES, backend=backend, **options).start()
    except (UnsupportedConstraint, EmptyLanguageError):
        return "refused"
    texts = [vocab.token_bytes(token) for token in range(vocab.size)]
    search = TokenLiveness(texts)
    try:
        compiled = tokdfa.compile(constraint, vocab, backend=backend, **searches, **options)
    except VocabularyCannotSpell:
        assert not search.is_live(judge), constraint
        return "unspellable"
    matcher, known = compiled.start(), True
    for _ in range(5):
        found = mask_of(matcher)
        for token, text in enumerate(texts):
            allowed = search.allows(judge, text)
            known = known and allowed is not None
            if allowed is not None and token not in vocab.end_tokens:
                assert (token in found) == allowed == matcher.allows(token), (constraint, backend, options, text)
        tokens = [token for token in found if token not in vocab.end_tokens]
        assert (len(tokens) < len(found)) == judge.can_end()
        if not tokens:
            break
        token = rng.choice(tokens)
        matcher.advance(token)
        for byte in texts[token]:
            judge.advance(byte)
    return "walked" if known else "unknown"


@pytest.mark.parametrize("backend", ["earley_trie", "pushdown_trie"])
def test_special_tokens_lead_to_an_end(backend):
    """No b: only the special token ends what an a has begun; behind it c is a token inside another only."""
    vocab = Vocabulary([b"a", b"ac", b"cd", b"", b""], end_tokens=[4], special_tokens={3: "<|x|>"})
    grammar = Grammar('start: "a" ("b" | <|x|> "cd"?) | "ac" "b"\n')
    matcher = tokdfa.compile(grammar, vocab, backend=backend).start()
    masks = []
    for token in (0, 3, 2):
        masks.append(mask_of(matcher))
        matcher.advance(token)
    assert [*masks, mask_of(matcher)] == [[0], [3], [2, 4], [4]]


def test_rules_that_call_each_other_first():
    """Two left-recursive rules that only come to an end by each other: neither is taken for dead."""
    grammar = Grammar('start: x\nx: y "a" | "x"\ny: x "b" | y "c"\n')
    vocab = Vocabulary([b"x", b"b", b"a", b"ca", b""], end_tokens=[4])
    matcher = tokdfa.compile(grammar, vocab, backend="pushdown_trie", lexer="any").start()
    masks = []
    for token in (0, 1, 3):
        masks.append(mask_of(matcher))
        matcher.advance(token)
    assert [*masks, mask_of(matcher)] == [[0], [1, 4], [2, 3], [1, 4]]


# The laws that spare the search.


def test_letters_spell_what_tokens_spell():
    for seed in range(50):
        vocab = vocabulary_of("regex", random.Random(seed))
        spellable, crossing, trie = vocab.letters
        texts = {vocab.token_bytes(token) for token in range(vocab.size)} - {b""}
        assert {bytes([byte]) for byte in np.flatnonzero(spellable)} == {text for text in texts if len(text) == 1}
        assert set(crossing) == {text for text in texts if not all(spellable[[*text]])}
        assert trie.size == spellable.sum() + len(crossing)
        assert np.array_equal(spellable, vocab.single_byte_tokens)


@needs_smollm2
def test_smollm2_has_no_crossing_tokens():
    letters = tokdfa.load_tokenizer("smollm2").vocabulary.letters
    assert (int((~letters.spellable).sum()), letters.crossing) == (21, ())


@pytest.mark.parametrize("extra", ["", "(?=a)", "(?!b)", r"\b"])
def test_lazy_automata_end_by_available_bytes(extra):
    """Each state that any bytes lead to, against a search over the automaton."""
    outcomes = Counter()
    for seed in range(60):
        rng = random.Random(f"{extra}{seed}")
        pattern = extra + constraint_of("regex", rng).pattern
        try:
            automaton = compile_lazy(Regex(pattern, ascii_classes=True))
        except EmptyLanguageError:
            continue
        available = np.isin(np.arange(256), rng.sample([*b"abc\xc3\xa9\xf1\x90\x80"], 5))
        met = {0}
        agenda = [0]
        for state in agenda:  # grows on the way
            after = {automaton.step(state, byte) for byte in np.flatnonzero(automaton.bytes_read).tolist()}
            agenda += sorted(after - met - {-1})
            met |= after
            if len(agenda) > 300:
                break
        liveness = LazyLiveness(automaton, available)
        live = {state for state in agenda if reaches_end(automaton, state, np.flatnonzero(available).tolist())}
        assert {state for state in agenda if liveness.can_end(state)} == live, pattern
        assert not liveness.always or len(live) == len(agenda)
        outcomes[liveness.always, len(live) == len(agenda)] += 1
    assert min(outcomes[False, False], outcomes[True, True] + outcomes[False, True]) > 5


def reaches_end(automaton, start, letters):
    met, agenda = {start}, [start]
    for state in agenda:  # grows on the way
        if automaton.accepting[state]:
            return True
        after = {automaton.step(state, letter) for letter in letters} - met - {-1}
        met |= after
        agenda += after
    return False


def test_strings_in_escapes_need_no_other_bytes():
    """Every state of automata of JSON strings, whatever is demanded of these, ends by `SPELLED_BY`."""
    rng, spelled = random.Random(3), np.isin(np.arange(256), [*SPELLED_BY])
    demands = [
        {"patterns": ("^[\U00050000-\U00050003]+$",)},
        {"patterns": ("[^a]$",), "min_length": 2},
        {"patterns": ("^\\S+$",), "not_patterns": ("é",), "max_length": 4},
        {"not_patterns": ("^[\\u0020-\\u{3ffff}]*$",)},
        {"formats": ("date-time",)},
        {"formats": ("email",), "max_length": 9},
        {"not_formats": ("ipv4",), "max_length": 7},
        {"not_values": frozenset({"a", "\U00050000", '"'}), "max_length": 2},
        {"patterns": (constraint_of("regex", rng).pattern,), "min_length": 1},
    ]
    for demand in demands:
        automaton = string_automaton(StringSet(**demand), "all")
        if isinstance(automaton, LazyDfa):
            automaton = automaton.to_dfa()
        table = automaton.byte_table()
        live = coreachable(table, automaton.accepting)
        assert (coreachable(table[:, spelled], automaton.accepting) >= live).all(), demand


def coreachable(table, accepting):
    leads = table >= 0
    return coaccessible_states(np.append(0, np.cumsum(leads.sum(axis=1))), table[leads], accepting)


def test_ranks_of_stacks_that_return_to_each_other():
    """Against shortest paths, by relaxing all stacks as often as there are any."""
    for seed in range(200):
        rng = random.Random(seed)
        ways = {
            stack: [(rng.choice([0, 1, 2, FAR]), rng.randrange(8)) for _ in range(rng.randint(0, 3))]
            for stack in range(1, 8)
        }
        expected = dict.fromkeys(ways, FAR) | {0: 0}
        for _ in range(8):
            for stack, each in ways.items():
                expected[stack] = min((taken + expected[below] for taken, below in each), default=FAR)
                expected[stack] = min(expected[stack], FAR)
        ranks = {0: 0}
        for asked in rng.sample(range(1, 8), 7):
            settle_ranks([asked], ranks, ways.__getitem__)
        assert ranks == expected


# Work.


def test_the_search_counts_as_work():
    """Without an end near by: thousands of items, each a name with a byte that is no token."""
    schema = {"type": "array", "items": {"enum": ["\U00050000", "é"]}, "minItems": 20_000}
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256) if byte != 0xF1), b""], end_tokens=[255])
    constraint = JsonSchema(json.dumps(schema), escapes="needed")
    for backend in ("pushdown_trie", "earley_trie"):
        with pytest.raises(LimitExceeded) as raised:
            tokdfa.compile(constraint, vocab, backend=backend, compile_seconds=0.02)
        assert raised.value.limit == "compile_seconds"


#: Every byte is a token but one.
LACKING = Vocabulary([*(bytes([byte]) for byte in range(256) if byte != 0xF1), b""], end_tokens=[255])
#: Names, patterns and values that only raw characters spell, in code that is written when it is reached.
NEEDED = {
    "type": "object",
    "properties": {"\U00050000": {"type": "null"}, "a": {"enum": ["é", "\U00050000"]}, "b": {"pattern": "^[^a-z]+$"}},
    "required": ["a", "b"],
    "additionalProperties": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 3},
    "minProperties": 3,
}


@pytest.mark.parametrize("backend", ["pushdown_trie", "earley_trie"])
def test_a_step_that_is_refused_leaves_nothing_half_known(backend):
    constraint = JsonSchema(json.dumps(NEEDED), escapes="needed")
    matcher, other = (tokdfa.compile(constraint, LACKING, backend=backend).start() for _ in range(2))
    refused = 0
    for byte in '{"a":"é","b":"!","x":["x","'.encode():
        for milliseconds in (0.001, 0.01, 0.05, 0.2, 1_000):
            try:
                with spending(Budget(milliseconds / 1_000, 256, "step"), "a step"):
                    found = mask_of(matcher)
                break
            except LimitExceeded:
                refused += 1
        assert found == mask_of(other)
        token = next(token for token in found if LACKING.token_bytes(token) == bytes([byte]))
        for each in (matcher, other):
            each.advance(token)
    assert refused > 3


def test_many_names_are_not_looked_at_one_by_one():
    """Thousands of names that may come in any place of a list, with code behind each; the budget is that of a step."""
    value = {"type": "object", "properties": {"a": {"pattern": "^x"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {f"n{k}": value for k in range(4_000)}, "additionalProperties": False}
    constraint = JsonSchema(json.dumps(schema | {"required": ["n3999"]}), escapes="needed")
    masks = []
    for vocab in (LACKING, BYTES):
        matcher = tokdfa.compile(constraint, vocab, compile_seconds=30).start()
        for byte in b'{"n1':
            matcher.advance(next(token for token in mask_of(matcher) if vocab.token_bytes(token) == bytes([byte])))
        masks.append({vocab.token_bytes(token) for token in mask_of(matcher)})
    assert masks[0] == masks[1] == {b'"', *(b"%d" % digit for digit in range(10))}


@needs_smollm2
def test_schemas_take_no_more_work_than_with_every_byte():
    """The schemas of the experiments on SmolLM2, which lacks 21 bytes, and on Llama 3: compiled, and a first mask."""
    done = {}
    for name in ("smollm2", "llama3"):
        vocab, work = tokdfa.load_tokenizer(name).vocabulary, []
        vocab.trie  # noqa: B018 - what belongs to the vocabulary is no constraint's work
        mask = tokdfa.allocate_mask(vocab.size)
        for path in sorted((INPUTS / "schemas").glob("*.json")):
            constraint = JsonSchema(json.dumps(json.loads(path.read_text())["schema"]))
            with spending(Budget(100, 4_000), "a schema") as account:
                tokdfa.compile(constraint, vocab).start().fill_mask(mask)
            work.append(account.work_done)
        done[name] = sum(work)
    assert done["smollm2"] < 3 * done["llama3"]


@needs_smollm2
@pytest.mark.parametrize("backend", ["earley_trie", "pushdown_trie"])
@pytest.mark.parametrize("options", [{"escapes": "needed"}, {"profile": "generation"}], ids=str)
def test_every_schema_has_a_first_mask_on_smollm2(backend, options):
    """Where characters may not be escaped, too: what Llama 3 compiles, SmolLM2 does."""
    small, large = (tokdfa.load_tokenizer(name).vocabulary for name in ("smollm2", "llama3"))
    for path in sorted((INPUTS / "schemas").glob("*.json"))[::3]:
        constraint = JsonSchema(json.dumps(json.loads(path.read_text())["schema"]), **options)
        refused = []
        for vocab in (small, large):
            try:
                assert mask_of(tokdfa.compile(constraint, vocab, backend=backend).start())
            except TokdfaError as error:
                refused.append(type(error))
        assert len(refused) in (0, 2), path
