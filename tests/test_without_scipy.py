"""All works where SciPy is not installed; what cannot says what to install."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from patience import PATIENCE

HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import numpy as np
import pullback as jax, pullback.numpy as jnp
"""

LINALG = """
from pullback.scipy import linalg
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
for n in (3, 40):
    a = rng.normal(size=(n, n))
    for a in (a, a + 1j * rng.normal(size=(n, n))):
        h = a @ a.conj().T + n * np.eye(n)
        for run in (lambda f: f, jax.jit):
            w, v = run(jnp.linalg.eigh)(h)
            u, s, vt = run(jnp.linalg.svd)(a)
            q, r = run(jnp.linalg.qr)(a)
            lower = run(jnp.linalg.cholesky)(h)
            e, x = run(jnp.linalg.eig)(a)
            t, z = run(linalg.schur)(a)
            p, r2, order = run(lambda a: linalg.qr(a, pivoting=True))(a)
            b, g = linalg.hessenberg(a, calc_q=True)
            for got, want in [
                ((v * w) @ v.conj().T, h), ((u * s) @ vt, a), (q @ r, a), (lower @ lower.conj().T, h), (a @ x, x * e),
                (z @ t @ z.conj().T, a), (p @ r2, a[:, order]), (run(jnp.linalg.solve)(h, a), np.linalg.solve(h, a)),
                (run(jnp.linalg.inv)(h) @ h, np.eye(n)), (run(jnp.linalg.det)(a), np.linalg.det(a)),
                (run(linalg.expm)(a / n) @ run(linalg.expm)(-a / n), np.eye(n)), (g @ b @ g.conj().T, a),
                (linalg.sqrtm(h) @ linalg.sqrtm(h), h),
                (linalg.lu_solve(linalg.lu_factor(h), a), np.linalg.solve(h, a)),
            ]:
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * n)
t, z = jax.lax.linalg.schur(rng.normal(size=(6, 6)), sort_eig_vals=True, select_callable=lambda re, im: re < 0)
signs = np.sign(np.diag(t))
assert list(signs) == sorted(signs)
linalg.helmert(4), linalg.hilbert(3), linalg.pascal(4), linalg.invpascal(4), linalg.invhilbert(3)
"""

SPECIAL = """
import math
from pullback.scipy import special
jax.config.update("jax_enable_x64", True)
x = np.linspace(0.3, 7, 50)
for f, want in [(special.erf, math.erf), (special.erfc, math.erfc), (special.gammaln, math.lgamma)]:
    np.testing.assert_allclose(f(x), list(map(want, x)), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(jax.jit(f)(x), list(map(want, x)), rtol=1e-13, atol=1e-15)
np.testing.assert_allclose(special.erf(special.erfinv(x / 8)), x / 8, rtol=1e-13)
np.testing.assert_allclose(special.gammainc(x, 2.0) + special.gammaincc(x, 2.0), 1, rtol=1e-13)
np.testing.assert_allclose(special.betainc(1.0, 2.0, 0.3), 1 - 0.7**2, rtol=1e-13)
np.testing.assert_allclose(special.zeta(2.0, 1.0), math.pi**2 / 6, rtol=1e-14)
np.testing.assert_allclose(special.polygamma(1, 1.0), math.pi**2 / 6, rtol=1e-14)
np.testing.assert_allclose(special.bernoulli(8)[-1], -1 / 30)
special.digamma(x), special.i0e(x), special.i1e(x), special.ndtri(x / 8), special.expi(x), special.loggamma(x + 1j)
jax.grad(lambda a: jax.jit(special.gammainc)(a, 2.0))(1.5)
"""

OTHERS = """
from pullback.scipy import cluster, fft, interpolate, ndimage, optimize, signal, stats
x = jnp.linspace(0.1, 0.9, 40)
for n in (16, 17, 1009, 20011):
    y = np.random.default_rng(0).normal(size=n).astype("complex64")
    np.testing.assert_allclose(jnp.fft.fft(y), np.fft.fft(y), atol=1e-3 * n**0.5)
    np.testing.assert_allclose(jax.jit(jnp.fft.ifft)(y), np.fft.ifft(y), atol=1e-5)
np.testing.assert_allclose(fft.idct(fft.dct(x)), x, rtol=1e-4)
np.testing.assert_allclose(stats.norm.cdf(stats.norm.ppf(x)), x, rtol=1e-4)
stats.gamma.logpdf(x, 2.0), stats.beta.cdf(x, 1.0, 2.0), stats.t.logpdf(x, 3.0), stats.gaussian_kde(x)(x)
found = optimize.minimize(lambda v: ((v - 1) ** 2).sum(), jnp.zeros(3), method="BFGS")
np.testing.assert_allclose(found.x, 1, atol=1e-4)
for window in ("hann", ("kaiser", 5.0), "blackmanharris"):
    signal.welch(jnp.sin(40 * x), window=window, nperseg=16), signal.stft(x, nperseg=16, window=window)
signal.convolve(x, x), signal.detrend(x), ndimage.map_coordinates(jnp.eye(3), [x, x], 1)
interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.arange(3.0))(x[:, None])
key = jax.random.key(0)
for draw in (jax.random.normal, jax.random.exponential, jax.random.truncated_normal):
    draw(key, *((-1.0, 1.0) if draw is jax.random.truncated_normal else ()), shape=(5,))
jax.random.gamma(key, 2.0, (5,)), jax.random.beta(key, 2.0, 3.0, (5,)), jax.random.poisson(key, 3.0, (5,))
jax.random.dirichlet(key, jnp.ones(3)), jax.random.t(key, 3.0, (5,)), jax.random.binomial(key, 5, 0.3, (5,))
jax.random.multivariate_normal(key, jnp.zeros(3), jnp.eye(3)), jax.random.orthogonal(key, 3)
assert "scipy: " in jax.print_environment_info(return_string=True)
"""

EXPORT = """
import ctypes, sys
from pullback.export import to_c
a = np.eye(70, dtype="float32") * 2
library = to_c({"f": (jnp.linalg.inv, a)}, path=sys.argv[1], blas="numpy")
out = np.empty_like(a)
assert ctypes.CDLL(str(library.library)).f(a.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p)) == 0
np.testing.assert_allclose(out, np.eye(70) / 2)
"""

REFUSED = """
from pullback.experimental.sparse.linalg import spsolve
from pullback.scipy import signal
for f in (lambda: spsolve(jnp.ones(2), jnp.arange(2), jnp.arange(3), jnp.ones(2)),
          lambda: signal.stft(jnp.ones(50), window="chebwin", nperseg=8)):
    try:
        f()
    except ImportError as error:
        print(error)
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", HIDDEN + program + "\nassert 'scipy' not in sys.modules", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", [LINALG, SPECIAL, OTHERS], ids=["linalg", "special", "others"])
def test_tour(program):
    run(program)


def test_export(tmp_path):
    run(EXPORT, str(tmp_path))


def test_what_needs_scipy_says_so():
    first, second = run(REFUSED).splitlines()
    assert first == "sparse.linalg.spsolve needs SciPy, which is not installed: pip install 'pullback[scipy]'"
    assert second == "the window 'chebwin' needs SciPy, which is not installed: pip install 'pullback[scipy]'"
