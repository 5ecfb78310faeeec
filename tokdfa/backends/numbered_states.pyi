from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.state_matcher import StateMatcher
from tokdfa.mask import Mask
from tokdfa.token_automata.token_index import TokenTable
from tokdfa.vocabulary.mask_store import MaskStore
from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]

class NumberedStates(ABC):
    vocab: Vocabulary
    masks: MaskStore

    @abstractmethod
    def step(self, state: int, token: int) -> int: ...
    @abstractmethod
    def targets(self, state: int) -> Int32: ...
    @abstractmethod
    def accepts(self, state: int) -> bool: ...
    def make_mask(self, state: int, out: Mask) -> dict[str, int]:
        """Overwrite `out` with a mask that is not kept, and keep it if masks are kept; what that took, by counter.

        To be written unless masks are made by compiled code (`write_new`).
        """

    def fill(self, state: int, out: Mask) -> dict[str, int]: ...

class NumberedMatcher(StateMatcher[int]):
    def __init__(self, states: NumberedStates) -> None: ...
    def _step(self, state: int, token: int) -> int | None: ...
    def _accepts(self, state: int) -> bool: ...
    def _fill(self, state: int, out: Mask) -> None: ...
    def _fork_empty(self) -> NumberedMatcher: ...
    def situation_source(self) -> SituationSource: ...

class RowTable(NumberedStates):
    table: TokenTable
    accepting: npt.NDArray[np.bool_]

    def __init__(
        self,
        vocab: Vocabulary,
        table: TokenTable,
        accepting: npt.NDArray[np.bool_],
        cache_bytes: int,
        keep: bool = True,
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def step(self, state: int, token: int) -> int: ...
    def targets(self, state: int) -> Int32: ...
    def accepts(self, state: int) -> bool: ...
    def row(self, state: int) -> dict[int, int]: ...
