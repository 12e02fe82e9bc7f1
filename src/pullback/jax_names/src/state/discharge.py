"""Stands for jax._src.state.discharge: programs with mutable arrays as programs of values, for interpreters of jaxprs
that libraries write.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import ClosedJaxpr
from pullback.core.avals import AbstractRef
from pullback.ref import freeze, new_ref
from pullback.transforms.discharge import all_after, discharged
from pullback.util.pytree import tree_map


def discharge_state(
    closed_jaxpr: ClosedJaxpr, *, should_discharge: bool | Sequence[bool] = True, lower: bool = True
) -> ClosedJaxpr:
    """The program that takes the values of its references, and has what they are afterwards after its results.

    NotImplementedError where some references are to stay.
    """
    del lower
    references = [n for n, aval in enumerate(closed_jaxpr.in_avals) if type(aval) is AbstractRef]
    chosen = [should_discharge if isinstance(should_discharge, bool) else should_discharge[n] for n in references]
    if not all(chosen):
        if any(chosen):
            raise NotImplementedError("discharge_state: all references are replaced by values, or none is")
        return closed_jaxpr
    return all_after(*discharged(closed_jaxpr), references)


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """f of references in a tree, as a function of their values that gives what they are afterwards."""

    def run(values: Any) -> Any:
        references = tree_map(new_ref, values)
        f(references)
        return tree_map(freeze, references)

    return run


__all__ = ["discharge_state", "run_state"]
