"""A deterministic automaton over bytes: four frozen arrays, checked once when built.

The transition table has one column a byte class (see `tokdfa.automata.byte_classes`), so reading byte `b` in state `s`
goes to ``transitions[s, byte_class[b]]``; -1 means that no accepted word goes on this way. Everything else (trimming,
minimising, combining) is a function in `tokdfa.automata.algebra`; compare two automata with
`algebra.distinguishing_word`, not with ``==``, which is identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.automata.byte_classes import byte_classes
from tokdfa.errors import AutomatonError


@dataclass(frozen=True, eq=False, repr=False)
class Dfa:
    """A deterministic automaton over bytes, immutable and shareable between threads.

    `transitions`: int32, shape (states, classes), the next state or -1 (dead); `byte_class`: uint8, shape (256,), byte
    -> column, every column used; `accepting`: bool, shape (states,); `start`: a state, or -1 iff there are no states
    (the empty language). Arrays are copied unless they are read-only already. Raises AutomatonError if the parts do
    not fit together. O(states x classes).
    """

    transitions: npt.NDArray[np.int32]
    byte_class: npt.NDArray[np.uint8]
    accepting: npt.NDArray[np.bool_]
    start: int

    def __post_init__(self) -> None:
        transitions = _frozen(self.transitions, np.int32, "transitions", 2)
        byte_class = _frozen(self.byte_class, np.uint8, "byte_class", 1)
        accepting = _frozen(self.accepting, np.bool_, "accepting", 1)
        for name, value in (("transitions", transitions), ("byte_class", byte_class), ("accepting", accepting)):
            object.__setattr__(self, name, value)
        if not isinstance(self.start, int | np.integer):
            raise AutomatonError(f"start is the number of a state, not {self.start!r}")
        object.__setattr__(self, "start", int(self.start))
        states, classes = transitions.shape
        if byte_class.shape != (256,):
            raise AutomatonError(f"byte_class has shape (256,), not {byte_class.shape}")
        used = sorted(set(byte_class.tolist()))
        if used != list(range(classes)):
            raise AutomatonError(
                f"transitions has {classes} columns, so byte_class must use exactly the classes 0..{classes - 1}; "
                f"it uses {used}. Build from a table by bytes with Dfa.from_table"
            )
        if accepting.shape != (states,):
            raise AutomatonError(f"there are {states} states, but accepting has shape {accepting.shape}")
        wrong = (transitions < -1) | (transitions >= states)
        if wrong.any():
            state, column = (int(index) for index in np.argwhere(wrong)[0])
            raise AutomatonError(
                f"state {state} leads by class {column} to {transitions[state, column]}; "
                f"targets are -1 (dead) or a state from 0 to {states - 1}"
            )
        if not (0 <= self.start < states or (self.start == -1 and states == 0)):
            raise AutomatonError(
                f"start {self.start} is not one of {states} states (-1 stands for none, when there are no states)"
            )

    @classmethod
    def from_table(
        cls, transitions_by_byte: npt.NDArray[np.integer], accepting: npt.NDArray[np.bool_], start: int
    ) -> Dfa:
        """From a table with a column for each byte: integers, shape (states, 256). Finds the byte classes."""
        table = np.asarray(transitions_by_byte)
        byte_class, representatives = byte_classes(table)
        return cls(np.take(table, representatives, axis=1), byte_class, accepting, start)

    @classmethod
    def trusted(
        cls,
        transitions: npt.NDArray[np.int32],
        byte_class: npt.NDArray[np.uint8],
        accepting: npt.NDArray[np.bool_],
        start: int,
    ) -> Dfa:
        """The automaton of arrays that fit together because compiled code made them: taken as they are, and frozen."""
        made = object.__new__(cls)
        for name, array in (("transitions", transitions), ("byte_class", byte_class), ("accepting", accepting)):
            array.flags.writeable = False
            object.__setattr__(made, name, array)
        object.__setattr__(made, "start", start)
        return made

    @classmethod
    def empty(cls) -> Dfa:
        """The automaton without states, which accepts no word."""
        return cls(np.zeros((0, 1), np.int32), np.zeros(256, np.uint8), np.zeros(0, np.bool_), -1)

    @property
    def state_count(self) -> int:
        """The number of states, without the dead one."""
        return self.transitions.shape[0]

    @property
    def class_count(self) -> int:
        """The number of byte classes, at most 256."""
        return self.transitions.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.transitions.nbytes + self.byte_class.nbytes + self.accepting.nbytes

    def step(self, state: int, byte: int) -> int:
        """The state after `byte`, or -1; from -1 (dead) always -1."""
        return int(self.transitions[state, self.byte_class[byte]]) if state >= 0 else -1

    def run(self, data: bytes, state: int | None = None) -> int:
        """The state after `data`, read from `state` (default: the start); -1 if the run dies."""
        here = self.start if state is None else state
        for column in self.byte_class[np.frombuffer(data, dtype=np.uint8)].tolist():
            if here < 0:
                break
            here = int(self.transitions[here, column])
        return here

    def accepts(self, data: bytes) -> bool:
        """Whether the word `data` belongs to the language."""
        end = self.run(data)
        return end >= 0 and bool(self.accepting[end])

    def byte_table(self) -> npt.NDArray[np.int32]:
        """The table with a column for each byte: int32, shape (states, 256), C-contiguous, a new array each time."""
        return np.take(self.transitions, self.byte_class, axis=1)

    def __repr__(self) -> str:
        return (
            f"Dfa({self.state_count} states, {self.class_count} byte classes, "
            f"{int(self.accepting.sum())} accepting, start={self.start})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writable; building anew checks and freezes them.
        return Dfa, (self.transitions, self.byte_class, self.accepting, self.start)


def _frozen(given: Any, dtype: type[np.generic], name: str, dimensions: int) -> Any:
    """`given` as a read-only C-contiguous array of `dtype`; AutomatonError if that would change a value."""
    array = np.asarray(given)
    if array.ndim != dimensions:
        raise AutomatonError(f"{name} has {array.ndim} dimensions, not {dimensions}")
    both_whole = np.issubdtype(array.dtype, np.integer) and np.issubdtype(dtype, np.integer)
    if array.dtype != dtype and not both_whole:
        raise AutomatonError(f"{name} holds {array.dtype}, not {np.dtype(dtype).name}")
    converted = np.array(array, dtype=dtype, order="C", copy=None if not array.flags.writeable else True)
    if array.dtype != dtype and not np.array_equal(converted, array):
        raise AutomatonError(f"{name} holds numbers that do not fit {np.dtype(dtype).name}")
    converted.flags.writeable = False
    return converted
