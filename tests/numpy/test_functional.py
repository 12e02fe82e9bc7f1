"""Functions that apply functions: vectorize, apply_along_axis, apply_over_axes, piecewise, select, choose."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same, check, check_gradient

import pullback
import pullback.numpy as jnp


def sample(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---- vectorize


@pytest.mark.parametrize(
    "shapes",
    [((), ()), ((3,), ()), ((3,), (3,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((1, 0), (2, 1)), ((1, 1), (1,))],
    ids=str,
)
def test_elements_are_broadcast(shapes):
    def function(a, b):
        assert a.shape == b.shape == ()
        return a * b + 1

    a, b = sample(shapes[0]), sample(shapes[1], 1)
    check(jnp.vectorize(function), lambda a, b: a * b + 1, a, b)


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((2, 1, 3, 4), (5, 4)), ((1, 3, 4), (1, 4)), ((0, 3, 4), (4,))], ids=str
)
def test_core_axes(shapes):
    def function(a, v):
        assert a.shape == (3, 4) and v.shape == (4,)
        return jnp.dot(a, v), jnp.sum(v)

    a, v = sample(shapes[0]), sample(shapes[1], 1)
    check(
        jnp.vectorize(function, signature="(m,n),(n)->(m),()"),
        np.vectorize(lambda a, v: (a @ v, v.sum()), signature="(m,n),(n)->(m),()", otypes=[float, float])
        if a.size
        else lambda a, v: (np.zeros((0, 3)), np.zeros(0)),
        a,
        v,
    )


def test_signatures_with_blanks_and_new_axes():
    pairs = jnp.vectorize(lambda x: jnp.outer(x, x), signature=" ( n ) -> (n, k) ")
    assert_same(pairs(jnp.ones((2, 3))), np.ones((2, 3, 3)))


def test_excluded_arguments_are_passed_on():
    def power(x, n, name=None):
        assert name == "text" and isinstance(n, int)
        return x**n

    x = sample((2, 3))
    check(lambda x: jnp.vectorize(power, excluded={1, "name"})(x, 3, name="text"), lambda x: x**3, x)
    check(lambda x: jnp.vectorize(lambda a, b=None: a if b is None else a + b)(x, None), lambda x: x, x)


def test_keyword_arguments_are_mapped():
    x = sample((2, 3))
    check(lambda x: jnp.vectorize(lambda a, b: a + b)(x, b=x[:1]), lambda x: x + x[:1], x)


def test_results_may_be_trees_and_have_more_axes():
    got = jnp.vectorize(lambda a: {"twice": 2 * a, "pair": jnp.stack([a, -a])})(jnp.ones((1, 3)))
    assert_same(got, {"pair": np.tile([1.0, -1.0], (1, 3, 1)), "twice": np.full((1, 3), 2.0)})


def test_vectorize_as_decorator_under_transformations():
    @jnp.vectorize
    def product(a, b):
        """Documentation."""
        return jnp.sin(a) * b

    assert product.__name__ == "product" and product.__doc__ == "Documentation."
    check_gradient(product, np.arange(3.0)[:, None], np.arange(4.0))
    rows = pullback.vmap(product, in_axes=(0, None))(jnp.ones((5, 3)), jnp.ones(3))
    assert rows.shape == (5, 3)
    assert_same(product([1, 2], 2), 2 * np.sin([1.0, 2]))


def test_mistakes_in_vectorize():
    one, two, x = "(n)->()", "(n),(n)->(n)", jnp.ones(3)
    for error, text, call in [
        (TypeError, "names arguments by number or keyword", lambda: jnp.vectorize(jnp.sum, excluded={1.5})),
        (ValueError, "contains negative numbers", lambda: jnp.vectorize(jnp.sum, excluded={-1})),
        (ValueError, "not a valid gufunc signature", lambda: jnp.vectorize(jnp.sum, signature="(n)->")),
        (ValueError, "does not have enough dimensions", lambda: jnp.vectorize(jnp.sum, signature=one)(1.0)),
        (TypeError, "expected 2, got 1", lambda: jnp.vectorize(jnp.add, signature=two)(x)),
        (
            ValueError,
            "inconsistent size for core dimension 'n': 4 vs 3",
            lambda: jnp.vectorize(jnp.add, signature=two)(x, jnp.ones(4)),
        ),
        (ValueError, "output shape \\(3,\\) does not match", lambda: jnp.vectorize(lambda a: a, signature=one)(x)),
        (TypeError, "expected 1, got 2", lambda: jnp.vectorize(lambda a: (a, a), signature=one)(x)),
        (TypeError, "expected a tuple of 2 results", lambda: jnp.vectorize(lambda a: a, signature="(n)->(n),(n)")(x)),
        (
            ValueError,
            "Incompatible shapes for broadcasting",
            lambda: jnp.vectorize(jnp.add)(jnp.ones((2, 3)), jnp.ones((4, 3))),
        ),
    ]:
        with pytest.raises(error, match=text):
            call()


# ---- along axes


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_apply_along_axis(axis):
    x = sample((2, 3, 4))
    check(lambda x: jnp.apply_along_axis(jnp.sum, axis, x), lambda x: np.apply_along_axis(np.sum, axis, x), x)
    check(lambda x: jnp.apply_along_axis(jnp.sort, axis, x), lambda x: np.apply_along_axis(np.sort, axis, x), x)
    check(
        lambda x: jnp.apply_along_axis(lambda v, k: jnp.outer(v, v) * k, axis, x, 2),
        lambda x: np.apply_along_axis(lambda v, k: np.outer(v, v) * k, axis, x, 2),
        x,
    )
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        jnp.apply_along_axis(jnp.sum, 5, jnp.asarray(x))


def test_apply_over_axes():
    x = sample((2, 3, 4))
    for axes in ([0], [0, 2], [-1, 1], []):
        check(
            lambda x, a=axes: jnp.apply_over_axes(jnp.sum, x, a), lambda x, a=axes: np.apply_over_axes(np.sum, x, a), x
        )
    check(lambda x: jnp.apply_over_axes(jnp.cumsum, x, [0, 2]), lambda x: np.apply_over_axes(np.cumsum, x, [0, 2]), x)
    with pytest.raises(ValueError, match="func returned an array of rank"):
        jnp.apply_over_axes(lambda x, axis: jnp.ones(()), jnp.asarray(x), [0])


# ---- by conditions and choices


def test_piecewise():
    x = np.linspace(-3, 3, 13, dtype=np.float32)
    check(
        lambda x: jnp.piecewise(x, [x < -1, x > 1], [lambda v: -v, lambda v: v**2, 0.5]),
        lambda x: np.piecewise(x, [x < -1, x > 1], [lambda v: -v, lambda v: v**2, 0.5]),
        x,
    )
    check(
        lambda x: jnp.piecewise(x, [x < 0], [lambda v, k: v * k], 3.0),
        lambda x: np.piecewise(x, [x < 0], [lambda v, k: v * k], 3.0),
        x,
    )
    with pytest.raises(ValueError, match="pass one for each"):
        jnp.piecewise(jnp.asarray(x), [x < 0], [1, 2, 3])


def test_select():
    x = np.arange(6, dtype=np.int32)
    check(
        lambda x: jnp.select([x < 2, x > 3], [x, 10.0 * x], -1),
        lambda x: np.select([x < 2, x > 3], [x, 10.0 * x], -1),
        x,
    )
    with pytest.raises(ValueError, match=r"select: . conditions for . choices"):
        jnp.select([x < 2], [x, x])


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_choose(mode):
    a, choices = np.array([[0, 5], [-1, 2]], np.int32), np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    check(lambda a, c: jnp.choose(a, list(c), mode=mode), lambda a, c: np.choose(a, list(c), mode=mode), a, choices)


def test_functions_from_python():
    add = jnp.frompyfunc(lambda a, b: a + b, 2, 1, identity=0)
    x = sample((3, 4))
    check(lambda x: add(x, x[0]), lambda x: x + x[0], x)
    check(lambda x: add.reduce(x, 1), lambda x: x.sum(1), x)
    check(lambda x: add.accumulate(x, 1), lambda x: x.cumsum(1), x)
    check(lambda x: add.outer(x[0], x[1]), lambda x: np.add.outer(x[0], x[1]), x)


def test_vectorized_functions_may_give_objects_that_have_a_shape():
    @pullback.tree_util.register_pytree_node_class
    class State:
        def __init__(self, data):
            self.data = data

        shape = property(lambda self: self.data.shape)
        tree_flatten = lambda self: ((self.data,), None)
        tree_unflatten = classmethod(lambda cls, _, children: cls(*children))

    f = jnp.vectorize(lambda x: State(jnp.outer(x, x)), signature="(n)->(n,n)")
    assert f(jnp.ones((2, 3))).data.shape == (2, 3, 3) and f(jnp.ones(3)).shape == (3, 3)
    with pytest.raises(ValueError, match="core dimensions"):
        jnp.vectorize(lambda x: State(x), signature="(n)->(n,n)")(jnp.ones(3))


def test_running_results_of_functions_of_users_are_remembered():
    """The function of a user is not called again for arrays of a kind that it has been traced for."""
    calls = []

    def f(a, b):
        calls.append(1)
        return a * b + 1

    ours, x = jnp.frompyfunc(f, 2, 1), np.arange(6.0, dtype="f4")
    theirs = np.frompyfunc(lambda a, b: a * b + 1, 2, 1)
    for _ in range(5):
        ours.accumulate(x)
    calls.clear()
    np.testing.assert_allclose(ours.accumulate(x + 1), np.asarray(theirs.accumulate(x + 1), "f4"))
    assert not calls
