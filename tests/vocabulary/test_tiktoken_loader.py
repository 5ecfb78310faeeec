"""Rank files and Tekken files against tiktoken, mistral_common's Tekkenizer and llama_models' tokenizer."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from tests.vocabulary.tokenizer_files import TEXTS, rank_file, tekken_file
from tokdfa.errors import TokenizerError, UnknownNameError
from tokdfa.vocabulary.tiktoken_loader import _catching_panics
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.word_patterns import PATTERNS


@pytest.fixture(scope="module")
def tekkenizer() -> Any:
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(Path(mistral_common.__path__[0]) / "data" / "tekken_240911.json")


@pytest.fixture(scope="module")
def llama() -> Any:
    from llama_models.llama3.tokenizer import Tokenizer

    return Tokenizer.get_instance()


def test_every_token_of_tekken(tekkenizer: Any) -> None:
    vocab = load_tokenizer("tekken").vocabulary
    assert vocab.size == tekkenizer.n_words == 131_072
    assert [vocab.token_bytes(i) for i in range(1000, vocab.size)] == [
        tekkenizer.id_to_byte_piece(i) for i in range(1000, vocab.size)
    ]
    assert set(vocab.special_tokens) == tekkenizer.special_ids == set(range(1000))
    assert [vocab.special_tokens[i] for i in range(1000)] == [tekkenizer.id_to_piece(i) for i in range(1000)]
    assert vocab.spell(range(1000)) == b""
    assert vocab.end_tokens == (tekkenizer.eos_id,)


def test_every_token_of_llama3(llama: Any) -> None:
    vocab = load_tokenizer("llama3").vocabulary
    assert vocab.size == llama.n_words == 128_256
    assert [vocab.token_bytes(i) for i in range(128_000)] == [
        llama.model.decode_single_token_bytes(i) for i in range(128_000)
    ]
    assert {name: token for token, name in vocab.special_tokens.items()} == llama.special_tokens
    assert vocab.spell(range(128_000, 128_256)) == b""
    assert list(vocab.end_tokens) == sorted(llama.stop_tokens)


@pytest.mark.parametrize("text", TEXTS)
def test_encode_and_decode_are_the_references(tekkenizer: Any, llama: Any, text: str) -> None:
    tekken, llama3 = load_tokenizer("tekken"), load_tokenizer("llama3")
    assert tekken.encode(text) == tekkenizer.encode(text, bos=False, eos=False)
    assert llama3.encode(text) == llama.encode(text, bos=False, eos=False)
    for tokenizer in (tekken, llama3):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.spell(tokenizer.encode(text)) == text.encode()


def test_patterns_are_the_published_ones(monkeypatch: pytest.MonkeyPatch, llama: Any) -> None:
    from tiktoken_ext import openai_public

    assert PATTERNS["llama3"] == llama.pat_str
    assert PATTERNS["gpt2"] == openai_public.r50k_pat_str
    # The constructors would download the ranks first.
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_args, **_options: {})
    assert PATTERNS["cl100k"] == openai_public.cl100k_base()["pat_str"]
    assert PATTERNS["o200k"] == openai_public.o200k_base()["pat_str"]


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
@pytest.mark.parametrize("text", ["it's DON'T 12345", "ab  ab\n\n ab ", "\t ab1ab"])
def test_rank_file_with_each_pattern(tmp_path: Path, pattern: str, text: str) -> None:
    merges = {b"ab": 256, b" ab": 257, b"  ": 258, b"12": 259, b"123": 260, b"'t": 261, b"\n\n": 262, b"DON": 263}
    merges |= {b"1a": 264, b"\t ": 265}
    path = rank_file(tmp_path / "ranks", merges)
    ranks = {bytes([byte]): byte for byte in range(256)} | merges
    reference = tiktoken.Encoding("x", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
    tokenizer = load_tokenizer(f"tiktoken:{path}?pattern={pattern}")
    assert tokenizer.encode(text) == reference.encode_ordinary(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    vocab = tokenizer.vocabulary
    assert [vocab.token_bytes(i) for i in range(266)] == [reference.decode_single_token_bytes(i) for i in range(266)]


def test_default_pattern_and_end_token(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks", {b"12": 256, b"1234": 258, b"34": 257})
    plain = load_tokenizer(f"tiktoken:{path}")
    assert (plain.vocabulary.size, plain.vocabulary.end_tokens) == (260, (259,))
    assert plain.encode("1234") == load_tokenizer(f"tiktoken:{path}?pattern=cl100k").encode("1234") == [256, 51, 52]
    assert plain.fingerprint != load_tokenizer(f"tiktoken:{path}?pattern=gpt2").fingerprint


def test_an_end_token_may_fill_a_gap_between_ranks(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks", {b"ab": 256, b"cd": 258})
    with pytest.raises(TokenizerError, match=r"no line has the rank 257; .* add \?end=257"):
        load_tokenizer(f"tiktoken:{path}")
    tokenizer = load_tokenizer(f"tiktoken:{path}?end=257")
    assert tokenizer.vocabulary.end_tokens == (257,)
    assert tokenizer.encode("cdab") == [258, 256]
    assert tokenizer.vocabulary.token_bytes(258) == b"cd"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"YQ== 0", b"Y!== 1"], "line 2"),
        ([b"YQ== 0", b"YWI 1"], "line 2"),
        ([b"YQ== 0", b"", b"YWI="], "line 3"),
        ([b"YQ== x"], "line 1"),
        ([b"YQ== -1"], "line 1"),
        ([b"YQ== " + b"9" * 9], "line 1"),
        ([b"YQ== " + b"9" * 90], "line 1"),
        ([b"YQ== 0", b"Yg== 0"], "line 2"),
        ([b"YQ== 0", b"YQ== 0"], "line 2"),
        ([b"YQ== 0", b"YQ== 1"], "ranks 0 and 1 are both b'a'"),
        ([b"==== 0"], "line 1"),
        ([], "the file holds no tokens"),
        ([b"\xff\xfe\x00"], "line 1"),
        ([b"YQ== 0", b"Yg== 1"], "no token is the single byte 0x00"),
        ([base64.b64encode(bytes([i])) + b" %d" % i for i in range(255)], "no token is the single byte 0xff"),
    ],
)
def test_faults_of_rank_files_are_named(tmp_path: Path, lines: list[bytes], message: str) -> None:
    path = tmp_path / "some.tiktoken"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(f"tiktoken:{path}")
    assert "some.tiktoken" in str(caught.value)


def test_faults_of_rank_file_names_are_named(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks")
    with pytest.raises(UnknownNameError, match=r"no word pattern 'cl100k_base'; did you mean 'cl100k'"):
        load_tokenizer(f"tiktoken:{path}?pattern=cl100k_base")


def test_a_tekken_file_with_its_own_special_tokens(tmp_path: Path) -> None:
    listed = [
        {"rank": 5, "token_str": "</s>", "is_control": True},
        {"rank": 0, "token_str": "<x>", "is_control": False},
    ]
    tokenizer = load_tokenizer(f"tekken:{tekken_file(tmp_path / 'tekken.json', special_tokens=listed)}")
    assert tokenizer.vocabulary.end_tokens == (5,)
    assert tokenizer.vocabulary.special_tokens[0] == "<x>"
    assert tokenizer.vocabulary.special_tokens[2] == "<SPECIAL_2>"


_CONFIG = {"pattern": ".", "default_vocab_size": 267, "default_num_special_tokens": 10}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": None}, "not a Tekken file"),
        ({"config": {**_CONFIG, "pattern": 3}}, "config.pattern"),
        ({"config": {**_CONFIG, "pattern": "(["}}, "tiktoken refuses this tokenizer"),
        ({"config": {**_CONFIG, "default_vocab_size": "267"}}, "config.default_vocab_size"),
        ({"config": {**_CONFIG, "default_vocab_size": 10}}, "is impossible"),
        ({"config": {**_CONFIG, "default_vocab_size": 10**9}}, "is impossible"),
        ({"config": {**_CONFIG, "default_num_special_tokens": 0}}, "is impossible"),
        ({"config": {**_CONFIG, "default_vocab_size": 1000}}, "holds 258 tokens"),
        ({"vocab": None}, "'vocab' holds no list"),
        ({"vocab": [{"rank": 0, "token_bytes": "AA=="}] * 257}, r"vocab\[1\] needs token_bytes and the rank 1"),
        ({"vocab": [{"rank": i, "token_bytes": "AA=="} for i in range(257)]}, r"vocab\[0\] and vocab\[1\] are both"),
        ({"vocab": [{"rank": 0, "token_bytes": "A!=="}] * 257}, r"vocab\[0\]: 'A!==' is not base64"),
        ({"vocab": [{"rank": 0, "token_bytes": "é"}] * 257}, r"vocab\[0\]: 'é' is not base64"),
        ({"vocab": ["x"] * 257}, r"vocab\[0\] needs token_bytes"),
        ({"special_tokens": {}}, "special_tokens must be a list"),
        ({"special_tokens": [{"rank": 10, "token_str": "x"}]}, r"special_tokens\[0\] needs a rank from 0 to 9"),
        ({"special_tokens": ["x"]}, r"special_tokens\[0\] needs a rank"),
        ({"special_tokens": []}, "end token '</s>' is not among the tokens"),
    ],
)
def test_faults_of_tekken_files_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tekken_file(tmp_path / "tekken.json", **changes)
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(f"tekken:{path}")
    assert "tekken.json" in str(caught.value)


def test_a_panic_of_the_library_is_an_error_of_ours() -> None:
    class PanicException(BaseException):
        """What tiktoken's binding raises, by name."""

    def encode(text: str) -> list[int]:
        raise KeyboardInterrupt if text == "stop" else PanicException("StackOverflow")

    with pytest.raises(TokenizerError, match=r"this text of 3 characters \(StackOverflow\)"):
        _catching_panics(encode)("abc")
    with pytest.raises(KeyboardInterrupt):
        _catching_panics(encode)("stop")


def test_a_million_spaces_end_in_tokens_or_in_an_error() -> None:
    tokenizer = load_tokenizer("llama3")
    text = " " * 1_000_000
    try:
        outcome: bytes | str = tokenizer.spell(tokenizer.encode(text))
    except TokenizerError as error:
        outcome = str(error)
    assert outcome == text.encode() or "cannot encode this text of 1000000 characters" in str(outcome)
