"""Products of batches and the nests that go through their results: in one loop over items, with the same results."""

import numpy as np
import pytest

import pullback
from pullback import lax, nn
from pullback import numpy as jnp
from pullback._ext import _core
from pullback.compiler.pipelines import order_loops
from pullback.loops.ir import Loop
from pullback.loops.ir.visit import loads, statements, stores
from pullback.util.switches import switches

PASSES = frozenset(["item_loops", "row_blocks"])


def _normal(*shapes, dtype=np.float32):
    rng = np.random.default_rng(len(shapes))
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def _same(fun, *args, exact=True):
    """The results with the passes, with one of them and without are equal, for all numbers of threads.

    Where they are not `exact`, sums within a row are added in another order.
    """
    before, results = _core.num_threads(), []
    for skip in (frozenset(), frozenset(["item_loops"]), PASSES):
        with switches.set(skip=skip):
            program = pullback.jit(lambda *a: fun(*a)).lower(*args).compile()
            try:
                for threads in (1, 3) if not skip else (2,):
                    _core.set_num_threads(threads)
                    results.append([np.asarray(x) for x in pullback.tree.leaves(program(*args))])
            finally:
                _core.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            if exact or other is results[1]:  # which has another number of threads alone
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())
    return results[0]


def _loops(fun, *args):
    """How many loops stand outermost, and the elements of the largest temporary that is used."""
    function = order_loops(pullback.jit(lambda *a: fun(*a)).lower(*args).compile()._program.lowered.function)
    used = {b for stmt in statements(function.body) for b in loads(stmt) | stores(stmt)}
    loops = sum(isinstance(stmt, Loop) for stmt in function.body)
    return loops, max([b.size for b in used if b.space == "temporary"], default=0)


def attend(q, k, v):
    return nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 8, -1) @ v


@pytest.mark.parametrize("shape", [(4, 8, 32, 16), (33, 40, 24), (2, 3, 600, 64), (5, 1024, 48)])
def test_attention_is_one_loop_over_items(shape):
    q, k, v = _normal(shape, shape, shape)
    (got,) = _same(attend, q, k, v)
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(got, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
    count, largest = _loops(attend, q, k, v)
    assert count == 1 and largest <= shape[-2] * (shape[-2] + 64)  # no more than one item's scores
    with switches.set(skip=PASSES):
        assert _loops(attend, q, k, v)[0] == 3


@pytest.mark.parametrize("shape", [(40, 30, 20, 33), (3, 500, 64, 300)])
def test_what_follows_a_product_joins_it(shape):
    items, m, k, n = shape
    x, y, bias, other = _normal((items, m, k), (items, k, n), (n,), (items, m, n))
    joins = {
        "bias and relu": lambda x, y, b, o: jnp.maximum(x @ y + b, 0),
        "gelu and residual": lambda x, y, b, o: nn.gelu(x @ y + b) + o,
        "clipped": lambda x, y, b, o: jnp.clip(x @ y, -1, 1),
        "masked": lambda x, y, b, o: jnp.where(o > 0, x @ y, -jnp.inf),
        "bias of items": lambda x, y, b, o: x @ y + o[:, :1, :1],
    }
    for name, fun in joins.items():
        _same(fun, x, y, bias, other)
        assert _loops(fun, x, y, bias, other)[0] == 1, name


def test_items_that_others_read_are_computed_before():
    x, y = _normal((40, 30, 20), (40, 20, 33))
    for fun in (
        lambda x, y: (x @ y)[::-1] * 2,
        lambda x, y: (x @ y)[1:] - (x @ y)[:-1],
        lambda x, y: (x @ y).sum(0),
        lambda x, y: jnp.cumsum(x @ y, 0),
        lambda x, y: jnp.roll(jnp.tanh(x @ y), 1, 0) @ jnp.swapaxes(y, 1, 2),
        lambda x, y: (x @ y).reshape(20, 60, 33).max(1),
        lambda x, y: ((x @ y).sum(), (x @ y) + 1, jnp.swapaxes(x @ y, 0, 1)),
    ):
        want = fun(x.astype(np.float64), y.astype(np.float64))
        for got, exact in zip(_same(fun, x, y), pullback.tree.leaves(want)):
            np.testing.assert_allclose(got, exact, rtol=1e-3, atol=1e-3)


def test_gradients_scans_and_maps():
    q, k, v = _normal((6, 33, 16), (6, 33, 16), (6, 33, 16))
    _same(pullback.grad(lambda q, k, v: (attend(q, k, v) ** 2).sum(), (0, 1, 2)), q, k, v, exact=False)
    _same(pullback.vmap(attend, in_axes=(0, None, 0)), q, k, v, exact=False)

    def layers(x, ws, us):
        return lax.scan(lambda x, each: (attend(x, jnp.tanh(x @ each[0]), x + each[1]), x.sum(-1)), x, (ws, us))

    _same(layers, q, *_normal((3, 16, 16), (3, 6, 33, 16)), exact=False)


def test_rows_within_an_outer_loop_are_those_of_its_iteration():
    x, ws = _normal((9000, 30), (3, 30, 30))

    def layers(x, ws):
        return lax.scan(lambda x, w: (jnp.tanh(x @ w), (x @ w) * 2), x, ws)

    assert _same(layers, x, ws)[1].shape == (3, 9000, 30)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.complex64])
def test_types(dtype):
    x, y = (3 * a for a in _normal((40, 30, 20), (40, 20, 33)))
    with pullback.enable_x64(True):
        _same(lambda x, y: (x @ y) * 2 + 1, x.astype(dtype), y.astype(dtype))
