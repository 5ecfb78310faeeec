from array import array
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Self

import numpy as np
import numpy.typing as npt

from tokdfa.grammar.cfg import OpenNames, SpecialTokens
from tokdfa.program.program import Escapes, NameTable, Terminal

Int32 = npt.NDArray[np.int32]

def split_names(names: tuple[str, ...]) -> list[tuple[int, int]]: ...

class GrowingCode:
    """The code of a program as it stands now, and what is to be written of it yet.

    `terminals`, `token_sets`, `name_tables`: what TERMINAL, TOKEN and NAMES name. Whoever adds code while texts are
    read holds `lock`, as `write` does. No array may be borrowed while code is added.
    """

    terminals: list[Terminal]
    token_sets: list[SpecialTokens]
    name_tables: list[NameTable]
    #: The instructions, three numbers each.
    code: array[int]
    alternatives: array[int]
    arguments: array[int]
    entries: array[int]
    frame_names: list[str | Callable[[], str]]
    #: Bytes that suffice to end every terminal and string of what `makes` write; None: that is not known.
    spelled_by: bytes | None
    #: Of the code that is written so far, where no name may come twice.
    open_names: OpenNames
    #: By number of a LAZY instruction: writes its code, and returns the place to go on at. Several may share one, which
    #: is called with a number then.
    @property
    def makes(self) -> list[Callable[..., int]]: ...
    @property
    def written(self) -> array[int]:
        """Places of which code was written later, in the order of writing."""

    @property
    def lock(self) -> RLock: ...
    def write(self, place: int) -> None:
        """Write the code of a LAZY instruction, unless it is written. Raises what making it raises, and leaves it as it
        was.
        """

    def write_all(self) -> None:
        """Write all code that is to be written later. Raises UnsupportedConstraint if that comes to no end."""

    def copy_arrays(self) -> tuple[Int32, Int32, Int32, Int32]:
        """Copies of `code` (int32, shape (instructions, 3)), `alternatives`, `entries` and `arguments` (int32)."""

    def build(self, start: int, *, skip: int = -1, longest: bool = False) -> Program:
        """The program. Raises UnsupportedConstraint for NAMES, COUNTED or LAZY with `longest`."""

    def calls_below(self, first: int, frame: int) -> bool:
        """Whether the code from a place on calls a frame with a lower number. O(instructions)."""

class ProgramBuilder(GrowingCode):
    """Writes a program back to front: each method returns the place of an instruction that goes on at a given place.

    `escapes`: how a string is written that `counted` reads. Not thread-safe; `write`, which is called while texts are
    read, holds `lock`.
    """

    escapes: Escapes
    def __init__(self, escapes: Escapes = "all") -> None: ...
    def copy(self) -> Self:
        """A builder that has written the same and goes on by itself, with the same lock. What is equal to instructions
        written so far is written again. Raises ValueError if code is written later.
        """

    def terminal(self, terminal: Terminal) -> int:
        """The number of a terminal; terminals of equal language have one number."""

    @property
    def string_terminal(self) -> int:
        """The number of the terminal of any JSON string."""

    def name_table(self, names: tuple[str, ...], escapes: Escapes = "all") -> int:
        """The number of a table of names; tables of equal content have one number. O(length of the names).

        `escapes`: ``all``: any character may be escaped; ``needed``: only those that cannot stand raw. Raises
        UnsupportedConstraint for a name with a surrogate alone, ValueError for no names or equal ones.
        """

    def name_tables_of(self, names: tuple[str, ...], escapes: Escapes = "all") -> list[tuple[int, int]]:
        """(number, index of its first name) of tables that have the names in their order: one, unless it were too
        large. O(length of the names). Raises as `name_table`.
        """

    def frame(self, name: str | Callable[[], str]) -> int:
        """The number of a new frame; `enter` says later where it begins. `name`: or what makes it, if anybody asks."""

    def enter(self, frame: int, place: int) -> None:
        """Let a frame begin at a place."""

    def read(self, terminal: int, following: int) -> int:
        """TERMINAL."""

    def skip(self, terminal: int) -> int:
        """TERMINAL before RETURN, at a place that no rule shares: a machine knows by it that nothing has been read."""

    def take(self, tokens: SpecialTokens, following: int) -> int:
        """TOKEN."""

    def call(self, frame: int, following: int) -> int:
        """CALL."""

    def any_of(self, places: Sequence[int]) -> int:
        """ANY of places, which reads nothing if there are none; of one it is that place."""

    def names(self, table: int, low: int, high: int, targets: Sequence[int], other: int = -1) -> int:
        """NAMES: a JSON string that spells one of the names `low` to `high` (inclusive) of a table, in any spelling.

        It goes on at ``targets[i - low]`` after the closing quote of name i. `other`: the place of a TERMINAL that
        reads every string that is none of the table's names, from its opening quote on; or -1. A name of the table
        outside of the window is refused, with `other`, too; without targets all names are. The terminal must be that of
        any JSON string: it holds the names, and when they are taken away nothing becomes a dead end. Raises ValueError
        if the arguments do not fit.
        """

    def reserve_targets(self, count: int) -> int:
        """Where in `arguments` the targets of so many names begin; whoever reserved them fills them in."""

    def names_at(self, table: int, low: int, high: int, targets: int, other: int = -1) -> int:
        """`names`, the targets being in `arguments` from an index on: windows of one list of members share them."""

    def names_instead(self, key: int, table: int, index: int, place: int) -> int:
        """What is read at `key`, NAMES or ANY of such (-1: nothing), but that a name of a table leads to `place`."""

    def check_other(self, other: int) -> None:
        """Raise ValueError if what reads other strings, which may be -1, is no TERMINAL of any string."""

    def counted(
        self, minimum: int, maximum: int | None, following: int, terminal: int | None = None, states: int = 22
    ) -> int:
        """COUNTED: a JSON string of `minimum` to `maximum` (None: any number of) characters, then `following`.

        A character is a code point, however it is written. `terminal`: of the strings, else any; `states`: how many its
        automaton has. Raises EmptyLanguageError if there is no such number.
        """

    def lazy(self, make: Callable[[], int]) -> int:
        """LAZY: where `make` says, which writes the code with this builder and returns the place to go on at.

        It is called once, when the instruction is first to be read; if it raises, that is raised where the text is
        read, and it is called again when the instruction is needed again. As the builder keeps it, it refers to the
        builder by `weakref.proxy`: otherwise only the garbage collector would free both.
        """

    def lazy_run(self, make: Callable[[int], int], numbers: Sequence[int]) -> int:
        """The place of the first of several LAZY, one behind the other, each with a number, 0 or more, for `make`."""

class Program:
    """A program, as its code stands now: where parts of that are written later, it grows.

    `source`: its code; `start`: the first place; `skip`: the place of a TERMINAL that may stand wherever one may begin
    and means nothing, or -1 (only if `longest`; otherwise the program itself says where); `longest`: a terminal ends
    only where no terminal that is alive can go on (maximal munch). `GrowingCode.build` makes one.
    """

    source: GrowingCode
    start: int
    skip: int
    longest: bool
    def __init__(self, source: GrowingCode, start: int, skip: int = -1, longest: bool = False) -> None: ...
    def arrays(self) -> tuple[Int32, Int32, Int32, Int32]:
        """`code`, `alternatives`, `entries` and `arguments`, kept until more is written."""

    @property
    def code(self) -> Int32:
        """int32, shape (instructions, 3): operation and two arguments; for ANY where its alternatives begin and end."""

    @property
    def alternatives(self) -> Int32:
        """int32: places that ANY leads to."""

    @property
    def entries(self) -> Int32:
        """int32: the first place of each frame."""

    @property
    def arguments(self) -> Int32:
        """int32: those of NAMES and COUNTED."""

    def frame_name(self, frame: int) -> str:
        """The name of a frame, for people; one that is given as a function is made when it is asked for."""
