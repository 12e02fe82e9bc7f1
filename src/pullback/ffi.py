"""Foreign functions: C and C++ functions that compiled programs call by pointer, by XLA's binary interface.

What was built against XLA's headers runs as it is. `include_dir()` has headers of the same names for new ones.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback._ext import _core
from pullback.core import ShapedArray, typeof
from pullback.core.explain import explain_all as _explain_all
from pullback.lax.control.callback import VMAP_METHODS, as_operand
from pullback.lax.control.foreign import ORIGINAL, TYPED, ffi_call_p, hashable_attributes, layout_of
from pullback.lax.movement.shape import transpose
from pullback.manual import add_pages as _add_pages
from pullback.manual.ffi import PAGES as _PAGES
from pullback.util import dtypes
from pullback.util.absent import absent_names, listed
from pullback.util.errors import JaxRuntimeError
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary

_STAGES = ("instantiate", "prepare", "initialize", "execute")
_CAPSULE = b"xla._CUSTOM_CALL_TARGET"


def include_dir() -> str:
    """The folder to compile against: it holds `xla/ffi/api/c_api.h` and `xla/ffi/api/ffi.h`."""
    return os.fspath(Path(__file__).parent / "include")


def pycapsule(funcptr: Any) -> Any:
    """A PyCapsule around a function of ctypes, or of a compiler that gives its address as an integer."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    kinds = (int, ctypes.c_void_p, ctypes._CFuncPtr, ctypes._Pointer)  # type: ignore[attr-defined]
    if not isinstance(funcptr, kinds) or isinstance(funcptr, bool):
        raise TypeError(f"pycapsule: argument 'funcptr' must be a function of ctypes or an address, got {funcptr!r}")
    return make(ctypes.cast(funcptr, ctypes.c_void_p), _CAPSULE, None)


def _address(function: str, argument: str, capsule: Any) -> int:
    """Where a capsule of any name points to."""
    if type(capsule).__name__ != "PyCapsule":
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: {function}: argument '{argument}' must be a PyCapsule (see jax.ffi.pycapsule), got "
            f"{capsule!r}"
        )
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(capsule, name(capsule)))


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Make a C function callable by name from programs."""
    if kwargs:
        raise TypeError(f"register_ffi_target: unexpected keyword arguments {', '.join(map(repr, kwargs))}")
    if api_version not in (0, 1):
        raise JaxRuntimeError(f"INVALID_ARGUMENT: register_ffi_target: api_version must be 0 or 1, got {api_version!r}")
    if not isinstance(name, str):
        raise TypeError(f"register_ffi_target: argument 'name' must be a string, got {name!r}")
    stages = fn if isinstance(fn, Mapping) else {"execute": fn}
    wrong = [stage for stage in stages if stage not in _STAGES]
    if wrong:
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: register_ffi_target: '{wrong[0]}' is no stage; there are {', '.join(_STAGES)}"
        )
    addresses = [_address("register_ffi_target", "fn", stages[s]) if s in stages else 0 for s in _STAGES]
    if platform.lower() in ("cpu", "host"):
        _core.register_foreign(name, tuple(addresses), api_version == 0)  # type: ignore[arg-type]


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register a type of the states that handlers keep, by name; an id of 0 is replaced by a new one."""
    if platform.lower() not in ("cpu", "host"):
        return
    missing = {"type_id"} - set(type_registration)
    unknown = set(type_registration) - {"type_id", "type_info"}
    if missing or unknown:
        raise ValueError(
            "register_ffi_type: argument 'type_registration' must have 'type_id' and may have 'type_info', got "
            f"{sorted(type_registration)}"
        )
    capsules = {k: _address("register_ffi_type", k, v) for k, v in type_registration.items()}
    _core.register_foreign_type(name, capsules["type_id"], capsules.get("type_info", 0))


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register the id of a type of states, a PyCapsule of an XLA_FFI_TypeId; see `register_ffi_type`."""
    register_ffi_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that a function may be called for parts of a batch; here a call is never divided, so this changes nothing."""
    if not isinstance(name, str):
        raise TypeError(f"register_ffi_target_as_batch_partitionable: 'name' must be a string, got {name!r}")


def _aval(spec: Any, position: int) -> ShapedArray:
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise ValueError(
            "ffi_call: argument 'result_shape_dtypes' must be a type of arrays, such as jax.ShapeDtypeStruct, or a "
            f"list of them: what has a 'shape' and a 'dtype'. Got {spec!r} at position {position}"
        )
    # A function fills what it was built for: 64 bits stay 64 bits.
    return ShapedArray(tuple(spec.shape), dtypes.as_dtype(spec.dtype))


def _layouts(name: str, layouts: Any, ranks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    if layouts is None:
        layouts = [None] * len(ranks)
    return tuple(layout_of(name, layout, rank) for layout, rank in zip(layouts, ranks, strict=True))


def _aliases(given: Mapping[int, int] | None, avals: Sequence[Any], results: Sequence[Any]) -> tuple:
    for k, o in (given or {}).items():
        text = f"ffi_call: input_output_aliases has {k}: {o}, but"
        if not 0 <= k < len(avals):
            raise ValueError(f"{text} input {k} is outside the range [0, {len(avals)})")
        if not 0 <= o < len(results):
            raise ValueError(f"{text} output {o} is outside the range [0, {len(results)})")
        if (avals[k].shape, avals[k].dtype) != (results[o].shape, results[o].dtype):
            raise ValueError(
                f"{text} they cannot share memory: the input is of type {avals[k]}, the output of {results[o]}"
            )
    return tuple((given or {}).items())


def _in_memory(x: Any, layout: tuple[int, ...]) -> Any:
    """x with its axes in the order of memory."""
    order = tuple(reversed(layout))
    return x if order == tuple(range(len(order))) else transpose(x, order)


def _from_memory(x: Any, layout: tuple[int, ...]) -> Any:
    order = tuple(reversed(layout))
    return x if order == tuple(range(len(order))) else transpose(x, tuple(map(order.index, range(len(order)))))


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = TYPED,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function of arrays, and of attributes by keyword, that calls a registered C function when the program runs.

    The function sees each array in the shape that the program gives it, whatever its layout is.
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))}, but got: {vmap_method}")
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: argument 'target_name' must be a string, got {target_name!r}")
    if custom_call_api_version not in (ORIGINAL, TYPED):
        raise NotImplementedError(
            f"ffi_call: custom_call_api_version is {ORIGINAL} (plain C functions) or {TYPED} (XLA's typed interface); "
            f"versions with a status object need XLA itself; got {custom_call_api_version!r}"
        )
    if legacy_backend_config is not None:
        if custom_call_api_version >= TYPED:
            raise ValueError(
                "ffi_call: legacy_backend_config is not for functions of the typed interface, "
                f"custom_call_api_version={custom_call_api_version}; pass attributes by keyword"
            )
        raise NotImplementedError("ffi_call: plain C functions get no legacy_backend_config")
    many = isinstance(result_shape_dtypes, (list, tuple))
    specs = result_shape_dtypes if many else [result_shape_dtypes]
    results = [_aval(spec, k) for k, spec in enumerate(specs)]
    if many and output_layouts is not None and len(output_layouts) != len(results):
        raise ValueError(f"ffi_call: output_layouts has {len(output_layouts)} entries for {len(results)} results")
    given_out = output_layouts if many or output_layouts is None else [output_layouts]
    out_layouts = _layouts("output layout", given_out, [len(a.shape) for a in results])
    held = tuple(a.update(shape=tuple(a.shape[i] for i in reversed(o))) for a, o in zip(results, out_layouts))

    @api_boundary
    def wrapped(*args: Any, **attributes: Any) -> Any:
        if attributes and custom_call_api_version < TYPED:
            raise ValueError(
                f"ffi_call: functions of custom_call_api_version={custom_call_api_version} take no attributes, got "
                f"{sorted(attributes)}; versions from {TYPED} do"
            )
        avals = [typeof(x) for x in args]
        if input_layouts is not None and len(input_layouts) != len(args):
            raise ValueError(f"ffi_call: input_layouts has {len(input_layouts)} entries for {len(args)} arguments")
        in_layouts = _layouts("input layout", input_layouts, [len(a.shape) for a in avals])
        outs = ffi_call_p.bind(
            *[_in_memory(as_operand(x), layout) for x, layout in zip(args, in_layouts)],
            attributes=hashable_attributes(attributes),
            custom_call_api_version=custom_call_api_version,
            has_side_effect=bool(has_side_effect),
            input_layouts=in_layouts,
            input_output_aliases=_aliases(input_output_aliases, avals, results),
            legacy_backend_config=legacy_backend_config,
            output_layouts=out_layouts,
            result_avals=held,
            target_name=target_name,
            vmap_method=vmap_method,
        )
        outs = [_from_memory(x, layout) for x, layout in zip(outs, out_layouts)]
        return type(result_shape_dtypes)(outs) if many else outs[0]

    return wrapped


@frozen_record
class ForeignLowering:
    """A lowering rule: a registered function gets a primitive's operands, and its parameters as attributes."""

    target_name: str
    operand_layouts: Sequence[Any] | None = None
    result_layouts: Sequence[Any] | None = None

    def __call__(self, ctx: Any, *args: Any, **attributes: Any) -> list[Any]:
        """The results, of the types that `ctx.avals_out` says."""
        outs = self.result_layouts and [None if x is None else tuple(reversed(x)) for x in self.result_layouts]
        ins = self.operand_layouts and [None if x is None else tuple(reversed(x)) for x in self.operand_layouts]
        call = ffi_call(self.target_name, list(ctx.avals_out), input_layouts=ins, output_layouts=outs)
        return call(*args, **attributes)


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> ForeignLowering:
    """The lowering rule, for `mlir.register_lowering`, of a primitive that a registered C function computes.

    The function gets the primitive's parameters as attributes.
    """
    if backend_config is not None or skip_ffi_layout_processing or lowering_args:
        raise NotImplementedError(
            "ffi_lowering: 'backend_config', 'skip_ffi_layout_processing' and arguments of mlir.custom_call need MLIR, "
            "which is not here; give attributes as parameters of the primitive"
        )
    return ForeignLowering(call_target_name, operand_layouts, result_layouts)


__getattr__ = absent_names(__name__)

__all__ = [
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
