"""Numbers that are only moved are integers: the bits are kept, and nothing else changes."""

import ml_dtypes
import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
WIDE = {"complex64": np.complex64}


def operands(dtype):
    """Two arrays, of which one has NaNs with other bits than computed ones, and denormals."""
    rng = np.random.default_rng(0)
    kind = np.dtype((KINDS | WIDE)[dtype])
    x, y = (rng.integers(0, 256, (6, 5, 4 * kind.itemsize)).astype(np.uint8).view(kind) for _ in range(2))
    return x, y


MOVED = {
    "transpose": (lambda x, y: jnp.transpose(x, (1, 0, 2)), lambda x, y: np.transpose(x, (1, 0, 2))),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), lambda x, y: np.concatenate([x, y], 1)),
    "pad": (
        lambda x, y: lax.pad(x, x.dtype.type(3), [(1, 2, 0)] * 3),
        lambda x, y: np.pad(x, [(1, 2)] * 3, constant_values=x.dtype.type(3)),
    ),
    "chosen by place": (
        lambda x, y: jnp.where(jnp.arange(4) > 1, x, y),
        lambda x, y: np.where(np.arange(4) > 1, x, y),
    ),
    "gather": (lambda x, y: x[jnp.array([3, 1, 5])], lambda x, y: x[[3, 1, 5]]),
    "constant": (
        lambda x, y: jnp.concatenate([x, np.full((2, 5, 4), 1.5, x.dtype)]),
        lambda x, y: np.concatenate([x, np.full((2, 5, 4), 1.5, x.dtype)]),
    ),
    "loop": (
        lambda x, y: lax.scan(lambda c, v: (v[::-1], c), x[0], x)[1],
        lambda x, y: np.concatenate([x[:1], x[:-1, ::-1]]),
    ),
}


@pytest.mark.parametrize("dtype", KINDS | WIDE)
@pytest.mark.parametrize("name", MOVED)
def test_bits_are_kept(name, dtype):
    fun, expected = MOVED[name]
    x, y = operands(dtype)
    found = np.asarray(jax.jit(fun)(x, y))
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(expected(x, y)).view(np.uint8))


def passes_over(fun, *args):
    """Whether a program converts anything of 16 bits to registers of floats."""
    text = jax.jit(fun).lower(*args).compile().as_text("llvm")
    return any(word in text for word in ("fpext", "fptrunc", "half", "shl <", "shl i32"))


@pytest.mark.parametrize("dtype", KINDS)
def test_what_is_computed_with_stays_a_float(dtype):
    x, y = operands(dtype)
    assert not passes_over(lambda x, y: jnp.transpose(x, (1, 0, 2)), x, y)
    assert passes_over(lambda x, y: (jnp.transpose(x, (1, 0, 2)), jnp.cos(x)), x, y)
    assert passes_over(lambda x, y: jnp.where(x > 0, x, y), x, y)
    clean = np.ones((6, 5, 4), x.dtype)
    for fun in (lambda x, y: (x.T, x + y), lambda x, y: jnp.maximum(x, y)[::-1], lambda x, y: jnp.cumsum(x, 1)):
        want = fun(clean.astype(np.float32), clean.astype(np.float32))
        for got, exact in zip(jax.tree.leaves(jax.jit(fun)(clean, clean)), jax.tree.leaves(want)):
            np.testing.assert_array_equal(np.asarray(got).astype(np.float32), np.asarray(exact))


def test_complex_numbers_that_are_moved_are_read_at_once():
    x = np.ones(1000, np.complex64)
    text = jax.jit(lambda x, i: x[i]).lower(x, np.arange(1000)).compile().as_text("llvm")
    assert "float" not in text
