"""Products with few results are sums in one loop, whatever axes are contracted, of any type."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

RNG = np.random.default_rng(0)


def made(*shape, dtype="f4"):
    return (
        RNG.integers(-9, 9, shape).astype(dtype) if dtype in ("i4", "i1") else RNG.standard_normal(shape).astype(dtype)
    )


PRODUCTS = {
    "rows": ("ik,jk->ij", (2, 1000), (3, 1000)),
    "columns": ("ki,kj->ij", (1000, 3), (1000, 2)),
    "mixed": ("ik,kj->ij", (2, 1000), (1000, 5)),
    "two contracted": ("ikl,lkj->ij", (2, 30, 40), (40, 30, 3)),
    "two free": ("kij,kl->ijl", (1000, 2, 2), (1000, 2)),
    "batches": ("bki,bkj->bij", (4, 600, 3), (4, 600, 2)),
    "batches elsewhere": ("kbi,jkb->bij", (600, 4, 3), (2, 600, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["f4", "i4", "c8"])
def test_they_are_sums(name, dtype):
    formula, *shapes = PRODUCTS[name]
    x, y = (made(*shape, dtype=dtype) for shape in shapes)
    program = jax.jit(lambda x, y: jnp.einsum(formula, x, y))
    text = program.lower(x, y).as_text("fused")
    assert "dot_general" not in text and sum("reduce_sum" in line for line in text.splitlines()) == 1, text
    wide = {"f4": "f8", "i4": "i8", "c8": "c16"}[dtype]
    np.testing.assert_allclose(program(x, y), np.einsum(formula, x.astype(wide), y.astype(wide)), rtol=1e-4, atol=2e-3)


def test_narrow_types_are_summed_in_wide_ones():
    x, y = (jnp.asarray(made(2, 4000), "bfloat16") for _ in range(2))
    found = jax.jit(lambda x, y: x @ y.T)(x, y)
    wide = np.asarray(x, "f4") @ np.asarray(y, "f4").T
    assert found.dtype == "bfloat16"
    np.testing.assert_allclose(np.asarray(found, "f4"), wide, rtol=1e-2)


def test_covariances_of_two_series_are_sums():
    x, y = made(20_000), made(20_000)
    program = jax.jit(lambda x, y: jnp.cov(x, y))
    assert "gemm" not in program.lower(x, y).as_text("loops")
    np.testing.assert_allclose(program(x, y), np.cov(x, y), rtol=1e-4, atol=1e-5)


def test_written_as_a_sum_of_a_product_it_is_the_same_program():
    x, y = made(3000, 3), made(3000, 2)
    as_product = jax.jit(lambda x, y: x.T @ y).lower(x, y).as_text("fused").replace("_lambda_", "")
    as_sum = jax.jit(lambda x, y: (x[:, :, None] * y[:, None]).sum(0)).lower(x, y).as_text("fused")
    assert as_product.splitlines()[1:] == as_sum.splitlines()[1:], (as_product, as_sum)


def test_short_and_empty_ones_and_many_results_are_left():
    for shape in ((2, 0), (2, 1), (2, 40), (0, 1000), (1, 1000), (5, 1000)):
        x, y = made(*shape), made(*shape)
        np.testing.assert_allclose(jax.jit(lambda x, y: x @ y.T)(x, y), x @ y.T, rtol=1e-4, atol=1e-3)
    large = made(8, 1000)
    assert "dot_general" in jax.jit(lambda x: x @ x.T).lower(large).as_text("fused")
