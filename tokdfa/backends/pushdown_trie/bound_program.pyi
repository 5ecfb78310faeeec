import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.program.builder import Program
from tokdfa.program.program import Terminal

Int32 = npt.NDArray[np.int32]

MAX_PLACES: int

class ProgramArrays:
    """The arrays of a program in one piece of memory, with room for more."""

    @property
    def nbytes(self) -> int: ...
    def array(self, part: int) -> Int32:
        """A view of an array as it is now; rows of three columns, or of nine of nodes, where entries have so many."""

class BoundProgram:
    """See the module's docstring. `anew`: build all automata, as if no constraint had had them before; that is to
    measure what it takes.

    Raises what making an automaton raises, and LimitExceeded.
    """

    def __init__(self, program: Program, automata: AutomatonTable, anew: bool = False) -> None: ...
    @property
    def program(self) -> Program: ...
    @property
    def arrays(self) -> ProgramArrays: ...
    @property
    def is_spelled(self) -> bool:
        """Whether every state of all terminals and names can reach an end by bytes that are tokens by themselves."""
    def write(self, place: int) -> None:
        """Write the code of the LAZY at a place, and bind it. Raises what making it raises, and LimitExceeded.

        If it raises, the program is as it was.
        """
    def terminal_at(self, place: int) -> Terminal:
        """What the TERMINAL at a place reads."""
