from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.lexer_components import Components

Int32 = npt.NDArray[np.int32]

class Lexer:
    """The lexer of a grammar. Not thread-safe.

    `max_states` bounds the lexer states, and separately the components that are made on demand. `components`: those of
    the grammar, if they are made already. `longest`: the lexing rule, which decides where the parser is asked.
    """

    cfg: Cfg
    components: Components
    max_states: int
    class_count: int
    longest: bool

    def __init__(
        self, cfg: Cfg, max_states: int = 250_000, components: Components | None = None, longest: bool = True
    ) -> None: ...
    @property
    def state_count(self) -> int:
        """Lexer states made so far."""
    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
    @property
    def accepting(self) -> Int32:
        """The accepting set of each state, -1 for none: a copy, int32."""
    @property
    def completes(self) -> Int32:
        """By state the set that ends in it at once, -1 for none: a copy, int32."""
    @property
    def targets(self) -> Int32:
        """The state after a byte of each class, DEAD or UNKNOWN: a copy, int32, shape (states, classes)."""
    def accepting_set(self, state: int) -> int:
        """The accepting set of a state, or -1."""
    def completing_set(self, state: int) -> int:
        """The set that ends in a state at once, or -1."""
    @property
    def byte_class(self) -> npt.NDArray[np.uint8]:
        """uint8, shape (256,): byte -> class."""
    @property
    def component_table(self) -> Int32:
        """int32, flat: component x classes -> component, DEAD or UNKNOWN. Replaced as it grows."""
    def make_component(self, component: int) -> None:
        """Make the row of a component that lacks it. Raises LimitExceeded."""
    def may_end_early(self, state: int) -> bool:
        """Whether a lazy lexeme may be read in a state: where it ends, so do all others."""
    def components_of(self, state: int) -> list[int]:
        """The components of a lexer state, in the order of their lexemes."""
    def contents(self) -> tuple[Int32, Int32]:
        """(the components of all states, one state after another; how many each has): int32."""
    def is_start(self, state: int) -> bool:
        """Whether `state` is a start state, in which nothing was read."""
    def lexemes_of(self, accepting_set: int) -> list[int]:
        """The lexemes of an accepting set, ascending."""
    def lexemes_in(self, state: int) -> list[int]:
        """The lexeme of each component of a lexer state, ascending."""
    def set_of(self, lexemes: Sequence[int]) -> int:
        """The number of the accepting set of these lexemes (ascending)."""
    def start_state(self, lexemes: Sequence[int]) -> int:
        """The lexer state in which exactly these lexemes (ascending) may begin."""
    def state_of(self, components: Sequence[int]) -> int:
        """The lexer state of these components, in the order of their lexemes (a start mark first: a start state).
        Raises LimitExceeded.
        """
    def step(self, state: int, byte: int) -> int:
        """The lexer state after `byte`, or -1 where no component goes on. Raises LimitExceeded."""
    def explore(self, state: int = 0) -> None:
        """Make the transitions of `state` and of all states behind it, but for those in which a lexeme ends at once."""
