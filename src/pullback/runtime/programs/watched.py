"""Programs that find out by themselves which operation made a NaN or an infinity (jax_debug_nans, jax_debug_infs).

Behind each operation that makes such a value of operands without one is a branch that notes the operation, the steps of
the loops around it and the operands' values; loops and branches are written again with such bodies. So a program runs
once, and what random numbers, callbacks or donated arguments did is not done again. Notes are read only if a result is
bad: a NaN that `where` leaves out is none of the user's business. Bodies that cannot be written again (those of
shard_map, of mutable arrays) are looked at as one operation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Literal
from pullback.core.source import names_inside
from pullback.core.staging import trace
from pullback.runtime.eager.checks import place, problem
from pullback.util import dtypes

_INLINED = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat")
SHOWN = 3  # notes in a message


class Notes:
    """What a program has noted in its last run: the first time of each operation."""

    def __init__(self) -> None:
        self._found: dict[int, str] = {}

    def clear(self) -> None:
        self._found.clear()

    def add(self, number: int, text: str) -> None:
        self._found.setdefault(number, text)

    def text(self) -> str | None:
        """The first note, and others that may be the cause as well; None without any."""
        found = list(self._found.values())
        if not found:
            return None
        others = [f"\nalso: {text}" for text in found[1:SHOWN]]
        left = f"\nand {len(found) - SHOWN} more operations" if len(found) > SHOWN else ""
        return found[0] + "".join(others) + left


class _Note:
    """What a branch calls: the values of the steps, operands and results of one equation."""

    def __init__(self, notes: Notes, number: int, eqn: JaxprEqn, steps: int, literals: dict[int, Any]) -> None:
        self._notes, self._number, self._place, self._steps = notes, number, place(eqn), steps
        self._count, self._literals = len(eqn.invars), literals
        self.__name__ = f"note_of_{eqn.primitive.name}"

    def __call__(self, *values: Any) -> None:
        arrays = [np.asarray(value) for value in values]
        steps, rest = arrays[: self._steps], arrays[self._steps :]
        given = iter(rest)
        operands = [self._literals[k] if k in self._literals else next(given) for k in range(self._count)]
        outs = list(given)
        kind = next((found for out in outs if (found := problem(out))), "nan")
        where = f"invalid value ({kind}) encountered in {self._place}"
        if steps:
            where += ", step " + ", step ".join(str(int(step)) for step in steps)
            where += " (of the loops from the outermost)" if len(steps) > 1 else " of the loop"
        shown = [f"  operand {k}: {_text(operand, outs[0])}" for k, operand in enumerate(operands)]
        self._notes.add(self._number, "\n".join([where, *shown]))


def _text(operand: Any, out: np.ndarray) -> str:
    """An operand's values; of one in the shape of the result the element that goes with the first bad one, too."""
    array = np.asarray(operand)
    head = f"{array.dtype}{list(array.shape)} = "
    head += np.array2string(array, threshold=8, edgeitems=3, precision=6).replace("\n", " ")
    if array.shape == out.shape and array.ndim:
        bad = np.argwhere(~np.isfinite(out))
        if len(bad):
            at = tuple(int(i) for i in bad[0])
            head += f", at {list(at)}: {array[at]}"
    return head


def watched(closed: ClosedJaxpr, notes: Notes, kinds: tuple[bool, bool]) -> ClosedJaxpr:
    """The program of the same types that takes `notes`; `kinds`: whether of NaNs, and of infinities."""
    writer = _Writer(notes, *kinds)

    def run(*args: Any) -> list[Any]:
        return writer.evaluate(closed.jaxpr, closed.consts, args, ())

    return trace(run, closed.in_avals, DebugInfo("jit", closed.jaxpr.debug_info.func_name))


class _Writer:
    def __init__(self, notes: Notes, nans: bool, infs: bool) -> None:
        self._notes, self._nans, self._infs = notes, nans, infs
        self._number = 0

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], steps: tuple[Any, ...]) -> list[Any]:
        """As eval_jaxpr, under `steps` of the loops around."""
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, args))
        for eqn in jaxpr.eqns:
            values = [a.operand if type(a) is Literal else env[a] for a in eqn.invars]
            stack = eqn.source.name_stack if eqn.source is not None else ()
            with names_inside(*stack):
                env.update(zip(eqn.outvars, self._equation(eqn, values, steps)))
        return [a.operand if type(a) is Literal else env[a] for a in jaxpr.outvars]

    def _equation(self, eqn: JaxprEqn, values: list[Any], steps: tuple[Any, ...]) -> list[Any]:
        name, params = eqn.primitive.name, eqn.params
        if not _has_references(eqn):
            if name == "scan":
                return self._scan(params, values, steps)
            if name == "while":
                return self._while(params, values, steps)
            if name == "cond":
                return self._cond(params, values, steps)
            body = next((params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params), None)
            if name in _INLINED and isinstance(body, ClosedJaxpr) and len(body.jaxpr.invars) == len(values):
                return self.evaluate(body.jaxpr, body.consts, values, steps)
        outs = eqn.primitive.bind(*values, **params)
        outs = list(outs) if eqn.primitive.multiple_results else [outs]
        self._look(eqn, values, outs, steps)
        return outs

    def _scan(self, params: Any, values: list[Any], steps: tuple[Any, ...]) -> list[Any]:
        from pullback import lax

        closed, n, m = params["jaxpr"], params["num_consts"], params["num_consts"] + params["num_carry"]
        length, reverse = params["length"], params["reverse"]
        consts, init, xs = values[:n], values[n:m], values[m:]

        def body(carry: Any, x: Any) -> Any:
            number, slices = x
            outs = self.evaluate(closed.jaxpr, closed.consts, [*consts, *carry, *slices], (*steps, number))
            return outs[: m - n], outs[m - n :]

        numbers = np.arange(length, dtype=np.int32)
        numbers = numbers[::-1].copy() if reverse else numbers
        carry, ys = lax.scan(body, init, (numbers, xs), length=length, reverse=reverse)
        return [*carry, *ys]

    def _while(self, params: Any, values: list[Any], steps: tuple[Any, ...]) -> list[Any]:
        from pullback import lax
        from pullback.lax.control.while_loop import with_scalar_condition

        values, params = with_scalar_condition(values, params)
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        n = params["cond_nconsts"]
        m = n + params["body_nconsts"]

        def test(state: Any) -> Any:
            number, carry = state
            return self.evaluate(cond.jaxpr, cond.consts, [*values[:n], *carry], (*steps, number))[0]

        def step(state: Any) -> Any:
            number, carry = state
            outs = self.evaluate(body.jaxpr, body.consts, [*values[n:m], *carry], (*steps, number))
            return lax.add(number, np.int32(1)), outs

        return list(lax.while_loop(test, step, (np.int32(0), [*values[m:]]))[1])

    def _cond(self, params: Any, values: list[Any], steps: tuple[Any, ...]) -> list[Any]:
        from pullback import lax

        def branch(closed: ClosedJaxpr) -> Any:
            return lambda *args: self.evaluate(closed.jaxpr, closed.consts, args, steps)

        return list(
            lax.switch(lax.convert_element_type(values[0], np.int32), [*map(branch, params["branches"])], *values[1:])
        )

    def _look(self, eqn: JaxprEqn, values: list[Any], outs: list[Any], steps: tuple[Any, ...]) -> None:
        from pullback import lax
        from pullback.lax.control.callback import debug_callback

        made = self._bad(outs)
        if made is None:
            return
        given = self._bad(values)
        new = made if given is None else lax.bitwise_and(made, lax.bitwise_not(given))
        literals = {k: a.val for k, a in enumerate(eqn.invars) if type(a) is Literal}
        note = _Note(self._notes, self._number, eqn, len(steps), literals)
        self._number += 1
        shown = [value for k, value in enumerate(values) if k not in literals]
        lax.cond(new, functools.partial(debug_callback, note), lambda *_: None, *steps, *shown, *outs)

    def _bad(self, values: Sequence[Any]) -> Any:
        """Whether some element of some array is bad; None without floats."""
        from pullback import lax

        found = None
        for value in values:
            aval = value.aval if hasattr(value, "aval") else None
            dtype = np.asarray(value).dtype if aval is None else aval.dtype
            if not dtypes.issubdtype(dtype, np.inexact) or (aval is not None and aval.size == 0):
                continue
            tests = [lax.ne(value, value)] if self._nans else []
            if self._infs:
                parts = [lax.real(value), lax.imag(value)] if np.dtype(dtype).kind == "c" else [value]
                tests += [lax.eq(lax.abs(part), lax.full_like(part, np.inf)) for part in parts]
            for test in tests:
                one = lax.reduce_or(test, tuple(range(test.ndim)))
                found = one if found is None else lax.bitwise_or(found, one)
        return found


def _has_references(eqn: JaxprEqn) -> bool:
    return any(hasattr(a.aval, "inner_aval") for a in (*eqn.invars, *eqn.outvars))


__all__ = ["Notes", "watched"]
