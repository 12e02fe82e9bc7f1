"""Derivative rules of primitives.

ad.primitive_jvps[p] = rule            rule(primals, tangents, **params) -> (out, out_dot)
ad.defjvp(p, rule_0, rule_1, ...)      rule_i(x_dot_i, *primals, **params) -> out_dot, or None
ad.defjvp2(p, rule_0, rule_1, ...)     rule_i(x_dot_i, out, *primals, **params) -> out_dot, or None
ad.primitive_transposes[p] = rule      rule(x_bar, *args, **params) -> one cotangent or None for each argument
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import ZERO, Primitive, UndefinedPrimal, Zero, hooks, is_undefined_primal, tangent_aval, typeof
from pullback.interpreters._tables import RuleTable
from pullback.manual import add_pages as _add_pages
from pullback.manual.interpreters.ad import PAGES as _PAGES
from pullback.transforms.jvp import JVPInterpreter as JVPTrace
from pullback.transforms.jvp import JVPTracer
from pullback.util.absent import absent_names
from pullback.util.errors import CustomVJPException


def _same(_: Primitive, rule: Any) -> Any:
    return rule


primitive_jvps = RuleTable("jvp", _same, _same)
primitive_transposes = RuleTable("transpose", _same, _same)


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent as an array, if it is a symbolic zero."""
    return hooks.zeros(tangent.aval) if type(tangent) is Zero else tangent


def zeros_like_aval(aval: Any) -> Any:
    """Zeros of a type."""
    return hooks.zeros(aval)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, of which either may be a symbolic zero."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else hooks.add(x, y)


add_jaxvals = add_tangents


def defjvp(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Set the forward rule from one rule for each argument: rule(x_dot, *primals, **params) -> its share of out_dot."""

    defjvp2(primitive, *[_without_result(rule) for rule in rules])


def _without_result(rule: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return None if rule is None else lambda x_dot, out, *primals, **params: rule(x_dot, *primals, **params)


def defjvp2(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """As `defjvp`, of rules that are given the result, too: rule(x_dot, out, *primals, **params)."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(tangent_aval(typeof(out)))
        for rule, x_dot in zip(rules, tangents, strict=True):
            if rule is not None and type(x_dot) is not Zero:
                total = add_tangents(total, rule(x_dot, out, *primals, **params))
        return out, total

    primitive.jvp = jvp


def defbilinear(primitive: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Make a primitive linear in each of two arguments: lhs_rule(out_bar, x, y, **params) -> the cotangent of x, whose
    place an undefined primal has, and rhs_rule that of y."""
    defjvp(
        primitive,
        lambda x_dot, x, y, **params: primitive.bind(x_dot, y, **params),
        lambda y_dot, x, y, **params: primitive.bind(x, y_dot, **params),
    )

    def transpose(out_bar: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x) and is_undefined_primal(y):
            raise ValueError(f"{primitive.name} is linear in each argument, not in both at once")
        if is_undefined_primal(x):
            return (Zero(x.aval) if type(out_bar) is Zero else lhs_rule(out_bar, x, y, **params)), None
        return None, (Zero(y.aval) if type(out_bar) is Zero else rhs_rule(out_bar, x, y, **params))

    primitive.transpose = transpose


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Make a primitive linear in all arguments: rule(x_bar, **params) -> cotangents."""
    deflinear2(primitive, lambda x_bar, *args, **params: transpose_rule(x_bar, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Make a primitive linear in all arguments: rule(x_bar, *args, **params) -> cotangents."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero(tangent_aval(typeof(out)))
        return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)

    primitive.jvp = jvp
    primitive.transpose = transpose_rule


def defjvp_zero(primitive: Primitive) -> None:
    """State that the derivative vanishes wherever it exists."""
    primitive.jvp = ZERO


__getattr__ = absent_names(__name__)

_add_pages(globals(), _PAGES)
__all__ = [
    "CustomVJPException", "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_tangents",
    "defbilinear", "defjvp", "defjvp2", "defjvp_zero", "deflinear", "deflinear2", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip
