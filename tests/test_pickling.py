"""Copies and pickles of constraints, compiled constraints and matchers, here, in other processes and beside threads."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import backend_names
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import TokdfaError
from tokdfa.vocabulary import tokenizers
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
SCHEMA = JsonSchema({"properties": {"name": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]})
BOUNDED = JsonSchema(
    {"properties": {"a": {"enum": [1, 12, "x"]}}, "additionalProperties": False, "type": "object"}, max_nesting=1
)
GRAMMAR = Grammar('start: "[" [start ("," start)*] "]" | /[0-9]+/\n')
CONSTRAINTS: tuple[Constraint, ...] = (
    Regex(r"[a-z]+ \d{1,3}", ascii_classes=True, flags="i", label="words"),
    Choice(["ab", b"\xff", "é"], label="some"),
    GRAMMAR,
    SCHEMA,
    JsonSchema({"type": "object"}, order="any", duplicates="refused", item_separator=", ", lenient=True, max_nesting=3),
)


def own_vocabulary() -> Vocabulary:
    """One that belongs to no tokenizer."""
    tokens = [bytes([byte]) for byte in range(256)]
    return Vocabulary([*tokens, b'{"', b"12", b"[[", b"ab", b"", b""], [260], {261: "<s>"}, name="own")


OWN = own_vocabulary()


def same(one: Matcher, other: Matcher) -> None:
    """The same masks, and the same text so far."""
    assert mask_of(one) == mask_of(other)
    assert (one.tokens, one.is_finished(), one.can_end()) == (other.tokens, other.is_finished(), other.can_end())


def walk(matcher: Matcher, steps: int, seed: int = 0) -> Matcher:
    for step in range(steps):
        if allowed := mask_of(matcher):
            matcher.advance(allowed[(seed + 7 * step) % len(allowed)])
    return matcher


def cases() -> list[Any]:
    """(backend, constraint, options) for every backend that is installed, and variants with tables of their own."""
    variants: list[tuple[str, Constraint, dict[str, Any]]] = [
        ("pushdown_trie", SCHEMA, {}),
        ("pushdown_trie", GRAMMAR, {"lexer": "any"}),
        ("pushdown_trie", BOUNDED, {"shared": False}),
        ("earley_trie", GRAMMAR, {"mask": "walk"}),
        ("earley_trie", SCHEMA, {}),
        ("cfg_fsm", GRAMMAR, {"masks": "walk"}),
        ("token_index", BOUNDED, {}),
        ("token_index", Regex("[a-f]{2,9}x?"), {"lazy": True}),
        ("tokens_dfa", BOUNDED, {"ready_masks": False, "mute_literals": False}),
        ("llguidance", SCHEMA, {}),
        ("lm_format_enforcer", JsonSchema({"type": "integer"}), {}),
    ]
    for name in backend_names():
        if "regex" in tokdfa.backends()[name].kinds:
            variants.append((name, Choice(["12", "abc", '{"a', "ab"]), {}))
    installed = {name: not info.missing for name, info in tokdfa.backends().items()}
    return [
        pytest.param(*case, id=f"{case[0]}-{case[1].kind}-{'-'.join(map(str, case[2].values()))}")
        for case in variants
        if installed[case[0]]
    ]


def vocabulary_for(backend: str) -> Vocabulary:
    """Proper sequences need a tokenizer."""
    return BYTES if backend in ("encoded_texts", "direct_merge", "cartesian_merge") else OWN


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda constraint: constraint.kind)
def test_constraints(constraint: Constraint) -> None:
    for other in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint), copy.copy(constraint)):
        assert other == constraint
        assert hash(other) == hash(constraint)
        assert other.label == constraint.label
        assert repr(other) == repr(constraint)


@pytest.mark.parametrize(("backend", "constraint", "options"), cases())
def test_compiled_constraints_and_matchers(backend: str, constraint: Constraint, options: dict[str, Any]) -> None:
    vocab = vocabulary_for(backend)
    compiled = tokdfa.compile(constraint, vocab, backend, **options)
    assert copy.deepcopy(compiled) is copy.copy(compiled) is compiled
    loaded: CompiledConstraint = pickle.loads(pickle.dumps(compiled))
    assert loaded is not compiled
    assert type(loaded) is type(compiled)
    assert (loaded.constraint, loaded.vocab, loaded.backend_name) == (constraint, vocab, backend)
    for steps in range(5):
        ours, theirs = walk(compiled.start(), steps), walk(loaded.start(), steps)
        same(ours, theirs)
        for other in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours), copy.copy(ours)):
            same(ours, other)
            if ours.tokens:
                other.rollback(1)
                before = compiled.start()
                for token in ours.tokens[:-1]:
                    before.advance(token)
                same(other, before)
            same(ours, theirs)  # what is done to a copy does not touch it
    again = pickle.loads(pickle.dumps(loaded))
    same(walk(again.start(), 3), walk(compiled.start(), 3))


def test_what_was_loaded_from_a_file(tmp_path: Path) -> None:
    compiled: Any = tokdfa.compile(Regex("[a-f]{2,9}x?"), OWN, "pushdown_trie")
    compiled.save(tmp_path / "saved")
    loaded = pickle.loads(pickle.dumps(CompiledPushdown.load(tmp_path / "saved", OWN)))
    same(walk(loaded.start(), 3), walk(compiled.start(), 3))


def test_a_vocabulary_is_found_again() -> None:
    vocab = own_vocabulary()
    assert copy.deepcopy(vocab) is vocab
    for known in (BYTES, vocab):
        data = pickle.dumps(known)
        assert pickle.loads(data) is pickle.loads(data)
    assert pickle.loads(pickle.dumps(BYTES)) is BYTES
    data = pickle.dumps(BYTES)
    tokenizers._load.cache_clear()  # a tokenizer that is alive is found although others have taken its place
    assert pickle.loads(data) is BYTES
    assert copy.deepcopy(BYTES.tokenizer) is BYTES.tokenizer
    found = pickle.loads(pickle.dumps(vocab))
    assert found.fingerprint == vocab.fingerprint
    other = Vocabulary([b"a", b""], [1], name="own")
    assert pickle.loads(pickle.dumps(other)).fingerprint == other.fingerprint != vocab.fingerprint
    data, expected = pickle.dumps(other), other.fingerprint
    del other
    gc.collect()
    renewed = pickle.loads(data)  # nobody has it any more
    assert renewed.fingerprint == expected
    assert pickle.loads(data) is renewed


def test_what_was_made_by_hand_says_so() -> None:
    compiled = tokdfa.compile(Regex("a"), OWN)
    compiled.made_by = None
    with pytest.raises(TokdfaError, match="compile"):
        pickle.dumps(compiled)
    matcher = tokdfa.compile(Regex("a"), OWN).start()
    matcher.origin = None
    with pytest.raises(TokdfaError, match="start"):
        pickle.dumps(matcher)


def _receive(data: bytes) -> tuple[str, bytes]:
    """In another process: the allowed tokens of what was sent, and the matcher a step on, sent back."""
    matcher = pickle.loads(data)
    return repr(mask_of(matcher)), pickle.dumps(walk(matcher, 1))


def test_other_processes() -> None:
    sent = [
        walk(tokdfa.compile(constraint, vocab, backend).start(), 3)
        for backend, constraint, vocab in (
            ("pushdown_trie", SCHEMA, OWN),
            ("pushdown_trie", GRAMMAR, BYTES),
            ("tokens_dfa", BOUNDED, OWN),
            ("cartesian_merge", Choice(["12", "abc", "abd"]), BYTES),
        )
    ]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        received = pool.map(_receive, [pickle.dumps(matcher) for matcher in sent])
    for matcher, (allowed, back) in zip(sent, received, strict=True):
        assert allowed == repr(mask_of(matcher))
        same(walk(matcher, 1), pickle.loads(back))
        assert pickle.loads(back).vocab is matcher.vocab


def test_while_other_threads_compile() -> None:
    stop, failed = threading.Event(), []

    def compile_always(first: int) -> None:
        number = first
        try:
            while not stop.is_set():
                number += 3
                schema = JsonSchema({"properties": {f"n{number}": {"pattern": f"^[a-z]{{{number % 40}}}"}}})
                for constraint in (schema, Regex(f"[a-z]{{1,{number % 60 + 1}}}y"), GRAMMAR):
                    walk(tokdfa.compile(constraint, OWN, "pushdown_trie").start(), 4, number)
        except BaseException as error:
            failed.append(error)

    shared = tokdfa.compile(SCHEMA, OWN, "pushdown_trie")
    workers = [threading.Thread(target=compile_always, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    try:
        for number in range(12):
            schema = JsonSchema({"properties": {f"m{number}": {"pattern": f"^[a-z]{{{number}}}"}}})
            for compiled in (shared, *(tokdfa.compile(one, OWN, "pushdown_trie") for one in (schema, GRAMMAR))):
                matcher = walk(compiled.start(), 4, number)
                same(matcher, pickle.loads(pickle.dumps(matcher)))
                same(matcher, copy.deepcopy(matcher))
                same(walk(compiled.start(), 4, number), walk(pickle.loads(pickle.dumps(compiled)).start(), 4, number))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failed
