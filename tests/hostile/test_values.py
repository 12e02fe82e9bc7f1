"""Inputs and arguments of the unusual kind: either an error that says so, or the number that NumPy gives."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
from pullback import lax


def test_inputs_that_are_changed_after_the_call():
    a = np.arange(5.0, dtype=np.float32)
    kept = jax.custom_jvp(lambda v: v)
    kept.defjvp(lambda p, t: (p[0], t[0]))
    results = {
        "asarray": jnp.asarray(a),
        "jit": jax.jit(lambda v: (v, v.reshape(5, 1)))(a),
        "device_put": jax.device_put(a),
        "views": [jnp.ravel(a), jnp.broadcast_to(a, (5,)), jnp.squeeze(a), jnp.transpose(a), lax.reshape(a, (1, 5))],
        "same": [lax.stop_gradient(a), jnp.real(a), jnp.positive(a), lax.convert_element_type(a, np.float32)],
        "transforms": [jax.vmap(lambda v: v)(a), jax.checkpoint(lambda v: v)(a), jax.vjp(lambda v: v, a)[0], kept(a)],
        "control": [lax.cond(True, lambda v: v, lambda v: v, a), lax.scan(lambda c, v: (c, v), a, a)],
        "while": lax.while_loop(lambda v: v[0] > 1e9, lambda v: v, a),
        "residuals": jax.vjp(lambda v: v * v, a)[1](jnp.ones(5)),
    }
    a[:] = 99
    for name, result in results.items():
        assert all(np.asarray(leaf).max() < 90 for leaf in jax.tree.leaves(result)), name


def test_arrays_that_only_views_keep_alive():
    view = np.asarray(jnp.arange(100000.0) * 2)[5:8]
    mapped = memoryview(jnp.arange(100000.0) * 3)
    other = [jnp.zeros(100000) for _ in range(20)]
    assert view.tolist() == [10, 12, 14] and mapped[5] == 15 and len(other) == 20
    x = jnp.arange(5.0) + 0
    view = np.asarray(x)
    assert jax.jit(lambda v: v * 10, donate_argnums=0)(x).tolist() == [0, 10, 20, 30, 40]
    assert view.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "value",
    [
        np.ones(3, np.longdouble),
        np.ones(3, np.clongdouble),
        np.ones(3, ">f4"),
        np.ones(3, ">i8"),
        np.array(["a"]),
        np.array([1, None], object),
        np.zeros(2, [("a", "f4")]),
        np.array(["2020-01-01"], "M8[D]"),
    ],
    ids=lambda v: str(v.dtype),
)
def test_element_types_that_arrays_cannot_have(value):
    for take in (jnp.asarray, jnp.array, jax.jit(lambda v: v), jnp.negative):
        with pytest.raises(TypeError):
            take(value)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for take in (jnp.asarray, jnp.sin, jax.jit(lambda v: v), lambda v: jnp.ones(2) + v):
        with pytest.raises(ValueError, match="masked"):
            take(masked)


def test_layouts():
    buffer = np.zeros(33, np.uint8)[1:].view(np.float32)
    buffer[:] = np.arange(8)
    a = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    arrays = [
        buffer,
        a[::-1, :, ::-2],
        np.asfortranarray(a),
        np.broadcast_to(np.float32(3), (2, 3)),
        np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (3, 4), (0, 0)),
    ]
    for x in arrays:
        np.testing.assert_array_equal(jnp.asarray(x), x)
        np.testing.assert_array_equal(jax.jit(lambda v: v * 2)(x), x * 2)


def test_floats_into_integers():
    assert jnp.full(2, np.nan, jnp.int8).tolist() == [0, 0]
    assert jnp.full(2, 1e9, jnp.uint8).tolist() == [255, 255]
    assert jnp.full(2, -3.7, jnp.uint8).tolist() == [0, 0]
    assert jnp.full(2, -1e9, jnp.int16).tolist() == [-32768, -32768]
    assert jnp.array([3.7, -3.7], jnp.int8).tolist() == [3, -3]
    for value in (np.nan, [1.0, np.nan]):
        with pytest.raises(ValueError, match="NaN"):
            jnp.array(value, jnp.int8)
    for value in (1e9, [1.0, 300.0], [-1e5], np.inf):
        with pytest.raises(OverflowError):
            jnp.array(value, jnp.int8)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_indices_beyond_the_ends(wrap):
    x, i = jnp.arange(5), jnp.array([-1, -9, 9])
    assert wrap(lambda x, i: jnp.take(x, i, mode="clip"))(x, i).tolist() == [0, 0, 4]
    assert wrap(lambda x, i: jnp.take(x, i, mode="wrap"))(x, i).tolist() == [4, 1, 4]
    with pytest.raises(ValueError, match="drop"):
        jnp.take(x, i, mode="drop")
    ids = jnp.array([0, 7, -1])
    assert wrap(lambda s: jax.ops.segment_sum(jnp.ones(3), s, num_segments=2))(ids).tolist() == [1, 0]
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    assert wrap(lambda i: lax.gather(x, i, numbers, (1,)))(jnp.array([[7]])).tolist() == [4]


def test_division_at_an_index_of_integers_is_true_division():
    out = (jnp.arange(3) + 3).at[0].divide(2)
    assert out.dtype == np.float32 and out.tolist() == [1.5, 4, 5]


def test_division_and_shifts_that_c_leaves_open():
    low = np.int32(-(2**31))
    x, y = np.array([low, 7, low, 7], np.int32), np.array([-1, 0, 0, -1], np.int32)
    for wrap in (lambda f: f, jax.jit):
        assert wrap(lax.div)(x, y).tolist() == [low, -1, -1, -7]
        assert wrap(lax.rem)(x, y).tolist() == [0, 7, low, 0]
        shifts = np.array([31, 32, 100, -1], np.int32)
        assert wrap(lax.shift_left)(np.ones(4, np.int32), shifts).tolist() == [low, 0, 0, 0]
        assert wrap(lax.shift_right_logical)(np.full(4, -1, np.int32), shifts).tolist() == [1, 0, 0, 0]
        assert wrap(lax.shift_right_arithmetic)(np.full(4, -8, np.int32), shifts).tolist() == [-1, -1, -1, -1]


SHAPES = [(0, 0), (0, 3, 3), (2, 0, 0)]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_without_elements(shape, wrap):
    x = jnp.zeros(shape)
    functions = {
        "inv": jnp.linalg.inv,
        "cholesky": jnp.linalg.cholesky,
        "qr": lambda a: jnp.linalg.qr(a)[1],
        "expm": jax.scipy.linalg.expm,
        "solve": lambda a: jnp.linalg.solve(a, a),
    }
    for name, f in functions.items():
        assert wrap(f)(x).shape == shape, name
    vectors = {
        "svd": lambda a: jnp.linalg.svd(a)[1],
        "eigh": lambda a: jnp.linalg.eigh(a)[0],
        "eig": lambda a: jnp.linalg.eig(a)[0],
    }
    for name, f in vectors.items():
        assert wrap(f)(x).shape == shape[:-1], name
    assert wrap(jnp.linalg.det)(x).shape == shape[:-2]


def test_windows_and_sets_without_elements():
    assert lax.reduce_window(np.ones((0, 4), np.float32), 0.0, lax.add, (1, 2), (1, 1), "VALID").shape == (0, 3)
    assert lax.reduce_window(np.ones(3, np.float32), 0.0, lax.add, (5,), (1,), "VALID").shape == (0,)
    assert jnp.unique(jnp.zeros((3, 0)), axis=-1).shape == (3, 0)
    assert jax.scipy.linalg.solve_triangular(jnp.ones((3, 2, 2)), jnp.ones(2)).shape == (3, 2)


def _loop(f, n=3):
    return lambda v: lax.scan(lambda c, _: (f(c), None), v, None, length=n)[0]


BODIES = {
    "jit": jax.jit(jnp.sin),
    "scan": _loop(jnp.sin, 2),
    "while": lambda v: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c), v),
    "cond": lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v),
    "switch": lambda v: lax.switch(1, [jnp.sin, jnp.cos], v),
    "checkpoint": jax.checkpoint(jnp.sin),
    "custom": jax.nn.softplus,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_checkpoints_of_functions_with_bodies(body):
    policies = [None, jax.checkpoint_policies.everything_saveable]
    for around in (lambda f: f, _loop, lambda f: lambda v: lax.cond(v > 0, f, jnp.cos, v)):
        value, slope = jax.value_and_grad(around(body))(1.3)
        curve = jax.grad(jax.grad(around(body)))(1.3)
        for policy in policies:
            f = around(jax.checkpoint(body, policy=policy))
            for got in (jax.value_and_grad(f)(1.3), jax.jit(jax.value_and_grad(f))(1.3)):
                np.testing.assert_allclose(got, (value, slope), rtol=1e-5)
            np.testing.assert_allclose(jax.vmap(jax.grad(jax.grad(f)))(jnp.array([1.3])), [curve], rtol=1e-4)


def test_x64_on_and_off_between_calls():
    f, g, a = jax.jit(lambda v: v * 2 + 1.5), jax.grad(lambda v: v**2), np.arange(3.0)
    for x64 in (False, True, False, True):
        with jax.enable_x64(x64):
            dtype = np.float64 if x64 else np.float32
            total = lax.scan(lambda c, v: (c + v, c), 0.0, a)[0]
            results = [f(a), f(1.0), g(1.0), jnp.sin(a), jax.vmap(jnp.cos)(a), total]
            assert {r.dtype for r in results} == {np.dtype(dtype)}
            np.testing.assert_allclose(results[0], a * 2 + 1.5)


def test_elements_out_of_bounds_get_no_cotangent():
    x, weights = jnp.arange(1.0, 5.0), jnp.arange(1.0, 4.0)
    known, rows = np.array([1, 9, -9]), jnp.ones((4, 2))
    reads = {
        "index": (lambda v, i: v[i], [0, 1, 0, 0]),
        "get": (lambda v, i: v.at[i].get(), [0, 1, 0, 0]),
        "promise": (lambda v, i: v.at[i].get(mode="promise_in_bounds"), [0, 1, 0, 0]),
        "fill": (lambda v, i: v.at[i].get(mode="fill", fill_value=0), [0, 1, 0, 0]),
        "clip": (lambda v, i: v.at[i].get(mode="clip"), [3, 1, 0, 2]),
        "take": (lambda v, i: jnp.take(v, i), [0, 1, 0, 0]),
        "take clip": (lambda v, i: jnp.take(v, i, mode="clip"), [3, 1, 0, 2]),
        "along": (lambda v, i: jnp.take_along_axis(v, i, 0), [0, 1, 0, 0]),
    }
    for name, (read, expected) in reads.items():
        for number in (np.int32, np.int8, np.int16):
            i = known.astype(number)
            for index in (i, jnp.asarray(i)):
                loss = lambda v, index=index, read=read: (read(v, index) * weights).sum()
                assert jax.grad(loss)(x).tolist() == expected, name
                assert jax.vmap(jax.grad(loss))(jnp.stack([x, -x])).tolist() == [expected] * 2, name
            traced = jax.jit(jax.grad(lambda v, j, read=read: (read(v, j) * weights).sum()))
            assert traced(x, i).tolist() == expected, name
    assert x[known].tolist() == [2, 4, 1]
    assert jax.jvp(lambda v: v[known], (x,), (10 * x,))[1].tolist() == [20, 40, 10]
    both = jax.grad(lambda v: v[np.array([0, 7]), np.array([1, 1])].sum())(rows)
    assert both.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    assert jax.grad(lambda v: v[9, ::2].sum())(jnp.ones((4, 4))).sum() == 0
    # A scalar is a slice, which is moved inside and keeps its cotangent (but beside slices with steps).
    assert jax.grad(lambda v: v[9, ::-1].sum())(jnp.ones((4, 4))).sum() == 4
    assert jax.grad(lambda v: v[9])(x).tolist() == jax.jit(jax.grad(lambda v, i: v[i]))(x, 9).tolist() == [0, 0, 0, 1]
    one_hot = jnp.take_along_axis(x, known, 0, mode="one_hot")
    assert one_hot.tolist() == [2, 0, 0]


def test_largest_elements_are_in_the_total_order():
    x = np.array([0.0, -0.0, np.nan, -np.nan, -0.0, 0.0, np.inf, np.nan], np.float32)
    for dtype in (np.float32, np.float16, jnp.bfloat16):
        for wrap in (lambda f: f, jax.jit):
            top = wrap(lambda v: lax.top_k(v, 8))(x.astype(dtype))
            assert type(top) is list and top[1].tolist() == [2, 7, 6, 0, 5, 1, 4, 3]
            assert np.signbit(np.asarray(top[0], np.float32)).tolist() == [False] * 5 + [True] * 3
    assert jax.grad(lambda v: (lax.top_k(v, 2)[0] * np.array([2.0, 3.0])).sum())(jnp.arange(3.0)).tolist() == [0, 3, 2]
    stack = jsp.linalg.toeplitz(np.arange(6.0).reshape(2, 3), np.arange(2.0))
    assert stack.tolist() == [[[0, 1], [1, 0], [2, 1]], [[3, 1], [4, 3], [5, 4]]]
    assert jsp.linalg.hankel(np.arange(6.0).reshape(2, 3)).tolist() == [
        [[0, 1, 2], [1, 2, 0], [2, 0, 0]],
        [[3, 4, 5], [4, 5, 0], [5, 0, 0]],
    ]


def test_segments_of_booleans_have_no_sum():
    for f in (jax.ops.segment_sum, jax.ops.segment_prod):
        with pytest.raises(TypeError, match="'data' must be of numbers, got bool"):
            f(np.array([True]), np.array([0]), 2)
