"""Math functions as expressions of basic ops of the loop IR.

`expand(op, b)` is what the pass expand_math calls for every op; the table below it is the list of what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pullback.loops.ir.ir import SHORT_NANS, Expr, Op
from pullback.loops.ir.types import REAL_OF, is_int

from . import (
    bessel,
    complex_,
    error_function,
    exponential,
    gamma,
    hyperbolic,
    incomplete,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
    zeta,
)
from ._kit import by_pieces
from ._tables import pieces

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

REAL: dict[str, Callable[..., Expr]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "tanh": hyperbolic.tanh,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "pow": power.pow,
    "integer_pow": power.integer_pow,
    "square": power.square,
    "reciprocal": power.reciprocal,
    "rsqrt": power.rsqrt,
    "cbrt": power.cbrt,
    "rem": remainder.rem,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erf_inv": error_function.erf_inv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "bessel_i0e": bessel.bessel_i0e,
    "bessel_i1e": bessel.bessel_i1e,
    "igamma": incomplete.igamma,
    "igammac": incomplete.igammac,
    "igamma_grad_a": incomplete.igamma_grad_a,
    "random_gamma_grad": incomplete.random_gamma_grad,
    "regularized_incomplete_beta": incomplete.regularized_incomplete_beta,
    "zeta": zeta.zeta,
    "polygamma": zeta.polygamma,
}
ALONE: dict[str, Callable[[Builder, Expr], Expr]] = {"rsqrt": power.inverse_root}  # of what no lanes compute
# Of f32, where the machine looks up numbers of so large tables for all lanes at once: erf of 20,000 elements in 5 us in
# place of 13 (AVX-512), 8 in place of 15 (AVX2), tanh in 6 in place of 7. Largest errors: 1.1 and 0.9 ulp.
BY_SCALING = frozenset({"exp", "exp2", "logistic"})  # there, an instruction multiplies by powers of two
BY_PIECES: dict[int, dict[str, Callable[[Builder, Expr], Expr]]] = {
    16: {
        "erf": lambda b, x: by_pieces(b, x, pieces.ERF_F32),
        "erfc": lambda b, x: error_function.erfc(b, x, pieces.ERFCX_F32),
        "tanh": lambda b, x: by_pieces(b, x, pieces.TANH_F32),
    },
    8: {
        "erf": lambda b, x: by_pieces(b, x, pieces.ERF_F32_BY_8),
        "erfc": lambda b, x: error_function.erfc(b, x, pieces.ERFCX_F32_BY_8),
    },
    0: {},
}


def expand(op: Op, b: Builder, lookups: int = 0, alone: bool = False) -> Expr | None:
    """The expression of basic ops that computes `op`, or None if the op is not a math function we expand.

    f32, f64 and complex numbers directly; f16 and bf16 through f32, rounded once at the end. Of the ops that the
    emitter knows for real numbers, sqrt, abs, sign and div are expanded for complex ones. Some expansions write loops:
    they emit statements into `b` and return the reading of a result. `lookups` are the entries of tables that the op
    lookup is quick for; `alone`: no lanes compute it.
    """
    function = ALONE[op.name] if alone and op.name in ALONE else REAL.get(op.name)
    dtype = op.args[0].dtype
    attrs = dict(op.attrs)
    if op.name in ("integer_pow", "square") and (dtype in REAL_OF or is_int(dtype)):
        return function(b, op.args[0], **attrs) if function else None
    if dtype in REAL_OF:
        return complex_.expand_complex(b, op.name, op.args)
    if function is None:
        return None
    if lookups == 16 and op.name in BY_SCALING:
        attrs["scales"] = True
    if op.name in BY_PIECES[lookups] and dtype != "f64":
        function = BY_PIECES[lookups][op.name]
    if dtype in ("f32", "f64"):
        return function(b, *op.args, **attrs)
    if dtype in ("f16", "bf16"):
        value = function(b, *(b.convert(arg, "f32") for arg in op.args), **attrs)
        return b.op("convert", value, dtype=dtype, attrs=(SHORT_NANS,))  # NaN as a constant, or an argument's
    return None
