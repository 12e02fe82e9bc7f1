"""Batching: every value may carry one more axis, and each primitive's batch rule says what becomes of it.

vmap(f)(xs)[i] = f(xs[i])
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    Interpreter,
    ShapedArray,
    Tracer,
    current_interpreter,
    eval_jaxpr,
    extend_axis_env,
    hooks,
    trace,
    typeof,
    types,
    using,
)
from pullback.core.atoms import Program
from pullback.core.avals import typed
from pullback.core.source import names_inside, user_source
from pullback.core.staging import check_alive, raise_if_kept
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.sharding._current import current_mesh
from pullback.sharding._specs import names_of, says_something
from pullback.util import config
from pullback.util.errors import UnexpectedTracerError
from pullback.util.record import NamedTuple

_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()


class AxisData(NamedTuple):
    """The mapped axis: its name (None if it has none), size, and the mesh axes that it is cut along; `placing`: how
    explicit axes cut it, as of a vector.
    """

    name: Any
    size: int
    spmd: Any = None
    placing: NamedSharding | None = None

    def at(self, aval: ShapedArray, dim: int) -> ShapedArray:
        """The type of values with the mapped axis at `dim`, from that of one element."""
        new = aval.update(shape=(*aval.shape[:dim], self.size, *aval.shape[dim:]))
        inner = aval.placing
        if self.placing is None and inner is None:
            return new
        mesh = inner.mesh if self.placing is None else self.placing.mesh
        own = (None,) if self.placing is None else self.placing.spec
        rest = PartitionSpec(*[None] * aval.ndim) if inner is None else inner.spec
        parts = (*rest.partitions[:dim], *own, *rest.partitions[dim:])
        return typed(new, NamedSharding(mesh, rest.update(partitions=parts)), aval.vma, aval.memory_space)

    def in_force(self) -> AxisData:
        """This, without how explicit axes cut it where the mesh in force says that they are Auto."""
        if self.placing is None or (now := current_mesh()) is None or now.shape_tuple != self.placing.mesh.shape_tuple:
            return self
        auto = set(now.axis_names).difference(now.explicit_axes, now.manual_axes)
        return self if auto.isdisjoint(names_of(self.placing.spec[0])) else self._replace(placing=None)


class BatchTracer(Tracer):
    """`value` with a mapped axis `dim` that the user's function does not see."""

    __slots__ = ("value", "dim")

    def __init__(self, interpreter, value, dim: int, element, source):
        self.interpreter = interpreter
        self.value = value
        self.dim = dim
        self.aval = element
        self.source = source

    @property
    def batch_dim(self) -> int:
        """JAX's name for `dim`: brainstate reads it."""
        return self.dim

    @property
    def val(self):
        """JAX's name for `value`."""
        return self.value

    def __repr__(self):
        return f"VmapTracer(aval={self.aval}, batched={typeof(self.value)})"

    def beneath(self):
        return self.value if isinstance(self.value, Tracer) else None


@functools.lru_cache(maxsize=1 << 12)
def _element(aval: ShapedArray, dim: int) -> ShapedArray:
    shape = aval.shape[:dim] + aval.shape[dim + 1 :]
    if not aval.is_typed:
        return ShapedArray(shape, aval.dtype, aval.weak_type)
    placing = aval.placing
    if placing is not None:
        parts = (*placing.spec[:dim], *placing.spec[dim + 1 :])
        spec = placing.spec.update(partitions=parts)
        placing = placing.update(spec=spec) if says_something(spec) else None  # whole: no type says it
    return typed(ShapedArray(shape, aval.dtype, aval.weak_type), placing, aval.vma, aval.memory_space)


def programs_in(params: dict[str, Any]) -> list[Any]:
    """The programs among an equation's parameters."""
    found = []
    for value in params.values():
        if isinstance(value, Program):
            found.append(value)
        elif type(value) is tuple and value and isinstance(value[0], Program):
            found.extend(value)
    return found


def names_inside_of(program: Any) -> frozenset:
    """The named axes of the collectives in a program."""
    if isinstance(program, ClosedJaxpr):
        return program.cached("collective axes", lambda: names_inside_of(program.jaxpr))
    names: set[Any] = set()
    for eqn in program.eqns:
        if eqn.primitive.collective_axes is not None:
            names.update(eqn.primitive.collective_axes(eqn.params))
        for inner in programs_in(eqn.params):
            names |= names_inside_of(inner)
    return frozenset(names)


class BatchInterpreter(Interpreter):
    """Runs primitives on values with the mapped axis, under the parent.

    Each call of vmap has one AxisData, by which its tracers are known: functions with rules of the user's own run under
    an interpreter made for them, and may close over tracers of the one outside.
    """

    transformation = "vmap"
    lets_out = True

    def __init__(self, parent: Interpreter, axis: AxisData):
        self.parent = parent
        self.axis = axis
        self.valid = True
        self.remembers = parent.remembers

    def call(self, closed, args):
        values, dims = [], []
        for value in args:
            dim = None
            if type(value) is BatchTracer and value.interpreter.axis is self.axis:
                value, dim = value.value, value.dim
            values.append(value)
            dims.append(dim)
        if all([d is None for d in dims]):
            return self.parent.call(closed, values)
        # With axes where they are: one that is moved is a copy, and its sums of products have another order than those
        # of the first time, when the rules themselves run.
        axis = self.axis if self.axis.placing is None else self.axis.in_force()
        found = closed.derived.get(("mapped", axis, *dims))  # at once, as this is each call of vmap
        jaxpr_batched, mapped_out = found or batch_jaxpr_at(closed, axis, tuple(dims))
        outs = self.parent.call(jaxpr_batched, values)
        source = user_source()
        for k, dim, aval in mapped_out:
            outs[k] = BatchTracer(self, outs[k], dim, aval, source)
        return outs

    def split(self, value) -> tuple[Any, int | None]:
        """(value with its mapped axis, dim); dim is None for what has none."""
        if isinstance(value, BatchTracer) and value.interpreter.axis is self.axis:
            return value.value, value.dim
        if isinstance(value, Tracer):
            check_alive(value)
        return value, None

    def join(self, value, dim: int | None):
        """A tracer for a value with a mapped axis, or just the value."""
        if dim is None:
            return value
        # What is staged beneath knows its line; else this is the only trace of it.
        source = None if isinstance(value, Tracer) else user_source()
        return BatchTracer(self, value, dim, _element(types.type_of(value), dim), source)

    def process(self, primitive, args, params):
        values, dims = zip(*map(self.split, args)) if args else ((), ())
        collective = (
            primitive.collective_axes is not None
            and self.axis.name is not None
            and (self.axis.name in primitive.collective_axes(params))
        )
        if not collective and all(d is None for d in dims) and not self.acts_inside(params):
            return self.parent.process(primitive, values, params)
        typed = types.in_use()
        axis = self.axis.in_force() if typed else self.axis
        with (
            using(self.parent),
            types.mapping(axis.placing) if typed else _NOTHING,
            types.of_rule("batch") if typed else _NOTHING,
        ):
            if primitive.batch_axis is not None:
                out, out_dims = primitive.batch_axis(axis, values, dims, **params)
            else:
                out, out_dims = primitive.rule("batch")(values, dims, **params)
        if primitive.multiple_results:
            return [self.join(v, d) for v, d in zip(out, out_dims)]
        return self.join(out, out_dims)

    def acts_inside(self, params) -> bool:
        """Whether the programs of an equation have collectives over the axis."""
        return self.axis.name is not None and any(self.axis.name in names_inside_of(p) for p in programs_in(params))

    def process_custom_jvp(self, custom, fun, jvp, args):
        values, dims = zip(*map(self.split, args)) if args else ((), ())
        front = Front(dims)
        if front.holds is None and getattr(jvp, "references", None):
            return self.parent.process_custom_jvp(custom, fun, jvp, values)

        def batched(*xs):
            return front.moved(*run_batched(fun, self.axis, xs, dims), self.axis.size)

        def batched_jvp(primals, tangents):
            return custom.batch_jvp(jvp, self.axis, primals, tangents, dims, front)

        batched, batched_jvp = called_as(batched, fun), called_as(batched_jvp, jvp)
        outs = self.parent.process_custom_jvp(custom, batched, batched_jvp, values)
        return [self.join(v, front.dim) for v in outs]

    def process_custom_vjp(self, custom, fun, fwd, bwd, args):
        values, dims = zip(*map(self.split, args)) if args else ((), ())
        front = Front(dims)
        if front.holds is None and getattr(fwd, "references", None):
            return self.parent.process_custom_vjp(custom, fun, fwd, bwd, values)

        def batched(*xs):
            return front.moved(*run_batched(fun, self.axis, xs, dims), self.axis.size)

        batched_fwd, batched_bwd = custom.batch_fwd_bwd(fwd, bwd, self.axis, dims, front)
        outs = self.parent.process_custom_vjp(custom, called_as(batched, fun), batched_fwd, batched_bwd, values)
        return [self.join(v, front.dim) for v in outs]


def called_as(batched: Any, fun: Any) -> Any:
    """A function on batches with the names of the one on elements and of its arguments, which jaxprs show."""
    batched.__name__ = getattr(fun, "__name__", batched.__name__)
    if (names := getattr(fun, "names_of_arguments", None)) is not None:
        batched.names_of_arguments = names
    return batched


class Front:
    """Whether the results of a function with rules of its own have the mapped axis, all of them in front, or none has.

    They have where an argument has. Without one, the function or its rule may close over mapped values: then the first
    of the two that runs decides.
    """

    __slots__ = ("holds",)

    def __init__(self, dims: Sequence[int | None]):
        self.holds: bool | None = True if any(d is not None for d in dims) else None

    @property
    def dim(self) -> int | None:
        """Where the results have it."""
        return 0 if self.holds else None

    def check(self, dims: Sequence[int | None]) -> None:
        """UnexpectedTracerError for results of a rule that have the axis where the function's have none."""
        if self.holds is False and any(d is not None for d in dims):
            raise UnexpectedTracerError(
                "A derivative rule closes over a value that vmap maps, on which the function itself does not depend, "
                "so that its results are not mapped; give the value to the function as an argument"
            )

    def moved(self, values: Sequence[Any], dims: Sequence[int | None], size: int) -> list[Any]:
        """Results of the function or its rule, with the axis there."""
        if self.holds is None:
            self.holds = any(d is not None for d in dims)
        self.check(dims)
        return [move_batch_axis(v, d, self.dim, size) for v, d in zip(values, dims)]


def batch_jaxpr_at(
    closed: ClosedJaxpr, axis: AxisData, dims: tuple[int | None, ...]
) -> tuple[ClosedJaxpr, list[tuple[int, int, ShapedArray]]]:
    """(jaxpr on values mapped along these axes, and (which, mapped along which axis, element's aval) for its results
    that are mapped, where its equations leave the axis). Cached on the jaxpr."""
    return closed.cached(("mapped", axis, *dims), lambda: _mapped(closed, axis, dims))


def _mapped(
    closed: ClosedJaxpr, axis: AxisData, dims: Sequence[int | None]
) -> tuple[ClosedJaxpr, list[tuple[int, int, ShapedArray]]]:
    dims_out: list[int | None] = []

    def fun(*args):
        outs, dims_out[:] = run_batched(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), axis, args, dims)
        return outs

    avals = [a if d is None else axis.at(a, d) for a, d in zip(closed.in_avals, dims)]
    jaxpr = trace(fun, avals, closed.jaxpr.debug_info.without_results())
    return jaxpr, [(k, d, closed.jaxpr.outvars[k].aval) for k, d in enumerate(dims_out) if d is not None]


def move_batch_axis(value, dim: int | None, to: int | None, size: int):
    """The value with its mapped axis at `to`; broadcast where it has none, unchanged where both are None."""
    if dim is None:
        return value if to is None else hooks.broadcast(value, size, to)
    if to is None:
        raise ValueError("move_batch_axis: the value has a mapped axis, and the destination is None")
    return value if dim == to else hooks.moveaxis(value, dim, to)


def run_batched(
    fun: Callable[..., Sequence[Any]], axis: AxisData, values: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """(values, dims) of the results of flat `fun` under a new batching interpreter."""
    interpreter = BatchInterpreter(current_interpreter(), axis)
    try:
        with using(interpreter), extend_axis_env(axis.name, axis.size), names_inside(("vmap",)):
            outs = fun(*[interpreter.join(v, d) for v, d in zip(values, dims)])
            pairs = [interpreter.split(out) for out in outs]
    finally:
        interpreter.valid = False
    if config.value_of("jax_check_tracer_leaks"):
        kept = weakref.ref(interpreter)
        del outs, interpreter
        if (still := kept()) is not None:
            raise_if_kept(still)
    return [v for v, _ in pairs], [d for _, d in pairs]


def batch_jaxpr(
    closed: ClosedJaxpr, axis: AxisData, batched: Sequence[bool], instantiated: bool | Sequence[bool] = False
):
    """(jaxpr', batched_out): the jaxpr on values whose mapped axis is 0 where `batched` says so. Cached on the jaxpr.

    `instantiated` says which results (or all) must have the axis even where they do not depend on a batched argument.
    """
    batched = tuple(map(bool, batched))
    count = len(closed.jaxpr.outvars)
    wanted = (instantiated,) * count if isinstance(instantiated, bool) else tuple(map(bool, instantiated))

    def make():
        batched_out: list[bool] = []

        def fun(*args):
            outs, dims = run_batched(
                lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs),
                axis,
                args,
                [0 if b else None for b in batched],
            )
            batched_out[:] = [w or d is not None for w, d in zip(wanted, dims)]
            return [move_batch_axis(v, d, 0, axis.size) if b else v for v, d, b in zip(outs, dims, batched_out)]

        avals = [axis.at(a, 0) if b else a for a, b in zip(closed.in_avals, batched)]
        return trace(fun, avals, closed.jaxpr.debug_info.without_results()), tuple(batched_out)

    return closed.cached(("batch", axis, batched, wanted), make)


def to_front(values, dims) -> tuple[list[Any], list[bool]]:
    """The values with mapped axes moved to 0, and which of them have one."""
    return (
        [v if d is None or d == 0 else hooks.moveaxis(v, d, 0) for v, d in zip(values, dims)],
        [d is not None for d in dims],
    )
