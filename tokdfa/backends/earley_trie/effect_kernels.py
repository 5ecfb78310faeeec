"""The kernels of effects: making them, and masks out of them. `tokdfa.backends.earley_trie.effects` says what they are.

An effect is made by a walk over the lexer alone, whose stack holds a *word* for each depth: in its low bits the lexer
state, or _NO_STATE after a lexeme that cannot go on; above it a *tag*, the accepting set that was met last and the
depth after it, -1 for none. Where the lexer cannot go on, the subtree is left with this tag. The ranges that are left
are sorted by accepting set, and the ranges of each set interned as a rest.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.earley_trie.earley_rows import rows_at
from tokdfa.backends.earley_trie.lexer import OK, REFUSED, lexer_at
from tokdfa.backends.earley_trie.machine import S_ENDS, S_NODES, end_lexeme, find_target, machine_at
from tokdfa.backends.earley_trie.walk import (
    FIRST_SHIFT,
    NS_PER_NODE,
    PAID_NODES,
    PAST_SHIFT,
    POSITION,
    RANGE,
    depth_of,
    first_token,
    unpack_range,
    walk_at,
    walk_rest,
)
from tokdfa.core.interning import TableArrays, has_room, intern, intern_key
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.core.key_map import look_up
from tokdfa.core.keys import pack_pair
from tokdfa.vocabulary.byte_table import UNKNOWN
from tokdfa.vocabulary.division import FIRST, LEFT, PAST, STOP, TAG
from tokdfa.vocabulary.trie import DEPTH_BITS, TOKEN_SHIFT
from tokdfa.vocabulary.walker import DEAD, set_bit, specialise

#: The rest of a whole token.
WHOLE = 0
#: A status beside those of the machine: scratch or pools lack room.
NEEDS_POOLS = 16
#: What `inside` holds of an effect that is not made is this and how often it was met; of one that has many tokens WIDE.
NOT_MADE, WIDE = -1_000_000, -1
#: Indices into `meta`: whether longest match rules; the id of nodes without a token; how often an effect is met before
#: it is made; what the lexer has to supply; the depth of what is left; how many situations are on the stack, and how
#: many would be; of the effect being made the ranges and tokens found; how much is used of each pool; effects made.
LONGEST, SPARE, PATIENCE, STATUS, DEPTH, TOP, WANTED, RANGES, TOKENS, USED_TOKENS, USED_WIDE, USED_ENDS, MADE = range(
    13
)
META = 13
#: Columns of what is left, beside those of `tokdfa.vocabulary.division`: the depth of its nodes.
NODE_DEPTH, RANGE_COLUMNS = 3, 4
#: The parts of a word of the walk over the lexer.
_TAG_SHIFT, _NO_STATE = 26, (1 << 26) - 1
_NO_TAG = -1 << _TAG_SHIFT

_FIELDS: dict[str, tuple[str, int] | type[Struct]] = {
    "rests": TableArrays,
    "effects": TableArrays,  # keys of rest and lexer state
    "inside": ("int32", 2),  # by effect: the first and past token in the pool; or WIDE and a wide set
    "ends": ("int32", 2),  # by effect: the first and past end in the pool
    "token_pool": ("int32", 1),
    "wide_pool": ("uint32", 2),
    "end_pool": ("int32", 2),  # accepting set, rest
    "lexer_stack": ("int64", 1),  # words by depth
    "inside_words": ("uint32", 1),  # scratch: of the effect being made the tokens inside, no bit set between two,
    "tokens": ("int32", 1),  # the first of them,
    "ranges": ("int64", 2),  # what is left,
    "content": ("int64", 1),  # and the rests
    "group_of": ("int32", 2),  # by accepting set: its place among the ends, and where its next range goes
    "situations": ("int64", 2),  # a stack: row, rest, lexer state
    "progress": ("int64", 1),  # of the rest that is being read
    "meta": ("int64", 1),
}


class EffectArrays(Struct, fields=tuple(_FIELDS), declared=_FIELDS):
    """What kernels take: tables and pools, then scratch."""


effects_at = struct_at(EffectArrays)


@kernel
def step_lexer(lexer, stack, depth, byte):  # type: ignore[no-untyped-def]
    """The lexer state after a byte, DEAD, what is left with its tag, or STOP: the machine has to supply something."""
    word, target = stack.lexer_stack[depth], np.int64(-1)
    state, after = word & _NO_STATE, depth + np.uint64(1)
    if state != _NO_STATE:
        column = np.uint64(lexer.byte_class[byte])
        target = np.int64(lexer.transitions[np.uint64(state) * np.uint64(len(lexer.representatives)) + column])
        if target == UNKNOWN:
            status, target = find_target(state, np.int64(column), lexer)
            if status != OK:
                stack.meta[STATUS] = status
                return np.int64(STOP)
    if target < 0:
        if word < 0:
            return np.int64(DEAD)
        stack.meta[DEPTH] = depth
        return LEFT - (word >> _TAG_SHIFT)
    follows = np.uint64(target)
    goes_on, accepted = target, np.int64(lexer.completes[follows])
    if accepted >= 0:
        goes_on = np.int64(_NO_STATE)
    else:
        accepted = np.int64(lexer.accepting[follows])
    if accepted >= 0:
        stack.lexer_stack[after] = (accepted << DEPTH_BITS | np.int64(after)) << _TAG_SHIFT | goes_on
    elif stack.meta[LONGEST] != 0:
        stack.lexer_stack[after] = (word & ~np.int64(_NO_STATE)) | goes_on
    else:
        stack.lexer_stack[after] = _NO_TAG | goes_on
    return target


@kernel
def note_token(out, count, token, target):  # type: ignore[no-untyped-def]
    """Add a token to those inside: as a bit, and while there are few, to the list."""
    set_bit(out.inside_words, count, token, target)
    out.tokens[min(count, np.uint64(len(out.tokens) - 1))] = token
    return count + np.uint64(token != np.uint64(out.meta[SPARE]))


@kernel
def note_left(out, here, following, target):  # type: ignore[no-untyped-def]
    """Note a range that is left, with its tag; False if there is no room, or the step asks to stop."""
    if target > LEFT:
        return False
    ranges, place, depth, tag = out.ranges, out.meta[RANGES], out.meta[DEPTH], LEFT - target
    last = place - 1
    if place > 0 and ranges[last, PAST] == here and ranges[last, TAG] == tag and ranges[last, NODE_DEPTH] == depth:
        ranges[last, PAST] = following  # of siblings side by side
        return True
    if place >= len(ranges):
        out.meta[STATUS] = NEEDS_POOLS
        return False
    ranges[place, FIRST], ranges[place, PAST] = here, following
    ranges[place, TAG], ranges[place, NODE_DEPTH] = tag, depth
    out.meta[RANGES] = place + 1
    return True


_walk_lexer = specialise(f"{__name__}._walk_lexer", step_lexer, note_token, note_left, inline=True)


@kernel
def _read_again(first, past, begin, base, out, stack, lexer):  # type: ignore[no-untyped-def]
    """Read the bytes from depth `begin` on to the depth of a range. False: nothing of it is to be walked.

    The step has to have something supplied if meta[STATUS] is not OK.
    """
    spelled = stack.offsets[first_token(stack.nodes, first, out.meta[SPARE])]
    for depth in range(begin, base):
        target = step_lexer(lexer, out, np.uint64(depth), stack.data[spelled + depth])
        if target < 0:
            if target != DEAD:
                note_left(out, first, past, target)
            return False
    return True


@kernel
def _make_effect(effect, rest, state, out, stack, lexer, machine):  # type: ignore[no-untyped-def]
    """A status: make the effect of a rest in a lexer state. It goes on where it stopped."""
    meta, progress, words = out.meta, out.progress, out.rests.words
    accepted = np.int64(lexer.accepting[state])
    low, high = out.rests.begin[rest], out.rests.begin[rest + 1]
    if progress[POSITION] < 0 and progress[RANGE] == 0:
        meta[TOKENS] = meta[RANGES] = 0
    while low + progress[RANGE] < high:
        first, past, begin = unpack_range(words[low + progress[RANGE]])
        meta[STATUS] = OK
        here, seen = progress[POSITION], np.int64(0)
        if here < 0:
            here, base = first, depth_of(stack.nodes, first)
            tag = accepted << DEPTH_BITS | begin if accepted >= 0 else np.int64(-1)
            out.lexer_stack[begin] = tag << _TAG_SHIFT | state
            if begin < base and not _read_again(first, past, begin, base, out, stack, lexer):
                if meta[STATUS] != OK:
                    return meta[STATUS]
                here = past
        while here < past:
            part = min(past, here + PAID_NODES)
            here, tokens, visited, _ = _walk_lexer(stack.nodes, here, part, lexer, out, out, meta[TOKENS])
            meta[TOKENS] = tokens
            seen += visited
            if here < part:
                break
            if here < past:
                pay(np.int64(NS_PER_NODE * PAID_NODES))
        machine.meta[S_NODES] += seen
        progress[POSITION] = here
        if here < past:
            return meta[STATUS]
        progress[RANGE], progress[POSITION] = progress[RANGE] + 1, -1
    return _keep_effect(effect, out, lexer)


@kernel
def _keep_effect(effect, out, lexer):  # type: ignore[no-untyped-def]
    """A status: intern the rests of what was left, and take down the effect."""
    meta, ranges, group_of, end_pool = out.meta, out.ranges, out.group_of, out.end_pool
    tokens, found, end = meta[TOKENS], meta[RANGES], meta[USED_ENDS]
    words, wide = out.inside_words, tokens >= len(out.tokens)
    if (
        len(group_of) < len(lexer.sets.begin)
        or found > len(out.content)
        or end + found > len(end_pool)
        or (not wide and meta[USED_TOKENS] + tokens > len(out.token_pool))
        or meta[USED_WIDE] >= len(out.wide_pool)
        or not has_room(found, found, out.rests)
    ):
        return np.int64(NEEDS_POOLS)
    # sort the ranges by accepting set
    groups = np.int64(0)
    for k in range(found):
        accepted = ranges[k, TAG] >> DEPTH_BITS
        if group_of[accepted, 0] < 0:
            end_pool[end + groups, 0] = accepted
            group_of[accepted, 0], group_of[accepted, 1] = groups, 0
            groups += 1
        group_of[accepted, 1] += 1
    place = np.int64(0)
    for group in range(end, end + groups):
        accepted = np.int64(end_pool[group, 0])
        end_pool[group, 1] = place
        place, group_of[accepted, 1] = place + group_of[accepted, 1], place
    for k in range(found):
        accepted, depth = ranges[k, TAG] >> DEPTH_BITS, ranges[k, TAG] & ((1 << DEPTH_BITS) - 1)
        first, past, place = ranges[k, FIRST], ranges[k, PAST], np.int64(group_of[accepted, 1])
        out.content[place] = first << FIRST_SHIFT | past << PAST_SHIFT | depth
        group_of[accepted, 1] = place + 1
    for group in range(end, end + groups):
        accepted = np.int64(end_pool[group, 0])
        begin, past = np.int64(end_pool[group, 1]), np.int64(group_of[accepted, 1])
        end_pool[group, 1] = intern(out.content, begin, past, out.rests)
        group_of[accepted, 0] = group_of[accepted, 1] = -1
    out.ends[effect, 0], out.ends[effect, 1] = end, end + groups
    meta[USED_ENDS] = end + groups
    if wide:
        number = meta[USED_WIDE]
        for k in range(len(words)):
            out.wide_pool[number, k] = words[k]
            words[k] = 0
        out.inside[effect, 0], out.inside[effect, 1] = WIDE, number
        meta[USED_WIDE] = number + 1
    else:
        first = meta[USED_TOKENS]
        for k in range(tokens):
            out.token_pool[first + k] = out.tokens[k]
            words[out.tokens[k] >> 5] = 0
        words[meta[SPARE] >> 5] = 0
        out.inside[effect, 0], out.inside[effect, 1] = first, first + tokens
        meta[USED_TOKENS] = first + tokens
    meta[MADE] += 1
    return np.int64(OK)


@kernel
def fill_kernel(  # type: ignore[no-untyped-def]
    first_row, first_state, clears, out_address, walk_address, lexer_address, rows_address, machine_address
):
    """A status: OR the tokens that are allowed after a row, in a lexer state, into the walker's words.

    `first_row`: -1 to go on where it stopped. `clears`: before that, clear the tokens behind the ends of the first
    effect. The addresses are those of the structs.
    """
    out, stack = effects_at(out_address), walk_at(walk_address)
    lexer, rows, machine = lexer_at(lexer_address), rows_at(rows_address), machine_at(machine_address)
    meta, situations, progress, words = out.meta, out.situations, out.progress, stack.words
    if first_row >= 0:
        situations[0, 0], situations[0, 1], situations[0, 2] = first_row, WHOLE, first_state
        meta[TOP], progress[RANGE], progress[POSITION] = 1, 0, -1
    while meta[TOP] > 0:
        top = meta[TOP] - 1
        row, rest, state = situations[top, 0], situations[top, 1], situations[top, 2]
        effect = intern_key(pack_pair(rest, state), out.effects)
        if effect < 0:
            return np.int64(NEEDS_POOLS)
        known = out.inside[effect, 0]
        if known < WIDE:
            if known >= NOT_MADE + meta[PATIENCE] or (clears and rest == WHOLE):
                status = _make_effect(effect, rest, state, out, stack, lexer, machine)
                if status != OK:
                    return np.int64(status)
            else:
                low, high = out.rests.begin[rest], out.rests.begin[rest + 1]
                progress[RANGE] += low
                status = walk_rest(
                    row, state, -1, out.rests.words, high, meta[SPARE], stack, progress, lexer, rows, machine
                )
                progress[RANGE] -= low
                if status != OK:
                    return np.int64(status)
                out.inside[effect, 0] = known + 1
                meta[TOP] = top
                progress[RANGE], progress[POSITION] = 0, -1
                continue
            progress[RANGE], progress[POSITION] = 0, -1
        first, past = np.int64(out.ends[effect, 0]), np.int64(out.ends[effect, 1])
        if top + past - first >= len(situations):
            meta[WANTED] = top + past - first
            return np.int64(NEEDS_POOLS)
        for end in range(first, past):
            accepted = np.int64(out.end_pool[end, 0])
            following = np.int64(look_up(pack_pair(row, accepted), rows.memo_keys, rows.memo_rows))
            begun = np.int64(-1)
            if following >= 0:
                begun = np.int64(rows.start_state[following])
            if following == UNKNOWN or (following >= 0 and begun < 0):
                status, following, begun = end_lexeme(row, accepted, lexer, rows, machine)
                if status > REFUSED:
                    own = meta[TOP] - 1  # where the first of those that follow may stand
                    situations[own, 0], situations[own, 1], situations[own, 2] = row, rest, state
                    return np.int64(status)
            if following >= 0:
                situations[top, 0], situations[top, 1], situations[top, 2] = following, out.end_pool[end, 1], begun
                top += 1
        machine.meta[S_ENDS] += past - first
        meta[TOP] = top
        if clears and rest == WHOLE:
            for end in range(first, past):
                behind = np.int64(out.end_pool[end, 1])
                for k in range(out.rests.begin[behind], out.rests.begin[behind + 1]):
                    low, high, _ = unpack_range(out.rests.words[k])
                    for node in range(low, high):
                        cleared = stack.nodes[node] >> np.uint64(TOKEN_SHIFT)
                        words[cleared >> np.uint64(5)] &= ~(np.uint32(1) << np.uint32(cleared & np.uint64(31)))
        first, past = np.int64(out.inside[effect, 0]), np.int64(out.inside[effect, 1])
        if first == WIDE:
            for k in range(len(words)):
                words[k] |= out.wide_pool[past, k]
            continue
        for k in range(first, past):
            token = np.uint32(out.token_pool[k])
            words[token >> np.uint32(5)] |= np.uint32(1) << (token & np.uint32(31))
    return np.int64(OK)


@kernel
def width_kernel(state, below, lexer):  # type: ignore[no-untyped-def]
    """(status, about how many nodes of the trie a walk over the lexer visits from a state).

    `below`: int64, shape (2, byte classes), see `TokenTrie.nodes_below`. As if the second byte did not depend on the
    first: of the nodes below a first byte those count whose share of second bytes the lexer goes on with.
    """
    classes, width = below.shape[1], np.int64(0)
    total = max(np.int64(1), below[1].sum())
    for first in range(classes):
        if below[0, first] == 0:
            continue
        status, after = find_target(state, np.int64(first), lexer)
        if status != OK:
            return status, width
        if after < 0:
            continue
        share = np.int64(0)
        for second in range(classes):
            if below[1, second] == 0:
                continue
            status, target = find_target(after, np.int64(second), lexer)
            if status != OK:
                return status, width
            if target >= 0:
                share += below[1, second]
        width += below[0, first] * share // total
    return OK, width
