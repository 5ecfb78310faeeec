"""The index view: state by state beside outlines_core's, what it takes and refuses, copies and pickles."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import outlines_core
import pytest

import tokdfa
import tokdfa.guide
from tests.guide.sides import BACKENDS, END, SIDES, TOKENS, index, vocabulary, walk_both
from tests.vocabulary.vocabularies import ODD
from tokdfa.constraint import Choice, JsonSchema, Regex
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    OptionError,
    RegexSyntaxError,
    TokdfaError,
    UnknownNameError,
    VocabularyCannotSpell,
)
from tokdfa.guide import Guide, GuideError, GuideTypeError, Index, Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

sides = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.__name__)
backends = pytest.mark.parametrize("backend", BACKENDS)
#: Patterns of which outlines_core loses no text over the small vocabulary; the fewest pairs of states to be met.
EXACT = {
    "[0-9]{1,3}": 4,
    "ab*c": 3,
    "(dog|cat)s?": 7,
    "[0-2]{2}:[0-7]{2}": 6,
    "(é|a)+": 2,
    "a*b*": 3,
    "": 1,
    "(dogs?-)+(a|bb)c": 7,
    "1?1": 3,
    "[^a-c]{0,4}": 5,
}


@pytest.mark.parametrize("name", ["Guide", "Index", "Vocabulary"])
def test_names_and_arguments_are_those_of_outlines_core(name: str) -> None:
    """Ours may take more: a mask, a backend."""
    theirs, ours = getattr(outlines_core, name), getattr(tokdfa.guide, name)
    methods = {method for method in dir(theirs) if not method.startswith("_")} - {"from_binary"}
    assert len(methods) >= 5
    pairs = [(theirs, ours), *((getattr(theirs, method), getattr(ours, method)) for method in sorted(methods))]
    for their_call, our_call in pairs:
        expected = [(one.name, one.default) for one in inspect.signature(their_call).parameters.values()]
        got = [(one.name, one.default) for one in inspect.signature(our_call).parameters.values()]
        assert got[: len(expected)] == expected, our_call
        assert all(default is not inspect.Parameter.empty for _, default in got[len(expected) :] if _ != "options")


@backends
@pytest.mark.parametrize("pattern", EXACT)
def test_state_by_state(pattern: str, backend: str) -> None:
    ours, theirs = index(pattern, backend), outlines_core.Index(pattern, vocabulary(outlines_core))
    assert walk_both(ours, theirs) >= EXACT[pattern]


@sides
def test_unknown_states_and_tokens(side: Any) -> None:
    made = side.Index("ab*c", vocabulary(side)) if side is outlines_core else index("ab*c")
    start = made.get_initial_state()
    assert made.get_allowed_tokens(12345) is None
    assert made.get_next_state(12345, 4) is None
    assert made.get_next_state(state=start, token_id=99999) is None
    assert made.is_final_state(state=12345) is False
    assert isinstance(made.get_final_states(), set)
    for wrong in (
        lambda: made.get_allowed_tokens("a"),
        lambda: made.get_next_state(start, 1.0),
        lambda: made.is_final_state(None),
    ):
        with pytest.raises(TypeError):
            wrong()


@sides
@pytest.mark.parametrize(
    ("kind", "regex", "tokens"), [(ValueError, "(", TOKENS), (ValueError, "x", TOKENS), (TypeError, 3, TOKENS)]
)
def test_what_both_refuse(side: Any, kind: type[Exception], regex: Any, tokens: Any) -> None:
    options = {} if side is outlines_core else {"backend": "token_index"}
    with pytest.raises(kind):
        side.Index(regex, side.Vocabulary(END, tokens), **options)
    with pytest.raises(TypeError):
        side.Index("a", 3, **options)


@pytest.mark.parametrize(
    ("regex", "cause", "options"),
    [
        ("a(", RegexSyntaxError, {}),
        (r"[^\s\S]", EmptyLanguageError, {}),
        ("x", VocabularyCannotSpell, {}),
        ("(ab*){40}", LimitExceeded, {"max_states": 5}),
        (JsonSchema(True), LimitExceeded, {}),
    ],
)
def test_compile_errors_keep_their_cause(regex: Any, cause: type[TokdfaError], options: dict[str, Any]) -> None:
    with pytest.raises(GuideError) as caught:
        Index(regex, vocabulary(tokdfa.guide), backend="token_index", **options)
    assert isinstance(caught.value, ValueError)
    assert type(caught.value.__cause__) is cause
    assert str(caught.value) == str(caught.value.__cause__)


def test_backends_that_do_not_fit() -> None:
    vocab = vocabulary(tokdfa.guide)
    with pytest.raises(GuideError, match=r"'token_index', lazy=True keeps no table.*use tokens_dfa"):
        Index("a", vocab, backend="token_index", lazy=True)
    with pytest.raises(GuideError, match="'brute_force' keeps no table"):
        Index("a", vocab, backend="brute_force")
    with pytest.raises(UnknownNameError, match="token_index"):
        Index("a", vocab, backend="token_indx")
    with pytest.raises(UnknownNameError, match="option"):
        Index("a", vocab, backend="token_index", lazzy=True)
    with pytest.raises(OptionError):
        Index("a", vocab, backend="token_index", walk="run")
    with pytest.raises(GuideTypeError, match="pattern or a Constraint, not bytes"):
        Index(b"a", vocab, backend="token_index")  # type: ignore[arg-type]


@backends
def test_constraints_and_vocabularies_of_all_kinds(backend: str) -> None:
    expected = index("dog|cats", backend)
    for constraint in (Regex("dog|cats"), Choice(["cats", "dog"])):
        for vocab in (vocabulary(tokdfa.guide), vocabulary(tokdfa.guide).freeze()):
            assert walk_both(Index(constraint, vocab, backend=backend), expected) > 5
    tokenizer = tokdfa.load_tokenizer("bytes")
    of_tokenizer = Index("dog|cats", tokenizer, backend=backend)
    assert of_tokenizer.get_allowed_tokens(0) == [ord("c"), ord("d")]
    assert of_tokenizer.vocabulary is tokenizer.vocabulary


@backends
def test_several_end_tokens(backend: str) -> None:
    made = Index("(ab)?", ODD, backend=backend)
    assert made.get_allowed_tokens(0) == [0, 1, 3, 4, 12]
    assert made.get_transitions()[0].keys() >= {3, 12}
    assert (made.get_next_state(0, 3), made.get_next_state(0, 12)) == (None, None)


@sides
def test_equality_and_copies(side: Any) -> None:
    options = {} if side is outlines_core else {"backend": "token_index"}
    made = side.Index("(dog|cat)s?", vocabulary(side), **options)
    assert made == side.Index("(dog|cat)s?", vocabulary(side), **options)
    assert made != side.Index("(dog|cat)", vocabulary(side), **options)
    assert made != side.Index("(dog|cat)s?", side.Vocabulary(END + 1, TOKENS), **options)
    assert made != 3
    for twin in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert twin == made
        assert twin.get_transitions() == made.get_transitions()
        assert twin.get_final_states() == made.get_final_states()
    with pytest.raises(TypeError):
        hash(made)


def test_texts_that_outlines_core_loses_are_kept() -> None:
    """Its `a|ab` ends after `a`: the difference that the package's page states."""
    theirs = outlines_core.Index("a|ab", vocabulary(outlines_core))
    assert theirs.get_allowed_tokens(theirs.get_initial_state()) == TOKENS["a"]
    assert index("a|ab").get_allowed_tokens(0) == [*TOKENS["a"], *TOKENS["ab"]]


def test_anchors_and_look_ahead_are_understood() -> None:
    for pattern in ("^a$", "(?=a)[ab]"):
        with pytest.raises(ValueError, match=r"anchored|NFA"):
            outlines_core.Index(pattern, vocabulary(outlines_core))
        assert index(pattern).get_allowed_tokens(0) == TOKENS["a"]


def test_tokens_without_text_are_never_allowed() -> None:
    theirs = outlines_core.Index("a", outlines_core.Vocabulary(9, {"": [1], "a": [2]}))
    assert sorted(theirs.get_allowed_tokens(theirs.get_initial_state())) == [1, 2]
    ours = Index("a", Vocabulary(9, {"": [1], "a": [2]}), backend="token_index")
    assert ours.get_allowed_tokens(0) == [2]


def test_no_dead_ends() -> None:
    """After `ab` no token goes on; after `a` one does."""
    tokens = {"ab": [1], "a": [2], "bc": [3]}
    with pytest.raises(ValueError, match="no transitions from state"):
        outlines_core.Index("abc", outlines_core.Vocabulary(9, tokens))
    assert Index("abc", Vocabulary(9, tokens), backend="token_index").get_allowed_tokens(0) == [2]


def test_save_and_load(tmp_path: Path) -> None:
    made = index("(dog|cat)s?", backend="tokens_dfa")
    made.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index", vocabulary(tokdfa.guide))
    assert loaded == made
    assert pickle.loads(pickle.dumps(loaded)) == made
    guide = Guide(loaded)
    assert guide.get_tokens() == Guide(made).get_tokens()
    with pytest.raises(GuideError, match="compiled for the vocabulary"):
        Index.load(tmp_path / "index", ODD)
    with pytest.raises(GuideError, match="there is no file"):
        Index.load(tmp_path / "nothing", vocabulary(tokdfa.guide))
    with pytest.raises(GuideError, match="'token_index' cannot be saved; tokens_dfa can"):
        index("a", backend="token_index").save(tmp_path / "other")
