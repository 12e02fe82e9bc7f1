"""Products of which a part is wanted, with operands that repeat themselves, and with triangles of ones."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def eqns(f, *args):
    """The equations of the optimized program of `f`."""
    return optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns


def names(f, *args):
    """The primitives of the optimized program of `f`."""
    return [eqn.primitive.name for eqn in eqns(f, *args)]


def normal(*shapes):
    return [RNG.standard_normal(shape).astype("f4") for shape in shapes]


def holds(f, *args, want, has=(), lacks=("dot_general",)):
    found = names(f, *args)
    assert not set(lacks) & set(found), found
    assert set(has) <= set(found), found
    got = pb.jit(f)(*args)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("k", [0, 3, -4])
def test_diagonals_are_sums(k):
    x, y = normal((30, 20), (20, 25))
    want = np.diagonal(x @ y, k)
    holds(lambda x, y: jnp.diagonal(x @ y, k), x, y, want=want)
    holds(lambda x, y: jnp.diagonal((y.T @ x.T).T, k), x, y, want=want)
    holds(lambda x, y: jnp.trace(x @ y, k), x, y, want=want.sum())


def test_diagonals_of_batches():
    x, y = normal((3, 30, 20), (3, 20, 30))
    want = np.diagonal(x @ y, 1, 1, 2)
    holds(lambda x, y: pb.vmap(lambda a, b: jnp.diag(a @ b, 1))(x, y), x, y, want=want)


def test_slices_that_are_no_diagonal():
    x, y = normal((6, 12), (12, 8))
    for step, start in ((7, 0), (10, 0), (9, 5)):  # the last one wraps around
        f = lambda x, y, step=step, start=start: (x @ y).reshape(-1)[start::step]
        holds(f, x, y, want=f(x, y), has=["dot_general"], lacks=())


def test_a_diagonal_of_a_product_that_others_read():
    x, y = normal((20, 20), (20, 20))
    f = lambda x, y: (lambda z: jnp.diag(z) + z.sum(0))(x @ y)
    holds(f, x, y, want=np.diag(x @ y) + (x @ y).sum(0), has=["dot_general"], lacks=())


def test_slices_of_products():
    x, y = normal((3, 40, 20), (3, 20, 30))
    (dot,) = [e for e in eqns(lambda x, y: (x @ y)[1:, 5:20:3, :10], x, y) if e.primitive.name == "dot_general"]
    assert dot.outvars[0].aval.shape == (2, 5, 10)
    np.testing.assert_allclose(
        pb.jit(lambda x, y: (x @ y)[1:, 5:20:3, :10])(x, y), (x @ y)[1:, 5:20:3, :10], rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_products_with_one_number(dtype):
    x = RNG.integers(-9, 9, (4, 20, 6)).astype(dtype)
    for axis in (0, 1, 2):
        one, many = (jnp.full(shape, 2, dtype) for shape in (x.shape[axis], (x.shape[axis], 5)))
        holds(lambda x, y=one, axis=axis: jnp.tensordot(x, y, (axis, 0)), x, want=2 * x.sum(axis))
        f = lambda x, y=many, axis=axis: jnp.tensordot(y, x, (0, axis))
        holds(f, x, want=np.stack([2 * x.sum(axis)] * 5))
    # The number is an axis of the batch, too.
    f = lambda x: jnp.einsum("ibk,bkj->bij", x, jnp.full((20, 6, 3), 3, x.dtype))
    holds(f, x, want=np.repeat(3 * x.sum(2).T[..., None], 3, 2))


def test_large_sums_of_small_terms():
    x = np.full((30, 20), 1e38, "f4")
    np.testing.assert_allclose(pb.jit(lambda x: x @ jnp.full(20, 0.05, "f4"))(x), np.full(30, 1e38), rtol=1e-5)


def test_products_with_repeated_rows():
    x, v, w = normal((20, 30), (8,), (30,))
    holds(lambda x, v: x @ jnp.broadcast_to(v, (30, 8)), x, v, want=x @ np.broadcast_to(v, (30, 8)), has=["reduce_sum"])
    (dot,) = [
        e
        for e in eqns(lambda x, w: x @ jnp.broadcast_to(w[:, None], (30, 8)), x, w)
        if e.primitive.name == "dot_general"
    ]
    assert dot.outvars[0].aval.shape == (20,)
    got = pb.jit(lambda x, w: jnp.broadcast_to(w, (8, 30)) @ x.T)(x, w)
    np.testing.assert_allclose(got, np.broadcast_to(w, (8, 30)) @ x.T, rtol=2e-5, atol=2e-5)
    y = RNG.standard_normal((5, 7, 12)).astype("f4")
    z = RNG.standard_normal((5, 9)).astype("f4")
    f = lambda y, z: jnp.einsum("bki,bkj->bij", y, jnp.broadcast_to(z[:, None], (5, 7, 9)))
    np.testing.assert_allclose(pb.jit(f)(y, z), np.einsum("bki,bj->bij", y, z), rtol=2e-5, atol=2e-5)


def test_gradient_of_a_sum_of_a_layer():
    x, w, c = normal((50, 20), (20, 30), (30,))
    g = pb.grad(lambda w, x, c: ((x @ w) * c).sum())
    assert all(e.invars[0].aval.ndim + e.invars[1].aval.ndim < 4 for e in eqns(g, w, x, c) if "dot" in str(e.primitive))
    np.testing.assert_allclose(pb.jit(g)(w, x, c), np.outer(x.sum(0), c), rtol=2e-4, atol=2e-4)


def test_flat_arrays_that_lie_differently():
    x, y = normal((30, 40), (40, 30))
    found = eqns(lambda x, y: jnp.vdot(x, y.T), x, y)
    assert "reshape" not in [e.primitive.name for e in found]
    np.testing.assert_allclose(pb.jit(lambda x, y: jnp.vdot(x, y.T))(x, y), np.vdot(x, y.T), rtol=1e-4, atol=1e-3)


TRIANGLES = {
    "tril": lambda n: jnp.tril(jnp.ones((n, n))),
    "triu": lambda n: jnp.triu(jnp.ones((n, n))),
    "tri": lambda n: jnp.tri(n),
    "strict": lambda n: jnp.tril(jnp.ones((n, n)), -1),
    "above": lambda n: jnp.triu(jnp.ones((n, n)), 1),
    "where": lambda n: jnp.where(jnp.arange(n)[:, None] < jnp.arange(n), 0.0, 1.0),
    "compared": lambda n: (jnp.arange(n)[:, None] <= jnp.arange(n)).astype("f4"),
    "moved": lambda n: (jnp.arange(n)[:, None] <= jnp.arange(n) - 1).astype("f4"),
    "of the rows": lambda n: (jnp.arange(n)[:, None] + 1 > jnp.arange(n)).astype("f4"),
}


@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles_are_running_sums(name):
    x, z = normal((40, 6), (3, 40, 5))
    make = TRIANGLES[name]
    t = np.asarray(make(40))
    both = lambda x, z: (
        (make(40) @ x).sum() * 0 + jnp.einsum("kj,aki->jai", make(40), z),
        x.T @ make(40),
        make(40) @ x,
    )
    assert "dot_general" not in names(both, x, z)
    for got, want in zip(pb.jit(both)(x, z), (np.einsum("kj,aki->jai", t, z), x.T @ t, t @ x)):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_a_mask_without_zeros_stays_a_product():
    (x,) = normal((40, 6))
    make = lambda: jnp.where(jnp.arange(40)[:, None] < jnp.arange(40), 0.5, 1.0)
    holds(lambda x: make() @ x, x, want=np.asarray(make()) @ x, has=["dot_general"], lacks=["cumsum"])


@pytest.mark.parametrize("kind", ["complex64", "bfloat16"])
def test_products_in_the_types_of_before(kind):
    x, y, z = normal((40, 30), (30, 20), (30, 20))
    if kind == "bfloat16":
        x, y = (np.asarray(jnp.asarray(v, jnp.bfloat16)) for v in (x, y))
        f = lambda x, y: x.astype("f4") @ y.astype("f4")
        (dot,) = [e for e in eqns(f, x, y) if e.primitive.name == "dot_general"]
        assert [v.aval.dtype.name for v in (*dot.invars, *dot.outvars)] == ["bfloat16", "bfloat16", "float32"]
        np.testing.assert_allclose(pb.jit(f)(x, y), x.astype("f4") @ y.astype("f4"), rtol=1e-5, atol=1e-4)
        return
    c = y + 1j * z
    for f, want in ((lambda x, c: x @ c, x @ c), (lambda x, c: c.T @ x.T, (x @ c).T)):
        dots = [e for e in eqns(f, x, c) if e.primitive.name == "dot_general"]
        assert [e.outvars[0].aval.dtype.name for e in dots] == ["float32"] * 2
        np.testing.assert_allclose(pb.jit(f)(x, c), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_rows_of_an_identity(dtype):
    i = np.array([3, 0, 19, 20, -1, -20, 7], np.int32)
    f = lambda i: jnp.eye(20, dtype=dtype)[i]
    assert "gather" not in names(f, i)
    np.testing.assert_array_equal(pb.jit(f)(i), f(i))
    g = lambda i, t: jnp.eye(20)[i] @ t
    (t,) = normal((20, 5))
    holds(g, i, t, want=np.asarray(jnp.eye(20)[i]) @ t, has=["gather"])
    np.testing.assert_array_equal(pb.jit(lambda k: jnp.eye(20)[k])(4), np.eye(20, dtype="f4")[4])
    np.testing.assert_array_equal(
        pb.jit(lambda i: jnp.eye(20).at[i].get(mode="fill", fill_value=7))(i)[3], np.full(20, 7)
    )


def test_outer_products_of_what_was_centred_are_one_product():
    (x,) = normal((200, 12))
    f = lambda x: pb.vmap(lambda v: jnp.outer(v, v))(x - x.mean(0)).sum(0)
    (dot,) = [e for e in eqns(f, x) if e.primitive.name == "dot_general"]
    assert dot.outvars[0].aval.shape == (12, 12)
    np.testing.assert_allclose(pb.jit(f)(x), np.cov(x.T) * 199, rtol=1e-4, atol=1e-3)


def test_a_matrix_that_is_computed_for_one_vector_is_not_stored():
    x, w = normal((500,), (8,))
    for f in (
        lambda x, w: jnp.exp(-((x[:, None] - jnp.arange(8)) ** 2)) @ w,
        lambda x, w: w @ jnp.exp(-((x - jnp.arange(8)[:, None]) ** 2)),
    ):
        assert pb.jit(f).lower(x, w).as_text("loops").count("temporary") == 0
        want = np.exp(-((x[:, None] - np.arange(8)) ** 2)) @ w
        np.testing.assert_allclose(pb.jit(f)(x, w), want, rtol=1e-5, atol=1e-5)


def test_products_with_a_turned_identity():
    (x,) = normal((4, 20))
    f = lambda x: (x @ jnp.fliplr(jnp.eye(20)), jnp.flipud(jnp.eye(20)) @ x.T, x @ jnp.eye(20)[::-1, ::-1])
    assert "dot_general" not in names(f, x)
    for got, want in zip(pb.jit(f)(x), (x[:, ::-1], x.T[::-1], x)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(7, 1), (1, 7), (1, 1), (3, 1, 5), (4, 6), (0, 4), (2, 3, 4)])
def test_flat_products_of_computed_arrays(shape):
    """Over all axes of what is flattened, whatever their sizes."""
    x, y = (np.random.default_rng(k).standard_normal(shape).astype("f4") for k in (0, 1))
    for f, expected in (
        (lambda x, y: jnp.vdot(jnp.sin(x), y), np.vdot(np.sin(x), y)),
        (lambda x, y: jnp.vdot(x, jnp.roll(y, 1, 0)), np.vdot(x, np.roll(y, 1, 0))),
        (lambda x, y: jnp.dot(x.ravel(), (2 * y).reshape(-1)), np.vdot(x, 2 * y)),
    ):
        np.testing.assert_allclose(pb.jit(f)(x, y), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("part", [slice(0, 200), slice(40, 90), slice(3, None, 4), slice(199, 215), slice(225, 231)])
def test_parts_of_convolutions(part):
    x, w = normal(200, 32)
    f = lambda x, w: jnp.convolve(x, w)[part]
    (conv,) = [e for e in eqns(f, x, w) if "conv" in e.primitive.name]
    expected = np.convolve(x, w)[part]
    assert conv.outvars[0].aval.size == expected.size
    np.testing.assert_allclose(pb.jit(f)(x, w), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_parts_of_convolutions_of_images(strides):
    x, w = normal((2, 3, 20, 22), (4, 3, 5, 3))
    whole = lambda x, w: pb.lax.conv_general_dilated(x, w, strides, "SAME", rhs_dilation=(1, 2))
    f = lambda x, w: whole(x, w)[:, :, 1:9:3, 4:]
    expected = np.asarray(pb.jit(whole)(x, w))[:, :, 1:9:3, 4:]
    (conv,) = [e for e in eqns(f, x, w) if "conv" in e.primitive.name]
    assert conv.outvars[0].aval.shape == expected.shape
    np.testing.assert_allclose(pb.jit(f)(x, w), expected, rtol=1e-4, atol=1e-4)


def test_convolutions_that_others_read_stay_whole():
    x, w = normal(200, 32)
    f = lambda x, w: (lambda y: (y[:10], y.sum()))(jnp.convolve(x, w))
    assert [e.outvars[0].aval.size for e in eqns(f, x, w) if "conv" in e.primitive.name] == [231]


def test_products_of_small_integers_are_taken_in_their_type():
    a, b = (RNG.integers(-128, 128, (40, 40)).astype("i1") for _ in range(2))
    f = lambda a, b: a.astype("i4") @ b.astype("i4")
    (dot,) = [e for e in eqns(f, a, b) if e.primitive.name == "dot_general"]
    assert {x.aval.dtype for x in dot.invars} == {np.dtype("i1")}
    np.testing.assert_array_equal(pb.jit(f)(a, b), a.astype("i4") @ b.astype("i4"))
