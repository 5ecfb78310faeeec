"""Programs in files: the instructions and automata of a compiled constraint, with the constraint it came from.

Loading spares reading the grammar and building automata; rows are made anew as they are needed. A program knows no
vocabulary, so one file serves all. Automata that are lazy are written with all their states, if these are not too many.

Reading trusts nothing that could lead compiled code outside its arrays: digest, shapes and ranges are checked. An
automaton out of a program's file is known in the pool by its content, so a file cannot pass it off as another one.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.core.stored_file import FileFormat
from tokdfa.errors import LimitExceeded, SavedIndexError, UnsupportedConstraint
from tokdfa.grammar.cfg import OpenNames, SpecialTokens
from tokdfa.program.builder import GrowingCode, Program
from tokdfa.program.json_text import escapes_of, read_characters, string_terminal
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNT_LIMIT,
    COUNT_STATES,
    COUNTED,
    COUNTED_BEYOND,
    FIRST,
    NAMES,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TERMINAL,
    TOKEN,
    UNBOUNDED,
    NameTable,
    Terminal,
)

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.core.stored_file import Arrays, Header

#: Parts of the code that are numbers.
_NUMBERS = ("code", "alternatives", "entries", "arguments")

#: A lazy automaton with more states cannot be saved.
MOST_STATES = 20_000

PROGRAM_FORMAT = FileFormat("tokdfa pushdown program", 7, SavedIndexError, "saved program", "compile and save it again")


def write_program(
    path: str | Path | io.BytesIO,
    program: Program,
    constraint: Constraint,
    settings: dict[str, Any],
    most_states: int = MOST_STATES,
    dropped: Sequence[Sequence[str]] = (),
) -> None:
    """Write a program, the constraint it was made of, the backend's options, and what of the constraint was dropped.

    Code that is to be written later is written first, and automata that are lazy are explored: some 5 us a state.
    Raises UnsupportedConstraint if one of these has more than `most_states`.
    """
    source = program.source
    with source.lock:
        source.write_all()
        arrays: dict[str, npt.NDArray[Any]] = dict(zip(_NUMBERS, program.arrays(), strict=True))
    for number, terminal in enumerate(source.terminals):
        if escapes_of(terminal):  # it is known by its key, and its states have known numbers
            continue
        automaton = _explicit(terminal, most_states)
        arrays[f"{number}.transitions"] = automaton.transitions
        arrays[f"{number}.byte_class"] = automaton.byte_class
        arrays[f"{number}.accepting"] = automaton.accepting
        arrays[f"{number}.start"] = np.array([automaton.start], dtype=np.int32)
    header = {
        "constraint": describe_constraint(constraint),
        "settings": settings,
        "dropped": dropped,
        "frame_names": [program.frame_name(frame) for frame in range(len(source.frame_names))],
        "terminals": [[terminal.label, terminal.shortest, escapes_of(terminal) or ""] for terminal in source.terminals],
        "name_tables": [[table.names, table.escapes] for table in source.name_tables],
        "token_sets": [[s.names, s.ranges, s.negated, s.name] for s in source.token_sets],
        "start": program.start,
        "skip": program.skip,
        "longest": program.longest,
        "open_names": source.open_names,
    }
    PROGRAM_FORMAT.write(path, header, arrays)


def _explicit(terminal: Terminal, most_states: int) -> Dfa:
    automaton = terminal.make()
    if isinstance(automaton, Dfa):
        return automaton
    try:
        return minimize(automaton.to_dfa(most_states))
    except LimitExceeded:
        raise UnsupportedConstraint(
            f"{terminal.label} has more than {most_states:,} states, too many to be saved; lower its repeat bounds"
        ) from None


def read_program(path: str | Path | io.BytesIO) -> tuple[Program, Constraint, dict[str, Any], list[list[str]]]:
    """(program, constraint, options, what was dropped) from a file of `write_program`. Raises SavedIndexError."""
    return PROGRAM_FORMAT.read(path, _build_program)


def _build_program(header: Header, arrays: Arrays) -> tuple[Program, Constraint, dict[str, Any], list[list[str]]]:
    source = GrowingCode()
    for name in _NUMBERS:
        numbers = arrays[name]
        if numbers.dtype != np.int32 or (numbers.shape[1:] != (3,) if name == "code" else numbers.ndim != 1):
            raise ValueError(f"its {name} are no list of int32")
        setattr(source, name, array("i", numbers.tobytes()))
    source.frame_names = list(map(str, header["frame_names"]))
    source.terminals = [
        string_terminal(escapes) if escapes else _read_terminal(str(label), bool(shortest), arrays, number)
        for number, (label, shortest, escapes) in enumerate(header["terminals"])
    ]
    source.token_sets = [
        SpecialTokens(tuple(names), tuple((int(a), int(b)) for a, b in ranges), bool(negated), str(name))
        for names, ranges, negated, name in header["token_sets"]
    ]
    source.name_tables = [NameTable.of(tuple(map(str, names)), escapes) for names, escapes in header["name_tables"]]
    if header["open_names"] not in get_args(OpenNames):
        raise ValueError("it does not say which names are remembered")
    source.open_names = header["open_names"]
    program = Program(source, int(header["start"]), int(header["skip"]), bool(header["longest"]))
    problem = _find_problem(program)
    if problem:
        raise ValueError(f"it holds no valid program: {problem}")
    return program, rebuild_constraint(header["constraint"]), dict(header["settings"]), list(header["dropped"])


def _read_terminal(label: str, shortest: bool, arrays: dict[str, npt.NDArray[Any]], number: int) -> Terminal:
    transitions, byte_class, accepting = (
        arrays[f"{number}.{name}"] for name in ("transitions", "byte_class", "accepting")
    )
    # minimising also drops what leads nowhere
    automaton = minimize(Dfa(transitions, byte_class, accepting, int(arrays[f"{number}.start"][0])))
    if not automaton.state_count:
        raise ValueError(f"no text matches {label}")
    key = hashlib.blake2b(b"shortest" if shortest else b"", digest_size=16)
    for part in (automaton.transitions, automaton.byte_class, automaton.accepting):
        key.update(part.tobytes())
    return Terminal(label, b"content" + key.digest(), lambda: automaton, shortest)


def _find_problem(program: Program) -> str:
    """What is wrong with a program, or nothing."""
    source, code, count = program.source, program.code, len(program.code)
    if not count or code[0].any():
        return "the code is no list of instructions"
    if len(program.entries) != len(source.frame_names):
        return "frames and names disagree"
    places = [*program.alternatives.tolist(), *program.entries.tolist(), program.start]
    bounds = {CALL: len(program.entries), TERMINAL: len(source.terminals), TOKEN: len(source.token_sets)}
    for operation, first, second in code.tolist():
        if operation in (NAMES, COUNTED):
            problem = _find_names_problem(first, program) if operation == NAMES else _find_count_problem(first, program)
            if problem or program.longest:
                return problem or "the longest match reads no names"
            places.append(second)
        elif operation == ANY:
            if not 0 <= first < second <= len(program.alternatives):
                return "alternatives lead out of range"
        elif operation in bounds:
            if not 0 <= first < bounds[operation]:
                return "an instruction names what is not there"
            places.append(second)
        elif operation != 0:
            return f"there is no operation {operation}"
    if not all(0 <= place < count for place in (*places, max(program.skip, 0))):
        return "a place leads out of range"
    if program.skip >= 0 and (code[program.skip, OPERATION] != TERMINAL or code[program.skip, SECOND] != 0):
        return "what is skipped is no terminal"
    if program.skip in places:
        return "what is skipped is read by a rule, too"
    return ""


def _find_names_problem(at: int, program: Program) -> str:
    """What is wrong with the arguments of a NAMES, or nothing."""
    arguments, code = program.arguments, program.code
    if not 0 <= at < len(arguments) - NAMES_TARGETS:
        return "arguments lead out of range"
    table, low, high, other, begin = arguments[at : at + NAMES_TARGETS + 1].tolist()
    if not 0 <= table < len(program.source.name_tables):
        return "there is no such table of names"
    size = len(program.source.name_tables[table].names)
    if not (0 <= low <= high < size or (low, high) == (size, -1)):
        return "a window of names is out of range"
    targets = arguments[max(begin, 0) :][: max(high - low + 1, 0)]
    if begin < 0 or len(targets) < high - low + 1 or not ((targets >= 0) & (targets < len(code))).all():
        return "a name leads out of range"
    return (
        "" if other == -1 or _reads_strings(other, program) else "other strings are read by no TERMINAL of any string"
    )


def _reads_strings(place: int, program: Program) -> bool:
    """Whether at a place stands a TERMINAL of any JSON string."""
    if not 0 <= place < len(program.code) or program.code[place, OPERATION] != TERMINAL:
        return False
    number = int(program.code[place, FIRST])
    return 0 <= number < len(program.source.terminals) and escapes_of(program.source.terminals[number]) is not None


def _find_count_problem(at: int, program: Program) -> str:
    """What is wrong with the arguments of a COUNTED, or nothing."""
    arguments, code = program.arguments, program.code
    if not 0 <= at < len(arguments) - COUNTED_BEYOND:
        return "arguments lead out of range"
    terminal, minimum, cap, on, beyond = arguments[at : at + COUNTED_BEYOND + 1].tolist()
    if not 0 <= terminal < len(code) or code[terminal, OPERATION] != TERMINAL:
        return "a counted string is read by no TERMINAL"
    number = int(code[terminal, FIRST])
    automaton = program.source.terminals[number].make() if 0 <= number < len(program.source.terminals) else None
    characters = read_characters(automaton) if isinstance(automaton, Dfa) else None
    if not isinstance(automaton, Dfa) or characters is None or (minimum > 0 and not characters.has_all):
        return "a counted string is read by a TERMINAL whose characters cannot be counted"
    most = min(COUNT_LIMIT, COUNT_STATES // automaton.state_count - 1)
    if not (minimum >= 0 and 0 <= cap <= most and 0 <= beyond <= UNBOUNDED):
        return "a count is out of range"
    for _ in range(2):  # it goes on at a COUNTED, or at where that was to be written
        if on < 0:
            break
        operation, first, second = code[on].tolist() if on < len(code) else (-1, 0, 0)
        if operation == COUNTED and arguments[first : first + 1].tolist() == [terminal]:
            on = -1
        elif operation == ANY and second == first + 1 and 0 <= first < len(program.alternatives):
            on = int(program.alternatives[first])
        else:
            break
    return "a count goes on nowhere" if on >= 0 else ""


def describe_constraint(constraint: Constraint) -> dict[str, Any]:
    """A constraint as JSON can hold it. Raises UnsupportedConstraint for a kind that is none of ours."""
    if isinstance(constraint, Grammar):
        described: dict[str, Any] = {"kind": "grammar", "text": constraint.text, "start": constraint.start}
        for name in ("sources", "json_options"):
            if chosen := dict(getattr(constraint, name)):
                described[name] = chosen
        return {**described, "label": constraint.label}
    if isinstance(constraint, Regex):
        return {"kind": "regex", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    if isinstance(constraint, Choice):
        texts = [text if isinstance(text, str) else {"hex": text.hex()} for text in constraint.choices]
        return {"kind": "choice", "choices": texts, "label": constraint.label}
    if isinstance(constraint, JsonSchema):
        return {"kind": "json_schema", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    raise UnsupportedConstraint(f"a {constraint.kind} cannot be saved")


def rebuild_constraint(described: dict[str, Any]) -> Constraint:
    """What `describe_constraint` described. Raises KeyError, TypeError or ValueError for anything else."""
    given = dict(described)
    kind = given.pop("kind")
    if kind == "grammar":
        return Grammar(**given)
    if kind == "regex":
        return Regex(**given)
    if kind == "json_schema":
        return JsonSchema(given.pop("text"), **given)
    texts = [text if isinstance(text, str) else bytes.fromhex(text["hex"]) for text in given["choices"]]
    return Choice(texts, label=given["label"])
