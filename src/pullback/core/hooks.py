"""The four things that must point upward, declared here and filled at import.

evaluation    (runtime)     primitives and jaxprs run on concrete arrays
application   (transforms)  a primitive's call under eager transformations, as a jaxpr
operators     (numpy)       what `+`, `[]`, `.sum()` ... do, for arrays and tracers alike
the rest      (lax, api)    zeros, sums, broadcasts, casts, maps as transformations need them
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._ext import _core


class Hooks:
    """The functions that higher layers hand to core; signatures are those of the lax functions of the same names, but:

    evaluate(primitive, args, params)     run a primitive on concrete values (runtime)
    remember(primitive, args, params, asker)  how C runs it on such values from now on: a CacheEntry or None (runtime)
    application(primitive, key, args, params)  such a call as (jaxpr, form of results), if seen before (transforms)
    run_eagerly(closed_jaxpr, args)       results by a plan, by compiled code once that pays (runtime)
    run(closed_jaxpr, args)               results of the compiled program (runtime)
    elementwise(name, operands)           the primitive of a name on float64 NumPy arrays, by compiled code (runtime)
    reference_of(primitive, avals)        what gives its results on NumPy arrays, with the bits of programs (runtime)
    evaluate_between(primitive, args, params), run_between(closed_jaxpr, args): the same where arrays lie on several
        processes (distributed)
    dimension_as_value(d): a symbolic dimension as a traced integer
    asarray(x, dtype=None, weak_type=None, device=None) -> Array (runtime)
    exactly(x): a NumPy scalar as an Array of its type, be it one of 64 bits that are not enabled (runtime)
    zeros(aval); broadcast(x, size, axis): insert an axis; moveaxis(x, source, destination)
    convert(x, dtype, weak_type)
    select(pred, on_true, on_false): pred may have fewer (leading) axes;  select_n(index, *cases): so may index
    sum(x, axes); reduce_or(x): over all axes
    placings(primitive, in_avals, params, out_avals)  how results are cut along explicit axes (api)
    terms_beside(placing, places)         what gives results their terms where they are left to be summed (api)
    stack(arrays): along a new axis 0;  interleave(x, y, axis): x0 y0 x1 y1 ..., x may have one element more
    less, not_equal, stop_gradient, clamp, add, reshape, rev, slice_in_dim, concatenate: of lax;  vmap: of api
    check_values(arrays, where): FloatingPointError for values that are errors; None while none are (runtime)
    transfers                             the module core/transfers.py, once a guard of transfers has been set (api)
    """

    transfers: Any = None
    check_values: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"core.hooks.{name} is not filled; import pullback first")

    def fill(self, **functions: Callable[..., Any]) -> None:
        """Set functions, as the layer that owns them is imported."""
        for name, function in functions.items():
            setattr(self, name, function)


hooks = Hooks()


def install_operators(table: dict[str, Callable]) -> None:
    """Set the functions behind `+`, `==`, `[]`, ... of arrays and tracers; names are 'add', 'radd', ..., 'getitem'."""
    from pullback.core.tracer import Array, Tracer, make_operator

    _core.set_operators(dict(table))
    for name, function in table.items():
        operator = make_operator(name, function)
        setattr(Tracer, f"__{name}__", operator)
        if name != "iter":  # the class of all arrays is not iterable: those without axes are not
            setattr(Array, f"__{name}__", operator)
        if name not in ("iter", "getitem"):  # libraries take them from the class of concrete arrays for traced ones
            _core.set_array_attribute(f"__{name}__", operator, True)


def install_methods(table: dict[str, Any]) -> None:
    """Set methods and properties of arrays and tracers: functions, or property objects. What arrays have of their own
    (T) stays. The class that stands for both has them all: libraries wrap what they find there."""
    from pullback.core.tracer import Array, Tracer

    for name, attribute in table.items():
        if name not in vars(_core.Array):
            _core.set_array_attribute(name, attribute)
        setattr(Tracer, name, attribute)
        setattr(Array, name, attribute)
    for name, attribute in vars(_core.Array).items():
        if not name.startswith("_"):
            setattr(Array, name, attribute)
