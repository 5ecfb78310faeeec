from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.regex.nodes import Nodes

NEVER: Final[int]

class ShortestTexts:
    def __init__(self, store: Nodes, available: npt.NDArray[np.bool_] | None = None) -> None: ...
    def bound(self, expression: int) -> int: ...
