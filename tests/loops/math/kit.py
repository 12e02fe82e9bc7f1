"""Evaluates expansions of math functions on arrays, interpreted and compiled, and measures errors in ulp.

The interpreter here is vectorized over points: the loop IR's NumPy meaning of each op, with a fast exact fma.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder
from pullback.loops.ir.ir import Buffer, Const, Expr, Function, Op, Read, Var
from pullback.loops.ir.numpy_ops import evaluate as evaluate_op
from pullback.loops.ir.types import NAME_OF_NP_DTYPE, NP_DTYPE
from pullback.loops.math import expand

Points = np.ndarray


def _split(x: Points) -> tuple[Points, Points]:
    high = x * 134217729.0
    high = high - (high - x)
    return high, x - high


def fma64(x: Points, y: Points, z: Points) -> Points:
    """x * y + z in f64 rounded once (but for ties of a tie), by exact products and sums in safe exponent ranges."""
    x, y, z = np.broadcast_arrays(*(np.asarray(a, np.float64) for a in (x, y, z)))
    mx, ex = np.frexp(x)
    my, ey = np.frexp(y)
    xh, xl = _split(mx)
    yh, yl = _split(my)
    p = mx * my
    e = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
    shift = ex.astype(np.int64) + ey
    zs = np.ldexp(z, np.clip(-shift, -4000, 4000).astype(np.int32))
    s = p + zs
    rest = s - p
    t = (p - (s - rest)) + (zs - rest)
    result = np.ldexp(s + (t + e), np.clip(shift, -4000, 4000).astype(np.int32))
    tame = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (p != 0) & np.isfinite(zs) & (s + (t + e) != 0)
    tame &= (z == 0) | (np.abs(zs) > 1e-290)
    return np.where(tame, result, x * y + z)


def evaluate(root: Expr, values: dict[Var, Points]) -> Points:
    """The value of `root`, where `values` maps variables to arrays; each node is computed once."""
    done: dict[int, Points] = {}

    def visit(node: Expr) -> Points:
        found = done.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Const):
            result = NP_DTYPE[node.dtype].type(node.value)
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
    """How many different ops the expression has, bitcasts left out: they cost nothing."""
    seen: set[int] = set()
    count = 0
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Op) and id(node) not in seen:
            seen.add(id(node))
            count += node.name != "bitcast"
            stack += node.args
    return count


def expansion(
    name: str, dtypes: tuple[str, ...], lookups: int | None = None, **attrs: object
) -> tuple[Expr, list[Var]]:
    """The expansion of op `name`, for this CPU or one with `lookups` or without, and the variables it reads."""
    b = Builder()
    variables = [b.var("x", dtype) for dtype in dtypes]
    op = b.op(name, *(b.read(v) for v in variables), attrs=tuple(attrs.items()))
    assert isinstance(op, Op)
    result = expand(op, b, current_target().looks_up if lookups is None else lookups)
    assert result is not None, f"{name} of {dtypes} has no expansion"
    assert result.dtype == op.dtype
    return result, variables


def interpreted(name: str, *args: Points, **attrs: object) -> Points:
    """Op `name` on arrays, through its expansion and NumPy."""
    root, variables = expansion(name, tuple(NAME_OF_NP_DTYPE[a.dtype] for a in args), **attrs)
    return np.asarray(evaluate(root, dict(zip(variables, args, strict=True))))


def program(name: str, args: Sequence[Points], attrs: dict[str, object]) -> tuple[Function, str]:
    """A loop that applies op `name` to arrays of these sizes, after all passes, and the type of its result; a scalar
    among the arguments is known in advance.
    """
    b = Builder()
    n = args[0].size
    inputs = [
        b.input("x", NAME_OF_NP_DTYPE[a.dtype], n) if a.ndim else b.const(NAME_OF_NP_DTYPE[a.dtype], a.item())
        for a in args
    ]
    with b.loop(n) as i:
        operands = [b.load(x, i) if isinstance(x, Buffer) else x for x in inputs]
        value = b.op(name, *operands, attrs=tuple(attrs.items()))
        b.store(b.output("y", value.dtype, n), i, value)
    function = b.function(name)
    function = optimize_loops(function)
    return function, value.dtype


def compiled(name: str, *args: Points, **attrs: object) -> Points:
    """Op `name` on arrays, through its expansion, the passes and machine code."""
    function, dtype = program(name, args, attrs)
    plan, _ = plan_arena(function)
    code = compile_function(function, plan)
    result = np.empty(args[0].size, NP_DTYPE[dtype])
    assert code([np.ascontiguousarray(a) for a in args if a.ndim], [result]) == 0
    return result


def ulps(got: Points, want: Points) -> Points:
    """|got - want| in units in the last place of `want` (rounded to the type of `got`), which is of a wider type.

    0 where both are NaN, or one infinity, or where rounding `want` gives `got`, or 0 where that is denormal: programs
    flush such results; inf where only one is NaN.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), info.smallest_normal)).astype(np.longdouble)
        error = np.abs(got.astype(np.longdouble) - want.astype(np.longdouble)) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    same |= (got == 0) & (np.abs(rounded) <= info.smallest_normal) & (np.abs(want) < info.smallest_normal)
    error = np.where(same, np.where(np.isfinite(error) & (got == rounded), error, 0), error)
    return np.where(np.isnan(error), np.inf, error).astype(np.float64)


def worst(got: Points, want: Points, *at: Points) -> tuple[float, str]:
    """The largest error in ulp, and where it is."""
    errors = ulps(got, want)
    k = int(np.argmax(errors))
    place = ", ".join(repr(a[k]) for a in at)
    return float(errors[k]), f"{errors[k]:.3g} ulp at {place}: got {got[k]!r}, want {want[k]!r}"


def bit_patterns(dtype: str, size: int, seed: int = 0) -> Points:
    """Numbers with random bits: all exponents alike, with NaN, infinities and denormals among them."""
    rng = np.random.default_rng(seed)
    kind = NP_DTYPE[dtype]
    return rng.integers(0, 1 << (8 * kind.itemsize), size, dtype=np.uint64).astype(f"u{kind.itemsize}").view(kind)


def edges(dtype: str) -> Points:
    """Zeros, infinities, NaN, limits of the format, small whole and half numbers."""
    info = np.finfo(NP_DTYPE[dtype])
    values = [0.0, np.inf, info.max, info.smallest_normal, info.smallest_subnormal, 0.5, 1, 1.5, 2, 2.5, 3, info.eps]
    values += [1 + info.eps, 1 - info.eps / 2, 1 / info.eps, 2 / info.eps]
    return np.array([np.nan, *values, *(-v for v in values)]).astype(NP_DTYPE[dtype])


def spread(dtype: str, size: int, seed: int = 0) -> Points:
    """Points of every size: random bits, uniform numbers at several scales, neighbours of 1, edges."""
    rng = np.random.default_rng(seed)
    kind = NP_DTYPE[dtype]
    parts = [bit_patterns(dtype, size, seed)]
    for scale in (1e-3, 0.1, 0.5, 1, 3, 10, 30, 100, 700, 1e4, 1e6):
        parts.append(rng.uniform(-scale, scale, size // 4).astype(kind))
    near = 1 + rng.uniform(-1, 1, size // 4) * 2.0 ** -rng.uniform(0, 40, size // 4)
    return np.concatenate([*parts, near.astype(kind), edges(dtype)])
