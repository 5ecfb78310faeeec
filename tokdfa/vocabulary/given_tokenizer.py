"""Objects of other libraries as content that a loader reads: what people have a tokenizer in.

- A fast tokenizer of transformers, or one of the package tokenizers, hands out its own tokenizer.json.
- A slow one of transformers that holds a SentencePiece model, and a ``SentencePieceProcessor``, hand out that model.
  Tokens that were added to a slow one spell nothing here, so no mask contains them. One that numbers bytes (ByT5,
  Perceiver) says how.
- A ``tiktoken.Encoding`` hands out its ranks, its word pattern and its special tokens.
- A tokenizer of mistral-common is asked for its Tekken file, or for its SentencePiece model.
- The processor of a multimodal model is asked for its tokenizer.

No library is imported: an object that is here has imported its own.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from tokdfa.errors import ArgumentError, TokenizerError, a_type
from tokdfa.vocabulary.byte_loader import numbered_bytes
from tokdfa.vocabulary.chat_template import TOKEN_NAMES, ChatTemplate, chosen_template
from tokdfa.vocabulary.loading import read_file

_SPACE = "\u2581"
REMEDY = (
    "pass a tokenizer of transformers, tokenizers, tiktoken, sentencepiece or mistral-common, a path or folder, a name "
    "that `tokdfa tokenizers` lists, or a model"
)


@dataclass(frozen=True)
class Content:
    """A tokenizer without a file: what the loader of a family reads, and with which options.

    `family`: a key of `tokdfa.vocabulary.tokenizer_names.SOURCES`, or "numbered:"; `name`: for messages; `end`: the end
    tokens that the object names; `least`: the logit width that it needs at least; `chat`: its chat template.
    """

    family: str
    data: bytes = field(repr=False)
    name: str
    options: tuple[tuple[str, Any], ...] = ()
    least: int = 0
    chat: ChatTemplate | None = None

    def with_options(self, options: dict[str, Any]) -> Content:
        """The same with `options` in place of those of the same key."""
        merged = {**dict(self.options), **options}
        return Content(self.family, self.data, self.name, tuple(sorted(merged.items())), self.least, self.chat)


def read_object(given: Any) -> Content:
    """The content of an object of the kinds that the module lists.

    Costs what it takes to write it down: 30 ms for 50,000 tokens of a fast tokenizer. Raises ArgumentError for what is
    no tokenizer, TokenizerError for one that does not say what its tokens spell.
    """
    if isinstance(given, type):
        raise ArgumentError(f"tokenizer is the class {given.__name__}; {REMEDY}")
    given = _inner_tokenizer(given)
    content = _tokenizer_json(given) or _sentencepiece(given) or _numbered_bytes(given) or _tiktoken(given)
    if content is None:
        raise _refusal(given, name_of(given))
    return content


def _inner_tokenizer(given: Any) -> Any:
    """The tokenizer inside a processor or inside one of mistral-common; anything else as it is."""
    while True:
        inner = getattr(given, "instruct_tokenizer", None) or getattr(given, "tokenizer", None)
        is_whole = hasattr(given, "convert_ids_to_tokens") and not hasattr(inner, "instruct_tokenizer")
        if inner is None or is_whole:
            return given
        given = inner


def name_of(given: Any) -> str:
    """For messages: where it was loaded from, else its class."""
    for attribute in ("name_or_path", "name"):
        named = getattr(given, attribute, "")
        if isinstance(named, str) and named:
            return named
    return type(given).__name__


def _end_of(given: Any) -> tuple[tuple[str, Any], ...]:
    """The option of the end token that a tokenizer of transformers names."""
    found = getattr(given, "eos_token_id", None)
    return () if found is None else (("end", (str(found),)),)


def _tokenizer_json(given: Any) -> Content | None:
    """Of an object of tokenizers, or of a fast one of transformers."""
    backend = getattr(given, "backend_tokenizer", given)
    if not callable(getattr(backend, "to_str", None)):
        return None
    name = name_of(given)
    try:
        data = str(backend.to_str()).encode()
    except Exception as error:  # tokenizers: a part made in Python has no JSON
        raise TokenizerError(f"{name} cannot be written as a tokenizer.json: {error}") from None
    return Content("hf:", data, name, _end_of(given), chat=_chat(given, name))


def _chat(given: Any, name: str) -> ChatTemplate | None:
    """The chat template of an object of transformers."""
    text = chosen_template(getattr(given, "chat_template", None))
    if text is None:
        return None
    texts = {one: getattr(given, one, None) for one in TOKEN_NAMES}
    return ChatTemplate(text, tuple((one, str(value)) for one, value in texts.items() if value is not None), name)


def _sentencepiece(given: Any) -> Content | None:
    """Of a SentencePieceProcessor, or of what holds one; the ids of a slow tokenizer must be those of its model."""
    holds = getattr(given, "sp_model", None) or getattr(given, "_model", None) or given
    write = getattr(holds, "serialized_model_proto", None)
    if not callable(write):
        return None
    name, data = name_of(given), bytes(write())
    if not hasattr(given, "convert_ids_to_tokens"):
        return Content("sentencepiece:", data, name)
    count = holds.get_piece_size()
    for token, piece in enumerate(given.convert_ids_to_tokens(list(range(count)))):
        own = holds.IdToPiece(token)
        if piece != own and not (holds.IsControl(token) or holds.IsUnknown(token) or holds.IsUnused(token)):
            raise TokenizerError(
                f"{name}: token {token} is {piece!r}, but {own!r} in its model: its ids are shifted; load the fast "
                "tokenizer (AutoTokenizer.from_pretrained(..., use_fast=True))"
            )
    return Content("sentencepiece:", data, name, _end_of(given), max(len(given), count), _chat(given, name))


def _numbered_bytes(given: Any) -> Content | None:
    """Of a slow tokenizer of transformers that has a token for each byte, as it says itself."""
    if getattr(given, "_utf_vocab_size", None) != 256 or not callable(getattr(given, "convert_tokens_to_ids", None)):
        return None
    name = name_of(given)
    ids = [int(given.convert_tokens_to_ids(chr(byte))) for byte in range(256)]
    special = {token: str(text) for token, text in given.added_tokens_decoder.items()}
    if len({*ids, *special}) != 256 + len(special):
        raise TokenizerError(f"{name}: two bytes have one id, so tokens have no exact bytes")
    ends = [str(given.eos_token_id)] if given.eos_token_id is not None else []
    return Content("numbered:", numbered_bytes(ids, special, ends), name, (), len(given), _chat(given, name))


def _tiktoken(given: Any) -> Content | None:
    """Of a tiktoken.Encoding, or of a Tekkenizer of mistral-common, which is read from its file."""
    path = getattr(given, "file_path", None) or getattr(given, "_file_path", None)
    if type(given).__name__ == "Tekkenizer" and path is not None:
        return Content("tekken:", read_file(path), str(path))
    ranks, pattern = getattr(given, "_mergeable_ranks", None), getattr(given, "_pat_str", None)
    if not isinstance(ranks, dict) or not isinstance(pattern, str):
        return None
    lines = [base64.b64encode(spelled) + b" %d\n" % rank for spelled, rank in ranks.items() if spelled]
    special = dict(getattr(given, "_special_tokens", {}))
    options = {
        "pattern": pattern,
        "special": tuple(f"{name}={token}" for name, token in special.items()),
        "end": (str(special["<|endoftext|>"]),) if "<|endoftext|>" in special else (),
    }
    return Content("tiktoken:", b"".join(lines), name_of(given), tuple(options.items()))


def _refusal(given: Any, name: str) -> Exception:
    """What to raise for a tokenizer that has no form that can be read."""
    if isinstance(given, dict):
        return ArgumentError(f"a dict is no tokenizer: make tokdfa.Vocabulary.from_dict(...) of it, or {REMEDY}")
    if hasattr(given, "convert_ids_to_tokens"):
        return TokenizerError(
            f"{name}: {a_type(given)} does not say what its tokens spell; if the model has a fast tokenizer, "
            "load that (AutoTokenizer.from_pretrained(..., use_fast=True)); else list what each token spells: "
            "tokdfa.Vocabulary([bytes, ...], end_tokens=[id])"
        )
    return ArgumentError(f"tokenizer is {a_type(given)}; {REMEDY}")


def is_network(given: Any) -> bool:
    """Whether `given` is a model of transformers."""
    return hasattr(given, "config") and hasattr(given, "get_output_embeddings")


def logit_width(network: Any) -> int:
    """How many logits a network of transformers gives for a token."""
    head = network.get_output_embeddings()
    return int(network.config.get_text_config().vocab_size if head is None else head.weight.shape[0])


def network_ends(network: Any) -> tuple[int, ...]:
    """The tokens at which generate() of a model stops; none if it says none."""
    for config in (getattr(network, "generation_config", None), getattr(network, "config", None)):
        found = getattr(config, "eos_token_id", None)
        if found is not None:
            return tuple(found) if isinstance(found, list | tuple) else (int(found),)
    return ()
