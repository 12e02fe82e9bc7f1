"""Products of operands of two types: of which type they are, what they give, what their gradients are."""

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


@pytest.mark.parametrize(
    ("left", "right", "product"),
    [
        ("uint8", "int8", "int8"),
        ("int4", "uint8", "uint8"),
        ("bfloat16", "float16", "bfloat16"),
        ("float16", "float8_e5m2", "float16"),
        ("float8_e4m3fn", "float8_e5m2", "float8_e5m2"),
        ("complex64", "float8_e5m2", "complex64"),
        ("int32", "float8_e4m3fn", "float8_e4m3fn"),
    ],
)
def test_products_of_mixed_types(left, right, product):
    x, y = jnp.ones((2, 3), left), jnp.ones((3, 2), right)
    for f in (lax.dot, jax.jit(lax.dot)):
        for out in (f(x, y), f(y.T, x.T)):
            assert out.dtype == product and (out.astype("complex64") == 3).all()
    if "float" in left and "float" in right:
        wide = lax.dot(x, y, preferred_element_type=jnp.float32)
        assert wide.dtype == jnp.float32 and (wide == 3).all()
        for bar, of in zip(jax.grad(lambda x, y: lax.dot(x, y).astype("float32").sum(), (0, 1))(x, y), (x, y)):
            assert bar.dtype == of.dtype and (bar.astype("float32") == 2).all()
