"""What the tests of `pullback.numpy` share: a function written once for a module is run on NumPy and on ours."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp


def _leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _compare(ours, expected, tolerance, what):
    ours, expected = _leaves(ours), _leaves(expected)
    assert len(ours) == len(expected), what
    for a, b in zip(ours, expected):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"{what}: shape {a.shape}, NumPy has {b.shape}"
        if a.dtype.kind in "fcV":
            a = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
        else:
            np.testing.assert_array_equal(a, b, err_msg=what)


@pytest.fixture
def same():
    """same(function, *arrays): function(module, *arrays) gives with jnp, eager and jitted, what it gives with NumPy."""

    def check(function, *arrays, tolerance=2e-5, jit=True):
        with np.errstate(all="ignore"):
            expected = function(np, *arrays)
        given = [jnp.asarray(a) for a in arrays]
        _compare(function(jnp, *given), expected, tolerance, "eager")
        if jit:
            _compare(pullback.jit(lambda *xs: function(jnp, *xs))(*given), expected, tolerance, "jit")

    return check
