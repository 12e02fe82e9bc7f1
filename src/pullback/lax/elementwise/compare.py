"""Comparisons, selection by a condition, finiteness."""

from __future__ import annotations

from typing import Any

from pullback.core.lowering import Elementwise
from pullback.core.types import in_state_of
from pullback.lax.elementwise.arithmetic import op
from pullback.lax.elementwise.bits import convert
from pullback.lax.records.families import *
from pullback.lax.records.families import FLOAT_EDGES, bool_result
from pullback.lax.records.operands import KEYS
from pullback.lax.records.rules import batch_nary, spread
from pullback.transforms.batching import BatchTracer

__all__ = [
    "eq",
    "eq_p",
    "eq_to_p",
    "ge",
    "ge_p",
    "gt",
    "gt_p",
    "is_finite",
    "is_finite_p",
    "le",
    "le_p",
    "le_to_p",
    "lt",
    "lt_p",
    "lt_to_p",
    "ne",
    "ne_p",
    "select",
    "select_n",
    "select_n_p",
]


def _comparison(name, doc, accepts, reference, traits=()):
    return nary(
        name,
        2,
        doc=doc,
        accepts=accepts,
        reference=reference,
        jvp=ZERO,
        lower=op(name),
        result=bool_result,
        traits=traits,
        samples=Samples(edges=FLOAT_EDGES, ulp=0),
    )


eq_p = _comparison("eq", "x == y, elementwise.", ANY + KEYS, np.equal, ("commutative",))
ne_p = _comparison("ne", "x != y, elementwise.", ANY + KEYS, np.not_equal, ("commutative",))
lt_p = _comparison("lt", "x < y, elementwise.", REAL + BOOL, np.less)
le_p = _comparison("le", "x <= y, elementwise.", REAL + BOOL, np.less_equal)
gt_p = _comparison("gt", "x > y, elementwise.", REAL + BOOL, np.greater)
ge_p = _comparison("ge", "x >= y, elementwise.", REAL + BOOL, np.greater_equal)

_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def total_order_key(x: np.ndarray) -> np.ndarray:
    """Integers that are ordered as the floats x are totally: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    if x.dtype.kind in "biu":
        return x
    bits = np.asarray(x).view(_SIGNED[x.dtype.itemsize])
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _total(name, doc, compare):
    def reference(x, y):
        return compare(total_order_key(x), total_order_key(y))

    return nary(
        name,
        2,
        doc=doc,
        accepts=REAL + BOOL,
        reference=reference,
        jvp=ZERO,
        result=bool_result,
        lower=op({"eq_to": "eq_total", "lt_to": "lt_total", "le_to": "le_total"}[name]),
        samples=Samples(edges=FLOAT_EDGES, ulp=0, dtypes=("float32", "float64", "int32")),
    )


eq_to_p = _total("eq_to", "x == y in the total order of floats.", np.equal)
lt_to_p = _total("lt_to", "x < y in the total order of floats: -NaN < -inf < -0 < 0 < inf < NaN.", np.less)
le_to_p = _total("le_to", "x <= y in the total order of floats.", np.less_equal)

is_finite_p = unary(
    "is_finite",
    doc="Whether x is neither infinite nor NaN, elementwise.",
    accepts=FLOAT,
    reference=np.isfinite,
    jvp=ZERO,
    lower=op("is_finite"),
    result=bool_result,
    samples=Samples(edges=FLOAT_EDGES, ulp=0),
)


# ------------------------------------------------------------------------------------------------------------ select_n


def _select_shape(which, *cases):
    if not cases:
        raise TypeError("select must have at least one case")
    check_dtypes("select", *cases)
    if which.dtype != np.bool_ and which.dtype != np.int32:
        raise TypeError(f"select `which` must be boolean or int32 type, got {which.dtype}.")
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have > 2 cases, got {len(cases)}.")
    shape = ()
    for aval in (which, *cases):
        if aval.shape and aval.shape != shape:
            if shape:
                raise TypeError(
                    f"select: `which` of shape {which.shape} does not choose among cases of shapes "
                    f"{[c.shape for c in cases]}; it must be a scalar, or of the one shape of all cases"
                )
            shape = aval.shape
    return ShapedArray(shape, cases[0].dtype, all(c.weak_type for c in cases))


def _select_reference(which, *cases):
    if len(cases) == 1:
        return np.broadcast_to(cases[0], np.broadcast_shapes(np.shape(which), np.shape(cases[0])))
    out = np.where(which if which.dtype == np.bool_ else which >= 1, cases[1], cases[0])
    for k, case in enumerate(cases[2:], 2):
        out = np.where(which >= k, case, out)
    return out


def _select_jvp(primals, tangents):
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(is_zero(t) for t in tangents[1:]):
        return out, tangent_zero(out)
    moving = next(t for t in tangents[1:] if not is_zero(t))
    dots = [in_state_of(constant(out, 0), moving) if is_zero(t) else t for t in tangents[1:]]
    return out, spread(select_n_p.bind(which, *dots), out.shape)


def _select_transpose(out_bar, which, *cases):
    if is_zero(out_bar):
        return [None, *[tangent_zero(c) if is_linear(c) else None for c in cases]]
    zero = in_state_of(constant(out_bar, 0), out_bar)
    bars = [None]
    for k, case in enumerate(cases):
        if not is_linear(case):
            bars.append(None)
            continue
        routed = select_n_p.bind(which, *[out_bar if j == k else zero for j in range(len(cases))])
        bars.append(unbroadcast(routed, case.aval))
    return bars


def _select_lower(b, which, *cases):
    out = cases[0]
    if which.dtype == "bool":
        return b.select(which, cases[1], cases[0]) if len(cases) == 2 else out
    for k, case in enumerate(cases[1:], 1):
        out = b.select(b.ge(which, k), case, out)
    return out


def _select_cases(rng):
    x, y = rng.normal(size=(2, 3, 4)).astype(np.float32)
    which = rng.integers(0, 3, (3, 4)).astype(np.int32)
    return [Case((x > 0, x, y), {}), Case((np.array(True), x, y), {}), Case((which, x, y, x + y), {})]


select_n_p = Primitive(
    "select_n",
    doc="cases[which], elementwise.",
    abstract_eval=_select_shape,
    reference=_select_reference,
    jvp=_select_jvp,
    transpose=_select_transpose,
    lower=Elementwise(_select_lower),
    traits={"elementwise", "selection", "inside"},
    samples=Samples(cases=_select_cases),
)
select_n_p.batch = batch_nary(select_n_p.bind, same_shapes=True)

eq = binary_function(eq_p)
ne = binary_function(ne_p)
lt = binary_function(lt_p)
le = binary_function(le_p)
gt = binary_function(gt_p)
ge = binary_function(ge_p)
is_finite = unary_function(is_finite_p)


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], elementwise; `which` is bool or integer, a scalar or of the shape of the cases, which are alike.

    Raises TypeError for differing shapes or dtypes, ValueError without cases.
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    which, *arrays = as_arrays("select_n", which, *cases)
    if which.dtype != np.int32 and dtypes.issubdtype(which.dtype, np.integer):
        which = convert(which, np.dtype(np.int32))
    shape = arrays[0].shape
    for case in arrays:
        if case.shape != shape:
            raise TypeError(f"select cases must have the same shapes, got [{', '.join(str(c.shape) for c in arrays)}].")
    if which.shape and which.shape != shape and not _meets_scalars(which, arrays):
        raise TypeError(
            f"select: `which` of shape {which.shape} does not choose among cases of shape {shape}; it must be a scalar,"
            " or of that shape"
        )
    return select_n_p.bind(which, *arrays)


def _meets_scalars(which: Any, cases: Any) -> bool:
    """Whether a mapped `which` chooses of scalars that are not mapped: JAX's rule for maps broadcasts them to any shape
    of it (jaxmarl's environments are written so).
    """
    return isinstance(which, BatchTracer) and not any([c.shape or isinstance(c, BatchTracer) for c in cases])


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred else on_false, elementwise; raises as `select_n`."""
    return select_n(pred, on_false, on_true)
