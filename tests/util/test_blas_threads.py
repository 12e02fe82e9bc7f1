"""SciPy's BLAS runs on one thread while we ask it, and on as many as before afterwards."""

import numpy as np
import pytest
import scipy.linalg

import pullback.numpy as jnp
from pullback.lax.linalg.singular_values import svd_p
from pullback.util.blas_threads import control, on_one_thread

found = control()
needs_control = pytest.mark.skipif(found is None, reason="this SciPy calls a BLAS whose threads cannot be set")


@needs_control
def test_threads_are_given_back():
    get, set_ = found
    before = get()
    set_(2)
    try:
        assert on_one_thread(lambda x, *, y: (x, y, get()))(1, y=2) == (1, 2, 1)
        assert get() == 2
        with pytest.raises(ValueError):
            on_one_thread(scipy.linalg.cholesky)(np.ones((2, 3)))
        assert get() == 2
    finally:
        set_(before)


@needs_control
def test_references_of_decompositions_run_on_one_thread(monkeypatch):
    get, set_ = found
    before, seen = get(), []
    module = __import__("pullback.lax.linalg.singular_values", fromlist=["lapack"])
    lapack = module.lapack
    monkeypatch.setattr(module, "lapack", lambda *args: seen.append(get()) or lapack(*args))
    set_(2)
    try:
        svd_p.reference(np.eye(40, dtype=np.float32), full_matrices=True, compute_uv=True)
    finally:
        set_(before)
    assert seen == [1]
    np.testing.assert_allclose(jnp.linalg.svdvals(2 * jnp.eye(3)), 2 * np.ones(3), rtol=1e-6)
