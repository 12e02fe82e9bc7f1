"""Graph passes: what is left of a program after them."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.core import trace
from pullback.core.jaxpr import Literal
from pullback.core.primitive import registry
from pullback.runtime import reference_eval

F = np.float32


def optimized(fun, *args):
    """(names of the primitives left, the jaxpr) after checking that results stay."""
    closed = trace(lambda *xs: list(fun(*xs)), [pullback.typeof(a) for a in args])
    after = optimize_jaxpr(closed)
    for got, want in zip(reference_eval(after, args), reference_eval(closed, args)):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    return [eqn.primitive.name for eqn in after.eqns], after


X = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    "fun, left",
    [
        (lambda x: [lax.mul(x, F(1))], []),
        (lambda x: [lax.add(x, F(0))], []),
        (lambda x: [lax.neg(lax.neg(x))], []),
        (lambda x: [lax.div(x, F(4))], ["mul"]),
        (lambda x: [(x.astype("uint32") & 1) * jnp.uint32(0xEDB88320)], ["convert_element_type", "and", "neg", "and"]),
        (lambda x: [(x.astype("uint32") & 1) * jnp.uint32(8)], ["convert_element_type", "and", "mul"]),
        (lambda x: [(x.astype("int32") & 1) * 7], ["convert_element_type", "and", "mul"]),
        (lambda x: [lax.transpose(lax.transpose(x, (1, 0)), (1, 0))], []),
        (lambda x: [lax.reshape(lax.reshape(x, (20,)), (4, 5))], []),
        (lambda x: [lax.add(x, lax.neg(x))], ["sub"]),
        (lambda x: [lax.mul(x, lax.full((4, 5), F(3)))], ["mul"]),
        (lambda x: [lax.rev(lax.rev(x, (0,)), (0,))], []),
        (lambda x: [lax.reduce_sum_p.bind(lax.full((4, 5), F(2)), axes=(0, 1))], []),
        (lambda x: [lax.dynamic_slice(x, (np.int32(1), np.int32(9)), (2, 3))], ["slice"]),
        (lambda x: [lax.add(lax.sin(x), lax.sin(x))], ["sin", "add"]),
        (lambda x: [lax.sqrt(lax.mul(x, x))], ["abs"]),
        (lambda x: [lax.pow(lax.square(lax.abs(x)), F(0.5))], ["abs"]),
        (lambda x: [lax.add(lax.abs(lax.neg(x)), lax.abs(x))], ["abs", "add"]),
        (lambda x: [lax.ne(lax.neg(x), lax.neg(x))], ["ne"]),
        (
            lambda x: [lax.sqrt(lax.reduce_sum_p.bind(lax.integer_pow(x[:, :1], 2), axes=(1,)))],
            ["slice", "abs", "reshape"],
        ),
        (
            lambda x: [lax.convert_element_type(lax.convert_element_type(x, np.complex64), np.complex64)],
            ["convert_element_type"],
        ),
    ],
)
def test_simplified(fun, left):
    assert optimized(fun, X)[0] == left


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_products_with_masks_are_choices(dtype):
    """As in JAX's compiled programs: nan and infinity go where the mask is False."""
    x = np.array([np.inf, np.nan, -2, 3], dtype)
    mask = np.array([False, False, False, True])
    for fun in (lambda x, m: x * m.astype(x.dtype), lambda x, m: m.astype(x.dtype) * x):
        np.testing.assert_array_equal(pullback.jit(fun)(x, mask), np.array([0, 0, 0, 3], dtype))
    slope = pullback.jit(pullback.grad(lambda x, m: (x * m.astype(x.dtype)).sum().real, holomorphic=False))
    if dtype != np.complex64:
        np.testing.assert_array_equal(slope(x, mask), mask)
    infinite = pullback.jit(lambda m: np.array(np.inf, dtype) * m.astype(dtype))(mask)
    assert not np.asarray(infinite)[:3].any()
    wide = pullback.jit(lambda x, m: x * m[0].astype(x.dtype))(x, mask)
    assert np.isnan(np.asarray(wide)[0])  # a mask that is broadcast is a factor


def test_roots_of_squares_that_overflow_and_their_slopes():
    x = np.array([1e30, -1e30, 1e-30, -0.0, np.inf, np.nan], np.float32)
    root = pullback.jit(lambda x: lax.sqrt(lax.mul(x, x)))
    np.testing.assert_array_equal(root(x), np.abs(x))
    slope = pullback.jit(pullback.vmap(pullback.grad(lambda x: lax.sqrt(lax.mul(x, x)))))
    np.testing.assert_array_equal(slope(x), [1, -1, 1, np.nan, np.nan, np.nan])


def test_a_scalar_over_many_equal_numbers():
    """The product with the reciprocal was a scalar, too."""
    f = pullback.jit(lambda x: pullback.vmap(lambda y: x / y)(pullback.numpy.full((3, 2), 2.0)))
    np.testing.assert_array_equal(f(3.0), np.full((3, 2), 1.5))
    names, _ = optimized(lambda x: [lax.div_p.bind(x, lax.full((3,), F(0.25)))], F(3))
    assert "div" not in names


def test_zero_less_zero_is_no_negation():
    """-0 was the result in bfloat16, which NumPy does not count among floats."""
    for dtype, left in (("float32", "sub"), ("bfloat16", "sub"), ("int32", "neg")):
        x = pullback.numpy.zeros(3, dtype)
        assert optimized(lambda x: [lax.sub(lax.full_like(x, 0), x)], x)[0] == [left]


@pytest.mark.parametrize("n", [10, 50_000])
def test_sum_of_a_progression_is_a_number(n):
    names, after = optimized(lambda: [lax.reduce_sum_p.bind(lax.iota(np.int32, n), axes=(0,))])
    assert names == []
    (atom,) = after.jaxpr.outvars
    assert type(atom) is Literal and int(atom.val) == int(np.int32(np.int64(n * (n - 1) // 2) & 0xFFFFFFFF))


def test_unused_results_of_loops_go():
    def fun(x):
        (a, _), _ = lax.scan(lambda c, r: ((lax.mul(c[0], r), lax.exp(c[1])), lax.sin(r)), (x[0], x[0]), x)
        return [a]

    _, after = optimized(fun, X)
    (scan,) = [e for e in after.eqns if e.primitive.name == "scan"]
    assert [e.primitive.name for e in scan.params["jaxpr"].eqns] == ["mul"]


def test_checkpoint_recomputes():
    def loss(x):
        return lax.reduce_sum_p.bind(pullback.checkpoint(lambda x: lax.sin(lax.sin(x)))(x), axes=(0, 1))

    names, _ = optimized(lambda x: [pullback.grad(loss)(x)], X)
    assert names.count("sin") == 1  # of the derivative alone; the loss itself is not asked for
    names, _ = optimized(lambda x: list(pullback.value_and_grad(loss)(x)), X)
    assert names.count("sin") == 3


def test_calls_are_inlined():
    f = pullback.jit(lambda x: lax.sin(x))
    assert optimized(lambda x: [f(f(x))], X)[0] == ["sin", "sin"]


def test_products_of_one_factor_are_added_first():
    def fun(x, a):
        return [
            lax.add(
                lax.transpose(lax.dot(a, lax.transpose(x, (1, 0))), (1, 0)),
                lax.transpose(lax.dot_general(a, x, (((0,), (1,)), ((), ()))), (1, 0)),
            )
        ]

    x = np.random.default_rng(1).integers(-3, 3, (90, 20)).astype(np.float32)
    names, _ = optimized(fun, x, x[:20])
    assert names.count("dot_general") == 1 and "transpose" in names


def test_product_with_an_identity_is_movement():
    def fun(x):
        eye = lax.convert_element_type(
            lax.eq(lax.broadcasted_iota(np.int32, (5, 5), 0), lax.broadcasted_iota(np.int32, (5, 5), 1)), F
        )
        return [lax.dot(x, eye), lax.dot_general(eye, x, (((0,), (1,)), ((), ())))]

    assert optimized(fun, X)[0] == ["transpose"]


def test_invariant_work_leaves_the_loop():
    def fun(w, xs):
        return [lax.scan(lambda c, x: (lax.mul(c, lax.dot(lax.exp(w), x)), None), xs[0], xs)[0]]

    x = np.random.default_rng(1).integers(0, 2, (12, 12)).astype(np.float32)
    names, after = optimized(fun, x, x)
    scan = after.eqns[-1]
    assert names == ["slice", "reshape", "exp", "scan"] or names == ["exp", "slice", "reshape", "scan"]
    assert [e.primitive.name for e in scan.params["jaxpr"].eqns] == ["dot_general", "mul"]


def test_invariant_operands_of_products_leave_the_loop():
    """However little they cost: they are in memory in any case."""

    def fun(w, xs):
        scaled = lambda: lax.transpose(lax.sub(w, lax.broadcast_in_dim(xs[0], (12, 12), (1,))), (1, 0))
        return [lax.fori_loop(0, 3, lambda _, c: lax.add(lax.mul(c, w), lax.dot(scaled(), c)), w)]

    x = np.random.default_rng(1).integers(0, 2, (12, 12)).astype(np.float32)
    _, after = optimized(fun, x, x)
    names = [e.primitive.name for e in after.eqns[-1].params["jaxpr"].eqns]
    assert "sub" not in names and "mul" in names


def test_lookups_leave_the_loop():
    """And places as a scatter has them in memory, though they cost little; what is added stays."""

    def ranks(r, to, of, degree):
        step = lambda _, r: 0.15 + jnp.zeros(5).at[to].add(r[of] / degree[of])
        return [lax.fori_loop(0, 3, step, r)]

    to, of = np.random.default_rng(1).integers(0, 5, (2, 30)).astype(np.int32)
    degree = np.arange(1, 6).astype(F)
    _, after = optimized(ranks, np.ones(5, F), to, of, degree)
    (scan,) = [e for e in after.eqns if e.primitive.name == "scan"]
    inside = [e.primitive.name for e in scan.params["jaxpr"].eqns]
    assert inside.count("gather") == 1 and inside.count("select_n") <= 1
    r = np.ones(5)
    for _ in range(3):
        r = 0.15 + np.bincount(to, r[of] / degree[of], minlength=5)
    np.testing.assert_allclose(pullback.jit(lambda *a: ranks(*a)[0])(np.ones(5, F), to, of, degree), r, rtol=1e-5)


@pytest.mark.parametrize("batch, moved", [(16, True), (2, False)])
def test_transposes_that_are_read_again_and_again_leave_the_loop(batch, moved):
    """They would be stored in each step; what is read little is read as it lies."""

    def step(c, w):
        turned = lax.broadcast_in_dim(lax.transpose(w, (1, 0)), (batch, 12, 12), (1, 2))
        return lax.reduce_max(lax.add(lax.broadcast_in_dim(c, (batch, 12, 12), (0, 2)), turned), axes=(2,))

    x = np.random.default_rng(1).integers(0, 9, (12, 12)).astype(np.float32)
    names, after = optimized(lambda w, c: [lax.fori_loop(0, 3, lambda _, c: step(c, w), c)], x, np.ones((batch, 12), F))
    inside = [e.primitive.name for e in after.eqns[-1].params["jaxpr"].eqns]
    assert ("transpose" in names) == moved and ("transpose" in inside) != moved


def test_transposes_that_are_only_shown_stay_in_the_loop():
    shown = []

    def step(_, c):
        pullback.debug.callback(lambda w: shown.append(w.shape), lax.transpose(c[1], (1, 0)))
        return c[0] + 1, c[1]

    count, _ = pullback.jit(lambda w: lax.fori_loop(0, 3, step, (0, w)))(np.ones((4, 5), F))
    pullback.effects_barrier()
    assert count == 3 and shown == [(5, 4)] * 3


def test_products_over_few_elements_are_written_out():
    assert optimized(lambda x: [lax.add(lax.dot(lax.transpose(x, (1, 0)), x), F(1))], X)[0] == ["inner_product", "add"]


@pytest.mark.parametrize("terms", [4, 8])
def test_unless_these_lie_apart_and_the_result_is_stored(terms):
    """Scores of attention with 8 numbers a head: lanes gathered each of them, 1.5 ms where the parts take 0.5."""
    q = np.random.default_rng(0).normal(size=(20, terms)).astype(F)

    def written_out(fun):
        return "inner_product" in optimized(fun, q)[0]

    def scores(q):
        return lax.dot(q, lax.transpose(q, (1, 0)))

    assert written_out(lambda q: [scores(q)]) == written_out(lambda q: [scores(q) * 2 @ q]) == (terms == 4)
    assert written_out(lambda q: [lax.reduce_sum(lax.exp(scores(q)), (1,))])
    assert written_out(lambda q: [lax.exp(scores(q))])
    assert written_out(lambda q: [lax.dot(q, np.sin(np.arange(30 * terms, dtype=F)).reshape(terms, 30))])


@pytest.mark.parametrize("dtype", ["f4", "c8", "i4", "bool", "bfloat16"])
def test_products_without_free_axes_are_sums(dtype):
    r = np.random.default_rng(0)
    x, y = (pullback.numpy.asarray(r.integers(0, 2, s), dtype) for s in ((10, 3, 9), (9, 10, 3)))

    def fun(x, y):
        batched = lax.dot_general(x, y, (((0, 2), (1, 0)), ((1,), (2,))))
        return [batched, lax.dot_general(x[:, 0, 0], y[0, :, 0], (((0,), (0,)), ((), ())))]

    names, after = optimized(fun, x, y)
    assert "dot_general" not in names and names.count("reduce_or" if dtype == "bool" else "reduce_sum") == 2
    assert [str(v.aval.dtype) for v in after.jaxpr.outvars] == [str(x.dtype)] * 2


def test_loops_in_batches_of_batches_choose_once():
    """What an outer batch of loops holds where a row is done, the inner one holds for each element."""
    steps = lambda c: lax.while_loop(lambda s: (s[1] < 9) & (s[0] < 2), lambda s: (s[0] + c, s[1] + 1), (0 * c, 0))
    c = np.random.default_rng(0).random((2, 3, 4)).astype(np.float32)
    f = pullback.vmap(pullback.vmap(pullback.vmap(steps)))
    (loop,) = [e for e in optimize_jaxpr(pullback.make_jaxpr(f)(c)).eqns if e.primitive.name == "while"]
    body, cond = ([e.primitive.name for e in loop.params[k].eqns] for k in ("body_jaxpr", "cond_jaxpr"))
    assert body.count("select_n") == 2 and "reduce_or" not in body and cond.count("reduce_or") == 1
    for got, want in zip(pullback.jit(f)(c), zip(*(steps(v) for v in c.reshape(-1)))):
        np.testing.assert_array_equal(np.ravel(got), np.asarray(want))


@pytest.mark.parametrize("which", [np.bool_(False), np.bool_(True), "each"])
def test_a_choice_that_is_known_has_its_shape_where_the_chosen_is_one_number(which):
    @pullback.jit
    def f(x, number):
        mask, cases = (x > 1, (number, number)) if which == "each" else (which, (number, number + x))
        return registry["select_n"].bind(mask, *cases)

    x = np.arange(3.0, dtype=np.float32)
    np.testing.assert_array_equal(f(x, np.float32(3)), 3 + x * (which is np.bool_(True)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.argmax(x, 1),
        lambda x: jnp.argmin(x, 1, keepdims=True),
        lambda x: jnp.prod(x, 1),
        lambda x: jnp.all(x > 0, 1),
        lambda x: jnp.cumsum(x, 1),
        lambda x: jnp.cumprod(x, 1),
        lambda x: lax.cummax(x, 1),
        lambda x: lax.cumlogsumexp(x, 1),
        lambda x: lax.sort((x, 2 * x), 1),
        lambda x: jnp.argsort(x, 1),
    ],
)
def test_an_axis_of_one_element_has_nothing_to_reduce_or_to_sort(f):
    x = jnp.asarray([[[1.0, -0.0, jnp.nan]], [[-jnp.inf, 2.0, 3.0]]])
    text = pullback.jit(f).lower(x).as_text("nests")
    assert "reduce" not in text and "scan" not in text and "call" not in text
    for ours, want in zip(pullback.tree.leaves(pullback.jit(f)(x)), pullback.tree.leaves(f(x))):
        assert ours.dtype == want.dtype
        np.testing.assert_array_equal(ours, want)


def test_a_place_that_is_known_is_a_number():
    x = jnp.ones((1, 50, 70))
    text = pullback.jit(lambda x: jnp.where(jnp.argmax(x, 0, keepdims=True) > 0, x, 0)).lower(x).as_text("nests")
    assert "x0[" not in text


@pytest.mark.parametrize("name", ["sum", "max", "min", "all"])
def test_a_reduction_of_a_reduction_is_one(name):
    x = np.random.default_rng(0).standard_normal((6, 8, 5, 3)).astype("f4")
    x = x > -1 if name == "all" else x

    def f(x):
        y = getattr(jnp, name)(x, axis=3)
        return getattr(jnp, name)(y.reshape(6, 4, 2, 5), axis=2)

    text = pullback.jit(f).lower(x).as_text("jaxpr")
    assert text.count(" reduce_") == 1
    np.testing.assert_allclose(pullback.jit(f)(x), getattr(np, name)(x.reshape(6, 4, 2, 5, 3), axis=(2, 4)), rtol=1e-5)


def test_but_not_where_the_first_is_wanted_or_axes_are_joined_between():
    x = np.random.default_rng(0).standard_normal((6, 8, 5)).astype("f4")
    rows = lambda x: (lambda y: (y, y.sum(0)))(x.sum(2))
    assert pullback.jit(rows).lower(x).as_text("jaxpr").count(" reduce_") == 2
    joined = lambda x: x.sum(1).reshape(15, 2).sum(1)
    assert pullback.jit(joined).lower(x).as_text("jaxpr").count(" reduce_") == 2
    np.testing.assert_allclose(pullback.jit(joined)(x), x.sum(1).reshape(15, 2).sum(1), rtol=1e-5)
    many = np.ones((40, 50), "f4")
    assert pullback.jit(lambda x: x.sum(1).sum()).lower(many).as_text("jaxpr").count(" reduce_") == 2
    none = np.zeros((0, 4), "f4")
    np.testing.assert_array_equal(pullback.jit(lambda x: x.sum(1).reshape(3, 0).sum(1))(none), np.zeros(3, "f4"))
