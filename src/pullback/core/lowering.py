"""How a primitive becomes loops: the kinds that the `lower` field of a record may hold.

`compiler/lower/` reads them; it pulls: the loop nest of a value that must be in memory asks its producers for their
value at an index, so views and cheap producers fuse and cost no memory traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.util.record import record


@record
class Elementwise:
    """out[i] = scalar(x[i], y[i], ...).

    `scalar(b, *operands, **params)` builds one scalar expression with the loop IR builder `b`; operands have the shape
    of the result. `b.out_dtype` is the loop IR type of the result. `cost` is in additions and bounds recomputation.
    """

    scalar: Callable[..., Any]
    cost: int = 1


@record
class Pointwise:
    """out[i] = at(ctx, i): any computed access to operands.

    `at(ctx, index)` returns an expression; `ctx.b` is the builder, `ctx.operand(k, index)` the k-th operand's value at
    an index, and `ctx.in_avals`, `ctx.out_aval`, `ctx.params` the static facts. `is_view`: every result element is one
    operand element, so recomputing it is free. `moves`: every result element is an element of one operand or another,
    and each of theirs is used at most once. `cost` is in additions, apart from the operands' own. `operations(eqn)` is
    what one result element takes, for reports; without it that is one.
    """

    at: Callable[..., Any]
    is_view: bool = False
    moves: bool = False
    cost: int = 1
    operations: Callable[[Any], int] | None = None


@record
class Reduction:
    """Fold over the axes params['axes'] with an associative, commutative combination.

    With one operand and one accumulator of the result's dtype: `combine` is the name of a loop IR operation ('add',
    'mul', 'min', 'max', 'and', 'or', 'xor') and `identity(dtype)` its neutral element, a NumPy scalar.
    The general form has k accumulators: `init(ctx) -> tuple[Expr]`, `element(ctx, operands, index) -> tuple[Expr]` (the
    accumulators that hold one element; `index` is the full index of the operand), `merge(ctx, left, right) ->
    tuple[Expr]` and `finish(ctx, accumulators) -> tuple[Expr]`, one per result. `step`, if given, is a quicker
    `merge` for a right side that is one element and comes after all that the left side holds. `axes(params)` gives the
    axes where params hold them otherwise.
    """

    combine: str | None = None
    identity: Callable[..., Any] | None = None
    init: Callable[..., Sequence[Any]] | None = None
    element: Callable[..., Sequence[Any]] | None = None
    merge: Callable[..., Sequence[Any]] | None = None
    step: Callable[..., Sequence[Any]] | None = None
    finish: Callable[..., Sequence[Any]] | None = None
    axes: Callable[[dict], tuple[int, ...]] = lambda params: tuple(params["axes"])


@record
class Nest:
    """`emit(ctx)` writes statements over operands and results in memory.

    ctx.operand(k), ctx.result(k): Storage(buffer, offset, shape, strides), row-major contiguous unless `strided` says
    that the rule takes any strides of operands, and of results that are windows of larger arrays.
    ctx.load(storage, index), ctx.store(storage, index, value), ctx.temporary(dtype, shape),
    ctx.subprogram(closed_jaxpr, inputs, outputs), ctx.call(symbol, *args), ctx.b.
    `in_place`: the operand whose memory result 0 takes over; it already holds the operand's values when `emit` runs.
    `shared(params)`: pairs (operand, result) that may be in one memory, as `emit` finds out by comparing them.
    `window(eqn)`: (operand, starts) if that operand is to be in result 0 from `starts` on; it may be there already.
    `decides(avals, params)`: whether eager work runs this code, too, as the reference's results are as right but others
    (signs of eigenvectors): those of a call must not change when it is compiled.
    """

    emit: Callable[..., None]
    in_place: int | None = None
    strided: bool = False
    operations: Callable[[Any], int] | None = None
    shared: Callable[[dict], Sequence[tuple[int, int]]] = lambda params: ()
    window: Callable[[Any], tuple[int, tuple[int, ...]] | None] = lambda eqn: None
    decides: Callable[[Sequence[Any], dict], bool] = lambda avals, params: False

    def pairs(self, params: dict) -> Sequence[tuple[int, int]]:
        """(operand, result) for each result that may be where an operand was."""
        return self.shared(params) if self.in_place is None else ((self.in_place, 0),)


def must_be_compiled(lower: Any, avals: Sequence[Any], params: dict) -> bool:
    """Whether compiled code alone says what the results are for operands of these types, eagerly too."""
    return isinstance(lower, Nest) and lower.decides(avals, params)


def operations_of(eqn: Any) -> int:
    """Operations for one element of an equation's first result."""
    count = getattr(eqn.primitive.lower, "operations", None)
    return 1 if count is None else count(eqn)


@record
class HostCall:
    """Run the record's reference, in Python, from inside the program: for what a library does best (fft, eig).

    `native(params, operands, results)`, with (shape, dtype) of each array, gives a foreign function that programs call
    in its place, without Python.
    """

    native: Callable[[dict, Sequence[Any], Sequence[Any]], Any] | None = None


@record
class Inline:
    """The primitive is its body: `jaxpr(params)` is inlined before all else (jit, custom rules)."""

    jaxpr: Callable[[dict], Any] = lambda params: params["jaxpr"]

    def body(self, eqn: Any) -> Any:
        """The jaxpr of one equation."""
        return self.jaxpr(eqn.params)


@record
class InlineFunction(Inline):
    """The primitive is a function in terms of others: `trace(avals, params)` gives its jaxpr, which is inlined."""

    trace: Callable[..., Any] = lambda avals, params: None

    def body(self, eqn: Any) -> Any:
        """The closed jaxpr of an equation with such a primitive."""
        return self.trace([atom.aval for atom in eqn.invars], eqn.params)
