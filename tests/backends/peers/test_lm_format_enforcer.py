"""lm-format-enforcer: characters over several tokens, faults turned into errors, memory."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.backends.peers.test_peers import BYTES
from tests.packages import needs
from tests.walks import accepts
from tests.walks import mask_of as allowed
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema, Regex
from tokdfa.errors import TokenRefused, UnsupportedConstraint
from tokdfa.vocabulary.vocabulary import Vocabulary

pytestmark = needs("lm-format-enforcer")

#: All bytes, the two halves of a character with something around them, and whole characters.
TEXTS = [b"caf\xc3", b"\xa9 ", "é".encode(), "naïve".encode(), b'": ', b'"}', "日日".encode(), b"", b"", b"1."]
PIECES = Vocabulary([*(bytes([byte]) for byte in range(256)), *TEXTS], end_tokens=[263, 264], size=300, name="pieces")
STRING = {"type": "string"}


def compiled(schema: Any, vocab: Vocabulary = BYTES) -> Any:
    return create_backend("lm_format_enforcer", vocab).compile(JsonSchema(schema))


def test_characters_over_several_tokens() -> None:
    matcher = compiled(STRING, PIECES).start()
    for token in (ord('"'), 256, 257, 258, 0xC3, 0xA9, 262, ord('"')):  # "café éé日日"
        assert token in allowed(matcher)
        matcher.advance(token)
    assert matcher.can_end()
    assert {263, 264} <= set(allowed(matcher))
    assert matcher.counters["packing_ns"] > 0


def test_a_character_that_begins_no_token_ends_the_value() -> None:
    """A fault that its module declares: the text is no JSON then."""
    matcher = compiled(STRING, PIECES).start()
    for token in (ord('"'), *"ï".encode()):
        assert not matcher.can_end()
        matcher.advance(token)
    assert matcher.can_end()


# Faults.


def test_what_it_only_logs_becomes_an_error(capfd: pytest.CaptureFixture[str], caplog: Any) -> None:
    """A node without a type: lm-format-enforcer meets it when the text gets there, and offers the end of the text."""
    handlers, filters = list(logging.root.handlers), list(logging.root.filters)
    matcher = compiled({"type": "object", "properties": {"a": {}}}).start()
    for token in b'{"a"':
        matcher.advance(token)
    for _ in range(2):  # it must not get used to it
        with pytest.raises(
            UnsupportedConstraint, match=r"lm-format-enforcer cannot go on with .*Unsupported type None"
        ):
            allowed(matcher)
        with pytest.raises(UnsupportedConstraint, match="Unsupported type None"):
            matcher.advance(ord(":"))
    matcher.rollback(1)
    assert allowed(matcher) == [ord('"')]
    assert (logging.root.handlers, logging.root.filters) == (handlers, filters)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_a_fault_while_compiling() -> None:
    with pytest.raises(UnsupportedConstraint, match=r"lm-format-enforcer cannot compile .*Unsupported type None"):
        compiled({"title": "anything"})
    with pytest.raises(UnsupportedConstraint, match="not True"):
        compiled(True)
    assert not create_backend("lm_format_enforcer", BYTES).supports(Regex("a"))


# Memory.


def test_matchers_share_what_is_known_and_go_back_for_nothing() -> None:
    constraint = compiled(STRING)
    first = constraint.start()
    for token in b'"abc':
        first.advance(token)
    allowed(first)
    known = len(constraint.enforcer.prefix_states)
    second = constraint.start()
    for token in b'"ab':
        second.advance(token)
    fork = second.fork()
    fork.advance(ord("c"))
    assert allowed(fork) == allowed(first)
    fork.rollback(3)
    with pytest.raises(TokenRefused):
        fork.advance(BYTES.end_tokens[0])
    assert len(constraint.enforcer.prefix_states) == known == 5
    assert "tokens_replayed" not in fork.counters


def test_threads_share_a_compiled_constraint() -> None:
    constraint = compiled({"type": "array", "items": {"enum": ["aa", "ab", "b"]}})
    texts = ['["aa", "b"]', '["ab","ab","aa"]', "[]", '[ "b" ]', '["c"]', "[", '["aa" "b"]'] * 4
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: accepts(constraint.start(), text), texts))
    assert found == [True, True, True, True, False, False, False] * 4


def test_patterns_have_the_characters_of_their_own_vocabulary() -> None:
    """Its automata of patterns are shared by all parsers of the process, with the characters of the first."""
    pattern = {"type": "string", "pattern": "^.$"}
    ascii_only = Vocabulary([*(bytes([byte]) for byte in range(128)), b""], end_tokens=[128])
    assert not accepts(compiled(pattern, ascii_only).start(), "é")
    taken = compiled(pattern, PIECES).start()
    for token in (ord('"'), 258, ord('"')):
        taken.advance(token)
    assert taken.can_end()
