"""Elementwise programs for large arrays of any size.

What works element by element is compiled once, for a block of 4096 elements; an executable for an array of some size
runs that kernel on block after block (ext/programs/blocks.h). So eager work on large arrays of ever new sizes is
compiled once for its types, not once for each size.

Measured: programs for one size were compiled after some use of each, so a tanh of ever new sizes around 1e6 took
NumPy's 3.2 ms, now 0.84. A call with a new size stays in C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler.graph.simplify.inline import inline
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise
from pullback.runtime.arrays.placement import Placing, says_where
from pullback.runtime.eager import checks
from pullback.runtime.eager.functions import has_kernel, kernel_of
from pullback.runtime.programs.canonical import jaxpr_key
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.util import config
from pullback.util.switches import switches

BLOCK = 4096  # elements that a kernel takes at a time
LARGE = _core.LARGE  # elements from which on kernels of blocks are used
PAYS = _core.PAYS
PART_WORK = 1 << 15  # additions that are worth another thread
MAX_KERNELS = 4096  # whose work is counted; with more the count begins anew

_work: dict[Any, float] = {}  # elements that each kernel could have handled before it is compiled


def executable(closed: ClosedJaxpr, name: str, ready: bool = False) -> Any:
    """The executable of an elementwise jaxpr of large arrays; None if it is not one, or not worth a compilation yet.

    Each time that it is asked for counts as work; `ready`: the work has been done.
    """
    size = max((v.aval.size for v in closed.jaxpr.outvars), default=0)
    if size < LARGE or checks.is_active() or switches.interpret:
        return None
    kernel = closed.cached("blocks", lambda: (_kernel(closed, size),))[0]
    if kernel is None:
        return None
    if _is_function(kernel):
        return closed.cached("blockwise", lambda: (_function_over_blocks(closed, size, name),))[0]
    if not ready:
        key = (jaxpr_key(kernel), config.config.jax_enable_x64)
        if key not in _work and len(_work) >= MAX_KERNELS:
            _work.clear()
        work = _work[key] = _work.get(key, 0.0) + max(size, _core.asked_work())
        if work < PAYS:
            return None
    return closed.cached("blockwise", lambda: (over_blocks(closed, compile_jaxpr(kernel, name=name), size, name),))[0]


def over_blocks(closed: ClosedJaxpr, kernel: Any, size: int, name: str) -> Any:
    """The executable of a jaxpr of arrays of a size that runs its program for a block; None if that does not serve."""
    native = kernel.native
    if native.compiled is None or native.facts.host_calls or native.arena_bytes > _core.BLOCK_ARENA:
        return None
    if any([source >= 0 for source in native.facts.forwards]):
        return None  # a result that is an operand (x ** 1) is not written by the kernel
    avals = [v.aval for v in (*closed.jaxpr.invars, *closed.jaxpr.outvars)]
    cost = sum([getattr(eqn.primitive.lower, "cost", 1) for eqn in kernel.closed.jaxpr.eqns]) + len(avals)
    return _core.Executable(
        native.compiled.address,
        closed.in_avals,
        closed.out_avals,
        0,
        native.compiled,
        release_gil=True,
        interruptible=True,
        name=name,
        blocks=(
            *(BLOCK, size, max(1, PART_WORK // (BLOCK * cost)), native.arena_bytes),
            [a.dtype.itemsize if a.size == size else 0 for a in avals],
        ),
        placing=Placing(closed),
        places=says_where(closed),
    )


def _is_function(kernel: ClosedJaxpr) -> bool:
    """Whether it is one function of all operands that has a kernel, so that nothing is to be compiled."""
    jaxpr = kernel.jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].invars != jaxpr.invars or len(set(jaxpr.invars)) < len(jaxpr.invars):
        return False
    avals = [v.aval for v in jaxpr.invars]
    return all([aval.shape for aval in avals]) and has_kernel(
        jaxpr.eqns[0].primitive.name, [aval.dtype for aval in avals]
    )


def _function_over_blocks(closed: ClosedJaxpr, size: int, name: str) -> Any:
    """The executable of a jaxpr of arrays of a size that runs the kernel of a function."""
    (eqn,) = closed.cached("blocks", lambda: ())[0].jaxpr.eqns
    address, owner = kernel_of(eqn.primitive.name, eqn.invars[0].aval.dtype)
    avals = [v.aval for v in (*closed.jaxpr.invars, *closed.jaxpr.outvars)]
    grain = max(1, PART_WORK // (BLOCK * (eqn.primitive.lower.cost + len(avals))))
    return _core.Executable(
        address,
        closed.in_avals,
        closed.out_avals,
        0,
        owner,
        release_gil=True,
        interruptible=True,
        name=name,
        blocks=(BLOCK, size, grain, 0, [aval.dtype.itemsize for aval in avals], True),
        placing=Placing(closed),
        places=says_where(closed),
    )


def _kernel(closed: ClosedJaxpr, size: int) -> ClosedJaxpr | None:
    """The jaxpr for blocks; None if a result is not computed element by element."""
    closed = inline(closed)
    jaxpr = closed.jaxpr
    if any([np.size(c) != 1 for c in closed.consts]):
        return None
    values: dict[Any, Any] = {}

    def shrunk(aval: Any) -> Any:
        if not isinstance(aval.dtype, np.dtype) or aval.dtype.itemsize == 0 or aval.size not in (size, 1):
            raise _NotElementwise
        return ShapedArray((BLOCK,) if aval.size == size else (), aval.dtype, aval.weak_type)

    def atom(a: Any) -> Any:
        return a if isinstance(a, Literal) else values[a]

    eqns = []
    try:
        for var in (*jaxpr.constvars, *jaxpr.invars):
            values[var] = Var(shrunk(var.aval))
        for eqn in jaxpr.eqns:
            operands = [atom(a) for a in eqn.invars]
            shapes = {a.aval.shape for a in eqn.invars if a.aval.size == size}
            out = eqn.outvars[0].aval
            if len(eqn.outvars) != 1 or eqn.effects:
                return None
            name = eqn.primitive.name
            if name in ("reshape", "squeeze", "copy", "copy_p") and operands[0].aval == shrunk(out):
                if eqn.params.get("dimensions") is not None:
                    return None
                values[eqn.outvars[0]] = operands[0]
                continue
            params = eqn.params
            if name == "broadcast_in_dim":
                if operands[0].aval.shape or out.size != size:
                    return None
                params = {**params, "shape": (BLOCK,), "broadcast_dimensions": ()}
            elif not isinstance(eqn.primitive.lower, Elementwise) or (shapes and shapes != {out.shape}):
                return None
            var = values[eqn.outvars[0]] = Var(shrunk(out))
            eqns.append(JaxprEqn(operands, [var], eqn.primitive, params))
        outvars = [atom(a) for a in jaxpr.outvars]
    except _NotElementwise:
        return None
    if any([type(a) is Literal or a.aval.shape != (BLOCK,) for a in outvars]):
        return None
    invars = [values[v] for v in jaxpr.invars]
    if any([a in invars for a in outvars]) or len(set(outvars)) < len(outvars):
        return None
    constvars = [values[v] for v in jaxpr.constvars]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, debug_info=jaxpr.debug_info), closed.consts)


class _NotElementwise(Exception):
    """A value is neither a scalar nor of the common size."""
