"""Functions of numbers on NumPy arrays, with the bits that they have in programs.

What NumPy computes with other bits, or not at all, has kernels that were compiled ahead (compiler/lower/functions.py,
runtime/programs/ahead.py). Each is made a ufunc of NumPy with one loop: so it works on arrays of any strides, and plans
run its loop (plan_rules.py). Constants of programs are computed so, too.

Measured: the first function of a process takes some milliseconds, each other one 0.2, and nothing is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import ShapedArray
from pullback.core.primitive import NoRule, Primitive, registry
from pullback.lax.elementwise.narrow import is_narrow, work_dtype
from pullback.runtime.programs.ahead import FUNCTIONS, function_ahead, function_name
from pullback.util.switches import switches

NAMES = {"f": "f32", "d": "f64", "F": "c64", "D": "c128"}  # of the types that kernels have, by NumPy's characters


def has_kernel(primitive: str, dtypes: Sequence[Any]) -> bool:
    """Whether a primitive on operands of these types has a kernel."""
    found = FUNCTIONS.get(primitive)
    return (
        found is not None
        and _char(dtypes[0]) in NAMES
        and NAMES[_char(dtypes[0])] in found[1]
        and len(set(dtypes)) == 1
    )


def _char(dtype: Any) -> str:
    return getattr(dtype, "char", "")


def kernel_of(primitive: str, dtype: np.dtype) -> tuple[int, Any]:
    """(address, what keeps it) of the kernel of a function of operands of a type."""
    return _kernel(primitive, dtype.char, switches.cpu)


@functools.cache
def _kernel(primitive: str, char: str, cpu: str) -> tuple[int, Any]:
    name = function_name(primitive, NAMES[char])
    loaded = function_ahead(name)
    if loaded is None:
        from pullback.runtime.programs.kernels import function_kernel_address  # with all that compiling takes

        loaded = function_kernel_address(name)
    return loaded


def ufunc_of(primitive: str, dtype: np.dtype) -> np.ufunc:
    """The kernel of a function of operands of a type as a ufunc."""
    return _ufunc(primitive, dtype.char, switches.cpu)


@functools.cache
def _ufunc(primitive: str, char: str, cpu: str) -> np.ufunc:
    address, owner = _kernel(primitive, char, cpu)
    operands = [np.dtype(char)] * FUNCTIONS[primitive][0]
    result = registry[primitive].rule("abstract_eval")(*[ShapedArray((), dtype) for dtype in operands]).dtype
    return _core.function_of_kernel(primitive, address, (*operands, result), owner)


def elementwise(name: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The primitive of a name on arrays of a type that it has a kernel for, which are broadcast to each other."""
    with np.errstate(all="ignore"):
        return np.asarray(ufunc_of(name, operands[0].dtype)(*operands))


def reference_of(primitive: Primitive, avals: Sequence[Any]) -> Callable[..., Any] | NoRule:
    """What gives a primitive's results on NumPy arrays of these types outside of programs: with the bits of programs
    where kernels have them, else the primitive's reference."""
    name, dtypes = primitive.name, [aval.dtype for aval in avals]
    if name == "integer_pow" and _char(dtypes[0]) in NAMES:
        return _integer_power
    if has_kernel(name, dtypes):
        return _on_arrays(name)
    if name in FUNCTIONS and FUNCTIONS[name][1][0] in ("f32", "f64") and len(set(dtypes)) == 1:
        return _on_others(name)
    return primitive.reference


@functools.cache
def _on_arrays(name: str) -> Callable[..., np.ndarray]:
    def reference(*operands: np.ndarray, **_params: Any) -> np.ndarray:
        return elementwise(name, operands)

    return reference


@functools.cache
def _on_others(name: str) -> Callable[..., np.ndarray]:
    """Of real types that have no kernel: by the one that there is, and rounded to float32, as programs do."""
    wide = np.float32 if "f32" in FUNCTIONS[name][1] else np.float64

    def reference(*operands: np.ndarray, **_params: Any) -> np.ndarray:
        dtype = operands[0].dtype
        found = elementwise(name, [x.astype(wide) for x in operands]).astype(np.float32)
        return found.astype(work_dtype(dtype) if is_narrow(dtype) else dtype, copy=False).astype(dtype, copy=False)

    return reference


def power_steps(x: Any, y: int, times: Callable[[Any, Any], Any], over: Callable[[Any], Any], is_complex: bool) -> Any:
    """x ** y for y other than 0 in the steps of compiled code (loops/math/power.py); over(x) is 1 / x."""
    if y < 0 and is_complex:
        return power_steps(over(x), -y, times, over, is_complex)
    power, square, n = None, x, abs(y)
    while True:
        if n & 1:
            power = square if power is None else times(power, square)
        n >>= 1
        if not n:
            break
        square = times(square, square)
    return power if y > 0 else over(power)


def _integer_power(x: np.ndarray, y: int) -> np.ndarray:
    one = np.ones_like(x)
    if y == 0:
        return one
    if y == 2:  # its own operation in programs
        return np.asarray(registry["square"].reference(x))
    if x.dtype.kind == "c":
        times, by = _on_arrays("mul"), _on_arrays("div")
        return power_steps(x, y, times, lambda value: by(one, value), True)
    return np.asarray(power_steps(x, y, np.multiply, lambda value: np.divide(one, value), False))


__all__ = ["elementwise", "has_kernel", "kernel_of", "power_steps", "reference_of", "ufunc_of"]
