"""Programs on disk are found by what was traced, before any pass has run."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core import ShapedArray, trace
from pullback.loops.emit.writer import finish_writing
from pullback.runtime.programs.fingerprint import fingerprint
from pullback.util.switches import switches

TABLE = np.arange(5000, dtype=np.float32)
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(6, 8)

PROGRAMS = {
    "elementwise": lambda x: jnp.tanh(x) * 2 + 1,
    "large constant": lambda x: jnp.asarray(TABLE)[None, :48].reshape(6, 8) * x + jnp.asarray(TABLE).sum(),
    "folded constant": lambda x: x[0, 0] * (jnp.arange(3000.0) ** 2)[::-1],
    "argument as result": lambda x: (x, x.T, x),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, jnp.sin(c)), x[0], x),
    "branches": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "host call": lambda x: jnp.linalg.eigvals(x[:4, :4]),
    "gradient": jax.grad(lambda x: jax.nn.softmax(x).max()),
    "random numbers": lambda x: (
        jax.random.normal(jax.random.fold_in(jax.random.key(1), 2), x.shape)
        + jax.random.bits(jax.random.key(3), x.shape)
    ),
    "keys": lambda x: jax.random.split(jax.random.key(int(x.shape[0])), 3),
}


@pytest.fixture
def folder(tmp_path):
    with switches.set(cache_dir=str(tmp_path)):
        jax.clear_caches()
        yield tmp_path
    jax.clear_caches()


def compiled(fun, *args):
    """(compiled function, stages that ran), with nothing in memory."""
    jax.clear_caches()
    done = jax.jit(lambda *a: fun(*a)).lower(*args).compile()
    return done, set(done._program.seconds)


def values(tree):
    return [np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
            for x in jax.tree.leaves(tree)]  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_found_without_lowering(folder, name):
    first, cold = compiled(PROGRAMS[name], X)
    again, warm = compiled(PROGRAMS[name], X)
    assert "lower" in cold and "lower" not in warm and "load" in warm
    for a, b in zip(values(first(X)), values(again(X)), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    assert first.memory_analysis() == again.memory_analysis()
    assert first.cost_analysis() == again.cost_analysis()
    assert first.as_text("llvm") == again.as_text("llvm")


def test_unused_and_donated_arguments(folder):
    for _ in range(2):
        jax.clear_caches()
        f = jax.jit(lambda x, unused, y: (x + 1, y * 2), donate_argnums=0)
        x = jnp.array(X)
        one, two = f(x, X[0], X[1])
        assert x.is_deleted()
        assert np.array_equal(one, X + 1) and np.array_equal(two, X[1] * 2)


def test_damaged_files_are_compiled_anew(folder):
    compiled(PROGRAMS["scan"], X)
    finish_writing()
    (path,) = [p for p in folder.rglob("*") if p.is_file()]
    intact = path.read_bytes()
    for damaged in (intact[:50], intact[:-1], intact[:100] + b"?" + intact[101:]):
        path.write_bytes(damaged)
        _, stages = compiled(PROGRAMS["scan"], X)
        finish_writing()
        assert "lower" in stages and path.read_bytes() == intact


def print_of(fun, *avals):
    return fingerprint(trace(lambda *xs: [fun(*xs)], avals))


def test_fingerprints_tell_programs_apart():
    f32, i32 = ShapedArray((4,), np.dtype("f4")), ShapedArray((4,), np.dtype("i4"))
    table = np.arange(100.0, dtype="f4")
    prints = [
        print_of(lambda x: x + 1, f32), print_of(lambda x: x + 2, f32), print_of(lambda x: x - 1, f32),
        print_of(lambda x: x + 1, i32), print_of(lambda x: x + 1, ShapedArray((5,), np.dtype("f4"))),
        print_of(lambda x: x + 1, ShapedArray((4,), np.dtype("f4"), weak_type=True)),
        print_of(lambda x: jnp.sum(x), f32), print_of(lambda x: x[::-1], f32), print_of(lambda x: x[1:2], f32),
        print_of(lambda x: x + jnp.asarray(table)[:4], f32), print_of(lambda x: x + jnp.asarray(table + 1)[:4], f32),
        print_of(lambda x: x + 0.0, f32), print_of(lambda x: x + -0.0, f32), print_of(lambda x: x * np.nan, f32),
        print_of(lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x), f32),
        print_of(lambda x: lax.fori_loop(0, 3, lambda i, c: c - i, x), f32),
        print_of(lambda x, y: x - y, f32, f32), print_of(lambda x, y: y - x, f32, f32),
    ]  # fmt: skip
    assert None not in prints and len(set(prints)) == len(prints)
    assert print_of(lambda a: a + 1, f32) == prints[0]
    assert print_of(lambda x: x + jnp.asarray(table.copy())[:4], f32) == prints[9]


def test_functions_of_others_have_no_fingerprint():
    f32 = ShapedArray((4,), np.dtype("f4"))
    assert print_of(lambda x: jax.pure_callback(np.sin, x, x), f32) is None
    own = jax.extend.core.Primitive("own_of_this_test")
    own.def_abstract_eval(lambda x: x)
    assert print_of(own.bind, f32) is None


def test_rules_of_differentiation_do_not_matter():
    """A custom rule is a function, but the program that is compiled does not call it."""

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    assert print_of(f, ShapedArray((4,), np.dtype("f4"))) is not None


def test_equal_programs_share_code_in_a_process(folder):
    jax.clear_caches()
    a, b = (jax.jit(lambda x: jnp.exp(x) * 3).lower(X).compile()._program for _ in range(2))
    assert a.native is b.native


def test_kernels_are_found_by_name(folder, monkeypatch):
    from pullback.compiler.products import symbols
    from pullback.runtime.programs import kernels

    def product(x):
        return x @ x.T

    x = np.linspace(-1, 1, 64 * 256, dtype=np.float32).reshape(64, 256)
    kernels._compiled.cache_clear()
    first = jax.jit(product)(x)
    kernels._compiled.cache_clear()
    monkeypatch.setattr(symbols, "kernel_of", lambda name: pytest.fail(f"{name} was built again"))
    jax.clear_caches()
    assert np.array_equal(first, jax.jit(lambda x: product(x))(x))


def test_functions_called_many_times_are_written_once(monkeypatch):
    from pullback.runtime.programs import fingerprint as module

    written = []
    write = module._Writer.jaxpr
    monkeypatch.setattr(module._Writer, "jaxpr", lambda self, jaxpr: written.append(1) or write(self, jaxpr))

    def twice(f):
        return jax.jit(lambda x: f(x) + f(x * 2))

    f = jnp.sin
    for _ in range(10):
        f = twice(f)
    assert fingerprint(trace(lambda x: [f(x)], [ShapedArray((4,), np.dtype("f4"))])) is not None
    assert len(written) < 40


def test_constants_of_functions_called_twice_are_told_apart():
    a, b = (jax.jit(lambda x, k=k: x + jnp.asarray(TABLE + k)[:48]) for k in range(2))
    aval = ShapedArray((48,), np.dtype("f4"))
    first, second = (fingerprint(trace(lambda x, g=g: [a(x), b(x), g(x)], [aval])) for g in (a, b))
    assert first != second
