"""pmap: a function mapped over a leading axis, one element for each device.

The simulated devices of one machine share its memory, so the mapped elements run as one program, vectorized over the
axis and split over the threads, and collectives are operations on that axis. Programs see what they would see on real
devices: the axis must not be longer than the number of devices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback.api import _arguments as arguments
from pullback.api.jit import jit
from pullback.api.vmap import vmap
from pullback.runtime.devices import device_count
from pullback.util import pytree as tree_util


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Any = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
    global_arg_shapes: Any = None,
) -> Callable[..., Any]:
    """`fun` mapped over the devices: axis `in_axes` of each argument (None: the same for all) has one element for each.

    Collectives (`lax.psum`, ...) in `fun` act over `axis_name`. Static arguments are passed as they are, and must be
    hashable. Raises ValueError when there are more elements than devices, or sizes differ; TypeError if `fun` is not
    callable.
    """
    arguments.check_callable("pmap", fun)
    if global_arg_shapes is not None:
        raise NotImplementedError("pmap: global_arg_shapes is not supported")
    statics = (
        (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) else static_broadcasted_argnums
    )
    static_nums = tuple(sorted(statics))
    name = axis_name if axis_name is not None else object()
    available = len(devices) if devices is not None else None

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args) for n in static_nums if -len(args) <= n < len(args)}
        size = _axis_size(fun, args, kwargs, in_axes, fixed, axis_size)
        limit = device_count() if available is None else available
        if size > limit:
            raise ValueError(
                f"compiling computation that requires {size} logical devices, but only {limit} XLA devices are "
                f"available (num_replicas={size}, num_partitions=1); pmap of {arguments.function_name(fun)} maps "
                f"over an axis of size {size}. Set jax_num_cpu_devices, or "
                f"XLA_FLAGS=--xla_force_host_platform_device_count={size}, before the first use of a device."
            )
        return compiled(*args, **kwargs)

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args) for n in static_nums if -len(args) <= n < len(args)}
        dynamic = [a for i, a in enumerate(args) if i not in fixed]
        axes = in_axes
        if isinstance(in_axes, tuple | list):
            axes = tuple(a for i, a in enumerate(in_axes) if i not in fixed)

        def body(inner: Any, inner_kwargs: Any) -> Any:
            values = iter(inner)
            full = [args[i] if i in fixed else next(values) for i in range(len(args))]
            return fun(*full, **inner_kwargs)

        whole = tuple(axes) if isinstance(axes, tuple | list) else axes
        return vmap(body, in_axes=(whole, 0), out_axes=out_axes, axis_name=name, axis_size=axis_size)(
            tuple(dynamic), kwargs
        )

    compiled = jit(
        functools.wraps(fun)(vectorized), static_argnums=static_nums or None, donate_argnums=donate_argnums or None
    )
    mapped.lower = compiled.lower  # type: ignore[attr-defined]
    mapped.trace = compiled.trace  # type: ignore[attr-defined]
    return mapped


def _axis_size(fun: Any, args: Any, kwargs: Any, in_axes: Any, fixed: set[int], axis_size: int | None) -> int:
    """The size of the mapped axis; ValueError if there is none or arguments disagree."""
    axes = in_axes if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
    if len(axes) != len(args):
        raise ValueError(
            f"pmap of {arguments.function_name(fun)}: in_axes has {len(axes)} entries, but {len(args)} arguments "
            "were given"
        )
    sizes = set() if axis_size is None else {axis_size}
    for i, (arg, axis) in enumerate(zip(args, axes, strict=True)):
        if i in fixed or axis is None:
            continue
        if isinstance(axis, int):
            for leaf in tree_util.tree_leaves(arg):
                if np.ndim(leaf) <= axis:
                    raise ValueError(
                        f"pmap was requested to map its argument along axis {axis}, which implies that its rank "
                        f"should be at least {axis + 1}, but is only {np.ndim(leaf)} (its shape is {np.shape(leaf)})"
                    )
                sizes.add(np.shape(leaf)[axis])
        else:
            pairs = tree_util.tree_leaves(
                tree_util.tree_map(
                    lambda a, x: None if a is None else [np.shape(leaf)[a] for leaf in tree_util.tree_leaves(x)],
                    axis,
                    arg,
                    is_leaf=lambda a: a is None,
                )
            )
            sizes.update(pairs)
    for leaf in tree_util.tree_leaves(kwargs):
        sizes.add(np.shape(leaf)[0])
    if not sizes:
        raise ValueError(
            f"pmap of {arguments.function_name(fun)}: at least one argument must be mapped, or axis_size given"
        )
    if len(sizes) > 1:
        raise ValueError(f"pmap got inconsistent sizes for array axes to be mapped: {sorted(sizes)}")
    return sizes.pop()
