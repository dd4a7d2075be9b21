"""Vector operations for compiled code: unaligned loads, byte classes as bit masks, counting zeros, copying.

Loops over bytes that stop at the first byte of interest are not vectorised by any compiler. These intrinsics express
them in LLVM instead, which uses the vector instructions of the processor. Bit i of a mask stands for byte `at + i`. The
caller makes sure that WIDE bytes can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenor.compiled import LaterModule, intrinsic

ir, types, cgutils = LaterModule("llvmlite.ir"), LaterModule("numba.types"), LaterModule("numba.core.cgutils")

WIDE = 64  # bytes that a mask covers


def _bytes() -> Any:
    """The type of WIDE bytes."""
    return ir.VectorType(ir.IntType(8), WIDE)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [at])


def _load(context: Any, builder: Any, signature: Any, args: Any, what: Any) -> Any:
    pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
    return builder.load(builder.bitcast(pointer, what.as_pointer()), align=1)


def _all(value: int) -> Any:
    return ir.Constant(_bytes(), [value] * WIDE)


def _between(builder: Any, data: Any, first: int, last: int) -> Any:
    return builder.icmp_unsigned("<=", builder.sub(data, _all(first)), _all(last - first))


def _any_of(builder: Any, data: Any, values: bytes) -> Any:
    found = builder.icmp_unsigned("==", data, _all(values[0]))
    for value in values[1:]:
        found = builder.or_(found, builder.icmp_unsigned("==", data, _all(value)))
    return found


@intrinsic
def load8(typing: Any, data: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """data[at : at + 8] as one integer; the first byte is the lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature, args, ir.IntType(64))

    return types.uint64(data, types.int64), generate


@intrinsic
def count_zeros(typing: Any, mask: Any) -> tuple[Any, Callable[..., Any]]:
    """The number of zero bits below the lowest set bit; 64 if no bit is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_leading_zeros(typing: Any, mask: Any) -> tuple[Any, Callable[..., Any]]:
    """The number of zero bits above the highest set bit; 64 if no bit is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def text_masks(typing: Any, data: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """Masks of (ASCII letters, digits, bytes that need a closer look: ' ! ? & < and all bytes beyond ASCII)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _load(context, builder, signature, args, _bytes())
        letters = _between(builder, builder.or_(data, _all(32)), ord("a"), ord("z"))
        digits = _between(builder, data, ord("0"), ord("9"))
        special = builder.or_(_any_of(builder, data, b"'!?&<"), builder.icmp_signed("<", data, _all(0)))
        masks = [builder.bitcast(found, ir.IntType(64)) for found in (letters, digits, special)]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 3)(data, types.int64), generate


@intrinsic
def string_mask(typing: Any, data: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """A mask of the special bytes inside a JSON string: quotes, backslashes and control characters."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _load(context, builder, signature, args, _bytes())
        found = builder.or_(_any_of(builder, data, b'"\\'), builder.icmp_unsigned("<", data, _all(32)))
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(data, types.int64), generate


@intrinsic
def copy_bytes(typing: Any, data: Any, at: Any, out: Any, to: Any, size: Any) -> tuple[Any, Callable[..., Any]]:
    """out[to : to + size] = data[at : at + size], for arrays that do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _pointer(context, builder, signature.args[0], args[0], args[1])
        target = _pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, target, source, args[4], 1)
        return context.get_dummy_value()

    return types.void(data, types.int64, out, types.int64, types.int64), generate


@intrinsic
def prefetch(typing: Any, data: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """Load the cache line of data[at] into the cache, because it will be read soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(_pointer(context, builder, signature.args[0], args[0], args[1]), pointer)
        builder.call(function, [place, number(0), number(3), number(1)])  # for reading, high locality, data cache
        return context.get_dummy_value()

    return types.void(data, types.int64), generate
