"""The mask of a row: what its wide states allow inside, and a walk over the rest of the trie.

The walk keeps the row at each depth of the trie in a stack, so going back costs nothing; a byte is one look-up where it
was read before. Where a node has many children, those that the row can read are looked up
(`tokdfa.backends.pushdown_trie.branches`).

Below a node whose row has a wide state the walk goes by that state alone, its *guide*: a token that the guide reads to
its end is allowed, and only where the guide does not go on are the rows on the way made, which costs far more than a
look-up in an automaton. A node with more than `SUBTREE` descendants is put off if a partition by one of the wide states
is there: it is taken, and the rest of what is below it is walked on its own. A partition of a subtree is made when the
walks without it have cost as much as it does, so a first visit never pays for one. Where several items are wide, the
smallest rest is walked: a token outside of it is inside one of them. Nodes of a rest at which the item that the rest is
of goes on are neither put off for its sake nor guided by it: no token below them stays inside it, or it would not be in
the rest.

A row with one live item needs no rows until that ends: what it does not read is refused. So there the guide is the
state of its terminal, until that may end, or inside a key of a closed object the item, until its name ends
(`tokdfa.backends.pushdown_trie.lone`).

A joined rest is walked from the row behind the end of what the partition is of. A quote that closes one of a list of
names may lead to another row, or nowhere. So where there are names, tokens that spell one of them to its end are walked
once more, from the row itself, in the rest that is not joined, and what was said of them does not count.

At the root, tokens that begin with a byte of a state that loops (blanks, digits, names) are taken from its own
partition, if that is there; the walk of the vocabulary's trie leaves those bytes out.

A partition that serves a string of bounded length counts no characters. So where such a string is all that a row reads,
and its bound is near, tokens that stay inside it but are too long are taken out at the end.

With each mask comes a *signature*, a hash of the partitions taken and the tokens met. Equal signatures of one machine
mean equal masks, but for chance and for partitions that were dropped in between.

A walk that misses something (room, a row of a lazy automaton, a partition, code) stops, and goes on there when it is
supplied: what it has written so far holds, unless partitions are dropped meanwhile.

With `use_partitions` false the whole trie is walked: the plain version, for comparison.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    M_NODES,
    OK,
    machine_at,
    pool_at,
)
from tokdfa.backends.pushdown_trie.branches import (
    FRAME_BRANCH,
    FRAME_END,
    FRAME_STOP,
    LEAST_BELOW,
    enter_branch,
    take_child,
)
from tokdfa.backends.pushdown_trie.closure import close_row
from tokdfa.backends.pushdown_trie.lone import LEAVES, LONE, enter_guided, guide_alone, lone_reads, lone_row, step_lone
from tokdfa.backends.pushdown_trie.partition_lookup import (
    NOT_LISTED,
    PART_JOINED,
    SKIPS,
    W_BELOW,
    W_LEFT,
    W_NODES,
    W_SHARE,
    W_SIGNATURE,
    W_SIZE,
    W_STATE,
    W_WANTED,
    begin_subtree,
    closing_rest,
    follow_guide,
    guide_of,
    mix,
    names_item,
    note_bound,
    serve_subtree,
    take_loops,
    wide_row,
)
from tokdfa.backends.pushdown_trie.rows import BIAS, ROW_ACCEPTS, ROW_CUT
from tokdfa.backends.pushdown_trie.steps import border_of, end_strings, make_rows, reads_byte, step_row
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN
from tokdfa.vocabulary.mask_store import NARROW
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tokdfa.backends.pushdown_trie.machine import Machine
    from tokdfa.mask import Mask

#: What a node of a walk counts as, in ns.
NODE_WORK = 10
#: A node with more descendants than this is worth a partition of its own.
SUBTREE = 400
#: Bits of what `_fill_mask_kernel` is told, below those for the size of subtrees: use partitions; set end tokens; go on
#: where the last call stopped.
HOW_PARTITIONS, HOW_ENDS, HOW_RESUMES, HOW_SHIFT = 1, 2, 4, 3
#: What `_fill_mask_kernel` returns where something is missing: this less the status.
MISSING = -10
#: In place of what a walk is below: the names that a row has beside what a partition is of.
SPELLED = -(1 << 31)


class Filler:
    """Fills masks for machines in one way. Not thread-safe: the lock of the machine's pool is held."""

    def __init__(self, use_partitions: bool = True, use_subtrees: bool = True) -> None:
        subtree = SUBTREE if use_partitions and use_subtrees else MAX_NODES
        #: What `_fill_mask_kernel` is told, but for HOW_ENDS.
        self._how = subtree << HOW_SHIFT | HOW_PARTITIONS * use_partitions

    def fill(self, machine: Machine, row: int) -> npt.NDArray[np.int32]:
        """The tokens that may be read from a row, int32 words; no end or special tokens."""
        out = np.zeros((machine.pool.partitions.trie.size + 31) // 32, dtype=np.int32)
        self.write(machine, row, out, nullcontext(), with_ends=False)
        return out

    def write(
        self, machine: Machine, row: int, out: Mask, working: AbstractContextManager[Any], with_ends: bool = True
    ) -> int:
        """Write the tokens that may be read from a row into `out`, which fits.

        `working`: the budget for what is missing. `with_ends`: end tokens, too, if the text may end. Returns how many
        tokens the mask has, or -1: it is not narrow, or nobody has listed them. They are in ``listed`` of the pool's
        walk, in any order, and the signature in its counts, until the next mask.
        """
        pool, how = machine.pool, self._how | HOW_ENDS * with_ends
        count: int = _fill_mask_kernel(row, how, out, machine.arrays.address, pool.arrays.address)
        if count >= 0:
            return count
        if count < -1:
            with working:
                count = self._go_on(machine, row, out, how, count)
        counts = pool.walk.counts
        left = counts[W_LEFT]
        if left >= 0:  # tokens that stay inside a string, but have more characters than it may still have
            short = pool.lengths.short_tokens(counts[W_STATE], left).view(np.int32)
            np.bitwise_and(out, short[: len(out)], out=out)
            counts[W_SIGNATURE] ^= 1 + left
        if counts[W_WANTED]:
            pool.divide_wanted(machine.slices)
        return count

    def _go_on(self, machine: Machine, row: int, out: Mask, how: int, count: int) -> int:
        """Supply what was missing, and go on with the mask until nothing is; as `write`."""
        pool = machine.pool
        while count < -1:
            drops, resumes = pool.partitions.drops, HOW_RESUMES
            machine.supply(MISSING - count)
            if pool.partitions.drops != drops:
                # what was taken is gone, and a mask that needs more than is kept would drop its own for ever
                how, resumes = MAX_NODES << HOW_SHIFT | how & HOW_ENDS, 0
            count = _fill_mask_kernel(row, how | resumes, out, machine.arrays.address, pool.arrays.address)
        return count


@kernel
def _follow_guides(here, stop, base, listed, signature, words, pool):  # type: ignore[no-untyped-def]
    """(the next node before `stop` whose byte no guide reads, or `stop`, nodes visited, tokens listed, the signature):
    allow what stays inside on the way. A node with many children is left to the caller where children may be refused.

    Most nodes of most walks are met here, so nothing branches on whether a node has a token, and indices are unsigned.
    """
    nodes, path, guides, rows = pool.nodes, pool.walk_path, pool.walk_guides, pool.walk_rows
    spare, one, here, stop = np.uint64(pool.walk_meta[W_SIZE]), np.uint64(1), np.uint64(here), np.uint64(stop)
    base, visited = np.uint64(base), np.int64(0)
    while here < stop:
        node = nodes[here]
        depth = (node >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1)
        byte = node & np.uint64(0xFF)
        guide = np.int64(guides[depth])
        if guide < 0:
            break
        following = base + ((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
        if guide & ALONE and following - here > np.uint64(LEAST_BELOW):
            break
        guide = follow_guide(guide, byte, pool)
        if guide == SKIPS:
            here, visited = following, visited + 1
            continue
        if guide < 0:
            break
        path[depth], rows[depth + one], guides[depth + one] = byte, -1, guide
        token = node >> np.uint64(TOKEN_SHIFT)
        has_token = token != spare
        token *= np.uint64(has_token)
        words[token >> np.uint64(5)] |= np.uint32(has_token) << np.uint32(token & np.uint64(31))
        signature = mix(signature, token) if has_token else signature
        if 0 <= listed < NARROW:
            pool.listed[listed] = token
        listed += np.int64(has_token)
        here, visited = here + one, visited + 1
    return np.int64(here), visited, listed, signature


@kernel
def _fill_mask_kernel(start, how, out, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """Write the mask of row `start` into `out`.

    How many tokens it has, if they are listed and no partition is wanted, else -1; or MISSING - status: something is
    missing, and a call with HOW_RESUMES goes on.
    """
    machine, pool = machine_at(machine_address), pool_at(pool_address)
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    nodes, words, rows, path = pool.nodes, out.view(np.uint32), pool.walk_rows, pool.walk_path
    deferred, places = pool.walk_deferred, pool.frame_place
    subtree = how >> HOW_SHIFT
    guides, walk_reads, spare = pool.walk_guides, pool.walk_reads, pool.walk_meta[W_SIZE]
    if how & HOW_RESUMES:
        at = pool.walk_at
        inside, waiting, first, here, stop, base, of_state = at[0] != 0, at[1], at[2] != 0, at[3], at[4], at[5], at[6]
        frame, listed, signature, visited, is_whole = at[7], at[8], np.uint64(at[9]), at[10], at[11] != 0
        spelled = at[12] != 0
    else:
        deferred[0, 0], deferred[0, 1], deferred[0, 2] = 0, start, -1
        inside, waiting, first, is_whole = False, np.int64(1), True, True
        here = stop = base = frame = np.int64(0)
        of_state = np.int64(-1)
        listed, signature, visited, spelled = np.int64(0), np.uint64(0), np.int64(0), False
        pool.walk_meta[W_WANTED] = 0
    paid, status = visited, np.int64(OK)
    while inside or waiting > 0:
        if not inside:
            if visited - paid > 0xFFFF:  # between walks: one look at each node would cost 3 % of a mask
                pay((visited - paid) * NODE_WORK)
                paid = visited
            below, row = np.int64(deferred[waiting - 1, 0]), np.int64(deferred[waiting - 1, 1])
            status, source = close_row(row, machine, pool), np.int64(-1)
            if status == OK and how & HOW_PARTITIONS:
                status, source = wide_row(row, machine, pool)
            if status != OK:
                break
            here, stop, base, is_whole = np.int64(0), np.int64(pool.walk_meta[W_NODES]), np.int64(0), below <= 0
            of_state, part, mixed, spelled = np.int64(-1), np.int64(-1), signature, below == SPELLED
            if spelled:
                status, part = closing_rest(row, machine, pool)
                if status != OK:
                    break
            elif below < 0:
                part = ~below
            elif source >= 0:
                passed = np.int64(deferred[waiting - 1, 2])
                status, part, of_state, first, mixed = begin_subtree(
                    below, row, source, passed, first, signature, words, machine, pool
                )
                if status != OK:
                    break
                if part >= 0:
                    listed = np.int64(NOT_LISTED)
            if part >= 0:  # else, where nothing serves, the whole trie; what is put off below has something that does
                here, stop = np.int64(pool.part_nodes[part, 0]), np.int64(pool.part_nodes[part, 1])
                base = here
            if first:
                words[:] = 0
                first = False
            is_joined, behind = part >= 0 and pool.part_nodes[part, PART_JOINED] != 0, row
            if is_joined:
                of_state, is_whole = np.int64(-1), False
                status, behind = end_strings(row, machine)
                if status == OK and behind >= 0:
                    status = np.int64(close_row(behind, machine, pool))
                if status != OK:
                    break
            if is_joined and names_item(row, machine) >= 0:
                deferred[waiting - 1, 0] = SPELLED
            else:
                waiting -= 1
            signature, row = mixed, behind
            if row < 0:
                continue
            rows[0], guides[0], frame = row, -1, np.int64(0)
            if how & HOW_PARTITIONS:
                guides[0] = LONE - names_item(row, machine) if spelled else guide_alone(row, machine)
                lone_reads(LONE - guides[0], walk_reads, 0, spelled, machine)
            places[0, FRAME_STOP] = places[0, FRAME_END] = stop
            if here < stop and spelled:
                frame = enter_branch(here, walk_reads, 0, stop, frame, pool)
            elif here < stop:
                frame = enter_branch(here, machine.row_reads, 4 * row, stop, frame, pool)
            source = source if source >= 0 else row
            if frame and how & HOW_PARTITIONS and part < 0 and not machine.row_flags[source] & ROW_CUT:
                waiting, listed, signature = take_loops(row, source, deferred, listed, signature, words, machine, pool)
            inside = True
        while True:
            while here >= places[frame, FRAME_STOP] and frame > 0:
                begin, end = take_child(places[frame, FRAME_BRANCH], pool.frame_left[frame], pool)
                if begin >= 0:
                    here, places[frame, FRAME_STOP] = begin, end
                else:
                    here = places[frame, FRAME_END]
                    frame -= 1
            if here >= stop:
                inside = False
                break
            if guides[(nodes[here] >> np.uint64(DEPTH_SHIFT)) & depth_mask] >= 0:
                here, count, listed, signature = _follow_guides(
                    here, places[frame, FRAME_STOP], base, listed, signature, words, pool
                )
                visited += count
                if here >= places[frame, FRAME_STOP]:
                    continue
            node = nodes[here]
            depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
            byte = np.int64(node & np.uint64(0xFF))
            visited += 1
            following = base + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
            token = np.int64(node >> np.uint64(TOKEN_SHIFT))
            path[depth] = byte
            guide, target = np.int64(guides[depth]), np.int64(-1)
            if guide >= 0:
                guide = follow_guide(guide, byte, pool)
                if guide == SKIPS:
                    here = following
                    continue
                if guide < 0:
                    status, _ = make_rows(depth, machine, pool)
                    if status != OK:
                        break
            elif guide <= LONE:
                item, after = LONE - guide, np.int64(DEAD)
                if walk_reads[4 * depth + (byte >> 6)] >> np.uint64(byte & 63) & np.uint64(1):
                    after = step_lone(item, byte, spelled, machine)
                if after == DEAD:
                    here = following
                    continue
                if after == LEAVES and spelled:
                    status, target = make_rows(depth, machine, pool)
                    if status != OK:
                        break
                    for k in range(here, following):
                        other = np.int64(nodes[k] >> np.uint64(TOKEN_SHIFT))
                        if other != spare:
                            words[other >> 5] &= ~(np.uint32(1) << np.uint32(other & 31))
                    signature = mix(signature, following)
                    if target < 0:
                        here = following
                        continue
                elif after == LEAVES and rows[depth] < 0:
                    status, target = lone_row(item, machine)
                    if status != OK:
                        break
                    rows[depth] = target
                guide = LONE - after if after >= 0 else np.int64(-1)
            if guide == -1:
                before = np.int64(rows[depth])
                if not reads_byte(before, byte, machine):
                    here = following
                    continue
                target = np.int64(machine.transitions[before * 256 + byte]) - BIAS
                if target == UNKNOWN:
                    status, target = step_row(before, byte, machine, pool)
                    if status != OK:
                        break
                if target < 0:
                    here = following
                    continue
            is_open, is_served = guide == -1 and following - here > LEAST_BELOW, False
            below, passed = here + 1, of_state
            if is_open:
                status, source = close_row(target, machine, pool), np.int64(-1)
                if status == OK and how & HOW_PARTITIONS:
                    status, source = wide_row(target, machine, pool)
                if source >= 0:
                    for k in range(depth + 1):
                        if passed >= 0:
                            passed = np.int64(pool.transitions[passed * 256 + path[k]])
                    if depth == 0 and is_whole and following - here > pool.walk_meta[W_SHARE]:
                        below = np.int64(pool.walk_meta[W_BELOW])  # most of it, in a rest: what serves all of it serves
                    if following - here > subtree and waiting < len(deferred):
                        status, is_served = serve_subtree(
                            target, source, below, following - here - 1, passed, machine, pool
                        )
                if status != OK:
                    break
            rows[depth + 1], guides[depth + 1] = target if guide == -1 else -1, guide
            if token != spare:
                words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
                signature = mix(signature, token)
                if 0 <= listed < NARROW:
                    pool.listed[listed] = token
                listed += 1
            here += 1
            if guide <= LONE and here < following:
                lone_reads(LONE - guide, walk_reads, 4 * (depth + 1), spelled, machine)
            if guide <= LONE and following - here >= LEAST_BELOW:
                frame = enter_branch(here, walk_reads, 4 * (depth + 1), following, frame, pool)
            elif guide >= 0 and guide & ALONE and following - here >= LEAST_BELOW:
                frame = enter_guided(guide, here, following, frame, pool)
            if not is_open:
                continue
            if source >= 0:
                if is_served:
                    deferred[waiting, 0], deferred[waiting, 1], deferred[waiting, 2] = below, target, passed
                    waiting += 1
                    here = following
                    continue
                guide = guide_of(target, source, passed, machine, pool)
                guides[depth + 1] = guide
                if guide >= 0:
                    continue
            elif how & HOW_PARTITIONS:
                guides[depth + 1] = guide_alone(target, machine)
                lone_reads(LONE - guides[depth + 1], walk_reads, 4 * (depth + 1), False, machine)
            frame = enter_branch(here, machine.row_reads, 4 * target, following, frame, pool)
        if inside:
            break
    accepts = np.int64(0)
    if status == OK and how & HOW_ENDS:
        status, border = border_of(np.int64(start), machine, pool)
        if border >= 0:
            accepts = np.int64(machine.row_flags[border] & ROW_ACCEPTS)
    if status != OK:
        at = pool.walk_at
        at[0], at[1], at[2], at[3], at[4], at[5], at[6] = inside, waiting, first, here, stop, base, of_state
        at[7], at[8], at[9], at[10], at[11] = frame, listed, np.int64(signature), visited, is_whole
        at[12] = spelled
        return MISSING - status
    machine.meta[M_NODES] += visited
    if accepts:
        for token in pool.end_tokens:
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            if 0 <= listed < NARROW:
                pool.listed[listed] = token
            listed += 1
    pool.walk_meta[W_LEFT] = -1
    if how & HOW_PARTITIONS:
        note_bound(start, machine, pool)
    pool.walk_meta[W_SIGNATURE] = np.int64(signature >> np.uint64(1)) ^ accepts
    is_listed = 0 <= listed <= NARROW and pool.walk_meta[W_LEFT] < 0 and pool.walk_meta[W_WANTED] == 0
    return listed if is_listed else np.int64(-1)
