"""Patterns with a length, which is counted beside their automaton: against the automaton of both together."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest

from tests.backends.pushdown_trie import make_everything_wide
from tests.backends.pushdown_trie.json_programs import TOKENS, check_rows, check_same
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.constraint import JsonSchema
from tokdfa.errors import SavedIndexError
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.json_text import BODY, END, read_characters, string_dfa
from tokdfa.program.program import COUNTED, OPERATION, RETURN_PLACE, Terminal
from tokdfa.program.program_file import read_program, write_program

ESCAPE_OR_TEXT = "^(\n|x(n|u000[Aa]))$"
#: (pattern, whether texts of all greater numbers of characters follow everywhere)
PATTERNS = [
    ("^[ab]+$", True),
    ("^[ab]+é[a😀]*$", True),
    ("^(a+|b[ab]*)n?a+$", True),
    ("ab", True),
    ('"\\\\?61', True),
    ("^a*$|^a*b", True),
    ("^(aa|bb)*$", False),
    ("^(a{5}|b*)$", False),
    ("^(a|aab|bbbbb)*$", True),
    ("^[ab]{2,6}b?[ab]{0,2}$", False),
    # a least number of characters ends some ways before it is reached
    ("^(a|b*)$", False),
    ("^(aa|a{9}|b*)$", False),
]
BOUNDS = [(0, 5), (3, None), (3, 3), (2, 40)]


def written(program) -> Counter[int]:
    """How often each operation stands in a program, all of which is written."""
    program.source.write_all()
    return Counter(program.code[:, OPERATION].tolist())


@pytest.mark.parametrize("escapes", ["all", "needed"])
@pytest.mark.parametrize(("pattern", "has_all"), PATTERNS)
def test_masks_are_those_of_the_product(pattern, has_all, escapes, monkeypatch):
    make_everything_wide(monkeypatch)
    counted = 0
    for low, high in BOUNDS:
        strings = StringSet(patterns=(pattern,), min_length=low, max_length=high)
        if strings.is_empty():
            continue
        lengths = {"minLength": low} | ({} if high is None else {"maxLength": high})
        program, _ = lower_schema(JsonSchema({"type": "string", "pattern": pattern, **lengths}, escapes=escapes))
        builder = ProgramBuilder(escapes=escapes)
        text = Terminal("product", b"product", lambda each=strings: string_automaton(each, escapes))
        product = builder.build(builder.read(builder.terminal(text), RETURN_PLACE))
        for seed in range(2):
            check_same(program, product, TOKENS, seed, 12)
        if COUNTED in written(program):
            counted += 1
            check_rows(program, TOKENS, low)
    assert counted >= (2 if has_all else 1)


@pytest.mark.parametrize("escapes", ["all", "needed"])
@pytest.mark.parametrize(
    ("pattern", "has_all"), [*PATTERNS, ("^(a|b{3,})$", False), (ESCAPE_OR_TEXT, False), ("", True)]
)
def test_what_is_known_of_characters(pattern, has_all, escapes):
    """Against the numbers of characters, up to 12, of all ways from each state to an end."""
    dfa = string_automaton(StringSet(patterns=(pattern,) if pattern else ()), escapes)
    assert isinstance(dfa, Dfa)
    found = read_characters(dfa)
    assert found is not None
    table, most = dfa.byte_table(), 12
    ends = np.zeros((dfa.state_count, most + 1), dtype=np.bool_)
    ends[:, 0] = dfa.accepting
    for _ in range(6 * most):  # a character is six bytes at most, or twelve of which six begin none
        for state, byte in np.argwhere(table >= 0).tolist():
            target = int(table[state, byte])
            begins = bool(found.begins[state]) and not dfa.accepting[target]
            ends[state, begins:] |= ends[target, : most + 1 - begins]
    assert found.least.tolist() == ends.argmax(axis=1).tolist()
    closed = [bool(row[row.argmax() :].all()) for row in ends]
    assert found.has_all == all(is_closed or dfa.accepting[state] for state, is_closed in enumerate(closed)) == has_all


def test_where_characters_begin():
    strings = string_dfa("all")
    found = read_characters(strings)
    assert found is not None
    assert np.flatnonzero(found.begins).tolist() == [BODY]
    assert not found.least.any()
    assert strings.accepting.nonzero()[0].tolist() == [END]


def test_a_state_in_which_a_character_may_or_may_not_begin():
    r"""After ``"\\`` and after ``"x`` the same is to come, what ends a character, or characters of their own: one state
    in a minimal automaton, two in one that is spelled.
    """
    strings = StringSet(patterns=(ESCAPE_OR_TEXT,))
    for escapes, is_known in (("needed", False), ("all", True)):
        dfa = string_automaton(strings, escapes)
        assert isinstance(dfa, Dfa)
        assert read_characters(dfa) is not None
        assert (read_characters(minimize(dfa)) is not None) == is_known


def test_a_file_that_counts_what_cannot_be_counted(tmp_path):
    """A least number of characters, where texts of some greater numbers only follow."""
    automaton = string_automaton(StringSet(patterns=("^(aa)*$",)))
    builder = ProgramBuilder()
    text = builder.terminal(Terminal("pairs", b"pairs", lambda: automaton))
    for low, is_right in ((0, True), (3, False)):
        program = builder.build(builder.counted(low, 9, RETURN_PLACE, text, automaton.state_count))
        write_program(tmp_path / "program.npz", program, JsonSchema({"type": "string"}), {})
        with nullcontext() if is_right else pytest.raises(SavedIndexError, match="cannot be counted"):
            read_program(tmp_path / "program.npz")
