from collections.abc import Callable

from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.mask import Mask
from tokdfa.proper.canonical import Canonicity

#: The last token (-1: none, the piece has just begun) and the keys of the hypotheses, ascending.
State = tuple[int, tuple[int, ...]]

def begin_state(table: ProperTable) -> State:
    """The state of a text that begins here."""

class SplitMask:
    """Mdirect and Mborder of one set of hypotheses: packed, and as lists of tokens where both are short.

    `begins`: a piece has just begun, so that the mask is Mdirect.
    """

    def __init__(self, direct: Mask, after_border: Mask, begins: bool) -> None: ...
    @property
    def direct(self) -> Mask: ...
    @property
    def after_border(self) -> Mask: ...
    @property
    def nbytes(self) -> int:
        """Memory of the bit sets."""

    def fill(self, last: int, canonicity: Canonicity, out: Mask) -> None:
        """Overwrite `out` with the mask after the token `last` (-1: none)."""

class ProperStates:
    """The states and masks over one table. Immutable to its users, safe to share between threads.

    `max_bytes` bounds the kept bit sets; past it they are made anew.
    """

    def __init__(self, table: ProperTable, max_bytes: int = 256 << 20) -> None: ...
    @property
    def table(self) -> ProperTable: ...
    @property
    def canonicity(self) -> Canonicity: ...
    @property
    def nbytes(self) -> int:
        """Memory of the table and of the kept bit sets."""

    def prepare(self, state: State) -> None:
        """Settle what the first mask needs."""

    def settle_all(self, state: State) -> None:
        """Settle all hypotheses that can be reached from `state`. One trie walk each, and more."""

    def can_end(self, state: State) -> bool:
        """Whether the text may end."""

    def fill(self, state: State, out: Mask) -> tuple[int, int] | None:
        """Overwrite `out` with the tokens that may come next, end tokens included. 1 us once kept.

        Returns None then, else (states, transitions) that had to be settled first.
        """

    def step(self, state: State, token: int) -> State | None:
        """The state after `token`, None if it is not allowed. 0.3 us a hypothesis."""

    def behind_border(self, key: int) -> int:
        """The key of the state behind a border, -1 if none may stand here."""

    def gather(
        self, fresh: bool, keys: tuple[int, ...], add_tokens: Callable[[int, Mask], None], can_end: bool
    ) -> SplitMask:
        """Mdirect and Mborder; `fresh`: the piece has just begun, so that no border stands here.

        `add_tokens`: adds the tokens of a key to a mask. End tokens are in the one that the last token has no say in.
        """
