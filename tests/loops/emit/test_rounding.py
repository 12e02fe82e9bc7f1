"""Every product of a program is rounded before it is added to something, so compiled arithmetic has NumPy's bits, and
functions have the same bits wherever they stand: differences of equal values are zero."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.scipy import special

SIZES = [(), (1,), (3,), (8,), (33,)]


class Parts:
    """A complex array by the textbook's formulas on its parts, each operation rounded."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    def __add__(self, other):
        return Parts(self.re + other.re, self.im + other.im)

    def __sub__(self, other):
        return Parts(self.re - other.re, self.im - other.im)

    def __neg__(self):
        return Parts(-self.re, -self.im)

    def __mul__(self, other):
        re = self.re * other.re - self.im * other.im
        return Parts(re, self.re * other.im + self.im * other.re)


OPS = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x * x - x * y,
    lambda x, y: x * y - y * x,
    lambda x, y: x * x + y,
    lambda x, y: -(x * y) + x,
    lambda x, y: x - (y + y) * x,
]


def values(steps, args):
    found = list(args)
    for op, i, j in steps:
        found.append(OPS[op](found[i], found[j]))
    return found


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_random_programs_have_the_bits_of_numpy(dtype):
    """Some of the values are results, so that loops store them, others only go into others."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shape = SIZES[seed % len(SIZES)]
        steps = [(int(rng.integers(len(OPS))), *rng.integers(0, 3 + k, 2).tolist()) for k in range(10)]
        chosen = sorted({3 + int(k) for k in rng.integers(0, 10, 3)} | {12})
        args = [np.asarray(rng.normal(size=shape)) for _ in range(3)]
        if dtype[0] == "c":
            args = [x + 1j * np.asarray(rng.normal(size=shape)) for x in args]
        args = [np.asarray(x).astype(dtype) for x in args]
        with pullback.enable_x64(), np.errstate(all="ignore"):
            got = pullback.jit(lambda *args: [values(steps, args)[k] for k in chosen])(*args)  # noqa: B023
            if dtype[0] == "c":
                parts = [values(steps, [Parts(x.real, x.imag) for x in args])[k] for k in chosen]
                want = [np.asarray(x.re + np.zeros_like(args[0])) for x in parts]
                for x, w in zip(parts, want):
                    w.real, w.imag = x.re, x.im
            else:
                want = [values(steps, args)[k] for k in chosen]
        for mine, numpys in zip(got, want):
            np.testing.assert_array_equal(np.asarray(mine), numpys)


def test_differences_of_equal_values_are_zero():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300)).astype(np.float32)
    p, z = rng.uniform(0.1, 1, 300).astype(np.float32), (x + 1j * y).astype(np.complex64)
    rows = x.reshape(100, 3)
    product = x * y

    def residues(x, y, p, z, rows, product):
        outer = jnp.outer(x[:30], y[:30])
        symmetric = outer + jnp.outer(y[:30], x[:30])
        kept = x * y
        return kept, {
            "loaded": x * y - product,
            "stored as a result": x * y - kept + (kept - y * x),
            "added": -(x * y) + product,
            "rel_entr": special.rel_entr(p, p),
            "kl_div": special.kl_div(p, p),
            "entropy": special.entr(p) + p * jnp.log(p),
            "xlogy": special.xlogy(p, p) - p * jnp.log(p),
            "conjugate": (z * jnp.conj(z)).imag,
            "size": (z * jnp.conj(z)).real - (z.real**2 + z.imag**2),
            "square": x * x - x**2 + (jnp.square(x) - x * x),
            "cross": jnp.cross(rows, rows),
            "determinant": x * (2 * y) - (2 * x) * y,
            "symmetric": symmetric - symmetric.T,
            "variance": jnp.var(jnp.full(100, 0.1, np.float32) * (x[0] / x[0])),
        }

    _, found = pullback.jit(residues)(x, y, p, z, rows, product)
    assert {name: float(np.abs(value).max()) for name, value in found.items()} == dict.fromkeys(found, 0.0)
    step = pullback.jit(lambda x, y: lax.fori_loop(0, 5, lambda i, c: (c[0] * y + x, c[1] + c[0] * y), (x, x)))
    u, v = x, x
    for _ in range(5):
        u, v = u * y + x, v + u * y
    np.testing.assert_array_equal(step(x, y)[0], u)
    np.testing.assert_array_equal(step(x, y)[1], v)


FUNCTIONS = [jnp.sin, jnp.cos, jnp.exp, jnp.log, jnp.log10, jnp.tanh]
REAL_FUNCTIONS = [jnp.tan, jnp.expm1, jnp.sinh, jnp.arcsin, jnp.arctan, jnp.cbrt, special.erf, special.gammaln]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_functions_have_the_same_bits_wherever_they_stand(dtype):
    """Alone, beside functions with which they have parts in common, of equal values from elsewhere, at any place of an
    array of any size."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=60), rng.uniform(-1, 1, 60), rng.normal(size=9) * 1e4]).astype(dtype)
    functions = FUNCTIONS + ([] if dtype[0] == "c" else REAL_FUNCTIONS)
    if dtype[0] == "c":
        x = (x + 1j * rng.normal(size=x.size)).astype(dtype)

    def together(x, one):
        return [(f(x), f(x * one), f(x[:5]), f(x[7]), jnp.nan_to_num(f(x * one) - f(x))) for f in functions]

    for f, (plain, moved, some, single, difference) in zip(functions, pullback.jit(together)(x, np.asarray(1, dtype))):
        want = np.asarray(pullback.jit(f)(x))
        for got, part in ((plain, want), (moved, want), (some, want[:5]), (single, want[7]), (difference, 0 * x)):
            np.testing.assert_array_equal(np.asarray(got), part, err_msg=f.__name__)
