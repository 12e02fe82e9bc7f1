"""Functions that say themselves how they are cut (`custom_partitioning`): in a partitioned program they stay one
operation, whose part the user's function computes.

The equation's parameter `how` has the user's functions, of shardings of the leaves of arguments and results:

how.rule(mesh, avals, results)      names of the factors of each dimension of both, and sizes; None: it says none
how.inferred(mesh, given)           shardings of the results; None: it says none
how.on_parts(mesh, given, wanted)   (function of parts, shardings of its arguments, of its results)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from pullback.compiler.graph.simplify.inner import map_inner
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn
from pullback.lax.records.compiler_made import compiler_primitive
from pullback.partition.factors import Cut, Factors, Sizes, fitting, local_shape, whole
from pullback.partition.rules import Naming
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.sharding._specs import names_of
from pullback.util.dtypes import is_extended

__all__ = ["BY_USER", "devices", "inferred", "kept", "on_parts"]

BY_USER = "custom_partitioning"
_mesh: ContextVar[Any] = ContextVar("mesh of users' functions", default=None)


@contextlib.contextmanager
def devices(mesh: Any) -> Iterator[None]:
    """Inside, programs are partitioned for this mesh, which users' functions are told."""
    token = _mesh.set(mesh)
    try:
        yield
    finally:
        _mesh.reset(token)


def _factors(eqn: Any) -> Factors | None:
    """What a sharding rule says, if the user gave one."""
    avals, results = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    said = eqn.params["how"].rule(_mesh.get(), avals, results)
    if said is None:
        return None
    names, sizes = said
    naming = Naming()

    def dims(array: Sequence[Any], aval: Any) -> Any:
        return tuple(
            tuple(f for name in group for f in naming.dim(name, sizes.get(name, n)))
            for group, n in zip(array, aval.shape, strict=True)
        )

    found = [dims(array, aval) for array, aval in zip(names, (*avals, *results), strict=True)]
    return Factors(tuple(naming.sizes), tuple(found[: len(avals)]), tuple(found[len(avals) :]))


_kept_p = compiler_primitive(
    BY_USER,
    doc="A function whose part on one device its user says.",
    abstract_eval=lambda *_, jaxpr, **__: list(jaxpr.out_avals),
    reference=lambda *_, **__: [],
    multiple_results=True,
)
_kept_p.partition = _factors


def kept(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program in which such functions are not inlined, where it is known for which mesh it is partitioned."""
    return closed if _mesh.get() is None else closed.cached(("pass", "kept by user"), lambda: _kept(closed))


def _kept(closed: ClosedJaxpr) -> ClosedJaxpr:
    eqns = list(map(_as_one, closed.eqns))
    if all(a is b for a, b in zip(eqns, closed.eqns)):
        return closed
    return closed.map_jaxpr(lambda jaxpr: jaxpr.replace(eqns=eqns))


def _as_one(eqn: JaxprEqn) -> JaxprEqn:
    if eqn.primitive.name == "shard_map":  # one device's program already
        return eqn
    if eqn.primitive.name != BY_USER:
        return map_inner(eqn, "kept by user", _kept)
    if any(is_extended(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars)):
        return eqn  # keys are cut as their words, of which the user says nothing
    return eqn.replace(primitive=_kept_p)


def inferred(eqn: Any, cuts: Sequence[Cut | None], sizes: Sizes) -> list[Cut | None]:
    """The cuts of results that the user infers from those of operands."""
    mesh = _mesh.get()
    given = [_sharding(cut or whole(len(a.aval.shape)), mesh) for cut, a in zip(cuts, eqn.invars, strict=True)]
    found = eqn.params["how"].inferred(mesh, given)
    if found is None:
        return [None] * len(eqn.outvars)
    return [_cut(s, v.aval, sizes) for s, v in zip(found, eqn.outvars, strict=True)]


def on_parts(
    eqn: Any, cuts: Sequence[Cut], wanted: Sequence[Cut], sizes: Sizes
) -> tuple[Callable[..., list[Any]], list[Any], list[Any]] | None:
    """(the user's function of parts, cuts of its arguments, of its results); None where parts would not be equal."""
    mesh = _mesh.get()
    function, given, told = eqn.params["how"].on_parts(
        mesh, [_sharding(cut, mesh) for cut in cuts], [_sharding(cut, mesh) for cut in wanted]
    )
    ins = [_cut(s, a.aval, sizes) for s, a in zip(given, eqn.invars, strict=True)]
    outs = [_cut(s, v.aval, sizes) for s, v in zip(told, eqn.outvars, strict=True)]
    if any(cut is None for cut in (*ins, *outs)):
        return None

    def checked(*parts: Any) -> list[Any]:
        found = function(*parts)
        for k, (y, var, cut) in enumerate(zip(found, eqn.outvars, outs, strict=True)):
            assert cut is not None
            want = local_shape(var.aval.shape, cut, sizes)
            if tuple(y.shape) != want or y.dtype != var.aval.dtype:
                raise ValueError(
                    f"custom_partitioning: the function that `partition` gave computes for result {k} a part of type "
                    f"{y.dtype.name}{list(y.shape)}, but a part of {var.aval.short()} cut as {told[k].spec} is of "
                    f"shape {want}"
                )
        return list(found)

    return checked, ins, outs


def _sharding(cut: Cut, mesh: Any) -> NamedSharding:
    """In full, since users' functions take the spec apart."""
    return NamedSharding(
        mesh, PartitionSpec(*[(axes[0] if len(axes) == 1 else axes) if axes else None for axes in cut])
    )


def _cut(sharding: Any, aval: Any, sizes: Sizes) -> Cut | None:
    """How a sharding of the user's cuts an array; None where parts would not be equal. ValueError where it is none of
    this mesh."""
    if not isinstance(sharding, NamedSharding) or not set(sharding.mesh.axis_names) <= set(sizes):
        raise ValueError(
            "custom_partitioning: shardings must be NamedShardings over the mesh that is handed to the function; got "
            f"{sharding!r}"
        )
    said = [names_of(part) for part in sharding.spec]
    cut = fitting(said, aval.shape, sizes)
    return cut if [*said, *[()] * (len(cut) - len(said))] == list(cut) else None
