"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted, weakly_promoted
from pullback.util.promoting import promoting_freely


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """x log mu - mu - log x! with x = k - loc, for whole k and x >= 0."""
    k, mu, loc = weakly_promoted(k, mu, loc)
    x = k - loc
    value = special.xlogy(x, mu) - special.gammaln(x + 1) - mu
    return jnp.where((x >= 0) & (jnp.round(k) == k) | jnp.isnan(x), value, -np.inf)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The regularized upper incomplete gamma function Q(floor(k) + 1, mu)."""
    k, mu, loc = promoted(k, mu, loc)
    x = k - loc
    return jnp.where(x < 0, 0, special.gammaincc(jnp.floor(jnp.clip(x, 0)) + 1, mu))


@promoting_freely
def entropy(mu: Any, loc: Any = 0) -> Any:
    """-sum p log p: summed directly for mu up to 100, above by its expansion in 1/mu. nan for mu < 0.

    Evans, Boersma, "The entropy of a Poisson distribution", SIAM Review 1988.
    """
    mu, loc = jnp.broadcast_arrays(*promoted(mu, loc))
    small = jnp.where(mu <= 100, mu, 1)
    k = jnp.arange(256, dtype=mu.dtype)
    logs = logpmf(k, small[..., None])
    direct = -jnp.sum(jnp.where(jnp.isfinite(logs), jnp.exp(logs) * logs, 0), axis=-1)
    large = jnp.where(mu > 100, mu, 100)
    series = 0.5 * jnp.log(2 * np.pi * np.e * large) - 1 / (12 * large) - 1 / (24 * large**2) - 19 / (360 * large**3)
    value = jnp.where(mu <= 100, direct, series)
    return jnp.where(mu == 0, 0, jnp.where(mu < 0, np.nan, value))
