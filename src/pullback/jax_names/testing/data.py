"""Random arrays for tests by shape and dtype, and how close results of a dtype should be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pullback.jax_names.src.public_test_util import _tolerance
from pullback.util import dtypes as types
from pullback.util.config import config

Maker = Callable[..., Any]


class ScalarShape:
    """The shape of a number that is no array: like (), and says which kind of number is meant."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: Any) -> Any:
        raise IndexError("a scalar has no dimensions")

    def __iter__(self) -> Iterator[int]:
        return iter(())


class _NumpyScalar(ScalarShape):
    pass


class _PythonScalar(ScalarShape):
    pass


NUMPY_SCALAR_SHAPE = _NumpyScalar()
PYTHON_SCALAR_SHAPE = _PythonScalar()

_NAMES = (
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16", "float16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


def dtype_str(dtype: Any) -> str:
    """The name of a dtype."""
    return "None" if dtype is None else np.dtype(dtype).name


def format_shape_dtype_string(shape: Any, dtype: Any) -> str:
    """As `float32[2,3]`; `float32` for a NumPy scalar and `pyfloat32` for a Python number."""
    if isinstance(shape, _NumpyScalar):
        return dtype_str(dtype)
    if isinstance(shape, _PythonScalar):
        return "py" + dtype_str(dtype)
    if isinstance(shape, (list, tuple)):
        return f"{dtype_str(dtype)}[{','.join(str(size) for size in shape)}]"
    if isinstance(shape, int):
        return f"{dtype_str(dtype)}[{shape},]"
    raise TypeError(f"format_shape_dtype_string: a shape is a sequence of sizes, got {shape!r}")


def is_valid_shape(shape: Any, dtype: Any) -> bool:
    """Whether values of the dtype come in this shape: Python has no numbers of most dtypes."""
    return not isinstance(shape, _PythonScalar) or np.dtype(dtype).name in ("bool", "int64", "float64", "complex128")


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _shaped(values: Any, shape: Any, dtype: Any) -> Any:
    """The values with a dtype, as the kind of number or array that the shape asks for."""
    dtype = np.dtype(dtype)
    if isinstance(shape, _PythonScalar):
        kind = {"b": bool, "i": int, "u": int, "c": complex}.get(dtype.kind, float)
        return kind(np.asarray(values).astype(dtype)[()])
    if isinstance(shape, _NumpyScalar):
        return dtype.type(np.asarray(values).astype(dtype)[()])
    return np.asarray(values).astype(dtype).reshape(_sizes(shape))


def _is_complex(dtype: Any) -> bool:
    return np.dtype(dtype).kind == "c"


def _is_a(dtype: Any, kind: Any) -> bool:
    return types.issubdtype(dtype, kind)


def _filled(draw: Callable[..., Any], shape: Any, dtype: Any, after: Callable[[Any], Any] = lambda x: x) -> Any:
    """`after` of values `draw(*sizes)`, with a dtype; complex ones have two parts, unsigned ones no sign."""
    sizes = _sizes(shape)
    values = np.asarray(draw(*sizes))
    if _is_complex(dtype):
        values = values + 1j * np.asarray(draw(*sizes))
    if _is_a(dtype, np.unsignedinteger):
        values = np.abs(values)
    return _shaped(after(values), shape, dtype)


def rand_default(rng: Any, scale: float = 3) -> Maker:
    """Normal numbers of deviation `scale`."""
    return functools.partial(_filled, lambda *sizes: scale * rng.randn(*sizes))


def rand_nonzero(rng: Any) -> Maker:
    """Normal numbers of deviation 3, with 1 for those that are zero in the dtype."""

    def make(shape: Any, dtype: Any) -> Any:
        values = np.asarray(rand_default(rng)(_sizes(shape), dtype))
        return _shaped(np.where(values == 0, np.array(1, values.dtype), values), shape, dtype)

    return make


def rand_positive(rng: Any) -> Maker:
    """Numbers from 1 to 3; 1 and 2 of integers."""
    return functools.partial(_filled, lambda *sizes: 2 * rng.rand(*sizes), after=lambda x: x + 1)


def rand_small(rng: Any) -> Maker:
    """Normal numbers of deviation 0.001."""
    return rand_default(rng, scale=1e-3)


def rand_not_small(rng: Any, offset: float = 10.0) -> Maker:
    """Normal numbers of deviation 3 that are moved away from zero by `offset`."""
    return functools.partial(
        _filled, lambda *sizes: 3 * rng.randn(*sizes), after=lambda x: x + np.where(x > 0, offset, -offset)
    )


def rand_small_positive(rng: Any) -> Maker:
    """Numbers from 0 to 2e-5."""
    return functools.partial(_filled, lambda *sizes: 2e-5 * rng.rand(*sizes))


def rand_uniform(rng: Any, low: float = 0.0, high: float = 1.0) -> Maker:
    """Numbers from `low` to `high`, none of them `high`."""
    return functools.partial(_filled, lambda *sizes: low + (high - low) * rng.rand(*sizes))


def rand_some_equal(rng: Any) -> Maker:
    """Normal numbers of deviation 100, of which every other one has the value of one of them."""

    def after(values: Any) -> Any:
        chosen = rng.rand(*np.shape(values)) < 0.5
        return np.where(chosen, values.ravel()[0] if values.size else 0.0, values)

    return functools.partial(_filled, lambda *sizes: 100 * rng.randn(*sizes), after=after)


def _with_special(rng: Any, special: tuple[float, ...], share: float, kind: Any = np.floating) -> Maker:
    """Normal numbers of deviation 3, of which this share is each of some values where the dtype is of this kind."""
    base = rand_default(rng)

    def make(shape: Any, dtype: Any) -> Any:
        if not _is_a(dtype, kind):
            return base(shape, dtype)
        sizes = _sizes(shape)
        values = np.asarray(base(sizes, dtype))
        for value in special:
            both = complex(value, value) if _is_complex(dtype) else value
            values = np.where(rng.rand(*sizes) < share, np.array(both, values.dtype), values)
        return _shaped(values, shape, dtype)

    return make


def rand_some_inf(rng: Any) -> Maker:
    """Normal numbers, some of the real ones infinite."""
    return _with_special(rng, (np.inf, -np.inf), 0.1)


def rand_some_nan(rng: Any) -> Maker:
    """Normal numbers, some of them NaN: of complex ones both parts."""
    return _with_special(rng, (np.nan, -np.nan), 0.05, np.inexact)


def rand_some_inf_and_nan(rng: Any) -> Maker:
    """Normal numbers, some of the real ones infinite and some NaN."""
    return _with_special(rng, (np.inf, -np.inf, np.nan, -np.nan), 0.1)


def rand_some_zero(rng: Any) -> Maker:
    """Normal numbers, half of them zero."""

    def make(shape: Any, dtype: Any) -> Any:
        sizes = _sizes(shape)
        values = np.asarray(rand_default(rng)(sizes, dtype))
        return _shaped(np.where(rng.rand(*sizes) < 0.5, np.array(0, values.dtype), values), shape, dtype)

    return make


def rand_int(rng: Any, low: int = 0, high: int | None = None) -> Maker:
    """Integers from `low` to below `high`, by default below the dtype's largest one."""

    def make(shape: Any, dtype: Any) -> Any:
        bound = high
        if bound is None:
            if np.dtype(dtype).kind == "b":
                bound = 2
            elif _is_a(dtype, np.integer):
                bound = int(types.iinfo(dtype).max)
            else:
                raise ValueError(f"rand_int: give the argument 'high' for numbers of {dtype_str(dtype)}")
        return np.asarray(rng.randint(low, high=bound, size=_sizes(shape))).astype(dtype)

    return make


def rand_unique_int(rng: Any, high: int | None = None) -> Maker:
    """Integers from 0 to below `high` (by default as many as there are elements), none of them twice."""

    def make(shape: Any, dtype: Any) -> Any:
        size = int(np.prod(_sizes(shape)))
        return rng.choice(np.arange(size if high is None else high), size=_sizes(shape), replace=False).astype(dtype)

    return make


def rand_indices_unique_along_axis(rng: Any) -> Maker:
    """Indices, negative ones too, into a dimension of size `dim`: those along one axis are different elements."""

    def make(dim: int, shape: Any, axis: int) -> Any:
        shape = list(_sizes(shape))
        many = shape.pop(axis)
        if many > dim:
            raise ValueError(f"there are no {many} different indices into a dimension of size {dim}")
        rows = [rng.permutation(dim)[:many] - rng.choice([0, dim]) for _ in range(int(np.prod(shape)))]
        return np.moveaxis(np.array(rows, int).reshape([*shape, many]), -1, axis)

    return make


def rand_bool(rng: Any) -> Maker:
    """True and False, or ones and zeros."""
    return lambda shape, dtype: _shaped(rng.rand(*_sizes(shape)) < 0.5, shape, dtype)


def rand_fullrange(rng: Any, standardize_nans: bool = False) -> Maker:
    """Random bits: any value that a dtype has. standardize_nans: give each NaN the usual bits."""

    def make(shape: Any, dtype: Any, post: Callable[[Any], Any] = lambda x: x) -> Any:
        sizes, dtype = _sizes(shape), np.dtype(dtype)
        count = int(np.prod(sizes, dtype=int))
        if dtype.kind == "b":
            return _shaped(rng.rand(*sizes) < 0.5, shape, dtype)
        bits = np.frombuffer(rng.bytes(count * dtype.itemsize), np.uint8)
        if _is_a(dtype, np.integer) and types.iinfo(dtype).bits < 8:  # the value is in the lower bits
            low, high = int(types.iinfo(dtype).min), int(types.iinfo(dtype).max)
            values = rng.randint(low, high + 1, sizes).astype(dtype)
        else:
            values = bits.view(dtype).reshape(sizes) if count else np.zeros(sizes, dtype)
        if standardize_nans and _is_a(dtype, np.inexact):
            values = np.where(values != values, np.array(np.nan, dtype), values)
        return _shaped(post(values), shape, dtype)

    return make


def rand_like(rng: Any, x: Any) -> Any:
    """Normal numbers with the shape and dtype of an array."""
    return rand_default(rng, scale=1)(np.shape(x), types.dtype_of(x)) if np.ndim(x) else np.asarray(rng.randn())[()]


def complex_plane_sample(dtype: Any, size_re: int = 10, size_im: int | None = None) -> np.ndarray:
    """A grid of the complex plane, from the most negative numbers of a dtype through zero to infinity in both parts."""
    kind = np.finfo(dtype)
    real = np.finfo(dtype).dtype

    def line(size: int) -> np.ndarray:
        up = np.logspace(np.log10(float(kind.tiny)), np.log10(float(kind.max)) - 1, max(size, 1), dtype=np.float64)
        half = np.concatenate([up.astype(real), np.array([kind.max, np.inf], real)])
        return np.concatenate([-half[::-1], np.array([-0.0, 0.0], real), half])

    rows, columns = line(size_re if size_im is None else size_im), line(size_re)
    grid = np.empty((len(rows), len(columns)), np.result_type(real, np.complex64))
    grid.real, grid.imag = columns[None, :], rows[:, None]
    return grid


class _Dtypes:
    """Dtypes by kind, as classes of NumPy; those of 64 bits where `jax_enable_x64` is on."""

    _GROUPS = {
        "boolean": ("bool",),
        "integer": ("int32", "int64"),
        "all_integer": ("int8", "int16", "int32", "int64"),
        "unsigned": ("uint32", "uint64"),
        "all_unsigned": ("uint8", "uint16", "uint32", "uint64"),
        "floating": ("float32", "float64"),
        "custom_floats": ("bfloat16",),
        "all_floating": ("bfloat16", "float16", "float32", "float64"),
        "complex": ("complex64", "complex128"),
    }
    _SUMS = {
        "inexact": ("floating", "complex"),
        "all_inexact": ("all_floating", "complex"),
        "numeric": ("floating", "integer", "unsigned", "complex"),
        "all": ("all_floating", "all_integer", "all_unsigned", "complex", "boolean"),
    }

    def __getattr__(self, name: str) -> list[Any]:
        if name in self._GROUPS:
            return self.supported(self._GROUPS[name])
        if name in self._SUMS:
            return [dtype for part in self._SUMS[name] for dtype in getattr(self, part)]
        raise AttributeError(f"there are no dtypes {name!r} to test with", name=name, obj=self)

    def supported(self, names: Iterable[Any]) -> list[Any]:
        """Those of some dtypes that arrays can have now, as classes."""
        return [np.dtype(n).type for n in names if config.jax_enable_x64 or np.dtype(n).name not in _WIDE]


_WIDE = ("int64", "uint64", "float64", "complex128")

dtypes = _Dtypes()


def supported_dtypes() -> set[Any]:
    """The dtypes that programs can compute with."""
    return {*dtypes.all, np.dtype("int4").type, np.dtype("uint4").type}


def _all_dtypes() -> list[Any]:
    return [np.dtype(types.float0), *(types.as_dtype(name) for name in _NAMES)]


def default_tolerance() -> dict[np.dtype, float]:
    """How close values of each dtype should be."""
    exact = (np.bool_, np.integer, types.float0)
    return {d: 0 if any(_is_a(d, kind) for kind in exact) else _tolerance(d, None) for d in _all_dtypes()}


def tolerance(dtype: Any, tol: Any = None) -> Any:
    """The tolerance for a dtype: of a number or of a dict by dtype, and the usual one where that has none."""
    usual = default_tolerance()
    if tol is not None and not isinstance(tol, dict):
        return tol
    given = {np.dtype(key): value for key, value in (tol or {}).items()}
    dtype = np.dtype(types.canonicalize_dtype(dtype)) if np.dtype(dtype) not in given else np.dtype(dtype)
    return given.get(dtype, usual[dtype])


def join_tolerance(tol1: Any, tol2: Any) -> dict[np.dtype, Any]:
    """The larger tolerance of two for each dtype, of which a dict names some and a number means all."""

    def by_dtype(tol: Any) -> dict[np.dtype, Any]:
        if tol is None:
            return default_tolerance()
        if isinstance(tol, dict):
            return {np.dtype(dtype): value for dtype, value in tol.items()}
        return dict.fromkeys(_all_dtypes(), tol)

    joined = by_dtype(tol1)
    for dtype, value in by_dtype(tol2).items():
        joined[dtype] = max(value, joined.get(dtype, 0))
    return joined


# How close derivatives of each dtype should be to differences of values.
_GRADIENTS = {
    "bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "complex64": 1e-3, "float64": 1e-5, "complex128": 1e-5,
}  # fmt: skip
default_gradient_tolerance = {
    dtype: _GRADIENTS.get(dtype.name, usual) for dtype, usual in default_tolerance().items() if usual
}


def num_float_bits(dtype: Any) -> int:
    """How many bits a real number of the dtype has."""
    return int(types.finfo(types.canonicalize_dtype(dtype)).bits)


def to_default_dtype(arr: Any) -> np.ndarray:
    """An array of NumPy's with the default dtype of its kind: float32 for float64 where 64 bits are off."""
    arr = np.asarray(arr)
    kind = {"b": bool, "i": int, "u": np.uint64, "f": float, "c": complex}.get(arr.dtype.kind)
    return arr if kind is None else arr.astype(types.canonicalize_dtype(kind))
