"""Element types: scalar types as dtypes and as functions, promotion, kinds, limits."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

PLAIN = ["bool_", "float16", "float32", "float64", "complex64", "complex128"]
PLAIN += [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]


@pytest.mark.parametrize("name", PLAIN)
def test_scalar_types_stand_for_dtypes(name):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    assert np.dtype(ours) == np.dtype(numpys) and ours.dtype == np.dtype(numpys)
    assert ours == numpys and ours == np.dtype(numpys) and np.dtype(numpys) == ours
    assert hash(ours) == hash(numpys)
    assert isinstance(ours, type) and ours.__name__ == np.dtype(numpys).name
    assert np.zeros(2, ours).dtype == numpys


def test_scalar_types_make_arrays():
    x = jnp.float32(1)
    assert isinstance(x, jnp.ndarray) and x.dtype == np.float32 and not x.weak_type
    assert jnp.int8([1, 2]).tolist() == [1, 2]
    assert jnp.int32(2.5) == 2 and jnp.float32("1.5") == 1.5
    assert jnp.bfloat16(1.0).dtype == ml_dtypes.bfloat16
    with pytest.raises(OverflowError):
        jnp.int8(300)
    assert jnp.float_ == jnp.float64 and jnp.int_ == jnp.int64 and jnp.double is jnp.float64


def test_weak_types():
    assert jnp.asarray(1).weak_type and jnp.asarray(1.0).weak_type and not jnp.asarray(True).weak_type
    assert (jnp.int8(1) + 1).dtype == np.int8
    assert (jnp.int8(1) + 1.0).dtype == np.float32 and (jnp.int8(1) + 1.0).weak_type
    assert (jnp.float16(1) * 2.5).dtype == np.float16
    assert (jnp.float32(1) + 1j).dtype == np.complex64
    assert (jnp.int32(1) + jnp.float16(1)).dtype == np.float16
    assert (jnp.bfloat16(1) + jnp.float16(1)).dtype == np.float32
    assert (jnp.uint8(1) + jnp.int8(1)).dtype == np.int16


def test_questions():
    assert jnp.result_type(1, jnp.int8) == np.int8 and jnp.result_type(1, 2.0) == np.float32
    assert jnp.promote_types("int8", "uint8") == np.int16 and jnp.promote_types(int, "int8") == np.int8
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and not jnp.issubdtype(jnp.int8, jnp.inexact)
    assert jnp.isdtype(jnp.float32, "real floating") and not jnp.isdtype(jnp.float32, ("integral", "bool"))
    assert jnp.isdtype("float32", jnp.float32)
    assert jnp.iscomplexobj(1j) and jnp.iscomplexobj(jnp.ones(2, "complex64")) and jnp.isrealobj(jnp.ones(2))
    assert jnp.isscalar(1) and jnp.isscalar(jnp.float32(1)) and not jnp.isscalar(jnp.ones(1)) and jnp.isscalar("a")
    assert jnp.iterable(jnp.ones(2)) and not jnp.iterable(1)
    assert jnp.finfo(jnp.bfloat16).eps == 2**-7 and jnp.iinfo(jnp.int8).max == 127
    assert jnp.can_cast(np.int8, np.int16)
    with pytest.raises(ValueError, match="Unrecognized kind='foo'"):
        jnp.isdtype(jnp.float32, "foo")
    with pytest.raises(ValueError, match="at least one"):
        jnp.result_type()


def test_conversion():
    x = jnp.array([0.0, 1.7, -2.5])
    assert x.astype(int).tolist() == [0, 1, -2] and x.astype(bool).tolist() == [False, True, True]
    assert not jnp.astype(0.5 + 1j, bool).weak_type
    assert x.astype(None).dtype == np.float32 and jnp.astype(x, "int8").dtype == np.int8
    with pytest.warns(DeprecationWarning, match="Casting from complex"):
        assert (x * 1j).astype("float32").tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="only supports number and bool dtypes"):
        x.astype("S1")
    with pytest.raises(TypeError, match="list"):
        jnp.astype([1], int)


def test_strict_promotion():
    with pullback.numpy_dtype_promotion("strict"):
        assert (jnp.float32(1) + 1).dtype == np.float32
        with pytest.raises(ValueError, match="strict"):
            jnp.float32(1) + jnp.int8(1)
        with pytest.raises(ValueError, match="strict"):
            jnp.int8(1) + 1.5


def test_limits_of_scalar_types_of_numpy():
    for named in (np.float32, "float32", np.float32(1), np.zeros(2, np.float32), np.complex64, jnp.float32):
        assert jnp.finfo(named).eps == np.float32(2**-23)
    for named in (np.int8, "int8", np.int8(1), np.zeros(2, np.int8), jnp.int8):
        assert jnp.iinfo(named).max == 127


def test_strict_promotion_is_never_tripped_by_what_functions_do_inside():
    ints, numbers = jnp.arange(1, 4), jnp.array([1 + 2j, 3.0, -1j])
    calls = [
        lambda: jnp.linspace(ints, ints + 4, 3),
        lambda: jnp.linspace(ints > 1, ints > 2, 3),
        lambda: pullback.nn.logsumexp(numbers),
        lambda: pullback.nn.logsumexp(numbers, return_sign=True),
        lambda: pullback.nn.logmeanexp(numbers, where=ints > 1),
        lambda: jnp.array_equiv(ints, ints.astype(np.float32)),
    ]
    for call in calls:
        wanted = call()
        with pullback.numpy_dtype_promotion("strict"):
            got = call()
        for g, w in zip(pullback.tree.leaves(got), pullback.tree.leaves(wanted)):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w)


def test_dtype_of_what_names_one():
    assert lax.dtype(np.dtype("float32")) == lax.dtype("float32") == lax.dtype(float) == lax.dtype(1.0) == np.float32
    assert lax.dtype(jnp.bfloat16) == jnp.bfloat16
    with pullback.enable_x64(True):
        assert lax.dtype("f8") == lax.dtype(float) == np.float64
    with pytest.raises(ValueError, match="got None"):
        lax.dtype(None)
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        lax.dtype([1])


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_arrays_of_64_bits_that_outlive_their_mode(dtype):
    """They meet Python's scalars, arrays and updates as arrays of 32 bits do, once 64 bits are off again."""
    with pullback.enable_x64(True):
        x = jnp.arange(3, dtype=dtype)
    short = pullback.dtypes.canonicalize_dtype(dtype)
    same = jnp.arange(3, dtype=short)
    functions = (
        lambda x: x + 1,
        lambda x: 2 * x,
        lambda x: jnp.where(x == 1, x, 0),
        lambda x: x + jnp.ones(3),
        lambda x: x.at[0].set(3),
        lambda x: x.at[jnp.array([0, 1])].add(2),
    )
    for function in functions:
        for apply in (function, pullback.jit(function)):
            found, wanted = apply(x), function(same)
            assert found.dtype == wanted.dtype and (found == wanted).all()


@pytest.mark.parametrize("x64", [False, True])
def test_promote_types_of_scalar_types_and_of_64_bits(x64):
    with pullback.enable_x64(x64):
        assert jnp.promote_types("int16", jnp.int64) == np.int64
        assert jnp.promote_types("bool", jnp.float64) == jnp.promote_types("int8", "uint64") == np.float64
        assert jnp.promote_types("int32", "uint32") == (np.int64 if x64 else np.int32)


def test_scalar_types_are_equal_to_numpys_alone():
    assert jnp.int64 == np.int64 and jnp.int64 == np.dtype("int64") and jnp.bfloat16 == ml_dtypes.bfloat16
    for other in (int, float, bool, "int64", "float32", None, 1, np.int32, jnp.int32):
        assert jnp.int64 != other and other != jnp.int64
    assert [t for t in (int, float, complex, bool) if t in (jnp.int64, jnp.float64, jnp.complex128, jnp.bool_)] == []


def test_what_promotes_inside_does_so_whatever_is_set():
    x, y = jnp.array([1, 2, 3], jnp.int32), jnp.ones((1, 3))
    with pullback.numpy_dtype_promotion("strict"), pullback.numpy_rank_promotion("raise"):
        assert not jnp.array_equiv(x, y) and jnp.array_equiv(x, x[None]) and not jnp.array_equiv(x, y[:, :2])
        for f in (jnp.logspace, jnp.geomspace):
            assert f(x[0], x[2], 4).dtype == np.float32 and f(x[0], x[2], 4, dtype=jnp.int32).dtype == np.int32


def test_arrays_of_64_bits_are_taken_where_these_are_not_enabled():
    with pullback.enable_x64(True):
        x, i = jnp.arange(1.0, 4.0) / 7, jnp.arange(3)
    for function in (jnp.any, jnp.trunc, jnp.deg2rad, lambda x: jnp.pad(x, 1), lambda x: jnp.insert(x, 1, 2), jnp.diag):
        for each in (x, i):
            assert function(each).shape == pullback.jit(function)(each).shape
    assert jnp.pad(x, 1).dtype == np.float64 and jnp.pad(i, 1, constant_values=2)[0] == 2
    np.testing.assert_allclose(jnp.deg2rad(x), np.deg2rad(np.arange(1, 4) / 7), rtol=1e-15)
    for function in (jnp.sum, jnp.max, jnp.mean, jnp.std, jnp.nansum, jnp.nanmean, jnp.nanstd):
        assert function(x).dtype == np.float32 and pullback.jit(function)(x).dtype == np.float32
    assert jnp.prod(i).dtype == np.int32


def test_arrays_without_a_common_type_are_not_equivalent():
    assert not jnp.array_equiv(jnp.ones(2), jnp.ones(2, "float8_e4m3fn"))


@pytest.mark.parametrize(
    "function",
    [
        *(getattr(jnp, name) for name in ("sum", "mean", "prod", "nansum", "nanprod", "nanmean", "cumsum", "cumprod")),
        *(getattr(jnp, name) for name in ("nancumsum", "cumulative_sum", "array", "asarray")),
        *(lambda z, dtype, f=f: f([z, z], dtype=dtype) for f in (jnp.concatenate, jnp.stack, jnp.hstack, jnp.vstack)),
        lambda z, dtype: jnp.full(3, z[0], dtype=dtype),
        lambda z, dtype: jnp.full_like(z, z[0], dtype=dtype),
        lambda z, dtype: lax.full((2,), z[0], dtype),
        lambda z, dtype: z.sum(dtype=dtype),
        lambda z, dtype: jnp.add.reduce(z, dtype=dtype),
        lambda z, dtype: jnp.trace(jnp.outer(z, z), dtype=dtype),
        lambda z, dtype: jnp.einsum("i->", z, preferred_element_type=dtype),
        lambda z, dtype: jnp.array([z[0], z[1]], dtype=dtype),
        lambda z, dtype: pullback.jit(lambda z: jnp.mean(z, dtype=dtype))(z),
    ],
)
def test_imaginary_parts_that_a_dtype_drops_are_warned_of(function):
    z = jnp.array([1 + 2j, 3 - 1j])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary parts are lost"):
        assert function(z, dtype=np.float32).dtype == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(z, dtype=np.complex64).dtype == np.complex64
        assert function(z.real, dtype=np.float32).dtype == np.float32


def test_each_imaginary_part_is_warned_of_once():
    z, x = jnp.array([1 + 2j]), jnp.arange(2.0)
    for function in (
        lambda: jnp.full(2, 1j, dtype=bool),
        lambda: jnp.full_like(x, 1j, dtype=bool),
        lambda: jnp.full_like(x, z[0]),
        lambda: lax.full((2,), 1j, bool),
        lambda: lax.full_like(x, 1j, dtype=bool),
        lambda: lax.full_like(x, z[0]),
        lambda: jnp.nan_to_num(z, nan=1j),
    ):
        with pytest.warns(np.exceptions.ComplexWarning) as caught:
            function()
        assert len(caught) == 1


@pytest.mark.parametrize("dtype", [bool, np.int8])
def test_only_conversions_to_bool_warn_and_not_questions_of_truth(dtype):
    z = jnp.array([1 + 2j, 0])
    for function in (jnp.sum, jnp.prod, lax.convert_element_type, lambda z, dtype: jnp.stack([z], dtype=dtype)):
        with pytest.warns(np.exceptions.ComplexWarning, match="imaginary parts are lost"):
            function(z, dtype) if function is lax.convert_element_type else function(z, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [bool(f(z)) for f in (jnp.any, jnp.all)] == [True, False]
        assert z.astype(bool).tolist() == jnp.logical_not(jnp.logical_not(z)).tolist() == [True, False]


@pytest.mark.parametrize(
    "sample, weights, want",
    [
        ("int32", None, "float32"), ("float16", None, "float16"), ("bfloat16", "int32", "bfloat16"),
        ("int32", "float16", "float16"), ("float16", "bfloat16", "float32"), ("float32", "float16", "float32"),
    ],
)  # fmt: skip
def test_densities_and_edges_have_the_type_of_points_and_weights(sample, weights, want):
    counted = None if weights is None else jnp.ones(4, weights)
    density, edges = jnp.histogramdd(jnp.ones((4, 2), sample), 2, weights=counted, density=True)
    assert {density.dtype.name, *(e.dtype.name for e in edges)} == {want}
    density, *edges = jnp.histogram2d(jnp.ones(4, sample), jnp.ones(4, sample), 2, weights=counted, density=True)
    assert {density.dtype.name, *(e.dtype.name for e in edges)} == {want}
