"""Updates outside of jit that are done in C give what the general way gives: values, types, warnings and errors."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback._ext import _core
from pullback.numpy import _at, _index_memory

INDICES = [0, -1, 2, -4, slice(None), slice(1, 3), slice(None, None, -1), slice(5, 1), ..., None, (), (0, 0), (..., 1)]
INDICES += [(None, 0), (1, slice(None, None, 2)), np.int32(1), np.array(1), True, [0, 1], np.array([0]), 2**40, 1.0]
VALUES = [1, -1, 300, 2**31, 2**70, 1.5, float("nan"), 1e300, True, 1j, np.float32(2), np.ones(3, "f4"), None, "s"]
VALUES += [np.int32(-3), np.float64(1e300), np.uint32(2**32 - 1), np.int64(2**40), np.ones((), "i4"), np.float16(3)]


def outcome(x, index, value, op):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            y = x.at[index].get() if op == "get" else getattr(x.at[index], op)(value)
        except Exception as error:
            return type(error), str(error)
    return y.aval, np.asarray(y).tobytes(), y.committed, {(w.category, str(w.message)) for w in found}


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "?", "c8", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (3, 1, 2)])
def test_as_the_general_way(dtype, shape, monkeypatch):
    x = jnp.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    cases = [(i, v, op) for i in INDICES for v in VALUES for op in ("set", "add", "multiply")][:: 3 if shape else 1]
    for own in (jnp.ones((), dtype), jnp.ones(shape[1:], dtype), jnp.ones((1,) * len(shape), dtype)):
        cases += [(i, own, op) for i in INDICES for op in ("set", "subtract", "min", "max")]
    quick = [outcome(x, *case) for case in cases]
    monkeypatch.setattr(_at, "_updated", lambda *_: None)
    monkeypatch.setattr(_at, "_taken", lambda _, values: values)
    for case, found in zip(cases, quick):
        assert found == outcome(x, *case), case


def test_arrays_of_indices_are_remembered(monkeypatch):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    i, j, none = jnp.array([1, -2, 9]), np.array([[-9], [1]]), np.zeros(0, int)
    mask, rows = np.arange(24).reshape(2, 3, 4) % 5 > 2, jnp.array([True, False])
    indices = [i, j, none, (i, i), (j, i), (slice(None), i), (..., j), (i, None, ...), (i, none), (i, slice(None), i)]
    indices += [mask, rows, mask[:, :1], (0, i), (i, -1), (..., i, 3), (1, slice(None), i), (None, 0, ..., i), (7, i)]
    cases = [
        (k, v, op) for k in indices for v in (1, 2.5, 2**31, 1j, jnp.ones(3), jnp.ones(9)) for op in ("set", "add")
    ]

    def read(index):
        try:
            y = x[index]
        except Exception as error:
            return type(error), str(error)
        return y.aval, np.asarray(y).tobytes()

    found = [[(outcome(x, *case), read(case[0])) for case in cases] for _ in range(3)]
    sizes = _index_memory._remembered_get._cache_size(), _index_memory._remembered_update._cache_size()
    assert min(sizes) > 5
    monkeypatch.setattr(_index_memory, "_form", lambda *_: None)
    monkeypatch.setattr(_index_memory, "_is_mask", lambda *_: False)
    expected = [(outcome(x, *case), read(case[0])) for case in cases]
    assert found == [expected] * 3


def test_what_c_does():
    x = jnp.arange(12.0).reshape(3, 4)
    assert np.array_equal(_core.part_of(x, (1, slice(1, 3))), [5, 6])
    assert np.array_equal(_core.part_of(x, (slice(None), -1), jnp.zeros(3))[:, 2:], [[2, 0], [6, 0], [10, 0]])
    assert _core.part_of(x, 3) is None and _core.part_of(x, 3, 1.0) is None  # outside
    assert _core.part_of(x, 0, jnp.zeros(3)) is None and _core.part_of(x, 0, jnp.zeros((1, 1, 4))) is None
    assert np.array_equal(x, np.arange(12).reshape(3, 4))
    with pytest.raises(TypeError, match="part_of: expected an Array"):
        _core.part_of(np.ones(3), 0)


def test_reading_is_indexing(monkeypatch):
    x = jnp.arange(12.0).reshape(3, 4)
    for index in (1, (2, -1), slice(1, 3), np.array([0, 5]), jnp.array([-4]), (slice(None), 1), ..., 9, "s"):
        found = outcome(x, index, None, "get")
        with monkeypatch.context() as patch:
            patch.setattr(_at, "_core", SimpleNamespace(Array=None))
            assert found == outcome(x, index, None, "get"), index


def test_traced_updates_are_equations():
    x = jnp.zeros(3)
    assert "scatter" in str(jax.make_jaxpr(lambda: x.at[0].set(1.0))())
    assert np.array_equal(jax.grad(lambda v: (x.at[1].set(v) * 2).sum())(3.0), 2)
    assert np.array_equal(jax.vmap(lambda v: x.at[1].add(v))(jnp.ones(2)), [[0, 1, 0]] * 2)


def test_a_nan_is_found():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.full(3, jnp.inf).at[0].subtract(jnp.inf)


def test_deleted_arrays():
    x = jnp.zeros(3)
    x.delete()
    for op in ("set", "add"):
        with pytest.raises(RuntimeError, match="deleted"):
            getattr(x.at[0], op)(1.0)


@pytest.mark.parametrize("dtype", ["f4", "i1", "?", "c8", "bfloat16", "int4"])
def test_masks_take_what_numpy_takes(dtype):
    rng = np.random.default_rng(0)
    for shape, axes in [((5,), 1), ((0,), 1), ((4, 3), 1), ((4, 3), 2), ((2, 0, 3), 2), ((2, 3, 1, 2), 3)]:
        x = rng.integers(-5, 5, shape).astype(jnp.dtype(dtype))
        for level in (-1.0, 0.5, 2.0):
            mask = rng.random(shape[:axes]) > level
            for index in (mask, jnp.asarray(mask)):
                got = jnp.asarray(x)[index]
                assert got.dtype == x.dtype and not got.weak_type
                np.testing.assert_array_equal(np.asarray(got), x[mask])
    assert jnp.full((3,), 2.0)[np.array([True, False, True])].weak_type


def test_masks_of_ever_new_numbers_leave_nothing_behind(monkeypatch):
    x = jnp.arange(50.0)
    monkeypatch.setattr(_index_memory, "_remembered_get", lambda *_: pytest.fail("it is remembered"))
    monkeypatch.setattr(_index_memory, "rewriting_take", lambda *_: pytest.fail("it goes the general way"))
    assert [x[x > k].shape for k in range(50)] == [(49 - k,) for k in range(50)]


def test_masks_in_programs_and_where_values_are_checked():
    mask = np.array([True, False, True])
    assert jax.make_jaxpr(lambda y: y + jnp.arange(3.0)[mask])(jnp.ones(2)).eqns[-1].primitive.name == "add"
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.array(np.array([np.nan, 1, 2], "f4"))[mask]
    for wrong in (np.ones(2, bool), np.ones((3, 2), bool)):
        with pytest.raises(IndexError):
            jnp.arange(3)[wrong]
