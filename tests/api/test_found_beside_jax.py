"""What programs for JAX rely on: float0, what is not mapped, names, reasons for traces, strict promotion."""

import functools
import logging

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
import pullback.scipy.fft
import pullback.scipy.signal
import pullback.scipy.stats
from pullback import lax
from pullback.experimental import checkify

V, I = jnp.arange(3.0), jnp.arange(3)
NOTHING = np.zeros(3, jax.float0)


def test_arrays_of_float0():
    for made in (jnp.asarray(NOTHING), jnp.zeros_like(NOTHING), jnp.zeros(3, jax.float0), jax.device_put(NOTHING)):
        assert made.shape == (3,) and made.dtype == jax.float0
    for passed in (
        jax.jit(lambda x: x)(NOTHING),
        lax.cond(True, lambda x: x, lambda x: x, NOTHING),
        lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, NOTHING))[1],
        lax.scan(lambda c, x: (c, x), np.zeros(2, jax.float0), NOTHING)[1],
        jax.vjp(lambda i, x: i * x, I, V)[1](V)[0],
    ):
        assert passed.shape == (3,) and passed.dtype == jax.float0


class Thing:
    factor = 3


def test_what_is_not_mapped_may_be_anything():
    mapped = jax.vmap(lambda x, s: x + len(s), in_axes=(0, None))
    assert mapped(V, "abc").tolist() == [3, 4, 5]
    times = jax.vmap(lambda x, o: x * o["a"].factor, in_axes=(0, {"a": None}))
    assert times(V, {"a": Thing()}).tolist() == [0, 3, 6]
    assert jax.jit(mapped, static_argnums=1)(V, "ab").tolist() == [2, 3, 4]
    assert jax.grad(lambda v: times(v, {"a": Thing()}).sum())(V).tolist() == [3, 3, 3]
    np.testing.assert_allclose(jax.vmap(lambda x, f: f(x), in_axes=(0, None))(V, jnp.sin), np.sin(V), rtol=1e-6)
    for axes in ((0, 0), 0):
        with pytest.raises(TypeError, match="argument s is 'abc'"):
            jax.vmap(lambda x, s: x, in_axes=axes)(V, "abc")
    with pytest.raises(TypeError, match="argument x is 'abc'"):
        jax.vmap(lambda x, s: x, in_axes=(0, None))("abc", "abc")


def test_attributes_of_functions():
    def fun(x):
        return x

    fun.attribute = 5
    transforms = [jax.jit, jax.grad, jax.vmap, jax.value_and_grad, jax.jacfwd, jax.jacrev, jax.hessian, jax.checkpoint]
    for transform in [*transforms, functools.partial(jax.named_call, name="other")]:
        assert transform(fun).attribute == 5 and transform(fun).__name__ == "fun"
    assert jax.jit(functools.partial(fun, 1)).__name__ == "fun"


def test_reasons_for_traces(caplog):
    def fun(x, y=1):
        return x

    with jax.explain_cache_misses(True), caplog.at_level(logging.WARNING, "jax"):
        f = jax.jit(fun, static_argnames="y")
        for args, kwargs in (((V,), {}), ((V,), {}), ((I,), {}), ((V,), {"y": 2}), (((V, V),), {})):
            f(*args, **kwargs)
        with jax.enable_x64(True):
            f(V)
    said = caplog.messages
    assert len(said) == 5 and all(text.startswith("TRACING CACHE MISS at ") for text in said)
    assert "never seen function: fun defined at" in said[0] and __file__ in said[0]
    assert "* argument x: now i32[3], before f32[3]" in said[1]
    assert "* static argument 'y': now 2, before not given" in said[2]
    assert "* different structure of the arguments" in said[3] and "* different options" in said[4]
    caplog.clear()
    jax.jit(fun)(V)
    assert not caplog.messages


def test_traces_and_compilations_are_logged(caplog):
    with jax.log_compiles(), caplog.at_level(logging.WARNING, "jax"):
        jax.jit(lambda x: jnp.sin(x) * 2.125 + 1)(V)
    said = {record.name: record.getMessage() for record in caplog.records if "<lambda>" in record.getMessage()}
    assert said["jax._src.interpreters.pxla"].startswith(
        "Compiling jit(<lambda>) with global shapes and types (ShapedArray(float32[3]),)"
    )
    assert said["jax._src.dispatch"].startswith("Finished compilation of jit(<lambda>) in ")
    assert any(text.startswith("Finished tracing <lambda> for jit in ") for text in caplog.messages)
    caplog.clear()
    jax.jit(lambda x: jnp.sin(x) * 3.125 + 1)(V)
    assert not caplog.messages


def test_what_the_array_standard_asks():
    info = jnp.__array_namespace_info__()
    assert jnp.__array_api_version__ == "2024.12" and info.default_device() is None
    assert info.devices() == [None, *jax.devices()] and info.capabilities()["max dimensions"] == 64
    assert info.default_dtypes() == {
        "real floating": np.float32, "complex floating": np.complex64, "integral": np.int32, "indexing": np.int32,
    }  # fmt: skip
    assert sorted(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32"] and len(info.dtypes()) == 9
    with jax.enable_x64(True):
        assert info.default_dtypes()["integral"] == np.int64 and len(info.dtypes(device=jax.devices()[0])) == 13
    with pytest.raises(KeyError):
        info.dtypes(kind="zoo")
    with pytest.raises(ValueError, match="argument 'device'"):
        info.dtypes(device="zoo")


def test_positions_conditions_and_partial_results():
    assert int(jnp.ravel_multi_index((1, 5), (2, 3), mode="ignore")) == 8
    assert jax.jit(lambda i: jnp.ravel_multi_index((i, i), (2, 3), mode="ignore"))(I).tolist() == [0, 4, 8]
    x = jnp.linspace(-2, 2, 5)
    assert jnp.piecewise(x, [[True, False, True, False, True]], [1.0, 2.0]).tolist() == [1, 2, 1, 2, 1]
    assert jnp.logical_and.accumulate(jnp.array([2.0, 1.0, 0.0, 3.0])).tolist() == [True, True, False, False]


def test_errors_of_custom_functions():
    with pytest.raises(TypeError, match="custom_root: f must give arrays of the structure"):
        lax.custom_root(lambda x: {"a": x}, 1.0, lambda f, x: x, lambda g, y: y)
    with pytest.raises(TypeError, match="custom_root: solve must give arrays of the structure"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: {"a": x}, lambda g, y: y)
    _, aux = lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, 7), lambda g, y: y, has_aux=True)
    assert aux.dtype == jnp.int32
    with pytest.raises(ValueError, match="matvec must give arrays of the structure and shapes"):
        lax.custom_linear_solve(lambda x: jnp.ones(2), V, lambda _, b: b)
    with pytest.raises(TypeError, match="must return a pair of its result and a function"):
        jax.custom_gradient(lambda x: x)(1.0)


STRICT = {
    "welch": lambda: jsp.signal.welch(jnp.arange(8.0), nperseg=4),
    "csd": lambda: jsp.signal.csd(jnp.arange(8.0), jnp.arange(8.0), nperseg=4),
    "istft": lambda: jsp.signal.istft(jsp.signal.stft(jnp.arange(8.0), nperseg=4)[2], nperseg=4),
    "idct": lambda: jsp.fft.idct(V),
    "bessel_jn": lambda: jsp.special.bessel_jn(V + 1, v=2),
    "rankdata": lambda: jsp.stats.rankdata(V),
    "multinomial": lambda: jsp.stats.multinomial.logpmf(I, 3, V / 3),
}


@pytest.mark.parametrize("name", STRICT)
def test_own_code_does_not_promote(name):
    """With strict promotion the results are the same, bit by bit."""
    plain = STRICT[name]()
    with jax.numpy_dtype_promotion("strict"):
        strict = STRICT[name]()
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(strict), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def test_traced_values_in_nondiff_argnums_of_custom_vjp():
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def f(n, x):
        return n * x

    f.defvjp(lambda n, x: (f(n, x), None), lambda n, _, g: (n * g,))
    assert jax.grad(f, 1)(2.0, 3.0) == 2 and jax.grad(f, 1)(jnp.float32(4), 3.0) == 4
    mapped = jax.vmap(f)
    for call in (jax.jit(f), jax.grad(f, 0), mapped, jax.jit(lambda n, x: jax.grad(lambda x: f(n, x))(x))):
        with pytest.raises(jax.errors.UnexpectedTracerError, match="nondiff_argnums"):
            call(*((jnp.ones(1),) * 2 if call is mapped else (1.0, 2.0)))
    with pytest.raises(jax.errors.UnexpectedTracerError, match="argument 0"):
        jax.jit(lambda x: f([x], x))(1.0)


def test_struct_like():
    for x in (
        jnp.ones((2, 3)),
        np.ones(2, np.int8),
        1.0,
        np.float32(2),
        jnp.asarray(3),
        jax.ShapeDtypeStruct((2,), "i4"),
    ):
        like = jax.ShapeDtypeStruct.like(x)
        if not isinstance(x, jax.ShapeDtypeStruct):
            x = jnp.asarray(x)
        assert (like.shape, like.dtype, like.weak_type) == (x.shape, x.dtype, x.weak_type)
    with pytest.raises(TypeError):
        jax.ShapeDtypeStruct.like("a")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.ones(2)[np.float32(0)], TypeError, "integer or boolean type"),
        (lambda: jnp.ones(2)[jax.random.key(0)], TypeError, "integer or boolean type"),
        (lambda: jnp.ones(2).__format__(1), TypeError, "must be str"),
        (lambda: jax.grad(lambda x, y: x, (0, -2))(1.0, 1.0), TypeError, "twice"),
        (lambda: jnp.ravel_multi_index((jnp.array([1.0]), 1), (2, 3), mode="clip"), ValueError, "integer type"),
        (lambda: lax.dynamic_slice(jnp.ones(6), (-1,), (2,), allow_negative_indices=False), ValueError, "negative"),
        (
            lambda: jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.ones((3, 4))),
            ValueError,
            "size of the mapped axis",
        ),
    ],
)
def test_what_is_no_index_or_does_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_key_data_of_numpy_arrays_and_the_dtype_of_multivariate_normal():
    assert isinstance(jax.random.key_data(np.arange(2, dtype=np.uint32)), jax.Array)
    drawn = jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), dtype=jnp.float16)
    assert drawn.dtype == jnp.float32


def test_index_checks_of_numbers():
    for f in (lambda x, i: x[i], lambda x, i: x.at[i].set(1)):
        error, _ = checkify.checkify(f, errors=checkify.index_checks)(jnp.ones(3), 5)
        assert "index 5 is out of bounds" in error.get()


def test_keyword_only_defaults_stay_with_the_function():
    f = jax.custom_vjp(lambda x, *, k=2: x * k)
    f.defvjp(lambda x: (x, None), lambda _, g: (3 * g,))
    assert f(jnp.float32(2.0)) == 4 and jax.grad(f)(2.0) == 3
    with pytest.raises(TypeError, match="could not be resolved to positions"):
        f(2.0, k=3)


def test_arguments_may_be_named_after_one_that_is_left_out():
    """As ott's logsumexp is called: b keeps its default."""
    f = jax.custom_jvp(lambda x, a=2, b=None, c=5: x * a * c if b is None else x * b * c, nondiff_argnums=(1, 3))
    f.defjvp(lambda a, c, primals, tangents: (f(primals[0], a, primals[1], c), 7.0 * tangents[0]))
    assert f(1.0, c=3) == 6 and jax.grad(lambda x: f(x, c=3))(1.0) == 7
    assert f(1.0, b=4.0) == 20 and f(1.0, c=3, a=1) == 3


def test_a_root_keeps_weak_types_and_names_another_structure():
    def root(x):
        return lax.custom_root(lambda x: x - 2, x, lambda f, x: x - f(x), lambda g, y: y / g(1.0))

    assert root(1.0).weak_type and jax.jit(root)(1.0).weak_type and not jax.jit(root)(jnp.float32(1)).weak_type
    with pytest.raises(TypeError, match="structure"):
        lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y)
