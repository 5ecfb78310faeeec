"""The plain generation loop: masks, forced steps without the model, one sampler. Also for many sequences at once.

Local masking: each token is drawn from the model's row restricted to the mask and renormalised (reshaped by the
sampler's options). What that does to the distribution is in `tokdfa.decoding`; the sum of the log allowed masses,
`Generation.log_allowed`, is the log of the importance weight that would undo it (at temperature 1, without top-p).

A *forced* step has one allowed token, or end tokens only (which of several it is changes nothing; the lowest is taken).
It takes no random number and, with `skip_forced`, no model row: the tokens of a run go into the model together with the
next question. So the text is the same with and without skipping, for the same seed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.core.arguments import as_sequence
from tokdfa.decoding.answered import as_answered
from tokdfa.decoding.draws import Costs, Target, check_count, check_model
from tokdfa.decoding.sampling import Sampler, log_total
from tokdfa.errors import ArgumentError, EmptyMask, a_type, counted

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.constrain import Constrained
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel

    #: A prompt: tokens, a text, or the messages of a conversation.
    Context = str | Sequence[int] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Generation:
    """One generated sequence.

    `tokens`: without the end token; `spelled`: their bytes; `end_token`: the one that was taken, None if `max_tokens`
    came first. `model_calls`: steps at which the model was asked for this sequence; `forced`: forced steps, asked or
    not. `step_log_probabilities` and `step_log_allowed`: float64, shape (steps,), the end token's step last: log
    p(token) and the log of the allowed mass, both in the model's own row, and NaN at a forced step that was skipped. An
    end token's probability is that of all end tokens together. Seconds: `model_seconds` (an equal share of each call),
    `mask_seconds` (masks and advancing), `sampling_seconds`.
    """

    tokens: tuple[int, ...]
    spelled: bytes
    end_token: int | None
    model_calls: int
    forced: int
    step_log_probabilities: Floats
    step_log_allowed: Floats
    model_seconds: float
    mask_seconds: float
    sampling_seconds: float

    @property
    def text(self) -> str:
        """What was written; a character that was cut off is U+FFFD."""
        return self.spelled.decode(errors="replace")

    @property
    def finished(self) -> bool:
        """Whether an end token was taken; otherwise the text is a beginning."""
        return self.end_token is not None

    @property
    def log_probability(self) -> float | None:
        """log P of the tokens, and of the end if finished, under the model; None if a forced step was skipped."""
        return _sum_known(self.step_log_probabilities)

    @property
    def log_allowed(self) -> float | None:
        """The sum of the log allowed masses of all steps; None if a forced step was skipped."""
        return _sum_known(self.step_log_allowed)


def generate(
    model: LanguageModel,
    compiled: CompiledConstraint | Constrained,
    context: Context = (),
    sampler: Sampler | None = None,
    max_tokens: int = 256,
    skip_forced: bool = True,
    always_ends: bool = False,
    answered: int | str = 0,
) -> Generation:
    """One sequence through local masks, after `context`: a prompt as tokens, text or messages. See `generate_batch`."""
    return generate_batch(model, compiled, [context], sampler, max_tokens, skip_forced, always_ends, answered)[0]


def generate_batch(
    model: LanguageModel,
    compiled: CompiledConstraint | Constrained,
    contexts: Sequence[Context],
    sampler: Sampler | None = None,
    max_tokens: int = 256,
    skip_forced: bool = True,
    always_ends: bool = False,
    answered: int | str = 0,
) -> list[Generation]:
    """One sequence for each context (which may be equal), the model being asked for all of them together.

    `compiled`: what `tokdfa.compile` or `tokdfa.constrain` returns. A context is tokens; a text, in which names of
    special tokens are these tokens (`Tokenizer.encode` with ``special=True``); or the messages of a conversation, for
    the tokenizer's chat template (`Tokenizer.chat`).
    Each sequence has a stream of random numbers spawned from the `sampler` (default: temperature 1, seed 0), so a
    second call with the same sampler draws others. At most `max_tokens` tokens are appended, the end token included;
    with `always_ends` masks leave out what cannot be closed within them, so that every text is whole. `answered`: how
    much of the answer each context ends with, as a number of tokens or as their text; it is no part of the result.
    With skip_forced=False the model is asked at forced steps too, so that `Generation.log_probability` and
    `log_allowed` are known. Raises EmptyMask at a dead end; ModelError if model and constraint have different
    vocabularies, if a prefix is too long for the model, or if it gives probability 0 to all that is allowed;
    OptionError for values out of range.
    """
    check_model(model)
    check_count("max_tokens", max_tokens)
    if sampler is not None and not isinstance(sampler, Sampler):
        raise ArgumentError(f"sampler is a tokdfa.decoding.sampling.Sampler, not {a_type(sampler)}")
    inner: Any = getattr(compiled, "compiled", compiled)
    prompts = [tokens_of(model, context) for context in as_sequence(contexts, "contexts", "contexts")]
    begun = as_answered(answered)
    if isinstance(begun, list):
        raise ArgumentError("answered is one number or text here, for all contexts")
    samplers = (sampler or Sampler()).spawn(len(prompts))
    sequences = [
        _Sequence(Target(model, inner, context, max_tokens, "counted", always_ends, begun), own)
        for context, own in zip(prompts, samplers, strict=True)
    ]
    costs = Costs()
    active = sequences
    while active:
        asking = [sequence for sequence in active if sequence.run_to_question(skip_forced)]
        before = costs.model_seconds
        for index, row in costs.rows(model, [sequence.prefix for sequence in asking]):
            asking[index].step(row)
        for sequence in asking:
            sequence.model_seconds += (costs.model_seconds - before) / len(asking)
        active = [sequence for sequence in asking if not sequence.is_done]
    return [sequence.result() for sequence in sequences]


def tokens_of(model: LanguageModel, context: Context) -> Sequence[int]:
    """A context as tokens, without the model's start tokens, which `Target` adds, where a text or template has them."""
    is_chat = isinstance(context, Sequence) and len(context) > 0 and isinstance(context[0], Mapping)
    if not (isinstance(context, str) or is_chat):
        return context  # type: ignore[return-value]
    tokenizer = getattr(getattr(model, "vocabulary", None), "tokenizer", None)
    if tokenizer is None:
        raise ArgumentError("context is a text, and the model has no tokenizer for it; give tokens")
    tokens: list[int] = tokenizer.chat(context) if is_chat else tokenizer.encode(context, special=True)
    begun = len(model.start_tokens)
    return tokens[begun:] if tuple(tokens[:begun]) == model.start_tokens else tokens


class _Sequence:
    """A sequence in progress: its matcher, its current mask, and what has been counted."""

    def __init__(self, target: Target, sampler: Sampler) -> None:
        self._target, self._sampler = target, sampler
        self._vocabulary = target.vocabulary
        self._ends = list(self._vocabulary.end_tokens)
        self._mask = masks.allocate_mask(self._vocabulary.size)
        self._forced_token: int | None = None
        self._tokens: list[int] = []
        self._log_probabilities: list[float] = []
        self._log_allowed: list[float] = []
        self._model_calls = self._forced = 0
        self.model_seconds = self._sampling_seconds = 0.0
        started = time.perf_counter_ns()
        self._matcher = target.start()
        self._mask_seconds = (time.perf_counter_ns() - started) * 1e-9

    @property
    def prefix(self) -> tuple[int, ...]:
        return self._target.prefix(self._tokens)

    @property
    def is_done(self) -> bool:
        return len(self._log_allowed) == self._target.max_tokens or self._matcher.is_finished()

    def run_to_question(self, skip_forced: bool) -> bool:
        """Take forced steps until the model is needed; False if the sequence is done without it."""
        while not self.is_done:
            self._fill_mask()
            if self._forced_token is None or not skip_forced:
                return True
            self._take(self._forced_token, np.nan, np.nan)
        return False

    def step(self, row: Floats) -> None:
        """Take the step that the model was asked for. `row`: float64, shape (V,)."""
        self._model_calls += 1
        started = time.perf_counter_ns()
        token = self._forced_token
        if token is None:
            token, log_probability, log_allowed = self._sampler.draw(row, self._mask)
        else:
            log_probability = log_allowed = float(row[token])
        if token in self._vocabulary.end_token_set:
            log_probability = log_total(row[self._ends])
            if self._forced_token is not None:
                log_allowed = log_probability
        self._sampling_seconds += (time.perf_counter_ns() - started) * 1e-9
        self._take(token, log_probability, log_allowed)

    def _fill_mask(self) -> None:
        started = time.perf_counter_ns()
        self._matcher.fill_mask(self._mask)
        allowed = masks.count(self._mask)
        self._forced_token = None
        if allowed <= len(self._ends):
            tokens = masks.mask_to_ids(self._mask).tolist()
            if allowed == 1 or (tokens and self._vocabulary.end_token_set.issuperset(tokens)):
                self._forced_token = tokens[0]
        self._mask_seconds += (time.perf_counter_ns() - started) * 1e-9
        if allowed == 0:
            spelled = self._vocabulary.spell(self._tokens)
            raise EmptyMask(
                f"the mask after {counted(len(self._tokens), 'token')}, spelling {spelled[-40:]!r}, is empty:"
                f" {self._target.compiled.backend_name} has run into a dead end"
            )

    def _take(self, token: int, log_probability: float, log_allowed: float) -> None:
        started = time.perf_counter_ns()
        self._matcher.advance(token)
        self._mask_seconds += (time.perf_counter_ns() - started) * 1e-9
        self._tokens.append(token)
        self._log_probabilities.append(log_probability)
        self._log_allowed.append(log_allowed)
        self._forced += self._forced_token is not None

    def result(self) -> Generation:
        finished = self._matcher.is_finished()
        tokens = tuple(self._tokens[:-1] if finished else self._tokens)
        return Generation(
            tokens=tokens,
            spelled=self._vocabulary.spell(tokens),
            end_token=self._tokens[-1] if finished else None,
            model_calls=self._model_calls,
            forced=self._forced,
            step_log_probabilities=np.array(self._log_probabilities),
            step_log_allowed=np.array(self._log_allowed),
            model_seconds=self.model_seconds,
            mask_seconds=self._mask_seconds,
            sampling_seconds=self._sampling_seconds,
        )


def _sum_known(values: Floats) -> float | None:
    total = float(values.sum())
    return None if np.isnan(total) else total
