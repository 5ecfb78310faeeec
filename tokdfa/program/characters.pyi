import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa

def find_begins(dfa: Dfa, strings: npt.NDArray[np.int32], body: int) -> npt.NDArray[np.int32] | None:
    """1 for the states in which a character begins, 0 for others: int32, shape (states,). None if that depends on the
    text, or if some text is none of a string.

    `strings`: the table by byte of the automaton of any string, which starts in 0 as `dfa` does; `body`: its state in
    which a character begins. O(pairs of a state here and one of that).
    """

def count_least(dfa: Dfa, begins: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], bool]:
    """(how many characters begin at least before an end: int32, shape (states,); whether from every state an end comes
    after any greater number, too). O(states² x classes), mostly far less.
    """
