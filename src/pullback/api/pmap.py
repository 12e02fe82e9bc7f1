"""pmap: a function mapped over a leading axis, one element for each device.

A call on arrays runs on the devices at once: the function is compiled for one element, and a thread for each device
runs it on its own (`_core.DeviceProgram`); collectives are exchanges between them. Where the call is itself part of
something that is traced (jit, grad, vmap, another pmap), or is to be interpreted or checked, it is the vectorized
program, `vmap` over the axis, which means the same.

Why not one vectorized program always: it shares one loop over a scan's steps, of which only what is inside is split
over threads, so devices would wait for each other at every step; and moving the axis outside of all loops is not
possible where a loop has a collective in it, which is what training does. Inside of `jit`, `grad` and `vmap` the axis
is one of several of one program, and there it stays. The tests compare both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.api._places import check_arguments
from pullback.api.jit import jit
from pullback.api.vmap import check_axes_tree, vmap
from pullback.core import DebugInfo, current_interpreter, eval_interpreter, hoist_tracers, hooks, trace, typeof
from pullback.core.explain import type_shown
from pullback.core.interpreter import axis_env, extend_axis_env
from pullback.core.tracer import Tracer
from pullback.lax.collectives.sharding import constrain, is_concrete, put
from pullback.lax.control.linear_call import linear_call
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.runtime.arrays.devices import Device, process_count
from pullback.runtime.arrays.devices import devices as all_devices
from pullback.runtime.arrays.placement import is_placed
from pullback.runtime.eager import checks
from pullback.runtime.programs import spans
from pullback.runtime.programs.compiler import compile_for_devices
from pullback.sharding import Mesh, NamedSharding, PartitionSpec
from pullback.sharding._mesh import is_local
from pullback.util import config, dtypes
from pullback.util.memory import forgetful, make_room
from pullback.util.pytree import flatten_axes, prefix_errors, tree_flatten, tree_leaves, tree_map, tree_unflatten
from pullback.util.switches import switches
from pullback.util.tracebacks import api_boundary

MOST_MADE = 512  # programs of one function, for arguments of different types

P = ParamSpec("P")
R = TypeVar("R")


@api_boundary
def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Any = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[P, R]:
    """`fun` mapped over the devices: axis `in_axes` of each argument (None: the same for all) has one element for each.

    Collectives (`lax.psum`, ...) in `fun` act over `axis_name`. Static arguments are passed as they are, and must be
    hashable. Raises ValueError when there are more elements than devices, or sizes differ; TypeError if `fun` is not
    callable, or for devices that are none; RuntimeError for a backend that is not there, and if devices wait for each
    other in vain.
    """
    arguments.check_callable("pmap", fun)
    if devices is not None:
        devices = _checked_devices(devices)
    static, donated = arguments.as_tuple(static_broadcasted_argnums), arguments.as_tuple(donate_argnums)
    for name, numbers in (("static_broadcasted_argnums", static), ("donate_argnums", donated)):
        if not all(hasattr(n, "__index__") for n in numbers):
            raise TypeError(f"pmap: {name} must be an integer or integers, got {numbers}")
    if isinstance(in_axes, list):
        raise TypeError(
            "pmap: argument 'in_axes' must be an integer, None or a tuple with one entry for each positional argument, "
            f"got the list {in_axes}"
        )
    check_axes_tree("in_axes", in_axes, "pmap")
    check_axes_tree("out_axes", out_axes, "pmap")
    if set(static) & set(donated):
        raise ValueError(f"`static_argnums` {list(static)} and `donate_argnums` {list(donated)} cannot intersect.")
    return _Pmap(
        fun,
        _UNNAMED if axis_name is None else axis_name,
        in_axes,
        out_axes,
        static,
        donated,
        devices,
        backend,
        axis_size,
    ).function


def _checked_devices(devices: Any) -> list[Any]:
    found = list(devices)
    if not found:
        raise ValueError("pmap: argument 'devices' must be non-empty; leave it out to run on all devices")
    for device in found:
        if not isinstance(device, Device):
            raise TypeError(f"pmap: argument 'devices' must be devices, got {device!r} among them")
    if len(set(found)) < len(found):
        raise ValueError(f"pmap: a device comes twice in devices={found}")
    return found


_UNNAMED = "_internal_pmap_axis_name"


class _Pmap:
    """One mapped function: its options, and the C object that users call."""

    def __init__(self, fun, name, in_axes, out_axes, static_nums, donate_nums, devices, backend, axis_size):
        self.fun, self.name, self.in_axes, self.out_axes = fun, name, in_axes, out_axes
        self.static_nums, self.donate_nums = tuple(sorted(static_nums)), donate_nums
        self.devices, self.backend, self.axis_size = devices, backend, axis_size
        self.label = arguments.function_name(fun)
        self.made: dict[Any, Any] = {}  # what for_devices has made, by what it depends on
        function = _core.JitFunction(fun, self.miss, self.static_nums, ())
        function.lower, function.trace = self.ahead("lower"), self.ahead("trace")
        function.eval_shape, function.clear_cache = self.ahead("eval_shape"), self.clear_cache
        self.function = function
        forgetful(self)

    @functools.cached_property
    def vectorized(self) -> Any:
        """The function of all elements, as `jit` makes it."""
        return jit(
            _core.named_after(lambda *args, **kwargs: self.as_vmap(*args, **kwargs), self.fun),
            static_argnums=self.static_nums or None,
            donate_argnums=self.donate_nums or None,
        )

    def ahead(self, name: str) -> Callable[..., Any]:
        """A method of the vectorized function, for calls that have the static arguments."""

        def method(*args: Any, **kwargs: Any) -> Any:
            self.fixed(args)
            return getattr(self.vectorized, name)(*args, **kwargs)

        method.__name__ = method.__qualname__ = name
        return method

    @api_boundary
    def miss(self, args: tuple, kwargs: dict) -> tuple[Any, _core.CacheEntry | None]:
        """The call in full: (result, what C shall remember for arguments of these types)."""
        fixed = self.fixed(args)
        size = self.size(args, kwargs, fixed)
        devices = list(self.devices) if self.devices is not None else all_devices(self.backend)
        count = len({d.process_index for d in devices})
        if count > 1:  # each process maps over its own devices
            devices = self.local(devices, size, count)
        if size > len(devices):
            raise ValueError(
                f"compiling computation that requires {size} logical devices, but only {len(devices)} XLA devices are "
                f"available (num_replicas={size}, num_partitions=1); pmap of {self.label} maps over an axis of size "
                f"{size}. Set jax_num_cpu_devices, or XLA_FLAGS=--xla_force_host_platform_device_count={size}, before "
                "the first use of a device."
            )
        leaves, tree = tree_flatten((tuple(a for i, a in enumerate(args) if i not in fixed), kwargs))
        made = None
        if self.is_concrete(leaves):
            if count == 1:
                self.check_places(leaves, tree, fixed, devices[:size])
            # Where arguments lie is in the key of the calls that C knows, and changes nothing of the program.
            avals, static = tuple(map(typeof, leaves)), tuple([(n, type(x), x) for n, x in fixed.items()])
            key = tree, avals, static, tuple(devices[:size]), count, config.epoch(), spans.is_recording()
            made = self.made.get(key)
            if made is None:
                made = self.for_devices(leaves, tree, args, fixed, devices[:size], count)
                if made is not None:
                    make_room(self.made, MOST_MADE)
                    self.made[key] = made
        if made is None:
            if count > 1:
                raise NotImplementedError(
                    f"pmap of {self.label}: over several processes it must be called on arrays, not inside of "
                    "jit, grad or vmap; use these inside of the function that it maps"
                )
            return self.vectorized(*args, **kwargs), None
        run, kept, out_tree = made
        arrays = [hooks.asarray(leaf) for leaf in leaves]
        outs = run(arrays if kept is None else [arrays[k] for k in kept])
        return tree_unflatten(out_tree, outs), _core.CacheEntry(run, out_tree, kept)

    def clear_cache(self) -> None:
        """Forget all programs."""
        self.made.clear()
        self.function.clear()
        self.__dict__.pop("vectorized", None)

    def fixed(self, args: tuple) -> dict[int, Any]:
        """Static arguments by position; ValueError for positions that the call does not have."""
        for n in self.static_nums:
            if not -len(args) <= n < len(args):
                raise ValueError(
                    f"pmap of {self.label}: static_broadcasted_argnums={self.static_nums} has {n}, but the call has "
                    f"only {len(args)} positional argument{'s' if len(args) != 1 else ''}; a static argument is not "
                    "passed by keyword, nor left out"
                )
            try:
                hash(args[n])
            except TypeError as error:
                raise ValueError(
                    f"Non-hashable static arguments: pmap of {self.label} has static_broadcasted_argnums="
                    f"{self.static_nums}, and was given a {type_shown(args[n])} at position {n}; programs are kept by "
                    "the hash of such arguments, so pass a value that has one, such as a tuple"
                ) from error
        return {n % len(args): args[n] for n in self.static_nums if -len(args) <= n < len(args)}

    def is_concrete(self, leaves: list[Any]) -> bool:
        """Whether the call can run now, as machine code."""
        return (
            current_interpreter() is eval_interpreter()
            and not any(isinstance(x, Tracer) for x in leaves)
            and not (config.config.jax_disable_jit or switches.interpret or checks.is_active())
        )

    def axes_of_arguments(self, fixed: dict[int, Any]) -> Any:
        """in_axes without the entries of static arguments."""
        if isinstance(self.in_axes, tuple):
            return tuple(a for i, a in enumerate(self.in_axes) if i not in fixed)
        return self.in_axes

    # On devices.

    def check_places(self, leaves: list[Any], tree: Any, fixed: dict[int, Any], devices: list[Any]) -> None:
        """ValueError for an argument that is committed to other places than the map has its elements."""
        if all(getattr(x, "_device", None) is None for x in leaves):
            return
        mesh = Mesh(np.array(devices, dtype=object), (self.name,))
        for x, a in zip(leaves, self.axes_of_leaves(leaves, tree, fixed), strict=True):
            wanted = NamedSharding(mesh, PartitionSpec(*_spec(None if a is None else a % np.ndim(x), self.name)))
            if getattr(x, "_device", None) is not None and not _is_cut_as(x.sharding, wanted, x.ndim):
                check_arguments([x], [wanted])

    def axes_of_leaves(self, leaves: list[Any], tree: Any, fixed: dict[int, Any]) -> list[int | None]:
        """The mapped axis of each leaf; None: the same for all."""
        axes = list(flatten_axes("pmap in_axes", tree.children()[0], self.axes_of_arguments(fixed)))
        return axes + [0] * (len(leaves) - len(axes))

    def local(self, devices: list[Any], size: int, count: int) -> list[Any]:
        """The devices of this process, of those of `count`; ValueError unless each has one for each element."""
        numbers = [d.process_index for d in devices]
        per_process = {numbers.count(p) for p in numbers}
        own = [d for d in devices if is_local(d)]
        if per_process != {size} or not own or count != process_count():
            raise ValueError(
                f"compiling computation that requires {size} logical devices in each process: pmap of {self.label} "
                f"maps over an axis of size {size}, but the {count} processes have {sorted(per_process)} devices each; "
                "over several processes each maps over all of its own devices"
            )
        return own

    def for_devices(self, leaves, tree, args, fixed, devices, processes=1):
        """(callable on the kept arrays, their numbers, structure of the result); None for a function that closes over
        values of an enclosing transformation.
        """
        size = len(devices)
        axes = self.axes_of_leaves(leaves, tree, fixed)
        avals = [typeof(leaf) for leaf in leaves]
        axes = [a if a is None else a % aval.ndim for a, aval in zip(axes, avals)]
        parts = [
            aval if a is None else aval.update(shape=(*aval.shape[:a], *aval.shape[a + 1 :]))
            for a, aval in zip(axes, avals)
        ]
        out_tree: list[Any] = []

        def flat(*values):
            dynamic, kwargs = tree_unflatten(tree, values)
            rest = iter(dynamic)
            full = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
            outs, out_tree[:] = _flattened(self.fun(*full, **kwargs), self.fun)
            return outs

        with extend_axis_env(self.name, size * processes):
            closed, consts = hoist_tracers(trace(flat, parts, DebugInfo("pmap", self.label)))
        if consts:
            return None
        make = compile_for_devices if processes == 1 else hooks.program_between
        given = self.donated(args, fixed)
        program = make(closed, {self.name: size * processes}, given, self.label)
        kept = program.kept
        gone = [k for k, n in enumerate(range(len(leaves)) if kept is None else kept) if n in given]
        axes = axes if kept is None else [axes[k] for k in kept]
        for a, aval in zip(flatten_axes("pmap out_axes", out_tree[0], self.out_axes), closed.out_avals):
            if a is not None and not -aval.ndim - 1 <= a <= aval.ndim:
                raise ValueError(
                    f"pmap of {self.label}: out_axes {a} is out of bounds for a result {aval.short()}, whose "
                    f"mapped axis can be {-aval.ndim - 1} to {aval.ndim}"
                )
        out_axes = [
            a if a is None else a % (aval.ndim + 1)
            for a, aval in zip(flatten_axes("pmap out_axes", out_tree[0], self.out_axes), closed.out_avals)
        ]
        mesh = Mesh(np.array(devices, dtype=object), (self.name,))
        shardings = [NamedSharding(mesh, PartitionSpec(*_spec(a, self.name))) for a in out_axes]
        run = program.on_devices(size, [a is not None for a in axes], [a is not None for a in out_axes], shardings)
        if any(a for a in (*axes, *out_axes)):
            run = functools.partial(_run_moved, run, axes, out_axes, shardings)
        if gone:
            run = functools.partial(_run_donated, run, gone)
        return run, kept, out_tree[0]

    def donated(self, args: tuple, fixed: dict[int, Any]) -> tuple[int, ...]:
        """Numbers of the leaves that are donated."""
        wanted = {n % len(args) for n in self.donate_nums if -len(args) <= n < len(args)}
        owners = [i for i, a in enumerate(args) if i not in fixed for _ in tree_leaves(a)]
        return tuple(k for k, i in enumerate(owners) if i in wanted)

    # As one program.

    def as_vmap(self, *args: Any, **kwargs: Any) -> Any:
        """The vectorized function."""
        fixed = self.fixed(args)

        def body(inner: Any, inner_kwargs: Any) -> Any:
            values = iter(inner)
            return self.fun(*[fixed[i] if i in fixed else next(values) for i in range(len(args))], **inner_kwargs)

        dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)
        in_axes = (self.axes_of_arguments(fixed), 0)
        # What is said to be the same for all is taken from the first device, as the program for devices does it.
        out_axes = tree_map(lambda axis: axis or 0, self.out_axes, is_leaf=_is_none)
        whole = vmap(body, in_axes, out_axes, axis_name=self.name, axis_size=self.axis_size)

        def mapped(*given: Any) -> Any:
            return tree_map(
                lambda axis, part: tree_map(_of_first, part) if axis is None else part,
                self.out_axes,
                whole(*given),
                is_leaf=_is_none,
            )

        devices = list(self.devices) if self.devices is not None else all_devices(self.backend)
        size = self.size(args, kwargs, fixed)
        # Inside of another map the axis has no devices of its own; where there are too few, the call itself says so.
        if axis_env() or size > len(devices) or process_count() > 1:
            return mapped(dynamic, kwargs)
        mesh = Mesh(np.array(devices[:size], dtype=object), (self.name,))
        dynamic, kwargs = _placed((dynamic, kwargs), in_axes, mesh)
        return _placed(mapped(dynamic, kwargs), self.out_axes, mesh, "out_shardings")

    # Arguments.

    def check_prefix(self, axes: tuple, args: tuple) -> None:
        """ValueError for in_axes that are no prefix of the arguments, which form the first element of a pair."""
        for make in prefix_errors((axes,), (args,), _is_none):
            raise ValueError(
                f"{make('pmap in_axes')}\nin_axes must be a tree prefix of the tuple of positional arguments of "
                f"{self.label}"
            )

    def size(self, args: tuple, kwargs: dict, fixed: dict[int, Any]) -> int:
        """The size of the mapped axis; ValueError if there is none or arguments disagree."""
        axes = self.in_axes if isinstance(self.in_axes, tuple) else (self.in_axes,) * len(args)
        missing = range(len(axes), len(args))
        if all(i in fixed for i in missing):  # static arguments at the end need no entry
            axes += (None,) * len(missing)
        if len(axes) != len(args):
            self.check_prefix(axes, args)
        found = {} if self.axis_size is None else {"axis_size": {self.axis_size}}
        for i, (arg, axis) in enumerate(zip(args, axes, strict=True)):
            if i not in fixed and axis is not None:
                try:
                    found[f"argument {i}"] = _sizes(arg, axis)
                except ValueError:
                    self.check_prefix(axes, args)
                    raise
        found.update({f"argument '{name}'": _sizes(arg, 0) for name, arg in kwargs.items()})
        if not set().union(*[some for where, some in found.items() if where != "axis_size"]):
            raise ValueError(f"pmap of {self.label}: no argument has a mapped axis, by in_axes={self.in_axes}")
        sizes = set().union(*found.values())
        if self.axis_size is not None and len(sizes) == 2:
            (other,) = sizes - {self.axis_size}
            raise ValueError(
                f"pmap of {self.label}: axis_size is {self.axis_size}, but the mapped axes of arguments have {other} "
                "elements"
            )
        if len(sizes) > 1:
            parts = [f"{where} has {', '.join(map(str, sorted(some)))}" for where, some in found.items() if some]
            raise ValueError(
                f"pmap of {self.label}: mapped axes have inconsistent sizes {sorted(sizes)}: {'; '.join(parts)}"
            )
        if sizes == {0}:
            raise ValueError(
                f"pmap of {self.label}: the axis that is mapped has size 0, and no device an element of it"
            )
        return sizes.pop()


def _flattened(out: Any, fun: Callable) -> tuple[list[Any], list[Any]]:
    leaves, tree = arguments.flatten_result(out, fun, "pmap")
    return leaves, [tree]


def _is_none(axis: Any) -> bool:
    return axis is None


def _of_first(x: Any) -> Any:
    """The first element, which stands for all, so that each gets an equal share of its cotangent."""
    if dtypes.kind_of(x.dtype) not in "fc":
        return lax.index_in_dim(x, 0, keepdims=False)
    size = x.shape[0]
    return linear_call(
        lambda _, x: lax.index_in_dim(x, 0, keepdims=False),
        lambda _, bar: lax.broadcast(bar / size, (size,)),
        (),
        x,
    )


def _spec(axis: int | None, name: Any) -> tuple[Any, ...]:
    return () if axis is None else (*[None] * axis, name)


def _is_cut_as(have: Any, wanted: NamedSharding, ndim: int) -> bool:
    """Whether both make the same parts, on whatever devices."""
    if have.is_fully_replicated or wanted.is_fully_replicated:
        return have.is_fully_replicated and wanted.is_fully_replicated
    return have._to_xla_hlo_sharding(ndim) == wanted._to_xla_hlo_sharding(ndim)


def _placed(tree: Any, axes: Any, mesh: Mesh, argument: str = "") -> Any:
    """A tree of arrays whose mapped axes lie one element on each device, as this argument of `jit` would say."""

    def place(axis: int | None, part: Any) -> Any:
        if axis is None:
            return part

        def leaf(x: Any) -> Any:
            x = x if hasattr(x, "aval") else hooks.asarray(x)
            lies = NamedSharding(mesh, PartitionSpec(*_spec(axis % x.ndim, mesh.axis_names[0])))
            return put(x, lies) if is_concrete(x) else constrain(x, lies, argument)

        return tree_map(leaf, part)

    if axes is None or isinstance(axes, int):
        return place(axes, tree)
    return tree_map(place, axes, tree, is_leaf=lambda axis: axis is None)


def _run_moved(run: Any, axes: list[Any], out_axes: list[Any], shardings: list[Any], arrays: list[Any]) -> list[Any]:
    """The program, which has mapped axes in front, on arrays that have them elsewhere."""
    outs = run([_moved(x, a, 0) for x, a in zip(arrays, axes, strict=True)])
    moved = []
    for out, axis, sharding in zip(outs, out_axes, shardings, strict=True):
        moved.append(_core.with_aval(y, y._aval, sharding) if (y := _moved(out, 0, axis)) is not out else out)
    return moved


def _run_donated(run: Any, given: list[int], arrays: list[Any]) -> list[Any]:
    """The program, which takes over arrays; those that don't lie on its devices are copied there, and stay valid."""
    for k in given:
        if not is_placed(arrays[k]):
            arrays[k] = lax.copy_p.bind(arrays[k])
    return run(arrays)


def _moved(x: Any, source: int | None, target: int | None) -> Any:
    if source is None or target is None or source == target:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return lax.transpose(x, order)


def _sizes(tree: Any, axes: Any) -> set[int]:
    """The sizes of the mapped axes of a tree; ValueError for an array that has no such axis."""
    if not isinstance(axes, int):
        found: set[int] = set()
        tree_map(
            lambda axis, part: None if axis is None else found.update(_sizes(part, axis)),
            axes,
            tree,
            is_leaf=lambda axis: axis is None,
        )
        return found
    for leaf in tree_leaves(tree):
        if not -np.ndim(leaf) <= axes < np.ndim(leaf):
            raise ValueError(
                f"pmap: in_axes has {axes} for an argument of shape {np.shape(leaf)}, which has no such axis: its rank "
                f"is {np.ndim(leaf)}"
            )
    return {np.shape(leaf)[axes] for leaf in tree_leaves(tree)}


add_pages(globals(), PAGES)
