"""xgrammar: regexes and grammars against `re` and by hand, options, set-up. Schemas: `test_peers_json_schema`."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.peers.test_peers import BYTES, accepts, allowed, start
from tests.packages import needs
from tests.strategies import as_python, regex_patterns, short_texts
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import EmptyLanguageError, MissingDependency, RegexSyntaxError, TokenRefused, UnsupportedConstraint
from tokdfa.vocabulary.vocabulary import Vocabulary

pytestmark = needs("xgrammar", "torch", "transformers")


def test_exact_patterns_are_what_re_says() -> None:
    texts = short_texts(3)
    backend = create_backend("xgrammar", BYTES)

    @settings(deadline=None, derandomize=True, max_examples=100)
    @given(regex_patterns(anchors=False, look_ahead=False, boundaries=False), st.booleans())
    def check(pattern: str, search: bool) -> None:
        python = as_python(pattern)
        matching = [text for text in texts if (python.search if search else python.fullmatch)(text)]
        try:
            compiled = backend.compile(Regex(pattern, search=search, ascii_classes=True))
        except EmptyLanguageError:
            assert not matching
            return
        assert [text for text in texts if accepts(compiled.start(), text)] == matching

    check()


def test_code_points_are_written_its_way() -> None:
    backend = create_backend("xgrammar", BYTES)
    fitted = backend.fitted_pattern(Regex(r"(?i)k/")).pattern  # type: ignore[attr-defined]
    assert fitted == r"[Kk\u{212a}]\u{2f}"
    assert accepts(backend.compile(Choice(["é/", "a"])).start(), "é/")


def test_its_own_dialect_and_refusals() -> None:
    assert accepts(start("xgrammar", Regex("a+b"), dialect="own"), "aab")
    with pytest.raises(UnsupportedConstraint, match=r"xgrammar cannot compile .*Backreference"):
        start("xgrammar", Regex(r"(a)\1"), dialect="own")
    with pytest.raises(RegexSyntaxError):
        start("xgrammar", Regex("(a"))
    with pytest.raises(UnsupportedConstraint, match=r"xgrammar: .*a look-ahead"):
        start("xgrammar", Regex("a(?!b)"))


def test_grammars() -> None:
    backend = create_backend("xgrammar", BYTES)
    grammar = Grammar('list: "[" (list ("," list)*)? "]"\n', start="list")
    for text, inside in [("[]", True), ("[[],[[]]]", True), ("[[],]", False), ("", False)]:
        assert accepts(backend.compile(grammar).start(), text) == inside
    with pytest.raises(UnsupportedConstraint, match="xgrammar cannot compile"):
        backend.compile(Grammar("start: ("))


def test_options_for_schemas() -> None:
    schema = JsonSchema({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})
    more, swapped = '{"a":null,"c":1}', '{"b":null,"a":null}'
    for options, texts in [({}, [more]), ({"strict_mode": True}, []), ({"any_order": True}, [more, swapped])]:
        compiled = create_backend("xgrammar", BYTES, **options).compile(schema)
        assert [text for text in (more, swapped) if accepts(compiled.start(), text)] == texts
    lists, tight, spaced = {"type": "array", "items": {"type": "null"}}, "[null,null]", "[null, null]"
    for separator, text in [(",", tight), (", ", spaced)]:
        made = create_backend("xgrammar", BYTES).compile(
            JsonSchema(lists, whitespace="compact", item_separator=separator)
        )
        assert [one for one in (tight, spaced) if accepts(made.start(), one)] == [text]


def test_refused_tokens_and_the_way_back(capfd: pytest.CaptureFixture[str]) -> None:
    matcher = start("xgrammar", Regex("ab?"))
    assert allowed(matcher) == [97, 257]
    for wrong in (98, 256, 258, -1, BYTES.size, 1 << 40):
        with pytest.raises(TokenRefused):
            matcher.advance(wrong)
        assert not matcher.allows(wrong)
    assert allowed(matcher) == [97, 257]
    assert matcher.allows(257)
    matcher.advance(97)
    twin = matcher.fork()
    twin.advance(98)
    assert allowed(matcher) == [98, 256, 258]
    assert allowed(twin) == [256, 258]
    twin.rollback(2)
    assert allowed(twin) == [97, 257]
    assert matcher.counters == twin.counters == {}, "nothing was taken again"
    empty = Vocabulary([b"a", b"", b""], end_tokens=[2])
    assert not start("xgrammar", Regex("a"), empty).allows(1)
    assert capfd.readouterr().err == "", "no warning for a token that spells nothing"


def test_objects_of_a_vocabulary_are_made_once_and_let_go() -> None:
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    one, other = create_backend("xgrammar", vocab), create_backend("xgrammar", vocab)
    cached = create_backend("xgrammar", vocab, cache=True)
    assert one.compiler is other.compiler  # type: ignore[attr-defined]
    assert one.tokenizer is cached.tokenizer  # type: ignore[attr-defined]
    assert one.compiler is not cached.compiler  # type: ignore[attr-defined]
    assert one.setup_seconds == other.setup_seconds > 0  # type: ignore[attr-defined]
    for backend in (one, cached):
        compiled = backend.compile(Regex("a*"))
        assert list(compiled.phases) == ["compile"]
        assert compiled.sizes["bytes"] > 0
    assert one.compiler.get_cache_size_bytes() == 0  # type: ignore[attr-defined]
    assert cached.compiler.get_cache_size_bytes() > 0  # type: ignore[attr-defined]
    gone = weakref.ref(vocab)
    del vocab, one, other, cached, backend, compiled
    gc.collect()
    assert gone() is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tokdfa\[xgrammar\]'"):
        create_backend("xgrammar", BYTES)
