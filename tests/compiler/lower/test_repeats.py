"""What occurs many times is lowered a few times: equal groups of unrolled loops, bodies of scans."""

import numpy as np
import pytest
from lowering_checks import check

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.lower import repeats
from pullback.compiler.lower.program import Lowering, lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.core import trace, typeof
from pullback.loops.ir import Run
from pullback.loops.ir.visit import kernels, statements

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
STEPS = 30


@pytest.fixture
def emitted(monkeypatch):
    """The groups that were lowered one by one."""
    groups = []
    original = repeats.emit_group

    def counted(region, group):
        groups.append(group)
        original(region, group)

    monkeypatch.setattr(repeats, "emit_group", counted)
    return groups


def lowered(fun, *args):
    return lower_program(optimize_jaxpr(trace(lambda *xs: [fun(*xs)], [typeof(a) for a in args])))


def step(x, w, b):
    return jnp.maximum(x @ w + b, 0) * 0.5


def test_equal_groups_run_one_kernel(emitted):
    def f(x, w, b):
        for _ in range(STEPS):
            x = step(x, w, b)
        return x

    check(f, X, X.T.copy(), X[0])
    emitted.clear()
    function = lowered(f, X, X.T.copy(), X[0]).function
    # The first reads the argument, the last writes the result; three of those between are lowered before they share.
    assert len(emitted) <= 6
    runs = [stmt for stmt in statements(function.body) if isinstance(stmt, Run)]
    assert len(runs) >= STEPS - 2 and len(kernels(function.body)) <= 2


def test_groups_of_one_argument_that_is_a_scalar_share(emitted):
    def f(x, w, rate):
        for _ in range(STEPS):
            x = x - rate * jnp.tanh(x @ w)
        return x

    check(f, X, X.T.copy(), np.float32(0.1))
    emitted.clear()
    lowered(f, X, X.T.copy(), np.float32(0.1))
    assert len(emitted) <= 8


def test_groups_that_differ_do_not_share():
    """In literals, parameters, the arrays that are the same one, offsets and shapes."""

    def f(x, w, b):
        for k in range(STEPS):
            x = step(x, w, b) + np.float32(k)  # a literal of its own
            w = jnp.maximum(w @ w, -1) if k % 3 else jnp.maximum(w @ x, -1)
            b = x[k % 8] * 0.1 + lax.slice(x, (0, k % 5), (8, k % 5 + 1))[:, 0]
        return x + w + b

    check(f, X * 0.1, X.T * 0.1, X[0], rtol=1e-4, atol=1e-4)


def test_gradients_of_unrolled_loops():
    def loss(x, w, b):
        for _ in range(12):
            x = jnp.tanh(step(x, w, b) @ w)
        return x.sum()

    check(lambda *args: pb.grad(loss, (0, 1, 2))(*args), X, X.T.copy(), X[0], rtol=1e-4)


def test_reductions_share(emitted):
    def f(x):
        for _ in range(STEPS):
            x = x - jnp.log(jnp.exp(x).sum(1, keepdims=True))
        return x

    check(f, X)
    emitted.clear()
    lowered(f, X)
    assert len(emitted) < 2 * STEPS


@pytest.fixture
def programs(monkeypatch):
    """The jaxprs that were lowered: programs and bodies."""
    found = []
    original = Lowering.subprogram

    def counted(self, closed, inputs, outputs):
        found.append(closed)
        return original(self, closed, inputs, outputs)

    monkeypatch.setattr(Lowering, "subprogram", counted)
    return found


def _scan(length):
    return lambda x, w: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=length)[0].sum()


def _nested(length):
    def outer(c, _):
        return lax.scan(lambda d, _: (jnp.tanh(d), None), c, None, length=length)[0] * 0.9, None

    return lambda x, w: lax.scan(outer, x @ w, None, length=length)[0].sum()


def _twice(length):
    return lambda x, w: _scan(length)(x, w) + _scan(length)(w, x)


@pytest.mark.parametrize("make,bodies", [
    (_scan, 1),
    (lambda n: pb.grad(_scan(n)), 2),
    (_nested, 2),
    (_twice, 2),
    (lambda n: pb.vmap(_scan(n), (0, None)), 1),
])  # fmt: skip
def test_bodies_of_scans_are_lowered_once(make, bodies, programs):
    args = (np.stack([X] * 3) if bodies == 1 and make is not _scan else X), X.T.copy()
    sizes = []
    for length in (10, 20, 1000):
        programs.clear()
        function = lowered(make(length), *args).function
        assert len(programs) == 1 + bodies if length < 1000 else len(programs) <= 1 + 2 * bodies
        sizes.append(len(list(statements(function.body))))
    assert sizes[0] == sizes[1]
    assert sizes[2] <= 2 * sizes[0]  # steps of long loops may go by turns


def test_groups_of_a_loops_condition_and_body():
    """Those of the condition are not where they were when those of the body share a kernel."""

    def f(x, w, b):
        def many(x, steps):
            for _ in range(steps):
                x = step(x, w, b)
            return x

        return lax.while_loop(lambda x: jnp.sum(many(x, 3)) > 1, lambda x: many(x, 5), x)

    check(f, X, X.T.copy(), X[0])
