"""Stands for jax._src.numpy.vectorize: the parts of it with which quaxed writes its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pullback.numpy._arguments import broadcast_shapes_of
from pullback.numpy._functional import check_outputs, loop_shapes
from pullback.numpy._functional import parse_signature as _parse_gufunc_signature

CoreDims = list[tuple[str, ...]]


def _apply_excluded(
    func: Callable[..., Any], excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """The function of the arguments that are not excluded, and these: the others are as given now."""
    mapped = [k for k in range(len(args)) if k not in excluded]
    named = {k: x for k, x in kwargs.items() if k not in excluded}

    def of_mapped(*given: Any, **given_named: Any) -> Any:
        whole = list(args)
        for k, x in zip(mapped, given, strict=True):
            whole[k] = x
        return func(*whole, **kwargs | given_named)

    return of_mapped, [args[k] for k in mapped], named


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: CoreDims, error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape over which arguments are mapped, and the sizes of core axes; ValueError if they do not fit."""
    if len(args) != len(input_core_dims):
        raise TypeError(f"the signature is of {len(input_core_dims)} arguments, got {len(args)} {error_context}")
    sizes: dict[str, int] = {}
    loops = loop_shapes(args, input_core_dims, sizes, error_context)
    return broadcast_shapes_of("vectorize", loops), sizes


def _check_output_dims(
    func: Callable[..., Any], dim_sizes: dict[str, int], expected_output_core_dims: CoreDims, error_context: str = ""
) -> Callable[..., Any]:
    """The function, whose results are compared with the signature."""
    check = check_outputs(expected_output_core_dims, dim_sizes, error_context)
    return lambda *args: check(func(*args))


__all__ = ["_apply_excluded", "_check_output_dims", "_parse_gufunc_signature", "_parse_input_dimensions"]
