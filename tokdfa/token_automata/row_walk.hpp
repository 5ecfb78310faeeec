// What the walk over a trie (tokdfa/vocabulary/walker.hpp) does with a table of rows, if it lists words and rows.
#pragma once
#include <cstdint>

namespace tokdfa {

// entries[row + class_of[byte]] is the row after a byte, DEAD, or what is not known yet.
struct RowView {
    const int32_t* entries;
    const uint8_t* class_of;
};

inline int32_t step_row(RowView view, int32_t* stack, uint64_t depth, uint64_t byte) {
    const int32_t target = view.entries[static_cast<uint64_t>(static_cast<uint32_t>(stack[depth])) + view.class_of[byte]];
    stack[depth + 1] = target;
    return target;
}

// The words that survive, and the row that each leads to. There is room for one more than there are words: the spare
// word, of nodes that end none, is overwritten by the next one.
struct WordList {
    int32_t* words;
    int32_t* rows;
    uint64_t count, spare;
};

inline void list_word(WordList& out, uint64_t word, int32_t row) {
    out.words[out.count] = static_cast<int32_t>(word);
    out.rows[out.count] = row;
    out.count += word != out.spare;
}

}  // namespace tokdfa
