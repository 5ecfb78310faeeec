"""Forms in files: the instructions and automata of a compiled constraint, with the constraint it came from.

Loading spares reading the grammar and building automata; rows are made anew as they are needed. A form knows no
vocabulary, so one file serves all. Automata that are lazy, because they have more than 2,000 states, cannot be saved.

Reading trusts nothing that could lead a kernel outside its arrays: digest, shapes and ranges are checked. An automaton
out of a form's file is known in the pool by its content, so a file cannot pass it off as another one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.constraint import describe_constraint, rebuild_constraint
from tokdfa.core.stored_file import Format
from tokdfa.errors import SavedIndexError, UnsupportedConstraint
from tokdfa.grammar.cfg import SpecialTokens
from tokdfa.program.form import (
    ANY,
    CALL,
    COUNT_LIMIT,
    COUNTED,
    COUNTED_BEYOND,
    FIRST,
    NAMES,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TEXT,
    TOKEN,
    UNBOUNDED,
    Form,
    FrameNames,
    NameTable,
    Text,
)
from tokdfa.program.json_text import escapes_of, string_text

if TYPE_CHECKING:
    import io
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.core.stored_file import Arrays, Header

FORM_FORMAT = Format("tokdfa pushdown form", 3, SavedIndexError, "saved form", "compile and save it again")


def write_form(path: str | Path | io.BytesIO, form: Form, constraint: Constraint, settings: dict[str, Any]) -> None:
    """Write a form, the constraint it was made of and the backend's options. Raises UnsupportedConstraint.

    Code that is to be written later is written first.
    """
    if form.source is not None:
        with form.source.lock:
            form.source.write_all()
            form = form.newest()
    arrays: dict[str, npt.NDArray[Any]] = {
        "code": form.code,
        "alternatives": form.alternatives,
        "entries": form.entries,
        "arguments": form.arguments,
    }
    for number, text in enumerate(form.texts):
        if escapes_of(text):  # it is known by its key, and its states have known numbers
            continue
        automaton = text.make()
        if not isinstance(automaton, Dfa):
            raise UnsupportedConstraint(f"{text.label} has too many states to be saved; lower its repeat bounds")
        arrays[f"{number}.transitions"] = automaton.transitions
        arrays[f"{number}.byte_class"] = automaton.byte_class
        arrays[f"{number}.accepting"] = automaton.accepting
        arrays[f"{number}.start"] = np.array([automaton.start], dtype=np.int32)
    header = {
        "constraint": describe_constraint(constraint),
        "settings": settings,
        "frame_names": list(form.frame_names),
        "texts": [[text.label, text.lazy, escapes_of(text) or ""] for text in form.texts],
        "name_tables": [[table.names, table.escapes] for table in form.name_tables],
        "pairs": form.pairs,
        "token_sets": [[s.names, s.ranges, s.negated, s.name] for s in form.token_sets],
        "start": form.start,
        "skip": form.skip,
        "longest": form.longest,
    }
    FORM_FORMAT.write(path, header, arrays)


def read_form(path: str | Path | io.BytesIO) -> tuple[Form, Constraint, dict[str, Any]]:
    """(form, constraint, options) from a file of `write_form`. Raises SavedIndexError."""
    return FORM_FORMAT.read(path, _build_form)


def _build_form(header: Header, arrays: Arrays) -> tuple[Form, Constraint, dict[str, Any]]:
    texts = tuple(
        string_text(escapes) if escapes else _read_text(str(label), bool(lazy), arrays, number)
        for number, (label, lazy, escapes) in enumerate(header["texts"])
    )
    token_sets = tuple(
        SpecialTokens(tuple(names), tuple((int(a), int(b)) for a, b in ranges), bool(negated), str(name))
        for names, ranges, negated, name in header["token_sets"]
    )
    form = Form(
        arrays["code"],
        arrays["alternatives"],
        arrays["entries"],
        FrameNames(map(str, header["frame_names"])),
        texts,
        token_sets,
        int(header["start"]),
        int(header["skip"]),
        bool(header["longest"]),
        arrays["arguments"],
        tuple(NameTable.of(tuple(map(str, names)), escapes) for names, escapes in header["name_tables"]),
        tuple((int(table), int(text)) for table, text in header["pairs"]),
    )
    problem = _find_problem(form)
    if problem:
        raise ValueError(f"it holds no valid form: {problem}")
    return form, rebuild_constraint(header["constraint"]), dict(header["settings"])


def _read_text(label: str, lazy: bool, arrays: dict[str, npt.NDArray[Any]], number: int) -> Text:
    transitions, byte_class, accepting = (
        arrays[f"{number}.{name}"] for name in ("transitions", "byte_class", "accepting")
    )
    # minimising also drops what leads nowhere
    automaton = minimize(Dfa(transitions, byte_class, accepting, int(arrays[f"{number}.start"][0])))
    if not automaton.state_count:
        raise ValueError(f"no text matches {label}")
    key = hashlib.blake2b(digest_size=16)
    for array in (automaton.transitions, automaton.byte_class, automaton.accepting):
        key.update(array.tobytes())
    return Text(label, b"content" + key.digest(), lambda: automaton, lazy)


def _find_problem(form: Form) -> str:
    """What is wrong with a form, or nothing."""
    code, count = form.code, len(form.code)
    if code.dtype != np.int32 or code.ndim != 2 or code.shape[1] != 3 or not count or code[0].any():
        return "the code is no list of instructions"
    if form.alternatives.dtype != np.int32 or form.entries.dtype != np.int32 or form.entries.ndim != 1:
        return "places are not int32"
    if form.arguments.dtype != np.int32 or form.arguments.ndim != 1:
        return "arguments are not int32"
    if not all(0 <= table < len(form.name_tables) and 0 <= text < len(form.texts) for table, text in form.pairs):
        return "names and texts are put together that are not there"
    if form.alternatives.ndim != 1 or len(form.entries) != len(form.frame_names):
        return "frames and names disagree"
    places = [*form.alternatives.tolist(), *form.entries.tolist(), form.start, max(form.skip, 0)]
    bounds = {CALL: len(form.entries), TEXT: len(form.texts), TOKEN: len(form.token_sets)}
    for operation, first, second in code.tolist():
        if operation in (NAMES, COUNTED):
            problem = _find_names_problem(first, form) if operation == NAMES else _find_count_problem(first, form)
            if problem or form.longest:
                return problem or "the longest match reads no names"
            places.append(second)
        elif operation == ANY:
            if not 0 <= first < second <= len(form.alternatives):
                return "alternatives lead out of range"
        elif operation in bounds:
            if not 0 <= first < bounds[operation]:
                return "an instruction names what is not there"
            places.append(second)
        elif operation != 0:
            return f"there is no operation {operation}"
    if not all(0 <= place < count for place in places):
        return "a place leads out of range"
    if form.skip >= 0 and (code[form.skip, OPERATION] != TEXT or code[form.skip, SECOND] != 0):
        return "what is skipped is no text"
    return ""


def _find_names_problem(at: int, form: Form) -> str:
    """What is wrong with the arguments of a NAMES, or nothing."""
    arguments, code = form.arguments, form.code
    if not 0 <= at < len(arguments) - NAMES_TARGETS:
        return "arguments lead out of range"
    table, low, high, other, pair, begin = arguments[at : at + NAMES_TARGETS + 1].tolist()
    if not 0 <= table < len(form.name_tables):
        return "there is no such table of names"
    size = len(form.name_tables[table].names)
    if not (0 <= low <= high < size or (low, high) == (size, -1)):
        return "a window of names is out of range"
    targets = arguments[max(begin, 0) :][: max(high - low + 1, 0)]
    if begin < 0 or len(targets) < high - low + 1 or not ((targets >= 0) & (targets < len(code))).all():
        return "a name leads out of range"
    if other == pair == -1:
        return ""
    if not 0 <= other < len(code) or code[other, OPERATION] != TEXT or not 0 <= code[other, FIRST] < len(form.texts):
        return "other strings are read by no text"
    if not 0 <= pair < len(form.pairs) or form.pairs[pair] != (table, int(code[other, FIRST])):
        return "other strings are read by another text"
    return ""


def _find_count_problem(at: int, form: Form) -> str:
    """What is wrong with the arguments of a COUNTED, or nothing."""
    arguments, code = form.arguments, form.code
    if not 0 <= at < len(arguments) - COUNTED_BEYOND:
        return "arguments lead out of range"
    text, minimum, cap, on, beyond = arguments[at : at + COUNTED_BEYOND + 1].tolist()
    if not 0 <= text < len(code) or code[text, OPERATION] != TEXT:
        return "a counted string has no text"
    number = int(code[text, FIRST])
    if not 0 <= number < len(form.texts) or not escapes_of(form.texts[number]):
        return "a counted string is no JSON string"
    if not (minimum >= 0 and 0 <= cap <= COUNT_LIMIT and 0 <= beyond <= UNBOUNDED):
        return "a count is out of range"
    for _ in range(2):  # it goes on at a COUNTED, or at where that was to be written
        if on < 0:
            break
        operation, first, second = code[on].tolist() if on < len(code) else (-1, 0, 0)
        if operation == COUNTED:
            on = -1
        elif operation == ANY and second == first + 1 and 0 <= first < len(form.alternatives):
            on = int(form.alternatives[first])
        else:
            break
    return "a count goes on nowhere" if on >= 0 else ""
