"""Arithmetic of truncated power series: every value carries the coefficients of its Taylor series in one variable t.

What is linear in its operands works on each coefficient, and products are Cauchy's. All else is by its rule of forward
mode: y' = f'(x) x' says that coefficient k of y is coefficient k - 1 of the right side over k. The rule runs once, on
series whose coefficients are computed when they are asked for. Where it names y itself, as that of exp or tanh does, it
gets the series that is being computed: each coefficient follows from those before. So n coefficients take n^2
operations, where n nested derivatives take 2^n.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.core import ZERO, Interpreter, Tracer, Zero, current_interpreter, eval_jaxpr, typeof, types, using
from pullback.core.source import names_inside
from pullback.transforms.zeros import zero_tangent

Coefficient = Any  # an array, or None where it is known to vanish

# Linear in the operands that move, together: the others are predicates and places, or are the same at all times.
_LINEAR = frozenset({
    *("add", "sub", "add_any", "pad", "complex", "fft", "name", "reduce_window_sum", "select_n"),
    *("gather", "dynamic_slice", "dynamic_update_slice", "scatter", "scatter-add", "scatter-sub"),
})  # fmt: skip
_BILINEAR = frozenset({"mul", "dot_general", "conv_general_dilated"})
_INLINED = {"jit": "jaxpr", "custom_vjp_call": "call_jaxpr"}  # calls, by their parameter that is the function
LONG = 50  # values in a rule, from which on they are computed in their order: each in turn asks for the one before


class Series:
    """Coefficients of a value, the first of which is the value itself; the others are computed when asked for."""

    __slots__ = ("compute", "known")

    def __init__(self, value: Any, compute: Callable[[int], Coefficient]):
        self.known: list[Coefficient] = [value]
        self.compute = compute

    def __getitem__(self, k: int) -> Coefficient:
        while len(self.known) <= k:
            self.known.append(self.compute(len(self.known)))
        return self.known[k]


class SeriesTracer(Tracer):
    """A value with its series."""

    __slots__ = ("series",)

    def __init__(self, interpreter: SeriesInterpreter, series: Series):
        self.interpreter = interpreter
        self.series = series
        self.aval = types.type_of(series[0])
        self.source = None

    def __repr__(self):
        return f"SeriesTracer({self.series[0]}, order={self.interpreter.order})"

    def beneath(self):
        return self.series[0] if isinstance(self.series[0], Tracer) else None

    def to_concrete(self):
        value = self.series[0]
        return value.to_concrete() if isinstance(value, Tracer) else value


class SeriesInterpreter(Interpreter):
    """Runs the coefficients under the parent."""

    transformation = "Taylor series (jet)"
    lets_out = True
    differentiates = True

    def __init__(self, parent: Interpreter, order: int):
        self.parent, self.order = parent, order
        self.in_rules = 0  # rules that run now, one within the other
        self.made: list[Series] = []  # in the rule that runs now
        self.found: dict[
            Any, tuple[Any, Any]
        ] = {}  # by operation: its operands, which keep their addresses, and result

    # ---- values

    def series_of(self, value: Any) -> Series | None:
        """The series of a value; None for what does not move."""
        return value.series if type(value) is SeriesTracer and value.interpreter is self else None

    def value_of(self, value: Any) -> Any:
        """The value itself."""
        series = self.series_of(value)
        return value if series is None else series[0]

    def traced(self, value: Any, compute: Callable[[int], Coefficient]) -> Any:
        """A value with a series. In the user's function all coefficients are computed at once, in rules later."""
        series = Series(value, compute)
        if self.in_rules:
            self.made.append(series)
        elif all([series[k] is None for k in range(1, self.order + 1)]):
            return value
        return SeriesTracer(self, series)

    def derivative(self, value: Any) -> Any:
        """x'(t), for rules of forward mode."""
        series = self.series_of(value)
        if series is None:
            return zero_tangent(value)
        with using(self.parent):
            first = jnp.zeros_like(series[0]) if series[1] is None else series[1]
        compute = lambda k: self.times(series[k + 1], k + 1)
        return SeriesTracer(self, Series(first, compute))

    def times(self, x: Coefficient, factor: float) -> Coefficient:
        """A multiple of a coefficient."""
        if x is None or factor == 1:
            return x
        with using(self.parent):
            return lax.mul(x, jnp.asarray(factor, x.dtype))

    def plus(self, x: Coefficient, y: Coefficient, sign: int = 1) -> Coefficient:
        """x + y, or x - y."""
        if y is None:
            return x
        with using(self.parent):
            if x is None:
                return y if sign == 1 else lax.neg(y)
            return lax.add(x, y) if sign == 1 else lax.sub(x, y)

    # ---- operations

    def process(self, primitive, args, params):
        values = [self.value_of(a) for a in args]
        if all([self.series_of(a) is None for a in args]) or primitive.jvp is ZERO:
            return self.parent.process(primitive, values, params)
        if primitive.name in _INLINED:
            closed = params[_INLINED[primitive.name]]
            with using(self):
                return eval_jaxpr(closed.jaxpr, closed.consts, *args)
        if primitive.name in _CONTROL and not self.in_rules:
            with using(self.parent):
                return _CONTROL[primitive.name](self, args, **params)
        key = _key(primitive, args, params)
        if key is not None and key in self.found:
            return self.found[key][1]
        outs = self.computed(primitive, args, values, params)
        if key is not None:
            self.found[key] = args, outs
        return outs

    def computed(self, primitive, args, values, params):
        """An operation on series."""

        def bind(*operands):
            with using(self.parent):
                outs = primitive.bind(*operands, **params)
            return outs if primitive.multiple_results else [outs]

        rows = [self.series_of(a) for a in args]
        outs = bind(*values)
        compute: Callable[[int], Sequence[Coefficient]]
        if "linear" in primitive.traits or primitive.name in _LINEAR:
            compute = self.by_coefficients(bind, values, rows, outs)
        elif primitive.name in _BILINEAR:
            compute = self.by_products(bind, values, rows)
        elif primitive.name == "div":
            return self.quotient(values, rows, outs[0])
        else:
            return self.by_rule(
                lambda: primitive.rule("jvp")(tuple(args), tuple(map(self.derivative, args)), **params),
                outs,
                primitive.multiple_results,
            )
        if primitive.multiple_results:
            found: dict[int, Sequence[Coefficient]] = {}

            def part(which: int, k: int) -> Coefficient:
                if k not in found:
                    found[k] = compute(k)
                return found[k][which]

            return [self.traced(out, functools.partial(part, which)) for which, out in enumerate(outs)]
        return self.traced(outs[0], lambda k: compute(k)[0])

    def by_coefficients(self, bind, values, rows, outs):
        """What is linear in the operands that move."""

        def compute(k: int) -> Sequence[Coefficient]:
            terms = [None if row is None else row[k] for row in rows]
            if all(t is None for t in terms):
                return [None] * len(outs)
            with using(self.parent):
                operands = [
                    t if t is not None else jnp.zeros_like(v) if _moves(v) else v for t, v in zip(terms, values)
                ]
            return bind(*operands)

        return compute

    def by_products(self, bind, values, rows):
        """Cauchy's product of two series."""

        def compute(k: int) -> Sequence[Coefficient]:
            total = None
            for i in range(k + 1):
                x, y = (
                    (row[j] if row is not None else value if j == 0 else None)
                    for j, row, value in zip((i, k - i), rows, values)
                )
                if x is not None and y is not None:
                    total = self.plus(total, bind(x, y)[0])
            return [total]

        return compute

    def quotient(self, values, rows, out):
        """u / v: coefficient k of u is the sum of those of the quotient with those of v."""
        above, below = rows
        own: list[Series] = []

        def spread(x: Coefficient) -> Coefficient:
            return None if x is None else jnp.broadcast_to(x, jnp.shape(out))

        def compute(k: int) -> Coefficient:
            with using(self.parent):
                total = None if above is None else spread(above[k])
                for j in range(1, k + 1 if below is not None else 1):
                    if below[j] is not None and own[0][k - j] is not None:
                        total = self.plus(total, lax.mul(own[0][k - j], spread(below[j])), -1)
                return None if total is None else lax.div(total, spread(values[1]))

        own.append(Series(out, compute))
        return self.traced(out, own[0].__getitem__)

    def by_rule(self, rule: Callable[[], Any], outs: Sequence[Any], several: bool) -> Any:
        """Results with the series that a rule of forward mode says."""
        changes: list[tuple[list[Any], list[Series]]] = []

        def change(which: int) -> Any:
            if not changes:
                outside, self.made = self.made, []
                self.in_rules += 1
                try:
                    with using(self), names_inside(("jet",)):
                        _, dots = rule()
                finally:
                    self.in_rules -= 1
                    inside, self.made = self.made, outside
                changes.append((list(dots) if several else [dots], inside))
            dots, inside = changes[0]
            return dots[which], inside

        def coefficient(which: int, k: int) -> Coefficient:
            dot, inside = change(which)
            if type(dot) is Zero:
                return None
            if len(inside) > LONG:
                for series in inside:
                    series[k - 1]
            series = self.series_of(dot)
            if series is None:
                return dot if k == 1 else None
            return self.times(series[k - 1], 1 / k)

        made = [self.traced(out, functools.partial(coefficient, which)) for which, out in enumerate(outs)]
        return made if several else made[0]

    def process_custom_jvp(self, custom, fun, jvp, args):
        values = [self.value_of(a) for a in args]
        with using(self.parent):
            outs = self.parent.process_custom_jvp(custom, fun, jvp, values)
        if all([self.series_of(a) is None for a in args]):
            return outs
        return self.by_rule(lambda: jvp(tuple(args), tuple(map(self.derivative, args))), outs, True)

    def process_custom_vjp(self, _custom, fun, _fwd, _bwd, args):
        with using(self):  # its rule is one of reverse mode: the function itself is followed, as in JAX
            return fun(*args)


def _key(primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What an operation is found by when a rule names it again; None for what cannot be."""
    try:
        key = primitive, tuple(map(id, args)), tuple(params.items())
        hash(key)
    except TypeError:
        return None
    return key


# ---------------------------------------------------------------------------------------------------------- functions


def series_flat(
    fun: Callable[..., Sequence[Any]], rows: Sequence[Sequence[Coefficient]], order: int
) -> list[list[Coefficient]]:
    """Coefficients of the results of flat `fun`, from those of its arguments, each with `order` + 1 of them."""
    interpreter = SeriesInterpreter(current_interpreter(), order)
    given = [
        row[0] if all([x is None for x in row[1:]]) else SeriesTracer(interpreter, Series(row[0], row.__getitem__))
        for row in rows
    ]
    with using(interpreter), names_inside(("jet",)):
        outs = fun(*given)
    found = [(interpreter.series_of(out), out) for out in outs]
    with using(interpreter.parent):
        return [
            [out, *[None] * order] if series is None else [series[k] for k in range(order + 1)] for series, out in found
        ]


def _full(row: Sequence[Coefficient]) -> list[Any]:
    """All coefficients as arrays, for the borders of loops."""
    return [row[0], *[jnp.zeros_like(row[0]) if x is None else x for x in row[1:]]]


def _moves(x: Any) -> bool:
    return jnp.issubdtype(typeof(x).dtype, jnp.inexact)


def _rows(interpreter: SeriesInterpreter, args: Sequence[Any], always: bool = False) -> list[Any]:
    """Coefficients of operands of control flow: a list for each that moves (`always`: that may), or the value."""
    rows: list[Any] = []
    for a in args:
        series = interpreter.series_of(a)
        if series is not None:
            rows.append(_full([series[k] for k in range(interpreter.order + 1)]))
        else:
            rows.append(_full([a, *[None] * interpreter.order]) if always and _moves(a) else a)
    return rows


def _run(jaxpr: Any, rows: Sequence[Any], order: int) -> list[list[Any]]:
    """A jaxpr on such rows; of each result all coefficients, or the value alone if it can't move."""
    rows = [row if isinstance(row, list) else [row, *[None] * order] for row in rows]
    outs = series_flat(lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs), rows, order)
    return [_full(out) if _moves(out[0]) else out[0] for out in outs]


def _wrapped(interpreter: SeriesInterpreter, outs: Sequence[Any]) -> list[Any]:
    return [
        SeriesTracer(interpreter, Series(out[0], out.__getitem__)) if isinstance(out, list) else out for out in outs
    ]


def _cond(interpreter, args, *, branches, **_):
    index, *operands = args
    order = interpreter.order
    runs = [lambda rows, b=b: _run(b, rows, order) for b in branches]
    return _wrapped(interpreter, lax.switch(interpreter.value_of(index), runs, _rows(interpreter, operands)))


def _scan(interpreter, args, *, jaxpr, num_consts, num_carry, length, reverse, unroll, **_):
    order = interpreter.order
    consts = _rows(interpreter, args[:num_consts])
    carry = _rows(interpreter, args[num_consts : num_consts + num_carry], always=True)
    xs = _rows(interpreter, args[num_consts + num_carry :])

    def body(carry, x):
        outs = _run(jaxpr, [*consts, *carry, *x], order)
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, carry, xs, length=length, reverse=reverse, unroll=unroll)
    return _wrapped(interpreter, [*carry, *ys])


def _while(interpreter, args, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_):
    order = interpreter.order
    asked = [interpreter.value_of(a) for a in args[:cond_nconsts]]
    consts = _rows(interpreter, args[cond_nconsts : cond_nconsts + body_nconsts])
    carry = _rows(interpreter, args[cond_nconsts + body_nconsts :], always=True)

    def goes_on(carry):
        values = [row[0] if isinstance(row, list) else row for row in carry]
        return eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *asked, *values)[0]

    carry = lax.while_loop(goes_on, lambda carry: _run(body_jaxpr, [*consts, *carry], order), carry)
    return _wrapped(interpreter, carry)


_CONTROL: dict[str, Callable[..., list[Any]]] = {"cond": _cond, "scan": _scan, "while": _while}
