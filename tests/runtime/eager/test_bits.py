"""Eager results do not depend on how often a function was called: types and shapes say who computes them."""

import numpy as np
import pytest

import pullback as jax
import pullback.api.eager as api_eager
import pullback.numpy as jnp
import pullback.scipy.linalg as jsl
import pullback.scipy.special as special
from pullback import lax
from pullback.core import ShapedArray, registry
from pullback.runtime.eager import bits, evaluate, runner
from pullback.runtime.eager.bits import COMPILED, EITHER, UNCOMPILED

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(5, 5)).astype("f4")
ROW, ROWS = RNG.normal(size=300).astype("f4"), RNG.normal(size=(7, 300)).astype("f4")
LARGE = RNG.normal(size=(3, 40_000)).astype("f4")
WIDE = RNG.normal(size=(7, 8_000)).astype("f4")


def text(tree):
    return [np.asarray(x).tobytes() for x in jax.tree_util.tree_leaves(tree)]


@pytest.fixture
def impatient(monkeypatch):
    """What may be compiled once that pays is compiled at the third call."""
    monkeypatch.setattr(api_eager, "uses_before_compilation", lambda nanoseconds: 1)
    monkeypatch.setattr(evaluate, "uses_before_compilation", lambda nanoseconds: 1)
    monkeypatch.setattr(runner, "uses_before_compilation", lambda nanoseconds: 2)
    monkeypatch.setattr(runner, "PATIENCE", 2)
    monkeypatch.setattr(evaluate, "PAYS", 1 << 10)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize(
    "function, args",
    [
        *[(jnp.sum, [ROW]), (jnp.mean, [ROWS]), (jnp.std, [ROWS]), (jnp.prod, [ROW]), (jnp.matmul, [ROWS, ROW])],
        *[(lambda x: jnp.exp(x).sum(0), [ROWS]), (lambda x: jnp.linalg.norm(x), [ROW]), (jnp.cumsum, [ROW])],
        *[(jnp.cov, [ROWS]), (jnp.convolve, [ROW, ROW[:9]]), (lambda x: x.at[jnp.arange(7) % 2].add(x), [ROWS])],
        *[(jax.grad(lambda x: jnp.sum(jnp.tanh(MATRIX @ x) ** 2)), [MATRIX]), (jax.vmap(jnp.dot), [ROWS, ROWS])],
        *[(jnp.sum, [LARGE]), (lambda x: x - jnp.log(jnp.exp(x).sum(1, keepdims=True)), [LARGE])],
        *[(lambda x: lax.reduce_sum_p.bind(x, axes=(0,)), [ROWS]), (lambda x, y: x @ y, [ROWS, ROW])],
        *[(lambda x: jnp.einsum("ij,kj->i", x, x), [ROWS]), (jnp.corrcoef, [ROWS]), (jnp.kron, [ROWS, MATRIX])],
        *[(jnp.sinc, [ROW]), (jnp.logaddexp, [ROW, ROW]), (jnp.polyval, [ROW[:4], ROW])],
    ],
)
def test_all_calls_have_the_bits_of_the_first(function, args, impatient):
    args = [jnp.asarray(x) for x in args]
    first = text(function(*args))
    for _ in range(8):
        assert text(function(*args)) == first


@pytest.mark.parametrize(
    "function, args",
    [
        *[
            (jnp.fft.fft, [ROW]),
            (jnp.fft.rfft, [ROWS]),
            (jnp.cumsum, [ROW]),
            (jnp.linalg.cholesky, [MATRIX @ MATRIX.T]),
        ],
        *[(jnp.linalg.solve, [MATRIX, MATRIX]), (jnp.linalg.eigvalsh, [MATRIX]), (jsl.lu, [MATRIX])],
        *[
            (lambda a, b: jsl.solve_triangular(a, b, lower=True), [MATRIX, MATRIX]),
            (jnp.linalg.lstsq, [MATRIX, MATRIX]),
        ],
        *[(jnp.std, [np.tile(LARGE, 5)]), (jnp.exp, [LARGE]), (jnp.sinc, [LARGE])],
    ],
)
def test_first_calls_have_the_bits_of_programs(function, args):
    args = [jnp.asarray(x) for x in args]
    jax.clear_caches()
    assert text(function(*args)) == text(jax.jit(function)(*args))


def test_a_function_compiled_for_its_first_call_keeps_its_entry(monkeypatch):
    x = jnp.asarray(MATRIX)
    jax.clear_caches()
    first = text(jnp.linalg.inv(x))
    monkeypatch.setattr(api_eager, "compile_jaxpr", lambda *args, **kwargs: pytest.fail("it is compiled again"))
    for _ in range(3):
        assert text(jnp.linalg.inv(x)) == first


def test_errors_of_functions_that_are_traced_first():
    with pytest.raises(TypeError, match=r"matmul|dimension|contract"):
        jnp.matmul(jnp.asarray(LARGE), jnp.asarray(LARGE))
    with pytest.raises(ValueError, match="n, n"):
        jnp.linalg.inv(jnp.ones((3, 2)))


COLUMNS, ROWS = (((0,), (0,)), ((1,), (1,))), (((1,), (1,)), ((0,), (0,)))  # of two matrices, each with each


@pytest.mark.parametrize(
    "name, shapes, dtype, params, kind",
    [
        ("exp", [(3,)], "f4", {}, EITHER),
        ("reduce_max", [(3,)], "f4", {"axes": (0,)}, EITHER),
        ("reduce_sum", [(3,)], "i4", {"axes": (0,)}, EITHER),
        ("reduce_sum", [(3,)], "f4", {"axes": (0,)}, UNCOMPILED),
        ("reduce_sum", [(1_000_000,)], "f4", {"axes": (0,)}, COMPILED),
        ("dot_general", [(9, 5), (9, 5)], "f4", {"dimension_numbers": COLUMNS}, UNCOMPILED),
        ("dot_general", [(900, 500), (900, 500)], "f4", {"dimension_numbers": COLUMNS}, COMPILED),
        ("dot_general", [(900, 500), (900, 500)], "f4", {"dimension_numbers": ROWS}, UNCOMPILED),
        ("cumsum", [(3,)], "f4", {"axis": 0, "reverse": False}, COMPILED),
        ("cumsum", [(3,)], "i4", {"axis": 0, "reverse": False}, EITHER),
        ("cummax", [(3,)], "f4", {"axis": 0, "reverse": False}, EITHER),
    ],
)
def test_kinds(name, shapes, dtype, params, kind):
    avals = [ShapedArray(shape, np.dtype(dtype)) for shape in shapes]
    outs = [registry[name].rule("abstract_eval")(*avals, **params)]
    assert bits.kind_of(registry[name], avals, outs, params) == kind


def test_kinds_of_inner_programs_count():
    loop = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, y: y + jnp.sum(y), x))(1.0 + np.zeros(3, "f4"))
    assert bits.kinds_in(loop) == {EITHER, UNCOMPILED}
    assert bits.kinds_in(jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2, x))(1.0)) == {EITHER}


def test_the_first_call_of_a_large_function_makes_no_plan_twice(monkeypatch):
    made = []

    def counted(closed, name="plan"):
        made.append(closed)
        return make_plan(closed, name)

    make_plan = api_eager.make_plan
    monkeypatch.setattr(api_eager, "make_plan", counted)
    remembered = api_eager.eager(lambda x: jnp.sum(x * 2, 1))
    for _ in range(3):
        remembered(WIDE)
    assert made and len({str(closed) for closed in made}) == len(made)


@pytest.mark.parametrize("n", [7, 100, 5000])
def test_a_jitted_function_in_an_eager_one_stays_compiled(n):
    rng = np.random.default_rng(n)
    with jax.enable_x64():
        x = jnp.asarray(rng.uniform(0.1, 0.9, n) + 1j * rng.uniform(0.1, 0.9, n))
        first, *others = (text(special.log_softmax(x)) for _ in range(5))
        assert all(other == first for other in others)


def test_what_a_solver_does_inside_is_looked_at():
    rng = np.random.default_rng(0)
    with jax.enable_x64():
        a, b, c = (jnp.asarray(rng.normal(size=(7, 7)) + 1j * rng.normal(size=(7, 7))) for _ in range(3))
        assert bits.kinds_in(jax.make_jaxpr(jsl.solve_sylvester)(a, b, c)) - {EITHER}
        first, *others = (text(jsl.solve_sylvester(a, b, c)) for _ in range(10))
        assert all(other == first for other in others)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "spec, x, y",
    [
        *[("k,k->", (k,), (k,)) for k in (2, 3, 8)],
        *[("ik,k->i", (m, k), (k,)) for m, k in ((2, 2), (3, 3), (40, 5), (7, 8))],
        *[("k,kj->j", (k,), (k, n)) for k, n in ((2, 2), (5, 33), (8, 3))],
        *[("ki,k->i", (3, 9), (3,)), ("bik,bk->bi", (4, 3, 5), (4, 5)), ("bk,bk->b", (6, 7), (6, 7))],
        *[("ik,kj->ij", (3, 7), (7, 4)), ("ikl,kl->i", (5, 2, 3), (2, 3)), ("k,k->", (1,), (1,))],
    ],
)
def test_products_of_few_terms_have_the_bits_of_programs(spec, x, y, dtype):
    with jax.enable_x64(dtype == "f8"):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            args = [jnp.asarray(rng.normal(size=shape).astype(dtype)) for shape in (x, y)]
            product = lambda x, y: jnp.einsum(spec, x, y)
            assert text(product(*args)) == text(jax.jit(product)(*args)), (spec, seed)
            special = args[0].at[..., 0].set(np.inf), args[1].at[..., 0].set(-0.0)
            assert text(product(*special)) == text(jax.jit(product)(*special)), (spec, seed)


MADE = {
    "converted": lambda x, y, w: (x * 100).astype(np.int8).astype(np.float32) @ w,
    "differences": lambda x, y, w: (x - y) @ w,
    "a vector first": lambda x, y, w: w @ (x - y).T,
    "pairs": lambda x, y, w: jnp.einsum("ij,ij->i", x - y, y),
    "three operands": lambda x, y, w: jnp.einsum("ij,j,ij->i", x, w, y),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("terms", [2, 3, 5, 8])
def test_products_of_few_terms_with_what_is_made_for_them_have_the_bits_of_programs(name, terms):
    rng = np.random.default_rng(terms)
    x, y = (jnp.asarray(rng.normal(size=(1000, terms)).astype(np.float32)) for _ in range(2))
    w = jnp.asarray(rng.normal(size=terms).astype(np.float32))
    assert text(MADE[name](x, y, w)) == text(jax.jit(MADE[name])(x, y, w))
