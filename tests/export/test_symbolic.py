"""Programs traced for symbolic shapes: the types of their results, and what exported ones give for shapes that fit."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import export, lax
from pullback.core.dimensions import evaluate
from pullback.core.specialize import specialize
from pullback.errors import InconclusiveDimensionOperation


def specs(*shapes, constraints=()):
    scope = export.SymbolicScope(constraints)
    return [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in shapes]


def exported(f, *shapes, constraints=()):
    return export.export(jax.jit(f))(*specs(*shapes, constraints=constraints))


def ones(*shape):
    return np.ones(shape, np.float32)


PROGRAMS = {
    "a, b": [
        (lambda x: x * x.shape[0] + x.shape[1], "f32[a,b]"),
        (lambda x: (x.shape[0], x.shape[0] * 2 + x.shape[1], x.size / 2), "i32[] i32[] f32[]"),
        (lambda x: jnp.array(x.shape), "i32[2]"),
        (lambda x: x.sum() / x.shape[0], "f32[]"),
        (lambda x: (x.mean(0), x.var(1), x.argmax(1), jnp.median(x)), "f32[b] f32[a] i32[a] f32[]"),
        (lambda x: jnp.arange(1, x.shape[0] * 2, 2), "i32[a]"),
        (lambda x: jnp.arange(x.shape[0], 0, -1), "i32[a]"),
        (lambda x: (x.reshape(-1), x.reshape(x.shape[1], -1), x.T.ravel()), "f32[a*b] f32[b,a] f32[a*b]"),
        (lambda x: (x[1:], x[:-1], x[2:], x[-3:]), "f32[a - 1,b] f32[a - 1,b] f32[- min(a, 2) + a,b] "
         "f32[- max(0, a - 3) + a,b]"),
        (lambda x: (x[::2], x[::-1], x[1::2], x[:3]), "f32[floordiv(a + 1, 2),b] f32[a,b] f32[floordiv(a, 2),b] "
         "f32[min(a, 3),b]"),
        (lambda x: (x[::-2], x[-2::-1], x[x.shape[0] - 1 : 0 : -2]), "f32[floordiv(a + 1, 2),b] "
         "f32[a - 1,b] f32[floordiv(a, 2),b]"),
        (lambda x: (x[:-3:2], x[2:-3:3], x[-7:-2:3][:0]), "f32[floordiv(max(0, a - 3) + 1, 2),b] "
         "f32[floordiv(max(- min(a, 2) + max(0, a - 3), 0) + 2, 3),b] f32[0,b]"),
        (lambda x: (x[0], x[-1], x[3], x[:, None]), "f32[b] f32[b] f32[b] f32[a,1,b]"),
        (lambda x: x[jnp.arange(x.shape[0]), -1], "f32[a]"),
        (lambda x: x.at[jnp.arange(x.shape[0]), 0].set(0.0).at[1:].multiply(2.0).at[3].add(1.0), "f32[a,b]"),
        (lambda x: jax.lax.top_k(x, x.shape[1] - 1), "f32[a,b - 1] i32[a,b - 1]"),
        (lambda x: (jnp.eye(*x.shape), jnp.full(x.shape[0], 2.0)), "f32[a,b] f32[a]"),
        (lambda x: jnp.concatenate([x, x, x[1:]]), "f32[3*a - 1,b]"),
        (lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 1)), "f32[2*a,b] f32[a,2*b]"),
        (lambda x: (jnp.pad(x, ((x.shape[0], 1), (0, 0))), jnp.pad(x, 1, mode="edge")), "f32[2*a + 1,b] "
         "f32[a + 2,b + 2]"),
        (lambda x: (jnp.sort(x), jnp.argsort(x, 0), jnp.cumsum(x, 1), jnp.roll(x, 1, 0)), "f32[a,b] i32[a,b] f32[a,b] "
         "f32[a,b]"),
        (lambda x: jnp.einsum("ij,kj->ik", x, x) @ x, "f32[a,b]"),
        (lambda x: jnp.linalg.qr(x)[0].shape, "i32[] i32[]"),
        (lambda x: jax.vmap(lambda r: r * r.shape[0])(x), "f32[a,b]"),
        (lambda x: jax.grad(lambda v: jnp.tanh(v @ v.T).mean())(x), "f32[a,b]"),
        (lambda x: jax.grad(lambda v: jnp.concatenate([v, v[1:] ** 2]).sum())(x), "f32[a,b]"),
        (lambda x: lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(x.shape[1]), x), "f32[b] f32[a]"),
        (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(x.shape[1])), "f32[b]"),
        (lambda x: lax.cond(x.sum() > 0, lambda v: v[1:], lambda v: v[:-1], x), "f32[a - 1,b]"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"), "f32[a,b]"),
        (lambda x: jax.random.normal(jax.random.key(0), x.shape), "f32[a,b]"),
        (lambda x: jax.nn.softmax(x) + jax.nn.one_hot(jnp.argmax(x, 1), x.shape[1]), "f32[a,b]"),
        (lambda x: jax.jit(lambda v, n: v * n)(x, x.shape[0]), "f32[a,b]"),
        (lambda x: jax.checkpoint(lambda v: jnp.sin(v).sum(0))(x), "f32[b]"),
        (lambda x: jnp.array_split(x, 2), "f32[floordiv(a + 1, 2),b] f32[- floordiv(a + 1, 2) + a,b]"),
        (lambda x: jnp.convolve(x[0], jnp.ones(3)), "f32[b + 2]"),
        (lambda x: lax.scan(lambda c, _: (c * 2, c), 1.0, None, length=x.shape[0]), "f32[] f32[a]"),
        (lambda x: jnp.digitize(x, jnp.array([0.0, 0.5])), "i32[a,b]"),
        (lambda x: jax.random.key_data(jax.random.split(jax.random.key(0), x.shape[0])), "u32[a,2]"),
        (lambda x: (jnp.trace(x), jnp.diagonal(x, -1)), "f32[] f32[min(a - 1, b)]"),
        (lambda x: (jnp.roll(x, x.shape[0] // 2, 0), jnp.fft.fftshift(x)), "f32[a,b] f32[a,b]"),
        (lambda x: (jnp.insert(x, 1, 2.0, 0), jnp.resize(x, (3, 3))), "f32[a + 1,b] f32[3,3]"),
        (lambda x: (jnp.isin(x, x[0]), jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1])), "bool[a,b] i32[a]"),
        (lambda x: jax.image.resize(x, (2 * x.shape[0], 3), "nearest"), "f32[2*a,3]"),
        (lambda x: jax.nn.initializers.glorot_normal()(jax.random.key(0), x.shape), "f32[a,b]"),
        (lambda x: jnp.take(x, jnp.array([0, -1, 7]), axis=0, mode="clip"), "f32[3,b]"),
        (lambda x: x.at[-1].set(7.0).at[:, -2].add(1.0), "f32[a,b]"),
        (lambda x: lax.dynamic_update_slice(x, x[:1], (x.astype(int)[0, 0] - 1, -1)), "f32[a,b]"),
        (lambda x: jnp.repeat(x, 2, 0, total_repeat_length=x.shape[0] + 1), "f32[a + 1,b]"),
        (lambda x: (jnp.fft.fftfreq(x.shape[0]), jnp.fft.rfftfreq(x.shape[0], 2.0)), "f32[a] f32[floordiv(a, 2) + 1]"),
        (lambda x: jax.scipy.linalg.toeplitz(x[:, 0], x[0]), "f32[a,b]"),
        (lambda x: jax.scipy.signal.fftconvolve(x, x[:, :1], "same"), "f32[a,b]"),
    ],
    "a, a": [
        (lambda x: jnp.linalg.solve(x + 9 * jnp.eye(x.shape[0]), jnp.tril(x)), "f32[a,a]"),
        (lambda x: (jnp.trace(x), jnp.diag(x)), "f32[] f32[a]"),
        (lambda x: x[jnp.tril_indices(x.shape[0])], "f32[floordiv(a^2 + a, 2)]"),
        (lambda x: jnp.triu_indices_from(x), "i32[floordiv(a^2 + a, 2)] i32[floordiv(a^2 + a, 2)]"),
    ],
    "2*a, 3": [
        (lambda x: jnp.linspace(0, 1, x.shape[0]), "f32[2*a]"),
        (lambda x: jnp.split(x, 2), "f32[a,3] f32[a,3]"),
        (lambda x: x.reshape(2, -1), "f32[2,3*a]"),
    ],
    "n, 3, h, w": [
        (lambda x: lax.conv(x, jnp.ones((5, 3, 2, 2)), (2, 2), "SAME"), "f32[n,5,- floordiv(- h, 2),"
         "- floordiv(- w, 2)]"),
        (lambda x: x.reshape(x.shape[0], -1).sum(1), "f32[n]"),
    ],
}  # fmt: skip
VALUES = [{"a": 5, "b": 4, "n": 2, "h": 7, "w": 6}, {"a": 2, "b": 2, "n": 1, "h": 2, "w": 3}]
CASES = [(shape, *case) for shape, cases in PROGRAMS.items() for case in cases]


@pytest.mark.parametrize(("shape", "f", "types"), CASES)
def test_types_and_results(shape, f, types):
    (spec,) = specs(shape)
    made = export.export(jax.jit(f))(spec)
    assert " ".join(aval.str_short(True) for aval in made.out_avals) == types
    again = export.deserialize(made.serialize())
    for values in VALUES:
        size = [evaluate(d, values) for d in spec.shape]
        x = np.random.default_rng(3).standard_normal(size).astype(np.float32)
        got, want = jax.tree.leaves(made.call(x)), jax.tree.leaves(jax.jit(f)(x))
        for g, w, aval, b in zip(got, want, made.out_avals, jax.tree.leaves(again.call(x)), strict=True):
            assert g.shape == w.shape == tuple(evaluate(d, values) for d in aval.shape) and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(g, b)


@pytest.mark.parametrize("mode", ["clip", "drop", None])
def test_updates_of_lengths_that_may_be_zero(mode):
    f = lambda x: x[1:].at[jnp.array([0, 2, 7])].add(2.0, mode=mode)
    made = export.export(jax.jit(f))(*specs("n"))
    for n in (1, 2, 3, 9):  # of one element: what is updated is empty
        x = np.arange(1.0, n + 1, dtype=np.float32)
        np.testing.assert_array_equal(made.call(x), jax.jit(f)(x))


def test_transformations_around_and_derivatives():
    made = exported(lambda x, y: jnp.sin(x) @ y, "a, 2*b", "2*b, c")
    x, y = ones(3, 4), ones(4, 2) * 2
    assert [str(a) for a in made.in_avals] == ["float32[a,2*b]", "float32[2*b,c]"] and made.uses_global_constants
    assert repr(made.in_avals[0]) == "ShapedArray(float32[a,2*b])"
    stored = export.deserialize(made.serialize(vjp_order=2))
    assert [str(a) for a in made.vjp().in_avals] == ["float32[a,2*b]", "float32[2*b,c]", "float32[a,c]"]
    f = lambda x, y: (jnp.sin(x) @ y).sum()
    for e in (made, stored):
        g = lambda x, y: e.call(x, y).sum()  # noqa: B023
        np.testing.assert_allclose(jax.jit(e.call)(x, y), np.sin(x) @ y, rtol=1e-6)
        np.testing.assert_allclose(jax.grad(g)(x, y), jax.grad(f)(x, y), rtol=1e-6)
        second = [jax.grad(lambda s: jax.grad(h)(x * s, y).sum())(1.0) for h in (f, g)]  # noqa: B023
        np.testing.assert_allclose(second[0], second[1], rtol=1e-5)
        np.testing.assert_allclose(jax.vmap(e.call, (0, None))(np.stack([x, x]), y)[1], np.sin(x) @ y, rtol=1e-6)


def test_called_again_with_symbolic_shapes():
    inner = exported(lambda x: jnp.concatenate([x, x]).reshape(-1), "a, b")
    (spec,) = specs("n, 2*m")
    assert str(jax.eval_shape(inner.call, spec).shape) == "(4*m*n,)"
    outer = export.export(jax.jit(lambda x: inner.call(x[1:]) * x.shape[0]))
    np.testing.assert_array_equal(outer(*specs("n, 3", constraints=["n >= 2"])).call(ones(4, 3)), np.full(18, 4.0))
    even = exported(lambda x: x, "2*a")
    assert str(jax.eval_shape(even.call, *specs("4*n")).shape) == "(4*n,)"
    with pytest.raises(ValueError, match=r"remainder of mod\(n, 2\)"):
        jax.eval_shape(even.call, *specs("n"))
    with pytest.raises(ValueError, match=r"'a' would be .* 1 or more"):
        jax.eval_shape(exported(lambda x: x, "a").call, *specs("n - 1"))


def test_one_program_for_each_set_of_values():
    made = exported(lambda x: x * 2, "a")
    traces = []
    counted = jax.jit(lambda x: (traces.append(1), x + 1)[1])
    made = export.export(counted)(*specs("a"))
    for n in (3, 4, 3, 4):
        np.testing.assert_array_equal(made.call(ones(n)), ones(n) * 2)
    assert len(traces) == 1 and len(made._functions) == 2
    with pytest.raises(ValueError, match="would be -1, for a = 1"):
        specialize(jax.make_jaxpr(lambda x: x[: x.shape[0] - 2])(*specs("a", constraints=["a >= 2"])), {"a": 1})


BAD_SHAPES = [
    (["a, b"], [], [(2,)], r"Rank mismatch for args\[0\]: .*where \(a, b\)"),
    (["a, b"], [], [(0, 3)], r"args\[0\].shape = \(a, b\): 'a' would be 0"),
    (["a, 3"], [], [(4, 5)], r"Shape mismatch for args\[0\].shape\[1\], a size that is always 3"),
    (["a, a"], [], [(4, 5)], r"args\[0\].shape\[1\] is 5, where 'a' is 4"),
    (["2*a"], [], [(5,)], r"args\[0\].shape\[0\] is 5, of which '2\*a' leaves a remainder of 1"),
    (["a + b", "b"], [], [(3,), (3,)], r"'b' is 3, since args\[1\].shape\[0\] is 3"),
    (["a*a", "a"], [], [(8,), (3,)], r"where 'a\^2' is 9"),
    (["a"], ["a >= 4"], [(3,)], r"constraint a >= 4 does not hold; 'a - 4' is -1"),
    (["a"], ["a <= 4"], [(5,)], "constraint a <= 4"),
    (["a"], ["mod(a, 2) == 0"], [(5,)], r"constraint mod\(a, 2\) == 0.* is 1, not 0"),
]


@pytest.mark.parametrize(("shapes", "constraints", "given", "text"), BAD_SHAPES)
def test_shapes_that_do_not_fit(shapes, constraints, given, text):
    made = exported(lambda *xs: xs[0], *shapes, constraints=constraints)
    for e in (made, export.deserialize(made.serialize())):
        with pytest.raises(ValueError, match=text):
            e.call(*(ones(*s) for s in given))


@pytest.mark.parametrize("shape", ["a + b", "a*a", "floordiv(a, 2)"])
def test_variables_that_cannot_be_solved_for(shape):
    with pytest.raises(ValueError, match=r"do not tell the dimension variables \['a'"):
        exported(lambda x: x, shape)


def test_what_is_not_decided_or_has_no_value():
    for f in (lambda x: x if x.shape[0] > 3 else x + 1, lambda x: jnp.linspace(0, 1, 3 if x.shape[0] > 9 else 4)):
        with pytest.raises(InconclusiveDimensionOperation, match="inconclusive"):
            exported(f, "a")
    with pytest.raises(InconclusiveDimensionOperation, match="divides"):
        exported(lambda x: x.reshape(2, -1), "a")
    assert exported(lambda x: x if x.shape[0] > 3 else x[:1], "a", constraints=["a >= 4"]).call(ones(5)).shape == (5,)
    for f in (lambda x: len(x), lambda x: [0 for _ in range(x.shape[0])]):
        with pytest.raises(TypeError, match="integer"):
            exported(f, "a")
    for f in (lambda x: x + jnp.ones(3), lambda x: x.reshape(x.shape[0] // 2, 2)):
        with pytest.raises(TypeError, match=r"\(a,\)"):
            exported(f, "a")
    with pytest.raises(ValueError, match="symbolic"):
        exported(jnp.squeeze, "a, 1")
    (a,) = export.symbolic_shape("a")
    for f in (lambda: a * 2.5, lambda: a / 2, lambda: jnp.array(a), lambda: jnp.ones(3) * a):
        with pytest.raises(NotImplementedError, match="symbolic dimension 'a' has no value here"):
            f()


def test_scopes_of_arguments_are_not_mixed():
    types = [jax.ShapeDtypeStruct(export.symbolic_shape("a"), np.float32) for _ in range(2)]
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes when exporting add"):
        export.export(jax.jit(jnp.add))(*types)


def test_shapes_without_values_where_arrays_are_made():
    (spec,) = specs("a, b")
    a = spec.shape[0]
    for f in (lambda: jnp.zeros((a, 2)), lambda: jnp.arange(a), lambda: jnp.broadcast_to(1.0, (a,))):
        with pytest.raises(NotImplementedError, match=r"primitive '\w+' would give .*test_symbolic.py"):
            f()
    with pytest.raises(TypeError, match="at path x"):  # the type of an argument is none
        jax.jit(lambda x: x + 1)(spec)
    for f in (
        lambda: jax.jit(lambda x: x + 1).lower(spec).compile(),
        lambda: export.to_c(lambda x: x + 1, spec, path="nowhere"),
        lambda: jax.jit(lambda: jnp.zeros((a,)))(),
    ):
        with pytest.raises(NotImplementedError, match="symbolic dimensions"):
            f()
    with pytest.raises(InconclusiveDimensionOperation, match=r"primitive 'top_k' of .*\[a,b\], at .*test_symbolic.py"):
        jax.eval_shape(lambda x: lax.top_k(x, 3), spec)
    with pytest.raises(ValueError, match="axis sizes: a, b"):
        jax.eval_shape(lambda x: lax.scan(lambda c, y: (c, y), 0.0, (x, x.T)), spec)
    with pytest.raises(ValueError, match="symbolic"):
        jax.eval_shape(jnp.cov, spec)  # a number where a is 1


def test_stored_programs_are_transformed_again():
    made = exported(lambda x: jnp.digitize(x, jnp.array([0.0, 0.5])) * jnp.sin(x), "a")
    stored = export.deserialize(made.serialize(1))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(jax.vmap(stored.call)(x), jax.vmap(made.call)(x))
    keys = export.export(jax.jit(lambda k: jax.random.split(k, 2)))(jax.random.key(0))
    want = jax.random.key_data(jax.random.split(jax.random.key(3)))
    np.testing.assert_array_equal(
        jax.random.key_data(export.deserialize(keys.serialize()).call(jax.random.key(3))), want
    )


def test_stages_take_symbolic_types():
    (spec,) = specs("a, b")
    f = jax.jit(lambda x: x.sum(0))
    assert str(f.eval_shape(spec).shape) == "(b,)" and str(f.trace(spec).jaxpr.out_avals[0]) == "float32[b]"
    text = str(jax.make_jaxpr(lambda x: x.sum() / x.shape[0])(spec))
    assert "f32[a,b]" in text and "dim_as_value[dim=a]" in text


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("reflect_type", ["even", "odd"])
def test_reflection_of_lengths_that_are_known_to_suffice(mode, reflect_type):
    (n,) = export.symbolic_shape("n", constraints=["n >= 3"])
    widths = ((2, 1), (0, 3 if mode == "symmetric" else 2))
    padded = jax.jit(lambda x: jnp.pad(x, widths, mode=mode, reflect_type=reflect_type))
    exported = export.export(padded)(jax.ShapeDtypeStruct((n, 3), np.float32))
    for size in (3, 5):
        x = np.arange(3.0 * size, dtype=np.float32).reshape(size, 3)
        np.testing.assert_array_equal(exported.call(x), np.pad(x, widths, mode=mode, reflect_type=reflect_type))
    with pytest.raises(ValueError, match="takes at most"):
        export.export(jax.jit(lambda x: jnp.pad(x, ((4, 0), (0, 0)), mode=mode)))(jax.ShapeDtypeStruct((n, 3), float))


def test_what_needs_to_know_a_size_says_so():
    (n,) = export.symbolic_shape("n")
    given = jax.ShapeDtypeStruct((n, 2), np.float32)
    for f in (lambda x: jax.lax.associative_scan(jnp.add, x), lambda x: jax.random.permutation(jax.random.key(0), x)):
        with pytest.raises(NotImplementedError, match="needs to know"):
            export.export(jax.jit(f))(given)
