// The words of a split mask: out = (direct & ~forbidden) | after_border.
//
// Blocks of a fixed size, as compilers turn these into vector instructions at -O2.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tokdfa {

inline void combine_words(
    const int32_t* __restrict direct, const int32_t* __restrict after_border, const int32_t* __restrict forbidden,
    int32_t* __restrict out, const size_t words
) {
    constexpr size_t BLOCK = 16;
    size_t first = 0;
    for (; first + BLOCK <= words; first += BLOCK)
        for (size_t k = first; k < first + BLOCK; ++k) out[k] = (direct[k] & ~forbidden[k]) | after_border[k];
    for (; first < words; ++first) out[first] = (direct[first] & ~forbidden[first]) | after_border[first];
}

}  // namespace tokdfa
