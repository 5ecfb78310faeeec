"""Texts that a tokenizer's normalizers would change have no proper sequences: constraints with such texts are refused.

Whether a constraint has one is decided on its automata: of a regular constraint on its own, of a grammar or a schema on
those of the terminals that it can reach, as a text of terminals of stable characters is one of stable characters
(`tokdfa.proper.normalizers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.automata.algebra import difference
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import trim
from tokdfa.automata.words import shortest_word
from tokdfa.constraint import JsonSchema
from tokdfa.errors import UnsupportedConstraint
from tokdfa.program import program as p
from tokdfa.proper.normalizers import normalized, stable_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.constraint import Grammar
    from tokdfa.program.builder import Program
    from tokdfa.program.program import Terminal
    from tokdfa.vocabulary.tokenizers import Tokenizer


def check_unchanged(dfa: Dfa, tokenizer: Tokenizer, name: str, what: str = "text") -> None:
    """Raise UnsupportedConstraint if a normalizer of `tokenizer` may change a text of `dfa`, that of constraint `name`.

    O(states x byte classes) where there are normalizers.
    """
    normalizers = tokenizer.merges.normalizers
    if not normalizers:
        return
    witness = shortest_word(difference(trim(dfa), stable_texts(normalizers)))
    if witness is None:
        return
    text = witness.decode(errors="replace")
    after = normalized(text, normalizers)
    becomes = f"makes {after!r} of it" if after != text else "may change it behind another text"
    raise UnsupportedConstraint(
        f"{name!r} has the {what} {text!r}, and the normalizer {', '.join(normalizers)} of {tokenizer.name} {becomes}, "
        "so it has no proper tokens; leave such characters out of the constraint (combining marks, and characters that "
        "the normalizer rewrites), or compile it without proper=True"
    )


def check_parts_unchanged(constraint: Grammar | JsonSchema, tokenizer: Tokenizer) -> None:
    """The same for a grammar or a schema: raises if a text of a terminal that it can reach may be changed."""
    if not tokenizer.merges.normalizers:
        return
    for part in _parts(_program_of(constraint)):
        if isinstance(part, str):
            check_unchanged(_only(part), tokenizer, constraint.name, "name")
            continue
        made = part.make()
        dfa = made if isinstance(made, Dfa) else made.to_dfa(MAX_TERMINAL_STATES)
        check_unchanged(dfa, tokenizer, constraint.name, f"{part.label} with")


def _parts(program: Program) -> Iterator[Terminal | str]:
    """The terminals and names that a text of a program can reach, each once. What is lazy is written.

    Raises UnsupportedConstraint for a program that writes more than MAX_WRITTEN instructions.
    """
    source, told = program.source, set()
    todo = [program.start, *([program.skip] if program.skip >= 0 else [])]
    seen = set(todo)
    while todo:
        place = todo.pop()
        source.write(place)
        if len(source.code) > 3 * p.MAX_WRITTEN:
            raise UnsupportedConstraint("the constraint writes too many instructions to look at all of its texts")
        operation, first, second = source.code[3 * place : 3 * place + 3]
        following: list[int] = []
        if operation == p.ANY:
            following = list(source.alternatives[first:second])
        elif operation == p.CALL:
            following = [source.entries[first], second]
        elif operation in (p.TERMINAL, p.TOKEN):
            following = [second]
            if operation == p.TERMINAL and (terminal := source.terminals[first]).key not in told:
                told.add(terminal.key)
                yield terminal
        elif operation == p.NAMES:
            table, low, high, other, targets = source.arguments[first : first + 5]
            yield from source.name_tables[table].names[low : high + 1]
            following = [other, *source.arguments[targets : targets + high + 1 - low]]
        elif operation == p.COUNTED:
            following = [source.arguments[first + p.COUNTED_TERMINAL], source.arguments[first + p.COUNTED_NEXT], second]
        new = {one for one in following if one >= 0} - seen
        seen |= new
        todo += new


#: States of a terminal past which a constraint is refused with LimitExceeded.
MAX_TERMINAL_STATES = 1_000_000


def _program_of(constraint: Grammar | JsonSchema) -> Program:
    if isinstance(constraint, JsonSchema):
        from tokdfa.json_schema.write.lower import lower_schema

        return lower_schema(constraint)[0]
    from tokdfa.json_schema.write.expand import SchemaPrograms
    from tokdfa.program.lower import lower_constraint

    return lower_constraint(constraint, longest=False, schema=SchemaPrograms())


def _only(text: str) -> Dfa:
    """The automaton of one text."""
    from tokdfa.constraint import Choice
    from tokdfa.regex.compile import compile_dfa

    return compile_dfa(Choice([text])) if text else Dfa.empty()
