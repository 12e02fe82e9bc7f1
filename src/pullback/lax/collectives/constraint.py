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
                f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {argument}. You "
                "can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
                f"{argument} and then the mesh context manager is not required."
            ),
            entered=what == "with_sharding_constraint",
        )
    if isinstance(sharding, Sharding):
        return sharding
    raise TypeError(
        f"{argument} leaf specifications are expected to be PartitionSpec instances or None, but got {sharding}"
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
                f"One of {name} arguments got sharding None which is not allowed. Please only pass "
                "`jax.sharding.Sharding` instances."
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
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got "
            f"spec={sharding.spec} and mesh={sharding.mesh}; use `jax.sharding.reshard` for explicit axes"
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
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {spec} did not match the sharding provided: {said}. Please use `jax.sharding.reshard` to shard "
            "your input to the sharding you want."
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
            "The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` in "
            f"the `with_sharding_constraint` call. Got sharding type {type(have)} for shape {x.aval.short()}"
        )
    if have.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {have.mesh.shape_tuple} does not match the mesh shape of the target sharding "
            f"{sharding.mesh.shape_tuple} for shape {x.aval.short()}"
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
