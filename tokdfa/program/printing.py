"""A form as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.program.form import (
    ANY,
    CALL,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_MINIMUM,
    COUNTED_NEXT,
    FIRST,
    LATER,
    NAMES,
    NAMES_HIGH,
    NAMES_LOW,
    NAMES_OTHER,
    NAMES_TABLE,
    NAMES_TARGETS,
    OPERATION,
    RETURN,
    RETURN_PLACE,
    TEXT,
    UNBOUNDED,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.program.form import Form


def format_form(form: Form) -> str:
    """Frame by frame, one instruction a line: its place, what it does, and where it goes on. O(instructions).

    Where an instruction goes on with the next line, that is not written. Instructions that several frames share stand
    under the first of them. Frames that nothing calls are left out.
    """
    mode = "longest match" if form.longest else "every way to cut the text"
    head = f"{len(form.code)} instructions, {len(form.entries)} frames, {len(form.texts)} texts; {mode}"
    written: set[int] = set()
    lines = [head, *_format_part("the text", form.start, form, written)]
    for frame in _called_frames(form):
        lines += ["", *_format_part(form.frame_names[frame], int(form.entries[frame]), form, written)]
    if form.skip >= 0:
        lines += ["", *_format_part("between lexemes", form.skip, form, written)]
    return "\n".join(lines)


def _called_frames(form: Form) -> list[int]:
    """The frames that the text, or what is skipped, can come to call, in order."""
    pending = [form.start] + [form.skip] * (form.skip >= 0)
    met, frames = set(pending), set()
    while pending:
        place = pending.pop()
        following = _following(place, form)
        if form.code[place, OPERATION] == CALL:
            frame = int(form.code[place, FIRST])
            frames.add(frame)
            following.append(int(form.entries[frame]))
        for other in following:
            if other not in met:
                met.add(other)
                pending.append(other)
    return sorted(frames)


def _format_part(name: str, entry: int, form: Form, written: set[int]) -> Iterator[str]:
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
        following = _following(place, form)
        pending += reversed(following)
        on = ""
        if form.code[place, OPERATION] not in (RETURN, ANY, NAMES, LATER) and (not pending or pending[-1] in written):
            on = f"  -> {following[-1]}"
        yield f"  {place:4d}  {_describe(place, form)}{on}"


def _following(place: int, form: Form) -> list[int]:
    operation, first, second = form.code[place].tolist()
    if operation in (RETURN, LATER):
        return []
    if operation == NAMES:
        targets, other = _targets(first, form), int(form.arguments[first + NAMES_OTHER])
        return list(dict.fromkeys(targets + [other] * (other >= 0)))
    if operation == COUNTED:
        on = int(form.arguments[first + COUNTED_NEXT])
        return [on] * (on >= 0) + [second]
    return form.alternatives[first:second].tolist() if operation == ANY else [second]


def _targets(at: int, form: Form) -> list[int]:
    """The places after the names of a NAMES with arguments at `at`."""
    low, high = form.arguments[at + NAMES_LOW : at + NAMES_HIGH + 1].tolist()
    begin = form.arguments[at + NAMES_TARGETS]
    return form.arguments[begin:][: max(high - low + 1, 0)].tolist()


def _describe(place: int, form: Form) -> str:
    operation, first, second = form.code[place].tolist()
    if operation == RETURN:
        return "return"
    if operation == ANY:
        return "any of " + " ".join(map(str, form.alternatives[first:second].tolist()))
    if operation == CALL:
        return f"call {form.frame_names[first]}"
    if operation == TEXT:
        return f"text {form.texts[first].label}" + (", the shortest" if form.texts[first].lazy else "")
    if operation == NAMES:
        return _describe_names(first, form)
    if operation == COUNTED:
        minimum, cap, on, beyond = form.arguments[first + COUNTED_MINIMUM : first + COUNTED_BEYOND + 1].tolist()
        length = f"{minimum} or more" if beyond == UNBOUNDED else f"{minimum} to {cap + beyond}"
        return f"string of {length} characters" + (f", past {cap} -> {on}" if on >= 0 else "")
    if operation == LATER:
        return "not written yet"
    return f"token {form.token_sets[first].name}"


def _describe_names(at: int, form: Form) -> str:
    table, low, _, other = form.arguments[at + NAMES_TABLE : at + NAMES_OTHER + 1].tolist()
    names, targets = form.name_tables[table].names, _targets(at, form)
    if len(set(targets)) == 1:
        said = " | ".join(map(repr, names[low : low + min(len(targets), 4)])) + (" | ..." if len(targets) > 4 else "")
        said += f" -> {targets[0]}"
    else:
        said = ", ".join(f"{name!r} -> {target}" for name, target in zip(names[low:], targets, strict=False))
    outside = f", none of {len(names)} names -> {other}" if other >= 0 else ""
    return f"string {said}{outside}"
