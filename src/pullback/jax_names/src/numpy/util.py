"""Stands for jax._src.numpy.util: operands of functions checked (vbjax) and brought to one dtype (orthax, s2fft)."""

from collections.abc import Callable
from typing import Any

from pullback.jax_names.src import names_of, types
from pullback.numpy._arguments import (
    align_ranks,
    as_array,
    check_arraylike,
    check_no_float0,
    convert,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    to_complex_dtype,
)
from pullback.util import dtypes

check_no_float0s = check_no_float0

__getattr__ = names_of(__name__, types)

__all__ = [
    "check_arraylike", "check_no_float0s", "ensure_arraylike", "promote_args", "promote_args_complex",
    "promote_args_inexact", "promote_args_numeric", "promote_dtypes", "promote_dtypes_complex",
    "promote_dtypes_inexact",
    "promote_dtypes_numeric", "promote_shapes",
]  # fmt: skip


def ensure_arraylike(fun_name: str, *args: Any) -> Any:
    """The operands of a function of that name as arrays, checked: a tuple, or the array where there is one."""
    check_arraylike(fun_name, *args)
    found = tuple(as_array(x) for x in args)
    return found[0] if len(found) == 1 else found


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """As promote_dtypes; all other numbers become complex ones of as many bits in each part."""
    dtype, weak = dtypes.lattice_result_type(*args)
    return [convert(x, to_complex_dtype(dtypes.to_inexact_dtype(dtype)), weak) for x in args]


def promote_shapes(fun_name: str, *args: Any) -> list[Any]:
    """Arrays with as many axes as the one that has most, the new ones first and of length 1; scalars as they are."""
    return align_ranks(fun_name, list(args)) if args else []


def _promoted(fun_name: str, args: Any, promote: Callable[..., list[Any]]) -> list[Any]:
    check_arraylike(fun_name, *args)
    check_no_float0(fun_name, *args)
    return promote_shapes(fun_name, *promote(*args))


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """The operands of a function of that name, checked, with one dtype and as many axes each."""
    return _promoted(fun_name, args, promote_dtypes)


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """As promote_args; integers and bools become floats."""
    return _promoted(fun_name, args, promote_dtypes_inexact)


def promote_args_numeric(fun_name: str, *args: Any) -> list[Any]:
    """As promote_args; bools become integers."""
    return _promoted(fun_name, args, promote_dtypes_numeric)


def promote_args_complex(fun_name: str, *args: Any) -> list[Any]:
    """As promote_args; all become complex."""
    return _promoted(fun_name, args, promote_dtypes_complex)
