"""How kernels are lowered to LLVM: as numba does it, with less text for what kernels mostly do.

Half of the time to compile goes by the number of LLVM instructions, which numba writes, LLVM parses and then removes.
An element of an array takes numba thirty, as its code serves strides, slices and arrays as indices; an element of a
C-contiguous array of numbers takes five. Numbers have no references to be counted, and what `tokdfa.core.kernel_parts`
knows of operators is not asked again. With bounds checks elements are left to numba.

This leans on numba's private names, as `tokdfa.core.kernel_parts` does.
"""

from __future__ import annotations

from typing import Any

from llvmlite.ir import Constant  # type: ignore[import-untyped, unused-ignore]
from numba.core import ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

NUMBERS = (types.Number, types.Boolean)
#: What operators of numbers are: the signature by numba's type of the operator and the types of its operands.
signatures: dict[tuple[Any, tuple[Any, ...]], Any] = {}


class KernelLower(Lower):  # type: ignore[misc, unused-ignore]
    """numba's lowering of one function."""

    def incref(self, kind: Any, value: Any) -> None:
        if not isinstance(kind, NUMBERS):
            super().incref(kind, value)

    def decref(self, kind: Any, value: Any) -> None:
        if not isinstance(kind, NUMBERS):
            super().decref(kind, value)

    def lower_inst(self, inst: Any) -> Any:
        if isinstance(inst, ir.StaticSetItem) and self._has_plain_items(inst.target):
            return self.lower_setitem(inst.target, inst.index_var, inst.value, self.fndesc.calltypes[inst])
        return super().lower_inst(inst)

    def lower_expr(self, result: Any, expr: Any) -> Any:
        if expr.op == "static_getitem" and self._has_plain_items(expr.value):
            return self.lower_getitem(result, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        return super().lower_expr(result, expr)

    def lower_binop(self, result: Any, expr: Any, operator: Any) -> Any:
        signature = self.fndesc.calltypes[expr]
        kind = self.context.typing_context.resolve_value_type(operator)
        known = signatures.get((kind, signature.args))
        if known is None or expr.static_lhs is not ir.UNDEFINED or expr.static_rhs is not ir.UNDEFINED:
            return super().lower_binop(result, expr, operator)
        operands = [
            self._cast(self.loadvar(var.name), self.typeof(var.name), wanted)
            for var, wanted in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        value = self.context.get_function(kind, known)(self.builder, operands)
        return self._cast(value, signature.return_type, result)

    def lower_getitem(self, result: Any, expr: Any, array: Any, index: Any, signature: Any) -> Any:
        place = self._place_of(array, index, signature)
        if place is None:
            return super().lower_getitem(result, expr, array, index, signature)
        value = self.context.unpack_value(self.builder, signature.args[0].dtype, place)
        return self._cast(value, signature.return_type, result)

    def lower_setitem(self, array: Any, index: Any, value: Any, signature: Any) -> Any:
        kind = self.typeof(value.name)
        place = self._place_of(array, index, signature) if isinstance(kind, NUMBERS) else None
        if place is None:
            return super().lower_setitem(array, index, value, signature)
        item = signature.args[0].dtype
        # by way of the value's type in the signature, as numba does
        given = self._cast(self.loadvar(value.name), kind, signature.args[2])
        given = self._cast(given, signature.args[2], item)
        return self.context.pack_value(self.builder, item, given, place)

    def _cast(self, value: Any, kind: Any, wanted: Any) -> Any:
        return value if kind == wanted else self.context.cast(self.builder, value, kind, wanted)

    def _has_plain_items(self, array: Any) -> bool:
        kind = self.typeof(array.name)
        return (
            isinstance(kind, types.Array)
            and kind.layout == "C"
            and kind.aligned
            and isinstance(kind.dtype, NUMBERS)
            and not self.context.enable_boundscheck
        )

    def _place_of(self, array: Any, index: Any, signature: Any) -> Any:
        """The address of an element; None of what is none, or not of a plain array."""
        given, wanted = self.typeof(index.name), signature.args[1]
        is_alone = isinstance(wanted, types.Integer)
        kinds = (wanted,) if is_alone else getattr(wanted, "types", ())  # of a tuple
        kind = self.typeof(array.name)
        if not self._has_plain_items(array) or kind != signature.args[0] or len(kinds) != kind.ndim:
            return None
        if not all(isinstance(part, types.Integer) for part in kinds):
            return None
        builder, fields = self.builder, self.context.data_model_manager[kind]
        value, indices = self.loadvar(array.name), self._cast(self.loadvar(index.name), given, wanted)
        shape, place = fields.get_field_position("shape"), None
        for axis, part in enumerate(kinds):
            here = indices if is_alone else builder.extract_value(indices, axis)
            here = self._cast(here, part, types.intp if part.signed else types.uintp)
            if part.signed and not (isinstance(here, Constant) and here.constant >= 0):  # from the end
                wrapped = builder.add(here, builder.extract_value(value, [shape, axis]))
                here = builder.select(builder.icmp_signed("<", here, here.type(0)), wrapped, here)
            if place is not None:
                here = builder.add(builder.mul(place, builder.extract_value(value, [shape, axis])), here)
            place = here
        return builder.gep(builder.extract_value(value, fields.get_field_position("data")), [place])


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):  # type: ignore[misc, unused-ignore]
    """The pass that does it, in place of numba's."""

    _name = "tokdfa_kernel_lowering"

    @property
    def lowering_class(self) -> Any:
        return KernelLower
