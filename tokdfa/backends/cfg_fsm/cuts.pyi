from typing import Protocol

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]

class Lexer(Protocol):
    """An automaton: `transitions`: int32, shape (states, classes), -1 dead; `byte_class`: uint8, shape (256,);
    `outcome_of`: int32, shape (states,), -1 where no lexeme ends.
    """

    transitions: Int32
    byte_class: npt.NDArray[np.uint8]
    outcome_of: Int32

class Rests(Protocol):
    """The arrays of a `tokdfa.backends.cfg_fsm.splits.SplitTable` that say what its rests are."""

    byte_data: npt.NDArray[np.uint8]
    where: npt.NDArray[np.int64]
    lengths: Int32
    shared: Int32
    rest_at: Int32

def multiply(
    prefixes: npt.NDArray[np.uint64], suffixes: npt.NDArray[np.uint64], labels: Int32, out: npt.NDArray[np.uint64]
) -> None:
    """Set the bits ``labels[c]`` of `out` for each cut c that is in both packed vectors.

    One AND for 64 cuts, and about 2 ns a cut that is in both.
    """

def run_rests(table: Rests, lexer: Lexer, state: int) -> tuple[Int32, Int32, Int32, Int32]:
    """The fields of `tokdfa.backends.cfg_fsm.splits.RestVectors` for a lexer state. About 5 ns a rest and exit."""

def join_pairs(
    vectors: tuple[Int32, Int32, Int32, Int32],
    class_of: npt.NDArray[np.uint16],
    class_count: int,
    outcome_count: int,
    tokens: Int32,
    rests: Int32,
) -> tuple[npt.NDArray[np.int64], Int32, npt.NDArray[np.int64], Int32, Int32]:
    """Join pairs (tokens[i], rests[i]) with the vectors of a lexer state, whose classes are `class_of`.

    Returns where each class ends among the tokens that stay inside, and these, by class; where each outcome ends among
    the pairs that are left, and their tokens and rests, by outcome.
    """
