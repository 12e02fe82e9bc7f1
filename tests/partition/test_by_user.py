"""Functions that say themselves how they are cut: what they are told, and what becomes of it, are as in JAX 0.10.2."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.custom_partitioning import custom_partitioning
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(64, dtype=np.float32).reshape(8, 8)
CUT = jax.device_put(X, NamedSharding(MESH, P("x", "y")))
ROWS = jax.device_put(X, NamedSharding(MESH, P("x")))


def specs(tree):
    return jax.tree.map(lambda a: a.sharding.spec, tree)


def cut(fun, part, ins, outs, rule=None, infer=None, static=()):
    """(the function, what its rules are told): `part` of parts, of arguments and results cut so."""
    told = []
    f = custom_partitioning(fun, static_argnums=static)

    def on(mesh, tree):
        return jax.tree.map(lambda s: NamedSharding(mesh, s), tree, is_leaf=lambda s: isinstance(s, P))

    def partition(*given):
        *values, mesh, args, result = given
        assert mesh == MESH
        told.append((tuple(values), specs(args), specs(result)))

        def lower(*parts):
            told.append(jax.tree.map(jnp.shape, parts))
            return part(*parts)

        return mesh, lower, on(mesh, outs), on(mesh, ins)

    def inferred(mesh, args, result):
        told.append(specs(args))
        return on(mesh, infer)

    f.def_partition(partition, None if infer is None else inferred, sharding_rule=rule)
    return f, told


def rows(a):
    return lax.psum(a.sum(1), "y")


def test_the_users_function_computes_parts():
    f, told = cut(lambda a: a.sum(1), rows, (P("x", "y"),), P("x"), "i j -> i")
    y = jax.jit(f)(CUT)
    np.testing.assert_allclose(y, X.sum(1))
    assert y.sharding.spec == P("x") and told == [((), (P("x", "y"),), P("x")), ((4, 4),)]
    del told[:]
    y = jax.jit(lambda a: f(f(a)[:, None] * a) + 1)(CUT)
    np.testing.assert_allclose(y, (X.sum(1)[:, None] * X).sum(1) + 1)
    assert len(told) == 4
    assert "reduce_sum" in jax.jit(f).lower(CUT).compile().as_text("partitioned")


def test_arguments_are_moved_to_where_the_user_wants_them():
    f, told = cut(lambda a: jnp.sort(a), lambda a: jnp.sort(a), (P("x", None),), P("x", None), "i j -> i j")
    y = jax.jit(f)(CUT)
    np.testing.assert_array_equal(y, np.sort(X))
    assert y.sharding.spec == P("x", "y") and told == [((), (P("x", "y"),), P("x", "y")), ((4, 8),)]


def test_the_function_is_the_users_even_where_it_computes_something_else():
    f, _ = cut(lambda a: a, lambda a: a + lax.axis_index("y"), (P("x", "y"),), P("x", "y"), "i j -> i j")
    np.testing.assert_array_equal(jax.jit(f)(CUT), X + np.repeat([0, 1], 4))
    np.testing.assert_array_equal(jax.jit(f)(X), X)  # of one device
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(CUT[None])[0], X)  # as any other function
    assert float(jax.grad(lambda a: jax.jit(f)(a).sum())(CUT).sum()) == 64


@pytest.mark.parametrize("loop", [
    lambda f, a: lax.scan(lambda c, _: (c + f(a), None), jnp.zeros(8), None, length=3)[0],
    lambda f, a: lax.fori_loop(0, 3, lambda i, c: c + f(a), jnp.zeros(8)),
    lambda f, a: lax.cond(a[0, 0] < 1, lambda: 3 * f(a), lambda: -f(a)),
    lambda f, a: 3 * jax.checkpoint(f)(a),
])  # fmt: skip
def test_inside_of_loops_and_branches(loop):
    f, told = cut(lambda a: a.sum(1), rows, (P("x", "y"),), P("x"), "i j -> i")
    np.testing.assert_allclose(jax.jit(lambda a: loop(f, a))(CUT), 3 * X.sum(1))
    assert ((4, 4),) in told


def test_trees_and_values_that_are_no_arrays():
    f, told = cut(
        lambda a, n=2: {"p": n * a["u"] @ a["v"]},
        lambda a: {"p": 3 * a["u"] @ a["v"]},
        ({"u": P("x", None), "v": P(None, "y")},),
        {"p": P("x", "y")},
        "i k, k j -> i j",
        static=(1,),
    )
    for call in (lambda u, v: f({"u": u, "v": v}, 3), lambda u, v: f({"u": u, "v": v}, n=3)):
        del told[:]
        np.testing.assert_allclose(jax.jit(call)(CUT, X)["p"], 3 * X @ X)
        assert told[0] == ((3,), ({"u": P("x", "y"), "v": P(None, None)},), {"p": P("x", None)})
        assert told[1] == ({"u": (4, 8), "v": (8, 4)},)


@pytest.mark.parametrize("rule, x, shown", [
    ("... i -> ... i", CUT, P("x", "y")),
    ("i j -> i j", ROWS, P("x")),
    (lambda mesh, args, result: "i j -> i j", CUT, P("x", "y")),
    (lambda mesh, args, result: "... -> ...", CUT, P("x", "y")),
])  # fmt: skip
def test_rules(rule, x, shown):
    f, told = cut(lambda a: 2 * a, lambda a: 2 * a, (P("x", None),), P("x", None), rule)
    y = jax.jit(f)(x)
    assert y.sharding.spec == shown and told[1] == ((4, 8),)
    np.testing.assert_array_equal(y, 2 * X)


def test_dimensions_of_several_factors():
    f, told = cut(lambda a: a.reshape(64), lambda a: a.reshape(-1), (P("x", None),), P("x"), "i j -> (i j)")
    y = jax.jit(f)(ROWS)
    assert y.sharding.spec == P("x") and told == [((), (P("x", None),), P("x")), ((4, 8),)]
    np.testing.assert_array_equal(y, X.ravel())


def test_shardings_that_a_function_infers():
    f, told = cut(jnp.matmul, jnp.matmul, (P("x", None), P(None, None)), P("x", None), infer=P("x", None))
    y = jax.jit(lambda a: f(a, a) * 2 + 1)(CUT)
    np.testing.assert_allclose(y, X @ X * 2 + 1)
    assert y.sharding.spec == P("x") and (P("x", "y"), P("x", "y")) in told and ((4, 8), (8, 8)) in told


def test_parts_that_would_not_be_equal_are_cut_as_of_any_function():
    f, told = cut(lambda a: a.sum(1), rows, (P("x", "y"),), P("x"), "i j -> i")
    np.testing.assert_allclose(jax.jit(lambda a: lax.map(lambda r: f(r[None])[0], a))(CUT), X.sum(1))
    assert all(len(t) == 3 for t in told)


@pytest.mark.parametrize("part, error", [
    (lambda a: a[:1], r"computes for result 0 a part of type float32\[1, 8\]"),
    (lambda a: a.astype("int32"), r"a part of type int32\[4, 8\]"),
    (lambda a: (a, a), "has results of structure"),
])  # fmt: skip
def test_parts_that_are_none(part, error):
    f, _ = cut(lambda a: 2 * a, part, (P("x", None),), P("x", None), "i j -> i j")
    with pytest.raises(ValueError, match=error):
        jax.jit(f)(CUT)


@pytest.mark.parametrize("given, error", [
    (lambda mesh: None, "partition must give"),
    (lambda mesh: (mesh, lambda a: a, NamedSharding(mesh, P("x")), ()), "gave 0 shardings for 1 arguments"),
    (lambda mesh: (mesh, lambda a: a, P("x"), (NamedSharding(mesh, P("x")),)), "must be NamedShardings over the mesh"),
])  # fmt: skip
def test_partitions_that_are_none(given, error):
    f = custom_partitioning(lambda a: a)
    f.def_partition(lambda mesh, args, result: given(mesh), sharding_rule="i j -> i j")
    with pytest.raises(ValueError, match=error):
        jax.jit(f)(CUT)
