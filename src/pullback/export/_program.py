"""A Python function as an object file, and what it must be linked with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.api.jit import jit
from pullback.api.stages import Traced
from pullback.compiler import pipelines
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.lower.host_function import HostFunction
from pullback.compiler.lower.program import Lowered, lower_program
from pullback.compiler.products.symbols import kernel_of
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from pullback.core.specialize import refuse_symbolic
from pullback.export._signature import Parameter, identifiers, parameter
from pullback.loops.emit.cpu.target import Target, target_scope
from pullback.loops.emit.jit import emit_object
from pullback.loops.emit.module import Linkage, build_module
from pullback.loops.emit.symbols import KERNEL
from pullback.runtime.programs.libraries import is_library
from pullback.runtime.programs.making import optimized
from pullback.transforms.partial_eval import used_inputs
from pullback.util.pytree import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from pullback.util.record import frozen_record

MOST_EXAMPLE_VALUES = 8  # elements of an argument that the example program spells out


@frozen_record
class Program:
    """One exported function: what C sees, and its code. `slots` are what the code reaches outside of itself."""

    name: str
    title: str  # as a call in Python
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    code: bytes
    entry: str
    table: str
    slots: tuple[str, ...]
    constants: dict[str, np.ndarray]  # by slot
    workspace: int  # bytes
    unused: frozenset[str]  # arguments that the code does not read

    @property
    def fortran(self) -> set[str]:
        """The BLAS and LAPACK routines that it calls."""
        return {name for name in self.slots if is_fortran(name)}

    @property
    def kernels(self) -> set[str]:
        """The subroutines of compiler/products/kernels.py that it calls."""
        return {name for name in self.slots if name.startswith(KERNEL)}

    @property
    def needs_runtime(self) -> bool:
        """Whether it calls functions of the extension (sorts, selection, Fourier transforms)."""
        return any(name in _core.symbol_addresses() for name in self.slots if name not in OWN)

    @property
    def sorts(self) -> bool:
        """Whether some of these need the C++ library: all but Fourier transforms do."""
        return any(name in _core.symbol_addresses() for name in self.slots if not name.startswith(("pb_fourier", *OWN)))


# What a library defines for itself: one thread, nobody who interrupts, and the threads of BLAS left as they are.
OWN = ("pb_parallel_for", "pb_interrupt_pending", "pb_step", "pb_blas_begin", "pb_blas_end")


def is_fortran(name: str) -> bool:
    """Whether a slot stands for a routine of BLAS or LAPACK."""
    return is_library(name) and name not in _core.symbol_addresses()


def traced(name: str, f: Callable[..., Any], args: tuple[Any, ...]) -> Traced:
    """`f` traced for arguments like these; TypeError if it cannot be called."""
    if not callable(f):
        raise TypeError(f"to_c: {name} is {f!r} of type {type(f)}; expected a function")
    trace = getattr(f, "trace", None)
    found = trace(*args) if trace is not None else jit(f).trace(*args)
    if not isinstance(found, Traced):
        raise TypeError(f"to_c: {name} is {f!r} of type {type(f)}; expected a function, or what jit gives for one")
    refuse_symbolic(found.jaxpr, f"to_c: {name!r}")
    return found


def program(name: str, number: int, library: str, stage: Traced, args: tuple[Any, ...], target: Target) -> Program:
    """Code for a traced function; NotImplementedError, with the user's line, for what has to run in Python."""
    inputs, outputs = _parameters(stage, library, args)
    entry, table = f"pb_{library}_{number}", f"pb_{library}_{number}_slots"
    flat, _ = optimized(stage.jaxpr, True, name)
    with target_scope(target):
        lowered = lower_program(flat, name)
        _refuse_host_calls(name, flat, lowered)
        function = pipelines.order_loops(lowered.function)
        final = pipelines.optimize_loops(function)
        offsets, workspace = plan_arena(function, final)
        module = build_module(final, offsets, target, linkage=Linkage(entry, table, static=True))
    code = emit_object(module.text, target, promote=module.promote, entry=entry)
    constants = {
        slot: np.ascontiguousarray(final.buffers[int(slot.split(":")[1])].data)
        for slot in module.slots
        if slot.startswith("constant:")
    }
    title = f"{name}({', '.join(p.path for p in inputs)})"
    unused = frozenset(p.name for p, used in zip(inputs, used_inputs(flat.jaxpr)) if not used)
    slots = tuple(module.slots)
    return Program(name, title, inputs, outputs, code, entry, table, slots, constants, workspace, unused)


def kernel_object(name: str, target: Target) -> bytes:
    """The object file of a subroutine of compiler/products/kernels.py."""
    module = build_module(kernel_of(name), {}, target, subroutine=True, linkage=Linkage(name, f"{name}_slots", True))
    return emit_object(module.text, target)


def _parameters(stage: Traced, library: str, args: tuple[Any, ...]) -> tuple[tuple[Parameter, ...], ...]:
    paths = list(stage.arg_names)
    in_avals = stage.jaxpr.in_avals
    names = identifiers(paths)
    examples = _examples(stage, args)
    inputs = tuple(
        parameter(n, path, aval, library, True, example)
        for n, path, aval, example in zip(names, paths, in_avals, examples)
    )
    leaves = tree_flatten_with_path(tree_unflatten(stage.out_tree, range(stage.out_tree.num_leaves)))[0]
    out_paths = [f"out{keystr(path)}" for path, _ in leaves]
    outputs = tuple(
        parameter(n, path, aval, library, False)
        for n, path, aval in zip(identifiers(out_paths, names), out_paths, stage.jaxpr.out_avals)
    )
    return inputs, outputs


def _examples(stage: Traced, args: tuple[Any, ...]) -> list[np.ndarray | None]:
    """The values of few elements among the example arguments, for each leaf; None for others, and for mere types."""
    leaves, _ = tree_flatten(tuple(arg for i, arg in enumerate(args) if i not in stage.static_args))
    values: list[np.ndarray | None] = []
    for leaf, aval in zip(leaves, stage.jaxpr.in_avals):
        known = isinstance(aval.dtype, np.dtype) and aval.size <= MOST_EXAMPLE_VALUES
        known = known and isinstance(leaf, (int, float, complex, np.ndarray, np.generic, _core.Array))
        values.append(np.asarray(leaf, aval.dtype) if known else None)
    return values


def _refuse_host_calls(name: str, flat: ClosedJaxpr, lowered: Lowered) -> None:
    if not lowered.host_calls:
        return
    equations = list(_equations(flat.jaxpr))
    reasons = sorted({_reason(host, equations) for host in lowered.host_calls})
    raise NotImplementedError(
        f"to_c: {name!r} calls Python, which a library does not have:\n" + "\n".join(f"  {r}" for r in reasons)
    )


def _reason(host: HostFunction, equations: list[JaxprEqn]) -> str:
    params = getattr(host.function, "params", None)
    found = [eqn for eqn in equations if eqn.params is params] or [
        eqn for eqn in equations if eqn.primitive.name == host.name
    ]
    lines = sorted({str(eqn.source) for eqn in found if eqn.source is not None})
    where = f" at {', '.join(lines)}" if lines else ""
    callback = None if params is None else params.get("callback")
    if callback is None:
        return f"primitive '{host.name}'{where}: for these operands it has no native rule, only one in Python"
    inner = getattr(callback, "function", callback)
    return f"{host.name} of {getattr(inner, '__qualname__', repr(inner))}{where}"


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)
