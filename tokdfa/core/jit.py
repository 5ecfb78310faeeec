"""The only place that sets numba options, and that knows what uses which kernels. Kernels are marked `@kernel`.

Options and why:

- compiled code is kept on disk, so only the first use of a kernel on a machine pays for compilation. numba notices a
  change of the kernel's own file but not of kernels it calls in other files, so it is kept in a store of our own
  (`tokdfa.core.kernel_store`).
- ``nogil=True``: kernels touch arrays only, so other Python threads may run meanwhile.
- ``error_model="numpy"``: no division check in hot loops; no kernel divides by anything that can be zero.
- ``fastmath`` stays off: kernels are integer code, and the few floats are measurements.
- ``boundscheck`` is left to the environment (``NUMBA_BOUNDSCHECK=1``), which the tests use for one run.

Kernels take many arrays at once as structs (`tokdfa.core.kernel_struct`). Those that kernels call are compiled as parts
of their callers (`tokdfa.core.kernel_parts`).

`warm_up` compiles all kernels by running a small job through each part that has some (`WARMUP_STEPS`). Without it, each
is compiled when it is first needed (`tokdfa.core.first_use`).
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numba import config as numba_config
from numba.core.compiler_lock import global_compiler_lock

from tokdfa.core import first_use, kernel_store, locks
from tokdfa.core.kernel_parts import UnusedKernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

# a thread that compiles a kernel holds it, and would for ever in the child of a fork
locks.watch(global_compiler_lock._lock)

#: What to run so that every kernel is compiled: what it is -> "module:function".
WARMUP_STEPS: dict[str, str] = {
    "interning tables": "tokdfa.core.interning:_warm_up",
    "token trie and walk": "tokdfa.vocabulary.byte_table:_warm_up",
    "regex derivatives": "tokdfa.regex.lazy_dfa:_warm_up",
    "automata algebra": "tokdfa.automata.algebra:_warm_up",
    "merge rules": "tokdfa.proper.rules_cache:_warm_up",
    "token index": "tokdfa.backends.token_index:_warm_up",
    "tokens DFA": "tokdfa.backends.tokens_dfa.strategy:_warm_up",
    "proper tokens": "tokdfa.backends.proper_merge.cartesian_merge:_warm_up",
    "grammars": "tokdfa.backends.earley_trie.strategy:_warm_up",
    "JSON numbers": "tokdfa.json_schema.number_dfa:_warm_up",
    "JSON strings": "tokdfa.json_schema.spelled_automaton:_warm_up",
    "pushdown automata": "tokdfa.backends.pushdown_trie.strategy:_warm_up",
    "LALR grammars": "tokdfa.backends.cfg_fsm.strategy:_warm_up",
    "proper grammars": "tokdfa.backends.proper:_warm_up",
    "kept masks": "tokdfa.vocabulary.mask_store:_warm_up",
    "cycles": "tokdfa.vocabulary.cycle_clock:_warm_up",
}

#: How many kernels all steps load or compile, for messages.
ALL_KERNELS = 150
_REGEX_STEPS = ("interning tables", "token trie and walk", "regex derivatives", "automata algebra")
_MERGE_STEPS = (*_REGEX_STEPS, "merge rules", "proper tokens")
_PUSHDOWN_STEPS = (*_REGEX_STEPS, "pushdown automata")
#: What a first mask of a backend needs, for some kinds of constraints apart: how many kernels, about, for messages, and
#: the steps for the process that helps, which begins with the last (`tokdfa.core.first_use`).
FIRST_MASKS: dict[str, first_use.Expected] = {
    "token_index": first_use.Expected(10, ("token trie and walk", "regex derivatives", "token index"), False),
    "tokens_dfa": first_use.Expected(26, (*_REGEX_STEPS, "tokens DFA")),
    "earley_trie": first_use.Expected(25, (*_REGEX_STEPS, "grammars")),
    "earley_trie json_schema": first_use.Expected(24, ("JSON numbers", *_REGEX_STEPS, "grammars")),
    "pushdown_trie": first_use.Expected(30, _PUSHDOWN_STEPS),
    "pushdown_trie json_schema": first_use.Expected(24, ("JSON numbers", *_PUSHDOWN_STEPS)),
    "cfg_fsm": first_use.Expected(15, (*_REGEX_STEPS, "LALR grammars")),
    "direct_merge": first_use.Expected(21, _MERGE_STEPS),
    "cartesian_merge": first_use.Expected(27, _MERGE_STEPS),
}


#: numba's, as `numba.njit` would have them.
_OPTIONS: dict[str, Any] = {
    **{"nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
}


def kernel(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Mark a function as a kernel: compiled by numba at first call, without the GIL, kept on disk.

    `inline`: it is made a part of its callers, whatever its size.
    """
    if function is None:
        return lambda given: kernel(given, inline=inline)
    if numba_config.DISABLE_JIT:
        return function
    is_kept = kernel_store.changed_at(function.__code__.co_filename) is not None  # not from a prompt
    return UnusedKernel(function, {**_OPTIONS, "forceinline": inline}, kernel_store.KernelStore if is_kept else None)


def steps_of(backend: str, *, proper: bool = False) -> tuple[str, ...]:
    """The warm-up steps that reach every kernel of a backend, by itself or with `proper` masks; all steps for one that
    `FIRST_MASKS` does not know. In the order of `WARMUP_STEPS`.
    """
    known = [expected.steps for key, expected in FIRST_MASKS.items() if key.split()[0] == backend]
    if not known:
        return tuple(WARMUP_STEPS)
    needed = {*_MERGE_STEPS, "proper grammars"} if proper else set(_REGEX_STEPS)
    return in_order({*needed, "kept masks", *(step for steps in known for step in steps)})


def in_order(steps: Iterable[str]) -> tuple[str, ...]:
    """Steps in the order of `WARMUP_STEPS`, each once."""
    wanted = set(steps)
    return tuple(step for step in WARMUP_STEPS if step in wanted)


def is_warm(steps: Sequence[str] = ()) -> bool:
    """True if `warm_up` has finished these steps, or all, on this machine with the kernels as they are now, or a wheel
    has brought them.
    """
    chosen, prebuilt = tuple(steps or WARMUP_STEPS), kernel_store.prebuilt_folder()
    if prebuilt is not None and _are_marked(prebuilt, kernel_store.BASELINE[1], chosen):
        return True
    return _are_marked(kernel_store.kernel_folder(), _processor(), chosen)


def expect_first_mask(backend: str, kind: str) -> None:
    """Say that a backend is at work on a kind of constraint, so that a process that has to compile kernels knows what
    is to come. 0.3 us.
    """
    first_use.expect(FIRST_MASKS.get(f"{backend} {kind}") or FIRST_MASKS.get(backend))


def warm_up(steps: Sequence[str] = (), *, alone: bool = False) -> Iterator[tuple[str, int, int]]:
    """Compile every kernel, or those of some steps, yielding (what comes next, steps done, steps in all) before each
    step. `alone`: without a second process.
    """
    chosen = tuple(steps or WARMUP_STEPS)
    first_use.expect(None if alone else first_use.Expected(0 if steps else ALL_KERNELS, chosen))
    for done, title in enumerate(chosen):
        yield title, done, len(chosen)
        module, function = WARMUP_STEPS[title].split(":")
        getattr(importlib.import_module(module), function)()
        mark(kernel_store.kernel_folder(), _processor(), (title,))
    first_use.expect(None)


def help_warm_up() -> None:
    """What a second process does for one that compiles kernels: the steps it is told, the last one first."""
    first_use.become_helper()
    for _ in warm_up(sys.argv[:1:-1], alone=True):
        pass


def mark(folder: Path, processor: str, steps: Sequence[str] = ()) -> None:
    """Say in a folder of kernels that those of these steps, or of all, are there."""
    name = kernel_store.marker_name(processor)
    with suppress(OSError):
        for step in steps or WARMUP_STEPS:
            (folder / f"{name}-{step.replace(' ', '-')}").touch()


def _are_marked(folder: Path, processor: str, steps: Sequence[str]) -> bool:
    name = kernel_store.marker_name(processor)
    return all((folder / f"{name}-{step.replace(' ', '-')}").exists() for step in steps)


def _processor() -> str:
    return numba_config.CPU_NAME or "host"
