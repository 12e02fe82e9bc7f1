"""Student's t distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log Gamma((df+1)/2) - log Gamma(df/2) - log(pi df)/2 - (df+1)/2 log(1 + z^2/df) - log(scale)."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z = (x - loc) / scale
    constant = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - jnp.log(np.pi * df) / 2
    return constant - jnp.log(scale) - (df + 1) / 2 * jnp.log1p(z * z / df)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, df, loc, scale))
