"""dot_general in types that its operands do not have."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax


@pytest.mark.parametrize(
    ("given", "asked", "want"),
    [
        ("float32", "int32", [0, -755, 226, 90298]),
        ("float32", "int8", [0, -128, 127, 127]),
        ("float32", "uint32", [0, 0, 226, 90298]),
        ("float16", "uint8", [0, 0, 226, 255]),
        ("float32", "bool", [True] * 4),
        ("complex64", "int32", [-1, -757, 224, 90296]),
        ("complex64", "float32", [-1.625, -757, 224.5, 90296.375]),
    ],
)
def test_sums_are_converted_to_types_that_cannot_hold_products(given, asked, want):
    """As JAX gives them: sums in the operands' type, rounded towards zero and kept in range."""
    x = jnp.array([[1.5, -2.5], [0.75, 300.5]]).astype(given) + (1j if given == "complex64" else 0)
    f = lambda x: lax.dot(x, x, preferred_element_type=asked)
    for run in (f, pullback.jit(f)):
        got = run(x)
        assert got.dtype == asked
        np.testing.assert_array_equal(np.asarray(got).ravel(), want)
    assert jnp.matmul(x, x, preferred_element_type=asked).dtype == asked


@pytest.mark.parametrize(("lhs", "rhs"), [("int8", "float32"), ("float32", "complex64"), ("float16", "float32")])
def test_operands_of_two_types_are_converted_before_they_are_multiplied(lhs, rhs):
    x, y = jnp.array([[3, -2]]).astype(lhs), jnp.array([[1.5], [2.75]]).astype(rhs)
    f = lambda x, y: lax.dot(x, y, preferred_element_type="int32")
    for run in (f, pullback.jit(f)):
        np.testing.assert_array_equal(run(x, y), np.array([[3 * 1 - 2 * 2]], np.int32))


def test_their_derivative_is_zero():
    f = lambda x: lax.dot(x, x, preferred_element_type="int32").astype("float32").sum()
    np.testing.assert_array_equal(pullback.grad(f)(jnp.ones((2, 2))), np.zeros((2, 2)))


@pytest.mark.parametrize(("given", "asked"), [("int32", "bool"), ("complex64", "bool"), ("complex64", "float16")])
def test_types_that_are_refused(given, asked):
    x = jnp.ones((2, 2), given)
    with pytest.raises(TypeError, match="preferred_element_type"):
        lax.dot(x, x, preferred_element_type=asked)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("float8_e4m3fn", "float8_e5m2", "float8_e5m2"),
        ("float8_e4m3fn", "float32", "float32"),
        ("bfloat16", "float8_e5m2", "bfloat16"),
        ("bfloat16", "float16", "bfloat16"),
        ("int8", "uint8", "int8"),
        ("uint16", "int8", "uint16"),
        ("int4", "uint4", "int4"),
        ("int32", "float16", "float16"),
        ("float8_e4m3fn", "complex64", "complex64"),
    ],
)
def test_a_product_has_the_type_of_one_operand(left, right, want):
    x, y = jnp.array([[1, 2], [0, 1]]).astype(left), jnp.array([[1], [2]]).astype(right)
    for a, b, exact in ((x, y, [5, 2]), (y.T, x.T, [5, 2])):
        found = lax.dot(a, b)
        assert found.dtype == want
        np.testing.assert_array_equal(found.astype("complex64").ravel(), exact)
        compiled = pullback.jit(lax.dot)(a, b)
        assert compiled.dtype == want
        np.testing.assert_array_equal(compiled.astype("complex64").ravel(), exact)


def test_scaled_dot_multiplies_the_last_axis_by_the_last_but_one_as_bfloat16():
    lhs, rhs, scale = jnp.ones((3, 2, 4)), jnp.ones((3, 4, 5)), jnp.full((3, 2, 2), 2.0)
    out = lax.scaled_dot(lhs, rhs, lhs_scale=scale)
    assert (out.shape, out.dtype) == ((3, 2, 5), jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(out, np.float32), np.full((3, 2, 5), 8))
    assert lax.scaled_dot(lhs, rhs, preferred_element_type=np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="rank 2 or more"):
        lax.scaled_dot(jnp.ones(4), jnp.ones(4))


def test_programs_say_the_precision_that_the_configuration_had():
    x = jnp.ones((2, 2))

    def said(f, *args):
        return f"{pullback.make_jaxpr(f)(*args)}"

    for name, precision in (("bfloat16", "DEFAULT"), ("tensorfloat32", "HIGH"), ("float32", "HIGHEST")):
        with pullback.default_matmul_precision(name):
            for f in (jnp.dot, operator.matmul, lambda x, y: jnp.einsum("ij,jk", x, y)):
                assert f"precision=(Precision.{precision}, Precision.{precision})" in said(f, x, x)
            conv = said(lambda x: lax.conv(x[None, None], x[None, None], (1, 1), "SAME"), x)
            assert f"Precision.{precision}" in conv and (x @ x).tolist() == [[2, 2], [2, 2]]
            assert "Precision.HIGHEST" in said(lambda x: jnp.dot(x, x, precision="highest"), x)
    assert "Precision" not in said(jnp.dot, x, x)
    traces = []
    f = pullback.jit(lambda x: traces.append(1) or jnp.dot(x, x))
    f(x)
    for _ in range(2):
        with pullback.default_matmul_precision("tensorfloat32"):
            f(x)
    assert len(traces) == 2


@pytest.mark.parametrize("m, k, n", [(1, 3, 2), (2, 3, 2), (4, 3, 2), (3, 2, 5), (8, 8, 8), (5, 7, 3)])
def test_small_compiled_products_add_terms_in_order(m, k, n):
    """Each but the first is rounded together with its sum, and eager products have the same bits."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
        expected = x[:, :1] * y[:1]
        for i in range(1, k):
            terms = x[:, i : i + 1].astype(np.float64) * y[i]
            expected = (terms + expected).astype(np.float32)
        np.testing.assert_array_equal(pullback.jit(jnp.matmul)(x, y), expected)
        np.testing.assert_array_equal(jnp.array(x) @ jnp.array(y), expected)
