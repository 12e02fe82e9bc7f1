"""Products with one-hot rows are gathers, with the values that the products would have."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def names(f, *args):
    """The primitives of the optimized program of `f`."""
    return [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]


def is_gather(f, *args, want):
    found = names(f, *args)
    assert "gather" in found and "dot_general" not in found
    got = pb.jit(f)(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
def test_rows_from_the_left(dtype):
    x = RNG.integers(-9, 9, (20, 5)).astype(dtype)
    i = np.array([3, 0, 19, 20, -1, 7, 7], np.int32)
    want = np.where((i >= 0)[:, None] & (i < 20)[:, None], x[np.clip(i, 0, 19)], np.zeros((), dtype))
    is_gather(lambda i, x: pb.nn.one_hot(i, 20, dtype=x.dtype) @ x, i, x, want=want)


def test_columns_from_the_right():
    x = RNG.standard_normal((3, 4, 20)).astype("f4")
    i = RNG.integers(0, 20, (6, 2)).astype("i4")
    f = lambda i, x: jnp.einsum("abc,dec->abde", x, pb.nn.one_hot(i, 20))
    is_gather(f, i, x, want=x[:, :, i])


def test_classes_first():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    is_gather(lambda i, x: (jnp.arange(20)[:, None] == i).astype("f4").T @ x, i, x, want=x[i])
    is_gather(lambda i, x: jnp.where(i[:, None] == jnp.arange(20), jnp.float32(1), jnp.float32(0)) @ x, i, x, want=x[i])


def test_types_too_narrow_for_the_count():
    """Indices of 8 bits never reach 200, and a counter of 8 bits would not count that far."""
    x = RNG.standard_normal((200, 5)).astype("f4")
    i = np.array([0, 127, -1, -56], np.int8)
    want = np.stack([x[0], x[127], np.zeros(5, "f4"), np.zeros(5, "f4")])
    is_gather(lambda i, x: pb.nn.one_hot(i.astype("i4"), 200) @ x, i, x, want=want)


def test_other_comparisons_stay_products():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    for f in (
        lambda i, x: (i[:, None] <= jnp.arange(20)).astype("f4") @ x,
        lambda i, x: (i[:, None] * jnp.arange(20) == jnp.arange(20)).astype("f4") @ x,
        lambda i, x: (2.0 * pb.nn.one_hot(i, 20) + 1) @ x,
    ):
        assert "dot_general" in names(f, i, x)


def test_gradients():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    got = pb.jit(pb.grad(lambda x: ((pb.nn.one_hot(i, 20) @ x) ** 2).sum()))(x)
    want = np.zeros_like(x)
    np.add.at(want, i, 2 * x[i])
    np.testing.assert_allclose(got, want, rtol=1e-6)
