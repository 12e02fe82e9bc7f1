"""Moving values and small wrappers: device_put, device_get, block_until_ready, named_call, ensure_compile_time_eval."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.core import AbstractValue, current_interpreter, eval_interpreter, high, hooks, using
from pullback.core import typeof as aval_of
from pullback.core.avals import AbstractRef, placed
from pullback.core.references import Reference
from pullback.core.source import names_inside
from pullback.core.staging import ConcreteFirstInterpreter
from pullback.core.tracer import Array, Tracer
from pullback.lax.collectives.sharding import is_concrete, put_as, source_of
from pullback.runtime.arrays.devices import Device, default_device
from pullback.runtime.arrays.layouts import with_layout
from pullback.sharding import PartitionSpec, Sharding, SingleDeviceSharding
from pullback.sharding._current import on_current_mesh
from pullback.sharding._layout import Format, Layout
from pullback.sharding._shardings import ArrayCopySemantics, MemorySpace
from pullback.util import dtypes
from pullback.util.pytree import flatten_axes, tree_flatten, tree_map, tree_unflatten
from pullback.util.tracebacks import api_boundary, shorten

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_UNSAID: Any = object()
_PLACES = (Device, Sharding, PartitionSpec, Format, MemorySpace)


@overload
def device_put(
    x: np.ndarray | np.generic | complex, device: Any = None, *, src: Any = ..., donate: Any = ..., may_alias: Any = ...
) -> Array: ...
@overload
def device_put(x: T, device: Any = None, *, src: Any = ..., donate: Any = ..., may_alias: Any = ...) -> T: ...
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """The tree with every leaf an array committed to `device`: a Device or Sharding, a PartitionSpec over the mesh in
    force, a Format with a sharding, a memory.Space, or a tree prefix of these. None: where it is, or on the default
    device.

    All devices share memory, so that nothing is moved; `may_alias=False` makes copies. `donate` (a bool, or a tree
    prefix of them) allows to take the arrays' memory, which is shared anyway: nothing is deleted. `src` is where traced
    values come from: their cotangents go back there.

    Raises TypeError for leaves that are no arrays; ValueError for a `device` that is none of these, or does not fit.
    """
    asked = contextlib.nullcontext if hooks.transfers is None else hooks.transfers.explicit
    with asked():
        leaves, tree = arguments.checked_leaves("device_put", "argument x", x)
    if (struct := next((x for x in leaves if getattr(x, "is_only_a_type", False)), None)) is not None:
        raise TypeError(f"device_put: {struct} is not a valid JAX type to move: a {type(struct)} has no elements")
    places = _per_leaf("device_put device", tree, device, _PLACES)
    donated, aliased = (
        _per_leaf(f"device_put {name}", tree, value, (bool, int, np.bool_))
        for name, value in (("donate", donate), ("may_alias", may_alias))
    )
    sources = _per_leaf("device_put src", tree, src, _PLACES)
    out = []
    for leaf, place, source, gives, alias in zip(leaves, places, sources, donated, aliased, strict=True):
        if gives and alias:
            raise ValueError("device_put: donate gives an argument's memory away, so may_alias cannot be True for it")
        layout: Any = place.layout if isinstance(place, Format) else _UNSAID
        place = _place(place, leaf)
        if not is_concrete(leaf):
            how = _COPIES[bool(gives), alias is False]
            out.append(put_as(leaf, place, source_of(leaf) if source is None else _place(source, leaf), how))
            continue
        if alias is False:
            leaf = hooks.copied(leaf)
        with asked():
            put_there = hooks.device_put(leaf, place)
        out.append(put_there if layout is _UNSAID else with_layout(put_there, layout))
    return tree_unflatten(tree, out)


_COPIES = {
    (False, False): ArrayCopySemantics.REUSE_INPUT,
    (False, True): ArrayCopySemantics.ALWAYS_COPY,
    (True, False): ArrayCopySemantics.DONATE_INPUT,
    (True, True): ArrayCopySemantics.DONATE_INPUT,
}


def _per_leaf(name: str, tree: Any, given: Any, kinds: tuple[type, ...]) -> list[Any]:
    """One value for each leaf of the tree; ValueError for what is of none of the kinds, nor None."""
    found = [given] * tree.num_leaves if given is None or isinstance(given, kinds) else flatten_axes(name, tree, given)
    for value in found:
        if value is None or isinstance(value, kinds):
            continue
        if bool in kinds:
            raise ValueError(f"{name} must be a bool or a tree of bools; got {value!r}")
        raise ValueError(
            f"{name} must be a Device, a Sharding, a PartitionSpec, a Format, a memory.Space, None or a tree of these; "
            f"got {value!r}"
        )
    return list(found)


def _place(given: Any, x: Any) -> Any:
    """The Device or Sharding that is meant, which fits x; None: none."""
    if isinstance(given, MemorySpace):
        if given is MemorySpace.Any:
            raise ValueError("device_put: memory.Space.Any is no place; give memory.Space.Device or memory.Space.Host")
        if not is_concrete(x):
            return given
        where = x.sharding if isinstance(x, _core.Array) else SingleDeviceSharding(default_device())
        return where.with_memory_kind(given.value)
    if isinstance(given, Format):
        if given.layout is None and given.sharding is None:
            return None
        if given.layout is Layout.AUTO:
            raise ValueError(
                f"device_put takes a concrete layout, or the sharding alone; {given} leaves that of "
                f"{aval_of(x).str_short()} to a compiler"
            )
        if isinstance(given.layout, Layout):
            given.layout.check(x.shape, "device_put args")
        given = given.with_sharding()
    if isinstance(given, PartitionSpec):
        given = on_current_mesh(
            given,
            ValueError(
                f"device_put: {given} is meant over the mesh in force, but there is none; enter one by "
                "`with jax.set_mesh(mesh):`, or give a NamedSharding"
            ),
        )
    if isinstance(given, Sharding):
        given.device_set  # noqa: B018  ValueError for a mesh without devices
        given.check(x.shape, "device_put args")
    return given


@api_boundary
def typeof(x: Any) -> AbstractValue:
    """The type of an array, tracer, NumPy value, Python scalar, Ref, or object of a type above arrays; TypeError else.

    That of an array on a mesh says along which explicit axes it is cut.

    >>> import pullback as jax
    >>> jax.typeof(jax.numpy.ones((2, 3)))
    ShapedArray(float32[2,3])
    >>> jax.typeof(jax.new_ref(jax.numpy.ones(2)))
    Ref{float32[2]}
    """
    if high.is_high(x):
        return high.type_of(x)
    if isinstance(x, Reference):
        return AbstractRef(x.ref_aval.inner_aval.strip_weak_type())
    aval = aval_of(x)
    place = getattr(getattr(x, "_base_array", x), "_device", None)  # keys lie where their words do
    return placed(aval, place, whole=True)


@api_boundary
def device_get(x: Any):
    """The tree with every array as a NumPy array on the host; traced values and key arrays stay as they are.

    RuntimeError for an array of which this process has a part only.
    """

    def on_host(leaf: Any) -> Any:
        if isinstance(leaf, Tracer) and leaf.interpreter is eval_interpreter():
            return np.asarray(leaf)
        if not (hasattr(leaf, "aval") and hasattr(leaf, "__array__")) or isinstance(leaf, Tracer):
            return leaf
        if dtypes.is_extended(leaf.aval.dtype):
            return leaf
        return np.asarray(leaf)

    return tree_map(on_host, x)


def block_until_ready(x: T) -> T:
    """The tree, once all its arrays are computed."""
    try:
        leaves = [x] if isinstance(x, _core.Array) else tree_flatten(x)[0]
    except Exception as error:
        shorten(error, sys._getframe())
        raise
    for leaf in leaves:
        if isinstance(leaf, _core.Array):
            leaf.block_until_ready()
    return x


def effects_barrier() -> None:
    """Wait for the side effects of all programs: a call returns after its own, so there is nothing to wait for."""


@api_boundary
def copy_to_host_async(x: T) -> T:
    """The tree; its arrays are on the host already."""
    return x


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` under another name in traces and profiles."""
    arguments.check_callable("named_call", fun)
    label = name or arguments.function_name(fun)

    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(label):
            return fun(*args, **kwargs)

    return _core.named_after(wrapped, fun)


def named_scope(name: str):
    """Context manager: operations inside belong to the scope `name`. TypeError if name is no string."""
    if not isinstance(name, str):
        raise TypeError(f"named_scope: argument 'name' must be a string, got {name!r}")
    return _scope(name)


@contextlib.contextmanager
def _scope(name: str):
    with names_inside(name):
        yield


@contextlib.contextmanager
def ensure_compile_time_eval():
    """Context manager: operations on concrete values are evaluated at once, even while a function is traced."""
    with using(ConcreteFirstInterpreter(current_interpreter())):
        yield


def clear_caches() -> None:
    """Forget all compiled programs."""
    hooks.clear_caches()
