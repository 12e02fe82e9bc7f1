"""The function `with_sharding_constraint`, and what it asks of shardings and values."""

from __future__ import annotations

from typing import Any

from pullback.core import hooks
from pullback.lax.collectives.sharding import closed_spec, constraint_params, is_concrete, sharding_constraint_p
from pullback.lax.records.operands import as_array
from pullback.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding
from pullback.sharding._current import current_mesh, on_current_mesh
from pullback.sharding._layout import Format, Layout
from pullback.sharding._specs import names_of
from pullback.util.pytree import flatten_axes, tree_flatten, tree_unflatten

__all__ = ["with_sharding_constraint"]


def _sharding_leaf(sharding: Any, what: str, argument: str) -> Any:
    """The sharding that is meant: a spec means the mesh in force. TypeError for anything else."""
    if isinstance(sharding, PartitionSpec):
        return on_current_mesh(
            sharding,
            RuntimeError(
                f"{what} requires a non-empty mesh for {sharding} in {argument}: enter one by `jax.set_mesh(mesh)`, or "
                "say which by `NamedSharding(mesh, spec)`"
            ),
            entered=what == "with_sharding_constraint",
        )
    if isinstance(sharding, Sharding):
        return sharding
    raise TypeError(
        f"{argument} leaf specifications: {sharding!r} is of type {type(sharding).__name__}, accepted are a Sharding "
        "and a PartitionSpec"
    )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The pytree x, laid out over devices as told: a Sharding, a Format with one, or a PartitionSpec over the mesh in
    force, or a tree prefix of them. Arrays are whole on every device; what changes is where they say that they lie.

    Raises TypeError for what is no sharding, ValueError for one that does not fit or devices other than those of x,
    RuntimeError for a PartitionSpec without a mesh, AssertionError where all axes of the mesh are explicit and x lies
    otherwise.
    """
    name = "with_sharding_constraint"
    leaves, tree = tree_flatten(x)
    out = []
    for leaf, sharding in zip(leaves, flatten_axes(f"{name} shardings", tree, shardings), strict=True):
        value = as_array(leaf, name)
        layout = None
        if isinstance(sharding, Format):
            layout, sharding = sharding.layout, sharding.sharding
            _check_layout(layout, value, name)
        mesh = current_mesh()
        if sharding is None and mesh is not None and not mesh.empty:
            sharding = PartitionSpec()
        if sharding is None:
            raise ValueError(
                f"{name} got sharding None, which is no place for {value.aval.short()}; pass a `Sharding`"
                " or, with a mesh in force, a PartitionSpec"
            )
        sharding = _sharding_leaf(sharding, name, "shardings")
        asserts = mesh is not None and bool(mesh.axis_names) and mesh.are_all_axes_explicit
        if not asserts:
            _check_explicit_axes(sharding)
        if is_concrete(value) or len(getattr(sharding, "spec", ())) > value.ndim:
            sharding.check(value.shape, f"{name} arguments")
        if asserts:
            _check_type(value, sharding)
        if is_concrete(value):
            sharding = _with_devices(value, sharding)
            _check_movable(value, sharding)
            if isinstance(sharding, NamedSharding) and PartitionSpec.UNCONSTRAINED in sharding.spec:
                sharding = sharding.update(spec=closed_spec(sharding, value))
            place = Format(layout, sharding) if isinstance(layout, Layout) else sharding
            out.append(value if asserts else hooks.device_put(value, place))
        else:
            params = constraint_params(sharding, layout)
            out.append(value if asserts else sharding_constraint_p.bind(value, **params))
    return tree_unflatten(tree, out)


def _check_layout(layout: Any, value: Any, name: str) -> None:
    """ValueError for a layout of another rank, NotImplementedError for one that values inside of programs have not."""
    if not isinstance(layout, Layout):
        return
    layout.check(value.shape, f"{name} arguments")
    if not is_concrete(value) and layout.major_to_minor != tuple(range(value.ndim)):
        raise NotImplementedError(
            f"{name}: argument 'shardings' asks for {layout}, and values inside of programs lie row by row; say the "
            "Format in `out_shardings` of jit"
        )


def _check_explicit_axes(sharding: Sharding) -> None:
    """ValueError for a spec that names axes of types, which `reshard` cuts along, or those of a shard_map we are in."""
    if not isinstance(sharding, NamedSharding):
        return
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    others = (AxisType.Explicit, AxisType.Manual)
    if any(types.get(axis) in others for part in sharding.spec for axis in names_of(part)):
        raise ValueError(
            f"with_sharding_constraint is for Auto axes alone, but {sharding.spec} names others of {sharding.mesh}; "
            "`jax.sharding.reshard` is for Explicit ones"
        )


def _check_type(x: Any, sharding: Sharding) -> None:
    """AssertionError for a value that lies otherwise along explicit axes, as its type says; without one it is whole."""
    place = getattr(getattr(x, "_base_array", x), "_device", None)
    placing = place if isinstance(place, NamedSharding) else getattr(x.aval, "placing", None)
    spec = PartitionSpec(*[None] * x.ndim) if placing is None else placing.spec
    said = getattr(sharding, "spec", ())
    have = [names_of(p) for p in spec]
    have += [()] * (x.ndim - len(have))
    if have != [names_of(p) for p in said] + [()] * (len(have) - len(said)):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert on a mesh of Explicit axes, and moves nothing: the array "
            f"lies by {spec}, the constraint says {said}. `jax.sharding.reshard` moves it."
        )


def _with_devices(x: Any, sharding: Sharding) -> Sharding:
    """The sharding, over the devices that the array lies on where its own mesh has none.

    Raises TypeError for an array that lies on no mesh, ValueError for a mesh of another shape.
    """
    if not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh):
        return sharding
    have, mesh = x.sharding, current_mesh()
    if not isinstance(have, NamedSharding) and getattr(x, "_base_array", x)._device is None and isinstance(mesh, Mesh):
        have = NamedSharding(mesh, PartitionSpec())  # not committed: it may lie on the mesh in force
    if not isinstance(have, NamedSharding):
        raise TypeError(
            "with_sharding_constraint: a sharding over an AbstractMesh takes its devices from the array, but the "
            f"sharding of {x.aval.short()} has no mesh: it is a {type(have).__name__}"
        )
    if have.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"with_sharding_constraint: {x.aval.short()} lies on a mesh of {have.mesh.shape_tuple}, but the"
            f" AbstractMesh of the sharding has {sharding.mesh.shape_tuple}"
        )
    return NamedSharding(have.mesh, sharding.spec, sharding.memory_kind)


def _check_movable(x: Any, sharding: Sharding) -> None:
    place = getattr(x, "_base_array", x)._device
    if place is None:
        return
    have = x.sharding
    if have._device_assignment != sharding._device_assignment:
        ids = [[d.id for d in s._device_assignment] for s in (have, sharding)]
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument x of with_sharding_constraint with "
            f"shape {x.aval.short()} and with device ids {ids[0]} on platform CPU and explicit output sharding "
            f"with device ids {ids[1]} on platform CPU"
        )
