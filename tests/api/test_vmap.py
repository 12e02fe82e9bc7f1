"""Options of vmap and checkpoint that the tests of transformations do not reach."""

import functools

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.interpreters import batching


def test_sum_match():
    x = jnp.arange(6.0).reshape(2, 3)
    product, same = jax.vmap(lambda x, y: (x * y, y), (1, None), None, sum_match=True)(x, 2.0)
    assert product.tolist() == [6, 24] and same == 2
    both = jax.jit(jax.vmap(lambda x: {"a": x, "b": x > 2}, out_axes={"a": None, "b": 0}, sum_match=True))(x)
    assert both["a"].tolist() == [3, 5, 7] and both["b"].tolist() == [[False] * 3, [True] * 3]
    assert jax.vmap(lambda x: x > 1, out_axes=None, sum_match=True)(x).tolist() == [1, 1, 2]
    slope = jax.grad(lambda x: jax.vmap(jnp.sin, out_axes=None, sum_match=True)(x))(x[0])
    np.testing.assert_allclose(slope, np.cos(x[0]), rtol=1e-6)
    with pytest.raises(ValueError, match="at vmap out_axes, got axis spec None"):
        jax.vmap(lambda x: x, out_axes=None)(x)


def test_checkpoint_static_argnames():
    def power(x, n, *, negative=False):
        return -(x**n) if negative else x**n if n > 2 else x

    f = jax.checkpoint(power, static_argnames=("n", "negative"))
    for call in (lambda x: f(x, 3, negative=True), lambda x: f(x, n=3, negative=True)):
        assert call(2.0) == jax.jit(call)(2.0) == -8 and jax.grad(call)(2.0) == -12
        assert jax.vmap(call)(jnp.arange(3.0)).tolist() == [0, -1, -8]
    assert jax.checkpoint(static_argnames="n")(power)(2.0, n=2) == 2
    with pytest.raises(TypeError, match="static_argnames"):
        jax.checkpoint(power, static_argnames=(1,))
    with pytest.raises(NotImplementedError, match="static_argnums"):
        jax.checkpoint(power, concrete=False)


def test_objects_that_say_what_of_them_is_mapped():
    class Held:
        def __init__(self, array, shared):
            self.array, self.shared = array, shared

    class Axis(tuple):
        __slots__ = ()

    def to_elt(cont, size, x, axis):
        return Held(cont(x.array, axis if isinstance(axis, int) else axis[0]), x.shared)

    def from_elt(cont, size, x, axis):
        return Held(cont(size, x.array, axis if isinstance(axis, int) else axis[0]), size)

    def f(x, y, seen):
        seen.append((x.array.shape, x.shared))
        return {"held": Held(x.array + y, None), "y": y}

    x = Held(jnp.arange(6).reshape(2, 3), object())
    for axes in (int, Axis):
        batching.register_vmappable(Held, axes, int, to_elt, from_elt, None)
        zero, one = (0, 1) if axes is int else (Axis((0,)), Axis((1,)))
        seen = []
        run = functools.partial(f, seen=seen)
        out = jax.vmap(run, (one, 0), {"held": zero, "y": 0})(x, jnp.arange(3))
        assert seen == [((2,), x.shared)] and out["held"].shared == 3
        assert out["held"].array.tolist() == (x.array.T + jnp.arange(3)[:, None]).tolist()
        out = jax.vmap(run, (None, 0), {"held": one, "y": 0})(x, jnp.arange(3))
        assert out["held"].array.shape == (2, 3, 3) and seen[1][0] == (2, 3)
        batching.unregister_vmappable(Held)
    with pytest.raises(TypeError):
        jax.vmap(run)(x, jnp.arange(2))
    with pytest.raises(NotImplementedError, match="axis_size_type must be int"):
        batching.register_vmappable(Held, int, float, None, None, None)


def test_where_elements_choose_what_is_no_choice_is_shared():
    """Results of cond that are the same operand in every branch do not go through it."""

    def f(p, x, y, z):
        return jax.lax.cond(p, lambda x, y, z: (x, y + 1, 2.0, z), lambda x, y, z: (x, y, 2.0, z), x, y, z)

    x, made, two, z = jax.vmap(f, (0, None, None, None), (None, 0, 0, None))(
        jnp.array([True, False]), jnp.float32(3), jnp.float32(1), jnp.float32(5)
    )
    assert (float(x), made.tolist(), two.tolist(), float(z)) == (3, [2, 1], [2, 2], 5)
    closed = jax.make_jaxpr(f)(True, 3.0, 1.0, 5.0)
    assert len(closed.eqns[-1].outvars) == 2 and closed.jaxpr.outvars[0] is closed.jaxpr.invars[1]
    grad = jax.grad(lambda x, p: sum(f(p, x, x, x)))(3.0, True)
    assert float(grad) == 3
    index = jax.jit(jax.vmap(lambda i, x: jax.lax.switch(i, [lambda x: (x, -x)] * 3, x), (0, None), (None, 0)))
    assert [v.tolist() for v in index(jnp.arange(3), jnp.ones(2))] == [[1, 1], [[-1, -1]] * 3]


def test_a_mapped_result_without_an_axis_names_its_place():
    with pytest.raises(ValueError, match=r"at vmap out_axes\['b'\]\[1\], got axis spec None .* batched on axis 0"):
        jax.vmap(lambda x: {"a": x, "b": (1, x)}, out_axes={"a": 0, "b": None})(jnp.arange(3))


@pytest.mark.parametrize("reduce", [jax.lax.psum, jax.lax.pmean, jax.lax.pmax, jax.lax.pmin])
def test_reductions_name_an_axis_once(reduce):
    with pytest.raises(ValueError, match="duplicate value in 'axes'"):
        jax.vmap(lambda x: reduce(x, ("a", "a")), axis_name="a")(jnp.ones(3))


@pytest.mark.parametrize("call", [jax.jit, jax.checkpoint])
def test_calls_are_mapped_along_the_axis_that_they_get(call):
    """No operand of a call is moved: its body is mapped where the axis is."""
    x = jnp.arange(12.0).reshape(3, 4)
    mapped = jax.vmap(call(lambda x, y: (2 * x, x.sum() + y, y)), (1, 0), (1, 0, 0))
    closed = jax.make_jaxpr(mapped)(x, jnp.arange(4.0))
    assert [eqn.primitive.name for eqn in closed.eqns] == [{jax.jit: "jit"}.get(call, "remat2")]
    assert "transpose" not in str(closed)
    twice, sums, same = mapped(x, jnp.arange(4.0))
    assert twice.tolist() == (2 * x).tolist() and sums.tolist() == [12, 16, 20, 24] and same.tolist() == [0, 1, 2, 3]
    inner = jax.vmap(jax.vmap(call(lambda x: x - x.sum()), 1, 1), 0)(x.reshape(3, 2, 2))
    assert inner.tolist() == (x.reshape(3, 2, 2) - x.reshape(3, 2, 2).sum(1, keepdims=True)).tolist()
    grad = jax.grad(lambda x: (jax.vmap(call(lambda x: x**2), 1, 1)(x) * x).sum())(x)
    np.testing.assert_allclose(grad, 3 * x**2)
