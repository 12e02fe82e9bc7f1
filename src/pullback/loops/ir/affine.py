"""What can be said about index expressions: their terms, their stride along a variable, the interval they lie in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from math import gcd, prod
from typing import Any

from .fold import const, make
from .ir import Const, Expr, Op, Read, Var
from .types import int_range, is_int
from .visit import fact, operands

Interval = tuple[int, int]
MOST_SUMS = 256  # that are taken apart in one expression: where they share operands, terms may be millions


def _itself(term: Expr) -> Hashable:
    return term.var if isinstance(term, Read) else term


def terms(expr: Expr) -> tuple[list[Expr], int]:
    """`expr` (i64) as a sum: its non-constant terms, constant factors multiplied into sums, and the constant."""
    found, constant = summands(expr)
    return [node if factor == 1 else make("mul", (node, const("i64", factor))) for node, factor in found], constant


def summands(expr: Expr) -> tuple[list[tuple[Expr, int]], int]:
    """What an expression is the sum of, each with a constant factor, and the constant."""
    found: list[tuple[Expr, int]] = []
    constant = 0
    stack: list[tuple[Any, int]] = [(expr, 1)]
    taken_apart = 0
    while stack:
        node, factor = stack.pop()
        if taken_apart == MOST_SUMS:
            found.append((node, factor))
            continue
        kind = type(node)
        if kind is Const:
            constant += factor * node.value
            continue
        if kind is Op and node.dtype == "i64":
            name, args = node.name, node.args
            if name == "add" or name == "sub":
                taken_apart += 1
                stack += [(args[1], factor if name == "add" else -factor), (args[0], factor)]
                continue
            if name == "neg" or (name == "mul" and type(args[1]) is Const):
                stack.append((args[0], -factor if name == "neg" else factor * args[1].value))
                continue
        found.append((node, factor))
    return found, constant


def linear_form(expr: Expr, key: Callable[[Expr], Hashable] = _itself) -> tuple[dict[Hashable, tuple[Expr, int]], int]:
    """`expr` (i64) as a sum: the terms that do not cancel, each with its constant factor, and the constant.

    The terms are found under their `key`; unless it is given, reads of one variable are one term, and other terms are
    told apart by identity.
    """
    found, constant = summands(expr)
    form: dict[Hashable, tuple[Expr, int]] = {}
    for term, factor in found:
        name = key(term)
        form[name] = term, factor + form.get(name, (term, 0))[1]
    return {name: term for name, term in form.items() if term[1]}, constant


def depends(expr: Expr, variables: set[Var], memo: dict[Expr, bool]) -> bool:
    """Whether `expr` reads any of `variables`; `memo` is kept by the caller while its expressions live."""
    known = memo.get(expr)
    if known is None:
        stack: list[Any] = [expr]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            kind = type(node)
            if kind is Read:
                memo[node] = node.var in variables
            elif kind is Const:
                memo[node] = False
            else:
                args = operands(node)
                waiting = [x for x in args if x not in memo]
                if waiting:
                    stack += waiting
                    continue
                memo[node] = True in [memo[x] for x in args]
            stack.pop()
        known = memo[expr]
    return known


@fact
def _summands(expr: Expr) -> tuple[tuple[Expr, int], ...]:
    """What an expression is the sum of, beside constants, each with a constant factor.

    Kept, as the schedule asks of each index how it goes along each loop, in form after form.
    """
    return tuple(summands(expr)[0])


def stride(
    expr: Expr, var: Var, varying: set[Var], definitions: Mapping[Var, Expr], memo: dict[Expr, bool]
) -> int | None:
    """How much the integer `expr` grows when `var` grows by one; None if that is not one constant.

    `varying`: variables that change with `var` (`var` included); `definitions`: values of those that are Lets.
    """
    total = 0
    for node, factor in _summands(expr):
        if isinstance(node, Read):
            if node.var is var:
                total += factor
                continue
            if node.var not in definitions:
                if node.var in varying:
                    return None
                continue
            grows = stride(definitions[node.var], var, varying, definitions, memo)
            if grows is None:
                return None
            total += factor * grows
        elif isinstance(node, Op) and node.name == "mul" and node.dtype == "i64":
            if any(stride(arg, var, varying, definitions, memo) != 0 for arg in node.args):
                return None
        elif depends(node, varying, memo):
            return None
    return total


def divisor(expr: Expr, definitions: Mapping[Var, Expr], depth: int = 8) -> int:
    """The largest number that is known to divide the integer `expr`; 0 of zero, which all divide."""
    found, constant = summands(expr)
    return gcd(constant, *[factor * _divisor(node, definitions, depth) for node, factor in found])


def _divisor(node: Expr, definitions: Mapping[Var, Expr], depth: int) -> int:
    if depth == 0 or not is_int(node.dtype):
        return 1
    if isinstance(node, Read):
        return divisor(definitions[node.var], definitions, depth - 1) if node.var in definitions else 1
    if isinstance(node, Op) and node.dtype == "i64":
        if node.name in ("min", "max", "select"):
            return gcd(*[divisor(arg, definitions, depth - 1) for arg in node.args[-2:]])
        if node.name == "mul":
            return prod([divisor(arg, definitions, depth - 1) for arg in node.args])
    return 1


_BOUNDED = frozenset(["convert", "neg", "add", "sub", "mul", "floordiv", "floormod", "div", "min", "max", "select"])


def interval(
    expr: Expr, ranges: Mapping[Var, Interval], depth: int = 40, memo: dict[Expr, Interval | None] | None = None
) -> Interval | None:
    """Bounds (both inclusive) of an integer expression, given those of its variables; None if unknown.

    Expressions are DAGs: `memo` keeps what is known of shared parts, or ciphers would take exponential time.
    """
    if isinstance(expr, Const):
        return (expr.value, expr.value) if is_int(expr.dtype) else None
    if isinstance(expr, Read):
        return ranges.get(expr.var)
    if depth == 0 or not isinstance(expr, Op) or expr.name not in _BOUNDED or not is_int(expr.dtype):
        return None
    memo = {} if memo is None else memo
    if expr not in memo:
        memo[expr] = _op_interval(expr, ranges, depth, memo)
    return memo[expr]


def _op_interval(
    expr: Op, ranges: Mapping[Var, Interval], depth: int, memo: dict[Expr, Interval | None]
) -> Interval | None:
    if expr.name == "convert":
        inner = interval(expr.args[0], ranges, depth - 1, memo) if is_int(expr.args[0].dtype) else None
        low, high = int_range(expr.dtype)
        return inner if inner is not None and low <= inner[0] and inner[1] <= high else None
    args = expr.args[1:] if expr.name == "select" else expr.args
    known = [interval(arg, ranges, depth - 1, memo) for arg in args]
    if expr.name in ("min", "max") and None in known:
        if known[0] is None and known[1] is None:
            return None
        known = [int_range(expr.dtype) if bounds is None else bounds for bounds in known]
    x = known[0]
    y = known[1] if len(known) > 1 else None
    if x is None:
        if expr.name == "floormod" and y is not None and y[0] > 0:
            return 0, y[1] - 1
        return None
    result: Interval | None = None
    if expr.name == "neg":
        result = -x[1], -x[0]
    elif y is None:
        return None
    elif expr.name == "add":
        result = x[0] + y[0], x[1] + y[1]
    elif expr.name == "sub":
        result = x[0] - y[1], x[1] - y[0]
    elif expr.name == "mul":
        corners = [p * q for p in x for q in y]
        result = min(corners), max(corners)
    elif expr.name == "floordiv" and y[0] > 0:
        corners = [p // q for p in x for q in y]
        result = min(corners), max(corners)
    elif expr.name == "floormod" and y[0] > 0:
        inside = y[0] == y[1] and x[0] // y[0] == x[1] // y[0]
        result = (x[0] % y[0], x[1] % y[0]) if inside else (0, y[1] - 1)
    elif expr.name == "div" and y[0] > 0 and x[0] >= 0:
        result = x[0] // y[1], x[1] // y[0]
    elif expr.name == "min":
        result = min(x[0], y[0]), min(x[1], y[1])
    elif expr.name == "max":
        result = max(x[0], y[0]), max(x[1], y[1])
    elif expr.name == "select":
        result = min(x[0], y[0]), max(x[1], y[1])
    if result is None:
        return None
    low, high = int_range(expr.dtype)
    return result if low <= result[0] and result[1] <= high else None
