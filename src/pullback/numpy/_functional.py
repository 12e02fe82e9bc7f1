"""Functions that apply functions: vectorize, apply_along_axis, apply_over_axes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from pullback import lax
from pullback.api.vmap import vmap
from pullback.core.explain import check
from pullback.core.kinds import FUNCTION, TEXT, optional
from pullback.numpy._arguments import arrays, as_array, broadcast_shapes_of, canonical_axis, check_rank_promotion
from pullback.numpy._creation import asarray
from pullback.util.pytree import tree_map
from pullback.util.tracebacks import api_boundary

# ---- signatures of generalized ufuncs: "(m,n),(n)->(m)"

_NAME = r"\w+"
_CORE = rf"\(\s*(?:{_NAME}(?:\s*,\s*{_NAME})*\s*)?\)"
_CORES = rf"{_CORE}(?:\s*,\s*{_CORE})*"
_SIGNATURE = re.compile(rf"\s*{_CORES}\s*->\s*{_CORES}\s*")

CoreDims = list[tuple[str, ...]]


def parse_signature(signature: str) -> tuple[CoreDims, CoreDims]:
    """Names of the core axes of each input and of each output; ValueError if the text is no signature."""
    if not _SIGNATURE.fullmatch(signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    inputs, outputs = signature.split("->")
    return _core_dims(inputs), _core_dims(outputs)


def _core_dims(text: str) -> CoreDims:
    return [tuple(re.findall(_NAME, group)) for group in re.findall(_CORE, text)]


def _match_core(shape: tuple[int, ...], core: tuple[str, ...], sizes: dict[str, int], context: str) -> None:
    for name, length in zip(core, shape):
        if sizes.setdefault(name, length) != length:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {length} vs {sizes[name]} {context}")


def loop_shapes(args: Sequence[Any], cores: CoreDims, sizes: dict[str, int], context: str) -> list[tuple[int, ...]]:
    """What is in front of each argument's core axes; fills in the sizes of the core axes."""
    loops = []
    for position, (x, core) in enumerate(zip(args, cores)):
        split = x.ndim - len(core)
        if split < 0:
            raise ValueError(
                f"argument {position}, of shape {x.shape}, does not have enough dimensions: its core is {core} "
                f"{context}"
            )
        _match_core(x.shape[split:], core, sizes, context)
        loops.append(x.shape[:split])
    return loops


def check_outputs(outputs: CoreDims, sizes: dict[str, int], context: str) -> Callable[[Any], Any]:
    """Function that hands on what the vectorized function returns, if it is as the signature says."""

    def check(result: Any) -> Any:
        if len(outputs) == 1:
            if isinstance(result, tuple):
                raise TypeError(f"wrong number of output arguments: expected 1, got {len(result)} {context}")
            results: tuple[Any, ...] = (result,)
        elif not isinstance(result, tuple):
            raise TypeError(f"expected a tuple of {len(outputs)} results, got {result} {context}")
        else:
            results = result
        if len(results) != len(outputs):
            raise TypeError(f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} {context}")
        known = dict(sizes)
        for value, core in zip(results, outputs):
            # Objects that are trees of arrays and have a shape are mapped as such: dynamiqs' states.
            shape = tuple(value.shape) if hasattr(value, "shape") else as_array(value).shape
            if len(shape) != len(core):
                raise ValueError(f"output shape {shape} does not match core dimensions {core} {context}")
            _match_core(shape, core, known, context)
        return result

    return check


# ---- vectorize


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """A function that maps `pyfunc`, written for single elements, over arrays with broadcasting.

    Args:
      pyfunc: function of arrays of rank 0, or of the ranks that the signature gives.
      excluded: positions and names of arguments that are passed on as they are; None always is.
      signature: core axes of inputs and outputs, as "(n),(n)->()"; without it all inputs have rank 0.

    The leading axes of the arguments are broadcast against each other and mapped by `vmap`, one axis at a time; an
    argument of length 1 along an axis is not mapped over it. Keyword arguments are mapped as positional ones.
    Raises ValueError for a signature that is none or that arguments or results contradict, TypeError for a wrong number
    of arguments or results.
    """
    check("vectorize", FUNCTION, pyfunc=pyfunc)
    check("vectorize", optional(TEXT), signature=signature)
    if not isinstance(excluded, Collection) or isinstance(excluded, (str, dict)) or len({*excluded}) != len(excluded):
        raise TypeError(f"vectorize: argument 'excluded' must be a set of integers or names, got {excluded!r}")
    kept = frozenset(excluded)
    if any(not isinstance(e, (str, int)) for e in kept):
        raise TypeError(f"vectorize: argument 'excluded' names arguments by number or keyword, got {set(kept)}")
    if any(isinstance(e, int) and e < 0 for e in kept):
        raise ValueError(f"excluded={set(kept)} contains negative numbers")
    parsed = None if signature is None else parse_signature(signature)
    context = f"(vectorize with signature={signature!r} and excluded={set(kept)})"

    @functools.wraps(pyfunc)
    @api_boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        mapped: list[int | str] = [k for k, x in enumerate(args) if x is not None and k not in kept]
        mapped += [k for k, x in kwargs.items() if x is not None and k not in kept]
        values = [asarray(args[k] if isinstance(k, int) else kwargs[k]) for k in mapped]

        def element(*elements: Any) -> Any:
            positional, named = list(args), dict(kwargs)
            for k, x in zip(mapped, elements):
                if isinstance(k, int):
                    positional[k] = x
                else:
                    named[k] = x
            return pyfunc(*positional, **named)

        if parsed is None:
            return _map_over_loops(element, values, [x.shape for x in values])
        inputs, outputs = parsed
        if len(values) != len(inputs):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(inputs)}, got {len(values)} {context}"
            )
        sizes: dict[str, int] = {}
        loops = loop_shapes(values, inputs, sizes, context)
        check = check_outputs(outputs, sizes, context)
        return _map_over_loops(lambda *elements: check(element(*elements)), values, loops)

    return vectorized


def _map_over_loops(function: Callable[..., Any], values: list[Any], loops: list[tuple[int, ...]]) -> Any:
    """The function mapped over the broadcast of the loop shapes, which are the leading axes of the values."""
    shapes = [x.shape for x in values]
    check_rank_promotion("vectorize", shapes, [len(s) - len(loop) for s, loop in zip(shapes, loops)])
    shape = broadcast_shapes_of("vectorize", loops)
    rank = len(shape)
    mapped_axes = []
    squeezed = []
    for x, loop in zip(values, loops):
        offset = rank - len(loop)
        ones = tuple(k for k, n in enumerate(loop) if n == 1)
        squeezed.append(lax.squeeze(x, ones) if ones else x)
        mapped_axes.append({offset + k for k, n in enumerate(loop) if n != 1})
    # From the last axis to the first: the innermost vmap sees the values after the outer ones took their axes away.
    for axis in range(rank - 1, -1, -1):
        if shape[axis] != 1:
            function = vmap(function, in_axes=tuple(0 if axis in axes else None for axes in mapped_axes))
    result = function(*squeezed)
    missing = tuple(k for k, n in enumerate(shape) if n == 1)
    return tree_map(lambda y: lax.expand_dims(as_array(y), missing), result) if missing else result


# ---- along axes


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """func1d(vector, *args, **kwargs) of all vectors of arr along an axis, whose place the results' axes take."""
    (arr,) = arrays("apply_along_axis", arr)
    axis = canonical_axis("apply_along_axis", axis, arr.ndim)

    def function(x: Any) -> Any:
        return func1d(x, *args, **kwargs)

    for k in range(arr.ndim - axis - 1):
        function = vmap(function, in_axes=k + 1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Sequence[int]) -> Any:
    """func(a, axis), for one axis after the other; an axis that it takes away is put back with length 1.

    Raises ValueError if the result has neither a's rank nor one less.
    """
    (result,) = arrays("apply_over_axes", a)
    for axis in axes:
        rank = result.ndim
        place = canonical_axis("apply_over_axes", axis, rank, "axes")
        result = as_array(func(result, place))
        if result.ndim == rank - 1:
            result = lax.expand_dims(result, (place,))
        elif result.ndim != rank:
            raise ValueError(
                f"apply_over_axes: func returned an array of rank {result.ndim}, expected {rank} (the axis kept, of "
                f"length 1) or {rank - 1}"
            )
    return result
