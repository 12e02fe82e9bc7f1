"""Operands of branches that run for elements which do not take them, as `vmap` of `cond` makes them.

What such a branch gives is not taken, and its cotangent is 0. But the derivative of a root at 0 is infinite, 0 times
that is NaN, and NaN it would stay in the operand's cotangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import EvalInterpreter, current_interpreter, hooks
from pullback.core.jaxpr import ClosedJaxpr
from pullback.transforms.partial_eval import used_inputs
from pullback.util import dtypes


def cut_elsewhere(
    axis: Any, index: Any, number: int, branch: ClosedJaxpr, values: Sequence[Any], batched: Sequence[bool]
) -> tuple[Sequence[Any], Sequence[bool]]:
    """(operands, which are mapped) of branch `number`, of which elements whose `index` is another have the values and
    no derivative.

    Arrays that all elements share stay shared, and keep such derivatives: with a copy of a matrix for each element,
    products with 64 rows took 14 times as long. Evaluation is not differentiated; elsewhere, where nobody asks for
    derivatives, the choice between equal values is simplified.
    """
    if isinstance(current_interpreter(), EvalInterpreter):
        return values, batched
    cut = [
        used and (mapped or not aval.ndim) and dtypes.issubdtype(aval.dtype, np.inexact)
        for used, mapped, aval in zip(used_inputs(branch.jaxpr), batched, branch.in_avals)
    ]
    if not any(cut):
        return values, batched
    elsewhere = hooks.not_equal(index, np.int32(number))
    given = []
    for value, mapped, is_cut in zip(values, batched, cut):
        if is_cut:
            value = value if mapped else hooks.broadcast(value, axis.size, 0)
            value = hooks.select(elsewhere, hooks.stop_gradient(value), value)
        given.append(value)
    return given, [mapped or is_cut for mapped, is_cut in zip(batched, cut)]
