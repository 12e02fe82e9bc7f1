"""Classes of tests: comparisons by dtype, a function against its compiled self and against NumPy; sampled parameters.

Needs absl, whose `parameterized` gives the tests of a class their arguments.
"""

from __future__ import annotations

import contextlib
import unittest
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl.testing import absltest, parameterized

import pullback
from pullback.jax_names.testing import counts, machine
from pullback.jax_names.testing.data import tolerance
from pullback.jax_names.testing.settings import global_config_context, thread_local_config_context
from pullback.util import dtypes as types
from pullback.util.pytree import tree_map


def _sample(cases: Sequence[Any], many: int) -> list[Any]:
    """So many of the cases, the same ones in every run."""
    if len(cases) <= many:
        return list(cases)
    return [cases[i] for i in np.random.RandomState(42).choice(len(cases), many, replace=False)]


def sample_product_testcases(*args: Iterable[dict[str, Any]], **kw: Iterable[Any]) -> list[dict[str, Any]]:
    """Some of all combinations of arguments, as dicts: of each positional list of dicts one, and a value by name."""
    groups = [[dict(group) for group in groups_] for groups_ in args]
    groups += [[{name: value} for value in values] for name, values in kw.items()]
    sizes = [len(group) for group in groups]
    count = int(np.prod(sizes, dtype=np.int64))
    many = machine.NUM_GENERATED_CASES.value
    chosen = range(count) if count <= many else np.random.RandomState(42).choice(count, many, replace=False)
    found = []
    for place in chosen:
        parts = [group[i] for group, i in zip(groups, np.unravel_index(int(place), sizes))] if groups else []
        found.append({name: value for part in parts for name, value in part.items()})
    return found


def sample_product(*args: Iterable[dict[str, Any]], **kw: Iterable[Any]) -> Callable[[Any], Any]:
    """A decorator that runs a test with some of all combinations of arguments (see `sample_product_testcases`)."""
    return parameterized.parameters(*sample_product_testcases(*args, **kw))


def parameterized_filterable(
    *,
    kwargs: Sequence[dict[str, Any]],
    testcase_name: Callable[[dict[str, Any]], str] | None = None,
    one_containing: str | None = None,
) -> Callable[[Any], Any]:
    """A decorator that runs a test with each of some arguments, which give the tests their names.

    one_containing: run only the first of those whose name has this text, under the test's own name.
    """

    def name_of(given: dict[str, Any]) -> str:
        return "_".join(f"{name}={value}" for name, value in given.items())

    named = []
    for given in kwargs:
        name = given.get("testcase_name") or (testcase_name or name_of)(given)
        named.append({**given, "testcase_name": machine.sanitize_test_name(str(name))})
    if one_containing is None:
        return parameterized.named_parameters(*named)
    first = next((case for case in named if one_containing in case["testcase_name"]), None)
    if first is None:
        raise ValueError(f"no test has {one_containing!r} in its name")
    return parameterized.named_parameters({**first, "testcase_name": ""})


class _Choosing:
    """What a generator of cases is called with: gives one of some values, another one in each run."""

    def __init__(self, rng: np.random.RandomState) -> None:
        self.rng = rng

    def __call__(self, options: Iterable[Any]) -> Any:
        options = list(options)
        return options[self.rng.randint(len(options))]


def named_cases_from_sampler(gen: Callable[[Any], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Cases with different names of a generator that chooses its values by the function which it is given."""
    seen: set[str] = set()
    rng = np.random.RandomState(42)
    wanted = machine.NUM_GENERATED_CASES.value
    for _ in range(20 * wanted):
        for case in gen(_Choosing(rng)):
            if case["testcase_name"] not in seen and len(seen) < wanted:
                seen.add(case["testcase_name"])
                yield case


def cases_from_gens(*gens: Any) -> Iterator[dict[str, Any]]:
    """Some cases of each of several generators."""
    for gen in gens:
        yield from _sample(list(gen()), max(1, machine.NUM_GENERATED_CASES.value // len(gens)))


def is_sequence(x: Any) -> bool:
    """Whether something can be iterated over."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def check_eq(xs: Any, ys: Any, err_msg: str = "") -> None:
    """AssertionError unless two trees have the same arrays."""
    tree_map(lambda x, y: np.testing.assert_array_equal(x, y, err_msg=err_msg), xs, ys)


def check_raises(thunk: Callable[[], Any], err_type: type[Exception], msg: str) -> None:
    """AssertionError unless an error of a type is raised whose text begins so."""
    try:
        thunk()
    except err_type as error:
        assert str(error).startswith(msg), f"expected {msg!r}, got {error}"
        return
    raise AssertionError(f"{err_type.__name__} was not raised")


def check_raises_regexp(thunk: Callable[[], Any], err_type: type[Exception], pattern: str) -> None:
    """AssertionError unless an error of a type is raised whose text matches."""
    with unittest.TestCase().assertRaisesRegex(err_type, pattern):
        thunk()


def _is_key(x: Any) -> bool:
    return types.is_extended(getattr(x, "dtype", None)) if hasattr(x, "dtype") else False


def _array(x: Any) -> np.ndarray:
    """As NumPy's array of a dtype that NumPy computes in."""
    x = np.asarray(x)
    return x.astype(np.float32) if types.issubdtype(x.dtype, np.floating) and x.dtype.kind == "V" else x


class JaxTestCase(parameterized.TestCase):
    """A test with options in force, random numbers of its own, and comparisons."""

    _default_global_config: dict[str, Any] = {}
    _default_thread_local_config: dict[str, Any] = {
        "jax_enable_checks": True,
        "jax_numpy_dtype_promotion": "strict",
        "jax_numpy_rank_promotion": "raise",
        "jax_traceback_filtering": "off",
        "jax_legacy_prng_key": "error",
    }

    def setUp(self) -> None:
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(global_config_context(**self._default_global_config))
        stack.enter_context(thread_local_config_context(**self._default_thread_local_config))
        self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def rng(self) -> np.random.RandomState:
        """Random numbers that the test's name decides."""
        return self._rng

    def assertArraysEqual(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, err_msg: str = "",
        allow_object_dtype: bool = False, verbose: bool = True,
    ) -> None:  # fmt: skip
        """Two arrays have the same elements, and the same dtype."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        if _is_key(actual) or _is_key(desired):
            actual, desired = pullback.random.key_data(actual), pullback.random.key_data(desired)
        actual, desired = np.asarray(actual), np.asarray(desired)
        if not allow_object_dtype and (actual.dtype == object or desired.dtype == object):
            raise TypeError("an array of Python objects has no dtype to compare")
        np.testing.assert_array_equal(_array(actual), _array(desired), err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None,
        err_msg: str = "",
    ) -> None:  # fmt: skip
        """Two arrays are close for their dtypes."""
        kinds = [types.dtype_of(x) for x in (actual, desired)]
        self.assertEqual(np.shape(actual), np.shape(desired), err_msg or None)
        absolute, relative = (max(tolerance(kind, given) for kind in kinds) for given in (atol, rtol))
        one, two = _array(actual), _array(desired)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(one, two, atol=absolute, rtol=relative, err_msg=err_msg)
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)

    def assertDtypesMatch(self, actual: Any, desired: Any, *, canonicalize_dtypes: bool = True) -> None:
        """Two values have one dtype, by default after those of 64 bits became what they are here."""

        def of(x: Any) -> Any:
            dtype = types.dtype_of(x)
            narrowed = canonicalize_dtypes and not (types.is_extended(dtype) or dtype == types.float0)
            return types.canonicalize_dtype(dtype) if narrowed else dtype

        self.assertEqual(of(actual), of(desired))

    def assertAllClose(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None,
        canonicalize_dtypes: bool = True, err_msg: str = "",
    ) -> None:  # fmt: skip
        """Two values, or all values in two sequences or dicts, are close for their dtypes."""
        given = dict(
            check_dtypes=check_dtypes, atol=atol, rtol=rtol, canonicalize_dtypes=canonicalize_dtypes, err_msg=err_msg
        )
        if isinstance(actual, dict):
            self.assertIsInstance(desired, dict)
            self.assertEqual(set(actual.keys()), set(desired.keys()))
            for name in actual:
                self.assertAllClose(actual[name], desired[name], **given)
        elif is_sequence(actual) and not hasattr(actual, "__array__"):
            self.assertTrue(is_sequence(desired) and not hasattr(desired, "__array__"))
            self.assertEqual(len(actual), len(desired))
            for one, two in zip(actual, desired):
                self.assertAllClose(one, two, **given)
        elif actual is None or desired is None:
            self.assertIs(actual, desired)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            self.assertTrue(hasattr(desired, "__array__") or np.isscalar(desired))
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            if _is_key(actual):
                self.assertArraysEqual(actual, desired, err_msg=err_msg)
                return
            one, two = np.asarray(actual), np.asarray(desired)
            self.assertArraysAllClose(one, two, check_dtypes=False, atol=atol, rtol=rtol, err_msg=err_msg)
        else:
            raise TypeError(f"assertAllClose: {type(actual).__name__} is no array, number, sequence or dict")

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """Two texts have the same lines, but for spaces at the ends and empty lines."""

        def lines(text: str) -> str:
            return "\n".join(line.strip() for line in text.splitlines() if line.strip())

        self.assertMultiLineEqual(lines(expected), lines(what), f"expected:\n{expected}\ngot:\n{what}")

    @contextlib.contextmanager
    def assertNoWarnings(self) -> Iterator[None]:
        """Nothing warns meanwhile."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def assertDeprecationWarnsOrRaises(
        self, deprecation_id: str, message: str, *, error_class: type[Exception] = ValueError
    ) -> Any:
        """What is deprecated warns, where it is not an error yet."""
        return self.assertWarnsRegex(DeprecationWarning, message)

    def _CompileAndCheck(
        self, fun: Callable[..., Any], args_maker: Callable[[], Any], *, check_dtypes: bool = True, tol: Any = None,
        rtol: Any = None, atol: Any = None, check_cache_misses: bool = True,
    ) -> None:  # fmt: skip
        """A function gives under jit what it gives without, in the first call and in the second, which does not trace.

        check_cache_misses: whether that is asked of the second call.
        """
        args = args_maker()
        runs = 0

        def counted(*args: Any) -> Any:
            nonlocal runs
            runs += 1
            return tree_map(pullback.numpy.asarray, fun(*args))

        plain = tree_map(pullback.numpy.asarray, fun(*args))
        compiled = pullback.jit(counted)
        first = compiled(*args)
        self.assertEqual(runs, 1, "jit should have run the function once")
        second = compiled(*args)
        if check_cache_misses:
            self.assertEqual(runs, 1, "the second call should not have run the function")
        for found in (first, second):
            self.assertAllClose(plain, found, check_dtypes=check_dtypes, atol=atol or tol, rtol=rtol or tol)

    def _CheckAgainstNumpy(
        self, numpy_reference_op: Callable[..., Any], lax_op: Callable[..., Any], args_maker: Callable[[], Any],
        check_dtypes: bool = True, tol: Any = None, atol: Any = None, rtol: Any = None,
        canonicalize_dtypes: bool = True,
    ) -> None:  # fmt: skip
        """A function gives what one of NumPy's gives."""
        args = args_maker()
        found = lax_op(*args)
        expected = numpy_reference_op(*args)
        self.assertAllClose(
            expected, found, check_dtypes=check_dtypes, atol=atol or tol, rtol=rtol or tol,
            canonicalize_dtypes=canonicalize_dtypes,
        )  # fmt: skip

    @contextlib.contextmanager
    def _counting(self, counter: Callable[[], Any], wanted: int | None, what: str) -> Iterator[None]:
        if wanted is None:
            yield
            return
        with counter() as count:
            yield
        self.assertEqual(count(), wanted, f"{what} {count()} times, expected {wanted}")

    def assertCacheMisses(
        self, func: Callable[[], Any], *, cpp: int | None = None, aot_call: int | None = None,
        tracing: int | None = None, lowering: int | None = None,
        compilation_after_persistent_cache_miss: int | None = None,
    ) -> None:  # fmt: skip
        """A call traces so many functions, and compiles so many programs."""
        if aot_call is not None or compilation_after_persistent_cache_miss is not None:
            self.skipTest("calls of compiled functions, and programs that are not on disk, are not counted here")
        with (
            self._counting(counts.count_jit_tracing_cache_miss, tracing, "functions were traced"),
            self._counting(counts.count_pjit_cpp_cache_miss, cpp, "functions were traced"),
            self._counting(counts.count_jit_and_pmap_lowerings, lowering, "functions were compiled"),
        ):
            func()


class BufferDonationTestCase(JaxTestCase):
    """A test of which arrays are deleted."""

    def assertDeleted(self, x: Any) -> None:
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x: Any) -> None:
        self.assertFalse(x.is_deleted())


class CudaArchSpecificTest:
    """Tests of GPUs of some kind are left out."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("skip_unless_"):
            return lambda *_: self.skipTest("needs a GPU")  # type: ignore[attr-defined]
        raise AttributeError(name)


class JaxTestLoader(absltest.TestLoader):
    """Loads the tests of a module."""
