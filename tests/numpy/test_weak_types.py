"""Which results are weakly typed, and of which dtype, where operands have several types; as JAX 0.10.2 gives them."""

import numpy as np
import pytest

import pullback
from pullback import lax, nn
from pullback import numpy as jnp
from pullback.scipy import linalg, signal, special

BOOL, I8, I16, I32, U16, U32 = (jnp.ones(3, t) for t in ("bool", "int8", "int16", "int32", "uint16", "uint32"))
ONE, HALF = jnp.asarray(1), jnp.asarray(0.5)  # weakly typed


@pytest.mark.parametrize(
    ("call", "dtype", "weak"),
    [
        (lambda: jnp.hypot(I16, 0.001), "float32", False),
        (lambda: jnp.hypot(HALF, True), "float32", True),
        (lambda: jnp.heaviside(I32, 1.0), "float32", False),
        (lambda: jnp.heaviside(ONE, BOOL), "float32", True),
        (lambda: 0.0**I32, "float32", False),
        (lambda: I32**2.0, "float32", True),
        (lambda: jnp.power(BOOL, ONE), "int32", False),
        (lambda: U16 != 1.0, "bool", True),
        (lambda: jnp.less_equal(I8, 0.5j), "bool", True),
        (lambda: jnp.ones(3) < 1.0, "bool", False),
        (lambda: lax.lt(ONE, 1), "bool", True),
        (lambda: lax.is_finite(HALF), "bool", True),
        (lambda: jnp.any(ONE), "bool", False),
        (lambda: jnp.logical_and(BOOL, ONE), "bool", False),
        (lambda: jnp.logical_and(ONE, 1), "bool", True),
        (lambda: jnp.logaddexp2(BOOL, HALF), "float32", False),
        (lambda: jnp.gcd(BOOL, ONE), "int32", False),
        (lambda: jnp.lcm(ONE, 2), "int32", True),
        (lambda: jnp.log2(HALF), "float32", False),
        (lambda: special.xlogy(BOOL, HALF), "float32", True),
        (lambda: special.erf(HALF), "float32", True),
        (lambda: jnp.linalg.vector_norm(I32, ord=1), "int32", False),
        (lambda: jnp.linalg.vector_norm(BOOL, ord=np.inf), "bool", False),
        (lambda: jnp.linalg.vector_norm(U32, ord=2), "float32", False),
        (lambda: jnp.var(jnp.ones(3), dtype=np.int8), "float32", True),
        (lambda: nn.logsumexp(I16, b=U32), "float32", False),
        (lambda: lax.dot(I16 + 0.5, U16), "float32", False),
        (lambda: lax.dot(I16 + 0.5, U16 + 0.5), "float32", True),
        (lambda: (I16 + 0.5) @ U16, "float32", True),
        (lambda: jnp.quantile(jnp.ones(5, jnp.float16), jnp.array([0.1, 0.9])), "float16", False),
        (lambda: jnp.percentile(jnp.ones(5, jnp.bfloat16), jnp.float32(5), method="nearest"), "bfloat16", False),
        (lambda: jnp.quantile(jnp.ones(5, jnp.int8), jnp.float32(0.5), method="lower"), "float32", False),
    ],
)
def test_types(call, dtype, weak):
    for _ in range(2):  # by itself, and as a plan
        out = call()
        assert (out.dtype.name, bool(out.weak_type)) == (dtype, weak)


def test_types_with_64_bits():
    with pullback.enable_x64(True):
        assert nn.softplus(jnp.ones(3, np.int8)).dtype == np.float32
        assert jnp.rint(jnp.ones(3, bool)).dtype == np.float64
        assert linalg.pascal(3).dtype == np.float32
        assert jnp.linalg.vector_norm(jnp.ones(3, np.int32)).dtype == np.float64
        assert nn.logsumexp(jnp.ones(3, np.int16), b=jnp.ones(3, np.uint32)).dtype == np.float64


def test_norms_of_integers_have_their_values():
    x = jnp.asarray([3, -4, 0])
    norms = [jnp.linalg.vector_norm(x, ord=k) for k in (1, 2, np.inf, -np.inf)]
    np.testing.assert_array_equal(norms, [7, 5, 4, 0])


def test_errors_of_the_types_that_jax_raises():
    x = jnp.ones((4, 5))
    for call in (
        lambda: lax.dynamic_slice(x, (0, jnp.int16(1)), (2, 2)),
        lambda: lax.dynamic_update_slice(x, x[:2, :2], (jnp.int32(0), jnp.uint32(1))),
        lambda: lax.bitcast_convert_type(jnp.ones(3, complex), np.int16),
        lambda: jnp.append(jnp.ones(3), jnp.float32(4), axis=0),
        lambda: jnp.var(x, dtype=bool),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="axis 1"):
        lax.cumprod(BOOL, axis=1)
    assert lax.dynamic_slice_in_dim(x, jnp.int16(1), 2, 1).shape == (4, 2)
    assert lax.dynamic_slice(x, (np.int16(0), jnp.int16(1)), (2, 2)).shape == (2, 2)


def test_convolutions_of_signals_keep_the_weak_type_of_what_integers_become():
    """int16 with uint64 is a weakly typed float, as JAX has it; a cross product of three components is not."""
    with pullback.enable_x64(True):
        x, y = np.arange(3, dtype=np.int16), np.arange(3, dtype=np.uint64)
        for f in (signal.convolve, signal.correlate):
            assert f(x, y).weak_type and f(x, y).dtype == np.float64
        assert signal.convolve2d(x[None], y[None]).weak_type
        assert not jnp.cross(x, y).weak_type
