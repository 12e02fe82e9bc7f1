"""Gathers, scatters and slices at places that are computed: what is taken whole, and batches, may be cut."""

from __future__ import annotations

from typing import Any

from pullback.partition.factors import Factors, LocalSize, in_place
from pullback.partition.rules import Naming, part_of, shape_of


def _gather(eqn: Any) -> Factors:
    """Dimensions of the operand that slices have all of, batches, and those of the indices."""
    p, (operand, indices) = eqn.params, map(shape_of, eqn.invars[:2])
    numbers, out = p["dimension_numbers"], shape_of(eqn.outvars[0])
    names: tuple[list[Any], list[Any], list[Any]] = (
        [None] * len(operand),
        [("i", d) for d in range(len(indices) - 1)] + [None],
        [None] * len(out),
    )
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    for at, d in zip(numbers.offset_dims, [d for d in range(len(operand)) if d not in gone], strict=True):
        if p["slice_sizes"][d] == operand[d]:
            names[0][d] = names[2][at] = ("o", d)
    for d, k in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        names[0][d] = ("i", k)
    for at, k in zip([d for d in range(len(out)) if d not in numbers.offset_dims], range(len(indices) - 1)):
        names[2][at] = ("i", k)
    naming = Naming()
    dims = [naming.dims(n, s) for n, s in zip(names, (operand, indices, out), strict=True)]
    sliced = tuple(
        () if d in numbers.operand_batching_dims else f if p["slice_sizes"][d] == operand[d] else ()
        for d, f in enumerate(dims[0])
    )

    def local(params: dict[str, Any], size: LocalSize) -> dict[str, Any]:
        return {**params, "slice_sizes": part_of(sliced, params["slice_sizes"], size)}

    # A slice that has all of a dimension of which indices say the beginning is moved inside of it: it stays whole.
    return Factors(tuple(naming.sizes), tuple(dims[:2]) + ((),) * (len(eqn.invars) - 2), (dims[2],), local=local)


def _scatter(eqn: Any) -> Factors:
    """As `_gather`; dimensions of the indices are cut where they are batches only, as all write to one result."""
    p, (operand, indices, updates) = eqn.params, map(shape_of, eqn.invars[:3])
    numbers = p["dimension_numbers"]
    names: tuple[list[Any], list[Any], list[Any]] = (
        [None] * len(operand),
        [None] * len(indices),
        [None] * len(updates),
    )
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    for at, d in zip(numbers.update_window_dims, [d for d in range(len(operand)) if d not in gone], strict=True):
        if updates[at] == operand[d] and d not in numbers.scatter_dims_to_operand_dims:
            names[0][d] = names[2][at] = ("o", d)
    outer = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    for d, k in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        names[0][d] = names[1][k] = names[2][outer[k]] = ("i", k)
    naming = Naming()
    dims = [naming.dims(n, s) for n, s in zip(names, (operand, indices, updates), strict=True)]
    return Factors(tuple(naming.sizes), tuple(dims), (dims[0],), follows=in_place(len(operand)))


def _dynamic_slice(eqn: Any) -> Factors:
    naming, shape = Naming(), shape_of(eqn.invars[0])
    sizes = eqn.params["slice_sizes"]
    dims = naming.dims([d if sizes[d] == n else None for d, n in enumerate(shape)], shape)

    def local(params: dict[str, Any], size: LocalSize) -> dict[str, Any]:
        return {**params, "slice_sizes": part_of(dims, params["slice_sizes"], size)}

    ins = (dims,) + ((),) * (len(eqn.invars) - 1)
    return Factors(tuple(naming.sizes), ins, (dims,), local=local, follows=in_place(len(shape)))


def _dynamic_update_slice(eqn: Any) -> Factors:
    naming, shape, update = Naming(), shape_of(eqn.invars[0]), shape_of(eqn.invars[1])
    dims = naming.dims([d if update[d] == n else None for d, n in enumerate(shape)], shape)
    ins = (dims, dims) + ((),) * (len(eqn.invars) - 2)
    return Factors(tuple(naming.sizes), ins, (dims,), follows=in_place(len(shape)))


RULES = {
    "gather": _gather,
    **dict.fromkeys([f"scatter{kind}" for kind in ("", "-add", "-sub", "-mul", "-min", "-max")], _scatter),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
}
