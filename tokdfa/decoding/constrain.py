"""The front door: a constraint and a tokenizer, in the forms that people have them in, to what keeps a model inside.

    constrained = tokdfa.constrain(Animal, tokenizer, model)
    output = model.generate(**inputs, logits_processor=[constrained.logits_processor()], max_new_tokens=100)
    animal = constrained.parse(output[0, prompt_length:])

`tokdfa.decoding.given_constraint` says what is a constraint, `tokdfa.vocabulary.tokenizers` what is a tokenizer.

*End tokens.* generate() stops at the ``eos_token_id`` of the model's generation config. Given the model, its ends are
the only ones that masks allow. Without it they are the tokenizer's own eos token, which nearly every model stops at;
`end_tokens` names others. *Logit width.* Models often have more logits than their tokenizer has tokens. Given the
model, masks are as wide as its logits; without it, logits past the vocabulary are refused.
"""

from __future__ import annotations

import pickle
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from tokdfa.backends.leading_text import allow_leading
from tokdfa.backends.registry import backend_class, compile, default_backend
from tokdfa.backends.spelled_ends import spell
from tokdfa.constraint import Constraint, JsonSchema, Regex, option_names
from tokdfa.core import notices
from tokdfa.core.arguments import as_text, as_tokens
from tokdfa.decoding.given_constraint import options_of, read_constraint
from tokdfa.decoding.logits_processor import ConstraintLogitsProcessor
from tokdfa.errors import (
    DECODED_BADLY,
    ArgumentError,
    ModelError,
    ParseError,
    TokdfaError,
    TokenizerError,
    UnknownNameError,
    VocabularyError,
    a_type,
)
from tokdfa.vocabulary.given_tokenizer import is_network, logit_width, network_ends
from tokdfa.vocabulary.tokenizers import as_vocabulary, encode_exactly, end_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.answer_readers import Reader
    from tokdfa.vocabulary.vocabulary import Vocabulary


def constrain(
    what: Any,
    tokenizer: Any = None,
    model: Any = None,
    *,
    backend: str | None = None,
    end_tokens: Iterable[int | str] = (),
    size: int | None = None,
    leading: str = "",
    **options: Any,
) -> Constrained:
    """`what`, compiled for the tokens of `tokenizer`: a type, a function, a schema, a pattern, choices, a constraint.

    `tokenizer`: anything that `load_tokenizer` takes (a tokenizer of another library, a path, folder or name, a model
    that knows where it came from), or a vocabulary. `model`: a model of transformers, whose logit width and end tokens
    then hold. `end_tokens`: ids or names of tokens that end a text, `size`: the logit width, where neither says it.
    `leading`: a text that may stand before the answer and is none of it, such as a blank where the model's tokens want
    one. `backend`: a name that `tokdfa backends` lists, by default `default_backend` says which. `options`: of the
    constraint that is made of `what` (such as ``order="any"`` of a schema), and of the backend.

    Raises ArgumentError for what cannot be understood, and what reading the tokenizer and compiling raise.
    """
    if model is None and is_network(tokenizer):
        tokenizer, model = None, tokenizer
    own = options_of(what).intersection(options)
    with notices.collecting() as omitted:
        given = read_constraint(what, {name: options.pop(name) for name in own})
    ends = end_tokens or network_ends(model)
    vocabulary = _read_vocabulary(tokenizer, model, ends, size)
    if backend is None:
        backend = default_backend(given.constraint)
        if backend == "token_index":  # nothing is built that no text asks for, however large the pattern
            options = {"lazy": True, **options}
    _check_options(what, backend, options, own=options_of(what))
    with notices.collecting() as found:
        compiled = compile(given.constraint, vocabulary, backend, **options)
    if as_text(leading, "leading"):
        compiled = allow_leading(compiled, leading)
    if omitted or found:
        compiled.warnings = (*omitted, *found)
        notices.warn_of(compiled.warnings)
    return Constrained(compiled, given.read, end_ids(vocabulary, ends), leading)


class Constrained:
    """A constraint compiled for a tokenizer, ready for generation. Immutable, shareable; made by `constrain`.

    `compiled`: the compiled constraint, from which matchers start; `end_tokens`: where generation stops, some or all of
    the vocabulary's.
    """

    def __init__(
        self,
        compiled: CompiledConstraint,
        read: Reader | None = None,
        end_tokens: tuple[int, ...] = (),
        leading: str = "",
    ) -> None:
        self.compiled, self._read, self._leading = compiled, read, leading
        self.end_tokens = end_tokens or compiled.vocab.end_tokens

    def __reduce__(self) -> tuple[type[Constrained], tuple[Any, ...]]:
        try:
            pickle.dumps(self._read)
        except Exception as error:  # whatever the class of a user's raises
            raise PicklingError(
                f"what reads the answers of {self!r} cannot be pickled ({error}); pickle constrained.compiled, and "
                "call parse of what constrain(...) gives in the other process, or define the class in a module"
            ) from None
        return Constrained, (self.compiled, self._read, self.end_tokens, self._leading)

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
        answered: int | str | Sequence[int | str] = 0,
        contexts: Sequence[Sequence[int]] | None = None,
        max_tokens: int | None = None,
    ) -> ConstraintLogitsProcessor:
        """A LogitsProcessor for generate(). See `ConstraintLogitsProcessor`, which takes a list, too."""
        return ConstraintLogitsProcessor(
            self, pad_token_id=pad_token_id, answered=answered, contexts=contexts, max_tokens=max_tokens
        )

    def parse(self, answer: Any, context: Sequence[int] = ()) -> Any:
        """The value of an answer: an object of the type, the JSON value, the calls of tools, or the text itself, as
        bytes if it is not UTF-8.

        `answer`: the generated tokens, in any form (what follows an end token is left out), or their text. Tokens are
        better: a decoder may drop a first blank, or the markers of a call. `context`: the tokens before them; it
        matters to proper sequences.

        A text that is one of a pattern, choices or a grammar but for a blank before it is given with that blank, which
        decoders of SentencePiece drop.

        Raises ParseError for what is none of the constraint, as an answer that was cut off: tokens that the masks would
        not allow; of a text, JSON that does not end, and for other constraints what the masks would not allow (checked
        where the tokenizer encodes the text as it is). Lets pydantic's ValidationError through: a class may ask more of
        a value than its schema says.
        """
        if not isinstance(answer, str | bytes):
            return self._value(self._spelled(answer, context))
        spelled = answer.encode(errors="surrogatepass") if isinstance(answer, str) else answer
        if self._read is not None:
            return self._value(spelled)
        tokens = self._tokens_of(spelled)
        try:
            if tokens is not None:
                self._check(spelled, tokens, context)
        except ParseError:
            blank = self._tokens_of(b" " + spelled)
            if blank is None or not _takes(self.compiled, blank, context):
                raise
            spelled = b" " + spelled
        return self._value(spelled)

    def _value(self, spelled: bytes) -> Any:
        plain = spelled.removeprefix(self._leading.encode())
        if self._read is not None:
            return self._read(plain.decode(errors="replace"))
        try:
            return plain.decode()
        except UnicodeDecodeError:
            return plain

    def _tokens_of(self, spelled: bytes) -> list[int] | None:
        try:
            text = spelled.decode()
        except UnicodeDecodeError:  # no tokenizer takes it
            tokens = spell(self.vocabulary, spelled)
            if tokens is None:
                said = f"the answer is not a text of {self.constraint.name!r}: no tokens spell it"
                raise ParseError(said, spelled.decode(errors="replace"), DECODED_BADLY) from None
            return tokens
        tokenizer = self.vocabulary.tokenizer
        return None if tokenizer is None else encode_exactly(tokenizer, self.vocabulary, text)

    def _spelled(self, answer: Any, context: Sequence[int]) -> bytes:
        """The text of tokens that the masks allow, special tokens by the names that they are printed as."""
        vocabulary = self.vocabulary
        try:
            tokens = list(as_tokens(getattr(answer, "tolist", lambda: answer)(), vocabulary.size, "answer"))
        except (ArgumentError, VocabularyError) as error:
            raise ArgumentError(
                f"answer is the generated tokens of one sequence, or their text ({error}); of a batch, parse each row "
                "from where the prompt ends"
            ) from None
        ends = [place for place, token in enumerate(tokens) if token in vocabulary.end_token_set]
        tokens = tokens[: ends[0]] if ends else tokens
        spelled = _spell(vocabulary, tokens)
        self._check(spelled, tokens, context)
        return spelled

    def _check(self, spelled: bytes, tokens: Sequence[int], context: Sequence[int]) -> None:
        matcher = self.compiled.start(context)
        for place, token in enumerate(tokens):
            if not matcher.allows(token):
                raise self._refusal(spelled, tokens, place, context, matcher.can_end())
            matcher.advance(token)
        if not matcher.can_end():
            raise ParseError(
                f"the answer is not complete for {self.constraint.name!r}", spelled.decode(errors="replace")
            )

    def _refusal(
        self, spelled: bytes, tokens: Sequence[int], place: int, context: Sequence[int], is_whole: bool
    ) -> ParseError:
        """What to raise for an answer whose token at `place` is refused; `is_whole`: what comes before is an answer."""
        before = _spell(self.vocabulary, tokens[:place]).decode(errors="replace")[-40:]
        token = _spell(self.vocabulary, tokens[place : place + 1]).decode(errors="replace")
        where = f"after {before!r}" if place else "at its beginning"
        message = f"the answer is not a text of {self.constraint.name!r}: {where}, {token!r} is not allowed"
        if self._differs_in_order(spelled, tokens, context):
            message += (
                "; members come in the order of the schema's properties (or first the required, in the order of "
                "required), and order='any' takes every order"
            )
        return ParseError(message, spelled.decode(errors="replace"), DECODED_BADLY if is_whole or not place else "")

    def _differs_in_order(self, spelled: bytes, tokens: Sequence[int], context: Sequence[int]) -> bool:
        """Whether tokens are an answer but for the order of members."""
        constraint = self.constraint
        if not isinstance(constraint, JsonSchema) or constraint.order == "any" or b"{" not in spelled:
            return False
        try:
            anyhow = compile(constraint.changed(order="any"), self.vocabulary)
            return _takes(allow_leading(anyhow, self._leading) if self._leading else anyhow, tokens, context)
        except TokdfaError:
            return False


def _spell(vocabulary: Vocabulary, tokens: Iterable[int]) -> bytes:
    """What tokens spell, special tokens by the names that they are printed as."""
    return b"".join(
        vocabulary.token_bytes(token) or vocabulary.special_tokens.get(token, "").encode() for token in tokens
    )


def _takes(compiled: CompiledConstraint, tokens: Sequence[int], context: Sequence[int]) -> bool:
    """Whether tokens are a whole answer."""
    matcher = compiled.start(context)
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.can_end()


def _check_options(what: Any, backend: str, options: Iterable[str], own: frozenset[str]) -> None:
    """Raise for the name of an option that neither the constraint nor the backend has."""
    known = {option.name for option in backend_class(backend).options}
    for name in options:
        if name in known:
            continue
        if isinstance(what, Constraint) and name in option_names(type(what)):
            raise ArgumentError(f"{name}: options of {a_type(what)} are given when it is made")
        owner = next((kind for kind in (JsonSchema, Regex) if name in option_names(kind)), None)
        remedy = f"it is an option of {owner.__name__}, which this constraint is not" if owner else ""
        raise UnknownNameError(f"option of this constraint or of the backend {backend}", name, known | own, remedy)


def _read_vocabulary(tokenizer: Any, model: Any, ends: Iterable[int | str], size: int | None) -> Vocabulary:
    if model is None:
        if tokenizer is None:
            raise ArgumentError("tokenizer is None; pass the model's tokenizer, or the model")
        return as_vocabulary(tokenizer, ends, size)
    if not is_network(model):
        raise ArgumentError(
            f"model is a model of transformers, not {a_type(model)}; a model of tokdfa's is passed as "
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
