// What walks do with tokens and with subtrees that are left to others: the holes `take` and `leave` of
// tokdfa/vocabulary/walker.hpp for masks (tokdfa/masks/builder.pyx).
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "tokdfa/vocabulary/walker.hpp"

namespace tokdfa {

// Tokens allowed: V + 1 bits, of which the last means nothing.
struct Bits {
    uint32_t* words;
};

inline void allow(Bits& out, const uint64_t token, int64_t) { out.words[token >> 5] |= uint32_t{1} << (token & 31); }

// A range of nodes that a division leaves: read to depth `begin` it has led to `tag`. `depth`: of the nodes.
struct LeftRange {
    int32_t first, past, tag, begin, depth;
};

// What a dividing walk finds: tokens inside as bits, and if they are `listed` the first of them; how many; ranges left.
// There must be room for as many ranges as the walk may visit nodes.
struct Cut {
    uint32_t* words;
    int32_t* tokens;
    uint64_t room, count, spare;
    LeftRange* ranges;
    int64_t range_count;
    bool listed;
};

inline void allow_inside(Cut& out, const uint64_t token, int64_t) {
    out.words[token >> 5] |= uint32_t{1} << (token & 31);
    out.tokens[std::min(out.count, out.room - 1)] = static_cast<int32_t>(token);
    out.count += token != out.spare;
}

// Where most walks are long: the list is made at the end, if it is short (`list_inside`).
inline void count_inside(Cut& out, const uint64_t token, int64_t) {
    out.words[token >> 5] |= uint32_t{1} << (token & 31);
    out.count += token != out.spare;
}

inline void list_inside(Cut& cut) {
    uint64_t count = 0;
    for (uint64_t first = 0; first < cut.spare; first += 32)
        for (uint32_t word = cut.words[first >> 5]; word; word &= word - 1) {
            uint32_t place = 0;
            while (!(word >> place & 1)) ++place;
            if (first + place < cut.spare) cut.tokens[count++] = static_cast<int32_t>(first + place);
        }
    cut.count = count;
}

// The code of what is left: tag << 12 | depth at which reading goes on.
inline int64_t left_code(const int64_t tag, const int64_t begin) { return tag << 12 | begin; }

inline void add_range(Cut& out, const LeftRange range) {
    if (out.range_count) {
        LeftRange& last = out.ranges[out.range_count - 1];
        if (last.past == range.first && last.tag == range.tag && last.begin == range.begin && last.depth == range.depth) {
            last.past = range.past;  // siblings side by side
            return;
        }
    }
    out.ranges[out.range_count++] = range;
}

inline void leave(Cut& out, const uint64_t node, const uint64_t here, const int64_t code) {
    const int32_t next = static_cast<int32_t>((node >> 20) & 0x7FFFFF), depth = static_cast<int32_t>((node >> 8) & 0xFFF);
    add_range(
        out, {static_cast<int32_t>(here), next, static_cast<int32_t>(code >> 12), static_cast<int32_t>(code & 0xFFF), depth}
    );
}

// By tag, and in the order of the trie.
inline void sort_by_tag(Cut& cut) {
    const auto before = [](const LeftRange& one, const LeftRange& other) {
        return one.tag != other.tag ? one.tag < other.tag : one.first < other.first;
    };
    LeftRange* const past = cut.ranges + cut.range_count;
    if (!std::is_sorted(cut.ranges, past, before)) std::sort(cut.ranges, past, before);
}

// Tags from here on: the range is not left, but open, as its step lacks something (MaskBuilder.resume).
enum : int32_t { OPEN = 1 << 30 };

// Move the open ranges out.
inline void take_open(Cut& cut, std::vector<LeftRange>& open) {
    LeftRange* const past = cut.ranges + cut.range_count;
    const auto is_open = [](const LeftRange& one) { return one.tag >= OPEN; };
    open.clear();
    std::copy_if(cut.ranges, past, std::back_inserter(open), is_open);
    if (!open.empty()) cut.range_count = std::remove_if(cut.ranges, past, is_open) - cut.ranges;
}

}  // namespace tokdfa
