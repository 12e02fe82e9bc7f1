"""Products that structure makes cheaper: with an identity, of transposes, of sums that share a factor.

    transpose(dot(x, y))         dot(y, x): derivatives make these, and the result is then written in the order it is
                                 read in
    dot(x, eye)                  x, its contracted axis moved: forward derivatives push an identity through the program
    dot(x, y) over few elements  written out as a sum, which fuses with what follows
    dot(f(x), v), a vector       reduce_sum(f(x) * v), in whose loop f is computed
    dot(x, y) without free axes  reduce_sum(x * y): a sum, which is scheduled and fused like any other
    dot(x, a) + dot(x, b)        dot(x, a + b) where a and b are smaller than the products: one pass over x instead of
                                 two

As in any algebra on floats, the last may change the last bits, and 0 * inf is taken for 0 in products with an identity.
A factor stays at the operand that it is at, as in attention on half-precision numbers, where dot(x, y) overflows and
dot(c * x, y) does not.
Products with diagonals, and with identities of other shapes, are in `terms.py`.

Measured: `einsum("ij,ij->j")` of 4096 x 1024, a product without free axes, went down columns on one thread for 31 ms,
as a sum it takes 0.26. A vector times a stack of 9 shifted arrays of 100,000 took 160 us, as a sum in whose loop they
are read 19; times the squares of 1000 x 1000 216, now 42.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, size_of
from pullback.compiler.graph.structure.chains import in_other_order
from pullback.compiler.graph.structure.extremes import extreme_by_keys
from pullback.compiler.graph.structure.facts import identity
from pullback.compiler.graph.structure.few_results import few_results
from pullback.compiler.graph.structure.long_windows import long_windows
from pullback.compiler.graph.structure.terms import SUMMED, contract, matrices, total
from pullback.compiler.graph.structure.thin_convolutions import thin_convolution
from pullback.compiler.graph.structure.turned import looks_up_columns
from pullback.compiler.graph.structure.window_sums import window_sums
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pullback.core.lowering import Elementwise, Pointwise
from pullback.core.primitive import registry
from pullback.lax.movement.gather import GatherScatterMode
from pullback.lax.records.compiler_made import compiler_primitive, rule_of
from pullback.util.dtypes import issubdtype

APART, ROWS = 5, 16  # contracted elements above, and rows from which none that lie apart are gathered
LEAST_PRODUCT = 1 << 12  # elements of a product from which it is worth to look at what it meets
PASSING = 256  # equations that a matrix is computed by, for a vector alone
FEWER = 8  # times as small an array is worth storing for the sake of a larger one
# A matrix that only lies otherwise is read where it lies.
_COPIES = ("transpose", "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "rev", "copy")


def write_out_products(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the products written out that are no matter of matrices, and what else is other work in the
    end; after the rules that look for products and for extremes.
    """
    rules: dict[str, tuple[Rule, ...]] = {
        "dot_general": (in_other_order, _few, few_results, _elementwise),
        "conv_general_dilated": (thin_convolution, window_sums),
        "reduce_max": (extreme_by_keys,),
        "reduce_min": (extreme_by_keys,),
        "reduce_window_max": (long_windows,),
        "reduce_window_min": (long_windows,),
    }
    return Rewriter(closed, rules, "write_out").run(write_out_products)


def _inner_at(ctx: Any, index: Any) -> Any:
    b = ctx.b
    (cx, cy), (bx, by) = ctx.params["dimension_numbers"]
    free_x, free_y = (_free(a.ndim, c, batch) for a, c, batch in zip(ctx.in_avals, (cx, cy), (bx, by)))
    at_x, at_y = dict(zip(bx, index)), dict(zip(by, index))
    at_x |= dict(zip(free_x, index[len(bx) :]))
    at_y |= dict(zip(free_y, index[len(bx) + len(free_x) :]))
    total = None
    for place in np.ndindex(*(ctx.in_avals[0].shape[a] for a in cx)):
        here_x = at_x | {a: b.index(int(i)) for a, i in zip(cx, place)}
        here_y = at_y | {a: b.index(int(i)) for a, i in zip(cy, place)}
        term = b.term(
            ctx.operand(0, [here_x[a] for a in range(ctx.in_avals[0].ndim)]),
            ctx.operand(1, [here_y[a] for a in range(ctx.in_avals[1].ndim)]),
        )
        total = term if total is None else b.add(total, term)
    return total


inner_product_p = compiler_primitive(
    "inner_product",
    doc="dot_general over few contracted elements.",
    abstract_eval=rule_of("dot_general", "abstract_eval"),
    reference=rule_of("dot_general", "reference"),
    lower=Pointwise(_inner_at, cost=2 * SUMMED, operations=lambda eqn: registry["dot_general"].lower.operations(eqn)),
    traits={"inside"},
)


term_p = compiler_primitive(
    "term",
    doc="x * y, elementwise, as a term of a contraction: the sum that it goes into takes it in unrounded.",
    abstract_eval=rule_of("mul", "abstract_eval"),
    reference=np.multiply,
    lower=Elementwise(lambda b, x, y: b.term(x, y)),
)


def _few(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product over few elements, of types that need no wider accumulator, with more results than a call is worth."""
    x, y = eqn.invars
    (cx, _), (_bx, _) = eqn.params["dimension_numbers"]
    count = size_of([x.aval.shape[a] for a in cx])
    out = eqn.outvars[0].aval
    if not count or out.dtype.kind not in "iufc" or (out.dtype.kind == "f" and out.dtype.itemsize < 4):
        return None
    if x.aval.dtype != out.dtype or y.aval.dtype != out.dtype:
        return _mask_by_vector(r, eqn, count)
    if out.dtype.kind in "iuf" and (found := _matrix_by_vector(r, eqn, count)) is not None:
        return found
    if count > SUMMED or (count > APART and _lies_apart(r, eqn) and _is_stored(r, eqn)) or _meets_a_vector(r, eqn):
        return None
    return r.emit(inner_product_p, x, y, **eqn.params)


def _meets_a_vector(r: Rewriter, eqn: JaxprEqn) -> bool:
    """Whether all that a product of matrices is for is one with a vector, which then goes first (`in_other_order`)."""
    product = eqn.outvars[0]
    readers = r.readers.get(product, ())
    if len(readers) != 1 or product.aval.ndim != 2 or readers[0].primitive.name != "dot_general":
        return False
    return product.aval.size > LEAST_PRODUCT and any(x.aval.ndim == 1 for x in readers[0].invars)


def _lies_apart(r: Rewriter, eqn: JaxprEqn) -> bool:
    """Whether neighbouring results of a product of matrices are made of elements that are no neighbours: lanes would
    gather each of them, the kernel packs them once.
    """
    contract, batch = eqn.params["dimension_numbers"]
    free = [_free(x.aval.ndim, *those) for x, *those in zip(eqn.invars, contract, batch)]
    if any(size_of([x.aval.shape[a] for a in axes]) < ROWS for x, axes in zip(eqn.invars, free)):
        return False
    atom, axis = eqn.invars[1], free[1][-1]
    while (made := r.definition(atom, "transpose")) is not None:
        atom, axis = made.invars[0], made.params["permutation"][axis]
    return axis != atom.aval.ndim - 1


def _is_stored(r: Rewriter, eqn: JaxprEqn) -> bool:
    """Whether a result will be in memory as it is, or a product reads what is made of it element by element. What else
    is made of it so is computed where the terms are, with threads that go through rows.
    """
    waiting, seen = [eqn.outvars[0]], 0
    if waiting[0] in r.closed.jaxpr.outvars:
        return True
    while waiting:
        var = waiting.pop()
        for reader in r.readers.get(var, ()):
            out, seen = reader.outvars[0], seen + 1
            if reader.primitive.name == "dot_general" or seen > PASSING:
                return True
            if out.aval.size >= var.aval.size and isinstance(reader.primitive.lower, Elementwise):
                waiting.append(out)
    return False


def _matrix_by_vector(r: Rewriter, eqn: JaxprEqn, count: int, alone: bool = False) -> Any:
    """A product of a vector with a matrix that is computed for it alone: a sum, in whose loop the matrix is computed.

    An inner product reads the matrix in several places, so that it would be stored. Of a batch each matrix meets its
    own vector. `alone`: the matrix was converted for this product. Few terms are summed as in products that are called.
    """
    contract, batch = eqn.params["dimension_numbers"]
    for side in (0, 1):
        matrix, vector = eqn.invars[side], eqn.invars[1 - side]
        made = r.definition(matrix)
        if made is None or (not alone and r.uses[matrix] != 1) or vector.aval.ndim != len(contract[0]) + len(batch[0]):
            continue
        if matrix.aval.ndim == vector.aval.ndim or not count:
            continue
        if not _is_made_in_passing(r, made) and not _is_of_rows(made, contract[side]):
            continue
        axes, met = contract[side], (*contract[side], *batch[side])
        order = sorted(range(len(met)), key=met.__getitem__)
        turned = tuple((*contract[1 - side], *batch[1 - side])[k] for k in order)
        if turned != tuple(range(len(turned))):
            vector = r.emit("transpose", vector, permutation=turned)
        wide = r.broadcast(vector, matrix.aval.shape, sorted(met))
        times = term_p if count <= SUMMED and wide.aval.dtype.kind == "f" else "mul"
        total = r.emit("reduce_sum", r.emit(times, matrix, wide), axes=tuple(sorted(axes)), out_sharding=None)
        left = [a for a in range(matrix.aval.ndim) if a not in axes]
        wanted = [*batch[side], *_free(matrix.aval.ndim, axes, batch[side])]
        return total if wanted == left else r.emit("transpose", total, permutation=tuple(map(left.index, wanted)))
    return None


def _mask_by_vector(r: Rewriter, eqn: JaxprEqn, count: int) -> Any:
    """A product of a vector with a matrix of bools, which are numbers where they are multiplied.

    Measured (Zen 4): `(t >= t[:, None]) @ v` of 2,000 took 376 us, now 126; bools in memory 259 and 116.
    """
    out = eqn.outvars[0].aval
    kinds = [x.aval.dtype.kind for x in eqn.invars]
    if sorted(kinds) != sorted(("b", out.dtype.kind)) or out.dtype.kind not in "iuf":
        return None
    matrix = eqn.invars[kinds.index("b")]
    if eqn.invars[1 - kinds.index("b")].aval.ndim >= matrix.aval.ndim:
        return None
    operands = [r.convert(x, out.dtype) for x in eqn.invars]
    return _matrix_by_vector(r, eqn.replace(invars=operands), count, alone=True)


def _is_made_in_passing(r: Rewriter, made: JaxprEqn) -> bool:
    """Whether an array is computed element by element of arrays that are in memory anyway, or are much smaller."""
    size, waiting, seen, computed = made.outvars[0].aval.size, [made], 0, False
    while waiting:
        each = waiting.pop()
        lower, seen = each.primitive.lower, seen + 1
        passing = isinstance(lower, Elementwise) or (isinstance(lower, Pointwise) and (lower.is_view or lower.moves))
        if seen > PASSING or not passing:
            return False
        computed |= each.primitive.name not in _COPIES
        for atom in each.invars:
            of = r.definition(atom)
            if of is not None and atom.aval.size * FEWER > size and r.uses[atom] <= 1:
                waiting.append(of)
    return computed


def _is_of_rows(made: JaxprEqn, axes: Any) -> bool:
    """Whether an array has parts of another, of more than one element, along given axes."""
    if made.primitive.name != "gather" or made.params["dimension_numbers"].operand_batching_dims:
        return False
    inside = GatherScatterMode.from_any(made.params["mode"]) is not GatherScatterMode.FILL_OR_DROP
    n, last = made.params["dimension_numbers"], made.invars[0].aval.ndim - 1
    lies_last = last not in n.collapsed_slice_dims and bool(n.offset_dims) and max(n.offset_dims) in axes
    return inside and lies_last and set(axes) <= set(n.offset_dims)


def _elementwise(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product in which each element of x meets one of y is a sum of an elementwise product."""
    (x, y), (summed, batch) = eqn.invars, eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    wide = np.dtype(np.float32) if issubdtype(out.dtype, np.floating) and out.dtype.itemsize < 4 else out.dtype
    axes = tuple(summed[0])
    if not axes or isinstance(x, Literal) or isinstance(y, Literal):
        return None
    if any(_free(operand.aval.ndim, *those) for operand, *those in zip(eqn.invars, summed, batch)):
        return None
    lies = dict(zip((*summed[0], *batch[0]), (*summed[1], *batch[1])))  # in the order of x, the axes of y
    order = tuple(lies[a] for a in range(x.aval.ndim))
    if order != tuple(range(x.aval.ndim)):
        y = r.emit("transpose", y, permutation=order)
    x, y = (r.convert(operand, wide) for operand in (x, y))
    if wide == np.bool_:
        total = r.emit("reduce_or", r.emit("and", x, y), axes=axes)
    else:
        total = r.convert(r.emit("reduce_sum", r.emit("mul", x, y), axes=axes), out.dtype)
    kept = sorted(batch[0])
    if kept != list(batch[0]):
        total = r.emit("transpose", total, permutation=tuple(map(kept.index, batch[0])))
    return total


def _scaled(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product that sums nothing, of which one operand has batch axes only, multiplies element by element.

    Measured: gradients of `einsum("ij,i,j->ij", x, 1 / norms, w)`, 512 x 768, 915 us, now 170.
    """
    (contract, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    free = [_free(x.aval.ndim, (), those) for x, those in zip(eqn.invars, batch)]
    if contract[0] or (free[0] and free[1]) or not out.shape or out.dtype.kind not in "iufcV":
        return None
    return written_out(r, eqn)


def written_out(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product that sums nothing as one of elements."""
    (_, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    factors, first = [], len(batch[0])
    for x, those in zip(eqn.invars, batch):
        rest = _free(x.aval.ndim, (), those)
        order = (*those, *rest)
        if order != tuple(range(x.aval.ndim)):
            x = r.emit("transpose", x, permutation=order)
        x = r.convert(x, out.dtype, out.weak_type)
        dims = (*range(len(those)), *range(first, first + len(rest)))
        factors.append(x if x.aval.shape == out.shape else r.broadcast(x, out.shape, dims))
        first += len(rest)
    return r.emit("mul", *factors)


def _free(ndim: int, contract: Any, batch: Any) -> list[int]:
    return [a for a in range(ndim) if a not in contract and a not in batch]


def _transpose(r: Rewriter, eqn: JaxprEqn) -> Any:
    """transpose(dot(x, y)) = dot(y, x) where it swaps the free axes of x and y."""
    dot = r.definition(eqn.invars[0], "dot_general")
    if dot is None:
        return None
    x, y = dot.invars
    (cx, cy), (bx, by) = dot.params["dimension_numbers"]
    nb, nx, ny = len(bx), len(_free(x.aval.ndim, cx, bx)), len(_free(y.aval.ndim, cy, by))
    swapped = (*range(nb), *range(nb + nx, nb + nx + ny), *range(nb, nb + nx))
    if tuple(eqn.params["permutation"]) != swapped or not nx or not ny:
        return None
    readers = r.readers.get(eqn.outvars[0], ())
    if readers and all(map(looks_up_columns, readers)):
        return None  # rows of the product are looked up as they lie
    return r.emit("dot_general", y, x, **dot.params | {"dimension_numbers": ((cy, cx), (by, bx))})


def _untransposed(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product of a transposed operand is one of the operand, with other axes contracted."""
    operands, contracts, batches = list(eqn.invars), *map(list, eqn.params["dimension_numbers"])
    found = False
    for side in (0, 1):
        turned = r.definition(operands[side], "transpose")
        if turned is None:
            continue
        permutation = turned.params["permutation"]
        free = [permutation[a] for a in _free(len(permutation), contracts[side], batches[side])]
        if free != sorted(free):
            continue
        found = True
        operands[side] = turned.invars[0]
        contracts[side] = tuple(permutation[a] for a in contracts[side])
        batches[side] = tuple(permutation[a] for a in batches[side])
    if not found:
        return None
    return r.emit("dot_general", *operands, **eqn.params | {"dimension_numbers": (tuple(contracts), tuple(batches))})


def _without_unit_axes(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Free and batch axes of size 1 are put in afterwards, contracted ones are dropped."""
    operands = list(eqn.invars)
    contracts, batches = map(list, eqn.params["dimension_numbers"])
    shapes = [a.aval.shape for a in operands]
    if not any(1 in shape for shape in shapes):
        return None
    keep_pairs = [k for k, a in enumerate(contracts[0]) if shapes[0][a] != 1]
    keep_batch = [k for k, a in enumerate(batches[0]) if shapes[0][a] != 1]
    for side in (0, 1):
        kept = [a for a, n in enumerate(shapes[side]) if n != 1]
        place = {a: k for k, a in enumerate(kept)}
        operands[side] = r.reshape(operands[side], [shapes[side][a] for a in kept])
        contracts[side] = tuple(place[contracts[side][k]] for k in keep_pairs)
        batches[side] = tuple(place[batches[side][k]] for k in keep_batch)
    product = r.emit("dot_general", *operands, **eqn.params | {"dimension_numbers": (tuple(contracts), tuple(batches))})
    return r.reshape(product, eqn.outvars[0].aval.shape)


def _by_number(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product with an array of rank 0 is elementwise."""
    out = eqn.outvars[0].aval
    for number, other in (eqn.invars, reversed(eqn.invars)):
        if not number.aval.shape and number.aval.dtype == other.aval.dtype == out.dtype:
            return r.emit("and" if out.dtype == np.bool_ else "mul", other, number)
    return None


def _dot(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Products with an identity are movement."""
    x, y = eqn.invars
    (cx, cy), (bx, _by) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    if bx or len(cx) != 1:
        return None
    for one, other, axis, one_is_left in ((x, y, cy[0], True), (y, x, cx[0], False)):
        turned = r.definition(one, "rev")  # which turns around what the identity takes, along either axis
        plain = one if turned is None else turned.invars[0]
        if one.aval.ndim != 2 or not identity(r, plain) or other.aval.dtype != out.dtype:
            continue
        rest = [a for a in range(other.aval.ndim) if a != axis]
        order = (axis, *rest) if one_is_left else (*rest, axis)
        moved = r.emit("transpose", other, permutation=order)
        if turned is None or len(turned.params["dimensions"]) == 2:
            return moved
        return r.emit("rev", moved, dimensions=(0 if one_is_left else len(rest),))
    return None


def _add(r: Rewriter, eqn: JaxprEqn) -> Any:
    """dot(x, a) + dot(x, b) = dot(x, a + b), and the same with the common factor on the right."""
    left, right = (r.definition(a, "dot_general") for a in eqn.invars)
    if left is None or right is None or left is right:
        return None
    size = eqn.outvars[0].aval.size
    for side in (0, 1):
        a, b = left.invars[1 - side], right.invars[1 - side]
        if left.invars[side] is not right.invars[side] or isinstance(left.invars[side], Literal):
            continue
        if max(a.aval.size, b.aval.size) * 2 > size or _numbers(left, side) is None:
            continue
        mine, their = _numbers(left, side), _numbers(right, side)
        if (
            mine is None
            or their is None
            or mine[:2] != their[:2]
            or left.params["preferred_element_type"] != right.params["preferred_element_type"]
        ):
            continue
        b = _aligned(r, b, their, mine)
        if b is None or b.aval.shape != a.aval.shape or b.aval.dtype != a.aval.dtype:
            continue
        total = r.emit("add", a, b)
        operands = [total, total]
        operands[side] = left.invars[side]
        return r.emit("dot_general", *operands, **left.params)
    return None


def _numbers(eqn: JaxprEqn, side: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """(contracted axes of the common factor, its batch axes, contracted axes of the other); None with batches."""
    contract, batch = eqn.params["dimension_numbers"]
    if batch[0]:
        return None
    return tuple(contract[side]), tuple(batch[side]), tuple(contract[1 - side])


def _aligned(r: Rewriter, b: Any, their: Any, mine: Any) -> Any:
    """`b` transposed so that its contracted axes lie where those of the other summand do; None if that is not clear."""
    if their[2] == mine[2]:
        return b
    if b.aval.ndim == 2 and len(mine[2]) == 1:
        return r.emit("transpose", b, permutation=(1, 0))
    return None


STRUCTURE_RULES: dict[str, tuple[Rule, ...]] = {
    "transpose": (_transpose,),
    "dot_general": (_by_number, _without_unit_axes, _scaled, _dot, contract, _untransposed),
    "reduce_sum": (total, matrices),
    "add": (_add,),
}
