from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa

NS_PER_ENTRY: int

class Spellings:
    """How bytes spell the code points of classes.

    `firsts`: where intervals of code points begin, ascending from 0; `raw`, `escaped`: by interval the class, below
    `class_count`, of code points that may be spelled in this way, -1 if they may not.
    """

    def __init__(self, firsts: Sequence[int], raw: Sequence[int], escaped: Sequence[int], class_count: int) -> None: ...

def spell(
    texts: Dfa, ends: npt.NDArray[np.bool_], closed: npt.NDArray[np.bool_], spellings: Spellings, most_states: int
) -> Dfa | None:
    """The automaton of the JSON strings, quotes included, of the texts over classes that `texts` reads from state 0 on.

    `ends`, `closed`: shape (states,), where a text may end; which states are its end, so that nothing goes on. None if
    there are more than `most_states`, and those behind one state of `texts`. 20 ns for each node of the spellings and
    byte class, for each state of `texts`. Raises LimitExceeded.
    """
