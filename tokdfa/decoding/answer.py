"""One call for one answer: `tokdfa.generate` of a model, a tokenizer, a prompt and what the answer is to be.

    animal = tokdfa.generate(model, tokenizer, "A spider as JSON:\\n", Animal)

Given a compiled constraint in place of the tokenizer it is `tokdfa.decoding.loop.generate`, which gives a `Generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.backends.base import CompiledConstraint
from tokdfa.core.arguments import as_integer, as_tokens
from tokdfa.decoding import loop
from tokdfa.decoding.answered import count_answered
from tokdfa.decoding.constrain import Constrained, constrain
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import ArgumentError, ModelError, ParseError, UnknownNameError, a_type
from tokdfa.models.base import LanguageModel
from tokdfa.models.transformers_model import TransformersModel

if TYPE_CHECKING:
    from collections.abc import Sequence


def generate(
    model: Any,
    compiled: Any,
    context: str | Sequence[int] = (),
    what: Any = None,
    max_tokens: int = 256,
    skip_forced: bool = True,
    always_ends: bool | None = None,
    *,
    sampler: Sampler | None = None,
    answered: int | str = 0,
    **options: Any,
) -> Any:
    """An answer of a model: a value of `what`, or with a compiled constraint the whole `Generation`.

    ``generate(model, tokenizer, prompt, Animal)`` gives an Animal. `model`: of transformers, or of `tokdfa.load_model`,
    whose tokenizer may be None here; `what` and `options` as `tokdfa.constrain` takes them; `context`: the prompt, as a
    text, which a tokenizer of transformers encodes with its special tokens, as messages, or as tokens. `sampler`: by
    default the most probable tokens are taken. `answered`: how much of the answer the prompt ends with, as a number of
    tokens or as their text; it is part of the value. The answer is whole within `max_tokens` tokens, unless
    `always_ends` is False, as it must be with another engine's backend.

    ``generate(model, compiled, context)`` gives a `Generation`: see `tokdfa.decoding.loop.generate`, whose sampler may
    stand in the place of `what`.

    Raises ParseError for an answer that was cut off, ArgumentError for arguments in another order, and what `constrain`
    and `generate_batch` raise.
    """
    if isinstance(what, Sampler):
        sampler, what = what, None
    if what is None and (isinstance(compiled, CompiledConstraint | Constrained) or not _is_tokenizer(compiled)):
        for name in options:
            raise UnknownNameError("option of generate with a compiled constraint", name, _OPTIONS, _instead(name))
        return loop.generate(model, compiled, context, sampler, max_tokens, skip_forced, bool(always_ends), answered)
    if what is None:
        raise ArgumentError(
            "what is missing: write generate(model, tokenizer, prompt, what) with a pydantic class or another "
            "constraint; a model of tokdfa.load_model takes generate(model, constrain(what, model), prompt), too"
        )
    if isinstance(compiled, CompiledConstraint | Constrained):
        raise ArgumentError("what is given twice: generate(model, tokenizer, prompt, what) takes the tokenizer here")
    try:
        asked, constrained = _prepared(model, compiled, what, options)
    except UnknownNameError as error:
        if error.name not in options:
            raise
        kind, remedy = error.kind.removeprefix("option "), _instead(error.name) or error.remedy
        raise UnknownNameError(f"option of generate, {kind}", error.name, [*_OPTIONS, *error.known], remedy) from None
    max_tokens = as_integer(max_tokens, "max_tokens", 1)
    tokens = _encoded(context, compiled, asked)
    sampler, always_ends = sampler or Sampler(greedy=True), always_ends is not False
    written = loop.generate(asked, constrained, tokens, sampler, max_tokens, skip_forced, always_ends, answered)
    begun = len(tokens) - count_answered(constrained.vocabulary, tokens, answered)
    if not written.finished:
        raise ParseError(f"the answer is not whole after max_tokens, {max_tokens}", written.text)
    return constrained.parse([*tokens[begun:], *written.tokens], tokens[:begun])


#: What `generate` takes by name, for messages.
_OPTIONS = ("max_tokens", "skip_forced", "always_ends", "sampler", "answered")
#: What stands for an option of transformers' generate().
_INSTEAD = {
    **dict.fromkeys(("max_new_tokens", "max_length"), "max_tokens"),
    **dict.fromkeys(("temperature", "top_p", "greedy", "seed"), "sampler=tokdfa.decoding.sampling.Sampler(...)"),
    "do_sample": "sampler=tokdfa.decoding.sampling.Sampler()",
}


def _instead(name: str) -> str:
    """For the end of a message: what to write for an option of transformers' generate(), "" for any other."""
    return f"write {_INSTEAD[name]}" if name in _INSTEAD else ""


def _is_tokenizer(given: Any) -> bool:
    """Whether something may be a tokenizer, so that what to write is missing."""
    return given is None or isinstance(given, str) or hasattr(given, "encode")


def _prepared(model: Any, tokenizer: Any, what: Any, options: dict[str, Any]) -> tuple[LanguageModel, Constrained]:
    """A model that can be asked, and the constraint for its tokens."""
    if isinstance(model, LanguageModel):
        return model, constrain(what, model.vocabulary if tokenizer is None else tokenizer, **options)
    if not hasattr(model, "get_output_embeddings"):
        raise ModelError(
            f"model is {a_type(model)}; pass a model of transformers, or what tokdfa.load_model loads, as in "
            "generate(model, tokenizer, prompt, what)"
        )
    constrained = constrain(what, tokenizer, model, **options)
    name = getattr(model, "name_or_path", "") or type(model).__name__
    return TransformersModel(name, model, constrained.vocabulary), constrained


def _encoded(context: Any, tokenizer: Any, asked: LanguageModel) -> Sequence[int]:
    """A prompt as tokens: what a tokenizer of transformers makes of a text, else as `generate_batch` reads contexts."""
    if isinstance(context, str) and hasattr(tokenizer, "convert_ids_to_tokens"):
        found: list[int] = tokenizer(context)["input_ids"]
        return found
    return as_tokens(loop.tokens_of(asked, context), asked.vocabulary.size, "context")
