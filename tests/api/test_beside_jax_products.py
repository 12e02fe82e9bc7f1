"""What programs for JAX rely on: types of mixed products, what is no index, checks of numbers."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import checkify, sparse


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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.ones(2)[np.float32(0)], TypeError, "integer or boolean type"),
        (lambda: jnp.ones(2)[jax.random.key(0)], TypeError, "integer or boolean type"),
        (lambda: jnp.ravel_multi_index((jnp.array([1.0]), 1), (2, 3), mode="clip"), ValueError, "integer type"),
        (lambda: lax.dynamic_slice(jnp.ones(6), (-1,), (2,), allow_negative_indices=False), ValueError, "negative"),
        (
            lambda: jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.ones((3, 4))),
            ValueError,
            "size of the mapped axis",
        ),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_small_things():
    assert isinstance(jax.random.key_data(np.arange(2, dtype=np.uint32)), jax.Array)
    drawn = jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), dtype=jnp.float16)
    assert drawn.dtype == jnp.float32
    assert sparse.linalg.spsolve is not None
    for f in (lambda x, i: x[i], lambda x, i: x.at[i].set(1)):
        error, _ = checkify.checkify(f, errors=checkify.index_checks)(jnp.ones(3), 5)
        assert "index 5 is out of bounds" in error.get()
