"""Plans: jaxprs that run at once, without compilation, as lists of strided loops (`ext/programs/plan.h`).

`make_plan(closed)` decides everything that does not depend on values: each elementwise primitive becomes one of
NumPy's inner loops on strided memory, views (transpose, slice, reshape, broadcast) become strides of the operands that
read them, reductions accumulate with the same loops, products are NumPy's matmul loop. What has no loop is a call of
the primitive's reference. A run then costs some ten nanoseconds a step beside the arithmetic, so eager work on small
arrays is lighter than NumPy's own.

What is compiled from the first call on (bits.py) has no plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler.graph.simplify.inline import inline
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pullback.core.lowering import Elementwise
from pullback.core.primitive import NoRule
from pullback.lax.records.sums import FEW_TERMS, chain_of
from pullback.runtime.arrays.placement import Placing, says_where
from pullback.runtime.eager.bits import COMPILED, UNCOMPILED, kind_of
from pullback.runtime.eager.functions import reference_of
from pullback.runtime.eager.plan_rules import RULES
from pullback.runtime.eager.plan_values import (
    Temporary,
    Value,
    broadcast,
    coalesce,
    contiguous_strides,
    is_convertible,
    place,
    ufunc_loop,
)
from pullback.runtime.eager.reductions import reduce, vector_bytes
from pullback.runtime.eager.work import BLAS, DECOMPOSITION, HOST_CALL, MATRIX, work
from pullback.util.record import record
from pullback.util.switches import switches

MAX_RANK = 16  # dimensions of a step; for arrays of more there are no plans
FOLDED = 1 << 14  # constants of up to so many elements are computed when the plan is made
SMALL_PRODUCT = 1 << 10  # multiply-adds of a product of matrices over few terms that takes as long by a plain loop
PLAIN_TERM = 2.0  # nanoseconds for a term of other products
TRANSPOSED = 0.2  # nanoseconds for an element of a matrix whose rows become columns
LINE = 64  # bytes of a line of memory
RELEASE_ELEMENTS = 1 << 15  # plans that handle more than this let other Python threads run meanwhile


@record
class Planned:
    """A plan that can be called, and the nanoseconds that a run may take; those of BLAS among them, which compiled code
    hardly beats."""

    executable: Any
    nanoseconds: float
    of_products: float = 0.0


def make_plan(closed: ClosedJaxpr, name: str = "plan") -> Planned:
    """The plan of a jaxpr; NotImplementedError if it has control flow, side effects, or key arrays."""
    return _Builder(inline(closed)).finish(name)


def _turned(ends: Sequence[int]) -> tuple[int, ...]:
    """Of the transpose of matrices."""
    return *ends[:-2], ends[-1], ends[-2]


def _transposed(dims: Sequence[int], strides: Sequence[Sequence[int]], item: int) -> tuple[int, int] | None:
    """(i, j): the axes along which what is read and what is written are neighbours, if they are two long ones."""
    read, written = strides
    if item not in (1, 2, 4, 8) or item not in read or item not in written or len(dims) - 2 > MAX_RANK:
        return None
    i, j = read.index(item), written.index(item)
    return (i, j) if i != j and min(dims[i], dims[j]) * item >= LINE else None


class _Builder:
    """The steps of one plan while they are found, with symbolic memory."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.closed = closed
        self.constants: list[Any] = []
        self.steps: list[Any] = []  # (kind, ..., operands) with Values, whose memory `_executable` assigns
        self.values: dict[Any, Value] = {}
        self.nanoseconds = self.of_products = 0.0
        self.elements = 0
        self.targets: dict[Any, int] = {}
        self.known: dict[Any, np.ndarray] = {}  # values of constants, by base

    # values

    def constant(self, array: np.ndarray) -> Value:
        """A value known now."""
        array = np.array(array, order="C", ndmin=0)
        base = ("const", len(self.constants))
        self.constants.append(_core.from_numpy(array, ShapedArray(array.shape, array.dtype), None, True))
        self.known[base] = array
        return Value(base, 0, array.shape, contiguous_strides(array.shape, array.itemsize), array.dtype)

    def temporary(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        """Memory for an intermediate result."""
        shape = tuple(shape)
        return Value(
            Temporary(math.prod(shape) * dtype.itemsize), 0, shape, contiguous_strides(shape, dtype.itemsize), dtype
        )

    def atom(self, a: Any) -> Value:
        """The value of an operand of an equation."""
        if isinstance(a, Literal):
            return self.constant(np.asarray(a.val, _dtype(a.aval)))
        return self.values[a]

    def target(self, var: Any) -> Value:
        """Where the result `var` is written: straight into the program's result if it is one."""
        aval = var.aval
        dtype = _dtype(aval)
        if var in self.targets:
            return Value(
                ("out", self.targets[var]), 0, aval.shape, contiguous_strides(aval.shape, dtype.itemsize), dtype
            )
        return self.temporary(aval.shape, dtype)

    # steps

    def elementwise(self, loop: Any, operands: Sequence[Value], out: Value, cost: float = 0.4) -> Value:
        """out = loop(operands), each of the shape of `out` or broadcast to it."""
        spread = [broadcast(x, out.shape) for x in operands] + [out]
        size = math.prod(out.shape)
        if size:
            dims, strides = coalesce(out.shape, [x.strides for x in spread])
            if len(dims) > 1 and dims[-1] < 16 and max(dims) > dims[-1]:
                inner = dims.index(max(dims))
                order = [d for d in range(len(dims)) if d != inner] + [inner]
                dims, strides = [dims[d] for d in order], [[s[d] for d in order] for s in strides]
            self._loop(loop, dims, strides, spread, cost * size)
        return out

    def _loop(self, loop: Any, dims: list[int], strides: list[list[int]], values: list[Value], cost: float) -> None:
        if len(dims) > MAX_RANK:
            raise NotImplementedError("plan: too many dimensions")
        inner = [s[-1] for s in strides] if dims else [x.dtype.itemsize for x in values]
        self.steps.append(
            (loop, (dims[-1] if dims else 1,), tuple(inner), tuple(dims[:-1]), values, [tuple(s[:-1]) for s in strides])
        )
        self.nanoseconds += 15 + 8 * math.prod(dims[:-1]) + cost
        self.elements += math.prod(dims)

    def copy(self, x: Value, out: Value) -> Value:
        """out = x, broadcast."""
        item = x.dtype.itemsize
        spread = [broadcast(x, out.shape), out]
        dims, strides = coalesce(out.shape, [v.strides for v in spread])
        if (axes := _transposed(dims, strides, item)) is None:
            return self.elementwise(("copy", item), [x], out, 0.3)
        i, j = axes
        outer = [d for d in range(len(dims)) if d not in axes]
        steps = [tuple([s[d] for d in outer]) for s in strides]
        lengths = tuple([dims[d] for d in outer])
        self.steps.append(
            (("transpose", item), (dims[i], dims[j]), (strides[0][j], strides[1][i]), lengths, spread, steps)
        )
        self.nanoseconds += 15 + 8 * math.prod(lengths) + TRANSPOSED * math.prod(dims)
        self.elements += math.prod(dims)
        return out

    def placed(self, x: Value, out: Value) -> Value:
        """out = x, which is written there at once where the last step made it."""
        if isinstance(x.base, Temporary) and self.steps and len(self.steps[-1]) == 6 and self.steps[-1][4][-1] is x:
            self.steps[-1][4][-1] = out
            return out
        return self.copy(x, out)

    def contiguous(self, x: Value) -> Value:
        """x itself, or a copy of it in row-major order."""
        return x if x.is_contiguous else self.copy(x, self.temporary(x.shape, x.dtype))

    def convert(self, x: Value, out: Value) -> Value:
        """out = x as another type; NotImplementedError if that is left to the reference."""
        if x.dtype == out.dtype:
            return self.copy(x, out)
        if not is_convertible(x.dtype, out.dtype):
            raise NotImplementedError(f"plan: conversion of {x.dtype} to {out.dtype}")
        return self.elementwise(("convert", x.dtype, out.dtype), [x], out, 0.6)

    def ufunc(self, ufunc: np.ufunc, operands: Sequence[Value], out: Value, cost: float = 0.4) -> Value:
        """out = ufunc(operands), by NumPy's loop for exactly these types; NotImplementedError if there is none."""
        return self.elementwise(ufunc_loop(ufunc, (*[x.dtype for x in operands], out.dtype)), operands, out, cost)

    def accumulate(self, combine: str, x: Value, axes: Sequence[int], out: Value) -> Value:
        """out = the reduction of x over `axes` by a loop of ours (reductions.py), of at least one element."""
        dims, (steps, own) = self._reduced(x, axes, out)
        summed = [d for d, step in enumerate(steps) if step == 0]
        if not summed:  # axes of one element
            return self.copy(replace(x, shape=out.shape, strides=tuple(own)), replace(out, shape=tuple(dims)))
        reduce(self, combine, replace(x, shape=tuple(dims), strides=tuple(own)), summed, steps, out)
        return out

    def by_ufunc(self, ufunc: np.ufunc, x: Value, axes: Sequence[int], identity: Any, out: Value) -> Value:
        """out = ufunc.reduce(x, axes)."""
        loop = ufunc_loop(ufunc, (x.dtype,) * 2 + (out.dtype,))
        dims, (steps, own) = self._reduced(x, axes, out)
        self.copy(broadcast(self.constant(np.asarray(identity, out.dtype)), out.shape), out)
        if size := math.prod(x.shape):
            self._loop(loop, dims, [steps, own, steps], [out, x, out], 0.5 * size)
        return out

    @staticmethod
    def _reduced(x: Value, axes: Sequence[int], out: Value) -> tuple[list[int], list[list[int]]]:
        """(lengths, [steps of `out`, steps of x]) of as few axes of x as may be."""
        kept = iter(out.strides)
        return coalesce(x.shape, [[0 if d in axes else next(kept) for d in range(len(x.shape))], x.strides])

    def reduction(
        self,
        loop: Any,
        dims: Sequence[int],
        steps: Sequence[int],
        outer: Sequence[int],
        x: Value,
        out: Value,
        outer_steps: Sequence[Sequence[int]],
        nanoseconds: float,
    ) -> None:
        """A step of a loop that reduces; `nanoseconds` that one run of it takes beside its elements."""
        if len(outer) > MAX_RANK:
            raise NotImplementedError("plan: too many dimensions")
        self.steps.append((loop, dims, steps, tuple(outer), [x, out], [tuple(s) for s in outer_steps]))
        size = math.prod(x.shape)
        self.nanoseconds += 15 + (10 + nanoseconds) * math.prod(outer) + 0.1 * size
        self.elements += size

    def product(self, x: Value, y: Value, out: Value) -> None:
        """out[b, i, j] = sum over k of x[b, i, k] y[b, k, j], all with as many batch dimensions."""
        (*lead, m, k), n = x.shape, y.shape[-1]
        chain = chain_of(x.dtype)  # as in lax.records.sums.product
        if x.dtype.kind in "fc" and k > 2 * chain and min(m, n) == 1:
            blocks, rank = k // chain, len(lead)
            parts = self.temporary((*lead, blocks + 1, m, n), out.dtype)
            (*of_x, row, step), (*of_y, down, column) = x.strides, y.strides
            left = replace(x, shape=(*lead, blocks, m, chain), strides=(*of_x, step * chain, row, step))
            right = replace(y, shape=(*lead, blocks, chain, n), strides=(*of_y, down * chain, down, column))
            self.product(left, right, _part(parts, rank, slice(0, blocks)))
            left, right = _part(x, rank + 1, slice(blocks * chain, k)), _part(y, rank, slice(blocks * chain, k))
            last = _part(parts, rank, slice(blocks, blocks + 1))
            self.product(
                left, right, replace(last, shape=out.shape, strides=last.strides[:rank] + last.strides[rank + 1 :])
            )
            self.accumulate("add", parts, (rank,), out)
            return
        if not math.prod(out.shape):
            return
        if x.dtype.kind == "f" and 0 < k <= FEW_TERMS and (min(m, n) == 1 or m * n * k <= SMALL_PRODUCT):
            self._few_terms(x, y, out)
            return
        loop = ufunc_loop(np.matmul, (x.dtype, y.dtype, out.dtype))
        dims, strides = coalesce(out.shape[:-2], [v.strides[:-2] for v in (x, y, out)])
        count = dims[-1] if dims else 1
        steps = [s[-1] if dims else 0 for s in strides]
        core = [s for v in (x, y, out) for s in v.strides[-2:]]
        self.steps.append(
            (loop, (count, m, k, n), (*steps, *core), tuple(dims[:-1]), [x, y, out], [tuple(s[:-1]) for s in strides])
        )
        nanoseconds = 40 + math.prod(out.shape) * k * (0.2 if x.dtype.char in BLAS else PLAIN_TERM)
        self.nanoseconds += nanoseconds
        self.of_products += nanoseconds if x.dtype.char in BLAS else 0
        self.elements += math.prod(out.shape) * k

    def _few_terms(self, x: Value, y: Value, out: Value) -> None:
        """The same term after term, as programs do it. BLAS has another order for vectors, and in some layouts for
        matrices."""
        (*_, m, k), n = x.shape, y.shape[-1]
        if n == 1:
            m, n = n, m
            x, y, out = (replace(v, shape=_turned(v.shape), strides=_turned(v.strides)) for v in (y, x, out))
        dims, strides = coalesce(out.shape[:-2], [v.strides[:-2] for v in (x, y, out)])
        core = [s for v in (x, y, out) for s in v.strides[-2:]]
        loop = "product", x.dtype, vector_bytes(switches.cpu)
        self.steps.append((loop, (m, n, k), tuple(core), tuple(dims), [x, y, out], [tuple(s) for s in strides]))
        self.nanoseconds += (10 + m * n * k) * math.prod(dims)
        self.elements += math.prod(out.shape) * k

    def call(self, eqn: JaxprEqn, operands: Sequence[Value], outs: Sequence[Value]) -> None:
        """outs = the primitive's reference on the operands."""
        avals = [a.aval for a in eqn.invars]
        reference = reference_of(eqn.primitive, avals)
        if isinstance(reference, NoRule) or eqn.primitive.evaluate is not None or eqn.effects:
            raise NotImplementedError(f"plan: {eqn.primitive.name}")
        function = _quiet(reference, eqn.params)
        if eqn.primitive.multiple_results and len(outs) == 1:
            function = _only(function)
        self.steps.append((function, len(outs), [*operands, *outs]))
        done = work(eqn.primitive, [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars], eqn.params)
        # A reference takes about a nanosecond for each operation that compiled code has, and no less than five.
        dear = eqn.primitive.lower.cost if isinstance(eqn.primitive.lower, Elementwise) else 0
        self.nanoseconds += HOST_CALL + max(5, dear) * done
        if "matrices" in eqn.primitive.traits:
            self.nanoseconds += DECOMPOSITION + MATRIX * math.prod(operands[0].shape[:-2])

    # the program

    def finish(self, name: str) -> Planned:
        """All equations, then the results that no step has written yet."""
        jaxpr, consts = self.closed.jaxpr, self.closed.consts
        if any(eqn.effects for eqn in jaxpr.eqns):
            raise NotImplementedError("plan: side effects")
        for k, var in enumerate(jaxpr.invars):
            dtype = _dtype(var.aval)
            self.values[var] = Value(
                ("in", k), 0, var.aval.shape, contiguous_strides(var.aval.shape, dtype.itemsize), dtype
            )
        for var, value in zip(jaxpr.constvars, consts):
            if not isinstance(value, (_core.Array, np.ndarray, np.generic, bool, int, float, complex)):
                raise NotImplementedError("plan: a constant that is not a plain array")
            self.values[var] = self.constant(np.asarray(value, _dtype(var.aval)))
        for k, atom in enumerate(jaxpr.outvars):
            if not isinstance(atom, Literal):
                self.targets.setdefault(atom, k)
        for eqn in jaxpr.eqns:
            self._equation(eqn)
        forward = [self._result(k, atom) for k, atom in enumerate(jaxpr.outvars)]
        return self._executable(name, forward)

    def _equation(self, eqn: JaxprEqn) -> None:
        outs = [v.aval for v in eqn.outvars]
        kind = kind_of(eqn.primitive, [a.aval for a in eqn.invars], outs, eqn.params)
        if kind == COMPILED:
            raise NotImplementedError(f"plan: {eqn.primitive.name}")
        operands = [self.atom(a) for a in eqn.invars]
        if self._folded(eqn, operands):
            return
        if kind == UNCOMPILED:  # what it adds in which order must not depend on whether an operand is a view here
            operands = [self.contiguous(x) for x in operands]
        rule = RULES.get(eqn.primitive.name)
        done, spent = len(self.steps), (self.nanoseconds, self.of_products, self.elements)
        if rule is not None:
            try:
                self.values[eqn.outvars[0]] = rule(self, eqn, *operands)
                return
            except NotImplementedError:  # these types are left to the reference
                del self.steps[done:]
                self.nanoseconds, self.of_products, self.elements = spent
        targets = [self.target(var) for var in eqn.outvars]
        self.call(eqn, operands, targets)
        self.values.update(zip(eqn.outvars, targets))

    def _folded(self, eqn: JaxprEqn, operands: Sequence[Value]) -> bool:
        """Compute an equation now whose operands are known; views stay views."""
        if not all(x.base in self.known for x in operands) or eqn.primitive.name in ("broadcast_in_dim", "reshape"):
            return False
        if len(eqn.outvars) != 1 or eqn.outvars[0].aval.size > FOLDED or eqn.primitive.multiple_results:
            return False
        reference = reference_of(eqn.primitive, [a.aval for a in eqn.invars])
        if isinstance(reference, NoRule) or eqn.primitive.evaluate is not None:
            return False
        arrays = [_known_array(self.known[x.base], x) for x in operands]
        value = _quiet(reference, eqn.params)(*arrays)
        self.values[eqn.outvars[0]] = self.constant(np.asarray(value, _dtype(eqn.outvars[0].aval)))
        return True

    def _result(self, k: int, atom: Any) -> int:
        """The number of the input that result k plainly is; otherwise -1, and the result is written."""
        value = self.atom(atom)
        if value.base == ("out", k) and value.offset == 0 and value.is_contiguous:
            return -1
        size = math.prod(value.shape) * value.dtype.itemsize
        is_input = isinstance(value.base, tuple) and value.base[0] == "in"
        if is_input and value.offset == 0 and value.is_contiguous and size > _core.SHARED_BYTES:
            whole = self.closed.jaxpr.invars[value.base[1]].aval
            if whole.size == math.prod(value.shape) and _dtype(whole) == value.dtype:
                return int(value.base[1])
        shape = value.shape
        self.copy(value, Value(("out", k), 0, shape, contiguous_strides(shape, value.dtype.itemsize), value.dtype))
        return -1

    def _executable(self, name: str, forward: list[int]) -> Planned:
        jaxpr = self.closed.jaxpr
        n_in, n_const = len(jaxpr.invars), len(self.constants)
        arena = n_in + n_const + len(jaxpr.outvars)
        first = {"in": 0, "const": n_in, "out": n_in + n_const}
        uses = [[v.base for v in (step[2] if len(step) == 3 else step[4])] for step in self.steps]
        offsets, arena_bytes = place(uses)

        def place_of(v: Value) -> tuple[int, int]:
            if isinstance(v.base, Temporary):
                return arena, offsets[v.base] + v.offset
            kind, number = v.base
            return first[kind] + number, v.offset

        steps: list[Any] = []
        for step in self.steps:
            if len(step) == 3:
                function, count, values = step
                steps.append((function, count, tuple([(*place_of(v), v.shape, v.strides, v.dtype) for v in values])))
            else:
                loop, dims, strides, outer, values, outer_strides = step
                operands = tuple([(*place_of(v), s) for v, s in zip(values, outer_strides)])
                steps.append((loop, dims, strides, outer, operands))
        executable = _core.Executable(
            0,
            [v.aval for v in jaxpr.invars],
            self.closed.out_avals,
            arena_bytes,
            None,
            constants=self.constants,
            forward=forward,
            release_gil=self.elements > RELEASE_ELEMENTS,
            name=name,
            plan=steps,
            placing=Placing(self.closed),
            places=says_where(self.closed),
        )
        return Planned(executable, self.nanoseconds, self.of_products)


def _quiet(reference: Callable[..., Any], params: dict[str, Any]) -> Callable[..., Any]:
    def call(*arrays: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return reference(*arrays, **params)

    return call


def _only(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arrays: np.ndarray) -> Any:
        (value,) = function(*arrays)
        return value

    return call


def _part(x: Value, axis: int, piece: slice) -> Value:
    shape = (*x.shape[:axis], piece.stop - piece.start, *x.shape[axis + 1 :])
    return replace(x, shape=shape, offset=x.offset + piece.start * x.strides[axis])


def _known_array(array: np.ndarray, x: Value) -> np.ndarray:
    return np.ndarray(x.shape, x.dtype, array, x.offset, x.strides) if x.shape != array.shape else array


def _dtype(aval: Any) -> np.dtype:
    dtype = aval.dtype
    if not isinstance(dtype, np.dtype) or dtype.itemsize == 0:
        raise NotImplementedError(f"plan: values of type {dtype}")
    return dtype
