"""Products with matrices that are known by their diagonals are sums over windows or convolutions."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.graph.structure import bands
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def distance(n, m, dtype="int32"):
    """The row minus the column."""
    return jnp.arange(n, dtype=dtype)[:, None] - jnp.arange(m, dtype=dtype)


MATRICES = {
    "average": lambda n, m: ((distance(n, m) >= 0) & (distance(n, m) < 5)) / 5,
    "where": lambda n, m: jnp.where(abs(distance(n, m)) <= 3, 1 / (1.0 + abs(distance(n, m))), 0.0),
    "kernel": lambda n, m: jnp.where(abs(distance(n, m)) < 9, jnp.exp(-(distance(n, m) ** 2) / 30.0), 0.0),
    "differences": lambda n, m: jnp.eye(n, m, k=1) - 2 * jnp.eye(n, m) + jnp.eye(n, m, k=-1),
    "shift": lambda n, m: jnp.eye(n, m, k=-3),
    "nothing": lambda n, m: jnp.eye(n, m, k=4000),
    "apart": lambda n, m: (distance(n, m) == 7) * 2.0 + (distance(n, m) == -9) * 3.0,
    "floats": lambda n, m: (abs(distance(n, m, "float32")) < 2) * 1.0,
    "triangles": lambda n, m: jnp.tri(n, m) - jnp.tri(n, m, k=-4),
    "transposed": lambda n, m: (jnp.tri(m, n) - jnp.tri(m, n, k=-4)).T,
    "listed": lambda n, m: jnp.asarray(np.eye(n, m, 2, "f4") - np.eye(n, m, 0, "f4")),
    "below": lambda n, m: (distance(n, m) >= 4) * 2.0,
    "from above": lambda n, m: (distance(n, m) >= -7) * 1.0,
    "above": lambda n, m: (distance(n, m) <= -3) * 1.0,
    "from below": lambda n, m: (distance(n, m) <= 9) * 1.0,
}


def names(f, *args):
    """The primitives of the optimized program of `f`."""
    return [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]


def normal(*shape):
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.sample(15)
@pytest.mark.parametrize(("n", "m"), [(160, 160), (150, 170), (170, 150)])
@pytest.mark.parametrize("kind", MATRICES)
def test_products_with_bands(kind, n, m):
    made = MATRICES[kind]
    matrix = np.asarray(made(n, m)).astype("f8")
    for shape in ((m,), (m, 3), (2, m), (2, m, 3)):
        x, along = normal(*shape), shape.index(m)
        left = lambda x, along=along: jnp.tensordot(made(n, m), x, ((1,), (along,)))
        right = lambda x, along=along: jnp.tensordot(x, made(n, m).T, ((along,), (0,)))
        assert "dot_general" not in names(left, x)
        assert "dot_general" not in names(right, x)
        want = np.tensordot(matrix, x, ((1,), (along,)))
        np.testing.assert_allclose(pb.jit(left)(x), want, rtol=2e-5, atol=2e-5)
        want = np.tensordot(x, matrix.T, ((along,), (0,)))
        np.testing.assert_allclose(pb.jit(right)(x), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", ["average", "where", "below", "from below", "triangles"])
def test_sums_of_what_bands_choose(kind):
    n, m = 150, 170
    mask = lambda: MATRICES[kind](n, m) != 0
    chosen = np.asarray(mask())
    x, y = normal(m), normal(n)
    rows = lambda x: jnp.where(mask(), x, 0).sum(1)
    columns = lambda y: jnp.where(mask(), y[:, None], 0).sum(0)
    for f, arg in ((rows, x), (columns, y)):
        assert "select_n" not in names(f, arg)
    np.testing.assert_allclose(pb.jit(rows)(x), np.where(chosen, x, 0).sum(1), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(pb.jit(columns)(y), np.where(chosen, y[:, None], 0).sum(0), rtol=2e-5, atol=2e-5)


def test_whole_numbers_and_gradients():
    x = RNG.integers(-9, 9, 40).astype("i4")
    band = lambda: (abs(distance(40, 40)) < 3).astype("int32")
    np.testing.assert_array_equal(pb.jit(lambda x: band() @ x)(x), np.asarray(band()) @ x)
    v = normal(160)
    matrix = np.asarray(MATRICES["average"](160, 160)).astype("f8")
    got = pb.jit(pb.grad(lambda v: jnp.sin(MATRICES["average"](160, 160) @ v).sum()))(v)
    np.testing.assert_allclose(got, matrix.T @ np.cos(matrix @ v), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "made",
    [
        lambda n: (jnp.arange(n)[:, None] + jnp.arange(n) < 30) * 1.0,  # not by the distance
        lambda n: (distance(n, n, "uint8") < 3) * 1.0,  # wraps around, by the distance all the same
        lambda n: (2 * jnp.arange(n)[:, None] - jnp.arange(n) < 3) * 1.0,
        lambda n: (jnp.arange(n, dtype="int8")[:, None] + jnp.int8(120) >= jnp.arange(n, dtype="int8")) * 1.0,
        lambda n: 0.9 ** abs(distance(n, n)),  # no zeros
        lambda n: jnp.where(distance(n, n) == 0, jnp.nan, 0.0),
    ],
)
def test_others_keep_their_values(made):
    x = normal(60)
    want = np.asarray(made(60)).astype("f8") @ x
    np.testing.assert_allclose(pb.jit(lambda x: made(60) @ x)(x), want, rtol=2e-5, atol=2e-5)


def test_zeros_of_a_band_hide_what_is_not_finite():
    """As those of triangles and of diagonals do."""
    x = normal(40)
    x[20] = np.nan
    got = np.asarray(pb.jit(lambda x: MATRICES["average"](40, 40) @ x)(x))
    assert np.array_equal(np.flatnonzero(np.isnan(got)), np.arange(20, 25))


GIVEN = {  # matrices of (rows, columns) with diagonals that vectors a, b give
    "diagonals": lambda a, b: jnp.diag(a) + jnp.diag(b[:-1], 1) - jnp.diag(b[:-2], -2),
    "numbers": lambda a, b: jnp.diag(jnp.full(a.shape, 2.0)) - jnp.diag(jnp.ones(len(a) - 1), 1),
    "rows": lambda a, b: jnp.where(abs(distance(len(a), len(a))) <= 1, a[:, None], 0),
    "columns": lambda a, b: jnp.where(distance(len(a), len(a) + 9) == 3, jnp.append(b, jnp.ones(9)), 0),
    "negative, transposed": lambda a, b: -(jnp.diag(a, 2) + jnp.diag(b, 2)).T,
}


@pytest.mark.parametrize("name", GIVEN)
def test_diagonals_that_vectors_give(name):
    made, a, b = GIVEN[name], normal(70), normal(70)
    matrix = np.asarray(made(jnp.asarray(a), jnp.asarray(b))).astype("f8")
    for shape in ((matrix.shape[1],), (matrix.shape[1], 3), (2, matrix.shape[1], 3)):
        x, along = normal(*shape), shape.index(matrix.shape[1])
        f = lambda a, b, x, along=along: jnp.tensordot(made(a, b), x, ((1,), (along,)))
        assert not {"dot_general", "inner_product"} & set(names(f, a, b, x))
        want = np.tensordot(matrix, x, ((1,), (along,)))
        np.testing.assert_allclose(pb.jit(f)(a, b, x), want, rtol=2e-5, atol=2e-5)


def test_what_is_no_band_is_multiplied_by_itself():
    a, b, dense, x = normal(70), normal(69), normal(70, 70), normal(70)
    f = lambda a, b, dense, x: (jnp.diag(b, 1) + dense - jnp.diag(b, -1)) @ x
    assert names(f, a, b, dense, x).count("dot_general") == 1
    want = (np.diag(b, 1) + dense - np.diag(b, -1)).astype("f8") @ x
    np.testing.assert_allclose(pb.jit(f)(a, b, dense, x), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("looks", "change", "few"),
    [("_plain", lambda f: f, 20), ("_banded", lambda f: pb.grad(lambda *x: f(*x).sum()), 10)],
)
def test_chains_of_matrices_are_looked_through_once(monkeypatch, looks, change, few):
    """What steps are made of, and the sums of their cotangents, were followed back to the first of them for each."""
    looked, plain = [], getattr(bands, looks)
    monkeypatch.setattr(bands, looks, lambda *args: looked.append(1) or plain(*args))

    def count(n):
        def f(a, x):
            for _ in range(n):
                x = a @ x + x
            return x

        looked.clear()
        optimize_jaxpr(pb.make_jaxpr(change(f))(np.ones((20, 20), "f4"), np.ones((20, 20), "f4")))
        return len(looked)

    first = count(few)
    assert first and count(2 * few) <= 2.2 * first
