// Children of the nodes of a forest, by (parent, letter): an open-addressing hash table whose slots hold key and child in
// one word, so that a look-up reads one place. It grows by doubling, is at most half full, and forgets nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokdfa {

class ChildMap {
    std::vector<int64_t> slots_ = std::vector<int64_t>(1024, -1);  // key << 32 | child, -1 for none
    size_t count_ = 0;

    size_t place(int64_t key) const {
        const size_t mask = slots_.size() - 1;
        size_t slot = (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u >> 32) & mask;
        while (slots_[slot] >= 0 && slots_[slot] >> 32 != key) slot = (slot + 1) & mask;
        return slot;
    }

    void widen() {
        std::vector<int64_t> wider(4 * slots_.size(), -1);
        slots_.swap(wider);
        for (const int64_t entry : wider)
            if (entry >= 0) slots_[place(entry >> 32)] = entry;
    }

  public:
    // The child of a node below 2**23 by a letter below 256, which is `made` if there was none.
    int32_t find_or_add(int32_t parent, int32_t letter, int32_t made) {
        const int64_t key = static_cast<int64_t>(parent) << 8 | letter;
        size_t slot = place(key);
        if (slots_[slot] >= 0) return static_cast<int32_t>(slots_[slot]);
        if (2 * (count_ + 1) > slots_.size()) {
            widen();
            slot = place(key);
        }
        ++count_;
        slots_[slot] = key << 32 | made;
        return made;
    }
};

}  // namespace tokdfa
