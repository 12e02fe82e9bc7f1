"""Special functions, by SciPy's names."""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.special import PAGES as _PAGES
from pullback.nn import logsumexp
from pullback.scipy import _parameters
from pullback.scipy.special._bessel import bessel_jn, i0, i0e, i1, i1e
from pullback.scipy.special._elementary import (
    bernoulli,
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from pullback.scipy.special._error import erf, erfc, erfinv, log_ndtr, ndtr, ndtri
from pullback.scipy.special._faddeeva import erfcx, owens_t, wofz
from pullback.scipy.special._gamma import (
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from pullback.scipy.special._harmonics import lpmn as _lpmn
from pullback.scipy.special._harmonics import lpmn_values as _lpmn_values
from pullback.scipy.special._harmonics import sph_harm_y
from pullback.scipy.special._hypergeometric import hyp1f1, hyp2f1
from pullback.scipy.special._integrals import dawsn, exp1, expi, expn, fresnel, sici, spence
from pullback.util.warning import deprecated_names as _deprecated_names

__getattr__ = _deprecated_names(__name__, {"lpmn": _lpmn, "lpmn_values": _lpmn_values})

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch",
    "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

_remember_all(globals(), _parameters.SPECIAL, _parameters.SPECIAL_OWN, skip=("bernoulli",))
_explain_all(globals(), _parameters.SPECIAL, _parameters.SPECIAL_OWN)

_add_pages(globals(), _PAGES)
