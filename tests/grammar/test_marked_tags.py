"""Tags whose texts hold markers: tokens where the vocabulary has them, text elsewhere."""

from __future__ import annotations

import pytest

import tokdfa
from tokdfa.grammar.marked_tags import marked_tag, marked_text
from tokdfa.grammar.parts import json, tags

OPEN, CLOSE, STOP, END = 256, 257, 258, 259
#: Bytes, two markers that a file does not flag, and an end token with the name of one.
VOCAB = tokdfa.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b""],
    [STOP, END],
    {OPEN: "<tool_call>", CLOSE: "</tool_call>", STOP: "<|im_end|>"},
)
BYTES = tokdfa.load_tokenizer("bytes")


def takes(part: object, tokens: list[int], vocab: tokdfa.Vocabulary = VOCAB) -> bool:
    matcher = tokdfa.compile(tokdfa.Grammar(str(part)), vocab).start()
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.can_end()


def test_a_tag_of_markers() -> None:
    def made(vocab: tokdfa.Vocabulary) -> object:
        return tags(
            marked_tag("<tool_call>\n", json({"const": 1}), "\n</tool_call>", vocab=vocab, trigger="<tool_call>")
        )

    call = [OPEN, *b"\n1\n", CLOSE]
    assert takes(made(VOCAB), [*b"so: ", *call, *b" and ", *call])
    assert not takes(made(VOCAB), [OPEN, *b"1\n", CLOSE])
    assert not takes(made(VOCAB), [*b"a", CLOSE])
    # the characters of a marker are text, which begins no tag
    assert takes(made(VOCAB), [*b"<tool_call>1"])
    assert takes(made(BYTES.vocabulary), [*b"so: <tool_call>\n1\n</tool_call>"], BYTES.vocabulary)
    assert not takes(made(BYTES.vocabulary), [*b"<tool_call>\n2"], BYTES.vocabulary)


def test_regions_up_to_a_marker_and_other_places_of_markers() -> None:
    region = marked_tag("<tool_call>", None, "</tool_call>", vocab=VOCAB)
    assert takes(region, [OPEN, *b"any </tool_call>", CLOSE])
    assert not takes(region, [OPEN, *b"any"])
    behind = marked_tag("<tool_call>x", None, "</tool_call>", vocab=VOCAB)
    assert takes(behind, [OPEN, *b"x any", CLOSE])
    assert takes(marked_tag("<tool_call>", None, "</tool_call>!", vocab=VOCAB), [OPEN, *b"a</tool_call>!"])
    named = marked_tag("call <tool_call>", "1", "", vocab=VOCAB, trigger="call")
    assert takes(named, [*b"call ", OPEN, *b"1"])
    # else a blank alone would begin the tag
    assert takes(marked_tag(" <tool_call>", "1", "", vocab=VOCAB, trigger=" <tool_call>"), [*b" <tool_call>1"])
    assert takes(marked_tag("a", "1", "<|im_end|>", vocab=VOCAB), [*b"a1"]), "the text may end there"


def test_texts_with_markers() -> None:
    part = marked_text("a<tool_call>b<|im_end|>", VOCAB)
    assert takes(part, [*b"a", OPEN, *b"b"])
    assert not takes(part, [*b"a<tool_call>b"])
    with pytest.raises(tokdfa.TokdfaError, match="a tag's text"):
        marked_text(3, VOCAB)  # type: ignore[arg-type]
