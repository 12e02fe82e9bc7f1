"""Products with matrices that have few diagonals are sums over windows, or convolutions.

    dot(where((i >= j) & (i - j < k), 1, 0), x)          =>    sums over windows of k, zeros before x
    dot(eye(n, k=1) - 2 * eye(n) + eye(n, k=-1), x)      =>    padded x, shifted, times 1, -2, 1
    dot(diag(a) + diag(b, 1) + diag(c, -1), x)           =>    a * x + b * x shifted up + c * x shifted down
    sum(where(abs(i - j) < k, x, 0), 1)                  =>    sums over windows

The elements of such a matrix are computed of the distance from its diagonal alone: of comparisons and differences of
its indices. They are known for each diagonal then, at a cost of one row. As in `terms.py`, what is zero by structure
stays zero: a NaN or an infinity outside of the windows is not met.

Measured (Zen 4): a moving average of 25 of 2,000 numbers by its matrix 276 us, now 2.0; second differences of as many
by three identities 420, now 0.5. A matrix of 600 x 600 of three diagonals that are given, times a vector: 20, now 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.facts import counts_from
from pullback.compiler.graph.structure.one_hot import without_axis
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise
from pullback.lax.products.conv_shapes import ConvDimensionNumbers
from pullback.util.record import NamedTuple

LEAST_SIZE = 16  # rows or columns: products with smaller matrices are as quick
SHIFTED = 8  # diagonals that are shifted copies, weighted and added
SHARE = 8  # other diagonals are one in so many, at most, of those of the matrix
MAX_DIAGONALS = 1 << 16  # diagonals of a matrix: each operation on them takes a moment
MAX_EQUATIONS = 600  # equations that the matrix is computed by
MAX_CONSTANT = 1 << 22  # elements of a constant that is looked at


class _Diagonals(NamedTuple):
    """What is known of a matrix: an element in each diagonal, from the last of the first row on; or a number."""

    values: np.ndarray
    slope: tuple[int, int] | None  # of whole numbers, how they grow with the row and with the column
    bound: int = 0  # of these, the largest there may be

    @property
    def known(self) -> bool:
        """Whether elements of one diagonal are equal."""
        return self.slope is None or sum(self.slope) == 0


def _product(r: Rewriter, eqn: JaxprEqn) -> Any:
    (contract, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    if batch[0] or len(contract[0]) != 1 or out.dtype.kind not in "iufc" or out.dtype.itemsize < 4:
        return None
    for side in (0, 1):
        matrix, x = eqn.invars[side], eqn.invars[1 - side]
        if matrix.aval.ndim != 2 or not x.aval.size or {x.aval.dtype, matrix.aval.dtype} != {out.dtype}:
            continue
        (along,) = contract[1 - side]
        total = _banded(r, matrix, contract[side][0], x, along, eqn.params)
        if total is None:
            continue
        rest = [a for a in range(x.aval.ndim) if a != along]
        order = (*rest, along) if side else (along, *rest)
        return total if order == tuple(range(len(order))) else r.emit("transpose", total, permutation=order)
    return None


def _banded(r: Rewriter, matrix: Any, axis: int, x: Any, along: int, params: dict[str, Any]) -> Any:
    """The product of a matrix, of which `axis` is contracted, with x, whose axis `along` then is that of the results.

    Diagonals may be given by a vector; of a sum of matrices each is multiplied by itself, but those that are no bands
    once, together.
    """
    count = matrix.aval.shape[1 - axis]
    weights = _weights(r, matrix, axis)
    if weights is not None:
        return _windows(r, x, along, count, *weights)
    plain = r.notes.setdefault(
        "no bands", set()
    )  # matrices without bands in them: chains of sums are not gone down again
    made = None if matrix in plain else r.definition(matrix, "select_n", "add", "sub", "neg", "transpose")
    if made is None or r.uses[matrix] > 1 or any(each.aval.ndim != 2 for each in made.invars):
        plain.add(matrix)
        return None
    name, operands = made.primitive.name, made.invars
    if name == "transpose":
        return _banded(r, operands[0], 1 - axis, x, along, params)
    if name == "neg":
        total = _banded(r, operands[0], axis, x, along, params)
        return None if total is None else r.emit("neg", total)
    if name == "select_n":
        return _given(r, made, axis, x, along)
    parts = [_banded(r, each, axis, x, along, params) for each in operands]
    if all(part is None for part in parts):
        if plain.issuperset(operands):
            plain.add(matrix)
        return None
    for k, part in enumerate(parts):
        if part is None:
            numbers = ((axis,), (along,)), ((), ())
            part = r.emit("dot_general", operands[k], x, **params | {"dimension_numbers": numbers})
            order = (*range(1, along + 1), 0, *range(along + 1, x.aval.ndim))
            parts[k] = r.emit("transpose", part, permutation=order) if along else part
    return r.emit(name, *parts)


def _given(r: Rewriter, chosen: JaxprEqn, axis: int, x: Any, along: int) -> Any:
    """The product of a matrix whose diagonals are those of a vector, of one element in each row or column."""
    mask, *branches = chosen.invars
    if len(branches) != 2 or mask.aval.shape != branches[0].aval.shape:
        return None
    for on in (0, 1):
        if not r.is_scalar(branches[1 - on], 0):
            continue
        for kept in (axis, 1 - axis):
            vector = without_axis(r, branches[on], 1 - kept)
            weights = None if vector is None else _weights(r, mask, axis, on)
            if weights is None:
                continue
            first, values = weights
            if len(values) > SHIFTED:
                return None
            if kept == axis:
                x = r.emit("mul", x, r.broadcast(vector, x.aval.shape, (along,)))
            total = _windows(r, x, along, mask.aval.shape[1 - axis], first, values.astype(x.aval.dtype))
            if total is None or kept == axis:
                return total
            return r.emit("mul", total, r.broadcast(vector, total.aval.shape, (along,)))
    return None


def _masked(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Sums of the elements of a vector that a matrix of conditions chooses for each row, or column."""
    x, axes = eqn.invars[0], eqn.params["axes"]
    chosen = r.definition(x, "select_n")
    if chosen is None or len(chosen.invars) != 3 or x.aval.ndim != 2 or len(axes) != 1 or not x.aval.size:
        return None
    if x.aval.dtype.kind not in "iufc" or x.aval.dtype.itemsize < 4 or chosen.invars[0].aval.shape != x.aval.shape:
        return None
    (axis,) = axes
    mask, *branches = chosen.invars
    for on in (0, 1):
        if not r.is_scalar(branches[1 - on], 0):
            continue
        vector = without_axis(r, branches[on], 1 - axis)
        weights = None if vector is None else _weights(r, mask, axis, on)
        if weights is not None:
            first, values = weights
            return _windows(r, vector, 0, x.aval.shape[1 - axis], first, values.astype(x.aval.dtype))
    return None


def _weights(r: Rewriter, matrix: Any, axis: int, on: int | None = None) -> tuple[int, np.ndarray] | None:
    """(p, w): row k of a matrix, of which `axis` is that of the columns, is zero but for w, from column k + p on.

    Of conditions, 1 where they are `on`.
    """
    rows, columns = matrix.aval.shape[1 - axis], matrix.aval.shape[axis]
    if min(rows, columns) < LEAST_SIZE or rows + columns > MAX_DIAGONALS:
        return None
    memo = r.notes.setdefault("diagonals", {})
    if matrix not in memo:
        memo[matrix] = _diagonals(r, matrix)
    found = memo[matrix]
    if found is None:
        return None
    # By row minus column, from what is above the diagonal on; here by column minus row.
    values = found if axis == 0 else found[::-1]
    if on is not None:
        values = values == bool(on)
    (places,) = np.nonzero(values)
    if not len(places):
        return 0, values[:0]
    first, last = int(places[0]), int(places[-1])
    return first - (rows - 1), values[first : last + 1]


def _windows(r: Rewriter, x: Any, along: int, count: int, first: int, weights: np.ndarray) -> Any:
    """The sums of weights[j] * x[k + first + j] over j, for each k < count along an axis, with zeros around x."""
    size, width, shape = x.aval.shape[along], len(weights), list(x.aval.shape)
    shape[along] = count
    if not width:
        return r.full(x.aval.update(shape=tuple(shape)), 0)
    same, nonzero = len(set(weights.tolist())) == 1, np.flatnonzero(weights)
    shifted = len(nonzero) <= SHIFTED
    if not shifted and not same and (width * SHARE > size or np.dtype(x.aval.dtype).kind != "f"):
        return None
    if same:
        x = _times(r, x, weights[0])
        if width > SHIFTED and first + count <= 1:
            return _running(r, x, along, count, first + width - 1)
        if width > SHIFTED and first + width >= size:
            turned = r.emit("rev", x, dimensions=(along,))
            total = _running(r, turned, along, count, size - first - count)
            return r.emit("rev", total, dimensions=(along,))
    edges = [(0, 0, 0)] * x.aval.ndim
    edges[along] = (-first, count - 1 + first + width - size, 0)
    if any(edges[along]):
        x = r.emit("pad", x, r.full(x.aval.update(shape=()), 0), padding_config=tuple(edges))
    if same and width > 1:
        ones, window = (1,) * len(shape), [1] * len(shape)
        window[along] = width
        return r.emit(
            "reduce_window_sum",
            x,
            window_dimensions=tuple(window),
            window_strides=ones,
            padding=((0, 0),) * len(shape),
            base_dilation=ones,
            window_dilation=ones,
        )
    if shifted:
        total = None
        for k in nonzero.tolist():
            low, high = [0] * len(shape), list(shape)
            low[along], high[along] = k, k + count
            part = x
            if x.aval.shape[along] != count:
                part = r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
            term = part if same else _times(r, part, weights[k])
            total = term if total is None else r.emit("add", total, term)
        return total
    rest = [a for a in range(len(shape)) if a != along]
    order = (*rest, along)
    if order != tuple(range(len(order))):
        x = r.emit("transpose", x, permutation=order)
    outer = [shape[a] for a in rest]
    rows = r.reshape(x, (int(np.prod(outer)), 1, x.aval.shape[-1]))
    lies = ConvDimensionNumbers(*((0, 1, 2),) * 3)
    kernel = r.const(weights.reshape(1, 1, width), rows.aval.update(shape=(1, 1, width)))
    total = r.emit(
        "conv_general_dilated",
        rows,
        kernel,
        window_strides=(1,),
        padding=((0, 0),),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=lies,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
        preferred_element_type=None,
    )
    total = r.reshape(total, (*outer, count))
    if order != tuple(range(len(order))):
        total = r.emit("transpose", total, permutation=tuple(order.index(a) for a in range(len(order))))
    return total


def _running(r: Rewriter, x: Any, along: int, count: int, last: int) -> Any:
    """For each k < count along an axis, the sum of all elements up to x[k + last]."""
    ahead = max(last, 0)
    edges = [(0, 0, 0)] * x.aval.ndim
    edges[along] = (ahead - last, count + last - x.aval.shape[along], 0)
    if any(edges[along]):
        x = r.emit("pad", x, r.full(x.aval.update(shape=()), 0), padding_config=tuple(edges))
    total = r.emit("cumsum", x, axis=along, reverse=False)
    low, high = [0] * x.aval.ndim, list(x.aval.shape)
    low[along] = ahead
    return r.emit("slice", total, start_indices=tuple(low), limit_indices=tuple(high), strides=None) if ahead else total


def _times(r: Rewriter, x: Any, weight: Any) -> Any:
    return x if weight == 1 else r.emit("mul", x, r.full(x.aval, weight))


# ---------------------------------------------------------------------------------------- what is known of a matrix


def _diagonals(r: Rewriter, matrix: Any) -> np.ndarray | None:
    """The element of each diagonal, by the row minus the column; None where they are not known to be equal."""
    if matrix in r.consts:
        return _listed(np.asarray(r.consts[matrix])) if matrix.aval.size <= MAX_CONSTANT else None
    rows, columns = matrix.aval.shape
    unknown = r.notes.setdefault("no diagonals", set())
    if not _find(r, matrix, found := r.notes.setdefault(f"diagonals of {rows} x {columns}", {}), unknown):
        unknown.add(matrix)
        return None
    last = found[matrix, False]
    return np.broadcast_to(last.values, (rows + columns - 1,)) if last.known else None


def _find(r: Rewriter, matrix: Any, found: dict[Any, _Diagonals], unknown: set[Any]) -> bool:
    """Whether the elements of a matrix are computed of its indices: then they are in `found`, as what they are made of.

    What is made of `unknown` matrices is not looked through again: long chains of them would take the square of their
    length.
    """
    waiting, steps = [(matrix, False)], 0
    while waiting:
        each = waiting[-1]
        if each in found:
            waiting.pop()
            continue
        steps += 1
        atom, turned = each
        if steps > MAX_EQUATIONS or atom in unknown:
            return False
        value = _plain(r, atom, turned, matrix.aval.shape)
        if value is None:
            eqn = r.definition(atom)
            if eqn is None or len(eqn.outvars) != 1 or atom.aval.ndim != 2:
                return False
            name = eqn.primitive.name
            if name == "transpose":
                operands = [(eqn.invars[0], not turned)]
            elif name == "broadcast_in_dim" and eqn.params["broadcast_dimensions"] == (0, 1):
                operands = [(eqn.invars[0], turned)]
            elif isinstance(eqn.primitive.lower, Elementwise) and "elementwise" in eqn.primitive.traits:
                operands = [(x, turned) for x in eqn.invars]
            else:
                return False
            missing = [x for x in operands if x not in found]
            if missing:
                waiting += missing
                continue
            given = [found[x] for x in operands]
            value = given[0] if name in ("transpose", "broadcast_in_dim") else _computed(eqn, given)
            if value is None:
                return False
        found[each] = value
        waiting.pop()
    return True


def _plain(r: Rewriter, atom: Any, turned: bool, shape: tuple[int, int]) -> _Diagonals | None:
    """A number, or the index along an axis plus one."""
    dtype = atom.aval.dtype
    if not isinstance(dtype, np.dtype):
        return None
    number = np.asarray(atom.val)[()] if type(atom) is Literal else r.scalar(atom)
    if number is not None:
        whole = dtype.kind in "iu"
        return _Diagonals(np.asarray(number, dtype), (0, 0) if whole else None, abs(int(number)) if whole else 0)
    counted = counts_from(r, atom) if atom.aval.ndim == 2 else None
    if counted is None:
        return None
    axis, start = counted[0] ^ turned, counted[1]
    distance = np.arange(1 - shape[1], shape[0])
    values = (np.maximum(-distance if axis else distance, 0) + start).astype(dtype)
    slope = (1, 0) if axis == 0 else (0, 1)
    return _Diagonals(values, slope, abs(start) + atom.aval.shape[counted[0]])


def _computed(eqn: JaxprEqn, given: Sequence[_Diagonals]) -> _Diagonals | None:
    """What an elementwise operation makes of operands; None if that differs along diagonals."""
    primitive, dtype = eqn.primitive, eqn.outvars[0].aval.dtype
    name = primitive.name
    if not primitive.has_rule("reference") or not isinstance(dtype, np.dtype):
        return None
    slope: tuple[int, int] | None = None
    bound = sum(each.bound for each in given)
    slopes = [each.slope for each in given]
    exact = all(s is not None for s in slopes) and bound <= _exact(dtype if name in _LINEAR else given[0].values.dtype)
    if exact and name in _LINEAR:
        signs = _LINEAR[name]
        down, along = (sum(sign * s[k] for sign, s in zip(signs, slopes) if s) for k in (0, 1))
        slope = down, along
    elif exact and name in _COMPARED:
        one, other = slopes
        if one is None or other is None or one[0] - other[0] + one[1] - other[1]:
            return None
    elif not all(each.known for each in given):
        return None
    with np.errstate(all="ignore"):
        operands = np.broadcast_arrays(*(each.values for each in given)) if len(given) > 1 else [given[0].values]
        values = np.asarray(primitive.reference(*operands, **eqn.params))
    return _Diagonals(values, slope, bound) if values.dtype == dtype else None


_LINEAR = {"add": (1, 1), "sub": (1, -1), "neg": (-1,), "convert_element_type": (1,)}
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


def _exact(dtype: np.dtype) -> int:
    """Up to where all whole numbers and their sums are exact, of either sign."""
    if dtype.kind == "i":
        return int(np.iinfo(dtype).max)
    return {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}.get(dtype.itemsize, 0) if dtype.kind == "f" else 0


def _listed(matrix: np.ndarray) -> np.ndarray | None:
    """The diagonals of a matrix that is listed, if each has equal elements."""
    first = np.concatenate([matrix[0, ::-1], matrix[1:, 0]])
    if np.count_nonzero(first) * 2 > len(first) or not np.array_equal(matrix[1:, 1:], matrix[:-1, :-1]):
        return None
    return first


BAND_RULES: dict[str, tuple[Rule, ...]] = {"dot_general": (_product,), "reduce_sum": (_masked,)}
