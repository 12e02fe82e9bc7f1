"""Reductions outside of programs: their values, and that they have the bits of programs that do nothing else."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.runtime.eager.plan import make_plan
from pullback.runtime.eager.reductions import has_order

RNG = np.random.default_rng(0)
NAMES = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
# Straight code, fewer than a vector, vectors and what is left of each width, long sums, chunks, columns, the middle.
SHAPES = [
    *((n,) for n in (1, 9, 15, 33, 2047, 5003, 60_001)),
    *((7, 12), (40, 14), (64, 31), (5, 9), (9, 3000), (12, 9001), (2, 40), (300, 40)),
    *((4, 5, 6), (20, 17, 20), (9, 30, 3), (2, 3, 4, 5)),
]


def numbers(shape, dtype, name):
    x = RNG.normal(size=shape) * 4
    x = np.exp(x / 40) if name == "prod" else x
    return (x + 1j * RNG.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


@pytest.mark.parametrize("name, dtype", [("sum", "f4"), ("sum", "f8"), ("sum", "c8"), ("prod", "f4"), ("max", "f8")])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_are_those_of_programs(name, dtype, shape):
    with pullback.enable_x64():
        x = jnp.asarray(numbers(shape, dtype, name))
        axes = {None, *range(len(shape)), *([(0, 2)] if len(shape) == 3 else [])}
        for axis in axes:
            over = tuple(range(len(shape))) if axis is None else (axis,) if isinstance(axis, int) else axis
            first, again = (np.asarray(getattr(jnp, name)(x, axis=axis)) for _ in range(2))
            assert first.tobytes() == again.tobytes()
            exact = getattr(np, name)(np.asarray(x, "c16" if dtype[0] == "c" else "f8"), axis=axis)
            # A few roundings: of sums as large as they may come to be with random signs; of products one for each
            # factor, as random.
            eps, walk = float(np.finfo(dtype).eps), np.sqrt(x.size)
            relative = 4 * eps * walk if name == "prod" else 1e-5 if dtype in ("f4", "c8") else 1e-13
            absolute = eps * 8 * (walk if name == "sum" else 1.0)
            np.testing.assert_allclose(first, exact, rtol=max(relative, 8 * eps), atol=absolute)
            if has_order(NAMES[name], x.dtype, shape, over):
                program = pullback.jit(lambda x, axis=axis: getattr(jnp, name)(x, axis=axis))
                assert first.tobytes() == np.asarray(program(x)).tobytes(), (axis, first - program(x))


def test_most_reductions_have_an_order():
    for shape, axes in [((5000,), (0,)), ((256, 64), (1,)), ((256, 64), (0,)), ((20, 17, 20), (1,)), ((9, 3000), (1,))]:
        assert has_order("add", np.dtype("f4"), shape, axes)


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("shape", [(1,), (33,), (5, 12), (12, 5), (3, 20, 4), (70, 3)])
def test_integers(dtype, shape):
    with pullback.enable_x64():
        x = RNG.integers(0, 1 << 31, shape).astype(dtype)
        for name in ("sum", "max", "min"):
            for axis in range(len(shape)):
                want = getattr(np, name)(x, axis=axis, **({"dtype": dtype} if name == "sum" else {}))
                for _ in range(2):
                    np.testing.assert_array_equal(getattr(lax, f"reduce_{name}")(x, (axis,)), want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "shape, axis", [((40,), 0), ((3, 40), 1), ((40, 9), 0), ((40, 70), 0), ((5, 7), 1), ((6, 40, 3), 1)]
)
def test_special_values(dtype, shape, axis):
    with pullback.enable_x64():
        for value in (np.nan, np.inf, -np.inf):
            x = numbers(shape, dtype, "sum")
            x[tuple(n // 2 for n in shape)] = value
            for name in NAMES:
                got = np.asarray(getattr(jnp, name)(jnp.asarray(x), axis=axis))
                np.testing.assert_allclose(got, getattr(np, name)(x, axis=axis), rtol=1e-5, atol=1e-5)
        # A sum that overflows stays infinite, though what rounding lost is no number.
        large = np.full(shape, np.finfo(dtype).max, dtype)
        assert np.isposinf(jnp.sum(large, axis=axis)).all()


@pytest.mark.parametrize("shape, axis", [((40,), 0), ((3, 40), 1), ((40, 9), 0), ((3, 5), 1), ((1, 1), 0)])
def test_sums_of_zeros_are_positive(shape, axis):
    for zeros in (np.zeros(shape, "f4"), np.full(shape, -0.0, "f4")):
        mixed = zeros.copy()
        mixed.flat[0] = -mixed.flat[0]
        for x in (zeros, mixed):
            assert not np.signbit(jnp.sum(x, axis=axis)).any()


def test_reductions_of_views():
    x = numbers((6, 20, 30), "f4", "prod")

    def views(x):
        turned = jnp.transpose(x, (2, 0, 1))
        return turned.sum(0), turned.max(1), turned[::2, :, ::-1].max(2), turned[:, 1:].prod((0, 2)), turned.min((0, 1))

    plan = make_plan(pullback.make_jaxpr(views)(x)).executable
    turned = np.transpose(x, (2, 0, 1)).astype("f8")
    want = turned.sum(0), turned.max(1), turned[::2, :, ::-1].max(2), turned[:, 1:].prod((0, 2)), turned.min((0, 1))
    for got, exact in zip(plan.call([jnp.asarray(x)]), want):
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-4)


def test_reductions_of_nothing():
    assert jnp.sum(jnp.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert jnp.prod(jnp.zeros((0,))) == 1
    assert jnp.sum(jnp.zeros((0, 3)), axis=1).shape == (0,)
    assert jnp.sum(jnp.full((1, 1, 3), 2.0), axis=(0, 1)).tolist() == [2, 2, 2]
