"""Functions of all kinds, with arguments, that are exported and compared with jit."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

rng = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    """Normal numbers; of both parts for complex dtypes."""
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def positive(n, dtype=np.float32):
    """A symmetric positive definite matrix."""
    a = normal(n, n, dtype=dtype)
    return (a @ a.T.conj() + n * np.eye(n)).astype(dtype)


SPECIAL = np.array([1, np.nan, -0.0, 3, 0.0, -np.inf, np.inf, -2, 0.5, -np.nan, 0.0, -0.0], np.float32)
LARGE = normal(100, 100)
KEY = jax.random.PRNGKey(3)


def mlp(params, x):
    """A small network."""
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


PARAMS = [(normal(8, 16), normal(16)), (normal(16, 16), normal(16)), (normal(16, 1), normal(1))]


def loss(params, x, y):
    """Squared errors."""
    return jnp.mean((mlp(params, x)[:, 0] - y) ** 2)


def step(params, x, y, rate):
    """One step of gradient descent."""
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - rate * g, params, grads)


def lorenz(state, n):
    """Forward steps while the first coordinate stays small."""

    def body(carry):
        (x, y, z), i = carry
        return (x + 0.01 * 10 * (y - x), y + 0.01 * (x * (28 - z) - y), z + 0.01 * (x * y - 8 / 3 * z)), i + 1

    return lax.while_loop(lambda c: (c[1] < n) & (abs(c[0][0]) < 100), body, (tuple(state), 0))


def rnn(w, xs):
    """The gradient of the last state of a scan."""
    last = lambda w: jnp.sum(lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), jnp.zeros(8), xs)[0])
    return jax.value_and_grad(last)(w)


def repeated(x):
    """A loop of known length."""
    return lax.fori_loop(0, 5, lambda i, x: x * i + 1, x)


def elementwise(x):
    """Math functions of each element."""
    return jnp.sin(x) * jnp.exp(-(x**2)) + jnp.log1p(jnp.abs(x)) + lax.erf(x)


def integers(x):
    """Arithmetic that wraps, shifts, and comparisons."""
    return x * x + 3, x // 3, x % 5, x << 1, x > 2


# Without libraries.
OWN = {
    "nothing": (lambda: jnp.arange(5) * 2,),
    "identity": (lambda x, unused: (x, x + 1, x), normal(5), normal(3)),
    "scalars": (lambda a, n, flag: (a * n, jnp.where(flag, a, -a)), 2.5, 3, True),
    **{f"elementwise_{n}": (elementwise, normal(n)) for n in (0, 1, 15, 16, 17, 1000)},
    **{f"half_{n}": (lambda x: x * 2 + jnp.sum(x), normal(n, dtype=np.float16)) for n in (3, 40)},
    **{f"bfloat_{n}": (lambda x: jnp.exp(x) * 3, normal(n, dtype=ml_dtypes.bfloat16)) for n in (3, 40)},
    **{f"complex_{n}": (lambda x: (x * jnp.exp(x), jnp.abs(x)), normal(n, dtype=np.complex64)) for n in (1, 3, 33)},
    "complex_scalar": (lambda x: x * (1 + 2j), np.complex64(1 - 1j)),
    **{f"int_{d}": (integers, rng.integers(0, 100, 37).astype(d)) for d in ("int8", "uint8", "int16", "int32")},
    "reductions": (lambda x: (x.sum(0), x.sum(1), x.max(), x.argmin(1), x.std()), normal(33, 17)),
    "softmax": (jax.nn.softmax, normal(9, 100)),
    "cumulative": (lambda x: jnp.cumsum(x, 0) + jnp.cumprod(x, 1), normal(20, 30)),
    "transpose": (lambda x: x.T + 1, normal(70, 50)),
    "closure": (lambda x: (LARGE + x, LARGE.sum(0) * x), normal(100)),
    "gather": (lambda x, i: x[i] + x[::-1][i], normal(30), rng.integers(0, 30, 12)),
    "scatter": (lambda x, i: x.at[i].add(2.0).at[3].set(0), normal(30), rng.integers(0, 30, 12)),
    **{f"product_{n}": (lambda a, b: a @ b, normal(n, n + 3), normal(n + 3, n + 1)) for n in (1, 5, 16, 40, 129)},
    "columns_with_each_other": (lambda x: x.T @ x, normal(90, 70)),
    "chained_product": (lambda a: jnp.tanh(a @ a) @ a + 1, normal(65, 65)),
    "product_of_halves": (lambda a: a @ a, normal(40, 40, dtype=np.float16)),
    "convolution": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), normal(2, 8, 12, 12), normal(16, 8, 3, 3)),
    "step": (step, PARAMS, normal(32, 8), normal(32), 0.01),
    "hessian": (lambda x: jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3))(x), normal(6)),
    "lorenz": (lorenz, normal(3), 500),
    "rnn": (rnn, normal(8, 8) * 0.3, normal(20, 8)),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, repeated, x), False, normal(9)),
    "draws": (lambda k: (jax.random.normal(k, (33,)), jax.random.randint(k, (9,), 0, 7), jax.random.split(k)), KEY),
    "gammas": (lambda k: jax.random.gamma(k, 2.5, (40,)), KEY),
    "keys": (lambda k: jax.random.uniform(jax.random.fold_in(k, 2), (5,)), jax.random.key(1)),
    "fft": (lambda x: (jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x))), normal(3, 60)),
    "small_cholesky": (jnp.linalg.cholesky, np.stack([positive(3)] * 100)),
}  # fmt: skip

# With the extension's sorts.
SORTS = {
    "sort": (jnp.sort, SPECIAL),
    **{f"sort_{n}": (jnp.sort, normal(n)) for n in (1, 17, 513, 5000)},
    "sort_special": (jnp.sort, np.tile(SPECIAL, 200)),
    **{f"sort_{d}": (jnp.sort, rng.integers(0, 9, (3, 999)).astype(d)) for d in ("int8", "uint16", "int32", "float16")},
    "argsort": (lambda x: jnp.argsort(x, axis=0), normal(700, 3)),
    "sort_pairs": (lambda x, y: lax.sort((x, y), num_keys=1), rng.integers(0, 9, 5000) * 0.5, normal(5000)),
    "top_k": (lambda x: lax.top_k(x, 5), normal(4, 600)),
    "median": (lambda x: jnp.median(x, axis=1), normal(5, 301)),
    "partition": (lambda x: jnp.partition(x, 7), normal(99)),
    "permutation": (lambda k: jax.random.permutation(k, 50), KEY),
    "unique": (lambda x: jnp.unique(x, size=6), rng.integers(0, 5, 40)),
}  # fmt: skip

# With BLAS and LAPACK.
LINEAR_ALGEBRA = {
    "syrk": (lambda x: x @ x.T, normal(70, 40)),
    "complex_product": (lambda x: x @ x, normal(50, 50, dtype=np.complex64)),
    "cholesky": (jnp.linalg.cholesky, positive(40)),
    "solve": (jnp.linalg.solve, positive(30), normal(30, 4)),
    "inverse": (lambda a: (jnp.linalg.inv(a), jnp.linalg.slogdet(a)), positive(20)),
    "eigh": (jnp.linalg.eigh, positive(25)),
    "eigenvalues": (jnp.linalg.eigvals, normal(9, 9)),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), normal(20, 12)),
    "qr": (jnp.linalg.qr, normal(20, 12)),
    "least_squares": (lambda a, b: jnp.linalg.lstsq(a, b)[0], normal(30, 5), normal(30)),
    "spectral_radius": (
        jax.vmap(jax.grad(lambda a: jnp.max(jnp.abs(jnp.linalg.eigvals(a))))),
        normal(7, 3, 3),
    ),
    "many": (lambda a: jnp.linalg.cholesky(a), np.stack([positive(30)] * 5)),
}
