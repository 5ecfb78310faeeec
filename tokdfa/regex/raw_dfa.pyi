from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.regex.expression import ExpressionStore
from tokdfa.vocabulary.byte_table import ByteTable

class RawDfa(ByteTable):
    store: Final[ExpressionStore]
    root: Final[int]
    max_states: Final[int]
    state_count: Final[int]
    explored: Final[int]
    needs_proof: Final[bool]
    representatives: Final[npt.NDArray[np.uint8]]
    bytes_read: Final[npt.NDArray[np.bool_]]
    raw: Final[npt.NDArray[np.int32]]
    accepting: Final[npt.NDArray[np.bool_]]
    live: Final[npt.NDArray[np.uint8]]
    def __init__(self, store: ExpressionStore, root: int, max_states: int = 1_000_000) -> None: ...
    def expression(self, state: int) -> int: ...
    def explore(self, max_states: int | None = None, first: int = 0) -> None: ...
    def to_dfa(self, max_states: int | None = None, first: int = 0) -> Dfa: ...
