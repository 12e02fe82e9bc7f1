"""Eager evaluation: one primitive on concrete arrays.

Small work runs the primitive's reference on NumPy views: no compilation, some microseconds. A primitive that was given much
work of one type is compiled, once the time it has taken in NumPy could have paid for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import typeof
from pullback.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from pullback.core.lowering import HostCall, Inline
from pullback.core.primitive import NoRule, Primitive
from pullback.runtime.program import Program, compile_jaxpr
from pullback.util import config
from pullback.util.switches import switches

SMALL = 16_384  # elements up to which NumPy is always good enough
PAYS = 4_000_000  # elements that NumPy handles in about the time that one compilation takes

_work: dict[Any, int] = {}
_programs: dict[Any, Program] = {}


def evaluate(primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
    """The result (list of results where `multiple_results`) of a primitive on arrays, NumPy values or Python scalars.

    Raises what the primitive's shape rule raises, NotImplementedError if it can neither be run by NumPy nor compiled.
    """
    avals = [typeof(x) for x in args]
    out = primitive.rule("abstract_eval")(*avals, **params)
    outs = list(out) if primitive.multiple_results else [out]
    size = 0
    for aval in avals:
        size = max(size, aval.size)
    for aval in outs:
        size = max(size, aval.size)
    if size > SMALL or isinstance(primitive.reference, NoRule):
        program = _program(primitive, avals, outs, params, size)
        if program is not None:
            results = program.call([_array(x, aval) for x, aval in zip(args, avals)])
            return results if primitive.multiple_results else results[0]
    return run_reference(primitive, args, avals, outs, params)


def run_reference(primitive: Primitive, args: tuple, avals: list, outs: list, params: dict[str, Any]) -> Any:
    """The reference's results as arrays of the given avals."""
    operands = [np.asarray(x) if type(x) is _core.Array else _operand(x, aval) for x, aval in zip(args, avals)]
    with np.errstate(all="ignore"):
        values = primitive.rule("reference")(*operands, **params)
    if not primitive.multiple_results:
        return _boxed(primitive, values, outs[0])
    return [_boxed(primitive, value, aval) for value, aval in zip(values, outs)]


def _operand(x: Any, aval: Any) -> Any:
    if hasattr(x, "_base_array"):
        return x
    return np.asarray(x, aval.dtype)


def _boxed(primitive: Primitive, value: Any, aval: Any) -> Any:
    if not isinstance(aval.dtype, np.dtype) or type(value) is _core.Array:
        return value
    array = np.asarray(value)
    if array.shape != aval.shape:
        raise AssertionError(f"{primitive.name}: the reference gave shape {array.shape}, the shape rule says {aval.str_short()}")
    # Results that share memory with an operand (views) are copied; fresh ones become the array's memory.
    fresh = array.base is None and array.flags.writeable and array.flags.owndata
    return _core.from_numpy(array, aval, None, not fresh)


def _array(x: Any, aval: Any) -> Any:
    if type(x) is _core.Array:
        return x
    return _core.from_numpy(np.asarray(x, aval.dtype), aval, None, True)


def _program(primitive: Primitive, avals: list, outs: list, params: dict[str, Any], size: int) -> Program | None:
    if isinstance(primitive.lower, (HostCall, NoRule, Inline)) and not isinstance(primitive.reference, NoRule):
        return None
    try:
        key = (primitive, tuple(avals), tuple(params.items()), config.epoch(), switches.interpret)
        found = _programs.get(key)
    except TypeError:
        return None
    if found is not None:
        return found
    if not isinstance(primitive.reference, NoRule):
        work = _work[key] = _work.get(key, 0) + size
        if work < PAYS or switches.interpret:
            return None
    invars, outvars = [Var(a) for a in avals], [Var(a) for a in outs]
    eqn = JaxprEqn(invars, outvars, primitive, params)
    closed = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], debug_info=DebugInfo("eager", primitive.name)), [])
    found = _programs[key] = compile_jaxpr(closed, name=primitive.name)
    return found


def clear_caches() -> None:
    """Forget the programs of primitives."""
    _work.clear()
    _programs.clear()


def reference_eval(closed: ClosedJaxpr, args: Any) -> list[np.ndarray]:
    """The results of a jaxpr with every primitive run by its NumPy reference: the oracle of tests.

    Loops, branches and calls are run by evaluating their jaxprs under the same rule.
    """
    from pullback.core.evaluate import eval_jaxpr
    from pullback.core.interpreter import Interpreter, using

    class ByReference(Interpreter):
        def process(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
            avals = [typeof(x) for x in args]
            if isinstance(primitive.lower, Inline):
                body = primitive.lower.jaxpr(params)
                return eval_jaxpr(body.jaxpr, body.consts, *args)
            if isinstance(primitive.reference, NoRule):
                return primitive.evaluate(*args, **params)  # type: ignore[misc]
            operands = [np.asarray(x, a.dtype) if isinstance(a.dtype, np.dtype) else x for x, a in zip(args, avals)]
            with np.errstate(all="ignore"):
                return primitive.reference(*operands, **params)

    with using(ByReference()):
        return [np.asarray(x) for x in eval_jaxpr(closed.jaxpr, closed.consts, *args)]
