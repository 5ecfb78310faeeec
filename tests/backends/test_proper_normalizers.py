"""Proper sequences with normalizers and pre-tokenizers of tokenizers in use; the library says what is proper."""

from __future__ import annotations

import itertools
import json
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import tokdfa
from tests.proper.pretokenizers import QWEN2, library_split
from tests.proper.test_pretokenizer_json import falcon
from tests.vocabulary.tokenizer_files import CORPUS, SPACE
from tokdfa.errors import UnsupportedConstraint
from tokdfa.proper.explain_text import explain_tokens
from tokdfa.proper.normalizers import normalized, stable_texts

if TYPE_CHECKING:
    from tokdfa.vocabulary.tokenizers import Tokenizer

END = "<|endoftext|>"
#: Texts that no normalizer changes, with what the pre-tokenizers cut at.
STABLE = [
    "Hello world",
    "it's 12345 of 678",
    "  two  spaces\n\n",
    "Straße, été",
    "a² 1½2",
    "日本語のテキスト",
    "x=1;y=22",
]


def byte_level(pre_tokenizer: Any, normalizer: Any = None) -> Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([*CORPUS, *(STABLE * 5)], trainer)
    return tokdfa.load_tokenizer(made)


def gemma() -> Tokenizer:
    """BPE over U+2581 with byte fallback, and a Split that has no spaces left to split at."""
    trained = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    trained.normalizer = normalizers.Replace(" ", SPACE)
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))],
        limit_alphabet=60, show_progress=False,
    )  # fmt: skip
    trained.train_from_iterator([*CORPUS, *(STABLE * 5)], trainer)
    content = json.loads(trained.to_str())
    content["added_tokens"] = content["added_tokens"][:2]
    content["pre_tokenizer"] = {
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False
    }  # fmt: skip
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    made = tokenizers.Tokenizer.from_str(json.dumps(content))
    made.decoder = decoders.Sequence(steps)
    return tokdfa.load_tokenizer(made)


@pytest.fixture(scope="module", params=["qwen", "gemma", "falcon", "nfkc", "lowercase"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    qwen = pre_tokenizers.Sequence([library_split(QWEN2), plain])
    match request.param:
        case "qwen":
            return byte_level(qwen, normalizers.NFC())
        case "nfkc":
            return byte_level(qwen, normalizers.Sequence([normalizers.NFKC()]))
        case "lowercase":
            return byte_level(qwen, normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]))
        case "falcon":
            return byte_level(falcon())
    return gemma()


def sequences(compiled: Any) -> set[tuple[int, ...]]:
    """All token sequences of a constraint with few texts."""
    found, vocab = set(), compiled.vocab
    todo = [((), compiled.start())]
    mask = tokdfa.allocate_mask(vocab.size)
    while todo:
        tokens, matcher = todo.pop()
        matcher.fill_mask(mask)
        for token in tokdfa.mask_to_ids(mask).tolist():
            if token in vocab.end_tokens:
                found.add(tokens)
                continue
            following = matcher.fork()
            following.advance(token)
            todo.append(((*tokens, token), following))
    return found


def stable(tokenizer: Tokenizer) -> list[str]:
    names = tokenizer.merges.normalizers
    return [text for text in STABLE if normalized(text, names) == text]


@pytest.mark.parametrize("backend", ["token_index", "cartesian_merge", "direct_merge", "earley_trie", "pushdown_trie"])
def test_proper_sequences_are_the_encodings(tokenizer: Tokenizer, backend: str) -> None:
    texts = stable(tokenizer)
    assert len(texts) >= 2
    options = {} if backend.endswith("_merge") else {"proper": True}
    compiled = tokdfa.compile(tokdfa.Choice(texts), tokenizer, backend, **options)
    assert sequences(compiled) == {tuple(tokenizer.encode(text)) for text in texts}


def test_grammars_and_schemas_of_stable_texts(tokenizer: Tokenizer) -> None:
    texts = stable(tokenizer)[:3]
    encoded = {tuple(tokenizer.encode(text)) for text in texts}
    written = " | ".join(json.dumps(text, ensure_ascii=False) for text in texts)
    grammar = tokdfa.compile(tokdfa.Grammar(f"start: {written}"), tokenizer, proper=True)
    assert sequences(grammar) == encoded
    schema = (
        tokdfa.JsonSchema({"enum": texts}, whitespace="none") if False else tokdfa.JsonSchema({"enum": [True, [None]]})
    )
    compiled = tokdfa.compile(schema, tokenizer, proper=True)
    for text in ("true", "[null]"):
        matcher = compiled.start()
        for token in tokenizer.encode(text):
            matcher.advance(token)
        assert matcher.can_end()


@pytest.mark.parametrize("backend", ["cartesian_merge", "direct_merge", "pushdown_trie", "token_index"])
def test_texts_that_a_normalizer_changes_are_refused_by_name(tokenizer: Tokenizer, backend: str) -> None:
    names, options = tokenizer.merges.normalizers, {} if backend.endswith("_merge") else {"proper": True}
    for changed in ("e\u0301", "\u2126 or \u212b", "\u1100\u1161", "Å"):
        if not names or stable_texts(names).accepts(changed.encode()):
            assert sequences(tokdfa.compile(tokdfa.Choice([changed]), tokenizer, backend, **options))
            continue
        if normalized(changed, names) == changed:
            continue  # refused, too, as it depends on what stands before it
        with pytest.raises(UnsupportedConstraint, match=f"normalizer .*{names[-1]}.* no proper tokens"):
            tokdfa.compile(tokdfa.Choice(["yes", changed]), tokenizer, backend, **options)
        verdict = explain_tokens(
            tokenizer, [*tokenizer.vocabulary.trie.prefixes_of(b"y")[:1], *spelled(tokenizer, changed)]
        )
        assert not verdict.is_proper
        assert "changes the text" in str(verdict.fault)


def test_a_part_that_cannot_be_reached_does_not_count() -> None:
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC())
    changed = '"e\u0301"'
    schema = '{"type": "object", "properties": {"%s": {"const": 1}}, "required": ["%s"], "additionalProperties": false}'
    for grammar, refused in (
        (f'start: "a" | "b"\nunused: {changed}', False),
        (f'start: "a" inner\ninner: "b" deeper?\ndeeper: "c" | {changed}', True),
        (f'start: "a"\n%ignore {changed}', True),
        (f'start: "a" %json {schema % (changed[1:-1], changed[1:-1])}', True),
        (f'start: "a" %json {schema % ("e", "e")}', False),
        ('start: "a" %json {"type": "array", "items": {"type": "string", "maxLength": 3}}', True),
    ):
        if refused:
            with pytest.raises(UnsupportedConstraint, match="normalizer NFC"):
                tokdfa.compile(tokdfa.Grammar(grammar), tokenizer, proper=True)
        else:
            tokdfa.compile(tokdfa.Grammar(grammar), tokenizer, proper=True)


def test_strings_of_any_characters(tokenizer: Tokenizer) -> None:
    schema = tokdfa.JsonSchema({"type": "string"})
    if tokenizer.merges.normalizers:
        with pytest.raises(UnsupportedConstraint, match="normalizer"):
            tokdfa.compile(schema, tokenizer, proper=True)
        ascii_only = tokdfa.JsonSchema({"type": "string", "pattern": "^[a-z ]*$"})
        if "Lowercase" not in tokenizer.merges.normalizers:
            assert tokdfa.compile(ascii_only, tokenizer, proper=True).start().can_end() is False
    elif tokenizer.merges.unit == "byte":
        tokdfa.compile(schema, tokenizer, proper=True)


def spelled(tokenizer: Tokenizer, text: str) -> list[int]:
    """Tokens of single bytes."""
    vocab = tokenizer.vocabulary
    single = {vocab.token_bytes(token): token for token in range(vocab.size) if len(vocab.token_bytes(token)) == 1}
    return [single[bytes([byte])] for byte in text.encode()]


def test_stable_characters_are_stable_in_every_context() -> None:
    """All pairs of a sample, by the library; and those that are not stable are few."""
    for names, library in (
        (("NFC",), normalizers.NFC()),
        (("NFKC",), normalizers.NFKC()),
        (("NFD",), normalizers.NFD()),
    ):
        texts = stable_texts(names)
        points = [
            chr(point)
            for point in [
                *range(0x20, 0x500),
                *range(0x900, 0xD00, 3),
                *range(0x1100, 0x1200, 5),
                *range(0xAC00, 0xAD00, 7),
            ]
        ]
        kept = [character for character in points if texts.accepts(character.encode())]
        for character in set(points) - set(kept):
            changed = any(
                unicodedata.normalize(names[0], before + character) != before + character
                for before in ("", *map(chr, (0x41, 0x61, 0x1100, 0xAC00, 0x9C7, 0x928, 0xB47, 0xBC6, 0xCC6, 0x316)))
            )
            assert changed or unicodedata.combining(character) or unicodedata.category(character) in ("Cn", "Mc", "Lo")
        joined = "".join(first + second for first, second in itertools.product(kept[::9], kept))
        assert library.normalize_str(joined) == joined
