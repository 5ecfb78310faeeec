import threading

import numpy as np
import numpy.typing as npt

from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
from tokdfa.backends.proper_merge.proper_rows import TokenReader
from tokdfa.mask import Mask
from tokdfa.proper.canonical import Canonicity

Int32 = npt.NDArray[np.int32]

class ProperTable:
    """Rows and liveness of one constraint for one tokenizer, made as needed. Safe to share between threads.

    Past `max_transitions` entries LimitExceeded is raised. With `every_state` full states get rows, too.
    """

    def __init__(
        self,
        automaton: PieceAutomaton,
        canonicity: Canonicity,
        max_transitions: int = 30_000_000,
        every_state: bool = False,
    ) -> None: ...
    @property
    def automaton(self) -> PieceAutomaton: ...
    @property
    def canonicity(self) -> Canonicity: ...
    @property
    def reader(self) -> TokenReader: ...
    @property
    def lock(self) -> threading.RLock: ...
    @property
    def node_count(self) -> int:
        """How many nodes the whole pieces have."""

    @property
    def root(self) -> int:
        """The node at the beginning of a piece."""

    @property
    def settled_states(self) -> int:
        """How many states have rows."""

    @property
    def transitions(self) -> int:
        """How many entries the rows have."""

    @property
    def dead_transitions(self) -> int:
        """How many of them lead nowhere, the tokens being proper."""

    @property
    def nbytes(self) -> int:
        """Memory of the table and of its automaton."""

    def is_full(self, key: int) -> bool:
        """Whether the state is live whatever the last token, by what it is."""

    def add_live_tokens(self, key: int, out: Mask) -> None:
        """Set the bits of the live tokens of a state. A trie walk and more the first time: 1 us to many ms."""

    def row(self, key: int) -> tuple[Int32, Int32, npt.NDArray[np.bool_]]:
        """(tokens, the keys they lead to, whether each is live) of a state: int32, int32, bool, copies."""

    def read_row(self, key: int) -> tuple[Int32, Int32]:
        """(tokens, the keys they lead to) of a state: int32, copies. Settles nothing."""

    def is_live(self, key: int, last: int) -> bool:
        """Whether the pair of a state and the last token is live."""

    def read(self, key: int, token: int) -> int:
        """The state after a token that is read inside the piece, live or not; -1 if it cannot be read. 0.1 us."""

    def step(self, key: int, token: int) -> int:
        """The state after a token that is read inside the piece, if the pair of both is live; otherwise -1.

        Whether the token is canonical after the one before is not asked.
        """
