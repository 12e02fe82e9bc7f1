"""Python functions that run on the host of their arguments' devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback._ext import _core
from pullback.api import ShapeDtypeStruct
from pullback.core import hooks
from pullback.runtime.arrays.devices import Device
from pullback.sharding import Mesh, Sharding
from pullback.util.pytree import tree_flatten, tree_map, tree_unflatten


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices on the hosts of these devices, or of this mesh's: themselves, as all devices are CPU devices.

    Raises TypeError for what is neither.
    """
    given = devices_or_mesh.devices.flat if isinstance(devices_or_mesh, Mesh) else devices_or_mesh
    if not isinstance(given, str) and all(isinstance(d, Device) for d in given):
        return devices_or_mesh
    raise TypeError(f"colocated_cpu_devices: expected devices or a Mesh, got {devices_or_mesh!r}")


def _spec(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


class _Given:
    """What a function is specialized to."""

    def __init__(self, in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None) -> None:
        self.in_specs, self.out_specs_fn, self.devices = in_specs, out_specs_fn, devices

    def with_more(self, name: str, **more: Any) -> _Given:
        for field, value in more.items():
            if value is not None and getattr(self, field) is not None:
                raise ValueError(f"{name}.specialize: {field} is given already")
        return _Given(**{k: getattr(self, k) if v is None else v for k, v in more.items()})

    def check(self, name: str, leaves: list[Any], tree: Any) -> None:
        for leaf in leaves:
            if type(leaf) is not _core.Array and not hasattr(leaf, "_base_array"):
                raise TypeError(f"{name}: arguments of colocated functions must be arrays, got {leaf!r}")
        lists = {tuple(sorted(x.sharding.device_set, key=lambda d: d.id)) for x in leaves}
        if len(lists) > 1:
            raise ValueError(
                f"{name}: its arguments lie on several lists of devices, {lists}; it runs beside one of them"
            )
        if not leaves and self.devices is None:
            raise ValueError(
                f"{name}: No devices found. It has no arguments to run beside; its specialize(devices=...) says where."
            )
        if self.in_specs is not None:
            specs, wanted = tree_flatten(self.in_specs)
            if wanted != tree or [(s.shape, s.dtype) for s in specs] != [(x.shape, x.dtype) for x in leaves]:
                raise ValueError(
                    f"{name}: arguments do not match in_specs {self.in_specs}: got {tree_unflatten(tree, leaves)}"
                )

    def placed(self, name: str, out: Any, args: Any, kwargs: Any) -> Any:
        """The result, where out_specs_fn says; ValueError for another than it says."""
        if self.out_specs_fn is None:
            return out
        given, keywords = tree_map(_spec, (args, kwargs))
        specs, wanted = tree_flatten(self.out_specs_fn(*given, **keywords))
        leaves, tree = tree_flatten(out)
        if wanted != tree or [(s.shape, s.dtype) for s in specs] != [(x.shape, x.dtype) for x in leaves]:
            raise ValueError(f"{name}: the result does not match out_specs_fn, which gave {specs}: got {out}")
        return tree_unflatten(
            tree,
            [
                hooks.device_put(x, s.sharding) if isinstance(s.sharding, Sharding) else x
                for x, s in zip(leaves, specs, strict=True)
            ],
        )


def _colocated(fun: Callable[..., Any], name: str, given: _Given) -> Any:
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        given.check(name, leaves, tree)
        return given.placed(name, fun(*args, **kwargs), args, kwargs)

    def specialize(in_specs: Any = None, out_specs_fn: Any = None, devices: Sequence[Device] | None = None) -> Any:
        """The function for arguments of these types, whose result is as out_specs_fn(*types) says, or for these
        devices. Raises ValueError for what it is specialized to already.
        """
        return _colocated(
            fun, name, given.with_more(name, in_specs=in_specs, out_specs_fn=out_specs_fn, devices=devices)
        )

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def colocated_python(fun: Callable[..., Any]) -> Any:
    """`fun`, run as plain Python on the host of its arguments' devices; it has a method `specialize`.

    Calls raise ValueError for arguments on different devices, for none where no devices were said, and for what does
    not match the specification; TypeError for arguments that are no arrays.

    >>> import pullback as jax
    >>> colocated_python(lambda x: x + 1)(jax.numpy.zeros(2)).tolist()
    [1.0, 1.0]
    """
    if not callable(fun):
        raise TypeError(f"colocated_python: expected a function, got {fun!r}")
    return _colocated(fun, getattr(fun, "__name__", str(fun)), _Given())
