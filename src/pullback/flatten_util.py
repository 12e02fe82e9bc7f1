"""Trees of arrays as one flat vector, and back."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, tree_util
from pullback.core import hooks
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.flatten_util import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.tracebacks import api_boundary


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(vector, unravel): the leaves, flattened and joined in one common type, and the function that undoes it."""
    leaves, tree = tree_util.tree_flatten(pytree)
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    if not leaves:
        return jnp.zeros((0,), np.float32), lambda flat: tree_util.tree_unflatten(tree, _check_empty(flat))
    shapes, kinds = [leaf.shape for leaf in leaves], [leaf.dtype for leaf in leaves]
    common = dtypes.result_type(*kinds)
    weak = all([leaf.weak_type for leaf in leaves]) and len(set(kinds)) == 1
    vector = jnp.concatenate([lax.convert_element_type(lax.reshape(x, (x.size,)), common) for x in leaves])
    vector = hooks.convert(vector, common, True) if weak else vector
    sizes = [math.prod(s) for s in shapes]
    total, mixed = sum(sizes), any(k != common for k in kinds)

    @api_boundary
    def unravel(flat: Any) -> Any:
        dtype = dtypes.dtype_of(flat)
        if mixed and dtype != common:
            raise TypeError(f"unravel: the vector is of dtype {dtype}; that of the tree is {common}")
        if np.shape(flat) != (total,):
            raise ValueError(f"unravel: the vector has shape {np.shape(flat)}; the tree takes {(total,)}")
        flat, start, out = jnp.asarray(flat), 0, []
        for shape, size, kind in zip(shapes, sizes, kinds, strict=True):
            part = lax.reshape(lax.slice_in_dim(flat, start, start + size), shape)
            if mixed:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # complex to real: the imaginary parts came from reals
                    part = lax.convert_element_type(part, kind)
            out.append(part)
            start += size
        return tree_util.tree_unflatten(tree, out)

    return vector, unravel


def _check_empty(flat: Any) -> list[Any]:
    if np.shape(flat) != (0,):
        raise ValueError(f"unravel: the vector has shape {np.shape(flat)}; the tree is empty and takes (0,)")
    return []


__all__ = ["ravel_pytree"]

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
