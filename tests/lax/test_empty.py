"""Operations on arrays without elements: values, derivatives and maps have the shapes that they have elsewhere."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import dtypes, lax


def none_of(*shape):
    return np.zeros(shape, np.float32)


def along(x):
    return jnp.take_along_axis(x, np.zeros(x.shape, np.int32), 0)


def convolved(x):
    return lax.conv(x, jnp.ones((4, x.shape[1], 2, 2), np.float32), (1, 1), "SAME")


def kernels(w):
    return lax.conv(jnp.ones((0, 3, 5, 5), np.float32), w, (1, 1), "SAME")


CASES = {
    "sort": (lambda x: jnp.sort(x, 0), [none_of(0), none_of(0, 3), none_of(3, 0)]),
    "argsort": (lambda x: jnp.argsort(x, 0).astype(np.float32), [none_of(0, 3), none_of(3, 0)]),
    "several keys": (lambda x: lax.sort((x, x * 2, x * 3), dimension=0, num_keys=2)[1], [none_of(0), none_of(3, 0)]),
    "top_k": (lambda x: lax.top_k(x, 0)[0], [none_of(0), none_of(3, 0)]),
    "top_k of no rows": (lambda x: lax.top_k(x, 2)[0], [none_of(0, 5)]),
    "partition": (lambda x: jnp.partition(x, 0, axis=-1), [none_of(0, 3)]),
    "take_along_axis": (along, [none_of(0), none_of(0, 3), none_of(3, 0)]),
    "conv": (convolved, [none_of(0, 3, 5, 5), none_of(2, 0, 5, 5), none_of(2, 3, 5, 0)]),
    "kernels of conv": (kernels, [none_of(4, 3, 2, 2), none_of(0, 3, 2, 2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_and_maps(name):
    f, operands = CASES[name]
    for x in operands:
        out = pullback.eval_shape(f, x)
        total = lambda x: jnp.sum(f(x) * 1.5)
        for wrap in (lambda g: g, pullback.jit):
            value, tangent = wrap(lambda x: pullback.jvp(f, (x,), (x + 1,)))(x)
            assert value.shape == tangent.shape == out.shape and value.dtype == tangent.dtype == out.dtype
            np.testing.assert_array_equal(value, f(x))
            np.testing.assert_array_equal(wrap(pullback.grad(total))(x), np.zeros(x.shape))
            assert wrap(pullback.vmap(f))(np.stack([x, x])).shape == (2, *out.shape)
            assert wrap(pullback.vmap(f))(np.zeros((0, *x.shape), np.float32)).shape == (0, *out.shape)
            assert wrap(pullback.vmap(pullback.grad(total)))(np.stack([x, x])).shape == (2, *x.shape)
        assert pullback.jacfwd(pullback.grad(total))(x).shape == (*x.shape, *x.shape)


@pytest.mark.parametrize("shape", [(3, 2), (0, 3)])
def test_gradients_through_integers_are_zero_each_time(shape):
    """From the second time on the function is one call that was transformed before, whose tangents nothing wants."""
    x = np.ones(shape, np.float32)
    for order in (jnp.argsort, lambda x: jnp.argsort(x, 0, descending=True), lambda x: lax.top_k(x, 1)[1]):
        for _ in range(3):
            found = pullback.grad(lambda x, order=order: jnp.sum(order(x).astype(np.float32) * x.sum()))(x)
            np.testing.assert_array_equal(found, np.full(shape, np.sum(order(x))))


def test_sums_and_products_over_nothing_have_shapes():
    np.testing.assert_array_equal(jnp.dot(none_of(0), none_of(0)), 0)
    assert jnp.dot(none_of(3, 0), none_of(0)).shape == (3,) and jnp.dot(none_of(0), none_of(0, 2)).shape == (2,)
    assert lax.reduce((none_of(0, 0),) * 2, (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))[0].shape == (0,)
    with pullback.enable_x64(True):
        assert jnp.cumsum(np.zeros((0, 70_000)), -1).shape == (0, 70_000)


def test_a_compiled_program_has_constants_without_elements():
    q, r = pullback.jit(lambda: jnp.linalg.qr(none_of(0, 4)))()
    assert q.shape == (0, 0) and r.shape == (0, 4)


def test_loops_over_nothing_give_constants_of_no_rows():
    def f(xs):
        return lax.scan(lambda c, x: (c, (jnp.int32(2), jnp.ones(3), x[0])), 0.0, xs)[1]

    for run in (f, pullback.jit(f)):
        assert [y.shape for y in run(jnp.zeros((0, 2)))] == [(0,), (0, 3), (0,)]
    assert pullback.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=True))(4) == 6


def test_arrays_of_no_type_are_numpys():
    for full in (lax.full, pullback.jit(lax.full, static_argnums=(0, 2))):
        made = full((2,), 0, dtypes.float0)
        assert made.shape == (2,) and made.dtype == dtypes.float0


def test_parts_of_no_elements_whose_places_are_added_to():
    def total(x):
        return lax.dynamic_slice_in_dim(jnp.min(x, axis=0, keepdims=True), -1, 0, 0).sum() + x.sum()

    np.testing.assert_array_equal(pullback.jit(pullback.grad(total))(jnp.arange(5.0)), np.ones(5))
