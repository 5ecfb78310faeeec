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
from tokdfa.vocabulary.loading import package_file
from tokdfa.vocabulary.tokenizers import Tokenizer, as_vocabulary, load_tokenizer
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
    vocabulary = as_vocabulary(made)
    filed = load_tokenizer(f"hf:{folder / 'tokenizer.json'}")
    assert vocabulary.fingerprint == filed.vocabulary.fingerprint
    assert vocabulary.tokenizer.fingerprint == filed.fingerprint
    assert vocabulary.token_bytes(made.token_to_id("Ġra")) == b" ra"
    for text in CORPUS[:20]:
        assert vocabulary.tokenizer.encode(text) == made.encode(text, add_special_tokens=False).ids
    assert as_vocabulary(made) is vocabulary, "constraints for one tokenizer share what is kept for it"


def test_a_tokenizer_without_a_file_goes_to_other_processes(made: Any) -> None:
    from tokdfa.vocabulary import tokenizers as page

    vocabulary = as_vocabulary(made, size=600)
    stored = pickle.dumps(vocabulary)
    assert pickle.loads(stored) is vocabulary
    page._from_content.cache_clear()  # as in a process that has not seen it
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
        assert as_vocabulary(given).end_tokens == (0,)
        assert as_vocabulary(given, [stop, END], 512).end_tokens == (0, stop)
        assert as_vocabulary(given, "<|stop|>", 512).size == 512
        with pytest.raises(VocabularyError, match="do not fit a logit width of 300"):
            as_vocabulary(given, size=300)
    with pytest.raises(TokenizerError, match="'nothing' is not among the tokens"):
        as_vocabulary(made, "nothing")


def test_vocabularies_and_tokenizers_of_ours_stay_what_they_are() -> None:
    tokenizer = load_tokenizer("bytes")
    for given in (tokenizer, tokenizer.vocabulary):
        assert as_vocabulary(given) is tokenizer.vocabulary
        assert as_vocabulary(given, 256, 257) is tokenizer.vocabulary
        assert as_vocabulary(given, size=300) is load_tokenizer("bytes", 300).vocabulary
        changed = as_vocabulary(given, [3, 256])
        assert (changed.end_tokens, changed.token_bytes(3), changed.tokenizer.vocabulary) == ((3, 256), b"", changed)
    plain = Vocabulary([b"a", b"\n", b""], [2])
    assert as_vocabulary(plain, "<end>") is plain
    changed = as_vocabulary(plain, [1, 2], size=4)
    assert (changed.size, changed.end_tokens, changed.spell(range(4))) == (4, (1, 2), b"a")
    assert as_vocabulary(plain, 1).special_tokens == {1: "\n", 2: "<end>"}
    for wrong in ("nothing", 3):
        with pytest.raises(ArgumentError, match=f"end_tokens: '{wrong}' is no id and no name"):
            as_vocabulary(plain, wrong)
    with pytest.raises(ArgumentError, match="has no tokenizer"):
        load_tokenizer(plain)


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
    assert as_vocabulary(tmp_path).end_tokens == ends


@pytest.mark.parametrize("name", ["a.tiktoken", "tokenizer.json", "tokenizer.model", "a.gguf", "tekken.json"])
def test_empty_files_are_called_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for given in (tmp_path, tmp_path / name):
        with pytest.raises(TokenizerError, match="the file is empty"):
            load_tokenizer(given, pattern="gpt2" if name == "a.tiktoken" else None, end_tokens=[0])


def test_folders_and_paths_of_other_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package_file("mistral_common", "data/tokenizer.model.v1", "a test")
    shutil.copy(source, tmp_path / "tokenizer.model")
    wanted = load_tokenizer("mistral-v1").vocabulary.fingerprint
    for given in (tmp_path, tmp_path / "tokenizer.model"):
        assert as_vocabulary(given).fingerprint == wanted
    monkeypatch.chdir(tmp_path.parent)
    assert load_tokenizer(f"./{tmp_path.name}").vocabulary.fingerprint == wanted
    (tmp_path / "tokenizer.model").rename(tmp_path / "one.model")
    shutil.copy(source, tmp_path / "two.model")
    with pytest.raises(TokenizerError, match=r"which of these files is it\? Name one: one.model, two.model"):
        as_vocabulary(tmp_path)


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
    assert load_tokenizer("somebody/some-model").vocabulary.fingerprint == as_vocabulary(made).fingerprint


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


def test_objects_of_tiktoken(tmp_path: Path) -> None:
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b" a": 257}
    made = tiktoken.Encoding(
        "mine", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={END: 300, "<|x=1|>": 301}
    )
    tokenizer = load_tokenizer(made)
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.size, vocabulary.end_tokens, tokenizer.name) == (302, (300,), "mine")
    assert vocabulary.special_tokens == {300: END, 301: "<|x=1|>"}
    for text in (*CORPUS[:20], "ab abab", f"{END}ab"):
        assert tokenizer.encode(text) == made.encode_ordinary(text)
        assert tokenizer.encode(text, special=True) == made.encode(text, allowed_special="all")
        assert tokenizer.decode(made.encode_ordinary(text)) == text
    assert load_tokenizer(made, end_tokens="<|x=1|>").vocabulary.end_tokens == (301,)
    assert pickle.loads(pickle.dumps(tokenizer)) is tokenizer
    assert load_tokenizer(made) is tokenizer


def test_objects_of_sentencepiece_and_mistral_common() -> None:
    import sentencepiece
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    source = str(package_file("mistral_common", "data/tokenizer.model.v1", "a test"))
    processor = sentencepiece.SentencePieceProcessor(model_file=source)
    wanted = load_tokenizer("mistral-v1")
    assert load_tokenizer(processor).fingerprint == wanted.fingerprint
    common = MistralTokenizer.v1()
    for given in (common, common.instruct_tokenizer, common.instruct_tokenizer.tokenizer):
        assert as_vocabulary(given).fingerprint == wanted.vocabulary.fingerprint
    text = "[INST] hi [/INST]"
    assert load_tokenizer(processor).encode(f"<s>{text}", special=True) == [1, *processor.EncodeAsIds(text)]
    tekken = MistralTokenizer.v3(is_tekken=True)
    inner = tekken.instruct_tokenizer.tokenizer
    for given in (tekken, inner):
        tokenizer = load_tokenizer(given)
        assert tokenizer.encode("hällo 12 <s>") == inner.encode("hällo 12 <s>", bos=False, eos=False)
        assert tokenizer.vocabulary.end_tokens == (inner.eos_id,)
        assert tokenizer.vocabulary.size == inner.n_words


def test_word_patterns_of_ones_own_and_ranks_without_bytes(tmp_path: Path) -> None:
    import tiktoken

    from tests.vocabulary.tokenizer_files import rank_file

    path = rank_file(tmp_path / "ranks.tiktoken", {b"ab": 256, b"b?a": 257})
    path.write_bytes(path.read_bytes() + b"= 258\n")  # as the last line of Whisper's files
    pattern = r"\w+\?\w+|\d&|\W|\w"
    tokenizer = load_tokenizer(path, pattern=pattern, end_tokens=[259], special_tokens={"<|go|>": 260})
    assert (tokenizer.vocabulary.size, tokenizer.vocabulary.end_tokens) == (261, (259,))
    assert tokenizer.vocabulary.token_bytes(258) == b""
    ranks = {tokenizer.vocabulary.token_bytes(token): token for token in range(258)}
    reference = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|go|>": 260})
    for text in ("ab?ab", "ab ?ab 3&", "<|go|>ab"):
        assert tokenizer.encode(text) == reference.encode_ordinary(text)
        assert tokenizer.encode(text, special=True) == reference.encode(text, allowed_special="all")
    again = load_tokenizer(tokenizer.name)
    assert again.fingerprint == tokenizer.fingerprint, "its name says all"
    with pytest.raises(UnknownNameError, match="did you mean 'qwen2'"):
        load_tokenizer(path, pattern="qwen")
    with pytest.raises(TokenizerError, match="'x=97' is not NAME=ID"):
        load_tokenizer(path, pattern="gpt2", special_tokens={"x": 97})


def test_options_that_a_tokenizer_does_not_take(made: Any, folder: Path) -> None:
    for given in (made, folder, "llama3", "bytes"):
        with pytest.raises(TokdfaError, match=r"pattern\b"):
            load_tokenizer(given, pattern="gpt2")
    with pytest.raises(ArgumentError, match=r"special: .* is loaded already"):
        load_tokenizer(load_tokenizer("bytes"), special_tokens=[])
    with pytest.raises(TokenizerError, match="special token 'x' is not among the added tokens"):
        load_tokenizer(made, special_tokens=["x"])


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        *(
            (name, True)
            for name in ("<|im_end|>", "<｜User｜>", "<think>", "</think>", "</tool_call>", "[INST]", "[/INST]")
        ),
        *(
            (name, True)
            for name in ("<start_of_turn>", "<image>", "<unused12>", "<arg_key>", "<minimax:tool_call>", "<|a b|>")
        ),
        *((name, False) for name in ("<table>", "</h1>", "<code>", "\n\n", "  ", "[x]", "<", "<0x0A>", "word", "<a b")),
    ],
)
def test_what_is_a_marker(name: str, marks: bool) -> None:
    from tokdfa.vocabulary.markers import is_marker

    assert is_marker(name) == marks


@needs_torch
class TestTransformers:
    """Its own objects."""

    def test_a_fast_tokenizer(self, made: Any) -> None:
        transformers: Any = pytest.importorskip("transformers")
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)
        vocabulary = as_vocabulary(fast)
        assert vocabulary.end_tokens == (0,)
        for text in CORPUS[:20]:
            assert vocabulary.tokenizer.encode(text) == fast(text)["input_ids"]
        fast.add_special_tokens({"eos_token": "<|stop|>"})
        assert as_vocabulary(fast).end_tokens == (fast.convert_tokens_to_ids("<|stop|>"),)
        fast.add_tokens(["a new word"])
        assert as_vocabulary(fast).token_bytes(len(fast) - 1) == b"a new word"

    def test_a_processor_is_asked_for_its_tokenizer(self, made: Any) -> None:
        transformers: Any = pytest.importorskip("transformers")
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)
        processor = type("SomeProcessor", (), {"tokenizer": fast})()
        assert as_vocabulary(processor) is as_vocabulary(fast)

    def test_a_slow_tokenizer_with_a_sentencepiece_model(self, tmp_path: Path) -> None:
        page: Any = pytest.importorskip("transformers.tokenization_utils_sentencepiece")
        source = str(package_file("mistral_common", "data/tokenizer.model.v1", "a test"))
        slow = page.SentencePieceBackend(vocab_file=source, eos_token="</s>", unk_token="<unk>", bos_token="<s>")
        assert as_vocabulary(slow).fingerprint == load_tokenizer("mistral-v1").vocabulary.fingerprint
        slow.add_special_tokens({"eos_token": "<|stop|>"})
        vocabulary = as_vocabulary(slow)
        assert (vocabulary.size, vocabulary.end_tokens) == (32_001, (32_000,))
        shifted = type("Shifted", (page.SentencePieceBackend,), {})
        shifted._convert_id_to_token = lambda self, index: self.sp_model.IdToPiece(max(0, index - 1))
        with pytest.raises(TokenizerError, match="its ids are shifted; load the fast tokenizer"):
            as_vocabulary(shifted(vocab_file=source, eos_token="</s>", unk_token="<unk>", bos_token="<s>"))

    @pytest.mark.parametrize("kind", ["ByT5Tokenizer", "PerceiverTokenizer"])
    def test_a_slow_tokenizer_that_numbers_bytes(self, kind: str) -> None:
        transformers: Any = pytest.importorskip("transformers")
        slow = getattr(transformers, kind)()
        tokenizer = load_tokenizer(slow)
        vocabulary = tokenizer.vocabulary
        assert (vocabulary.size, vocabulary.end_tokens) == (len(slow), (slow.eos_token_id,))
        for text in (*CORPUS[:20], "\x00\x7f"):
            ids = slow(text, add_special_tokens=False)["input_ids"]
            assert tokenizer.encode(text) == ids
            assert vocabulary.spell(ids) == text.encode()
            assert tokenizer.decode(ids) == text
        end = slow.eos_token
        assert tokenizer.encode(f"a{end}b", special=True) == slow(f"a{end}b", add_special_tokens=False)["input_ids"]
        assert pickle.loads(pickle.dumps(tokenizer)) is tokenizer

    def test_a_slow_tokenizer_of_another_kind_names_what_can_be_done(self) -> None:
        transformers: Any = pytest.importorskip("transformers")
        with pytest.raises(TokenizerError, match=r"list what each token spells: tokdfa\.Vocabulary"):
            as_vocabulary(transformers.CanineTokenizer())

    def test_prompts_and_conversations(self, made: Any, tmp_path: Path) -> None:
        transformers: Any = pytest.importorskip("transformers")
        copy = tokenizers.Tokenizer.from_str(made.to_str())
        copy.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)  # a dummy prefix
        copy.add_special_tokens([tokenizers.AddedToken("<|turn|>", rstrip=True)])
        copy.add_tokens(["</think>"])
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=copy, eos_token=END, bos_token="<|turn|>")
        fast.chat_template = (
            "{{ bos_token }}{% for message in messages %}\n    {%- if message.role == 'odd' %}"
            "{{ raise_exception('odd') }}{% endif %}\n"
            "{{ message['role'] + ': ' + message['content'] | trim }}<|turn|>\n"
            "{% endfor %}{% if add_generation_prompt %}answer:{% endif %}{{ tools | tojson if tools }}{{ extra }}"
        )
        messages = [{"role": "user", "content": " <b> hé </think> "}, {"role": "answer", "content": "x"}]
        tokenizer = load_tokenizer(fast)
        prompt = f"<|turn|> hi </think>{END}"
        assert tokenizer.encode(prompt, special=True) == fast(prompt, add_special_tokens=False)["input_ids"]
        fast.save_pretrained(str(tmp_path))
        for given in (tokenizer, load_tokenizer(tmp_path)):
            for options in ({}, {"add_generation_prompt": False}, {"tools": [{"name": "<f>é"}], "extra": "more"}):
                wanted = fast.apply_chat_template(
                    messages, tokenize=True, return_dict=False, **{"add_generation_prompt": True, **options}
                )
                assert given.chat(messages, **options) == wanted
            with pytest.raises(TokenizerError, match="refuses these messages: odd"):
                given.chat([{"role": "odd", "content": ""}])
            with pytest.raises(ArgumentError, match="messages: each is"):
                given.chat(["hello"])
        with pytest.raises(TokenizerError, match="has no chat template"):
            load_tokenizer(made).chat(messages)

    def test_every_public_function_takes_it(self, made: Any) -> None:
        import tokdfa

        transformers: Any = pytest.importorskip("transformers")
        copy = tokenizers.Tokenizer.from_str(made.to_str())
        copy.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=copy, eos_token=END)
        vocabulary = load_tokenizer(fast).vocabulary
        choice = tokdfa.Choice(["yes", "no"])
        assert tokdfa.compile(choice, fast).vocab is vocabulary
        assert tokdfa.compile_async(choice, fast).result().vocab is vocabulary
        assert tokdfa.ConstraintCache().compile(choice, fast).vocab is vocabulary
        assert tokdfa.BatchMatcher(fast, 2).vocab is vocabulary
        assert tokdfa.constrain(["yes"], fast).vocabulary is vocabulary
        assert tokdfa.load_model("ngram", fast).vocabulary is vocabulary
        part = tokdfa.tools("hermes", [{"name": "f"}], fast)
        assert str(part) == str(tokdfa.tools("hermes", [{"name": "f"}], vocabulary))
        assert f"<[{copy.token_to_id('<tool_call>')}]>" in str(part), "named as a token"
        thoughts = tokdfa.think_first("ok", fast, 5).start()
        assert [token for token in range(vocabulary.size) if thoughts.allows(token)] == [copy.token_to_id("<think>")]

    def test_a_marker_is_allowed_where_it_is_named_and_nowhere_else(self, made: Any) -> None:
        import tokdfa

        copy = tokenizers.Tokenizer.from_str(made.to_str())
        copy.add_tokens(["</think>", "word"])
        close, word = copy.token_to_id("</think>"), copy.token_to_id("word")
        anything = tokdfa.compile(tokdfa.Regex(r"[\s\S]*"), copy).start()
        assert (anything.allows(close), anything.allows(word)) == (False, True)
        named = tokdfa.compile(tokdfa.Grammar('start: /[a-z]*/ </think> "ok"'), copy).start()
        assert named.allows(close)
        assert not any(named.allows(token) for token in load_tokenizer(copy).encode("</"))
        named.advance(close)
        assert not named.allows(close)
        as_text = tokdfa.compile(tokdfa.Regex(r"[\s\S]*"), load_tokenizer(copy, special_tokens=[])).start()
        assert as_text.allows(close)

    def test_a_model_with_fewer_logits_than_tokens(self, made: Any) -> None:
        """Its tokenizer has a token for images at the end, as that of Gemma 3 does."""
        import torch

        import tokdfa

        transformers: Any = pytest.importorskip("transformers")
        copy = tokenizers.Tokenizer.from_str(made.to_str())
        copy.add_special_tokens(["<image>"])
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=copy, eos_token=END)
        config = transformers.LlamaConfig(
            vocab_size=len(fast) - 1, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            bos_token_id=None, eos_token_id=fast.eos_token_id, pad_token_id=None,
        )  # fmt: skip
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config).eval()
        prompt = torch.tensor([fast.encode("x")])
        for constrained in (
            tokdfa.constrain(["yes", "no"], fast, model),
            tokdfa.constrain(["yes", "no"], fast, size=len(fast) - 1),
            tokdfa.constrain(["yes", "no"], fast),
        ):
            output = model.generate(prompt, logits_processor=[constrained.logits_processor()], max_new_tokens=9)
            assert fast.decode(output[0, 1:], skip_special_tokens=True) in ("yes", "no")
        copy.add_tokens(["a word"])
        wide = transformers.PreTrainedTokenizerFast(tokenizer_object=copy, eos_token=END)
        with pytest.raises(VocabularyError, match=r"spells b'a word'.*resize_token_embeddings"):
            tokdfa.constrain(["yes"], wide, model)
        other = tokdfa.constrain(["yes"], wide).logits_processor()
        with pytest.raises(TokdfaError, match="those past the logits spell text"):
            model.generate(prompt, logits_processor=[other], max_new_tokens=9)

    @needs_smollm2
    def test_smollm2_by_its_own_json(self) -> None:
        transformers: Any = pytest.importorskip("transformers")
        ours = load_tokenizer("smollm2")
        content = ours._loaded.identity.decode()
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer.from_str(content), eos_token="<|im_end|>"
        )
        assert as_vocabulary(fast, ours.vocabulary.end_tokens).fingerprint == ours.vocabulary.fingerprint
        # one model in two forms, which do not name the same tokens as ends
        assert ours.vocabulary.difference(as_vocabulary(fast)) == ""
        assert "token 5 spells" in Vocabulary([b"a"] * 9 + [b""], [9]).difference(
            Vocabulary([*[b"a"] * 5, b"b", *[b"a"] * 3, b""], [9])
        )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "NoneType"),
        (5, "path or folder"),
        ({"a": 0}, "from_dict"),
        (Tokenizer, "class Tokenizer"),
        (object(), "transformers"),
        (type("BertTokenizer", (), {"convert_ids_to_tokens": None})(), "use_fast=True"),
        (tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "exact bytes"),
        (tokenizers.Tokenizer(tokenizers.models.BPE()), "no decoder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_tokenizer(given: Any, named: str) -> None:
    with pytest.raises(TokdfaError, match=named):
        as_vocabulary(given)


def test_a_trained_file_of_the_other_tests_is_found_by_path(tmp_path: Path) -> None:
    path = byte_level(tmp_path / "tokenizer.json")
    assert load_tokenizer(str(path)).fingerprint == load_tokenizer(f"hf:{path}").fingerprint
