"""Derivatives in the values of sparse arrays: a sparse array in, a sparse array of the same places out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as jnp
from pullback import api, tree_util
from pullback.api import _arguments as arguments
from pullback.api._arguments import argument_positions, check_argnums
from pullback.experimental.sparse._base import JAXSparse
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
) -> Callable[..., tuple[Any, Any]]:
    """As `pullback.value_and_grad`; the gradient in a sparse array is one with the same indices.

    Raises TypeError if argnums are no integers, or not those of arguments.
    """
    arguments.check_callable("value_and_grad", fun)
    argnums = check_argnums("value_and_grad", argnums)

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


def _jacobian(name: str, of_values: Callable, fun: Callable, argnums: Any, has_aux: bool, options: Any) -> Callable:
    arguments.check_callable(name, fun)
    argnums = check_argnums(name, argnums)

    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        numbers = argument_positions(name, argnums, len(args))
        whole = list(args)

        def flat(values: list[Any]) -> Any:
            for n, v in zip(numbers, values, strict=True):
                whole[n] = args[n].with_data(v) if isinstance(args[n], JAXSparse) else v
            return fun(*whole, **kwargs)

        given = [args[n].data if isinstance(args[n], JAXSparse) else args[n] for n in numbers]
        found = of_values(flat, has_aux=has_aux, **options)(given)
        jacobians, *aux = found if has_aux else (found,)

        def of_leaf(parts: list[Any]) -> Any:
            return tuple(parts) if isinstance(argnums, (tuple, list)) else parts[0]

        def is_parts(x: Any) -> bool:
            return isinstance(x, list) and len(x) == len(numbers)

        placed = tree_util.tree_map(
            lambda parts: of_leaf([_placed(args[n], p) for n, p in zip(numbers, parts, strict=True)]),
            jacobians,
            is_leaf=is_parts,
        )
        return (placed, *aux) if has_aux else placed

    return jacobian_f


def _placed(arg: Any, jacobian: Any) -> Any:
    """The jacobian in a sparse array: the result's dimensions are a batch, in which all have the same indices."""
    if not isinstance(arg, JAXSparse):
        return jacobian
    lead = jacobian.shape[: jacobian.ndim - arg.data.ndim]
    if not lead:
        return arg.with_data(jacobian)
    if not isinstance(arg, (BCOO, BCSR)):
        raise NotImplementedError(f"sparse jacobian: a result of shape {lead} in {arg!r}; use BCOO or BCSR")
    shape = (*lead, *arg.shape)
    indices = jnp.broadcast_to(arg.indices, (*lead, *arg.indices.shape))
    if isinstance(arg, BCOO):
        return BCOO((jacobian, indices), shape=shape, **arg.info)
    return BCSR((jacobian, indices, jnp.broadcast_to(arg.indptr, (*lead, *arg.indptr.shape))), shape=shape, **arg.info)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """As `pullback.jacrev`; that in a sparse array has the same indices.

    NotImplementedError for a result with axes in another format than BCOO and BCSR.
    """
    return _jacobian("jacrev", api.jacrev, fun, argnums, has_aux, kwargs)


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """As `pullback.jacfwd`; that in a sparse array has the same indices.

    NotImplementedError for a result with axes in another format than BCOO and BCSR.
    """
    return _jacobian("jacfwd", api.jacfwd, fun, argnums, has_aux, kwargs)


jacobian = jacrev
