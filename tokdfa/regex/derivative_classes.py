"""Which bytes have the same derivative: for a whole automaton, and for one expression.

*Classes.* Bytes that no byte set below an expression tells apart have equal derivatives, now and for ever: they form
one class, and every table of the automaton has a column a class. `partition_bytes` computes them.

*Local classes.* The next derivative alone depends on fewer byte sets, those that can read the first byte:

- of a byte set: itself;
- of a union, intersection, complement or repeat: those of its parts;
- of a concatenation h t: those of h, and, if h is nullable or has an assertion, those of t too;
- of a look-ahead: those of what it looks for; of an assertion: the word bytes, and the newline.

By induction over these cases, two classes that belong to the same ones of these sets have the same derivative. They
form a local class of the expression: ``[0-9]{3}x`` has two, the digits and the rest, however many classes the automaton
has. A union with 12 first sets has up to 13 where the automaton has 74, and a derivative is taken once for each. The
local class of what is in none of the sets, the *outside*, has the derivative nothing, unless there is a complement.

Local classes of a compound expression are the common refinement (*join*) of those of its parts. An automaton of a
thousand states has about a hundred different partitions, so partitions are numbered and joins remembered: the local
classes of a new expression cost a look-up a part. If there are too many, the finest partition, a local class a class,
serves for all others: any refinement of the local classes is right, only slower.

Source: Owens, Reppy, Turon 2009, section 4.2, whose function C approximates the local classes by the same recursion on
sets of characters. Numbering and remembering partitions is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.core.keys import find_slot, longer_keys, new_keys, number_key
from tokdfa.regex.nodes import (
    F_ASSERTS,
    F_BOOLEAN,
    F_NULLABLE,
    FULL_MEMO,
    K_ASSERTION,
    K_BYTES,
    K_COMPLEMENT,
    K_CONCAT,
    K_INTERSECTION,
    K_LOOK_AHEAD,
    K_REPEAT,
    K_UNION,
    M_STATUS,
    NOTHING,
    OK,
)

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

#: The ASCII word bytes, as \w and \b mean them.
WORD_BYTES: npt.NDArray[np.bool_] = np.array([chr(byte).isalnum() or chr(byte) == "_" for byte in range(256)])
WORD_BYTES[128:] = False
NEWLINE = 0x0A

#: Partitions that every table begins with: all classes together and outside; each class alone.
TOGETHER, FINEST = 0, 1
#: Columns of `DerivativeTable.places`: number of the partition, first entry in `known`.
P_PARTITION, P_ENTRY = range(2)
#: Indices into `DerivativeTable.used`: partitions, entries of `keys` and of `known`, limit on partitions.
U_PARTITIONS, U_KEYS, U_KNOWN, U_LIMIT = range(4)

_ARRAYS = {
    "representatives": ("uint8", 1),
    "places": ("int32", 2),
    "known": ("int32", 1),
    "used": ("int64", 1),
    "partitions": ("int16", 2),
    "keys": ("int64", 1),
    "slots": ("int32", 1),
    "meanings": ("int32", 1),
    "room": ("int32", 1),
}


class ClassArrays(Struct, fields=tuple(_ARRAYS), declared=_ARRAYS):
    """What kernels take: see `DerivativeTable`."""


class BytePartition(NamedTuple):
    """What the bytes are to an expression.

    ``byte_class``: uint8, shape (256,), classes in order of their first byte; ``representatives``: uint8, shape
    (classes,), the first byte of each; ``bytes_read``: bool, shape (256,), the bytes that some text of it may contain
    (an over-approximation: all, if there is a complement).
    """

    byte_class: npt.NDArray[np.uint8]
    representatives: npt.NDArray[np.uint8]
    bytes_read: npt.NDArray[np.bool_]


def partition_bytes(store: ExpressionStore, root: int) -> BytePartition:
    """The classes of `root` and everything derived from it. O(nodes below root + sizes of the byte sets below root)."""
    byte_class, representatives = np.zeros(256, dtype=np.uint8), np.zeros(256, dtype=np.uint8)
    given = 1
    if store.has_assertions(root):
        byte_class[NEWLINE], byte_class[WORD_BYTES] = 1, 2
        given, representatives[1], representatives[2] = 3, NEWLINE, np.argmax(WORD_BYTES)
    bytes_read = np.zeros(256, dtype=np.bool_)
    scratch = np.zeros(root + 1, dtype=np.bool_), np.empty(512, dtype=np.int16)
    made = byte_class, representatives, bytes_read
    count = _refine_classes_kernel(store.nodes, store.arguments, root, *scratch, given, *made)
    return BytePartition(byte_class, representatives[:count].copy(), bytes_read)


class DerivativeTable:
    """The local classes of expressions, and the derivatives taken so far, an entry for each local class.

    `classes`: the bytes by class, as `partition_bytes` gives them for an expression from which all others are derived.
    `most_partitions` (at most 65,535): past it, expressions get the partition `FINEST`. Not thread-safe.

    Numbers of local classes ascend by their first class. ``places``: int32, shape (expressions, 2): partition or -1
    (not known yet), and first entry in ``known``. ``known``: int32, the derivative by each local class, or -1.
    ``partitions``: int16, shape (room, classes + 2): the local class of each class, that of the outside or -1, and how
    many there are. ``keys``, ``slots`` (`tokdfa.core.keys.find_slot`): joins and contents of partitions, see
    `_join`; ``meanings``: int32, the partition that each key stands for.
    """

    def __init__(self, store: ExpressionStore, classes: BytePartition, most_partitions: int = 1 << 14) -> None:
        self.store, self.classes = store, classes
        count = len(classes.representatives)
        self.places: npt.NDArray[np.int32] = np.full((len(store.nodes), 2), -1, dtype=np.int32)
        self.known: npt.NDArray[np.int32] = np.full(1 << 12, -1, dtype=np.int32)
        self.partitions: npt.NDArray[np.int16] = np.zeros((128, count + 2), dtype=np.int16)
        self.partitions[TOGETHER, count + 1] = 1
        self.partitions[FINEST, :count] = np.arange(count)
        self.partitions[FINEST, count:] = -1, count
        self.keys, self.slots = new_keys(1024 + count)
        self.meanings: npt.NDArray[np.int32] = np.full(len(self.keys), -1, dtype=np.int32)
        self._local_classes: dict[int, tuple[npt.NDArray[np.int16], list[int]]] = {}
        #: int32: for kernels to work in; pairs of local classes, and three groups of bytes, must have room.
        self._room: npt.NDArray[np.int32] = np.empty(max(count * count, 3), dtype=np.int32)
        self.used: npt.NDArray[np.int64] = np.array([2, 0, 0, most_partitions], dtype=np.int64)
        self._take_arrays()

    def _take_arrays(self) -> None:
        self.struct = ClassArrays(
            *(self.classes.representatives, self.places, self.known, self.used, self.partitions),
            *(self.keys, self.slots, self.meanings, self._room),
        )

    def local_classes(self, expression: int) -> tuple[npt.NDArray[np.int16], list[int]]:
        """(the local class of each class, the first class of each local class) of an expression."""
        while True:
            expressions = self.store.nodes, self.store.arguments, self.store.meta
            partition = int(classify_kernel(*expressions, self.struct, expression))
            if self.store.check_status():
                if partition not in self._local_classes:
                    local = self.partitions[partition, :-2].copy()
                    self._local_classes[partition] = local, np.unique(local, return_index=True)[1].tolist()
                return self._local_classes[partition]
            self.grow()

    def grow(self) -> None:
        """More room in whatever is half full, and a place for every expression that the store has room for."""
        if len(self.places) < len(self.store.nodes):
            hold(8 * (len(self.store.nodes) - len(self.places)))
            more = np.full((len(self.store.nodes) - len(self.places), 2), -1, dtype=np.int32)
            self.places = np.concatenate([self.places, more])
        partitions, found, known, _ = self.used.tolist()
        if 2 * partitions >= len(self.partitions):
            hold(self.partitions.nbytes)
            self.partitions = np.concatenate([self.partitions, np.zeros_like(self.partitions)])
        if 2 * known >= len(self.known):
            hold(self.known.nbytes)
            self.known = np.concatenate([self.known, np.full_like(self.known, -1)])
        if 2 * (found + self.partitions.shape[1]) >= len(self.keys):
            hold(self.keys.nbytes + self.slots.nbytes + self.meanings.nbytes)
            self.keys, self.slots = longer_keys(2 * len(self.keys), found, self.keys)
            self.meanings = np.concatenate([self.meanings, np.full_like(self.meanings, -1)])
        self._take_arrays()


@kernel
def _refine_classes_kernel(nodes, arguments, root, reached, renamed, classes, byte_class, representatives, bytes_read):  # type: ignore[no-untyped-def]
    """Split `byte_class`, of so many classes in order of their first bytes, by every byte set below `root`.

    Returns the number of classes and writes their first bytes to `representatives` (uint8, shape (256,)). `reached`
    (bool, shape (root + 1,)) comes all False; `renamed` (int16, shape (512,)) is for the kernel's own use.
    """
    reached[root] = True
    for node in range(root, -1, -1):
        if not reached[node]:
            continue
        kind, first = nodes[node, 0] & 0xFF, np.int64(nodes[node, 1])
        if kind == K_CONCAT:
            reached[first] = True
            reached[nodes[node, 2]] = True
        elif kind in (K_UNION, K_INTERSECTION):
            for k in range(first, first + nodes[node, 2]):
                reached[arguments[k]] = True
        elif kind in (K_COMPLEMENT, K_REPEAT, K_LOOK_AHEAD):
            reached[first] = True
            for byte in range(256):
                bytes_read[byte] |= kind == K_COMPLEMENT
        elif kind == K_BYTES:
            for place in range(2 * classes):  # by class and whether a byte of it is in the set
                renamed[place] = -1
            classes = np.int64(0)
            for byte in range(256):
                inside = (arguments[first + (byte >> 5)] >> (byte & 31)) & 1
                bytes_read[byte] |= inside != 0
                place = 2 * np.int64(byte_class[byte]) + inside
                if renamed[place] < 0:
                    renamed[place] = classes
                    representatives[classes] = byte
                    classes += 1
                byte_class[byte] = renamed[place]
    return classes


# What takes a `store` takes a `ClassArrays`. The key of the join of p and q, p > q, is ``p << 16 | q``. The contents of
# partitions are the paths of a trie, whose nodes are keys, too: that of the node behind another by a number is
# ``1 << 62 | node << 16 | number``, and the last one of a path stands for the partition. Partitions by a byte set are
# not entered, since different sets have different ones.


@kernel
def _number_key(key, store):  # type: ignore[no-untyped-def]
    """The number of a key, new or known; there is room."""
    number, store.used[U_KEYS] = number_key(key, store.used[U_KEYS], store.keys, store.slots)
    return number


@kernel
def _intern_partition(store):  # type: ignore[no-untyped-def]
    """The number of the partition that was written to the first free row."""
    partitions, row = store.partitions, store.used[U_PARTITIONS]
    node = np.int64(1) << 32  # the root is no key
    for k in range(partitions.shape[1]):
        node = _number_key(np.int64(1) << 62 | node << 16 | (np.int64(partitions[row, k]) & 0xFFFF), store)
    if store.meanings[node] < 0:
        store.meanings[node] = row
        store.used[U_PARTITIONS] = row + 1
    return np.int64(store.meanings[node])


@kernel
def _has_no_room(meta, store):  # type: ignore[no-untyped-def]
    """Whether no partition can be made: the limit is reached, or the status says that an array is full."""
    partitions, used = store.partitions, store.used
    if used[U_PARTITIONS] >= used[U_LIMIT]:
        return True
    if used[U_PARTITIONS] >= len(partitions) or used[U_KEYS] + partitions.shape[1] >= len(store.keys):
        meta[M_STATUS] = FULL_MEMO
        return True
    return False


@kernel
def _join(meta, store, one, other):  # type: ignore[no-untyped-def]
    """The common refinement of two partitions; what is outside of both is outside."""
    if one == other or other == TOGETHER:
        return one
    if one == TOGETHER:
        return other
    if FINEST in (one, other):
        return np.int64(FINEST)
    key = one << 16 | other if one > other else other << 16 | one
    known = np.int64(store.slots[find_slot(key, store.keys, store.slots)])
    if known >= 0:
        return np.int64(store.meanings[known])
    if _has_no_room(meta, store):
        return np.int64(FINEST)
    partitions, row = store.partitions, store.used[U_PARTITIONS]
    end = partitions.shape[1]
    width = np.int64(partitions[other, end - 1])
    renamed = store.room
    for pair in range(partitions[one, end - 1] * width):
        renamed[pair] = -1
    count = 0
    for k in range(len(store.representatives)):
        pair = partitions[one, k] * width + partitions[other, k]
        if renamed[pair] < 0:
            renamed[pair] = count
            count += 1
        partitions[row, k] = renamed[pair]
    partitions[row, end - 2] = -1
    if partitions[one, end - 2] >= 0 and partitions[other, end - 2] >= 0:
        partitions[row, end - 2] = renamed[partitions[one, end - 2] * width + partitions[other, end - 2]]
    partitions[row, end - 1] = count
    joined = _intern_partition(store)
    store.meanings[_number_key(key, store)] = joined
    return joined


@kernel
def _split_by_set(arguments, meta, store, start):  # type: ignore[no-untyped-def]
    """The partition by the byte set whose bits begin at argument `start`."""
    if _has_no_room(meta, store):
        return np.int64(FINEST)
    representatives, partitions, row = store.representatives, store.partitions, store.used[U_PARTITIONS]
    classes = len(representatives)
    first = (arguments[start + (representatives[0] >> 5)] >> (representatives[0] & 31)) & 1
    count = 1
    for k in range(classes):
        byte = representatives[k]
        partitions[row, k] = (arguments[start + (byte >> 5)] >> (byte & 31)) & 1 ^ first
        if partitions[row, k]:
            count = 2
    partitions[row, classes] = first if count > first else -1
    partitions[row, classes + 1] = count
    store.used[U_PARTITIONS] = row + 1
    return np.int64(row)


@kernel
def _split_by_context(meta, store):  # type: ignore[no-untyped-def]
    """The partition by what bytes are to an assertion: word bytes, newlines and others."""
    if _has_no_room(meta, store):
        return np.int64(FINEST)
    partitions, row, classes = store.partitions, store.used[U_PARTITIONS], len(store.representatives)
    renamed = store.room
    for group in range(3):
        renamed[group] = -1
    count = 0
    for k in range(classes):
        byte = store.representatives[k]
        group = 2 if byte == NEWLINE else 1 if WORD_BYTES[byte] else 0
        if renamed[group] < 0:
            renamed[group] = count
            count += 1
        partitions[row, k] = renamed[group]
    partitions[row, classes], partitions[row, classes + 1] = -1, count
    return _intern_partition(store)


@kernel
def classify_kernel(nodes, arguments, meta, store, expression):  # type: ignore[no-untyped-def]
    """The number of the partition of an expression; undefined unless the status is OK afterwards.

    Every expression that `derive_kernel` will meet on its way gets a place. Recursion is as in `derive_kernel`.
    """
    if meta[M_STATUS] != OK:
        return np.int64(FINEST)
    places = store.places
    if expression >= len(places):
        meta[M_STATUS] = FULL_MEMO
        return np.int64(FINEST)
    if places[expression, P_PARTITION] >= 0:
        return np.int64(places[expression, P_PARTITION])
    kind = nodes[expression, 0] & 0xFF
    first, second = np.int64(nodes[expression, 1]), np.int64(nodes[expression, 2])
    result = np.int64(TOGETHER)
    if kind == K_BYTES:
        result = _split_by_set(arguments, meta, store, first)
    elif kind == K_CONCAT:
        rest = np.int64(expression)
        while True:
            if places[rest, P_PARTITION] >= 0 or nodes[rest, 0] & 0xFF != K_CONCAT:
                result = _join(meta, store, result, classify_kernel(nodes, arguments, meta, store, rest))
                break
            head = np.int64(nodes[rest, 1])
            result = _join(meta, store, result, classify_kernel(nodes, arguments, meta, store, head))
            if not nodes[head, 0] & (F_NULLABLE | F_ASSERTS) or meta[M_STATUS] != OK:
                break
            rest = np.int64(nodes[rest, 2])
    elif kind in (K_UNION, K_INTERSECTION):
        for k in range(first, first + second):
            part = classify_kernel(nodes, arguments, meta, store, np.int64(arguments[k]))
            result = _join(meta, store, result, part)
    elif kind == K_ASSERTION:
        result = _split_by_context(meta, store)
    elif kind in (K_REPEAT, K_COMPLEMENT, K_LOOK_AHEAD):
        result = classify_kernel(nodes, arguments, meta, store, first)
    width = store.partitions.shape[1]
    count, outside = store.partitions[result, width - 1], store.partitions[result, width - 2]
    entry = store.used[U_KNOWN]
    if entry + count > len(store.known):
        meta[M_STATUS] = FULL_MEMO
    if meta[M_STATUS] != OK:
        return result
    if kind > K_BYTES:
        store.used[U_KNOWN] = entry + count
        places[expression, P_ENTRY] = entry
        if outside >= 0 and not nodes[expression, 0] & F_BOOLEAN:
            store.known[entry + outside] = NOTHING
    places[expression, P_PARTITION] = result
    return result
