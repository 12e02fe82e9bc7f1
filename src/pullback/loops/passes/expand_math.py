"""Expand math: functions such as exp become expressions of basic ops, by the kernels in loops/math.

Needs: nothing. Guarantees: no math op is left (ops.OPS says which are) but for those that a nest uses many times, which
get a function that computes them; NotImplementedError names an op without a kernel. Statements that a kernel writes
stand in front of the statement that uses it. Small tables are computed, too (`tables.py`).

    y[i] = exp(x[i])      =>      y[i] = select(lt(x[i], -104.0:f32), 0.0:f32, mul(..., fma(...)))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence

from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir.affine import Interval, interval
from pullback.loops.ir.build import Builder
from pullback.loops.ir.fold import is_math
from pullback.loops.ir.ir import (
    Carried,
    Combine,
    Expr,
    Function,
    Lambda,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.types import REAL_OF, is_int
from pullback.loops.ir.visit import Rewriter, expressions, function_of, nodes, statements, subexpressions
from pullback.loops.math import expand
from pullback.loops.math._contract import EXACT, Contract, contracted
from pullback.loops.math._kit import FORMATS
from pullback.loops.math.power import MOST, whole_pow
from pullback.loops.passes.tables import computed_entry

# Ops that the emitter knows for real numbers, but the math kernels may know better or for complex ones.
_ALSO = frozenset({"sqrt", "sign", "abs", "div"})


# A nest, or straight code outside of nests, that uses one math function more often than this is a long unrolled
# program: calls take a few nanoseconds, but LLVM takes 0.5 ms for each of 400 tanh written out in a row, and its
# register allocator ever more (400 tanh in a row took it 5 s). 2,000 unrolled operations took 9 s to compile, now 1.7.
# Shorter chains stay inline.
OFTEN = 16
# Of functions of a few ops, in a loop with 32 registers, in which constants stay: 25 exponentials an element take 1072
# us in place of 1522, and 72 ms to compile in place of 56. With 16 registers calls are the quicker.
OFTEN_OF_SHORT = 32
SHORT = 33  # ops of such a function at most
# Of functions of many ops, most of which have a branch to what is rare: eight sines in a row take 0.7 to 0.8 of the
# time (4,000 and 60,000 elements; at 30 elements 1.1), four of lgamma with its gradient 0.85, and 0.25 to 0.5 of the
# time to compile. Of powers half of the ops are those of their derivative, which are shared where they are written out.
OFTEN_OF_LONG = 3
LONG = 75  # ops of such a function at least
# Functions of complex numbers are several real ones each: 200 exponentials of 100 elements took 10 s to compile, now
# 0.3, and 42 us to run, now 29.
OFTEN_OF_COMPLEX = 4
LARGE = 12  # ops of a function worth calling

_Key = tuple[str, str, tuple[str, ...], tuple]


def _key(op: Op) -> _Key:
    return op.name, op.dtype, tuple([arg.dtype for arg in op.args]), op.attrs


def _is_left_to_kernels(op: Op) -> bool:
    if function_of(op) is not None:
        return False
    if op.name == "rem":
        return not is_int(op.dtype) and EXACT not in op.attrs
    return is_math(op.name) or (op.name in _ALSO and op.args[0].dtype in REAL_OF)


def expand_math(function: Function, known: Container[str] = ()) -> Function:
    """The function without math ops, but for those that are `known`; NotImplementedError for one without a kernel."""
    wanted = _ALSO | {"rem"}
    if not any(
        (isinstance(expr, Op) and (is_math(expr.name) or expr.name in wanted) and expr.name not in known)
        or (isinstance(expr, Load) and expr.buffer.space == "constant" and not known)
        for stmt in statements(function.body)
        for expr in nodes(stmt)
    ):
        return function
    rewriter = _Expand(known)
    rewriter.powers = any(isinstance(x, Op) and x.name == "pow" for s in statements(function.body) for x in nodes(s))
    body = rewriter.block(function.body)
    return Function(function.name, function.buffers, body)


class _Expand(Rewriter):
    powers = False  # whether there are any, whose exponents are looked for

    def __init__(self, known: Container[str]) -> None:
        super().__init__()
        self.b = Builder()
        self._known = known
        self._lookups = current_target().looks_up
        self._nest: Loop | None = None
        self._alone = False  # whether statements are beside loops, so that lanes go along these
        self._often: set[_Key] = set()  # math ops that the current nest, or straight code among steps, uses often
        self._functions: dict[_Key, Lambda | None] = {}
        self._writes: dict[_Key, bool] = {}
        self._ranges: dict[Var, Interval] = {}
        self._converted: dict[Var, Op] = {}  # integers that have names as floats

    def enter(self, var: Var, extent: Expr) -> None:
        bounds = interval(extent, self._ranges)
        if bounds is not None and bounds[1] >= 1:
            self._ranges[var] = 0, bounds[1] - 1

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return expr if self._nest is None else computed_entry(expr, self._ranges, self._lookups) or expr
        if not isinstance(expr, Op):
            return expr
        if not _is_left_to_kernels(expr) or expr.name in self._known:
            return expr
        if expr.name == "pow" and (found := self._of_index(expr)) is not None:
            return found
        if self._often and not self._known and _key(expr) in self._often:
            function = self.function(expr)
            if function is not None:
                return Op(expr.name, expr.dtype, expr.args, (*expr.attrs, ("function", function)))
        return self.expanded(expr)

    def _of_index(self, expr: Op) -> Expr | None:
        """A power whose exponent is a small whole number that indices give."""
        x, y = expr.args
        if isinstance(y, Read):
            y = self._converted.get(y.var, y)
        if not (isinstance(y, Op) and y.name == "convert" and is_int(y.args[0].dtype)) or x.dtype not in FORMATS:
            return None
        bounds = interval(y.args[0], self._ranges)
        if bounds is None or bounds[0] < 0 or bounds[1] >= MOST:
            return None
        return self.rewrite(whole_pow(self.b, x, y.args[0], bounds[1]))

    def expanded(self, expr: Op) -> Expr:
        """The op as basic ones; itself if the emitter knows it best."""
        with self.b.block() as written:
            found = expand(expr, self.b, self._lookups, self._alone)
        if found is not None:
            (found,) = contracted(self.b, (found,), expr.args)
        for stmt in Contract(self.b, expr.args).block(tuple(written)):
            self.b.emit(stmt)
        if found is None:
            if is_math(expr.name):
                raise NotImplementedError(f"{expr.name}: there is no kernel for {expr.args[0].dtype}")
            return expr
        if any(isinstance(x, Op) and _is_left_to_kernels(x) for x in subexpressions((found,))):
            return self.rewrite(found)
        return found

    def function(self, expr: Op) -> Lambda | None:
        """The function of an op; None if it is not worth one, or writes statements."""
        key = _key(expr)
        if key not in self._functions:
            params = tuple(Var(f"x{k}", arg.dtype) for k, arg in enumerate(expr.args))
            with self.b.block() as ahead:
                value = self.expanded(Op(expr.name, expr.dtype, tuple(map(Read, params)), expr.attrs))
            size = sum(isinstance(x, Op) for x in subexpressions((value,)))
            self._functions[key] = Lambda(expr.name, params, value) if not ahead and size >= LARGE else None
        return self._functions[key]

    def writes(self, op: Op) -> bool:
        """Whether the op's kernel writes statements."""
        key = _key(op)
        if key not in self._writes:
            params = tuple(Read(Var(f"x{k}", arg.dtype)) for k, arg in enumerate(op.args))
            with self.b.block() as ahead:
                self.expanded(Op(op.name, op.dtype, params, op.attrs))
            self._writes[key] = bool(ahead)
        return self._writes[key]

    def inside(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Loop) and stmt.carried:
            stmt = self._combined(_with_lets(stmt, self.writes))
        if self._nest is not None or not isinstance(stmt, Loop) or stmt.role == "sequential":
            return super().inside(stmt)
        before, self._nest = self._often, stmt
        self._often = self._called_in(tuple(statements((stmt,))), True)
        try:
            return super().inside(stmt)
        finally:
            self._nest, self._often = None, before

    def _called_in(self, body: Sequence[Stmt], in_nest: bool) -> set[_Key]:
        """The math ops that functions compute in statements, of a nest or outside of any."""
        uses: Counter[_Key] = Counter()
        for expr in subexpressions([expr for stmt in body for expr in expressions(stmt)]):
            if isinstance(expr, Op) and _is_left_to_kernels(expr):
                uses[_key(expr)] += 1
        return {key for key, count in uses.items() if count > OFTEN_OF_LONG and count > self._most(key, in_nest)}

    def _most(self, key: _Key, in_nest: bool) -> int:
        """How often a function is written out."""
        name, dtype, args, attrs = key
        if args[0] in REAL_OF:
            return OFTEN_OF_COMPLEX if is_math(name) else OFTEN
        function = self.function(Op(name, dtype, tuple([Read(Var(f"x{k}", x)) for k, x in enumerate(args)]), attrs))
        size = 0 if function is None else sum(isinstance(x, Op) for x in subexpressions((function.value,)))
        if size >= LONG and name != "pow":
            return OFTEN_OF_LONG
        roomy = in_nest and current_target().vector_bytes >= 64
        return OFTEN_OF_SHORT if roomy and 0 < size <= SHORT else OFTEN

    def _combined(self, loop: Loop) -> Loop:
        """The loop with the math in the functions that combine its partial results; in order where that writes."""
        groups, changed = list(loop.carried), False
        for k, g in enumerate(groups):
            if not isinstance(g.combine, Combine):
                continue
            ops = [x for x in subexpressions(g.combine.exprs) if isinstance(x, Op) and _is_left_to_kernels(x)]
            if ops:
                changed = True
                new = None if any(map(self.writes, ops)) else self._written_out(g.combine)
                groups[k] = Carried(g.vars, g.inits, g.updates, g.results, new)
        if not changed:
            return loop
        role = "sequential" if loop.role == "reduce" and any(g.combine is None for g in groups) else loop.role
        return Loop(loop.var, loop.extent, role, loop.body, tuple(groups), loop.attrs)

    def _written_out(self, combine: Combine) -> Combine:
        often, self._often = self._often, set()
        exprs = tuple(map(self.rewrite, combine.exprs))
        self._often = often
        return Combine(combine.left, combine.right, exprs, combine.neutral)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:  # type: ignore[override]
        if self._nest is not None:
            return self._written(body)
        before = self._often
        self._often = self._called_in([stmt for stmt in body if isinstance(stmt, (Let, Store))], False)
        try:
            return self._written(body)
        finally:
            self._often = before

    def _written(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        before, self._alone = self._alone, self._nest is None or any(isinstance(stmt, Loop) for stmt in body)
        try:
            return self._each_written(body)
        finally:
            self._alone = before

    def _each_written(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            with self.b.block() as ahead:
                inside = self.inside(stmt)
            if ahead and isinstance(stmt, While):
                raise NotImplementedError("a math kernel that writes statements, in the condition of a loop")
            result += [*ahead, inside]
            if isinstance(inside, Let) and self.powers:
                self._name(inside.var, inside.value)
        return tuple(result)

    def _name(self, var: Var, value: Expr) -> None:
        """Remembers what is known of an integer, or which one a float is."""
        if is_int(var.dtype):
            if (bounds := interval(value, self._ranges)) is not None:
                self._ranges[var] = bounds
        elif isinstance(value, Op) and value.name == "convert" and is_int(value.args[0].dtype):
            self._converted[var] = value


class _Lets(Rewriter):
    """Gives the ops that `chosen` accepts names."""

    def __init__(self, chosen: Callable[[Op], bool]) -> None:
        super().__init__()
        self.chosen, self.lets = chosen, list[Let]()

    def expr(self, expr: Expr) -> Expr:
        if not isinstance(expr, Op) or not _is_left_to_kernels(expr) or not self.chosen(expr):
            return expr
        self.lets.append(Let(Var(f"m{len(self.lets)}", expr.dtype), expr))
        return Read(self.lets[-1].var)


def _with_lets(loop: Loop, chosen: Callable[[Op], bool]) -> Loop:
    """The loop with such ops of its updates as Lets at the end of its body: what they write belongs there."""
    naming = _Lets(chosen)
    carried = tuple([
        Carried(g.vars, g.inits, tuple(map(naming.rewrite, g.updates)), g.results, g.combine) for g in loop.carried
    ])  # fmt: skip
    if not naming.lets:
        return loop
    return Loop(loop.var, loop.extent, loop.role, (*loop.body, *naming.lets), carried, loop.attrs)
