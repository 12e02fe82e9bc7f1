"""Lowering rules of primitives. There is no MLIR here: a rule is a Python function in terms of other primitives.

mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False))

Why: a library's lowering that builds MLIR has nothing to build here, so of such a primitive the implementation is
called from inside of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import Primitive, trace
from pullback.core.lowering import InlineFunction
from pullback.ffi import ForeignLowering
from pullback.lax.control.callback import pure_callback
from pullback.util.absent import absent_names
from pullback.util.record import frozen_record


@frozen_record
class LoweredFunction:
    """A lowering rule that stands for calling `fun`."""

    fun: Callable[..., Any]
    multiple_results: bool


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """The lowering rule of a primitive that means fun(*args, **params)."""
    return LoweredFunction(fun, multiple_results)


def _call_of_implementation(prim: Primitive) -> Callable[[list[Any], dict[str, Any]], Any]:
    """The jaxpr of one call from the program into Python, where the primitive's implementation runs."""

    run: Any = prim.evaluate

    def body(avals: list[Any], params: dict[str, Any]) -> Any:
        types = prim.abstract_eval(*avals, **params)

        def implementation(*args: Any) -> Any:
            return run(*args, **params)

        def flat(*args: Any) -> list[Any]:
            out = pure_callback(implementation, types, *args, vmap_method="sequential")
            return list(out) if prim.multiple_results else [out]

        return trace(flat, avals)

    return body


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None, **_: Any) -> None:
    """Set how a primitive is compiled: `rule` from lower_fun or ffi.ffi_lowering.

    Of a primitive whose rule builds MLIR the implementation (`def_impl`) is called from inside the program; without
    one, NotImplementedError is raised when the primitive is compiled.
    """
    if platform not in (None, "cpu"):
        return
    if isinstance(rule, ForeignLowering):
        foreign = rule
        rule = LoweredFunction(lambda *args, **params: foreign.call(prim, args, params), prim.multiple_results)
    if not isinstance(rule, LoweredFunction):
        if prim.evaluate is not None:
            prim.lower = InlineFunction(trace=_call_of_implementation(prim))
            return

        def refuse(*args: Any, **params: Any) -> Any:
            raise NotImplementedError(
                f"primitive '{prim.name}' has a lowering rule that builds MLIR, which is not used here; register "
                "mlir.lower_fun(fun, multiple_results) of a function in terms of jax.numpy or lax, or define its "
                "implementation with def_impl"
            )

        rule = LoweredFunction(refuse, prim.multiple_results)

    def evaluate(*args: Any, **params: Any) -> Any:
        return rule.fun(*args, **params)

    def body(avals: list[Any], params: dict[str, Any]) -> Any:
        def flat(*args: Any) -> list[Any]:
            out = rule.fun(*args, **params)
            return list(out) if rule.multiple_results else [out]

        return trace(flat, avals)

    prim.evaluate = evaluate
    prim.lower = InlineFunction(trace=body)


__getattr__ = absent_names(__name__)

__all__ = ["LoweredFunction", "lower_fun", "register_lowering"]
