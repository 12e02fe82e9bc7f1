"""References as values: their types and texts, views of parts, what may be written, programs that show them."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback import ref as refs


def test_their_types():
    refs = [jax.new_ref(jnp.zeros((2, 3))), jax.new_ref(jnp.ones((2, 3))), jax.new_ref(jnp.int8(1)), jax.new_ref(1.0)]
    types = [jax.typeof(r) for r in refs]
    assert [str(t) for t in types] == ["Ref{float32[2,3]}", "Ref{float32[2,3]}", "Ref{int8[]}", "Ref{float32[]}"]
    assert types[0] == types[1] != types[2] and hash(types[0]) == hash(types[1])
    assert types[0].inner_aval is jax.typeof(refs[0][...]) and types[0] != types[0].inner_aval
    assert (types[0].shape, types[0].ndim, types[0].size, types[0].dtype) == ((2, 3), 2, 6, np.float32)
    seen = []
    jax.jit(lambda r: seen.append(jax.typeof(r)))(refs[0])
    assert seen == types[:1] and refs[0].sharding == refs[0][...].sharding


def test_programs_show_reads_and_writes():
    def f(r, x, i):
        r[i] = x
        r[...] += 1.0
        refs.addupdate(r, (0, 1), 2.0)
        return refs.swap(r, 1, r[0, :2]), r[i, jnp.array([1, 0])], r[:, ::2], r[jax.ds(i, 1)]

    r = jax.new_ref(jnp.zeros((2, 2)))
    closed = jax.make_jaxpr(f)(r, jnp.ones(2), 1)
    text = str(closed)
    lines = ["b:Ref{f32[2,2]}", "b[d,:] <- c", ":f32[2,2] <- b[...]", "b[0,1] += 2.0:f32[]", "<- b[0,:]"]
    for line in (*lines, ":f32[2], b[1,:] <- b[1,:],", "<- b[d:d+1,:]", "<- b[:,::2]"):
        assert line in text, (line, text)
    assert {str(e) for e in closed.effects} == {"Read", "Write"} and str(closed.in_avals[0]) == "Ref{float32[2,2]}"
    want = f(r, jnp.ones(2), 1)
    after = np.asarray(r[...])
    s = jax.new_ref(jnp.zeros((2, 2)))
    got = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, s, jnp.ones(2), 1)
    jax.tree.map(np.testing.assert_array_equal, list(want), got)
    np.testing.assert_array_equal(s[...], after)
    text = str(jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, _: r.__setitem__(0, r[1] * x), None))(1.0))
    assert "lambda a:Ref{f32[2,2]}; " in text and "scan[" in text
    assert jax.eval_shape(lambda r: r[0], r).shape == (2,)


def test_ahead_of_time():
    step = jax.jit(lambda r, x: (r.__setitem__(0, x), r[...] * 2)[1])
    r = jax.new_ref(jnp.zeros(2))
    compiled = step.lower(r, 3.0).compile()
    for x in (3.0, 4.0):
        np.testing.assert_array_equal(compiled(r, x), [2 * x, 0])
        assert float(r[0]) == x
    with pytest.raises(TypeError, match="compiled with Ref"):
        compiled(jnp.zeros(2), 1.0)
    assert "Ref{f32[2]}" in str(step.trace(r, 3.0).jaxpr)


def test_views_of_parts():
    r = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    row = r.at[1]
    assert row.shape == (4,) and row.ndim == 1 and row.size == 4 and row.dtype == np.float32 and "[4]" in repr(row)
    row[0] = 9.0
    row.addupdate(1.0, 1)
    rows = r.at[1:3]
    assert float(rows.at[0][1]) == 6 and float(refs.swap(rows, (1, 0), 7.0)) == 8
    rows.at[1][1:] = jnp.zeros(3)
    np.testing.assert_array_equal(r[...], [[0, 1, 2, 3], [9, 6, 6, 7], [7, 0, 0, 0]])
    for bad in (lambda: r.at[5], lambda: rows.__setitem__(0, jnp.ones(2)), lambda: row.__setitem__(0, jnp.int32(1))):
        with pytest.raises(ValueError):
            bad()

    def g(x, i):
        r = jax.new_ref(jnp.zeros((2, 2)))
        r.at[i][1] = x
        r.at[1].at[...][...] = jnp.ones(2) * x * x
        return r[...].sum()

    for run in (jax.grad(g), jax.jit(jax.grad(g)), jax.grad(jax.jit(g))):
        assert float(run(3.0, 0)) == 13
    np.testing.assert_array_equal(jax.vmap(g, (0, None))(jnp.arange(3.0), 0), [0, 3, 10])
    r.addupdate(jnp.ones((3, 4)))
    assert float(r[0, 0]) == 1 and r.aval == jax.typeof(r) and r.unsafe_buffer_pointer() > 0


def test_what_does_not_fit():
    r = jax.new_ref(jnp.zeros(3))
    for bad in (lambda: r.__setitem__(0, jnp.int32(2)), lambda: r.__setitem__(slice(0, 2), jnp.ones(1)),
                lambda: refs.addupdate(r, 0, jnp.int32(1)), lambda: refs.addupdate(r, ..., jnp.ones(1)),
                lambda: jax.new_ref(jnp.float16(3)).__setitem__(..., jnp.float32(1)), lambda: r.__setitem__(..., 1.0),
                lambda: r.__setitem__(0, 1), lambda: jax.new_ref(jnp.complex64(3)).__setitem__(..., 1.0),
                lambda: refs.addupdate(jax.new_ref(jnp.float16(3)), ..., 1.0)):  # fmt: skip
        with pytest.raises(ValueError, match=r"Invalid (shape|dtype)"):
            bad()
    for bad in ([1.0, 2.0, 3.0], None, "a"):
        for use in (jax.new_ref, lambda x: r.__setitem__(..., x), lambda x: refs.addupdate(r, ..., x)):
            with pytest.raises(TypeError):
                use(bad)
    r[0] = 1.0
    r[0] += 1
    np.testing.assert_array_equal(r[...], [2, 0, 0])
    half = jax.new_ref(jnp.bfloat16(3))
    half[...] = jnp.asarray(2.0)  # weakly typed, of the same kind
    assert half[...] == 2 and half[...].dtype == jnp.bfloat16


def test_what_makes_a_reference_prints_with_its_parameters():
    text = str(jax.make_jaxpr(lambda x: jax.new_ref(x)[...])(1.0))
    assert "new_ref[kind=None memory_space=None] a" in text, text


def test_text_of_a_reference_that_was_written():
    """As in JAX: it is weakly typed as before, which its text does not say any more."""
    for write in (lambda r: jax.ref.set(r, (), 2.0), lambda r: jax.jit(lambda: jax.ref.set(r, (), 2.0))()):
        r = jax.new_ref(0.0)
        assert repr(r) == "Ref(0., dtype=float32, weak_type=True)" and r[...] == 0
        write(r)
        assert repr(r) == "Ref(2., dtype=float32)" and r[...].weak_type
