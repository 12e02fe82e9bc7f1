"""What libraries ask of the trace they run in: types of mapped values, whether values are concrete, named axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import (
    Interpreter,
    ShapedArray,
    StagingInterpreter,
    axis_env,
    current_interpreter,
    eval_interpreter,
    is_array_like,
    tangent_aval,
    using,
)
from pullback.numpy._arguments import concrete_or_error as _concrete_or_error
from pullback.transforms.batching import BatchInterpreter

no_effects: frozenset = frozenset()


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type without its axis `axis`, which has `size` elements; None: the type itself.

    Raises ValueError if the sizes differ.
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} has size {aval.shape[axis]}, expected {size}")
    shape = list(aval.shape)
    del shape[axis]
    return aval.update(shape=tuple(shape))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type with a new axis of `size` elements at position `axis`; None: the type itself.

    NotImplementedError for an explicit_mesh_axis: types do not say how values lie.
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError(f"unmapped_aval: explicit_mesh_axis={explicit_mesh_axis!r} is not supported")
    if axis is None:
        return aval
    at = axis % (len(aval.shape) + 1)
    return aval.update(shape=(*aval.shape[:at], size, *aval.shape[at:]))


def valid_jaxtype(x: Any) -> bool:
    """Whether x can be an array: an array, a tracer or a scalar."""
    return is_array_like(x)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> np.dtype:
    """The dtype of tangents: the same for inexact types, float0 for all else."""
    return tangent_aval(ShapedArray((), np.dtype(primal_dtype))).dtype


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """force(val), or val where `force` is None; ConcretizationTypeError with `context` if val is traced."""
    value = _concrete_or_error(val, context)
    return value if force is None else force(value)


class take_current_trace:
    """Context manager that gives the current interpreter; inside, operations evaluate."""

    def __enter__(self) -> Interpreter:
        taken = current_interpreter()
        self._inside = using(eval_interpreter())
        self._inside.__enter__()
        return taken

    def __exit__(self, *exc: Any) -> bool:
        return self._inside.__exit__(*exc)


class set_current_trace(using):
    """Context manager: make an interpreter, as given by take_current_trace, the current one."""

    __slots__ = ()

    def __init__(self, trace: Interpreter, check_leaks: bool = False) -> None:
        super().__init__(trace)


class OpaqueTraceState:
    """Equal to another if both were taken in the same trace."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._interpreter is other._interpreter

    def __hash__(self) -> int:
        return hash(id(self._interpreter))


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """The trace in force, to be compared with others."""
    return OpaqueTraceState(current_interpreter())


def find_top_trace(_: Any) -> Interpreter:
    """The interpreter in force."""
    return current_interpreter()


def _in_force() -> list[Interpreter]:
    chain, interpreter = [], current_interpreter()
    while interpreter is not None:
        chain.append(interpreter)
        interpreter = interpreter.parent
    return chain


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether operations are being recorded."""
    return any(isinstance(i, StagingInterpreter) for i in _in_force())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a vmap is in force."""
    return any(isinstance(i, BatchInterpreter) for i in _in_force())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Names of the axes in force."""
    return list(axis_env())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether named axes are in force."""
    return bool(axis_env())
