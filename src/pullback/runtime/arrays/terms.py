"""The terms of arrays that are still to be summed over mesh axes: what each device has.

Such an array is its sum, as all others are whole. Its terms are kept beside it, as long as it is there: an array with a
dimension for each of those axes, in the order of the mesh, before its own. Of one that was given as a value, the first
device has that, and the others have zeros.
"""

from __future__ import annotations

import functools
import operator
import weakref
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import ShapedArray
from pullback.sharding import NamedSharding

_kept: dict[int, tuple[weakref.ref, Any]] = {}  # by the address of the array


def is_unreduced(sharding: Any) -> bool:
    """Whether arrays that lie so are still to be summed over mesh axes."""
    return isinstance(sharding, NamedSharding) and bool(sharding.spec.unreduced)


def without_terms(sharding: Any) -> Any:
    """The sharding of each of the terms of arrays that lie so; that itself where there are none."""
    return sharding if not is_unreduced(sharding) else sharding.update(spec=sharding.spec.update(unreduced=frozenset()))


def sizes_of(sharding: Any) -> list[int]:
    """The sizes of the axes over which arrays that lie so are to be summed, in the order of the mesh."""
    mesh = sharding.mesh
    return [n for name, n in zip(mesh.axis_names, mesh.axis_sizes, strict=True) if name in sharding.spec.unreduced]


def along(sharding: Any) -> dict[Any, tuple[int, ...]]:
    """Device -> its place along those axes."""
    devices, names = sharding.mesh.devices, sharding.mesh.axis_names
    of = [k for k, name in enumerate(names) if name in sharding.spec.unreduced]
    return {devices[place]: tuple([place[k] for k in of]) for place in np.ndindex(*devices.shape)}


def terms_of(x: Any) -> Any:
    """The terms of an array that is unreduced, as its sharding says."""
    found = _kept.get(id(x))
    if found is not None and found[0]() is x:
        return found[1]
    sizes = sizes_of(x.sharding)
    terms = np.zeros((*sizes, *x.shape), x.dtype)
    terms[(0,) * len(sizes)] = np.asarray(x)
    return _core.from_numpy(terms, ShapedArray(terms.shape, terms.dtype), None, False)


def sum_of(terms: Any, aval: Any, sharding: Any) -> Any:
    """The array of this type that is the sum of terms, added in the order of the devices."""
    rows = np.asarray(terms).reshape(-1, *aval.shape)
    total = np.ascontiguousarray(functools.reduce(operator.add, rows)).reshape(aval.shape)
    return with_terms(_core.from_numpy(total, aval, sharding, True), terms)


def with_terms(x: Any, terms: Any) -> Any:
    """x, whose devices have these terms."""
    number = id(x)
    _kept[number] = weakref.ref(x, lambda _: _kept.pop(number, None)), terms
    return x


__all__ = ["along", "is_unreduced", "sizes_of", "sum_of", "terms_of", "with_terms", "without_terms"]
