"""A program as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    FIRST,
    LAZY,
    NAMES,
    OPERATION,
    RETURN,
    RETURN_PLACE,
    TERMINAL,
    CountedString,
    NameWindow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.program.builder import Program


def format_program(program: Program) -> str:
    """Frame by frame, one instruction a line: its place, what it does, and where it goes on. O(instructions).

    Where an instruction goes on with the next line, that is not written. Instructions that several frames share stand
    under the first of them. Frames that nothing calls are left out.
    """
    mode = "longest match" if program.longest else "every way to cut the text"
    counts = len(program.code), len(program.entries), len(program.source.terminals)
    head = "{} instructions, {} frames, {} terminals; ".format(*counts) + mode
    written: set[int] = set()
    lines = [head, *_format_part("the text", program.start, program, written)]
    for frame in _called_frames(program):
        lines += ["", *_format_part(program.frame_name(frame), int(program.entries[frame]), program, written)]
    if program.skip >= 0:
        lines += ["", *_format_part("between lexemes", program.skip, program, written)]
    return "\n".join(lines)


def _called_frames(program: Program) -> list[int]:
    """The frames that the text, or what is skipped, can come to call, in order."""
    pending = [program.start] + [program.skip] * (program.skip >= 0)
    met, frames = set(pending), set()
    while pending:
        place = pending.pop()
        following = _following(place, program)
        if program.code[place, OPERATION] == CALL:
            frame = int(program.code[place, FIRST])
            frames.add(frame)
            following.append(int(program.entries[frame]))
        for other in following:
            if other not in met:
                met.add(other)
                pending.append(other)
    return sorted(frames)


def _format_part(name: str, entry: int, program: Program, written: set[int]) -> Iterator[str]:
    """The instructions reached from a place that are not written yet."""
    if entry in written:
        yield f"{name}: is {entry}" if entry != RETURN_PLACE else f"{name}: reads nothing"
        return
    yield f"{name}:"
    pending = [entry]
    while pending:
        place = pending.pop()
        if place in written:
            continue
        written.add(place)
        following = _following(place, program)
        pending += reversed(following)
        on = ""
        if program.code[place, OPERATION] not in (RETURN, ANY, NAMES, LAZY) and (not pending or pending[-1] in written):
            on = f"  -> {following[-1]}"
        yield f"  {place:4d}  {_describe(place, program)}{on}"


def _following(place: int, program: Program) -> list[int]:
    operation, first, second = program.code[place].tolist()
    if operation in (RETURN, LAZY):
        return []
    if operation == NAMES:
        window = NameWindow.read(program.arguments, first)
        return list(dict.fromkeys(window.targets + [window.other] * (window.other >= 0)))
    if operation == COUNTED:
        on = CountedString.read(program.arguments, first).following
        return [on] * (on >= 0) + [second]
    return program.alternatives[first:second].tolist() if operation == ANY else [second]


def _describe(place: int, program: Program) -> str:
    operation, first, second = program.code[place].tolist()
    if operation == RETURN:
        return "return"
    if operation == ANY:
        return "any of " + " ".join(map(str, program.alternatives[first:second].tolist()))
    if operation == CALL:
        return f"call {program.frame_name(first)}"
    if operation == TERMINAL:
        return f"terminal {program.source.terminals[first].label}" + (
            ", the shortest" if program.source.terminals[first].shortest else ""
        )
    if operation == NAMES:
        return _describe_names(NameWindow.read(program.arguments, first), program)
    if operation == COUNTED:
        count = CountedString.read(program.arguments, first)
        length = f"{count.least} or more" if count.most is None else f"{count.least} to {count.most}"
        on = f", past {count.cap} -> {count.following}" if count.following >= 0 else ""
        return f"string of {length} characters{on}"
    if operation == LAZY:
        return "not written yet"
    return f"token {program.source.token_sets[first].name}"


def _describe_names(window: NameWindow, program: Program) -> str:
    table, low, _, other, targets = window
    names = program.source.name_tables[table].names
    if len(set(targets)) == 1:
        said = " | ".join(map(repr, names[low : low + min(len(targets), 4)])) + (" | ..." if len(targets) > 4 else "")
        said += f" -> {targets[0]}"
    else:
        said = ", ".join(f"{name!r} -> {target}" for name, target in zip(names[low:], targets, strict=False))
    outside = f", none of {len(names)} names -> {other}" if other >= 0 else ""
    return f"string {said}{outside}"
