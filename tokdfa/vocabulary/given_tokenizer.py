"""The vocabulary of whatever people have a tokenizer in: objects of transformers and tokenizers, names, vocabularies.

- A fast tokenizer of transformers, or one of the package tokenizers, hands out its own tokenizer.json, which is read as
  a file is (`tokdfa.vocabulary.huggingface_loader`).
- A slow one of transformers that holds a SentencePiece model is read from its model file. Tokens that were added to it
  spell nothing here, so no mask contains them.
- The processor of a multimodal model is asked for its tokenizer.
- Names, paths and folders go to `load_tokenizer`.

No library is imported: an object that is here has imported its own. Tokenizers are cached by content, so constraints
for one tokenizer share what is kept for its vocabulary, however often the object is handed in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.core.arguments import as_integer, as_sequence, as_token
from tokdfa.errors import ArgumentError, TokenizerError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer, tokenizer_from_json
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPACE = "\u2581"
REMEDY = (
    "pass a tokenizer of transformers or tokenizers, a path or folder, a name that `tokdfa tokenizers` lists, or a "
    "tokdfa.Vocabulary"
)


def read_tokenizer(given: Any, end_tokens: Iterable[int | str] = (), size: int | None = None) -> Vocabulary:
    """The vocabulary of a tokenizer in any of the forms that the module lists.

    `end_tokens`: ids or names of the tokens that end a text; by default the tokenizer's own ``eos_token_id``, or what
    the loader of its file says. `size`: the logit width, if it is larger than the tokenizer. Reading costs what
    `load_tokenizer` says, and 30 ms for 50,000 tokens whenever an object is handed in again. Raises ArgumentError for
    anything else, TokenizerError for what has no exact token bytes, VocabularyError if `size` is too small.
    """
    ends = _end_names(end_tokens)
    size = None if size is None else as_integer(size, "size", 1)
    given = _inner_tokenizer(given)
    if isinstance(given, str | Path):
        name = str(given)
        if ends:
            name += f"{'&' if '?' in name else '?'}end={','.join(ends)}"
        return load_tokenizer(name, size).vocabulary
    found = getattr(given, "vocabulary", given)  # of a Tokenizer, or of a language model
    if isinstance(found, Vocabulary):
        return _as_asked(found, ends, size)
    if isinstance(given, type):
        raise ArgumentError(f"tokenizer is the class {given.__name__}; {REMEDY}")
    name = _name_of(given)
    if not ends and getattr(given, "eos_token_id", None) is not None:
        ends = (str(given.eos_token_id),)
    content = _tokenizer_json(given)
    if content is not None:
        return tokenizer_from_json(content, name, ends, size).vocabulary
    if hasattr(given, "sp_model") and getattr(given, "vocab_file", None):
        return _of_sentencepiece(given, name, ends, size)
    raise _refusal(given, name)


def _inner_tokenizer(given: Any) -> Any:
    """The tokenizer inside a processor; anything else as it is."""
    inner = getattr(given, "tokenizer", None)
    is_processor = hasattr(inner, "convert_ids_to_tokens") and not hasattr(given, "convert_ids_to_tokens")
    return inner if is_processor else given


def _as_asked(vocabulary: Vocabulary, ends: tuple[str, ...], size: int | None) -> Vocabulary:
    """A vocabulary as it is, or padded; it has its end tokens."""
    if ends and set(ends) != {str(token) for token in vocabulary.end_tokens}:
        raise ArgumentError(
            f"end_tokens: this vocabulary ends texts with {list(vocabulary.end_tokens)}; name others when it is made"
        )
    if size is None or size == vocabulary.size:
        return vocabulary
    if not isinstance(vocabulary.tokenizer, Tokenizer):
        raise ArgumentError(f"size: this vocabulary has {vocabulary.size} tokens; give the size when it is made")
    return vocabulary.tokenizer.with_size(size).vocabulary


def _tokenizer_json(given: Any) -> bytes | None:
    """The tokenizer.json of an object of tokenizers, or of a fast one of transformers; None for any other."""
    backend = getattr(given, "backend_tokenizer", given)
    if not callable(getattr(backend, "to_str", None)):
        return None
    try:
        return str(backend.to_str()).encode()
    except Exception as error:  # tokenizers: a part made in Python has no JSON
        raise TokenizerError(f"{_name_of(given)} cannot be written as a tokenizer.json: {error}") from None


def _of_sentencepiece(given: Any, name: str, ends: tuple[str, ...], size: int | None) -> Vocabulary:
    """A slow tokenizer of transformers, whose ids must be those of its model file."""
    option = f"?end={','.join(ends)}" if ends else ""
    width = max(len(given), size or 0)
    vocabulary = load_tokenizer(f"sentencepiece:{given.vocab_file}{option}", width).vocabulary
    pieces = given.convert_ids_to_tokens(list(range(given.sp_model.get_piece_size())))
    for token, piece in enumerate(pieces):
        spelled = vocabulary.token_bytes(token)
        if spelled and len(spelled) > 1 and spelled != str(piece).replace(_SPACE, " ").encode():
            raise TokenizerError(
                f"{name}: token {token} is {piece!r}, but {spelled!r} in its model {given.vocab_file}: its ids are "
                "shifted; load the fast tokenizer (AutoTokenizer.from_pretrained(..., use_fast=True))"
            )
    return vocabulary


def _refusal(given: Any, name: str) -> Exception:
    """What to raise for a tokenizer that has no form that can be read."""
    module = type(given).__module__.partition(".")[0]
    if isinstance(given, dict):
        return ArgumentError(f"a dict is no tokenizer: make tokdfa.Vocabulary.from_dict(...) of it, or {REMEDY}")
    if module == "tiktoken":
        return TokenizerError(f"{name}: a tiktoken.Encoding is read from its file: 'tiktoken:PATH?pattern=...&end=ID'")
    if module == "sentencepiece":
        return TokenizerError(f"{name}: a SentencePieceProcessor is read from its file: 'sentencepiece:PATH'")
    if module == "mistral_common" or hasattr(given, "instruct_tokenizer") or "Mistral" in type(given).__name__:
        return TokenizerError(
            f"{name}: a tokenizer of mistral-common is read from its file: 'tekken:PATH' or 'sentencepiece:PATH'"
        )
    if hasattr(given, "convert_ids_to_tokens"):
        return TokenizerError(
            f"{name}: this slow tokenizer does not say what its tokens spell; load the fast one "
            "(AutoTokenizer.from_pretrained(..., use_fast=True))"
        )
    return ArgumentError(f"tokenizer is a {type(given).__name__}; {REMEDY}")


def _name_of(given: Any) -> str:
    """For messages: where it was loaded from, else its class."""
    named = getattr(given, "name_or_path", "")
    return named if isinstance(named, str) and named else type(given).__name__


def _end_names(end_tokens: Iterable[int | str]) -> tuple[str, ...]:
    ends = [end_tokens] if isinstance(end_tokens, int | str) else as_sequence(end_tokens, "end_tokens", "ids or names")
    return tuple(end if isinstance(end, str) else str(as_token(end, "end_tokens")) for end in ends)
