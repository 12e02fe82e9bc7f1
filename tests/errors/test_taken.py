"""What JAX takes is taken: lists, scalars, large integers, empty arrays and traced flags, where the meaning is plain.

The values are those of JAX, or of SciPy where they are floats.
"""

import numpy as np
import pytest
import scipy.fft
import scipy.special
import scipy.stats

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
import pullback.scipy.interpolate
import pullback.scipy.signal
import pullback.scipy.spatial.transform
import pullback.scipy.stats
from pullback import lax, nn, ops, random
from pullback.scipy import special, stats
from pullback.scipy.spatial.transform import Rotation

V = np.arange(1, 4, dtype=np.float32)
I = np.arange(3, dtype=np.int32)
B = np.array([True, False, True])
M = np.ones((3, 3), np.float32) + np.eye(3, dtype=np.float32)
E = np.zeros(0, np.float32)
C = np.array([1, 2j, 0.5], np.complex64)
Q = np.random.default_rng(0).normal(size=(1, 4, 2, 8)).astype(np.float32)
KEY = random.key(0)
LARGE = 2**40

TABLE = {
    # Softmax of scipy.special is over everything unless an axis is given.
    "softmax": (lambda: special.softmax(M), scipy.special.softmax(M)),
    "log_softmax": (lambda: special.log_softmax(M), scipy.special.log_softmax(M)),
    "softmax along": (lambda: special.softmax(M, axis=0), scipy.special.softmax(M, axis=0)),
    "softmax of a scalar": (lambda: special.softmax(1.5), 1.0),
    # Python integers that the default integer does not hold, beside floats.
    "pdf": (lambda: stats.norm.pdf(V, LARGE), [0, 0, 0]),
    "t": (lambda: stats.t.logpdf(LARGE, 1.0), scipy.stats.t.logpdf(float(LARGE), 1.0)),
    "ppf": (lambda: stats.uniform.ppf(0.5, LARGE), float(LARGE)),
    "gammaln": (lambda: special.gammaln(LARGE), scipy.special.gammaln(float(LARGE))),
    "betaln": (lambda: special.betaln(LARGE, V), scipy.special.betaln(float(LARGE), V)),
    "logsumexp": (lambda: nn.logsumexp(LARGE), float(LARGE)),
    "full_like": (lambda: lax.full_like(V, LARGE), [float(LARGE)] * 3),
    # Lists
    "ndtr": (lambda: special.ndtr([1.0, 2.0]), scipy.special.ndtr([1, 2])),
    "log_ndtr": (lambda: special.log_ndtr((1.0, 2.0)), scipy.special.log_ndtr([1, 2])),
    "expn": (lambda: special.expn([1, 2], 2.0), scipy.special.expn([1, 2], 2)),
    "bessel_jn": (lambda: special.bessel_jn([1.0, 2.0], v=1)[1], scipy.special.jv(1, [1, 2])),
    "ihfft": (lambda: jnp.fft.ihfft([1.0, 2.0]), np.fft.ihfft([1.0, 2.0])),
    "nan_to_num": (lambda: jnp.nan_to_num(np.float32([np.nan, np.inf]), nan=[1.0], posinf=(2.0,)), [1, 2]),
    "trapezoid": (lambda: jnp.trapezoid(V, dx=[1.0, 2.0]), 6.5),
    "pinv": (lambda: jnp.linalg.pinv(M, rcond=[1e-3, 0.9])[0], np.linalg.pinv(M, 1e-3)),
    "pinv of few": (lambda: jnp.linalg.pinv(np.stack([M, M]), rtol=[1e-3, 0.9])[1], np.linalg.pinv(M, 0.9)),
    # Scalars
    "segment_sum": (lambda: ops.segment_sum(1.5, I, 3), [1.5] * 3),
    "segment_max": (lambda: jax.jit(lambda x: ops.segment_max(x, I, 3))(2), [2] * 3),
    "segments of a row": (lambda: ops.segment_sum(V[None], I, 3), [V, V, V]),
    "ids of higher rank": (lambda: ops.segment_sum(M, I[None], 3), M),
    "no ids": (lambda: ops.segment_sum(V, I[:0], 3), [0, 0, 0]),
    "repeat": (lambda: jnp.repeat(1.5, 2, axis=1), [1.5, 1.5]),
    "accumulate": (lambda: jnp.add.accumulate(1.5), [1.5]),
    "mode": (lambda: stats.mode(1.5)[1], 1),
    "multinomial": (lambda: stats.multinomial.pmf(5, 5, np.float32([1.0])), 1),
    "multinomial of bool": (
        lambda: stats.multinomial.pmf(B, 2, V / 6),
        scipy.stats.multinomial.pmf([1, 0, 1], 2, V / 6),
    ),
    "take": (lambda: jnp.take(V, B), [2, 1, 2]),
    "fiedler": (lambda: jsp.linalg.fiedler(1.5), [[0]]),
    "full": (lambda: lax.full(3, 1.0), [1] * 3),
    "reshape": (lambda: lax.reshape(M, 9), M.ravel()),
    "iota": (lambda: lax.broadcasted_iota(np.int32, 3, 0), I),
    "dctn": (lambda: jsp.fft.dctn(M, axes=0), scipy.fft.dctn(M, axes=[0])),
    "dctn of a size": (lambda: jsp.fft.dctn(M, s=5), scipy.fft.dctn(M, s=[5])),
    # Complex numbers
    "dct": (lambda: jsp.fft.dct(C), scipy.fft.dct(C)),
    "idct": (lambda: jsp.fft.idct(C, norm="ortho"), scipy.fft.idct(C, norm="ortho")),
    "dctn of complex": (lambda: jsp.fft.dctn(C[None]), scipy.fft.dctn(C[None])),
    # Nothing
    "mode of nothing": (lambda: stats.mode(E)[1], 0),
    "welch": (lambda: jsp.signal.welch(E)[1], E),
    "stft": (lambda: jsp.signal.stft(np.zeros((2, 0)))[2], np.zeros((2, 0))),
    "csd": (lambda: jsp.signal.csd(E, V)[1], E),
    "logmeanexp": (lambda: nn.logmeanexp(E), np.nan),
    "dirichlet": (lambda: random.dirichlet(KEY, E), E),
    "reduceat": (lambda: jnp.add.reduceat(V, np.zeros(0, int)), E),
    "set": (lambda: jnp.asarray(V).at[I[:0]].set(V), V),
    "min": (lambda: jnp.asarray(V).at[np.zeros((0, 2), int)].min(0.0), V),
    "add": (lambda: jnp.asarray(V).at[1:1].add(V), V),
    # Others
    "detrend": (
        lambda: jsp.signal.welch(V, nperseg=2, detrend=None)[1],
        jsp.signal.welch(V, nperseg=2, detrend=False)[1],
    ),
    "fftshift": (lambda: jnp.fft.fftshift(V, (0, 0)), np.fft.fftshift(V, (0, 0))),
    "barrier": (lambda: random.key_data(lax.optimization_barrier(KEY)), random.key_data(KEY)),
    "barrier in jit": (lambda: random.key_data(jax.jit(lax.optimization_barrier)(KEY)), random.key_data(KEY)),
    "attention": (lambda: nn.dot_product_attention(Q[0], Q, Q), nn.dot_product_attention(Q, Q, Q)[0]),
    "attention of a batch": (lambda: nn.dot_product_attention(Q, Q[0], Q[0]), nn.dot_product_attention(Q, Q, Q)),
    "convolution_matrix": (
        lambda: jsp.linalg.convolution_matrix(M, 2, "same")[1],
        jsp.linalg.convolution_matrix(M[1], 2, "same"),
    ),
    "grid": (lambda: jsp.interpolate.RegularGridInterpolator((V,), V * 2)(np.float32([1.5, 2.5])), [3, 5]),
    "grid of two": (lambda: jsp.interpolate.RegularGridInterpolator((V, V), np.outer(V, V))(V[:2]), [2]),
    "compress": (lambda: jax.jit(lambda f: jnp.compress(B, V, size=3, fill_value=f))(7.0), [1, 3, 7]),
    "compress rows": (
        lambda: jax.jit(lambda f: jnp.compress(B, M, axis=0, size=3, fill_value=f))(7.0),
        [M[0], M[2], [7] * 3],
    ),
    "extract": (lambda: jax.jit(lambda f: jnp.extract(B, V, size=3, fill_value=f))(7.0), [1, 3, 7]),
    "traced degrees": (
        lambda: jax.jit(lambda d: Rotation.from_rotvec(V, d).as_rotvec(d))(True),
        Rotation.from_rotvec(V, True).as_rotvec(True),
    ),
    "traced inverse": (lambda: jax.jit(lambda i: Rotation.from_rotvec(V[::-1]).apply(V, i))(True),
                       Rotation.from_rotvec(V[::-1]).apply(V, True)),
    "traced angles": (lambda: jax.jit(lambda d: Rotation.from_euler("xyz", V, d).as_euler("xyz", d))(True), V),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_is_taken(name):
    call, want = TABLE[name]
    got = call()
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_traced_fill_values_of_grids():
    def outside(fill):
        grid = jsp.interpolate.RegularGridInterpolator((V,), V, bounds_error=False, fill_value=fill)
        return grid(np.float32([9.0]))

    assert jax.jit(outside)(2.0).tolist() == [2]
    with pytest.raises(ValueError, match="which values of float32 cannot hold"):
        outside(1j)


def test_draws_beside_parameters():
    """weibull_min draws `shape`, which broadcasts with the parameters; double_sided_maxwell draws as many for each."""
    got = random.weibull_min(KEY, V, 1.0, ())
    np.testing.assert_allclose(got, V * random.weibull_min(KEY, 1.0, 1.0), rtol=1e-6)
    assert random.weibull_min(KEY, V[:, None], V, ()).shape == (3, 3)
    assert random.double_sided_maxwell(KEY, V, 1.0).shape == (3, 3)
    assert random.double_sided_maxwell(KEY, V, 1.0, (2,)).shape == (2, 3)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        random.weibull_min(KEY, V, 1.0, (2,))


def test_gradients_of_what_is_taken():
    assert float(jax.grad(lambda x: ops.segment_sum(x, I, 3).sum())(1.5)) == 3
    np.testing.assert_allclose(
        jax.grad(lambda a: jsp.linalg.convolution_matrix(a, 2).sum())(jnp.asarray(M)), 2 * np.ones((3, 3))
    )
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(jnp.compress(B, x, size=3, fill_value=x[0])))(V), [2, 0, 1])
