from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.proper.pretokenizers import (
    ALPHABET,
    CASES,
    KNOWN_NAMES,
    check_all_segmentations,
    known,
    library_split,
    long_texts,
    pieces_by_tokenizers,
    split_steps,
    tiktoken_steps,
    wrong_cuts,
)
from tests.strategies import short_texts
from tokdfa.errors import RegexUnsupported, TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokdfa.proper.pretokenizer_dfa import MarkedDfa

#: Of these all texts of up to 6 letters are tried (137,257), of the others up to 4.
LONG = {("llama3", ALPHABET), ("smollm2", ALPHABET), ("o200k", CASES)}


@pytest.fixture(scope="module")
def automata(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], MarkedDfa]:
    folder = tmp_path_factory.mktemp("marked")
    return lambda name: build_marked_dfa(known(name).steps, folder)


@pytest.mark.parametrize("name", KNOWN_NAMES)
def test_pieces_of_the_library_are_accepted_and_others_refused(name: str, automata: Callable[[str], MarkedDfa]) -> None:
    dfa, reference = automata(name), known(name).reference(None)
    refused = 0
    for number, text in enumerate(long_texts()):
        pieces = [piece.encode() for piece in reference(text)]
        assert b"".join(pieces) == text.encode()
        assert dfa.accepts_pieces(pieces)
        assert dfa.pieces(text) == pieces
        for wrong in wrong_cuts(pieces, 30, number):
            refused += 1
            assert not dfa.accepts_pieces(wrong)
    assert refused > 2000


@pytest.mark.parametrize("name", KNOWN_NAMES)
@pytest.mark.parametrize("alphabet", [ALPHABET, CASES])
def test_each_short_text_has_one_segmentation(name: str, alphabet: str, automata: Callable[[str], MarkedDfa]) -> None:
    """All segmentations of each text are tried, borders inside characters included."""
    length = 6 if (name, alphabet) in LONG else 4
    longest = short_texts(length, alphabet)[-(len(alphabet) ** length) :]
    check_all_segmentations(automata(name), known(name).reference(longest), length, alphabet)


def test_equal_languages_are_equal_arrays(automata: Callable[[str], MarkedDfa]) -> None:
    """cl100k's pattern is Llama 3's in other words; the two libraries agree on Unicode, but for new characters."""
    one, other = automata("cl100k"), automata("llama3")
    assert one.transitions.tolist() == other.transitions.tolist()
    assert one.marker.tolist() == other.marker.tolist()


BEHAVIORS = ("isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next")


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_behaviors_of_a_split(behavior: str, invert: bool) -> None:
    dfa = build_marked_dfa(split_steps("a'|l", behavior=behavior, invert=invert), cache=False)
    reference = pieces_by_tokenizers(library_split("a'|l", behavior, invert))
    lossy = 0
    for text in short_texts(5, "a'lé"):
        pieces = reference(text)
        if "".join(pieces) == text:
            assert dfa.pieces(text) == [piece.encode() for piece in pieces]
        else:
            lossy += 1
            with pytest.raises(TokenizerError, match="loses a part"):
                dfa.pieces(text)
    assert (lossy > 0) == (behavior == "removed")


def test_sequences_of_steps() -> None:
    from tokenizers import pre_tokenizers

    sequences = [
        (
            [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("contiguous")],
            [{"kind": "digits", "individual": False}, {"kind": "punctuation", "behavior": "contiguous"}],
        ),
        (
            [library_split("a+(?!l)"), library_split(r"\s$|l(?=a)", "merged_with_next"), library_split("'a")],
            split_steps("a+(?!l)") + split_steps(r"\s$|l(?=a)", behavior="merged_with_next") + split_steps("'a"),
        ),
        ([pre_tokenizers.Split(" ", "merged_with_previous")], split_steps(" ", behavior="merged_with_previous")),
        (
            [pre_tokenizers.Split("l'", "isolated"), pre_tokenizers.Digits(individual_digits=True)],
            [
                {"kind": "split", "pattern": "l'", "dialect": "literal"},
                {"kind": "digits", "individual": True},
            ],
        ),
    ]
    for library, steps in sequences:
        dfa = build_marked_dfa(steps, cache=False)
        check_all_segmentations(dfa, pieces_by_tokenizers(pre_tokenizers.Sequence(library)), 4)


def test_whitespace_split_loses_white_space() -> None:
    dfa = build_marked_dfa([{"kind": "whitespace_split"}], cache=False)
    assert dfa.pieces("ab1") == [b"ab1"]
    for text in ("a b", " ", "a\u2003"):
        with pytest.raises(TokenizerError, match="loses a part"):
            dfa.pieces(text)


def test_text_that_tiktoken_loses_is_refused() -> None:
    dfa = build_marked_dfa(tiktoken_steps(r"a+|\s"), cache=False)
    assert dfa.accepts_pieces([b"aa", b" ", b"a"])
    for text in ("ab", "b", "a1a"):
        with pytest.raises(TokenizerError, match="loses a part"):
            dfa.pieces(text)
    kept = build_marked_dfa([{**tiktoken_steps(r"a+|\s")[0], "unmatched": "piece"}], cache=False)
    assert kept.pieces("abba") == [b"a", b"bb", b"a"]
    lost = build_marked_dfa(split_steps("a", unmatched="lost"), cache=False)
    assert not lost.accepts_pieces([b"a", b"b"])


def test_cache_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    steps = tiktoken_steps(r"\s|\S+")
    built = build_marked_dfa(steps)
    [path] = (tmp_path / "tokdfa" / "pretokenizers").iterdir()
    written = path.stat().st_mtime_ns
    monkeypatch.setattr("tokdfa.proper.pretokenizer.spell_in_bytes", lambda _letters: pytest.fail("built again"))
    assert build_marked_dfa(steps).transitions.tolist() == built.transitions.tolist()
    assert path.stat().st_mtime_ns == written
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:-100])
    again = build_marked_dfa(steps, path.parent)
    assert again.marker.tolist() == built.marker.tolist()
    assert len(list(path.parent.iterdir())) == 1
    build_marked_dfa(tiktoken_steps(r"\s|\S"), path.parent)
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"kind": "split", "pattern": "", "dialect": "literal"}, "at least one character"),
        ({"kind": "split", "pattern": r"\p{Nonsense}", "dialect": "tiktoken"}, "tiktoken refuses"),
        ({"kind": "split", "pattern": "[b-a]", "dialect": "oniguruma"}, "tokenizers refuses"),
        ({"kind": "split", "pattern": "(?i:[ß])", "dialect": "oniguruma"}, "matches all of 'ss' at once"),
        ({"kind": "byte_level", "use_regex": True, "add_prefix_space": True}, "add_prefix_space"),
        ({"kind": "metaspace", "prepend_scheme": "always"}, "prepend_scheme"),
        ({"kind": "metaspace", "replacement": "ab"}, "one character"),
        ({"kind": "metaspace", "replacement": " "}, "one character"),
    ],
)
def test_refused_steps(step: dict[str, object], message: str) -> None:
    with pytest.raises(TokenizerError, match=message.replace("(", r"\(")):
        build_marked_dfa([step], cache=False)


@pytest.mark.parametrize("second", ["byte_level", "metaspace", "whitespace_split"])
def test_steps_that_write_other_characters_are_last(second: str) -> None:
    byte_level = {"kind": "byte_level", "use_regex": False}
    first = {"kind": "metaspace"} if second == "whitespace_split" else byte_level
    with pytest.raises(TokenizerError, match="must be the last step"):
        build_marked_dfa([first, byte_level if second == "byte_level" else {"kind": second}], cache=False)


def test_faults_of_a_pattern_have_their_offset() -> None:
    with pytest.raises(RegexUnsupported, match="look-behind") as raised:
        build_marked_dfa(tiktoken_steps(r"a|(?<=b)c"), cache=False)
    assert raised.value.position == 2
