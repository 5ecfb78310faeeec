"""The nodes of a flat trie for compiled code (see `tokdfa.vocabulary.trie` for their layout), and what writes them."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import numpy as np


@cython.final
cdef class FlatTrie:
    """A trie and what its tokens spell, as pointers; the arrays are kept, and nobody may write to them."""

    def __init__(self, nodes, offsets, data, int64_t depth_limit):
        cdef const uint64_t[::1] node_view = nodes
        cdef const int64_t[::1] offset_view = offsets
        cdef const uint8_t[::1] data_view = data
        cdef uint64_t here, end
        if offset_view.shape[0] == 0:
            raise ValueError("offsets has one entry more than there are tokens")
        self.arrays, self.depth_limit = (nodes, offsets, data), depth_limit
        self.node_count, self.size = node_view.shape[0], offset_view.shape[0] - 1
        self.offsets = &offset_view[0]
        self.nodes = &node_view[0] if self.node_count else NULL
        self.data = &data_view[0] if data_view.shape[0] else NULL
        here = 0
        while here < self.node_count:
            end = min(max(<uint64_t>next_of(self.nodes[here]), here + 1), self.node_count)
            self.roots.push_back(TrieRoot(here, end, self.nodes[here] & 0xFF))
            here = end

    def __reduce__(self):
        return FlatTrie, (*self.arrays, self.depth_limit)


def write_nodes(const uint8_t[::1] byte_data, const int64_t[::1] offsets, const int32_t[::1] order):
    """The packed nodes of the tokens in `order`, which is by bytes; uint64. O(total bytes).

    ``next`` of a node is set when it is left. A token equal to the one before it shares all its nodes but the last.
    """
    cdef vector[uint64_t] nodes
    cdef vector[size_t] path  # the node of each depth on the way to the last token
    cdef uint64_t spare = offsets.shape[0] - 1
    cdef int64_t begin, end, depth, shared, before = 0, before_end = 0
    cdef int32_t token
    cdef Py_ssize_t k
    for k in range(order.shape[0]):
        token = order[k]
        begin, end, shared = offsets[token], offsets[token + 1], 0
        while (
            begin + shared + 1 < end
            and before + shared < before_end
            and byte_data[begin + shared] == byte_data[before + shared]
        ):
            shared += 1
        close_nodes(nodes, path, shared)
        for depth in range(shared, end - begin):
            path.push_back(nodes.size())
            nodes.push_back(spare << TOKEN_SHIFT | <uint64_t>depth << DEPTH_SHIFT | byte_data[begin + depth])
        nodes[nodes.size() - 1] ^= (spare ^ <uint64_t>token) << TOKEN_SHIFT
        before, before_end = begin, end
    close_nodes(nodes, path, 0)
    written = np.empty(nodes.size(), dtype=np.uint64)
    cdef uint64_t[::1] out = written
    for k in range(out.shape[0]):
        out[k] = nodes[k]
    return written


cdef int close_nodes(vector[uint64_t]& nodes, vector[size_t]& path, size_t depth) noexcept:
    """Write where the subtrees of the nodes from `depth` on end: here."""
    cdef size_t k
    for k in range(depth, path.size()):
        nodes[path[k]] |= <uint64_t>nodes.size() << NEXT_SHIFT
    path.resize(min(depth, path.size()))
    return 0


cdef int check_room(int64_t needed, Py_ssize_t room) except -1:
    if needed > room:
        raise ValueError(f"there is room for {room} nodes, and {needed} are to be written")
    return 0


def cut_ranges(
    const uint64_t[::1] nodes, int64_t begin, const int64_t[:, ::1] ranges, uint64_t spare, uint64_t[::1] rest,
    int64_t number=0,
):
    """Write the trie of the nodes in `ranges` and of those above them to `rest`; how many nodes it has.

    `ranges`: int64, a first node and the one after the last in each row, ascending, each of whole subtrees below the
    node before `begin`, whose depth is counted as 0 in `rest`. Nodes above a range end no token in `rest`; `spare` is
    their id. `number`: of the first node written, for ``next``. O(nodes written and passed).
    """
    cdef vector[int64_t] above, written  # the nodes on the way to a range, and where they stand in `rest`
    cdef int64_t first, past, node, kept = 0, here = begin
    cdef uint64_t base, shift
    cdef Py_ssize_t k
    if ranges.shape[0] == 0:
        return 0
    base = depth_of(nodes[begin])
    for k in range(ranges.shape[0]):
        first, past = ranges[k, 0], ranges[k, 1]
        while above.size() and next_of(nodes[above.back()]) <= first:
            here = max(here, next_of(nodes[above.back()]))
            rest[written.back()] |= <uint64_t>(number + kept) << NEXT_SHIFT
            above.pop_back()
            written.pop_back()
        while here < first:
            if next_of(nodes[here]) <= first:
                here = next_of(nodes[here])
                continue
            check_room(kept + 1, rest.shape[0])
            rest[kept] = nodes[here] & 0xFF | <uint64_t>above.size() << DEPTH_SHIFT | spare << TOKEN_SHIFT
            above.push_back(here)
            written.push_back(kept)
            kept, here = kept + 1, here + 1
        check_room(kept + past - first, rest.shape[0])
        # subtrees as they are, moved up and to the left; the numbers of nodes wrap around as they should
        shift = (<uint64_t>(number + kept) - <uint64_t>first << NEXT_SHIFT) - (base << DEPTH_SHIFT)
        for node in range(first, past):
            rest[kept] = nodes[node] + shift
            kept += 1
        here = past
    while written.size():
        rest[written.back()] |= <uint64_t>(number + kept) << NEXT_SHIFT
        written.pop_back()
    return kept


cdef struct Letter:  # a node of the trie that is joined; -1 for none
    uint64_t byte
    int32_t child    # the first
    int32_t sibling  # the next
    int32_t ending   # the last ending here


cdef struct Ending:
    uint64_t token
    int32_t before  # the one before it at the same node, -1 for none


def join_ranges(
    const uint64_t[::1] nodes, const int64_t[:, ::1] ranges, uint64_t spare, uint64_t[::1] joined, int64_t number=0
):
    """Write the trie of the nodes in `ranges`, as if all were children of one node, to `joined`; how many nodes it has.

    No more than the ranges have, for which there must be room. `ranges`, `number`: as in `cut_ranges`. O(nodes x
    children).
    """
    cdef vector[Letter] letters
    cdef vector[Ending] endings
    cdef vector[int32_t] path
    cdef int64_t total = 0, here, depth, base
    cdef uint64_t token
    cdef int32_t node, last = -1
    cdef Py_ssize_t k
    for k in range(ranges.shape[0]):
        total += ranges[k, 1] - ranges[k, 0]
    check_room(total, joined.shape[0])
    letters.push_back(Letter(0, -1, -1, -1))  # their parent
    path.push_back(0)
    for k in range(ranges.shape[0]):
        base = depth_of(nodes[ranges[k, 0]])
        for here in range(ranges[k, 0], ranges[k, 1]):
            depth = depth_of(nodes[here]) - base
            node = child_of(letters, path[depth], nodes[here] & 0xFF, last if depth == 0 else -1)
            path.resize(depth + 1)
            path.push_back(node)
            if depth == 0:
                last = node
            token = nodes[here] >> TOKEN_SHIFT
            if token != spare:
                endings.push_back(Ending(token, letters[node].ending))
                letters[node].ending = endings.size() - 1
    return write_letters(letters, endings, spare, joined, number)


cdef int32_t child_of(vector[Letter]& letters, int32_t parent, uint64_t byte, int32_t hint):
    """The child of a node by a byte, made if it is not there. `hint`: a child that may stand before it, or -1."""
    cdef int32_t before = -1, node = letters[parent].child, made
    if hint >= 0 and letters[hint].byte < byte:  # most are found at once, as those of a range come in order
        before, node = hint, letters[hint].sibling
    while node >= 0 and letters[node].byte < byte:
        before, node = node, letters[node].sibling
    if node >= 0 and letters[node].byte == byte:
        return node
    made = letters.size()
    letters.push_back(Letter(byte, -1, node, -1))
    if before < 0:
        letters[parent].child = made
    else:
        letters[before].sibling = made
    return made


cdef int64_t write_letters(
    vector[Letter]& letters, vector[Ending]& endings, uint64_t spare, uint64_t[::1] out, int64_t number
):
    """Pack a trie; how many nodes it has. Of the tokens that end at a node all but the first get one without children.
    """
    cdef vector[int32_t] path
    cdef vector[int64_t] places
    cdef int64_t kept = 0
    cdef int32_t node = letters[0].child, ending
    cdef uint64_t word
    while node >= 0:
        word = letters[node].byte | <uint64_t>path.size() << DEPTH_SHIFT
        ending = letters[node].ending
        while ending >= 0 and endings[ending].before >= 0:
            out[kept] = word | endings[ending].token << TOKEN_SHIFT | <uint64_t>(number + kept + 1) << NEXT_SHIFT
            ending, kept = endings[ending].before, kept + 1
        out[kept] = word | (endings[ending].token if ending >= 0 else spare) << TOKEN_SHIFT
        path.push_back(node)
        places.push_back(kept)
        kept += 1
        node = letters[node].child
        while node < 0 and path.size():  # leave what has no more children
            out[places.back()] |= <uint64_t>(number + kept) << NEXT_SHIFT
            node = letters[path.back()].sibling
            path.pop_back()
            places.pop_back()
    return kept
