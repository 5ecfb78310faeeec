from collections.abc import Hashable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tokdfa.mask import Mask
from tokdfa.vocabulary.trie import TokenTrie
from tokdfa.vocabulary.trie_nodes import FlatTrie

Int32 = npt.NDArray[np.int32]

#: A table entry: no text goes on this way.
DEAD: Final = -1
#: A table entry: not computed yet.
UNKNOWN: Final = -2

class WalkCounters(NamedTuple):
    nodes_visited: int
    nodes_skipped: int
    rows_filled: int

class ByteTable:
    """A recogniser of bytes as a table; states are named by the offsets of their rows.

    `transitions`: int32, flat, one row of `class_count` entries a state: row offset + class -> row offset, DEAD or
    UNKNOWN. `byte_class`: uint8, shape (256,), byte -> class. Both are used as they are, not copied. Entries must lead
    to rows: a walk does not look. A subclass with UNKNOWN entries writes `fill_row`, or `fill` if an entry is cheaper
    than a row; it may replace `transitions` by a longer array. Not to be used by two threads while rows are filled.
    """

    def __init__(
        self, transitions: Int32, byte_class: npt.NDArray[np.uint8], class_count: int | None = None
    ) -> None: ...
    @staticmethod
    def of_states(transitions: npt.NDArray[np.integer], byte_class: npt.NDArray[np.uint8]) -> ByteTable:
        """The complete table of state numbers: shape (states, classes), negative where no text goes on, as a `Dfa` has.

        State s gets the row at offset s x classes. O(states x classes).
        """
    @property
    def transitions(self) -> Int32: ...
    @transitions.setter
    def transitions(self, array: Int32) -> None: ...
    @property
    def byte_class(self) -> npt.NDArray[np.uint8]: ...
    @property
    def class_count(self) -> int: ...
    def fill(self, row: int, byte: int) -> None: ...
    def fill_row(self, row: int) -> None: ...
    def row_after(self, row: int, trie: FlatTrie, token: int) -> int: ...

class ByteRecognizer(Protocol):
    def step(self, state: Any, byte: int) -> Any: ...

class RecognizerTable(ByteTable):
    """A lazily filled byte table over any Python recogniser whose states can be hashed.

    Each byte is a class of its own. Grows by 1 kB a state; a row is filled when a walk first needs it.
    """

    recognizer: ByteRecognizer
    def __init__(self, recognizer: ByteRecognizer) -> None: ...
    def row(self, state: Hashable) -> int: ...
    def state(self, row: int) -> Any: ...

def walk(trie: TokenTrie, table: ByteTable, state: int, mask: Mask) -> WalkCounters:
    """OR the tokens that `table` allows from `state` into `mask` (int32, shape (ceil(V/32),)).

    Cost: one visit for each node whose parent survived, 1.6 to 4 ns each, and one `fill` where an entry is UNKNOWN.
    Raises what that raises; then `mask` is as it was.
    """

def walk_collect(
    trie: TokenTrie, table: ByteTable, state: int, tokens: Int32, targets: Int32
) -> tuple[int, WalkCounters]:
    """The allowed tokens in trie order and the row each leads to, written to `tokens` and `targets` (int32).

    Both must have room for V + 1 entries. Returns how many there are, and the counters. Order is by bytes, then by id.
    """

def walk_with_address(trie: TokenTrie, step: int, state: int, mask: Mask, user: int = 0) -> WalkCounters:
    """OR the tokens that a compiled step allows from `state` into `mask` (int32, shape (ceil(V/32),)).

    `step`: the address of ``int64_t step(void *user, int64_t state, int64_t byte)``: the state after a byte, from 0 on,
    or -1 where no text goes on; anything less raises TokdfaError. `user`: the address that it is given. Numba's
    ``cfunc.address``, cffi's ``int(ffi.cast("intptr_t", f))`` and ctypes' ``cast(f, c_void_p).value`` are such
    addresses. It may be called without the interpreter's lock, and must not raise.
    """
