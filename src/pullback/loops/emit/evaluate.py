"""From expressions to values: scalars, and inside a vector loop values of several lanes.

What does not depend on the vector loop's index stays scalar. Loads are in loads.py, stores in stores.py.

Comparisons of indices in lanes are made in 32 bits where that is enough. Measured: with masked loads backwards as
masked loads and shuffles (loads.py), a concatenation with a reversal and padding took 6.5 ms of LLVM, before 13, and
runs in 279 ns instead of 359: selections had masks of 64-bit lanes and gathers, which legalization took half of LLVM's
time for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.loops.ir.affine import interval
from pullback.loops.ir.fold import COMPARES
from pullback.loops.ir.ir import RARE, Buffer, Const, Expr, Lambda, Load, Op, Read
from pullback.loops.ir.types import REAL_OF, is_int
from pullback.loops.ir.visit import function_of, subexpressions

from .access import Access, VectorIndex
from .code import Code
from .guards import load_guards
from .loads import is_regular, lane_place, scalar_load, vector_load
from .ops import emit_op
from .rare import in_parts
from .repeated import Repeated
from .runs import direction
from .types import register_type, result_type
from .values import Asm, Value, broadcast, constant

SHORT_LANES = 8  # of these on comparisons of indices are made in 32 bits


class Evaluator(Access):
    """Evaluates expressions into `code`."""

    def __init__(
        self, code: Code, function: Callable[[Lambda, int], str], register_bytes: int, repeated: Repeated
    ) -> None:
        super().__init__(code, function, register_bytes, repeated)
        self.streamed: frozenset[Buffer] = frozenset()  # stores to these begin lines of the cache here, and go past it
        self._scalars: dict[Expr, Value] = {}
        self._rare: dict[Expr, list[Op]] = {}  # selects whose condition seldom holds, by that condition
        self._taken: dict[Expr, Value] = {}  # first branches of such selects, by these; poison where nothing takes them
        self._short: set[Expr] = set()  # comparisons of indices that are made in 32 bits

    def begin(self, roots: Sequence[Expr]) -> None:
        """Starts a statement: values found before are looked at afresh (their instructions are still shared)."""
        self._scalars = {}
        self.vectors = {}
        self._rare = {}
        self._taken = {}
        self._short = set()
        order = subexpressions(roots)
        selects = [expr for expr in order if isinstance(expr, Op) and expr.name == "select"]
        self.guards = load_guards(order, roots, self._inside) if selects else {}
        for node in selects:
            if RARE in node.attrs:
                self._rare.setdefault(node.args[0], []).append(node)

    def _inside(self, load: Load) -> bool:
        bounds = interval(load.index, self.ranges)
        return bounds is not None and bounds[0] >= 0 and bounds[1] < load.buffer.size

    # Values.

    def value(self, expr: Expr) -> Value:
        """The value of `expr`, with lanes if it differs between them."""
        if self.vector is None or not self.vector.depends(expr):
            return self.scalar(expr)
        memo, vector = self.vectors, self.vector
        stack = [expr]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            needed = [x for x in self._vector_operands(node) if x not in memo and vector.depends(x)]
            if needed:
                stack += needed
                continue
            memo[node] = self._vector_value(node)
            stack.pop()
        return memo[expr]

    def _vector_operands(self, node: Expr) -> tuple[Expr, ...]:
        assert self.vector is not None
        if isinstance(node, Op):
            if self._is_short(node):
                self._short.add(node)
                return ()
            return () if self._affine(node) is not None else self._needed(node)
        if isinstance(node, Load):
            guard = self.guards.get(node)
            conds = () if guard is None else tuple(cond for cond, _ in guard.chain)
            if is_regular(self.vector.stride(node.index)) or direction(self, node) is not None:
                return conds
            return (*conds, lane_place(self, node, guard is not None and guard.clamp))
        if isinstance(node, Read) and node.var in self.vector.definitions:
            return (self.vector.definitions[node.var],)
        return ()

    def _needed(self, node: Op) -> tuple[Expr, ...]:
        """The operands to evaluate before an op: not what a select needs only in a branch of its own."""
        if node.name == "select" and node.args[0] in self._rare:
            if node in self._taken or node in self._rare[node.args[0]]:
                return node.args[0], node.args[2]
        return node.args

    def _rare_select(self, node: Op, chosen: Value, other: Value) -> Value:
        """A select whose first branch is evaluated only if some lane takes it.

        All selects on the same condition are evaluated together, so that they share what they have in common.
        """
        if node in self._taken:
            return self._choose(node, chosen, self._taken[node], other)
        group = self._rare[node.args[0]]
        members = set(group)
        now = [node]
        for each in group:
            if each is not node and not any(x in members for x in subexpressions((each.args[1],))):
                now.append(each)
        if any(x in members for x in subexpressions((node.args[1],))):
            now = [node]
        for each in now:
            group.remove(each)
        if chosen.ref in ("true", "false"):
            return self._choose(node, chosen, self._known_or(node.args[1]), other)
        taken = chosen.ref if chosen.lanes == 1 else self.any_lane(chosen.ref, chosen.lanes)
        code = self.code
        number = code.fresh("").strip("%.")
        before = code.block
        code.line(f"  br i1 {taken}, label %rare.{number}, label %join.{number}, !prof !1")
        code.open_branch()
        code.label(f"rare.{number}")
        saved = self._scalars, self.vectors, self._taken
        self._scalars, self.vectors, self._taken = map(dict, saved)
        lanes = 1 if self.vector is None else self.vector.lanes
        roots = [each.args[1] for each in now]
        values = in_parts(self, roots) or [self._known_or(root) for root in roots]
        if any(value.lanes > 1 for value in values) or chosen.lanes > 1:
            values = [broadcast(code, value, lanes) for value in values]
        last = code.block
        code.line(f"  br label %join.{number}")
        self._scalars, self.vectors, self._taken = saved
        code.close()
        code.label(f"join.{number}")
        for each, value in zip(now, values):
            refs = [code.here(f"phi {value.type} [ poison, %{before} ], [ {ref}, %{last} ]") for ref in value.parts]
            merged = Value(value.dtype, refs[0], value.lanes, refs[1] if len(refs) > 1 else None)
            # Not as the value of the expression, which may be wanted elsewhere, too: a constant often is.
            self._taken[each] = merged
        return self._choose(node, chosen, self._taken[node], other)

    def either(self, rare: str, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """One value where the condition `rare` holds, else another: only that is computed."""
        code = self.code
        if rare in ("true", "false"):
            return then() if rare == "true" else otherwise()
        number = code.fresh("").strip("%.")
        code.line(f"  br i1 {rare}, label %rare.{number}, label %usual.{number}, !prof !1")
        ends: list[tuple[Value, str]] = []
        for label, compute in (("rare", then), ("usual", otherwise)):
            code.open_branch()
            code.label(f"{label}.{number}")
            saved = self._scalars, self.vectors, self._taken
            self._scalars, self.vectors, self._taken = map(dict, saved)
            ends.append((compute(), code.block))
            self._scalars, self.vectors, self._taken = saved
            code.line(f"  br label %join.{number}")
            code.close()
        code.label(f"join.{number}")
        (x, in_x), (y, in_y) = ends
        refs = [code.here(f"phi {x.type} [ {p}, %{in_x} ], [ {q}, %{in_y} ]") for p, q in zip(x.parts, y.parts)]
        return Value(x.dtype, refs[0], x.lanes, refs[1] if len(refs) > 1 else None)

    def _known_or(self, expr: Expr) -> Value:
        """The value of an operand, evaluated now if it has not been."""
        return self.vectors.get(expr) or self._scalars.get(expr) or self.value(expr)

    def _choose(self, node: Op, cond: Value, x: Value, y: Value) -> Value:
        return emit_op(self.code, node, [cond, x, y])

    def _known(self, expr: Expr) -> Value:
        """An operand whose value has been found."""
        found = self.vectors.get(expr)
        return self.scalar(expr) if found is None else found

    def _vector_value(self, node: Expr) -> Value:
        vector = self.vector
        assert vector is not None
        match node:
            case Read():
                if node.var is vector.var:
                    return self._lane_indices(vector)
                if node.var in vector.definitions:
                    return self._known(vector.definitions[node.var])
                return vector.values[node.var]
            case Op() if (step := self._affine(node)) is not None:
                return self._affine_lanes(node, step)
            case Op() if node in self._short:  # `_vector_operands` has looked
                return self._short_compare(node)
            case Op() if len(self._needed(node)) < len(node.args):
                return self._rare_select(node, self._known(node.args[0]), self._known(node.args[2]))
            case Op():
                return self._op(node, [self._known(arg) for arg in node.args])
            case Load():
                return vector_load(self, node)
        raise TypeError(f"not an expression: {node!r}")

    def _op(self, node: Op, args: list[Value]) -> Value:
        """The value of an op, by its function if it has one."""
        function = function_of(node)
        if function is None:
            return emit_op(self.code, node, args)
        lanes = max(arg.lanes for arg in args)
        args = [broadcast(self.code, arg, lanes) for arg in args]
        operands = [ref for arg in args for ref in arg.parts]
        given = ", ".join(f"{arg.type} {ref}" for arg in args for ref in arg.parts)
        kind = result_type(node.dtype, lanes)
        called = self.code.inst(f"call {kind} {self.function(function, lanes)}({given})", *operands)
        self.code.called()
        if node.dtype not in REAL_OF:
            return Value(node.dtype, called, lanes)
        re, im = (self.code.inst(f"extractvalue {kind} {called}, {part}", called) for part in (0, 1))
        return Value(node.dtype, re, lanes, im)

    def _lane_indices(self, vector: VectorIndex) -> Value:
        return self._counting(Value("i64", vector.base), 1)

    def _counting(self, first: Value, step: int) -> Value:
        """first, first + step, first + 2 step, ... of an integer type."""
        vector = self.vector
        assert vector is not None
        element = register_type(first.dtype)
        a = Asm(self.code, vector.lanes)
        base = broadcast(self.code, first, vector.lanes)
        steps = "<" + ", ".join(f"{element} {k * step}" for k in range(vector.lanes)) + ">"
        return Value(first.dtype, a.op("add", element, base.ref, steps), vector.lanes)

    def _affine(self, node: Op) -> int | None:
        """The constant step from lane to lane of an index expression, or of a conversion of one that fits i32."""
        assert self.vector is not None
        if node.name == "convert":
            (arg,) = node.args
            if arg.dtype != "i64" or node.dtype in ("bool", "i8", "i16", "u8", "u16", "i64", "u64"):
                return None
            return self._step(arg) if self._fits_i32(arg) else None
        return self._step(node) if node.dtype == "i64" else None

    def _step(self, index: Expr) -> int | None:
        """The constant step of an index from lane to lane, unless it is so long that lanes might leave i32."""
        assert self.vector is not None
        step = self.vector.stride(index)
        return step if step is not None and abs(step) < 1 << 20 else None

    def _fits_i32(self, index: Expr) -> bool:
        bounds = self.interval(index)
        return bounds is not None and bounds[0] >= -(1 << 31) and bounds[1] < 1 << 31

    def _affine_lanes(self, node: Op, step: int) -> Value:
        """Lane 0 as a scalar, and from there by steps; conversions go through i32, which all machines convert."""
        if node.name != "convert":
            return self._counting(self.scalar(node), step)
        lanes = self._short_lanes(node.args[0], step)
        if node.dtype in ("i32", "u32"):
            return Value(node.dtype, lanes.ref, lanes.lanes)
        return emit_op(self.code, Op("convert", node.dtype, (Const("i32", 0),)), [lanes])

    def _short_lanes(self, index: Expr, step: int) -> Value:
        """Lanes of an index as i32; a scalar if they are all the same."""
        first = self.scalar(index).ref
        short = Value("i32", Asm(self.code, 1).cast("trunc", "i64", first, "i32") if first[0] == "%" else first)
        return self._counting(short, step) if step else short

    def _is_short(self, node: Op) -> bool:
        """Whether indices are compared that advance by steps and fit i32: lanes of i64 take twice the registers, and
        masks made of them have to be narrowed to those of elements."""
        assert self.vector is not None
        if node.name not in COMPARES or node.args[0].dtype != "i64" or self.vector.lanes < SHORT_LANES:
            return False
        return all(self._fits_i32(arg) and self._step(arg) is not None for arg in node.args)

    def _short_compare(self, node: Op) -> Value:
        assert self.vector is not None
        sides = [self._short_lanes(arg, self.vector.stride(arg) or 0) for arg in node.args]
        return emit_op(self.code, Op(node.name, "bool", (Const("i32", 0), Const("i32", 0))), sides)

    def scalar(self, expr: Expr) -> Value:
        """The value of `expr` as a scalar; inside a vector loop, that of lane 0."""
        memo = self._scalars
        found = memo.get(expr)
        if found is not None:
            return found
        stack: list[Any] = [expr]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            kind = type(node)
            if kind is Op:
                # The index of a load is left to `address`, which sums it up in its own order.
                operands = self._needed(node) if self._rare else node.args
                needed = [x for x in operands if x not in memo]
                if needed:
                    stack += needed
                    continue
                if len(operands) < len(node.args):
                    memo[node] = self._rare_select(node, memo[node.args[0]], memo[node.args[2]])
                else:
                    memo[node] = self._op(node, [memo[arg] for arg in operands])
            elif kind is Const:
                memo[node] = constant(node.dtype, node.value)
            elif kind is Read:
                memo[node] = self._scalar_read(node)
            else:
                memo[node] = scalar_load(self, node)
            stack.pop()
        return memo[expr]

    def _scalar_read(self, node: Read) -> Value:
        vector = self.vector
        if vector is not None:
            if node.var is vector.var:
                return Value("i64", vector.base)
            if node.var in vector.definitions:
                return self.scalar(vector.definitions[node.var])
        return self.env[node.var]


def is_lazy(expr: Expr) -> bool:
    """Whether a Let of this value may be evaluated where it is read: an integer computed without loads."""
    return is_int(expr.dtype) and not any(isinstance(x, Load) for x in subexpressions((expr,)))
