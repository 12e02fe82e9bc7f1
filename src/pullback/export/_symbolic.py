"""Symbolic shapes as users write them: text for one shape, or a tree of texts for arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import api
from pullback.core.dimensions import Expression, is_symbolic
from pullback.core.dimensions.scopes import SymbolicScope
from pullback.core.dimensions.specs import parse_shape
from pullback.util.pytree import broadcast_prefix, tree_flatten, tree_unflatten


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is symbolic, and so no integer.

    >>> is_symbolic_dim(symbolic_shape("n, 3")[0]), is_symbolic_dim(3)
    (True, False)
    """
    return is_symbolic(p)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Expression, ...]:
    """The shape that a text says, its dimensions integers or expressions of dimension variables.

    shape_spec: such as "b, 2*n + 1, floordiv(n, 2), mod(n, 2), max(n, 3), n^2"; "_" and, at the end, "..." stand for
    what `like` has there, and None is "...". constraints: such as ["n >= 2", "mod(b, 2) == 0"]. scope: of the
    variables; shapes that are used together must be of one. ValueError for what is no shape or no constraint, and where
    both scope and constraints are given.

    >>> symbolic_shape("b, 2*n, ...", like=(4, 6, 3))
    (b, 2*n, 3)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(
            f"symbolic_shape: argument 'shape_spec' is a text such as 'b, 2*n' or None, got {shape_spec!r}"
        )
    return parse_shape("..." if shape_spec is None else shape_spec, _scope_of(constraints, scope), like)


def _scope_of(constraints: Sequence[str], scope: SymbolicScope | None) -> SymbolicScope:
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError("constraints belong to a scope: give them to SymbolicScope, or leave out 'scope'")
    return scope


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The tree of ShapeDtypeStructs of `args`, with the shapes that texts say.

    args: a tree of arrays or ShapeDtypeStructs. shapes_specs: texts as for `symbolic_shape`, or None, in a tree that is
    a prefix of that of args; what is left out by "_" and "..." is as in args. All are of one scope. ValueError as for
    `symbolic_shape`, and for another tree.

    >>> symbolic_args_specs((jnp.zeros((2, 3)), 1.0), ("n, ...", None))[0]
    ShapeDtypeStruct(shape=(n, 3), dtype=float32)
    """
    scope = _scope_of(constraints, scope)
    leaves, tree = tree_flatten(args)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=lambda spec: spec is None)
    structs = []
    for leaf, spec in zip(leaves, specs, strict=True):
        like = api.ShapeDtypeStruct.like(leaf)
        structs.append(api.ShapeDtypeStruct(symbolic_shape(spec, scope=scope, like=like.shape), like.dtype))
    return tree_unflatten(tree, structs)


__all__ = ["is_symbolic_dim", "symbolic_args_specs", "symbolic_shape"]
