"""Algebra on single equations and their neighbours, as a table of rules by primitive.

Rules keep results bit for bit, but for x + 0 = x, which turns -0 + 0 into -0, and for products with masks (`_masked`).
They make scalars stay scalars (a product with a broadcast number is a product with the number), so that they live in
registers, and merge movement with movement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.bounds import never_below
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise
from pullback.core.primitive import registry
from pullback.core.types import CONSTRAINTS
from pullback.util import dtypes

FEW_SUMMED = 16  # elements of a sum whose order is not asked for

# Elementwise.


def _to_scalars(r: Rewriter, eqn: JaxprEqn) -> Any:
    """f(x, broadcast(c)) = f(x, c); f(broadcast(a), broadcast(b)) = broadcast(f(a, b))."""
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return None
    new = []
    all_splats, changes = True, False
    for atom in eqn.invars:
        number = r.splat(atom) if atom.aval.shape else atom
        if number is None:
            all_splats = False
        elif number is not atom:
            changes = True
        new.append(atom if number is None else number)
    if all_splats:
        return r.broadcast(r.emit(eqn.primitive, *new, **eqn.params), shape, ())
    if not changes or eqn.primitive.name in (
        "convert_element_type",
        "select_n",
        "clamp",
    ):
        return None
    return r.emit(eqn.primitive, *new, **eqn.params)


def _same_type(eqn: JaxprEqn, atom: Any) -> Any:
    out = eqn.outvars[0].aval
    return atom if atom.aval.shape == out.shape and atom.aval.dtype == out.dtype else None


def _grown(r: Rewriter, eqn: JaxprEqn, atom: Any) -> Any:
    """`atom` as the result of `eqn`: a rank-0 one is broadcast."""
    out = eqn.outvars[0].aval
    if atom.aval.dtype != out.dtype:
        return None
    if atom.aval.shape == out.shape:
        return atom
    return r.broadcast(atom, out.shape, ()) if not atom.aval.shape else None


def _add(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 0):
        return _grown(r, eqn, x)
    if r.is_scalar(x, 0):
        return _grown(r, eqn, y)
    for a, b in ((x, y), (y, x)):
        negated = r.definition(b, "neg")
        if negated is not None:
            return r.emit("sub", a, negated.invars[0])
    return None


def _sub(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 0):
        return _grown(r, eqn, x)
    if r.is_scalar(x, 0) and dtypes.kind_of(y.aval.dtype) in "iu":
        return _grown(r, eqn, r.emit("neg", y)) if y.aval.shape == eqn.outvars[0].aval.shape else None
    negated = r.definition(y, "neg")
    return None if negated is None else r.emit("add", x, negated.invars[0])


def _mul(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    out = eqn.outvars[0].aval
    for a, b in ((x, y), (y, x)):
        value = r.scalar(b)
        if value is None:
            continue
        if value == 1:
            return _grown(r, eqn, a)
        if value == 0 and out.dtype.kind in "iub":
            return r.full(out, 0)
        if value == -1 and a.aval.shape == out.shape and out.dtype.kind in "ifc":
            return r.emit("neg", a)
    left, right = r.definition(x, "neg"), r.definition(y, "neg")
    if left is not None and right is not None:
        return r.emit("mul", left.invars[0], right.invars[0])
    return None


def _of_one_bit(r: Rewriter, eqn: JaxprEqn) -> Any:
    """(x & 1) * c = -(x & 1) & c: a step of a bitwise CRC waits for three cycles in place of four or more."""
    x, y = eqn.invars
    for a, b in ((x, y), (y, x)):
        value, inner = r.scalar(b), r.definition(a, "and")
        if value is None or inner is None or a.aval.dtype.kind != "u" or int(value) & (int(value) - 1) == 0:
            continue  # a power of two is a shift
        if any(r.is_scalar(operand, 1) for operand in inner.invars):
            return r.emit("and", r.emit("neg", a), b)
    return None


def _masked(r: Rewriter, eqn: JaxprEqn) -> Any:
    """x * convert(mask) = where(mask, x, 0), for a mask of the product's shape: nan and inf are gone where it is False.

    So it is in JAX's compiled programs, on which masked losses rely; evaluated one by one both give nan.
    """
    out = eqn.outvars[0].aval
    if out.dtype.kind not in "fc":
        return None
    for x, y in (eqn.invars, reversed(eqn.invars)):
        made = r.definition(y, "convert_element_type")
        mask = made.invars[0] if made is not None else None
        if mask is None or mask.aval.dtype != np.bool_ or mask.aval.shape != out.shape:
            continue
        number = r.scalar(x)
        if number is None or not np.isfinite(number):  # a number times a mask is read as a matrix of structure
            return r.emit("select_n", mask, r.full(out, 0), _grown(r, eqn, x))
    return None


def _div(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    if r.is_scalar(y, 1):
        return _grown(r, eqn, x)
    value = r.scalar(y)
    if value is not None and eqn.outvars[0].aval.dtype.kind == "f" and np.isfinite(value) and value != 0:
        mantissa, exponent = math.frexp(float(value))
        if abs(mantissa) == 0.5 and abs(exponent) < 100:  # a power of two: the reciprocal is exact
            reciprocal = Literal(np.asarray(1.0 / float(value)).astype(y.aval.dtype)[()], y.aval.update(shape=()))
            return _grown(r, eqn, r.emit("mul", x, reciprocal))
    return None


def _neg(r: Rewriter, eqn: JaxprEqn) -> Any:
    inner = r.definition(eqn.invars[0], "neg")
    if inner is not None:
        return inner.invars[0]
    inner = r.definition(eqn.invars[0], "sub")
    if inner is not None and eqn.outvars[0].aval.dtype.kind == "i":
        return r.emit("sub", *reversed(inner.invars))
    return None


def _not_a_number(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Whether a number is that of which it is the negative or the absolute value: all are NaN or none."""
    x, y = eqn.invars
    if x is not y or isinstance(x, Literal) or dtypes.kind_of(x.aval.dtype) != "f":
        return None
    made = r.definition(x, "neg", "abs")  # of a complex one it would be of another type
    if made is None or made.invars[0].aval.dtype != x.aval.dtype:
        return None
    return r.emit(eqn.primitive.name, made.invars[0], made.invars[0])


def _idempotent(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars
    return x if x is y else None


def _integer_pow(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, y = eqn.invars[0], eqn.params["y"]
    if y == 1:
        return x
    if y == 2:
        return r.emit("square", x) if dtypes.kind_of(x.aval.dtype) == "c" else r.emit("mul", x, x)
    return None


def _square(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    # The square of a complex number is finite where the terms of the product overflow.
    return None if dtypes.kind_of(x.aval.dtype) == "c" else r.emit("mul", x, x)


def _abs(r: Rewriter, eqn: JaxprEqn) -> Any:
    negated = r.definition(eqn.invars[0], "neg")
    if negated is not None:
        return r.emit("abs", negated.invars[0])
    inner = r.definition(eqn.invars[0], "abs")
    return None if inner is None or dtypes.kind_of(inner.invars[0].aval.dtype) == "c" else eqn.invars[0]


def _root(r: Rewriter, eqn: JaxprEqn) -> Any:
    """sqrt(x * x) = |x|, also where x * x overflows or is zero; so is the norm of one element."""
    x = eqn.invars[0]
    if dtypes.kind_of(x.aval.dtype) != "f" or (len(eqn.invars) == 2 and not r.is_scalar(eqn.invars[1], 0.5)):
        return None
    made = r.definition(x)
    if made is not None and made.primitive.name == "reshape" and _plain(made):
        x = made.invars[0]
    product = r.definition(x, "mul")
    if product is None or product.invars[0] is not product.invars[1]:
        return None
    return r.reshape(r.emit("abs", product.invars[0]), eqn.outvars[0].aval.shape)


def _select(r: Rewriter, eqn: JaxprEqn) -> Any:
    which, *cases = eqn.invars
    value = r.scalar(which)
    if value is not None and 0 <= int(value) < len(cases):
        chosen = cases[int(value)]
    elif all(c is cases[0] for c in cases):
        chosen = cases[0]
    else:
        return None
    shape = eqn.outvars[0].aval.shape
    return chosen if chosen.aval.shape == shape else r.broadcast(chosen, shape, ())  # one number for all elements


def _select_where_any(r: Rewriter, eqn: JaxprEqn) -> Any:
    """where(any(m), where(m, new, old), old) = where(m, new, old): in batches of batches loops choose twice."""
    which, *cases = eqn.invars
    if len(cases) != 2:
        return None
    old, inner = cases[0], r.definition(cases[1], "select_n")
    if inner is None or len(inner.invars) != 3 or inner.invars[1] is not old:
        return None
    mask, wide = inner.invars[0], r.definition(which, "broadcast_in_dim")
    found = None if wide is None else r.definition(wide.invars[0], "reduce_or")
    if wide is None or found is None or found.invars[0] is not mask or mask.aval.shape != which.aval.shape:
        return None
    kept = tuple(a for a in range(mask.aval.ndim) if a not in found.params["axes"])
    return cases[1] if tuple(wide.params["broadcast_dimensions"]) == kept else None


def _reduce_again(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A reduction of a reduction is one over the axes of both, where the order does not matter: of sums few elements,
    since those of floats may be rounded otherwise. Axes may be taken apart in between.
    """
    name, between = eqn.primitive.name, r.definition(eqn.invars[0], "reshape")
    inner = r.definition(eqn.invars[0] if between is None else between.invars[0], name)
    if inner is None:
        return None
    x, axes = inner.invars[0], inner.params["axes"]
    if name == "reduce_sum":
        twice = [math.prod(e.invars[0].aval.shape[a] for a in e.params["axes"]) for e in (inner, eqn)]
        if max(twice) > FEW_SUMMED or r.uses[eqn.invars[0]] > 1:
            return None
    left = [a for a in range(x.aval.ndim) if a not in axes]
    if between is not None:
        parts = _taken_apart([x.aval.shape[a] for a in left], between.outvars[0].aval.shape)
        if parts is None:
            return None
        shape: list[int] = []
        places, left = [], []
        for a, n in enumerate(x.aval.shape):
            if a in axes:
                places.append(len(shape))
                shape.append(n)
                continue
            each = parts.pop(0)
            left += range(len(shape), len(shape) + len(each))
            shape += each
        x, axes = r.reshape(x, shape), places
    both = tuple(sorted((*axes, *(left[a] for a in eqn.params["axes"]))))
    return r.emit(eqn.primitive, x, **{**eqn.params, **inner.params, "axes": both})


def _taken_apart(shape: Sequence[int], parts: Sequence[int]) -> list[list[int]] | None:
    """The sizes into which each axis is taken apart by a reshape; None if it does anything else."""
    found: list[list[int]] = []
    rest = list(parts)
    for n in shape:
        each: list[int] = []
        while rest and (not each or math.prod(each) < n):
            each.append(rest.pop(0))
        if math.prod(each) != n or not n:
            return None
        found.append(each)
    if rest and (not found or any(n != 1 for n in rest)):
        return None
    if rest:
        found[-1] += rest
    return found


def _convert(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if x.aval.dtype == out.dtype:
        return x
    inner = r.definition(x, "convert_element_type")
    if inner is not None and _holds(inner.invars[0].aval.dtype, x.aval.dtype):
        source = inner.invars[0]
        if source.aval.dtype == out.dtype:
            return source
        return r.emit("convert_element_type", source, new_dtype=out.dtype, weak_type=out.weak_type)
    return None


def _holds(narrow: np.dtype, wide: np.dtype) -> bool:
    """Whether every value of `narrow` is one of `wide` of the same kind."""
    if narrow.kind == "b":
        return wide.kind in "iuf"
    if narrow.kind == wide.kind and narrow.kind in "iufc":
        return narrow.itemsize <= wide.itemsize
    return narrow.kind == "u" and wide.kind == "i" and narrow.itemsize < wide.itemsize


def _add_any(r: Rewriter, eqn: JaxprEqn) -> Any:
    return r.emit("add", *eqn.invars) if eqn.outvars[0].aval.dtype.kind in "iufc" else None


def _identity(r: Rewriter, eqn: JaxprEqn) -> Any:
    return _same_type(eqn, eqn.invars[0])


# Movement.


def _broadcast(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, shape, dims = eqn.invars[0], eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if x.aval.shape == tuple(shape) and tuple(dims) == tuple(range(len(shape))):
        return x
    if x.aval.ndim and x.aval.size == eqn.outvars[0].aval.size:
        return r.reshape(x, shape)
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None:
        return r.broadcast(inner.invars[0], shape, [dims[d] for d in inner.params["broadcast_dimensions"]])
    inner = r.definition(x, "reshape", "squeeze")
    if inner is not None and _plain(inner):
        kept = _matching(inner.invars[0].aval.shape, x.aval.shape)
        if kept is not None:
            return r.broadcast(inner.invars[0], shape, [dims[d] for d in kept])
    return None


def _matching(small: Sequence[int], big: Sequence[int]) -> list[int] | None:
    """The dimensions of `big` that those of `small` are, where `big` has only sizes 1 more; None otherwise."""
    found: list[int] = []
    position = 0
    for n in small:
        while position < len(big) and big[position] != n and big[position] == 1:
            position += 1
        if position == len(big) or big[position] != n:
            return None
        found.append(position)
        position += 1
    return found if all(n == 1 for n in big[position:]) else None


def _plain(eqn: JaxprEqn) -> bool:
    return eqn.params.get("dimensions") is None or eqn.primitive.name == "squeeze"


def _reshape(r: Rewriter, eqn: JaxprEqn) -> Any:
    if not _plain(eqn):
        return None
    x, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    if x.aval.shape == shape:
        return x
    inner = r.definition(x, "reshape", "squeeze", "expand_dims")
    if inner is not None and _plain(inner):
        return r.reshape(inner.invars[0], shape)
    converted = r.definition(x, "convert_element_type")
    inner = None if converted is None else r.definition(converted.invars[0], "reshape")
    if converted is not None and inner is not None and _plain(inner):  # with nothing left between both reshapes
        return r.emit("convert_element_type", r.reshape(inner.invars[0], shape), **converted.params)
    splat = r.splat(x) if x.aval.shape else None
    if splat is not None and shape:
        return r.broadcast(splat, shape, ())
    return None


def _squeeze(r: Rewriter, eqn: JaxprEqn) -> Any:
    return r.reshape(eqn.invars[0], eqn.outvars[0].aval.shape)


def _transpose(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, permutation = eqn.invars[0], eqn.params["permutation"]
    shape = x.aval.shape
    if tuple(permutation) == tuple(range(len(permutation))):
        return x
    real = [a for a in permutation if shape[a] != 1]
    if real == sorted(real):  # only axes of size 1 move
        return r.reshape(x, eqn.outvars[0].aval.shape)
    inner = r.definition(x, "transpose")
    if inner is not None:
        return r.emit(
            "transpose", inner.invars[0], permutation=tuple(inner.params["permutation"][a] for a in permutation)
        )
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None:
        place = {a: d for d, a in enumerate(permutation)}
        dims = [place[d] for d in inner.params["broadcast_dimensions"]]
        if dims == sorted(dims):
            return r.broadcast(inner.invars[0], eqn.outvars[0].aval.shape, dims)
    return None


def _slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return x
    splat = r.splat(x)
    return None if splat is None else r.broadcast(splat, eqn.outvars[0].aval.shape, ())


def _rev(r: Rewriter, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    if all(x.aval.shape[d] == 1 for d in eqn.params["dimensions"]) or r.splat(x) is not None:
        return x
    return None


def _split(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axis = eqn.invars[0], eqn.params["axis"]
    parts, start = [], 0
    for size in eqn.params["sizes"]:
        low = [0] * x.aval.ndim
        high = list(x.aval.shape)
        low[axis], high[axis] = start, start + size
        start += size
        parts.append(r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None))
    return parts


def _unstack(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axis = eqn.invars[0], eqn.params["axis"]
    parts = []
    for k, out in enumerate(eqn.outvars):
        low = [0] * x.aval.ndim
        high = list(x.aval.shape)
        low[axis], high[axis] = k, k + 1
        parts.append(
            r.reshape(
                r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None), out.aval.shape
            )
        )
    return parts


def _concatenate(r: Rewriter, eqn: JaxprEqn) -> Any:
    parts = [a for a in eqn.invars if a.aval.size or not eqn.outvars[0].aval.size]
    if len(parts) == 1:
        return parts[0]
    if len(parts) < len(eqn.invars):
        return r.emit("concatenate", *parts, **eqn.params)
    return None


def _pad(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, value = eqn.invars
    if all(tuple(c) == (0, 0, 0) for c in eqn.params["padding_config"]):
        return x
    splat = r.splat(x)
    if x.aval.size == 0 or (splat is not None and _equal(splat, value)):
        return r.broadcast(value, eqn.outvars[0].aval.shape, ())
    return None


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if not (isinstance(a, Literal) and isinstance(b, Literal)):
        return False
    return np.asarray(a.val).tobytes() == np.asarray(b.val).tobytes()


def _dynamic_slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, *starts = eqn.invars
    if x.aval.shape == eqn.outvars[0].aval.shape:
        return x
    values = [r.scalar(s) for s in starts]
    if any(v is None for v in values):
        return None
    sizes = eqn.outvars[0].aval.shape
    low = [min(max(int(v), 0), n - m) for v, n, m in zip(values, x.aval.shape, sizes)]
    return r.emit(
        "slice", x, start_indices=tuple(low), limit_indices=tuple(s + m for s, m in zip(low, sizes)), strides=None
    )


def _dynamic_update_slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, update = eqn.invars[:2]
    return update if x.aval.shape == update.aval.shape else None


# Reductions.


def _reduce_sum(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axes, out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if not axes or all(x.aval.shape[a] == 1 for a in axes):
        return r.reshape(x, out.shape)
    inner = r.definition(x, "broadcast_in_dim")
    if inner is not None and out.dtype.kind in "iuf":
        dims = inner.params["broadcast_dimensions"]
        source = inner.invars[0]
        repeated = [a for a in axes if a not in dims or source.aval.shape[dims.index(a)] == 1]
        count = math.prod(x.aval.shape[a] for a in repeated)
        exact = (
            out.dtype.kind in "iu" or count <= 2 ** np.finfo(np.float16 if out.dtype.itemsize == 2 else out.dtype).nmant
        )
        if repeated and exact and count:
            shape = [n for a, n in enumerate(x.aval.shape) if a not in repeated]
            kept = [a for a in range(x.aval.ndim) if a not in repeated]
            ones = [d for d, a in enumerate(dims) if a in repeated]
            if ones:
                source = r.reshape(source, [n for d, n in enumerate(source.aval.shape) if d not in ones])
                dims = tuple(a for a in dims if a not in repeated)
            part = r.broadcast(source, shape, [kept.index(a) for a in dims])
            factor = Literal(np.asarray(count).astype(out.dtype)[()], out.update(shape=()))
            rest = [kept.index(a) for a in axes if a not in repeated]
            total = r.emit("reduce_sum", part, axes=tuple(rest)) if rest else part
            return r.emit("mul", total, factor)
    inner = r.definition(x, "neg")
    return None if inner is None else r.emit("neg", r.emit("reduce_sum", inner.invars[0], axes=axes))


def _reduce_extremum(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axes, out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if all(x.aval.shape[a] == 1 for a in axes):
        return r.reshape(x, out.shape)
    splat = r.splat(x)
    if splat is not None and x.aval.size:
        return r.broadcast(splat, out.shape, ()) if out.shape else splat
    return None


def _reduce_one(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product, and the like, of one element is that."""
    x = eqn.invars[0]
    if any(x.aval.shape[a] != 1 for a in eqn.params["axes"]):
        return None
    return r.reshape(x, eqn.outvars[0].aval.shape)


def _first_place(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The first of equal elements has the extreme value, also where that is nan."""
    x, (axis,), out = eqn.invars[0], eqn.params["axes"], eqn.outvars[0].aval
    if x.aval.shape[axis] == 1 or (r.splat(x) is not None and x.aval.shape[axis]):
        return r.full(out, 0)
    return None


def _along_one(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A cumulative sum, and the like, along an axis of one element."""
    return _same_type(eqn, eqn.invars[0]) if eqn.invars[0].aval.shape[eqn.params["axis"]] == 1 else None


def _sort(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What has one element in a row is in order."""
    return list(eqn.invars) if eqn.invars[0].aval.shape[eqn.params["dimension"]] == 1 else None


_RULES: dict[str, tuple[Callable[..., Any], ...]] = {
    "add": (_add,),
    "add_any": (_add_any,),
    "sub": (_sub,),
    "mul": (_mul, _of_one_bit, _masked),
    "div": (_div,),
    "neg": (_neg,),
    "eq": (_not_a_number,),
    "ne": (_not_a_number,),
    "lt": (never_below,),
    "max": (_idempotent,),
    "min": (_idempotent,),
    "and": (_idempotent,),
    "or": (_idempotent,),
    "integer_pow": (_integer_pow,),
    "square": (_square,),
    "sqrt": (_root,),
    "abs": (_abs,),
    "pow": (_root,),
    "select_n": (_select, _select_where_any),
    "convert_element_type": (_convert,),
    "copy": (_identity,),
    "stop_gradient": (_identity,),
    "name": (_identity,),
    "copy_p": (_identity,),
    **dict.fromkeys(CONSTRAINTS, (_identity,)),
    "broadcast_in_dim": (_broadcast,),
    "reshape": (_reshape,),
    "squeeze": (_squeeze,),
    "expand_dims": (_squeeze,),
    "transpose": (_transpose,),
    "slice": (_slice,),
    "rev": (_rev,),
    "split": (_split,),
    "unstack": (_unstack,),
    "concatenate": (_concatenate,),
    "pad": (_pad,),
    "dynamic_slice": (_dynamic_slice,),
    "dynamic_update_slice": (_dynamic_update_slice,),
    "reduce_sum": (_reduce_sum, _reduce_again),
    "reduce_max": (_reduce_extremum, _reduce_again),
    "reduce_min": (_reduce_extremum, _reduce_again),
    "reduce_or": (_reduce_one, _reduce_again),
    "reduce_and": (_reduce_one, _reduce_again),
    "reduce_xor": (_reduce_one,),
    "reduce_prod": (_reduce_one,),
    "argmax": (_first_place,),
    "argmin": (_first_place,),
    "cumsum": (_along_one,),
    "cumprod": (_along_one,),
    "cummax": (_along_one,),
    "cummin": (_along_one,),
    "cumlogsumexp": (_along_one,),
    "sort": (_sort,),
}

_complete: dict[str, tuple[Rule, ...]] = {}


def simplification_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules, with the general one for elementwise primitives added to each of those that exist."""
    if len(_complete) < len(registry):
        for name, primitive in registry.items():
            rules = _RULES.get(name, ())
            if "elementwise" in primitive.traits and isinstance(primitive.lower, Elementwise):
                rules = (*rules, _to_scalars)
            _complete[name] = rules
    return _complete
