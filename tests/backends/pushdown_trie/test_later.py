"""Code that is written when it is needed: the same language as code written at once, by however many machines."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.backends.pushdown_trie import accepts
from tests.backends.pushdown_trie.json_forms import TOKENS, check_same, machine_for, text_of
from tokdfa import mask as masks
from tokdfa.backends.base import Phases
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.program import Program
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Choice
from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.program import form as forms
from tokdfa.program.form import LATER, OPERATION, RETURN_PLACE
from tokdfa.program.form_builder import FormBuilder
from tokdfa.program.form_file import read_form, write_form
from tokdfa.program.printing import format_form

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.program.form import Form


def nested_form(depth: int, lazy: bool, made: Counter | None = None) -> Form:
    """Objects of one key, `depth` deep, each with other names, texts and a frame of its own; then a string."""
    builder = FormBuilder()

    def write(level: int) -> int:
        if made is not None:
            made[level] += 1
        frame = builder.frame(f"level {level}")
        if level == depth:
            builder.enter(frame, builder.counted(1, 3, RETURN_PLACE))
            return builder.call(frame, RETURN_PLACE)
        close = builder.read(builder.text(text_of(b"}")), RETURN_PLACE)
        inner = builder.later(lambda: write(level + 1)) if lazy else write(level + 1)
        value = builder.frame(f"value {level}")
        builder.enter(value, inner)
        after = builder.read(builder.text(text_of(b":", b": " + b"x" * (level % 3))), builder.call(value, close))
        table = builder.name_table(tuple(f"{letter}{level}" for letter in "abcdef"))
        other = builder.read(builder.string_text, close)
        key = builder.names(table, 0, level % 6, [after] * (level % 6 + 1), other if level % 2 else -1)
        builder.enter(frame, builder.any_of([builder.read(builder.text(text_of(b"{")), key), close]))
        return builder.call(frame, RETURN_PLACE)

    return builder.build(builder.later(lambda: write(0)) if lazy else write(0))


def text_for(depth: int) -> bytes:
    """A text of `nested_form`."""
    return b"".join(b'{"a%d":' % level for level in range(depth)) + b'"xy"' + b"}" * depth


def test_nothing_is_written_before_it_is_needed():
    made: Counter = Counter()
    form = nested_form(40, True, made)
    assert form.code[:, OPERATION].tolist() == [0, LATER]
    assert "not written yet" in format_form(form)
    machine = machine_for(form)
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
    assert LATER not in machine.form.code[:, OPERATION]
    assert machine.form is form.newest() or len(machine.form.code) == len(form.newest().code)
    assert len(form.code) == 2, "a form stays as it is"


@pytest.mark.parametrize("depth", [1, 7])
def test_masks_are_those_of_code_written_at_once(depth):
    for seed in range(8):
        check_same(nested_form(depth, True), nested_form(depth, False), TOKENS, seed, 25)


def test_several_machines_of_one_form():
    """In one pool and in others, in turn: each takes what others have had written, and the arrays that it needs."""
    made: Counter = Counter()
    form, plain = nested_form(30, True, made), machine_for(nested_form(30, False))
    pool = Pool(TOKENS)
    program = Program(form, pool.automata)
    first, second = Machine(form, pool, linked=program), Machine(form, pool, linked=program)
    machines = [first, second, machine_for(form), Machine(form, pool)]
    text = text_for(30)
    rows = [0] * 4
    for position in range(len(text)):
        numbers = list(range(len(machines)))
        for number in numbers if position // 7 % 2 else reversed(numbers):
            rows[number] = machines[number].step(rows[number], text[position])
        assert min(rows) >= 0
        if position % 50 == 7:
            machines.append(Machine(form, pool, linked=program))
            rows.append(machines[-1].run_text(text[: position + 1]))
            assert rows[-1] >= 0
            for byte in range(256):
                expected = plain.run_text(text[: position + 1] + bytes([byte])) >= 0
                assert {machine.step(row, byte) >= 0 for machine, row in zip(machines, rows, strict=True)} == {expected}
    assert all(machine.can_end(row) for machine, row in zip(machines, rows, strict=True))
    assert max(made.values()) == 1


def test_errors_pass_through_and_leave_everything_usable():
    builder, ready = FormBuilder(), []

    def make() -> int:
        if not ready:
            builder.text(text_of(b"left behind"))
            raise EmptyLanguageError("no, not yet")
        return builder.read(builder.text(text_of(b"b")), RETURN_PLACE)

    start = builder.read(builder.text(text_of(b"a")), builder.later(make))
    compiled = compile_form(builder.build(start))
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


def compile_form(form: Form, vocab=TOKENS, **options) -> CompiledPushdown:
    return CompiledPushdown(
        Choice(["later"]), vocab, form, dict(PushdownTrie(vocab, shared=False, **options).settings), Phases()
    )


def test_new_tables_of_a_constraint_share_what_is_written():
    """Matchers that move to new tables, and those that stay."""
    made: Counter = Counter()
    compiled = compile_form(nested_form(60, True, made))
    old, out = compiled.start(), masks.allocate_mask(TOKENS.size)
    for number, byte in enumerate(text_for(60)):
        if number % 90 == 40:
            compiled.renew(compiled.epoch)
            young = compiled.start()
            for before in text_for(60)[:number]:
                young.advance(before)
            young.fill_mask(out)
        old.advance(byte)
        old.fill_mask(out)
    assert old.can_end()
    assert max(made.values()) == 1


def test_threads_that_need_the_same_code():
    made: Counter = Counter()
    form = nested_form(50, True, made)
    compiled = [compile_form(form) for _ in range(2)]
    failures: list[object] = []

    def read(which: int) -> None:
        matcher = compiled[which % 2].start()
        try:
            for byte in text_for(50):
                matcher.advance(byte)
            if not matcher.can_end():
                failures.append(which)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert max(made.values()) == 1


def test_saving_writes_all(tmp_path: Path, monkeypatch):
    compiled = compile_form(nested_form(5, True))
    compiled.save(tmp_path / "form.npz")
    loaded = CompiledPushdown.load(tmp_path / "form.npz", TOKENS)
    assert loaded.form.source is None
    for seed in range(4):
        check_same(loaded.form, nested_form(5, False), TOKENS, seed, 20)
    builder = FormBuilder()
    key = builder.text(text_of(b"a"))

    def endless() -> int:
        return builder.any_of([RETURN_PLACE, builder.read(key, builder.later(endless))])

    monkeypatch.setattr(forms, "MAX_WRITTEN", 1000)
    form = builder.build(builder.later(endless))
    with pytest.raises(UnsupportedConstraint, match="more than 1000"):
        write_form(tmp_path / "endless.npz", form, Choice(["later"]), {})
    assert accepts(machine_for(form), b"a" * 2000)


def test_forged_arguments_are_refused(tmp_path: Path):
    """Whatever number is put anywhere in the arguments: an error, or a form that runs."""
    from tokdfa.errors import SavedIndexError

    form = nested_form(2, False)
    path = tmp_path / "form.npz"
    refused = 0
    for place in range(len(form.arguments)):
        for value in (-2, -1, 0, 3, 1000, 2**31 - 1):
            wrong = nested_form(2, False)
            wrong.arguments[place] = value
            write_form(path, wrong, Choice(["later"]), {})
            try:
                read, _, _ = read_form(path)
            except SavedIndexError:
                refused += 1
                continue
            machine = machine_for(read)
            for text in (text_for(2), b'{"b0":{"zz"}}', b'{"a0":{"a1":"x'):
                machine.run_text(text)
    assert refused > 2 * len(form.arguments)
