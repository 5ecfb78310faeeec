from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.regex.expression import ExpressionStore

NEWLINE: Final[int]

class BytePartition(NamedTuple):
    byte_class: npt.NDArray[np.uint8]
    representatives: npt.NDArray[np.uint8]
    bytes_read: npt.NDArray[np.bool_]

def is_word_byte(byte: int) -> bool: ...
def partition_bytes(store: ExpressionStore, root: int) -> BytePartition: ...

class DerivativeTable:
    store: Final[ExpressionStore]
    classes: Final[BytePartition]
    def __init__(self, store: ExpressionStore, classes: BytePartition, most_partitions: int = 1 << 14) -> None: ...
    @property
    def partition_count(self) -> int: ...
    def local_classes(self, expression: int) -> tuple[list[int], list[int]]: ...
    def derivative(self, expression: int, byte: int) -> int: ...
