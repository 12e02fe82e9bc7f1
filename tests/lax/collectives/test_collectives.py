"""Operations across the named axis of vmap."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback import lax

X = np.arange(3.0, dtype=np.float32)
M = np.arange(9.0, dtype=np.float32).reshape(3, 3)


def over(fun, *args, **kwargs):
    return np.asarray(pullback.vmap(fun, axis_name="i", **kwargs)(*args)).tolist()


@pytest.mark.parametrize(
    "fun, x, want",
    [
        (lambda x: lax.psum(x, "i"), X, [3, 3, 3]),
        (lambda x: lax.pmean(x, "i"), X, [1, 1, 1]),
        (lambda x: lax.pmax(x, "i"), X, [2, 2, 2]),
        (lambda x: lax.pmin(x, "i"), X, [0, 0, 0]),
        (lambda x: lax.psum(1, "i"), X, [3, 3, 3]),
        (lambda x: lax.axis_index("i"), X, [0, 1, 2]),
        (lambda x: lax.axis_size("i"), X, [3, 3, 3]),
        (lambda x: lax.psum(x, ("i", 0)), M, [36, 36, 36]),
        (lambda x: lax.all_gather(x, "i"), X, [[0, 1, 2]] * 3),
        (lambda x: lax.all_gather(x, "i", axis=0, tiled=True), M, [list(range(9))] * 3),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), X, [0, 0, 1]),
        (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), X, [2, 0, 1]),
        (lambda x: lax.pbroadcast(x, "i", 1), X, [1, 1, 1]),
        (lambda x: lax.pswapaxes(x, "i", 0), M, M.T.tolist()),
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), M, M.T.tolist()),
        (lambda x: lax.psum_scatter(x, "i"), M, [9, 12, 15]),
    ],
)
def test_values(fun, x, want):
    assert over(fun, x) == want
    assert np.asarray(pullback.jit(pullback.vmap(fun, axis_name="i"))(x)).tolist() == want


def test_derivatives():
    assert over(pullback.grad(lambda x: lax.psum(x * x, "i")), X) == [0, 6, 12]
    assert over(pullback.grad(lambda x: lax.pmean(x * x, "i")), X) == [0, 2, 4]
    assert over(pullback.grad(lambda x: lax.reduce_sum(lax.all_gather(x * x, "i"), (0,))), X) == [0, 6, 12]
    assert over(pullback.grad(lambda x: lax.ppermute(x * x, "i", [(1, 0)])), X) == [0, 2, 0]


def test_two_axes():
    def fun(x):
        return lax.psum(x, "i"), lax.psum(x, "j"), lax.psum(x, ("i", "j")), lax.axis_index(("i", "j"))

    rows, columns, both, place = pullback.vmap(pullback.vmap(fun, axis_name="j"), axis_name="i")(M)
    assert np.array_equal(np.asarray(rows), np.broadcast_to(M.sum(0), (3, 3)))
    assert np.array_equal(np.asarray(columns), np.broadcast_to(M.sum(1)[:, None], (3, 3)))
    assert np.asarray(both).tolist() == [[36] * 3] * 3 and np.asarray(place).ravel().tolist() == list(range(9))


def test_values_without_the_axis_and_groups():
    assert over(lambda x, y: lax.psum(y, "i"), X, np.float32(2), in_axes=(0, None)) == [6, 6, 6]
    assert over(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]), np.arange(4.0, dtype=np.float32)) == [
        1,
        1,
        5,
        5,
    ]


def test_unknown_axes():
    with pytest.raises(NameError, match="unbound axis name: j"):
        lax.psum(X, "j")
    with pytest.raises(NameError, match=r"The axes in force are \['i'\]"):
        over(lambda x: lax.psum(x, "j"), X)
    with pytest.raises(ValueError, match="given twice"):
        over(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), X)


def test_exchanges_show_one_axis_by_its_name():
    def f(x):
        return lax.all_to_all(x, "i", 0, 0), lax.all_to_all(x, ("i",), 0, 0)

    jaxpr = pullback.make_jaxpr(f, axis_env=[("i", 2)])(np.ones((2, 3), np.float32))
    assert [eqn.params["axis_name"] for eqn in jaxpr.eqns] == ["i", "i"]
    assert "axis_name=i\n" in str(jaxpr) and "axis_size" not in str(jaxpr)
