"""Arrays made from their parts, one for each device of a sharding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.api.values import device_put
from pullback.core import ShapedArray, extended, hooks
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.devices import process_count
from pullback.runtime.arrays.placement import place_of
from pullback.runtime.arrays.terms import along, is_unreduced, sizes_of, sum_of, without_terms
from pullback.sharding import Sharding
from pullback.util import dtypes
from pullback.util.pytree import tree_flatten, tree_unflatten


def _sharding(name: str, given: Any) -> Sharding:
    found = getattr(given, "sharding", given)  # a Format has one
    if not isinstance(found, Sharding):
        raise TypeError(
            f"{name}: argument 'sharding' must be a jax.sharding.Sharding or a Format, got {given!r}, a {type(given)}"
        )
    return found


def _joined(name: str, shape: Any, sharding: Sharding, parts: Callable[[Any, Any], Any], dtype: Any) -> Any:
    """The array of the parts that parts(device, index) gives."""
    shape = tuple(operator.index(n) for n in shape)
    terms = sharding if is_unreduced(sharding) and sharding.is_fully_addressable else None  # which have these parts
    sharding = sharding if terms is None else without_terms(terms)
    here = sharding.addressable_devices_indices_map(shape)
    if not here:
        raise ValueError(f"{name}: none of the devices of {sharding} belongs to this process")
    found: dict[Any, np.ndarray] = {}
    wanted = sharding.shard_shape(shape)
    for device, index in here.items():
        given = parts(device, index)
        if dtypes.is_extended(getattr(given, "dtype", None)):
            return _joined_keys(name, shape, sharding, device, given, parts)
        part = np.asarray(given)
        kept = dtypes.canonicalize_dtype(part.dtype)
        if not found and dtype is not None and dtypes.canonicalize_dtype(dtype) != kept:
            raise ValueError(f"{name}: dtype={dtype} was asked for, but the parts are {kept}; convert them first")
        if part.shape != wanted:
            raise ValueError(
                f"Expected shard shape {wanted}, got a part of shape {part.shape}: that is how {sharding} cuts "
                f"{ShapedArray(shape, kept).short()} ({name})"
            )
        if found and (first := next(iter(found.values()))).dtype != part.dtype:
            raise ValueError(
                f"{name}: all parts must have matching dtypes. Got {part.dtype} at {index}, and {first.dtype} before it"
            )
        found[device] = part
    first = next(iter(found.values()))
    aval = ShapedArray(shape, dtypes.canonicalize_dtype(first.dtype))
    if not sharding.is_fully_addressable and not _cover(here, sharding.devices_indices_map(shape)):
        return hooks.array_of_parts(aval, sharding, lambda device, _: found[device])
    sizes, at = ([], {}) if terms is None else (sizes_of(terms), along(terms))
    whole = np.empty((*sizes, *shape), aval.dtype)
    for device, index in reversed(here.items()):  # of copies that differ the first one counts
        whole[at.get(device, ()) + index] = found[device]
    if terms is not None:
        return sum_of(asarray(whole), aval, place_of(terms))
    return asarray(whole, device=place_of(sharding))


def _joined_keys(name: str, shape: Any, sharding: Sharding, at: Any, first: Any, parts: Callable) -> Any:
    """The same of keys, the first of which are known: the words of all, which lie as they do."""

    rank = first.ndim

    def words(device: Any, index: Any) -> Any:
        return extended.words(first if device is at else parts(device, index[:rank]))

    shape = (*shape, *extended.words(first).shape[rank:])
    return extended.of_words(first.dtype, _joined(name, shape, sharding, words, None))


def _cover(here: dict[Any, Any], everywhere: dict[Any, Any]) -> bool:
    """Whether the parts of this process are all there are."""
    keys = [{tuple((s.start, s.stop) for s in index) for index in parts.values()} for parts in (here, everywhere)]
    return keys[0] == keys[1]


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Any:
    """An array of this shape over the devices of a sharding; data_callback(index) gives what lies at a tuple of slices.
    It is called for each device, or once where all have the whole.

    Raises ValueError for a part of another shape, or of another dtype than `dtype`.

    >>> import pullback as jax
    >>> place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> make_array_from_callback((2,), place, lambda index: np.array([1.0, 2.0], np.float32)[index])
    Array([1., 2.], dtype=float32)
    """
    sharding = _sharding("make_array_from_callback", sharding)
    if is_unreduced(sharding):
        sharding.devices_indices_map(shape)  # which says that there is none
    if not callable(data_callback):
        raise TypeError(f"make_array_from_callback: argument 'data_callback' must be a function, got {data_callback!r}")
    whole: list[Any] = []

    def part(_: Any, index: Any) -> Any:
        if not sharding.is_fully_replicated:
            return data_callback(index)
        if not whole:
            whole.append(data_callback(index))
        return whole[0]

    return _joined("make_array_from_callback", shape, sharding, part, dtype)


def _by_device(arrays: Sequence[Any], sharding: Sharding) -> dict[Any, Any]:
    """Device -> the array that lies on it; ValueError unless each device of this process has one."""
    expected = len(sharding.addressable_devices)
    if len(arrays) != expected:
        raise ValueError(
            f"Expected {expected} per-device arrays, one for each device of this process in {sharding}, got "
            f"{len(arrays)}"
        )
    by_device: dict[Any, Any] = {}
    for array in arrays:
        places: Any = getattr(array, "devices", lambda: ())()
        if len(places) > 1:
            raise ValueError(
                f"argument 'arrays': each must lie on one device, as its part of the whole; one lies on {len(places)}"
            )
        if not places:
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(array)}; they must be arrays")
        (device,) = places
        if device in by_device:
            raise ValueError(f"argument 'arrays': parts must be from distinct devices; two lie on {device}")
        by_device[device] = array
    if set(by_device) != set(sharding.addressable_devices):
        raise ValueError(
            f"argument 'arrays': the parts lie on {list(by_device)}, but the sharding's devices are "
            f"{sorted(sharding.addressable_devices, key=lambda d: d.id)}"
        )
    return by_device


def assembled(aval: Any, sharding: Any, arrays: Sequence[Any], committed: bool, _skip_checks: bool = False) -> Any:
    """The class of arrays, called: an array of this type, whose part on each device of a sharding is one of `arrays`.

    Raises ValueError for parts of another dtype or shape, or that lie elsewhere; TypeError for no sequence.
    """
    sharding = _sharding("ArrayImpl", sharding)
    if not isinstance(arrays, Sequence):
        raise TypeError(f"ArrayImpl: argument 'arrays' must be a list or tuple of arrays, got {type(arrays)}")
    for x in arrays:
        if getattr(x, "dtype", aval.dtype) != aval.dtype:
            raise ValueError(
                f"ArrayImpl: all parts must have matching dtypes. Got {x.dtype}, expected {aval.dtype}; the part is {x}"
            )
    by_device = _by_device(arrays, sharding)
    found = _joined("ArrayImpl", aval.shape, sharding, lambda device, _: by_device[device], None)
    if dtypes.is_extended(aval.dtype):
        return found
    place = found._device if committed or sharding.num_devices > 1 else None
    return _core.with_aval(found, found._aval.update(weak_type=bool(getattr(aval, "weak_type", False))), place)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """An array of this shape over the devices of a sharding, whose part on each device is one of `arrays`.

    Raises ValueError if a device has no array or several, for a part of another shape, or for arrays of several
    dtypes; TypeError for no sequence.
    """
    name = "make_array_from_single_device_arrays"
    sharding = _sharding(name, sharding)
    if not isinstance(arrays, Sequence):
        raise TypeError(f"{name}: argument 'arrays' takes a sequence of arrays, got {type(arrays)}")
    by_device = _by_device(arrays, sharding)
    return _joined(name, shape, sharding, lambda device, _: by_device[device], dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """An array over the devices of a sharding, of which each process gives the part that its devices hold.

    local_data: an array, or a tree of them. global_shape: of the whole, or a tree of such shapes; a size that is None
    is that of the data, times the number of processes that have different parts along the axis. Along an axis
    where global_shape is the data's, each process gives all of it. Raises ValueError for data of another shape.
    """
    name = "make_array_from_process_local_data"

    def one(x: Any, place: Any, wanted: Any) -> Any:
        x, place = x if dtypes.is_extended(getattr(x, "dtype", None)) else np.asarray(x), _sharding(name, place)
        if place.is_fully_addressable:
            if wanted is not None:
                sizes = (wanted,) if isinstance(wanted, int) else tuple(wanted)
                known = None not in sizes or process_count() > 1
                if not known or len(sizes) != x.ndim or any(w not in (None, n) for w, n in zip(sizes, x.shape)):
                    raise ValueError(
                        f"{name}: this process holds all of the array, so its data, of shape {x.shape}, must have "
                        f"global_shape={wanted}; leave global_shape out"
                    )
            return device_put(x, place)
        shape, offsets = _global_shape(name, x, place, wanted)

        def part(index: tuple[slice, ...]) -> np.ndarray:
            moved = []
            for s, n, places in zip(index, shape, offsets, strict=True):
                start, stop, _ = s.indices(n)
                moved.append(slice(places[start], places[start] + stop - start))
            return x[tuple(moved)]

        return make_array_from_callback(shape, place, part)

    leaves, tree = tree_flatten(local_data)
    places = [sharding] * len(leaves) if isinstance(sharding, Sharding) else tree.flatten_up_to(sharding)
    single = global_shape is None or isinstance(global_shape, int)
    single = single or all(isinstance(n, (int, np.integer, type(None))) for n in global_shape)
    shapes = [global_shape] * len(leaves) if single else tree.flatten_up_to(global_shape)
    return tree_unflatten(tree, [one(*given) for given in zip(leaves, places, shapes, strict=True)])


def _global_shape(
    name: str, x: np.ndarray, sharding: Sharding, wanted: Any
) -> tuple[tuple[int, ...], list[dict[int, int]]]:
    """(shape of the whole, for each axis: start of a part in the whole -> start in the data of this process)."""
    if wanted is not None and len(wanted) != x.ndim:
        raise ValueError(f"{name}: global_shape {tuple(wanted)} has another rank than the data, {x.shape}")
    numbers, counts = sharding._places(x.ndim)
    mine: list[list[int]] = [sorted({numbers[d][axis] for d in sharding.addressable_devices}) for axis in range(x.ndim)]
    shape, offsets = [], []
    for axis, (n, count, parts) in enumerate(zip(x.shape, counts, mine, strict=True)):
        whole = None if wanted is None else wanted[axis]
        if whole is None:
            if n % len(parts):
                raise ValueError(f"{name}: axis {axis} of the data, {x.shape}, is not {len(parts)} equal parts")
            whole = n // len(parts) * count
        step, rest = divmod(whole, count)
        if rest:
            raise ValueError(f"{name}: axis {axis} of global_shape {tuple(wanted)} is not {count} equal parts")
        if n == whole:
            offsets.append({k * step: k * step for k in parts})
        elif n == step * len(parts):
            offsets.append({k * step: place * step for place, k in enumerate(parts)})
        else:
            raise ValueError(
                f"{name}: axis {axis} of the data has {n} elements; with global_shape {tuple(wanted)} this process has "
                f"{step * len(parts)} of {whole}, or gives all"
            )
        shape.append(whole)
    return tuple(shape), offsets


__all__ = ["make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays"]

add_pages(globals(), PAGES)
