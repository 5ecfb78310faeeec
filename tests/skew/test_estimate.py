"""Estimates against the truth, which is enumerated: sequences by brute force, or a geometric law summed to its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.proper.small_tokenizers import merge_list
from tests.walks import mask_of
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LimitExceeded, ModelError, OptionError
from tokdfa.models.table import TableModel, random_table
from tokdfa.proper.explain_text import explain_tokens
from tokdfa.skew.estimate import Estimate, estimate_skew
from tokdfa.skew.measured import Measured, differs
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.models.base import LanguageModel

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b"", b""], end_tokens=[3, 4])
CONTEXT = (1, 1)
REPETITIONS, SAMPLES = 200, 400
EVENTS = {"begins with ab": Regex("ab[ab]*"), "even": lambda text: len(text) % 2 == 0}


@dataclass(frozen=True)
class Truth:
    """Every sequence: log p(s), log Q(s) and its text."""

    log_p: np.ndarray
    log_q: np.ndarray
    texts: list[bytes]

    def numbers(self) -> dict[str, float]:
        p, q = np.exp(self.log_p), np.exp(self.log_q)
        mass = p.sum()
        assert q.sum() == pytest.approx(1, abs=1e-9)
        p = p / mass
        middle = (p + q) / 2
        found = {
            "mass": mass,
            "total_variation": np.abs(p - q).sum() / 2,
            "kl_forward": (p * np.log(p / q)).sum(),
            "kl_backward": (q * np.log(q / p)).sum(),
            "jensen_shannon": (p * np.log(p / middle) + q * np.log(q / middle)).sum() / 2,
        }
        for name, test in (("begins with ab", lambda text: text[:2] == b"ab"), ("even", EVENTS["even"])):
            holds = np.array([test(text) for text in self.texts])
            found |= {f"{name}, masked": q[holds].sum(), f"{name}, target": p[holds].sum()}
        return found


def enumerate_truth(compiled: CompiledConstraint, model: LanguageModel, eos: str, deepest: int) -> Truth:
    """Walk all masks, one prefix after another."""
    found: list[tuple[float, float, bytes]] = []

    def walk(matcher: Matcher, tokens: tuple[int, ...], log_p: float, log_q: float) -> None:
        allowed = mask_of(matcher)
        row = np.exp(model.log_probabilities([CONTEXT + tokens])[0])
        here = row[allowed].sum()
        ends = [token for token in allowed if token in VOCABULARY.end_tokens]
        if ends and eos == "ignored":
            assert ends == allowed
            found.append((log_p, log_q, VOCABULARY.spell(tokens)))
            return
        if ends:
            found.append(
                (log_p + np.log(row[ends].sum()), log_q + np.log(row[ends].sum() / here), VOCABULARY.spell(tokens))
            )
        for token in allowed:
            if token not in ends and len(tokens) < deepest:
                following = matcher.fork()
                following.advance(token)
                walk(following, (*tokens, token), log_p + np.log(row[token]), log_q + np.log(row[token] / here))

    walk(compiled.start(CONTEXT), (), 0.0, 0.0)
    log_p, log_q, texts = zip(*found, strict=True)
    return Truth(np.array(log_p), np.array(log_q), list(texts))


def geometric(prefix: tuple[int, ...]) -> list[float]:
    """a again, b, ab, and two ends: the same row everywhere but at the beginning."""
    return [0.45, 0.25, 0.1, 0.15, 0.05] if prefix == CONTEXT else [0.35, 0.3, 0.2, 0.1, 0.05]


#: name -> constraint, model, eos, how deep to enumerate
CASES: dict[str, tuple[Any, Any, Any, int]] = {
    "finite": (Regex("[ab]{1,3}"), random_table(VOCABULARY, 3), "counted", 4),
    "no end": (Choice(["aab", "abab", "bbb"]), random_table(VOCABULARY, 5), "ignored", 5),
    "geometric": (Regex("a*"), TableModel(VOCABULARY, geometric), "counted", 60),
    "infinite": (Regex("a(ba)*b?"), TableModel(VOCABULARY, lambda _: [0.1, 0.12, 0.03, 0.5, 0.25]), "counted", 18),
}


@cache
def case(name: str) -> tuple[CompiledConstraint, LanguageModel, Any, dict[str, float]]:
    constraint, model, eos, deepest = CASES[name]
    compiled = compile(constraint, VOCABULARY)
    return compiled, model, eos, enumerate_truth(compiled, model, eos, deepest).numbers()


@cache
def repetitions(name: str) -> tuple[Estimate, ...]:
    compiled, model, eos, _ = case(name)
    return tuple(
        estimate_skew(
            *(compiled, model, CONTEXT),
            **{"samples": SAMPLES, "seed": seed, "eos": eos, "max_tokens": 60, "batch": SAMPLES, "events": EVENTS},
        )
        for seed in range(REPETITIONS)
    )


def measured(estimate: Estimate, name: str) -> Measured:
    if ", " in name:
        event, side = name.split(", ")
        found = getattr(estimate.events[event], side)
    else:
        found = getattr(estimate, name)
    assert isinstance(found, Measured)
    return found


DISTANCES = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
SHARES = tuple(f"{name}, {side}" for name in EVENTS for side in ("masked", "target"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", ["mass", *DISTANCES, *SHARES])
def test_intervals_cover_the_truth(name: str, number: str) -> None:
    truth = case(name)[3][number]
    found = [measured(estimate, number) for estimate in repetitions(name)]
    covered = sum(one.low - 1e-9 <= truth <= one.high + 1e-9 for one in found)
    if truth in (0, 1):
        assert covered == REPETITIONS
    else:
        assert 0.91 <= covered / REPETITIONS <= 0.99
        # the stated error is that of the repetitions
        spread = np.std([one.value for one in found])
        assert np.sqrt(np.mean([one.standard_error**2 for one in found])) == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("name", CASES)
def test_the_mass_is_unbiased_and_so_are_divergences_after_correction(name: str) -> None:
    truth = case(name)[3]
    for number in ("mass", *DISTANCES):
        values = np.array([measured(estimate, number).value for estimate in repetitions(name)])
        error = values.std(ddof=1) / np.sqrt(REPETITIONS)
        assert abs(values.mean() - truth[number]) < 3.5 * error + (0.05 * values.std() if number != "mass" else 0)


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_the_sequences(name: str) -> None:
    """log w = log p - log Q of each sampled sequence, found anew by hand; shares and means follow."""
    compiled, model, eos, _ = case(name)
    estimate = repetitions(name)[0]
    assert estimate.complete.all()
    assert estimate.cut_share == 0
    forced = steps = 0
    for tokens, log_weight in list(zip(estimate.sequences, estimate.log_weights, strict=True)):
        matcher, expected = compiled.start(CONTEXT), 0.0
        for place in range(len(tokens) + (eos == "counted")):
            allowed = mask_of(matcher)
            row = model.log_probabilities([CONTEXT + tokens[:place]])[0]
            expected += np.log(np.exp(row[allowed]).sum())
            forced += set(allowed) <= {3, 4} or len(allowed) == 1
            steps += 1
            if place < len(tokens):
                matcher.advance(tokens[place])
        assert matcher.can_end()
        assert log_weight == pytest.approx(expected, abs=1e-12)
    assert estimate.forced_share.value == pytest.approx(forced / steps)
    assert estimate.mean_tokens.value == np.mean([len(tokens) for tokens in estimate.sequences])
    weights = np.exp(estimate.log_weights)
    assert estimate.effective_samples == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert estimate.mass.value == pytest.approx(weights.mean())
    assert estimate.improper is None


def test_a_sample_depends_on_its_number_and_on_the_seed_only() -> None:
    compiled, model, _, _ = case("finite")
    whole = estimate_skew(compiled, model, CONTEXT, samples=300, seed=9, batch=300)
    parts = estimate_skew(compiled, model, CONTEXT, samples=290, seed=9, batch=7, max_tokens=5)
    assert whole.sequences[:290] == parts.sequences
    assert np.allclose(whole.log_weights[:290], parts.log_weights, atol=1e-12)
    assert whole.sequences != estimate_skew(compiled, model, CONTEXT, samples=300, seed=10, batch=300).sequences


def test_intervals_of_cut_samples_hold_the_truth() -> None:
    """a*, cut after one token: the intervals are about all of a*, and say so by their width."""
    compiled, model, _, truth = case("geometric")
    covered = dict.fromkeys(("mass", *DISTANCES, *SHARES), 0)
    for seed in range(40):
        estimate = estimate_skew(
            *(compiled, model, CONTEXT), samples=SAMPLES, seed=seed, max_tokens=1, batch=SAMPLES, events=EVENTS
        )
        assert 0.2 < estimate.cut_share < 0.6
        assert max(map(len, estimate.sequences)) == 1
        for number in covered:
            one = measured(estimate, number)
            covered[number] += one.low <= truth[number] <= one.high
            assert one.is_cut
        assert estimate.kl_backward.high == np.inf
        assert estimate.mass.high - estimate.mass.low > 0.1
    assert min(covered.values()) >= 39


def test_an_event_that_was_never_seen_is_not_impossible() -> None:
    compiled, model, eos, _ = case("finite")
    never = {"never": lambda _: False, "always": lambda _: True}
    found = estimate_skew(compiled, model, CONTEXT, samples=50, eos=eos, events=never).events
    assert found["never"].masked.value == found["never"].target.value == 0
    assert 0.02 < found["never"].masked.high < 0.1
    assert found["never"].target.high > found["never"].masked.high
    assert found["always"].target.value == 1
    assert found["always"].target.low < 0.9


def test_improper_sequences_are_told_apart(tmp_path: Path) -> None:
    """The verdict on each sample is that of `explain_tokens` on context and text; proper masks leave none."""
    tokenizer = load_tokenizer(merge_list(tmp_path / "t.json", "ab", [("a", "b"), ("b", "b"), ("ab", "a")]))
    vocabulary = tokenizer.vocabulary
    model = random_table(vocabulary, 1)
    context = tuple(tokenizer.encode("ba"))
    plain = estimate_skew(compile(Regex("[ab]{2,5}"), vocabulary), model, context, samples=200)
    verdicts = [not explain_tokens(tokenizer, (*context, *tokens)).is_proper for tokens in plain.sequences]
    assert plain.improper is not None
    assert plain.improper.masked.value == np.mean(verdicts)
    weights = np.exp(plain.log_weights)
    assert plain.improper.target.value == pytest.approx((weights * verdicts).sum() / weights.sum())
    assert 0.1 < plain.improper.masked.value < 0.95
    proper = estimate_skew(compile(Regex("[ab]{2,5}"), vocabulary, "cartesian_merge"), model, context, samples=200)
    assert proper.improper is not None
    assert proper.improper.masked.value == proper.improper.target.value == 0


def test_differences_need_more_than_their_error() -> None:
    """Two halves of one truth differ in 5 of 100 pairs or so; two truths far apart in all of them."""
    finite = repetitions("finite")
    pairs = [differs(a.total_variation, b.total_variation) for a, b in zip(finite[::2], finite[1::2], strict=True)]
    assert None not in pairs
    assert pairs.count(True) <= 11
    far = [differs(a.mass, b.mass) for a, b in zip(finite, repetitions("no end"), strict=True)]
    assert abs(case("finite")[3]["mass"] - case("no end")[3]["mass"]) > 0.1
    assert all(far)
    assert differs(finite[0].mass, finite[0].mass) is False


def test_errors() -> None:
    compiled, model, _, _ = case("geometric")
    with pytest.raises(LimitExceeded, match="all 20 samples were cut at 2 tokens"):
        estimate_skew(compile(Regex("[ab]{9}"), VOCABULARY), model, samples=20, max_tokens=2)
    with pytest.raises(OptionError, match="may end and may also go on"):
        estimate_skew(compiled, model, eos="ignored")
    for wrong in ({"samples": 1}, {"max_tokens": 0}, {"batch": 0}, {"seed": -1}, {"eos": "perhaps"}):
        with pytest.raises(OptionError, match=f"{next(iter(wrong))} is"):
            estimate_skew(compiled, model, **wrong)
    with pytest.raises(OptionError, match="an event is a constraint or a function"):
        estimate_skew(compiled, model, samples=10, events={"x": "text"})  # type: ignore[dict-item]
    other = Vocabulary([b"a", b"b", b""], end_tokens=[2])
    with pytest.raises(ModelError, match=r"different vocabularies \(5 against 3"):
        estimate_skew(compile(Regex("a"), other), model)
    silent = TableModel(VOCABULARY, lambda _: [0, 0, 0, 0.5, 0.5])
    with pytest.raises(ModelError, match="none of the 3 allowed tokens any probability"):
        estimate_skew(compile(Regex("[ab]b"), VOCABULARY), silent)
