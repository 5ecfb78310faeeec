"""Structs: many arrays as one argument of a kernel, with named fields.

A kernel reads them as ``struct.field``. What it gets is the address of a table of the arrays' addresses and shapes,
which takes 1 us however many there are; a tuple of forty takes 6 us. Python code keeps the arrays themselves, and
makes a new struct when it replaces one. numba spends that microsecond on finding out what kind of struct it is, so a
kernel that is called for every token takes the address as a number, and turns it into a struct by `struct_at`. That
needs a struct whose arrays are declared.

This is not numba's `structref`, because the arrays out of one have an owner each, whose references a kernel counts
whenever it uses them, in places that are rarely in a cache. An array out of a table has no owner. So a kernel must not
return one, and whoever calls a kernel must hold the struct until it returns.

A field may also be a struct, of which the table keeps the address: ``machine.rows.words``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llvmlite.ir import Constant  # type: ignore[import-untyped, unused-ignore]
from numba import from_dtype, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)

from tokdfa.core.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    import numpy.typing as npt


class StructType(types.Type):
    """numba's type of a `Struct`: `fields` are the types of its arrays by name, in order."""

    def __init__(self, struct: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        self.places = {name: place for place, (name, _) in enumerate(fields)}
        super().__init__(name=f"{struct}({', '.join(f'{name}: {kind}' for name, kind in fields)})")


class Struct:
    """Base of structs: ``class Tables(Struct, fields=("heights", "names"))``.

    Made of C-contiguous arrays and structs in the order of the fields, which it keeps alive. 14 µs for forty arrays.
    Kernels write to its arrays, be they marked as read-only or not. `declared`: by field the array's type, as dtype and
    dimensions, or the class of a struct that is declared itself; of all fields; then others are refused.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    #: numba's type of the structs whose arrays are as declared.
    kind: ClassVar[StructType | None]
    _kinds: ClassVar[dict[tuple[Any, ...], StructType]]

    def __init_subclass__(
        cls, fields: tuple[str, ...] = (), declared: Mapping[str, tuple[str, int] | type[Struct]] | None = None
    ) -> None:
        cls.fields, cls._kinds, cls.kind = fields, {}, None
        if declared is not None:
            cls.kind = cls._add_kind(tuple(_declared_key(declared[field]) for field in fields))

    @classmethod
    def _add_kind(cls, key: tuple[Any, ...]) -> StructType:
        """The type of structs with these fields: type codes and dimensions of arrays, or types of structs."""
        kinds = [
            part if isinstance(part, StructType) else types.Array(from_dtype(np.dtype(part[0])), part[1], "C")
            for part in key
        ]
        cls._kinds[key] = kind = StructType(cls.__name__, tuple(zip(cls.fields, kinds, strict=True)))
        return kind

    def __init__(self, *arrays: npt.NDArray[Any] | Struct) -> None:
        if len(arrays) != len(self.fields):
            raise TypeError(f"{type(self).__name__} has {len(self.fields)} arrays, not {len(arrays)}")
        self._arrays: tuple[Any, ...] = arrays
        #: int64, shape (fields, 3): the address of each array and its shape.
        self._table = np.zeros((len(arrays), 3), dtype=np.int64)
        self.address: int = _write_table(self._table, [a._table if isinstance(a, Struct) else a for a in arrays])
        key = tuple([_key_of(array) for array in arrays])
        kind = self._kinds.get(key)
        if kind is None:
            if self.kind is not None:
                raise TypeError(f"the arrays of a {type(self).__name__} are not those declared: {key}")
            kind = self._add_kind(key)
        self._numba_type_ = kind

    @property
    def table(self) -> npt.NDArray[np.int64]:
        """int64, shape (fields, 3): the address of each array and its shape. Not to be changed."""
        return self._table

    @classmethod
    def with_others(cls, others: Any, table: npt.NDArray[np.int64], *arrays: npt.NDArray[Any]) -> Self:
        """A struct whose first arrays are `arrays`, and the others those of another struct, which has this `table`.

        `others`: what holds these. Only for declared arrays, which are not checked again; 4 µs for ten out of forty.
        """
        assert cls.kind is not None
        struct = cls.__new__(cls)
        struct._arrays = others, *arrays
        struct._table = table.copy()
        struct.address = _write_table(struct._table, arrays)
        struct._numba_type_ = cls.kind
        return struct


def _key_of(field: Any) -> Any:
    """What tells the type of a field: type code and dimensions of an array, or the type of a struct."""
    return field._numba_type_ if isinstance(field, Struct) else (field.dtype.char, field.ndim)


def _declared_key(declared: tuple[str, int] | type[Struct]) -> Any:
    """The `_key_of` a field that is declared so."""
    if isinstance(declared, tuple):
        return np.dtype(declared[0]).char, declared[1]
    if declared.kind is None:
        raise TypeError(f"the arrays of {declared.__name__} are not declared")
    return declared.kind


def struct_at(struct: type[Struct]) -> Any:
    """What kernels call with the `address` of a struct, which must be one of this class, to get the struct."""
    kind = struct.kind
    if kind is None:
        raise TypeError(f"the arrays of {struct.__name__} are not declared")

    @intrinsic
    def at(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(kind))

        return kind(types.int64), generate

    at.struct_kind = str(kind)  # a part of what stored kernels are known by
    return at


register_model(StructType)(models.OpaqueModel)


@unbox(StructType)
def _unbox_struct(kind: StructType, value: Any, c: Any) -> NativeValue:
    """The address of a struct's table."""
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(pointer)


@infer_getattr
class _StructFields(AttributeTemplate):
    key = StructType

    def generic_resolve(self, kind: StructType, field: str) -> Any:
        return kind.fields.get(field)


@lower_getattr_generic(StructType)
def _lower_field(context: Any, builder: Any, kind: StructType, value: Any, field: str) -> Any:
    """An array or a struct out of the struct's table. It has no owner, so nothing is counted when it is used."""
    array_type, word = kind.fields[field], context.get_value_type(types.intp)
    table = builder.bitcast(value, word.as_pointer())

    def load(column: int) -> Any:
        loaded = builder.load(builder.gep(table, [word(3 * kind.places[field] + column)]))
        # the table never changes: a loop reads it once
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(array_type, StructType):
        return builder.inttoptr(load(0), context.get_value_type(array_type))
    shape = [load(1 + axis) for axis in range(array_type.ndim)]
    item = context.get_data_type(array_type.dtype)
    size = word(context.get_abi_sizeof(item))
    fields = {
        "nitems": shape if array_type.ndim == 1 else [builder.mul(*shape)],
        "itemsize": [size],
        "data": [builder.inttoptr(load(0), item.as_pointer())],
    }
    model = context.data_model_manager[array_type]
    array = Constant(context.get_value_type(array_type), None)
    for name, (part,) in fields.items():
        array = builder.insert_value(array, part, model.get_field_position(name))
    strides = [size] if array_type.ndim == 1 else [builder.mul(shape[1], size), size]
    for name, parts in (("shape", shape), ("strides", strides)):
        for axis, part in enumerate(parts):
            array = builder.insert_value(array, part, [model.get_field_position(name), axis])
    return array


#: Where an array object has what a table needs, in words: the address of its data, the number of its dimensions, the
#: address of its shape, and its flags (numpy's ``PyArrayObject``, which its binary interface promises).
_DATA, _DIMENSIONS, _SHAPE, _FLAGS = (object.__basicsize__ // 8 + word for word in (0, 1, 2, 6))
_C_CONTIGUOUS = 1


@intrinsic
def _word_at(context: Any, address: Any) -> Any:
    """The int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = context.get_value_type(types.intp)
        return builder.load(builder.inttoptr(values[0], word.as_pointer()))

    return types.int64(types.int64), generate


@kernel
def _write_table_kernel(table, objects):  # type: ignore[no-untyped-def]
    """Write the addresses and shapes of arrays into a table, given where their Python objects are (int64); the address
    of the table, or 0 if an array does not fit.

    One kernel for all structs: one that took the arrays would be compiled for each combination of their types.
    """
    for place in range(len(objects)):
        array = objects[place]
        dimensions = _word_at(array + 8 * _DIMENSIONS) & 0xFFFF  # an int32, as the flags are
        if dimensions > 2 or not _word_at(array + 8 * _FLAGS) & _C_CONTIGUOUS:
            return np.int64(0)
        table[place, 0] = _word_at(array + 8 * _DATA)
        for axis in range(dimensions):
            table[place, 1 + axis] = _word_at(_word_at(array + 8 * _SHAPE) + 8 * axis)
    return np.int64(table.ctypes.data)


def _write_table(table: npt.NDArray[np.int64], arrays: Sequence[npt.NDArray[Any]]) -> int:
    """Fill the table of a struct; its address. `arrays`: of a struct in it its table, as kernels read that."""
    address: int = _write_table_kernel(table, np.fromiter(map(id, arrays), np.int64, len(arrays)))
    if not address:
        raise TypeError("the arrays of a struct are C-contiguous and have one or two dimensions")
    return address
