"""Programs in files: the same masks afterwards, and no damage goes unnoticed."""

from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING

import pytest

from tests.walks import masks_along
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import SavedIndexError, UnsupportedConstraint
from tokdfa.grammar import lexeme_automata
from tokdfa.program.printing import format_program
from tokdfa.program.program_file import read_program, write_program
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.constraint import Constraint

TOKENS = [bytes([byte]) for byte in range(256)] + [b"ab", b'"a', b"a,", b'",', b"[[", b"12", b""]
LISTS = 'start: "[" [item ("," item)*] "]"\nitem: start | NAME | <|x|>\nNAME: /"[^"]*"|[0-9]+/\n%ignore " "\n'
CONSTRAINTS = (
    Grammar(LISTS, label="lists"),
    Grammar("start: text <|x|>\ntext[lazy]: /[a-z,]*,/\n", label="lazy"),
    Regex(r'"[^"]{0,40}"', label="string"),
    Choice([b"ab", b"a,", "12"]),
)


def small_vocabulary(extra: bytes = b"") -> Vocabulary:
    texts = [*TOKENS[:-1], extra, b"", b""]
    return Vocabulary(texts, end_tokens=[len(texts) - 1], special_tokens={len(texts) - 2: "<|x|>"})


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: c.name)
@pytest.mark.parametrize("lexer", ["longest", "any"])
def test_a_loaded_form_is_the_one_that_was_saved(constraint, lexer: str, tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    compiled = PushdownTrie(vocabulary, lexer=lexer, shared=False).compile(constraint)
    assert isinstance(compiled, CompiledPushdown)
    compiled.save(tmp_path / "program.npz")
    loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
    assert loaded.constraint == constraint
    assert loaded.settings == compiled.settings
    assert format_program(loaded.program) == format_program(compiled.program)
    for seed in range(3):
        assert masks_along(loaded, seed, 30) == masks_along(compiled, seed, 30)
    other = small_vocabulary(b"a]")  # a program is for any vocabulary
    moved = CompiledPushdown.load(tmp_path / "program.npz", other)
    assert masks_along(moved, 0) == masks_along(PushdownTrie(other, lexer=lexer).compile(constraint), 0)


def test_an_automaton_out_of_a_file_passes_for_no_other(tmp_path: Path) -> None:
    """A file whose text has been exchanged, with a right digest, must not change what other constraints read."""
    vocabulary = small_vocabulary()
    program = PushdownTrie(vocabulary, shared=False).compile(Regex("ab")).program  # type: ignore[attr-defined]
    wrong = PushdownTrie(vocabulary, shared=False).compile(Regex("12")).program  # type: ignore[attr-defined]
    program.source.terminals = wrong.source.terminals
    write_program(tmp_path / "program.npz", program, Regex("ab"), {})
    loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
    assert loaded.start().allows(ord("1"))
    honest = PushdownTrie(vocabulary).compile(Regex("ab")).start()
    assert honest.allows(ord("a"))
    assert not honest.allows(ord("1"))


@pytest.mark.parametrize(
    "constraint",
    [
        Regex("[ab]{0,2500}c"),
        JsonSchema({"type": "string", "pattern": "^([a-z0-9]{1,60}-){3}[a-z]{1,40}$"}),
    ],
    ids=["regex", "pattern"],
)
def test_lazy_automata_are_saved_with_all_their_states(constraint: Constraint, tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    compiled = PushdownTrie(vocabulary, shared=False).compile(constraint)
    assert isinstance(compiled, CompiledPushdown)
    assert any(not isinstance(terminal.make(), Dfa) for terminal in compiled.program.source.terminals)
    compiled.save(tmp_path / "program.npz")
    loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
    for seed in range(3):
        assert masks_along(loaded, seed) == masks_along(compiled, seed)


def test_an_automaton_of_many_states_is_loaded_for_a_vocabulary_without_all_bytes(tmp_path: Path) -> None:
    """Whether tokens spell its texts is asked once of each state: by rounds over all states it would take minutes."""
    compiled = PushdownTrie(small_vocabulary()).compile(Regex("a|cd|[ab]{15000}"))
    assert isinstance(compiled, CompiledPushdown)
    compiled.save(tmp_path / "program.npz")
    for missing, complete in ((b"d", False), (b"x", True)):
        tokens = [bytes([byte]) for byte in range(256) if byte not in missing]
        vocabulary = Vocabulary([*tokens, b""], end_tokens=[255])
        loaded = CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
        assert isinstance(loaded, CompiledPushdown)
        assert loaded.complete == complete


def test_automata_of_too_many_states_are_not_saved(tmp_path: Path) -> None:
    compiled = PushdownTrie(small_vocabulary()).compile(Regex("[ab]{0,90000}"))
    assert isinstance(compiled, CompiledPushdown)
    with pytest.raises(UnsupportedConstraint, match="more than 20,000 states"):
        compiled.save(tmp_path / "program.npz")


def test_what_was_dropped_is_known_after_loading(tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    schema = {"type": "array", "items": {"type": "string", "pattern": r"(a)\1"}}
    for unique in (False, True):
        constraint = JsonSchema({**schema, "uniqueItems": unique}, lenient=True)
        compiled = PushdownTrie(vocabulary).compile(constraint)
        assert len(compiled.dropped) == 1
        compiled.save(tmp_path / "program.npz")  # type: ignore[attr-defined]
        assert CompiledPushdown.load(tmp_path / "program.npz", vocabulary).dropped == compiled.dropped


def test_nobody_makes_masks_while_automata_are_explored_to_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lazy automata of one grammar share their expressions, which grow."""
    grammar = Grammar("start: (A | B)+\nA: /[ab]{1,3000}c/\nB: /[ab]{1,2500}d/\n")
    waits: list[bool] = []
    compiled = None

    class Watched(LazyDfa):
        def to_dfa(self, *limits: int) -> Dfa:
            if compiled is not None:
                other = threading.Thread(target=compiled.start().allows, args=(len(waits),))
                other.start()
                other.join(0.1)
                waits.append(other.is_alive())
            return super().to_dfa(*limits)

    monkeypatch.setattr(lexeme_automata, "LazyDfa", Watched)
    compiled = PushdownTrie(small_vocabulary(), shared=False, lexer="any").compile(grammar)
    assert isinstance(compiled, CompiledPushdown)
    compiled.save(tmp_path / "program.npz")
    pickle.dumps(compiled)
    assert len(waits) > 2
    assert all(waits)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("code", 3, 9), ("code", 4, 1_000), ("code", 5, -1), ("code", 0, 3), ("entries", 0, 999)],
)
def test_forged_forms_are_refused(name: str, place: int, value: int, tmp_path: Path) -> None:
    compiled = PushdownTrie(small_vocabulary()).compile(CONSTRAINTS[0])
    assert isinstance(compiled, CompiledPushdown)
    getattr(compiled.program.source, name)[place] = value
    write_program(tmp_path / "program.npz", compiled.program, CONSTRAINTS[0], {})
    with pytest.raises(SavedIndexError, match="no valid program"):
        read_program(tmp_path / "program.npz")


def test_a_form_that_reads_what_is_skipped_is_refused(tmp_path: Path) -> None:
    grammar = Grammar('start: "b" "a"\n%ignore "a"')
    compiled = PushdownTrie(small_vocabulary()).compile(grammar)
    assert isinstance(compiled, CompiledPushdown)
    compiled.program.source.entries[0] = compiled.program.skip
    write_program(tmp_path / "program.npz", compiled.program, grammar, {})
    with pytest.raises(SavedIndexError, match="no valid program"):
        read_program(tmp_path / "program.npz")


@pytest.mark.parametrize("settings", [{"lexer": "shortest"}, {"lexxer": "any"}, {"mask_mb": "many"}])
def test_a_form_with_wrong_options_names_its_file(settings: dict[str, object], tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    compiled = PushdownTrie(vocabulary).compile(CONSTRAINTS[0])
    assert isinstance(compiled, CompiledPushdown)
    write_program(tmp_path / "program.npz", compiled.program, CONSTRAINTS[0], settings)
    with pytest.raises(SavedIndexError, match=r"program\.npz has options that cannot be"):
        CompiledPushdown.load(tmp_path / "program.npz", vocabulary)
