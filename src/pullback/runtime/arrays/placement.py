"""Where values lie: the place that an array carries, and what the place of a program's results depends on.

The devices of one machine share its memory, so every array is whole; what it carries is the Device, or the sharding
over several, that it is committed to (`Array._device`). A program's results lie where its committed arguments do. The
extension decides the common cases by itself (ext/arrays/placement.h), and asks for the rest (placed_results.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import hooks
from pullback.core.avals import ShapedArray, expect_places, placed
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from pullback.core.types import CONSTRAINTS
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.layouts import with_layout
from pullback.runtime.arrays.terms import is_unreduced, sizes_of, terms_of, with_terms
from pullback.sharding import NamedSharding, Sharding, SingleDeviceSharding
from pullback.sharding._layout import Format, Layout
from pullback.sharding._shardings import MemorySpace
from pullback.util.memory import make_room

SAYS = (*CONSTRAINTS, "shard_map")  # primitives that say where a value lies
MAX_PLACES = 4096
_interned: dict[Sharding, Sharding] = {}


def place_of(sharding: Any) -> Any:
    """What an array carries: a Device, or the one object that stands for all equal shardings over several."""
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory_kind == "device":
        (device,) = sharding.device_set
        return device
    if not isinstance(sharding, Sharding):
        return sharding
    if sharding not in _interned:
        make_room(_interned, MAX_PLACES)
        on_host = sharding.memory_kind == MemorySpace.Host.value
        if on_host or (isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes):
            expect_places()
            _core.set_array_attribute("aval", property(_aval_of))
    return _interned.setdefault(sharding, sharding)


def _aval_of(x: Any) -> ShapedArray:
    """The type of an array, which says how explicit axes of a mesh cut it, and that it lies in the host's memory. Where
    there is none, arrays know it by themselves, in less time.
    """
    place = x._device
    return x._aval if place is None else placed(x._aval, place)


def device_put(x: Any, place: Any = None) -> Any:
    """`x` as an Array committed to a Device or Sharding, with the same memory; where it is if `place` is None. A Format
    gives it a layout, too.
    """
    if isinstance(place, Format):
        return with_layout(device_put(x, place.sharding), place.layout if isinstance(place.layout, Layout) else None)
    if place is not None and type(x) is _core.Array:
        if x._device is place_of(place):
            return x
        if hooks.transfers is not None:
            hooks.transfers.between(x, devices_of(x.device), devices_of(place_of(place)))
        if is_unreduced(x._device) and is_unreduced(place) and sizes_of(x._device) == sizes_of(place):
            return with_terms(asarray(x, device=place_of(place)), terms_of(x))
    return asarray(x) if place is None else asarray(x, device=place_of(place))


def watch_moves(arrays: Sequence[Any], wanted: Sequence[Any] | None = None) -> None:
    """JaxRuntimeError for arrays that a guard keeps from the devices that a call takes place on: those of the committed
    ones, or of `wanted`. What is no array on a device, as NumPy's float0, goes nowhere.
    """
    bases = [getattr(x, "_base_array", x) for x in arrays]
    lying = [(x, place) for x, place in zip(bases, wanted or [None] * len(bases)) if hasattr(x, "_device")]
    said = [x._device if place is None else place_of(place) for x, place in lying]
    there = next((devices_of(place) for place in said if place is not None), None)
    for x, _ in lying if there is not None else ():
        hooks.transfers.between(x, devices_of(x.device), there)


def copied(x: Any) -> Any:
    """`x` with memory of its own."""
    if hasattr(x, "_base_array"):
        return type(x)(x._impl, copied(x._base_array))
    found = _core.from_numpy(np.asarray(x), x._aval, x._device, True)
    return with_terms(found, terms_of(x)) if is_unreduced(x._device) else found


def devices_of(place: Any) -> frozenset[Any]:
    """The devices of a place."""
    return (
        place._devices
        if isinstance(place, NamedSharding)
        else frozenset((place,) if isinstance(place, Device) else place.device_set)
    )


def in_order(place: Any) -> tuple[Any, ...]:
    """The devices of a place, in the order in which a program counts them: two orders do not meet in one program."""
    return place._device_assignment if isinstance(place, Sharding) else (place,)


def is_placed(x: Any) -> bool:
    """Whether an array lies over devices, so that a donated one need not be copied there."""
    return isinstance(getattr(x, "_base_array", x)._device, Sharding)


class Placing:
    """What the place of a program's results depends on: the program, and the numbers of the arguments that it takes."""

    __slots__ = ("closed", "found", "jaxpr", "kept")

    def __init__(self, closed: ClosedJaxpr, kept: Sequence[int] | None = None) -> None:
        self.closed, self.jaxpr = closed, closed.jaxpr
        self.kept = kept
        self.found: dict[Any, tuple[Any, ...]] = {}

    @property
    def arguments(self) -> list[Any]:
        """The variables of the arguments."""
        return self.jaxpr.invars if self.kept is None else [self.jaxpr.invars[k] for k in self.kept]


def says_where(closed: ClosedJaxpr) -> bool:
    """Whether the program itself says where some value lies."""
    return closed.cached("says where", lambda: (_says_where(closed.jaxpr),))[0]


def _says_where(jaxpr: Jaxpr) -> bool:
    return any(e.primitive.name in SAYS or any(map(_says_where, jaxprs_in_params(e.params))) for e in jaxpr.eqns)
