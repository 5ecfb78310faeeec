import numpy as np
import numpy.typing as npt

from tokdfa.regex.nodes import Nodes

class ExpressionNames:
    def __init__(self, store: Nodes, depth: int = 0) -> None: ...
    def key(self, expression: int) -> bytes: ...
    def describe(self, expression: int) -> str: ...

def name_states(
    transitions: npt.NDArray[np.int32],
    accepting: npt.NDArray[np.bool_],
    byte_class: npt.NDArray[np.uint8],
    depth: int,
    first: int = 0,
) -> npt.NDArray[np.uint64]: ...
def name_soon(
    transitions: npt.NDArray[np.int32],
    accepting: npt.NDArray[np.bool_],
    byte_class: npt.NDArray[np.uint8],
    depth: int,
    state: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]: ...
