"""Between a user's function of trees and flat functions, for libraries that stage functions themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.api._arguments import leaf_paths
from pullback.core import DebugInfo, ShapedArray, typeof
from pullback.core.explain import explain_all as _explain_all
from pullback.core.explain import type_shown
from pullback.extend.linear_util import WrappedFun, transformation_with_aux
from pullback.util.pytree import PyTreeDef, flatten_axes, tree_flatten, tree_unflatten


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any],
    *, static_argnums: Sequence[int] = (), static_argnames: Sequence[str] = (), **_: Any,
) -> DebugInfo:  # fmt: skip
    """What errors and printed jaxprs say of a function, with a name such as x['w'] for each leaf of what it traces."""
    traced = {name: value for name, value in kwargs.items() if name not in static_argnames}
    names = leaf_paths(fun, args, traced, static_argnums)
    return DebugInfo(traced_for, getattr(fun, "__name__", "<unknown>"), tuple(names))


@transformation_with_aux
def flatten_fun(in_tree: PyTreeDef, *leaves: Any):
    """(flat, out_tree): a function of (args, kwargs), given their leaves, gives the leaves of its result."""
    args, kwargs = tree_unflatten(in_tree, leaves)
    yield tree_flatten((yield args, kwargs))


@transformation_with_aux
def flatten_fun_nokwargs(in_tree: PyTreeDef, *leaves: Any):
    """(flat, out_tree): a function of args, given their leaves, gives the leaves of its result."""
    yield tree_flatten((yield tree_unflatten(in_tree, leaves), {}))


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple]:
    """(f', dyn_args): f as a function of some of its arguments, the others as given. ValueError for unhashable ones."""
    wanted = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    numbers = [n % len(args) for n in wanted]
    if require_static_args_hashable:
        for n, arg in enumerate(args):
            if n not in numbers:
                try:
                    hash(arg)
                except TypeError:
                    raise ValueError(
                        f"argument {n} is static and must be hashable, got {arg!r} of type {type_shown(arg)}"
                    ) from None

    def call(*dynamic: Any, **kwargs: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, dynamic, strict=True):
            full[n] = value
        return f.call_wrapped(*full, **kwargs)

    functools.update_wrapper(call, f.f, updated=())
    return WrappedFun(call, {}), tuple(args[n] for n in numbers)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or scalar, and a type as it is; TypeError for what cannot be one."""
    return x if isinstance(x, ShapedArray) else typeof(x)


def donation_vector(
    donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: PyTreeDef, kws: bool = True
) -> tuple[bool, ...]:
    """For each leaf of the arguments, whether it is donated."""
    numbers, names = set(donate_argnums), set(donate_argnames or ())
    args, kwargs = in_tree.children() if kws else (in_tree, None)
    found = [n in numbers for n, child in enumerate(args.children()) for _ in range(child.num_leaves)]
    if kwargs is not None:
        _, keys = kwargs.node_data() or (dict, ())
        found += [k in names for k, child in zip(keys, kwargs.children(), strict=True) for _ in range(child.num_leaves)]
    return tuple(found)


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """Numbers of donated arguments when the static ones are left out; ValueError if an argument is both."""
    donated, static = set(donate_argnums), set(static_argnums)
    if donated & static:
        raise ValueError(f"arguments {sorted(donated & static)} are donated and static, which cannot intersect")
    return tuple(n - sum(s < n for s in static) for n in sorted(donated))


def safe_map(f: Callable[..., Any], *lists: Sequence[Any]) -> list:
    """[f(*items) ...] over lists of equal length; ValueError if lengths differ."""
    return [f(*items) for items in zip(*lists, strict=True)]


__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip

_explain_all(globals())
