"""``tokenizer``: tokenizer files of every family, loaded, used to encode and decode, and asked for their merges.

The head is the name of the file's kind (`KINDS`). Files that are JSON are changed as JSON, too.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.mutations import mutated_bytes, mutated_json, mutated_texts
from tests.proper.small_tokenizers import BYTE, USER_DEFINED, merge_list, scored_pieces
from tests.vocabulary.test_gguf_loader import small_gguf
from tests.vocabulary.tokenizer_files import byte_fallback, metaspace_unigram, rank_file, tekken_file
from tokdfa.errors import TokenizerError
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

SPACES = "\u2581"


def _byte_level(path: Path) -> str:
    return merge_list(path, "".join(byte_alphabet()), [("a", "b"), ("Ġ", "a"), ("ab", "ab"), ("Ġ", "Ġ"), ("H", "e")])


def _sentencepiece(path: Path) -> str:
    texts = ("a", "b", "l", "o", "ab", f"{SPACES}a", "lo", SPACES, SPACES * 2, "é", "日")
    scores = {f"<0x{byte:02X}>": 0.0 for byte in range(256)} | {text: -float(rank) for rank, text in enumerate(texts)}
    return scored_pieces(path, scores, {text: BYTE for text in scores if text.startswith("<")} | {"日": USER_DEFINED})


#: Kind -> what begins the name of a tokenizer, what makes the file, and what ends the name.
KINDS: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "byte level": ("hf:", _byte_level, "?end=<end>"),
    "byte fallback": ("hf:", byte_fallback, ""),
    "unigram": ("hf:", metaspace_unigram, ""),
    "gguf": ("gguf:", small_gguf, ""),
    "ranks": ("tiktoken:", lambda path: rank_file(path, {b"ab": 256, b" a": 257, b"abab": 258}), "?pattern=gpt2"),
    "tekken": ("tekken:", tekken_file, ""),
    "sentencepiece": ("sentencepiece:", _sentencepiece, ""),
}
AS_JSON = ("byte level", "byte fallback", "unigram", "tekken")
TEXTS = ("", "Hello world  ab\n", "日本語 é 😀 <s></s> 12", " a" * 20, "\x00\x01\u2581")

_PLAIN_WORDS = r"""
model vocab merges type BPE Unigram WordPiece WordLevel unk_token unk_id <unk> byte_fallback ignore_merges fuse_unk
dropout continuing_subword_prefix end_of_word_suffix ## added_tokens id content special single_word lstrip rstrip
normalized <s> </s> </w> normalizer normalizers Sequence Prepend Replace Lowercase NFKC Strip StripAccents Precompiled
pre_tokenizer pretokenizers ByteLevel Metaspace Split Digits Whitespace add_prefix_space prepend_scheme replacement
behavior invert pattern String Regex ( [ \p{L} (?=a) a* decoder decoders ByteFallback Fuse CTC start stop
post_processor truncation padding config default_vocab_size default_num_special_tokens rank token_bytes token_str
special_tokens a b ab ▁ Ġ <0x41> <0xZZ> YWI= YQ== === AAAA
"""
#: What is put in, renamed to, and made into texts.
WORDS = (*_PLAIN_WORDS.split(), "a b")


class TokenizerEntry:
    """See the module's docstring."""

    name = "tokenizer"
    file_name = "tokenizer.file"

    def __init__(self) -> None:
        self.seeds: dict[str, bytes] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def prepare(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz")
        for kind, (_, make, _) in KINDS.items():
            path = Path(self._folder.name) / self.file_name
            make(path)
            self.seeds[kind] = path.read_bytes()
            self.run(Case(kind, self.seeds[kind]))

    def cases(self) -> st.SearchStrategy[Case]:
        return st.one_of([self._cases_of(kind) for kind in KINDS for _ in range(2 if kind in AS_JSON else 1)])

    def _cases_of(self, kind: str) -> st.SearchStrategy[Case]:
        data = self.seeds[kind]
        bodies = [st.just(data), mutated_bytes(data)]  # some are whole, so that not everything is refused
        if kind in AS_JSON:
            bodies += [mutated_json([data.decode()], WORDS).map(lambda value: json.dumps(value).encode())] * 4
        if kind == "ranks":
            bodies.append(mutated_texts([data.decode()], (*WORDS, "\n", " ", "YWI= 256\n", "-1")).map(_encode))
        return st.builds(Case, st.just(kind), st.one_of(bodies))

    def run(self, case: Case) -> str:
        assert self._folder is not None
        assert isinstance(case.body, bytes)
        begin, _, end = KINDS[case.head]
        path = Path(self._folder.name) / self.file_name
        path.write_bytes(case.body)
        tokenizer = load_tokenizer(f"{begin}{path}{end}")
        vocabulary = tokenizer.vocabulary
        for text in TEXTS:
            tokens = tokenizer.encode(text)
            vocabulary.spell(tokens)
            tokenizer.decode(tokens)
        tokenizer.decode(range(0, vocabulary.size, 7))
        assert vocabulary.trie.size == vocabulary.size
        try:
            build_canonicity(tokenizer)
        except TokenizerError as error:
            if not str(error).strip():
                raise
            return "accepted, without merge rules"
        return "accepted"


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


ENTRY = TokenizerEntry()
