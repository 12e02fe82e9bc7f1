"""Stands for jax._src.api: the public names (flax, equinox), the dtype of an argument (pennylane), and the parts of
which Jacobians are made (desc-opt, adv-jax-math)."""

from typing import Any

from pullback import api
from pullback import numpy as jnp
from pullback.api._arguments import check_inputs, check_jacobian_output
from pullback.core import typeof
from pullback.util.pytree import tree_flatten, tree_unflatten


def _dtype(x: Any) -> Any:
    """The dtype of an array or number."""
    return typeof(x).dtype


def _check_input_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """TypeError for what `jacfwd` does not differentiate with respect to."""
    check_inputs("jacfwd", [x], holomorphic, False, (_itself, 0, (x,), {}))


def _check_input_dtype_jacrev(holomorphic: bool, allow_int: bool, x: Any) -> None:
    """TypeError for what `jacrev` does not differentiate with respect to."""
    check_inputs("jacrev", [x], holomorphic, allow_int, (_itself, 0, (x,), {}))


def _check_output_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """TypeError for results of which `jacfwd` gives no derivatives."""
    check_jacobian_output("jacfwd", x, holomorphic)


def _check_output_dtype_jacrev(holomorphic: bool, x: Any) -> None:
    """TypeError for results of which `jacrev` gives no derivatives."""
    check_jacobian_output("jacrev", x, holomorphic)


def _itself(x: Any) -> Any:
    return x


def _std_basis(pytree: Any) -> Any:
    """The tree with a leading axis in each leaf, along which its elements are 1 in turn."""
    leaves, tree = tree_flatten(pytree)
    total = sum(typeof(leaf).size for leaf in leaves)
    parts = _parts(leaves, 1, jnp.eye(total, dtype=bool))
    return tree_unflatten(tree, [part.astype(typeof(leaf).dtype) for part, leaf in zip(parts, leaves)])


def _jacfwd_unravel(input_pytree: Any, output_leaf: Any, columns: Any) -> Any:
    """The tree of the inputs with what belongs to each along the last axis, of the output's dtype."""
    leaves, tree = tree_flatten(input_pytree)
    parts = _parts(leaves, typeof(columns).ndim - 1, columns)
    return tree_unflatten(tree, [part.astype(typeof(output_leaf).dtype) for part in parts])


def _jacrev_unravel(output_pytree: Any, input_leaf: Any, rows: Any) -> Any:
    """The tree of the outputs with what belongs to each along the first axis, of the input's dtype."""
    leaves, tree = tree_flatten(output_pytree)
    return tree_unflatten(tree, [part.astype(typeof(input_leaf).dtype) for part in _parts(leaves, 0, rows)])


def _parts(leaves: list[Any], axis: int, joined: Any) -> list[Any]:
    """What belongs to each leaf along an axis over all elements, with the leaf's axes in its place."""
    shape, parts, start = joined.shape, [], 0
    for leaf in leaves:
        aval = typeof(leaf)
        part = joined[(slice(None),) * axis + (slice(start, start + aval.size),)]
        parts.append(part.reshape((*shape[:axis], *aval.shape, *shape[axis + 1 :])))
        start += aval.size
    return parts


def __getattr__(name: str) -> Any:
    return getattr(api, name)
