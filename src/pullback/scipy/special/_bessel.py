"""Modified Bessel functions of orders 0 and 1."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.scipy.special._common import inexact


def i0e(x: Any) -> Any:
    """exp(-|x|) I_0(x)."""
    return lax.bessel_i0e(inexact(x))


def i0(x: Any) -> Any:
    """I_0(x)."""
    x = inexact(x)
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


def i1e(x: Any) -> Any:
    """exp(-|x|) I_1(x)."""
    return lax.bessel_i1e(inexact(x))


def i1(x: Any) -> Any:
    """I_1(x)."""
    x = inexact(x)
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)
