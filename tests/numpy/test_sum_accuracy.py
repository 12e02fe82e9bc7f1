"""Sums of all kinds lose no more than pairwise ones: called once, as plans, and compiled."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax

FUNCTIONS = {
    "sum": lambda x, y: [jnp.sum(x), jnp.sum(x, 0), jnp.sum(x, 1)],
    "mean var std": lambda x, y: [x.mean(0), x.var(0), x.std(), x.std(1)],
    "norm": lambda x, y: [jnp.linalg.norm(x, axis=0), jnp.linalg.norm(x)],
    "vectors": lambda x, y: [
        jnp.vdot(x, y),
        jnp.inner(x[:, 0], y[:, 1]),
        jnp.convolve(x[:600, 0], y[:600, 0], "valid"),
    ],
    "products": lambda x, y: [y[:, 0] @ x, x.T @ y, jnp.tensordot(x, y, 2), x.reshape(-1, 2, 3).sum((0, 2))],
    "einsum": lambda x, y: [jnp.einsum("ij,ij->j", x, y), jnp.einsum("ij->j", x), jnp.einsum("ij,ij->", x, y)],
    "running": lambda x, y: [jnp.cumsum(x, 0), jnp.cumsum(x), lax.cumsum(x, 0, reverse=True)],
    "weighted": lambda x, y: [
        jnp.average(x, 0, weights=y),
        jnp.nansum(x, 0),
        jnp.nanmean(x, 0),
        jnp.trapezoid(x, axis=0),
    ],
    "beside others": lambda x, y: [(x * y).sum(0), x.real.max(0), jnp.sum(jnp.abs(x))],
    "exponents": lambda x, y: [pb.scipy.special.logsumexp(x, 0), pb.nn.softmax(x, 0)],
    "running exponents": lambda x, y: [lax.cumlogsumexp(x, 0)],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_are_as_accurate_as_pairwise_ones(name, dtype):
    if "exponents" in name and dtype == "complex64":
        return  # cumlogsumexp has no complex meaning, and exponentials of the real part are tested
    rng = np.random.default_rng(0)
    with pb.enable_x64(True):
        kind = jnp.dtype(dtype)
        exact = np.complex128 if kind.kind == "c" else np.longdouble if dtype == "float64" else np.float64
        size = 3000 if kind.itemsize > 2 else 900  # sums of float16 end at 65,504
        x, y = (rng.random((size, 6)) + (1j * rng.random((size, 6)) if kind.kind == "c" else 0) for _ in range(2))
        x, y = jnp.asarray(x).astype(kind), jnp.asarray(y).astype(kind)
        function = FUNCTIONS[name]
        if dtype == "float64":
            if name not in ("sum", "running"):
                return  # longdouble is what these two are compared with
            xs = np.asarray(x).astype(exact)
            wanted = (
                [xs.sum(), xs.sum(0), xs.sum(1)]
                if name == "sum"
                else [xs.cumsum(0), xs.cumsum(), xs[::-1].cumsum(0)[::-1]]
            )
        else:
            wanted = [
                np.asarray(v) for v in pb.jit(function)(*(jnp.asarray(np.asarray(v).astype(exact)) for v in (x, y)))
            ]
        eps = float(jnp.finfo(kind).eps)
        eager = [function(x, y) for _ in range(3)]
        for way, got in (("once", eager[0]), ("as a plan", eager[-1]), ("compiled", pb.jit(function)(x, y))):
            for k, (ours, right) in enumerate(zip(got, wanted)):
                error = (np.asarray(ours).astype(exact) - right) / right
                rms = float(np.sqrt(np.mean(np.abs(error) ** 2)))
                assert rms <= 1.7 * eps, f"{name} {k} {way}: {rms / eps:.1f} times the smallest step"


def test_long_leading_axis():
    x = np.random.default_rng(0).random((100_000, 10)).astype(np.float32)
    exact = x.astype(np.float64).sum(0)
    for got in (jnp.sum(x, 0), jnp.asarray(x).sum(0), pb.jit(jnp.sum, static_argnums=1)(x, 0)):
        assert np.abs(np.asarray(got) / exact - 1).max() < 2e-7


@pytest.mark.parametrize(
    "shape", [(1, 9), (9, 1), (17, 3, 5), (3, 17, 5), (8, 9, 10, 2), (0, 3), (3, 0, 20), (130, 1, 9), (20, 20, 23)]
)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "uint32", "bfloat16"])
def test_eager_sums_of_all_shapes(shape, dtype):
    x = np.random.default_rng(1).integers(0 if dtype == "uint32" else -8, 9, shape).astype(np.float32)
    a = jnp.asarray(x).astype(dtype)
    axes = [None, *range(len(shape)), (0, len(shape) - 1), tuple(range(len(shape)))[:-1], (0, 1), ()]
    for axis in axes:
        for got in (
            lax.reduce_sum(a, range(a.ndim) if axis is None else np.atleast_1d(axis).astype(int)),
            a.sum(axis),
            a.sum(axis),
        ):
            wanted = x.sum(axis)
            assert got.dtype == a.dtype and got.shape == wanted.shape
            assert np.allclose(np.asarray(got).astype(np.complex64), wanted, rtol=1e-2 if dtype == "bfloat16" else 0)


@np.errstate(invalid="ignore")
def test_running_sums_meet_infinities():
    x = np.ones(5000, np.float32)
    x[100], x[4000] = np.inf, -np.inf
    for got in (
        jnp.cumsum(x),
        pb.jit(jnp.cumsum)(x),
        pb.jit(jnp.cumsum, static_argnums=1)(np.stack([x, x], 1), 0)[:, 1],
    ):
        assert np.array_equal(np.asarray(got), np.cumsum(x), equal_nan=True)
    rows = np.array(
        [[np.inf, 1, 2], [-np.inf, -np.inf, 1], [1, -np.inf, np.inf], [-np.inf] * 3, [2, np.nan, 3]], np.float32
    )
    for f in (lax.cumlogsumexp, pb.jit(lax.cumlogsumexp, static_argnums=1)):
        assert np.array_equal(np.asarray(f(rows, 1)), np.logaddexp.accumulate(rows, 1), equal_nan=True)


def test_very_long_running_sums():
    x = np.random.default_rng(0).random(1_500_000).astype(np.float32)
    exact = np.cumsum(x, dtype=np.float64)
    assert np.abs(np.asarray(pb.jit(jnp.cumsum)(x)) / exact - 1).max() < 3e-7
