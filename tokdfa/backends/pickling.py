"""Pickles of compiled constraints and matchers: what they were made of, so that any process makes them again.

A compiled constraint is its constraint, its vocabulary, the backend's class and options, and the backend's tables where
it can save them; else it is compiled again when it is loaded. A matcher is its compiled constraint, its context and its
tokens. In a process that has the vocabulary already, what is loaded shares it, and all that is kept for it
(`tokdfa.vocabulary.vocabulary`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokdfaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary


def reduce_compiled(compiled: CompiledConstraint) -> tuple[Callable[..., CompiledConstraint], tuple[Any, ...]]:
    """How `pickle` takes a compiled constraint apart."""
    if compiled.made_by is None:
        raise TokdfaError(f"{compiled!r} was not made by `Backend.compile`, so a pickle cannot make it again")
    backend, settings = compiled.made_by
    return _restore_compiled, (backend, compiled.constraint, compiled.vocab, dict(settings), compiled._save_tables())


def _restore_compiled(
    backend: type[Backend], constraint: Constraint, vocab: Vocabulary, settings: Mapping[str, Any], tables: Any
) -> CompiledConstraint:
    strategy = backend(vocab, **settings)
    if tables is None:
        return strategy.compile(constraint)
    return strategy._finish(strategy._load_tables(tables, constraint))


def reduce_matcher(matcher: Matcher) -> tuple[Callable[..., Matcher], tuple[Any, ...]]:
    """How `pickle` takes a matcher apart."""
    if matcher._origin is None:
        raise TokdfaError(f"{matcher!r} was not made by `CompiledConstraint.start`, so a pickle cannot make it again")
    compiled, context = matcher._origin
    return _restore_matcher, (compiled, context, matcher.tokens)


def _restore_matcher(compiled: CompiledConstraint, context: tuple[int, ...], tokens: tuple[int, ...]) -> Matcher:
    matcher = compiled.start(context)
    for token in tokens:
        matcher.advance(token)
    return matcher
