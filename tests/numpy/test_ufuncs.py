"""Elementwise functions against NumPy: values, result types, errors, and the methods of ufunc objects."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.scipy import linalg

RNG = np.random.RandomState(0)
X = RNG.randn(3, 4).astype(np.float32)
Y = RNG.randn(3, 4).astype(np.float32)
P = np.abs(X) + 0.1
U = (RNG.rand(3, 4) * 1.8 - 0.9).astype(np.float32)
I = RNG.randint(-9, 9, (3, 4)).astype(np.int32)
J = RNG.randint(1, 9, (3, 4)).astype(np.int32)
C = (X + 1j * Y).astype(np.complex64)
B = X > 0

UNARY = {
    "abs": (X, I, C, B), "absolute": (X, I), "arccos": (U,), "arccosh": (P + 1,), "arcsin": (U,), "arcsinh":
    (X,), "arctan": (X,), "arctanh": (U,), "acos": (U,), "asin": (U,), "atan": (X,), "cbrt": (X,), "ceil": (X,),
    "conj": (X, C), "conjugate": (C,), "cos": (X, C, I), "cosh": (X,), "deg2rad": (X,), "degrees": (X,), "exp":
    (X, C), "exp2": (X,), "expm1": (X,), "fabs": (X,), "floor": (X,), "imag": (X, C), "invert": (I, B),
    "isfinite": (X, I), "isinf": (X,), "isnan": (X, C), "isneginf": (X,), "isposinf": (X,), "log": (P, C),
    "log10": (P,), "log1p": (P,), "log2": (P,), "logical_not": (X, B), "negative": (X, I, C), "positive": (X,
    I), "rad2deg": (X,), "radians": (X,), "real": (X, C), "reciprocal": (P, C), "rint": (X * 3,), "sign": (X,
    I), "signbit": (X, I), "sin": (X, C), "sinc": (X,), "sinh": (X,), "sqrt": (P, C), "square": (X, I, C),
    "tan": (X,), "tanh": (X, C), "trunc": (X,), "i0": (X,), "modf": (X,), "frexp": (X, P * 1e-30), "angle": (X,
    C), "nan_to_num": (X,), "spacing": (X,), "bitwise_not": (I,), "iscomplex": (C,), "isreal": (C,), "around":
    (X * 3,), "round": (X * 3,), "bitwise_count": (I,),
}  # fmt: skip

BINARY = {
    "add": ((X, Y), (I, J), (C, C), (B, B), (X, np.float32(2))), "subtract": ((X, Y), (I, J)), "multiply": ((X,
    Y), (B, B)), "divide": ((X, P), (C, C)), "true_divide": ((X, P),), "floor_divide": ((X, P), (I, J), (I,
    -J)), "remainder": ((X, P), (X, -P), (I, J), (I, -J)), "mod": ((I, J),), "fmod": ((X, P), (I, J)), "divmod":
    ((X, P), (I, J)), "power": ((P, X), (J, J)), "float_power": ((P, X),), "hypot": ((X, Y),), "arctan2": ((X,
    Y),), "copysign": ((X, Y),), "maximum": ((X, Y), (I, J)), "minimum": ((X, Y),), "fmax": ((X, Y),), "fmin":
    ((X, Y),), "logaddexp": ((X, Y),), "logaddexp2": ((X, Y),), "heaviside": ((X, Y),), "nextafter": ((X, Y),),
    "ldexp": ((X, I),), "equal": ((X, Y), (C, C)), "not_equal": ((X, X),), "greater": ((X, Y), (C, C[::-1])),
    "greater_equal": ((X, Y),), "less": ((X, Y),), "less_equal": ((X, Y), (C, C)), "logical_and": ((X, B),),
    "logical_or": ((B, B),), "logical_xor": ((X, B),), "bitwise_and": ((I, J),), "bitwise_or": ((I, J),),
    "bitwise_xor": ((I, J),), "left_shift": ((I, J),), "right_shift": ((I, J), (I.astype(np.uint32),
    J.astype(np.uint32))), "gcd": ((I, J),), "lcm": ((I, J),),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(same, name):
    for x in UNARY[name]:
        same(lambda m, x: getattr(m, name)(x), x)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary(same, name):
    for x, y in BINARY[name]:
        same(lambda m, x, y: getattr(m, name)(x, y), x, y)


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3))])
def test_broadcasting(same, shapes):
    x, y = (np.asarray(RNG.randn(*s), np.float32) for s in shapes)
    same(lambda m, x, y: m.add(x, y) * m.maximum(x, y), x, y)


EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5.0, -5.0], np.float32)


@pytest.mark.parametrize(
    "name", ["floor_divide", "hypot", "logaddexp", "fmax", "fmin", "copysign", "heaviside", "maximum"]
)
def test_pairs_of_special_values(same, name):
    x, y = np.meshgrid(EDGES, EDGES)
    if name == "hypot":
        x, y = np.abs(x), np.abs(y)
    same(lambda m, x, y: getattr(m, name)(x, y), x, y)


@pytest.mark.parametrize(
    "name", ["isnan", "isinf", "isfinite", "signbit", "sign", "nan_to_num", "trunc", "sinc", "frexp"]
)
def test_special_values(same, name):
    finite = EDGES[np.isfinite(EDGES)]
    same(lambda m, x: getattr(m, name)(x), finite if name in ("sinc", "frexp") else EDGES)


def test_integers_divided_by_zero_are_as_in_jax():
    x, zero = jnp.array([5, -5]), jnp.array([0, 0])
    assert jnp.remainder(x, zero).tolist() == [0, 0]
    assert jnp.fmod(x, zero).tolist() == [0, 0]
    assert jnp.floor_divide(x, zero).tolist() == [-2, -2]


# Result types as JAX's, of (x, x) and (x, 1) and (x, 1.0): w means weak.
DTYPES = {
    "add": {"bool": "bool wint32 wfloat32", "int8": "int8 int8 wfloat32", "float16": "float16 float16 float16"},
    "divide": {
        "bool": "float32 wfloat32 wfloat32",
        "int8": "float32 float32 wfloat32",
        "bfloat16": "bfloat16 bfloat16 bfloat16",
    },
    "power": {"bool": "int32 int32 wfloat32", "uint8": "uint8 uint8 wfloat32", "float32": "float32 float32 float32"},
    "left_shift": {
        "bool": "int32 wint32 TypeError",
        "int8": "int8 int8 TypeError",
        "float32": "TypeError TypeError TypeError",
    },
    "equal": {"int8": "bool bool bool", "float32": "bool bool bool"},
    "maximum": {
        "bool": "bool wint32 wfloat32",
        "uint32": "uint32 uint32 wfloat32",
        "complex64": "complex64 complex64 complex64",
    },
    "floor_divide": {"int8": "int8 int8 wfloat32", "complex64": "TypeError TypeError TypeError"},
    "subtract": {"bool": "TypeError wint32 wfloat32", "int32": "int32 int32 wfloat32"},
}


def _result(name, x, y):
    try:
        r = getattr(jnp, name)(x, y)
    except TypeError:
        return "TypeError"
    # Whether a truth value is weakly typed has no consequence.
    return ("w" if r.weak_type and r.dtype != bool else "") + r.dtype.name


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_result_types(name):
    for dtype, expected in DTYPES[name].items():
        x = jnp.ones((), dtype)
        assert " ".join(_result(name, x, y) for y in (x, 1, 1.0)) == expected, (name, dtype)


def test_python_integers_wrap_in_narrow_types():
    assert (jnp.uint8(1) + 300).item() == 45
    assert (jnp.uint8(1) + (-1)).item() == 0
    assert (jnp.int8(1) * 1000).item() == -24


def test_integer_powers():
    x = jnp.arange(1, 4, dtype="int8")
    assert (x**2).dtype == np.int8 and (x**2).tolist() == [1, 4, 9]
    assert (2**x).tolist() == [2, 4, 8]
    with pytest.raises(TypeError, match="negative powers"):
        x**-1
    assert (jnp.float32(2) ** -2).item() == 0.25
    assert "integer_pow" in str(pullback.make_jaxpr(lambda x: x**3)(1.0))


def test_x64_types(x64):
    assert jnp.sin(jnp.ones((), "int32")).dtype == np.float32
    assert jnp.sin(jnp.ones((), "int64")).dtype == np.float64
    assert jnp.add(1, 2).dtype == np.int64
    assert jnp.add(jnp.float32(1), 2.0).dtype == np.float32
    assert jnp.exp(np.float64(1)).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: jnp.add([1], 2),
            TypeError,
            r"add requires ndarray or scalar arguments, got <class 'list'> at position 0",
        ),
        (lambda: jnp.sin("a"), TypeError, "got <class 'str'> at position 0"),
        (
            lambda: jnp.add(X, np.ones(5)),
            ValueError,
            r"Incompatible shapes for broadcasting: shapes=\[\(3, 4\), \(5,\)\]",
        ),
        (
            lambda: jnp.add(X, np.ones((3, 5))),
            TypeError,
            r"add got incompatible shapes for broadcasting: \(3, 4\), \(3, 5\)",
        ),
        (lambda: jnp.bitwise_and(X, X), TypeError, "does not accept dtype float32"),
        (lambda: jnp.floor_divide(C, C), TypeError, "complex"),
        (lambda: jnp.hypot(C, C), ValueError, "complex"),
        (lambda: jnp.gcd(X, X), ValueError, "must be integers"),
        (lambda: jnp.signbit(C), ValueError, "complex64"),
        (lambda: jnp.round(I, -1), NotImplementedError, "decimals=-1 is not supported"),
        (lambda: jnp.add(X, X, out=X), NotImplementedError, "out"),
        (lambda: jnp.add(X, X, where=B), NotImplementedError, "where"),
        (lambda: jnp.ldexp(X, X), ValueError, "ldexp not supported"),
        (lambda: jnp.sin(1, 2), TypeError, "positional argument"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_rank_promotion_can_be_refused():
    with pullback.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="rank_promotion"):
            jnp.add(jnp.ones((2, 3)), jnp.ones(3))
        assert jnp.add(jnp.ones((2, 3)), 1.0).shape == (2, 3)
    with pullback.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        jnp.add(jnp.ones((2, 3)), jnp.ones(3))


def test_ranks_of_the_axes_that_are_broadcast_are_those_that_may_not_differ():
    one, two, square, stack = jnp.ones(3), jnp.ones((2, 3)), jnp.eye(3), jnp.eye(3)[None]
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    refused = [
        (dot, one, two), (jnp.vectorize(jnp.add), one, two), (jnp.linalg.solve, stack, one), (jnp.vecmat, one, stack),
        (jnp.matvec, square, two), (jnp.vecdot, one, two), (linalg.solve_triangular, stack, one),
        (linalg.toeplitz, one, two), (linalg.leslie, one, two[:, :2]),
    ]  # fmt: skip
    taken = [
        (dot, one, one), (jnp.vectorize(jnp.add), 2.0, two), (jnp.linalg.solve, square, one), (jnp.matvec, square, one),
        (linalg.solve, square, one), (jnp.matmul, square, jnp.ones((2, 3, 3))),
    ]  # fmt: skip
    with pullback.numpy_rank_promotion("raise"):
        for function, *args in taken:
            function(*args)
        for function, *args in refused:
            with pytest.raises(ValueError, match="rank_promotion"):
                function(*args)


# ---- ufunc objects


@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "logaddexp"]
)
def test_reduce_and_accumulate(same, name):
    x = I if name.startswith("bitwise") else X
    same(lambda m, x: getattr(m, name).reduce(x), x)
    same(lambda m, x: getattr(m, name).reduce(x, axis=1, keepdims=True), x)
    same(lambda m, x: getattr(m, name).accumulate(x, axis=1), x)


def test_reduce_of_any_function(same):
    same(lambda m, x: m.subtract.reduce(x, axis=1), X)
    ours = jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    expected = np.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    np.testing.assert_allclose(ours.reduce(X, axis=1), expected.reduce(X, axis=1).astype(np.float32), rtol=1e-5)
    np.testing.assert_allclose(ours.accumulate(X, axis=0), expected.accumulate(X, axis=0).astype(np.float32), rtol=1e-5)
    np.testing.assert_allclose(ours.outer(X[0], Y[0]), expected.outer(X[0], Y[0]).astype(np.float32), rtol=1e-5)
    assert repr(jnp.add) == "<jnp.ufunc 'add'>"
    assert (jnp.add.nin, jnp.add.nout, jnp.add.identity) == (2, 1, 0)


def test_at_and_reduceat():
    x, k = np.arange(6.0, dtype=np.float32), np.array([1, 1, 4])
    for name in ("add", "multiply", "subtract", "maximum"):
        expected = x.copy()
        getattr(np, name).at(expected, k, np.float32(2.5))
        np.testing.assert_allclose(getattr(jnp, name).at(jnp.asarray(x), k, 2.5, inplace=False), expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="inplace"):
        jnp.add.at(jnp.asarray(x), 0, 1.0)
    np.testing.assert_allclose(jnp.add.reduceat(jnp.asarray(x), np.array([0, 3, 1])), np.add.reduceat(x, [0, 3, 1]))
    assert np.isnan(jnp.add.reduceat(jnp.asarray(x), np.array([0, 7]))).tolist() == [False, True]


def test_sums_accumulate_in_order_without_an_axis():
    x = jnp.arange(4.0).reshape(2, 2)
    assert jnp.add.accumulate(x, axis=None).tolist() == [0, 1, 3, 6]
    assert jnp.multiply.accumulate(x + 1, axis=None, dtype=int).tolist() == [1, 2, 6, 24]
    for name in ("maximum", "subtract", "logical_or"):
        with pytest.raises(ValueError, match="multiple axes"):
            getattr(jnp, name).accumulate(x, axis=None)


# ---- derivatives that need care


def test_derivatives_at_special_points():
    grad = pullback.grad
    assert grad(jnp.sinc)(0.0) == 0.0
    np.testing.assert_allclose(grad(grad(jnp.sinc))(0.0), -(np.pi**2) / 3, rtol=1e-5)
    assert np.isnan(grad(jnp.logaddexp)(-np.inf, -np.inf))  # as in JAX
    np.testing.assert_allclose(grad(jnp.logaddexp)(1.0, 1.0), 0.5)
    for pair, shares in {
        (np.inf, np.inf): (1, 1),
        (np.inf, 5.0): (1, 0),
        (-np.inf, 2.0): (0, 1),
        (-80.0, 0.0): (np.exp(-80), 1),
    }.items():
        np.testing.assert_allclose(grad(jnp.logaddexp, (0, 1))(*pair), shares, 1e-6)
    for function in (jnp.logaddexp, jnp.logaddexp2):  # of numbers, which `jvp` gives rules as they are
        np.testing.assert_allclose(pullback.jvp(function, (0.5, 0.5), (1.0, 2.0))[1], 1.5, 1e-6)
    np.testing.assert_allclose(grad(lambda x: jnp.maximum(x, 0.0))(0.0), 0.5)
    assert grad(lambda x: x**2)(0.0) == 0.0
    np.testing.assert_allclose(grad(lambda x: jnp.frexp(x)[0])(8.0), 1 / 16)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_roots_as_powers_are_those_of_powers(dtype):
    x = np.array([-np.inf, -0.0, 4.0, np.inf, -1.0, np.nan], dtype)
    want = np.array([np.inf, 0.0, 2.0, np.inf, np.nan, np.nan])
    for f in (lambda x: x**0.5, lambda x: jnp.power(x, 0.5), lambda x: jnp.float_power(x, dtype(0.5))):
        for found in (f(jnp.asarray(x)), pullback.jit(f)(x)):
            np.testing.assert_array_equal(found, want)
            assert not np.signbit(found[1])


def test_the_larger_of_complex_numbers_has_derivatives():
    x, one = np.array([1 + 1j, -2, 1], np.complex64), np.ones(3, np.complex64)
    for f, share in ((jnp.maximum, [1, 0, 0.5]), (jnp.minimum, [0, 1, 0.5])):
        found = pullback.jvp(f, (x, one), (one, 0 * one))[1]
        np.testing.assert_array_equal(found, np.array(share, np.complex64))


def test_masks_select():
    x, mask = jnp.array([np.inf, -np.inf, np.nan, -5.0, 2.0]), jnp.array([False] * 4 + [True])
    for product in (x * mask, mask * x, pullback.jit(jnp.multiply)(x, mask), jnp.multiply(x.astype("complex64"), mask)):
        np.testing.assert_array_equal(product, [0, 0, 0, 0, 2])
        assert not np.signbit(product.real).any()
    np.testing.assert_array_equal(jnp.inf * mask, [0, 0, 0, 0, np.inf])
    np.testing.assert_array_equal(pullback.vmap(jnp.multiply)(x, mask), [0, 0, 0, 0, 2])
    np.testing.assert_array_equal(pullback.grad(lambda x: jnp.sum(x * mask))(x), [0, 0, 0, 0, 1])
    assert (2.0 * mask).weak_type and not (x * mask).weak_type
    assert (jnp.ones((2, 1)) * mask).shape == (2, 5) and (2 * mask).dtype == jnp.int32
    assert np.isnan(x * False)[0] and np.isnan(x.astype(jnp.bfloat16) * mask)[0]  # products, as in JAX
    with pytest.raises(TypeError, match="shapes"):
        x[:3] * mask


def test_methods_of_ufuncs_keep_what_the_function_gives():
    x, truths = jnp.array([1, 0, 2, 1]), jnp.array([True, False, True, True])
    steps = np.logaddexp.accumulate(np.array([1.0, 0.0, 2.0, 1.0], np.float32))
    for given in (x, x.astype("uint8"), x.astype(np.float32)):
        running = jnp.logaddexp.accumulate(given)
        assert running.dtype == np.float32
        np.testing.assert_allclose(running, steps, 1e-6)
        at = jnp.logaddexp.at(given, jnp.array([0, 0]), given[:2], inplace=False)
        np.testing.assert_allclose(at, [np.logaddexp(np.logaddexp(1, 1), 0), 0, 2, 1], 1e-6)
        pieces = jnp.logaddexp.reduceat(given, jnp.array([0, 2]))
        np.testing.assert_allclose(pieces, [np.logaddexp(1, 0), np.logaddexp(2, 1)], 1e-6)
    np.testing.assert_array_equal(jnp.logical_and.at(x, 0, 0, inplace=False), [False, False, True, True])
    for ufunc in (jnp.maximum, jnp.minimum):
        assert ufunc.accumulate(truths).dtype == bool
        np.testing.assert_array_equal(
            ufunc.accumulate(truths), getattr(np, ufunc.__name__).accumulate(np.array(truths))
        )
    np.testing.assert_array_equal(jnp.add.at(truths, jnp.array([1, 1]), truths[:2], inplace=False), [1, 1, 1, 1])
    np.testing.assert_array_equal(jnp.multiply.at(truths, jnp.array([0, 1]), truths[1:3], inplace=False), [0, 0, 1, 1])
    for dtype in ("uint8", "float32"):  # nothing happens out of bounds
        at = jnp.logaddexp.at(x.astype(dtype), jnp.array([9, -9]), 1.0, inplace=False)
        np.testing.assert_array_equal(at, x.astype(np.float32))
    assert jnp.maximum.at(x.astype("uint8"), 0, 2.5, inplace=False).tolist() == [2.5, 0, 2, 1]
    assert jnp.subtract.at(x, jnp.array([0, 0]), 2, inplace=False).tolist() == [-3, 0, 2, 1]
    halves = jnp.frompyfunc(lambda a, b: a * 1.5 + b, 2, 1)
    for n, total in ((1, 1.0), (2, 1.5), (3, 4.25)):  # of the function's type, of a single element too
        assert (halves.reduce(x[:n]).dtype, halves.reduce(x[:n])) == (np.float32, total)
    with pytest.raises(ValueError, match="integer argument required"):
        jnp.bitwise_xor.reduce(x.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float16", float, jnp.float32, np.dtype(np.int32)])
def test_running_results_are_of_the_type_that_is_asked_for_however_it_is_named(dtype):
    x = jnp.arange(12).reshape(3, 4)
    wanted = jnp.zeros(0, dtype).dtype
    for found, want in (
        (jnp.subtract.reduce(x, dtype=dtype), np.subtract.reduce(x)),
        (jnp.subtract.accumulate(x, dtype=dtype), np.subtract.accumulate(x)),
        (jnp.subtract.reduceat(x, jnp.array([0, 2]), dtype=dtype), np.subtract.reduceat(x, [0, 2])),
    ):
        assert found.dtype == wanted
        np.testing.assert_array_equal(found, want)


def test_methods_give_canonical_dtypes():
    x = jnp.ones((2, 3))
    for ufunc in (jnp.maximum, jnp.logical_and, jnp.logaddexp, jnp.add):
        with pytest.warns(UserWarning, match="float64"):
            assert ufunc.reduce(x, dtype="float64").dtype == np.float32
        with pytest.warns(UserWarning, match="float64"):
            assert ufunc.accumulate(x, dtype="float64").dtype == np.float32
    assert not jnp.from_dlpack(jnp.asarray(1)).aval.weak_type


def test_true_and_false_are_whole_exponents_where_nothing_is_promoted():
    with pullback.numpy_dtype_promotion("strict"):
        for x in (jnp.arange(1, 4, dtype="uint32"), jnp.arange(1.0, 4.0)):
            for function in (jnp.power, jnp.pow, lambda x, n: x**n):
                assert function(x, True).tolist() == x.tolist() and function(x, False).tolist() == [1, 1, 1]
                assert function(x, True).dtype == x.dtype
