import numpy as np
import numpy.typing as npt

from tokdfa.json_schema.sets.number_set import NumberSet

COLUMNS: int
NS_PER_NUMBER_STATE: int

def explore_states(normal: NumberSet, shift: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], bool]:
    """(table, who accepts, whether hardly any states are equivalent) for a set in normal form; the start is 0.

    The table has shape (states, `COLUMNS`), -1 where no text goes on; some states may be dead ends. `shift` -1 means no
    exponents. About 0.4 us a state. Raises LimitExceeded if there are more than `number_plan.STATE_LIMIT` states, or
    cases of remainders that do not fit 32 bits.
    """
