"""Which equations share a loop nest, by counting nests, loops, stores and temporaries."""

import functools

import numpy as np
import pytest
from lowering_checks import check, lax, normal, spread, total

import pullback.numpy as pnp
from pullback import jit
from pullback.loops.ir import Call
from pullback.loops.ir.visit import stored

F = np.float32


def test_elementwise_chain_is_one_flat_loop():
    r = check(lambda x, y: lax.add(lax.mul(lax.sin(x), y), F(2)), normal(4, 5), normal(4, 5, seed=1))
    assert (r.nests, r.loops, r.stores, r.buffers("temporary")) == (1, 1, 1, 0)


def test_optimizer_update_is_one_pass():
    def update(p, m, v, g):
        m = lax.add(lax.mul(m, F(0.9)), lax.mul(g, F(0.1)))
        v = lax.add(lax.mul(v, F(0.99)), lax.mul(lax.mul(g, g), F(0.01)))
        return lax.sub(p, lax.div(lax.mul(m, F(0.1)), lax.add(lax.sqrt(lax.abs(v)), F(1e-6)))), m, v

    x = normal(30, 7)
    r = check(update, x, x + 1, x * x, x - 2)
    assert (r.nests, r.loops, r.stores, r.buffers("temporary")) == (1, 1, 3, 0)
    assert r.lowered.bytes_moved == 7 * x.nbytes


def softmax(x):
    m = lax.reduce_max_p.bind(x, axes=(x.ndim - 1,))
    rows = tuple(range(x.ndim - 1))
    e = lax.exp(lax.sub(x, spread(m, x.shape, rows)))
    s = lax.reduce_sum_p.bind(e, axes=(x.ndim - 1,))
    return lax.div(e, spread(s, x.shape, rows))


@pytest.mark.parametrize("shape", [(6, 50), (2, 3, 50), (7,), (5, 1), (1, 5)])
def test_softmax_stays_in_its_rows(shape):
    r = check(softmax, normal(*shape))
    assert r.buffers("temporary") == 0
    if len(shape) > 1 and shape[-1] > 1 and shape[0] > 1:
        assert (r.nests, r.loops) == (1, 4)
        assert r.lowered.bytes_moved == 2 * 4 * np.prod(shape)


def test_layer_norm_recomputes_what_is_cheap():
    def norm(x):
        n = x.shape[1]
        mean = lax.div(lax.reduce_sum_p.bind(x, axes=(1,)), F(n))
        d = lax.sub(x, spread(mean, x.shape, (0,)))
        var = lax.div(lax.reduce_sum_p.bind(lax.mul(d, d), axes=(1,)), F(n))
        return lax.mul(d, spread(lax.rsqrt(lax.add(var, F(1e-5))), x.shape, (0,)))

    r = check(norm, normal(8, 40))
    assert (r.nests, r.buffers("temporary"), r.buffers("local")) == (1, 0, 0)


def test_logsumexp_keeps_rows_in_registers():
    def logsumexp(x):
        m = lax.reduce_max_p.bind(x, axes=(1,))
        s = lax.reduce_sum_p.bind(lax.exp(lax.sub(x, spread(m, x.shape, (0,)))), axes=(1,))
        return lax.add(lax.log(s), m)

    r = check(logsumexp, normal(9, 30))
    assert (r.nests, r.loops, r.stores) == (1, 3, 1)


def test_sibling_reductions_and_stores_share_a_loop():
    def fun(x, y):
        d = lax.sub(x, y)
        return total(lax.mul(d, d)), total(x), lax.mul(d, F(2))

    r = check(fun, normal(20, 30), normal(20, 30, seed=1), rtol=1e-4)
    assert (r.nests, r.loops) == (1, 1)


def _norm_gradients(x, ct, *, groups):
    """Of (x - mean) * g with means of groups of the last axis, times ct: that of x, and of g for each column."""
    rows, columns = x.shape
    each = columns // groups

    def centered(v):
        split = lax.reshape(v, new_sizes=(rows, groups, each))
        mean = spread(lax.div(lax.reduce_sum_p.bind(split, axes=(2,)), F(each)), split.shape, (0, 1))
        return lax.sub(v, lax.reshape(mean, new_sizes=(rows, columns)))

    return centered(ct), lax.reduce_sum_p.bind(lax.mul(centered(x), ct), axes=(0,))


@pytest.mark.parametrize("groups", [1, 4])
def test_what_is_made_of_sums_along_rows_is_not_stored_by_loops_over_columns(groups):
    """The gradients of a layer norm, and of one by groups: else each would be read and written once more."""
    fun = functools.partial(_norm_gradients, groups=groups)
    r = check(fun, normal(40, 96), normal(40, 96, seed=1), rtol=1e-4)
    (nest,) = [loop for loop in r.lowered.function.body if any(b.name == "y0" for b in stored((loop,)))]
    assert nest.extent.value == 40


def test_views_are_free():
    def fun(x):
        return lax.add(lax.transpose(x, (1, 0)), lax.rev(x, (0,)))

    r = check(fun, normal(6, 6))
    assert (r.nests, r.stores, r.buffers("temporary")) == (1, 1, 0)


def test_elements_that_are_wanted_again_are_stored_where_they_lie_apart_or_are_computed():
    pairs = lambda x: abs(x[:20, None] - x[None, :20]).sum(-1)
    assert check(pairs, normal(20, 700)).buffers("temporary") == 0
    assert check(lambda x: pairs(x[:, :, 1]), normal(20, 700, 3)).buffers("temporary") == 1
    assert check(lambda x: pairs(x[:, ::2]), normal(20, 1400)).buffers("temporary") == 1
    assert check(lambda x: pairs(x[1:] - x[:-1]), normal(21, 700)).buffers("temporary") == 1
    assert check(lambda x: x[:, :, 1] * 2 + x[:, 0, 0, None], normal(20, 700, 3)).buffers("temporary") == 0


def test_a_transpose_that_is_turned_back_is_not_stored():
    """As that of bytes whose bits are taken apart along the first axis; unless it is wanted as it is."""
    outer = lambda x: (x.T[:, :, None] * x[0, :8]).reshape(100, 64)
    assert check(lambda x: outer(x).T, normal(8, 100)).buffers("temporary") == 0
    again = lambda x: x.T[None] * x[0, :8, None, None]
    assert check(again, normal(8, 100)).buffers("temporary") == 1


def test_elements_that_are_dealt_out_are_not_stored():
    """A roll reads a concatenation at two indices, but each element of it at one of them only."""

    def shifted(x, n):
        return lax.concatenate([lax.slice(x, (x.shape[0] - n,), x.shape), lax.slice(x, (0,), (x.shape[0] - n,))], 0)

    def chain(x, y):
        padded = lax.pad(lax.concatenate([x, y], 0), F(0), [(3, 5, 0)])
        return lax.mul(lax.rev(shifted(padded, 7), (0,)), F(2))

    r = check(chain, normal(100), normal(50, seed=1))
    assert (r.nests, r.stores, r.buffers("temporary")) == (1, 1, 0)

    def twice(x, y):  # all elements are wanted at both indices
        joined = lax.concatenate([x, y], 0)
        return lax.concatenate([joined, lax.rev(joined, (0,)), joined], 0)

    assert check(twice, normal(100), normal(50, seed=1)).buffers("temporary") == 1

    def often(x):  # doubling indices at every step would be exponential
        for k in range(12):
            x = lax.mul(shifted(x, k + 1), F(2))
        return x

    r = check(often, normal(100))
    assert 1 <= r.buffers("temporary") < 12


def test_pad_and_concatenate_read_nothing_outside():
    def fun(x):
        padded = lax.pad(lax.exp(x), F(1), [(1, 2, 1), (-1, 2, 0)])
        return padded, lax.concatenate([lax.sin(x), x, lax.neg(x)], 0)

    check(fun, normal(3, 4))


@pytest.mark.parametrize("steps", [5, 40])
def test_work_is_never_multiplied(steps):
    def fun(x):
        for _ in range(steps):
            x = lax.add(lax.mul(lax.sin(x), F(1.01)), lax.mul(lax.rev(x, (0,)), F(0.1)))
        return x

    x = normal(10)
    r = check(fun, x)
    assert sum(f.operations for f in r.lowered.report) <= 6 * steps * x.size
    assert r.nests == steps


def test_long_chains_do_not_exhaust_the_stack():
    def fun(x):
        for _ in range(1500):
            x = lax.add(lax.mul(x, F(0.99)), F(0.01))
        return x

    r = check(fun, normal(8))
    assert r.nests == 1


def test_expensive_values_are_not_computed_per_column():
    def fun(x, bias):
        return lax.add(x, spread(lax.exp(lax.sin(bias)), x.shape, (1,)))

    r = check(fun, normal(50, 6), normal(6))
    assert r.nests == 2


def test_values_of_rows_are_hoisted():
    def fun(x, scale):
        return lax.mul(x, spread(lax.exp(lax.sin(scale)), x.shape, (0,)))

    r = check(fun, normal(50, 6), normal(50))
    assert (r.nests, r.loops) == (1, 2)


def test_scalars_live_in_registers():
    def fun(x, a):
        b = lax.mul(lax.exp(a), F(2))
        return lax.mul(x, spread(b, x.shape, ())), lax.add(x, spread(b, x.shape, ()))

    r = check(fun, normal(10), F(0.5))
    assert r.buffers("temporary") == 0


def test_reshapes_of_results_are_views():
    def fun(x):
        y = lax.reshape(lax.exp(x), (2, 10))
        return y, lax.reshape(x, (20,))

    r = check(fun, normal(4, 5))
    assert r.buffers("temporary") == 0


def test_empty_arrays():
    r = check(lambda x: [lax.exp(x), total(x), lax.reduce_max_p.bind(x, axes=(1,))], normal(0, 3))
    assert r.outputs[0].shape == (0, 3)


def test_temporaries_are_taken_over():
    def fun(x):
        y = lax.exp(x)
        z = lax.add(y, spread(total(y), y.shape, ()))
        return lax.mul(z, spread(total(z), z.shape, ()))

    r = check(fun, normal(30, 30), rtol=1e-3)
    assert r.buffers("temporary") <= 1


def test_results_that_are_arguments_or_numbers():
    r = check(lambda x, y: [y, x, lax.add(x, y), y, F(3)], normal(3), normal(3, seed=1))
    assert r.nests == 1


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(24, 24), (24, 40), (40, 24)])
def test_values_kept_within_rows_of_either_axis(shape, axis):
    """The gradient of a normalization keeps values of a row from one of its loops to the next."""

    def norm_gradient(x, y):
        n, kept = F(shape[axis]), (1 - axis,)
        mean = lax.div(lax.reduce_sum_p.bind(x, axes=(axis,)), n)
        d = lax.sub(x, spread(mean, shape, kept))
        var = lax.div(lax.reduce_sum_p.bind(lax.mul(d, d), axes=(axis,)), n)
        scale = lax.div(lax.reduce_sum_p.bind(lax.mul(d, y), axes=(axis,)), lax.add(var, F(1)))
        z = lax.mul(lax.mul(d, F(2)), spread(scale, shape, kept))
        return lax.add(z, spread(lax.reduce_sum_p.bind(z, axes=(axis,)), shape, kept))

    check(norm_gradient, normal(*shape), normal(*shape, seed=1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 3), (5, 5), (3, 3, 3), (4, 2, 4)])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_along_any_axis_of_equal_extents(shape, axis):
    def normalized(x):
        x = lax.tanh(lax.sin(x))  # kept for the second loop
        rest = tuple(d for d in range(x.ndim) if d != axis)
        e = lax.exp(lax.sub(x, spread(lax.reduce_max_p.bind(x, axes=(axis,)), x.shape, rest)))
        return lax.div(e, spread(lax.reduce_sum_p.bind(e, axes=(axis,)), x.shape, rest))

    check(normalized, normal(*shape))


def test_memory_is_not_taken_over_from_values_that_other_rows_still_read():
    def gradient(x):
        x = lax.tanh(x)
        outer = lax.tanh(lax.mul(spread(x, (3, 3), (0,)), spread(x, (3, 3), (1,))))
        rows = lax.reduce_sum_p.bind(lax.mul(outer, spread(x, (3, 3), (0,))), axes=(0,))
        columns = lax.reduce_sum_p.bind(lax.mul(outer, spread(x, (3, 3), (1,))), axes=(1,))
        return lax.mul(lax.add(rows, columns), lax.sub(F(1), lax.mul(x, x)))

    check(gradient, normal(3))


@pytest.mark.parametrize(("shape", "axis"), [((20, 48), 0), ((3, 20, 48), 1), ((4, 5, 40), 0), ((1, 20, 48), 1)])
def test_softmax_along_other_axes_is_one_nest(shape, axis):
    kept = tuple(a for a in range(len(shape)) if a != axis)

    def fun(x):
        m = lax.reduce_max_p.bind(x, axes=(axis,))
        e = lax.exp(lax.sub(x, spread(m, shape, kept)))
        return lax.div(e, spread(lax.reduce_sum_p.bind(e, axes=(axis,)), shape, kept))

    r = check(fun, normal(*shape))
    assert (r.nests, r.buffers("temporary"), r.buffers("local")) == (1, 0, 0)


def test_statistics_of_columns_stay_in_registers():
    def norm(x):
        n = x.shape[0]
        mean = lax.div(lax.reduce_sum_p.bind(x, axes=(0,)), F(n))
        d = lax.sub(x, spread(mean, x.shape, (1,)))
        var = lax.div(lax.reduce_sum_p.bind(lax.mul(d, d), axes=(0,)), F(n))
        return lax.mul(d, spread(lax.rsqrt(lax.add(var, F(1e-5))), x.shape, (1,)))

    r = check(norm, normal(30, 48))
    assert (r.nests, r.buffers("temporary"), r.buffers("local")) == (1, 0, 0)


def test_few_columns_are_not_walked_one_by_one():
    def fun(x):
        return lax.sub(x, spread(lax.reduce_max_p.bind(x, axes=(0,)), x.shape, (1,)))

    assert check(fun, normal(500, 3)).nests == 2


def test_what_reads_no_array_of_its_size_is_repeated():
    def banded(v):
        n = v.shape[0]
        rows, columns = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
        eye = lax.convert_element_type(lax.eq(rows, columns), np.float32)
        scaled = lax.mul(eye, spread(v, eye.shape, (1,)))
        left = lax.slice(scaled, (0, 0), (n, n - 1))
        right = lax.slice(scaled, (0, 1), (n, n))
        return lax.sub(right, left)

    r = check(banded, normal(30))
    assert (r.nests, r.buffers("temporary")) == (1, 0)


def test_reduction_joins_an_update_that_waits_for_a_product():
    """The loss and the update read the same arrays: one pass, lifted above the product's consumers, not below."""

    def fun(x, w):
        y = lax.exp(x)
        loss = total(lax.mul(y, y))
        product = lax.dot_general(x, w, (((1,), (0,)), ((), ())))
        return lax.add(loss, F(1)), lax.sub(x, lax.mul(lax.add(y, product), F(0.1)))

    r = check(fun, normal(70, 30), normal(30, 30, seed=1))
    assert r.nests == 3  # the product, the pass over x, the scalar
    assert "exp" not in r.lowered.report_text()


def test_rows_that_feed_each_other_are_not_both_joined():
    """Each would wait for the other's reduction, in the elements that follow its own."""
    x, y = normal(40, 30), normal(40, 30, seed=1)

    def f(x, y):
        a, b = x.max(1), y.max(1)
        return pnp.exp(x - a[:, None]) * b[0], pnp.exp(y - b[:, None]) * a[0]

    a, b = x.max(1), y.max(1)
    want = np.exp(x - a[:, None]) * b[0], np.exp(y - b[:, None]) * a[0]
    for got, expected in zip(jit(f)(x, y), want):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_group_is_not_lifted_above_what_it_needs():
    def fun(x, w):
        scale = total(lax.exp(x))
        product = lax.dot_general(lax.mul(x, lax.mul(scale, F(1e-4))), w, (((1,), (0,)), ((), ())))
        return lax.add(lax.exp(x), product), scale

    check(fun, normal(70, 30), normal(30, 30, seed=1), atol=1e-4)


def test_no_recursion_ends_a_chain():
    """10,400 operations in a row, which took more frames than a program may have."""
    x, y = np.full(3, 0.3, F), np.full(3, 0.75, F)

    def chain(x, y):
        for _ in range(5200):
            x = lax.add(lax.mul(x, y), y)
        return x

    np.testing.assert_array_equal(jit(chain)(x, y), chain(x, y))


def test_calls_read_slices_of_memory_where_they_lie():
    """Elements in a row, of an argument or of another call's result; others are copied, and what is computed stored."""

    def copies(fun, *args):
        body = jit(fun).lower(*args).compile()._program.lowered.function.body
        return sum(not isinstance(stmt, Call) for stmt in body)

    def spectrum(x):
        return lax.fft(x, "fft", x.shape[-1:])

    x = normal(6, 64).astype(np.complex64)
    assert copies(lambda x: spectrum(x[2:5]), x) == 0
    assert copies(lambda x: spectrum(spectrum(x).reshape(12, 32)[4:8]), x) == 0
    assert copies(lambda x: spectrum(x[1:2, 32:]), x) == 0
    assert copies(lambda x: spectrum(x[:, 32:]), x) == 1
    assert copies(lambda x: spectrum(x[::2]), x) == 1
    assert copies(lambda x: spectrum((x * 2)[2:5]), x) == 1  # of which the rest is not computed
    for fun in (lambda x: spectrum(x[2:5]), lambda x: spectrum(spectrum(x).reshape(12, 32)[4:8])):
        np.testing.assert_allclose(jit(fun)(x), fun(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("called", [False, True])
def test_reshaped_transpositions_are_stored_by_loops_over_their_own_axes(called):
    x = np.random.default_rng(0).standard_normal((2, 8, 9, 12)).astype("f4")

    def to_space(x):
        y = x.reshape(2, 8, 9, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 16, 18, 3)
        return lax.sort(y.reshape(32, 54), dimension=1) if called else y

    text = jit(to_space).lower(x).as_text("loops")
    assert "floordiv" not in text and "floormod" not in text
    want = x.reshape(2, 8, 9, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5)
    want = np.sort(want.reshape(32, 54), 1) if called else want.reshape(2, 16, 18, 3)
    np.testing.assert_array_equal(jit(to_space)(x), want)


def test_every_second_element_is_read_where_both_halves_are_put_side_by_side_again():
    def turned(x, c, s):
        a, b = lax.slice(x, (0, 0), (50, 63), (1, 2)), lax.slice(x, (0, 1), (50, 64), (1, 2))
        c, s = spread(c, a.shape, (1,)), spread(s, a.shape, (1,))
        even = lax.pad(lax.sub(lax.mul(a, c), lax.mul(b, s)), F(0), [(0, 0, 0), (0, 1, 1)])
        odd = lax.pad(lax.add(lax.mul(a, s), lax.mul(b, c)), F(0), [(0, 0, 0), (1, 0, 1)])
        return lax.add(even, odd)

    r = check(turned, normal(50, 64), normal(32), normal(32, seed=1))
    assert (r.nests, r.buffers("temporary")) == (1, 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_pieces_of_a_join_that_share_work_are_one_pass(axis):
    def unit(x, y, z):
        r = lax.sqrt(lax.add(lax.add(lax.mul(x, x), lax.mul(y, y)), lax.mul(z, z)))
        return lax.concatenate([lax.expand_dims(lax.div(v, r), (axis,)) for v in (x, y, z)], axis)

    r = check(unit, *(normal(40, 500, seed=k) + F(2) for k in range(3)))
    assert (r.nests, r.buffers("temporary")) == (1, 0)
    assert r.loops == (2 if axis == 0 else 3)  # the pieces are the innermost one


def test_pieces_that_are_only_moved_are_copied_one_after_the_other():
    pieces = lambda x, y: lax.concatenate([lax.expand_dims(v, (0,)) for v in (y, x, y)], 0)
    r = check(pieces, normal(40, 500), normal(40, 500, seed=1))
    assert (r.nests, r.loops) == (1, 2)


def test_turned_joins_are_one_pass():
    x = normal(3, 2000)
    jitted = jit(lambda x: pnp.cross(x, pnp.sin(x), axis=0))
    text = jitted.lower(x).as_text("nests")
    assert text.count("sin") <= 1 and "temporary" not in text
    np.testing.assert_allclose(jitted(x), np.cross(x, np.sin(x), axis=0), rtol=2e-5, atol=2e-5)
