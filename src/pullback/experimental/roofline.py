"""roofline: how much a program computes and moves, counted from its jaxpr; nothing is compiled or run.

Two pictures of one program. *Fused*: products alone read and write memory, all else happens on the way. *Unfused*:
every equation reads its operands and writes its results. Collectives send over the links of a torus, a ring for each
mesh axis. Counts are JAX's, so that numbers can be compared: what stands in `_EACH_RESULT` is one operation for an
element of the result, bodies of loops count once, and what is not named in this file costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from pullback import api, tree_util
from pullback.api.shard_map import shard_map
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pullback.core.primitive import registry
from pullback.transforms.partial_eval import dce_jaxpr
from pullback.util import logs

_LOGGER = "jax.experimental.roofline"


@dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand.

    >>> RooflineShape(shape=(2, 3), dtype=np.dtype("float32")).bytes
    24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """That of the type of an array."""
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of several arrays together."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """What a rule is told of its equation."""

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """Operations, bytes to and from memory, and bytes and steps over the links of each mesh axis.

    The sum of two results is that of one program after the other: it needs as much memory at once as the larger.

    >>> (RooflineResult(flops=2, peak_hbm_bytes=8) + RooflineResult(flops=3, peak_hbm_bytes=4)).flops
    5
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """That of a program which does nothing."""
        return cls()

    def _combined(self, number: Callable[[str, Any], Any]) -> RooflineResult:
        return RooflineResult(**{f.name: number(f.name, getattr(self, f.name)) for f in fields(self)})

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def added(name: str, mine: Any) -> Any:
            theirs = getattr(other, name)
            if isinstance(mine, dict):
                return {axis: mine.get(axis, 0) + theirs.get(axis, 0) for axis in {**mine, **theirs}}
            return max(mine, theirs) if name == "peak_hbm_bytes" else mine + theirs

        return self._combined(added)

    def __mul__(self, times: int) -> RooflineResult:
        return self._combined(lambda _, n: {a: k * times for a, k in n.items()} if isinstance(n, dict) else n * times)

    __rmul__ = __mul__


# ---- rules: rule(context, *operands, **params) -> RooflineResult, with a RooflineShape for each operand

Rule = Callable[..., RooflineResult]
_rules: dict[str, Rule] = {}


def register_roofline(prim: Any) -> Callable[[Rule], Rule]:
    """A decorator: the function is the rule of a primitive, `rule(context, *operands, **params)`.

    `operands` are `RooflineShape`s; what it gives is a `RooflineResult`.

    >>> from pullback.extend.core import Primitive
    >>> double_p = Primitive("double")
    >>> @register_roofline(double_p)
    ... def double_rule(context, x):
    ...     return RooflineResult(unfused_flops=x.size)
    """

    def register(rule: Rule) -> Rule:
        _rules[prim.name] = rule
        return rule

    return register


def register_standard_roofline(prim: Any) -> None:
    """Let a primitive cost nothing, as most of JAX's do; those without a rule do so, too, with a warning in the log.

    >>> from pullback.extend.core import Primitive
    >>> register_standard_roofline(Primitive("triple"))
    """
    _rules[prim.name] = _nothing


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _rules.update(dict.fromkeys(names, rule))
        return rule

    return register


def _nothing(context: RooflineRuleContext, *operands: RooflineShape, **params: Any) -> RooflineResult:
    return RooflineResult.zeros()


_rule(*registry)(_nothing)  # the package's primitives, but for what follows


def _moved(context: RooflineRuleContext, unfused_flops: int = 0) -> RooflineResult:
    """All operands are read and all results written."""
    moved = RooflineShape.total_bytes(context.avals_in) + RooflineShape.total_bytes(context.avals_out)
    return RooflineResult(unfused_flops=unfused_flops, unfused_hbm_bytes=moved)


def _each_result(context: RooflineRuleContext, *operands: RooflineShape, **params: Any) -> RooflineResult:
    return _moved(context, RooflineShape.from_aval(context.avals_out[0]).size)


# fmt: off
_EACH_RESULT = [
    "abs", "acos", "asin", "atan", "bessel_i0e", "bessel_i1e", "cbrt", "ceil", "conj", "cos", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "exp", "expm1", "floor", "imag", "integer_pow", "is_finite", "lgamma", "log", "log1p",
    "logistic", "neg", "not", "real", "round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "add", "sub",
    "mul", "div", "rem", "max", "min", "and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge",
]
# fmt: on
_rule(*_EACH_RESULT)(_each_result)


@_rule("select_n")
def _select(context: RooflineRuleContext, which: RooflineShape, *cases: RooflineShape, **params: Any) -> RooflineResult:
    """Of the cases, as much is read as is written, which is counted once."""
    return RooflineResult(unfused_flops=cases[0].size, unfused_hbm_bytes=which.bytes + cases[0].bytes)


@_rule("reduce_sum")
def _reduce(context: RooflineRuleContext, x: RooflineShape, **params: Any) -> RooflineResult:
    return _moved(context, x.size - RooflineShape.from_aval(context.avals_out[0]).size)


@_rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _running(context: RooflineRuleContext, x: RooflineShape, *, axis: int, **params: Any) -> RooflineResult:
    return _moved(context, x.shape[axis] * (2 if context.primitive.name == "cumlogsumexp" else 1))


@_rule("pure_callback", "io_callback", "debug_callback", "debug_print")
def _callback(context: RooflineRuleContext, *operands: RooflineShape, **params: Any) -> RooflineResult:
    return _moved(context)


@_rule("gather")
def _gather(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, *, mode: Any, **params: Any
) -> RooflineResult:
    """What is out of bounds and filled is compared twice and chosen twice for each index, once for each element."""
    taken = RooflineShape.from_aval(context.avals_out[0])
    filled = getattr(mode, "name", None) == "FILL_OR_DROP"
    return RooflineResult(
        unfused_flops=4 * indices.size + taken.size if filled else 0,
        unfused_hbm_bytes=indices.bytes + 2 * taken.bytes,
    )


@_rule("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, updates: RooflineShape, **params: Any
) -> RooflineResult:
    """Where updates go is read and written; `scatter` itself computes nothing."""
    return RooflineResult(
        unfused_flops=0 if context.primitive.name == "scatter" else updates.size,
        unfused_hbm_bytes=indices.bytes + 3 * updates.bytes,
    )


@_rule("dot_general")
def _dot(
    context: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, dimension_numbers: Any, **params: Any
) -> RooflineResult:
    """The one operation that reads and writes memory when all is fused; pinned operands, and the result that takes the
    place of a pinned left one, stay where they are."""
    (contracted, _), _ = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    flops = 2 * out.size * math.prod(lhs.shape[axis] for axis in contracted)
    moved = (0 if context.pin_lhs_in_vmem else lhs.bytes + out.bytes) + (0 if context.pin_rhs_in_vmem else rhs.bytes)
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _window_products(size: int, window: int, out: int, stride: int, low: int, lhs_dilation: int, dilation: int) -> int:
    """Along one axis, pairs of a place of the result and one of the window that meet an element of the input."""
    places = np.arange(out)[:, None] * stride + np.arange(window)[None] * dilation - low
    return int(np.sum((places >= 0) & (places <= (size - 1) * lhs_dilation) & (places % lhs_dilation == 0)))


@_rule("conv_general_dilated")
def _convolution(
    context: RooflineRuleContext,
    lhs: RooflineShape,
    rhs: RooflineShape,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    **params: Any,
) -> RooflineResult:
    """A multiplication and an addition for each product that is no zero of the padding or between dilated elements."""
    numbers = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    products = out.shape[numbers.out_spec[0]] * out.shape[numbers.out_spec[1]] * rhs.shape[numbers.rhs_spec[1]]
    for k, stride in enumerate(window_strides):
        size, window, outs = (
            x.shape[spec[2 + k]]
            for x, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec), (out, numbers.out_spec))
        )
        products *= _window_products(size, window, outs, stride, padding[k][0], lhs_dilation[k], rhs_dilation[k])
    return _moved(context, 2 * products)


# ---- collectives: a mesh is a torus; what is sent over several axes is split between them


def _sizes(context: RooflineRuleContext, names: Any) -> dict[str, int]:
    if context.mesh is None:
        raise ValueError(f"roofline: {context.primitive.name} over mesh axes {names!r} needs a mesh; give it as `mesh`")
    names = names if isinstance(names, (tuple, list)) else (names,)
    return {name: context.mesh.shape[name] for name in names}


def _links(sizes: dict[str, int], sent: int, steps: int) -> RooflineResult:
    return RooflineResult(ici_bytes=dict.fromkeys(sizes, sent), ici_latency=dict.fromkeys(sizes, steps))


def _gathered(sizes: dict[str, int], part: int) -> RooflineResult:
    """Parts of so many bytes go round the rings until every device has all."""
    n = math.prod(sizes.values())
    return _links(sizes, part // len(sizes) * (n - 1), 0 if n == 1 else len(sizes) * max(sizes.values()))


@_rule("all_gather", "all_gather_invariant", "all_gather_reduced")
def _all_gather(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **params: Any) -> RooflineResult:
    return _gathered(_sizes(context, axis_name), x.bytes)


def _summed(sizes: dict[str, int], whole: int) -> RooflineResult:
    return _gathered(sizes, whole // math.prod(sizes.values()))


@_rule("reduce_scatter")
def _reduce_scatter(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **params: Any) -> RooflineResult:
    return _summed(_sizes(context, axis_name), x.bytes)


@_rule("psum", "psum_invariant")
def _psum(context: RooflineRuleContext, *operands: RooflineShape, axes: Any, **params: Any) -> RooflineResult:
    """Parts are summed, and the sums gathered."""
    return sum((_summed(_sizes(context, axes), x.bytes) * 2 for x in operands), RooflineResult.zeros())


@_rule("pmax", "pmin")
def _extremum(context: RooflineRuleContext, *operands: RooflineShape, axes: Any, **params: Any) -> RooflineResult:
    """Counted, as by JAX, as one number from each device."""
    sizes = _sizes(context, axes)
    return sum((_gathered(sizes, x.dtype.itemsize) for x in operands), RooflineResult.zeros())


@_rule("all_to_all")
def _all_to_all(context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **params: Any) -> RooflineResult:
    """Half of all bytes cross the middle of the torus, over as many links as its shortest axis lets meet there; an axis
    of two devices has half of them, as its ends are not joined."""
    sizes = _sizes(context, axis_name)
    n, shortest = math.prod(sizes.values()), min(sizes.values())
    if n == 1:
        return _links(sizes, 0, 0)
    across = shortest ** (len(sizes) - 1) * (1 if shortest > 2 else 0.5)
    return _links(sizes, int(x.bytes * n / 4 / across), sum(size // 2 for size in sizes.values()))


def _path(start: Sequence[Any], end: Sequence[Any], sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The links from one device to another: axis after axis, the shorter way round each ring."""
    here = list(start)
    for axis, size in enumerate(sizes):
        ahead = (end[axis] - here[axis]) % size
        step = 1 if ahead <= size - ahead else -1
        while here[axis] != end[axis]:
            before, here[axis] = tuple(here), (here[axis] + step) % size
            yield (axis, *sorted((before, tuple(here))))


@_rule("ppermute")
def _ppermute(
    context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, perm: Sequence[tuple[int, int]], **params: Any
) -> RooflineResult:
    """As long as the longest way, and as much as the busiest link carries."""
    sizes = _sizes(context, axis_name)
    shape = tuple(sizes.values())
    places = [[np.unravel_index(device, shape) for device in pair] for pair in perm]
    paths = [list(_path(start, end, shape)) for start, end in places]
    carried: dict[Any, int] = {}
    for link in (link for path in paths for link in path):
        carried[link] = carried.get(link, 0) + 1
    return _links(sizes, x.bytes * max(carried.values(), default=0), max(map(len, paths), default=0))


# ---- programs

# Equations that run their one program; of those with several (`cond`, `while`) none is sure to run.
_CALLS = ("jit", "closed_call", "core_call", "remat2", "scan", "shard_map", "custom_jvp_call", "custom_vjp_call")


def _inner(eqn: JaxprEqn) -> Jaxpr:
    inner = next(eqn.params[name] for name in ("jaxpr", "call_jaxpr") if name in eqn.params)
    return inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner


def _of_equation(eqn: JaxprEqn, mesh: Any, pins: dict[str, bool]) -> RooflineResult:
    if eqn.primitive.name in _CALLS:
        return _of_jaxpr(_inner(eqn), eqn.params["mesh"] if eqn.primitive.name == "shard_map" else mesh, pins)
    rule = _rules.get(eqn.primitive.name)
    if rule is None:
        logs.warn(_LOGGER, f"No roofline rule for {eqn.primitive.name}, skipping: {eqn}")
        return RooflineResult.zeros()
    context = RooflineRuleContext(
        name_stack=eqn.source_info.name_stack,
        primitive=eqn.primitive,
        avals_in=[v.aval for v in eqn.invars],
        avals_out=[v.aval for v in eqn.outvars],
        jaxpr_eqn_ctx=eqn.ctx,
        mesh=mesh,
        **pins,
    )
    return rule(context, *map(RooflineShape.from_aval, context.avals_in), **eqn.params)


def _of_jaxpr(jaxpr: Jaxpr, mesh: Any, pins: dict[str, bool]) -> RooflineResult:
    """The equations' sum, and the most bytes that are held when one begins: what is not read again is freed."""
    result, last = RooflineResult.zeros(), {}
    for k, eqn in enumerate(jaxpr.eqns):
        last.update(dict.fromkeys((v for v in eqn.invars if not isinstance(v, Literal)), k))
    last.update(dict.fromkeys((v for v in jaxpr.outvars if not isinstance(v, Literal)), len(jaxpr.eqns)))
    held = {v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
    peak = RooflineShape.total_bytes([v.aval for v in held])
    for k, eqn in enumerate(jaxpr.eqns):
        result += _of_equation(eqn, mesh, pins)
        held = {v for v in (*held, *eqn.outvars) if last.get(v, k) > k}
        peak = max(peak, RooflineShape.total_bytes([v.aval for v in held]))
    return result + RooflineResult(peak_hbm_bytes=peak)


def roofline(
    f: Callable,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function of f's arguments, arrays or their types, that gives (the types of the results, a `RooflineResult`).

    `mesh`: over which `f` is mapped, as by `shard_map`, if `in_specs` and `out_specs` are given, and whose axes
    collectives go over. `pin_lhs_in_vmem`, `pin_rhs_in_vmem`: operands of products are counted as being there already.
    `vjp`: count f and its gradient, results being those. `print_jaxpr`: print what is counted. Raises ValueError
    for collectives where there is no mesh.

    >>> import jax
    >>> x = jax.ShapeDtypeStruct((4, 8), "float32")
    >>> types, result = roofline(lambda x: x @ x.T)(x)
    >>> result.flops, result.hbm_bytes
    (256, 320)
    """
    pins = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem}
    mapped = _mapped(f, mesh, in_specs, out_specs)

    def gradients(*args: Any) -> Any:
        out, pull = api.vjp(mapped, *args)
        return pull(tree_util.tree_map(lambda x: np.ones(x.shape, x.dtype), out))

    def wrapped(*args: Any) -> tuple[Any, RooflineResult]:
        closed, types = api.make_jaxpr(gradients if vjp else mapped, return_shape=True)(*args)
        jaxpr, over = closed.jaxpr if vjp else dce_jaxpr(closed.jaxpr), mesh
        if len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name == "shard_map":  # a device holds its parts alone
            jaxpr, over = _inner(jaxpr.eqns[0]), jaxpr.eqns[0].params["mesh"]
        if print_jaxpr:
            print(jaxpr)
        return types, _of_jaxpr(jaxpr, over, pins)

    return wrapped


def _mapped(f: Callable, mesh: Any, in_specs: Any, out_specs: Any) -> Callable:
    if mesh is None or in_specs is None or out_specs is None:
        return f
    return shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def roofline_and_grad(
    f: Callable,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """As `roofline`, with the results of f and of its pullback apart: (types, of f, of what the gradient takes more).

    >>> import jax
    >>> from jax.sharding import PartitionSpec as P
    >>> x, mesh = jax.ShapeDtypeStruct((8, 8), "float32"), jax.make_mesh((1,), ("i",))
    >>> _, forward, backward = roofline_and_grad(lambda x, y: x @ y, mesh, (P(), P()), P())(x, x)
    >>> forward.flops, backward.flops
    (1024, 2048)
    """
    options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem, "print_jaxpr": print_jaxpr}
    mapped = _mapped(f, mesh, in_specs, out_specs)

    def wrapped(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        types, forward = roofline(mapped, mesh, **options)(*args)
        _, pull = api.eval_shape(lambda *args: api.vjp(mapped, *args), *args)
        _, backward = roofline(lambda pull, out_bar: pull(out_bar), mesh, **options)(pull, types)
        return types, forward, backward

    return wrapped


__all__ = [
    "RooflineResult",
    "RooflineRuleContext",
    "RooflineShape",
    "register_roofline",
    "register_standard_roofline",
    "roofline",
    "roofline_and_grad",
]
