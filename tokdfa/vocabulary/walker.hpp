// The walk over a flat trie (tokdfa/vocabulary/trie.py), written once; a strategy's functions are compiled into it.
//
// Nodes come in depth-first order, the subtree below a dead prefix is skipped, and states lie in a stack indexed by
// depth, so that nothing is popped. tokdfa.vocabulary.walk_forms derives it from the recursive walk. A strategy has an
// *owner*, whose tables may grow and move, and a *view*, the pointers into them that a step reads. It fills four holes:
//
//   view_of(owner)                      -> the view as it is now, which the loop keeps in registers
//   step(view, stack, depth, byte)      reads the state in stack[depth], writes the one after the byte to
//                                       stack[depth + 1] and returns it, or a number of its own that is not negative;
//                                       DEAD if no text goes on; any other negative number if something is lacking.
//                                       It calls nothing that may raise.
//   mend(owner, stack, depth, byte)     makes what was lacking, perhaps in Python, and returns RETRY: then the view is
//                                       taken anew, and the node tried again. Or it takes the whole step itself, and
//                                       returns SURVIVES or DIES. Less than 0 if it has raised.
//   take(out, token, target)            does what is to be done with a token that survives; `target` is the step's
//                                       result. Called at every surviving node: those that end no token have the spare
//                                       id V, so that it needs no branch. Of a step that `mend` took the target is the
//                                       depth after the byte.
//
// A walk that divides the vocabulary (tokdfa/masks) has a fifth one, for subtrees that its step leaves to others:
//
//   leave(out, node, here, code)        notes the subtree of node number `here`, where the step returned LEFT - code.
//
// The step has to be compiled into the loop: an indirect call takes longer than the rest of the node. Holes are written
// in Cython, with C names, and named where an instance is declared (tokdfa/vocabulary/byte_table.pyx):
//
//   int walk_bits "tokdfa::walk<table_view, table_step, table_mend, set_bit>" (...) except -1 nogil
//
// A walk stops after `most` nodes, and goes on from where it was with the same stack. So the caller looks at signals
// and budgets, and lets go of the interpreter's lock.
//
// Source: toktrie, whose recognisers push and pop their own stack.
#pragma once
#include <cstdint>
#include <type_traits>

namespace tokdfa {

enum : int32_t { DEAD = -1, LEFT = -3 };
enum Mended : int { RETRY, SURVIVES, DIES };

// Where a walk is, and what it has done: nodes here .. end - 1 are left. A subtree skipped at last may go beyond `end`.
struct WalkProgress {
    uint64_t here, end;
    int64_t visited, skipped;  // nodes; skipped ones were not looked at
};

inline void skip(const uint64_t node, uint64_t& here, uint64_t& skipped) {
    const uint64_t next = (node >> 20) & 0x7FFFFF;
    skipped += next - here - 1;
    here = next;
}

template <auto leave, class Target>
inline bool leaves(const Target target) {
    if constexpr (std::is_null_pointer_v<decltype(leave)>) return false;
    return target <= LEFT;
}

template <
    auto view_of, auto step, auto mend, auto take, auto leave = nullptr, class Owner, class State, class Out>
inline int walk(
    const uint64_t* nodes, WalkProgress& progress, const int64_t most, Owner* owner, State* stack, Out& out
) {
    auto view = view_of(owner);
    Out taken = out;  // local, as `here` and `skipped` are: no store through a pointer can change them
    const uint64_t end = progress.end;
    uint64_t here = progress.here, skipped = 0;
    int64_t left = most;
    int result = 0;
    while (here < end && left > 0) {
        const uint64_t node = nodes[here], depth = (node >> 8) & 0xFFF;
        const auto target = step(view, stack, depth, node & 0xFF);
        if (target >= 0) {
            take(taken, node >> 43, target);
            ++here;
        } else if (target == DEAD) {
            skip(node, here, skipped);
        } else if (leaves<leave>(target)) {
            if constexpr (!std::is_null_pointer_v<decltype(leave)>) leave(taken, node, here, LEFT - target);
            skip(node, here, skipped);
        } else {
            if ((result = mend(owner, stack, depth, node & 0xFF)) < 0) break;
            view = view_of(owner);
            if (result == RETRY) continue;
            if (result == SURVIVES) {
                take(taken, node >> 43, depth + 1);
                ++here;
            } else {
                skip(node, here, skipped);
            }
        }
        --left;
    }
    out = taken;
    progress.here = here;
    progress.visited += most - left;
    progress.skipped += static_cast<int64_t>(skipped);
    return result < 0 ? result : 0;
}

}  // namespace tokdfa
