"""Arguments of transformed functions: static ones, argnums, trees, types that can be differentiated, and the errors for
what is wrong with them."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import high, hooks, tangent_aval, typeof
from pullback.core.explain import type_shown
from pullback.core.references import Reference
from pullback.core.source import lasting, located, with_marks
from pullback.util import config, dtypes
from pullback.util.errors import REGISTER
from pullback.util.pytree import keystr, tree_flatten, tree_flatten_with_path


def function_name(fun: Callable) -> str:
    """The name of a function for messages and debugging; of its class, if it has none that is a string."""
    while hasattr(fun, "func") and not hasattr(fun, "__name__"):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if name and isinstance(name, str) else type(fun).__name__


def named_after(wrapper: Callable, fun: Callable) -> Callable:
    """`wrapper`, which looks like `fun`; its name is that of the function inside where `fun` has none (a partial)."""
    wrapper = _core.named_after(wrapper, fun)
    if not hasattr(fun, "__name__"):
        wrapper.__name__ = function_name(fun)
    return wrapper


def check_tracing(fun: Any) -> None:
    """RuntimeError where nothing new may be traced."""
    if config.config.jax_no_tracing:
        raise RuntimeError(
            f"jit: 'no_tracing' is on, so {located(fun)} is not traced; call it once before, with such arguments"
        )


def check_callable(transformation: str, fun: Any) -> None:
    """TypeError unless `fun` is a function that returns its result: generators and coroutines give theirs later."""
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value, got {fun!r}: argument 'fun' of {transformation} must be a function"
        )
    code = getattr(fun, "__code__", None)
    if (code.co_flags & inspect.CO_GENERATOR) if type(code) is types.CodeType else inspect.isgeneratorfunction(fun):
        raise TypeError(
            f"{transformation}: {function_name(fun)} is a generator function, whose values come only later; return "
            "all of them, in a list or an array"
        )
    if type(code) is types.CodeType and code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TypeError(
            f"Expected a function, got an async function: {function_name(fun)}; await outside of what {transformation} "
            "transforms"
        )


def as_tuple(x: Any) -> tuple:
    """A tuple of what may be one thing or several."""
    if x is None:
        return ()
    if isinstance(x, (str, int)) or not isinstance(x, Iterable):
        return (x,)
    return tuple(x)


def signature_of(fun: Callable) -> inspect.Signature | None:
    """The signature, or None for functions that have none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def resolve_argnums(transformation: str, fun, what: str, argnums, argnames) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(numbers, names) of the arguments named either way, each completed from the other through the signature.

    ValueError for numbers or names that the function does not have.
    """
    nums, names = as_tuple(argnums), as_tuple(argnames)
    if not nums and not names:
        return (), ()
    signature = signature_of(fun)
    for num in nums:
        if not hasattr(num, "__index__"):
            raise TypeError(f"{transformation}: {what}_argnums must be an integer or integers, got {num!r}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{transformation}: {what}_argnames must be a string or strings, got {name!r}")
    nums = tuple(int(n) for n in nums)
    if signature is None:
        return nums, names
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if not variadic:
        for num in nums:
            if not -len(positional) <= num < len(positional):
                raise ValueError(
                    f"{'Jitted function' if transformation == 'jit' else transformation} has "
                    f"{what}_argnums={as_tuple(argnums)}, but only accepts {len(positional)} positional arguments; the "
                    f"function is {function_name(fun)}"
                )
        nums = tuple(n + len(positional) if n < 0 else n for n in nums)
    if not any(p.kind == p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in keywords:
                raise ValueError(
                    f"{transformation} got {what}_argnames={argnames!r}, but {function_name(fun)} has no argument "
                    f"'{name}'; it has {sorted(keywords)}"
                )
    nums, names = completed(signature, None if argnums is None else nums, None if argnames is None else names)
    return tuple(sorted(set(nums))), names


def completed(
    signature: inspect.Signature, nums: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of parameters, those that are None found from the others; () for both where both are None."""
    positional = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_number = {i: p.name for i, p in enumerate(positional) if p.kind == p.POSITIONAL_OR_KEYWORD}
    by_name = {name: i for i, name in by_number.items()}
    if nums is None:
        return tuple(by_name[name] for name in names or () if name in by_name), names or ()
    if names is None:
        return nums, tuple(by_number[n] for n in nums if n in by_number)
    return nums, names


def check_leaf(leaf: Any, function: str, path: str) -> Any:
    """The aval of an argument's leaf; TypeError that names function, argument and value for what is no array."""
    try:
        return typeof(leaf)
    except TypeError:
        raise no_array(leaf, function, path) from None


def no_array(leaf: Any, function: str, path: str) -> TypeError:
    """The error for an argument's leaf that is no array."""
    return TypeError(
        f"Error interpreting argument to {function}: at path {path} is {str(leaf)[:80]!r} of type {type_shown(leaf)}. "
        "It is not a valid JAX type: make it an array or a number, declare the argument static (static_argnums, "
        "static_argnames of jit), or make the class a tree of arrays (jax.tree_util.register_pytree_node_class)."
        + (" Of a method, 'self' is an argument like the others." if path == "self" else "")
        + (" A type has no values: jit(f).lower and jax.eval_shape take it." if hasattr(leaf, "is_only_a_type") else "")
    )


def leaf_paths(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], skipped: Sequence[int] = ()) -> list[str]:
    """A name such as x['w'][0] for each leaf of the call's arguments, without those at the positions `skipped`."""
    signature = signature_of(fun)
    names: list[str] = []
    if signature is not None:
        for p in signature.parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind == p.VAR_POSITIONAL:
                names.extend(f"{p.name}[{i}]" for i in range(len(args) - len(names)))
    paths: list[str] = []
    for i, arg in enumerate(args):
        if i in skipped:
            continue
        name = names[i] if i < len(names) else f"args[{i}]"
        paths.extend(name + keystr(path) for path, _ in tree_flatten_with_path(arg)[0])
    taken = {} if signature is None else signature.parameters
    more = next((p.name for p in taken.values() if p.kind == p.VAR_KEYWORD), None)
    for key in sorted(kwargs):
        name = key if more is None or key in taken else f"{more}[{key!r}]"
        paths.extend(name + keystr(path) for path, _ in tree_flatten_with_path(kwargs[key])[0])
    return paths


def lasting_names(fun: Callable, tree: Any, n_args: int, fixed: Sequence[Any]) -> Any:
    """The names of the leaves of `tree`, of a call with arguments at the positions `fixed` beside, for a DebugInfo."""

    def names(fun: Callable) -> list[str]:
        args, kwargs = with_marks(tree)
        rest = iter(args)
        whole = [None if i in fixed else next(rest) for i in range(n_args)]
        return leaf_paths(fun, whole, kwargs, [i for i in fixed if isinstance(i, int)])

    return lasting(fun, names)


class Positions:
    """Gives a function's arguments by position; its signature, whose reading takes longer than many a call, is read
    once, at the first one.
    """

    def __init__(self, decorator: str, fun: Callable) -> None:
        self._decorator, self._fun = decorator, fun

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        return signature_of(self._fun)

    @functools.cached_property
    def _count(self) -> int:
        """So many arguments, none by name, are all there are; -1 if this cannot be said."""
        parameters = self._signature.parameters.values() if self._signature else ()
        plain = all([p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters])
        return len(parameters) if self._signature and plain else -1

    def of(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """All arguments, defaults filled in; TypeError for arguments that do not fit or have no position."""
        if len(args) == self._count and not kwargs:
            return args
        name, signature = function_name(self._fun), self._signature
        if signature is None:
            if kwargs:
                raise TypeError(f"{self._decorator}: {name} has no signature, so its arguments cannot be given by name")
            return args
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}{signature}: {error}") from None
        bound.apply_defaults()  # first: what follows a default that was left out has a position after it alone
        # Keyword-only defaults are the function's own: they are not handed on.
        if named := [k for k in bound.kwargs if k in kwargs]:
            raise TypeError(
                f"{self._decorator}: {name} is called with keywords that could not be resolved to positions: "
                f"{', '.join(named)}. Its rules take arguments by position alone, so let none be keyword-only"
            )
        return bound.args


def checked_leaves(transformation: str, what: str, tree: Any, paths: Callable[[], Sequence[str]] | None = None):
    """(leaves, treedef), every leaf an array or tracer (float0 ones stay NumPy's); TypeError naming one that isn't."""
    leaves, treedef = tree_flatten(tree)
    arrays = []
    for i, leaf in enumerate(leaves):
        try:
            if isinstance(leaf, Reference):
                raise TypeError
            if hasattr(leaf, "aval"):
                arrays.append(leaf)
                continue
            aval = typeof(leaf)
        except TypeError:
            path = keystr(tree_flatten_with_path(tree)[0][i][0]) if paths is None else paths()[i]
            raise TypeError(
                f"{transformation}: {f'{what}{path}'.strip()} is {str(leaf)[:80]!r}; its type, {type_shown(leaf)}, is "
                f"not a valid JAX type; {REGISTER}"
            ) from None
        arrays.append(leaf if aval.dtype == dtypes.float0 else hooks.asarray(leaf))
    return arrays, treedef


def as_array(leaf: Any) -> Any:
    """An array for what `typeof` accepts; float0 arrays stay NumPy's."""
    return leaf if hasattr(leaf, "aval") or typeof(leaf).dtype == dtypes.float0 else hooks.asarray(leaf)


def flatten_result(out: Any, fun: Callable, transformation: str) -> tuple[list[Any], Any]:
    """(leaves, treedef) of what `fun` returned; TypeError that names function, line and component otherwise."""
    as_they_are = transformation in ("jit", "make_jaxpr")
    leaves, tree = high.flattened(out, as_they_are=as_they_are) if high.types_of else tree_flatten(out)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Reference):
            if transformation in ("jit", "checkpoint"):  # who stages it says more
                continue
            raise ValueError(
                f"{transformation}: {function_name(fun)} gives back a reference, {leaf.ref_aval}; mutable array "
                "references cannot be returned from what is transformed: return its value, ref[...]"
            )
        if hasattr(leaf, "aval") and not (transformation == "jit" and getattr(leaf, "is_only_a_type", False)):
            continue
        try:
            if hasattr(leaf, "aval"):
                raise TypeError
            typeof(leaf)
        except TypeError:
            path = keystr(tree_flatten_with_path(out)[0][i][0])
            code = getattr(fun, "__code__", None)
            line = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
            raise TypeError(
                f"{transformation}: the result of {function_name(fun)}{line} has {str(leaf)[:80]!r}"
                f"{f' at output component {path}' if path else ''}; its type, {type_shown(leaf)}, is not a valid JAX "
                "type"
            ) from None
    return leaves, tree


# ---- what can be differentiated


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
    """argnums as numbers of `count` positional arguments; TypeError or ValueError without it, TypeError if twice."""
    nums = [int(n) for n in (argnums if isinstance(argnums, (tuple, list)) else (argnums,))]
    negative = any(n < 0 for n in nums)
    highest = max((n if n >= 0 else -n - 1 for n in nums), default=-1)
    if highest >= count:
        # As functions of one index are refused, and as those that look the names of arguments up.
        of_one_index = name.rpartition(".")[2] in ("grad", "value_and_grad")
        raise (TypeError if of_one_index and not negative else ValueError)(
            f"{name}: argnums={argnums} needs at least {highest + 1} positional arguments, the call has {count}; "
            "arguments given by name are not counted"
        )
    nums = [n + count if n < 0 else n for n in nums]
    if len(set(nums)) != len(nums):
        raise TypeError(f"{name}: argnums={argnums} names an argument twice")
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
            raise TypeError(f"{text}\nThe argument is {path}, {typeof(leaf).short()}, of {located(fun)}.")


def _refusal(name, dtype, holomorphic, allow_int) -> str | None:
    """Why inputs of a dtype cannot be differentiated; None if they can."""
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        return f"{name}: holomorphic=True is for functions of complex numbers, but an argument is {dtype}; convert it"
    if dtypes.is_extended(dtype) or dtypes.issubdtype(dtype, np.integer) or dtypes.issubdtype(dtype, np.bool_):
        if not allow_int:
            float0 = "" if name == "jacfwd" else ", or let its gradient be float0 with allow_int=True"
            return (
                f"{name} requires real- or complex-valued inputs, of floating point; {dtype} has no gradient. "
                f"Convert it, or leave it out of argnums{float0}."
            )
    elif name == "jacfwd" and not holomorphic and not dtypes.issubdtype(dtype, np.floating):
        return (
            f"{name} requires real-valued inputs; one is {dtype}. If the function is holomorphic, say "
            "holomorphic=True; else take its derivative along chosen directions with jax.jvp."
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
            raise TypeError(
                f"{name}: holomorphic=True is for functions to complex numbers, but the result is {dtype}; leave it out"
            )
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{name} requires real-valued outputs; the function's is {dtype}. If the function is holomorphic, say "
            "holomorphic=True; else return a real number (jnp.real, jnp.abs), or give cotangents to jax.vjp's function."
        )
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued outputs; the function's is {dtype}, which has no derivative. Convert it to "
            "floating point, return it as auxiliary data (has_aux=True), or take jax.vjp."
        )


def check_jacobian_output(name, out, holomorphic):
    """TypeError unless the result is of a type that has a Jacobian."""
    if holomorphic or name == "jacrev":
        check_output_dtype(name, out, holomorphic)


def check_tangent(name, aval, tangent):
    """TypeError or ValueError unless `tangent` is one of values of the type `aval`."""
    have, want = typeof(tangent), tangent_aval(aval)
    if have.dtype != want.dtype:
        raise TypeError(
            f"{name}: the tangent of a primal of dtype {aval.dtype} must have dtype {want.dtype}, got {have.dtype} "
            "(integers and booleans have float0 tangents, all others those of their own dtype)"
        )
    if have.shape != want.shape:
        raise ValueError(
            f"{name}: different primal and tangent shapes: {aval.shape} and {have.shape}; each tangent has the shape "
            "of its primal"
        )
