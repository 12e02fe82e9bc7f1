"""What can be differentiated: checks of arguments, of their types, of results and of tangents."""

from __future__ import annotations

import operator

import numpy as np

from pullback.api._arguments import leaf_paths
from pullback.core import tangent_aval, typeof
from pullback.core.source import located
from pullback.util import dtypes
from pullback.util.pytree import tree_flatten


def check_argnums(name: str, argnums) -> int | tuple[int, ...]:
    """argnums as an integer or a tuple of them; TypeError unless it is an integer or gives integers."""
    try:
        return operator.index(argnums)
    except TypeError:
        try:
            return tuple(operator.index(number) for number in argnums)
        except TypeError:
            message = f"{name}: argnums must be an integer or a sequence of integers, got {argnums!r}"
            raise TypeError(message) from None


def argument_positions(name: str, argnums, count: int) -> list[int]:
    """argnums as numbers of `count` positional arguments; TypeError or ValueError without it, ValueError if twice."""
    nums = [int(n) for n in (argnums if isinstance(argnums, (tuple, list)) else (argnums,))]
    negative = any(n < 0 for n in nums)
    highest = max((n if n >= 0 else -n - 1 for n in nums), default=-1)
    if highest >= count:
        # As functions of one index are refused, and as those that look the names of arguments up.
        of_one_index = name.rpartition(".")[2] in ("grad", "value_and_grad")
        raise (TypeError if of_one_index and not negative else ValueError)(
            f"differentiating with respect to argnums={argnums} requires at least {highest + 1} positional arguments "
            f"to be passed by the caller, but got only {count} positional arguments."
        )
    nums = [n + count if n < 0 else n for n in nums]
    if len(set(nums)) != len(nums):
        raise ValueError(f"{name}: argnums={argnums} names an argument twice")
    return nums


def check_inputs(name, leaves, holomorphic, allow_int, call):
    """TypeError for the first of `leaves`, which are to be differentiated, of a type that cannot be; `call` is (fun,
    argnums, args, kwargs)."""
    for number, leaf in enumerate(leaves):
        text = _refusal(name, typeof(leaf).dtype, holomorphic, allow_int)
        if text is not None:
            fun, argnums, args, kwargs = call
            sizes = [len(tree_flatten(arg)[0]) for arg in args]
            nums = argument_positions(name, argnums, len(args))
            places = [sum(sizes[:n]) + k for n in nums for k in range(sizes[n])]
            path = leaf_paths(fun, args, kwargs)[places[number]]
            raise TypeError(f"{text}\nThe argument is {path}, {typeof(leaf).str_short()}, of {located(fun)}.")


def _refusal(name, dtype, holomorphic, allow_int) -> str | None:
    """Why inputs of a dtype cannot be differentiated; None if they can."""
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        return f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype}."
    if dtypes.is_extended(dtype) or dtypes.issubdtype(dtype, np.integer) or dtypes.issubdtype(dtype, np.bool_):
        if not allow_int:
            return (
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtype}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True."
            )
    elif name == "jacfwd" and not holomorphic and not dtypes.issubdtype(dtype, np.floating):
        return (
            f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got {dtype}. "
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions "
            "involving complex inputs or integer inputs, use jax.jvp directly."
        )
    return None


def check_scalar(fun, out, out_tree):
    """TypeError unless the result `out` (None if there are several) is a scalar."""
    text = "Gradient only defined for scalar-output functions. Output"
    if out is None:
        raise TypeError(
            f"{text} was tree of structure {out_tree}.\nThe function is {located(fun)}; return one scalar, and the "
            "rest as auxiliary data: grad(f, has_aux=True) for (scalar, rest)."
        )
    shape = typeof(out).shape
    if shape != ():
        raise TypeError(
            f"{text} had shape: {shape}.\nThe function is {located(fun)}; reduce its result (jnp.sum, jnp.mean), use "
            "vmap(grad(f)) for the gradient of each element, or jacrev, jacfwd or vjp for those of vectors."
        )


def check_output_dtype(name, out, holomorphic):
    """TypeError unless the result is of a type that has a gradient."""
    dtype = typeof(out).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype}.")
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {dtype}. "
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions "
            "involving complex outputs, use jax.vjp directly."
        )
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {dtype}. "
            "For differentiation of functions with integer outputs, use jax.vjp directly."
        )


def check_jacobian_output(name, out, holomorphic):
    """TypeError unless the result is of a type that has a Jacobian."""
    dtype = typeof(out).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype}.")
    elif name == "jacrev":
        check_output_dtype(name, out, False)


def check_tangent(name, aval, tangent):
    """TypeError or ValueError unless `tangent` is one of values of the type `aval`."""
    have, want = typeof(tangent), tangent_aval(aval)
    if have.dtype != want.dtype:
        raise TypeError(
            f"primal and tangent arguments to jax.{name} do not match; dtypes must be equal, or in case of int/bool "
            f"primal dtype the tangent dtype must be float0. Got primal dtype {aval.dtype} and so expected tangent "
            f"dtype {want.dtype}, but got tangent dtype {have.dtype} instead."
        )
    if have.shape != want.shape:
        raise ValueError(
            f"{name} called with different primal and tangent shapes; Got primal shape {aval.shape} and tangent "
            f"shape as {have.shape}"
        )
