"""Evaluates an expansion on NumPy arrays, vectorized: the loop IR's NumPy meaning of each op, with a fast exact fma."""

from __future__ import annotations

import numpy as np

from pullback.loop_ir import Builder
from pullback.loop_ir.ir import Const, Expr, Op, Read
from pullback.loop_ir.numpy_ops import evaluate as evaluate_op
from pullback.loop_ir.types import NP_DTYPE
from pullback.loop_passes.math import expand


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    high = x * 134217729.0
    high = high - (high - x)
    return high, x - high


def fma64(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z in f64 rounded once (but for ties of a tie), by exact products and sums in safe exponent ranges."""
    x, y, z = np.broadcast_arrays(*(np.asarray(a, np.float64) for a in (x, y, z)))
    mx, ex = np.frexp(x)
    my, ey = np.frexp(y)
    xh, xl = _split(mx)
    yh, yl = _split(my)
    p = mx * my
    e = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
    shift = ex.astype(np.int64) + ey
    with np.errstate(all="ignore"):
        zs = np.ldexp(z, np.clip(-shift, -4000, 4000).astype(np.int32))
        s = p + zs
        rest = s - p
        t = (p - (s - rest)) + (zs - rest)
        result = np.ldexp(s + (t + e), np.clip(shift, -4000, 4000).astype(np.int32))
        plain = x * y + z
    tame = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (p != 0) & np.isfinite(zs) & (s + (t + e) != 0)
    tame &= (z == 0) | (np.abs(zs) > 1e-290)
    return np.where(tame, result, plain)


def evaluate(root: Expr, values: dict) -> np.ndarray:
    """The value of `root`, where `values` maps variables to arrays; each node is computed once."""
    done: dict[int, np.ndarray] = {}

    def visit(node: Expr) -> np.ndarray:
        found = done.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Const):
            result = np.asarray(node.value).astype(NP_DTYPE[node.dtype]) if node.dtype != "u64" else np.uint64(node.value)
        elif isinstance(node, Read):
            result = values[node.var]
        else:
            assert isinstance(node, Op), node
            args = [visit(arg) for arg in node.args]
            if node.name == "fma" and node.dtype == "f64":
                result = fma64(*args)
            elif node.name == "select":
                result = np.where(*args)
            else:
                result = evaluate_op(node, args)
        done[id(node)] = result
        return result

    with np.errstate(all="ignore"):
        return visit(root)


def count_ops(root: Expr) -> int:
    """How many different ops the expression has."""
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if isinstance(node, Op) and id(node) not in seen:
            seen.add(id(node))
            for arg in node.args:
                visit(arg)

    visit(root)
    return len(seen)


def expansion(name: str, dtypes: tuple[str, ...], **attrs: object) -> tuple[Expr, list]:
    """The expansion of op `name` and the variables it reads."""
    b = Builder()
    variables = [b.var("x", dtype) for dtype in dtypes]
    op = b.op(name, *(b.read(v) for v in variables), attrs=tuple(attrs.items()))
    result = expand(op, b)
    assert result is not None, f"{name} of {dtypes} has no expansion"
    assert result.dtype == op.dtype
    return result, variables


def apply(name: str, *args: np.ndarray, **attrs: object) -> np.ndarray:
    """Op `name` on arrays, through its expansion."""
    names = {v: k for k, v in NP_DTYPE.items()}
    root, variables = expansion(name, tuple(names[a.dtype] for a in args), **attrs)
    return np.asarray(evaluate(root, dict(zip(variables, args, strict=True))))
