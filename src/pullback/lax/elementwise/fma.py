"""x * y + z, rounded once."""

from __future__ import annotations

from typing import Any

from pullback.lax.elementwise.arithmetic import add_p, mul_p
from pullback.lax.records.families import *

__all__ = ["fma_p"]


def _halves(x: Any) -> tuple[Any, Any]:
    """x as the sum of two numbers of 26 bits (Veltkamp)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _reference(x, y, z):
    if x.dtype.itemsize < 8:  # the product is exact; of 2**29 sums, one is halfway between two results
        return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(x.dtype)
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low  # Dekker
    total = product + z
    virtual = total - product
    lost = lost + ((product - (total - virtual)) + (z - virtual))
    return np.where(np.isfinite(lost) & (lost != 0), total + lost, total)  # -0 + 0 is 0


def _lowering(b, x, y, z):
    kind = "f64" if x.dtype == "f64" else "f32"
    return b.convert(b.op("fma", *[b.convert(v, kind) for v in (x, y, z)]), x.dtype)


fma_p = nary(
    "fma",
    3,
    doc="x * y + z, elementwise, rounded once.",
    accepts=FLOAT,
    reference=_reference,
    jvp=(
        lambda x_dot, out, x, y, z: mul_p.bind(x_dot, y),
        lambda y_dot, out, x, y, z: mul_p.bind(x, y_dot),
        lambda z_dot, out, x, y, z: z_dot,
    ),
    lower=_lowering,
    samples=Samples(low=-2.0, high=2.0, ulp=1),
)
fma_p.spelled_out = lambda x, y, z: add_p.bind(mul_p.bind(x, y), z)
