"""Differentiation: forward (jvp), reverse (grad, vjp), linear maps (linearize, linear_transpose)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from pullback._ext import _core
from pullback.api._arguments import (
    argument_positions,
    as_array,
    check_argnums,
    check_callable,
    check_inputs,
    check_output_dtype,
    check_scalar,
    check_tangent,
    checked_leaves,
    flatten_result,
    function_name,
    leaf_paths,
)
from pullback.api.jit import jit
from pullback.api.pullbacks import VJP, Pullback, VJPOfReferences
from pullback.core import (
    ShapedArray,
    UndefinedPrimal,
    Zero,
    eval_jaxpr,
    high,
    hooks,
    tangent_aval,
    trace,
    typeof,
    types,
)
from pullback.core.explain import type_shown
from pullback.core.primitive import registry
from pullback.core.references import Entrance, has_references_among
from pullback.core.source import located
from pullback.transforms.discharge import discharge_program
from pullback.transforms.jvp import NUMBERS, JVPTracer, jvp_flat
from pullback.transforms.partial_eval import linearize_flat, partial_eval_jaxpr
from pullback.transforms.transpose import backward_pass
from pullback.transforms.zeros import instantiate, strong_as
from pullback.util import dtypes
from pullback.util.pytree import Partial, tree_flatten, tree_unflatten
from pullback.util.tracebacks import api_boundary

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, A]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
def grad(  # type: ignore[misc]
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]:
    """A function that gives the gradient of scalar-valued `fun` with respect to the arguments at `argnums`.

    The gradient has the structure of those arguments (a tuple for several argnums); with `has_aux`, (gradient, aux).
    TypeError if the output is no scalar, or inputs or output are not floating point (complex needs `holomorphic`,
    integers `allow_int`).
    """
    differentiate = _differentiation(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    def grad_f(*args, **kwargs):
        _, gradient, aux = differentiate(args, kwargs)
        return (gradient, aux) if has_aux else gradient

    return documented(grad_f, fun, "Gradient of {} with respect to argument(s) {}.", argnums)


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """A function that gives (value, gradient) of scalar-valued `fun`; as `grad`."""
    differentiate = _differentiation(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    def value_and_grad_f(*args, **kwargs):
        value, gradient, aux = differentiate(args, kwargs)
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return documented(value_and_grad_f, fun, "Value and gradient of {} with respect to argument(s) {}.", argnums)


def _differentiation(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes):
    """(args, kwargs) -> (value, gradient, aux), after the checks of `grad`."""
    check_callable("grad", fun)
    argnums = check_argnums("grad", argnums)
    if reduce_axes:
        raise NotImplementedError("grad: argument 'reduce_axes' has no meaning any more; leave it out")

    def differentiate(args, kwargs):
        flat, leaves, unflatten = dynamic_arguments("grad", fun, argnums, args, kwargs, has_aux)
        if holomorphic or not all([_is_real(typeof(leaf)) for leaf in leaves]):
            check_inputs("grad", leaves, holomorphic, allow_int, (fun, argnums, args, kwargs))
        outs, jaxpr, consts, zeros, aux = linearized(flat, leaves, has_aux)
        out = outs[0] if len(outs) == 1 and flat.out_tree.num_nodes == 1 else None
        if out is None or holomorphic or not _is_real_scalar(typeof(out)):
            check_scalar(fun, out, flat.out_tree)
            check_output_dtype("grad", out, holomorphic)
        gradient = unflatten(pull_back(jaxpr, consts, zeros, [_one(typeof(out))]))
        return out, gradient, aux

    return differentiate


@overload
def jvp(fun: Callable[..., R], primals: Any, tangents: Any, has_aux: Literal[False] = False) -> tuple[R, R]: ...
@overload
def jvp(fun: Callable[..., tuple[R, A]], primals: Any, tangents: Any, has_aux: Literal[True]) -> tuple[R, R, A]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> Any: ...
@api_boundary
def jvp(fun: Callable[..., Any], primals, tangents, has_aux: bool = False) -> Any:
    """(fun(*primals), derivative of fun at primals along tangents); with has_aux, aux as a third.

    primals and tangents are tuples or lists of equal structure, shapes and dtypes (float0 tangents for integers); else
    TypeError or ValueError.
    """
    check_callable("jvp", fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "jvp: 'primals' and 'tangents' must be tuples or lists, with an entry for each argument of the function; "
            f"got {type(primals).__name__} and {type(tangents).__name__}"
        )
    if has_references_among(tree_flatten(primals)[0]):
        return _jvp_of_references(fun, primals, tangents, has_aux)
    fun, primals = _on_carriers(fun, primals)
    ps, tree = checked_leaves("jvp", "primals", primals)
    ts, tangent_tree = checked_leaves("jvp", "tangents", tangents)
    if tree != tangent_tree:
        raise TypeError(
            f"jvp: 'tangents' are arranged as {tangent_tree}, but 'primals' as {tree}; both need the same tree "
            "structure, a tangent for each primal"
        )
    for p, t in zip(ps, ts):
        check_tangent("jvp", typeof(p), t)
    ps, ts = _numbers_as_they_are(primals, ps), _numbers_as_they_are(tangents, ts)
    if types.in_use():
        ts = [_cut_alike(t, p) for p, t in zip(ps, ts)]
    flat = _Flat(fun, tree, {}, has_aux)
    aux: list[Any] = []

    def fun_without_aux(*args):
        results = flat(*args)
        aux[:] = [a.primal if isinstance(a, JVPTracer) else a for a in results[flat.n_outs :]]
        return results[: flat.n_outs]

    outs, outs_dot = jvp_flat(fun_without_aux, ps, ts)
    out = tree_unflatten(flat.out_tree, outs)
    out_dot = tree_unflatten(flat.out_tree, list(map(instantiate, outs_dot)))
    return (out, out_dot, tree_unflatten(flat.aux_tree, aux)) if has_aux else (out, out_dot)


def _cut_alike(tangent: Any, primal: Any) -> Any:
    """The tangent, cut along explicit axes as the primal is, if that is."""
    aval = types.type_on_mesh(primal)
    if type(tangent) in NUMBERS or types.place_of_type(aval) is None or tangent.shape != aval.shape:
        return tangent
    if isinstance(primal, _core.Array) and isinstance(tangent, _core.Array):
        return hooks.device_put(tangent, primal.sharding)
    return types.cut_as(tangent, aval)


def _numbers_as_they_are(tree: Any, arrays: Sequence[Any]) -> list[Any]:
    """The leaves' arrays, but Python's numbers themselves: what a function only hands on stays what it is."""
    return [x if type(x) in NUMBERS else a for x, a in zip(tree_flatten(tree)[0], arrays)]


def _jvp_of_references(fun, primals, tangents, has_aux):
    """`jvp` where references are among the primals, and of their tangents among the tangents."""
    leaves, tree = tree_flatten(primals)
    moves, tangent_tree = tree_flatten(tangents)
    values, changes = Entrance(leaves), Entrance(moves)
    if tree != tangent_tree or list(values.cells) != list(changes.cells):
        raise TypeError("jvp: a Ref among the primals needs a Ref of its tangent in the same place of the tangents")
    through = values.through(lambda *xs: fun(*tree_unflatten(tree, xs)))

    def with_values(*xs):
        out, after = through(*xs)
        return ((out[0], after), out[1]) if has_aux else (out, after)

    (out, after), (out_dot, after_dot), *aux = jvp(
        _core.named_after(with_values, fun), values.values, changes.values, has_aux
    )
    values.leave(after)
    changes.is_written = values.is_written
    changes.leave(after_dot)
    return out, out_dot, *aux


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False, reduce_axes: Any = ()
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True], reduce_axes: Any = ()
) -> tuple[R, VJP, A]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: Any = ()) -> Any: ...
@api_boundary
def vjp(fun: Callable[..., Any], *primals, has_aux: bool = False, reduce_axes=()) -> Any:
    """(fun(*primals), pullback): pullback(x_bar) gives the cotangents of the primals as a tuple; with has_aux, aux as a
    third.

    The pullback is a pytree that holds the residuals, so it can be passed to jitted functions. Where a Ref is among the
    primals, `with_refs` of the pullback takes a Ref that has the cotangent of its array afterwards, and gives that of
    the array before.
    """
    check_callable("vjp", fun)
    if reduce_axes:
        raise NotImplementedError("vjp: argument 'reduce_axes' has no meaning any more; leave it out")
    fun, primals = _on_carriers(fun, primals)
    given, tree = tree_flatten(primals)
    if has_references_among(given):
        return _vjp_of_references(fun, given, tree, has_aux)
    leaves, tree = checked_leaves("vjp", "primals", primals)
    flat = _Flat(fun, tree, {}, has_aux)
    outs, jaxpr, consts, zeros, aux = linearized(flat, leaves, has_aux)
    static = Pullback(
        jaxpr,
        zeros,
        tuple(types.type_of(o) for o in outs),
        tuple(types.type_of(x) for x in leaves),
        tree,
        flat.out_tree,
        function_name(fun),
    )
    pullback = VJP.of(static, consts, leaves)
    out = tree_unflatten(flat.out_tree, outs)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _vjp_of_references(fun: Callable[..., Any], leaves: list[Any], tree: Any, has_aux: bool) -> Any:
    """`vjp` where references are among the primals: in the values before, of the results and the values afterwards."""
    values = Entrance(leaves)
    through = values.through(lambda *xs: fun(*tree_unflatten(tree, xs)))

    def with_values(*xs):
        out, after = through(*xs)
        return ((out[0], after), out[1]) if has_aux else (out, after)

    (out, after), pullback, *aux = vjp(_core.named_after(with_values, fun), *values.values, has_aux=has_aux)
    values.leave(after)
    return out, VJPOfReferences(pullback, tree, tuple(values.cells)), *aux


def fwd_and_bwd(fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True):
    """(fwd, bwd): fwd(*args) gives (fun(*args), residuals), with has_aux also aux; bwd(residuals, x_bar) gives the
    cotangents of the arguments at `argnums`. Residuals are a pytree. Both are jitted unless `jitted` is False.
    """
    check_callable("fwd_and_bwd", fun)
    argnums = check_argnums("fwd_and_bwd", argnums)

    def fwd(*args):
        nums = argument_positions("fwd_and_bwd", argnums, len(args))

        def of_some(*values):
            given = list(args)
            for n, value in zip(nums, values):
                given[n] = value
            return fun(*given)

        return vjp(of_some, *(args[n] for n in nums), has_aux=has_aux)

    def bwd(residuals, x_bar):
        bars = residuals(x_bar)
        return bars if isinstance(argnums, (tuple, list)) else bars[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
@api_boundary
def linearize(fun: Callable[..., Any], *primals, has_aux: bool = False) -> Any:
    """(fun(*primals), linear map from tangents to output tangents at the primals); with has_aux, aux as a third."""
    check_callable("linearize", fun)
    fun, primals = _on_carriers(fun, primals)
    leaves, tree = checked_leaves("linearize", "primals", primals)
    flat = _Flat(fun, tree, {}, has_aux)
    outs, jaxpr, consts, zeros, aux = linearized(flat, leaves, has_aux)
    static = _Pushforward(jaxpr, zeros, tuple(typeof(x) for x in leaves), tree, flat.out_tree)
    out = tree_unflatten(flat.out_tree, outs)
    pushforward = Partial(static, consts)
    return (out, pushforward, aux) if has_aux else (out, pushforward)


@api_boundary
def linear_transpose(fun: Callable, *primals, reduce_axes=()) -> Callable:
    """The transpose of `fun`, which must be linear in all of `primals` (arrays or ShapeDtypeStructs, only types
    matter).

    The result takes a cotangent of fun's output and gives a tuple of cotangents of the primals. TypeError for dtypes
    that are not floating point or integer linear maps, or cotangents of the wrong type.
    """
    check_callable("linear_transpose", fun)
    if reduce_axes:
        raise NotImplementedError("linear_transpose: argument 'reduce_axes' has no meaning any more; leave it out")
    leaves, tree = tree_flatten(primals)
    avals = [_aval_of_spec("linear_transpose", leaf) for leaf in leaves]
    flat = _Flat(fun, tree, {}, False)
    closed = discharge_program(trace(flat, avals))
    out_avals = closed.out_avals
    if not (
        all(dtypes.issubdtype(a.dtype, np.inexact) for a in avals + out_avals)
        or all(dtypes.issubdtype(a.dtype, np.integer) for a in avals + out_avals)
    ):
        raise TypeError(
            f"linear_transpose: the function takes {[str(a.dtype) for a in avals]} to "
            f"{[str(a.dtype) for a in out_avals]}; arguments and results must all be floating point or complex, or all "
            "integers"
        )

    @api_boundary
    def transposed(x_bar):
        bars, bar_tree = tree_flatten(x_bar)
        if bar_tree != flat.out_tree:
            raise TypeError(
                f"linear_transpose: the function's result has the structure {flat.out_tree}, and the cotangent tree "
                f"does not match: {bar_tree}"
            )
        for bar, aval in zip(bars, out_avals):
            have = typeof(bar)
            if have.shape != aval.shape or have.dtype != aval.dtype:
                raise TypeError(
                    f"linear_transpose: a result of the function is {aval.short()}, and its cotangent type does not "
                    f"match: {have.short()}"
                )
        # What the arguments do not enter, such as the counter of a loop, is computed first.
        known, linear, _, _ = partial_eval_jaxpr(closed, [True] * len(avals), [True] * len(bars))
        residuals = known()
        operands = [*residuals, *map(UndefinedPrimal, avals)]
        out = backward_pass(linear.jaxpr, linear.consts, operands, list(map(as_array, bars)))[len(residuals) :]
        out = [strong_as(bar, v) for bar, v in zip(out, linear.jaxpr.invars[len(residuals) :], strict=True)]
        return tree_unflatten(tree, [hooks.zeros(a) if type(bar) is Zero else bar for a, bar in zip(avals, out)])

    return transposed


# What they share.


@functools.lru_cache(maxsize=1 << 12)
def _is_real(aval) -> bool:
    """Whether a value can be differentiated, by whatever transformation."""
    return isinstance(aval.dtype, np.dtype) and dtypes.issubdtype(aval.dtype, np.floating)


@functools.lru_cache(maxsize=64)
def _is_real_scalar(aval) -> bool:
    return aval.shape == () and _is_real(aval)


def _one(aval):
    """The cotangent of a scalar result, which varies along axes of shard_map as that does.

    An array is not kept from one trace to the next: the next would take it for an argument, and another program.
    """
    if dtypes.canonicalize_dtype(aval.dtype) == aval.dtype:
        one = hooks.asarray(_scalar_one(aval.dtype), weak_type=aval.weak_type)
    else:  # of 64 bits, from where these are enabled
        one = _core.copy_of(_scalar_one(aval.dtype), aval.dtype, aval.weak_type, None)
    vma = types.vma_of(aval)
    return registry["pvary"].bind(one, axes=tuple(sorted(vma, key=str))) if vma else one


@functools.lru_cache(maxsize=64)
def _scalar_one(dtype):
    return np.ones((), dtype)


class _Flat:
    """`fun` of flat leaves; notes the structure of its result, and keeps aux apart."""

    def __init__(self, fun, in_tree, kwargs, has_aux, rebuild=None):
        self.fun, self.in_tree, self.kwargs, self.has_aux = fun, in_tree, kwargs, has_aux
        self.rebuild = rebuild
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.n_outs = 0
        self.__name__ = function_name(fun)

    def __call__(self, *leaves):
        args = tree_unflatten(self.in_tree, leaves) if self.rebuild is None else self.rebuild(leaves)
        out = self.fun(*args, **self.kwargs)
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(
                    f"expected a two-element tuple, got type {type_shown(out)} with {out!r}, from "
                    f"{located(self.fun)}; with has_aux=True it returns (result, auxiliary data)"
                )
            out, aux = out
            aux_leaves, self.aux_tree = tree_flatten(aux)
        else:
            aux_leaves = []
        outs, self.out_tree = flatten_result(out, self.fun, "differentiation")
        self.n_outs = len(outs)
        return outs + aux_leaves

    def take_aux(self, outs):
        return tree_unflatten(self.aux_tree, outs[self.n_outs :])


def linearized(flat: _Flat, leaves, has_aux):
    """(outs, jaxpr, consts, zeros, aux) of a flat function; zeros has a Zero for each result that does not move."""
    if not has_aux:
        return *linearize_flat(flat, leaves), None
    aux_leaves: list[Any] = []

    def fun(*args):
        outs = flat(*args)
        aux_leaves[:] = [a.primal if isinstance(a, JVPTracer) else a for a in outs[flat.n_outs :]]
        return outs[: flat.n_outs]

    outs, jaxpr, consts, zeros = linearize_flat(fun, leaves)
    return outs, jaxpr, consts, zeros, tree_unflatten(flat.aux_tree, aux_leaves)


def pull_back(jaxpr, consts, zeros, bars):
    """Cotangents of the leaves, given those of all results."""
    live = [bar for bar, zero in zip(bars, zeros) if zero is None]
    return [instantiate(strong_as(b, v)) for b, v in zip(backward_pass(jaxpr, consts, None, live), jaxpr.invars)]


def or_zeros(tangent, primal):
    """The tangent with the primal's type; zeros of it where the tangent is float0 (integers have Jacobians of
    zeros)."""
    aval = typeof(primal)
    if tangent_aval(aval).dtype == dtypes.float0:
        return hooks.zeros(aval)
    return instantiate(tangent)


class _Pushforward:
    """The static part of what `linearize` gives."""

    def __init__(self, jaxpr, zeros, in_avals, in_tree, out_tree):
        self.jaxpr, self.zeros, self.in_avals, self.in_tree, self.out_tree = jaxpr, zeros, in_avals, in_tree, out_tree

    @api_boundary
    def __call__(self, consts, *tangents):
        leaves, tree = tree_flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(
                f"linearized function called with tangents of structure {tree}, but the primals had {self.in_tree}"
            )
        for number, (aval, tangent) in enumerate(zip(self.in_avals, leaves)):
            want, have = tangent_aval(aval), typeof(tangent)
            if want.shape != have.shape or want.dtype != have.dtype:
                raise ValueError(
                    f"linearized function called with a tangent {have.short()} for argument leaf {number}; it was "
                    f"linearized at {aval.short()}, whose tangents are {want.short()}"
                )
        found = iter(eval_jaxpr(self.jaxpr, consts, *map(as_array, leaves)))
        outs = [next(found) if zero is None else instantiate(zero) for zero in self.zeros]
        return tree_unflatten(self.out_tree, outs)


def _on_carriers(fun, primals):
    """(fun, primals) with the carriers of objects above arrays in place of these, whose derivatives they have."""
    if not high.has_high(primals):
        return fun, primals
    raised, carriers = high.by_carriers(primals)
    return _core.named_after(lambda *values: fun(*raised(values)), fun), carriers


def dynamic_arguments(name, fun, argnums, args, kwargs, has_aux):
    """(flat function of the differentiated leaves, those leaves, function from their gradients to a tree)."""
    several = isinstance(argnums, (tuple, list))
    if several and not argnums:
        raise ValueError(f"{name}: argument 'argnums' is empty; expected an integer or several")
    if type(argnums) is int and 0 <= argnums < len(args):
        nums = [argnums]
    else:
        nums = argument_positions(name, argnums, len(args))
    chosen = tuple([args[n] for n in nums])
    if high.has_high(chosen):
        raised, chosen = high.by_carriers(chosen)
    else:
        raised = None

    def paths():
        others = [[k for k in range(len(args)) if k != n] for n in nums]
        return [path for skipped in others for path in leaf_paths(fun, args, {}, skipped)]

    leaves, tree = checked_leaves(name, "argument ", chosen, paths)

    def rebuild(values):
        new = list(args)
        own = tree_unflatten(tree, values)
        for n, value in zip(nums, own if raised is None else raised(own)):
            new[n] = value
        return new

    def unflatten(values):
        out = tree_unflatten(tree, values)
        return out if several else out[0]

    return _Flat(fun, tree, kwargs, has_aux, rebuild), leaves, unflatten


def _aval_of_spec(name, leaf):
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not hasattr(leaf, "aval"):
        return ShapedArray(tuple(leaf.shape), dtypes.canonicalize_dtype(leaf.dtype))
    try:
        return typeof(leaf)
    except TypeError:
        raise TypeError(f"{name}: a primal is {leaf!r}, which is neither an array nor a ShapeDtypeStruct") from None


def documented(wrapped, fun, text, argnums):
    _core.named_after(wrapped, fun)
    name = function_name(fun)
    wrapped.__doc__ = text.format(name, argnums) + (f"\n\n{fun.__doc__}" if getattr(fun, "__doc__", None) else "")
    wrapped.__name__ = name
    return wrapped
