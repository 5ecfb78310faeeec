"""Options, the interface's own behaviour, `StateMatcher`, and the registry."""

from __future__ import annotations

import importlib.metadata
import types
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.walks import mask_of as allowed
from tokdfa import mask as masks
from tokdfa.backends import registry
from tokdfa.backends.base import YES, Backend, CompiledConstraint, Option, Phases, StateMatcher, Support
from tokdfa.backends.registry import (
    BUILT_IN,
    backend_class,
    backend_info,
    backend_names,
    create_backend,
)
from tokdfa.constraint import Choice, Constraint, Grammar, Regex
from tokdfa.errors import (
    OptionError,
    TokdfaError,
    TokenRefused,
    UnknownNameError,
    UnsupportedConstraint,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.mask import Mask

VOCAB = Vocabulary([b"x", b"xx", b"y", b"", b"", b""], end_tokens=[3, 5], special_tokens={4: "<s>"}, name="xy")


class CountUp(Backend):
    """Accepts exactly `length` letters x."""

    name: ClassVar[str] = "count_up"
    summary: ClassVar[str] = "counts letters"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice")
    options: ClassVar[tuple[Option, ...]] = (
        Option("length", int, 3, "how many", minimum=0),
        Option("rate", float, 0.5, "how fast", minimum=0.0),
        Option("mode", str, "up", "which way", choices=("up", "down")),
        Option("loud", bool, False, "how loud"),
        Option("cap", int, None, "how far", optional=True),
    )

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return CountUpConstraint(constraint, self.vocab, self.name, self.settings["length"])


class CountUpConstraint(CompiledConstraint):
    def __init__(self, constraint: Constraint, vocab: Vocabulary, name: str, length: int) -> None:
        super().__init__(constraint, vocab, name)
        self.length = length

    def _start(self, context: tuple[int, ...]) -> CountUpMatcher:
        return CountUpMatcher(self)


class CountUpMatcher(StateMatcher[int]):
    def __init__(self, compiled: CountUpConstraint) -> None:
        super().__init__(compiled.vocab, 0)
        self.compiled = compiled

    def _step(self, state: int, token: int) -> int | None:
        spelled = self.vocab.token_bytes(token)
        fits = spelled and set(spelled) == set(b"x") and state + len(spelled) <= self.compiled.length
        return state + len(spelled) if fits else None

    def _accepts(self, state: int) -> bool:
        return state == self.compiled.length

    def _fill(self, state: int, out: Mask) -> None:
        out.fill(0)
        for token in range(self.vocab.size):
            if self._next(token) is not None:
                masks.set_token(out, token)

    def _fork_empty(self) -> CountUpMatcher:
        return CountUpMatcher(self.compiled)


# Options.


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("length", value) for value in ("3", 3.0, True, None, -1)),
        *(("rate", -0.5), ("rate", False), ("rate", float("nan")), ("mode", "sideways"), ("loud", 1)),
    ],
)
def test_wrong_values_are_refused(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"option '{option}' .*, not "):
        CountUp(VOCAB, **{option: value})


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no option of backend count_up 'lenght'; did you mean 'length'"):
        CountUp(VOCAB, lenght=3)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        *(("length", "12", 12), ("rate", "0.25", 0.25), ("mode", "down", "down"), ("loud", "Yes", True)),
        *(("loud", "off", False), ("cap", "none", None), ("cap", "4", 4)),
    ],
)
def test_options_are_read_from_text(option: str, text: str, value: object) -> None:
    parsed = {one.name: one for one in CountUp.options}[option].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("option", "text"),
    [("length", "x"), ("length", "-1"), ("length", "none"), ("rate", "nan"), ("loud", "2"), ("mode", "")],
)
def test_wrong_texts_are_refused(option: str, text: str) -> None:
    with pytest.raises(OptionError, match=f"option '{option}'"):
        {one.name: one for one in CountUp.options}[option].parse(text)


# Compiling.


def test_support_has_a_truth_value_and_a_reason() -> None:
    backend = CountUp(VOCAB)
    assert backend.supports(Regex("x")) == YES
    assert backend.supports(Choice(["x"]))
    answer = backend.supports(Grammar("start: A"))
    assert not answer
    assert answer == Support(False, "count_up takes regex and choice, not grammar")
    with pytest.raises(UnsupportedConstraint, match="count_up takes regex and choice, not grammar"):
        backend.compile(Grammar("start: A"))


def test_phases_add_up_in_order() -> None:
    phases = Phases()
    with phases.measure("parse"):
        pass
    with phases.measure("index"):
        pass
    before = phases["parse"]
    with pytest.raises(KeyError), phases.measure("parse"):
        raise KeyError
    assert list(phases) == ["parse", "index"]
    assert phases["parse"] > before >= 0


# StateMatcher.


def test_refusals_say_why() -> None:
    matcher = CountUp(VOCAB, length=1).compile(Regex("x")).start()
    reasons = {
        1: "cannot come next",
        2: "cannot come next",
        3: "not complete",
        4: "spells no text",
        6: "the ids 0 to 5",
        -1: "the ids 0 to 5",
    }
    for token, reason in reasons.items():
        with pytest.raises(TokenRefused, match=reason) as caught:
            matcher.advance(token)
        assert caught.value.token == token
        assert allowed(matcher) == [0]
    matcher.advance(0)
    matcher.advance(3)
    with pytest.raises(TokenRefused, match="the text has ended"):
        matcher.advance(0)
    matcher.advance(3)  # without effect
    assert matcher.is_finished()


def test_tokens_are_those_taken_and_not_taken_back() -> None:
    matcher = CountUp(VOCAB, length=4).compile(Regex("x{4}")).start()
    for token in (0, 1, 0, 3):
        matcher.advance(token)
    fork = matcher.fork()
    fork.rollback(3)
    assert (matcher.tokens, fork.tokens) == ((0, 1, 0, 3), (0,))
    fork.advance(1)
    assert fork.tokens == (0, 1)


# The registry.


def test_names_and_classes() -> None:
    assert backend_names()[: len(BUILT_IN)] == list(BUILT_IN)
    for name in backend_names():
        found = backend_class(name)
        assert issubclass(found, Backend)
        assert found.name == name
        assert found.summary
        assert found.kinds
        names = [option.name for option in found.options]
        assert len(names) == len(set(names))
        for option in found.options:
            assert option.check(option.default) == option.default, "a default must be admissible"
            assert option.help


def test_unknown_names_name_the_nearest() -> None:
    for ask in (backend_class, backend_info, lambda name: create_backend(name, VOCAB)):
        with pytest.raises(UnknownNameError, match="no backend 'token_indx'; did you mean 'token_index'"):
            ask("token_indx")


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The entry points of other packages, to be filled by the test."""
    points: list[Any] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    registry.backend_targets.cache_clear()
    yield points
    registry.backend_targets.cache_clear()


def test_other_packages_add_backends(entry_points: list[Any]) -> None:
    entry_points.append(types.SimpleNamespace(name="count_up", value=f"{__name__}:CountUp"))
    assert backend_names() == [*BUILT_IN, "count_up"]
    assert backend_class("count_up") is CountUp
    assert create_backend("count_up", VOCAB, length=9).settings["length"] == 9


def test_two_backends_of_one_name(entry_points: list[Any]) -> None:
    entry_points.append(types.SimpleNamespace(name="token_index", value="elsewhere:TokenIndex"))
    with pytest.raises(TokdfaError, match=r"two backends are called 'token_index': .* and elsewhere:TokenIndex"):
        backend_names()


def test_a_target_that_is_no_backend(entry_points: list[Any]) -> None:
    entry_points.append(types.SimpleNamespace(name="odd", value=f"{__name__}:VOCAB"))
    with pytest.raises(TokdfaError, match=r"backend 'odd': .*:VOCAB is not a subclass of Backend"):
        backend_class("odd")


def test_missing_packages_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    info = backend_info("glrmask")
    assert (info.missing, info.installed) == (("glrmask",), False)
    assert backend_info("brute_force").installed
