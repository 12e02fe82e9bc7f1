"""The cipher: the reference against the paper's vectors, and the loop IR of every layout against the reference."""

import itertools

import numpy as np
import pytest

from pullback.core import ShapedArray
from pullback.lax.generators import threefry
from pullback.loops.ir import Builder
from pullback.loops.ir.interpret import interpret


@pytest.mark.parametrize(
    "key,counter,expected",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(key, counter, expected):
    """Vectors of the authors' test suite (Random123, kat_vectors, threefry2x32 with 20 rounds)."""
    words = threefry.encipher(*[np.full(1, v, np.uint32) for v in (*key, *counter)])
    assert tuple(int(w[0]) for w in words) == expected
    assert threefry._scalar_block(*key, *counter) == expected


class Context:
    """What a lowering rule is given, over whole input buffers."""

    def __init__(self, primitive, avals, params):
        self.b, self.params, self.in_avals = Builder(), params, avals
        self.out_aval = primitive.abstract_eval(*avals, **params)
        self.inputs = [self.b.input(f"x{i}", "u32", max(a.size, 1)) for i, a in enumerate(avals)]
        name = self.out_aval.dtype.name.replace("uint", "u")
        self.output = self.b.output("y", name, max(self.out_aval.size, 1))

    def flat(self, index, shape):
        position = self.b.index(0)
        for i, extent in zip(index, shape, strict=True):
            position = self.b.add(self.b.mul(position, self.b.index(extent)), i)
        return position

    def operand(self, k, index):
        return self.b.load(self.inputs[k], self.flat(index, self.in_avals[k].shape))


def run(primitive, arrays, **params):
    ctx = Context(primitive, [ShapedArray(a.shape, a.dtype) for a in arrays], params)

    def nest(index, extents):
        if not extents:
            ctx.b.store(ctx.output, ctx.flat(index, ctx.out_aval.shape), primitive.lower.at(ctx, tuple(index)))
        else:
            with ctx.b.loop(extents[0]) as i:
                nest([*index, i], extents[1:])

    nest([], ctx.out_aval.shape)
    (out,) = interpret(ctx.b.function("f"), [np.ascontiguousarray(a).reshape(-1) for a in arrays])
    return out[: ctx.out_aval.size].reshape(ctx.out_aval.shape)


KEYS = [np.array([7, 42], np.uint32), np.array([[1, 2], [0xFFFFFFFF, 5]], np.uint32)]


@pytest.mark.parametrize(
    "key,shape,width,partitionable", list(itertools.product(KEYS, [(), (5,), (2, 3)], [8, 16, 32, 64], [True, False]))
)
def test_bits_loops(key, shape, width, partitionable):
    params = dict(shape=shape, width=width, partitionable=partitionable)
    np.testing.assert_array_equal(
        run(threefry.threefry_bits_p, [key], **params), threefry.threefry_bits_p.reference(key, **params)
    )


@pytest.mark.parametrize(
    "key,shape,partitionable", list(itertools.product(KEYS, [(), (2,), (5,), (2, 3)], [True, False]))
)
def test_split_loops(key, shape, partitionable):
    params = dict(shape=shape, partitionable=partitionable)
    np.testing.assert_array_equal(
        run(threefry.threefry_split_p, [key], **params), threefry.threefry_split_p.reference(key, **params)
    )


@pytest.mark.parametrize("key", KEYS)
def test_fold_in_loops(key):
    data = np.full(key.shape[:-1], 77, np.uint32)
    np.testing.assert_array_equal(
        run(threefry.threefry_fold_in_p, [key, data]), threefry.threefry_fold_in_p.reference(key, data)
    )


def test_wrong_key_data():
    with pytest.raises(TypeError, match=r"key data must be of type u32\[..., 2\], got f32\[2\]"):
        threefry.threefry_bits_p.abstract_eval(ShapedArray((2,), np.float32), shape=(), width=32, partitionable=True)
