"""Promotion, canonical types, limits, the type tree and the rules for Python scalars."""

import json
import pathlib
import warnings

import ml_dtypes
import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import lax
from pullback.util import config, dtypes

TABLE = json.loads((pathlib.Path(__file__).parent / "data" / "promotion.json").read_text())
SCALARS = {"int*": 1, "float*": 1.0, "complex*": 1j}


def operand(name):
    return SCALARS[name] if name in SCALARS else dtypes.as_dtype(name)


@pytest.mark.parametrize("setting", sorted(TABLE["tables"]))
def test_promotion_table(setting):
    x64, mode = setting.split()
    with config.enable_x64(x64 == "x64=1"), config.numpy_dtype_promotion(mode):
        for a, row in zip(TABLE["nodes"], TABLE["tables"][setting], strict=True):
            for b, expected in zip(TABLE["nodes"], row.split(), strict=True):
                if expected == "-":
                    with pytest.raises(dtypes.TypePromotionError, match="no available implicit dtype promotion"):
                        dtypes.lattice_result_type(operand(a), operand(b))
                else:
                    dtype, weak = dtypes.lattice_result_type(operand(a), operand(b))
                    assert dtype.name + "*" * weak == expected, (a, b, setting)


def test_three_operands_are_joined_at_once():
    assert dtypes.result_type(np.int8(1), np.uint8(1), np.float16(1)) == np.float16
    assert dtypes.result_type(1, 2.0, np.int16(3), return_weak_type_flag=True) == (np.float32, True)


@pytest.mark.parametrize("x64,expected", [(False, np.float32), (True, np.float64)])
def test_default_types(x64, expected):
    with config.enable_x64(x64):
        assert dtypes.result_type(float) == expected
        assert dtypes.result_type(None) == expected
        assert dtypes.canonicalize_dtype(float) == expected
        assert dtypes.to_inexact_dtype(int) == expected
        assert dtypes.to_inexact_dtype(dtypes.bfloat16) == dtypes.bfloat16
        assert dtypes.dtype_of(1.0) == expected
        assert dtypes.finfo(dtypes.to_complex_dtype(np.float64)).dtype == expected


def test_promote_types_is_not_canonicalized():
    assert dtypes.promote_types("int64", "int32") == np.int64
    assert dtypes.promote_types("int8", "uint64") == np.float64
    assert dtypes.promote_types(int, "float16") == np.float16


class Traced:
    """Something that knows its type by `aval` alone, as a tracer does."""

    def __init__(self, dtype, weak_type):
        self.aval = type("Aval", (), {"dtype": np.dtype(dtype), "weak_type": weak_type})()


def test_weak_values():
    assert dtypes.is_weak(1) and dtypes.is_weak(1.0) and dtypes.is_weak(1j)
    assert not dtypes.is_weak(True) and not dtypes.is_weak(np.float64(1)) and not dtypes.is_weak(np.int32(1))
    assert dtypes.is_weak(Traced("float32", True)) and not dtypes.is_weak(Traced("float32", False))
    assert dtypes.dtype_of(Traced("float32", True)) == np.float32
    assert dtypes.result_type(Traced("float32", True), np.float16(1)) == np.float16
    assert dtypes.result_type(Traced("int32", True), Traced("int8", False), return_weak_type_flag=True) == (
        np.int8,
        False,
    )
    with config.enable_x64(True):
        assert dtypes.result_type(Traced("float32", True), return_weak_type_flag=True) == (np.float64, True)


def test_errors():
    with pytest.raises(ValueError, match="at least one array or dtype is required"):
        dtypes.result_type()
    with pytest.raises(TypeError, match="foo"):
        dtypes.result_type("foo")
    with pytest.raises(TypeError, match=r"Cannot determine dtype of \[1, 2\]"):
        dtypes.result_type([1, 2])
    with pytest.raises(TypeError, match="not a valid JAX type"):
        dtypes.result_type(np.array(["a"]))
    with pytest.raises(TypeError, match="not a valid JAX type"):
        dtypes.result_type(np.dtype(">f4"))
    with pytest.raises(ValueError, match="not a valid dtype for type promotion"):
        dtypes.result_type(dtypes.float0, "float32")
    with pytest.raises(dtypes.TypePromotionError, match="2-bit and 4-bit integers"):
        dtypes.result_type("int4", "int32")
    with (
        pytest.raises(dtypes.TypePromotionError, match="jax_numpy_dtype_promotion=strict"),
        config.numpy_dtype_promotion("strict"),
    ):
        dtypes.result_type(np.int32(1), np.float32(1))
    assert issubclass(dtypes.TypePromotionError, ValueError)


def test_user_dtypes():
    with pytest.raises(TypeError, match="JAX only supports number and bool dtypes here; dtype U3 came in zeros"):
        dtypes.check_user_dtype_supported("U3", "zeros")
    with pytest.raises(TypeError, match="dtype <class 'object'> came in zeros"):
        dtypes.check_user_dtype_supported(object, "zeros")
    with pytest.raises(TypeError):
        dtypes.check_user_dtype_supported("int128", "zeros")
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 requested in zeros is not available"):
        assert dtypes.check_user_dtype_supported("float64", "zeros") == np.float32
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64"):
        assert dtypes.result_type(np.float64) == np.float32
    with pytest.warns(UserWarning, match="int64 requested in argmax"):
        assert lax.argmax(np.arange(3), 0, np.int64).dtype == np.int32
    with pytest.warns(UserWarning, match="int64 requested in broadcasted_iota"):
        assert lax.iota(np.int64, 3).dtype == np.int32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.result_type(jnp.float64) == dtypes.result_type(jnp.float64, np.int8) == np.float32
        assert dtypes.check_user_dtype_supported(float, "zeros") == np.float32
        with config.enable_x64(True):
            assert dtypes.check_user_dtype_supported("float64", "zeros") == np.float64
        assert dtypes.check_user_dtype_supported("bfloat16") == dtypes.bfloat16


def test_names_of_types_that_numpy_holds():
    assert jnp.zeros(2, np.array(["f4", "i2"])[1]).dtype == jnp.ones(2).astype(np.str_("int16")).dtype == np.int16


def test_python_scalars():
    assert dtypes.python_scalar_to_numpy(3).dtype == np.int32
    assert dtypes.python_scalar_to_numpy(2**31, "float32") == np.float32(2**31)
    with pytest.raises(OverflowError, match=r"2147483648 too large to convert to int32; .*jax_enable_x64"):
        dtypes.python_scalar_to_numpy(2**31)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        dtypes.python_scalar_to_numpy(300, "uint8")
    with pytest.raises(OverflowError, match="Python integer 8 out of bounds for int4"):
        dtypes.python_scalar_to_numpy(8, "int4")
    assert dtypes.python_scalar_to_numpy(np.int64(2**40)) == 0
    with config.enable_x64(True):
        assert dtypes.python_scalar_to_numpy(2**31).dtype == np.int64


def test_limits():
    assert dtypes.finfo("float32").max == np.finfo("float32").max
    assert float(dtypes.finfo("float8_e4m3fn").max) == 448
    assert dtypes.finfo("complex64").dtype == np.float32
    assert dtypes.finfo("bfloat16").bits == 16
    assert dtypes.iinfo("int4").min == -8 and dtypes.iinfo("uint2").max == 3
    with pytest.raises(ValueError, match=r"not inexact|not compatible with finfo"):
        dtypes.finfo("int32")
    with pytest.raises(ValueError, match="Invalid integer data type"):
        dtypes.iinfo("float32")


@pytest.mark.parametrize(
    "a,b,expected",
    [
        ("bfloat16", np.floating, True),
        ("bfloat16", np.inexact, True),
        (ml_dtypes.int4, np.signedinteger, True),
        ("uint4", np.signedinteger, False),
        ("uint4", np.integer, True),
        ("bool", np.number, False),
        (float, np.floating, True),
        (int, np.floating, False),
        ("float32", "float32", True),
        (np.float32, "float64", False),
        (dtypes.float0, np.inexact, False),
        (dtypes.float0, np.bool_, False),
        (dtypes.float0, np.generic, True),
        ("float32", dtypes.prng_key, False),
        (dtypes.prng_key, dtypes.extended, True),
        (dtypes.prng_key, np.generic, True),
        (dtypes.extended, np.generic, True),
        ("bfloat16", "bfloat16", True),
        ("bfloat16", "float16", False),
        (np.floating, np.inexact, True),
        (np.inexact, np.floating, False),
        (np.floating, "float32", False),
        ("complex64", np.complexfloating, True),
        (None, np.number, True),
        ("float16", dtypes.bfloat16, False),
    ],
)
def test_issubdtype(a, b, expected):
    assert dtypes.issubdtype(a, b) is expected


class _Key(dtypes.ExtendedDType):
    name, type, base, base_shape = "key<test>", dtypes.prng_key, np.dtype("uint32"), (2,)


def test_extended_types():
    key = _Key()
    assert dtypes.issubdtype(key, dtypes.prng_key) and dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, np.generic) and not dtypes.issubdtype(key, np.floating)
    assert key.itemsize == 8 and dtypes.short_name(key) == "key<test>" and dtypes.kind_of(key) == "k"
    assert dtypes.result_type(key) is key
    with pytest.raises(TypeError, match="not a valid dtype for type promotion"):
        dtypes.result_type(key, 1)


@pytest.mark.parametrize(
    "dtype,name",
    [
        ("float32", "f32"),
        ("bool", "bool"),
        ("uint8", "u8"),
        ("complex64", "c64"),
        ("bfloat16", "bf16"),
        ("int4", "i4"),
        ("float8_e4m3fn", "f8_e4m3fn"),
        (dtypes.float0, "float0"),
        ("int64", "i64"),
    ],
)
def test_short_names(dtype, name):
    assert dtypes.short_name(dtype) == name


def test_item_sizes():
    assert [
        dtypes.itemsize_bits(d) for d in ("int2", "uint4", "bool", "float4_e2m1fn", "float8_e5m2", "complex128")
    ] == [2, 4, 8, 4, 8, 128]
    assert dtypes.scalar_type_of(np.float32(1)) is float and dtypes.scalar_type_of("bfloat16") is float
    assert dtypes.scalar_type_of(True) is bool and dtypes.scalar_type_of(np.uint8) is int
