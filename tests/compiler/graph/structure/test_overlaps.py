"""Windows that are added where they overlap are sums of shifted arrays."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def holds(f, *args, added=False):
    """The same values as without compilation; whether updates are added one by one."""
    args = [jnp.asarray(x) for x in args]
    found = [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]
    assert ("scatter-add" in found) == added, found
    got = pb.jit(f)(*args)
    with pb.disable_jit():
        want = f(*args)
    # Sums of up to 170 terms in some other order, of which some cancel.
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5 * max(1.0, float(np.abs(want).max())))


def normal(*shape):
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("size", "width", "step"), [(200, 8, 1), (200, 16, 4), (203, 10, 4), (200, 170, 1)])
def test_gradients_of_sliding_windows(size, width, step, known):
    count = (size - width) // step + 1
    listed = step * np.arange(count)[:, None] + np.arange(width)
    places = lambda: listed if known else step * jnp.arange(count)[:, None] + jnp.arange(width)
    k, x, columns, rows, given = normal(width), normal(size), normal(size, 3), normal(3, size), normal(count)
    holds(pb.grad(lambda x: ((x[places()] * k).sum(1) ** 2).sum()), x)
    holds(pb.grad(lambda x: ((x[places().T] * k[:, None]).sum(0) ** 2).sum()), x)
    holds(pb.grad(lambda x: ((x[places()] @ k) ** 2).sum()), x)
    holds(pb.grad(lambda x: (x[places()].max(1) ** 2).sum()), x)
    holds(pb.grad(lambda x: ((x[places()] * k[:, None]).sum(1) ** 2).sum()), columns)
    holds(pb.grad(lambda x: ((x[:, places()] * k).sum(2) ** 2).sum()), rows)
    holds(lambda x, v: x.at[places()].add(jnp.sin(v)[:, None] * k), x, given)
    beyond = size - (count - 1) * step - width + 1
    holds(lambda x, v: x.at[places() + beyond].add(jnp.sin(v)[:, None] * k), x, given, added=True)


@pytest.mark.parametrize("step", [1, 3])
def test_gradients_of_mapped_slices(step):
    k, x = normal(12), normal(240)
    starts = lambda: step * jnp.arange((240 - 12) // step + 1)
    part = lambda x, i: lax.dynamic_slice(x, (i,), (12,))
    holds(pb.grad(lambda x: (pb.vmap(lambda i: part(x, i) @ k)(starts()) ** 2).sum()), x)
    holds(pb.grad(lambda x: (pb.vmap(lambda i: part(x, i).max())(starts()) ** 2).sum()), x)


@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_of_frames_through_filters(channels):
    """What is added is a product that sums over filters, and stays one."""
    places = lambda: 16 * jnp.arange(20)[:, None] + jnp.arange(32)
    x, k = normal(4, 16 * 21, channels), normal(32, channels, 5)
    holds(pb.grad(lambda x: (jnp.einsum("btki,kio->bto", x[:, places()], k) ** 2).sum()), x)
    holds(pb.grad(lambda x: (pb.vmap(lambda x: jnp.tensordot(x[places()], k, 2))(x) ** 2).sum()), x)


def test_windows_in_memory_are_added_one_by_one():
    places = np.arange(100)[:, None] + np.arange(8)
    holds(lambda u: jnp.zeros(107).at[places].add(u), normal(100, 8), added=True)


def test_places_that_are_not_even():
    k, x = normal(8), normal(200)
    places = np.sort(RNG.permutation(190)[:60])[:, None] + np.arange(8)
    holds(pb.grad(lambda x: ((x[places] * k).sum(1) ** 2).sum()), x, added=True)


@pytest.mark.parametrize("count, width, step", [(2, 300, 150), (8, 64, 16), (40, 64, 32), (40, 50, 32)])
def test_frames_in_memory_are_put_together(count, width, step):
    places = step * np.arange(count)[:, None] + np.arange(width)
    size = step * (count - 1) + width
    holds(lambda u: jnp.zeros(size + 5).at[places + 2].add(u), normal(count, width))
    holds(lambda u: jnp.zeros((3, size)).at[:, places].add(u), normal(3, count, width))
    counted = lambda: step * jnp.arange(count)[:, None] + jnp.arange(width)
    holds(pb.grad(lambda x: (x[:, counted()] ** 2).sum()), normal(2, size))
