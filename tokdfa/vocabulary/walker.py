"""The walker: a pass over the flat trie, compiled anew for each strategy with its step built in.

Words. A *strategy* says how a *state* goes on by a byte, and what is done with an accepted token. Everything else is
the walk, and the same for all: nodes in depth-first order, the subtree below a dead prefix skipped, states in a stack
indexed by depth (so nothing is popped), nodes counted. `tokdfa.vocabulary.walk_forms` derives it from the recursive
walk. The walk is written once, as `_walk`; its *holes* are functions, `step`, `take` and, where it is needed, `leave`:

- ``step(strategy, stack, depth, byte)`` reads the state in ``stack[depth]``, writes the one after `byte` to
  ``stack[depth + 1]``, and returns a number of its own choice that is not negative, mostly the state; DEAD if no text
  goes on; any other negative number to stop the walk at this node, which is not counted. `depth` and `byte`: uint64.
- ``take(out, count, token, target)`` does what is to be done with a token of which the last byte led to `target`, the
  step's result, and returns the new `count`. It is called at *every* node that survives; those that end no token have
  the spare id (`tokdfa.vocabulary.trie`), so that it can do without a branch. `token`, `count`: uint64.
- ``leave(out, here, following, target)`` is called where a step returns less than DEAD, at the nodes ``here ..
  following - 1`` of a subtree. True passes over them, as over a dead subtree; False, the rule, stops the walk.

`specialise` makes a kernel of the walk and such kernels. What they work on comes as the arguments `strategy`,
`stack` and `out`: an array, a struct (`tokdfa.core.kernel_struct`), or a tuple of a few of them.

**Arrays or structs.** A step that is one expression, like that of `tokdfa.vocabulary.byte_table`, may take arrays, in
tuples, too. As soon as it has branches and calls, numba does not see any more that it can leave out counting the
references to each array that passes through it, the stack included, and counts them at every node: 10 to 20 ns for each
array. So then all of it comes in structs, whose arrays have no owner to be counted for. That is a matter of a factor of
two or three, and it is why a step's arguments are looked at first when a walk is slow (``NRT_incref`` in its machine
code).

Why like this. The step has to be compiled into the loop: an indirect call takes 5 ns, three times what a node does. A
closure over the step, or the step as an argument, would be compiled anew by each process, as numba's cache does not
know it again. A function with the walk's code and *globals of its own*, in which the holes are bound to the strategy's
kernels, is to numba like one that was written by hand: it is kept on disk, and made again when the step changes
(`tokdfa.core.jit` looks at the files of all kernels that a function's globals name, and at what each is called).

Cost: none. With the table of `tokdfa.vocabulary.byte_table` as its step a node takes as long as with the loop written
out (2.5 ns, `papers/reports/trie-walk.md`); with the lexer and the rows of `tokdfa.backends.earley_trie.walk` 4.2
ns, where the loop written out over arrays took 5.6. Two things do cost: a number more that is kept through the loop
(why the walk stopped) 3 %; so a step that has several reasons to stop writes the reason down, in what it works on. And
a named tuple as an argument 1 us a call; so short tuples have no names.

**Exceptions.** These loops are written out: the mask of `tokdfa.backends.pushdown_trie.fill`, which puts subtrees off
and looks children up; two that find where every token leads, as the walker takes longer there (10 to 20 % in
`tokdfa.backends.pushdown_trie.steps`, half as long again in `tokdfa.backends.earley_trie.targets`); three that build
tables, in `tokdfa.token_automata.prefix_graphs`, `tokdfa.backends.pushdown_trie.lengths` and
`tokdfa.backends.proper_merge.vegas`; and 004's own, for comparison (`tokdfa.vocabulary.walk_layout`).

Source: 004 (toktrie), whose recognisers are a trait with ``try_push_byte`` and ``pop_bytes``. Here a step is a function
of a state, and the stack is the walk's.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

#: What a step returns where no text goes on.
DEAD = -1


def specialise(name: str, step: Any, take: Any, leave: Any = None, *, inline: bool = False) -> Any:
    """The walk as a kernel with these holes, called as `_walk` is. `step`, `take` and `leave` are kernels.

    `name`: the module and the name that the kernel is known by there, as ``f"{__name__}._walk_rows_kernel"``.
    `inline`: for a kernel that walks many short ranges, of which it is made a part; a call takes 30 ns.
    """
    holes = {"step": step, "take": take, "leave": leave or stop_walk}
    walk = FunctionType(_walk.__code__, {**_walk.__globals__, **holes}, name)
    walk.__module__, walk.__qualname__ = name.rpartition(".")[0], name  # all have one file and line: names tell them
    walk.__doc__ = _walk.__doc__
    return kernel(walk, inline=inline)


def step(strategy: Any, stack: Any, depth: Any, byte: Any) -> Any:
    """A hole: see the module's docstring."""
    raise NotImplementedError


def take(out: Any, count: Any, token: Any, target: Any) -> Any:
    """A hole: see the module's docstring."""
    raise NotImplementedError


def leave(out: Any, here: Any, following: Any, target: Any) -> Any:
    """A hole: see the module's docstring."""
    raise NotImplementedError


def _walk(nodes, position, end, strategy, stack, out, count):  # type: ignore[no-untyped-def]
    """Walk the nodes position .. end - 1 of a trie. The states before them are in `stack`, by depth.

    Returns (where it stopped, what `take` has made of `count`, nodes visited, nodes skipped unseen), int64. It has
    ended if it stopped at `end` or, where a subtree that was skipped goes on, behind it. Else the step stopped it;
    called again from there with the same stack it goes on. Indices are unsigned: a signed one costs a test for
    wrap-around.
    """
    one = np.uint64(1)
    here, stop = np.uint64(position), np.uint64(end)
    visited, skipped, count = np.uint64(0), np.uint64(0), np.uint64(count)
    while here < stop:
        node = nodes[here]
        depth = (node >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1)
        target = step(strategy, stack, depth, node & np.uint64(0xFF))
        if target < 0:
            following = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            if target != DEAD and not leave(out, here, following, target):
                break
            skipped += following - here - one
            here = following
        else:
            count = take(out, count, node >> np.uint64(TOKEN_SHIFT), target)
            here += one
        visited += one
    return np.int64(here), np.int64(count), np.int64(visited), np.int64(skipped)


#: The walk before it has its holes: for what runs it in Python.
walk_in_python = _walk


@kernel
def stop_walk(out, here, following, target):  # type: ignore[no-untyped-def]
    """`leave` of a walk that stops wherever a step asks for it."""
    return False


@kernel
def set_bit(words, count, token, target):  # type: ignore[no-untyped-def]
    """Allow the token: `words` is uint32, V + 1 bits, as the spare id has one, too, which means nothing."""
    words[token >> np.uint64(5)] |= np.uint32(1) << np.uint32(token & np.uint64(31))
    return count


@kernel
def write_pair(out, count, token, target):  # type: ignore[no-untyped-def]
    """Write the token and its target from index `count` on. `out`: the two arrays, and the spare id.

    The pair of a node without a token is overwritten by the next one, so the arrays need room for one more.
    """
    tokens, targets, spare = out
    tokens[count] = token
    targets[count] = target
    return count + np.uint64(token != np.uint64(spare))
