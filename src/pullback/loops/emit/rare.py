"""Long computations that hardly any vector needs, in a loop over parts of it.

A branch for huge arguments of a sine works with integers of 64 bits: of 16 lanes these take four registers each, of
which LLVM writes code for every one. A loop over parts that fill one register each is a quarter of that code, and its
time does not count.

Measured: the sine's reduction of huge arguments was most of LLVM's work for a sine. Code generation of ten steps of
sine and reversal with their gradient went from 86 to 40 ms; a sine of 20,000 elements from 10 to 8 us; of huge
arguments from 43 to 55.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import Expr, Lambda, Op, Read
from pullback.loops.ir.types import REAL_OF

from .access import Access
from .types import register_bytes, register_type
from .values import Value, broadcast

LEAST_OPS = 24  # fewer are as soon written out as their operands are put on the stack and read again


def in_parts(ev: Access, roots: Sequence[Expr]) -> list[Value] | None:
    """The values of `roots`, found by a loop over parts of the vector; None if that is no gain, and nothing is done."""
    found = None if ev.vector is None else _parted(ev, roots)
    if ev.vector is None or found is None:
        return None
    code, vector = ev.code, ev.vector
    operands, part = found
    lanes = vector.lanes
    if part >= lanes:
        functions = [ev.repeated.function(root, operands, len(roots) == 1) for root in roots]
        values = [_called(ev, each, root, operands, lanes) for each, root in zip(functions, roots) if each is not None]
        return values if len(values) == len(roots) else None
    given = []
    for value in operands.values():
        given.append(_place(ev, value.dtype, lanes))
        code.line(f"  store {value.type} {value.ref}, ptr {given[-1]}")
    results = [_place(ev, root.dtype, lanes) for root in roots]
    number = code.fresh("").strip("%.")
    before = code.block
    code.open_loop(frozenset())
    code.line(f"  br label %parts.{number}")
    code.label(f"parts.{number}")
    start = code.define(code.fresh("i"))
    phi: list = []
    code.scopes[-1].lines.append(phi)

    def at(place: str, dtype: str) -> str:
        return code.inst(f"getelementptr {register_type(dtype)}, ptr {place}, i64 {start}", place, start)

    def read(dtype: str, place: str, count: int) -> Value:
        return Value(dtype, code.here(f"load {register_type(dtype, count)}, ptr {place}"), count)

    ev.vectors = {
        key: read(value.dtype, at(place, value.dtype), part) for (key, value), place in zip(operands.items(), given)
    }
    vector.lanes = part
    for root, place in zip(roots, results):
        shared = ev.repeated.function(root, operands, len(roots) == 1)
        value = ev.value(root) if shared is None else _called(ev, shared, root, ev.vectors, part)
        value = broadcast(code, value, part)
        code.line(f"  store {value.type} {value.ref}, ptr {at(place, root.dtype)}")
    vector.lanes = lanes
    following = code.here(f"add nuw nsw i64 {start}, {part}")
    again = code.here(f"icmp slt i64 {following}, {lanes}")
    phi.append(f"  {start} = phi i64 [ 0, %{before} ], [ {following}, %{code.block} ]")
    code.line(f"  br i1 {again}, label %parts.{number}, label %done.{number}")
    code.close()
    code.label(f"done.{number}")
    return [read(root.dtype, place, lanes) for root, place in zip(roots, results)]


def _called(
    ev: Access, function: tuple[Lambda, list[Expr]], root: Expr, operands: dict[Expr, Value], lanes: int
) -> Value:
    """The value of `root` by a function of it."""
    body, arguments = function
    given = ", ".join(f"{operands[key].type} {operands[key].ref}" for key in arguments)
    called = ev.code.here(f"call {register_type(root.dtype, lanes)} {ev.function(body, lanes)}({given})")
    ev.code.called()
    return Value(root.dtype, called, lanes)


def _place(ev: Access, dtype: str, lanes: int) -> str:
    """Room on the stack for a vector."""
    name = ev.code.fresh("part")
    ev.code.entry.append(f"  {name} = alloca {register_type(dtype, lanes)}, align 64")
    return name


def _parted(ev: Access, roots: Sequence[Expr]) -> tuple[dict[Expr, Value], int] | None:
    """(vectors known by now that `roots` are computed from, by expression; lanes of a part), where parts are a gain.

    There may be nothing but ops between them: a load's address, or a lane's number, is known for whole vectors only.
    """
    vector = ev.vector
    assert vector is not None
    operands: dict[Expr, Value] = {}
    seen: set[Expr] = set()
    ops, widest = 0, 1
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr in seen or not vector.depends(expr):
            continue
        seen.add(expr)
        known = ev.vectors.get(expr)
        if known is None and isinstance(expr, Read):
            known = vector.values.get(expr.var)
        if known is not None:
            if known.lanes != vector.lanes or known.im is not None or known.dtype == "bool":
                return None
            operands[expr] = known
        elif isinstance(expr, Op):
            ops += 1
            widest = max(widest, register_bytes(expr.dtype))
            stack += expr.args
        else:
            return None
    part = max(1, ev.register_bytes // widest)
    if ops < LEAST_OPS or (part < vector.lanes and vector.lanes % part):
        return None
    if any(root.dtype == "bool" or root.dtype in REAL_OF for root in roots):
        return None
    return operands, part
