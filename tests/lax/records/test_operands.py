"""What the public functions take: scalars, weak types, broadcasting, and what they say of anything else."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback import lax
from pullback.core import typeof

X, I = np.ones(3, np.float32), np.arange(3, dtype=np.int32)


@pytest.mark.parametrize(
    "out, short, weak",
    [
        (lambda: lax.add(X, 1.0), "f32[3]", False),
        (lambda: lax.add(1, 2), "i32[]", True),
        (lambda: lax.sin(1.0), "f32[]", True),
        (lambda: lax.add(X, np.ones(1, np.float32)), "f32[3]", False),
        (lambda: lax.lt(1.0, 2.0), "bool[]", True),
        (lambda: lax.abs(1j), "f32[]", True),
        (lambda: lax.full((2,), 1), "i32[2]", True),
        (lambda: lax.full((2,), 1.0, np.int32), "i32[2]", False),
        (lambda: lax.full_like(I, 1.5), "i32[3]", False),
        (lambda: lax.convert_element_type(1.5, int), "i32[]", False),
        (lambda: lax.select(True, X, X), "f32[3]", False),
        (lambda: lax.clamp(0.0, X, 2.0), "f32[3]", False),
        (lambda: lax.pow(X, 2), "f32[3]", False),
        (lambda: lax.conj(X), "c64[3]", False),
        (lambda: lax.bitcast_convert_type(X, np.int8), "i8[3,4]", False),
        (lambda: lax.reduce_sum(lax.full((2,), 1.0), (0,)), "f32[]", True),
        (lambda: lax.iota(np.complex64, 2), "c64[2]", False),
    ],
)
def test_types(out, short, weak):
    aval = typeof(out())
    assert (aval.str_short(True), aval.weak_type) == (short, weak)


def _with_axes_of_size_1(bind):
    a, b = np.float32([[1, 2, 3]]), np.float32([[4], [5]])
    stacked = np.stack([a, a + 1], 2), np.stack([b, b + 1])

    def total(a, b):
        return lax.reduce_sum(lax.sin(bind(a, b)), (0, 1))

    yield bind(a, b)
    yield pullback.jit(bind)(a, b)
    yield pullback.jvp(bind, (a, b), (b[:1] * a, b))
    yield pullback.grad(total, (0, 1))(a, b)
    yield pullback.jit(pullback.grad(total, (0, 1)))(a, b)
    yield pullback.vmap(bind, (2, 0))(*stacked)
    yield pullback.vmap(bind, (None, 0))(a, stacked[1])
    yield pullback.vmap(pullback.grad(total, (0, 1)), (2, 0))(*stacked)
    yield bind(np.zeros((0, 1), np.float32), a)


@pytest.mark.parametrize("name", ["mul", "atan2", "sub", "max"])
def test_primitives_take_axes_of_size_1(name):
    """As interpreters of libraries bind them: like the function, on every way to evaluate, also when remembered."""
    p, function = getattr(lax, f"{name}_p"), getattr(lax, name)
    for _ in range(3):
        for got, want in zip(_with_axes_of_size_1(p.bind), _with_axes_of_size_1(function), strict=True):
            for x, y in zip(pullback.tree.leaves(got), pullback.tree.leaves(want), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-6)
    with pytest.raises(TypeError, match="incompatible shapes"):
        p.bind(np.ones(2, np.float32), X)
    with pytest.raises(TypeError, match="must be of one rank"):
        p.bind(X, np.ones((3, 1), np.float32))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: lax.add(X, 1),
            TypeError,
            "lax.add requires arguments of one dtype, got float32, int32; jnp.add",
        ),
        (lambda: lax.add(X, I), TypeError, "of one dtype, got float32, int32"),
        (lambda: lax.add(X, np.ones((2, 3), np.float32)), TypeError, "must be of one rank"),
        (
            lambda: lax.add(X, np.ones(4, np.float32)),
            TypeError,
            r"incompatible shapes for broadcasting: \(3,\), \(4,\)",
        ),
        (
            lambda: lax.add(X, [1, 2, 3]),
            TypeError,
            "Error interpreting argument to add at position 1: <class 'list'>",
        ),
        (
            lambda: lax.sin(I),
            TypeError,
            "sin does not accept dtype int32; accepted are floating, complexfloating",
        ),
        (lambda: lax.neg(np.array(True)), TypeError, "neg does not accept dtype bool"),
        (
            lambda: lax.select(np.array([True, False]), X, X),
            TypeError,
            "`which` of shape .2,. does not choose",
        ),
        (lambda: lax.clamp(X[:2], X, X), TypeError, "clamp requires min.shape == operand.shape"),
        (lambda: lax.pow(I, X), TypeError, "pow does not accept dtype int32 at position 0"),
        (lambda: lax.integer_pow(I, -1), TypeError, "int32 cannot hold negative powers, got y=-1"),
        (lambda: lax.reshape(X, (2, 2)), ValueError, "reshape: total size must be unchanged: shape"),
        (lambda: lax.reshape(X, (3, -1)), TypeError, "must have nonnegative sizes"),
        (lambda: lax.transpose(X, (1,)), TypeError, "isn't a permutation"),
        (lambda: lax.concatenate([X, I], 0), TypeError, "lax.concatenate requires arguments of one dtype"),
        (lambda: lax.concatenate([], 0), ValueError, "expected at least one array"),
        (lambda: lax.squeeze(X, (0,)), ValueError, "only axes of size 1"),
        (
            lambda: lax.slice(X, (0,), (5,)),
            TypeError,
            "slice: argument 'limit_indices' is .* beyond the end",
        ),
        (lambda: lax.pad(X, 0, [(1, 1, 0)]), TypeError, "'padding_value' is of int32, the operand of float32"),
        (lambda: lax.broadcast_in_dim(X, (2, 4), (1,)), TypeError, "only axes of size 1 grow"),
        (lambda: lax.iota(np.int32, -1), TypeError, "nonnegative"),
        (lambda: lax.full((2,), X), TypeError, "'fill_value' must be a scalar"),
        (lambda: lax.broadcast_shapes((2,), (3,)), ValueError, "Incompatible shapes for broadcasting"),
        (
            lambda: lax.dot(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)),
            ValueError,
            "without dimension_numbers",
        ),
        (lambda: lax.split(X, (1, 1)), ValueError, "'sizes' adds up to 2, but axis 0"),
        (lambda: lax.top_k(X, 4), ValueError, "k=4 is more than axis 0"),
        (lambda: lax.bitcast_convert_type(X, np.complex64), ValueError, "complex64 has 64 bits"),
        (lambda: lax.bitcast_convert_type(X > 0, np.int8), TypeError, "bool and complex keep their dtype"),
        (
            lambda: lax.bitcast_convert_type(np.ones(3, np.int8), np.int32),
            ValueError,
            r"int32 has 32 bits.*int8 only 8 bits",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_scalars_stay_literals_in_programs():
    text = str(pullback.make_jaxpr(lambda x: lax.mul(lax.add(x, 1.0), 2.0))(X))
    assert "broadcast_in_dim" not in text and "convert" not in text


def test_scalar_operands_under_vmap_and_grad():
    got = pullback.vmap(lax.mul, (0, None))(X, np.float32(2))
    assert np.asarray(got).tolist() == [2, 2, 2]
    got = pullback.vmap(lax.mul, (0, 0))(np.ones((2, 3), np.float32), np.arange(2, dtype=np.float32))
    assert np.asarray(got).tolist() == [[0, 0, 0], [1, 1, 1]]
    got = pullback.vmap(lax.mul, (None, 0))(X, np.arange(2, dtype=np.float32))
    assert np.asarray(got).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert float(pullback.grad(lambda y: lax.reduce_sum(lax.div(X, y), (0,)))(np.float32(2))) == -0.75


def test_first_derivatives_of_special_functions():
    """Of those that have none in some operand, against differences in the one that does."""
    with pullback.enable_x64(True):
        for fun, x in [
            (lambda x: lax.betainc(2.0, 3.0, x), 0.3),
            (lambda q: lax.zeta(3.0, q), 1.5),
            (lambda a: lax.igamma(a, 2.5), 1.5),
            (lambda x: lax.igammac(1.5, x), 2.5),
            (lambda a: lax.igammac(a, 0.7), 1.5),
            (lambda x: lax.polygamma(1.0, x), 2.0),
        ]:
            want = (float(fun(x + 1e-6)) - float(fun(x - 1e-6))) / 2e-6
            np.testing.assert_allclose(float(pullback.grad(fun)(x)), want, rtol=1e-6)
        # The sample at a fixed probability moves so that igamma(a, x(a)) stays.
        a, x = 1.5, 2.5
        moved = float(lax.igamma(a + 1e-6, x + 1e-6 * float(lax.random_gamma_grad(a, x))))
        np.testing.assert_allclose(moved, float(lax.igamma(a, x)), rtol=1e-10)
    with pytest.raises(ValueError, match="gradient of betainc with respect to a"):
        pullback.grad(lambda a: lax.betainc(a, 3.0, 0.3))(2.0)


def test_bits():
    x = np.array([1, -8, 7], np.int32)
    assert np.asarray(lax.shift_left(x, np.array([33, 1, -1], np.int32))).tolist() == [0, -16, 0]
    assert np.asarray(lax.shift_right_arithmetic(x, np.full(3, 40, np.int32))).tolist() == [0, -1, 0]
    assert np.asarray(lax.div(np.array([7, -7, 0, 5], np.int32), np.array([2, 2, 0, 0], np.int32))).tolist() == [
        3,
        -3,
        -1,
        -1,
    ]
    assert np.asarray(lax.rem(np.array([7, -7, 5], np.int32), np.array([2, 2, 0], np.int32))).tolist() == [1, -1, 5]
    assert np.asarray(lax.convert_element_type(np.array([1e10, -1e10, np.nan], np.float32), np.int32)).tolist() == [
        2**31 - 1,
        -(2**31),
        0,
    ]
    for n in (np.int8, np.uint16, np.float16):
        there = lax.bitcast_convert_type(X, n)
        assert np.array_equal(np.asarray(lax.bitcast_convert_type(there, np.float32)), X)
        assert np.array_equal(np.asarray(pullback.jit(lambda t: lax.bitcast_convert_type(t, np.float32))(there)), X)
