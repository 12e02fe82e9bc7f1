"""Comparisons of roots and sizes with numbers take no root, and give the same answer for every argument."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.loops.ir import Builder
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.print import to_text
from pullback.loops.passes.simplify import simplify

EDGES = [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e-30, 1e30, 1e308]


def near(numbers, kind, steps=6):
    """The neighbours of numbers on both sides."""
    found = [np.asarray(numbers, kind)]
    for towards in (-np.inf, np.inf):
        x = found[0]
        for _ in range(steps):
            x = np.nextafter(x, kind(towards))
            found.append(x)
    return np.concatenate(found)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_roots(dtype, name, mirrored):
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    bounds = [2.0, 0.1, 1.0, 3.7e-6, 123456.7]
    with np.errstate(all="ignore"):
        x = np.concatenate([near(np.square(np.asarray(bounds, kind)), kind), np.asarray(EDGES).astype(kind)])
    b = Builder()
    source, target = b.input("x", dtype, x.size), b.output("y", "bool", x.size * len(bounds))
    with b.loop(x.size) as i:
        for k, bound in enumerate(bounds):
            root = b.op("sqrt", b.load(source, i))
            pair = (
                (b.const(dtype, float(kind(bound))), root) if mirrored else (root, b.const(dtype, float(kind(bound))))
            )
            b.store(target, i * len(bounds) + k, b.op(name, *pair))
    before = b.function("f")
    after = simplify(before)
    assert "sqrt" in to_text(before) and "sqrt" not in to_text(after)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(interpret(after, [x])[0], interpret(before, [x])[0])


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_sizes_of_complex_numbers(dtype):
    """As compiled without the pass: the size is stored, then compared."""
    kind = np.dtype(dtype).type(0).real.dtype.type
    rng = np.random.default_rng(0)
    z = (2 * np.exp(1j * rng.uniform(0, 7, 4000))).astype(dtype)
    with np.errstate(all="ignore"):
        edges = np.asarray([*EDGES, 2.0, 1.5]).astype(kind)
        far = np.stack(np.meshgrid(edges, edges), -1).reshape(-1).view(dtype)
        z = np.concatenate([z, z * kind(1 + 1e-7), z * kind(1 - 1e-7), far])
    with jax.enable_x64(dtype == "c16"):
        sizes = jax.jit(jnp.abs)(z)
        compare = jax.jit(lambda z: (abs(z) < 2, abs(z) <= 2, abs(z) > 2, abs(z) >= 2, abs(z) < 1e38))
        got = compare(z)
    s = np.asarray(sizes)
    for found, want in zip(got, (s < 2, s <= 2, s > 2, s >= 2, s < kind(1e38))):
        np.testing.assert_array_equal(found, want)


def test_roots_that_are_used_elsewhere_and_other_bounds_stay():
    x = np.asarray([0.0, 1.0, 4.0, -1.0, np.nan], "f4")
    f = jax.jit(
        lambda x: (jnp.sqrt(x) < 0, jnp.sqrt(x) >= 0, jnp.sqrt(x) < jnp.inf, jnp.where(jnp.sqrt(x) > 1, jnp.sqrt(x), 0))
    )
    with np.errstate(invalid="ignore"):
        root = np.sqrt(x)
    for found, want in zip(f(x), (root < 0, root >= 0, root < np.inf, np.where(root > 1, root, 0))):
        np.testing.assert_array_equal(found, want)
