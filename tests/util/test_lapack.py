"""Which library BLAS and LAPACK come from, and how wide its integers are."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy

from pullback.util import lapack

SCIPYS = next(Path(scipy.__file__).parent.glob("linalg/_flapack*"))

WITH_SCIPYS = """
import numpy as np
from pullback.util import lapack
candidates = list(lapack._candidates())
lapack._candidates = lambda: candidates[1:]
import pullback as jax, pullback.numpy as jnp
from pullback.scipy import linalg
found = lapack.library()
assert found.integer == np.int32 and found.origin == "SciPy's", found
a = np.random.default_rng(0).normal(size=(70, 70)).astype("float32")
h = a @ a.T + 70 * np.eye(70, dtype="float32")
for run in (lambda f: f, jax.jit):
    w, v = run(jnp.linalg.eigh)(h)
    u, s, vt = run(jnp.linalg.svd)(a)
    q, r = run(jnp.linalg.qr)(a)
    t, z = run(linalg.schur)(a)
    for got, want in [((v * w) @ v.T, h), ((u * s) @ vt, a), (q @ r, a), (z @ t @ z.T, a),
                      (run(jnp.linalg.solve)(h, a), np.linalg.solve(h, a)), (run(linalg.lu)(a)[2].shape, (70, 70))]:
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-3)
print(jax.print_environment_info(return_string=True))
"""


def test_the_width_of_integers_is_found_out():
    assert lapack.library().integer == np.int64 and lapack.library().origin == "NumPy's"
    scipys = lapack.opened(str(SCIPYS), "SciPy's")
    assert scipys.integer == np.int32 and "openblas" in os.path.basename(scipys.file)
    assert scipys.address("dgetrf") and scipys.address("dgesdd") and scipys.address("no_such_routine") is None


def test_programs_with_integers_of_32_bits():
    """As where NumPy is conda's or a distribution's."""
    done = subprocess.run([sys.executable, "-c", WITH_SCIPYS], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "integers of 32 bits" in done.stdout


def test_integers_of_another_library():
    with lapack.integers_of(np.int32):
        assert lapack.integer() == np.int32
    assert lapack.integer() == np.int64


def test_a_library_without_the_routines_and_none_at_all(monkeypatch):
    with pytest.raises(OSError, match="has no dgemm, dgesdd, dgees, dlaed1"):
        lapack.opened("libc.so.6", "the system's")
    monkeypatch.setattr(lapack, "_candidates", lambda: iter([("libc.so.6", "the system's")]))
    lapack.library.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"pip install 'pullback\[scipy\]'"):
            lapack.library()
        assert lapack.identity() == "no lapack"
    finally:
        lapack.library.cache_clear()


def test_a_routine_that_is_not_there():
    with pytest.raises(NotImplementedError, match="NumPy's\\) has no routine 'dnothing'"):
        lapack.call("dnothing", 1)
