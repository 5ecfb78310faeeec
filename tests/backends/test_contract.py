"""The laws on every registered backend, and every law on a backend that breaks it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tokdfa import mask as masks
from tokdfa.backends import contract
from tokdfa.backends.brute_force import BruteForce, BruteForceConstraint, BruteForceMatcher
from tokdfa.backends.contract import LAWS, Case, LawResult, check_backend, compare_backends, real_cases, toy_cases
from tokdfa.backends.contract_cases import GAPS, SMALL
from tokdfa.backends.contract_trial import Trial
from tokdfa.backends.registry import backend_names, create_backend
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import LawBroken, LimitExceeded, TokenRefused, UnsupportedConstraint, VocabularyCannotSpell

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher
    from tokdfa.mask import Mask

LAW_NAMES = [law.name for law in LAWS]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("brute_force", {"liveness": "bytes"}),
    ("token_index", {"lazy": True}),
    ("token_index", {"lazy": True, "walk": "per_token", "cache_masks": False}),
    ("token_index", {"minimal": False, "cache_masks": False}),
    ("llguidance", {"slices": "off", "precompute_large": False}),
    ("glrmask", {"mask_strategy": "parser_dwa"}),
    ("glrmask", {"mask_strategy": "token_trie"}),
    ("glrmask", {"mask_strategy": "token_trie", "parser": "template_dfa", "merge_tokens": True}),
]


def broken(results: list[LawResult]) -> list[str]:
    return [f"{result.law}, {result.case}: {result.message}" for result in results if not result.ok]


# Every backend.


@pytest.mark.parametrize("name", backend_names())
def test_laws_hold_on_toys(name: str) -> None:
    results = check_backend(name)
    assert not broken(results)
    supported = Counter(result.case for result in results if result.law != "supports")
    assert len(supported) >= 20, "skipped nearly everywhere"
    tried = {result.law for result in results if result.outcome in ("held", "declared")}
    # the brute force is what masks are compared with; everybody else tries every law
    assert set(LAW_NAMES) - tried == ({"masks_equal"} if name == "brute_force" else set())
    declared = {result.law for result in results if result.outcome == "declared"}
    assert declared == set(create_backend(name, SMALL).known_differences)


@pytest.mark.parametrize("name", [name for name in backend_names() if name != "brute_force"])
def test_laws_hold_on_a_real_vocabulary(name: str) -> None:
    cases = [case for case in real_cases(["mistral-v1"]) if case.name.split()[0] in ("date", "answers", "JSON")]
    assert len(cases) == 3
    results = check_backend(name, cases=cases)
    assert not broken(results)
    assert {"masks_equal", "texts_in_language", "texts_accepted"} <= {
        result.law for result in results if result.outcome == "held"
    }


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_laws_hold_under_options(name: str, options: dict[str, Any]) -> None:
    """On a third of the toys. Without the cases with gaps, a declared difference is not tried and not missed."""
    cases = [case for case in toy_cases() if not case.gaps][::3]
    results = check_backend(name, options, cases=cases)
    assert not broken(results)
    assert sum(result.outcome == "held" for result in results) > 80


# Every law can fail. Each class below is the brute force with one fault.


class Wrong(BruteForce):
    name: ClassVar[str] = "wrong"
    matcher: ClassVar[type[BruteForceMatcher]] = BruteForceMatcher

    def _compile(self, constraint: Any) -> BruteForceConstraint:
        return WrongConstraint(self, constraint)


class WrongConstraint(BruteForceConstraint):
    def __init__(self, backend: Wrong, constraint: Any) -> None:
        super().__init__(backend, constraint)
        self.matcher = backend.matcher

    def start(self, context: Any = ()) -> BruteForceMatcher:
        return self.matcher(self)


class LosesAToken(BruteForceMatcher):
    """Everywhere, mask and advance agreeing."""

    def _step(self, state: int, token: int) -> int | None:
        return None if self.vocab.token_bytes(token) == b"ab" else super()._step(state, token)

    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        for token in range(self.vocab.size):
            if self.vocab.token_bytes(token) == b"ab":
                masks.clear_token(out, token)


class AllowsPadding(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        masks.set_token(out, self.vocab.size - 1)


class AddsToTheBuffer(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        before = out.copy()
        super()._fill(state, out)
        out |= before


class TakesAnyBuffer(BruteForceMatcher):
    def fill_mask(self, out: Any) -> None:
        if out.dtype == "int32" and out.shape == (masks.mask_words(self.vocab.size),):
            super().fill_mask(out)


class OneEndTokenOnly(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        masks.clear_token(out, self.vocab.end_tokens[-1])


class DeadAfterTwo(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        if len(self._history) == 2:
            out.fill(0)


class TakesEverything(BruteForceMatcher):
    def advance(self, token: int) -> None:
        if self.allows(token):
            super().advance(token)


class MovesWhenItRefuses(BruteForceMatcher):
    def advance(self, token: int) -> None:
        try:
            super().advance(token)
        except TokenRefused:
            self.state = self._compiled.following(self.state).states[0] if not self.is_finished() else self.state
            raise


class RefusesLongTokens(BruteForceMatcher):
    def _step(self, state: int, token: int) -> int | None:
        return None if len(self.vocab.token_bytes(token)) > 1 else super()._step(state, token)


class AllowsWhatFits(BruteForceMatcher):
    def allows(self, token: int) -> bool:
        return 0 <= token < self.vocab.size and self.vocab.token_bytes(token) != b""


class GoesOnAfterTheEnd(BruteForceMatcher):
    def advance(self, token: int) -> None:
        if not (token in self.vocab.end_token_set and self.can_end()):
            super().advance(token)


class ForcesNothing(BruteForceMatcher):
    def forced_tokens(self, limit: int = 64) -> list[int]:
        return []


class ForksIntoItself(BruteForceMatcher):
    def fork(self) -> BruteForceMatcher:
        return self


class ForksWithoutPast(BruteForceMatcher):
    def fork(self) -> BruteForceMatcher:
        twin = self._compiled.start()
        twin.state = self.state
        twin._history = [self.state] * len(self._history)
        return twin


class GoesBackTooLittle(BruteForceMatcher):
    def rollback(self, count: int) -> None:
        super().rollback(count - 1 if count > 1 else count)


class CannotLeaveTheEnd(BruteForceMatcher):
    def rollback(self, count: int) -> None:
        if not self.is_finished():
            super().rollback(count)


class DependsOnTheCompile(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        if not hasattr(self._compiled.constraint, "seen_by"):
            object.__setattr__(self._compiled.constraint, "seen_by", self._compiled)
        if self._compiled.constraint.seen_by is not self._compiled:
            out[0] ^= 1


class DependsOnTheThread(BruteForceMatcher):
    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        if threading.current_thread() is not threading.main_thread():
            out.fill(0)


class EndsAnywhere(BruteForceMatcher):
    def _accepts(self, state: int) -> bool:
        return True


class NeverEnds(BruteForceMatcher):
    def _accepts(self, state: int) -> bool:
        return False


class CompilesNothing(Wrong):
    def _compile(self, constraint: Any) -> BruteForceConstraint:
        raise UnsupportedConstraint("not today")


class LooksAtBytes(Wrong):
    def __init__(self, vocab: Any, **options: Any) -> None:
        super().__init__(vocab, liveness="bytes")


class ThinksAllIsEmpty(Wrong):
    def _compile(self, constraint: Any) -> BruteForceConstraint:
        raise LimitExceeded("too large", limit="states", value=1)


def plain_case(pattern: str = "(ab|c){2}a?(bc)?") -> Case:
    by_pattern = {case.constraint.source: case for case in toy_cases()}
    if pattern in by_pattern:
        return by_pattern[pattern]
    from tokdfa.backends.contract_cases import in_python

    regex = Regex(pattern)
    return Case(pattern, SMALL, regex, (b"abab", b"ccabc"), in_python(regex))


def gap_case(pattern: str) -> Case:
    return next(case for case in toy_cases() if case.gaps and case.constraint.source == pattern)


UNSPELLABLE = "ad|(ab)*d"
FAULTS: list[tuple[str, type, Case, str]] = [
    ("compiles", CompilesNothing, plain_case(), "compiling fails with UnsupportedConstraint: not today"),
    ("compiles", ThinksAllIsEmpty, plain_case("(ab"), "must raise RegexSyntaxError, but raises LimitExceeded"),
    ("compiles_with_gaps", LooksAtBytes, gap_case(UNSPELLABLE), "must raise VocabularyCannotSpell, but succeeds"),
    ("masks_equal", LosesAToken, plain_case(), "at the start: brute_force allows token 18 (b'ab'), wrong refuses it"),
    ("text_tokens_only", AllowsPadding, plain_case(), "at the start: token 69 (which spells nothing) is allowed"),
    ("mask_overwritten", AddsToTheBuffer, plain_case(), "at the start: word 0 of the mask depends on what"),
    ("mask_overwritten", TakesAnyBuffer, plain_case(), "at the start: a int32 buffer of shape (2,) is taken for a mask"),
    ("end_bits", OneEndTokenOnly, plain_case("a|ab|abc"), "can_end() is True and end token 35 is clear"),
    ("end_bits", EndsAnywhere, plain_case(), None),
    ("no_dead_end", DeadAfterTwo, plain_case(), "the mask is empty and the text is not finished"),
    ("no_dead_end_with_gaps", LooksAtBytes, gap_case("abd|ac"), "token 1 (b'ab') is allowed, but then no tokens"),
    ("no_dead_end_with_gaps", LooksAtBytes, gap_case("c|a+b"), "token 0 (b'a') is allowed, but then no tokens"),
    ("advance_iff_bit", TakesEverything, plain_case(), "the bit of token 1 (b'b') is clear, yet advance takes it"),
    ("advance_iff_bit", MovesWhenItRefuses, plain_case(), "before refused tokens it"),
    ("advance_iff_bit", RefusesLongTokens, plain_case(), "(b'ab') is set, yet advance refuses it"),
    ("allows_is_bit", AllowsWhatFits, plain_case(), "the bit of token 1 (b'b') is clear, yet allows says yes"),
    ("finished_after_end", GoesOnAfterTheEnd, plain_case("a|ab|abc"), "is_finished() is False"),
    ("forced_tokens", ForcesNothing, plain_case(), "are forced, forced_tokens(5) says []"),
    ("fork_independent", ForksIntoItself, plain_case(), "when others have advanced,"),
    ("fork_independent", ForksWithoutPast, plain_case(), "a fork taken back to the start"),
    ("rollback_restores", GoesBackTooLittle, plain_case(), "after a rollback it"),
    ("rollback_restores", CannotLeaveTheEnd, plain_case("a|ab|abc"), None),
    ("deterministic", DependsOnTheCompile, plain_case(), "the second"),
    ("threads", DependsOnTheThread, plain_case(), "two threads saw other masks than one"),
    ("texts_in_language", EndsAnywhere, plain_case(), "can_end() is True, the text is not in the language"),
    ("texts_in_language", NeverEnds, plain_case("a|ab|abc"), "can_end() is False, the text is in the language"),
    ("texts_accepted", RefusesLongTokens, plain_case(), "is refused"),
    ("texts_accepted", NeverEnds, plain_case(), "can_end() is False"),
]
