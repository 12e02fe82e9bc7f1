"""What types say of meshes and memory, while functions are traced: along which axes of shard_map a value varies, along
which explicit axes its dimensions are cut, and in which memory it is said to lie.

    x: f32[8]{V:i}    differs between the devices along i        y: f32[8]    is the same on all
    z: f32[8@x,4]     its first dimension is cut along x (partition/explicit.py)
    h: f32<host>[8]   lies in the host's memory, as device_put has said

An operation on x and y takes pvary(y): the value once for each device. So the transpose of pvary, a sum over the
devices, is all that derivatives inside of shard_map need to know; it stands in every program, staged or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from pullback.core import avals
from pullback.core.asked import is_asked
from pullback.core.atoms import Program
from pullback.core.avals import AbstractRef, ShapedArray, placed, type_of_operand, typed, typeof
from pullback.core.hooks import hooks
from pullback.core.interpreter import axis_env
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.primitive import Primitive, registry
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.sharding._shardings import ArrayCopySemantics, MemorySpace
from pullback.sharding._specs import names_of, of_cotangents, state_of
from pullback.util.errors import ShardingTypeError
from pullback.util.record import NamedTuple

LOOPS = {"scan": "jaxpr", "while": "body_jaxpr"}
# Primitives that say how their operand is to lie, and by which parameter: a hint, along axes that types say nothing of;
# what makes types say it; what in_shardings and out_shardings of jit say; and device_put, of which this is one meaning.
CONSTRAINTS = {
    "sharding_constraint": "sharding",
    "reshard": "dst_sharding",
    "laid_out": "sharding",
    "device_put": "devices",
}
Axes = frozenset


def in_use() -> bool:
    """Whether any type has said anything of meshes in this process; programs without meshes ask no more."""
    return avals.any_typed


class CheckedAxis(NamedTuple):
    """In the environment of axes beside `name`: whether values vary along that axis matters to their derivatives."""

    name: Any


def checked_axes() -> list[Any]:
    """The axes of shard_map, with check_vma, in force."""
    return [key.name for key in axis_env() if isinstance(key, CheckedAxis)]


def programs(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        if isinstance(value, Program):
            yield value
        elif type(value) is tuple and value and isinstance(value[0], Program):
            yield from (v for v in value if isinstance(v, Program))  # users' primitives hold anything


def combines(primitive: Primitive) -> bool:
    """Whether the program in an equation says how two elements are combined, not what the results are."""
    return primitive.name in ("reduce", "reduce_window", "sort") or "scatter" in primitive.traits


def vma_of(aval: Any) -> frozenset:
    """The axes along which values of a type vary."""
    return (
        aval.vma if isinstance(aval, ShapedArray) else vma_of(aval.inner_aval) if type(aval) is AbstractRef else Axes()
    )


def said_by(eqn: Any) -> Any:
    """The sharding that an equation says its result to have; None if it is no constraint."""
    key = CONSTRAINTS.get(eqn.primitive.name)
    if key == "devices":
        (place,) = eqn.params[key]
        return place if isinstance(place, NamedSharding) else None
    return None if key is None else eqn.params[key]


def resharded(x: Any, placing: Any) -> Any:
    """x, cut along explicit axes as a NamedSharding says."""
    return registry["reshard"].bind(x, dst_sharding=placing, concrete_mesh=None)


def type_on_mesh(x: Any) -> Any:
    """The type of a value; that of an array that lies on a mesh says how its explicit axes cut it."""
    aval = type_of_operand(x)
    if not avals.any_placed:
        return aval
    place = getattr(getattr(x, "_base_array", x), "_device", None)  # keys lie where their words do
    return aval if place is None else placed(aval, place)


def type_of(x: Any) -> Any:
    """As `typeof`; arrays that lie on a mesh say how explicit axes cut them."""
    return type_on_mesh(x) if avals.any_placed else typeof(x)


def type_of_operands() -> Any:
    """What gives the types of values: `type_on_mesh` where any array is cut along explicit axes."""
    return type_on_mesh if avals.any_placed else typeof


def cut_as(x: Any, aval: Any, cotangent: bool = False) -> Any:
    """x, cut along explicit axes as values of a type are, or their cotangents."""
    placing, have = getattr(aval, "placing", None), type_on_mesh(x)
    if (space := memory_of(aval)) is not memory_of(have) and avals.any_placed:
        x = registry["device_put"].bind(x, **moving(space))
    if placing is not None:
        placing = placing.update(spec=of_cotangents(placing.spec)) if cotangent else placing
    found: Any = getattr(have, "placing", None)
    if placing is found or have.shape != aval.shape:
        return x
    if placing is None:
        placing = found.update(spec=PartitionSpec(*[None] * aval.ndim))
    elif found is not None and found.spec == placing.spec:
        return x
    return resharded(x, placing)


def whole_along(x: Any, axes: Sequence[int]) -> Any:
    """x, whole along dimensions that explicit axes may cut."""
    placing = type_on_mesh(x).placing if avals.any_placed else None
    if placing is None or not any(placing.spec[d] for d in axes):
        return x
    parts = tuple(None if d in axes else part for d, part in enumerate(placing.spec))
    return resharded(x, placing.update(spec=placing.spec.update(partitions=parts)))


def in_state_of(zeros: Any, x: Any) -> Any:
    """Zeros of a rule's own, to be summed over the axes that x is, or their cotangent."""
    state = state_of(type_on_mesh(x)) if avals.any_placed else _NO_STATE
    if not any(state):
        return zeros
    have = type_on_mesh(zeros)
    parts = [None] * have.ndim if have.placing is None else have.placing.spec
    placing = type_on_mesh(x).placing.update(spec=PartitionSpec(*parts, unreduced=state[0], reduced=state[1]))
    return cut_as(zeros, typed(have.untyped, placing, have.vma, have.memory_space))


_NO_STATE: tuple[frozenset, frozenset] = (frozenset(), frozenset())
_mapped: ContextVar[Any] = ContextVar("pullback_mapped_axis", default=None)


class mapping:
    """Context manager: a rule of `vmap` runs, along an axis that explicit axes cut so (a NamedSharding of a vector)."""

    def __init__(self, placing: Any) -> None:
        self.placing = placing

    def __enter__(self) -> None:
        self.token = _mapped.set(self.placing)

    def __exit__(self, *exc: Any) -> None:
        _mapped.reset(self.token)


def mapped_part() -> Any:
    """How explicit axes cut the axis of the rule of `vmap` that runs; None if they do not, or none runs."""
    placing = _mapped.get()
    return None if placing is None else placing.spec[0]


def cut_as_mapped(rows: Any, axis: int = 0) -> Any:
    """What a rule of `vmap` has repeated along the mapped axis, cut as that is."""
    placing = _mapped.get()
    if placing is None:
        return rows
    have = type_on_mesh(rows)
    parts = [None] * have.ndim if have.placing is None else list(have.placing.spec)
    (names,) = placing.spec
    size = math.prod(dict(placing.mesh.shape)[n] for n in names_of(names))
    if have.shape[axis] % size or set(names_of(names)) & {n for part in parts for n in names_of(part)}:
        return rows
    parts[axis] = names
    return resharded(rows, placing.update(spec=PartitionSpec(*parts)))


def rows_cut_as(rows: Any, x: Any) -> Any:
    """Values like x along a leading axis, each cut along explicit axes as x is."""
    placing = getattr(type_on_mesh(x), "placing", None)
    if placing is None:
        return rows
    placing = placing.update(spec=placing.spec.update(partitions=(None, *placing.spec)))
    return resharded(rows, placing)


def cut_alike(xs: Sequence[tuple[Any, Any]], shape: tuple[int, ...]) -> list[Any]:
    """What pairs of an array and its broadcast to a shape have of the second, each cut along explicit axes as any of
    the first is; ShardingTypeError where these are cut differently.
    """
    before = [type_on_mesh(x) for x, _ in xs]
    mesh = next((a.placing.mesh for a in before if getattr(a, "placing", None) is not None), None)
    if mesh is None or is_asked():
        return [rows for _, rows in xs]
    parts: list[Any] = [None] * len(shape)
    for aval in before:
        offset = len(shape) - aval.ndim
        for d, part in enumerate(place_of_type(aval) or ()):
            if part is None or aval.shape[d] != shape[offset + d]:
                continue
            if parts[offset + d] not in (None, part):
                shown = [tuple(place_of_type(a) or [None] * len(shape)) for a in before]
                raise ShardingTypeError(
                    f"broadcast_shardings got incompatible shardings for broadcasting: {', '.join(map(str, shown))}."
                )
            parts[offset + d] = part
    used = [n for part in parts for n in names_of(part)]
    if len(set(used)) < len(used):
        raise ShardingTypeError(
            f"operands {', '.join(a.str_short() for a in before)} together give an illegally sharded result: "
            f"{tuple(parts)} has an axis twice"
        )
    placing = NamedSharding(mesh, PartitionSpec(*parts))
    return [cut_as(rows, typed(type_on_mesh(rows).untyped, placing, Axes())) for _, rows in xs]


def place_of_type(aval: Any) -> Any:
    """How values of a type are cut along explicit axes: a spec, or None."""
    placing = getattr(aval, "placing", None)
    return None if placing is None else placing.spec


def memory_of(aval: Any) -> MemorySpace:
    """The memory in which values of a type lie."""
    return getattr(aval, "memory_space", MemorySpace.Device)


def moving(space: MemorySpace) -> dict[str, Any]:
    """The parameters of an equation `device_put` that brings a value into a memory."""
    return {"devices": (space,), "srcs": (None,), "copy_semantics": (ArrayCopySemantics.ALWAYS_COPY,)}


def lie_alike(left: Any, right: Any) -> bool:
    """Whether explicit axes cut values of two types in the same way, and as much of them is to be summed."""

    def lies(aval: Any) -> Any:
        spec = place_of_type(aval)
        return (None,) * aval.ndim if spec is None else tuple(spec), state_of(aval)

    return lies(left) == lies(right)


def named(primitive: Primitive, params: dict[str, Any]) -> frozenset:
    """The checked axes that a collective names."""
    if primitive.collective_axes is None:
        return Axes()
    env = axis_env()
    return Axes(name for name in primitive.collective_axes(params) if CheckedAxis(name) in env)


def missing(primitive: Primitive, in_avals: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """The axes along which each operand is to vary as the others do, or the sharding that it is to have as a scalar
    beside what is reduced over axes; None where none lacks anything.
    """
    if primitive.name == "pvary" or "own types" in primitive.traits:
        return None
    if not combines(primitive) and any(True for _ in programs(params)):
        return None
    if (scalars := _reduced_scalars(primitive, in_avals)) is not None:
        return scalars
    together = named(primitive, params).union(*map(vma_of, in_avals))
    if not together:
        return None
    found = [together - vma_of(aval) - state_of(aval)[0] for aval in in_avals]  # of terms there is no value
    return found if any(found) else None


def _reduced_scalars(primitive: Primitive, in_avals: Sequence[Any]) -> list[Any] | None:
    """The sharding that each scalar is to have beside operands that are reduced over axes; None if there is none."""
    if "elementwise" not in primitive.traits or primitive.name == "select_n" or len(in_avals) < 2:
        return None
    placing = next((a.placing for a in in_avals if state_of(a)[1]), None)
    if placing is None:
        return None
    lacking = [isinstance(a, ShapedArray) and not a.ndim and not any(state_of(a)) and not vma_of(a) for a in in_avals]
    said = placing.update(spec=PartitionSpec(reduced=placing.spec.reduced))
    return [said if lacks else None for lacks in lacking] if any(lacking) else None


def with_axes(process: Any, x: Any, axes: Any) -> Any:
    """x, that varies along more axes, or lies as a sharding says; `process` is that of an interpreter."""
    if isinstance(axes, NamedSharding):
        if axes.mesh.manual_axes:
            cast = {"axes": tuple(sorted(axes.spec.reduced, key=str)), "source": "invarying", "to": "reduced"}
            return process(registry["state_cast"], (x,), cast)
        return process(registry["reshard"], (x,), {"dst_sharding": axes, "concrete_mesh": None})
    if again := axes & state_of(type_of_operand(x))[1]:
        cast = {"axes": tuple(sorted(again, key=str)), "source": "reduced", "to": "varying"}
        x, axes = process(registry["state_cast"], (x,), cast), axes - again
    return process(registry["pvary"], (x,), {"axes": tuple(sorted(axes, key=str))}) if axes else x


def result_types(primitive: Primitive, in_avals: Sequence[Any], params: dict[str, Any], outs: list[Any]) -> list[Any]:
    """The types of results, which vary as the operands do, or as the results of the programs inside."""
    if "own types" in primitive.traits:
        return outs
    names = named(primitive, params)
    together = Axes().union(*map(vma_of, in_avals))
    if primitive.collective_axes is not None:
        together = together - names if "combining" in primitive.traits else together | names
    each = [together] * len(outs)
    if primitive.name in LOOPS:
        each = [vma_of(a) for a in params[LOOPS[primitive.name]].out_avals][: len(outs)]
        if primitive.name == "while":  # devices stop after different numbers of steps where the condition varies
            (stop,) = _results(params["cond_jaxpr"])
            each = [vma | stop for vma in each]
    else:
        for program in () if combines(primitive) else programs(params):
            found = _results(program)
            if primitive.name == "cond":
                each = [vma_of(in_avals[0]).union(*group) for group in zip(*map(_results, programs(params)))]
                break
            if len(found) == len(outs):
                each = found
                break
    spaces = _memory_spaces(primitive, in_avals, params, len(outs))
    places: Sequence[Any] = [None] * len(outs)
    if avals.any_placed or primitive.name in CONSTRAINTS:
        places = hooks.placings(primitive, in_avals, params, outs)
    return [
        typed(a, place, vma, space)
        if isinstance(a, ShapedArray) and (a.vma != vma or a.placing is not place or a.memory_space is not space)
        else a
        for a, vma, place, space in zip(outs, each, places, spaces, strict=True)
    ]


def _memory_spaces(primitive: Primitive, in_avals: Sequence[Any], params: dict[str, Any], count: int) -> list[Any]:
    """The memory of each result: that which all operands but scalars lie in, else the device's. ValueError for
    operands in several, but for operations that derivatives do on values and constants of their own.

    What is written into says it alone, and of what is sorted together each keeps its own.
    """
    if primitive.name == "device_put":
        (place,) = params["devices"]
        if isinstance(place, MemorySpace):
            return [place]
        if (kind := getattr(place, "memory_kind", None)) is None:
            return [memory_of(in_avals[0])]
        return [MemorySpace.Host if kind == MemorySpace.Host.value else MemorySpace.Device]
    if primitive.name == "laid_out" and params["argument"] == "out_shardings":
        host = getattr(params["sharding"], "memory_kind", None) == MemorySpace.Host.value
        return [MemorySpace.Host if host else MemorySpace.Device]
    inside = [params[LOOPS[primitive.name]]] if primitive.name in LOOPS else list(programs(params))
    results = [found[:count] for p in inside if len(found := _typed_results(p)) >= count]
    if results:
        each = [{memory_of(a) for a in group} for group in zip(*results, strict=True)]
        return [group.pop() if len(group) == 1 else MemorySpace.Device for group in each]
    own = [memory_of(a) for a in in_avals]
    if primitive.name in ("sort", "optimization_barrier"):
        return own
    if "scatter" in primitive.traits or primitive.name == "dynamic_update_slice":
        return own[:1] * count
    spaces = {a.memory_space for a in in_avals if isinstance(a, ShapedArray) and (a.ndim or len(in_avals) == 1)}
    if len(spaces) > 1 and primitive.name not in _IN_SEVERAL_MEMORIES and not primitive.multiple_results:
        one, *others = [a for a in in_avals if isinstance(a, ShapedArray) and a.ndim]
        other = next(a for a in others if a.memory_space is not one.memory_space)
        raise ValueError(
            f"{primitive.name}: the memory_space of all inputs is not one, but {one.str_short()} meets "
            f"{other.str_short()}; jax.device_put moves arrays"
        )
    return [MemorySpace.Host if MemorySpace.Host in spaces else MemorySpace.Device] * count


# Derivatives choose among values and zeros, and add up; indices are made where nobody sees them.
_IN_SEVERAL_MEMORIES = ("select_n", "add_any", "gather", "pvary")

_rule: ContextVar[str] = ContextVar("pullback_rule_in_force", default="")


class of_rule:
    """Context manager: the operations are those of a rule, of derivatives ("jvp") or of maps ("batch"). What it has of
    whole values may be zeros of its own, or operands that were repeated: they are as the others are.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __enter__(self) -> None:
        self.token = _rule.set(self.kind)

    def __exit__(self, *exc: Any) -> None:
        _rule.reset(self.token)


def is_of_rule() -> bool:
    """Whether the operations are those of a rule, not the user's."""
    return bool(_rule.get())


_untold: ContextVar[bool] = ContextVar("pullback_types_unknown", default=False)


class traced_without_types:
    """Context manager: a program that was traced for arrays of which nobody knew where they lie is typed. What it has
    of whole values may be scalars that were broadcast.
    """

    def __enter__(self) -> None:
        self.token = _untold.set(True)

    def __exit__(self, *exc: Any) -> None:
        _untold.reset(self.token)


def is_strict() -> bool:
    """Whether an operand that is whole says as much of results as one that is cut."""
    return not is_asked() and not _untold.get() and _rule.get() != "jvp"


def _results(program: Any) -> list[frozenset]:
    outs = program.out_avals if isinstance(program, ClosedJaxpr) else [a.aval for a in program.outvars]
    return [vma_of(a) for a in outs]


def concerns(in_avals: Sequence[Any], primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether types say anything of meshes or memory."""
    if primitive.name in CONSTRAINTS:
        return True
    for aval in in_avals:
        if isinstance(aval, ShapedArray) and aval.is_typed:
            return True
    return bool(primitive.collective_axes is not None and named(primitive, params)) or any(
        any(isinstance(a, ShapedArray) and a.is_typed for a in _typed_results(p)) for p in programs(params)
    )


def _typed_results(program: Any) -> list[Any]:
    return program.out_avals if isinstance(program, ClosedJaxpr) else [a.aval for a in program.outvars]


def untyped(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program whose types say nothing of meshes, for the compiler."""
    return closed.cached("untyped", lambda: _untyped(closed))


def _untyped(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = _untyped_jaxpr(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _untyped_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    from pullback.core.jaxpr import Literal, Var

    variables = [*jaxpr.constvars, *jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars]]
    env: dict[Any, Any] = {}
    for var in variables:
        if isinstance(var.aval, ShapedArray) and var.aval.is_typed:
            env[var] = Var(var.aval.untyped)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env.get(atom, atom)

    eqns, changed = [], bool(env)
    for eqn in jaxpr.eqns:
        params = {k: _untyped_value(v) for k, v in eqn.params.items()}
        if any(params[k] is not v for k, v in eqn.params.items()):
            changed = True
        else:
            params = eqn.params
        eqns.append(eqn.replace(invars=map(read, eqn.invars), outvars=map(read, eqn.outvars), params=params))
    if not changed:
        return jaxpr
    return jaxpr.replace(
        constvars=list(map(read, jaxpr.constvars)),
        invars=list(map(read, jaxpr.invars)),
        outvars=list(map(read, jaxpr.outvars)),
        eqns=eqns,
    )


def _untyped_value(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return untyped(value)
    if isinstance(value, Jaxpr):
        return _untyped_jaxpr(value)
    if type(value) is tuple and value and isinstance(value[0], Program):
        new = tuple(map(_untyped_value, value))
        return new if any(a is not b for a, b in zip(new, value)) else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # the parts of a solver
        parts = list(map(_untyped_value, value))
        return type(value)(*parts) if any(a is not b for a, b in zip(parts, value)) else value
    return value
