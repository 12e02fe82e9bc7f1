"""Functions of numbers have the bits of programs outside of them, from the first call on, however arrays lie."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core import registry
from pullback.core.lowering import Elementwise
from pullback.runtime.eager import evaluate, functions
from pullback.runtime.programs.ahead import FUNCTIONS
from pullback.util import dtypes

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 2.0, 1e-30, 1e30, 88.8, -104.0]


def values(dtype, size=300):
    """Numbers of all sizes and signs, and what is no such number."""
    reals = [np.concatenate([RNG.normal(size=size) * 10 ** RNG.uniform(-3, 2, size), SPECIAL]) for _ in range(2)]
    if np.dtype(dtype).kind == "c":
        with np.errstate(all="ignore"):
            return (RNG.permutation(reals[0]) + 1j * RNG.permutation(reals[1])).astype(dtype)
    with np.errstate(over="ignore"):
        return RNG.permutation(reals[0]).astype(dtype)


@pytest.fixture(autouse=True)
def _flags_of_lanes_say_nothing():
    """Kernels compute what they do not choose, as programs do; eager work calls them so, too."""
    with np.errstate(all="ignore"):
        yield


def assert_same_bits(x, y):
    """Equal to the last bit and the sign of zero; NaNs have no sign."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    if x.dtype.kind == "c":
        x, y = (np.stack([v.real, v.imag]) for v in (x, y))
    both = np.isnan(x.astype(np.float64)) & np.isnan(y.astype(np.float64))
    word = np.dtype(f"u{x.dtype.itemsize}")
    differ = (np.ascontiguousarray(x).view(word) != np.ascontiguousarray(y).view(word)) & ~both
    assert not differ.any(), (x[differ][:5], y[differ][:5])


CASES = [
    *[
        (lax.exp_p, "f4"),
        (lax.exp_p, "c16"),
        (lax.sin_p, "f4"),
        (lax.log_p, "f8"),
        (lax.tanh_p, "f8"),
        (lax.atan2_p, "f4"),
    ],
    *[(lax.pow_p, "f8"), (lax.rsqrt_p, "f4"), (lax.erf_p, "f4"), (lax.lgamma_p, "f4"), (lax.erf_inv_p, "f8")],
    *[(lax.mul_p, "c8"), (lax.div_p, "c16"), (lax.abs_p, "c8"), (lax.sqrt_p, "c8"), (lax.sign_p, "c8")],
    *[
        (lax.logistic_p, dtypes.bfloat16),
        (lax.lgamma_p, "f2"),
        (lax.acos_p, dtypes.float8_e4m3fn),
        (lax.bessel_i1e_p, "f2"),
    ],
    *[(lax.max_p, "f2"), (lax.nextafter_p, "f2"), (lax.igamma_p, "f2")],
]


@pytest.mark.parametrize(
    "primitive, dtype", CASES, ids=lambda x: x if isinstance(x, str) else getattr(x, "name", None) or x.__name__
)
def test_first_calls_have_the_bits_of_programs(primitive, dtype):
    with jax.enable_x64(True):
        arity = FUNCTIONS[primitive.name][0] if primitive.name in FUNCTIONS else 2
        args = [jnp.asarray(values(dtype)) for _ in range(arity)]
        evaluate.clear_caches()
        first = primitive.bind(*args)
        assert_same_bits(first, jax.jit(primitive.bind)(*args))


@pytest.mark.parametrize("y", [-7, -2, -1, 0, 1, 2, 3, 6])
@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_whole_powers_have_the_bits_of_programs(dtype, y):
    x = jnp.asarray(values(dtype))
    want = jax.jit(lambda x: lax.integer_pow(x, y))(x)
    for _ in range(3):
        assert_same_bits(lax.integer_pow(x, y), want)


def test_fma_keeps_the_sign_of_zero():
    x, y, z = (np.array([v], "f8") for v in (-0.0, 0.5, -0.0))
    assert np.signbit(registry["fma"].reference(x, y, z))[0]


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 256, 257, 300, 321, 1000])
def test_arrays_of_any_length_and_strides(size):
    ufunc = functions.ufunc_of("exp", np.dtype("f8"))
    x = RNG.normal(size=3 * size)
    want = np.array([float(ufunc(np.float64(v))) for v in x[:100]])
    assert_same_bits(ufunc(x)[:100], want)
    assert_same_bits(ufunc(x[::3]), ufunc(x)[::3])
    assert_same_bits(ufunc(x[::-1]), ufunc(x)[::-1])
    out = np.zeros(4 * size)
    ufunc(x[:size], out=out[1::4])
    assert_same_bits(out[1::4], ufunc(x[:size]))
    assert not out[0::4].any() and not out[2::4].any()


def test_one_number_for_all():
    power = functions.ufunc_of("pow", np.dtype("f4"))
    x, y = np.abs(RNG.normal(size=(2, 300))).astype("f4")
    for n in (1, 40, 300):
        assert_same_bits(power(x[:n], y[0]), power(x[:n], np.full(n, y[0])))
        assert_same_bits(power(x[0], y[:n]), power(np.full(n, x[0]), y[:n]))
    assert_same_bits(power(x[:, None], y), power(*np.broadcast_arrays(x[:, None], y)))


def test_large_arrays_are_not_compiled_for(monkeypatch):
    """The kernel goes over blocks on all threads from the first call on; the last block may be short."""
    monkeypatch.setattr(evaluate, "compile_jaxpr", lambda *args, **kwargs: pytest.fail("it is compiled"))
    x = RNG.normal(size=(3, 30_011)).astype("f4")
    want = functions.ufunc_of("exp", np.dtype("f4"))(x)
    for _ in range(3):
        assert_same_bits(lax.exp_p.bind(jnp.asarray(x)), want)


def test_constants_of_programs_have_the_same_bits():
    x = np.float32(1.2345)
    folded = jax.jit(lambda: lax.exp(lax.full((), x)))()
    assert_same_bits(folded, lax.exp(jnp.asarray(x)))


def test_kernels_are_of_elementwise_primitives():
    assert all(isinstance(registry[name].lower, Elementwise) for name in FUNCTIONS)
