"""Collective operations as the program of one device sees them, where several run it at once.

    gathered = exchange(x)       all devices' values of x, along a new leading axis: all that devices do together
    place = device_index()       the number of the device

Each collective over the devices is an exchange and ordinary operations on what it gives (`DEVICE_RULES`), so that the
compiler fuses sums and selections with what follows. The extension does the exchange (ext/threads/device_team.h):
everybody reads the same operands in the same order, so results depend on no timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.lax.collectives.moves import all_gather_p, all_to_all_p, ppermute_p, reduce_scatter_p
from pullback.lax.collectives.sums import axis_index_p, check_groups, pmax_p, pmin_p, psum_p
from pullback.lax.records.compiler_made import device_primitive
from pullback.lax.records.families import *

__all__ = ["DEVICE_RULES", "device_index_p", "exchange_p"]


def _exchange_avals(*avals, size, site):
    return [ShapedArray((size, *a.shape), a.dtype) for a in avals]


_COPIED = 1 << 15  # bytes; larger operands are read where they are, at the price of a second wait


def _exchange_emit(ctx):
    site = ctx.b.index(ctx.params["site"])
    operands = [ctx.address(ctx.operand(k)) for k in range(len(ctx.in_avals))]
    nbytes = [aval.size * aval.dtype.itemsize for aval in ctx.in_avals]
    copied = sum(nbytes) <= _COPIED
    for k, address in enumerate(operands):
        if copied:
            ctx.call("pb_show_copy", ctx.b.index(k), address, ctx.b.index(nbytes[k]))
        else:
            ctx.call("pb_show", ctx.b.index(k), address)
    ctx.call("pb_meet", site)
    for k in range(len(operands)):
        if ctx.is_read(k):
            ctx.call("pb_take", ctx.b.index(k), ctx.address(ctx.result(k)), ctx.b.index(nbytes[k]))
    if copied:
        return
    ctx.call("pb_part", site)
    for k, address in enumerate(operands):  # until here the others read the operands
        ctx.call("pb_withdraw", ctx.b.index(k), address)


exchange_p = device_primitive(
    "exchange",
    "What each device has of the operands, along a new leading axis; `site` is the number of the exchange.",
    _exchange_avals,
    _exchange_emit,
    multiple_results=True,
)


def _index_emit(ctx):
    ctx.call("pb_device_index", ctx.address(ctx.result()))


device_index_p = device_primitive(
    "device_index",
    "The number of the device that runs the program.",
    lambda: ShapedArray((), np.int32),
    _index_emit,
)


class _Devices:
    """The devices that a collective runs over, as its rule sees them: all, or the groups of axis_index_groups."""

    def __init__(self, size: int, site: int, groups: Any) -> None:
        self.all, self.site, self.groups = size, site, groups
        if groups is not None:
            check_groups(groups, size, even=False)
        self.size = size if groups is None else len(groups[0])

    def place(self) -> Any:
        """The number of the device in its group."""
        index = device_index_p.bind()
        if self.groups is None:
            return index
        places = {i: k for g in self.groups for k, i in enumerate(g)}
        return _entry([places[i] for i in range(self.all)], index)

    def gather(self, *operands: Any) -> list[Any]:
        """Each operand as [size, ...], in the order of the group."""
        gathered = exchange_p.bind(*operands, size=self.all, site=self.site)
        if self.groups is None:
            return gathered
        check_groups(self.groups, self.all)
        group_of = {i: g for g in self.groups for i in g}
        index = device_index_p.bind()
        members = [_entry([group_of[i][k] for i in range(self.all)], index) for k in range(self.size)]
        return [lax.stack([_row(x, member) for member in members]) for x in gathered]


    def reduced(self, reduce: Callable, *operands: Any) -> list[Any]:
        """What `reduce` makes of [size, ...] of each operand, in groups of any sizes."""
        if self.groups is None or len({len(g) for g in self.groups}) == 1:
            return [reduce(x) for x in self.gather(*operands)]
        gathered = exchange_p.bind(*operands, size=self.all, site=self.site)
        mine = {i: k for k, g in enumerate(self.groups) for i in g}
        number = _entry([mine[i] for i in range(self.all)], device_index_p.bind())
        each = [
            [reduce(lax.stack([lax.index_in_dim(x, i, 0, keepdims=False) for i in g])) for g in self.groups]
            for x in gathered
        ]
        return [_row(lax.stack(found), number) for found in each]


def _entry(table: Sequence[int], index: Any) -> Any:
    return lax.dynamic_index_in_dim(np.asarray(table, np.int32), index, 0, keepdims=False)


def _row(x: Any, index: Any, axis: int = 0) -> Any:
    return lax.dynamic_index_in_dim(x, index, axis, keepdims=False)


def _reducing(reduce: Callable[[], Any]) -> Callable:
    def rule(devices, *operands, **_axes):
        return devices.reduced(lambda x: reduce()(x, (0,)), *operands)

    return rule


def _all_gather(devices, x, *, axis_name, all_gather_dimension, axis_size, tiled):
    (y,) = devices.gather(x)
    k = all_gather_dimension
    y = lax.transpose(y, (*range(1, k + 1), 0, *range(k + 1, y.ndim)))
    return [lax.reshape(y, (*y.shape[:k], y.shape[k] * y.shape[k + 1], *y.shape[k + 2 :])) if tiled else y]


def _part(devices, x, k, tiled):
    """What of dimension k is for this device."""
    if not tiled:
        return _row(x, devices.place(), k)
    n = x.shape[k] // devices.size
    return lax.dynamic_slice_in_dim(x, lax.mul(devices.place(), np.int32(n)), n, k)


def _reduce_scatter(devices, x, *, axis_name, scatter_dimension, axis_size, tiled):
    (y,) = devices.gather(x)
    return [lax.reduce_sum(_part(devices, y, scatter_dimension + 1, tiled), (0,))]


def _ppermute(devices, x, *, axis_name, perm):
    (y,) = devices.gather(x)
    sources = {destination: source for source, destination in perm}
    place = devices.place()
    moved = _row(y, _entry([sources.get(i, 0) for i in range(devices.size)], place))
    if len(sources) == devices.size:
        return [moved]
    arrives = _entry([int(i in sources) for i in range(devices.size)], place)
    return [lax.select(lax.full(moved.shape, lax.gt(arrives, np.int32(0))), moved, lax.full_like(moved, 0))]


def _all_to_all(devices, x, *, axis_name, split_axis, concat_axis, tiled, axis_size):
    (y,) = devices.gather(x)
    y = _part(devices, y, split_axis + 1, tiled)
    k = concat_axis
    y = lax.transpose(y, (*range(1, k + 1), 0, *range(k + 1, y.ndim)))
    return [lax.reshape(y, (*y.shape[:k], y.shape[k] * y.shape[k + 1], *y.shape[k + 2 :])) if tiled else y]


_RULES: dict[Primitive, Callable] = {
    psum_p: _reducing(lambda: lax.reduce_sum),
    pmax_p: _reducing(lambda: lax.reduce_max),
    pmin_p: _reducing(lambda: lax.reduce_min),
    all_gather_p: _all_gather,
    reduce_scatter_p: _reduce_scatter,
    ppermute_p: _ppermute,
    all_to_all_p: _all_to_all,
    axis_index_p: lambda devices, *, axis_name: [devices.place()],
}


def _rule(primitive: Primitive) -> Callable:
    def on_devices(operands, size, site, *, axis_index_groups=None, **params):
        return _RULES[primitive](_Devices(size, site, axis_index_groups), *operands, **params)

    return on_devices


# primitive -> rule(operands, size, site, **params) -> results
DEVICE_RULES = {primitive: _rule(primitive) for primitive in _RULES}
