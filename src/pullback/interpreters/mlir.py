"""Lowering rules of primitives. There is no MLIR here: a rule is a Python function in terms of other primitives.

mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False))
mlir.register_lowering(p, lambda ctx, x: mlir.lower_fun(fun, multiple_results=False)(ctx, x))

A rule rule(ctx, *operands, **params) is run on arrays of the program that is compiled, and what it returns are the
primitive's results. So what rules are made of may be used in them: `lower_fun`, `jax.ffi.ffi_lowering`,
`emit_python_callback`, and operands passed on as they are.

Why: a library's lowering that builds MLIR itself has nothing to build here, so of such a primitive the implementation
is called from inside of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import Primitive, ShapedArray, hooks, trace, typeof
from pullback.core.lowering import InlineFunction
from pullback.ffi import ForeignLowering
from pullback.lax.control.callback import io_callback, pure_callback
from pullback.util.absent import absent_names
from pullback.util.record import frozen_record


class ModuleContext:
    """The program that is compiled, as a rule sees it."""

    platforms = ("cpu",)
    backend = None

    def add_keepalive(self, _value: Any) -> None:
        """Nothing: a program keeps the functions that it calls."""


@frozen_record
class LoweringRuleContext:
    """What a rule is told about the call that it is for."""

    primitive: Primitive
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    module_context: ModuleContext = ModuleContext()
    tokens_in: Any = None
    tokens_out: Any = None
    platforms: Sequence[str] = ModuleContext.platforms

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """The same with other values of some fields."""
        fields = ("primitive", "avals_in", "avals_out", "module_context", "tokens_in", "tokens_out", "platforms")
        return LoweringRuleContext(**{name: getattr(self, name) for name in fields} | changes)

    def is_forward_compat(self) -> bool:
        """False: a program is run where it is compiled."""
        return False


@frozen_record
class LoweredFunction:
    """A lowering rule that stands for calling `fun`."""

    fun: Callable[..., Any]
    multiple_results: bool

    def __call__(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        """The results, as a rule returns them."""
        out = self.fun(*args, **params)
        return list(out) if self.multiple_results else [out]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """The lowering rule of a primitive that means fun(*args, **params)."""
    return LoweredFunction(fun, multiple_results)


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, None]:
    """Inside a rule, a call back into Python: the results of callback(*operands), a token, and what to keep alive."""

    def on_host(*arrays: Any) -> list[Any]:
        return list(callback(*arrays))

    if has_side_effect:
        outs = io_callback(on_host, list(result_avals), *operands, sharding=sharding)
    else:
        outs = pure_callback(on_host, list(result_avals), *operands, sharding=sharding, vmap_method="sequential")
    return outs, token, None


def _results_of_implementation(prim: Primitive, args: Sequence[Any], params: dict[str, Any], avals: list[Any]) -> Any:
    """Those of one call from the program into Python, where the primitive's implementation runs."""
    run: Any = prim.evaluate

    def implementation(*arrays: Any) -> list[Any]:
        out = run(*arrays, **params)
        return list(out) if prim.multiple_results else [out]

    return pure_callback(implementation, avals, *args, vmap_method="sequential")


def _results_of_rule(rule: Any, ctx: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """What a rule returns. NotImplementedError if those are no arrays, or it asks for what only MLIR has."""
    if isinstance(rule, LoweredFunction | ForeignLowering):
        return rule(ctx, *args, **params)
    try:
        out = rule(ctx, *args, **params)
        outs = [x if hasattr(x, "aval") else hooks.asarray(x) for x in out]
        got = [typeof(x) for x in outs]
    except (NotImplementedError, AttributeError, ImportError, TypeError) as error:
        raise NotImplementedError(str(error)) from error
    wanted = [(a.shape, a.dtype) for a in ctx.avals_out]
    if [(a.shape, a.dtype) for a in got] != wanted:
        raise NotImplementedError(f"it returned {[a.short() for a in got]}")
    return outs


class _RunsRule:
    """How a primitive that has a rule and no implementation runs on arrays."""

    def __init__(self, results: Callable[..., list[Any]], multiple_results: bool) -> None:
        self.results = results
        self.multiple_results = multiple_results

    def __call__(self, *args: Any, **params: Any) -> Any:
        outs = self.results(args, params)
        return outs if self.multiple_results else outs[0]


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None, **_: Any) -> None:
    """Set how a primitive is compiled: `rule` from lower_fun or ffi.ffi_lowering, or a function of these and operands.

    rule(ctx, *operands, **params) returns a sequence of results; `ctx` has the fields of `LoweringRuleContext`. Of a
    primitive whose rule builds MLIR the implementation (`def_impl`) is called from inside the program; without one,
    NotImplementedError is raised when the primitive is compiled.
    """
    if platform not in (None, "cpu"):
        return

    def results(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        ins = [typeof(x) for x in args]
        outs = prim.abstract_eval(*ins, **params)
        outs = list(outs) if prim.multiple_results else [outs]
        try:
            return _results_of_rule(rule, LoweringRuleContext(prim, ins, outs), args, params)
        except NotImplementedError as error:
            if isinstance(rule, LoweredFunction | ForeignLowering):
                raise
            if prim.evaluate is not None:
                return _results_of_implementation(prim, args, params, outs)
            raise NotImplementedError(
                f"primitive '{prim.name}' has a lowering rule that builds MLIR, which is not used here ({error}); "
                "register mlir.lower_fun(fun, multiple_results) of a function in terms of jax.numpy or lax, or define "
                "its implementation with def_impl"
            ) from error

    def body(avals: list[Any], params: dict[str, Any]) -> Any:
        return trace(lambda *args: results(args, params), avals)

    if isinstance(rule, LoweredFunction | ForeignLowering) and isinstance(prim.evaluate, _RunsRule | None):
        prim.evaluate = _RunsRule(results, prim.multiple_results)
    prim.lower = InlineFunction(trace=body)


__getattr__ = absent_names(__name__)

__all__ = [
    "LoweredFunction",
    "LoweringRuleContext",
    "ModuleContext",
    "emit_python_callback",
    "lower_fun",
    "register_lowering",
]
