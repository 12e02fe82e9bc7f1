"""Partial evaluation: values that are known now, and a jaxpr of what has to wait for the others; dead code in jaxprs.

A PartialVal is (None, value) where the value is known, and (aval, None) where only its type is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import ClosedJaxpr, Jaxpr, ShapedArray, Tracer, current_interpreter, using
from pullback.core import staging as _staging
from pullback.extend.linear_util import WrappedFun
from pullback.transforms import partial_eval as _partial_eval
from pullback.util.absent import absent_names

DynamicJaxprTracer = _staging.JitTracer
JaxprTracer = _partial_eval.UnknownTracer


class PartialVal(tuple):
    """(None, value) of a known value, (aval, None) of an unknown one."""

    __slots__ = ()

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        """Of a value."""
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> Any:
        """The type of an unknown value."""
        return self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """(jaxpr, out_pvals, consts) of a flat function: what depends on known values alone runs now.

    The jaxpr takes the unknown arguments and gives the unknown results, with those of the known ones that `instantiate`
    asks for.
    """
    interpreter = _partial_eval.PartialInterpreter(current_interpreter(), fun.__name__)
    try:
        with using(interpreter):
            arguments = [p.get_known() if p.is_known() else interpreter.new_argument(p.get_aval()) for p in pvals]
            outs = list(fun.call_wrapped(*arguments))
        wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
        unknown = [w or interpreter.is_unknown(out) for out, w in zip(outs, wanted, strict=True)]
        variables = [a.jaxpr_var for a, p in zip(arguments, pvals, strict=True) if not p.is_known()]
        jaxpr, consts = interpreter.finish(variables, [out for out, u in zip(outs, unknown, strict=True) if u])
        types = iter(jaxpr.outvars)
        found = [PartialVal.unknown(next(types).aval) if u else PartialVal.known(out) for out, u in zip(outs, unknown)]
    finally:
        interpreter.invalidate()
    return jaxpr, found, list(consts)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool = False) -> tuple[Jaxpr, list[bool]]:
    """(jaxpr', used): the jaxpr without what the used outputs do not need, and which inputs it still takes.

    With `instantiate` it keeps all its inputs.
    """
    clean = _partial_eval.dce_jaxpr(jaxpr, used_outputs)
    used = [True] * len(jaxpr.invars) if instantiate else _partial_eval.used_inputs(clean)
    kept = [v for v, u in zip(clean.invars, used, strict=True) if u]
    return Jaxpr(clean.constvars, kept, clean.outvars, clean.eqns, clean.effects, clean.debug_info), used


__getattr__ = absent_names(__name__)

__all__ = [
    "ClosedJaxpr", "DynamicJaxprTracer", "Jaxpr", "JaxprTracer", "PartialVal", "Tracer", "dce_jaxpr",
    "trace_to_jaxpr_nounits",
]  # fmt: skip
