"""The dtype and weak type of results, for operands of many types: python result_types.py jax > FILE, with JAX.

Only shapes are evaluated. Of each function there is a text of one letter (CODES) for each pair of operands, or each
operand; what raises is `!`.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import warnings
from typing import Any

import numpy as np

ARRAYS = ("bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64")
SCALARS: tuple[Any, ...] = (True, 2, 1.5, 1j)
TYPES = (
    "bool", "int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def _names(text: str) -> list[str]:
    return text.split()


CODES = {(t, weak): chr((65 if weak else 97) + k) for k, t in enumerate(TYPES) for weak in (False, True)}
BINARY = _names(
    "add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin hypot arctan2 logaddexp2 "
    "copysign nextafter heaviside float_power gcd lcm ldexp equal not_equal less less_equal greater_equal logical_and "
    "logical_or logical_xor isclose bitwise_and left_shift right_shift matmul outer vdot"
)
SPECIAL = _names("xlogy xlog1py betaln gammainc zeta boxcox")
UNARY = _names(
    "abs negative sign conj real square signbit isfinite isinf isnan logical_not angle iscomplex sin exp2 log log1p "
    "log2 log10 sqrt cbrt sinc reciprocal deg2rad nan_to_num rint floor trunc round sum prod mean max any all std var "
    "median ptp count_nonzero nansum nanprod nanmean nanmax nanvar cumsum cumprod sort argsort diag tril atleast_2d "
    "trace average zeros_like ones_like linalg.norm"
)
NN = _names("relu sigmoid silu softplus log_sigmoid hard_tanh celu elu selu gelu mish squareplus")
SPECIAL_UNARY = _names("gammaln digamma erf erfc erfinv expit logit i0 i0e i1 exp1 expi")


def table(name: str, x64: bool) -> dict[str, str]:
    """The results of a library, by function."""
    jax = importlib.import_module(name)
    special = importlib.import_module(f"{name}.scipy.special")
    jnp = jax.numpy
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", x64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operands = [jnp.asarray(np.ones(3), d) for d in ARRAYS]
            operands += [jnp.asarray(1), jnp.asarray(1.5), jnp.asarray(1j), *SCALARS]

            def code(f, *given):
                places = [k for k, x in enumerate(given) if hasattr(x, "dtype")]

                def call(*arrays):
                    whole = list(given)
                    for k, x in zip(places, arrays):
                        whole[k] = x
                    return f(*whole)

                try:
                    out = jax.eval_shape(call, *(given[k] for k in places))
                except (TypeError, ValueError):
                    return "!"
                return CODES[str(out.dtype), bool(out.weak_type)]

            found = {}
            binary = {n: getattr(jnp, n) for n in BINARY} | {f"special.{n}": getattr(special, n) for n in SPECIAL}
            binary |= {"lax.lt": jax.lax.lt, "lax.ne": jax.lax.ne}
            for n, f in binary.items():
                found[n] = "".join(code(f, a, b) for a, b in itertools.product(operands, operands))
            unary = {n: getattr(special, n) for n in SPECIAL_UNARY} | {n: getattr(jax.nn, n) for n in NN}
            for n in UNARY:
                part, _, last = n.rpartition(".")
                unary[n] = getattr(getattr(jnp, part) if part else jnp, last)
            for order in (1, np.inf, -np.inf, 2):
                unary[f"vector_norm {order}"] = lambda x, order=order: jnp.linalg.vector_norm(x, ord=order)
            for t in ("int32", "int8", "float16"):
                unary[f"var {t}"] = lambda x, t=t: jnp.var(x, dtype=t)
            unary["logsumexp b"] = lambda x: jax.nn.logsumexp(x, b=jnp.ones(3, jnp.uint32))
            for n, f in unary.items():
                found[n] = "".join(code(f, a) for a in operands)
            return found
    finally:
        jax.config.update("jax_enable_x64", before)


if __name__ == "__main__":
    print(json.dumps([table(sys.argv[1], x64) for x64 in (False, True)], indent=0))
