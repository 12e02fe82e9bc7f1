"""scan over objects that are no arrays: those of types above arrays, and references (`new_ref`).

Both are loops on arrays: an object of a type above arrays is scanned as its arrays, a reference by the number of the
iteration, which finds its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import high, hooks, typeof
from pullback.core.references import Reference
from pullback.lax.control import common as control
from pullback.util.pytree import tree_map, tree_unflatten


def by_arrays(f: Callable, init: Any, xs: Any, length: int | None) -> tuple[Callable, Any, Any]:
    """(f, init, xs) where objects of types above arrays are their arrays, and f gets objects of the leading axes."""

    def element(x):
        if not high.is_high(x):
            return x
        whole = high.Lowered.of(x)
        size = typeof(whole.arrays[0]).shape[0] if length is None else length
        kind = whole.kind.dec_rank(size, whole.kind.leading_axis_spec())
        return high.Lowered(whole.arrays, kind, whole.state, whole.carrier)

    def of_arrays(carry, x):
        return high.lowered(f(high.raised(carry), high.raised(x)))

    of_arrays.__wrapped__ = f  # type: ignore[attr-defined]
    return of_arrays, high.lowered(init), tree_map(element, xs)


def with_objects(run: Callable, f: Callable, init: Any, xs: Any) -> tuple[Any, Any]:
    """`run(f, init, xs)`, the loop on arrays, with objects again in its results; those that `f` closes over and changes
    are further parts of the carry, and get their last values.
    """
    if control.python_control_flow():
        return _of_objects(*run(f, init, xs))
    with high.Captured() as captured:
        carry, ys = run(f, init, xs)
    if objects := captured.changed:
        both = init, [high.Lowered.of(x) for x in objects]
        (carry, after), ys = run(high.carrying(f, objects), both, xs)
        for x, value in zip(objects, after, strict=True):
            value.update(x)
    return _of_objects(carry, ys)


def _of_objects(carry, ys):
    """The results with objects again."""
    return high.raised(carry), tree_map(_stacked, ys, is_leaf=lambda y: type(y) is high.Lowered)


def _stacked(y):
    """An object among the results that is traced, which has the arrays of all iterations, with the type of all."""
    if type(y) not in (high.Held, high.Lowered) or y.kind.has_qdd:
        return y
    kind = y.kind.inc_rank(typeof(y.arrays[0]).shape[0], y.kind.leading_axis_spec())
    return high.Held(y.arrays, kind, y.carrier) if type(y) is high.Held else kind.raise_val(*y.arrays)


def by_rows(f: Callable, given: Sequence[Any], tree: Any, length: int | None) -> tuple[Callable, Any, Any]:
    """(f, xs, length) where xs has the number of the iteration in place of references, and f gets their rows."""
    arrays = [x for x in given if not isinstance(x, Reference)]
    sizes = [x.ref_aval.shape[:1] for x in given if isinstance(x, Reference)]
    if any(size != sizes[0] or not size for size in sizes):
        raise ValueError(f"scan: the references in xs have leading sizes {sizes}, which must be one")
    (size,) = sizes[0]

    def of_rows(carry, x):
        number, rest = x[0], iter(x[1])
        values = [hooks.row(leaf, number) if isinstance(leaf, Reference) else next(rest) for leaf in given]
        return f(carry, tree_unflatten(tree, values))

    of_rows.__wrapped__ = f  # type: ignore[attr-defined]
    return of_rows, (np.arange(size, dtype=np.int32), arrays), size if length is None else length
