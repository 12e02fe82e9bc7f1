"""Functions exported for some types: called, differentiated, stored and read again."""

import os
import pickle
from collections import namedtuple

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import export, lax


def g(x, *, y):
    return {"a": jnp.sin(x) * 2 + y}


X = jnp.arange(3.0)


def test_called_as_exported_and_as_read_again():
    first = export.export(jax.jit(g))(jax.ShapeDtypeStruct((3,), jnp.float32), y=2.0)
    assert (first.fun_name, first.platforms, first.nr_devices, first.has_vjp()) == ("g", ("cpu",), 1, True)
    assert first.in_tree == jax.tree.structure(((1,), {"y": 1})) and first.out_tree == jax.tree.structure({"a": 1})
    assert [str(a) for a in (*first.in_avals, *first.out_avals)] == ["float32[3]", "~float32[]", "float32[3]"]
    stored = first.serialize(vjp_order=2)
    for e in (first, export.deserialize(stored), export.deserialize(export.deserialize(stored).serialize(2))):
        want = g(X, y=1.0)["a"]
        np.testing.assert_array_equal(e.call(X, y=1.0)["a"], want)
        np.testing.assert_array_equal(jax.jit(e.call)(X, y=1.0)["a"], want)
        assert str(e.in_avals) == str(first.in_avals) and e.in_tree == first.in_tree and e.fun_name == "g"
        loss = lambda x: e.call(x, y=1.0)["a"].sum()  # noqa: B023
        np.testing.assert_allclose(jax.grad(loss)(X), 2 * np.cos(X), rtol=1e-6)
        second = jax.grad(lambda s: jax.grad(lambda t: loss(t * X))(s))(1.0)  # noqa: B023
        np.testing.assert_allclose(second, (-2 * np.sin(X) * X**2).sum(), rtol=1e-5)
        assert len(e.vjp().in_avals) == 3 and len(e.vjp().out_avals) == 2
        for bad in (
            lambda: e.call(X, 1.0),  # noqa: B023
            lambda: e.call(jnp.ones(4), y=1.0),  # noqa: B023
            lambda: e.call(X, y=1),  # noqa: B023
            lambda: e.call({"q": X}, y=1.0),  # noqa: B023
        ):
            with pytest.raises(ValueError, match=r"structure|mismatch"):
                bad()
    with pytest.raises(ValueError, match="No VJP"):
        jax.grad(lambda x: export.deserialize(first.serialize()).call(x, y=1.0)["a"].sum())(X)


def test_loops_keys_integers_and_rules_are_stored():
    @jax.custom_jvp
    def scaled(x):
        return x * 1

    scaled.defjvp(lambda p, t: (scaled(*p), 10 * t[0]))

    def f(x, n, key):
        y = lax.scan(lambda c, v: (c + v, jax.nn.relu(c)), x[0], x)[1]
        y = lax.cond(n > 0, jnp.sin, jnp.cos, y) + x[n] + jax.random.uniform(key, (2,))
        y = lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c * 2, y) + jnp.sort(x) @ x
        return scaled(y).astype(jnp.bfloat16), n

    x, key = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jax.random.key(1)
    e = export.deserialize(export.export(jax.jit(f))(x, 1, key).serialize())
    out, n = e.call(x, 1, key)
    np.testing.assert_array_equal(out.astype(jnp.float32), jax.jit(f)(x, 1, key)[0].astype(jnp.float32))
    assert n == 1 and out.dtype == jnp.bfloat16

    e = export.export(jax.jit(lambda x, n: (scaled(x) * n, n)))(1.0, 3)
    for each in (e, export.deserialize(e.serialize(vjp_order=1))):
        assert jax.grad(lambda x: each.call(x, 3)[0])(2.0) == 30  # noqa: B023
    static = export.export(jax.jit(lambda x, n: x * n, static_argnums=1))(X, 3)
    np.testing.assert_array_equal(static.call(X), 3 * X)


Point = namedtuple("Point", "x y")


@jax.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, value, factor):
        self.value, self.factor = value, factor

    def tree_flatten(self):
        return (self.value,), self.factor

    @classmethod
    def tree_unflatten(cls, factor, children):
        return cls(*children, factor)


def test_structures():
    f = jax.jit(lambda p, s: [Point(p.y, (None, p.x)), s.value * s.factor])
    e = export.export(f)(Point(1.0, X), Scaled(X, 3))
    with pytest.raises(ValueError, match="register_namedtuple"):
        e.serialize()
    export.register_namedtuple_serialization(Point, serialized_name="Point")
    with pytest.raises(ValueError, match="register_pytree_node"):
        e.serialize()
    export.register_pytree_node_serialization(
        Scaled, serialized_name="Scaled", serialize_auxdata=lambda n: b"%d" % n, deserialize_auxdata=int
    )
    with pytest.raises(ValueError, match="a type is registered once"):
        export.register_namedtuple_serialization(Point, serialized_name="other")
    again = export.deserialize(e.serialize())
    assert again.in_tree == e.in_tree and again.out_tree == e.out_tree
    (point, scaled) = again.call(Point(1.0, X), Scaled(X, 3))
    assert isinstance(point, Point) and point.y == (None, 1.0)
    np.testing.assert_array_equal(scaled, 3 * X)
    with pytest.raises(ValueError, match="structure"):
        again.call(Point(1.0, X), Scaled(X, 4))


def test_what_is_refused():
    with pytest.raises(ValueError, match="must come from"):
        export.export(lambda x: x)
    with pytest.raises(NotImplementedError, match="calls back to Python"):
        export.export(jax.jit(lambda x: jax.debug.print("{}", x)))(1.0)
    with pytest.raises(NotImplementedError, match="written down"):
        export.export(jax.jit(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), x)))(1.0)
    with pytest.raises(ValueError, match="unknown platform"):
        export.export(jax.jit(jnp.sin), platforms=["abacus"])
    elsewhere = export.export(jax.jit(jnp.sin), platforms=["tpu"])(1.0)
    with pytest.raises(ValueError, match="this computer has 'cpu'"):
        elsewhere.call(1.0)
    unchecked = export.export(
        jax.jit(jnp.sin), platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()]
    )(1.0)
    assert float(export.deserialize(unchecked.serialize()).call(0.0)) == 0
    magic = elsewhere.serialize().split(b"\n")[0] + b"\n"
    harm = pickle.dumps(os.getcwd)
    for blob in (b"", b"StableHLO", magic, magic + harm, elsewhere.serialize()[:-9]):
        with pytest.raises(ValueError, match="deserialize"):
            export.deserialize(blob)
    with pytest.raises(NotImplementedError):
        elsewhere.mlir_module()


def test_arguments_that_the_program_reads():
    made = export.export(jax.jit(lambda x, y: y * 2))(1.0, 2.0)
    assert made.module_kept_var_idx == (1,)
    assert export.deserialize(made.serialize()).module_kept_var_idx == (1,)
    assert export.export(jax.jit(lambda x, y: y * 2, keep_unused=True))(1.0, 2.0).module_kept_var_idx == (0, 1)


def test_programs_that_add_at_places_are_stored():
    """Their equations hold the jaxpr that joins two elements."""

    def f(x):
        return x.at[jnp.array([0, 0])].add(1.0)

    stored = export.export(jax.jit(f))(jax.ShapeDtypeStruct((3,), np.float32)).serialize()
    np.testing.assert_array_equal(export.deserialize(stored).call(np.ones(3, np.float32)), [3.0, 1.0, 1.0])


def test_references_of_a_program_are_values_of_what_is_exported():
    def f(x):
        r = jax.new_ref(x)
        r[0] = r[1] * 2
        return jax.freeze(r)

    x = jnp.arange(3.0)
    g = export.deserialize(export.export(jax.jit(f))(x).serialize(vjp_order=1))
    np.testing.assert_array_equal(g.call(x), [2, 1, 2])
    np.testing.assert_array_equal(jax.grad(lambda x: g.call(x).sum())(x), [0, 3, 1])


def test_transfers_are_exported():
    x = jnp.arange(3.0)
    g = export.deserialize(export.export(jax.jit(lambda x: jax.device_put(x) * 2))(x).serialize(vjp_order=1))
    np.testing.assert_array_equal(g.call(x), [0, 2, 4])
    np.testing.assert_array_equal(jax.grad(lambda x: g.call(x).sum())(x), [2, 2, 2])
