"""What the strategies beyond local masks share: their target, the counting of costs, and the sequences they return.

From draws to a distribution over texts. For any strategy, the probability of a text is estimated by its share of the
weights, ``sum of w_i over the sequences that spell it / sum of all w_i`` (`Draws.text_probabilities`). With equal
weights that is counting. Its distance from the ideal distribution is the strategy's *residual* skew, and the counters
beside it are the cost: model rows and calls, masks, single-token checks, seconds, and those of the model among them.

The share is consistent, not unbiased: its bias falls with 1 / n and its standard error with 1 / sqrt(n), where n is
the `effective_sample_size`. Even draws from the target itself are some sqrt(k / n) in total variation away from it, for
k equally probable texts, so a residual skew below that says nothing about a strategy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.core.arguments import as_tokens
from tokdfa.decoding.answered import count_answered, start_answered
from tokdfa.decoding.sampling import allowed_tokens, log_total
from tokdfa.errors import ArgumentError, ModelError, NothingDrawn, OptionError, a_type, counted
from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.backends.base import Matcher
    from tokdfa.decoding.sampling import Floats
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: "counted": the end token is drawn like any other; "ignored": a text is complete when nothing else may come.
Eos = Literal["ignored", "counted"]

#: What the rows of one call to the model may take.
MAX_CALL_BYTES = 64 << 20
#: ... and how many they may be.
MAX_CALL_ROWS = 64


@dataclass
class Costs:
    """What a strategy has spent. `seconds`: wall time of it all; `model_seconds`: in calls to the model.

    `model_rows`: prefixes that the model was asked about; `model_calls`: batches of them; `single_token_checks`:
    questions to a matcher about one token (`allows`); `masks`: masks filled.
    """

    model_rows: int = 0
    model_calls: int = 0
    single_token_checks: int = 0
    masks: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0

    def rows(self, model: LanguageModel, prefixes: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Floats]]:
        """The index of each prefix with the model's row, float64, shape (V,), not to be changed.

        Equal prefixes share one row; each chunk of at most `MAX_CALL_ROWS` rows is one call and lives until the next.
        So the indices come grouped by prefix.
        """
        owners: dict[tuple[int, ...], list[int]] = {}
        for index, prefix in enumerate(prefixes):
            owners.setdefault(prefix, []).append(index)
        distinct = list(owners)
        size = max(1, min(MAX_CALL_ROWS, MAX_CALL_BYTES // (8 * model.vocabulary.size)))
        for first in range(0, len(distinct), size):
            chunk = distinct[first : first + size]
            started = time.perf_counter_ns()
            rows = model.log_probabilities(chunk)
            self.model_seconds += (time.perf_counter_ns() - started) * 1e-9
            self.model_calls += 1
            self.model_rows += len(chunk)
            for prefix, row in zip(chunk, rows, strict=True):
                for index in owners[prefix]:
                    yield index, row

    def allows(self, matcher: Matcher, token: int) -> bool:
        """`matcher.allows(token)`, counted."""
        self.single_token_checks += 1
        return matcher.allows(token)

    def allowed(self, matcher: Matcher) -> npt.NDArray[np.int64]:
        """The allowed tokens, ascending, int64, by a mask, which is counted. Raises EmptyMask."""
        self.masks += 1
        mask = masks.allocate_mask(matcher.vocab.size)
        matcher.fill_mask(mask)
        return allowed_tokens(mask, matcher.vocab.size)


@dataclass(eq=False)
class Draws(Costs):
    """Sequences with weights, in the order they were drawn, and what they cost.

    `vocabulary`: of the tokens; `sequences`: without end tokens; `log_weights`: float64, shape (len(sequences),),
    natural logs, -inf for a sequence that counts nothing; `drafts`: how many sequences were begun; `log_mass`: what the
    strategy knows of log Z, the log of the constraint's mass (see `tokdfa.decoding`), None for nothing. Each strategy
    says what its weights and its mass are worth.
    """

    vocabulary: Vocabulary = field(kw_only=True)
    sequences: tuple[tuple[int, ...], ...] = field(kw_only=True)
    log_weights: Floats = field(kw_only=True)
    drafts: int = field(kw_only=True)
    log_mass: float | None = field(kw_only=True)

    @property
    def texts(self) -> tuple[bytes, ...]:
        """What each sequence spells."""
        return tuple(map(self.vocabulary.spell, self.sequences))

    @property
    def effective_sample_size(self) -> float:
        """(sum of w)^2 / sum of w^2: how many equally weighted sequences are worth as much; 0 for none.

        It sees the weights only: copies of one sequence, as resampling makes them, count each.
        """
        log_sum = log_total(self.log_weights)
        return 0.0 if log_sum == -np.inf else float(np.exp(2 * log_sum - log_total(2 * self.log_weights)))

    def text_probabilities(self) -> dict[bytes, float]:
        """The estimated distribution over texts: text -> its share of the weights; the shares add up to 1.

        Raises NothingDrawn if there is no sequence with a weight above 0.
        """
        log_sum = log_total(self.log_weights)
        if log_sum == -np.inf:
            raise NothingDrawn(
                f"none of {counted(self.drafts, 'draft')} became a sequence of the constraint; allow more drafts or "
                "more tokens"
            )
        shares: dict[bytes, float] = {}
        for text, weight in zip(self.texts, np.exp(self.log_weights - log_sum).tolist(), strict=True):
            if weight > 0:
                shares[text] = shares.get(text, 0.0) + weight
        return shares


class Target:
    """What a strategy draws from: p under the condition of a constraint, after a context (see `tokdfa.decoding`).

    `always_ends`: masks leave out what cannot be closed in `max_tokens` tokens, the end token included.

    Raises ModelError if model and constraint have different vocabularies, OptionError for values out of range,
    ArgumentError for values of other types.
    """

    def __init__(
        self,
        model: LanguageModel,
        compiled: CompiledConstraint,
        context: Sequence[int],
        max_tokens: int,
        eos: Eos,
        always_ends: bool = False,
        answered: int | str = 0,
    ) -> None:
        check_model(model)
        if not isinstance(compiled, CompiledConstraint):
            raise ArgumentError(f"compiled is what tokdfa.compile or tokdfa.constrain returns, not {a_type(compiled)}")
        check_vocabulary(model, compiled.vocab, f"the constraint {compiled.constraint.name!r}")
        check_count("max_tokens", max_tokens)
        check_eos(eos)
        self.model, self.compiled, self.max_tokens, self.eos = model, compiled, max_tokens, eos
        self._limit = max_tokens if always_ends else None
        self.vocabulary = compiled.vocab
        self.context = as_tokens(context, compiled.vocab.size, "context")
        self._begun = len(self.context) - count_answered(self.vocabulary, self.context, answered)
        self._before = (*model.start_tokens, *self.context)

    def start(self) -> Matcher:
        """A matcher before the first token, after what of the answer the context holds."""
        return start_answered(
            self.compiled, self.context[: self._begun], self.context[self._begun :], self._limit, counts_end=True
        )  # fmt: skip

    def prefix(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """What the model has seen once `tokens` are generated."""
        return (*self._before, *tokens)

    def is_complete(self, matcher: Matcher, costs: Costs) -> bool:
        """Whether the sequence needs no further step.

        Raises OptionError if eos="ignored" and the text may both end and go on; fills a mask there, to see it.
        """
        if self.eos == "counted":
            return matcher.is_finished()
        if not matcher.can_end():
            return False
        onward = [token for token in costs.allowed(matcher).tolist() if token not in self.vocabulary.end_token_set]
        if onward:
            raise OptionError(
                f"a text may end and may also go on with token {onward[0]}, so eos='ignored' gives no distribution;"
                " use eos='counted'"
            )
        return True

    def text_tokens(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """A finished sequence without its end token."""
        return tuple(tokens[:-1] if self.eos == "counted" else tokens)

    def draws(
        self,
        costs: Costs,
        started: int,
        sequences: Sequence[tuple[int, ...]],
        drafts: int,
        log_mass: float | None,
        log_weights: Floats | None = None,
    ) -> Draws:
        """What was drawn since `started` (``perf_counter_ns``), with what it cost; of equal weights by default."""
        costs.seconds = (time.perf_counter_ns() - started) * 1e-9
        return Draws(
            **vars(costs),
            vocabulary=self.vocabulary,
            sequences=tuple(sequences),
            log_weights=np.zeros(len(sequences)) if log_weights is None else log_weights,
            drafts=drafts,
            log_mass=log_mass,
        )


def check_model(model: Any) -> None:
    """Raise ArgumentError unless `model` is a LanguageModel."""
    if not isinstance(model, LanguageModel):
        raise ArgumentError(
            f"model is a LanguageModel, as tokdfa.load_model('smollm2') returns, not {a_type(model)}; a "
            "model of transformers takes a tokenizer beside it, tokdfa.generate(model, tokenizer, prompt, what), or "
            "generates itself: model.generate(**inputs, logits_processor=[constrained.logits_processor()])"
        )


def check_vocabulary(model: LanguageModel, vocabulary: Vocabulary, owner: str) -> None:
    """Raise ModelError unless the rows of `model` are about the tokens of `vocabulary`, which belongs to `owner`."""
    different = model.vocabulary.difference(vocabulary)
    if different:
        raise ModelError(
            f"{model.name} and {owner} have different vocabularies ({different}): take model.vocabulary, or load both"
            " with the same tokenizer and the same logit width"
        )


def check_eos(eos: str) -> None:
    """Raise OptionError unless `eos` names a convention."""
    if eos not in get_args(Eos):
        raise OptionError(f"eos is {' or '.join(map(repr, get_args(Eos)))}, not {eos!r}")


def check_count(name: str, value: int) -> None:
    """Raise OptionError unless `value` is a whole number from 1 up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{name} is a whole number from 1 up, not {value!r}")
