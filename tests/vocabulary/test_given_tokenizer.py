"""Tokenizers in the forms that people have them in: each becomes the vocabulary that its file gives."""

from __future__ import annotations

import json
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

from tests.packages import needs_smollm2, needs_torch
from tests.vocabulary.tokenizer_files import CORPUS, byte_level, gpt2_like
from tokdfa.errors import ArgumentError, TokdfaError, TokenizerError, UnknownNameError, VocabularyError
from tokdfa.vocabulary.given_tokenizer import read_tokenizer
from tokdfa.vocabulary.loading import package_file
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def made() -> Any:
    return gpt2_like(END)


@pytest.fixture
def folder(made: Any, tmp_path: Path) -> Path:
    made.save(str(tmp_path / "tokenizer.json"), pretty=False)
    return tmp_path


def test_an_object_of_tokenizers_is_what_its_file_is(made: Any, folder: Path) -> None:
    vocabulary = read_tokenizer(made)
    filed = load_tokenizer(f"hf:{folder / 'tokenizer.json'}")
    assert vocabulary.fingerprint == filed.vocabulary.fingerprint
    assert vocabulary.tokenizer.fingerprint == filed.fingerprint
    assert vocabulary.token_bytes(made.token_to_id("Ġra")) == b" ra"
    for text in CORPUS[:20]:
        assert vocabulary.tokenizer.encode(text) == made.encode(text, add_special_tokens=False).ids
    assert read_tokenizer(made) is vocabulary, "constraints for one tokenizer share what is kept for it"


def test_a_tokenizer_without_a_file_goes_to_other_processes(made: Any) -> None:
    from tokdfa.vocabulary import tokenizers as page

    vocabulary = read_tokenizer(made, size=600)
    stored = pickle.dumps(vocabulary)
    assert pickle.loads(stored) is vocabulary
    page._from_json.cache_clear()  # as in a process that has not seen it
    loaded = pickle.loads(stored)
    assert loaded is not vocabulary
    assert (loaded.fingerprint, loaded.size) == (vocabulary.fingerprint, 600)
    assert loaded.tokenizer.with_size(600) is loaded.tokenizer
    assert loaded.tokenizer.with_size(640).vocabulary.size == 640


def test_end_tokens_and_size_can_be_given(made: Any, folder: Path) -> None:
    made.add_special_tokens(["<|stop|>"])
    (folder / "tokenizer.json").unlink()
    made.save(str(folder / "tokenizer.json"))
    stop = made.token_to_id("<|stop|>")
    for given in (made, folder, str(folder), folder / "tokenizer.json", f"hf:{folder / 'tokenizer.json'}"):
        assert read_tokenizer(given).end_tokens == (0,)
        assert read_tokenizer(given, [stop, END], 512).end_tokens == (0, stop)
        assert read_tokenizer(given, "<|stop|>", 512).size == 512
        with pytest.raises(VocabularyError, match="do not fit a logit width of 300"):
            read_tokenizer(given, size=300)
    with pytest.raises(TokenizerError, match="'nothing' is not among the special tokens"):
        read_tokenizer(made, "nothing")


def test_vocabularies_and_tokenizers_of_ours_stay_what_they_are() -> None:
    tokenizer = load_tokenizer("bytes")
    for given in (tokenizer, tokenizer.vocabulary):
        assert read_tokenizer(given) is tokenizer.vocabulary
        assert read_tokenizer(given, 256, 257) is tokenizer.vocabulary
        assert read_tokenizer(given, size=300) is load_tokenizer("bytes", 300).vocabulary
        with pytest.raises(ArgumentError, match=r"end_tokens: 3 does not end texts of bytes"):
            read_tokenizer(given, 3)
    with pytest.raises(ArgumentError, match="size: this vocabulary has 2 tokens"):
        read_tokenizer(Vocabulary([b"a", b""], [1]), size=3)


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({}, (0,)),
        ({"generation_config.json": {"eos_token_id": [0, 2]}, "tokenizer_config.json": {"eos_token": "<s>"}}, (0, 2)),
        ({"generation_config.json": {"eos_token_id": 2}}, (2,)),
        ({"generation_config.json": {}, "tokenizer_config.json": {"eos_token": {"content": "<s>"}}}, (1,)),
        ({"generation_config.json": [], "tokenizer_config.json": {"eos_token": None}}, (0,)),
    ],
)
def test_files_beside_a_tokenizer_say_what_ends_a_text(tmp_path: Path, files: dict[str, Any], ends: Any) -> None:
    gpt2_like(END, "<s>", "<e>").save(str(tmp_path / "tokenizer.json"))
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert read_tokenizer(tmp_path).end_tokens == ends


def test_folders_and_paths_of_other_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package_file("mistral_common", "data/tokenizer.model.v1", "a test")
    shutil.copy(source, tmp_path / "tokenizer.model")
    wanted = load_tokenizer("mistral-v1").vocabulary.fingerprint
    for given in (tmp_path, tmp_path / "tokenizer.model"):
        assert read_tokenizer(given).fingerprint == wanted
    monkeypatch.chdir(tmp_path.parent)
    assert load_tokenizer(f"./{tmp_path.name}").vocabulary.fingerprint == wanted
    (tmp_path / "tokenizer.model").rename(tmp_path / "one.model")
    shutil.copy(source, tmp_path / "two.model")
    with pytest.raises(TokenizerError, match=r"which of these files is it\? Name one: one.model, two.model"):
        read_tokenizer(tmp_path)


def test_what_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "ranks.tiktoken").write_bytes(b"IQ== 0\nIg== 1\n")
    for name, kind, message in (
        (str(tmp_path), TokenizerError, r"a rank file names neither its word pattern nor its end tokens.*qwen2"),
        (str(tmp_path / "missing.json"), TokenizerError, "there is no such file"),
        ("tokenizer.json", TokenizerError, "there is no such file"),
        ("somebody/some-model", TokenizerError, "nothing is downloaded here: run `hf download somebody/some-model`"),
        ("lama3", UnknownNameError, "did you mean 'llama3'"),
        ("no\0name", UnknownNameError, "no tokenizer"),
        (str(tmp_path / ("x" * 300)), TokenizerError, "cannot be looked up|cannot be read|no such file"),
    ):
        with pytest.raises(kind, match=message):
            load_tokenizer(name)
    (tmp_path / "ranks.tiktoken").unlink()
    with pytest.raises(TokenizerError, match=r"AutoTokenizer\.from_pretrained\(.*\)\.save_pretrained"):
        load_tokenizer(str(tmp_path))
    (tmp_path / "vocab.json").unlink()
    with pytest.raises(TokenizerError, match="it has to hold one of tokenizer"):
        load_tokenizer(str(tmp_path))


def test_a_name_of_the_hub_in_the_local_cache(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    snapshot = tmp_path / "models--somebody--some-model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    made.save(str(snapshot / "tokenizer.json"))
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    looked_up = huggingface_hub.try_to_load_from_cache
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda name, file: looked_up(name, file, cache_dir=tmp_path)
    )
    assert load_tokenizer("somebody/some-model").vocabulary.fingerprint == read_tokenizer(made).fingerprint


def test_byte_level_and_sentencepiece_dicts_are_refused(made: Any) -> None:
    texts = {text: token for text, token in made.get_vocab().items() if token}
    with pytest.raises(VocabularyError, match=r"looks like a token of a byte-level tokenizer.*tokdfa.constrain"):
        Vocabulary.from_dict(texts, 0)
    with pytest.raises(VocabularyError, match="looks like a token of a SentencePiece tokenizer"):
        Vocabulary.from_dict({0: "a", 1: "\u2581b"}, 2)
    assert Vocabulary.from_dict({"a": 0, "\u2581b".encode(): 1}, 2).token_bytes(1) == "\u2581b".encode()
    plain = Vocabulary.from_dict({"\u0120a": 0, " b": 1}, 2)  # Maltese, beside real spaces
    assert plain.token_bytes(0) == "\u0120a".encode()


@pytest.mark.parametrize("pattern", ["qwen2", "llama3"])
def test_the_pattern_of_qwen_cuts_digits_one_by_one(tmp_path: Path, pattern: str) -> None:
    from tests.vocabulary.tokenizer_files import rank_file

    path = rank_file(tmp_path / "ranks.tiktoken", {b"12": 256, b"123": 257})
    tokens = load_tokenizer(f"tiktoken:{path}?pattern={pattern}").encode("123")
    assert tokens == (list(b"123") if pattern == "qwen2" else [257])


@needs_torch
class TestTransformers:
    """Its own objects."""

    def test_a_fast_tokenizer(self, made: Any) -> None:
        transformers: Any = pytest.importorskip("transformers")
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)
        vocabulary = read_tokenizer(fast)
        assert vocabulary.end_tokens == (0,)
        for text in CORPUS[:20]:
            assert vocabulary.tokenizer.encode(text) == fast(text)["input_ids"]
        fast.add_special_tokens({"eos_token": "<|stop|>"})
        assert read_tokenizer(fast).end_tokens == (fast.convert_tokens_to_ids("<|stop|>"),)
        fast.add_tokens(["a new word"])
        assert read_tokenizer(fast).token_bytes(len(fast) - 1) == b"a new word"

    def test_a_processor_is_asked_for_its_tokenizer(self, made: Any) -> None:
        transformers: Any = pytest.importorskip("transformers")
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)
        processor = type("SomeProcessor", (), {"tokenizer": fast})()
        assert read_tokenizer(processor) is read_tokenizer(fast)

    def test_a_slow_tokenizer_with_a_sentencepiece_model(self, tmp_path: Path) -> None:
        page: Any = pytest.importorskip("transformers.tokenization_utils_sentencepiece")
        source = str(package_file("mistral_common", "data/tokenizer.model.v1", "a test"))
        slow = page.SentencePieceBackend(vocab_file=source, eos_token="</s>", unk_token="<unk>", bos_token="<s>")
        assert read_tokenizer(slow).fingerprint == load_tokenizer("mistral-v1").vocabulary.fingerprint
        slow.add_special_tokens({"eos_token": "<|stop|>"})
        vocabulary = read_tokenizer(slow)
        assert (vocabulary.size, vocabulary.end_tokens) == (32_001, (32_000,))
        shifted = type("Shifted", (page.SentencePieceBackend,), {})
        shifted._convert_id_to_token = lambda self, index: self.sp_model.IdToPiece(max(0, index - 1))
        with pytest.raises(TokenizerError, match="its ids are shifted; load the fast tokenizer"):
            read_tokenizer(shifted(vocab_file=source, eos_token="</s>", unk_token="<unk>", bos_token="<s>"))

    @needs_smollm2
    def test_smollm2_by_its_own_json(self) -> None:
        transformers: Any = pytest.importorskip("transformers")
        ours = load_tokenizer("smollm2")
        content = ours._loaded.identity.decode()
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer.from_str(content), eos_token="<|im_end|>"
        )
        assert read_tokenizer(fast, ours.vocabulary.end_tokens).fingerprint == ours.vocabulary.fingerprint


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "NoneType"),
        (5, "path or folder"),
        ({"a": 0}, "from_dict"),
        (Tokenizer, "class Tokenizer"),
        (object(), "transformers"),
        (type("Encoding", (), {"__module__": "tiktoken.core"})(), "tiktoken:PATH"),
        (type("SentencePieceProcessor", (), {"__module__": "sentencepiece"})(), "sentencepiece:PATH"),
        (type("MistralTokenizer", (), {"instruct_tokenizer": None})(), "tekken:PATH"),
        (type("BertTokenizer", (), {"convert_ids_to_tokens": None})(), "use_fast=True"),
        (tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "exact bytes"),
        (tokenizers.Tokenizer(tokenizers.models.BPE()), "no decoder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_tokenizer(given: Any, named: str) -> None:
    with pytest.raises(TokdfaError, match=named):
        read_tokenizer(given)


def test_a_trained_file_of_the_other_tests_is_found_by_path(tmp_path: Path) -> None:
    path = byte_level(tmp_path / "tokenizer.json")
    assert load_tokenizer(str(path)).fingerprint == load_tokenizer(f"hf:{path}").fingerprint
