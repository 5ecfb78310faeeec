import numpy as np
import numpy.typing as npt

from tokdfa.backends.numbered_states import NumberedStates
from tokdfa.core.budget import spending
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.mask_store import MaskStore
from tokdfa.vocabulary.vocabulary import Vocabulary

class LazyStates(NumberedStates):
    def __init__(
        self,
        vocab: Vocabulary,
        automaton: LazyDfa,
        masks: MaskStore,
        working: spending,
        keep: bool = True,
        per_token: bool = False,
    ) -> None: ...
    @property
    def automaton(self) -> LazyDfa: ...
    def step(self, state: int, token: int) -> int: ...
    def targets(self, state: int) -> npt.NDArray[np.int32]: ...
    def accepts(self, state: int) -> bool: ...
