"""Calls back into Python from compiled programs: pure_callback, io_callback, debug.callback.

A pure callback may be left out or repeated; the other two have an effect, so they run exactly when the program does,
those with effects in the order of the program. While one runs, the program holds the interpreter's lock.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import Primitive, ShapedArray, extended, hooks, typeof
from pullback.core.lowering import HostCall
from pullback.core.primitive import NoRule
from pullback.lax.control.loops import map as lax_map
from pullback.sharding import SingleDeviceSharding
from pullback.util import dtypes
from pullback.util.errors import JaxRuntimeError, class_shown
from pullback.util.pytree import tree_flatten, tree_unflatten

VMAP_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class Effect:
    """A mark on equations that must not be removed, repeated or merged."""

    must_run_once = False  # neither again for a gradient nor where no element of a batch asks for it

    def __init__(self, name: str = ""):
        self.name = name or type(self).__name__

    def __repr__(self) -> str:
        return self.name


class DebugEffect(Effect):
    """The side effect of `debug.callback` and `debug.print`."""


class OrderedDebugEffect(Effect):
    """The side effect of `debug.callback` and `debug.print` with `ordered=True`."""


class IOEffect(Effect):
    """Of io_callback."""

    must_run_once = True


class OrderedIOEffect(IOEffect):
    """Of io_callback with `ordered=True`."""


DEBUG, ORDERED_DEBUG = DebugEffect("Debug"), OrderedDebugEffect("OrderedDebug")
IO, ORDERED_IO = IOEffect("IO"), OrderedIOEffect("OrderedIO")


def _check_sharding(name: str, sharding: Any) -> None:
    """Programs call back from one process, whatever device the sharding names."""
    if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
        raise NotImplementedError(f"{name} only supports SingleDeviceSharding, but got {class_shown(type(sharding))}")


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """The result of `callback(*args, **kwargs)`, a Python function without side effects, called when the program runs.

    result_shape_dtypes: tree of things with shape and dtype that the results must match (JaxRuntimeError when they
    do not). args are arrays or trees of them; the callback gets arrays. vmap_method says what batching does: call it
    once for each element ('sequential'), or once with the batch axis in front of all ('broadcast_all') or as size 1
    where there is none ('expand_dims'). ValueError for another vmap_method.
    """
    if not callable(callback):
        raise TypeError(f"pure_callback: argument 'callback' must be a function, got {callback!r}")
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))}, got {vmap_method!r}"
        )
    _check_sharding("pure_callback", sharding)
    avals, out_tree = result_avals("pure_callback", result_shape_dtypes)
    leaves, in_tree = tree_flatten((args, kwargs))
    outs = pure_callback_p.bind(
        *map(as_operand, leaves),
        callback=_Flat(callback, in_tree, avals, "pure_callback"),
        result_avals=avals,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return tree_unflatten(out_tree, outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """As `pure_callback`, for functions with side effects: called exactly once for each time the program runs.

    ordered: keep the order among ordered callbacks. It can't be differentiated; ordered ones can't be batched
    (ValueError).
    """
    _check_sharding("io_callback", sharding)
    avals, out_tree = result_avals("io_callback", result_shape_dtypes)
    leaves, in_tree = tree_flatten((args, kwargs))
    outs = io_callback_p.bind(
        *map(as_operand, leaves),
        callback=_Flat(callback, in_tree, avals, "io_callback"),
        result_avals=avals,
        ordered=bool(ordered),
        sharding=sharding,
    )
    return tree_unflatten(out_tree, outs)


def debug_callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None:
    """Call `callback(*args, **kwargs)` for its side effect each time the program runs; what it returns is ignored.

    Under vmap it is called for each element, under differentiation for the primal computation. TypeError if it is no
    function.
    """
    if not callable(callback):
        raise TypeError(f"debug.callback: first argument 'callback' must be callable, but got {callback!r}")
    leaves, in_tree = tree_flatten((args, kwargs))
    flat = _Ignored(callback, in_tree, leaves)
    effect = ORDERED_DEBUG if ordered else DEBUG
    debug_callback_p.bind(*[as_operand(leaves[i]) for i in flat.positions], callback=flat, effect=effect)


def debug_print(fmt: str, *args: Any, ordered: bool = False, logs: bool = False, **kwargs: Any) -> None:
    """Print `fmt.format(*args, **kwargs)` each time the program runs, with NumPy's print options of now; `logs`: to the
    logger `pullback.debug`. Transformations do what they do with `debug_callback`.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    operands = [leaf for leaf in leaves if _is_operand(leaf)]
    kinds = [getattr(leaf, "dtype", None) for leaf in operands]
    debug_print_p.bind(
        *map(as_operand, operands),
        fmt=fmt,
        in_tree=in_tree,
        static_args=tuple((i, leaf) for i, leaf in enumerate(leaves) if not _is_operand(leaf)),
        key_types=tuple(kind if dtypes.is_extended(kind) else None for kind in kinds),
        np_printoptions=tuple(np.get_printoptions().items()),
        ordered=bool(ordered),
        logs=bool(logs),
    )


class _Ignored:
    """A user's callback on flat lists of arrays, whose results are ignored; without a hash, as _Flat is."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Callable[..., Any], in_tree: Any, leaves: Sequence[Any]):
        self.function, self.in_tree = function, in_tree
        self.positions = [i for i, leaf in enumerate(leaves) if _is_operand(leaf)]
        self.others = [None if _is_operand(leaf) else leaf for leaf in leaves]
        kinds = [getattr(leaves[i], "dtype", None) for i in self.positions]
        self.kinds = [kind if dtypes.is_extended(kind) else None for kind in kinds]

    def __call__(self, *arrays: Any) -> None:
        values: list[Any] = list(self.others)
        for i, array in zip(self.positions, arrays):
            values[i] = array
        args, kwargs = tree_unflatten(self.in_tree, values)
        self.function(*args, **kwargs)


class _Flat:
    """A user's callback on flat lists of arrays, whose results are checked against what was promised.

    It has no hash, so that nothing remembers it as part of a key: it may hold anything of the user's.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray], name: str):
        self.function, self.in_tree, self.avals, self.name = function, in_tree, tuple(avals), name
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arrays: Any, lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        args, kwargs = tree_unflatten(self.in_tree, arrays)
        try:
            out = self.function(*args, **kwargs)
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            raise JaxRuntimeError(f"{self.name}: the callback {self.__name__} raised {text}") from error
        leaves = tree_flatten(out)[0]
        if len(leaves) != len(self.avals):
            raise JaxRuntimeError(
                f"{self.name}: {self.__name__} returned {len(leaves)} arrays, result_shape_dtypes declares "
                f"{len(self.avals)}"
            )
        return [self._checked(leaf, aval, (*lead, *aval.shape)) for leaf, aval in zip(leaves, self.avals)]

    def _checked(self, leaf: Any, aval: ShapedArray, shape: tuple[int, ...]) -> np.ndarray:
        """A result as an array of the type that was declared; what differs is not converted."""
        array = np.asarray(leaf)
        dtype = dtypes.canonicalize_dtype(array.dtype) if dtypes.is_supported(array.dtype) else array.dtype
        if array.shape != shape or dtype != aval.dtype:
            raise JaxRuntimeError(
                f"{self.name}: {self.__name__} returned an array of shape {array.shape} and dtype {dtype}, "
                f"result_shape_dtypes declares shape {shape} and dtype {aval.dtype}"
            )
        return array.astype(aval.dtype, copy=False)


class _Batched:
    """A callback that is called with a batch axis in front."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, flat: Any, size: int):
        self.flat, self.size = flat, size
        self.__name__ = flat.__name__

    def __call__(self, *arrays: Any, lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        return self.flat(*arrays, lead=(*lead, self.size))


def result_avals(name: str, specs: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    """(the types, the tree) of results as a user declares them; TypeError, ValueError for what is none, or too wide."""
    leaves, tree = tree_flatten(specs)
    avals = []
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(f"{name}: result_shape_dtypes must have leaves with shape and dtype, got {leaf!r}")
        if dtypes.is_extended(leaf.dtype):
            raise TypeError(f"{name}: Cannot interpret '{leaf.dtype}' as a data type of results; give their words")
        dtype = dtypes.canonicalize_dtype(leaf.dtype)
        if dtype != leaf.dtype:
            raise ValueError(
                f"{name}: argument 'result_shape_dtypes' has the 64-bit {np.dtype(leaf.dtype)}, but "
                f"`jax_enable_x64` is off; turn that on, or let the function return {dtype}"
            )
        avals.append(ShapedArray(tuple(leaf.shape), dtype))
    return tuple(avals), tree


def as_operand(x: Any) -> Any:
    """What a caller passed, as something that can be bound; keys by their words, which is what callbacks get."""
    if dtypes.is_extended(getattr(x, "dtype", None)):
        return extended.words(x)
    return x if hasattr(x, "aval") else hooks.asarray(x)


def _is_operand(x: Any) -> bool:
    """Whether an argument is an array, a number or a key; a debug callback gets others as they are."""
    if isinstance(x, (str, bytes)):
        return False
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def _owned(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Arrays that the callback may keep: the program's memory is not valid after the call."""
    asked = contextlib.nullcontext if hooks.transfers is None else hooks.transfers.explicit
    with asked():  # a guard of transfers lets through what a callback is given and gives
        return [hooks.asarray(a) for a in arrays]  # copies NumPy data


def _result_rule(*_avals, result_avals, **_params):
    return list(result_avals)


def _call(*arrays, callback, result_avals, **_params):
    return callback(*_owned(arrays))


_NO_DERIVATIVE = (
    "what the host computes has no known derivative. Give the function that calls it one of its own, with "
    "`jax.custom_jvp` or `jax.custom_vjp`"
)


def _pure_jvp(_primals, _tangents, **_params):
    raise ValueError(f"Pure callbacks do not support JVP: {_NO_DERIVATIVE}")


def _io_jvp(_primals, _tangents, **_params):
    raise ValueError(f"IO callbacks do not support JVP: {_NO_DERIVATIVE}")


def _pure_batch(axis, args, dims, **params):
    avals = tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"])
    batched = {**params, "callback": _Batched(params["callback"], axis.size), "result_avals": avals}
    return batch_of_call(pure_callback_p, axis, args, dims, params, batched)


def batch_of_call(
    primitive: Any,
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[int | None],
    params: dict[str, Any],
    batched: dict[str, Any],
) -> tuple[list[Any], list[int]]:
    """A call of something opaque for each element, as its `vmap_method` says.

    batched: the parameters of one call whose results have a batch axis in front.
    """
    method = params["vmap_method"]
    values = [a if d is None or d == 0 else hooks.moveaxis(a, d, 0) for a, d in zip(args, dims)]
    count = len(params["result_avals"])
    if method == "sequential_unrolled":
        rows = _one_by_one(primitive, axis, args, dims, params)
        return [hooks.stack([row[k] for row in rows]) for k in range(count)], [0] * count
    if method == "sequential":
        mapped = [v for v, d in zip(values, dims) if d is not None]

        def one(xs):
            given = iter(xs)
            return primitive.bind(*[next(given) if d is not None else v for v, d in zip(values, dims)], **params)

        return list(lax_map(one, mapped)), [0] * count
    if method is None or method not in VMAP_METHODS:
        raise NotImplementedError(
            f"{primitive.name}: vmap is only supported if the call says how its function takes a batch, but it has "
            f"vmap_method={method}; accepted: {', '.join(map(repr, VMAP_METHODS[1:]))}"
        )
    if method == "broadcast_all":
        values = [hooks.broadcast(v, axis.size, 0) if d is None else v for v, d in zip(values, dims)]
    elif method == "expand_dims":
        values = [hooks.broadcast(v, 1, 0) if d is None else v for v, d in zip(values, dims)]
    return primitive.bind(*values, **batched), [0] * count


def _element(x, i: int, axis: int):
    """x[..., i, ...] along an axis."""
    shape = typeof(x).shape
    return hooks.reshape(hooks.slice_in_dim(x, i, i + 1, 1, axis), shape[:axis] + shape[axis + 1 :])


def _one_by_one(primitive, axis, args, dims, params):
    """The results of the primitive for each element, in order."""
    rows = []
    for i in range(axis.size):
        operands = [a if d is None else _element(a, i, d) for a, d in zip(args, dims)]
        rows.append(primitive.bind(*operands, **params))
    return rows


def _io_batch(axis, args, dims, **params):
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    rows = _one_by_one(io_callback_p, axis, args, dims, params)
    outs = [hooks.stack([row[k] for row in rows]) for k in range(len(params["result_avals"]))]
    return outs, [0] * len(outs)


def _io_effects(params):
    return frozenset({ORDERED_IO if params["ordered"] else IO})


def _debug_rule(*_avals, **_params):
    return []


def _debug_call(*arrays, callback, **_params):
    """Inside of a program; outside of one what the function raises is raised as it is."""
    try:
        callback(*_owned(arrays))
    except Exception as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        raise JaxRuntimeError(f"debug.callback: the callback raised {text}") from error
    return []


def _with_keys(arrays: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
    """Operands as the user gave them: words as the keys that they are of."""
    return [a if kind is None else extended.of_words(kind, a) for a, kind in zip(arrays, kinds)]


def _debug_evaluate(*arrays, callback, **_params):
    callback(*_with_keys(arrays, callback.kinds))
    return []


def _print_call(*arrays, **params):
    return _print_evaluate(*_owned(arrays), **{**params, "key_types": (None,) * len(arrays)})


def _print_evaluate(*arrays, fmt, in_tree, static_args, key_types, np_printoptions, logs, **_params):
    values = iter(_with_keys(arrays, key_types))
    fixed = dict(static_args)
    leaves = [fixed[i] if i in fixed else next(values) for i in range(in_tree.num_leaves)]
    args, kwargs = tree_unflatten(in_tree, leaves)
    with np.printoptions(**dict(np_printoptions)):
        text = fmt.format(*args, **kwargs)
    if logs:
        import logging  # few ask

        logging.getLogger("pullback.debug").info(text)
    else:
        sys.stdout.write(text + "\n")
    return []


def _debug_transpose(_outs_bar, *args, **_params):
    return [None] * len(args)


def _debug_primitive(name: str, doc: str, **rules: Any) -> Primitive:
    """A primitive that shows its operands and gives nothing."""

    def jvp(primals, _tangents, **params):
        return primitive.bind(*primals, **params), []

    def batch(axis, args, dims, **params):
        _one_by_one(primitive, axis, args, dims, params)
        return [], []

    primitive = Primitive(
        name,
        doc=doc,
        multiple_results=True,
        abstract_eval=_debug_rule,
        jvp=jvp,
        transpose=_debug_transpose,
        batch=NoRule("use batch_axis"),
        batch_axis=batch,
        lower=HostCall(),
        **rules,
    )
    return primitive


pure_callback_p = Primitive(
    "pure_callback",
    doc="A Python function without side effects.",
    multiple_results=True,
    abstract_eval=_result_rule,
    reference=_call,
    jvp=_pure_jvp,
    transpose=NoRule("Python functions have no known transpose"),
    batch=NoRule("use batch_axis"),
    batch_axis=_pure_batch,
    lower=HostCall(),
    traits={"opaque", "once"},
)
io_callback_p = Primitive(
    "io_callback",
    doc="A Python function with side effects.",
    multiple_results=True,
    abstract_eval=_result_rule,
    reference=_call,
    jvp=_io_jvp,
    transpose=NoRule("Python functions have no known transpose"),
    batch=NoRule("use batch_axis"),
    batch_axis=_io_batch,
    lower=HostCall(),
    effects=_io_effects,
)
debug_callback_p = _debug_primitive(
    "debug_callback",
    "A Python function called for its side effect.",
    evaluate=_debug_evaluate,
    reference=_debug_call,
    effects=lambda params: frozenset({params["effect"]}),
)
debug_print_p = _debug_primitive(
    "debug_print",
    "A line of text with the values of operands.",
    evaluate=_print_evaluate,
    reference=_print_call,
    effects=lambda params: frozenset({ORDERED_DEBUG if params["ordered"] else DEBUG}),
)

__all__ = ["debug_callback", "debug_callback_p", "io_callback", "io_callback_p", "pure_callback", "pure_callback_p"]
