"""Running programs whose arrays lie on several processes, and the hooks that lead here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler.graph.simplify.inline import inline
from pullback.compiler.graph.simplify.mesh_collectives import mesh_collectives
from pullback.core import ClosedJaxpr, Jaxpr, hooks, types
from pullback.core.asked import asked_for
from pullback.core.avals import typeof
from pullback.core.jaxpr import DebugInfo, JaxprEqn, Var
from pullback.distributed import connection
from pullback.distributed.arrays import GlobalArray, from_parts, is_whole_here, local_devices_of
from pullback.distributed.compared import Compared
from pullback.distributed.local import concerns, localized
from pullback.lax.collectives.native import numbered, sites_of
from pullback.runtime.arrays.arrays import dressed, is_plain, physical, words_of
from pullback.runtime.arrays.placement import in_order, place_of
from pullback.runtime.arrays.result_places import incompatible
from pullback.runtime.eager import checks
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.sharding import NamedSharding
from pullback.sharding._mesh import is_local
from pullback.sharding._specs import state_of
from pullback.util import dtypes
from pullback.util.memory import make_room

MAX_PROGRAMS = 1024
_eager: dict[Any, ClosedJaxpr] = {}


class Program:
    """What runs one program on the devices of this process: called with its arguments, whole or in parts."""

    def __init__(
        self, closed: ClosedJaxpr, places: Sequence[Any], donated: Sequence[int], name: str, given: Sequence[Any]
    ) -> None:
        local = localized(closed, places, name, given)
        cut = zip((*closed.in_avals, *closed.out_avals), (*places, *local.places), strict=True)
        for aval, place in cut:
            if place is not None and aval.dtype == dtypes.float0:
                raise NotImplementedError(f"{name}: arrays of type {aval.short()} are not supported between processes")
        self.name, self.local = name, local
        self.donated = tuple(donated)
        mesh = local.mesh
        shown = [place_of(_in_state(p, a)) for p, a in zip(local.shown, closed.out_avals, strict=True)]
        self.out_avals: Sequence[Any] = closed.out_avals
        self.out_places: list[Any] = [p and s for p, s in zip(local.places, shown, strict=True)]
        devices = list(mesh.devices.flat)
        here = [k for k, d in enumerate(devices) if is_local(d)]
        if not here:  # a process that takes no part only knows where the results lie
            self.kept, self.compared = None, True
            self.out_places = shown
            self.run = self._without_parts
            return
        program = compile_jaxpr(local.closed, tuple(donated), name, False)
        self.kept = program.kept
        self.processes = tuple(sorted({d.process_index for d in devices}))
        sites = sites_of(local.closed, name)
        specs = [None if p is None else p.spec for p in (*places, *local.places)]
        where = f"on devices {[d.id for d in devices]}", f"cut as {specs}"
        self.compared_as = Compared(local.closed, sites, name, where)
        communication = _core.communication(
            tuple(d.process_index for d in devices), tuple(here), sites, self.compared_as.number
        )
        kept = range(len(places)) if self.kept is None else self.kept
        self.run = program.on_devices(
            len(here),
            [places[k] is not None for k in kept],
            [p is not None for p in local.places],
            [s if p is None else devices[here[0]] for s, p in zip(shown, local.places, strict=True)],
            communication=communication,
        )
        self.compared = False

    def _without_parts(self, _given: Sequence[Any]) -> list[Any]:
        """The results, of which nothing is here."""
        words = [(physical(aval), place) for aval, place in zip(self.out_avals, self.out_places, strict=True)]
        return [from_parts(aval, place, lambda _device, _index: None).stacked for aval, place in words]

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        # Arrays of keys are computed with as the arrays of plain numbers that they are made of, their words.
        words = [words_of(x) if is_of_several(x) else words_of(hooks.asarray(x)) for x in args]
        if not self.compared:
            self.compared_as.check(self.processes, self._of_one_process(words))
            self.compared = True
        given = [x.stacked if isinstance(x, GlobalArray) else x for x in words]
        outs = self.run(given if self.kept is None else [given[k] for k in self.kept])
        if checks.is_active():
            checks.check(outs, self.name)
        for k in self.donated:
            if isinstance(words[k], GlobalArray):
                words[k].delete()
        return [
            y if p is None else _in_parts(a, p, words_of(y))
            for y, a, p in zip(outs, self.out_avals, self.out_places, strict=True)
        ]

    def _of_one_process(self, words: Sequence[Any]) -> dict[str, Any]:
        """The values that are taken to be the same on all processes, by what a warning calls them."""
        own = [(k, x) for k, x in enumerate(words) if not isinstance(x, GlobalArray)]
        given = {f"argument {k} ({typeof(x).short()})": x for k, x in own}
        consts = {f"constant {k} ({typeof(x).short()})": x for k, x in enumerate(self.local.closed.consts)}
        return given | {called: x for called, x in consts.items() if isinstance(x, (np.ndarray, _core.Array))}


def _in_state(place: NamedSharding, aval: Any) -> NamedSharding:
    """A result's place, whose type may say that it is to be summed over axes, or its cotangent."""
    unreduced, reduced = state_of(aval)
    if not unreduced and not reduced:
        return place
    parts = (*place.spec, *[None] * (len(aval.shape) - len(place.spec)))
    return place.update(spec=place.spec.update(partitions=parts, unreduced=unreduced, reduced=reduced))


def is_of_several(x: Any) -> bool:
    """Whether an array, or the words of a key array, lie on several processes."""
    return isinstance(getattr(x, "_base_array", x), GlobalArray)


def _in_parts(aval: Any, place: NamedSharding, stacked: Any) -> Any:
    """The array, or key array, whose parts are here one after the other."""
    array = GlobalArray(physical(aval), place_of(place), stacked)
    return array if is_plain(aval.dtype) else dressed(array, aval.dtype)


def run(closed: ClosedJaxpr, args: Sequence[Any], donated: Sequence[int] = (), name: str | None = None) -> list[Any]:
    """The results of a program of whose arguments some lie on several processes, or which itself says so."""
    consts = [c for c in closed.consts if isinstance(c, GlobalArray)]
    if consts:
        from pullback.core import hoist_tracers

        closed, found = hoist_tracers(closed)
        donated = [k + len(found) for k in donated]
        args = [*found, *args]
    places = tuple(x.sharding if is_of_several(x) else None for x in args)
    check_committed(args, places, name)
    if not any(p is not None for p in places) and not concerns(closed):
        return hooks.run(closed, args)
    label = name or getattr(closed.jaxpr.debug_info, "func_name", None) or "program"
    given = tuple(map(_place_given, args))
    key = ("between processes", places, given, tuple(donated))
    program = closed.cached(key, lambda: Program(closed, places, donated, str(label), given))
    return program(args)


def _place_given(x: Any) -> NamedSharding | None:
    """Where an argument lies on a mesh, in parts or whole."""
    place = x.sharding if is_of_several(x) else getattr(getattr(x, "_base_array", x), "_device", None)
    return place if isinstance(place, NamedSharding) else None


def check_committed(args: Sequence[Any], places: Sequence[Any], name: str | None) -> None:
    """ValueError for arrays that are committed to other devices than those of several processes."""
    of_several = next((p for p in places if p is not None), None)
    if of_several is None:
        return
    wanted = in_order(of_several)
    for x in args:
        place = getattr(getattr(x, "_base_array", x), "_device", None)
        if place is not None and set(in_order(place)) != set(wanted):
            ids, others = ([d.id for d in devices] for devices in (wanted, in_order(place)))
            raise incompatible(
                f"an argument of {name or 'the program'} with device ids {ids} on platform CPU",
                f"an argument of shape {typeof(x).str_short()} with device ids {others} on platform CPU",
            )


def evaluate(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The result of one primitive on such arrays, whose types say how it is cut along explicit axes."""
    avals = list(map(types.type_of_operands(), args))
    key = (primitive, asked_for(), *avals, *params.items())
    try:
        closed = _eager.get(key)
    except TypeError:  # a parameter without a hash
        key, closed = None, None  # type: ignore[assignment]
    if closed is None:
        out = primitive.rule("abstract_eval")(*avals, **params)
        outs = list(out) if primitive.multiple_results else [out]
        if types.in_use() and types.concerns(avals, primitive, params):
            outs = types.result_types(primitive, avals, params, outs)
        invars, outvars = [Var(a) for a in avals], [Var(a) for a in outs]
        eqn = JaxprEqn(invars, outvars, primitive, params)
        name = params.get("name") or primitive.name
        closed = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], debug_info=DebugInfo("eager", name)), [])
        if key is not None:
            make_room(_eager, MAX_PROGRAMS)
            _eager[key] = closed
    donated = [k for k, given in enumerate(params.get("donated_invars") or ()) if given]
    found = run(closed, args, donated, params.get("name") or primitive.name)
    return found if primitive.multiple_results else found[0]


def put(x: Any, sharding: Any) -> Any:
    """A value that every process has, or an array of several processes, at a sharding over several processes."""
    from pullback.lax.collectives.sharding import constraint_params, sharding_constraint_p

    if isinstance(x, GlobalArray):
        if not isinstance(sharding, NamedSharding):
            raise ValueError(f"device_put: an array of several processes can be put to a NamedSharding, got {sharding}")
        if set(x.sharding.device_set) != set(sharding.device_set):
            raise ValueError(
                f"device_put: an array on {sorted(d.id for d in x.sharding.device_set)} can't be moved to "
                f"{sorted(d.id for d in sharding.device_set)}, of several processes"
            )
        return evaluate(sharding_constraint_p, (x,), constraint_params(sharding))
    if hasattr(x, "_base_array"):  # keys lie where their words do
        return type(x)(x._impl, put(x._base_array, sharding))
    values = np.asarray(x)
    if local_devices_of(sharding):
        _check_same(values, tuple(sorted({d.process_index for d in sharding.device_set})))
    if is_whole_here(sharding, values.shape):
        return hooks.asarray(x, device=place_of(sharding))
    aval = hooks.asarray(x).aval
    return from_parts(aval, sharding, lambda _, index: values[index])


def _check_same(values: np.ndarray, processes: tuple[int, ...]) -> None:
    """AssertionError unless all processes that get parts have the same value."""
    elements = hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
    mine = elements + str((values.shape, values.dtype)).encode()
    if any(theirs != mine for theirs in connection.gathered_bytes(mine, "device_put", processes)):
        raise AssertionError(
            f"device_put: the {type(values)} is not the same in all processes over which it is to lie; processes that "
            "have parts of one array call jax.make_array_from_process_local_data"
        )


# ---- pmap


class _Everywhere:
    """The program of pmap: `size` devices of this process, and as many of each other one, over one axis."""

    def __init__(self, closed: ClosedJaxpr, sizes: dict[Any, int], donated: Sequence[int], name: str) -> None:
        self.name = name
        self.closed = numbered(inline(mesh_collectives(closed, sizes)))
        self.program = compile_jaxpr(self.closed, tuple(donated), name, False)
        self.kept = self.program.kept

    def on_devices(self, size: int, mapped_in: Any, mapped_out: Any, shardings: Any, out_avals: Any = None) -> Any:
        """What runs it, as `runtime`'s programs have it."""
        sites = sites_of(self.closed, self.name)
        compared = Compared(self.closed, sites, self.name)
        rank, count = connection.state.rank, connection.state.size
        communication = _core.communication(
            tuple(p for p in range(count) for _ in range(size)),
            tuple(range(rank * size, (rank + 1) * size)),
            sites,
            compared.number,
        )
        run = self.program.on_devices(size, mapped_in, mapped_out, shardings, out_avals, communication)
        compared.check(tuple(range(count)), {})
        return run


# ---- hooks


def install() -> None:
    """Lead what concerns several processes here; all else goes where it went."""
    from pullback.runtime import device_put as plain_put
    from pullback.runtime.arrays.arrays import asarray as plain_asarray

    plain_compile, plain_run, plain_eager = hooks.compile, hooks.run, hooks.run_eagerly

    def compile(
        closed: ClosedJaxpr, donated: Sequence[int] = (), keep_unused: bool = False, autotune: bool = False
    ) -> Any:
        if concerns(closed):
            return (lambda args: run(closed, args, donated)), None
        return plain_compile(closed, donated, keep_unused, autotune)

    def between(args: Sequence[Any]) -> bool:
        return any([is_of_several(x) for x in args])

    def run_or(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run_either(closed: ClosedJaxpr, args: Sequence[Any]) -> Any:
            if between(args) or between(closed.consts) or concerns(closed):
                return run(closed, args)
            return plain(closed, args)

        return run_either

    def device_put(x: Any, place: Any = None) -> Any:
        if isinstance(x, GlobalArray) and place is None:
            return x
        if isinstance(x, GlobalArray) or (isinstance(place, NamedSharding) and not place.is_fully_addressable):
            return put(x, place)
        return plain_put(x, place)

    def asarray(x: Any, dtype: Any = None, weak_type: bool | None = None, device: Any = None) -> Any:
        if isinstance(x, GlobalArray) and device is None and (dtype is None or dtype == x.dtype):
            return x
        return plain_asarray(x, dtype, weak_type, device)

    hooks.fill(
        evaluate_between=evaluate,
        run_between=run,
        array_of_parts=from_parts,
        program_between=_Everywhere,
        compile=compile,
        run=run_or(plain_run),
        run_eagerly=run_or(plain_eager),
        device_put=device_put,
        asarray=asarray,
    )


__all__ = ["Program", "evaluate", "install", "put", "run"]
