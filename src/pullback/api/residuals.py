"""What reverse mode keeps of a function between the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.api import _arguments as arguments
from pullback.core import trace, typeof
from pullback.transforms.partial_eval import linearize_flat
from pullback.util.pytree import tree_unflatten
from pullback.util.tracebacks import api_boundary


@api_boundary
def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """(type, where it comes from) of each array that the derivative of f(*args, **kwargs) keeps: arguments in their
    order, then constants, then what the program makes, in its order.

    >>> saved_residuals(lambda x: x * x, 2.0)
    [(ShapedArray(float32[], weak_type=True), 'from the argument x')]
    """
    arguments.check_callable("saved_residuals", f)
    paths = arguments.leaf_paths(f, args, kwargs)
    leaves, tree = arguments.checked_leaves("saved_residuals", "argument ", (args, kwargs), lambda: paths)

    def flat(*values: Any) -> list[Any]:
        given, named = tree_unflatten(tree, values)
        return arguments.flatten_result(f(*given, **named), f, "saved_residuals")[0]

    def kept(*values: Any) -> list[Any]:
        return list(linearize_flat(flat, values)[2])

    jaxpr = trace(kept, [typeof(x) for x in leaves]).jaxpr
    makers = {var: (n, eqn) for n, eqn in enumerate(jaxpr.eqns) for var in eqn.outvars}
    found: list[tuple[Any, Any, str]] = []  # (what it is sorted by, type, words)
    for atom in dict.fromkeys(jaxpr.outvars):
        if atom in jaxpr.invars:
            n = jaxpr.invars.index(atom)
            found.append(((0, n), atom.aval, f"from the argument {paths[n]}"))
        elif atom in makers:
            n, eqn = makers[atom]
            found.append(((2, n), atom.aval, _of_equation(eqn)))
        else:
            found.append(((1, 0), atom.aval, "from a constant"))
    return [(aval, words) for _, aval, words in sorted(found, key=lambda each: each[0])]


def _of_equation(eqn: Any) -> str:
    name = eqn.params.get("name")
    where = f" from {eqn.source.in_full}" if eqn.source is not None else ""
    if eqn.primitive.name == "name":
        return f"named '{name}'{where}"
    if eqn.primitive.name in ("jit", "pjit"):
        return f"output of jitted function '{name}'{where}"
    return f"output of {eqn.primitive.name}{where}"


@api_boundary
def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print a line for each array that the derivative of f(*args, **kwargs) keeps: its type, and whence it comes."""
    for aval, words in saved_residuals(f, *args, **kwargs):
        print(f"{aval.short()} {words}")


__all__ = ["print_saved_residuals", "saved_residuals"]
