"""What users do with a compiled constraint, in short: masks, tokens, a fork and a rollback, along a few texts."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import tokdfa
from tests.vocabulary.vocabularies import ODD
from tokdfa import mask as masks
from tokdfa.backends.registry import backend_class
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint

STEPS = 12
#: For strategies that make all states at once: their default, 100,000, may take 10 s to be passed.
MAX_STATES = 20_000
#: Backends that take a vocabulary of a tokenizer only: `bytes`, here.
NEED_A_TOKENIZER = ("cartesian_merge", "direct_merge", "encoded_texts")

#: `bytes` is that tokenizer; `words` has all bytes and some longer tokens, some of them twice; `odd` lacks most bytes.
VOCABULARIES = ("bytes", "words", "odd")
_PLAIN = r"""ab abc aa 00 12 2024 -0 "a ": ", ], }} {} [[ true null \n \u00 \" é 日本 😀 (? => ab"""
_LONGER = (*_PLAIN.split(), '": "', "  ", "\n  ")


class WrongMask(Exception):
    """A mask that cannot be right, whatever the constraint."""


@cache
def vocabulary(name: str) -> Vocabulary:
    """A vocabulary of `VOCABULARIES`."""
    if name == "bytes":
        return tokdfa.load_tokenizer("bytes").vocabulary
    if name == "odd":
        return ODD
    tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in _LONGER] + [b"\xc3", b"\xa9x"]
    return Vocabulary([*tokens, b"", b""], [len(tokens)], {len(tokens) + 1: "<tool>"})


def bounded(backend: str, lazy: str = "") -> dict[str, Any]:
    """Options under which a strategy with explicit automata refuses what would take it long: so many states."""
    has_limit = any(option.name == "max_states" for option in backend_class(backend).options)
    return ({"max_states": MAX_STATES} if has_limit else {}) | ({"lazy": True} if lazy else {})


def walk(compiled: CompiledConstraint) -> None:
    """Two walks of random allowed tokens, always the same. Raises what the matcher raises.

    WrongMask if no token is allowed although the text is not finished, or if one that is allowed is refused.
    """
    rng = random.Random(0)
    mask = masks.allocate_mask(compiled.vocab.size)
    for _ in range(2):
        matcher = compiled.start()
        taken = 0
        while taken < STEPS and not matcher.is_finished():
            matcher.fill_mask(mask)
            allowed = masks.mask_to_ids(mask)
            if not len(allowed):
                raise WrongMask("no token is allowed, though the text is not finished")
            token = int(rng.choice(allowed))
            if not matcher.allows(token):
                raise WrongMask(f"token {token} is in the mask, and not allowed")
            matcher.fork().advance(token)
            matcher.advance(token)
            taken += 1
        matcher.rollback(taken // 2)
        matcher.can_end()
