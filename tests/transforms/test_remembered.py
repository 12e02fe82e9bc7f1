"""Remembered derivative rules: the third gradient is the first, and that of the compiled program."""

import gc
import sys

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.runtime.eager import runner
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.transforms import batching, remembered

RNG = np.random.default_rng(1)
X = jnp.asarray(RNG.normal(size=(3, 4)).astype(np.float32))

FUNCTIONS = [
    lambda x: jnp.sum(jnp.tanh(x) ** 2),
    lambda x: jnp.sum(jnp.exp(-x) / (1 + x * x)),
    lambda x: jnp.sum(x @ x.T * 0.5),
    lambda x: jnp.max(x) * jnp.min(x[1:, ::2]),
    lambda x: jnp.sum(jnp.where(x > 0, x, jnp.sin(x))[:, 1]),
    lambda x: jnp.linalg.norm(x),
    lambda x: jnp.sum(jnp.concatenate([x, x[:1] * 2]).reshape(-1)[2:] ** 3),
    lambda x: pb.nn.logsumexp(x, axis=1).mean(),
    lambda x: jnp.sum(jnp.sort(x.ravel()) * jnp.arange(12.0)),
    lambda x: 2.0 * x[0, 0] + x[1, 1] ** 2,
    lambda x: jnp.sum(pb.nn.relu(x)),
    lambda x: jnp.prod(jnp.var(x, axis=0)),
    lambda x: jnp.sum(jnp.abs(x.astype(jnp.complex64) * 1j)),
    lambda x: jnp.sum(x.astype(jnp.float16) * 2).astype(jnp.float32),
    lambda x: jnp.sum(pb.lax.sort([x, x * x], num_keys=1)[1][:, 0]),
    lambda x: jnp.sum(jnp.linalg.svd(x, compute_uv=False) ** 3),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_the_same_each_time(number):
    f = FUNCTIONS[number]
    want = np.asarray(pb.jit(pb.grad(f))(X))
    for _ in range(4):
        got = pb.grad(f)(X)
        assert got.aval == X.aval
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
        out, pull = pb.vjp(f, X)
        np.testing.assert_allclose(pull(jnp.ones_like(out))[0], want, rtol=2e-5, atol=1e-6)
        direction = jnp.cos(X)
        np.testing.assert_allclose(
            pb.linearize(f, X)[1](direction), pb.jvp(f, (X,), (direction,))[1], rtol=2e-5, atol=1e-5
        )


def test_second_derivatives_and_batches():
    f = FUNCTIONS[0]
    want = np.asarray(pb.jit(pb.hessian(f))(X))
    for _ in range(3):
        np.testing.assert_allclose(pb.hessian(f)(X), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pb.vmap(pb.grad(lambda r: jnp.sum(r**3)))(X), 3 * X * X, rtol=1e-5)


def test_decisions_by_values_are_made_each_time():
    def f(x):
        return jnp.sum(x * 2) if x[0] > 0 else jnp.sum(x * x)

    for _ in range(4):
        assert pb.grad(f)(jnp.array([1.0, 2.0])).tolist() == [2, 2]
        assert pb.grad(f)(jnp.array([-1.0, 2.0])).tolist() == [-2, 4]


def test_other_values_and_closures():
    for k in range(5):
        scale = jnp.array([float(k), 1.0])
        assert pb.grad(lambda x, scale=scale: jnp.sum(jnp.square(x) * scale))(jnp.array([k, 3.0])).tolist() == [
            2.0 * k * k,
            6.0,
        ]


def test_errors_stay_errors():
    for _ in range(4):
        with pytest.raises(TypeError):
            pb.grad(lambda x: jnp.sum(x * jnp.ones(3)))(jnp.ones(2))
        with pb.debug_nans(True), pytest.raises(FloatingPointError):
            pb.grad(lambda x: jnp.sum(jnp.log(x)))(jnp.array([-1.0]))
        assert np.isnan(pb.grad(lambda x: jnp.sum(jnp.sqrt(x)))(jnp.array([-1.0]))[0])


@pytest.mark.parametrize("shape", [(3, 4), (300, 40)])
def test_nothing_runs_python_again(monkeypatch, shape):
    """From the fourth time on neither rules nor our own functions run: only plans, or kernels for large arrays, do."""
    remembered.clear()
    f = FUNCTIONS[0]
    x = jnp.ones(shape)
    for _ in range(6):
        pb.grad(f)(x), pb.jvp(f, (x,), (x,)), pb.vmap(f)(x)
    seen = []
    for name in ("jvp", "transpose", "batch"):
        monkeypatch.setattr(pb.lax.tanh_p, name, None)  # would fail if it were asked
    monkeypatch.setattr(pb.core.Primitive, "process", lambda self, *args, **params: seen.append(self))
    pb.grad(f)(x), pb.jvp(f, (x,), (x,)), pb.vmap(f)(x)
    assert not seen


def test_large_arrays_are_compiled_once_that_pays(monkeypatch):
    """Equation by equation at first; the values stay those of the compiled gradient."""
    remembered.clear()
    compiled = []

    def counted(closed):
        compiled.append(closed)
        return compile_jaxpr(closed)

    monkeypatch.setattr(runner, "compile_jaxpr", counted)
    a, b, x = (jnp.asarray(RNG.normal(size=s).astype(np.float32)) for s in ((1000, 100), (1000, 100), (100,)))

    def f(x):
        return jnp.sum(jnp.tanh(a * x - b) ** 2)

    want = pb.jit(pb.grad(f))(x)
    for number in range(150):
        np.testing.assert_allclose(pb.grad(f)(x), want, rtol=1e-4, atol=1e-2)
        assert not compiled or number > 10
    assert 0 < len(compiled) < 10


def test_equations_of_a_recorded_program_are_made_once():
    tapes = [pb.linearize(FUNCTIONS[0], X)[1].func.jaxpr for _ in range(4)]
    assert type(tapes[-1]) is remembered.Tape and tapes[-1].eqns and tapes[-1].eqns is tapes[-1].eqns


def test_programs_with_other_constants_are_others():
    """A recorded program is told by which value stands where: the same calls with operands that coincide or not."""
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    for _ in range(4):
        for a, b in ((x, y), (y, x), (x, x), (y, y)):
            want = (2 * a + b).tolist()
            assert pb.grad(lambda t, a=a, b=b: jnp.sum(t * a + t * b + t * a))(jnp.ones(2)).tolist() == want
            g = pb.grad(lambda s, t, a=a, b=b: jnp.sum(s * a + t * b), argnums=(0, 1))(jnp.ones(2), jnp.ones(2))
            assert [v.tolist() for v in g] == [a.tolist(), b.tolist()]
            g = pb.grad(lambda s, t, a=a, b=b: jnp.sum(t * a + s * b), argnums=(0, 1))(jnp.ones(2), jnp.ones(2))
            assert [v.tolist() for v in g] == [b.tolist(), a.tolist()]


def test_what_fails_when_made_is_raised_once():
    """Of what could not be made nothing is kept but that it stays Python."""
    memory, made = {}, []

    def make():
        made.append(None)
        raise ValueError("no")

    assert remembered.found(memory, 1, make, 4) is None
    with pytest.raises(ValueError, match="no"):
        remembered.found(memory, 1, make, 4)
    assert remembered.found(memory, 1, make, 4) is None and len(made) == 1
    for key in range(10):
        remembered.found(memory, key, lambda: "made", 4)
    assert remembered.found(memory, 9, lambda: "made", 4) == "made" and len(memory) <= 4


def test_leaked_values_say_where_they_were_made():
    kept = []
    for _ in range(4):
        pb.grad(lambda x: jnp.sum(kept.append(x * 2) or x))(X)
        with pytest.raises(pb.errors.UnexpectedTracerError, match=r"test_remembered.py:\d+ \(<lambda>\)"):
            jnp.sin(kept.pop()).block_until_ready()


def test_programs_of_any_length():
    """A loop that runs as long as the values say."""

    def f(x):
        while x[0] < 100:
            x = x * x + 1
        return jnp.sum(x)

    jitted = {}
    for _ in range(4):
        for start in (1.5, 3.0, 20.0, 200.0):
            x = jnp.array([start, 1.0])
            if start not in jitted:
                jitted[start] = np.asarray(pb.grad(f)(x))
                h = 1e-3
                slope = (f(x + jnp.array([h, 0])) - f(x - jnp.array([h, 0]))) / (2 * h)
                np.testing.assert_allclose(jitted[start][0], slope, rtol=2e-2)
            np.testing.assert_allclose(pb.grad(f)(x), jitted[start], rtol=1e-6)


@pb.custom_vjp
def _halved(x):
    return x * 2


_halved.defvjp(lambda x: (x * 2, None), lambda _, bar: (bar * 0.5,))


def test_beside_what_is_not_remembered():
    """Loops, jitted functions, custom rules and large arrays among remembered functions."""

    def f(x):
        y = pb.lax.scan(lambda c, _: (jnp.sin(c), None), x * 2, None, length=3)[0]
        y = pb.jit(jnp.cos)(y) + _halved(x) + pb.lax.mul(x, x)
        big = jnp.broadcast_to(y.ravel()[:, None], (12, 4000)) * 1e-3
        return jnp.sum(y**3) + jnp.sum(jnp.tanh(big)) + jnp.sum(pb.lax.cond(y[0, 0] > 0, jnp.exp, jnp.sin, y))

    want = np.asarray(pb.jit(pb.grad(f))(X))
    for _ in range(4):
        np.testing.assert_allclose(pb.grad(f)(X), want, rtol=2e-4, atol=1e-4)


def test_pullbacks_are_values():
    """They go through jit and vmap, and take any number of cotangents."""

    def f(x):
        return jnp.tanh(x @ x.T) * 2.5, x[0] * 3

    for _ in range(4):
        (a, b), pull = pb.vjp(f, X)
        bars = (jnp.ones_like(a), jnp.ones_like(b))
        want = np.asarray(pull(bars)[0])
        np.testing.assert_allclose(pb.jit(lambda p, y: p(y))(pull, bars)[0], want, rtol=1e-5, atol=1e-6)
        many = pb.vmap(pull)((jnp.stack([bars[0], 0 * bars[0]]), jnp.stack([bars[1], bars[1]])))[0]
        np.testing.assert_allclose(many[0], want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(many[1], pull((0 * bars[0], bars[1]))[0], rtol=1e-5, atol=1e-6)
        rows = pb.jacrev(f)(X)
        np.testing.assert_allclose(rows[0], pb.jacfwd(f)(X)[0], rtol=1e-4, atol=1e-5)


def test_one_inside_the_other():
    """Every pair of transformations, eager, against the jitted one."""

    def f(x):
        return jnp.sum(jnp.sin(x) * x**2 / (1 + jnp.exp(-x)))

    v = jnp.cos(X)
    cases = [
        lambda x: pb.vmap(pb.grad(f))(x),
        lambda x: pb.grad(lambda y: jnp.sum(pb.vmap(f)(y) ** 2))(x),
        lambda x: pb.jvp(pb.grad(f), (x,), (v,))[1],
        lambda x: pb.grad(lambda y: pb.jvp(f, (y,), (v,))[1])(x),
        lambda x: pb.grad(lambda y: jnp.sum(pb.grad(f)(y) * v))(x),
        lambda x: pb.vmap(lambda r, t: pb.jvp(f, (r,), (t,))[1], in_axes=(1, 1))(x, v),
        lambda x: pb.vmap(pb.vmap(jnp.sin))(x) + pb.vmap(jnp.cos, in_axes=1, out_axes=1)(x),
        lambda x: pb.vmap(pb.vmap(lambda a, b: a * b - 1, in_axes=(None, 0)), in_axes=(0, None))(x[0], x[1]),
    ]
    for case in cases:
        want = np.asarray(pb.jit(case)(X))
        for _ in range(4):
            np.testing.assert_allclose(case(X), want, rtol=1e-4, atol=1e-5)


def test_types():
    """Weak types, 64 bits, integers, keyword arguments and Python numbers of any size."""
    for _ in range(4):
        assert pb.grad(lambda x: x * 2)(3.0).weak_type
        assert pb.grad(lambda x: jnp.sum(x * 2**20))(jnp.ones(2)).tolist() == [2**20] * 2
        with pytest.raises(OverflowError):
            pb.grad(lambda x: jnp.sum(x * 2**40))(jnp.ones(2))
        y, y_dot = pb.jvp(lambda x, n: jnp.sum(x, axis=0) * n, (X, 3), (X, np.zeros((), pb.dtypes.float0)))
        np.testing.assert_allclose(y_dot, y)
        assert pb.vmap(lambda i: i // 2 + 1)(jnp.arange(4)).tolist() == [1, 1, 2, 2]
        with pb.enable_x64(True):
            assert pb.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.ones(2, jnp.float64)).dtype == np.float64
        assert pb.vmap(lambda x: jnp.sum(x, keepdims=True), in_axes=1)(X).shape == (4, 1)


def test_leaked_values_are_named():
    kept = []
    for _ in range(4):
        pb.grad(lambda x: kept.append(jnp.sin(x)) or jnp.sum(x))(X)
        with pytest.raises(pb.errors.UnexpectedTracerError):
            jnp.cos(kept.pop())
    for _ in range(4):
        pb.grad(lambda x: kept.append(jnp.sin(x)) or jnp.sum(x))(X)
        with pytest.raises(pb.errors.UnexpectedTracerError):
            pb.grad(lambda x: jnp.sum(x * kept[-1]))(X)


def test_warnings_come_each_time():
    for _ in range(4):
        with pytest.warns(UserWarning):
            pb.grad(lambda x: jnp.sum(jnp.asarray(x, dtype="float64") * 2))(X)


def test_nothing_is_left_behind():
    """Thousands of eager transformations leave as many objects as there were."""
    x = jnp.ones(5)
    f = FUNCTIONS[0]

    def work(count):
        for _ in range(count):
            pb.grad(f)(x), pb.vmap(lambda r: jnp.tanh(r) * 2)(X), pb.jvp(f, (x,), (x,)), pb.vjp(f, x)[1](jnp.float32(1))

    work(20)
    gc.collect()
    before = sys.getallocatedblocks()
    work(2000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 500


MAPPED = {  # functions of a vector and one row or column of a matrix
    "dot": jnp.dot,
    "tensordot": lambda v, w: jnp.tensordot(v, w, 1),
    "einsum": lambda v, w: jnp.einsum("i,i", v, w),
    "norm": lambda v, w: jnp.linalg.norm(v - w),
    "mean": lambda v, w: jnp.mean(v * w),
    "sort": lambda v, w: jnp.sort(w) + v,
    "two results": lambda v, w: (jnp.cumsum(w), jnp.outer(v, w)),
}


@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_axis_stays_where_it_is(name, axis, monkeypatch):
    """Sums of products have the same order each time: an axis that is moved in front is a copy in another order."""
    monkeypatch.setattr(batching.types, "in_use", lambda: False)  # of explicit axes, which other tests may have used
    rng = np.random.default_rng(5)
    v = jnp.asarray(rng.normal(size=16).astype("f"))
    w = jnp.asarray(rng.normal(size=(8, 16) if axis == 0 else (16, 8)).astype("f"))
    f = pb.vmap(MAPPED[name], in_axes=(None, axis))
    first, *later = [pb.tree.leaves(f(v, w)) for _ in range(4)]
    for again in later:
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
    turned = pb.vmap(MAPPED[name], in_axes=(None, 0))(v, w if axis == 0 else w.T)
    for a, b in zip(first, pb.tree.leaves(turned), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_inner_axes_stay_where_they_are(monkeypatch):
    rng = np.random.default_rng(6)
    a, b = jnp.asarray(rng.normal(size=(3, 5, 4)).astype("f")), jnp.asarray(rng.normal(size=(5, 3, 4)).astype("f"))
    f = pb.vmap(pb.vmap(jnp.dot, in_axes=(0, 1)), in_axes=2)
    monkeypatch.setattr(batching.types, "in_use", lambda: False)  # of explicit axes, which other tests may have used
    moved = []
    for _ in range(4):
        np.testing.assert_allclose(f(a, b), np.einsum("jlk,ljk->kj", a, b), rtol=1e-5, atol=1e-6)
        monkeypatch.setattr(batching.hooks, "moveaxis", lambda *args: moved.append(args))  # would fail if it were asked
    assert not moved


def test_programs_of_64_bits_run_where_those_are_switched_off():
    """What a function computes in float64 is remembered, and runs again one equation after the other."""
    x, one = (jnp.float32(0.5),) * 3, (jnp.float32(1.0),) * 3
    first = pb.jvp(pb.scipy.special.hyp1f1, x, one)
    np.testing.assert_array_equal(pb.jvp(pb.scipy.special.hyp1f1, x, one), first)


@pytest.mark.parametrize("value", [np.float64(0.1), np.int64(2**40), np.complex128(0.1j), np.uint64(2**40)], ids=str)
def test_literals_of_64_bits_keep_them(value):
    with pb.enable_x64(True):
        closed = pb.make_jaxpr(lambda x: (x + value, value))(value)
        given = jnp.asarray(value)
    added, same = pb.core.eval_jaxpr(closed.jaxpr, closed.consts, given)
    assert added.dtype == same.dtype == value.dtype
    assert np.asarray(added)[()] == value + value and np.asarray(same)[()] == value
