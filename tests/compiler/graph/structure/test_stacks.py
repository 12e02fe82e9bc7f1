"""Equal parts of one array that are put together are the array, moved; others stay concatenations."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal((12, 8, 6)).astype("f4")


def primitives(f, *args):
    return [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]


MOVED = {
    "columns": (lambda x, np: np.stack([x[:, k] for k in range(8)], 0)),
    "last axis first": (lambda x, np: np.stack([x[..., k] for k in range(6)])),
    "in the middle": (lambda x, np: np.stack([x[k] for k in range(12)], 1)),
    "a part of them": (lambda x, np: np.stack([x[k, 1:7] for k in range(2, 9)], -1)),
    "blocks": (lambda x, np: np.concatenate([x[:, 2 * k : 2 * k + 2] for k in range(4)], 0)),
    "blocks, stacked": (lambda x, np: np.stack(np.split(x, 3, 0), 2)),
    "blocks of a part": (lambda x, np: np.concatenate([x[1:, 2 + k : 3 + k] for k in range(5)], 2)),
    "every third": (lambda x, np: np.stack([x[k::3] for k in range(3)], 1)),
    "every third, flat": (lambda x, np: np.stack([x[:, :, k::3] for k in range(3)], -1).reshape(12, 48)),
    "in steps besides": (lambda x, np: np.concatenate([x[::2, k : k + 1] for k in range(8)], -1)),
    "turned": (lambda x, np: np.concatenate([x[k].T for k in range(12)], 1)),
    "flat": (lambda x, np: np.stack([x[k].ravel() for k in range(12)], 1)),
    "patches": (lambda x, np: np.stack([np.stack(np.split(r, 4, 1), 0) for r in np.split(x, 3, 0)], 0)),
    "the array": (lambda x, np: np.stack([x[k] for k in range(12)])),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("dtype", ["f4", "c8", "?", "i8", "u1"])
def test_parts_are_moved(name, dtype):
    f = MOVED[name]
    with pb.enable_x64(True):
        x = (9 * X).astype(dtype)
        np.testing.assert_array_equal(pb.jit(lambda x: f(x, jnp))(x), f(x, np))
        assert "concatenate" not in primitives(lambda x: f(x, jnp), x)


STAY = {
    "another order": (lambda x, np: np.stack([x[1], x[0], x[2]])),
    "twice": (lambda x, np: np.stack([x[0], x[1], x[1]])),
    "a gap": (lambda x, np: np.stack([x[0], x[2], x[4]])),
    "two arrays": (lambda x, np: np.stack([x[0], x[1], -x[2]])),
    "two axes": (lambda x, np: np.stack([x[0, 0], x[1, 1], x[2, 2]])),
    "each its own way": (lambda x, np: np.stack([x[0, :6], x[1, :6].T, x[2, :6]])),
    "overlapping": (lambda x, np: np.concatenate([x[0:3], x[1:4], x[2:5]], 1)),
    "of other sizes": (lambda x, np: np.concatenate([x[0:1].ravel(), x[1:3].ravel(), x[3:4].ravel()])),
    "every fourth of three": (lambda x, np: np.stack([x[0:9:4], x[1:10:4], x[2:11:4]])),
}


@pytest.mark.parametrize("name", STAY)
def test_other_parts_stay(name):
    f = STAY[name]
    np.testing.assert_array_equal(pb.jit(lambda x: f(x, jnp))(X), f(X, np))
    assert name in ("of other sizes",) or "concatenate" in primitives(lambda x: f(x, jnp), X)


def test_parts_of_size_zero():
    x = np.zeros((3, 0, 2), "f4")
    assert pb.jit(lambda x: jnp.stack([x[k] for k in range(3)], 1))(x).shape == (0, 3, 2)


def test_derivatives_and_batches():
    def f(x):
        return (jnp.stack([x[:, k] for k in range(8)]) * jnp.arange(8.0)[:, None, None]).sum()

    expected = np.broadcast_to(np.arange(8.0)[:, None], X.shape)
    np.testing.assert_array_equal(pb.jit(pb.grad(f))(X), expected)
    rows = pb.jit(pb.vmap(lambda r: jnp.stack([r[:, k] for k in range(6)])))(X)
    np.testing.assert_array_equal(rows, X.transpose(0, 2, 1))
