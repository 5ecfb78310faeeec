"""The laws on every registered backend, and every law on a backend that breaks it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.packages import backend
from tokdfa import mask as masks
from tokdfa.backends.brute_force import BruteForce, BruteForceConstraint, BruteForceMatcher
from tokdfa.backends.laws import contract
from tokdfa.backends.laws.cases import GAPS, SMALL, in_python
from tokdfa.backends.laws.contract import LAWS, Case, LawResult, check_backend, compare_backends, real_cases, toy_cases
from tokdfa.backends.laws.service_cases import service_cases
from tokdfa.backends.laws.trial import Trial
from tokdfa.backends.registry import backend_class, backend_names, create_backend
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import LawBroken, LimitExceeded, TokenRefused, UnsupportedConstraint, VocabularyCannotSpell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.mask import Mask

LAW_NAMES = [law.name for law in LAWS]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("brute_force", {"liveness": "bytes"}),
    ("token_index", {"lazy": True}),
    ("token_index", {"lazy": True, "walk": "per_token", "cache_masks": False}),
    ("token_index", {"minimal": False, "cache_masks": False}),
    ("token_index", {"proper": True}),
    ("token_index", {"lazy": True, "proper": True}),
    ("tokens_dfa", {"ready_masks": False, "reduce": False, "token_classes": "strings"}),
    ("tokens_dfa", {"token_classes": "none", "byte_classes": False, "threads": 2, "minimal": False}),
    ("tokens_dfa", {"proper": True}),
    ("cartesian_merge", {"lazy": False}),
    ("direct_merge", {"minimal": False}),
    ("earley_trie", {"mask": "slices"}),
    ("cfg_fsm", {"masks": "vectors"}),
    ("pushdown_trie", {"lexer": "any"}),
    ("pushdown_trie", {"partition": False}),
    ("pushdown_trie", {"memo": False}),
    ("pushdown_trie", {"proper": True}),
    ("llguidance", {"slices": "off"}),
    ("glrmask", {"mask_strategy": "parser_dwa"}),
    ("glrmask", {"mask_strategy": "token_trie", "parser": "template_dfa"}),
    ("xgrammar", {"cache": True}),
    ("xgrammar", {"on_demand": False}),
]


def broken(results: list[LawResult]) -> list[str]:
    return [f"{result.law}, {result.case}: {result.message}" for result in results if not result.ok]


# Every backend.


@pytest.mark.parametrize("name", [backend(name) for name in backend_names()])
def test_laws_hold_on_toys(name: str) -> None:
    results = check_backend(name)
    assert not broken(results)
    supported = Counter(result.case for result in results if result.law != "supports")
    is_proper = create_backend(name, SMALL).token_language == "proper"
    one_kind = len(backend_class(name).kinds) == 1
    assert len(supported) >= (8 if is_proper else 4 if one_kind else 20), "skipped nearly everywhere"
    tried = {result.law for result in results if result.outcome in ("held", "declared")}
    # the brute forces are what masks are compared with; everybody else tries every law
    missing = {"masks_equal"} if name in ("brute_force", "encoded_texts") else set()
    # the toy tokenizer has every byte
    missing |= {"compiles_with_gaps", "no_dead_end_with_gaps"} if is_proper or one_kind else set()
    # its reading of schemas is its own, and there is no brute force for grammars
    missing |= {"masks_equal"} if one_kind else set()
    assert set(LAW_NAMES) - tried == missing
    declared = {result.law for result in results if result.outcome == "declared"}
    assert declared == set(create_backend(name, SMALL).known_differences)


@pytest.mark.parametrize(
    "name",
    [
        backend(name)
        for name in backend_names()
        if name not in ("brute_force", "encoded_texts") and "regex" in backend_class(name).kinds
    ],
)
def test_laws_hold_on_a_real_vocabulary(name: str) -> None:
    wanted = {"date", "answers", "JSON"} - ({"JSON"} if name == "direct_merge" else set())  # any text: its known limit
    cases = [case for case in real_cases(["mistral-v1"]) if case.name.split()[0] in wanted]
    assert len(cases) == len(wanted)
    results = check_backend(name, cases=cases)
    assert not broken(results)
    assert {"masks_equal", "texts_in_language", "texts_accepted"} <= {
        result.law for result in results if result.outcome == "held"
    }


@pytest.mark.parametrize(("name", "options"), [backend(*variant) for variant in VARIANTS])
def test_laws_hold_under_options(name: str, options: dict[str, Any]) -> None:
    """On a third of the toys, or all where a strategy of ours must show what is declared to differ."""
    strategy = create_backend(name, SMALL, **options)
    is_proper = strategy.token_language == "proper"
    shows = strategy.known_differences and not backend_class(name).packages
    cases = [case for case in toy_cases() if not case.gaps and (case.vocab.tokenizer is not None or not is_proper)]
    results = check_backend(name, options, cases=cases if is_proper or shows else cases[::3])
    assert not broken(results)
    assert sum(result.outcome == "held" for result in results) > 80


@pytest.mark.parametrize(
    "name", ["brute_force", "cfg_fsm", "earley_trie", "pushdown_trie", "token_index", "tokens_dfa"]
)
def test_laws_hold_around_matchers(name: str) -> None:
    """On prompts that are healed, limits, regions, and items that must differ; no case is skipped."""
    results = check_backend(name, cases=service_cases(name))
    assert not broken(results)
    assert not outcomes(results, "supports")
    assert outcomes(results, "equal_tokens") == {"held"}
    judged = [result.case for result in results if result.law == "masks_equal" and result.outcome == "held"]
    assert len(judged) >= 3 if name != "brute_force" else 2


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

    def _start(self, context: tuple[int, ...]) -> BruteForceMatcher:
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
    """If the number is very wrong; after any refusal, the first wrong step would hide the rest."""

    def advance(self, token: int) -> None:
        if token == 1 << 40 and not self.is_finished():
            self.state = int(self._compiled.following(self.state).states[0])
        super().advance(token)


class RefusesLongTokens(BruteForceMatcher):
    def _step(self, state: int, token: int) -> int | None:
        return None if len(self.vocab.token_bytes(token)) > 1 else super()._step(state, token)


class AllowsWhatFits(BruteForceMatcher):
    def allows(self, token: int) -> bool:
        return 0 <= token < self.vocab.size and self.vocab.token_bytes(token) != b""


class AllowsOneOfEach(BruteForceMatcher):
    """Of tokens with equal bytes."""

    def _fill(self, state: int, out: Mask) -> None:
        super()._fill(state, out)
        masks.clear_token(out, 21)


class TakesOneOfEach(BruteForceMatcher):
    """Of tokens with equal bytes, all of which it allows."""

    def _step(self, state: int, token: int) -> int | None:
        return None if token == 21 else super()._step(state, token)


class GoesOnAfterTheEnd(BruteForceMatcher):
    def advance(self, token: int) -> None:
        if not (token in self.vocab.end_token_set and self.can_end()):
            super().advance(token)


class EmptyAfterTheEnd(BruteForceMatcher):
    def _fill_after_end(self, out: Mask) -> None:
        out.fill(0)


class RefusesAfterTheEnd(BruteForceMatcher):
    def _refuse_after_end(self, token: int) -> None:
        raise TokenRefused(token)


class TakesAfterTheEnd(BruteForceMatcher):
    def _refuse_after_end(self, token: int) -> None:
        super()._refuse_after_end(token)
        self._tokens.append(token)


class ForcesTooMuch(BruteForceMatcher):
    def forced_tokens(self, limit: int = 64) -> list[int]:
        return (super().forced_tokens(limit) or [0])[:limit]


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
        twin._history, twin._tokens = [self.state] * len(self._history), self._tokens.copy()
        return twin


class GoesBackTooLittle(BruteForceMatcher):
    def rollback(self, count: int) -> None:
        super().rollback(count - 1 if 1 < count <= len(self._history) else count)


class CannotLeaveTheEnd(BruteForceMatcher):
    def rollback(self, count: int) -> None:
        if not self.is_finished():
            super().rollback(count)


class DependsOnTheCompile(Wrong):
    compiles: ClassVar[Iterator[int]] = itertools.count()

    def _compile(self, constraint: Any) -> BruteForceConstraint:
        self.matcher = (BruteForceMatcher, DeadAfterTwo)[next(self.compiles) % 2]  # type: ignore[misc]
        return super()._compile(constraint)


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


def toy(pattern: str) -> Case:
    return next(case for case in toy_cases() if case.constraint.source == pattern)


PLAIN = Case("plain", SMALL, REGEX := Regex("(ab|c){2}a?(bc)?"), (b"abab", b"ccabc"), in_python(REGEX))
MANY_ENDS = toy("a|ab|abc")
FAULTS: list[tuple[str, type, Case, str]] = [
    ("compiles", CompilesNothing, PLAIN, "compiling fails with UnsupportedConstraint: not today"),
    ("compiles", ThinksAllIsEmpty, toy("(ab"), "must raise RegexSyntaxError, but raises LimitExceeded"),
    ("compiles_with_gaps", LooksAtBytes, toy("ad|(ab)*d"), "must raise VocabularyCannotSpell, but succeeds"),
    ("masks_equal", LosesAToken, PLAIN, "at the start: brute_force allows token 18 (b'ab'), wrong refuses it"),
    ("text_tokens_only", AllowsPadding, PLAIN, "at the start: token 69 (which spells nothing) is allowed"),
    ("mask_overwritten", AddsToTheBuffer, PLAIN, "at the start: word 0 of the mask depends on what"),
    ("mask_overwritten", TakesAnyBuffer, PLAIN, "at the start: a int32 buffer of shape (2,) is taken for a mask"),
    ("end_bits", OneEndTokenOnly, MANY_ENDS, "can_end() is True and end token 35 is clear"),
    ("end_bits", EndsAnywhere, PLAIN, "at the start: can_end() is True and end token 17 is clear"),
    ("no_dead_end", DeadAfterTwo, PLAIN, "the mask is empty and the text is not finished"),
    ("no_dead_end_with_gaps", LooksAtBytes, toy("abd|ac"), "token 1 (b'ab') is allowed, but then no tokens"),
    ("no_dead_end_with_gaps", LooksAtBytes, toy("c|a+b"), "token 0 (b'a') is allowed, but then no tokens"),
    ("advance_iff_bit", TakesEverything, PLAIN, "the bit of token 1 (b'b') is clear, yet advance takes it"),
    ("advance_iff_bit", MovesWhenItRefuses, PLAIN, "before refused tokens it"),
    ("advance_iff_bit", RefusesLongTokens, PLAIN, "(b'ab') is set, yet advance refuses it"),
    ("allows_is_bit", AllowsWhatFits, PLAIN, "the bit of token 1 (b'b') is clear, yet allows says yes"),
    ("equal_tokens", AllowsOneOfEach, PLAIN, "the bit of token 18 (b'ab') is set, that of token 21 (b'ab') is clear"),
    ("equal_tokens", TakesOneOfEach, PLAIN, "the bit of token 21 (b'ab') is set; allows or advance say otherwise"),
    ("finished_after_end", GoesOnAfterTheEnd, MANY_ENDS, "tokens [0, 17]: it is not finished"),
    ("finished_after_end", EmptyAfterTheEnd, MANY_ENDS, "a finished matcher allows end token 17, this one refuses it"),
    ("finished_after_end", RefusesAfterTheEnd, MANY_ENDS, "end token 17 is not taken after the end"),
    ("finished_after_end", TakesAfterTheEnd, MANY_ENDS, "are among its tokens"),
    ("forced_tokens", ForcesTooMuch, PLAIN, "is not forced"),
    ("forced_tokens", ForcesNothing, PLAIN, "forced_tokens(5) says [], but the masks force [1]"),
    ("fork_independent", ForksIntoItself, PLAIN, "is refused once a fork has advanced"),
    (
        "fork_independent",
        ForksIntoItself,
        toy("[abc]{2,4}"),
        "the original allows token 0 (b'a'), a fork, when others have",
    ),
    ("fork_independent", ForksWithoutPast, PLAIN, "a fork taken back to the start"),
    ("rollback_restores", GoesBackTooLittle, PLAIN, "after a rollback it"),
    ("rollback_restores", CannotLeaveTheEnd, MANY_ENDS, "is not refused"),
    ("deterministic", DependsOnTheCompile, PLAIN, "the second"),
    ("threads", DependsOnTheThread, PLAIN, "two threads saw other masks than one"),
    ("texts_in_language", EndsAnywhere, PLAIN, "can_end() is True, the text is not in the language"),
    ("texts_in_language", NeverEnds, MANY_ENDS, "can_end() is False, the text is in the language"),
    ("texts_accepted", RefusesLongTokens, PLAIN, "is refused"),
    ("texts_accepted", NeverEnds, PLAIN, "can_end() is False"),
]


def wrong_backend(fault: type, case: Case) -> Wrong:
    if issubclass(fault, Wrong):
        return fault(case.vocab)
    backend = Wrong(case.vocab)
    backend.matcher = fault  # type: ignore[misc]
    return backend


def test_every_law_has_a_fault() -> None:
    assert sorted({law for law, *_ in FAULTS}) == sorted(LAW_NAMES)


@pytest.mark.parametrize(
    ("law", "fault", "case", "message"), FAULTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_every_law_can_fail(law: str, fault: type, case: Case, message: str) -> None:
    check = next(one for one in LAWS if one.name == law)
    with pytest.raises(LawBroken) as caught:
        check(Trial(wrong_backend(fault, case), case))
    assert caught.value.law == law
    assert message in str(caught.value)


# What check_backend makes of the outcomes.


def check_class(monkeypatch: pytest.MonkeyPatch, backend: type, cases: list[Case], **keywords: Any) -> list[LawResult]:
    monkeypatch.setattr(contract, "create_backend", lambda name, vocab, **options: backend(vocab, **options))
    return check_backend("any", cases=cases, **keywords)


def outcomes(results: list[LawResult], law: str) -> set[str]:
    return {result.outcome for result in results if result.law == law}


def test_declared_differences_are_not_broken_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    class Honest(LooksAtBytes):
        known_differences: ClassVar[dict[str, str]] = {
            "no_dead_end_with_gaps": "looks at bytes",
            "compiles_with_gaps": "looks at bytes, too",
        }

    cases = [case for case in toy_cases() if case.gaps]
    results = check_class(monkeypatch, Honest, cases)
    assert not broken(results)
    assert outcomes(results, "no_dead_end_with_gaps") == {"held", "declared"}
    assert {result.message for result in results if result.outcome == "declared"} == {
        "looks at bytes",
        "looks at bytes, too",
    }
    assert {"compiles_with_gaps", "no_dead_end_with_gaps"} <= {
        result.law for result in check_class(monkeypatch, LooksAtBytes, cases) if not result.ok
    }


def test_a_declared_difference_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Modest(Wrong):
        known_differences: ClassVar[dict[str, str]] = {"threads": "feels unsafe", "no_such_law": "whatever"}

    problems = broken(check_class(monkeypatch, Modest, [PLAIN]))
    assert len(problems) == 2
    assert "threads, all cases: declared as a known difference (feels unsafe), but it holds on every case" in problems
    assert "no_such_law, all cases: a known difference is declared, but there is no such law" in problems
    only = [law for law in LAWS if law.name == "end_bits"]
    assert len(broken(check_class(monkeypatch, Modest, [PLAIN], laws=only))) == 1, "threads was not tried"


def test_skipped_everywhere_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("a grammar", SMALL, Grammar("start: A"))
    results = check_class(monkeypatch, Wrong, [case])
    assert [(result.law, result.outcome) for result in results] == [("supports", "skipped"), ("supports", "broken")]
    assert "takes regex, choice and json_schema, not grammar" in results[0].message


def test_unexpected_errors_are_broken_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crashes(BruteForceMatcher):
        def can_end(self) -> bool:
            raise ZeroDivisionError("half a token")

    class Crashing(Wrong):
        matcher: ClassVar[type[BruteForceMatcher]] = Crashes

    results = check_class(monkeypatch, Crashing, [PLAIN])
    assert "end_bits, plain: ZeroDivisionError: half a token" in broken(results)
    assert outcomes(results, "masks_equal") == {"held"}, "one law's error must not stop the others"


def test_results_are_reported_as_they_come() -> None:
    seen: list[LawResult] = []
    results = check_backend("brute_force", cases=[PLAIN], report=seen.append)
    assert seen == results
    assert [result.law for result in results] == LAW_NAMES


def test_compare_backends() -> None:
    right = create_backend("brute_force", SMALL)
    assert compare_backends(create_backend("token_index", SMALL), right, PLAIN) is None
    found = compare_backends(right, wrong_backend(LosesAToken, PLAIN), PLAIN)
    assert found == "at the start: brute_force allows token 18 (b'ab'), wrong refuses it (2 tokens differ)"
    found = compare_backends(wrong_backend(DeadAfterTwo, PLAIN), right, PLAIN)
    assert found is not None
    assert found.startswith("after b'ab', tokens [0, 1]: brute_force allows token 0 (b'a'), wrong refuses it (6")
    with pytest.raises(VocabularyCannotSpell):
        compare_backends(create_backend("brute_force", GAPS), right, toy("ad|(ab)*d"))


# The cases themselves.


def test_cases_say_what_is_true() -> None:
    for case in (*toy_cases(), *real_cases(["bytes"])):
        assert case.error is not None or (case.texts and case.member is not None), case.name
        for text in case.texts:
            assert case.member is not None
            assert case.member(text), (case.name, text)
    names = [case.name for case in toy_cases()]
    assert len(names) == len(set(names))
    nested = next(case.member for case in toy_cases() if case.constraint.kind == "grammar")
    assert [nested(text) for text in (b"", b"a", b"()", b"(a)", b"(())", b"((a)", b"(a", b")(", b"aa")] == [
        *(False, True, True, True, True, False, False, False, False)
    ]


def test_gaps_are_where_they_are_said_to_be() -> None:
    for case in toy_cases():
        if case.constraint.kind in BruteForce.kinds and case.error is None:
            compiled = BruteForce(case.vocab).compile(case.constraint)
            assert compiled.complete != case.gaps, case.name
