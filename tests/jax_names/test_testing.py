"""What tests of JAX and of libraries are written with: a class of tests that uses each part, run as they are run."""

import unittest

import numpy as np
import pytest

pytest.importorskip("absl", reason="absl is not among the package's dependencies")

import pullback as jax
import pullback.numpy as jnp
from pullback.jax_names.src import test_util as jtu
from pullback.jax_names.testing import data

UNARY = [
    {"op": jnp.sin, "np_op": np.sin, "rng_factory": jtu.rand_default},
    {"op": jnp.floor, "np_op": np.floor, "rng_factory": jtu.rand_some_inf},
]


@jtu.with_config(jax_numpy_rank_promotion="allow")
class Example(jtu.JaxTestCase):
    @jtu.sample_product(UNARY, shape=[(), (2, 3), jtu.NUMPY_SCALAR_SHAPE], dtype=[np.float16, np.float32])
    def test_against_numpy(self, op, np_op, rng_factory, shape, dtype):
        rng = rng_factory(self.rng())
        tol = {np.float16: 1e-2, np.float32: 1e-5}
        self._CheckAgainstNumpy(np_op, op, lambda: [rng(shape, dtype)], tol=tol)
        self._CompileAndCheck(op, lambda: [rng(shape, dtype)], tol=tol)

    @jtu.skip_on_devices("cpu")
    def test_left_out(self):
        raise AssertionError

    @jtu.run_on_devices("cpu")
    def test_counts(self):
        f = jax.jit(lambda x: x + 1)
        with jtu.count_jit_and_pmap_lowerings() as compiled, jtu.count_jit_tracing_cache_miss() as traced:
            f(1)
            f(2)
        self.assertEqual((compiled(), traced()), (1, 1))
        self.assertCacheMisses(lambda: f(3), tracing=0, lowering=0)
        with self.assertRaises(AssertionError):
            self.assertCacheMisses(lambda: f(3), tracing=1)

    def test_options_and_output(self):
        with self.assertRaises(jax.dtypes.TypePromotionError):
            jnp.float32(1) + jnp.arange(2)
        self.assertEqual((jnp.ones((2, 3)) + jnp.ones(3)).shape, (2, 3))  # what the class allows
        with jtu.capture_stdout() as printed, jtu.set_env(PULLBACK_NO_SUCH="1"):
            print("a")
        self.assertEqual(printed(), "a\n")

    @jtu.with_explicit_mesh((1,), ("x",))
    def test_mesh(self, mesh):
        self.assertEqual(jax.sharding.get_mesh(), mesh)

    def test_products(self):
        jtu.assert_dot_precision(None, jnp.dot, np.ones((2, 2)), np.ones((2, 2)))
        with self.assertRaises(AssertionError):
            jtu.assert_dot_precision(None, jnp.sin, 1.0)


def test_class_of_tests_runs():
    suite = jtu.JaxTestLoader().loadTestsFromTestCase(Example)
    result = unittest.TestResult()
    suite.run(result)
    assert not result.failures and not result.errors, result.failures + result.errors
    assert result.testsRun == 10 + 5 and len(result.skipped) == 1
    assert jax.config.jax_numpy_dtype_promotion == "standard"


@pytest.mark.parametrize("actual, desired, good", [
    (np.float64(1), np.float32(1), True),  # a float64 is a float32 here
    (1, 1.0, False),
    ([1.0, {"a": 2}], (1.0, {"a": 2}), True),
    ({"a": 1}, {"b": 1}, False),
    (None, None, True),
    (None, 1, False),
    (np.ones(2), np.ones(3), False),
    (np.ones(2), np.ones(2) + 1e-7, True),
    (np.ones(2), np.ones(2) + 1e-5, False),
    (np.nan, np.nan, True),
])  # fmt: skip
def test_comparisons(actual, desired, good):
    case = Example("test_mesh")
    if good:
        case.assertAllClose(actual, desired)
        return
    with pytest.raises(AssertionError):
        case.assertAllClose(actual, desired)


@pytest.mark.parametrize("name", [name for name in dir(data) if name.startswith("rand_")])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint4", "bfloat16", "float32", "complex64"])
def test_random_arrays(name, dtype):
    rng = np.random.RandomState(0)
    if name in ("rand_like", "rand_indices_unique_along_axis"):
        return  # below
    make = getattr(data, name)(rng, high=15) if name == "rand_int" else getattr(data, name)(rng)
    for shape in ((4, 3), (), (0,), data.NUMPY_SCALAR_SHAPE):
        made = make(shape, np.dtype(dtype))
        assert np.shape(made) == tuple(shape) and np.asarray(made).dtype == np.dtype(dtype)


def test_random_indices():
    made = data.rand_indices_unique_along_axis(np.random.RandomState(0))(5, (2, 3), 1)
    assert made.shape == (2, 3) and all(len(set(row % 5)) == 3 for row in made)
    assert data.rand_like(np.random.RandomState(0), jnp.ones(3)).dtype == np.float32


def test_tolerances_and_names():
    joined = data.join_tolerance(1e-3, {np.float32: 1})
    assert joined[np.dtype("float32")] == 1 and joined[np.dtype("float16")] == 1e-3
    assert data.tolerance(np.dtype("float32")) == 1e-6 and data.tolerance(np.int32, {np.float32: 1}) == 0
    assert jtu.format_shape_dtype_string(jtu.PYTHON_SCALAR_SHAPE, np.float32) == "pyfloat32"
    assert jtu.dtypes.floating == [np.float32] and len(jtu.dtypes.all) == 11
    assert not hasattr(jtu, "no_such_helper")
