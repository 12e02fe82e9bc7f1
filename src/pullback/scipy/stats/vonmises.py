"""The von Mises distribution on the circle."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import weakly_promoted


def logpdf(x: Any, kappa: Any) -> Any:
    """kappa (cos x - 1) - log(2 pi I_0(kappa) exp(-kappa)); nan for kappa < 0."""
    x, kappa = weakly_promoted(x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * np.pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, value, np.nan)


def pdf(x: Any, kappa: Any) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, kappa))
