import pytest

from tokdfa.errors import VocabularyError
from tokdfa.grammar.special import parse_special, resolve
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    [b"a", b"b", b"", b"", b"", b"", b""],
    end_tokens=[2],
    special_tokens={2: "<|end|>", 3: "<|tool|>", 4: "<|call|>", 5: "<|tool|>"},
)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("<|tool|>", [3, 5]),
        ("<|call|>", [4]),
        ("<[4]>", [4]),
        ("<[3-4,5]>", [3, 4, 5]),
        ("<[ 5 , 3 - 3 ]>", [3, 5]),
        ("<[^4]>", [3, 5]),
        ("<[^2-3]>", [4, 5]),
        ("<[*]>", [3, 4, 5]),
    ],
)
def test_which_ids_are_meant(written: str, ids: list[int]) -> None:
    found = resolve(parse_special(written), VOCABULARY)
    assert found.tolist() == ids
    assert found.dtype.name == "int32"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("<|tol|>", r"line 2, column 7 .* did you mean '<\|tool\|>'"),
        ("<[0]>", "token 0 .* is not special"),
        ("<[3-6]>", "token 6 .* is not special"),
        ("<[3-7]>", "token 7 .* is outside"),
        ("<[3-999999999]>", "outside"),
        ("<[^7]>", "outside"),
        ("<[2]>", "token 2 .* is an end token"),
        ("<|end|>", "token 2 .* is an end token"),
        ("<[^3-5]>", "no special token is left"),
    ],
)
def test_what_is_no_special_token(written: str, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        resolve(parse_special(written, 2, 7), VOCABULARY)


@pytest.mark.parametrize(
    "written", ["<[]>", "<[1-]>", "<[a]>", "<[1,,2]>", "<[^*]>", "<[-1]>", "<[1 2]>", "<[9999999999]>", "<[5-4]>"]
)
def test_bad_notation(written: str) -> None:
    with pytest.raises(ValueError, match=r"special tokens by id|empty"):
        parse_special(written)
