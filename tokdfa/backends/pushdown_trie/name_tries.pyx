"""The tries of tables of names, one after another: see `tokdfa.backends.pushdown_trie.names`.

Each is in level order with siblings in ascending order, over characters (code points). Cost: about 20 ns a character.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from tokdfa.errors import LimitExceeded

#: Columns of nodes (`Name`) and of tables (`NameTrie`) for Python.
N_CHARACTER, N_LOW, N_HIGH = 0, 4, 5
T_NODES, T_ORDER = 0, 1
#: Nodes of a table: an item has 21 bits for a state.
MAX_NAME_NODES = 233_016


cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    int32_t PyUnicode_READ(int kind, const void* data, Py_ssize_t place) nogil


cdef struct Text:  # a text of somebody else: how many bytes its characters take, where they are, how many there are
    int kind
    void* data
    int64_t length


cdef int add_tables(list given, NameTables* to, int64_t nodes_before, int64_t order_before) except -1:
    cdef vector[int32_t] depths
    cdef vector[Text] texts
    cdef int64_t begin, first
    for table in given:
        begin, first = to.nodes.size(), to.order.size()
        to.tables.push_back(
            NameTrie(<int32_t>(nodes_before + begin), <int32_t>(order_before + first), table.escapes == "needed")
        )
        texts.clear()
        for index in table.order:
            to.order.push_back(index)
            texts.push_back(text_of(table.names[index]))
        add_table(to.nodes, depths, texts, to.order.data() + first)
        if <int64_t>to.nodes.size() - begin > MAX_NAME_NODES:
            raise LimitExceeded(
                f"names that may stand at one place have more than {MAX_NAME_NODES} characters that none of them share;"
                " use fewer or shorter ones",
                limit="name_nodes",
                value=MAX_NAME_NODES,
            )
    return 0


cdef Text text_of(str text):
    cdef Text found
    found.kind, found.data, found.length = PyUnicode_KIND(text), PyUnicode_DATA(text), len(text)
    return found


cdef int32_t character_of(const Text& text, int64_t place) noexcept:
    return PyUnicode_READ(text.kind, text.data, place)


cdef int add_table(
    vector[Name]& nodes, vector[int32_t]& depths, const vector[Text]& names, const int32_t* order
) except -1:
    """Add the trie of names that are given in ascending order. `order`: where each stands in its table."""
    cdef int64_t base = nodes.size(), node = base, low, high, past, k
    cdef int32_t depth, character, index
    cdef Name one, blank
    memset(&blank, 0, sizeof(Name))
    depths.resize(base)
    one = blank
    one.parent, one.high = -1, <int32_t>names.size()
    nodes.push_back(one)
    depths.push_back(0)
    while node < <int64_t>nodes.size():  # in level order: children are appended
        if nodes[node].character < 0:
            node += 1
            continue
        depth, low, high = depths[node], nodes[node].low, nodes[node].high
        one = nodes[node]
        one.least = one.most = order[low]
        for k in range(low + 1, high):
            index = order[k]
            one.least, one.most = min(one.least, index), max(one.most, index)
        one.name = -1
        if names[low].length == depth:  # names that have this one as a beginning come after it
            one.name = order[low]
            low += 1
        one.first = <int32_t>(nodes.size() - base)
        nodes[node] = one
        while low < high:
            character = character_of(names[low], depth)
            past = low + 1
            while past < high and character_of(names[past], depth) == character:
                past += 1
            one = blank
            one.character, one.parent = character, <int32_t>(node - base)
            one.low, one.high = <int32_t>low, <int32_t>past
            nodes.push_back(one)
            depths.push_back(depth + 1)
            if character > 0xFFFF:
                memset(&one, 0xFF, sizeof(Name))
                one.parent = <int32_t>(node - base)
                nodes.push_back(one)
                depths.push_back(depth + 1)
            low = past
        nodes[node].past = <int32_t>(nodes.size() - base)
        node += 1
    return 0
