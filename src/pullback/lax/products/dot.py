"""Products of arrays: dot_general and what is made of it.

dot_general(x, y, ((cx, cy), (bx, by))): the result has the batch dimensions, then the free ones of x, then those of y.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import ml_dtypes

from pullback.core.asked import asked
from pullback.core.lowering import Nest
from pullback.core.types import place_of_type, type_on_mesh
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.elementwise.bits import convert
from pullback.lax.elementwise.complex import real
from pullback.lax.records.families import *
from pullback.lax.records.sums import product
from pullback.sharding import PartitionSpec
from pullback.sharding._specs import names_of, of_cotangents, state_of
from pullback.util import config
from pullback.util.errors import ShardingTypeError
from pullback.util.record import NamedTuple

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "RaggedDotDimensionNumbers",
    "batch_matmul",
    "dot",
    "dot_general",
    "dot_general_p",
    "scaled_dot",
]

Array = Any
PrecisionLike = Any
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class Precision(enum.Enum):
    """How exactly products are computed; on a CPU always as exactly as the element type allows."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return _PRECISIONS.get(value.lower() if isinstance(value, str) else value)

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


_PRECISIONS: dict[Any, Precision] = {
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    None: Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "tensor_float_32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


class DotAlgorithm(NamedTuple):
    """Element types and decomposition of a product, for machines that offer a choice."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named choices of `DotAlgorithm`."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


def canonical_precision(precision: Any) -> Any:
    """A pair of Precision, or an algorithm; for None what `jax_default_matmul_precision` says, or None.

    Raises ValueError for what is none of them.
    """
    if precision is None:
        precision = config.value_of("jax_default_matmul_precision")
    if precision is None or isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return (precision, precision)
    if isinstance(precision, str):
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
        return (Precision(precision),) * 2
    if (
        isinstance(precision, (tuple, list))
        and len(precision) == 2
        and all(isinstance(p, (str, Precision)) for p in precision)
    ):
        return tuple(Precision(p) for p in precision)
    raise ValueError(
        f"precision={precision!r} is not known; it may be None, 'default', 'high', 'highest', a lax.Precision, two "
        "of them as a tuple, or a DotAlgorithm"
    )


# --------------------------------------------------------------------------------------------------------- dot_general


def _number_bytes(dtype: np.dtype) -> int:
    """Bytes of a number, or of each part of a complex one."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def _product_dtype(a: np.dtype, b: np.dtype) -> np.dtype:
    """The element type of a product without a preferred one: that of both which reaches farther, then has more digits.

    It is one of them, as in JAX, where `jnp`'s promotion finds a third or none: float8_e4m3fn and float8_e5m2.
    """
    return a if a == b else max(a, b, key=_reach)


def _reach(dtype: np.dtype) -> tuple[int, int, int, bool]:
    kind = dtypes.kind_of(dtype)
    if kind in "fc":
        limits = dtypes.finfo(dtype)
        return "biufc".index(kind), int(limits.maxexp), int(limits.nmant), True
    return 0, 0 if kind == "b" else dtypes.iinfo(dtype).bits, 0, kind == "i"


def _dot_shape(x, y, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    (cx, cy), (bx, by) = dimension_numbers
    for side, aval, batch, contract in (("lhs", x, bx, cx), ("rhs", y, by, cy)):
        if not all(0 <= d < aval.ndim for d in (*contract, *batch)):
            raise TypeError(
                f"dot_general: {side} of rank {aval.ndim} does not have all the dimensions that are named, "
                f"{side}_batch {tuple(batch)} and {side}_contracting {tuple(contract)}"
            )
        if len({*contract, *batch}) != len(contract) + len(batch):
            raise TypeError(
                f"dot_general: a dimension of {side} is named twice, in {side}_batch {tuple(batch)} and "
                f"{side}_contracting {tuple(contract)}"
            )
    if len(bx) != len(by):
        raise TypeError(f"dot_general: lhs_batch {tuple(bx)} and rhs_batch {tuple(by)} must be of one length")
    if len(cx) != len(cy):
        raise TypeError(
            f"dot_general: lhs_contracting {tuple(cx)} and rhs_contracting {tuple(cy)} must be of one length"
        )
    for what, dx, dy in (("batch", bx, by), ("contracting", cx, cy)):
        sx, sy = tuple(x.shape[d] for d in dx), tuple(y.shape[d] for d in dy)
        if sx != sy:
            raise TypeError(
                f"dot_general: {what} dimensions must be of the same sizes, got {sx} of lhs and {sy} of rhs"
            )
    if not isinstance(x.dtype, np.dtype) or not isinstance(y.dtype, np.dtype):
        raise TypeError(f"dot_general does not accept dtypes {x.dtype}, {y.dtype}")
    if preferred_element_type is None:
        dtype = _product_dtype(x.dtype, y.dtype)
        weak = x.weak_type and y.weak_type
    else:
        dtype, weak = preferred_element_type, False
        computed = _product_dtype(x.dtype, y.dtype)
        kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
        if kinds[dtypes.kind_of(dtype)] < kinds[dtypes.kind_of(computed)] and not (dtypes.kind_of(computed) == "b"):
            raise TypeError(
                f"dot_general: preferred_element_type={np.dtype(dtype).name} cannot hold products of {x.dtype} and "
                f"{y.dtype}"
            )
        if dtypes.kind_of(computed) in "iuc" and _number_bytes(np.dtype(dtype)) < _number_bytes(computed):
            raise TypeError(
                f"dot_general: preferred_element_type={np.dtype(dtype).name} is narrower than products of {x.dtype} "
                f"and {y.dtype}"
            )
    free_x = [n for d, n in enumerate(x.shape) if d not in cx and d not in bx]
    free_y = [n for d, n in enumerate(y.shape) if d not in cy and d not in by]
    return ShapedArray((*[x.shape[d] for d in bx], *free_x, *free_y), dtype, weak)


class _Roles(NamedTuple):
    """Where the dimensions of both operands go: batch, free, contracted; and their sizes."""

    free_x: tuple[int, ...]
    free_y: tuple[int, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]


def _roles(x_shape, y_shape, dimension_numbers) -> _Roles:
    (cx, cy), (bx, by) = dimension_numbers
    free_x = tuple(d for d in range(len(x_shape)) if d not in cx and d not in bx)
    free_y = tuple(d for d in range(len(y_shape)) if d not in cy and d not in by)
    return _Roles(
        free_x,
        free_y,
        tuple(x_shape[d] for d in bx),
        tuple(x_shape[d] for d in free_x),
        tuple(y_shape[d] for d in free_y),
        tuple(x_shape[d] for d in cx),
    )


def _dot_reference(x, y, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    (cx, cy), (bx, by) = dimension_numbers
    dtype = np.dtype(preferred_element_type) if preferred_element_type is not None else _product_dtype(x.dtype, y.dtype)
    wide = np.dtype(np.float32) if dtypes.kind_of(dtype) == "f" and dtype.itemsize < 4 else dtype
    if dtypes.kind_of(dtype) in "iu" and dtype.kind == "V":  # of 2 and 4 bits, between which NumPy does not convert
        wide = np.dtype(np.int32)
    x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)
    if not bx and x.ndim <= 2 and y.ndim <= 2 and len(cx) == 1:  # the plain products, without a detour
        x, y = x.T if x.ndim == 2 and cx[0] == 0 else x, y.T if y.ndim == 2 and cy[0] == 1 else y
        if x.ndim == y.ndim == 2 and x.shape[0] != 1 and y.shape[1] != 1:
            return np.asarray(np.dot(x, y), dtype)
        rows, columns = math.prod(x.shape[:-1]), math.prod(y.shape[1:])
        out = product(x.reshape(rows, x.shape[-1]), y.reshape(y.shape[0], columns))
        return np.asarray(out.reshape((*x.shape[:-1], *y.shape[1:])), dtype)
    roles = _roles(x.shape, y.shape, dimension_numbers)
    left = np.transpose(x, (*bx, *roles.free_x, *cx)).reshape(
        *roles.batch, math.prod(roles.rows), math.prod(roles.inner)
    )
    right = np.transpose(y, (*by, *cy, *roles.free_y)).reshape(
        *roles.batch, math.prod(roles.inner), math.prod(roles.columns)
    )
    return product(left, right).reshape((*roles.batch, *roles.rows, *roles.columns)).astype(dtype, copy=False)


def _dot_jvp(primals, tangents, **params):
    (x, y), (x_dot, y_dot) = primals, tangents
    out = dot_general_p.bind(x, y, **params)
    out_dot = None
    if not is_zero(x_dot):
        out_dot = dot_general_p.bind(x_dot, y, **params)
    if not is_zero(y_dot):
        out_dot = add_tangents(out_dot, dot_general_p.bind(x, y_dot, **params))
    return out, tangent_zero(out) if out_dot is None else out_dot


def _transpose_lhs(out_bar, x_aval, y, dimension_numbers, precision, preferred_element_type, swap):
    """The cotangent of the left operand: out_bar and y contracted over the free dimensions of y, then put in order."""
    (cx, cy), (bx, by) = dimension_numbers
    free_x = tuple(d for d in range(x_aval.ndim) if d not in cx and d not in bx)
    free_y = tuple(d for d in range(np.ndim(y)) if d not in cy and d not in by)
    nb = len(bx)
    # In out_bar: batch, then the free dimensions of (x, y), or of (y, x) where the operands were swapped.
    start = nb if swap else nb + len(free_x)
    numbers = ((tuple(range(start, start + len(free_y))), free_y), (tuple(range(nb)), by))
    kept = sorted(range(len(cy)), key=lambda k: cy[k])  # contracted dimensions of y come in y's order
    if out_bar.dtype != y.dtype and y.dtype.itemsize == 1 and dtypes.kind_of(y.dtype) == "f":
        y = convert(y, out_bar.dtype)  # which holds all values, and which small floats are not promoted to
    placed = (*bx, *free_x, *[cx[k] for k in kept])  # where each dimension of grad belongs
    with _asked_terms(x_aval, placed):
        grad = dot_general_p.bind(
            out_bar, y, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred_element_type
        )
    permutation = tuple(int(i) for i in np.argsort(placed))
    grad = grad if permutation == tuple(range(grad.ndim)) else lax.transpose_p.bind(grad, permutation=permutation)
    return convert(grad, x_aval.dtype) if grad.dtype != x_aval.dtype else grad


def _asked_terms(aval: Any, order: Sequence[int]) -> Any:
    """Inside, a cotangent of a value that is reduced over axes, with its dimensions in another order, is left to be
    summed over them.
    """
    if not state_of(aval)[1]:
        return _NOTHING
    spec = of_cotangents(aval.placing.spec)
    return asked(spec.update(partitions=[spec[d] for d in order]))


_NOTHING = contextlib.nullcontext()


def _dot_operations(eqn) -> int:
    """A multiplication and an addition for each contracted element."""
    contracted = eqn.params["dimension_numbers"][0][0]
    return 2 * math.prod(eqn.invars[0].aval.shape[d] for d in contracted)


def _dot_transpose(out_bar, x, y, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    if is_linear(x) == is_linear(y):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'dot_general' needs exactly one linear operand"
        )
    if is_zero(out_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, y)]
    (cx, cy), (bx, by) = dimension_numbers
    if is_linear(x):
        return [_transpose_lhs(out_bar, x.aval, y, dimension_numbers, precision, preferred_element_type, False), None]
    return [
        None,
        _transpose_lhs(out_bar, y.aval, x, ((cy, cx), (by, bx)), _swap(precision), preferred_element_type, True),
    ]


def _swap(precision):
    return precision[::-1] if type(precision) is tuple else precision


def _dot_batch(args, dims, dimension_numbers, **params):
    (x, y), (dx, dy) = args, dims
    (cx, cy), (bx, by) = dimension_numbers
    if dx is not None and dy is not None:
        numbers = ((_shift(cx, dx), _shift(cy, dy)), ((dx, *_shift(bx, dx)), (dy, *_shift(by, dy))))
        return dot_general_p.bind(x, y, dimension_numbers=numbers, **params), 0
    # One operand is batched: its batch dimension becomes a free one.
    if dx is not None:
        numbers = ((_shift(cx, dx), cy), (_shift(bx, dx), by))
        place = len(bx) + sum(d not in (*numbers[0][0], *numbers[1][0]) for d in range(dx))
    else:
        numbers = ((cx, _shift(cy, dy)), (bx, _shift(by, dy)))
        place = (
            len(bx) + (x.ndim - len(bx) - len(cx)) + sum(d not in (*numbers[0][1], *numbers[1][1]) for d in range(dy))
        )
    return dot_general_p.bind(x, y, dimension_numbers=numbers, **params), place


def _shift(axes, d):
    return tuple([a + (a >= d) for a in axes])


def _dot_emit(ctx):
    x, y, out = ctx.operand(0), ctx.operand(1), ctx.result(0)
    ctx.dot_general(out, x, y, *ctx.params["dimension_numbers"])


def _dot_cases(rng):
    found = []
    for xs, ys, numbers in [
        ((3,), (3,), (((0,), (0,)), ((), ()))),
        ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
        ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
        ((2, 3), (3,), (((1,), (0,)), ((), ()))),
        ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
        ((2, 3), (4,), (((), ()), ((), ()))),
        ((3, 5, 2), (4, 5, 3), (((0,), (2,)), ((1,), (1,)))),
        ((2, 3, 4), (4, 3, 5), (((1, 2), (1, 0)), ((), ()))),
        ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
        ((40, 30), (30, 50), (((1,), (0,)), ((), ()))),
    ]:
        x, y = rng.normal(size=xs).astype(np.float32), rng.normal(size=ys).astype(np.float32)
        found.append(Case((x, y), {"dimension_numbers": numbers, "precision": None, "preferred_element_type": None}))
    return found


dot_general_p = Primitive(
    "dot_general",
    doc="Sum of products over contracting dimensions, for each batch index.",
    abstract_eval=_dot_shape,
    reference=_dot_reference,
    jvp=_dot_jvp,
    transpose=_dot_transpose,
    batch=_dot_batch,
    lower=Nest(_dot_emit, strided=True, operations=_dot_operations),
    traits={"product", "stacked", "added by plans"},
    samples=Samples(cases=_dot_cases),
)


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over contracting dimensions, for each index along batch dimensions.

    `dimension_numbers` is ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)); the result has the batch
    dimensions, the rest of lhs, then the rest of rhs, in `preferred_element_type` or the promoted dtype. Raises
    TypeError for dimension numbers or sizes that don't fit.
    """
    lhs, rhs = as_arrays("dot_general", lhs, rhs)
    if dimension_numbers is None:  # the last dimension of lhs with the first of rhs
        dimension_numbers = (((max(lhs.ndim - 1, 0),), (0,)), ((), ()))
    try:
        (cx, cy), (bx, by) = dimension_numbers
        numbers = ((_ints(cx), _ints(cy)), (_ints(bx), _ints(by)))
    except (TypeError, ValueError):
        raise TypeError(
            "dot_general: argument 'dimension_numbers' must be ((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)), four sequences of integers, got {dimension_numbers!r}"
        ) from None
    if preferred_element_type is not None:
        preferred_element_type = np.dtype(dtypes.check_user_dtype_supported(preferred_element_type, "dot_general"))
        kinds = [dtypes.kind_of(dtype) for dtype in (lhs.dtype, rhs.dtype, preferred_element_type)]
        computed = max(kinds[:2], key="buifc".index)
        if (computed == "f" and kinds[2] in "iub") or (computed == "c" and kinds[2] in "iuf"):
            # A type that cannot hold the products: their sums are converted to it, of complex ones the real parts.
            # Operands of two types are converted before, as XLA does it, but for those of a byte.
            whole = _product_dtype(lhs.dtype, rhs.dtype)
            if computed == "f" or preferred_element_type.itemsize >= _number_bytes(whole):
                if lhs.dtype != rhs.dtype and max(lhs.dtype.itemsize, rhs.dtype.itemsize) > 1:
                    lhs, rhs = (
                        convert(real(x) if dtypes.kind_of(x.dtype) == "c" else x, preferred_element_type)
                        for x in (lhs, rhs)
                    )
                out = dot_general(lhs, rhs, dimension_numbers, precision, out_sharding=out_sharding)
                return convert(real(out) if dtypes.kind_of(out.dtype) == "c" else out, preferred_element_type)
    check_terms(lhs, rhs, numbers[0], out_sharding)
    return out_placed(
        "dot_general",
        dot_general_p.bind(
            lhs,
            rhs,
            dimension_numbers=numbers,
            precision=canonical_precision(precision),
            preferred_element_type=preferred_element_type,
        ),
        out_sharding,
    )


def check_terms(lhs: Any, rhs: Any, contracting: Any, out_sharding: Any) -> None:
    """ShardingTypeError unless the sums that `out_sharding` leaves are over the axes along which they are cut."""
    spec = getattr(out_sharding, "spec", out_sharding)
    unreduced = spec.unreduced if isinstance(spec, PartitionSpec) else frozenset()
    if not unreduced:
        return
    if terms_of_product(type_on_mesh(lhs), type_on_mesh(rhs), contracting) != unreduced:
        raise ShardingTypeError(
            f"dot_general: out_sharding is unreduced over {sorted(map(str, unreduced))}, which must be the axes that "
            f"cut the contracting dimensions of both operands, got {type_on_mesh(lhs).short()} and "
            f"{type_on_mesh(rhs).short()}"
        )


def terms_of_product(lhs: Any, rhs: Any, contracting: Any) -> frozenset:
    """The axes along which each device has a term of a product of such types: those that cut what it sums of both."""
    cuts = []
    for aval, dims in zip((lhs, rhs), contracting, strict=True):
        spec = place_of_type(aval) or ()
        cuts.append([names_of(spec[d]) if d < len(spec) else () for d in dims])
    return frozenset(itertools.chain(*cuts[0])) if cuts[0] == cuts[1] else frozenset()


def _ints(axes):
    return tuple([operator.index(a) for a in axes])


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Products of vectors and matrices; with `dimension_numbers`, as `dot_general`.

    Raises ValueError for ranks above 2 without dimension numbers, and for sizes that don't fit.
    """
    lhs, rhs = as_arrays("dot", lhs, rhs)
    if dimension_numbers is None:
        if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2 and lhs.shape[-1] == rhs.shape[0]):
            raise ValueError(
                "dot: without dimension_numbers, the operands must be vectors or matrices that fit, got shapes "
                f"{lhs.shape} and {rhs.shape}"
            )
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Array:
    """Products of stacks of matrices of equal leading dimensions. Raises ValueError for ranks below 2 or leading
    dimensions that differ.
    """
    lhs, rhs = as_arrays("batch_matmul", lhs, rhs)
    if min(lhs.ndim, rhs.ndim) < 2:
        raise ValueError(f"batch_matmul: operands must be stacks of matrices, got ranks {lhs.ndim} and {rhs.ndim}")
    if lhs.ndim != rhs.ndim:
        raise ValueError(f"batch_matmul: operands must be of one rank, got {lhs.ndim} and {rhs.ndim}")
    n = lhs.ndim - 2
    batch = tuple(range(n))
    return dot_general(lhs, rhs, (((n + 1,), (n,)), (batch, batch)), precision)


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """dot_general of operands whose blocks along the contracting dimension share a scale, as bfloat16 by default.

    A scale has the rank of its operand; each of its sizes divides the operand's. Raises ValueError otherwise, TypeError
    for operands below rank 2.
    """
    kind = np.dtype(preferred_element_type or ml_dtypes.bfloat16)
    wide = np.promote_types(kind, np.float32) if kind.kind in "fc" else np.dtype(np.float32)

    def rescale(x, scale):
        if scale is None:
            return lax.convert_element_type(x, wide)
        if scale.ndim != x.ndim or any(n % max(m, 1) for n, m in zip(x.shape, scale.shape)):
            raise ValueError(f"scaled_dot: a scale of shape {scale.shape} does not fit an operand of shape {x.shape}")
        for d, (n, m) in enumerate(zip(x.shape, scale.shape)):
            scale = lax.reshape(
                lax.broadcast_in_dim(
                    scale,
                    (*scale.shape[: d + 1], n // m, *scale.shape[d + 1 :]),
                    tuple(i for i in range(scale.ndim + 1) if i != d + 1),
                ),
                (*scale.shape[:d], n, *scale.shape[d + 1 :]),
            )
        return lax.mul(lax.convert_element_type(x, wide), lax.convert_element_type(scale, wide))

    lhs, rhs = as_arrays("scaled_dot", lhs, rhs)
    if lhs.ndim < 2 or rhs.ndim < 2:
        raise TypeError(f"scaled_dot: operands must have rank 2 or more, got shapes {lhs.shape} and {rhs.shape}")
    if dimension_numbers is None:
        batch = tuple(range(lhs.ndim - 2))
        dimension_numbers = (((lhs.ndim - 1,), (rhs.ndim - 2,)), (batch, batch))
    out = dot_general(rescale(lhs, lhs_scale), rescale(rhs, rhs_scale), dimension_numbers)
    return lax.convert_element_type(out, kind)


# --------------------------------------------------------------------------------------------------------- ragged dots


class RaggedDotDimensionNumbers(NamedTuple):
    """Dimension numbers of a product whose lhs consists of groups of rows along one dimension."""

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]
