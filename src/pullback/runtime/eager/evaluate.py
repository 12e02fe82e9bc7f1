"""Eager evaluation: one primitive on concrete arrays.

Small work runs the primitive's reference on NumPy views: no compilation, some microseconds. A primitive that was
given much work of one type is compiled, once the time it has taken in NumPy could have paid for it; but only if that
changes no bit (bits.py). The same call gives the same bits, so that programs may compare what they compute twice.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import typed, typeof
from pullback.core.dimensions import is_symbolic_type
from pullback.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from pullback.core.lowering import Elementwise, HostCall, Inline, InlineFunction
from pullback.core.primitive import NoRule, Primitive
from pullback.core.source import user_source
from pullback.runtime.arrays.placed_results import place_results
from pullback.runtime.arrays.placement import SAYS, Placing
from pullback.runtime.eager import blocks, checks
from pullback.runtime.eager.bits import COMPILED, EITHER, UNCOMPILED, kind_of
from pullback.runtime.eager.blocks import LARGE
from pullback.runtime.eager.functions import reference_of
from pullback.runtime.eager.plan import make_plan
from pullback.runtime.eager.work import is_too_long, uses_before_compilation, work
from pullback.runtime.programs import spans
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.util.pytree import LEAF, leaves_tree
from pullback.util.switches import switches

PAYS = _core.PAYS  # elements that NumPy handles in about the time that one compilation takes
CALL_ELEMENTS = 1_000  # elements that NumPy handles in the time that a call of it takes by itself

_records: dict[Any, _Record] = {}


class _Record:
    """What is known of one primitive on operands of certain types: the types of results, the work so far, the
    program.
    """

    __slots__ = (
        *(
            "avals",
            "outs",
            "askers",
            "closed",
            "is_elementwise",
            "kind",
            "placing",
            "planned",
            "program",
            "reference",
            "single",
            "size",
        ),
        "work",
    )

    def __init__(self, primitive: Primitive, avals: list[Any], params: dict[str, Any]) -> None:
        self.avals = avals = [_without_mesh(a) for a in avals]
        out = primitive.rule("abstract_eval")(*avals, **params)
        self.single = not primitive.multiple_results
        self.outs = [out] if self.single else list(out)
        for aval in self.outs:
            if is_symbolic_type(aval):
                raise NotImplementedError(
                    f"primitive '{primitive.name}' would give an array of type {aval.short()}, whose symbolic "
                    f"dimensions have no values here, at {user_source()}; they have where functions of arguments with "
                    "symbolic shapes are traced, as in jax.export"
                )
        self.reference: Any = reference_of(primitive, avals)
        self.closed: Any = None
        self.is_elementwise = isinstance(primitive.lower, Elementwise)
        self.program: Any = None
        self.placing: Any = None
        self.planned: Any = None
        self.askers: set[str] = set()  # the call caches that have the plan
        self.size = CALL_ELEMENTS + work(primitive, avals, self.outs, params)
        self.work: float = 0 if _is_compilable(primitive) or _is_long_call(primitive, self.size) else -(1 << 62)
        self.kind = kind_of(primitive, avals, self.outs, params)
        if self.kind != EITHER:
            self.work = PAYS if self.kind == COMPILED else -(1 << 62)

    def jaxpr(self, primitive: Primitive, params: dict[str, Any]) -> ClosedJaxpr:
        """The primitive on such operands as a jaxpr."""
        if self.closed is None:
            self.closed = _as_jaxpr(primitive, self, params)
        return self.closed

    @property
    def tree(self) -> Any:
        """The structure of what `bind` gives."""
        return LEAF if self.single else leaves_tree(len(self.outs))


def _is_long_call(primitive: Primitive, size: float) -> bool:
    """Whether a library's routine takes so long that it is called by a program: that runs apart (ext/programs/apart.h),
    while Ctrl-C is heard."""
    return isinstance(primitive.lower, HostCall) and "matrices" in primitive.traits and size >= PAYS


def _is_compilable(primitive: Primitive) -> bool:
    return not isinstance(primitive.lower, (HostCall, NoRule, Inline)) or isinstance(primitive.reference, NoRule)


def evaluate(primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
    """The result (list of results where `multiple_results`) of a primitive on arrays, NumPy values or Python scalars.

    Raises what the primitive's shape rule raises, NotImplementedError if it can neither be run by NumPy nor compiled.
    """
    avals = [x._aval if type(x) is _core.Array else typeof(x) for x in args]
    key: tuple[Any, ...] | None
    try:
        key = (primitive, *avals, *params.items())
        record = _records.get(key)
    except TypeError:  # a parameter without a hash
        key = record = None
    if record is None:
        record = _Record(primitive, avals, params)
        if key is not None:
            if len(_records) > MAX_RECORDS:
                _records.clear()
            _records[key] = record
    program = record.program
    by_plan = "added by plans" in primitive.traits and record.kind != COMPILED
    if program is None and by_plan and key is not None and not switches.interpret:
        program = record.program = _planned(primitive, record, params)
    if program is None:
        record.work += record.size
        if record.is_elementwise and record.size > LARGE and key is not None:
            program = record.program = blocks.executable(record.jaxpr(primitive, params), primitive.name)
    if program is None:
        if record.work >= PAYS and key is not None and (not switches.interpret or isinstance(record.reference, NoRule)):
            program = record.program = _compile(primitive, record, params).executable
        else:
            places = _core.places_of(args)
            with spans.span(primitive.name, "eager") if spans.is_recording() else _UNRECORDED:
                result = _run_reference(primitive, args, record, params)
            if places is not None or primitive.name in SAYS:
                result = _placed(primitive, args, record, params, result)
            if checks.is_active():
                checks.check_operation(primitive, args, [result] if record.single else result)
            return result
    results = program([x if type(x) is _core.Array else _array(x, aval) for x, aval in zip(args, avals)])
    if checks.is_active():
        checks.check_operation(primitive, args, results)
    return results[0] if record.single else results


_UNRECORDED = nullcontext()  # around what no trace records
MAX_RECORDS = 20_000  # kinds of calls that are remembered; with more all are forgotten


def _placed(primitive: Primitive, args: tuple, record: _Record, params: dict[str, Any], result: Any) -> Any:
    """The reference's results, where they belong by the places of the operands."""
    if record.placing is None:
        record.placing = Placing(record.jaxpr(primitive, params))
    placed = place_results(record.placing, args, [result] if record.single else result, primitive.name)
    return placed[0] if record.single else placed


def _planned(primitive: Primitive, record: _Record, params: dict[str, Any]) -> Any:
    """The plan; None where there is none, or where it would take longer than a compilation may, which has its bits."""
    if record.planned is None:
        try:
            record.planned = make_plan(record.jaxpr(primitive, params), primitive.name)
        except NotImplementedError:
            return None
    too_long = record.kind == EITHER and is_too_long(record.planned.nanoseconds)
    return None if too_long else record.planned.executable


def remember(primitive: Primitive, args: tuple, params: dict[str, Any], asker: str) -> Any:
    """The entry of the call cache for a primitive on such operands: its plan at first, later perhaps compiled code.

    Each call cache (`asker`) gets the plan once, and compiled code when it asks again. None where a primitive must stay
    as it is: side effects, key arrays, loops, results that are looked at.
    """
    if checks.is_active() or not _is_compilable(primitive):
        return None
    try:
        avals = [x._aval if type(x) is _core.Array else typeof(x) for x in args]
        key = (primitive, *avals, *params.items())
        record = _records.get(key) or _Record(primitive, avals, params)
        _records[key] = record
        if record.is_elementwise and record.size > LARGE:
            whole = blocks.executable(record.jaxpr(primitive, params), primitive.name, asker in record.askers)
            if whole is not None:
                return _core.CacheEntry(whole, record.tree)
        if record.kind == COMPILED and not switches.interpret:
            return _core.CacheEntry(_compile(primitive, record, params).executable, record.tree)
        if record.planned is None:
            record.planned = make_plan(record.jaxpr(primitive, params), primitive.name)
        if record.kind == UNCOMPILED:
            return _core.CacheEntry(record.planned.executable, record.tree)
        too_long = is_too_long(record.planned.nanoseconds) and not switches.interpret
        if asker not in record.askers and not too_long:
            record.askers.add(asker)
            uses = uses_before_compilation(record.planned.nanoseconds)
            return _core.CacheEntry(record.planned.executable, record.tree, None, uses)
        if switches.interpret:
            return None
        return _core.CacheEntry(_compile(primitive, record, params).executable, record.tree)
    except (NotImplementedError, TypeError):  # no plan; a parameter without a hash
        return None


def _run_reference(primitive: Primitive, args: tuple, record: _Record, params: dict[str, Any]) -> Any:
    """The reference's results as arrays."""
    if isinstance(record.reference, NoRule):
        primitive.rule("reference")
    operands = tuple(_view(x) if type(x) is _core.Array else _operand(x, aval) for x, aval in zip(args, record.avals))
    with np.errstate(all="ignore"):
        values = _core.call_library(record.reference, operands, params)
    if record.single:
        return _boxed(primitive, values, record.outs[0])
    return [_boxed(primitive, value, aval) for value, aval in zip(values, record.outs)]


_view = np.asarray


def _operand(x: Any, aval: Any) -> Any:
    if hasattr(x, "_base_array"):
        return x
    return np.asarray(
        x, aval.dtype
    ).view()  # so that a reference that gives its operand does not give away the user's memory


def _boxed(primitive: Primitive, value: Any, aval: Any) -> Any:
    if type(value) is np.ndarray and value.base is None and value.shape == aval.shape and value.flags.owndata:
        return _core.from_numpy(value, aval)  # fresh: it becomes the array's memory
    if not isinstance(aval.dtype, np.dtype) or type(value) is _core.Array:
        return value
    array = np.asarray(value)
    if array.shape != aval.shape:
        raise AssertionError(
            f"{primitive.name}: the reference gave shape {array.shape}, the shape rule says {aval.short()}"
        )
    # Results that share memory with an operand (views) are copied; fresh ones become the array's memory.
    fresh = array.base is None and array.flags.writeable and array.flags.owndata
    return _core.from_numpy(array, aval, None, not fresh)


def _array(x: Any, aval: Any) -> Any:
    if type(x) is _core.Array:
        return x
    return _core.from_numpy(np.asarray(x, aval.dtype), aval, None, True)


def _compile(primitive: Primitive, record: _Record, params: dict[str, Any]) -> Any:
    return compile_jaxpr(record.jaxpr(primitive, params), name=primitive.name)


def _as_jaxpr(primitive: Primitive, record: _Record, params: dict[str, Any]) -> ClosedJaxpr:
    invars, outvars = [Var(a) for a in record.avals], [Var(a) for a in record.outs]
    eqn = JaxprEqn(invars, outvars, primitive, params)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], debug_info=DebugInfo("eager", primitive.name)), [])


def _without_mesh(aval: Any) -> Any:
    """The type of an operand, or result, without how explicit axes cut it, which its place says. Types of what programs
    have made say it, too: with those an operation would pass for one whose result the user has laid out, and what is
    laid out anew would keep the old type.
    """
    if getattr(aval, "placing", None) is None:
        return aval
    return typed(aval, None, aval.vma, aval.memory_space)


def clear_caches() -> None:
    """Forget the programs of primitives."""
    _records.clear()


def reference_eval(closed: ClosedJaxpr, args: Any) -> list[np.ndarray]:
    """The results of a jaxpr with every primitive run by its NumPy reference: the oracle of tests.

    Loops, branches and calls are run by evaluating their jaxprs under the same rule.
    """
    from pullback.core.interpreter import Interpreter, using
    from pullback.core.jaxpr import eval_jaxpr

    class ByReference(Interpreter):
        def process(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
            avals = [typeof(x) for x in args]
            if isinstance(primitive.lower, Inline):
                lower = primitive.lower
                body = lower.trace(avals, params) if isinstance(lower, InlineFunction) else lower.jaxpr(params)
                outs = eval_jaxpr(body.jaxpr, body.consts, *args)
                return outs if primitive.multiple_results else outs[0]
            if isinstance(primitive.reference, NoRule):
                return primitive.evaluate(*args, **params)  # type: ignore[misc]
            operands = [np.asarray(x, a.dtype) if isinstance(a.dtype, np.dtype) else x for x, a in zip(args, avals)]
            with np.errstate(all="ignore"):
                return _core.call_library(primitive.reference, tuple(operands), params)

    with using(ByReference()):
        return [np.asarray(x) for x in eval_jaxpr(closed.jaxpr, closed.consts, *args)]
