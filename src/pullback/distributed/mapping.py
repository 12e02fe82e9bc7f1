"""shard_map over processes: its body traced for one device, with the mesh axes' collectives in it.

    shard_map(f, in_specs, out_specs)(xs)  =>  mapped[jaxpr={f on parts} mesh in_specs out_specs] xs

While the body is traced its types say which values vary along the axes (core/types.py), which derivatives inside go by;
results that vary may not be said to be the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    Primitive,
    ShapedArray,
    extend_axis_env,
    hoist_tracers,
    trace,
    typeof,
)
from pullback.core.avals import typed
from pullback.core.primitive import NoRule
from pullback.core.types import CheckedAxis, untyped, vma_of
from pullback.sharding import Mesh, PartitionSpec
from pullback.sharding._specs import names_of

_NOT_YET = NoRule(
    "transformations of shard_map over several processes are not supported; differentiate or map inside of the "
    "function that it maps"
)


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

    types = []
    for x, spec in zip(values, in_specs, strict=True):
        aval = part_type(typeof(x), spec, mesh)
        types.append(typed(aval, None, frozenset(n for part in spec for n in names_of(part))) if check else aval)
    with contextlib.ExitStack() as stack:
        for axis, size in sizes.items():
            stack.enter_context(extend_axis_env(axis, size))
            if check:
                stack.enter_context(extend_axis_env(CheckedAxis(axis), size))
        closed, consts = hoist_tracers(trace(function, types, DebugInfo("shard_map", name)))
    for aval, spec in zip(closed.out_avals, out_specs(), strict=True):
        for axis in sorted(vma_of(aval) - {n for part in spec for n in names_of(part)}, key=str):
            raise ValueError(
                f"shard_map of {name}: out_specs says by {spec} that a result is the same along mesh axis {axis!r}, "
                f"but it depends on the device. Name {axis!r} in the spec, or combine the parts (lax.psum, ...); if "
                "they are known to be the same, pass check_vma=False"
            )
    specs = (*[PartitionSpec()] * len(consts), *in_specs)
    return mapped_p.bind(
        *consts, *values, jaxpr=untyped(closed), mesh=mesh, in_specs=specs, out_specs=tuple(out_specs()), name=name
    )


__all__ = ["mapped", "mapped_p"]
