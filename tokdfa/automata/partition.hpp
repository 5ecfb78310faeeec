// A refinable partition of the numbers 0 .. n - 1 into sets, which are split into their marked and unmarked items.
//
// The items of a set stand together in `items_`, the marked ones in front. So a mark is a swap, and a split gives the
// smaller half a new number: O(1) a mark, and O(marks) for a split of all sets that have some.
// Source: Valmari and Lehtinen 2008, see moves.pyx.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tokdfa {

class Partition {
    struct Set {
        int32_t first, past, marked;
    };
    std::vector<Set> sets_;
    std::vector<int32_t> items_, place_, set_of_, touched_;

    void add_set(int32_t first, int32_t past) {
        for (int32_t place = first; place < past; ++place) set_of_[items_[place]] = static_cast<int32_t>(sets_.size());
        sets_.push_back({first, past, 0});
    }

    void make_room() {  // for as many sets as there can be: `mark` and `split` take no memory
        sets_.clear();
        touched_.clear();
        sets_.reserve(items_.size());
        touched_.reserve(items_.size());
        set_of_.resize(items_.size());
        place_.resize(items_.size());
        for (size_t place = 0; place < items_.size(); ++place) place_[items_[place]] = static_cast<int32_t>(place);
    }

  public:
    // One set of all items; none if there are no items.
    void assign(size_t size) {
        items_.resize(size);
        for (size_t item = 0; item < size; ++item) items_[item] = static_cast<int32_t>(item);
        make_room();
        if (size) add_set(0, static_cast<int32_t>(size));
    }

    // The sets items[offsets[k]] .. items[offsets[k + 1] - 1], without the empty ones.
    void assign(const std::vector<int32_t>& offsets, const std::vector<int32_t>& items) {
        items_ = items;
        make_room();
        for (size_t k = 0; k + 1 < offsets.size(); ++k) {
            if (offsets[k] < offsets[k + 1]) add_set(offsets[k], offsets[k + 1]);
        }
    }

    int32_t size() const { return static_cast<int32_t>(sets_.size()); }
    int32_t set_of(int32_t item) const { return set_of_[item]; }
    // Set k has the items at the places first(k) .. past(k) - 1.
    int32_t first(int32_t set) const { return sets_[set].first; }
    int32_t past(int32_t set) const { return sets_[set].past; }
    int32_t item(int32_t place) const { return items_[place]; }

    // Mark an item that is not marked yet.
    void mark(int32_t item) {
        Set& set = sets_[set_of_[item]];
        if (set.past - set.first == 1) return;  // nothing to split; without this test, a third slower
        if (!set.marked) touched_.push_back(set_of_[item]);
        const int32_t front = set.first + set.marked++, other = items_[front];
        std::swap(items_[front], items_[place_[item]]);
        std::swap(place_[item], place_[other]);
    }

    // Split each set that has marks; none has any afterwards. The smaller half gets the new number, so that an item is
    // in O(log n) of the sets that are used to split others.
    void split() {
        for (const int32_t number : touched_) {
            Set& set = sets_[number];
            const int32_t first = set.first, middle = set.first + set.marked, past = set.past;
            set.marked = 0;
            if (middle == past) continue;
            if (middle - first <= past - middle) {
                set.first = middle;
                add_set(first, middle);
            } else {
                set.past = middle;
                add_set(middle, past);
            }
        }
        touched_.clear();
    }
};

}  // namespace tokdfa
