"""Small compiled functions of both training loops: random numbers, the logistic function, and reading ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import LaterModule, fast_inlined, inlined, intrinsic

ir, types, cgutils = LaterModule("llvmlite.ir"), LaterModule("numba.types"), LaterModule("numba.core.cgutils")

S13, S7, S17, S32 = (np.uint64(shift) for shift in (13, 7, 17, 32))
LOW_24, LOW_32 = np.uint64((1 << 24) - 1), np.uint64((1 << 32) - 1)
CACHE_LINE = 64  # bytes
# tanh(x) ≈ x P(x²) / Q(x²) for |x| < LIMIT, to 1e-7 (the coefficients of Eigen)
LIMIT = np.float32(7.90531110763549805)
P0, P1, P2 = np.float32(4.89352455891786e-03), np.float32(6.37261928875436e-04), np.float32(1.48572235717979e-05)
P3, P4 = np.float32(5.12229709037114e-08), np.float32(-8.60467152213735e-11)
P5, P6 = np.float32(2.00018790482477e-13), np.float32(-2.76076847742355e-16)
Q0, Q1 = np.float32(4.89352518554385e-03), np.float32(2.26843463243900e-03)
Q2, Q3 = np.float32(1.18534705686654e-04), np.float32(1.19825839466702e-06)
HALF = np.float32(0.5)


@inlined
def draw(state: Any) -> Any:
    """The next random number (xorshift64, Marsaglia 2003)."""
    x = state[0]
    x ^= x << S13
    x ^= x >> S7
    x ^= x << S17
    state[0] = x
    return x


@inlined
def below(state: Any, bound: Any) -> Any:
    """A random whole number from 0 up to `bound`, not included."""
    return np.int64(((draw(state) >> S32) * np.uint64(bound)) >> S32)


@inlined
def noise_word(state: Any, noise: Any) -> Any:
    """A word by its share of the noise, see `noise_table`: one random number gives a place and whether to stay."""
    x = draw(state)
    place = ((x >> S32) * np.uint64(noise.shape[0])) >> S32
    entry = noise[place]
    return np.int64(place) if (x & LOW_24) < (entry & LOW_32) else np.int64(entry >> S32)


@fast_inlined
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), which is (1 + tanh(x / 2)) / 2, in operations that exist for vectors of numbers."""
    y = min(LIMIT, max(-LIMIT, HALF * x))
    z = y * y
    above = y * (P0 + z * (P1 + z * (P2 + z * (P3 + z * (P4 + z * (P5 + z * P6))))))
    return HALF + HALF * (above / (Q0 + z * (Q1 + z * (Q2 + z * Q3))))


@inlined
def softplus(x: Any) -> Any:
    """log(1 + exp(x)) in double precision: the loss of a prediction with the logit x that should be 0."""
    y = np.float64(x)
    return max(y, 0.0) + np.log1p(np.exp(-abs(y)))


@intrinsic
def read_ahead(typing_context: Any, table: Any, row: Any) -> Any:
    """Ask the processor to fetch a row of a table into the cache; the program does not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], function_type)
        to_write, keep_close, data = (ir.Constant(number, value) for value in (1, 3, 1))
        base, start = builder.bitcast(array.data, pointer), builder.mul(arguments[1], stride)
        size = ir.IntType(64)
        with cgutils.for_range_slice(builder, size(0), stride, size(CACHE_LINE)) as (offset, _):
            builder.call(fetch, [builder.gep(base, [builder.add(start, offset)]), to_write, keep_close, data])
        return context.get_dummy_value()

    return types.void(table, row), generate
