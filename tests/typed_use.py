"""What a type checker says of tokdfa's public names: `mypy` judges this file, and running it shows that it is so."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import numpy.typing as npt

import tokdfa
from tokdfa.backends.base import CompiledConstraint, Matcher
from tokdfa.backends.registry import BackendInfo

tokenizer = assert_type(tokdfa.load_tokenizer("bytes"), tokdfa.Tokenizer)
vocabulary = assert_type(tokenizer.vocabulary, tokdfa.Vocabulary)
tokens = assert_type(tokenizer.encode("2024"), list[int])
constraints: list[tokdfa.Constraint] = [
    tokdfa.Regex(r"[0-9]{4}"),
    tokdfa.Choice(["2024", b"2025"]),
    tokdfa.Grammar("start: /[0-9]+/"),
    tokdfa.JsonSchema({"type": "integer"}),
]
for constraint in constraints:
    compiled = assert_type(tokdfa.compile(constraint, vocabulary, backend="pushdown_trie"), CompiledConstraint)
    matcher = assert_type(compiled.start(context=tokens), Matcher)
    mask = assert_type(tokdfa.allocate_mask(vocabulary.size), npt.NDArray[np.int32])
    matcher.fill_mask(mask)
    assert_type(tokdfa.mask_to_ids(mask), npt.NDArray[np.int32])
    assert_type(tokdfa.mask_to_bool(mask, vocabulary.size), npt.NDArray[np.bool_])
    for token in tokens:
        assert_type(matcher.allows(token), bool)
        matcher.advance(token)
    assert_type(matcher.fork(), Matcher)
    try:
        matcher.advance(-1)
    except tokdfa.TokenRefused as refused:
        assert_type(refused.token, int)
constrained = assert_type(tokdfa.constrain(["2024", "2025"], tokenizer), tokdfa.Constrained)
assert_type(constrained.start(), Matcher)
assert_type(tokdfa.backends(), dict[str, BackendInfo])
