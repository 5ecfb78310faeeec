"""``hf:PATH``: a tokenizer.json, encoded and decoded by the package `tokenizers`.

Taken: BPE and Unigram models whose decoder gives each token exact bytes (`huggingface_spelling` has the rule and the
treatment of the dummy prefix). Refused by name: WordPiece and WordLevel models, and BPE models that mark the ends of
words, since their tokens depend on their neighbours.

*Added tokens* that the file flags as special spell nothing, nor does the model's unknown token; their names in a text
are plain text. So are those that ``special=`` lists, by default those with the form of a marker
(`tokdfa.vocabulary.markers`), and those that end a text. Other added tokens (runs of spaces, words) spell what the
decoder makes of them; the library finds their text before it looks at anything else. What the file changes in a text
before it encodes (lower case, NFKC, `lstrip` of an added token, a character without token) is its own affair: then
``spell(encode(text))`` is the changed text. Every token's bytes are compared with the library's decoding of that token
when the file is loaded.

A tokenizer.json does not say which tokens end a text. They are what ``?end=`` names, or else all added tokens with a
name in `END_NAMES`. A token of the model's own that ends texts spells nothing then, though the encoder still makes it.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.core.locks import cached_property
from tokdfa.core.packages import import_library
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.huggingface_merges import merge_source
from tokdfa.vocabulary.huggingface_spelling import check_components, read_decoder, without_dummy_prefix
from tokdfa.vocabulary.loading import REMEDY, LoadedTokenizer, choose_end_tokens, parse_json, read_file
from tokdfa.vocabulary.markers import is_marker
from tokdfa.vocabulary.vocabulary import MAX_SIZE, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Names that published models give to tokens that end a text, a message or a turn.
END_NAMES = (
    *("</s>", "<eos>", "[EOS]", "<EOT>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"),
    *("<|im_end|>", "<|end|>", "<|return|>", "<end_of_turn>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)


def load_huggingface(
    path: Path,
    end: Sequence[str] = (),
    size: int | None = None,
    name: str = "hf",
    special: Sequence[str] | None = None,
    data: bytes | None = None,
) -> LoadedTokenizer:
    """A tokenizer.json. `end`: end tokens by id or name; by default those that `END_NAMES` lists. `special`: added
    tokens that are special besides those that are flagged; None: markers. `data`: the content, if `path` is no file.

    O(size of the file). Raises TokenizerError (missing, broken, a model or decoder without exact token bytes, no end
    token), MissingDependency, VocabularyError (`size` too small).
    """
    data = read_file(path) if data is None else data
    return load_content(path, parse_json(path, data), data, end, size, name, special)


def load_content(
    path: Path,
    spec: dict[str, Any],
    data: bytes,
    end: Sequence[str] = (),
    size: int | None = None,
    name: str = "hf",
    special: Sequence[str] | None = None,
) -> LoadedTokenizer:
    """The tokenizer.json with the content `spec`, as bytes `data`. `path`: where it is from, for messages.

    For loaders of other files that say the same. The rest is as for `load_huggingface`.
    """
    model = spec.get("model")
    if not isinstance(model, dict):
        raise TokenizerError(f"{path}: this is not a tokenizer.json: it has no object 'model'")
    texts = _model_tokens(path, model)
    check_components(path, spec)
    rule = read_decoder(path, spec.get("decoder"))
    if model.get("byte_fallback") and not rule.byte_fallback:
        raise TokenizerError(f"{path}: the model spells bytes as <0xHH>, but its decoder prints them as text")
    tokenizer = _build(path, _with_flags(path, spec, end, special), data, spec)
    unknown = _unknown_token(model)
    named: dict[int, str] = {unknown: texts[unknown]} if unknown in texts else {}
    added = _added_tokens(path, spec, tokenizer)
    for token, entry in added.items():
        texts[token] = entry.content
        if entry.special:
            named[token] = entry.content
    tokens = [b""] * (max(texts) + 1)
    for token, text in texts.items():
        if token not in named:
            tokens[token] = rule.spell(text)
    wanted = end or [token_name for token_name in END_NAMES if token_name in named.values()]
    if not wanted:
        raise TokenizerError(f"{path}: no special token is known to end a text{REMEDY}")
    _compare_with_library(path, tokens, tokenizer)
    names = {token: entry.content for token, entry in added.items()}
    ends = choose_end_tokens(path, wanted, tokens, named, names, size)
    vocabulary = Vocabulary(tokens, ends, named, size, name)
    return LoadedTokenizer(
        vocabulary,
        lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids),
        lambda given: str(tokenizer.decode(given, skip_special_tokens=False)),
        data,
        partial(merge_source, path, data, tokenizer, rule, vocabulary),
        _PromptEncoder(path, data),
    )


class _PromptEncoder:
    """The library's own tokenizer, as its file says it, but for padding and truncation. Built with the first prompt."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data = path, data

    @cached_property
    def _tokenizer(self) -> Any:
        library = import_library("tokenizers", f"the tokenizer {self._path}")
        tokenizer = library.Tokenizer.from_str(self._data.decode())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = False
        return tokenizer

    def __call__(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _with_flags(path: Path, spec: dict[str, Any], end: Sequence[str], special: Sequence[str] | None) -> dict[str, Any]:
    """The content with the flag of every added token that spells nothing."""
    entries = spec.get("added_tokens") or []
    if not all(isinstance(one, dict) and {"content", "id"} <= set(one) for one in entries):
        return spec  # the library refuses it
    known = {name for one in entries for name in (one["content"], str(one["id"]))}
    lacking = next((one for one in special or () if one not in known), None)
    if lacking is not None:
        raise TokenizerError(f"{path}: special token {lacking!r} is not among the added tokens")

    def is_special(entry: dict[str, Any]) -> bool:
        names = {entry["content"], str(entry["id"])}
        listed = is_marker(entry["content"]) if special is None else not names.isdisjoint(special)
        ends = not names.isdisjoint(end or END_NAMES)
        return bool(entry.get("special")) or listed or ends

    return {**spec, "added_tokens": [{**one, "special": is_special(one)} for one in entries]}


def _build(path: Path, spec: dict[str, Any], data: bytes, given: dict[str, Any]) -> Any:
    """The library's tokenizer without dummy prefix, random merges, padding, truncation and special tokens in texts.

    `data` is the JSON of `given`.
    """
    library = import_library("tokenizers", f"the tokenizer {path}")
    exact = without_dummy_prefix(spec)
    if spec["model"].get("dropout"):
        exact["model"] = {**spec["model"], "dropout": None}
    try:  # most files need no change, and writing the JSON of 10^5 tokens takes longer than reading it
        tokenizer = library.Tokenizer.from_str(data.decode() if exact == given else json.dumps(exact))
    except Exception as error:  # the library raises plain Exception for every fault
        raise TokenizerError(f"{path}: tokenizers refuses this file: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _model_tokens(path: Path, model: dict[str, Any]) -> dict[int, str]:
    """id -> text of the model's own tokens."""
    kind = model.get("type") or ("Unigram" if isinstance(model.get("vocab"), list) else "BPE")
    listed = model.get("vocab")
    if kind == "Unigram":
        if not isinstance(listed, list) or not all(isinstance(e, list) and e and isinstance(e[0], str) for e in listed):
            raise TokenizerError(f"{path}: model.vocab of a Unigram model must be a list of [text, score]")
        return {token: entry[0] for token, entry in enumerate(listed)}
    if kind != "BPE":
        raise TokenizerError(f"{path}: a {kind} model gives tokens no exact bytes; BPE and Unigram do")
    for key in ("end_of_word_suffix", "continuing_subword_prefix"):
        if model.get(key):
            raise TokenizerError(f"{path}: the model marks words ({key} {model[key]!r}), so tokens have no exact bytes")
    if not isinstance(listed, dict):
        raise TokenizerError(f"{path}: model.vocab of a BPE model must be an object of text -> id")
    texts: dict[int, str] = {}
    for text, token in listed.items():
        if type(token) is not int or not 0 <= token < MAX_SIZE:
            raise TokenizerError(f"{path}: model.vocab: the id {token!r} of {text!r} is not from 0 to {MAX_SIZE - 1}")
        if texts.setdefault(token, text) != text:
            raise TokenizerError(f"{path}: model.vocab: id {token} is given to {texts[token]!r} and to {text!r}")
    return texts


def _unknown_token(model: dict[str, Any]) -> int:
    """The id of the model's unknown token; -1 if there is none."""
    named = model.get("unk_id" if isinstance(model["vocab"], list) else "unk_token")
    found = model["vocab"].get(named) if isinstance(named, str) and isinstance(model["vocab"], dict) else named
    return found if type(found) is int else -1


def _added_tokens(path: Path, spec: dict[str, Any], tokenizer: Any) -> dict[int, Any]:
    """id -> added token, as the library has them. It numbers them itself, so the file's ids are compared with it."""
    added: dict[int, Any] = tokenizer.get_added_tokens_decoder()
    by_content = {token.content: i for i, token in added.items()}
    for entry in spec.get("added_tokens") or []:
        found = by_content.get(entry["content"])
        if found != entry["id"]:
            raise TokenizerError(
                f"{path}: the added token {entry['content']!r} has the id {entry['id']} in the file, "
                f"but tokenizers gives it {found}"
            )
    return added


def _compare_with_library(path: Path, tokens: Sequence[bytes], tokenizer: Any) -> None:
    """Each token that spells something must decode to its bytes, as far as they are UTF-8. About 1 us a token."""
    spelling = [token for token, spelled in enumerate(tokens) if spelled]
    decoded = tokenizer.decode_batch([[token] for token in spelling], skip_special_tokens=False)
    for token, text in zip(spelling, decoded, strict=True):
        if tokens[token].decode(errors="replace") != text:
            raise TokenizerError(
                f"{path}: token {token} should spell {tokens[token]!r}, but tokenizers decodes {text!r}"
            )
