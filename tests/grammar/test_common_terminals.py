import itertools
import re
from pathlib import Path

import lark
import pytest

from tokdfa.automata.algebra import distinguishing_word
from tokdfa.constraint import Regex
from tokdfa.grammar.common_terminals import common_definitions, common_program
from tokdfa.regex.compile import compile_dfa
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.program import Program

#: Defined in Lark by a search that takes as little as possible; with letters that tell such texts apart.
SEARCHED = {"ESCAPED_STRING": '"\\a\n', "C_COMMENT": "/*\n"}


def larks_regex(name: str) -> str:
    parser = lark.Lark(f"start: {name}\n%import common.{name}", parser="earley")
    (terminal,) = [terminal for terminal in parser.terminals if terminal.name == name]
    return terminal.pattern.to_regexp()


def automaton(name: str) -> LazyDfa:
    store, program = ExpressionStore(), Program()
    store.literal(b"what is there already")
    value = program.embed(common_program(name))
    store.run(program)
    return LazyDfa(store, program.expression(value))


def test_they_have_larks_names() -> None:
    file = Path(lark.__file__).parent / "grammars" / "common.lark"
    names = set(re.findall(r"^(\w+) *:", file.read_text(), re.MULTILINE))
    assert set(common_definitions()) == names - {"_STRING_INNER", "_STRING_ESC_INNER"}


@pytest.mark.parametrize("name", sorted(set(common_definitions()) - set(SEARCHED)))
def test_they_are_larks_languages(name: str) -> None:
    assert distinguishing_word(automaton(name).to_dfa(), compile_dfa(Regex(larks_regex(name)))) is None


@pytest.mark.parametrize("name", sorted(SEARCHED))
def test_searched_ones_are_what_larks_search_finds(name: str) -> None:
    pattern, ours = re.compile(larks_regex(name)), automaton(name)
    accepted = 0
    opening, letters = ('"', 6) if name == "ESCAPED_STRING" else ("/*", 6)
    for length in range(letters + 1):
        for inside in itertools.product(SEARCHED[name], repeat=length):
            text = opening + "".join(inside)
            found = pattern.match(text)
            assert ours.accepts(text.encode()) == (found is not None and found.end() == len(text)), text
            accepted += found is not None and found.end() == len(text)
    assert accepted > 50
