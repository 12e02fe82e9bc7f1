"""Reductions and running values, compiled, give what their references give: dtypes, axes, sizes around the lanes."""

import itertools

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.runtime.eager.evaluate import reference_eval

REAL = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
COMPLEX = ["complex64", "complex128"]
SHAPES = [(n,) for n in (1, 2, 7, 8, 9, 15, 16, 17, 33, 130)]
SHAPES += [(1, 9), (17, 1), (9, 33), (33, 8), (3, 9, 17), (17, 2, 5), (0, 3), (2, 0, 3)]

EVERY = [lax.reduce_max_p, lax.reduce_min_p]
NUMERIC = [lax.reduce_sum_p, lax.reduce_prod_p]
BITS = [lax.reduce_and_p, lax.reduce_or_p, lax.reduce_xor_p]
PLACES = [lax.argmax_p, lax.argmin_p]
RUNNING = [lax.cumsum_p, lax.cumprod_p, lax.cummax_p, lax.cummin_p]


def primitives(dtype):
    kind = "bool" if dtype == "bool" else "inexact" if "float" in dtype or dtype in COMPLEX else "bits"
    found = [*EVERY, *(NUMERIC if kind != "bool" else []), *(BITS if kind != "inexact" else [])]
    found += (RUNNING if kind != "bool" else []) + (PLACES if dtype not in COMPLEX else [])
    return found + ([lax.cumlogsumexp_p] if "float" in dtype else [])


def everything(primitives, shape):
    """A function with each of the primitives over all axes that it may have."""
    several = [axes for n in range(1, len(shape) + 1) for axes in itertools.combinations(range(len(shape)), n)]

    def function(x):
        results = []
        for p in primitives:
            if p in RUNNING or p is lax.cumlogsumexp_p:
                results += [p.bind(x, axis=d, reverse=d == 1) for d in range(len(shape))]
            elif p in PLACES:
                kind = np.dtype(np.int32 if len(shape) > 1 else np.int64)
                results += [p.bind(x, axes=(d,), index_dtype=kind) for d in range(len(shape)) if shape[d]]
            else:
                results += [p.bind(x, axes=axes) for axes in several]
        return results

    return function


def data(dtype, shape, seed, special):
    rng = np.random.default_rng(seed)
    kind = jnp.dtype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max, shape, kind, endpoint=True)
        return np.where(rng.random(shape) < 0.3, x, (x % 5).astype(kind)) if special else (x % 3).astype(kind)
    x = np.exp(rng.normal(size=shape) * 0.05)
    if dtype in COMPLEX:
        x = x * np.exp(1j * rng.normal(size=shape))
        x = np.where(rng.random(shape) < 0.3, np.round(x), x)  # equal real parts
        return x.astype(kind)
    if special:
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
        x = np.where(
            rng.random(shape) < 0.1, values[rng.integers(0, len(values), shape)], rng.normal(size=shape).round(1)
        )
    return x.astype(kind)


def differ(got, want, dtype):
    """What is wrong with `got`, or nothing."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind in "biu":
        return "" if np.array_equal(got, want) else f"{got}, not {want}"
    eps = float(jnp.finfo(want.dtype).eps)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    same = np.isclose(got, want, rtol=24 * eps if eps < 1e-3 else 2 * eps, atol=24 * eps, equal_nan=True)
    return "" if same.all() else f"{got}, not {want}"


@pytest.mark.sample(7)
@pytest.mark.parametrize("dtype", ["bool", *REAL, *COMPLEX])
def test_compiled_as_the_reference(dtype):
    with pb.enable_x64(True):
        for shape in SHAPES:
            known = [p for p in primitives(dtype) if np.prod(shape) or p not in PLACES]
            function = everything(known, shape)
            compiled, closed = pb.jit(function), None
            for special in (False, True):
                x = data(dtype, shape, len(shape) + shape[0], special)
                closed = closed or pb.make_jaxpr(function)(x)
                with np.errstate(all="ignore"):
                    wanted = reference_eval(closed, [x])
                for k, (got, want) in enumerate(zip(compiled(x), wanted)):
                    if special and dtype != "bool" and "prod" in str(closed.jaxpr.eqns[k].primitive):
                        continue  # the order of additions and multiplications decides on NaN and infinities
                    wrong = differ(got, want, dtype)
                    assert not wrong, f"{closed.jaxpr.eqns[k]} of {x}: {wrong}"


@pytest.mark.parametrize("function", [jnp.max, jnp.min, jnp.ptp, jnp.nanmax, jnp.nanmin])
def test_extrema_of_complex_numbers(function):
    """Lexicographic, as NumPy's; also derivatives, maps and the smallest number there is."""
    x = np.array([[1 + 2j, 1 + 3j, 9j], [-1, 1 + 3j, 1 - 1j]], np.complex64)
    numpys = getattr(np, function.__name__)
    for axis in (None, 0, 1):
        for way in (function, pb.jit(function, static_argnums=1)):
            assert np.array_equal(way(x, axis), numpys(x, axis))
    assert np.array_equal(pb.jit(pb.vmap(function))(x), numpys(x, 1))
    lowest = np.full(20, complex(-np.inf, -np.inf), np.complex64)
    if function is not jnp.ptp:
        assert pb.jit(function)(lowest) == lowest[0] == function(lowest)
        gradient = pb.jit(pb.grad(lambda x: function(x).real))
        assert np.array_equal(gradient(x), pb.grad(lambda x: function(x).real)(x))
        assert np.isclose(np.sum(gradient(x)), 1)
    for running, numpys in ((lax.cummax, np.maximum), (lax.cummin, np.minimum)):
        assert np.array_equal(pb.jit(running)(x[0]), numpys.accumulate(x[0]))


def test_sums_of_bytes_that_are_floats_are_made_in_wider_ones():
    x = jnp.ones(100, jnp.float8_e4m3fn)
    assert float(lax.reduce_sum(x, (0,))) == 96  # the float8 next to 100; one by one the sum would stay at 16


@pytest.mark.parametrize("function", [jnp.max, jnp.min, jnp.ptp])
def test_the_gradient_of_an_extremum_that_is_nan_is_nan(function):
    """In its row alone, and as its tangent is; as in JAX, whose compiled code may give 0."""
    x = np.array([[1, np.nan, 2], [3, 3, 3]], np.float32)
    for way in (pb.grad, lambda f: pb.jit(pb.grad(f))):
        slopes = way(lambda x: function(x, 1)[0])(x)
        assert np.all(np.isnan(slopes[0])) and not np.any(slopes[1])
    assert np.allclose(pb.grad(lambda x: jnp.max(x, 1)[1])(x)[1], 1 / 3)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float4_e2m1fn"])
def test_extrema_of_types_without_infinity(name):
    """Where nothing is chosen from, the result is the least or largest number: infinity would be NaN."""
    x, limits = jnp.array([1, 2, 3, 1.5]).astype(name), jnp.finfo(name)
    for run in (lambda f, *a: f(*a), lambda f, *a: pb.jit(f)(*a)):
        for start in (-jnp.inf, -np.inf):
            windows = run(lambda x, start=start: lax.reduce_window(x, start, lax.max, (2,), (1,), "VALID"), x)
            assert np.array_equal(windows.astype("float32"), [2, 3, 3])
        assert float(run(lambda x: lax.reduce(x, jnp.inf, lax.min, (0,)), x)) == 1
        assert float(run(lambda x: lax.reduce_max(x, (0,)), x[:0])) == float(limits.min)
        assert float(run(lambda x: lax.reduce_min(x, (0,)), x[:0])) == float(limits.max)


@pytest.mark.parametrize("padding", [(0, 0), (1, 0), (2, 1), (0, 4)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_gradients_of_sums_over_windows_side_by_side(size, padding):
    """Each element is in one window at most, so its gradient is that window's, and 0 where there is none."""
    for n in (1, 4, 7):
        count = (n + sum(padding)) // size
        if count < 1:
            continue
        x, weights = np.zeros((n, 2), np.float32), np.arange(1, 2 * count + 1, dtype=np.float32).reshape(count, 2)

        def total(x, weights=weights):
            windows = lax.reduce_window(x, 0.0, lax.add, (size, 1), (size, 1), (padding, (0, 0)))
            return (windows * weights).sum()

        place = (np.arange(n) + padding[0]) // size
        want = np.where((place < count)[:, None], weights[np.minimum(place, count - 1)], 0)
        np.testing.assert_array_equal(pb.jit(pb.grad(total))(x), want)
        assert not np.asarray(pb.hessian(total)(x)).any()


def test_extrema_of_complex_numbers_over_windows_are_ordered_by_real_then_imaginary_parts():
    x = np.array([1 + 2j, 1 - 1j, -2 + 5j, 3j, 3 + 0j, 3 - 4j, 2 + 1j], np.complex64)
    windows = np.stack([x[k : k + 3] for k in range(5)])
    for combine, reference, start in ((lax.max, np.maximum, -9 - 9j), (lax.min, np.minimum, 9 + 9j)):
        got = lax.reduce_window(x, np.complex64(start), combine, (3,), (1,), "VALID")
        np.testing.assert_array_equal(got, reference.reduce(windows, axis=1))
        got = pb.jit(lambda x, f=combine, s=start: lax.reduce_window(x, np.complex64(s), f, (3,), (1,), "VALID"))(x)
        np.testing.assert_array_equal(got, reference.reduce(windows, axis=1))
