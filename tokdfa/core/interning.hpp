// Interning: equal contents get equal numbers, 0, 1, 2 ... in the order of their first appearance.
//
// `Keys` numbers integers of 64 bits, `Contents` sequences of integers. Both are open-addressing hash tables of numbers
// over vectors that grow by doubling, at most half full. Neither forgets. Not thread-safe. A pointer to a content is good
// until the next `intern`. An `intern` that finds no memory changes nothing.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokdfa {

constexpr int32_t ABSENT = -1;

inline uint64_t mix(uint64_t value) {  // the finalizer of MurmurHash3, without its last step
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCDu;
    return value ^ value >> 32;
}

// Two numbers of 32 bits, which may be negative, as one key.
inline int64_t pair_key(int32_t first, int32_t second) {
    return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second));
}

// Long contents have four chains, as each step of a chain waits for the one before.
template <class Word>
uint64_t hash_words(const Word* content, size_t size) {
    const auto step = [](uint64_t hash, uint64_t word) {
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        return hash ^ hash >> 32;
    };
    uint64_t hash = 0x9E3779B97F4A7C15u;
    if (size >= 16) {
        uint64_t chains[4] = {1, 2, 3, 4};
        for (; size >= 4; size -= 4, content += 4)
            for (size_t k = 0; k < 4; ++k) chains[k] = step(chains[k], static_cast<uint64_t>(content[k]));
        for (const uint64_t chain : chains) hash = step(hash, chain);
    }
    for (size_t k = 0; k < size; ++k) hash = step(hash, static_cast<uint64_t>(content[k]));
    return hash;
}

class Keys {
    std::vector<int64_t> keys_;
    std::vector<int32_t> slots_ = std::vector<int32_t>(16, ABSENT);

    size_t place(int64_t key) const {
        const size_t mask = slots_.size() - 1;
        size_t slot = mix(static_cast<uint64_t>(key)) & mask;
        while (slots_[slot] >= 0 && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
        return slot;
    }

    void widen() {
        std::vector<int32_t> wider(2 * slots_.size(), ABSENT);
        slots_.swap(wider);
        for (size_t k = 0; k < size(); ++k) slots_[place(keys_[k])] = static_cast<int32_t>(k);
    }

  public:
    size_t size() const { return keys_.size(); }
    int64_t key(int32_t number) const { return keys_[number]; }
    size_t bytes() const { return 8 * keys_.capacity() + 4 * slots_.capacity(); }
    int32_t find(int64_t key) const { return slots_[place(key)]; }

    int32_t intern(int64_t key) {
        size_t slot = place(key);
        if (slots_[slot] >= 0) return slots_[slot];
        if (2 * (size() + 1) > slots_.size()) {
            widen();
            slot = place(key);
        }
        keys_.push_back(key);
        return slots_[slot] = static_cast<int32_t>(size() - 1);
    }

    void clear() {
        keys_.clear();
        std::fill(slots_.begin(), slots_.end(), ABSENT);
    }
};

template <class Word>
class Contents {
    std::vector<Word> words_;
    std::vector<size_t> begin_ = {0};
    std::vector<int32_t> slots_ = std::vector<int32_t>(16, ABSENT);

    size_t place(const Word* content, size_t size) const {
        const size_t mask = slots_.size() - 1;
        size_t slot = hash_words(content, size) & mask;
        while (slots_[slot] >= 0) {
            const int32_t number = slots_[slot];
            if (length(number) == size && std::equal(content, content + size, content_of(number))) break;
            slot = (slot + 1) & mask;
        }
        return slot;
    }

    void widen() {
        std::vector<int32_t> wider(2 * slots_.size(), ABSENT);
        slots_.swap(wider);
        for (size_t k = 0; k < size(); ++k) {
            int32_t& number = slots_[place(content_of(k), length(k))];
            if (number < 0) number = static_cast<int32_t>(k);
        }
    }

    int32_t add(const Word* content, size_t size, size_t slot) {
        if (2 * begin_.size() > slots_.size()) {
            widen();
            slot = place(content, size);
        }
        words_.resize(begin_.back());  // without what an `add` left that found no memory
        if (words_.data() <= content && content < words_.data() + words_.size()) {
            const std::vector<Word> copy(content, content + size);
            words_.insert(words_.end(), copy.begin(), copy.end());
        } else {
            words_.insert(words_.end(), content, content + size);
        }
        begin_.push_back(words_.size());
        const int32_t number = static_cast<int32_t>(this->size() - 1);
        if (slots_[slot] < 0) slots_[slot] = number;
        return number;
    }

  public:
    size_t size() const { return begin_.size() - 1; }
    size_t length(int32_t number) const { return begin_[number + 1] - begin_[number]; }
    const Word* content_of(int32_t number) const { return words_.data() + begin_[number]; }
    size_t bytes() const { return sizeof(Word) * words_.capacity() + 8 * begin_.capacity() + 4 * slots_.capacity(); }
    int32_t find(const Word* content, size_t size) const { return slots_[place(content, size)]; }

    // `content` may lie within this table.
    int32_t intern(const Word* content, size_t size) {
        const size_t slot = place(content, size);
        return slots_[slot] >= 0 ? slots_[slot] : add(content, size, slot);
    }

    // A new number for a content, even if it has one; `find` and `intern` go on to say the first.
    int32_t append(const Word* content, size_t size) { return add(content, size, place(content, size)); }

    void clear() {
        words_.clear();
        begin_.assign(1, 0);
        std::fill(slots_.begin(), slots_.end(), ABSENT);
    }
};

}  // namespace tokdfa
