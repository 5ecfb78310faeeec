"""xgrammar: its own dialect, refusals, options and cache; what all peers have in common is in `test_peers`."""

from __future__ import annotations

import pickle

import pytest

from tests.backends.peers.test_peers import BYTES, start
from tests.packages import needs
from tests.walks import accepts
from tokdfa.backends.peers.xgrammar_peer import XgrammarPeer
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema, Regex
from tokdfa.errors import RegexSyntaxError, UnsupportedConstraint
from tokdfa.vocabulary.vocabulary import Vocabulary

pytestmark = needs("xgrammar", "torch", "transformers")


def test_its_own_dialect_and_refusals() -> None:
    assert accepts(start("xgrammar", Regex("a+b"), dialect="own"), "aab")
    with pytest.raises(UnsupportedConstraint, match=r"xgrammar cannot compile .*Backreference"):
        start("xgrammar", Regex(r"(a)\1"), dialect="own")
    with pytest.raises(RegexSyntaxError):
        start("xgrammar", Regex("(a"))
    with pytest.raises(UnsupportedConstraint, match=r"xgrammar: .*a look-ahead"):
        start("xgrammar", Regex("a(?!b)"))


def test_tokens_that_spell_nothing_are_refused_without_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    empty = Vocabulary([b"a", b"", b""], end_tokens=[2])
    assert not start("xgrammar", Regex("a"), empty).allows(1)
    assert capfd.readouterr().err == ""


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


def test_its_cache_is_off_unless_asked_for() -> None:
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    one, cached = create_backend("xgrammar", vocab), create_backend("xgrammar", vocab, cache=True)
    assert one.tokenizer is cached.tokenizer  # type: ignore[attr-defined]
    assert one.compiler is not cached.compiler  # type: ignore[attr-defined]
    for backend in (one, cached):
        compiled = backend.compile(Regex("a*"))
        assert list(compiled.phases) == ["compile"]
        assert compiled.sizes["bytes"] > 0
    assert one.compiler.get_cache_size_bytes() == 0  # type: ignore[attr-defined]
    assert cached.compiler.get_cache_size_bytes() > 0  # type: ignore[attr-defined]


def test_a_pickle_holds_the_compiled_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    written = pickle.dumps(create_backend("xgrammar", BYTES).compile(Regex("a+b")))
    monkeypatch.setattr(XgrammarPeer, "compile_peer", None)
    loaded = pickle.loads(written)
    assert accepts(loaded.start(), "aab")
    assert not accepts(loaded.start(), "b")
