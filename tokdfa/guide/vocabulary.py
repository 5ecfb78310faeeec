"""A vocabulary as outlines_core has it: text -> ids, and the end token. It can be changed; an index keeps a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from tokdfa.guide.arguments import GuideError, GuideTypeError, as_count, as_guide_errors, as_token_bytes
from tokdfa.vocabulary.tokenizers import Tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary as TokenVocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Vocabulary:
    """Token text -> ids, and the end token. `freeze` makes of it the `tokdfa.Vocabulary` that backends take.

    `map`: str (UTF-8) or bytes -> list of ids. Raises GuideTypeError for other types and GuideError if one of the ids
    is the end token.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # it can be changed

    def __init__(self, eos_token_id: int, map: Mapping[str, list[int]] | Mapping[bytes, list[int]]) -> None:
        self._end_tokens: tuple[int, ...] = (as_count(eos_token_id, "eos_token_id"),)
        self._ids: dict[bytes, list[int]] = {}
        self._special_tokens: dict[int, str] = {}
        self._least_size = 1
        self._name = "guide"
        self._frozen: TokenVocabulary | None = None
        if not hasattr(map, "items"):
            raise GuideTypeError(f"a vocabulary takes a dict of str or bytes -> list of ids, not {type(map).__name__}")
        for token, ids in map.items():
            if not isinstance(ids, list | tuple):
                raise GuideTypeError(f"the ids of token {token!r} are a list of numbers, not {type(ids).__name__}")
            for token_id in ids:
                self.insert(token, token_id)

    @classmethod
    def of(cls, vocabulary: TokenVocabulary | Tokenizer) -> Vocabulary:
        """The tokens of a `tokdfa.Vocabulary` or of a tokenizer, with its end tokens and logit width. O(V)."""
        source = vocabulary.vocabulary if isinstance(vocabulary, Tokenizer) else vocabulary
        if not isinstance(source, TokenVocabulary):
            raise GuideTypeError(f"Vocabulary.of takes a tokdfa vocabulary or tokenizer, not {type(source).__name__}")
        ids: dict[bytes, list[int]] = {}
        for token in range(source.size):
            spelled = source.token_bytes(token)
            if spelled:
                ids.setdefault(spelled, []).append(token)
        made = _restore(ids, source.end_tokens, source.special_tokens, source.size, source.name)
        made._frozen = source
        return made

    @staticmethod
    def from_pretrained(model: str, revision: str | None = None, token: str | None = None) -> Vocabulary:
        """Refused with a GuideError: tokdfa fetches nothing from a network."""
        raise GuideError(
            f"tokdfa does not download the vocabulary of {model!r}: fetch its tokenizer.json and use "
            "Vocabulary.of(tokdfa.load_tokenizer('hf:PATH/tokenizer.json')); `tokdfa tokenizers` lists other names"
        )

    def get(self, token: str | bytes) -> list[int] | None:
        """The ids of a text in the order they were inserted; None if it has none."""
        ids = self._ids.get(as_token_bytes(token))
        return None if ids is None else ids.copy()

    def insert(self, token: str | bytes, token_id: int) -> None:
        """Give a text one more id. An end token is refused with a GuideError."""
        text, number = as_token_bytes(token), as_count(token_id, "a token id")
        if number in self._end_tokens:
            raise GuideError(f"id {number} is an end token, which has no text; {text!r} needs another id")
        self._ids.setdefault(text, []).append(number)
        self._frozen = None

    def remove(self, token: str | bytes) -> None:
        """Take a text out with all its ids. A text that is not there changes nothing."""
        self._ids.pop(as_token_bytes(token), None)
        self._frozen = None

    def get_eos_token_id(self) -> int:
        """The end token; the lowest, if there are several."""
        return self._end_tokens[0]

    def size(self) -> int:
        """The logit width, at least one more than the highest id: what `create_mask` takes. Freezes the vocabulary."""
        return self.freeze().size

    def freeze(self) -> TokenVocabulary:
        """The immutable vocabulary of these tokens: made in O(V), and again only after a change.

        GuideError if an id has two texts, is a special token's or is too large.
        """
        if self._frozen is None:
            highest = max((token for ids in self._ids.values() for token in ids), default=0)
            with as_guide_errors():
                self._frozen = TokenVocabulary.from_dict(
                    cast("Mapping[str | bytes, Sequence[int]]", self._ids),
                    self._end_tokens,
                    self._special_tokens,
                    max(self._least_size, highest + 1, *(end + 1 for end in self._end_tokens)),
                    self._name,
                )
        return self._frozen

    def __len__(self) -> int:
        """The number of ids, end tokens included. An id that was inserted twice counts twice."""
        return sum(map(len, self._ids.values())) + len(self._end_tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._ids == other._ids and self._end_tokens == other._end_tokens

    def __repr__(self) -> str:
        return f"Vocabulary(eos_token_id={self.get_eos_token_id()}, {len(self._ids)} texts, {len(self)} ids)"

    def __reduce__(self) -> tuple[Callable[..., Vocabulary], tuple[Any, ...]]:
        return _restore, (self._ids, self._end_tokens, self._special_tokens, self._least_size, self._name)


def _restore(
    ids: Mapping[bytes, Iterable[int]],
    end_tokens: tuple[int, ...],
    special_tokens: Mapping[int, str],
    least_size: int,
    name: str,
) -> Vocabulary:
    """A vocabulary of its own with these parts: what pickling and copying make."""
    restored = Vocabulary(end_tokens[0], {})
    restored._ids = {token: list(of_token) for token, of_token in ids.items()}
    restored._end_tokens, restored._special_tokens = end_tokens, dict(special_tokens)
    restored._least_size, restored._name = least_size, name
    return restored
