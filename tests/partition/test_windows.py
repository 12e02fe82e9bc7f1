"""Windows along a dimension that is cut: convolutions, pooling, strided slices, reversals, and their derivatives."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.partition import windows
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

N = np.random.default_rng(0)
X = N.normal(size=(2, 16, 8, 4)).astype(np.float32)  # images, rows, columns, features
MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
SPECS = [P(None, "x", "y"), P(None, ("y", "x")), P("y", "x")]
ROW, COLUMN = 2 * 4 * 4 * 4, 2 * 8 * 4 * 4  # bytes of the edges of a part [2, 8, 4, 4]


def conv(size, strides=(1, 1), padding="SAME", lhs=(1, 1), rhs=(1, 1), groups=1):
    kernel = N.normal(size=(*size, 4 // groups, 6)).astype(np.float32)

    def f(x, kernel=kernel):
        return lax.conv_general_dilated(
            x, kernel, strides, padding, lhs, rhs, ("NHWC", "HWIO", "NHWC"), feature_group_count=groups
        )

    return f


def pool(kind, start, size, strides, padding="SAME"):
    return lambda x: lax.reduce_window(x, start, kind, (1, *size, 1), (1, *strides, 1), padding)


CASES = {
    "convolution": conv((3, 3)),
    "even window": conv((2, 4)),
    "strides": conv((3, 3), (2, 2)),
    "strides larger than windows": conv((1, 1), (2, 2)),
    "no padding": conv((3, 3), padding="VALID"),
    "one-sided": conv((3, 2), padding=((2, 0), (0, 1))),
    "window with gaps": conv((3, 3), rhs=(2, 1)),
    "image with gaps": conv((3, 3), padding=((1, 2), (1, 2)), lhs=(2, 2)),
    "groups": conv((3, 3), groups=2),
    "large window": conv((7, 5)),
    "window larger than parts": conv((15, 8)),
    "less than there is": conv((3, 3), (1, 1), padding=((1, 1), (-1, 3))),
    "maxima": pool(lax.max, -jnp.inf, (2, 2), (2, 2), "VALID"),
    "maxima that overlap": pool(lax.max, -jnp.inf, (3, 3), (1, 1)),
    "minima": pool(lax.min, jnp.inf, (3, 2), (2, 2)),
    "sums": pool(lax.add, 0.0, (3, 3), (2, 1)),
    "sums of windows apart": pool(lax.add, 0.0, (2, 1), (4, 1), "VALID"),
    "every second": lambda x: x[:, ::2, 1::2],
    "every third": lambda x: x[:, ::3],
    "the reverse": lambda x: x[:, ::-1, ::-1] * 2,
    "running maximum of whole numbers": lambda x: lax.reduce_window(
        (x * 9).astype(int), np.int32(-(2**31)), lax.max, (1, 3, 1, 1), (1, 1, 1, 1), "SAME"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_windows(name):
    f = CASES[name]
    y = jax.jit(f)(X)
    weights = N.normal(size=y.shape).astype(np.float32)

    def backward(x):
        return jax.grad(lambda x: (f(x) * weights).sum())(x)

    functions = [f] if y.dtype != np.float32 else [f, backward]
    for spec in SPECS:
        x = jax.device_put(X, NamedSharding(MESH, spec))
        for g in functions:
            np.testing.assert_allclose(jax.jit(g)(x), jax.jit(g)(X), 1e-4, 1e-4)  # sums in another order


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    ("strides", "padding", "rhs"), [((1, 1), "SAME", 1), ((2, 2), "SAME", 1), ((1, 1), "VALID", 2)]
)
def test_derivatives_by_the_kernel(spec, strides, padding, rhs):
    kernel = N.normal(size=(3, 3, 4, 6)).astype(np.float32)
    f = conv((3, 3), strides, padding, rhs=(rhs, rhs))
    x = jax.device_put(X, NamedSharding(MESH, spec))
    g = jax.jit(jax.grad(lambda k, x: (f(x, k) ** 2).sum()))
    np.testing.assert_allclose(g(kernel, x), g(kernel, X), 1e-4, 1e-3)  # sums in another order, of squares


def test_edges_alone_are_exchanged():
    x = jax.device_put(X, NamedSharding(MESH, P(None, "x", "y")))

    def made(f):
        found = jax.jit(f).lower(x).compile()
        assert found(x).sharding.is_equivalent_to(x.sharding, 4)
        return found.cost_analysis()["collective bytes"]

    assert made(conv((3, 1))) == 2 * ROW
    assert made(conv((1, 3))) == 2 * COLUMN
    assert made(conv((3, 3), (2, 2))) <= ROW + COLUMN + 64  # the corner
    assert made(pool(lax.max, -jnp.inf, (2, 2), (2, 2), "VALID")) == 0
    assert made(lambda x: x[:, ::2]) == 0
    assert made(jax.grad(lambda x: (x[:, ::2] ** 2).sum())) <= 12  # the sum, which is thrown away
    assert made(lambda x: x[:, ::-1]) == 8 * ROW


def test_what_windows_see():
    assert windows.seen((16, 16), 2, 3, 1, (1, 1), 1, 1) == windows.Along(1, 1, (0, 0))
    assert windows.seen((16, 8), 2, 2, 2, (0, 0), 1, 1) == windows.Along(0, 0, (0, 0))
    assert windows.seen((16, 8), 2, 1, 2, (0, 0), 1, 1) == windows.Along(0, -1, (0, 0))
    assert windows.seen((16, 14), 2, 3, 1, (0, 0), 1, 1) is None  # parts of 8 and of 7
    assert windows.seen((16, 16), 8, 7, 1, (3, 3), 1, 1) is None  # of more than one neighbour
