"""Nests that go through short rows have a row in each lane, and mean the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.util.switches import switches

SHAPES = [(700, 10), (64, 3), (1003, 7), (5, 130, 16), (300, 32), (129, 2)]


@pytest.fixture(autouse=True)
def _always():
    """Whatever it costs, where it is possible."""
    with switches.set(form="short_rows"):
        yield


def nests_of(f, *args):
    """The buffers and nests of a program after all passes."""
    return jax.jit(f).lower(*args).as_text("nests")


def apart(f, *args):
    """Whether the program copies rows to scratch space, as columns."""
    text = nests_of(f, *args)
    return "local row" in text and "square" in text


def centered(x):
    m = x.mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(jnp.sum((x - m) ** 2, -1, keepdims=True) + 1e-5)


def weighted(x):
    w = jnp.arange(1.0, x.shape[-1] + 1)
    z = jnp.exp(x - jnp.max(x * w, -1, keepdims=True))
    return z / z.sum(-1, keepdims=True), jnp.argmax(z, -1), jnp.log(z.sum(-1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", [centered, weighted, jax.nn.log_softmax])
def test_values(shape, f):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    for got, wanted in zip(jax.tree.leaves(jax.jit(f)(x)), jax.tree.leaves(f(jnp.asarray(x)))):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


def test_rows_are_apart():
    x = np.ones((3000, 10), "f4")
    assert apart(centered, x) and apart(jax.nn.log_softmax, x)
    assert not apart(centered, np.ones((3000, 40), "f4"))
    assert not apart(lambda x: x * 2 + 1, x)


@pytest.mark.parametrize("dtype", ["f8", "i4", "f2", "c8"])
def test_types(dtype):
    x = (np.random.default_rng(0).standard_normal((900, 6)) * 9).astype(dtype)

    def spread(x):
        return x - x.sum(-1, keepdims=True), (x * x).sum(-1)

    for got, wanted in zip(jax.jit(spread)(x), spread(x.astype("c16" if dtype == "c8" else "f8"))):
        np.testing.assert_allclose(
            np.asarray(got, wanted.dtype), wanted, rtol=2e-2 if dtype == "f2" else 1e-4, atol=0.3
        )


def test_elements_outside_of_the_array_are_not_copied():
    x = np.random.default_rng(0).standard_normal((500, 8)).astype("f4")

    def windows(x):
        y = jnp.pad(x, ((0, 0), (2, 3)))
        m = y.max(-1, keepdims=True)
        return jnp.exp(y - m) / jnp.exp(y - m).sum(-1, keepdims=True)

    np.testing.assert_allclose(jax.jit(windows)(x), windows(jnp.asarray(x)), rtol=2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_scratch_space_of_a_row(dtype):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((700, 11)) * 9).astype(dtype)

    softmax = lambda x: 100 * jax.nn.softmax(x.astype("float32"))
    f = lambda x: softmax(x).astype(x.dtype)
    assert "local row" in nests_of(f, x) and "vector j" in nests_of(f, x)
    got, wanted = (np.asarray(y).astype("f4") for y in (jax.jit(f)(x), softmax(np.asarray(x))))
    np.testing.assert_allclose(got, wanted, rtol=2**-7, atol=1 if dtype == "int8" else 1e-6)


@pytest.mark.parametrize("k", [2, 7, 20, 64])
def test_places_of_the_largest_of_short_rows(k):
    x = np.random.default_rng(0).integers(-9, 9, (500, k)).astype("f4")
    x[3], x[4, k // 2], x[5] = np.nan, np.nan, np.inf
    f = lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1))
    assert (k < 8 or apart(f, x)) and not apart(lambda x: jnp.argmax(x, 1), np.ones((500, 65), "f4"))
    for got, wanted in zip(jax.jit(f)(x), (np.argmax(x, 1), np.argmin(x, 1))):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_elements_that_a_whole_loop_reads_are_in_lanes(dtype):
    """The nearest of 11 centres: each point has its three coordinates in lanes, and its 11 distances."""
    rng = np.random.default_rng(0)
    x, c = ((rng.standard_normal(shape) * 9).astype(dtype) for shape in ((700, 3), (11, 3)))

    def nearest(x, c):
        distance = ((x[:, None] - c) ** 2).sum(-1)
        return distance.argmin(1), distance.min(1)

    assert "vector j" in nests_of(nearest, x, c)
    place, least = jax.jit(nearest)(x, c)
    wanted = ((x[:, None].astype("f8") - c) ** 2).sum(-1)
    np.testing.assert_array_equal(place, wanted.argmin(1))
    np.testing.assert_allclose(least, wanted.min(1), rtol=1e-6)


def test_elements_outside_of_the_array_are_not_read_for_all():
    x = np.random.default_rng(0).standard_normal((500, 2)).astype("f4")

    def before(x):
        y = jnp.pad(x, ((3, 0), (0, 0)))[:500]
        return (y[:, :1] * jnp.arange(9.0) - y[:, 1:]).argmax(1)

    np.testing.assert_array_equal(jax.jit(before)(x), before(jnp.asarray(x)))


def test_longer_rows_that_are_not_copied_have_a_row_in_each_lane():
    """Of 50 spheres the nearest that a ray meets: nothing but scratch space goes through 50 elements."""
    rng = np.random.default_rng(0)
    x, c, r = rng.standard_normal((300, 3)), rng.standard_normal((50, 3)) * 5, rng.uniform(size=50)

    def nearest(x, c, r):
        d = ((x[:, None] - c) ** 2).sum(-1)
        return jnp.where(d > r, jnp.sqrt(d) - r, jnp.inf).min(1)

    args = [a.astype("f4") for a in (x, c, r)]
    assert "vector j" in nests_of(nearest, *args)
    np.testing.assert_allclose(jax.jit(nearest)(*args), nearest(*map(jnp.asarray, args)), rtol=1e-5)


def test_loops_that_go_along_what_all_rows_share():
    """Draws by Gumbel's numbers as zeros and ones: one of the loops reads no array, and strips had no room for it."""
    scores = jnp.arange(3) / 3

    def draws(bits):
        noise = -jnp.log(bits.astype("f4") + 0.5)
        return jax.nn.one_hot((scores - noise).argmax(1), 3).mean(0)

    bits = np.random.default_rng(0).integers(0, 9, (1000, 3))
    np.testing.assert_allclose(jax.jit(draws)(bits), draws(jnp.asarray(bits)), rtol=1e-6)
    drawn = jax.jit(lambda keys: jax.vmap(lambda k: jax.nn.one_hot(jax.random.categorical(k, scores), 3))(keys).mean(0))
    keys = jax.random.split(jax.random.key(0), 1000)
    np.testing.assert_allclose(drawn(keys).sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8"])
@pytest.mark.parametrize("points, dimensions, centres", [(700, 16, 50), (65, 12, 9), (200, 20, 33), (300, 64, 64)])
def test_elements_that_are_sums_of_their_own(points, dimensions, centres, dtype):
    """Distances in more dimensions than are written out: each is a loop along a row, or along what all rows share."""
    rng = np.random.default_rng(0)
    shapes = (points, dimensions), (centres, dimensions)
    x, c = ((rng.standard_normal(shape) * 9).astype(dtype) for shape in shapes)

    def distances(x, c):
        return jnp.abs((x[:, None] - c) ** 2).sum(-1)

    def nearest(x, c):
        found = distances(x, c)
        return found.argmin(1), (found == found.min(1, keepdims=True)).sum(1)

    assert points < 64 or "vector j" in nests_of(nearest, x, c)
    with switches.set(form="written"):
        plain = jax.jit(nearest)(x, c)
    for got, wanted in zip(jax.jit(nearest)(x, c), plain):
        np.testing.assert_array_equal(got, wanted)


def test_sums_that_go_along_both_loops_are_not_rows():
    x = np.random.default_rng(0).standard_normal((300, 6, 7)).astype("f4")

    def largest(x):
        return jnp.square(x - 1).sum(-1).argmax(-1)

    np.testing.assert_array_equal(jax.jit(largest)(x), np.square(x - 1).sum(-1).argmax(-1))


def test_parts_of_a_row_that_overlap():
    """Correlation of each row with 40 parts of another: the sum's place in it hangs on both loops."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((500, 24)).astype("f4"), rng.standard_normal(63).astype("f4")
    parts = np.arange(40)[:, None] + np.arange(24)

    def best(x, w):
        return jnp.abs(x[:, None] - w[parts]).sum(-1).argmin(1)

    wanted = np.abs(x[:, None].astype("f8") - w[parts]).sum(-1).argmin(1)
    np.testing.assert_array_equal(jax.jit(best)(x, w), wanted)
