"""Families of primitives: what the members of a family share, so that a member's record is a handful of lines.

    unary(name, ...)      out[i] = f(x[i])
    nary(name, n, ...)    out[i] = f(x[i], y[i], ...); an operand is a scalar (rank 0) or has axes of the result's
                          sizes or of size 1
    reduction(name, ...)  out[i] = fold of x over params['axes']
    movement(name, ...)   every result element is an operand element: linear, a view

Files of primitives begin with `from pullback.lax.records.families import *`: what records and their rules are written
with (the checks of operands are `_operands`, the helpers of derivatives and batching `_rules`).
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import ZERO, NoRule, Primitive, ShapedArray, UndefinedPrimal, Zero, typeof
from pullback.core.lowering import Elementwise, Pointwise, Reduction
from pullback.lax.records.operands import (
    ANY,
    BITS,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INT,
    NUMERIC,
    PYTHON_SCALARS,
    REAL,
    SIGNED,
    UINT,
    as_array,
    as_arrays,
    broadcast_two,
    canonical_axis,
    check_dtypes,
    check_kind,
    constant,
    dtype_name,
)
from pullback.lax.records.rules import (
    LINEAR,
    NOT_LINEAR,
    add_tangents,
    aval_of,
    batch_front,
    batch_nary,
    batch_size,
    batch_unary,
    instantiate,
    is_linear,
    is_zero,
    lax,
    move_batch_axis,
    spread,
    tangent_zero,
    unbroadcast,
)
from pullback.util import dtypes
from pullback.util.record import frozen_record, record
from pullback.util.tracebacks import api_boundary, shorten

__all__ = [
    "BOOL",
    "INT",
    "UINT",
    "FLOAT",
    "COMPLEX",
    "ANY",
    "NUMERIC",
    "SIGNED",
    "REAL",
    "INEXACT",
    "BITS",
    "LINEAR",
    "Samples",
    "Case",
    "lax",
    "ZERO",
    "NoRule",
    "NOT_LINEAR",
    "Primitive",
    "ShapedArray",
    "Zero",
    "UndefinedPrimal",
    "typeof",
    "unary",
    "nary",
    "reduction",
    "movement",
    "unary_function",
    "binary_function",
    "as_array",
    "as_arrays",
    "check_dtypes",
    "is_zero",
    "instantiate",
    "add_tangents",
    "aval_of",
    "constant",
    "unbroadcast",
    "canonical_axis",
    "tangent_zero",
    "move_batch_axis",
    "batch_front",
    "batch_size",
    "is_linear",
    "computed_wide",
    "dtypes",
    "np",
]


@record
class Case:
    """One call of a primitive for the tests: operands as NumPy arrays and parameters."""

    operands: tuple[Any, ...]
    params: dict[str, Any]
    tolerance: float = 1e-5
    derivatives: bool = True


@record
class Samples:
    """Where the tests try a primitive.

    `low`, `high`: range of the operands, one number or one per operand. `edges`: special values (all combinations are
    tried). `ulp`: allowed error of compiled code against the reference. `dtypes`: restrict to these names.
    `derivatives`:
    whether both derivatives exist in all operands. `cases(rng)`: complete calls, for primitives with parameters or
    shapes of their own.
    """

    low: float | tuple[float, ...] = -3.0
    high: float | tuple[float, ...] = 3.0
    edges: tuple[Any, ...] = ()
    ulp: float = 2.0
    dtypes: tuple[str, ...] | None = None
    derivatives: bool = True
    cases: Callable[[np.random.Generator], Sequence[Case]] | None = None


INF, NAN = float("inf"), float("nan")
FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)


# --------------------------------------------------------------------------------------------------------- elementwise


def computed_wide(function: Callable) -> Callable:
    """The reference of a float function that NumPy has for f32 and f64 only.

    f32 is computed in f64 and rounded once, as vectors of NumPy err by up to 3.5 ulp in f32 (log, asin, tan). Narrower
    types are computed in f32, and c64 (10 ulp in NumPy) in c128.
    """

    def reference(*operands, **params):
        dtype = operands[0].dtype
        if dtype.char in "dD":
            return np.asarray(function(*operands, **params), dtype)
        wide = [x.astype({"f": np.float64, "F": np.complex128}.get(dtype.char, np.float32)) for x in operands]
        return np.asarray(function(*wide, **params)).astype(dtype)

    return reference


def _same_dtype(dtype: Any, **params: Any) -> Any:
    return dtype


def bool_result(_dtype: Any, **params: Any) -> Any:
    """The `result` of comparisons: bool, whatever the operands are."""
    return np.dtype(bool)


def _nary_shape_rule(name, arity, accepts, result, weak):
    kinds = (accepts,) * arity if isinstance(accepts, str) else tuple(accepts)
    same_dtypes = isinstance(accepts, str)
    cache: dict[Any, Any] = {}

    def check(*avals, **params):
        if len(avals) != arity:
            raise TypeError(f"{name} takes {arity} operand(s), got {len(avals)}")
        for i, (aval, kind) in enumerate(zip(avals, kinds)):
            check_kind(name, aval.dtype, kind, i if arity > 1 else None)
        if same_dtypes:
            check_dtypes(name, *avals)
        shape = common_shape(name, avals)
        return ShapedArray(shape, result(avals[0].dtype, **params), weak and all(a.weak_type for a in avals))

    def abstract_eval(*avals, **params):
        if params:
            return check(*avals, **params)
        out = cache.get(avals)
        if out is None:
            out = cache[avals] = check(*avals)
        return out

    return abstract_eval


def common_shape(name: str, operands: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the result: that of the operands that are not scalars, where axes of size 1 broadcast."""
    shape: tuple[int, ...] = ()
    for x in operands:
        if x.shape != shape:
            shape = broadcast_two(name, shape, x.shape)
    return shape


def _unary_jvp(bind, rule):
    if rule is ZERO or isinstance(rule, NoRule):
        return rule

    def jvp(primals, tangents, **params):
        (x,), (x_dot,) = primals, tangents
        out = bind(x, **params)
        if is_zero(x_dot):
            return out, tangent_zero(out)
        if rule is LINEAR:
            return out, bind(x_dot, **params)
        return out, rule(x_dot, out, x, **params)

    return jvp


def _nary_jvp(bind, rules):
    def jvp(primals, tangents, **params):
        out = bind(*primals, **params)
        out_dot = None
        for rule, x_dot in zip(rules, tangents):
            if rule is ZERO or is_zero(x_dot):
                continue
            if isinstance(rule, NoRule):
                raise NotImplementedError(f"Differentiation rule is not there: {rule.reason}")
            out_dot = add_tangents(out_dot, spread(rule(x_dot, out, *primals, **params), out.shape))
        return out, tangent_zero(out) if out_dot is None else out_dot

    return jvp


def _unary_transpose(rule):
    if isinstance(rule, NoRule) or rule is ZERO:
        return rule

    def transpose(x_bar, x, **params):
        if is_zero(x_bar):
            return [tangent_zero(x)]
        return [rule(x_bar, x.aval, **params)]

    return transpose


def unary(
    name: str,
    *,
    doc: str,
    accepts: str,
    reference: Callable,
    jvp: Any,
    lower: Callable,
    transpose: Any = NOT_LINEAR,
    result: Callable = _same_dtype,
    samples: Samples | None = None,
    weak: bool = True,
    cost: int = 1,
    traits: Sequence[str] = (),
) -> Primitive:
    """The record of out[i] = f(x[i]).

    `jvp(x_dot, y, x, **params)`, or LINEAR or ZERO; `transpose(y_bar, x_aval, **params)` for linear ones;
    `lower(b, x, **params)` one loop IR expression; `result(dtype, **params)` the dtype where it is not the operand's.
    """
    p = Primitive(
        name,
        doc=doc,
        reference=reference,
        abstract_eval=_nary_shape_rule(name, 1, accepts, result, weak),
        lower=Elementwise(lower, cost),
        transpose=_unary_transpose(transpose),
        samples=samples,
        traits={"elementwise", *traits} | ({"linear"} if jvp is LINEAR else set()),
    )
    p.jvp = _unary_jvp(p.bind, jvp)
    p.batch = batch_unary(p.bind)
    p.accepts = (accepts,)
    return p


def nary(
    name: str,
    arity: int,
    *,
    doc: str,
    accepts: str | Sequence[str],
    reference: Callable,
    jvp: Any,
    lower: Callable,
    transpose: Any = NOT_LINEAR,
    result: Callable = _same_dtype,
    samples: Samples | None = None,
    weak: bool = True,
    cost: int = 1,
    traits: Sequence[str] = (),
) -> Primitive:
    """The record of out[i] = f(x[i], y[i], ...).

    `accepts`: kinds of all operands, which then have one dtype, or kinds per operand. `jvp`: ZERO, or one rule per
    operand, `rule(x_dot, out, *primals)`, each of which may be ZERO. `transpose(out_bar, *operands)` as in the
    record. An operand is of rank 0, or of the result's rank with axes of its sizes or of size 1.
    """
    p = Primitive(
        name,
        doc=doc,
        reference=reference,
        abstract_eval=_nary_shape_rule(name, arity, accepts, result, weak),
        lower=Elementwise(lower, cost),
        transpose=transpose,
        samples=samples,
        traits={"elementwise", *traits},
    )
    p.jvp = jvp if jvp is ZERO or isinstance(jvp, NoRule) else _nary_jvp(p.bind, tuple(jvp))
    p.batch = batch_nary(p.bind)
    p.accepts = (accepts,) * arity if isinstance(accepts, str) else tuple(accepts)
    return p


class AccuracyMode(enum.Enum):
    """How accurate elementary functions shall be; ours are within 2 units in the last place in either mode."""

    HIGHEST = 1
    DEFAULT = 2


@frozen_record
class Tolerance:
    """Allowed errors of an elementary function; at least one must be given (ValueError), none negative."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self):
        if self.atol == 0 and self.rtol == 0 and self.ulps == 0:
            raise ValueError("Tolerance: one of atol, rtol and ulps must be above 0")
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(
                f"Tolerance: none may be negative, got atol={self.atol}, rtol={self.rtol}, ulps={self.ulps}"
            )


def check_accuracy(name: str, accuracy: Any) -> None:
    """NotImplementedError for what is neither an AccuracyMode nor a Tolerance."""
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        accepted = "a lax.AccuracyMode or a lax.Tolerance"
        raise NotImplementedError(f"Accuracy {accuracy} not supported: {name}: argument 'accuracy' must be {accepted}")


def unary_function(p: Primitive, accuracy: bool = False, name: str | None = None) -> Callable:
    """The public function of a unary primitive. `accuracy` is JAX's argument; ours are as accurate as any
    setting asks.
    """
    name, bind = name or p.name, p.bind

    def with_accuracy(x, *, accuracy=None):
        try:
            if accuracy is not None:
                check_accuracy(name, accuracy)
            return bind(x if hasattr(x, "aval") else as_array(x, name))
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    def plain(x):
        try:
            return bind(x if hasattr(x, "aval") else as_array(x, name))
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    return _named(with_accuracy if accuracy else plain, name, p.doc)


def binary_function(p: Primitive, name: str | None = None, arguments: tuple[str, str] = ("x", "y")) -> Callable:
    """The public function of a binary primitive: scalars broadcast, and dimensions of size 1."""
    name, bind, accepts = name or p.name, p.bind, p.accepts

    def function(x, y):
        try:
            try:
                if x.aval is y.aval:
                    return bind(x, y)
            except AttributeError:
                pass
            return bind(*broadcast_operands(name, x, y, accepts=accepts))
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    if arguments != ("x", "y"):

        @api_boundary
        def function(x1, x2):
            return bind(*broadcast_operands(name, x1, x2, accepts=accepts))

    return _named(function, name, p.doc)


def broadcast_operands(name: str, *operands: Any, same_dtypes: bool = True, accepts: Sequence[str] = ()) -> list[Any]:
    """Array-likes as operands of an n-ary primitive: of one dtype, and of shapes that have a common one.

    Numbers of Python stay what they are, as interpreters of libraries expect it.
    """
    arrays = as_arrays(name, *operands)
    for i, (x, kinds) in enumerate(zip(arrays, accepts)):
        check_kind(name, x.dtype, kinds, i)
    if same_dtypes:
        check_dtypes(name, *arrays)
    common_shape(name, arrays)
    return [given if type(given) in PYTHON_SCALARS else x for given, x in zip(operands, arrays)]


def _named(function: Callable, name: str, doc: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = "pullback.lax"
    return function


# ---------------------------------------------------------------------------------------------------------- reductions


def check_axes(aval: Any, axes: Sequence[int]) -> None:
    """ValueError for duplicate axes and axes that the operand does not have."""
    if len(axes) != len(set(axes)):
        raise ValueError(f"duplicate value in 'axes' of reduction: {tuple(axes)}")
    if not all(0 <= a < aval.ndim for a in axes):
        raise ValueError(f"reduction: {aval.short()} does not have all of the axes {tuple(axes)}")


def shape_without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape with the axes dropped."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def shift_axes(axes: Sequence[int], d: int) -> tuple[int, ...]:
    """Axes of an element as axes of a batched array whose batch axis is `d`."""
    return tuple(a + (a >= d) for a in axes)


def batch_reduction(bind: Callable) -> Callable:
    """The batching rule of one-operand reductions with params['axes']."""

    def batch(args, dims, axes, **params):
        (x,), (d,) = args, dims
        out = bind(x, axes=shift_axes(axes, d), **params)
        return out, d - sum(a < d for a in axes)

    return batch


def reduction(
    name: str,
    *,
    doc: str,
    accepts: str,
    reference: Callable,
    jvp: Any,
    lower: Reduction,
    transpose: Any = NOT_LINEAR,
    check: Callable | None = None,
    samples: Samples | None = None,
    traits: Sequence[str] = (),
) -> Primitive:
    """The record of a fold over params['axes'] that keeps the dtype; `reference(x, axes)`, `jvp(x_dot, out, x,
    axes)`.
    """

    def abstract_eval(aval, *, axes, **params):
        if dtypes.kind_of(aval.dtype) not in accepts:
            if accepts == BITS:
                raise TypeError(f"{name}: the operand must be of booleans or integers, got {dtype_name(aval.dtype)}")
            check_kind(name, aval.dtype, accepts)
        check_axes(aval, axes)
        if check is not None:
            check(aval, axes)
        # Bits say nothing of a Python number: they are strongly typed, as in JAX.
        weak = aval.weak_type and accepts != BITS
        return ShapedArray(shape_without(aval.shape, axes), aval.dtype, weak)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        lower=lower,
        samples=samples,
        transpose=_unary_transpose(transpose),
        traits={"reduction", *traits},
    )
    p.jvp = _unary_jvp(p.bind, jvp)
    p.batch = batch_reduction(p.bind)
    return p


# ------------------------------------------------------------------------------------------------------------ movement


def movement(
    name: str,
    *,
    doc: str,
    shape: Callable,
    reference: Callable,
    transpose: Callable,
    batch: Callable,
    at: Callable | None = None,
    lower: Any = None,
    samples: Samples | None = None,
    is_view: bool = True,
    traits: Sequence[str] = (),
) -> Primitive:
    """The record of a one-operand rearrangement of any dtype.

    `shape(aval, **params) -> shape` checks and raises; `at(ctx, index)` gives the result's element at an index, or
    `lower` is a lowering of another kind; `transpose(x_bar, aval, **params) -> cotangent`.
    """

    def abstract_eval(aval, **params):
        return ShapedArray(tuple(shape(aval, **params)), aval.dtype, aval.weak_type)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        transpose=_unary_transpose(transpose),
        batch=batch,
        lower=lower if at is None else Pointwise(at, is_view=is_view),
        samples=samples,
        traits={"movement", "linear", *traits},
    )
    p.jvp = _unary_jvp(p.bind, LINEAR)
    return p
