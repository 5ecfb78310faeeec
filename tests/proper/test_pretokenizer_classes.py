from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.pretokenizers import library_split, pieces_by_tiktoken, pieces_by_tokenizers
from tokdfa.errors import TokenizerError
from tokdfa.proper.pretokenizer_classes import (
    SCALAR_COUNT,
    all_scalars,
    check_pattern,
    scalar_classes,
)
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import SourceSet

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = [*range(0x300), *random.Random(1).sample(range(SCALAR_COUNT), 300)]


def members(wanted: SourceSet) -> set[str]:
    classes, holds = scalar_classes([wanted])
    return {all_scalars()[place] for place in np.flatnonzero(holds[0][classes])}


@pytest.mark.parametrize("source", [r"\p{L}", r"\s", r"[^\s\p{L}\p{N}]", "(?i:k)", ".", r"[a-f&&[^c]]", r"\x{1F389}"])
@pytest.mark.parametrize("dialect", ["tiktoken", "oniguruma"])
def test_members_are_those_that_match_alone(source: str, dialect: str) -> None:
    """The search through all characters at once, against a text of one character each."""
    matches: Callable[[str], list[str]] = (
        pieces_by_tiktoken(source, [all_scalars()[place] for place in SAMPLE])
        if dialect == "tiktoken"
        else pieces_by_tokenizers(library_split(source, "removed", invert=True))
    )
    found = members(SourceSet(dialect, source))
    assert 0 < len(found) < SCALAR_COUNT
    for place in SAMPLE:
        character = all_scalars()[place]
        assert (character in found) == (matches(character) == [character])


@pytest.mark.parametrize("dialect", ["tiktoken", "oniguruma"])
def test_escaped_punctuation_is_itself(dialect: str) -> None:
    """The parser takes an escaped mark for a plain character without asking."""
    marks = '!"#$%&()*+,-./:;=?@[\\]^_{|}~'
    for mark in marks:
        if dialect == "tiktoken":
            found = pieces_by_tiktoken(f"\\{mark}")(all_scalars()[:0x80])
        else:
            found = pieces_by_tokenizers(library_split(f"\\{mark}", "removed", invert=True))(all_scalars()[:0x80])
        assert found == [mark]
        assert parse(f"\\{mark}", dialect=dialect) == SourceSet("character", mark)


@pytest.mark.parametrize("kind", ["Digits", "Punctuation", "WhitespaceSplit"])
def test_members_of_pre_tokenizers(kind: str) -> None:
    from tokenizers import pre_tokenizers

    splitter = {
        "Digits": pre_tokenizers.Digits(individual_digits=True),
        "Punctuation": pre_tokenizers.Punctuation("isolated"),
        "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
    }[kind]
    found = members(SourceSet("pre_tokenizer", kind))
    assert len(found & set("x5!\u0664\u00b2 \u3000\u3002")) in {2, 3}
    for place in SAMPLE:
        character = all_scalars()[place]
        pieces = [piece for piece, _ in splitter.pre_tokenize_str(f"a{character}a")]
        assert (character in found) == (len(pieces) > 1)


def test_patterns_that_a_library_refuses() -> None:
    check_pattern("a|$", "tiktoken")
    check_pattern("a|$", "oniguruma")
    with pytest.raises(TokenizerError, match="tiktoken refuses"):
        check_pattern("a**", "tiktoken")
    with pytest.raises(TokenizerError, match="tokenizers refuses"):
        check_pattern("(?:a|$)?", "oniguruma")
