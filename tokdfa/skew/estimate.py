"""The skew of a backend on a constraint with too many texts to list, estimated from samples, with errors.

Words. Q is the masked distribution of a backend over sequences: at each step the model's row is restricted to the mask,
renormalised, and one token is drawn. The *target* P is the unconstrained model restricted to the same complete
sequences: P(s) = p(s) / Z, where Z, the *mass* of the constraint, adds p up over them. The *weight* of a sample is the
product of the allowed masses at its steps, w(s) = p(s) / Q(s), at most 1. Then

    Z = E_Q[w],   P(s) / Q(s) = r(s) = w(s) / Z,   D = E_Q[f(r)]   with E_Q[r] = 1,

and with f(r) the divergence D is: ``|r - 1| / 2`` total variation; ``r log r - r + 1`` KL(P || Q), here *forward*;
``-log r + r - 1`` KL(Q || P), *backward*; ``(r log(2r / (1+r)) + log(2 / (1+r))) / 2`` Jensen-Shannon. One sample gives
all of them. P is the backend's own target: it equals the ideal distribution over texts where the backend admits all
spellings, and the model's distribution over proper sequences where it admits these (`tokdfa.skew`).

Method. The mean of w is an unbiased estimate of Z. A divergence puts this mean in place of Z; the bias of first order,
``(-cov(r, r f') + var(r) E[r f' + r^2 f'' / 2]) / n``, is subtracted (for total variation without the second
derivative, which is a spike at 1). Errors are those of the delta method: the *influence* of a sample on D is
``f(r) - D - (r - 1) E[r f']``, and the standard error is the root of the mean square influence over n. Intervals are
at 95 %: the value and 1.96 standard errors; in the logarithm for Z; Wilson's for probabilities of events, with n
replaced by the effective number of samples p (1 - p) / error^2. An event that no sample or every sample shows has no
error; then r <= 1 / Z bounds what a sample may have missed. No method sees what never was sampled: if few samples carry
nearly all weight (`Estimate.effective_samples`), intervals are too narrow, and `differs` says so.

Cut samples. A sample that is not complete after `max_tokens` tokens is *cut*; the weight of what it might become is
between 0 and what it has reached. Values count it as it stands: they are those of generation with this limit. Intervals
are widened to cover every way of going on (so KL(Q || P) has no upper end): they are about all sequences, long ones
included. `Estimate.cut_share` says how much of Q was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.constraint import Constraint
from tokdfa.errors import LawBroken, LimitExceeded, ModelError, OptionError, TokenizerError, UnsupportedConstraint
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.skew.eos import Eos, ambiguous_end, check_eos, log_total
from tokdfa.skew.improper_mass import check_vocabulary, proper_texts

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.vocabulary import Vocabulary

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: A set of texts: a constraint (``Choice(["yes"])`` names one text), or a function of a text.
Event = Constraint | Callable[[bytes], bool]

#: Standard errors to each side of a value in an interval of 95 %.
Z_95 = 1.959963984540054
#: Differences below this are rounding.
ROUNDING = 1e-9
#: With fewer effective samples an error says more about the samples drawn than about those that were not.
FEW_EFFECTIVE = 30
#: Samples whose random numbers come from one generator; fixed, so that a sample does not depend on the batch.
STREAM_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Measured:
    """A number with its error. Immutable.

    `value`; `standard_error`: of sampling; `low`, `high`: the ends of an interval of 95 %, widened by what cut samples
    leave open; `is_cut`: whether it was; `influence`: float64, shape (n,), what each sample moves the value by, times
    n; `seed`: that of the random numbers, which pairs two estimates sample by sample; `effective`: how many samples
    carry it, (sum w)^2 / sum w^2 where they are weighted.
    """

    value: float
    standard_error: float
    low: float
    high: float
    is_cut: bool = False
    seed: int = 0
    influence: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    effective: float = np.inf


@dataclass(frozen=True, eq=False)
class EventEstimate:
    """The probability of an event under Q (`masked`) and under P (`target`)."""

    masked: Measured
    target: Measured


@dataclass(frozen=True, eq=False)
class Estimate:
    """What `estimate_skew` returns. Divergences are in nats; `kl_forward` is KL(P || Q), `kl_backward` KL(Q || P).

    `log_mass`: log Z; `effective_samples`: (sum w)^2 / sum w^2, between 1 and the number of samples; `cut_share`: the
    share of cut samples; `mean_tokens`: without end tokens, a cut sample counting as it stands; `forced_share`: of all
    steps, those at which one token only, or only end tokens, may come; `improper`: sequences that are not proper after
    the context, None if that cannot be told, and then `improper_unknown` says why; `events`: by name.
    `sequences`: the text tokens of each sample; `log_weights`: float64, shape (n,); `complete`: bool, shape (n,);
    `rows`: rows of the model asked for.
    """

    backend: str
    seed: int
    eos: Eos
    max_tokens: int
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
    improper_unknown: str
    events: Mapping[str, EventEstimate]
    sequences: tuple[tuple[int, ...], ...] = field(repr=False)
    log_weights: Floats = field(repr=False)
    complete: Bools = field(repr=False)
    rows: int = 0

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
    drawn: list[_Sample] = []
    rows = 0
    for begin in range(0, samples, batch):
        uniforms = _uniforms(seed, begin, min(begin + batch, samples), max_tokens + 1)
        more, asked = _draw(compiled, model, tuple(context), uniforms, eos)
        drawn += more
        rows += asked
    complete = np.array([sample.is_complete for sample in drawn])
    if not complete.any():
        raise LimitExceeded(
            f"all {samples} samples were cut at {max_tokens} tokens, so nothing is known of complete texts; raise"
            " max_tokens, or use a constraint that ends",
            limit="max_tokens",
            value=max_tokens,
        )
    weights = _Weights(np.array([sample.log_weight for sample in drawn]), complete, seed)
    tokens = np.array([len(sample.tokens) for sample in drawn], dtype=np.float64)
    steps, forced = (np.array([getattr(sample, name) for sample in drawn], dtype=float) for name in ("steps", "forced"))
    shown = _judge_events(events or {}, drawn, compiled.vocab)
    improper, unknown = _judge_proper(compiled.vocab, context, drawn)
    return Estimate(
        backend=compiled.backend_name,
        seed=seed,
        eos=eos,
        max_tokens=max_tokens,
        log_mass=weights.log_mass(),
        total_variation=weights.divergence(TOTAL_VARIATION),
        kl_forward=weights.divergence(KL_FORWARD),
        kl_backward=weights.divergence(KL_BACKWARD),
        jensen_shannon=weights.divergence(JENSEN_SHANNON),
        effective_samples=weights.effective,
        cut_share=float(1 - complete.mean()),
        mean_tokens=_ratio(tokens, np.ones(samples), seed, np.inf),
        forced_share=_ratio(forced, steps, seed, 1.0),
        improper=None if improper is None else weights.event(improper),
        improper_unknown=unknown,
        events={name: weights.event(holds) for name, holds in shown.items()},
        sequences=tuple(sample.tokens for sample in drawn),
        log_weights=weights.log_weights,
        complete=complete,
        rows=rows,
    )


def differs(one: Measured, other: Measured) -> bool | None:
    """Whether two numbers differ by more than the error of their difference, at 95 %.

    False: they do not, and a difference must not be reported. Nor may it with None: sampling errors alone would say
    yes, but there are fewer than FEW_EFFECTIVE effective samples, or cut samples leave too much open. The interval of
    the difference is put together from both intervals (MOVER; Donner and Zou 2010), which need not be symmetric;
    estimates with the same seed are paired, sample by sample.
    """
    difference = one.value - other.value
    if not np.isfinite(difference) or abs(difference) <= ROUNDING:
        return False
    if difference < 0:
        return differs(other, one)
    paired = one.seed == other.seed and len(one.influence) == len(other.influence) > 0
    moments = (float(a.influence @ b.influence) for a, b in ((one, other), (one, one), (other, other)))
    product, first, second = moments if paired else (0.0, 1.0, 1.0)
    correlation = float(np.clip(product / np.sqrt(first * second), -1, 1)) if first > 0 and second > 0 else 0.0
    of_sampling = _margin(Z_95 * one.standard_error, Z_95 * other.standard_error, correlation)
    if difference > _margin(one.value - one.low, other.high - other.value, correlation):
        return True if min(one.effective, other.effective) >= FEW_EFFECTIVE else None
    return None if (one.is_cut or other.is_cut) and difference > of_sampling else False


def _margin(below: float, above: float, correlation: float) -> float:
    if np.isinf(below) or np.isinf(above):
        return float("inf")
    return float(np.sqrt(max(0.0, below**2 + above**2 - 2 * correlation * below * above)))


class _Sample(NamedTuple):
    tokens: tuple[int, ...]
    log_weight: float
    steps: int
    forced: int
    is_complete: bool


class _Group(NamedTuple):
    """Samples that are equal so far: their rows in the batch, and what all of them have in common."""

    matcher: Matcher
    tokens: tuple[int, ...]
    log_weight: float
    forced: int
    members: npt.NDArray[np.int64]

    def finish(self, steps: int, is_complete: bool) -> _Sample:
        return _Sample(self.tokens, self.log_weight, steps, self.forced, is_complete)


def _uniforms(seed: int, begin: int, end: int, columns: int) -> Floats:
    """The random numbers of samples begin .. end - 1: float64, shape (end - begin, columns), in [0, 1)."""
    blocks = range(begin // STREAM_BLOCK, (end - 1) // STREAM_BLOCK + 1)
    drawn = [np.random.default_rng((seed, block)).random((columns, STREAM_BLOCK)).T for block in blocks]
    return np.concatenate(drawn)[begin - blocks[0] * STREAM_BLOCK :][: end - begin]


def _draw(
    compiled: CompiledConstraint, model: LanguageModel, context: tuple[int, ...], uniforms: Floats, eos: Eos
) -> tuple[list[_Sample], int]:
    """One sample a row of `uniforms`, step by step, and how many rows of the model were asked for."""
    limit = uniforms.shape[1] - 1
    ends = compiled.vocab.end_tokens
    found: dict[int, _Sample] = {}
    mask = allocate_mask(compiled.vocab.size)
    groups = [_Group(compiled.start(context), (), 0.0, 0, np.arange(len(uniforms)))]
    rows = 0
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
        rows += len(table)
        groups = []
        for (group, allowed, may_end), row in zip(open_groups, table, strict=True):
            groups += _draw_next(group, allowed, may_end, row, uniforms[group.members, step], found, step == limit)
    return [found[member] for member in range(len(uniforms))], rows


def _draw_next(
    group: _Group,
    allowed: npt.NDArray[np.int32],
    may_end: Bools,
    row: Floats,
    uniforms: Floats,
    found: dict[int, _Sample],
    is_last: bool,
) -> list[_Group]:
    """The groups after one more token each; samples that end, or are cut, go to `found`."""
    log_mass = log_total(row[allowed])
    if log_mass == -np.inf:
        raise ModelError(
            f"the model gives none of the {len(allowed)} allowed tokens any probability after the tokens"
            f" {list(group.tokens)}, so nothing can be drawn"
        )
    # the inverse of the cumulative distribution: equal numbers draw alike from masks that are nearly alike
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


class Divergence(NamedTuple):
    """A convex f with f(1) = f'(1) = 0: f(r), r f'(r) and r^2 f''(r) of log r (float64, finite); f(0); D's limit."""

    values: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats]
    curvatures: Callable[[Floats], Floats]
    at_zero: float
    limit: float


def _js_part(log_r: Floats) -> Floats:
    """log(2r / (1 + r)), whatever the size of r."""
    return np.log(2) - np.logaddexp(0, -log_r)


TOTAL_VARIATION = Divergence(
    lambda log_r: np.abs(np.expm1(log_r)) / 2,
    lambda log_r: np.exp(log_r) * np.sign(log_r) / 2,
    np.zeros_like,
    0.5,
    1.0,
)
KL_FORWARD = Divergence(
    lambda log_r: np.exp(log_r) * log_r - np.expm1(log_r), lambda log_r: np.exp(log_r) * log_r, np.exp, 1.0, np.inf
)
KL_BACKWARD = Divergence(lambda log_r: np.expm1(log_r) - log_r, np.expm1, np.ones_like, np.inf, np.inf)
JENSEN_SHANNON = Divergence(
    lambda log_r: (np.exp(log_r) * _js_part(log_r) + _js_part(-log_r)) / 2,
    lambda log_r: np.exp(log_r) * _js_part(log_r) / 2,
    lambda log_r: np.exp(_js_part(log_r)) / 4,
    float(np.log(2)) / 2,
    float(np.log(2)),
)


class _Weights:
    """The weights of n samples, and what is estimated from them. See the module's docstring for the formulas."""

    def __init__(self, log_weights: Floats, complete: Bools, seed: int) -> None:
        self.log_weights, self.complete, self.seed = log_weights, complete, seed
        self.is_cut = not complete.all()
        self.count = len(log_weights)
        self.log_z = log_total(log_weights) - np.log(self.count)
        #: log Z if nothing that was cut ever became complete.
        self.log_z_low = log_total(log_weights[complete]) - np.log(self.count)
        self.log_ratios = log_weights - self.log_z
        self.ratios = np.exp(self.log_ratios)
        self.effective = float(self.ratios.sum() ** 2 / (self.ratios**2).sum())

    def measured(self, influence: Floats, value: float, low: float, high: float) -> Measured:
        error = _standard_error(influence)
        return Measured(value, error, low, high, self.is_cut, self.seed, influence, self.effective)

    def log_mass(self) -> Measured:
        influence = self.ratios - 1
        margin = Z_95 * _standard_error(influence)
        return self.measured(influence, self.log_z, self.log_z_low - margin, min(self.log_z + margin, 0.0))

    def divergence(self, kind: Divergence) -> Measured:
        values, slopes = kind.values(self.log_ratios), kind.slopes(self.log_ratios)
        deviation = self.ratios - 1
        curvature = float((slopes + kind.curvatures(self.log_ratios) / 2).mean())
        bias = (float((deviation**2).mean()) * curvature - float((deviation * slopes).mean())) / self.count
        influence = values - values.mean() - deviation * slopes.mean()
        value = float(np.clip(values.mean() - bias, 0, kind.limit))
        lower, upper = self._bounds(kind) if self.is_cut else (value, value)
        margin = Z_95 * _standard_error(influence)
        return self.measured(influence, value, max(min(lower, value) - margin, 0), min(upper + margin, kind.limit))

    def _bounds(self, kind: Divergence) -> tuple[float, float]:
        """The least and the greatest divergence, sample by sample, whatever the cut samples become."""
        lowest = self.log_ratios
        highest = self.log_weights - self.log_z_low
        nearest = np.where(self.complete, np.clip(0, lowest, highest), np.minimum(0, highest))
        farthest = kind.values(np.where(self.complete, lowest, 0))
        farthest = np.maximum(kind.values(highest), np.where(self.complete, farthest, kind.at_zero))
        return float(kind.values(nearest).mean()), float(farthest.mean())

    def event(self, holds: Bools) -> EventEstimate:
        """The probability of an event; `holds`: bool, shape (n,), False for cut samples, of which it is not known."""
        cut = ~self.complete
        shown = holds.astype(np.float64)
        p = float(shown.mean())
        low, high = _wilson(p, self.count)[0], _wilson(p + float(cut.mean()), self.count)[1]
        masked = replace(self.measured(shown - p, p, low, high), effective=float(self.count))
        share = min(1.0, float((self.ratios * shown).mean()))
        influence = self.ratios * (shown - share)
        error = _standard_error(influence)
        if 0 < share < 1 and error**2 > 0:
            effective = share * (1 - share) / error**2
            low = _wilson(share, effective)[0]
            high = _wilson(min(1.0, share + float((self.ratios * cut).mean())), effective)[1]
        else:  # what was never seen has a ratio of at most 1 / Z
            largest = float(np.exp(-self.log_mass().low))
            low, high = max(0.0, 1 - (1 - low) * largest), min(1.0, high * largest)
        return EventEstimate(masked, self.measured(influence, share, min(low, share), max(high, share)))


def _standard_error(influence: Floats) -> float:
    return float(np.sqrt((influence**2).sum() / (len(influence) * (len(influence) - 1))))


def _ratio(numbers: Floats, weights: Floats, seed: int, limit: float) -> Measured:
    """The sum of `numbers` over the sum of `weights`, and its error."""
    value = float(numbers.sum() / weights.sum())
    influence = (numbers - value * weights) / weights.mean()
    error = _standard_error(influence)
    low, high = max(0.0, value - Z_95 * error), min(limit, value + Z_95 * error)
    return Measured(value, error, low, high, False, seed, influence, float(len(numbers)))


def _wilson(p: float, count: float) -> tuple[float, float]:
    """Wilson's interval of 95 % for a probability seen as `p` in `count` trials."""
    p, spread = min(max(p, 0.0), 1.0), Z_95**2 / count
    middle, half = p + spread / 2, Z_95 * np.sqrt(p * (1 - p) / count + spread / (4 * count))
    low, high = float((middle - half) / (1 + spread)), float((middle + half) / (1 + spread))
    return low if p > 0 else 0.0, high if p < 1 else 1.0  # where rounding may miss them


def _judge_events(events: Mapping[str, Event], drawn: Sequence[_Sample], vocabulary: Vocabulary) -> dict[str, Bools]:
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


def _judge_proper(vocabulary: Vocabulary, context: Sequence[int], drawn: Sequence[_Sample]) -> tuple[Bools | None, str]:
    """Which samples are complete and improper after `context`; or None, and why nobody knows."""
    if vocabulary.tokenizer is None:
        return None, "the vocabulary has no tokenizer"
    try:
        start = proper_texts(vocabulary.tokenizer).start(context)
    except (TokenizerError, UnsupportedConstraint) as error:
        return None, str(error)
    judged: dict[tuple[int, ...], bool] = {}
    for tokens in {sample.tokens for sample in drawn if sample.is_complete}:
        matcher = start.fork()
        is_proper = True
        for token in tokens:
            is_proper = matcher.allows(token)
            if not is_proper:
                break
            matcher.advance(token)
        judged[tokens] = not (is_proper and matcher.can_end())
    return np.array([sample.is_complete and judged[sample.tokens] for sample in drawn]), ""
