"""Derivatives inside of a function that shard_map maps, with check_vma: which values vary along the mapped axes.

A value that is the same on all devices, and meets one that differs, is there once for each of them, so its cotangent is
the sum over the devices; psum, whose result is the same on all, hands its cotangent to each. So of the linear program
of a derivative it must be known which variables vary: those that have the mapped axis when it is batched.

    loss on a device = sum(x * w), w the same everywhere      =>      w_bar = psum(x)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pullback.core import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    Primitive,
    StagedTracer,
    Tracer,
    Zero,
    axis_env,
    current_interpreter,
)
from pullback.core.atoms import subjaxprs
from pullback.transforms.batching import AxisData, BatchInterpreter, BatchTracer, batch_jaxpr
from pullback.transforms.jvp import JVPTracer


class CheckedAxis(NamedTuple):
    """In the environment of axes beside `name`: whether values vary along that axis matters to their derivatives."""

    name: Any


def checked_axes() -> list[Any]:
    """The axes of shard_map, with check_vma, in force."""
    return [key.name for key in axis_env() if isinstance(key, CheckedAxis)]


def varies(value: Any, axis: Any) -> bool:
    """Whether a value has a mapped axis. NotImplementedError in staged code, such as the body of a scan: the types of
    variables do not say it.
    """
    inside, interpreter = set(), current_interpreter()
    while interpreter is not None and not (isinstance(interpreter, BatchInterpreter) and interpreter.axis.name == axis):
        inside.add(interpreter)
        interpreter = interpreter.parent
    while isinstance(value, Tracer) and not (isinstance(value, BatchTracer) and value.interpreter is interpreter):
        if isinstance(value, StagedTracer) and value.interpreter in inside:
            raise NotImplementedError(
                f"shard_map: a derivative in the body of a loop or branch, inside of the mapped function, in a value "
                f"that may be the same along mesh axis {axis!r}: with check_vma=True it may be a sum over the devices, "
                "and whether it is, is not known there. Differentiate outside of shard_map or of the loop, or pass "
                "check_vma=False and use lax.psum"
            )
        value = value.primal if isinstance(value, JVPTracer) else value.beneath()
    return isinstance(value, Tracer)


def check_derivatives_in(values: Sequence[Any]) -> None:
    """NotImplementedError for a value that is the same along a checked axis, where cotangents are not summed."""
    for axis in checked_axes():
        if not all(varies(value, axis) for value in values):
            raise NotImplementedError(
                f"shard_map: the transpose, inside of the mapped function, of a function of a value that does not "
                f"differ along mesh axis {axis!r}: with check_vma=True it is the sum over the devices, which is "
                "supported for grad and vjp only. Or pass check_vma=False and use lax.psum"
            )


class Varying:
    """Along which checked axes the variables of a linear program vary, and what their cotangents are then."""

    def __init__(self, psum_p: Primitive, axes: Sequence[Any], args: Sequence[Any]) -> None:
        self.psum_p = psum_p
        self.sizes = {axis: axis_env()[axis] for axis in axes}
        self.args = {axis: tuple(varies(x, axis) for x in args) for axis in axes}

    def follow(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> Following:
        """For a program whose arguments are those given."""
        return Following(self, jaxpr, consts)


class Following:
    """What `Varying` says of the variables of one program."""

    def __init__(self, varying: Varying, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        self.psum_p, self.sizes = varying.psum_p, varying.sizes
        every = [v for eqn in jaxpr.eqns for v in eqn.outvars]
        closed = ClosedJaxpr(Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], every, jaxpr.eqns), [])
        self.of: dict[Any, set[Any]] = {}
        for axis, size in self.sizes.items():
            given = [*(varies(x, axis) for x in consts), *varying.args[axis]]
            _, found = batch_jaxpr(closed, AxisData(axis, size), given)
            self.of[axis] = {v for v, mapped in zip([*closed.jaxpr.invars, *every], [*given, *found]) if mapped}

    def transposed(self, eqn: Any, bars: Sequence[Any]) -> list[Any] | None:
        """The cotangents of a psum over checked axes: each device has that of the sum. None for other equations."""
        if eqn.primitive is not self.psum_p or not set(eqn.params["axes"]) <= set(self.sizes):
            return None
        return list(bars) if eqn.params["axis_index_groups"] is None else None

    def met(self, eqn: Any, atom: Any, bar: Any) -> Any:
        """The cotangent of an operand, summed over the axes along which the results vary and the operand does not."""
        if type(atom) is Literal or bar is None or type(bar) is Zero:
            return bar
        axes = [axis for axis, vary in self.of.items() if atom not in vary and not vary.isdisjoint(eqn.outvars)]
        if not axes:
            return bar
        for axis in axes:
            if any(axis in names for names in _collectives(eqn.params)) or not all(
                v in self.of[axis] for v in self.reached(eqn, atom)
            ):
                raise NotImplementedError(
                    f"shard_map: the derivative, inside of the mapped function, of {eqn.primitive.name} some of whose "
                    f"results vary along mesh axis {axis!r}, in a value that does not. Differentiate outside of "
                    "shard_map, or pass check_vma=False and use lax.psum"
                )
        return self.psum_p.bind(bar, axes=tuple(axes), axis_index_groups=None)[0]

    def reached(self, eqn: Any, atom: Any) -> list[Any]:
        """The results that depend on an operand."""
        if not any(True for _ in subjaxprs(eqn.params)):
            return list(eqn.outvars)
        operands = list(dict.fromkeys(a for a in eqn.invars if type(a) is not Literal))
        alone = ClosedJaxpr(Jaxpr([], operands, list(eqn.outvars), [eqn]), [])
        _, found = batch_jaxpr(alone, AxisData(None, 2), [a is atom for a in operands])
        return [v for v, depends in zip(eqn.outvars, found) if depends]


def _collectives(params: dict[str, Any]) -> Iterator[Sequence[Any]]:
    """The axes of each collective operation in the programs of an equation."""
    for jaxpr in subjaxprs(params):
        for eqn in jaxpr.eqns:
            if eqn.primitive.collective_axes is not None:
                yield eqn.primitive.collective_axes(eqn.params)
            yield from _collectives(eqn.params)
