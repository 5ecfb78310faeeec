import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]

def part_from(table: Int32, start: int) -> tuple[Int32, Int32]:
    """The part of a table of transitions that can be reached from `start`, which becomes its state 0, and which states
    of `table` it has, in breadth-first order. O(states of the table + entries of the part).
    """
