"""Vegas configurations of CartesianMerge: cuts against plain reading, masks with parts against masks without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.backends.proper_merge.token_languages import TEXTS, compare_walks, regexes
from tests.backends.proper_oracle import merge_pairs
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import merge_list, real
from tests.strategies import examples
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge, CompiledCartesianMerge
from tokdfa.backends.proper_merge.direct_merge import DirectMerge
from tokdfa.backends.proper_merge.marked_product import INSIDE
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.backends.proper_merge.vegas import PartTables, VegasTable
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.vocabulary.tokenizers import Tokenizer

STRING = r'"([^"\\\x00-\x1f]|\\["\\n])*"'
PATTERNS = {
    "lines": r"name: [^\n]+\nage: [^\n]+\n",
    "bounded": "x: [a-z]{1,6}\ny: [a-z]{1,6}\n",
    "object": rf'\{{"name": {STRING}, "tags": \[({STRING}(, {STRING})*)?\], "n": -?[0-9]{{1,3}}\}}',
    "loop": "(- (a+|b)\n)+",
}


def compile_both(tokenizer: Tokenizer, pattern: str, **options: str) -> list[CompiledCartesianMerge]:
    """With parts, and without."""
    ways = ({"vegas": "parts"} | options, {"vegas": "off"})
    made = [CartesianMerge(tokenizer.vocabulary, **way).compile(Regex(pattern)) for way in ways]
    assert all(isinstance(one, CompiledCartesianMerge) for one in made)
    return made  # type: ignore[return-value]


def stretches(table: VegasTable, text: bytes) -> list[bytes]:
    """`text` cut wherever its path comes past a cut."""
    automaton = table.automaton
    rows = automaton.table.reshape(-1, automaton.classes)
    state, found = automaton.starts[0], [b""]
    for byte in text:
        if table.is_cut[state] and found[-1]:
            found.append(b"")
        found[-1] += bytes([byte])
        state = int(rows[state, automaton.byte_class[byte]]) // automaton.classes
    return found


@examples(60)
@given(pairs=merge_pairs("abc"), pattern=regexes())
@example(pairs=[("a", "b")], pattern="(ab|ca)*")
@example(pairs=[("b", "c"), ("a", "b")], pattern="a(bc)*")  # ab is a token that never stands there
def test_what_stands_between_cuts_is_encoded_by_itself(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], pattern: str
) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "abc", pairs))
    (compiled, _) = compile_both(tokenizer, pattern)
    table = compiled.table
    assert isinstance(table, VegasTable)
    assert set(np.flatnonzero(~table.is_cut).tolist()) == crossed_by_reading(table)
    for text in map(str.encode, TEXTS):
        if compiled.dfa.accepts(text):
            encode = table.canonicity.source.encode_piece
            assert [t for part in stretches(table, text) if part for t in encode(part)] == (
                encode(text) if text else []
            )


@examples(60)
@given(pairs=merge_pairs("abc"), parts=st.lists(regexes(), min_size=2, max_size=3), spans=st.booleans())
def test_delimiters(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], parts: list[str], spans: bool
) -> None:
    """Between ``zx`` and ``yz``, which merge with nothing, is a Vegas configuration; until some token spans them."""
    pairs = [*pairs, *([("z", "x"), ("y", "z")] if spans else [])]
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "abcxyz", pairs))
    (compiled, _) = compile_both(tokenizer, "".join(f"zx({part})yz" for part in parts))
    table = compiled.table
    assert isinstance(table, VegasTable)
    rows = table.automaton.table.reshape(-1, table.automaton.classes)
    after_z, after_y = (
        {int(target) // table.automaton.classes for target in rows[:, table.automaton.byte_class[byte]] if target >= 0}
        for byte in b"zy"
    )
    before_x = {state for state in after_z if rows[state, table.automaton.byte_class[ord("x")]] >= 0}
    assert all(table.is_cut[state] == (not spans) for state in before_x | after_y)


class TestTheExampleOf002:
    """With Mistral's tokenizer, a string that starts with a blank, between a colon and a line break."""

    def test_no_token_runs_across(self) -> None:
        vocabulary = real("mistral-v1").vocabulary
        spelled = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        assert [text for text in spelled if b": " in text] == []
        assert [text for text in spelled if b"\n" in text] == [b"\n"]
        assert [text for text in spelled if b":/" in text]  # without the blank it would not be one

    @pytest.mark.parametrize("value", [" [a-z ]+", " [^\n]*", " (true|false)", "[^\n]*"])
    def test_detected(self, value: str) -> None:
        (compiled, _) = compile_both(load_tokenizer("mistral-v1"), f"(name:{value}\n)+")
        table = compiled.table
        assert isinstance(table, VegasTable)
        rows, state = table.automaton.table.reshape(-1, table.automaton.classes), table.automaton.starts[0]
        for byte in b"name:":
            state = int(rows[state, table.automaton.byte_class[byte]]) // table.automaton.classes
        assert table.is_cut[state] == value.startswith(" ")

    @given(
        before=st.text("abcdefghij _:-", max_size=8),
        value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12),
        after=st.text("abc :\n", max_size=8),
    )
    def test_encoded_apart(self, before: str, value: str, after: str) -> None:
        encode_piece = real("mistral-v1").source.encode_piece
        texts = [f"{before}:".encode(), f" {value}".encode(), f"\n{after}".encode()]
        assert encode_piece(b"".join(texts)) == [token for text in texts for token in encode_piece(text)]


@pytest.mark.parametrize("name", ["mistral-v1", pytest.param("smollm2", marks=needs_smollm2)])
@pytest.mark.parametrize("label", PATTERNS)
def test_masks_of_real_tokenizers(name: str, label: str) -> None:
    tokenizer = load_tokenizer(name)
    made = compile_both(tokenizer, PATTERNS[label])
    assert isinstance(made[0].table, VegasTable)
    assert compare_walks(made, 4, 25) > 20


def crossed_by_reading(table: VegasTable) -> set[int]:
    """The states that some token comes past strictly inside, by reading every token from every state."""
    automaton, vocabulary = table.automaton, table.canonicity.vocabulary
    rows = automaton.table.reshape(-1, automaton.classes)
    found = set(automaton.starts)
    for token in table.canonicity.text_trie.order.tolist():
        for state in range(automaton.state_count):
            path = [state]
            for byte in vocabulary.token_bytes(token):
                target = int(rows[path[-1], automaton.byte_class[byte]])
                if target < 0:
                    break
                path.append(target // automaton.classes)
            else:
                found |= set(path[1:-1])
    return found


def test_the_example_of_the_source() -> None:
    """With Mistral's tokenizer a value of YAML is settled once for all its places, and only when a text gets there."""
    tokenizer = load_tokenizer("mistral-v1")
    with pytest.raises(LimitExceeded):
        DirectMerge(tokenizer.vocabulary, max_transitions=300_000).compile(Regex(PATTERNS["lines"]))
    made, plain = compile_both(tokenizer, PATTERNS["lines"])
    table = made.table
    assert isinstance(table, VegasTable)
    assert table.transitions < 100 < 100_000 < plain.table.transitions
    matcher = made.start()
    settled = []
    for token in tokenizer.encode("name: Ann\nage: old\n"):
        matcher.fill_mask(masks.allocate_mask(tokenizer.vocabulary.size))
        settled.append(table.transitions)
        matcher.advance(token)
    assert settled[-1] > 50_000  # the value, once
    assert settled[-1] - settled[4] < 1_000
    assert table.parts_known >= 1
    assert matcher.counters["settled_transitions"] == settled[-1] - made.sizes["transitions"]


def test_library_option_shares_between_compiles() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    pattern = r"speed: [^\n]+\n"
    counted = []
    for _ in range(2):
        compiled = CartesianMerge(tokenizer.vocabulary, vegas="library").compile(Regex(pattern))
        matcher = compiled.start()
        for token in tokenizer.encode("speed: fast"):
            matcher.fill_mask(masks.allocate_mask(tokenizer.vocabulary.size))
            matcher.advance(token)
        counted.append(compiled.table.parts_known)  # type: ignore[attr-defined]
    assert counted[1] > counted[0]


def test_a_library_drops_the_oldest() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    (compiled, _) = compile_both(tokenizer, PATTERNS["object"])
    table = compiled.table
    small = VegasTable(table.automaton, table.canonicity, PartTables(max_bytes=0))
    for key in np.flatnonzero(small.is_cut & (small.automaton.can_stop & INSIDE == 0)).tolist():
        small.add_live_tokens(key, masks.allocate_mask(tokenizer.vocabulary.size))
    assert len(small.tables) == 1 < small.parts_found


def test_limits_and_tokenizers_with_whole_pieces() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    backend = CartesianMerge(tokenizer.vocabulary, vegas="parts", max_transitions=1_000)
    compiled = backend.compile(Regex(PATTERNS["lines"]))
    matcher = compiled.start()
    for token in tokenizer.encode("name"):
        matcher.advance(token)
    mask_of(matcher)  # a key has few tokens
    matcher.advance(tokenizer.encode("name:")[-1])
    with pytest.raises(LimitExceeded, match="raise max_transitions"):
        mask_of(matcher)
    other = CartesianMerge(load_tokenizer("llama3").vocabulary, vegas="library").compile(Regex("a+"))
    assert type(other.table) is ProperTable
    with pytest.raises(ValueError, match="whole pieces"):
        VegasTable(other.table.automaton, other.table.canonicity, PartTables())
