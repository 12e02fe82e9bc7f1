"""Arrays made from their parts, one for each device of a sharding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.api.values import device_put
from pullback.core import ShapedArray
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.placement import place_of
from pullback.sharding import Sharding
from pullback.util import dtypes
from pullback.util.pytree import tree_flatten, tree_unflatten


def _sharding(name: str, given: Any) -> Sharding:
    found = getattr(given, "sharding", given)  # a Format has one
    if not isinstance(found, Sharding):
        raise TypeError(f"{name}: `sharding` must be an instance of `jax.sharding.Sharding`, got {given!r}")
    return found


def _joined(name: str, shape: Any, sharding: Sharding, parts: Callable[[Any, Any], Any], dtype: Any) -> Any:
    """The array of the parts that parts(device, index) gives."""
    shape = tuple(operator.index(n) for n in shape)
    whole: Any = None
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        part = np.asarray(parts(device, index))
        if whole is None:
            kept = dtypes.canonicalize_dtype(part.dtype)
            if dtype is not None and dtypes.canonicalize_dtype(dtype) != kept:
                raise ValueError(f"If `dtype` is provided to `jax.{name}`, it must match the dtype of the addressable "
                                 f"shards. Got dtype={dtype} and shard dtype={kept}`.")  # fmt: skip
            whole = np.empty(shape, kept)
        wanted = whole[index].shape
        if part.shape != wanted:
            raise ValueError(
                f"Expected shard shape {wanted} doesn't match the single device array shape {part.shape}. Shape of "
                f"Array is {ShapedArray(shape, whole.dtype).str_short()} with sharding {sharding}"
            )
        whole[index] = part
    return asarray(whole, device=place_of(sharding))


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Any:
    """An array of this shape over the devices of a sharding; data_callback(index) gives what lies at a tuple of slices.

    Raises ValueError for a part of another shape, or of another dtype than `dtype`.

    >>> import pullback as jax
    >>> place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> make_array_from_callback((2,), place, lambda index: np.array([1.0, 2.0], np.float32)[index])
    Array([1., 2.], dtype=float32)
    """
    sharding = _sharding("make_array_from_callback", sharding)
    if not callable(data_callback):
        raise TypeError(f"make_array_from_callback: argument 'data_callback' must be a function, got {data_callback!r}")
    return _joined("make_array_from_callback", shape, sharding, lambda _, index: data_callback(index), dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """An array of this shape over the devices of a sharding, whose part on each device is one of `arrays`.

    Raises ValueError if a device has no array or several, or for a part of another shape; TypeError for no sequence.
    """
    name = "make_array_from_single_device_arrays"
    sharding = _sharding(name, sharding)
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name} `arrays` argument must be a sequence (list or tuple), got {type(arrays)}")
    by_device: dict[Any, Any] = {}
    for array in arrays:
        places: Any = getattr(array, "devices", lambda: ())()
        if len(places) != 1:
            raise TypeError(f"{name} requires a list of concrete arrays that each lie on one device, got {array!r}")
        (device,) = places
        if device in by_device:
            raise ValueError(f"{name}: two of the arrays lie on {device}")
        by_device[device] = array
    if set(by_device) != set(sharding.addressable_devices):
        raise ValueError(
            f"Addressable devices and per-device arrays devices do not match. Arrays lie on {list(by_device)}, the "
            f"sharding's devices are {sorted(sharding.addressable_devices, key=lambda d: d.id)}"
        )
    return _joined(name, shape, sharding, lambda device, _: by_device[device], dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """The data of this process as an array over the devices of a sharding; with one process they are all of it.

    Raises ValueError for a `global_shape` other than that of the data.
    """
    name = "make_array_from_process_local_data"

    def one(x: Any, place: Any, wanted: Any) -> Any:
        x = np.asarray(x)
        if wanted is not None:
            if len(wanted) != x.ndim or any(w is not None and w != n for w, n in zip(wanted, x.shape, strict=True)):
                raise ValueError(f"{name}: global_shape {tuple(wanted)} is not the data's, {x.shape}")
        return device_put(x, _sharding(name, place))

    leaves, tree = tree_flatten(local_data)
    places = [sharding] * len(leaves) if isinstance(sharding, Sharding) else tree.flatten_up_to(sharding)
    single = global_shape is None or all(isinstance(n, (int, np.integer, type(None))) for n in global_shape)
    shapes = [global_shape] * len(leaves) if single else tree.flatten_up_to(global_shape)
    return tree_unflatten(tree, [one(*given) for given in zip(leaves, places, shapes, strict=True)])


__all__ = ["make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays"]
