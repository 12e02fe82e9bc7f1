"""Functions of functions: vectorize, apply_along_axis, apply_over_axes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.api import vmap
from pullback.numpy._arguments import arrays, as_array, broadcast_shapes_of, canonical_axis, check_arraylike
from pullback.numpy._creation import asarray
from pullback.numpy._shape import expand_dims

# '(n,m),(m)->(n)' after blanks are removed.
_NAME = r"\w+"
_TERM = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_TERMS = rf"{_TERM}(?:,{_TERM})*"
_SIGNATURE = re.compile(rf"^{_TERMS}->{_TERMS}$")


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(text):
        raise ValueError(f"not a valid gufunc signature: {signature!r}")
    left, right = text.split("->")

    def terms(part: str) -> list[tuple[str, ...]]:
        return [tuple(re.findall(_NAME, term)) for term in re.findall(_TERM, part)]

    return terms(left), terms(right)


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[Any] = frozenset(), signature: str | None = None
) -> Any:
    """The function applied to all elements (or to all blocks of the core dimensions in the signature), with broadcasting.

    `excluded` names arguments (by position or keyword) that are passed on as they are. Raises TypeError or ValueError if
    arguments or results do not fit the signature.
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    parsed = None if signature is None else _parse(signature)
    where = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        function, mapped = _without_excluded(pyfunc, excluded, args, kwargs)
        check_arraylike("vectorize", *mapped)
        values = [as_array(x) for x in mapped]
        if parsed is None:
            core_inputs: list[tuple[str, ...]] = [()] * len(values)
            core_outputs = None
        else:
            core_inputs, core_outputs = parsed
        if len(values) != len(core_inputs):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(core_inputs)}, got {len(values)} {where}"
            )
        sizes: dict[str, int] = {}
        lead_shapes = []
        for x, names in zip(values, core_inputs):
            lead_shapes.append(_check_core(x.shape, names, sizes, where))
        lead = broadcast_shapes_of("vectorize", lead_shapes)
        checked = _checking(function, core_outputs, sizes, where)
        # Axes of length 1 that are broadcast are not mapped: each level of vmap goes over what has that axis.
        squeezed, has_axis = [], []
        for x, shape in zip(values, lead_shapes):
            pads = len(lead) - len(shape)
            dropped = tuple(k for k, n in enumerate(shape) if n == 1 and lead[k + pads] != 1)
            squeezed.append(lax.squeeze(x, dropped) if dropped else x)
            has_axis.append([k >= pads and (k - pads) not in dropped for k in range(len(lead))])
        for k in reversed(range(len(lead))):
            in_axes = tuple(0 if flags[k] else None for flags in has_axis)
            if all(axis is None for axis in in_axes):
                checked = _repeated(checked, lead[k])
            else:
                checked = vmap(checked, in_axes=in_axes)
        return checked(*squeezed)

    return wrapped


def _without_excluded(function: Any, excluded: Collection[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """(function of the arguments that are mapped, these arguments); keyword arguments that are not excluded are mapped, too."""
    fixed_args = {k: v for k, v in enumerate(args) if k in excluded}
    fixed_kwargs = {k: v for k, v in kwargs.items() if k in excluded}
    mapped_kwargs = {k: v for k, v in kwargs.items() if k not in excluded}
    free = [k for k in range(len(args)) if k not in fixed_args]
    names = list(mapped_kwargs)

    def inner(*values: Any) -> Any:
        positional: list[Any] = [None] * len(args)
        for k, v in fixed_args.items():
            positional[k] = v
        for k, v in zip(free, values):
            positional[k] = v
        return function(*positional, **fixed_kwargs, **dict(zip(names, values[len(free) :])))

    return inner, [args[k] for k in free] + [mapped_kwargs[n] for n in names]


def _check_core(shape: tuple[int, ...], names: tuple[str, ...], sizes: dict[str, int], where: str) -> tuple[int, ...]:
    """The shape without its core dimensions, whose sizes are noted and compared."""
    if len(shape) < len(names):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions {names} {where}"
        )
    core = shape[len(shape) - len(names) :]
    for name, n in zip(names, core):
        if name.isdigit() and int(name) != n:
            raise ValueError(f"core dimension {name} has size {n} {where}")
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} {where}")
    return shape[: len(shape) - len(names)]


def _checking(function: Any, outputs: Any, sizes: dict[str, int], where: str) -> Any:
    def checked(*values: Any) -> Any:
        result = function(*values)
        if outputs is None:
            return result
        if len(outputs) == 1:
            results = [result]
        else:
            if not isinstance(result, tuple):
                raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {result!r}\n{where}")
            if len(result) != len(outputs):
                raise TypeError(f"wrong number of output arguments: expected {len(outputs)}, got {len(result)} {where}")
            results = list(result)
        known = dict(sizes)
        for x, names in zip(results, outputs):
            if np.ndim(x) != len(names):
                raise ValueError(f"output shape {np.shape(x)} does not match core dimensions {names} {where}")
            _check_core(np.shape(x), names, known, where)
        return result

    return checked


def _repeated(function: Any, size: int) -> Any:
    """The function with its results repeated along a new first axis, along which no argument varies."""

    def repeated(*values: Any) -> Any:
        return vmap(lambda _, *inner: function(*inner), in_axes=(0, *(None for _ in values)))(
            lax.iota(np.dtype(np.int32), size), *values
        )

    return repeated


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """The function of a vector applied to each vector along an axis; what it returns takes the place of the axis."""
    (arr,) = arrays("apply_along_axis", arr)
    rank = arr.ndim
    axis = canonical_axis("apply_along_axis", axis, rank)

    def function(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    for k in range(1, rank - axis):
        function = vmap(function, in_axes=k, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Sequence[int]) -> Any:
    """The function applied along one axis after the other; axes that it removes are put back at length 1.

    Raises ValueError if the rank of a result is neither that of its argument nor one less.
    """
    a = asarray(a)
    for axis in [axes] if isinstance(axes, int) else list(axes):
        axis = canonical_axis("apply_over_axes", axis, a.ndim)
        result = func(a, axis)
        if result.ndim == a.ndim:
            a = result
        elif result.ndim == a.ndim - 1:
            a = expand_dims(result, axis)
        else:
            raise ValueError("function is not returning an array of the correct shape")
    return a
