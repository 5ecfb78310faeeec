"""Eight threads that share one compiled constraint give the same masks as one.

The vocabulary is new in every round, and so is everything that constraints share by it; the threads begin together, so
that first masks race. Two threads each write the same text, and the others different ones.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.packages import backend
from tests.threads import run_together
from tests.vocabulary.tokenizer_files import rank_file
from tokdfa import mask as masks
from tokdfa.backends.registry import backend_class, backend_names, create_backend
from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.vocabulary import tokenizers

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

THREADS = 8
ROUNDS = 2
STEPS = 15

REGEX = Regex(r"[a-z]{2,9}( (the|a|an) [a-z]+|, [0-9]{1,3}(\.[0-9]+)?)*")
FINITE = Choice(["the cat", "the dog", "a cat", "that was the end", "that were the ends", "12", "120"])
GRAMMAR = Grammar(
    'start: "[" [item ("," item)*] "]"\nitem: start | WORD | NUMBER | "ab" ":" item\nWORD: /[a-z]{1,8}/\n'
    "NUMBER: /-?[0-9]{1,4}(\\.[0-9]+)?/\n%ignore / {1,2}/\n"
)
SCHEMA = JsonSchema(
    {
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z ]+$"},
            "tags": {"type": "array", "items": {"enum": ["the", "cat", 12]}, "maxItems": 4},
            "next": {"$ref": "#"},
        },
        "required": ["name"],
        "type": "object",
    }
)
BOUNDED = JsonSchema(
    {
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["cat", 12]}},
        "additionalProperties": False,
        "type": "object",
    },
    max_nesting=1,
    whitespace="compact",
)

#: Beside the defaults of every backend: what has tables of its own.
VARIANTS: tuple[tuple[str, dict[str, Any], Constraint], ...] = (
    ("token_index", {"lazy": True}, REGEX),
    ("token_index", {"lazy": True, "walk": "per_token"}, REGEX),
    ("token_index", {"lazy": True}, BOUNDED),
    ("tokens_dfa", {"ready_masks": False}, REGEX),
    ("tokens_dfa", {"proper": True}, REGEX),
    ("cartesian_merge", {"lazy": False}, REGEX),
    ("direct_merge", {"minimal": False}, REGEX),
    ("earley_trie", {"mask": "slices"}, GRAMMAR),
    ("earley_trie", {"mask": "walk"}, GRAMMAR),
    ("earley_trie", {"shared_effects": False}, GRAMMAR),
    ("earley_trie", {"proper": True}, GRAMMAR),
    ("pushdown_trie", {"shared": False}, SCHEMA),
    ("pushdown_trie", {"memo": False}, SCHEMA),
    ("pushdown_trie", {"partition": False}, GRAMMAR),
    ("pushdown_trie", {"lexer": "any"}, GRAMMAR),
    ("pushdown_trie", {"proper": True}, GRAMMAR),
    ("pushdown_trie", {"proper": True}, REGEX),
)

#: Backends that read a schema that refers to itself.
RECURSIVE = ("pushdown_trie", "llguidance", "glrmask", "xgrammar")


def cases() -> list[Any]:
    """Every backend with a constraint of every kind that it takes, and VARIANTS."""
    by_kind = {"regex": REGEX, "choice": FINITE, "grammar": GRAMMAR, "json_schema": SCHEMA}
    found = []
    for name in backend_names():
        for kind in backend_class(name).kinds:
            constraint = BOUNDED if kind == "json_schema" and name not in RECURSIVE else by_kind[kind]
            if name != "encoded_texts" or kind == "choice":  # it takes finite constraints
                found.append(backend(name, {}, constraint, id=f"{name}-{kind}"))
    for name, options, constraint in VARIANTS:
        label = ",".join(f"{option}={value}" for option, value in options.items())
        found.append(pytest.param(name, options, constraint, id=f"{name}-{constraint.kind}-{label}"))
    return found


@pytest.fixture(scope="module")
def tokenizer_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer of 256 bytes and some merges, in the order in which they are made."""
    merged = (b" t", b" the", b" a", b", ", *b'th the at cat an nd 12 10 120 "a ": name [[ ],'.split())
    ranks = {text: 256 + place for place, text in enumerate(merged)}
    path = rank_file(tmp_path_factory.mktemp("threads") / "ranks", ranks)
    return f"tiktoken:{path}?pattern=gpt2"


def fresh_vocabulary(tokenizer_name: str) -> Vocabulary:
    """A vocabulary that nothing has been made for yet."""
    tokenizers._load.cache_clear()
    return tokenizers.load_tokenizer(tokenizer_name).vocabulary


def masks_along(compiled: CompiledConstraint, seed: int) -> list[bytes]:
    """The masks along one text, drawn with a seed, and whether it may end after each token."""
    rng = random.Random(seed)
    mask, matcher = masks.allocate_mask(compiled.vocab.size), compiled.start()
    found = []
    for step in range(STEPS):
        matcher.fill_mask(mask)
        found.append(mask.tobytes() + bytes([matcher.can_end()]))
        allowed = masks.mask_to_ids(mask)
        if not len(allowed):
            break
        token = int(rng.choice(allowed))
        twin = matcher.fork()
        twin.advance(token)
        matcher.advance(token)
        if step % 7 == 6:
            matcher.rollback(2)
            matcher.advance(int(rng.choice(allowed)) if matcher.is_finished() else _some_allowed(matcher, mask, rng))
        if matcher.is_finished():
            break
    return found


def _some_allowed(matcher: Any, mask: Any, rng: random.Random) -> int:
    matcher.fill_mask(mask)
    return int(rng.choice(masks.mask_to_ids(mask)))


@pytest.mark.parametrize(("name", "options", "constraint"), cases())
def test_eight_threads_share_one_constraint(
    name: str, options: dict[str, Any], constraint: Constraint, tokenizer_name: str
) -> None:
    alone = create_backend(name, fresh_vocabulary(tokenizer_name), **options).compile(constraint)
    expected = [masks_along(alone, seed % (THREADS // 2)) for seed in range(THREADS)]
    for _ in range(ROUNDS):
        shared = create_backend(name, fresh_vocabulary(tokenizer_name), **options).compile(constraint)
        jobs = [partial(masks_along, shared, number % (THREADS // 2)) for number in range(THREADS)]
        assert run_together(jobs) == expected
