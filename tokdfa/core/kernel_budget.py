"""Budgets (`tokdfa.core.budget`) in kernels: `pay` counts work, and ends a kernel that has done too much.

What Python's `spend` raises leaves the kernel as it would leave a Python function. The same way signals are handled, so
Ctrl-C ends a kernel within milliseconds. Arrays that the kernel itself allocated are not freed then.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tokdfa.core import budget


@intrinsic
def pay(context: Any, work: Any) -> Any:
    """Count work in nanoseconds, int64; to be called every 65,536 steps or so. 1 us."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        python = context.get_python_api(builder)
        lock = python.gil_ensure()
        answer = cgutils.alloca_once_value(builder, python.get_null_object())
        module = python.import_module(context.insert_const_string(builder.module, budget.__name__))
        with builder.if_then(cgutils.is_not_null(builder, module)):  # signals are handled here, too
            function = python.object_getattr_string(module, "spend")
            argument = python.long_from_longlong(values[0])
            builder.store(python.call_function_objargs(function, [argument]), answer)
            for reference in (argument, function, module, builder.load(answer)):
                python.decref(reference)  # of NULL, too: then nothing happens
        python.gil_release(lock)
        with builder.if_then(cgutils.is_null(builder, builder.load(answer)), likely=False):
            context.call_conv.return_exc(builder)
        return context.get_dummy_value()

    return types.void(types.int64), generate
