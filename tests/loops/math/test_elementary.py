"""Elementary functions against long double arithmetic: at most 2 ulp everywhere, and the right values at the edges.

`python -m pytest tests/loops/math/test_elementary.py -s -k table` prints what is measured.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from loops.math import kit

import pullback as jax
import pullback.numpy as jnp
from pullback.loops.ir.ir import Op
from pullback.loops.ir.visit import subexpressions

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="the reference needs a long double wider than f64"
)


def _logistic(x):
    return np.where(x > 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


UNARY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "logistic": _logistic,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
}
SIZE = 40_000


def reference(name: str, *args: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return {**UNARY, "pow": np.power, "atan2": np.arctan2}[name](*(a.astype(np.longdouble) for a in args))


def pairs(name: str, dtype: str, size: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of pow and atan2: edges with edges, random bits, and what gives finite powers."""
    rng = np.random.default_rng(1)
    kind = kit.NP_DTYPE[dtype]
    edge = np.concatenate([kit.edges(dtype), np.array([-3, -2.5, 1e10, 2.0**24 + 2, 2.0**53, 1e30], kind)])
    xs, ys = (part.ravel() for part in np.meshgrid(edge, edge))
    parts = [(xs, ys), (kit.bit_patterns(dtype, size, 2), kit.bit_patterns(dtype, size, 3))]
    if name == "atan2":
        parts.append((rng.normal(size=size), rng.normal(size=size)))
    limit = 88 if dtype == "f32" else 709
    for scale in (0.1, 1, 10, 100, 700):
        x = np.exp(np.clip(rng.uniform(-scale, scale, size), -limit, limit)).astype(kind)
        with np.errstate(divide="ignore"):
            y = rng.uniform(-1.2 * limit, 1.2 * limit, size) / np.log(x.astype(np.float64))
        parts.append((x, np.clip(y, -1e30, 1e30)))
    parts.append((-rng.integers(1, 50, size), rng.integers(-30, 30, size)))
    parts.append((1 + rng.uniform(-1, 1, size) * 2.0 ** -rng.uniform(0, 40, size), rng.uniform(-1e6, 1e6, size)))
    return tuple(np.concatenate([part[k].astype(kind) for part in parts]) for k in (0, 1))  # type: ignore[return-value]


def arguments(name: str, dtype: str, size: int = SIZE) -> tuple[np.ndarray, ...]:
    return pairs(name, dtype, size) if name in ("pow", "atan2") else (kit.spread(dtype, size),)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", [*UNARY, "pow", "atan2"])
def test_two_ulp_compiled(name, dtype):
    args = arguments(name, dtype)
    got = kit.compiled(name, *args)
    error, place = kit.worst(got, reference(name, *args), *args)
    assert error <= 2, f"{name} {dtype}: {place}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", [*UNARY, "pow", "atan2"])
def test_interpreted_is_compiled(name, dtype):
    """The expression means the same to NumPy and to the machine: the same bits, but where the emitter contracts."""
    args = arguments(name, dtype, 400)
    want, got = kit.interpreted(name, *args), kit.compiled(name, *args)
    error, place = kit.worst(got, want, *args)
    assert error <= 1.5, f"{name} {dtype}: {place}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", [*UNARY, "pow", "atan2"])
def test_signs_of_zeros(name, dtype):
    args = pairs(name, dtype, 10) if name in ("pow", "atan2") else (kit.edges(dtype),)
    got, want = kit.compiled(name, *args), reference(name, *args)
    zero = (want == 0) & (got == 0)
    wrong = zero & (np.signbit(got) != np.signbit(want))
    assert not wrong.any(), f"{name}: {[(*(a[k] for a in args), got[k]) for k in np.flatnonzero(wrong)]}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["exp", "exp2", "logistic"])
def test_two_ulp_with_and_without_scaling(name, dtype):
    """Powers of two by an instruction of AVX-512, and by two products: on every machine, denormal results included."""
    x = kit.spread(dtype, 4000)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.longdouble))
    for scales in (False, True):
        root, (variable,) = kit.expansion(name, (dtype,), lookups=16 * scales)
        assert scales == any(isinstance(node, Op) and node.name == "scale" for node in subexpressions((root,)))
        error, place = kit.worst(kit.evaluate(root, {variable: x}), want, x)
        assert error <= 2, (scales, place)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name):
    """Where f64 comes closest to multiples of pi/2 (Muller, Elementary Functions, table 11.1), against mpmath."""
    hard = [6381956970095103.0 * 2.0**797, 2.0**1023, 1.7976931348623157e308, 1e22, 6411027962775774.0 * 2.0**-48]
    x = np.array([v * s for v in hard for s in (1, -1)])
    with mp.workdps(400):
        want = np.array([np.longdouble(str(mp.nstr(getattr(mp, name)(mp.mpf(float(v))), 25))) for v in x])
    error, place = kit.worst(kit.compiled(name, x), want, x)
    assert error <= 2, place


def test_f32_sine_of_every_exponent():
    """All exponents at full density of a few mantissas: the window of 1 / (2 pi) is cut out at each of its places."""
    rng = np.random.default_rng(5)
    exponent = np.repeat(np.arange(1, 255, dtype=np.uint32), 300)
    bits = (exponent << 23) | rng.integers(0, 1 << 23, exponent.size, dtype=np.uint32)
    x = bits.view(np.float32)
    for name in ("sin", "cos", "tan"):
        error, place = kit.worst(kit.compiled(name, x), reference(name, x), x)
        assert error <= 2, f"{name}: {place}"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "logistic"])
def test_sixteen_bits(name, dtype):
    """Through f32 and rounded once: within 0.51 ulp."""
    x = np.linspace(-20, 20, 2000).astype(kit.NP_DTYPE[dtype])
    got = kit.compiled(name, x)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
        exact = want.astype(np.float32).astype(kit.NP_DTYPE[dtype])
        near = np.abs(got.astype(np.float64) - exact.astype(np.float64)) <= 2.0**-7 * np.abs(want) + 1e-30
    both_nan = np.isnan(got.astype(np.float32)) & np.isnan(exact.astype(np.float32))
    equal = (got == exact) | both_nan
    assert (equal | near).all() and equal.mean() > 0.99


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "pow", "rem", "add", "mul", "div", "sqrt"])
def test_every_nan_of_bfloat16_stays_one(name):
    """Results are rounded without looking for NaN, whose bits beyond the 16 are zeros."""
    x = np.arange(1 << 16, dtype=np.uint16).view(kit.NP_DTYPE["bf16"])
    args = (x,) if name in ("exp", "log", "tanh", "erf", "sqrt") else (x, np.roll(x, 1 << 14))
    wide = np.stack(args).astype(np.float32)
    nan = np.isnan(wide).any(0)
    got = kit.compiled(name, *args)
    if name == "pow":  # x^0 and 1^y are 1
        nan &= (wide[1] != 0) & (wide[0] != 1)
    assert np.isnan(got.astype(np.float32))[nan].all()


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 7, 10])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_integer_pow(dtype, exponent):
    x = np.concatenate([np.linspace(-4, 4, 81), [np.inf, -np.inf, np.nan, -0.0]]).astype(kit.NP_DTYPE[dtype])
    with np.errstate(all="ignore"):
        want = x.astype(np.longdouble) ** exponent
    error, place = kit.worst(kit.compiled("integer_pow", x, y=exponent), want, x)
    assert error <= max(1, 0.6 * abs(exponent)), place  # each of |exponent| - 1 multiplications rounds


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_pow_by_indices_is_products(dtype):
    """Of exponents that the program counts; none is worse than by logarithms, nor are signs, zeros and infinities."""
    x = np.concatenate([kit.edges(dtype), kit.spread(dtype, 500), np.linspace(-3, 3, 121)]).astype(kit.NP_DTYPE[dtype])
    x = np.concatenate([x, -x])
    n = 40
    with np.errstate(all="ignore"):
        want = x[:, None].astype(np.longdouble) ** np.arange(n)
    with jax.enable_x64(dtype == "f64"):
        counted = jax.jit(lambda x: jnp.power(x[:, None], jnp.arange(n)))
        got = [counted(x), np.stack([jax.jit(lambda x, k=k: x ** float(k))(x) for k in (0, 1, 5, 7, 39)], 1)]
        slope = jax.jit(jax.grad(lambda x: jnp.sum(x[:, None] ** jnp.arange(5))))(np.array([0.0, 2.0], x.dtype))
    np.testing.assert_array_equal(slope, [1, 49])
    for powers, expected in zip(got, (want, want[:, (0, 1, 5, 7, 39)])):
        # What a product lost by rounding is itself too small to be kept where the power is next to the least number.
        kept = (np.abs(expected) > 1e-290) | (np.abs(expected) < 1e-308) | (dtype == "f32")
        at = np.broadcast_to(x[:, None], expected.shape)[kept]
        error, place = kit.worst(np.asarray(powers)[kept], expected[kept], at)
        assert error <= 1.5, place
        with np.errstate(all="ignore"):
            rounded = expected.astype(x.dtype)
        sure = ~np.isnan(rounded)
        np.testing.assert_array_equal(np.signbit(powers)[sure], np.signbit(rounded)[sure])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", [-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_pow_with_an_exponent_known_in_advance(dtype, exponent):
    x = np.concatenate([kit.edges(dtype), kit.spread(dtype, 4000)])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), np.longdouble(exponent))
    error, place = kit.worst(kit.compiled("pow", x, x.dtype.type(exponent)), want, x)
    assert error <= 1.9, place


def test_integer_pow_of_integers():
    x = np.arange(-9, 10, dtype=np.int32)
    assert (kit.compiled("integer_pow", x, y=5) == x**5).all()
    assert (kit.compiled("integer_pow", np.array([3, 7], np.uint8), y=4) == np.array([81, 2401 % 256])).all()


def test_a_root_that_is_taken_once_for_a_row_is_divided_by():
    def text(f, *shape):
        return jax.jit(f).lower(np.ones(shape, "f4")).as_text("nests")

    rsqrt = jax.lax.rsqrt
    assert "bitcast" in text(rsqrt, 1000) and "bitcast" not in text(rsqrt)
    assert "bitcast" not in text(lambda x: x * rsqrt((x * x).mean(-1, keepdims=True)), 50, 300)
