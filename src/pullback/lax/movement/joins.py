"""What scatters do to an element and its update, as a jaxpr: libraries read it among the parameters of equations.

The compiler goes by the primitive's name, so it is of no weight in programs, which share one for each dtype.
"""

from __future__ import annotations

import functools
from typing import Any

from pullback.core.jaxpr import ElementJaxpr, JaxprEqn, Var
from pullback.lax.records.families import *

__all__ = ["update_jaxpr_of"]


@functools.cache
def update_jaxpr_of(name: str, dtype: Any) -> ElementJaxpr | None:
    """Of the scatter of a name, such as "scatter-add"; None for "scatter", which overwrites."""
    if name == "scatter":
        return None
    join = getattr(lax, name.removeprefix("scatter-") + "_p")
    x, y, out = (Var(ShapedArray((), dtype)) for _ in range(3))
    return ElementJaxpr((), (x, y), (out,), (JaxprEqn((x, y), (out,), join, {}),))
