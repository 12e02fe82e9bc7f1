"""The three things that must point upward, declared here and filled at import.

evaluate      (runtime)  run a primitive on concrete arrays
operators     (numpy)    what `+`, `[]`, `.sum()` ... do, for arrays and tracers alike
the rest      (lax)      zeros, sums, broadcasts, casts as transformations need them
"""

from __future__ import annotations

from typing import Any, Callable

from pullback._ext import _core


class _Missing:
    def __init__(self, name: str, layer: str):
        self.name, self.layer = name, layer

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"core.hooks.{self.name} is not filled; import pullback.{self.layer} first")


class Hooks:
    """The functions that higher layers hand to core."""

    # runtime: evaluate(primitive, args, params) -> result(s), on concrete values
    evaluate: Callable[..., Any] = _Missing("evaluate", "runtime")
    # runtime: asarray(x, dtype=None, weak_type=None, device=None) -> Array
    asarray: Callable[..., Any] = _Missing("asarray", "runtime")
    # runtime: run(closed_jaxpr, args) -> results of the compiled program
    run: Callable[..., Any] = _Missing("run", "runtime")
    # lax: zeros(aval), add(x, y), broadcast(x, size, axis), moveaxis(x, src, dst), convert(x, dtype, weak_type),
    #      select(pred, on_true, on_false), sum(x, axes), barrier(list of arrays) -> list (results not merged with others)
    zeros: Callable[..., Any] = _Missing("zeros", "lax")
    add: Callable[..., Any] = _Missing("add", "lax")
    broadcast: Callable[..., Any] = _Missing("broadcast", "lax")
    moveaxis: Callable[..., Any] = _Missing("moveaxis", "lax")
    convert: Callable[..., Any] = _Missing("convert", "lax")
    select: Callable[..., Any] = _Missing("select", "lax")
    sum: Callable[..., Any] = _Missing("sum", "lax")
    barrier: Callable[..., Any] = _Missing("barrier", "lax")


hooks = Hooks()


def install_operators(table: dict[str, Callable]) -> None:
    """Set the functions behind `+`, `==`, `[]`, ... of arrays and tracers; names are 'add', 'radd', ..., 'getitem'."""
    from pullback.core.tracer import Tracer, make_operator

    _core.set_operators(dict(table))
    for name, function in table.items():
        setattr(Tracer, f"__{name}__", make_operator(name, function))


def install_methods(table: dict[str, Any]) -> None:
    """Set methods and properties of arrays and tracers: functions, or property objects."""
    from pullback.core.tracer import Tracer

    for name, attribute in table.items():
        _core.set_array_attribute(name, attribute)
        setattr(Tracer, name, attribute)
