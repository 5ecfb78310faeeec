"""Return stacks: when they are one, and how many there are: the numbers are part of what is promised."""

from __future__ import annotations

import pytest

from tests.backends.pushdown_trie import LEXERS, accepts, machine_of


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


def test_a_call_with_something_behind_it_is_no_tail_call():
    machine = machine_of('start: "a" x "."\nx: "b" y\ny: "a" | "b" x\n')
    for size in range(1, 200):
        assert accepts(machine, b"a" + b"b" * 2 * size + b"ba.")
    assert machine.stack_count == 2


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
