"""Values that are still to be summed over mesh axes (unreduced), and whose cotangents will be (reduced): types and
values are what JAX 0.10.2 gives.
"""

from functools import partial

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding, reshard
from pullback.sharding import PartitionSpec as P
from pullback.util.errors import ShardingTypeError

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
X = np.arange(8, dtype=np.float32).reshape(4, 2)
Y = np.arange(8, dtype=np.float32).reshape(2, 4)
U, R = P(None, None, unreduced={"y"}), P(None, None, reduced={"y"})


@pytest.fixture(autouse=True)
def in_mesh():
    with jax.set_mesh(MESH):
        yield


def terms(rows=None):
    """X @ Y, whose products are still to be summed along y."""
    spec = P(rows, None, unreduced={"y"})
    dot = jax.jit(partial(jnp.dot, out_sharding=spec))
    return dot(jax.device_put(X, P(rows, "y")), jax.device_put(Y, P("y", None)))


def reduced(x, rows=None):
    return jax.device_put(np.asarray(x, np.float32), P(rows, None, reduced={"y"}))


@pytest.mark.parametrize("rows", [None, "x"])
@pytest.mark.parametrize("wanted", [P(), P("x"), P("y"), P(None, "y"), P(("x", "y"))])
def test_products_leave_their_sums(rows, wanted):
    z = terms(rows)
    assert str(jax.typeof(z)) == ("float32[4,4]{U:y}" if rows is None else "float32[4@x,4]{U:y}")
    assert z.sharding.spec == P(rows, None, unreduced={"y"}) and not z.sharding.is_fully_replicated
    for done in (reshard(z, wanted), jax.jit(lambda z: reshard(z, wanted))(z)):
        assert jax.typeof(done).sharding.spec == P(*wanted, *[None] * (2 - len(wanted)))
        np.testing.assert_array_equal(done, X @ Y)


LINEAR = {
    "sum with another": lambda z: z + z,
    "transposed": lambda z: z.T,
    "summed": lambda z: z.sum(0),
    "in another type": lambda z: z.astype(jnp.bfloat16),
    "put together": lambda z: jnp.concatenate([z, z], 1),
    "stacked": lambda z: jnp.stack([z, z]),
    "part": lambda z: lax.slice(z, (0, 1), (4, 3)),
    "chosen": lambda z: jnp.where(True, z, z),
    "padded": lambda z: lax.pad(z, jnp.float32(0), [(0, 0, 0), (0, 4, 0)]),
    "a window": lambda z: lax.dynamic_slice(z, (1, 0), (2, 4)),
    "written into": lambda z: lax.dynamic_update_slice(z, z[:1], (2, 0)),
    "kept apart": lambda z: lax.optimization_barrier(z),
    "row by row": lambda z: lax.scan(lambda c, r: (c + r, None), z[0], z)[0],
    "looped": lambda z: lax.fori_loop(0, 2, lambda _, c: c + c, z),
    "in a branch": lambda z: lax.cond(True, lambda: z + z, lambda: z),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_keeps_terms(name):
    z = jax.jit(LINEAR[name])(terms())
    assert str(jax.typeof(z)).endswith("{U:y}")
    np.testing.assert_allclose(reshard(z, P()), LINEAR[name](jnp.asarray(X @ Y)))


def test_terms_times_what_is_reduced():
    z = jax.jit(jnp.multiply)(terms("x"), reduced(3 * np.ones((4, 4)), "x"))
    assert str(jax.typeof(z)) == "float32[4@x,4]{U:y}"
    np.testing.assert_array_equal(reshard(z, P()), 3 * X @ Y)


@pytest.mark.parametrize(
    ("fun", "error"),
    [
        (lambda z: jnp.sin(z), NotImplementedError),
        (lambda z: -z, NotImplementedError),
        (lambda z: z * z, ShardingTypeError),
        (lambda z: z + 1.0, ShardingTypeError),
        (lambda z: z + jnp.ones((4, 4)), ShardingTypeError),
        (lambda z: z * jnp.ones((4, 4)), ShardingTypeError),
        (lambda z: z * 2.0, ShardingTypeError),
        (lambda z: 2 * jnp.sum(z), ShardingTypeError),
        (lambda z: z @ jnp.ones((4, 4)), ShardingTypeError),
        (lambda z: jnp.concatenate([z, jnp.ones((4, 4))]), ShardingTypeError),
    ],
)
def test_what_needs_the_sum_says_so(fun, error):
    with pytest.raises(error, match="U:y"):
        jax.jit(fun)(terms())


GRADIENTS = {
    "twice": lambda w: w * 2,
    "times a scalar": lambda w: w * jnp.ones(()),
    "squared": lambda w: w * w,
    "sine": jnp.sin,
    "shifted": lambda w: w + 1.0,
    "transposed": lambda w: w.T,
    "a window": lambda w: lax.dynamic_slice(w, (1, 0), (2, 4)),
    "chosen": lambda w: lax.select(np.ones((4, 4), bool), w, w),
    "row by row": lambda w: lax.scan(lambda c, r: (c + r, None), w[0], w)[0],
    "scaled in a loop": lambda w: lax.scan(lambda c, _: (c * 2, None), w, None, length=2)[0],
    "in a checkpoint": jax.checkpoint(lambda w: jnp.sin(w) * 3),
    "mapped": jax.vmap(lambda r: r * 2),
    "barrier": lax.optimization_barrier,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_what_is_reduced_are_terms_with_jit_and_without(name):
    def loss(w):
        return jnp.sum(GRADIENTS[name](w))

    w, plain = reduced(X @ Y / 30), jnp.asarray(X @ Y / 30)
    want = jax.grad(loss)(plain)
    for grad in (jax.grad(loss), jax.jit(jax.grad(loss))):
        found = grad(w)
        assert str(jax.typeof(found)) == "float32[4,4]{U:y}" and found.sharding.spec == U
        np.testing.assert_allclose(reshard(found, P()), want, rtol=1e-6)  # one rounding of the sum of terms


def test_a_product_of_a_cut_and_a_reduced_value_has_a_gradient_of_terms():
    x, w = jax.device_put(np.ones((4, 4), np.float32), P("y")), reduced(np.eye(4))
    found = jax.grad(lambda w: jnp.sum(x @ w))(w)
    assert found.sharding.spec == U
    np.testing.assert_array_equal(reshard(found, P()), 4 * np.ones((4, 4)))


def test_products_give_terms_of_gradients_at_once():
    """As JAX has it: nothing is summed before the one reshard at the end."""
    x, w = jax.device_put(np.ones((8, 4), np.float32), P("y", None)), np.ones((4, 2), np.float32)

    def loss(w):
        w = reshard(w, R)
        return jnp.sum(x @ w) + jnp.sum(2 * (w.T @ x.T))

    made = jax.make_jaxpr(jax.grad(loss))(w)
    terms = [(e.primitive.name, str(e.outvars[0].aval)) for e in made.eqns if "U:y" in str(e.outvars[0].aval)]
    product = [("dot_general", "float32[2,4]{U:y}"), ("transpose", "float32[4,2]{U:y}")]
    assert terms == [*product, *product, ("add_any", "float32[4,2]{U:y}")]
    assert made.eqns[-1].primitive.name == "reshard" and str(made.out_avals[0]) == "float32[4,2]"
    for grad in (jax.grad(loss), jax.jit(jax.grad(loss))):
        np.testing.assert_array_equal(grad(w), np.full((4, 2), 24))


def test_products_that_leave_their_sums_are_one_equation():
    x, y = jax.device_put(X, P(None, "y")), jax.device_put(Y, P("y", None))
    made = jax.make_jaxpr(partial(jnp.dot, out_sharding=U))(x, y)
    assert [(e.primitive.name, str(e.outvars[0].aval)) for e in made.eqns] == [("dot_general", "float32[4,4]{U:y}")]
    second = jax.grad(lambda y: jnp.sum(reshard(jnp.dot(x, y, out_sharding=U), P(None, None)) ** 2))
    np.testing.assert_allclose(jax.jit(second)(y), 2 * X.T @ (X @ Y))


def exchanged(fun, *args):
    """(the collectives of a program, their bytes for each device)."""
    last = jax.jit(fun).lower(*args).as_text("partitioned").strip().splitlines()[-1].split()
    return int(last[6]), int(last[3])


TERMS = {  # what is done to terms, and how often they are summed
    "one after the other": (lambda z: reshard(z() + z().T, P(None, None)), 1, 64),
    "dealt out": (lambda z: reshard(z(), P("y", None)), 1, 32),
    "a part": (lambda z: reshard(z()[1:3], P(None, None)), 1, 32),
    "padded": (lambda z: reshard(lax.pad(z()[1:3], 0.0, [(1, 1, 0), (0, 0, 0)]), P(None, None)), 1, 64),
    "padded by ones": (lambda z: reshard(lax.pad(z()[1:3], 1.0, [(1, 1, 0), (0, 0, 0)]), P(None, None)), 1, 32),
    "repeated": (lambda z: reshard(lax.broadcast(z()[1:3], (5,)), P(None, None, None)), 1, 32),
    "beside what is whole": (lambda z: reshard(z() + reshard(jnp.ones((4, 4)), U), P(None, None)), 1, 64),
    "in a loop": (
        lambda z: reshard(lax.scan(lambda c, _: (c + z(), z().sum(0)), z(), None, length=3)[0], P(None, None)),
        1,
        64,
    ),
    "of steps": (
        lambda z: reshard(lax.scan(lambda c, _: (c, z()[0]), 0.0, None, length=3)[1], P(None, None)),
        1,
        48,
    ),
    "times what is reduced": (lambda z: reshard(z() * reshard(2 * jnp.eye(4), R), P(None, None)), 1, 64),
    "rounded": (lambda z: reshard((z() + z()).astype(jnp.float16), P(None, None)), 1, 64),
    "in another type": (lambda z: reshard(z().astype(jnp.bfloat16).astype(jnp.float32), P(None, None)), 1, 64),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms_are_summed_where_the_sum_is_wanted(name):
    fun, count, size = TERMS[name]
    x, y = jax.device_put(X, P(None, "y")), jax.device_put(Y, P("y", None))

    def program(x, y):
        return fun(lambda: jnp.dot(x, y, out_sharding=U))

    found = jax.jit(program)(x, y)
    np.testing.assert_array_equal(found, program(x, y))
    assert exchanged(program, x, y) == (count, size)


def test_scalars_beside_what_is_reduced_are_reduced():
    made = jax.make_jaxpr(lambda w: 3.0 + w * 2)(reduced(np.ones((4, 4))))
    assert [eqn.primitive.name for eqn in made.eqns] == ["reshard", "mul", "reshard", "add"]
    assert str(made.eqns[0].outvars[0].aval) == "float32[]{R:y}"


def test_rows_of_a_table_that_is_reduced():
    table, index = reduced(np.eye(4)), jax.device_put(np.array([3, 1]), P("y"))
    rows = table.at[index].get(out_sharding=P("y", None))
    assert rows.sharding.spec == P("y", None)
    found = jax.grad(lambda t: jnp.sum(t.at[index].get(out_sharding=P("y", None))))(table)
    assert found.sharding.spec == U
    np.testing.assert_array_equal(reshard(found, P()), np.repeat([[0], [1], [0], [1]], 4, 1))
    with pytest.raises(ShardingTypeError, match="cut along axes that another is reduced over"):
        jax.device_put(np.ones((4, 4), np.float32), P("y")) * jax.device_put(np.float32(2), P(reduced={"y"}))


def test_results_of_jit_say_that_they_are_reduced():
    for fun in (lambda w: reshard(w, R), lambda w: jnp.full_like(w, 2.0), lambda w: w + w):
        assert jax.jit(fun)(reduced(np.ones((4, 4)))).sharding.spec == R


@pytest.mark.parametrize("specs", [(P(), P()), (P(None, "x"), P("x")), (P(None, "y"), P())])
def test_einsum_leaves_sums_over_the_axes_that_cut_what_it_sums(specs):
    a, b = jax.device_put(X, specs[0]), jax.device_put(Y, specs[1])
    with pytest.raises(ShardingTypeError):
        jnp.einsum("ij,jk->ik", a, b, out_sharding=U)


@pytest.mark.parametrize("rows", [None, "x"])
def test_parts_on_devices_are_terms(rows):
    z = terms(rows)
    total = np.zeros((4, 4), np.float32)
    for shard in z.addressable_shards:
        assert shard.data.shape == ((2 if rows else 4), 4) and shard.data.devices() == {shard.device}
        total[shard.index] += np.asarray(shard.data) / (1 if rows else 2)  # each part is on two devices along x
    np.testing.assert_array_equal(total, X @ Y)
    assert len(z.addressable_shards) == 4


def test_texts_show_no_values_of_terms():
    for text in (repr(terms()), str(terms())):
        assert text.startswith("Array(shape=(4, 4), dtype=float32, sharding=NamedSharding(")
        assert "unreduced={'y'}" in text
    assert repr(reshard(terms(), P(None, None))).startswith("Array([[")


def test_specs_that_cannot_be():
    with pytest.raises(ShardingTypeError, match="unreduced over"):
        jax.jit(partial(jnp.dot, out_sharding=U))(jax.device_put(X, P("x", None)), Y)
    with pytest.raises(ValueError, match="not found in mesh"):
        NamedSharding(MESH, P(unreduced={"z"}))
    with pytest.raises(ValueError, match="Auto"):
        NamedSharding(jax.make_mesh((2,), ("y",), axis_types=(AxisType.Auto,)), P(unreduced={"y"}))
    with pytest.raises(NotImplementedError, match="terms"):
        NamedSharding(MESH, U).devices_indices_map((4, 4))
    with pytest.raises(ShardingTypeError, match="reduced over"):
        jax.jit(jnp.add)(reduced(np.ones((4, 4))), np.ones((4, 4)))


def test_cotangents_are_of_the_other_state():
    w = reduced(X)
    out, pull = jax.vjp(lambda w: w * 2.0, w)
    assert str(jax.typeof(out)) == "float32[4,2]{R:y}"
    left = jax.device_put(np.ones((4, 2), np.float32), P(None, "y"))
    ones = jnp.dot(left, jax.device_put(np.ones((2, 2), np.float32), P("y")), out_sharding=U)
    (bar,) = pull(ones)
    assert str(jax.typeof(bar)) == "float32[4,2]{U:y}"
    np.testing.assert_array_equal(reshard(bar, P()), np.full((4, 2), 4.0))
    with pytest.raises(ValueError, match="unexpected JAX type"):
        pull(out)
    _, dot = jax.jvp(jnp.sin, (w,), (w,))
    assert str(jax.typeof(dot)) == "float32[4,2]{R:y}"


@pytest.mark.parametrize("steps", [1, 3])
def test_gradients_of_parameters_are_left_to_be_summed(steps):
    w, x = reduced(np.eye(4) * 0.3 + 0.1), jax.device_put(np.ones((2, 4), np.float32), P("y", None))

    def loss(w, x):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=steps)[0].sum()

    found = jax.jit(jax.grad(loss))(w, x)
    assert str(jax.typeof(found)) == "float32[4,4]{U:y}"
    np.testing.assert_allclose(reshard(found, P()), jax.grad(loss)(np.asarray(w), np.asarray(x)), rtol=1e-6)


def mapped(f, ins, outs):
    return jax.jit(jax.shard_map(f, in_specs=ins, out_specs=outs))


def test_parts_are_terms():
    x = jax.device_put(X, P("x", "y"))
    seen = []

    def f(x):
        y = lax.pcast(x.sum(1), "y", to="unreduced")
        z = y + y
        seen.append(str(jax.typeof(z)))
        return z

    spec = P("x", unreduced={"y"})
    for run in (mapped(f, P("x", "y"), spec), jax.shard_map(f, in_specs=P("x", "y"), out_specs=spec)):
        out = run(x)
        assert str(jax.typeof(out)) == "float32[4@x]{U:y}"
        np.testing.assert_array_equal(reshard(out, P("x")), 2 * X.sum(1))
    assert seen[0] == "float32[2]{V:x, U:y}"
    again = mapped(lambda z: lax.psum(z, "y"), spec, P("x"))(out)
    assert str(jax.typeof(again)) == "float32[4@x]"
    np.testing.assert_array_equal(again, 2 * X.sum(1))


def test_sums_are_dealt_out():
    x = jax.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), P(None, "x"))

    def f(x):
        return lax.psum_scatter(lax.pcast(x, "x", to="unreduced"), "x", scatter_dimension=0, tiled=True)

    np.testing.assert_array_equal(mapped(f, P(None, "x"), P("x", None))(x), np.asarray(x).reshape(4, 2, 2).sum(1))


@pytest.mark.parametrize("to", ["reduced", "invarying", "varying"])
def test_gathered_parameters(to):
    """Of a layer whose weights each device has a part of: in each way the gradient is the whole function's."""
    w = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8) / 64, P("x"))
    x = jax.device_put(np.ones((8, 8), np.float32), P("x"))

    def loss(w, x):
        def layer(w, x):
            return jnp.tanh(x @ lax.all_gather(w, "x", axis=0, tiled=True, to=to))

        return jax.shard_map(layer, in_specs=(P("x"), P("x")), out_specs=P("x"), axis_names={"x"})(w, x).sum()

    want = jax.grad(lambda w: jnp.tanh(jnp.ones((8, 8)) @ w).sum())(np.asarray(w))
    found = jax.jit(jax.grad(loss))(w, x)
    assert str(jax.typeof(found)) == "float32[8@x,8]"
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=3e-6)
    if to != "varying":
        spec = P(None, None, reduced={"x"}) if to == "reduced" else P(None, None)
        shown = mapped(lambda w: lax.all_gather(w, "x", axis=0, tiled=True, to=to), P("x"), spec)(w)
        assert str(jax.typeof(shown)) == "float32[8,8]" + ("{R:x}" if to == "reduced" else "")
        np.testing.assert_array_equal(shown, w)


def test_reduced_arguments_of_parts():
    w, x = reduced(np.arange(6).reshape(2, 3)), jax.device_put(X, P("y", None))

    def loss(w, x):
        return jax.shard_map(jnp.dot, in_specs=(P("y", None), R), out_specs=P("y"))(x, w).sum()

    found = jax.jit(jax.grad(loss))(w, x)
    assert str(jax.typeof(found)) == "float32[2,3]{U:y}"
    np.testing.assert_array_equal(reshard(found, P()), np.repeat(X.sum(0)[:, None], 3, 1))


def test_casts():
    x = jax.device_put(X, P("x", None))

    def f(x):
        r = lax.pcast(x, "y", to="reduced")
        v = lax.pcast(r, "y", to="varying")
        u = lax.pcast(v, "y", to="unreduced")
        assert [str(jax.typeof(t))[12:] for t in (r, v, u)] == ["{V:x, R:y}", "{V:(x,y)}", "{V:x, U:y}"]
        return lax.psum(u, "y")

    np.testing.assert_array_equal(mapped(f, P("x"), P("x"))(x), 2 * X)


@pytest.mark.parametrize(
    ("f", "ins", "outs", "match"),
    [
        (lambda x: lax.pcast(x, "y", to="reduced"), P("x", "y"), P("x", "y"), "pcast"),
        (lambda x: lax.pcast(x, "y", to="unreduced"), P("x"), P("x", unreduced={"y"}), "pcast"),
        (lambda x: lax.pcast(x, "y", to="nonsense"), P("x", "y"), P("x"), "argument 'to'"),
        (lambda x: lax.pcast(x, "y", to="unreduced"), P("x", "y"), P("x"), "still to be summed"),
        (lambda x: x, P("x"), P("x", unreduced={"y"}), "out_specs"),
        (lambda x: lax.psum(lax.pcast(x, "y", to="reduced"), "y"), P("x"), P("x"), "is a sum already"),
        (lambda x: x, P("x", None, reduced={"y"}), P("x", None, reduced={"y"}), "in_specs"),
    ],
)
def test_parts_of_another_state(f, ins, outs, match):
    with pytest.raises(ValueError, match=match):
        mapped(f, ins, outs)(jax.device_put(X, P(*ins)))


def test_states_in_specs_where_types_cannot_say_them():
    auto = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    explicit = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

    def mapped(mesh, ins, outs, **more):
        with jax.set_mesh(mesh):
            return jax.shard_map(lambda v: v, in_specs=ins, out_specs=outs, **more)(jax.device_put(data, P("x")))

    data = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="global_shape=8"):
        jax.make_array_from_process_local_data(NamedSharding(explicit, P("x")), data, 8)
    for spec in (P(unreduced={"x"}), P(reduced={"x"})):
        with pytest.raises(ValueError, match=r"in in_specs .* all of type `Explicit`"):
            mapped(auto, spec, P("x"))
        with pytest.raises(NotImplementedError, match="full manual mode"):
            mapped(explicit, P("x"), spec, axis_names={"x"})
