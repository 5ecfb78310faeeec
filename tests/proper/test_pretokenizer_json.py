from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.proper.pretokenizers import LLAMA3, check_all_segmentations, library_split, pieces_by_tokenizers
from tests.vocabulary.tokenizer_files import TEXTS
from tokdfa.errors import TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa
from tokdfa.proper.pretokenizer_json import read_pre_tokenizer, read_tokenizer_json
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet


def written_by_the_library(pre_tokenizer: Any, normalizer: Any = None) -> dict[str, Any]:
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.BPE())
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    return content


def library_pre_tokenizers() -> dict[str, Any]:
    from tokenizers import Regex, pre_tokenizers

    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    behaviors = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    return {
        "llama3": pre_tokenizers.Sequence([library_split(LLAMA3), plain]),
        "smollm2": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2]),
        "metaspace": pre_tokenizers.Metaspace(prepend_scheme="never"),
        "metaspace whole": pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
        "nested": pre_tokenizers.Sequence([pre_tokenizers.Sequence([library_split("a+"), gpt2])]),
        "digits": pre_tokenizers.Digits(individual_digits=False),
        **{f"split {name}": pre_tokenizers.Split("l'", name) for name in behaviors[1:]},
        **{f"inverted {name}": pre_tokenizers.Split(Regex("[a ]"), name, invert=True) for name in behaviors[1:]},
        **{f"punctuation {name}": pre_tokenizers.Punctuation(name) for name in behaviors[1:]},
    }


@pytest.mark.parametrize("name", sorted(library_pre_tokenizers()))
def test_what_the_library_writes_is_read(name: str) -> None:
    library = library_pre_tokenizers()[name]
    dfa = build_marked_dfa(read_tokenizer_json(written_by_the_library(library)), cache=False)
    check_all_segmentations(dfa, pieces_by_tokenizers(library), 3)


def test_steps_that_lose_text() -> None:
    from tokenizers import pre_tokenizers

    for library in (pre_tokenizers.WhitespaceSplit(), pre_tokenizers.CharDelimiterSplit(" ")):
        dfa = build_marked_dfa(read_tokenizer_json(written_by_the_library(library)), cache=False)
        assert dfa.pieces("ab'") == [b"ab'"]
        with pytest.raises(TokenizerError, match="loses a part"):
            dfa.pieces("a b")


def test_normalizer_that_writes_spaces_as_another_character() -> None:
    from tokenizers import normalizers

    replace = normalizers.Replace(" ", "\u2581")
    for normalizer in (replace, normalizers.Sequence([replace])):
        dfa = build_marked_dfa(read_tokenizer_json(written_by_the_library(None, normalizer)), cache=False)
        assert dfa.pieces("a b") == [b"a b"]
        assert not dfa.accepts_pieces(["\u2581".encode()])


def test_a_split_at_spaces_behind_a_normalizer_that_leaves_none() -> None:
    """Gemma's."""
    from tokenizers import normalizers, pre_tokenizers

    content = written_by_the_library(
        pre_tokenizers.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "\u2581")
    )
    assert build_marked_dfa(read_tokenizer_json(content), cache=False).pieces("a b") == [b"a b"]


def falcon() -> Any:
    """Falcon's pre-tokenizer, which splits digits behind the step that spells in bytes."""
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False),
            library_split("[0-9][0-9][0-9]"),
        ]
    )


def test_steps_that_see_bytes_as_characters() -> None:
    library, of_byte = falcon(), {character: byte for byte, character in enumerate(byte_alphabet())}
    dfa = build_marked_dfa(read_tokenizer_json(written_by_the_library(library)), cache=False)
    # superscript two is the bytes C2 and B2, and the character of B2 is a digit to the library
    assert dfa.pieces("a²") == [b"a", b"\xc2", b"\xb2"]
    texts = ["".join(letters) for size in range(5) for letters in itertools.product("a'1 ²½.é", repeat=size)]
    for text in [*texts, *TEXTS, "x 12345, 1234567.25 ١٢٣٤ 12½4"]:
        pieces = [bytes(of_byte[character] for character in piece) for piece, _ in library.pre_tokenize_str(text)]
        assert dfa.pieces(text) == pieces
        assert dfa.accepts_pieces(pieces)


def test_what_is_not_covered_is_refused_by_name() -> None:
    from tokenizers import normalizers, pre_tokenizers

    replace = normalizers.Replace(" ", "_")
    refused = [
        *((None, getattr(normalizers, kind)(), kind) for kind in ("StripAccents", "Strip", "Nmt")),
        (None, normalizers.Sequence([replace, normalizers.StripAccents()]), r"normalizers\[1\]: 'StripAccents'"),
        (None, normalizers.Sequence([replace, normalizers.Replace(" ", "-")]), "more than one"),
        *(
            (other, replace, "together with a pre_tokenizer")
            for other in (pre_tokenizers.Digits(), pre_tokenizers.Split("a", "isolated"))
        ),
        *(
            (pre_tokenizers.Sequence([getattr(pre_tokenizers, kind)()]), None, rf"pretokenizers\[0\]: .*'{kind}'")
            for kind in ("Whitespace", "BertPreTokenizer", "UnicodeScripts", "FixedLength")
        ),
        (pre_tokenizers.ByteLevel(add_prefix_space=True), None, "puts a space"),
        (pre_tokenizers.Metaspace(prepend_scheme="first"), None, "puts a space"),
    ]
    for pre_tokenizer, normalizer, message in refused:
        with pytest.raises(TokenizerError, match=message):
            build_marked_dfa(read_tokenizer_json(written_by_the_library(pre_tokenizer, normalizer)), cache=False)
    assert read_tokenizer_json({"normalizer": {"type": "Sequence", "normalizers": []}, "pre_tokenizer": None}) == []


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], r"pre_tokenizer: the pre-tokenizer \[\] is not covered"),
        ({"type": "Sequence"}, "pre_tokenizer.pretokenizers must be a list"),
        ({"type": "Split", "pattern": "a", "behavior": "Isolated"}, "pre_tokenizer.pattern must be a dict"),
        ({"type": "Split", "pattern": {"Glob": "a"}, "behavior": "Isolated"}, "holds Regex or String, not 'Glob'"),
        ({"type": "Split", "pattern": {"Regex": 1}, "behavior": "Isolated"}, "pattern.Regex must be a str"),
        ({"type": "Split", "pattern": {"String": "a"}}, "behavior must be a str"),
        ({"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"}, "behavior is 'Kept', not one of"),
        ({"type": "Digits"}, "individual_digits must be a bool"),
        ({"type": "ByteLevel", "use_regex": "yes"}, "use_regex must be a bool"),
        ({"type": "Metaspace"}, "replacement must be a str"),
    ],
)
def test_broken_sections(section: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        read_pre_tokenizer(section)
