"""The skew of a backend on a constraint with too many texts to list, estimated from samples, with errors.

Words. Q is the masked distribution of a backend over sequences: at each step the model's row is restricted to the mask,
renormalised, and one token is drawn (`tokdfa.skew.samples`). The *target* P is the unconstrained model restricted to
the same complete sequences: P(s) = p(s) / Z, where Z, the *mass* of the constraint, adds p up over them. The *weight*
of a sample is the product of the allowed masses at its steps, w(s) = p(s) / Q(s), at most 1. The mass and the
divergences of P from Q follow from the weights (`tokdfa.skew.weights`).

P is the backend's own target: it equals the ideal distribution over texts where the backend admits all spellings, and
the model's distribution over proper sequences where it admits these (`tokdfa.skew`).

No method sees what never was sampled: if few samples carry nearly all weight (`Estimate.effective_samples`), intervals
are too narrow, and `tokdfa.skew.measured.differs` says so. Samples that were too long are cut; `Estimate.cut_share`
says how much of Q that was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.proper import proper_texts
from tokdfa.constraint import Constraint
from tokdfa.decoding.draws import Eos, check_eos, check_vocabulary
from tokdfa.errors import LimitExceeded, OptionError, TokenizerError, UnsupportedConstraint
from tokdfa.skew.measured import Measured, measured_ratio
from tokdfa.skew.samples import Sample, draw_samples
from tokdfa.skew.weights import JENSEN_SHANNON, KL_BACKWARD, KL_FORWARD, TOTAL_VARIATION, EventEstimate, Weights

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel
    from tokdfa.skew.weights import Bools
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: A set of texts: a constraint (``Choice(["yes"])`` names one text), or a function of a text.
Event = Constraint | Callable[[bytes], bool]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What `estimate_skew` returns. Divergences are in nats; `kl_forward` is KL(P || Q), `kl_backward` KL(Q || P).

    `log_mass`: log Z; `effective_samples`: (sum w)^2 / sum w^2, between 1 and the number of samples; `cut_share`: the
    share of cut samples; `mean_tokens`: without end tokens, a cut sample counting as it stands; `forced_share`: of all
    steps, those at which only one token, or only end tokens, may come; `improper`: sequences that are not proper after
    the context, None if that cannot be told; `events`: by name. `sequences`: the text tokens of each sample;
    `log_weights`: float64, shape (n,); `complete`: bool, shape (n,).
    """

    log_mass: Measured
    total_variation: Measured
    kl_forward: Measured
    kl_backward: Measured
    jensen_shannon: Measured
    effective_samples: float
    cut_share: float
    mean_tokens: Measured
    forced_share: Measured
    improper: EventEstimate | None
    events: Mapping[str, EventEstimate]
    sequences: tuple[tuple[int, ...], ...] = field(repr=False)
    log_weights: Floats = field(repr=False)
    complete: Bools = field(repr=False)

    @property
    def mass(self) -> Measured:
        """Z, the mass of the constraint: unbiased; its interval is that of `log_mass`."""
        value = float(np.exp(self.log_mass.value))
        return replace(
            self.log_mass,
            value=value,
            standard_error=value * self.log_mass.standard_error,
            low=float(np.exp(self.log_mass.low)),
            high=float(np.exp(self.log_mass.high)),
            influence=value * self.log_mass.influence,
        )


def estimate_skew(
    compiled: CompiledConstraint,
    model: LanguageModel,
    context: Sequence[int] = (),
    *,
    samples: int = 1_000,
    seed: int = 0,
    eos: Eos = "counted",
    max_tokens: int = 256,
    batch: int = 64,
    events: Mapping[str, Event] | None = None,
) -> Estimate:
    """Estimate the distances of `compiled`'s masked distribution from its target, from `samples` sequences.

    `context`: tokens before the text, as the model wants them; `batch`: samples drawn together, one call of the model a
    step for them all, one row for those that are equal so far; results do not depend on it. A sample is the same for
    the same `seed`, whatever `samples`. `max_tokens` is without the end token.

    Raises OptionError (a number out of range, an unknown `eos`, a text that may go on under eos="ignored"), ModelError
    (another vocabulary; no probability for any allowed token), LawBroken (a mask without tokens) and LimitExceeded if
    every sample is cut.
    """
    check_eos(eos)
    for name, given, least in (("samples", samples, 2), ("max_tokens", max_tokens, 1), ("batch", batch, 1)):
        if given < least:
            raise OptionError(f"{name} is at least {least}, not {given}")
    if seed < 0:
        raise OptionError(f"seed is at least 0, not {seed}")
    check_vocabulary(model, compiled.vocab, f"the compiled {compiled.backend_name}")
    drawn = draw_samples(
        compiled, model, context, samples=samples, seed=seed, eos=eos, max_tokens=max_tokens, batch=batch
    )
    complete = np.array([sample.is_complete for sample in drawn])
    if not complete.any():
        raise LimitExceeded(
            f"all {samples} samples were cut at {max_tokens} tokens, so nothing is known of complete texts; raise"
            " max_tokens, or use a constraint that ends",
            limit="max_tokens",
            value=max_tokens,
        )
    weights = Weights(np.array([sample.log_weight for sample in drawn]), complete, seed)
    tokens = np.array([len(sample.tokens) for sample in drawn], dtype=np.float64)
    steps, forced = (np.array([getattr(sample, name) for sample in drawn], dtype=float) for name in ("steps", "forced"))
    shown = _judge_events(events or {}, drawn, compiled.vocab)
    improper = _judge_proper(compiled.vocab, context, drawn)
    return Estimate(
        log_mass=weights.log_mass(),
        total_variation=weights.divergence(TOTAL_VARIATION),
        kl_forward=weights.divergence(KL_FORWARD),
        kl_backward=weights.divergence(KL_BACKWARD),
        jensen_shannon=weights.divergence(JENSEN_SHANNON),
        effective_samples=weights.effective,
        cut_share=float(1 - complete.mean()),
        mean_tokens=measured_ratio(tokens, np.ones(samples), seed, np.inf),
        forced_share=measured_ratio(forced, steps, seed, 1.0),
        improper=None if improper is None else weights.event(improper),
        events={name: weights.event(holds) for name, holds in shown.items()},
        sequences=tuple(sample.tokens for sample in drawn),
        log_weights=weights.log_weights,
        complete=complete,
    )


def _judge_events(events: Mapping[str, Event], drawn: Sequence[Sample], vocabulary: Vocabulary) -> dict[str, Bools]:
    """Name of an event -> which samples are complete and show it. bool, shape (n,)."""
    texts = {sample.tokens: vocabulary.spell(sample.tokens) for sample in drawn if sample.is_complete}
    shown = {}
    for name, event in events.items():
        test = _test_of(event)
        judged = {text: bool(test(text)) for text in set(texts.values())}
        shown[name] = np.array([sample.is_complete and judged[texts[sample.tokens]] for sample in drawn])
    return shown


def _test_of(event: Event) -> Callable[[bytes], Any]:
    if isinstance(event, Constraint):
        from tokdfa.regex.compile import compile_dfa

        return compile_dfa(event).accepts
    if not callable(event):
        raise OptionError(f"an event is a constraint or a function of a text, not {type(event).__name__}")
    return event


def _judge_proper(vocabulary: Vocabulary, context: Sequence[int], drawn: Sequence[Sample]) -> Bools | None:
    """Which samples are complete and improper after `context`; None if nobody knows."""
    if vocabulary.tokenizer is None:
        return None
    try:
        start = proper_texts(vocabulary).start(context)
    except (TokenizerError, UnsupportedConstraint):
        return None
    judged: dict[tuple[int, ...], bool] = {}
    for tokens in {sample.tokens for sample in drawn if sample.is_complete}:
        matcher = start.fork()
        place = 0
        while place < len(tokens) and matcher.allows(tokens[place]):
            matcher.advance(tokens[place])
            place += 1
        judged[tokens] = place < len(tokens) or not matcher.can_end()
    return np.array([sample.is_complete and judged[sample.tokens] for sample in drawn])
