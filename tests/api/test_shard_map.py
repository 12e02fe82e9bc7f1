"""shard_map on meshes of simulated devices: parts, collectives, transformations of the whole, errors."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AbstractMesh, AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

MESH = AbstractMesh((4,), ("i",))
GRID = AbstractMesh((2, 3), ("a", "b"))
X = np.arange(48, dtype=np.float32).reshape(8, 6)


def test_parts():
    shapes = []

    def double(x):
        shapes.append(x.shape)
        return 2 * x

    for spec, shape in ((P("i"), (2, 6)), (P(), (8, 6))):
        mapped = jax.shard_map(double, mesh=MESH, in_specs=spec, out_specs=spec)
        np.testing.assert_array_equal(mapped(X), 2 * X)
        np.testing.assert_array_equal(jax.jit(mapped)(X), 2 * X)
        assert set(shapes) == {shape}
        shapes.clear()
    for spec in (P("a", "b"), P("a"), P(None, "b"), P(None, ("a", "b")), P(None, ("b", "a")), P("a", None)):
        np.testing.assert_array_equal(jax.shard_map(lambda x: x, mesh=GRID, in_specs=spec, out_specs=spec)(X), X)
    by_columns = jax.shard_map(lambda x: x, mesh=GRID, in_specs=P(None, ("a", "b")), out_specs=P(("b", "a")))
    want = np.concatenate([X[:, k : k + 1] for k in (0, 3, 1, 4, 2, 5)])  # the parts in the order of b, then a
    np.testing.assert_array_equal(by_columns(X), want)


def test_collectives():
    def f(x):
        place = lax.axis_index("i")
        total = lax.psum(x, "i")
        passed = lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)])
        return total, lax.all_gather(x, "i", tiled=True)[None], passed, place[None], lax.pmax(x.max(), "i")

    mapped = jax.shard_map(f, mesh=MESH, in_specs=P("i"), out_specs=(P(), P("i"), P("i"), P("i"), P()))
    for run in (mapped, jax.jit(mapped)):
        total, gathered, passed, places, most = run(X)
        np.testing.assert_array_equal(total, X.reshape(4, 2, 6).sum(0))
        np.testing.assert_array_equal(gathered, np.broadcast_to(X, (4, 8, 6)))
        np.testing.assert_array_equal(passed, np.roll(X, 2, 0))
        np.testing.assert_array_equal(places, range(4))
        assert float(most) == 47
    both = jax.shard_map(lambda x: lax.psum(x, ("a", "b")), mesh=GRID, in_specs=P("a", "b"), out_specs=P())
    np.testing.assert_array_equal(both(X), X.reshape(2, 4, 3, 2).sum((0, 2)))


def test_trees_and_matrix_product():
    @jax.shard_map(mesh=GRID, in_specs=({"x": P("a", "b"), "y": P("b")},), out_specs=P("a"))
    def product(given):
        return lax.psum(given["x"] @ given["y"], "b")

    y = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.testing.assert_allclose(product({"x": X, "y": y}), X @ y)


def test_transformations_of_the_whole():
    def local(w, x):
        return lax.pmean(jnp.tanh(x @ w).sum(), "i")

    w = np.linspace(-0.1, 0.1, 6, dtype=np.float32)
    mapped = jax.shard_map(local, mesh=MESH, in_specs=(P(), P("i")), out_specs=P())

    def whole(w, x):
        return jnp.tanh(x @ w).sum() / 4

    np.testing.assert_allclose(mapped(w, X), whole(w, X), rtol=1e-6)
    for derivative in (jax.grad, jax.jacfwd, lambda f: jax.jit(jax.grad(f))):
        np.testing.assert_allclose(derivative(mapped)(w, X), derivative(whole)(w, X), rtol=1e-4)
    np.testing.assert_allclose(jax.hessian(mapped)(w, X), jax.hessian(whole)(w, X), rtol=1e-3, atol=1e-3)
    ws = np.stack([w, 2 * w])
    np.testing.assert_allclose(jax.vmap(mapped, (0, None))(ws, X), [whole(v, X) for v in ws], rtol=1e-5)


def test_derivatives_inside_in_what_varies():
    def squares(x):
        return jax.grad(lambda x: (x**3).sum())(x)

    np.testing.assert_allclose(jax.shard_map(squares, mesh=MESH, in_specs=P("i"), out_specs=P("i"))(X), 3 * X**2)

    def summed(x):
        return jax.grad(lambda x: lax.psum(x.sum(), "i") ** 2)(x)

    want = np.full_like(X, 8 * X.sum())  # the sum on each device has a cotangent, of which each element gets all
    np.testing.assert_allclose(
        jax.shard_map(lambda x: jax.grad(lambda x: lax.psum(x.sum(), "i") ** 2)(x) * 4, mesh=MESH, in_specs=P("i"),
                      out_specs=P("i"))(X), want, rtol=1e-5,
    )  # fmt: skip
    loose = jax.shard_map(summed, mesh=MESH, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    np.testing.assert_allclose(loose(X), want, rtol=1e-5)


W = np.linspace(-0.3, 0.4, 6, dtype=np.float32)
DEVICES = 4


def _loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@pytest.mark.parametrize("outer", [lambda f: f, jax.jit])
@pytest.mark.parametrize(
    "inside, whole",
    {
        "grad": (lambda w, x: jax.grad(_loss)(w, x), lambda w: _loss(w, X)),
        "a term that is the same on all devices, once each": (
            lambda w, x: jax.grad(lambda w: _loss(w, x) + (w**3).sum())(w),
            lambda w: _loss(w, X) + DEVICES * (w**3).sum(),
        ),
        "and once": (
            lambda w, x: jax.grad(lambda w: lax.psum(_loss(w, x), "i") + (w**3).sum())(w),
            lambda w: _loss(w, X) + (w**3).sum(),
        ),
        "mean": (
            lambda w, x: jax.value_and_grad(lambda w: lax.pmean(_loss(w, x), "i"))(w)[1],
            lambda w: _loss(w, X) / DEVICES,
        ),
        "vjp": (lambda w, x: jax.vjp(lambda w: x @ w, w)[1](x[:, 0])[0], lambda w: (X @ w) @ X[:, 0]),
        "jacrev": (lambda w, x: jax.jacrev(lambda w: lax.psum(_loss(w, x), "i"))(w), lambda w: _loss(w, X)),
        "jit inside": (lambda w, x: jax.jit(jax.grad(_loss))(w, x), lambda w: _loss(w, X)),
        "of jit": (lambda w, x: jax.grad(jax.jit(_loss))(w, x), lambda w: _loss(w, X)),
        "of a checkpoint": (lambda w, x: jax.grad(jax.checkpoint(_loss))(w, x), lambda w: _loss(w, X)),
        "of a scan": (
            lambda w, x: jax.grad(lambda w: lax.scan(lambda s, r: (s + jnp.sin(r @ w), None), x.sum() * 0, x)[0])(w),
            lambda w: jnp.sin(X @ w).sum(),
        ),
        "of a loop without what varies": (
            lambda w, x: jax.grad(lambda w: x.sum() * lax.fori_loop(0, 3, lambda _, v: jnp.sin(v), w).sum())(w),
            lambda w: X.sum() * jnp.sin(jnp.sin(jnp.sin(w))).sum(),
        ),
        "said to vary": (
            lambda w, x: lax.psum(jax.grad(lambda w: _loss(w, x))(lax.pcast(w, "i", to="varying")), "i"),
            lambda w: _loss(w, X),
        ),
        "mapped": (lambda w, x: jax.vmap(jax.grad(lambda w, r: (w @ r) ** 3), (None, 0))(w, x).sum(0), None),
        "of a derivative": (
            lambda w, x: jax.grad(lambda w: (jax.grad(_loss)(w, x) ** 2).sum())(w),
            lambda w: (jax.grad(lambda w: _loss(w, X))(w) ** 2).sum(),
        ),
        "of the gathered": (
            lambda w, x: jax.grad(lambda w: (lax.all_gather(x @ w, "i") ** 2).sum())(w),
            lambda w: DEVICES * ((X @ w) ** 2).sum(),
        ),
    }.values(),
)
def test_derivatives_inside_in_what_is_the_same(outer, inside, whole):
    mapped = outer(jax.shard_map(inside, mesh=MESH, in_specs=(P(), P("i")), out_specs=P()))
    if whole is None:  # of each row the sum over the devices
        rows = 3 * (X @ W)[:, None] ** 2 * X
        np.testing.assert_allclose(mapped(W, X), rows.sum(0), rtol=1e-4)
        return
    np.testing.assert_allclose(mapped(W, X), jax.grad(whole)(W), rtol=2e-4, atol=1e-4)


def test_derivatives_inside_along_two_axes():
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)

    def inside(w, x):
        return jax.grad(lambda w: lax.pmean(lax.psum(x @ w, "b") ** 2, "a").sum())(w)

    got = jax.shard_map(inside, mesh=mesh, in_specs=(P("b"), P("a", "b")), out_specs=P("b"))(W, X)
    np.testing.assert_allclose(got, jax.grad(lambda w: ((X @ w) ** 2).sum() / 2)(W), rtol=1e-4)


def test_specs_that_the_types_of_arguments_say():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, P("i")))
    with jax.set_mesh(mesh):
        mapped = jax.shard_map(lambda x, y: x * lax.axis_index("i") + y, out_specs=P("i"))
        np.testing.assert_allclose(mapped(x, 1.0), X * np.repeat(np.arange(4), 2)[:, None] + 1)
        np.testing.assert_allclose(jax.jit(mapped)(x, 1.0), mapped(x, 1.0))


def test_specs_that_contradict_the_types_of_arguments():
    """On explicit axes an array lies as its type says; to cut it otherwise is the user's word, by `reshard`."""
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    x = jax.device_put(X[:, :4], NamedSharding(mesh, P("a")))

    def over(spec, **kwargs):
        return jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=spec, out_specs=spec, **kwargs)

    for f in (over, lambda spec: jax.jit(over(spec)), lambda spec: jax.jit(lambda x: over(spec)(x + 0))):
        for fits in (P("a"), P("a", None), P(("a",))):
            np.testing.assert_array_equal(f(fits)(x), 2 * np.asarray(x))
        for wrong in (P(), P("b"), P("a", "b"), P(None, "a"), P(("a", "b"))):
            with pytest.raises(ValueError, match=r"for array 0, .*, which lies as P\('a'"):
                f(wrong)(x)
        with pytest.raises(ValueError, match=r"for array 0, .*, which lies as"):
            f(P("a"))(X)
    np.testing.assert_array_equal(jax.vmap(over(P("a")), 1, 1)(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(jax.vmap(over(P()))(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(jax.jvp(over(P("a")), (x,), (x,))[1], 2 * np.asarray(x))
    np.testing.assert_array_equal(jax.grad(lambda x: over(P("a"))(x).sum())(x), np.full((8, 4), 2))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: over(P("a"))(x).sum()))(x), np.full((8, 4), 2))
    for wrong in (jax.vmap(over(P("b"))), lambda x: jax.jvp(over(P("b")), (x,), (x,)), jax.vmap(over(P("b")), 1)):
        with pytest.raises(ValueError, match=r"for array 0, .*, which lies as"):
            wrong(x)
    for f in (over(P("b"), axis_names={"b"}), jax.jit(over(P("b"), axis_names={"b"}))):  # `a` stays explicit
        both = f(jax.device_put(X[:, :4], NamedSharding(mesh, P("b", "a"))))
        np.testing.assert_array_equal(both, 2 * np.asarray(x))
        assert both.sharding.spec == P("b", "a") and str(jax.typeof(both)) == "float32[8@b,4@a]"


def _in_a_scan(w, x):
    return lax.scan(lambda w, _: (w - 0.01 * jax.grad(_loss)(w, x), None), w, None, length=3)[0]


def _in_a_while(w, x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] - 0.01 * jax.grad(_loss)(s[1], x)), (0, w))[1]


def _in_a_branch(w, x):
    return lax.cond(w.sum() > -1e9, lambda w: jax.grad(_loss)(w, x), lambda w: w, w)


def _of_a_scan_with_sums(w, x):
    def loss(w):
        return lax.scan(lambda s, r: (s + lax.psum(jnp.sin(r @ w), "i"), None), jnp.float32(0), x)[0]

    return jax.grad(loss)(w)


def _of_a_derivative_in_a_scan(w, x):
    return jax.grad(lambda w: (_in_a_scan(w, x) ** 2).sum())(w)


def test_derivatives_inside_of_loops_and_branches():
    def steps(w):
        for _ in range(3):
            w = w - 0.01 * jax.grad(lambda w: _loss(w, X))(w)
        return w

    for inside, want in (
        (_in_a_scan, steps(W)),
        (_in_a_while, steps(W)),
        (_in_a_branch, jax.grad(lambda w: _loss(w, X))(W)),
        (_of_a_scan_with_sums, jax.grad(lambda w: jnp.sin(X @ w).sum())(W)),
        (_of_a_derivative_in_a_scan, jax.grad(lambda w: (steps(w) ** 2).sum())(W)),
    ):
        mapped = jax.shard_map(inside, mesh=MESH, in_specs=(P(), P("i")), out_specs=P())
        for run in (mapped, jax.jit(mapped)):
            np.testing.assert_allclose(run(W, X), want, rtol=2e-4, atol=2e-4)
    hessian = jax.shard_map(
        lambda w, x: jax.hessian(lambda w: lax.psum(((x @ w) ** 3).sum(), "i"))(w),
        mesh=MESH,
        in_specs=(P(), P("i")),
        out_specs=P(),
    )
    np.testing.assert_allclose(hessian(W, X), jax.hessian(lambda w: ((X @ w) ** 3).sum())(W), rtol=1e-4)


def test_linear_transposes_inside():
    def transposed(w, x):
        return jax.linear_transpose(lambda w: x @ w, w)(x[:, 0])[0]

    whole = jax.shard_map(transposed, mesh=MESH, in_specs=(P(), P("i")), out_specs=P())
    np.testing.assert_allclose(whole(W, X), X[:, 0] @ X, rtol=1e-5)
    loose = jax.shard_map(
        lambda w, x: lax.psum(transposed(w, x), "i"), mesh=MESH, in_specs=(P(), P("i")), out_specs=P(), check_vma=False
    )
    np.testing.assert_allclose(loose(W, X), X[:, 0] @ X, rtol=1e-5)


def test_types_say_what_varies():
    said = []

    def f(x, y):
        said.extend(str(jax.typeof(v)) for v in (x, y, x + y[0], lax.psum(x, "i"), lax.axis_index("i")))
        assert jax.typeof(x).mat.varying == {"i"} and not jax.typeof(y).mat.varying
        return x

    mapped = jax.shard_map(f, mesh=MESH, in_specs=(P("i"), P()), out_specs=P("i"))
    for run in (mapped, jax.jit(mapped)):
        run(X, X)
        assert said == ["float32[2,6]{V:i}", "float32[8,6]", "float32[2,6]{V:i}", "float32[2,6]", "int32[]{V:i}"]
        said.clear()

    def carry(x):
        return lax.scan(lambda c, r: (c + r, c), jnp.zeros(6), x)[0]

    with pytest.raises(TypeError, match=r"f32\[6\] .*f32\[6\]\{V:i\}"):
        jax.shard_map(carry, mesh=MESH, in_specs=P("i"), out_specs=P("i"))(X)
    with pytest.raises(ValueError, match="no axis is in force"):
        lax.pcast(X, "i", to="varying")
    with pytest.raises(ValueError, match="pcast from=varying"):
        jax.shard_map(lambda x: lax.pcast(x, "i", to="varying"), mesh=MESH, in_specs=P("i"), out_specs=P("i"))(X)


def test_custom_rules_keep_what_is_the_same():
    @jax.custom_vjp
    def total(x):
        return lax.psum(x, "i")

    total.defvjp(lambda x: (total(x), None), lambda _, bar: (lax.pcast(bar, "i", to="varying") * 7,))
    mapped = jax.shard_map(total, mesh=MESH, in_specs=P("i"), out_specs=P())
    for run in (mapped, jax.jit(mapped)):
        np.testing.assert_allclose(run(X), X.reshape(4, 2, 6).sum(0), rtol=1e-5)
        np.testing.assert_array_equal(jax.grad(lambda x: run(x).sum())(X), np.full_like(X, 7))  # noqa: B023


def test_zeros_in_a_backward_rule_vary_as_what_they_are_like():
    @jax.custom_vjp
    def scaled(x, w):
        return x * w.sum()

    scaled.defvjp(lambda x, w: (scaled(x, w), w), lambda w, bar: (bar * w.sum(), jnp.zeros_like(w)))
    mapped = jax.shard_map(
        lambda x, w: scaled(x, lax.pcast(w, "i", to="varying")), mesh=MESH, in_specs=(P("i"), P()), out_specs=P("i")
    )
    for run in (mapped, jax.jit(mapped)):
        found = jax.grad(lambda x, w: run(x, w).sum(), (0, 1))(X, X[0])  # noqa: B023
        np.testing.assert_allclose(found[0], np.full_like(X, X[0].sum()), rtol=1e-6)
        np.testing.assert_array_equal(found[1], np.zeros(6))


def test_what_is_like_a_varying_value_varies_in_another_shape():
    def types(x):
        like = [jnp.zeros_like(x, shape=3), jnp.ones_like(x, shape=3), jnp.full_like(x, 2, shape=3)]
        assert [str(jax.typeof(y)) for y in like] == ["float32[3]{V:i}"] * 3
        return x

    jax.shard_map(types, mesh=MESH, in_specs=P("i"), out_specs=P("i"))(X)


def test_collectives_over_two_axes():
    mesh = AbstractMesh((2, 3), ("a", "b"))
    axes, v = ("a", "b"), np.arange(36, dtype=np.float32).reshape(6, 6)

    def run(f, out=P(axes)):
        return jax.shard_map(f, mesh=mesh, in_specs=P(axes), out_specs=out)(v)

    np.testing.assert_array_equal(run(lambda x: lax.all_gather(x, axes, tiled=True)), np.tile(v, (6, 1)))
    shift = [(k, (k + 1) % 6) for k in range(6)]
    np.testing.assert_array_equal(run(lambda x: lax.ppermute(x, axes, shift)), np.roll(v, 1, 0))
    got = run(lambda x: lax.all_to_all(x, axes, 1, 0, tiled=True), P(None, axes))
    np.testing.assert_array_equal(got, v)
    got = run(lambda x: lax.psum_scatter(x, axes, scatter_dimension=1, tiled=True))
    np.testing.assert_allclose(got[:, 0], v.sum(0))


def test_smap():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh):
        total = jax.smap(lambda x: lax.psum(x, "i"), in_axes=0, out_axes=None, axis_name="i")
        np.testing.assert_allclose(jax.jit(total)(X), X.reshape(4, 2, 6).sum(0), rtol=1e-6)
        columns = jax.smap(lambda x, y: x * y, in_axes=(0, None), out_axes=-2, axis_name="i")
        np.testing.assert_allclose(columns(X, 2.0), X * 2)
    with pytest.raises(TypeError, match="in_axes"):
        jax.smap(lambda x: x, in_axes="i", out_axes=0, axis_name="i")


def test_loops_inside():
    def f(x):
        return lax.fori_loop(0, 3, lambda _, s: s + lax.pmean(s, "i"), x)

    want = X.reshape(4, 2, 6)
    for _ in range(3):
        want = want + want.mean(0)
    mapped = jax.jit(jax.shard_map(f, mesh=MESH, in_specs=P("i"), out_specs=P("i")))
    np.testing.assert_allclose(mapped(X), want.reshape(8, 6))


def test_mesh_in_force():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    double = jax.shard_map(lambda x: 2 * x, in_specs=P("i"), out_specs=P("i"))
    with pytest.raises(ValueError, match="set_mesh"):
        double(X)
    with jax.set_mesh(mesh):
        assert double(X).sharding == NamedSharding(mesh, P("i"))
        assert jax.sharding.get_mesh() is mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
    keys = jax.device_put(jax.random.split(jax.random.key(0), 4), NamedSharding(mesh, P("i")))
    assert keys.shape == (4,) and keys.committed and keys.dtype == jax.random.key(0).dtype
    assert jax.sharding.get_abstract_mesh().empty
    with jax.sharding.use_abstract_mesh(MESH):
        np.testing.assert_array_equal(double(X), 2 * X)
    some = jax.shard_map(lambda x: x, mesh=GRID, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    np.testing.assert_array_equal(some(X), X)


def test_programs_know_the_mesh_they_were_traced_under():
    """Jitted functions and bodies of eager loops, which are remembered, under two meshes and none."""
    sums = jax.jit(jax.shard_map(lambda y: y.sum(keepdims=True), in_specs=P("x"), out_specs=P("x")))
    x = jnp.arange(8.0)

    def axes(x):
        return lax.scan(lambda c, _: (c + len(jax.sharding.get_abstract_mesh().axis_names), None), x, None, length=2)[0]

    two, grid = AbstractMesh((2,), ("x",)), AbstractMesh((4, 2), ("x", "y"))
    for _ in range(2):
        with jax.sharding.use_abstract_mesh(two):
            np.testing.assert_array_equal(sums(x), [6, 22])
            assert axes(jnp.float32(0)) == 2
        with jax.sharding.use_abstract_mesh(grid):
            np.testing.assert_array_equal(sums(x), [1, 5, 9, 13])
            assert axes(jnp.float32(0)) == 4
        with pytest.raises(ValueError, match="set_mesh"):
            sums(x)
        assert axes(jnp.float32(0)) == 0


def test_meshes_are_set_outside_of_transformations():
    mesh = jax.make_mesh((1,), ("i",))

    def f(x):
        with jax.set_mesh(mesh):
            return x

    for transformed in (jax.jit(f), jax.grad(f)):
        with pytest.raises(ValueError, match="set_mesh: a function is being traced"):
            transformed(1.0)
    assert jax.sharding.get_mesh().empty and jax.sharding.get_mesh().axis_names == ()


@pytest.mark.parametrize(
    "specs, error, match",
    [
        (
            {"in_specs": P(None, "i"), "out_specs": P()},
            ValueError,
            "cuts its dimension 1 into 4 equal parts.*not evenly divisible",
        ),
        ({"in_specs": P("i"), "out_specs": P()}, ValueError, "the same along mesh axis 'i'.*depends on the device"),
        ({"in_specs": P("j"), "out_specs": P()}, ValueError, "refers to 'j', which is no axis marked as manual"),
        ({"in_specs": P("i", "i"), "out_specs": P()}, jax.sharding.DuplicateSpecError, "twice"),
        (
            {"in_specs": P(None, None, "i"), "out_specs": P()},
            ValueError,
            r"for 3 dimensions, and args\[0\] \(of parameter '.*'\) is float32.*, of 2",
        ),
        (
            {"in_specs": P("i"), "out_specs": P(None, None, "i")},
            ValueError,
            r"for 3 dimensions, and the result is float32.*, of 2",
        ),
        ({"in_specs": P("i"), "out_specs": None}, ValueError, "different types at key path\n    shard_map out_specs"),
        ({"in_specs": (P("i"), P()), "out_specs": P()}, ValueError, "prefix|different lengths"),
        ({"out_specs": P("i")}, TypeError, "Explicit"),
        ({"in_specs": ("i",), "out_specs": P()}, TypeError, "in_specs must be a PartitionSpec, or a tree"),
    ],
)
def test_errors(specs, error, match):
    with pytest.raises(error, match=match):
        jax.shard_map(lambda x: x, mesh=MESH, **specs)(X)
    if error is ValueError and "depends" in match:
        loose = jax.shard_map(lambda x: x, mesh=MESH, check_vma=False, **specs)
        np.testing.assert_array_equal(loose(X), X[:2])


def test_where_derivatives_lie():
    """Cotangents lie as the arguments do, in and out of jit, and under vmap."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    f = jax.shard_map(
        lambda x, w: lax.psum((x @ w).sum(), ("x", "y")), mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P()
    )
    x, w = jnp.arange(32.0).reshape(8, 4), jnp.ones((4, 3))
    for grad in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1)))):
        for value, expected, spec in zip(grad(x, w), jax.grad(lambda x, w: (x @ w).sum(), (0, 1))(x, w), ("x", "y")):
            np.testing.assert_allclose(value, expected)
            assert value.sharding.spec[0] == spec
    seen = []

    def body(x):
        seen.append(jax.sharding.get_abstract_mesh())
        return 2 * x

    doubled = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    assert jax.vmap(jax.jit(doubled))(jnp.ones((3, 8))).sharding == NamedSharding(mesh, P(None, "x"))
    assert seen[0].manual_axes == ("x",) and seen[0].auto_axes == ("y",)
    with pytest.raises(TypeError, match="'mesh' must be a Mesh or an AbstractMesh"):
        jax.shard_map(lambda x: x, mesh=3, in_specs=P(), out_specs=P())(x)


@pytest.mark.parametrize("loop", ["scan", "while", "fori", "cond"])
@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_loops_carry_parts(loop, axis_type):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(axis_type,))
    body = {
        "scan": lambda x: lax.scan(lambda c, _: (jnp.cos(c), None), x, None, length=3)[0],
        "while": lambda x: lax.while_loop(lambda s: s[1] < 3, lambda s: (jnp.cos(s[0]), s[1] + 1), (x, 0))[0],
        "fori": lambda x: lax.fori_loop(0, 3, lambda _, c: jnp.cos(c), x),
        "cond": lambda x: lax.cond(x.sum() > 0, lambda x: jnp.cos(jnp.cos(jnp.cos(x))), jnp.sin, x),
    }[loop]
    mapped = jax.shard_map(body, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
    x = jax.device_put(jnp.arange(1.0, 5.0), NamedSharding(mesh, P("i")))
    for f in (mapped, jax.jit(mapped)):
        assert np.allclose(f(x), np.cos(np.cos(np.cos(np.arange(1.0, 5.0)))))


def test_what_varies_and_what_lies_where_is_checked():
    """As JAX's: sums over axes of two states, axes of vmap in specs, cotangents of another state, other meshes."""
    both_axes = jax.shard_map(lambda x: lax.psum(x, ("a", "b")), mesh=GRID, in_specs=P("a"), out_specs=P())
    with pytest.raises(ValueError, match="varies only along"):
        both_axes(X)
    rows = jax.shard_map(lambda x: x, mesh=MESH, in_specs=P("i"), out_specs=P("i"))
    with pytest.raises(ValueError, match=r"spmd_axis_name .* is used already"):
        jax.vmap(rows, spmd_axis_name="i")(X[:4, :4])
    apart = jax.shard_map(lambda x: 2 * x, mesh=MESH, in_specs=P(), out_specs=P())
    for count in (3, 5):
        with pytest.raises(ValueError, match=f"mapped axis has {count} elements, which the mesh axes"):
            jax.vmap(apart, spmd_axis_name="i")(np.ones((count, 2)))
    double = jax.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, None), lambda _, bar: (lax.psum(bar, "i"),))
    mapped = jax.shard_map(double, mesh=MESH, in_specs=P("i"), out_specs=P("i"))
    with pytest.raises(ValueError, match="so the manual axis types do not match"):
        jax.grad(lambda x: mapped(x).sum())(X)
    with (
        jax.sharding.use_abstract_mesh(GRID),
        pytest.raises(ValueError, match=r"'mesh' is .*, but another is in force"),
    ):
        rows(X)


def test_partly_manual_results_say_nothing_open():
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    f = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    assert f(X).sharding.spec == P("a")


def test_axes_that_are_manual_already_are_refused():
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(mesh), pytest.raises(ValueError, match="for Auto axes alone"):
        cut = lambda x: lax.with_sharding_constraint(x, P("a", "b"))
        jax.shard_map(cut, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})(X)
    with pytest.raises(NameError, match=r"unbound axis name: c\. The axes in force are \['i'\]"):
        jax.shard_map(lambda x: lax.psum(x, "c"), mesh=MESH, in_specs=P("i"), out_specs=P())(X)


def test_arrays_like_others_vary_as_they_do():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x = np.arange(8, dtype=np.float32)

    def added(x):
        return lax.scan(lambda c, _: (c + x, None), jnp.zeros_like(x), None, length=3)[0]

    def chosen(x):
        return lax.cond(lax.axis_index("x") == 0, lambda x: x * 2, jnp.ones_like, x)

    def mapped(f):
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x")))(x)

    np.testing.assert_array_equal(mapped(added), 3 * x)
    np.testing.assert_array_equal(mapped(chosen), [0, 2, 4, 6, 1, 1, 1, 1])


def test_what_print_shows_of_parts():
    seen = []

    def f(x, y):
        z = lax.psum(x * y, "a")
        seen.extend([f"{x}", str(z), repr(2 * y[0])])
        jax.jit(lambda x: seen.append(str(x)))(x)
        return z

    specs = {"in_specs": (P("a", "b"), P()), "out_specs": P(None, "b")}
    mapped = jax.shard_map(f, mesh=jax.make_mesh((2, 2), ("a", "b"), (AxisType.Auto,) * 2), **specs)
    x, y = np.arange(8, dtype=np.int32).reshape(2, 4), np.array([1, 10], np.int32)
    expected = [[0, 40], [2, 60], [0, 0], [0, 0]], y * (x[:1, :2] + x[1:, :2]), y * (x[:1, 2:] + x[1:, 2:])
    np.testing.assert_array_equal(mapped(x, y), np.concatenate(expected[1:], 1))
    parts = [x[:1, :2], x[:1, 2:], x[1:, :2], x[1:, 2:]]
    assert seen[0] == "\n".join(
        f"On cpu:{n} at mesh coordinates (a, b,) = {divmod(n, 2)}:\n{part}\n" for n, part in enumerate(parts)
    )
    assert seen[1].count("On cpu:") == 4 and seen[1].count(str(expected[1])) == seen[1].count(str(expected[2])) == 2
    assert seen[2].count(":\n2\n") == 4 and seen[3] == "JitTracer(int32[1,2]{V:(a,b)})"
    seen.clear()
    jax.jit(mapped)(x, y)
    assert all(text.startswith("JitTracer(") for text in seen)


def test_what_is_no_array_is_closed_over_where_its_spec_is_none():
    def f(x, how, y):
        return x + y if how["kind"] is str else x

    mapped = jax.shard_map(f, mesh=MESH, in_specs=(P("i"), None, P()), out_specs=P("i"))
    np.testing.assert_array_equal(mapped(X, {"kind": str}, 2.0), X + 2)
    np.testing.assert_array_equal(jax.jit(lambda x: mapped(x, {"kind": int}, 2.0))(X), X)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.shard_map(f, mesh=MESH, in_specs=(P("i"), P(), P()), out_specs=P("i"))(X, {"kind": str}, 2.0)


def test_sets_are_shown_in_order():
    text = str(jax.make_jaxpr(jax.shard_map(lambda x: x, mesh=GRID, in_specs=P(), out_specs=P()))(X))
    assert "newly_manual_axes=frozenset({'a', 'b'})" in text


def test_results_that_are_the_same_vary_where_specs_cut_them():
    f = jax.shard_map(
        lambda x: jax.lax.psum(x, "i"),
        mesh=jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,)),
        in_specs=P("i"),
        out_specs=P("i"),
    )
    inner = jax.make_jaxpr(f)(jnp.arange(4.0)).jaxpr.eqns[0].params["jaxpr"]
    assert inner.eqns[-1].primitive.name == "pvary" and inner.outvars[0].aval.vma == {"i"}
    assert f(jnp.arange(4.0)).tolist() == [6.0] * 4
    assert jax.grad(lambda x: (f(x) * jnp.arange(4.0)).sum())(jnp.ones(4)).tolist() == [6.0] * 4


def test_eval_shape_inside_keeps_what_varies():
    mesh, found = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,)), []

    def f(x):
        struct = jax.eval_shape(jnp.sin, x)
        found.append(struct)
        assert jax.typeof(struct) == jax.typeof(x) == jax.typeof(jax.eval_shape(jnp.cos, struct))
        return x

    jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.arange(4.0))
    varies = jax.sharding.ManualAxisType(varying=frozenset({"i"}))
    assert found[0].manual_axis_type == varies == found[0].update(shape=(3,)).manual_axis_type
    assert found[0] != jax.ShapeDtypeStruct((1,), jnp.float32) and "varying=frozenset({'i'})" in repr(found[0])
    with pytest.raises(TypeError, match="manual_axis_type"):
        jax.ShapeDtypeStruct((1,), jnp.float32, manual_axis_type="i")


def test_states_are_of_explicit_meshes_and_checked_types():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
    f = lambda x: jax.lax.pcast(x, "i", to="unreduced")
    with pytest.raises(ValueError, match="axes are all of type `Explicit`"):
        jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P(None, unreduced={"i"}))(jnp.arange(4.0))
    with pytest.raises(ValueError, match="Unsupported pcast"):
        jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)(jnp.arange(4.0))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        lambda v, p: lax.cond(p, lambda x: x, jnp.zeros_like, v),
        lambda v, p: lax.cond(p, lambda x: jnp.sin(x) * x, jnp.ones_like, v),
        lambda v, p: lax.switch(p * 1, [jnp.zeros_like, lambda x: x * x, lambda x: x], v),
        lambda v, p: lax.scan(lambda c, _: (lax.cond(p, lambda x: x * 2, jnp.zeros_like, c), None), v, None, length=2)[
            0
        ],
    ],
)
def test_gradients_where_a_branch_is_the_same_on_all_devices(body, jit):
    n = len(jax.devices())
    mesh = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    fun = jax.shard_map(body, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
    grad = jax.grad(lambda v, p: jnp.sum(fun(v, p)))
    x = jnp.arange(2.0 * n) / 7
    want = jax.grad(lambda v: jnp.sum(body(v, True)))(x)
    np.testing.assert_allclose((jax.jit(grad) if jit else grad)(x, True), want, rtol=1e-6)  # products in another order


def test_mapped_along_the_axis_that_it_gets():
    """An argument's own axis is put into its spec, a result's where the body leaves it."""
    f = jax.shard_map(lambda x, y: (x * y[0], lax.psum(x, "i")), mesh=MESH, in_specs=P("i"), out_specs=(P("i"), P()))
    mapped = jax.vmap(f, (1, None), 1)
    closed = jax.make_jaxpr(mapped)(X, jnp.ones(4))
    (eqn,) = closed.eqns
    assert eqn.params["in_specs"] == (P("i", None), P("i")) and eqn.params["out_specs"] == (P("i", None), P(None, None))
    for run in (mapped, jax.jit(mapped)):
        product, total = run(X, jnp.arange(4.0))
        np.testing.assert_array_equal(product, X * np.repeat(np.arange(4), 2)[:, None])
        np.testing.assert_array_equal(total, X.reshape(4, 2, 6).sum(0))


def test_cotangents_vary_as_results_do():
    def back(bar, x):
        return jax.vjp(jnp.sin, x)[1](bar)[0]

    over = jax.shard_map(back, mesh=MESH, in_specs=(P(), P("i")), out_specs=P("i"))
    with pytest.raises(ValueError, match=r"takes f32\[1\]\{V:i\}"):
        over(jnp.ones(1), jnp.arange(4.0))


def test_what_types_cannot_say_is_not_reduced():
    gather = jax.shard_map(
        lambda x: lax.all_gather(x, "i", tiled=True, to="reduced"),
        mesh=MESH, in_specs=P("i"), out_specs=P(), check_vma=False,
    )  # fmt: skip
    with pytest.raises(ValueError, match="along which values vary by their types"):
        gather(jnp.arange(4.0))
