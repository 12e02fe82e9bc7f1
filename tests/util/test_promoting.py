"""Functions compute the same whatever is set about promotion: what is set is for operations that users write."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

F = jnp.array([[1.5, -2.0, 0.3], [0.2, 4.0, 1.0]])
C = F + 1j
H = jnp.abs(F).astype(jnp.bfloat16)
scipy, stats = jax.scipy, jax.scipy.stats
KEY = jax.random.key(0)

CALLS = {
    "dct": lambda: [scipy.fft.dct(F), scipy.fft.dct(C.real, norm="ortho"), scipy.fft.idct(F), scipy.fft.dctn(F)],
    "idctn": lambda: scipy.fft.idctn(F, norm="ortho"),
    "detrend": lambda: [scipy.signal.detrend(F), scipy.signal.detrend(C, type="constant")],
    "csd": lambda: scipy.signal.csd(F.ravel(), F.ravel()[::-1], nperseg=4),
    "welch": lambda: scipy.signal.welch(C.ravel(), nperseg=4, return_onesided=False),
    "istft": lambda: scipy.signal.istft(scipy.signal.stft(F.ravel(), nperseg=4)[2], nperseg=4),
    "multigammaln": lambda: scipy.special.multigammaln(jnp.abs(F) + 2, 2),
    "bessel_jn": lambda: scipy.special.bessel_jn(F.ravel(), v=2),
    "wofz": lambda: [scipy.special.wofz(F), scipy.special.wofz(H)],
    "eigh_tridiagonal": lambda: scipy.linalg.eigh_tridiagonal(jnp.ones(3), jnp.ones(2), eigvals_only=True),
    "scale_and_translate": lambda: jax.image.scale_and_translate(
        H, (4, 6), (0, 1), jnp.array([2.0, 2.0]), jnp.array([0.0, 0.0]), "linear"
    ),
    "multivariate_normal": lambda: jax.random.multivariate_normal(KEY, jnp.zeros(2), jnp.eye(2), (3,)),
    "densities": lambda: [
        stats.chi2.logpdf(H, H),
        stats.wrapcauchy.pdf(H, 0.4),
        stats.multivariate_normal.pdf(H, 0, 1),
        stats.t.logpdf(H, H),
    ],
    "norm": lambda: [stats.norm.logpdf(H), stats.norm.logcdf(F), stats.gennorm.logpdf(H, 2.0)],
    "softmax": lambda: [jax.nn.softmax(F, where=F > 0), jax.nn.standardize(F, where=F > 0), jax.nn.logsumexp(C)],
    "pad": lambda: [jnp.pad(F, 1, mode="linear_ramp"), jnp.pad(F, 1, mode="mean", stat_length=2)],
    "quantile": lambda: [jnp.quantile(F, 0.3, axis=1), jnp.nanmedian(F, axis=0), jnp.cov(F), jnp.interp(F, F[0], F[1])],
    "linalg": lambda: [jnp.linalg.cond(F), jnp.linalg.pinv(F), jnp.linalg.norm(F, ord=3, axis=0)],
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_set_about_promotion_changes_nothing(name):
    wanted = jax.tree.leaves(CALLS[name]())
    for setting in (jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise")):
        with setting:
            got = jax.tree.leaves(CALLS[name]())
        for g, w in zip(got, wanted, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(np.asarray(g, np.complex128), np.asarray(w, np.complex128), 1e-6, 1e-7)


def test_densities_of_half_precision_are_of_it():
    for density in (stats.chi2.logpdf, stats.t.logpdf, stats.norm.logpdf):
        arguments = (H,) if density is stats.norm.logpdf else (H, H)
        assert density(*arguments).dtype == jnp.bfloat16


def test_users_own_mixtures_are_still_refused():
    ints = jnp.arange(3)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
        stats.chi2.logpdf(F, ints)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        jnp.add(F, F[0])
