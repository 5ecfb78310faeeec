from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.automata import PlainDfa
from tokdfa.automata.algebra import minimize
from tokdfa.backends.tokens_dfa import contraction
from tokdfa.backends.tokens_dfa.contraction import contract
from tokdfa.backends.tokens_dfa.muting import Muting
from tokdfa.constraint import Choice
from tokdfa.errors import LimitExceeded
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa

NONE = -1


def muting(*codes: bytes) -> Muting:
    return Muting((), (), np.arange(len(codes), dtype=np.int32), codes)


def check(coded: Dfa, codes: tuple[bytes, ...]) -> tuple[Dfa, np.ndarray]:
    """Contract, and compare everything with following codes one by one in a plain automaton."""
    plain = PlainDfa.from_arrays(coded.transitions, coded.byte_class, coded.accepting, coded.start)
    leads = {code[0] for code in codes}

    def after_code(state: int, code: bytes) -> int | None:
        here: int | None = state
        for byte in code:
            here = None if here is None else plain.table[here].get(byte)
        return here

    reached, agenda = {coded.start}, [coded.start]
    while agenda:
        state = agenda.pop()
        targets = {target for byte, target in plain.table[state].items() if byte not in leads}
        targets |= {target for code in codes if (target := after_code(state, code)) is not None}
        agenda.extend(targets - reached)
        reached |= targets
    number = {state: index for index, state in enumerate(sorted(reached))}

    dfa, bound_targets = contract(coded, muting(*codes))
    assert (dfa.state_count, dfa.start) == (len(number), number[coded.start])
    assert bound_targets.dtype == np.int32
    assert bound_targets.shape == (len(number), len(codes))
    for state, index in number.items():
        assert dfa.accepting[index] == coded.accepting[state]
        for byte in range(256):
            target = None if byte in leads else plain.table[state].get(byte)
            assert dfa.step(index, byte) == (NONE if target is None else number[target])
        for bound_token, code in enumerate(codes):
            target = after_code(state, code)
            assert bound_targets[index, bound_token] == (NONE if target is None else number[target])
    assert len({column.tobytes() for column in dfa.transitions.T}) == dfa.class_count, "classes are not the coarsest"
    return dfa, bound_targets


CODE_SETS = (
    (b"\xc0",),
    (b"\xc0", b"\xff"),
    (b"\xc0\xc0", b"\xc0\xf5", b"\xf5\xc0", b"\xf5\xf5"),
    (b"\xc0\xc0\xc0", b"\xc0\xc0\xc1", b"\xc0\xc1\xc0"),
    (b"\xfea", b"\xfeb", b"\xfe\xfe"),  # with a single lead the rest of a code may be bytes of texts
)


@given(st.sampled_from(CODE_SETS), st.data())
def test_every_transition(codes: tuple[bytes, ...], data: st.DataObject) -> None:
    pieces = st.sampled_from([b"a", b"b", b"!", *codes])
    words = data.draw(st.sets(st.lists(pieces, max_size=5).map(b"".join), min_size=1, max_size=8))
    check(compile_dfa(Choice(words)), codes)


def test_a_bound_token_in_one_class_with_a_byte() -> None:
    """``c|!``: the two lead to the same place everywhere, so they share a column, which only the byte keeps."""
    coded = compile_dfa(Choice([b"\xc0", b"!"]))
    assert coded.byte_class[0xC0] == coded.byte_class[ord("!")]
    dfa, bound_targets = check(coded, (b"\xc0",))
    assert dfa.accepts(b"!")
    assert not dfa.accepts(b"\xc0")
    assert bound_targets.tolist() == [[1], [-1]]


def test_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    coded = minimize(compile_dfa(Choice([b"\xc0" * 20, b"\xc1"])))
    monkeypatch.setattr(contraction, "MAX_TARGETS", 41)
    with pytest.raises(LimitExceeded, match="mute_literals=False"):
        contract(coded, muting(b"\xc0", b"\xc1"))
    monkeypatch.setattr(contraction, "MAX_TARGETS", 42)
    contract(coded, muting(b"\xc0", b"\xc1"))
