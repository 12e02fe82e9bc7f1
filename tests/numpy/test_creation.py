"""Making arrays: values, types, weak types, errors."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax


def _is(x, value, dtype, weak=False):
    assert x.dtype == dtype and x.weak_type == weak, (x.dtype, x.weak_type)
    np.testing.assert_array_equal(np.asarray(x), np.asarray(value))


@pytest.mark.parametrize(
    ("given", "dtype", "weak"),
    [
        (1, "int32", True),
        (1.5, "float32", True),
        (1j, "complex64", True),
        (True, "bool", False),
        ([1, 2], "int32", False),
        ([1, 2.5], "float32", False),
        ([1, True], "int32", False),
        ([], "float32", False),
        ([[1, 2], [3, 4]], "int32", False),
        ((1, 2), "int32", False),
        (range(3), "int32", False),
        (np.float64(3), "float32", False),
        (np.arange(3, dtype="int8"), "int8", False),
        ([np.float16(1), 2], "float16", False),
        ([1, 1j], "complex64", False),
        (memoryview(b"abc"), "uint8", False),
    ],
)
def test_array(given, dtype, weak):
    _is(jnp.array(given), np.asarray(given), dtype, weak)


def test_array_of_arrays():
    x = jnp.ones(2)
    assert jnp.array([x, x]).shape == (2, 2)
    _is(jnp.array([[x[0], 2], [3, 4]]), [[1, 2], [3, 4]], "float32")
    _is(jnp.array([jnp.int8(1), 2]), [1, 2], "int8")
    assert pullback.jit(lambda x: jnp.array([x, 2 * x, 1]))(3.0).tolist() == [3, 6, 1]
    assert jnp.array(3, ndmin=2).shape == (1, 1)
    _is(jnp.asarray([1.7], dtype=int), [1], "int32")


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_full_of_truths():
    for value, truth in ((1j, True), (0j, False), (2, True), (0, False)):
        for made in (jnp.full((), value, bool), lax.full((), value, np.bool_)):
            assert made.dtype == bool and bool(made) is truth


def test_full_like_keeps_the_lowest_bits():
    assert lax.full_like(jnp.zeros(1, "uint32"), 2**32 - 1).tolist() == [2**32 - 1]
    assert lax.full_like(jnp.zeros(1, "int8"), 2**31 + 200).tolist() == [-56]
    assert str(jnp.iinfo("int8")) == "iinfo(min=-128, max=127, dtype=int8)"


def test_integers_of_less_than_a_byte_keep_their_lowest_bits():
    made = [jnp.array(9, "int4"), jnp.int4(-9), jnp.uint4(-1), jnp.int2(2**40 + 3), jnp.full((), 9, "int4")]
    assert [int(x) for x in made] == [-7, 7, 15, -1, -7]
    assert jnp.array([9, -9, 7], "int4").tolist() == [-7, 7, 7]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.array(9.5, "int4"), OverflowError, "out of bounds for int4"),
        (lambda: jnp.array([9.5, 1], "int4"), OverflowError, "out of bounds for int4"),
        (lambda: jnp.array(None), ValueError, "None is no element"),
        (lambda: jnp.array([1, None]), ValueError, "None is no element"),
        (lambda: jnp.array("abc"), TypeError, "'abc' has dtype <U3, not a valid JAX array type"),
        (lambda: jnp.array({1: 2}), TypeError, "dtype object"),
        (lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous"),
        (lambda: jnp.array([jnp.ones(2), jnp.ones(3)]), TypeError, "inhomogeneous"),
        (lambda: jnp.array(2**40), OverflowError, "too large"),
        (lambda: jnp.array([2**40]), OverflowError, "out of bounds for int32"),
        (lambda: jnp.array(300, "uint8"), OverflowError, "out of bounds for uint8"),
        (lambda: jnp.array([1], order="F"), NotImplementedError, "order"),
        (lambda: jnp.zeros(2.5), TypeError, "Shapes must be 1D"),
        (lambda: jnp.zeros("a"), TypeError, "Shapes must be 1D"),
        (lambda: jnp.zeros(-1), TypeError, "nonnegative"),
        (lambda: jnp.zeros(3, dtype=object), TypeError, "JAX only supports number and bool dtypes"),
        (lambda: jnp.full(2, [1, 2]), TypeError, "list"),
        (lambda: jnp.zeros_like([1]), TypeError, "list"),
        (lambda: jnp.arange(0, 3, 0), ZeroDivisionError, "'step' is 0"),
        (lambda: jnp.arange(3j), ValueError, "real"),
        (lambda: jnp.arange(jnp.ones(2)), ValueError, "scalars"),
        (lambda: jnp.arange(3, dtype=bool), TypeError, "bool"),
        (lambda: jnp.linspace(0, 1, -1), ValueError, "argument 'num' is -1"),
        (lambda: jnp.eye(-1), ValueError, "negative dimensions"),
        (lambda: jnp.tril(jnp.ones(3)), ValueError, "at least 2D"),
        (lambda: jnp.diag(jnp.ones((1, 1, 1))), ValueError, "1d or 2d"),
        (lambda: jnp.diag([1]), TypeError, "list"),
        (lambda: jnp.fromfile("x"), NotImplementedError, "np.fromfile"),
        (lambda: jnp.fromiter([1], float), NotImplementedError, "np.fromiter"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_errors_of_traced_sizes():
    errors = pullback.errors
    with pytest.raises(errors.ConcretizationTypeError, match=r"jnp\.arange argument 'stop'"):
        pullback.jit(jnp.arange)(3)
    with pytest.raises(TypeError, match="static_argnums"):
        pullback.jit(lambda n: jnp.zeros(n))(3)
    with pytest.raises(errors.ConcretizationTypeError, match=r"'num' argument of jnp\.linspace"):
        pullback.jit(lambda n: jnp.linspace(0, 1, n))(3)


def test_filled():
    _is(jnp.zeros(3), np.zeros(3), "float32")
    _is(jnp.ones((2, 0), int), np.ones((2, 0)), "int32")
    _is(jnp.full(3, 1), [1, 1, 1], "int32", weak=True)
    _is(jnp.full((2, 2), jnp.arange(2)), [[0, 1], [0, 1]], "int32")
    _is(jnp.full((2,), 1.5, int), [1, 1], "int32")
    _is(jnp.zeros_like(1), 0, "int32", weak=True)
    _is(jnp.ones_like(jnp.ones(2, "int8"), shape=(3,)), [1, 1, 1], "int8")
    _is(jnp.full_like(jnp.ones(2, "int8"), 2.5), [2, 2], "int8")
    _is(jnp.empty((2,)), [0, 0], "float32")


@pytest.mark.parametrize(
    "args", [(3,), (1, 5), (5, 0, -2), (0, 1, 0.25), (3.0,), (1.5, 4.0), (0,), (-3,), (0, 1, 0.1), (2, 2)]
)
def test_arange(same, args):
    same(lambda m: m.arange(*args))
    assert jnp.arange(*args).dtype == ("float32" if any(isinstance(a, float) for a in args) else "int32")


@pytest.mark.parametrize("options", [{}, {"endpoint": False}, {"num": 1}, {"num": 0}, {"num": 7, "dtype": int}])
def test_linspace(same, options):
    same(lambda m: m.linspace(0, 10, **options))
    same(lambda m: m.linspace(-1.5, 2, **options))


def test_spaced(same):
    same(lambda m, a: m.linspace(a, 2.0, 3, axis=1), np.array([0.0, 1.0], np.float32))
    same(lambda m: m.linspace(0, 1, 5, retstep=True))
    same(lambda m: m.logspace(0, 3, 4), tolerance=1e-4)
    same(lambda m: m.geomspace(1, 1000, 4), tolerance=1e-4)
    same(lambda m: m.geomspace(-1, -1000, 4), tolerance=1e-4)
    assert jnp.geomspace(1, 256, 9, dtype=int).tolist() == [2**k for k in range(9)]


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4)])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_triangles(same, shape, k):
    x = np.arange(1.0, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    same(lambda m, x: (m.tril(x, k), m.triu(x, k), m.diagonal(x, k)), x)
    same(lambda m: (m.eye(shape[-2], shape[-1], k), m.tri(shape[-2], shape[-1], k)))


def test_diagonals(same):
    v = np.arange(1.0, 4, dtype=np.float32)
    for k in (-2, 0, 1):
        same(lambda m, v, k=k: (m.diag(v, k), m.diagflat(v, k)), v)
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    same(lambda m, x: m.diagonal(x, 1, 2, 0), x)
    same(lambda m, x: (m.trace(x), m.trace(x, -1, 1, 2)), x)
    same(lambda m, v: (m.vander(v), m.vander(v, 2), m.vander(v, 4, increasing=True)), v)
    same(lambda m: m.identity(3))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_powers_of_complex_numbers_in_vander_are_products(kind):
    """Powers by logarithms rounded even x**1: of 3e240j its 14th digit."""
    with pullback.enable_x64(True):
        x = np.array([3.25 - 1e7j, -1.5 + 0.25j, 0, -2.0], kind)
        for n in (0, 1, 2, 5):
            for increasing in (False, True):
                want = np.vander(x, n, increasing=increasing).astype(kind)
                for way in (lambda f: f, pullback.jit):
                    found = way(lambda x, n=n, increasing=increasing: jnp.vander(x, n, increasing=increasing))(x)
                    assert found.shape == want.shape and found.dtype == want.dtype
                    if n == 2:
                        assert np.array_equal(found, want)
                    np.testing.assert_allclose(found, want, rtol=8 * np.finfo(kind).eps)
        assert jnp.vander(x[:0]).shape == (0, 0) and jnp.vander(x[:0], 3).shape == (0, 3)
        slope = pullback.jvp(lambda x: jnp.vander(x, 3), (x,), (np.ones_like(x),))[1]
        np.testing.assert_allclose(slope, np.stack([2 * x, np.ones_like(x), np.zeros_like(x)], 1), rtol=1e-6)


def test_grids(same):
    a, b = np.arange(2.0, dtype=np.float32), np.arange(3.0, dtype=np.float32)
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            options = {"indexing": indexing, "sparse": sparse}
            same(lambda m, a, b, options=options: m.meshgrid(a, b, **options), a, b)
    same(lambda m: m.indices((2, 3)))
    same(lambda m: m.indices((2, 3), sparse=True))
    same(lambda m: (m.mgrid[0:2, 0:3], m.ogrid[0:2, 0:3], m.mgrid[0:1:3j], m.mgrid[-1:1:0.5]))
    same(lambda m, a: (m.r_[a, 5, 1:3], m.c_[a, a], m.r_["0,2", a, a], m.r_["1,2,0", a, a]), a)
    assert jnp.s_[1:2] == slice(1, 2)
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        jnp.meshgrid(a, indexing="ab")


def test_from_elsewhere():
    assert jnp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int).tolist() == [[0, 10], [1, 11]]
    assert jnp.frombuffer(b"abc", "int8").tolist() == [97, 98, 99]
    assert jnp.fromstring("1 2", sep=" ").tolist() == [1, 2]
    assert jnp.from_dlpack(np.ones(2, np.float32)).tolist() == [1, 1]
    assert jnp.float32([1, 2]).tolist() == [1, 2]


def test_types_wider_than_available_warn():
    with pytest.warns(UserWarning, match="float64.*is not available.*becomes float32"):
        assert jnp.zeros(3, "float64").dtype == np.float32
    assert jnp.zeros(3, float).dtype == np.float32


def test_x64_creation(x64):
    assert jnp.array([1, 2]).dtype == np.int64
    assert jnp.zeros(3).dtype == np.float64
    assert jnp.arange(3).dtype == np.int64
    assert jnp.linspace(0, 1, 3).dtype == np.float64
    assert jnp.array(2**40).item() == 2**40


@pytest.mark.parametrize("x64", [False, True])
def test_copies_of_numpy_arrays(x64):
    """The quick way of plain arrays gives what the general one does: types, layouts, whatever is refused."""
    with pullback.enable_x64(x64):
        for name in ("bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float64", "complex128"):
            dtype = jnp.dtype(name)
            x = np.arange(24).reshape(2, 3, 4).astype(dtype)
            for view in (x, x.T, x[:, ::-2], x[:0], x[0, 0, 0], x.copy()[1]):
                expected = np.array(view, pullback.dtypes.canonicalize_dtype(dtype))
                for got in (
                    jnp.array(view),
                    jnp.asarray(view),
                    jnp.array(view, copy=True, order="K"),
                    pullback.device_put(view),
                ):
                    assert (got.dtype, got.shape, got.weak_type) == (expected.dtype, expected.shape, False)
                    np.testing.assert_array_equal(np.asarray(got), expected)
                narrow = jnp.array(view, dtype=jnp.complex64, ndmin=4)
                assert (narrow.dtype, narrow.shape) == (np.complex64, (1,) * (4 - view.ndim) + view.shape)
        for value, weak in ((True, False), (3, True), (2.5, True), (1j, True)):
            for got in (jnp.array(value), jnp.asarray(value)):
                assert (
                    got.weak_type == weak
                    and got.dtype == pullback.dtypes.canonicalize_dtype(type(value))
                    and got == value
                )
    x = np.ones(3, np.float32)
    copy = jnp.array(x)
    x[:] = 7
    assert copy.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="native byte order"):
        jnp.array(np.ones(3, ">f4"))
    with pytest.raises(TypeError):
        jnp.array(np.array([object()]))
    masked = np.ma.array([1, 2], mask=[True, False])
    assert jnp.array(masked).tolist() == [1, 2]  # a copy of the data, as np.array makes
    with pytest.raises(ValueError, match="masked"):
        jnp.asarray(masked)
    with pytest.raises(NotImplementedError, match="order"):
        jnp.array(x, order="F")


@pytest.mark.parametrize(
    ("words", "dtype", "numbers"),
    [
        (["3.5", "1"], "float32", [3.5, 1]),
        ([["1", "2"]], "int32", [[1, 2]]),
        ("1.5", "float16", 1.5),
        ([b"2"], "bfloat16", [2]),
        (np.array(["1+2j"]), "complex64", [1 + 2j]),
        (["1", 2.0], "float32", [1, 2]),
    ],
)
def test_words_are_read_as_numbers_of_the_type_that_is_given(words, dtype, numbers):
    assert jnp.array(words, dtype).tolist() == numbers and jnp.asarray(words, dtype).dtype == dtype
    with pytest.raises(TypeError, match="not a valid JAX"):
        jnp.array(words)
    with pytest.raises(ValueError, match="could not convert string"):
        jnp.array(["one"], "float32")


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("given", [">f4", ">i2", ">c16", "g", "G", "O", "m8[s]"])
def test_arrays_of_types_that_cannot_be_held_are_converted_to_the_one_asked_for(given):
    x = np.arange(6).reshape(2, 3).astype(given)
    whole = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.asarray(x, dtype="float32"), whole)
    np.testing.assert_array_equal(jnp.array(x.T[::-1], "int8"), whole.T[::-1])
    np.testing.assert_array_equal(jnp.asarray(x[1, 2], dtype="int32"), 5)
    assert jnp.asarray(x[:0], jnp.float16).shape == (0, 3)
    with pytest.raises(TypeError, match="native byte order"):
        jnp.array(np.ones(3, ">f4"))
    with pytest.raises(TypeError):
        jnp.array(np.array([object()]))
    with pytest.raises(ValueError, match="masked"):
        jnp.asarray(np.ma.array([1, 2], mask=[True, False]))
    with pytest.raises(NotImplementedError, match="order"):
        jnp.array(x, order="F")


MADE = {
    "bool": lambda: jnp.asarray(False),
    "float": lambda: jnp.array(1.5),
    "list": lambda: jnp.asarray([1, 2]),
    "NumPy": lambda: jnp.array(np.ones(2)),
    "NumPy scalar": lambda: jnp.asarray(np.float32(1)),
    "buffer": lambda: jnp.frombuffer(b"ab", "int8"),
    "scalar type": lambda: jnp.int32(3),
    "more axes": lambda: jnp.array(1, ndmin=2),
    "ones of no axes": lambda: jnp.ones(()),
    "zeros like a number": lambda: jnp.zeros_like(1.0),
    "full of lax": lambda: pullback.lax.full((), 2, "float32"),
}


@pytest.mark.parametrize("name", MADE)
def test_arrays_made_while_a_program_is_recorded_are_values_of_it(name):
    make = MADE[name]
    seen = []

    def f(x):
        y = make()
        seen.append(y)
        return x, y

    inner = {"jit": lambda: pullback.jit(f)(1.0), "vmap": lambda: pullback.jit(pullback.vmap(f))(jnp.ones(2))}
    inner["grad"] = lambda: pullback.jit(lambda x: pullback.jvp(f, (x,), (x,))[0])(1.0)
    for run in inner.values():
        run()
    assert all(isinstance(y, pullback.core.Tracer) for y in seen)
    made = make()  # of the same value and type as without a program
    assert not isinstance(made, pullback.core.Tracer)
    staged = pullback.jit(make)()
    _is(staged, made, made.dtype, made.weak_type)
    seen.clear()
    pullback.vmap(f)(jnp.ones(2))
    pullback.grad(lambda x: f(x)[0])(1.0)
    with pullback.ensure_compile_time_eval():
        f(1.0)
    assert not any(isinstance(y, pullback.core.Tracer) for y in seen)


def test_what_is_made_in_a_program_is_no_condition_of_python():
    with pytest.raises(pullback.errors.TracerBoolConversionError):
        pullback.jit(lambda: 1 if jnp.asarray(True) else 2)()
    with pytest.raises(pullback.errors.ConcretizationTypeError):
        pullback.jit(lambda: int(jnp.int32(3)))()
    assert pullback.make_jaxpr(lambda x: x * jnp.float32(2))(jnp.ones(2)).jaxpr.constvars == []


def test_numbers_made_in_a_program_are_known_to_what_is_faster_with_them():
    x = jnp.arange(9.0)[::-1]
    for q in (lambda: jnp.array([0.25, 0.5]), lambda: jnp.float32(0.5), lambda: 0.5):
        names = [e.primitive.name for e in pullback.make_jaxpr(lambda x, q=q: jnp.quantile(x, q()))(x).eqns]
        assert "order_statistics" in names and "sort" not in names
        np.testing.assert_array_equal(pullback.jit(lambda x, q=q: jnp.quantile(x, q()))(x), jnp.quantile(x, q()))
    staged = pullback.make_jaxpr(lambda x, q: jnp.quantile(x, q))(x, 0.5)
    assert "order_statistics" not in str(staged)
