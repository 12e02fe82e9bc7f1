"""shard_map over processes: its body traced for one device, with the mesh axes' collectives in it.

    shard_map(f, in_specs, out_specs)(xs)  =>  mapped[jaxpr={f on parts} mesh in_specs out_specs] xs

While the body is traced, an interpreter for each axis knows which values differ along it (`LocalTracer`): derivatives
inside ask (lax/collectives/varying.py), and results that differ may not be said to be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    Primitive,
    ShapedArray,
    current_interpreter,
    extend_axis_env,
    hoist_tracers,
    trace,
    typeof,
    using,
)
from pullback.core.primitive import NoRule
from pullback.lax.collectives.varying import CheckedAxis
from pullback.sharding import Mesh, PartitionSpec
from pullback.sharding._specs import names_of
from pullback.transforms.batching import AxisData, BatchInterpreter, BatchTracer

_NOT_YET = NoRule(
    "transformations of shard_map over several processes are not supported; differentiate or map inside of the "
    "function that it maps"
)
_SAME_AFTER = ("psum", "pmax", "pmin")  # collectives whose results are the same on all devices


class LocalInterpreter(BatchInterpreter):
    """Runs primitives on one device's values, and notes which of them differ along the axis."""

    transformation = "shard_map"

    def join(self, value: Any, dim: int | None) -> Any:
        return value if dim is None else LocalTracer(self, value, 0, typeof(value), None)

    def process(self, primitive: Any, args: Any, params: dict[str, Any]) -> Any:
        values, dims = zip(*map(self.split, args)) if args else ((), ())
        out = self.parent.process(primitive, values, params)
        axes = () if primitive.collective_axes is None else tuple(primitive.collective_axes(params))
        if self.axis.name in axes:
            groups = params.get("axis_index_groups")
            differs = primitive.name not in _SAME_AFTER or groups is not None
        else:
            differs = any(d is not None for d in dims)
        dim = 0 if differs else None
        return [self.join(v, dim) for v in out] if primitive.multiple_results else self.join(out, dim)

    def _custom(self, process: Callable, functions: Sequence[Any], args: Any) -> Any:
        values, dims = zip(*map(self.split, args)) if args else ((), ())
        outs = process(*functions, values)
        return [self.join(v, 0) if any(d is not None for d in dims) else v for v in outs]

    def process_custom_jvp(self, custom: Any, fun: Any, jvp: Any, args: Any) -> Any:
        return self._custom(self.parent.process_custom_jvp, (custom, fun, jvp), args)

    def process_custom_vjp(self, custom: Any, fun: Any, fwd: Any, bwd: Any, args: Any) -> Any:
        return self._custom(self.parent.process_custom_vjp, (custom, fun, fwd, bwd), args)


class LocalTracer(BatchTracer):
    """A value that differs along an axis of the mesh."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ShardMapTracer({self.aval})"


def _counts(spec: PartitionSpec, ndim: int, sizes: dict[Any, int]) -> list[int]:
    return [math.prod(sizes[n] for n in names_of(p)) for p in spec] + [1] * (ndim - len(spec))


def part_type(aval: Any, spec: PartitionSpec, mesh: Any) -> ShapedArray:
    """The type of one device's part."""
    counts = _counts(spec, len(aval.shape), dict(mesh.shape))
    return ShapedArray(tuple(n // c for n, c in zip(aval.shape, counts)), aval.dtype)


def _whole_types(*_avals: Any, jaxpr: ClosedJaxpr, mesh: Any, out_specs: Any, **_params: Any) -> list[ShapedArray]:
    sizes = dict(mesh.shape)
    return [
        ShapedArray(tuple(n * c for n, c in zip(a.shape, _counts(s, len(a.shape), sizes))), a.dtype)
        for a, s in zip(jaxpr.out_avals, out_specs, strict=True)
    ]


mapped_p = Primitive(
    "shard_map_between",
    doc="A function of one device's parts, over the devices of several processes.",
    abstract_eval=_whole_types,
    reference=NoRule("it takes several devices"),
    jvp=_NOT_YET,
    transpose=_NOT_YET,
    batch=_NOT_YET,
    lower=NoRule("it takes several devices"),
    multiple_results=True,
    register=False,
)


def mapped(
    function: Callable[..., list[Any]],
    values: Sequence[Any],
    mesh: Mesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Callable[[], Sequence[PartitionSpec]],
    check: bool,
    name: str,
) -> list[Any]:
    """The results of flat `function` over the mesh; `out_specs` is asked once it has run.

    Raises ValueError for a result that differs along an axis though its spec does not name it, if `check` is set.
    """
    sizes = dict(mesh.shape)
    for i, (x, spec) in enumerate(zip(values, in_specs, strict=True)):
        for d, (n, c) in enumerate(zip(x.shape, _counts(spec, len(x.shape), sizes))):
            if n % c:
                raise ValueError(
                    f"shard_map of {name}: array {i} has shape {x.shape}, whose dimension {d} is not evenly divisible "
                    f"by {c}, the size of mesh axes {names_of(spec[d])}"
                )

    def over(axes: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        if not axes:
            return function(*parts)
        axis = axes[0]
        interpreter = LocalInterpreter(current_interpreter(), AxisData(axis, sizes[axis]))
        differ = [any(axis in names_of(part) for part in spec) for spec in in_specs]
        given = [interpreter.join(x, 0 if d else None) for x, d in zip(parts, differ)]
        with (
            extend_axis_env(axis, sizes[axis]),
            extend_axis_env(CheckedAxis(axis) if check else None, sizes[axis]),
            using(interpreter),
        ):
            found = [interpreter.split(y) for y in over(axes[1:], given)]
        interpreter.valid = False
        for (_, dim), spec in zip(found, out_specs(), strict=True):
            if check and dim is not None and not any(axis in names_of(part) for part in spec):
                raise ValueError(
                    f"shard_map of {name}: out_specs says by {spec} that a result is the same along mesh axis {axis!r},"
                    f" but it depends on the device. Name {axis!r} in the spec, or combine the parts (lax.psum, ...); "
                    "if they are known to be the same, pass check_vma=False"
                )
        return [y for y, _ in found]

    types = [part_type(typeof(x), spec, mesh) for x, spec in zip(values, in_specs, strict=True)]
    closed, consts = hoist_tracers(
        trace(lambda *parts: over(list(mesh.axis_names), parts), types, DebugInfo("shard_map", name))
    )
    specs = (*[PartitionSpec()] * len(consts), *in_specs)
    return mapped_p.bind(
        *consts, *values, jaxpr=closed, mesh=mesh, in_specs=specs, out_specs=tuple(out_specs()), name=name
    )


__all__ = ["mapped", "mapped_p"]
