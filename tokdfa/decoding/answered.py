"""A prompt that ends with the beginning of the answer: *prefill*, as chat templates call it.

The matcher begins before that beginning and takes its tokens first; what comes before them is the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.backends.max_tokens import too_few
from tokdfa.core.arguments import as_integer
from tokdfa.errors import ArgumentError, ParseError, TokenRefused, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.vocabulary import Vocabulary


def as_answered(answered: Any) -> int | str | list[int | str]:
    """How much is answered, as a number of tokens or as a text: of all prompts, or of each."""
    if isinstance(answered, str):
        return answered
    if isinstance(answered, list | tuple):
        return [one if isinstance(one, str) else as_integer(one, "answered", 0) for one in answered]
    return as_integer(answered, "answered", 0)


def count_answered(vocabulary: Vocabulary, prompt: Sequence[int], answered: int | str) -> int:
    """How many tokens at the end of a prompt are the beginning of the answer. ArgumentError if it ends otherwise."""
    if isinstance(answered, int):
        if answered > len(prompt):
            raise ArgumentError(f"answered: {counted(answered, 'token')}, and the prompt has {len(prompt)}")
        return answered
    text, spelled, count = answered.encode(), b"", 0
    while len(spelled) < len(text) and count < len(prompt):
        count += 1
        spelled = vocabulary.token_bytes(prompt[-count]) + spelled
    if spelled == text:
        return count
    if spelled.endswith(text):
        raise ArgumentError(
            f"answered: {answered!r} begins inside a token of the prompt, which has {spelled!r}; encode prompt and "
            "answer apart, and join their tokens"
        )
    raise ArgumentError(f"answered: the prompt does not end with {answered!r}, but with {spelled!r}")


def start_answered(
    compiled: CompiledConstraint,
    context: Sequence[int],
    answered: Sequence[int],
    max_tokens: int | None,
    counts_end: bool = False,
) -> Matcher:
    """A matcher that has taken the tokens `answered`. `max_tokens`: of those that follow, with `counts_end` the end
    token included.

    Raises ParseError if no text of the constraint begins with them, ArgumentError if none ends within `max_tokens`.
    """
    if max_tokens is None:
        return _advanced(compiled, compiled.start(context), answered)
    try:
        return _advanced(compiled, compiled.start(context, max_tokens - counts_end + len(answered)), answered)
    except (ArgumentError, ParseError):
        matcher = _advanced(compiled, compiled.start(context), answered)
        raise too_few(compiled, matcher, max_tokens, counts_end) from None


def _advanced(compiled: CompiledConstraint, matcher: Matcher, answered: Sequence[int]) -> Matcher:
    for token in answered:
        try:
            matcher.advance(token)
        except TokenRefused as error:
            text = compiled.vocab.spell(answered).decode(errors="replace")
            raise ParseError(
                f"answered: the prompt ends with {counted(len(answered), 'token')} that {compiled.constraint.name!r} "
                f"does not begin with ({error})", text,
            ) from None  # fmt: skip
    return matcher
