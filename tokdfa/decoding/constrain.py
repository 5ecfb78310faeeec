"""The front door: a constraint and a tokenizer, in the forms that people have them in, to what keeps a model inside.

    constrained = tokdfa.constrain(Animal, tokenizer)
    output = model.generate(**inputs, logits_processor=[constrained.logits_processor()], max_new_tokens=100)
    animal = constrained.parse(tokenizer.decode(output[0, prompt_length:], skip_special_tokens=True))

`tokdfa.decoding.given_constraint` says what is a constraint, `tokdfa.vocabulary.tokenizers` what is a tokenizer.

*End tokens.* generate() stops at the ``eos_token_id`` of the model's generation config. Given the model, its ends are
the only ones that masks allow. Without it they are the tokenizer's own eos token, which nearly every model stops at;
`end_tokens` names others. *Logit width.* Models often have more logits than their tokenizer has tokens. Given the
model, masks are as wide as its logits; without it, logits past the vocabulary are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import backend_class, compile, default_backend
from tokdfa.constraint import Constraint
from tokdfa.decoding.given_constraint import options_of, read_constraint
from tokdfa.decoding.logits_processor import ConstraintLogitsProcessor
from tokdfa.errors import (
    ArgumentError,
    ModelError,
    ParseError,
    TokenizerError,
    TokenRefused,
    UnknownNameError,
    VocabularyError,
)
from tokdfa.vocabulary.given_tokenizer import is_network, logit_width, network_ends
from tokdfa.vocabulary.tokenizers import as_vocabulary, encode_exactly, end_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.given_constraint import Reader
    from tokdfa.vocabulary.vocabulary import Vocabulary


def constrain(
    what: Any,
    tokenizer: Any = None,
    model: Any = None,
    *,
    backend: str | None = None,
    end_tokens: Iterable[int | str] = (),
    size: int | None = None,
    **options: Any,
) -> Constrained:
    """`what`, compiled for the tokens of `tokenizer`: a pydantic class, a schema, a pattern, choices, a constraint.

    `tokenizer`: anything that `load_tokenizer` takes (a tokenizer of another library, a path, folder or name, a model
    that knows where it came from), or a vocabulary. `model`: a model of transformers, whose logit width and end tokens
    then hold. `end_tokens`: ids or names of tokens that end a text, `size`: the logit width, where neither says it.
    `backend`: a name that `tokdfa backends` lists, by default `default_backend` says which. `options`: of the
    constraint that is made of `what` (such as ``order="any"`` of a schema), and of the backend.

    Raises ArgumentError for what cannot be understood, and what reading the tokenizer and compiling raise.
    """
    if model is None and is_network(tokenizer):
        tokenizer, model = None, tokenizer
    own = options_of(what).intersection(options)
    given = read_constraint(what, {name: options.pop(name) for name in own})
    ends = end_tokens or network_ends(model)
    vocabulary = _read_vocabulary(tokenizer, model, ends, size)
    if backend is None:
        backend = default_backend(given.constraint)
        if backend == "token_index":  # nothing is built that no text asks for, however large the pattern
            options = {"lazy": True, **options}
    _check_options(what, backend, options, own=options_of(what))
    compiled = compile(given.constraint, vocabulary, backend, **options)
    return Constrained(compiled, given.read, end_ids(vocabulary, ends))


class Constrained:
    """A constraint compiled for a tokenizer, ready for generation. Immutable, shareable; made by `constrain`.

    `compiled`: the compiled constraint, from which matchers start; `end_tokens`: where generation stops, some or all of
    the vocabulary's.
    """

    def __init__(
        self, compiled: CompiledConstraint, read: Reader | None = None, end_tokens: tuple[int, ...] = ()
    ) -> None:
        self.compiled, self._read = compiled, read
        self.end_tokens = end_tokens or compiled.vocab.end_tokens

    def __repr__(self) -> str:
        return f"Constrained({self.compiled!r})"

    @property
    def constraint(self) -> Constraint:
        """What was compiled."""
        return self.compiled.constraint

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens it was compiled for."""
        return self.compiled.vocab

    def start(self, context: Sequence[int] = (), max_tokens: int | None = None) -> Matcher:
        """A matcher before the first token, for a decoding loop of one's own: see `CompiledConstraint.start`."""
        return self.compiled.start(context, max_tokens)

    def logits_processor(
        self,
        *,
        pad_token_id: int | None = None,
        contexts: Sequence[Sequence[int]] | None = None,
        max_tokens: int | None = None,
    ) -> ConstraintLogitsProcessor:
        """A LogitsProcessor for one call of generate(); make one for each call. See `ConstraintLogitsProcessor`."""
        return ConstraintLogitsProcessor(
            self.compiled,
            eos_token_id=self.end_tokens,
            pad_token_id=pad_token_id,
            contexts=contexts,
            max_tokens=max_tokens,
        )

    def parse(self, text: str | bytes) -> Any:
        """The value of a generated text: an object of the pydantic class, the JSON value, or the text itself.

        Raises ParseError for a text that is none of the constraint, as one that was cut off: JSON that does not end,
        and for other constraints what the masks would not allow (checked where the tokenizer encodes the text as it
        is). Lets pydantic's ValidationError through: a class may ask more of a value than its schema says.
        """
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        if not isinstance(text, str):
            raise ArgumentError(f"text is a str or bytes, not a {type(text).__name__}; decode the tokens first")
        if self._read is not None:
            return self._read(text)
        tokenizer = self.vocabulary.tokenizer
        tokens = None if tokenizer is None else encode_exactly(tokenizer, self.vocabulary, text)
        if tokens is not None:
            self._check(text, tokens)
        return text

    def _check(self, text: str, tokens: Sequence[int]) -> None:
        matcher = self.compiled.start()
        try:
            for token in tokens:
                matcher.advance(token)
        except TokenRefused:
            raise ParseError(f"the answer is not a text of {self.constraint.name!r}", text) from None
        if not matcher.can_end():
            raise ParseError(f"the answer is not complete for {self.constraint.name!r}", text)


def _check_options(what: Any, backend: str, options: Iterable[str], own: frozenset[str]) -> None:
    """Raise for the name of an option that neither the constraint nor the backend has."""
    known = {option.name for option in backend_class(backend).options}
    for name in options:
        if name in known:
            continue
        if isinstance(what, Constraint) and name in type(what).__dataclass_fields__:
            raise ArgumentError(f"{name}: options of a {type(what).__name__} are given when it is made")
        raise UnknownNameError(f"option of this constraint or of the backend {backend}", name, known | own)


def _read_vocabulary(tokenizer: Any, model: Any, ends: Iterable[int | str], size: int | None) -> Vocabulary:
    if model is None:
        if tokenizer is None:
            raise ArgumentError("tokenizer is None; pass the model's tokenizer, or the model")
        return as_vocabulary(tokenizer, ends, size)
    if not is_network(model):
        raise ArgumentError(
            f"model is a model of transformers, not a {type(model).__name__}; a model of tokdfa's is passed as "
            "tokenizer: its vocabulary says all"
        )
    width = logit_width(model) if size is None else size
    if tokenizer is not None:
        try:
            return as_vocabulary(tokenizer, ends, width)
        except VocabularyError as error:
            remedy = "if it is the model's tokenizer: model.resize_token_embeddings(len(tokenizer))"
            raise VocabularyError(f"{error}; {remedy}") from None
    name = getattr(model, "name_or_path", "")
    if not name:
        raise ArgumentError("the model does not say where its tokenizer is; write constrain(what, tokenizer, model)")
    try:
        return as_vocabulary(name, ends, width)
    except TokenizerError as error:
        raise ModelError(f"{error}; or write constrain(what, tokenizer, model)") from None
