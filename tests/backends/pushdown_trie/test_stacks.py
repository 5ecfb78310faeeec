"""Return stacks: what they say is still to come, when they are one, and how many there are.

A stack stands for a set of continuations. `continuations` writes them out, so that stacks can be compared with what
was expected by hand, and stacks that groups (left recursion) make with those that calls make one by one.
"""

from __future__ import annotations

import pytest

from tests.backends.pushdown_trie import LEXERS, accepts, machine_of
from tokdfa.backends.pushdown_trie.stacks import ROOT
from tokdfa.program.form import CALL, OPERATION, TEXT


def continuations(machine, stack, depth):
    """The sequences of places to return to, as tuples, cut after `depth` of them; () is the end of the text."""
    if stack == ROOT or depth == 0:
        return {()}
    return {
        (place, *rest) for place, below in machine.stack(stack) for rest in continuations(machine, below, depth - 1)
    }


def label(machine, place):
    """What stands at a place: the label of the text that is read there, or the operation."""
    operation, first, _ = machine.form.code[place].tolist()
    return machine.form.texts[first].label if operation == TEXT else operation


def owed(machine, text, depth=6):
    """Per live item of the row after `text`: its text's label and what is still to be read after it."""
    row = machine.run_text(text)
    assert row >= 0
    return {
        (label(machine, place), tuple(label(machine, later) for later in sequence))
        for place, _, stack in machine.items(row)
        for sequence in continuations(machine, stack, depth)
    }


A, B, DOT, OPEN, CLOSE, PLUS = '"a"', '"b"', '"."', '"("', '")"', '"+"'


def test_what_is_owed_in_nesting():
    machine = machine_of('start: "(" start ")" | "a"\n')
    assert owed(machine, b"") == {(OPEN, ()), (A, ())}
    assert owed(machine, b"((") == {(OPEN, (CLOSE, CLOSE)), (A, (CLOSE, CLOSE))}
    assert owed(machine, b"((a)") == {(CLOSE, ())}
    assert accepts(machine, b"((a))")
    assert owed(machine, b"((a))") == set()


@pytest.mark.parametrize("lexer", LEXERS)
def test_stacks_come_back(lexer):
    """The stacks of ten levels are those of the first descents, however often one goes down again."""
    machine, text = machine_of('start: ("(" start ")")*\n', lexer), b"(" * 10 + b")" * 10 + b"(()()(()))"
    assert accepts(machine, text * 2)
    stacks = machine.stack_count
    assert accepts(machine, text * 20)
    assert machine.stack_count == stacks


def test_tail_calls_leave_no_stack():
    """Right recursion, and a chain of rules that end with each other."""
    machine = machine_of('start: "a" x | "."\nx: "b" y\ny: "a" start | "b" x\n')
    assert accepts(machine, b"abaabbba" * 250 + b".")
    assert machine.stack_count == 1
    assert owed(machine, b"ab") == {(A, ()), (B, ())}


def test_a_call_with_something_behind_it_is_no_tail_call():
    machine = machine_of('start: "a" x "."\nx: "b" y\ny: "a" | "b" x\n')
    for size in range(1, 200):
        assert accepts(machine, b"a" + b"b" * 2 * size + b"ba.")
    assert machine.stack_count == 2


def test_callers_are_merged():
    """One frame called from three places at one point of the text: one item, a stack of three entries."""
    machine = machine_of('start: x "a" | x "b" | "(" | y\ny: x "."\nx: "c" "d"\n')
    row = machine.run_text(b"c")
    ((_, _, stack),) = machine.items(row)
    assert len(machine.stack(stack)) == 3
    assert {rest for _, rest in machine.stack(stack)} == {ROOT}
    assert owed(machine, b"c") == {('"d"', (A,)), ('"d"', (B,)), ('"d"', (DOT,))}
    assert owed(machine, b"cd") == {(A, ()), (B, ()), (DOT, ())}


def test_callers_of_different_depth_are_merged():
    machine = machine_of('start: x "a" | y "b"\ny: x "." | z\nz: x "+"\nx: "c" "d"\n')
    assert owed(machine, b"c") == {('"d"', (A,)), ('"d"', (DOT, B)), ('"d"', (PLUS, B))}
    for tail, taken in ((b"a", True), (b".b", True), (b"+b", True), (b".", False), (b"b", False), (b".a", False)):
        assert accepts(machine, b"cd" + tail) == taken


def test_left_recursion_refers_to_itself():
    """After e: e "+" a | a has read an a, any number of "+" a may follow: one stack whose rest it is itself."""
    machine = machine_of('start: e "."\ne: e "+" "a" | "a" "b"\n')
    ((_, _, stack),) = machine.items(machine.run_text(b"a"))
    assert sorted(rest for _, rest in machine.stack(stack)) == sorted([ROOT, stack])
    assert {tuple(label(machine, place) for place in one) for one in continuations(machine, stack, 3)} == {
        (DOT,),
        (PLUS, DOT),
        (PLUS, PLUS, DOT),
        (PLUS, PLUS, PLUS),
    }


def test_groups_of_frames_that_call_each_other():
    """Three frames in a ring, two ways around: what is owed is found the same from each of them."""
    machine = machine_of('start: x "."\nx: y "a" | "c" "d"\ny: z "b" | x "+"\nz: x | y ")"\n')
    expected = {(DOT,), (A, PLUS), (A, B), (A, CLOSE)}
    texts = [b"cd.", b"cdba.", b"cd+a.", b"cd+)ba.", b"cd+)b)ba+a.", b"cdba+a.", b"cdbaba."]
    for text in texts:
        assert accepts(machine, text), text
    for text in (b"cda.", b"cdb.", b"cd)ba.", b"cd+.", b"cd+)a."):
        assert not accepts(machine, text), text
    stacks = machine.stack_count
    assert all(accepts(machine, text) for text in texts)
    assert machine.stack_count == stacks
    behind = {one[1][:1] for one in owed(machine, b"c", 3)}
    assert behind <= {first[:1] for first in expected} | {(B,), (PLUS,), (CLOSE,)}
    assert (DOT,) in behind


def test_tail_calls_in_a_group():
    """x: y and y: x are tail calls within the group; the others are not."""
    machine = machine_of('start: x "."\nx: y | y "a" | "c" "d"\ny: x | x "b"\n')
    for text in (b"cd.", b"cda.", b"cdb.", b"cdba.", b"cdbbaab."):
        assert accepts(machine, text), text
    ((_, _, stack),) = machine.items(machine.run_text(b"c"))
    assert {label(machine, place) for place, _ in machine.stack(stack)} == {A, B, DOT}


def test_stacks_are_found_again_after_growth():
    """Deep enough for every table to be made anew; the same text then makes nothing."""
    machine = machine_of('start: "(" start ")" | "[" e "]" |\ne: e start "," | "x"\n', "any")
    text = b"(" * 300 + b"[x" + b"(),[x]," * 200 + b"]" + b")" * 300
    assert accepts(machine, text)
    before = machine.stack_count, machine.row_count
    assert accepts(machine, text)
    assert (machine.stack_count, machine.row_count) == before
    assert machine.stack_count < 320


def test_stacks_with_equal_entries_are_one():
    machine = machine_of('start: x "."\nx: "(" x ")" | "(" y "]" | "a" "b"\ny: x "," x | x ";"\n')
    for text in (b"((ab,(ab))].", b"((ab;]).", b"(((ab;];](ab).", b"(((ab))).", b"((((ab,ab];];]);]."):
        machine.run_text(text)
    contents = [tuple(machine.stack(stack)) for stack in range(1, machine.stack_count)]
    assert len(contents) > 8
    assert len(set(contents)) == len(contents)
    for content in contents:
        assert list(content) == sorted(set(content))


def test_many_callers():
    """600 callers of one frame at once: the entries outgrow every scratch array."""
    count = 600
    rules = " | ".join(f'x "{number:03d}"' for number in range(count))
    machine = machine_of(f'start: {rules}\nx: "c" "d"\n')
    ((_, _, stack),) = machine.items(machine.run_text(b"c"))
    assert len(machine.stack(stack)) == count
    assert accepts(machine, b"cd599")
    assert machine.run_text(b"cd600") == -1
    assert machine.stack_count == 2


def test_groups_of_many_frames():
    """A ring of 200 frames, each of which may also begin the text."""
    count = 200
    ring = "".join(f'x{number}: x{(number + 1) % count} "{number:03d}" | "c" "d"\n' for number in range(count))
    machine = machine_of(f'start: x0 "."\n{ring}')
    assert accepts(machine, b"cd.")
    assert accepts(machine, b"cd002001000.")
    assert accepts(machine, b"cd" + b"".join(b"%03d" % (number % count) for number in range(399, -1, -1)) + b".")
    assert not accepts(machine, b"cd001002.")
    assert machine.stack_count <= count + 2


def test_every_call_is_made_with_its_own_return():
    """The machine's calls are those of the form: no place of a stack is anything but what follows a CALL."""
    machine = machine_of('start: e "."\ne: e "+" e | "(" e ")" | "a"\n')
    accepts(machine, b"(a+(a)+a).")
    returns = {int(second) for operation, _, second in machine.form.code.tolist() if operation == CALL}
    places = {place for stack in range(1, machine.stack_count) for place, _ in machine.stack(stack)}
    assert places
    assert places <= returns
    assert (machine.form.code[:, OPERATION] == CALL).sum() >= 4
