"""Products and the nests that read their rows: in one loop of threads, with the same results as apart."""

import numpy as np
import pytest

import pullback
from pullback import lax
from pullback import numpy as jnp
from pullback.compiler.pipelines import order_loops
from pullback.loops.ir import Loop
from pullback.loops.ir.visit import loads, statements, stores
from pullback.util.switches import switches


def _both(fun, *args):
    """The results with the pass and without it."""
    results = []
    for skip in (frozenset(), frozenset(["row_blocks"])):
        with switches.set(skip=skip):
            out = pullback.jit(fun)(*args)
        results.append([np.asarray(x) for x in (out if isinstance(out, (tuple, list)) else (out,))])
    return results


def _same(fun, *args, exact=True):
    """The results of both are equal, but for the order of sums where they are not `exact`."""
    for a, b in zip(*_both(fun, *args)):
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-6 if a.dtype == np.float32 else 1e-14)


def _loops(fun, *args):
    """How many loops stand outermost, and the elements of the largest temporary."""
    function = order_loops(pullback.jit(fun).lower(*args).compile()._program.lowered.function)
    loops = [stmt for stmt in function.body if isinstance(stmt, Loop)]
    used = {b for stmt in statements(function.body) for b in loads(stmt) | stores(stmt)}
    return len(loops), max([b.size for b in used if b.space == "temporary"], default=0)


def _operands(n, dtype=np.float32, k=40, m=64, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(s).astype(dtype) for s in ((n, k), (k, m), (m,), (n, m)))


def dense(x, w, b, y):
    return jnp.tanh(x @ w + b) * y


def test_a_product_and_its_reader_share_a_loop_and_the_result_has_no_memory():
    def total(*args):
        return dense(*args).sum()

    args = _operands(8192)
    assert _loops(dense, *args) == (1, 0)
    assert _loops(total, *args) == (2, 86)  # the second adds the sums of blocks
    with switches.set(skip=frozenset(["row_blocks"])):
        assert _loops(dense, *args)[0] == 2
        assert _loops(total, *args) == (2, 8192 * 64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("n", [8160, 8161, 8175, 8176, 8177, 8255])
def test_rows_that_are_no_multiple_of_a_block(n, dtype):
    args = _operands(n, dtype) if dtype != np.int32 else tuple((10 * a).astype(dtype) for a in _operands(n))
    fun = dense if dtype != np.int32 else lambda x, w, b, y: jnp.maximum(x @ w + b, 0) * y
    with pullback.enable_x64(True):
        _same(fun, *args)


@pytest.mark.parametrize("n", [8160, 8176, 8184, 8165, 8256])
def test_sums_over_all_rows_and_with_few_vectors(n):
    def loss_and_gradient(x, w, b, y):
        h = x @ w + b
        r = jnp.exp(-h * h) - y
        return (r * r).sum(), r, x[:, :3].T @ r

    _same(loss_and_gradient, *_operands(n), exact=False)


def test_results_do_not_depend_on_the_number_of_threads():
    def fun(x, w, b, y):
        r = jnp.tanh(x @ w + b) - y
        return (r * r).sum(), x[:, :3].T @ r

    args = _operands(20_000)
    run = pullback.jit(fun)
    first = [np.asarray(v) for v in run(*args)]
    with pullback.set_num_threads(1):
        again = [np.asarray(v) for v in run(*args)]
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)


def test_rows_of_softmax():
    _same(lambda x, w, b, y: pullback.nn.softmax(x @ w + b, axis=1) @ y[:64], *_operands(8200), exact=False)


def test_what_is_changed_in_place_is_read_before():
    def run(x, w, b, y):
        def body(c, _):
            h = c @ w
            return c + 0.01 * jnp.tanh(h + b), (h * h).sum()

        return lax.scan(body, y, None, length=3)

    n = 8195
    x, _, b, y = _operands(n)
    w = _operands(n, k=64)[1]
    _same(run, x, w, b, y, exact=False)


@pytest.mark.parametrize(
    "reader",
    [
        lambda h, y: jnp.tanh(jnp.roll(h, 1, 0)) + y,
        lambda h, y: jnp.tanh(h[::-1]) + y,
        lambda h, y: jnp.tanh(h) / h.sum(0),
        lambda h, y: jnp.cumsum(h, 0) + y,
        lambda h, y: (jnp.tanh(h) + y, jnp.roll(jnp.sin(h) * y, 5, 0)),
        lambda h, y: (jnp.tanh(h) + y, h.T),
        lambda h, y: jnp.tanh(h).reshape(-1, 32) + 1.0,
        lambda h, y: (h[::2] * 2.0, h + y),
        lambda h, y: jnp.where(y > 0, h, jnp.take(h, jnp.arange(h.shape[0])[::-1], axis=0)),
    ],
)
def test_readers_of_other_rows(reader):
    _same(lambda x, w, b, y: reader(x @ w, y), *_operands(8197), exact=False)


def test_small_products_stay_as_they_are():
    args = _operands(1000)
    with switches.set(skip=frozenset(["row_blocks"])):
        before = _loops(dense, *args)
    assert _loops(dense, *args) == before


def test_the_interpreter_agrees():
    def step(x, w, b, y):
        r = jnp.tanh(x @ w + b) - y
        return (r * r).sum(), r

    args = _operands(4099, k=8)
    want = [np.asarray(v) for v in pullback.jit(step)(*args)]
    with switches.set(interpret=True):
        for a, b in zip(pullback.jit(step)(*args), want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_rows_that_are_too_long_for_scratch_space():
    """A result of so few and so long rows has no blocks that stay in the cache."""
    rng = np.random.default_rng(0)
    for k, n, m in ((4, 16_000, 200), (8, 8_000, 100)):
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        f = pullback.jit(lambda x, w: jnp.tanh(x @ w).sum(1))
        np.testing.assert_allclose(f(x, w), np.tanh(x @ w).sum(1), rtol=1e-3, atol=1e-2)
