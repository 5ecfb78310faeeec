"""Builder: equal instructions are one place. Printing: every instruction is written once."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tokdfa.grammar.cfg import SpecialTokens
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.program.form import ANY, CALL, RETURN, RETURN_PLACE, TEXT, TOKEN, Text
from tokdfa.program.form_builder import FormBuilder
from tokdfa.program.lower import lower_grammar
from tokdfa.program.printing import format_form


def a_text(key=b"k", lazy=False):
    def make():
        raise AssertionError("nobody reads this text")

    return Text("label", key, make, lazy)


def test_instructions_are_numbered_and_shared():
    builder = FormBuilder()
    text, frame = builder.text(a_text()), builder.frame("f")
    read = builder.read(text, RETURN_PLACE)
    call = builder.call(frame, read)
    assert builder.read(text, RETURN_PLACE) == read
    assert builder.call(frame, read) == call
    assert builder.call(frame, RETURN_PLACE) not in (read, call)
    builder.enter(frame, read)
    form = builder.build(call)
    assert form.code.tolist() == [[RETURN, 0, 0], [TEXT, 0, 0], [CALL, 0, read], [CALL, 0, 0]]
    assert form.code.dtype == form.entries.dtype == form.alternatives.dtype == np.int32
    assert (form.entries.tolist(), list(form.frame_names), form.start) == ([read], ["f"], call)
    assert (form.skip, form.longest) == (-1, False)


def test_texts_are_known_by_key_and_laziness():
    builder = FormBuilder()
    assert [builder.text(text) for text in (a_text(), a_text(b"other"), a_text(), a_text(lazy=True))] == [0, 1, 0, 2]
    assert len(builder.build(0).texts) == 3


def test_token_sets_are_known_by_content():
    builder = FormBuilder()
    names, ranges = SpecialTokens(names=("<x>",)), SpecialTokens(ranges=((3, 4),))
    places = [builder.take(one, RETURN_PLACE) for one in (names, ranges, SpecialTokens(names=("<x>",)))]
    assert places == [1, 2, 1]
    form = builder.build(1)
    assert form.token_sets == (names, ranges)
    assert form.code[1:].tolist() == [[TOKEN, 0, 0], [TOKEN, 1, 0]]


def test_alternatives_are_sets():
    builder = FormBuilder()
    places = [builder.read(builder.text(a_text(key)), RETURN_PLACE) for key in (b"a", b"b", b"c")]
    assert builder.any_of([places[1], places[1]]) == places[1]
    two = builder.any_of([places[2], places[0], places[2]])
    assert builder.any_of([places[0], places[2]]) == two
    three = builder.any_of(places)
    form = builder.build(three)
    for place, expected in ((two, [places[0], places[2]]), (three, places)):
        operation, begin, end = form.code[place].tolist()
        assert operation == ANY
        assert form.alternatives[begin:end].tolist() == expected


@pytest.mark.parametrize("longest", [False, True])
def test_printing(longest):
    cfg = read_lark('start: "(" start ")" | A x | <|end|>\nx[lazy]: /.*;/\nA: "a"+\n%ignore " "\n')
    form = lower_grammar(cfg, longest=longest)
    printed = format_form(form)
    assert printed.splitlines()[0].startswith(f"{len(form.code)} instructions, {len(form.entries)} frames")
    assert ("longest match" in printed) == longest
    assert ("between lexemes:" in printed) == longest
    assert sorted(map(int, re.findall(r"^ +(\d+) ", printed, flags=re.MULTILINE))) == list(range(len(form.code)))
    for said in ("call start", "any of", "the shortest", "token <|end|>", "return", "text A"):
        assert said in printed, said
