"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import inside, promoted, promoted_reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-log(scale) inside."""
    x, loc, scale = promoted_reals(x, loc, scale)
    return inside((x >= loc) & (x <= loc + scale), -jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(x - loc) / scale, clipped to [0, 1]."""
    x, loc, scale = promoted(x, loc, scale)
    return jnp.clip((x - loc) / scale, 0, 1)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """loc + q scale; nan outside [0, 1]."""
    q, loc, scale = promoted(q, loc, scale)
    return jnp.where((q < 0) | (q > 1), np.nan, loc + q * scale)
