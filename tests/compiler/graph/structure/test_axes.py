"""Work on transposed arrays becomes work on the arrays themselves, whatever the spelling."""

import random

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

BATCH, GROUPS = 2, 3
SIZES = [(2, 3, 1, 4), (6, 4), (2, 2, 3, 2)]  # of 24 elements


def primitives(f, *args):
    """The names of what is left of a program, transposes and reshapes included."""
    text = jax.jit(f).lower(*args).as_text("jaxpr")
    return [line.split(" = ")[1].split()[0].split("[")[0] for line in text.splitlines() if " = " in line]


def softmax_of_moved(x):
    return jnp.moveaxis(jax.nn.softmax(jnp.moveaxis(x, 0, -1), -1), -1, 0)


def features_first(x, scale):
    y = x.transpose(0, 3, 1, 2)
    m = y.mean((0, 2, 3), keepdims=True)
    v = y.var((0, 2, 3), keepdims=True)
    return jnp.sum(jnp.tanh((y - m) / jnp.sqrt(v + 1e-5) * scale[:, None, None]) ** 2)


def features_last(x, scale):
    m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return jnp.sum(jnp.tanh((x - m) / jnp.sqrt(v + 1e-5) * scale) ** 2)


def groups_first(x):
    y = x.transpose(0, 3, 1, 2)
    z = y.reshape(BATCH, GROUPS, -1)
    z = (z - z.mean(-1, keepdims=True)) / jnp.sqrt(z.var(-1, keepdims=True) + 1e-5)
    return z.reshape(y.shape).transpose(0, 2, 3, 1)


def test_a_function_behind_moved_axes_is_the_function():
    x = np.ones((5, 7), "f4")
    assert primitives(softmax_of_moved, x) == primitives(lambda x: jax.nn.softmax(x, 0), x)
    assert primitives(jax.vmap(jax.nn.softmax, 1, 1), x) == primitives(lambda x: jax.nn.softmax(x, 0), x)


@pytest.mark.parametrize("f", [groups_first, softmax_of_moved])
def test_transposes_that_undo_each_other_leave_none(f):
    shape = (BATCH, 4, 5, 2 * GROUPS) if f is groups_first else (4, 6)
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    assert "transpose" not in primitives(f, x)
    np.testing.assert_allclose(jax.jit(f)(x), f(jnp.asarray(x)), rtol=2e-5, atol=2e-6)


def test_gradients_with_features_first_are_those_with_features_last():
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("f4")
    scale = np.linspace(0.5, 2, 5).astype("f4")
    first, last = jax.grad(features_first, (0, 1)), jax.grad(features_last, (0, 1))
    assert "transpose" not in primitives(first, x, scale)
    for a, b in zip(jax.jit(first)(x, scale), jax.jit(last)(x, scale)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_different_orders_that_meet_are_left_to_the_loops():
    x = np.arange(9.0, dtype="f4").reshape(3, 3)
    np.testing.assert_array_equal(jax.jit(lambda x: x + x.T)(x), x + x.T)
    np.testing.assert_array_equal(jax.jit(lambda x: (x.T + 1, x.sum(0)))(x)[0], x.T + 1)


def test_places_along_an_axis_stay_its_own():
    x = np.random.default_rng(1).permutation(24).reshape(2, 3, 4).astype("f4")
    y = x.transpose(2, 0, 1)
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.argmax(x.transpose(2, 0, 1), 1))(x), y.argmax(1))
    np.testing.assert_array_equal(
        jax.jit(lambda x: jnp.argmax(x.transpose(2, 0, 1).reshape(4, 6), 1))(x), y.reshape(4, 6).argmax(1)
    )
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.cumsum(x.transpose(2, 0, 1), 2))(x), y.cumsum(2))


def moves(x, seed):
    """Values of a random program that moves axes between all it does."""
    rnd = random.Random(seed)
    y, outs = x, []
    for _ in range(rnd.randint(3, 9)):
        kind = rnd.randrange(8) if y.ndim else 7
        axis = rnd.randrange(y.ndim) if y.ndim else 0
        axes = tuple(a for a in range(y.ndim) if rnd.random() < 0.5)
        if kind < 2:
            y = y.transpose(rnd.sample(range(y.ndim), y.ndim))
        elif kind == 2:
            y = y - jnp.max(y, axis, keepdims=True)
        elif kind == 3:
            y = y * 0.5 + 0.1 * jnp.sum(y, axes, keepdims=True)
        elif kind == 4:
            n, sizes = y.size, []
            while n > 1:
                sizes.append(rnd.choice([d for d in (1, 2, 3, 4, 6, n) if n % d == 0]))
                n //= sizes[-1]
            y = y.reshape(sizes)
        elif kind == 5:
            outs += [jnp.sum(y * y, axes), jnp.argmax(y, axis)]
        elif kind == 6:
            steps = jnp.arange(y.shape[axis], dtype="f4").reshape([-1 if a == axis else 1 for a in range(y.ndim)])
            y = jnp.where(y > 0, y + steps, jnp.cumsum(y, axis) * 0.25)
        else:
            y = jnp.tanh(y)
    return [*outs, y]


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(24))
def test_random_moves(seed):
    rnd = random.Random(seed)
    shape = [rnd.choice([1, 2, 3, 4, 6]) for _ in range(rnd.randint(1, 4))]
    x = np.random.default_rng(seed).standard_normal(shape).astype("f4")
    for eager, compiled in zip(moves(jnp.asarray(x), seed), jax.jit(moves, static_argnums=1)(x, seed)):
        assert eager.shape == compiled.shape
        np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-4)


def test_reshapes_of_transposed_arrays_keep_elements_in_order():
    """Split and joined in any way: where axes of size 1 met others that are no neighbours, the shape was another."""
    random_ = random.Random(0)
    cases = [((2, 3, 4, 3), (2, 0, 1, 3), (2, 2, 1, 1, 18)), ((1, 2, 6, 3), (2, 0, 1, 3), (2, 1, 18))]
    for _ in range(60):
        shape, after = (random_.sample(sizes, len(sizes)) for sizes in random_.choices(SIZES, k=2))
        after.insert(random_.randrange(3), 1)
        cases.append((shape, random_.sample(range(len(shape)), len(shape)), after))
    arrays = [np.arange(np.prod(shape)).reshape(shape) for shape, _, _ in cases]

    def program(arrays):
        return [x.transpose(order).reshape(after) + 1 for x, (_, order, after) in zip(arrays, cases)]

    for got, want, case in zip(jax.jit(program)(arrays), program(arrays), cases):
        np.testing.assert_array_equal(got, want, err_msg=str(case))
