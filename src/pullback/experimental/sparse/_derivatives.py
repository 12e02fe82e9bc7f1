"""Derivatives in the values of sparse arrays: a sparse array in, a sparse array of the same places out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import api, tree_util
from pullback.api import _arguments as arguments
from pullback.api.grad import argument_positions, check_argnums
from pullback.experimental.sparse._base import JAXSparse


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
) -> Callable[..., tuple[Any, Any]]:
    """As `pullback.value_and_grad`; the gradient in a sparse array is one with the same indices.

    Raises TypeError if argnums are no integers, or not those of arguments.
    """
    arguments.check_callable("value_and_grad", fun)
    check_argnums("value_and_grad", argnums)

    def is_sparse(x: Any) -> bool:
        return isinstance(x, JAXSparse)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        numbers = argument_positions("value_and_grad", argnums, len(args))
        leaves, tree = tree_util.tree_flatten([args[n] for n in numbers], is_leaf=is_sparse)
        whole = list(args)

        def of_values(values: list[Any]) -> Any:
            given = [x.with_data(v) if is_sparse(x) else v for x, v in zip(leaves, values, strict=True)]
            for n, arg in zip(numbers, tree_util.tree_unflatten(tree, given), strict=True):
                whole[n] = arg
            return fun(*whole, **kwargs)

        given = [x.data if is_sparse(x) else x for x in leaves]
        value, values = api.value_and_grad(of_values, has_aux=has_aux, **options)(given)
        parts = [x.with_data(v) if is_sparse(x) else v for x, v in zip(leaves, values, strict=True)]
        gradients = tree_util.tree_unflatten(tree, parts)
        return value, tuple(gradients) if isinstance(argnums, (tuple, list)) else gradients[0]

    return value_and_grad_f


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """As `pullback.grad`; the gradient in a sparse array is one with the same indices. Raises as value_and_grad."""
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f
