"""jax.nn against what JAX computes, values and derivatives; errors of bad arguments."""

import json
import pathlib

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import nn, random

DATA = json.loads((pathlib.Path(__file__).parent / "data" / "jax_values.json").read_text())["cases"]


def scope():
    return {
        "nn": nn, "jnp": jnp, "random": random, "key": random.key(0), "grad": lambda f: jax.grad(lambda x: f(x).sum()),
        "x": jnp.array([-8., -3., -1.5, -.5, -1e-3, 0., .25, 1., 2.5, 6., 9.]),
        "m": jnp.array([[.5, -1., 2., 0.], [3., 1., -2., .5], [0., 0., 0., 10.]]),
        "mask": jnp.array([[True, False, True, True], [False, True, False, False], [True, True, True, False]]),
        "q": jnp.sin(jnp.arange(80.)).reshape(2, 5, 2, 4),
    }  # fmt: skip


@pytest.mark.parametrize("text", DATA)
def test_same_values_as_jax(text):
    stored = DATA[text]
    values = stored["values"]
    if stored["dtype"].startswith("complex"):
        values = [complex(float.fromhex(a), float.fromhex(b)) for a, b in values]
    elif stored["dtype"].startswith("float"):
        values = [float.fromhex(v) for v in values]
    expected = np.array(values).astype(stored["dtype"]).reshape(stored["shape"])
    actual = np.asarray(eval(text, scope()))
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=16 * eps, atol=16 * eps)


@pytest.mark.parametrize("text", list(DATA)[::5])
def test_jit_gives_the_same(text):
    names = scope()
    traced = {n: v for n, v in names.items() if n in ("x", "m", "mask", "q", "key")}
    run = jax.jit(lambda traced: eval(text, {**names, **traced}))
    np.testing.assert_allclose(np.asarray(run(traced)), np.asarray(eval(text, names)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("call,error,message", [
    (lambda: nn.sigmoid(jnp.arange(3)), TypeError, "logistic does not accept dtype int32"),
    (lambda: nn.softmax(jnp.ones(3), axis=2), ValueError, "names axis 2, but x has 1 dimensions"),
    (lambda: nn.softmax(1.0), ValueError, "names axis -1, but x has 0 dimensions"),
    (lambda: nn.glu(jnp.ones((2, 3))), AssertionError, "axis size must be divisible by 2"),
    (lambda: nn.glu(jnp.float32(1)), IndexError, "'axis' is -1"),
    (lambda: nn.glu(jnp.ones(4), axis=2), IndexError, "'axis' is 2"),
    (lambda: nn.one_hot(1, 2.5), TypeError, "must be an integer"),
    (lambda: nn.standardize(jnp.ones(3), algorithm="slow"), ValueError, "'fast' or 'stable', got 'slow'"),
    (lambda: nn.initializers.glorot_normal()(random.key(0), (3,)), ValueError, "no axis -2"),
    (lambda: nn.initializers.variance_scaling(1.0, "foo", "normal")(random.key(0), (2, 3)), ValueError, "'mode' is"),
    (lambda: nn.initializers.variance_scaling(1.0, "fan_in", "foo")(random.key(0), (2, 3)), ValueError,
     "'distribution' is normal, .*got 'foo'"),
    (lambda: nn.initializers.orthogonal()(random.key(0), (3,)), ValueError, "two dimensions or more, got shape"),
    (lambda: nn.initializers.delta_orthogonal()(random.key(0), (3, 4, 2)), ValueError, "more inputs"),
    (lambda: nn.dot_product_attention(jnp.ones((5, 2, 3)), jnp.ones((4, 3, 3)), jnp.ones((4, 3, 3))), ValueError,
     "the 2 heads of query must be a multiple of the 3 of key and value"),
    (lambda: nn.dot_product_attention(*[jnp.ones((1, 5, 2, 3))] * 3, mask=jnp.ones((5, 5))), ValueError,
     "'mask' must be of dtype bool"),
    (lambda: nn.dot_product_attention(*[jnp.ones((1, 5, 2, 3))] * 3, implementation="foo"), ValueError,
     "Unsupported implementation option: foo"),
    (lambda: nn.scaled_matmul(*[jnp.ones((2, 3))] * 4), ValueError, r"lhs must be \[b, m, k\]"),
])  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_axes_of_softmax_may_be_a_list():
    x = jnp.arange(6.0).reshape(2, 3)
    assert (nn.softmax(x, axis=[0, 1]) == nn.softmax(x, axis=(0, 1))).all()
    with pytest.raises(ValueError, match="Non-hashable"):
        nn.log_softmax(x, axis=[0, 1])


def test_scaled_matmul():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, 2, 8)).astype("f"), rng.normal(size=(1, 3, 8)).astype("f")
    sa, sb = rng.normal(size=(1, 2, 2)).astype("f"), rng.normal(size=(1, 3, 2)).astype("f")
    expected = np.einsum("bmk,bnk->bmn", a * np.repeat(sa, 4, 2), b * np.repeat(sb, 4, 2))
    np.testing.assert_allclose(np.asarray(nn.scaled_matmul(a, b, sa, sb)), expected, rtol=1e-5, atol=1e-5)


def test_what_a_mask_leaves_out_of_logsumexp_has_no_derivative_however_large():
    x = np.array([[1.0, 3e38, np.inf], [2.0, -3e38, 1.0]], np.float32)
    mask = np.array([[True, False, False], [True, False, False]])
    for way in (lambda f: f, jax.jit):
        value, slope = way(jax.value_and_grad(lambda x: nn.logsumexp(x, where=mask)))(x)
        np.testing.assert_allclose(value, np.logaddexp(1.0, 2.0), rtol=1e-6)
        np.testing.assert_allclose(slope, [[0.26894143, 0, 0], [0.7310586, 0, 0]], rtol=1e-6)
        empty = way(jax.jacrev(lambda x: nn.logsumexp(x, axis=0, where=np.zeros_like(mask))))(x)
        assert not np.any(empty)


@pytest.mark.parametrize("axes", [[0], (0,), {0}, range(1), {0: "rows"}], ids=repr)
def test_axes_of_initializers_are_any_collection(axes):
    key = jax.random.key(0)
    found = jax.nn.initializers.lecun_uniform(in_axis=axes, out_axis=1)(key, (3, 4))
    assert np.array_equal(found, jax.nn.initializers.lecun_uniform(in_axis=0, out_axis=1)(key, (3, 4)))


def test_vectors_have_the_axes_that_are_named():
    key = jax.random.key(0)
    assert jax.nn.initializers.lecun_uniform(in_axis=0, out_axis=0)(key, (4,)).shape == (4,)
    assert jax.nn.initializers.lecun_normal(in_axis=(), out_axis=0)(key, (4,)).shape == (4,)
    with pytest.raises(IndexError, match="do not exist in weights of shape"):
        jax.nn.initializers.he_normal(in_axis=0, out_axis=1)(key, (4,))


def test_scaled_dot_general_is_a_product_where_nothing_is_quantized():
    x, y = jnp.ones((2, 3), jnp.bfloat16), jnp.ones((3, 4), jnp.bfloat16)
    numbers = (((1,), (0,)), ((), ()))
    out = jax.nn.scaled_dot_general(x, y, numbers)
    assert out.dtype == jnp.float32 and (out == 3).all()
    assert jax.nn.scaled_dot_general(x, y, numbers, preferred_element_type=None).dtype == jnp.bfloat16
    config = jax.nn.get_scaled_dot_general_config("mxfp8")
    assert (config.block_size, config.data_type, config.global_scale) == (32, jnp.float8_e4m3fn, None)
    assert jax.nn.get_scaled_dot_general_config("nvfp4", 2.0).global_scale == 2.0
    with pytest.raises(NotImplementedError, match="GPU"):
        jax.nn.scaled_dot_general(x, y, numbers, configs=[config] * 3)
    with pytest.raises(ValueError, match="'mxfp8' or 'nvfp4', got 'int8'"):
        jax.nn.get_scaled_dot_general_config("int8")


def test_attention_of_one_position():
    rng = np.random.default_rng(0)
    q, kv = (rng.normal(size=(n, 3)).astype(np.float32) for n in (4, 2))
    out, residual = nn.dot_product_attention(q, kv, kv, return_residual=True)
    want, want_residual = nn.dot_product_attention(q[None], kv[None], kv[None], return_residual=True)
    np.testing.assert_array_equal(out, want[0])
    np.testing.assert_array_equal(residual, want_residual[0])


def test_one_hot_along_a_mapped_axis():
    x = jnp.array([0, 2, 5])
    along = lambda size: jax.vmap(lambda _: nn.one_hot(x, size, axis="i", dtype=jnp.int32), axis_name="i")(
        jnp.arange(3)
    )
    np.testing.assert_array_equal(along(3), nn.one_hot(x, 3, axis=0))
    with pytest.raises(ValueError, match="num_classes"):
        along(4)
    with pytest.raises(NameError, match="unbound"):
        nn.one_hot(x, 3, axis="i")
