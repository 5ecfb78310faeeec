"""Samples of the masked distribution of a backend, each with its weight.

Many samples are drawn side by side. Those that are equal so far share a matcher, a mask and a row of the model; they
part where they draw different tokens. A sample depends on its number and the seed alone: its random numbers come from a
generator of its own block of samples, one number a step, and tokens are drawn by the inverse of the cumulative
distribution, so that equal numbers draw alike from masks that are nearly alike. Two backends with the same seed are
thus compared sample by sample (`tokdfa.skew.measured`).

A sample that is not complete after `max_tokens` tokens is *cut*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.decoding.sampling import log_total
from tokdfa.errors import LawBroken, ModelError
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.skew.eos import ambiguous_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.draws import Eos
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel

#: Samples whose random numbers come from one generator; fixed, so that a sample does not depend on the batch.
STREAM_BLOCK = 256


class Sample(NamedTuple):
    """A sequence without end tokens. `log_weight`: the log of the product of the allowed masses at its steps.

    `steps`: how many there were, an end token being one under eos="counted"; `forced`: those at which only one token,
    or only end tokens, might come; `is_complete`: False if it was cut.
    """

    tokens: tuple[int, ...]
    log_weight: float
    steps: int
    forced: int
    is_complete: bool


def draw_samples(
    compiled: CompiledConstraint,
    model: LanguageModel,
    context: Sequence[int],
    *,
    samples: int,
    seed: int,
    eos: Eos,
    max_tokens: int,
    batch: int,
) -> list[Sample]:
    """The samples, in their order.

    The arguments are those of `estimate_skew`. Raises OptionError for a text that may go on under eos="ignored",
    ModelError if no allowed token has a probability, and LawBroken for a mask without tokens.
    """
    drawn: list[Sample] = []
    for begin in range(0, samples, batch):
        uniforms = _uniforms(seed, begin, min(begin + batch, samples), max_tokens + 1)
        drawn += _draw(compiled, model, tuple(context), uniforms, eos)
    return drawn


class _Group(NamedTuple):
    """Samples that are equal so far: their rows in the batch, and what all of them have in common."""

    matcher: Matcher
    tokens: tuple[int, ...]
    log_weight: float
    forced: int
    members: npt.NDArray[np.int64]

    def finish(self, steps: int, is_complete: bool) -> Sample:
        return Sample(self.tokens, self.log_weight, steps, self.forced, is_complete)


def _uniforms(seed: int, begin: int, end: int, columns: int) -> Floats:
    """The random numbers of samples begin .. end - 1: float64, shape (end - begin, columns), in [0, 1)."""
    blocks = range(begin // STREAM_BLOCK, (end - 1) // STREAM_BLOCK + 1)
    drawn = [np.random.default_rng((seed, block)).random((columns, STREAM_BLOCK)).T for block in blocks]
    return np.concatenate(drawn)[begin - blocks[0] * STREAM_BLOCK :][: end - begin]


def _draw(
    compiled: CompiledConstraint, model: LanguageModel, context: tuple[int, ...], uniforms: Floats, eos: Eos
) -> list[Sample]:
    """One sample a row of `uniforms`, step by step."""
    limit = uniforms.shape[1] - 1
    ends = compiled.vocab.end_tokens
    found: dict[int, Sample] = {}
    mask = allocate_mask(compiled.vocab.size)
    groups = [_Group(compiled.start(context), (), 0.0, 0, np.arange(len(uniforms)))]
    for step in range(limit + 1):
        open_groups = []
        for group in groups:
            group.matcher.fill_mask(mask)
            allowed = mask_to_ids(mask)
            if not len(allowed):
                raise LawBroken(
                    "no dead ends",
                    f"{compiled.backend_name} leaves no token after {compiled.vocab.spell(group.tokens)!r}, which is"
                    " not complete",
                )
            may_end = np.isin(allowed, ends)
            if eos == "ignored" and may_end.any():
                if not may_end.all():
                    raise ambiguous_end(compiled.vocab.spell(group.tokens))
                found |= dict.fromkeys(group.members.tolist(), group.finish(step, True))
            elif eos == "ignored" and step == limit:
                found |= dict.fromkeys(group.members.tolist(), group.finish(step, False))
            else:
                open_groups.append((group, allowed, may_end))
        if not open_groups:
            break
        table = model.log_probabilities([(*context, *group.tokens) for group, _, _ in open_groups])
        groups = []
        for (group, allowed, may_end), row in zip(open_groups, table, strict=True):
            groups += _draw_next(group, allowed, may_end, row, uniforms[group.members, step], found, step == limit)
    return [found[member] for member in range(len(uniforms))]


def _draw_next(
    group: _Group,
    allowed: npt.NDArray[np.int32],
    may_end: npt.NDArray[np.bool_],
    row: Floats,
    uniforms: Floats,
    found: dict[int, Sample],
    is_last: bool,
) -> list[_Group]:
    """The groups after one more token each; samples that end, or are cut, go to `found`."""
    log_mass = log_total(row[allowed])
    if log_mass == -np.inf:
        raise ModelError(
            f"the model gives none of the {len(allowed)} allowed tokens any probability after the tokens"
            f" {list(group.tokens)}, so nothing can be drawn"
        )
    cumulative = np.cumsum(np.exp(row[allowed] - log_mass))
    last = int(np.flatnonzero(row[allowed] > -np.inf)[-1])
    chosen = np.minimum(np.searchsorted(cumulative, uniforms * cumulative[-1], side="right"), last)
    steps = len(group.tokens) + 1
    is_forced = int(np.count_nonzero(~may_end)) + bool(may_end.any()) == 1
    group = group._replace(log_weight=group.log_weight + log_mass, forced=group.forced + is_forced)
    ended = may_end[chosen]
    found |= dict.fromkeys(group.members[ended].tolist(), group.finish(steps, True))
    if is_last:
        found |= dict.fromkeys(group.members[~ended].tolist(), group.finish(steps, False))
        return []
    following = []
    for place in np.unique(chosen[~ended]).tolist():
        matcher, token = group.matcher.fork(), int(allowed[place])
        matcher.advance(token)
        members = group.members[chosen == place]
        following.append(group._replace(matcher=matcher, tokens=(*group.tokens, token), members=members))
    return following
