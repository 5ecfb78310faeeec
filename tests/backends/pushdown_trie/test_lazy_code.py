"""Code that is written when it is needed: the same language as code written at once, by however many machines."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.backends.pushdown_trie import accepts
from tests.backends.pushdown_trie.json_programs import TOKENS, check_same, machine_for, text_of
from tokdfa import mask as masks
from tokdfa.backends.base import Phases
from tokdfa.backends.pushdown_trie import automaton_table
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Choice
from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.program import builder as builders
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.printing import format_program
from tokdfa.program.program import LAZY, OPERATION, RETURN_PLACE
from tokdfa.program.program_file import read_program, write_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    import numpy.typing as npt

    from tokdfa.program.builder import Program


def nested_program(depth: int, lazy: bool, made: Counter | None = None) -> Program:
    """Objects of one key, `depth` deep, each with other names, texts and a frame of its own; then a string."""
    builder = ProgramBuilder()

    def write(level: int) -> int:
        if made is not None:
            made[level] += 1
        frame = builder.frame(f"level {level}")
        if level == depth:
            builder.enter(frame, builder.counted(1, 3, RETURN_PLACE))
            return builder.call(frame, RETURN_PLACE)
        close = builder.read(builder.terminal(text_of(b"}")), RETURN_PLACE)
        inner = builder.lazy(lambda: write(level + 1)) if lazy else write(level + 1)
        value = builder.frame(f"value {level}")
        builder.enter(value, inner)
        after = builder.read(builder.terminal(text_of(b":", b": " + b"x" * (level % 3))), builder.call(value, close))
        table = builder.name_table(tuple(f"{letter}{level}" for letter in "abcdef"))
        other = builder.read(builder.string_terminal, close)
        key = builder.names(table, 0, level % 6, [after] * (level % 6 + 1), other if level % 2 else -1)
        builder.enter(frame, builder.any_of([builder.read(builder.terminal(text_of(b"{")), key), close]))
        return builder.call(frame, RETURN_PLACE)

    return builder.build(builder.lazy(lambda: write(0)) if lazy else write(0))


def text_for(depth: int) -> bytes:
    """A text of `nested_program`."""
    return b"".join(b'{"a%d":' % level for level in range(depth)) + b'"xy"' + b"}" * depth


def test_nothing_is_written_before_it_is_needed():
    made: Counter = Counter()
    program = nested_program(40, True, made)
    assert program.code[:, OPERATION].tolist() == [0, LAZY]
    assert "not written yet" in format_program(program)
    machine = machine_for(program)
    assert not made
    row = machine.run_text(b'{"a0":{"a1":{')
    assert sorted(made) == [0, 1, 2]
    assert machine.run_text(b'{"a0":{"a1x"') > 0
    assert machine.run_text(b'{"b') < 0
    assert sorted(made) == [0, 1, 2]
    assert accepts(machine, text_for(40))
    assert sorted(made) == list(range(41))
    assert max(made.values()) == 1
    assert row == machine.run_text(b'{"a0":{"a1":{')
    assert LAZY not in program.code[:, OPERATION]
    assert len(program.code) > 2


@pytest.mark.parametrize("depth", [1, 7])
def test_masks_are_those_of_code_written_at_once(depth):
    for seed in range(8):
        check_same(nested_program(depth, True), nested_program(depth, False), TOKENS, seed, 25)


def test_errors_pass_through_and_leave_everything_usable():
    builder, ready = ProgramBuilder(), []

    def make() -> int:
        if not ready:
            builder.terminal(text_of(b"left behind"))
            raise EmptyLanguageError("no, not yet")
        return builder.read(builder.terminal(text_of(b"b")), RETURN_PLACE)

    start = builder.read(builder.terminal(text_of(b"a")), builder.lazy(make))
    compiled = compile_program(builder.build(start))
    matcher = compiled.start()
    matcher.advance(ord("a"))
    out = masks.allocate_mask(TOKENS.size)
    for _ in range(2):
        with pytest.raises(EmptyLanguageError, match="not yet"):
            matcher.fill_mask(out)
        with pytest.raises(EmptyLanguageError, match="not yet"):
            matcher.can_end()
    assert compiled.start().allows(ord("a"))
    ready.append(True)
    matcher.fill_mask(out)
    assert masks.mask_to_ids(out).tolist() == [ord("b")]
    matcher.advance(ord("b"))
    assert matcher.can_end()


def following(machine: Machine, text: bytes) -> list[npt.NDArray[np.bool_]]:
    """Which bytes may follow each beginning of a text that is taken."""
    rows = [machine.run_text(text[:end]) for end in range(len(text))]
    return [machine.following_rows(row) >= 0 for row in rows if row >= 0]


def test_an_interrupt_leaves_everything_usable():
    """One at each line that writes code, or makes automata for it, while a text is read: what is read is the same."""
    modules, text = (automaton_table.__file__, __file__), text_for(3)
    depth, at, is_done = 4, 0, False
    pool = Pool(TOKENS)
    whole = Machine(nested_program(depth, False), pool)
    expected = following(whole, text)

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal left
        left -= event == "line"
        if left == 0:
            raise KeyboardInterrupt
        return trace if frame.f_code.co_filename in modules else None

    while not is_done:
        at, left = at + 1, at + 1
        machine = Machine(nested_program(depth, True), pool)
        sys.settrace(trace)
        try:
            machine.run_text(text)
            is_done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert all(map(np.array_equal, following(machine, text), expected)), at
    assert at > 50


def compile_program(program: Program, vocab=TOKENS, **options) -> CompiledPushdown:
    return CompiledPushdown(
        Choice(["later"]), vocab, program, dict(PushdownTrie(vocab, shared=False, **options).settings), Phases()
    )


def test_saving_writes_all(tmp_path: Path, monkeypatch):
    compiled = compile_program(nested_program(5, True))
    compiled.save(tmp_path / "program.npz")
    loaded = CompiledPushdown.load(tmp_path / "program.npz", TOKENS)
    assert not loaded.program.source.makes
    for seed in range(4):
        check_same(loaded.program, nested_program(5, False), TOKENS, seed, 20)
    builder = ProgramBuilder()
    key = builder.terminal(text_of(b"a"))

    def endless() -> int:
        return builder.any_of([RETURN_PLACE, builder.read(key, builder.lazy(endless))])

    monkeypatch.setattr(builders, "MAX_WRITTEN", 1000)
    program = builder.build(builder.lazy(endless))
    with pytest.raises(UnsupportedConstraint, match="more than 1000"):
        write_program(tmp_path / "endless.npz", program, Choice(["later"]), {})
    assert accepts(machine_for(program), b"a" * 2000)


def test_forged_arguments_are_refused(tmp_path: Path):
    """Whatever number is put anywhere in the arguments: an error, or a program that runs."""
    from tokdfa.errors import SavedIndexError

    program = nested_program(2, False)
    path = tmp_path / "program.npz"
    refused = 0
    for place in range(len(program.arguments)):
        for value in (-2, -1, 0, 3, 1000, 2**31 - 1):
            wrong = nested_program(2, False)
            wrong.source.arguments[place] = value
            write_program(path, wrong, Choice(["later"]), {})
            try:
                read, *_ = read_program(path)
            except SavedIndexError:
                refused += 1
                continue
            machine = machine_for(read)
            for text in (text_for(2), b'{"b0":{"zz"}}', b'{"a0":{"a1":"x'):
                machine.run_text(text)
    assert refused > 2 * len(program.arguments)
