"""Sorts and selections against NumPy: every type, special values, ties, any number of threads, no sorting where places
are enough."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.lax.ordering.selection import argpartition, order_statistics, partition

TYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "bf16"]
SHAPES = [0, 1, 15, 16, 17, (300, 2), (70, 8), (70, 9), 4097, 40_000, (5, 7), (3, 20_000), (200, 40)]


@pytest.fixture(params=[1, 3])
def threads(request):
    before = _core.num_threads()
    _core.set_num_threads(request.param)
    yield
    _core.set_num_threads(before)


pytestmark = pytest.mark.usefixtures("x64")


def values(name, shape, few):
    rng = np.random.default_rng(5)
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bf16" else np.dtype(name)
    if dtype.kind in "fV":
        x = rng.standard_normal(shape).astype(dtype)
        if few:
            flat = x.reshape(-1)
            flat[::3] = np.round(flat[::3].astype("f4")).astype(dtype)
            flat[::7], flat[1::5] = -0.0, np.nan
            flat[2::11] = np.copysign(np.array(np.nan, "f4"), -1).astype(dtype)
        return x
    if dtype.kind == "b":
        return rng.random(shape) > 0.5
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True) % dtype.type(7 if few else info.max)


def bits(x):
    return np.ascontiguousarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def wide_of(x):
    """Of a type that NumPy sorts rightly: with AVX-512, NumPy 2.4 puts some -0.0 before small negative float16."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype == np.float16 else x


def order_of(x):
    return np.argsort(wide_of(x), -1, kind="stable")


@pytest.mark.sample(26)
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_sorts_are_stable_and_keep_bits(name, few, threads):
    for shape in SHAPES:
        x = values(name, shape, few)
        order = order_of(x)
        expected = np.take_along_axis(x, order, -1)
        np.testing.assert_array_equal(bits(np.asarray(pb.jit(jnp.sort)(x))), bits(expected))
        np.testing.assert_array_equal(np.asarray(pb.jit(jnp.argsort)(x)), order)
        payload = np.broadcast_to(np.arange(x.shape[-1], dtype=np.int32), x.shape)
        keys, payloads = pb.jit(lax.sort_key_val)(x, payload)
        np.testing.assert_array_equal(bits(np.asarray(keys)), bits(expected))
        np.testing.assert_array_equal(np.asarray(payloads), order)


@pytest.mark.parametrize("name", ["u4", "u8", "i4", "i8", "f4", "f8"])
def test_sorts_of_uneven_rows(name, threads):
    """Orders and ties in which pivots taken from a sample are the least element, or nearly so, again and again."""
    rng = np.random.default_rng(7)
    dtype = np.dtype(name)
    run = pb.jit(jnp.sort)
    for n in (513, 2051, 70_003):
        i = np.arange(n)
        pipe, step = np.minimum(i, n - i), max(1, n // 64)
        hidden = np.where(i % step == step // 2, i // step, n + pipe)  # what samples see are the least elements
        rows = [i, i[::-1], pipe, pipe[::-1], i * 0, i % 2, i % 5, i > 0, i == n - 1, hidden, i & -i]
        rows = [np.asarray(row).astype(dtype) for row in rows]
        if dtype.kind == "f":
            parts = [(np.nan, 0.9), (np.nan, 1), (np.inf, 0.6), (-np.inf, 0.6), (-0.0, 0.5)]
            rows += [np.where(rng.random(n) < part, dtype.type(value), values(name, n, True)) for value, part in parts]
        else:
            rows += [row + np.iinfo(dtype).min for row in rows[:3]] + [np.iinfo(dtype).max - row for row in rows[:3]]
        for row in rows:
            np.testing.assert_array_equal(bits(np.asarray(run(row))), bits(row[order_of(row)]))


def total_order(x):
    """Numbers in the total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    if x.dtype.kind in "biu":
        return x
    bits_of = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits_of < 0, bits_of ^ np.iinfo(bits_of.dtype).max, bits_of)


@pytest.mark.sample(18)
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_selections(name, few, threads):
    for shape in SHAPES:
        x = values(name, shape, few)
        n = x.shape[-1]
        if not n:
            continue
        ordered = np.take_along_axis(x, order_of(x), -1)
        places = sorted({0, n // 3, n // 2, n - 1})
        found = pb.jit(lambda x, places=tuple(places): order_statistics(x, places, x.ndim - 1))(x)
        np.testing.assert_array_equal(bits(np.asarray(found)), bits(ordered[..., places]))
        descending = n - 1 - np.flip(np.argsort(np.flip(total_order(x), -1), -1, kind="stable"), -1)
        for k in {0, min(10, n), n // 3, n}:
            got, numbers = pb.jit(lambda x, k=k: lax.top_k(x, k))(x)
            np.testing.assert_array_equal(np.asarray(numbers), descending[..., :k])
            np.testing.assert_array_equal(bits(np.asarray(got)), bits(np.take_along_axis(x, descending[..., :k], -1)))
        for kth in places[1:3]:
            parted = np.asarray(pb.jit(lambda x, kth=kth: partition(x, kth, x.ndim - 1))(x))
            numbers = np.asarray(pb.jit(lambda x, kth=kth: argpartition(x, kth, x.ndim - 1))(x))
            np.testing.assert_array_equal(bits(np.take_along_axis(x, numbers, -1)), bits(parted))
            ranks = np.argsort(order_of(x), -1)
            ranks = np.take_along_axis(ranks, numbers, -1)
            np.testing.assert_array_equal(np.sort(ranks, -1), np.broadcast_to(np.arange(n), x.shape))
            np.testing.assert_array_equal(wide_of(parted[..., kth]), wide_of(ordered[..., kth]))
            before = np.sort(wide_of(parted[..., :kth]), -1)
            np.testing.assert_array_equal(before, wide_of(ordered[..., :kth]))


@pytest.mark.parametrize("name", ["u4", "i8", "f4", "f8"])
def test_selections_of_many_do_not_depend_on_threads(name):
    """Enough elements to look several times, in orders and with ties that mislead samples."""
    rng = np.random.default_rng(6)
    n, kth = 150_001, 50_000
    even = values(name, n, False)
    special = values(name, n, True)
    uneven = even.copy()
    uneven[:: n // 16] = 3
    two = rng.choice(even[:2], n)
    rows = [even, special, np.sort(even), np.sort(even)[::-1].copy(), np.full(n, even[0]), two, uneven]
    rows.append(np.where(rng.random(n) < 0.6, even[5], even))
    if name[0] == "f":
        rows.append(np.where(rng.random(n) < 0.8, np.array(np.nan, name), even))
    before = _core.num_threads()
    run = pb.jit(
        lambda x: (
            partition(x, kth, 0),
            argpartition(x, kth, 0),
            order_statistics(x, (0, kth, kth + 1, n - 1), 0),
            lax.top_k(x, 3),
            lax.top_k(x, 2000),
        )
    )
    try:
        for x in rows:
            results = []
            for threads in (1, 3):
                _core.set_num_threads(threads)
                results.append([np.asarray(leaf) for leaf in pb.tree.leaves(run(x))])
            for one, several in zip(*results):
                np.testing.assert_array_equal(bits(one), bits(several))
            parted, numbers, found, *tops = results[0]
            ordered = x[order_of(x)]
            np.testing.assert_array_equal(bits(x[numbers]), bits(parted))
            np.testing.assert_array_equal(np.sort(numbers), np.arange(n))
            np.testing.assert_array_equal(np.sort(parted[:kth]), ordered[:kth])
            np.testing.assert_array_equal(parted[kth], ordered[kth])
            np.testing.assert_array_equal(bits(found), bits(ordered[[0, kth, kth + 1, n - 1]]))
            descending = n - 1 - np.argsort(total_order(x)[::-1], kind="stable")[::-1]
            for k, (got, where) in zip((3, 2000), (tops[:2], tops[2:])):
                np.testing.assert_array_equal(where, descending[:k])
                np.testing.assert_array_equal(bits(got), bits(x[where]))
    finally:
        _core.set_num_threads(before)


def test_orders_of_uneven_keys(threads):
    """Few bits that differ, high or low ones; a narrow range around zero; one element far from the rest; all equal."""
    rng = np.random.default_rng(1)
    for n in (700, 20_000):
        for x in (
            rng.integers(0, 2, n).astype("u4") << 31,
            rng.integers(0, 1000, n) << 40,
            rng.integers(-50, 50, n).astype("i4"),
            np.append(rng.integers(-50, 50, n - 1), 2**62),
            np.append(rng.standard_normal(n - 1), 1e300),
            rng.integers(0, 1000, n).astype("f4"),
            np.full(n, 7),
        ):
            np.testing.assert_array_equal(np.asarray(pb.jit(jnp.argsort)(x)), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("n", [513, 1000, 10_000, 16_384, 16_385])
def test_orders_of_words(n, threads):
    """Random words; ties of the first 18 bits, in runs short and long; bits that all share; two heaps around the
    middle of the range."""
    rng = np.random.default_rng(n)
    spread = rng.integers(0, 1 << 32, n, "u4")
    for x in (
        spread,
        spread >> 13 << 13,
        rng.choice(spread[:100] >> 14 << 14, n) + rng.integers(0, 1 << 14, n, "u4"),
        rng.choice(spread[: n // 9], n),
        (spread >> 9) + np.uint32(5 << 23),
        rng.integers(-3000, 3000, n).astype("i4"),
        (spread >> 7).astype("u2"),
        np.sort(spread)[::-1].copy(),
    ):
        payload = rng.standard_normal(n)
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(np.asarray(pb.jit(jnp.argsort)(x)), order)
        keys, payloads = pb.jit(lax.sort_key_val)(x, payload)
        np.testing.assert_array_equal(np.asarray(keys), x[order])
        np.testing.assert_array_equal(np.asarray(payloads), payload[order])


def test_ties_of_upper_digits():
    """Numbers that differ in their last bits alone, long runs and short ones."""
    rng = np.random.default_rng(0)
    for x in (
        1 + rng.integers(0, 1 << 20, 50_000) * 2.0**-52,
        np.repeat(rng.random(5000), 10) + rng.random(50_000) * 1e-14,
    ):
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(np.asarray(pb.jit(jnp.argsort)(x)), order)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_other_axes(axis):
    x = np.random.default_rng(1).standard_normal((30, 17, 40)).astype("f4")
    np.testing.assert_array_equal(pb.jit(lambda x: jnp.sort(x, axis))(x), np.sort(x, axis))
    np.testing.assert_array_equal(pb.jit(lambda x: jnp.median(x, axis))(x), np.median(x, axis))
    kth = 3
    parted = np.asarray(pb.jit(lambda x: jnp.partition(x, kth, axis))(x))
    np.testing.assert_array_equal(np.take(parted, kth, axis), np.take(np.sort(x, axis), kth, axis))


def primitives_of(f, *args):
    """The primitives of the program that is compiled for a function."""
    closed = pb.make_jaxpr(f)(*args)
    return {eqn.primitive.name for eqn in optimize_jaxpr(closed).jaxpr.eqns}


def test_few_elements_of_what_was_sorted_are_selected(threads):
    x = values("f4", 5000, True)
    rows = values("f4", (3, 5000), True)
    ordered = np.take_along_axis(rows, order_of(rows), -1)
    for f, arg, expected in (
        (lambda x: jnp.sort(x)[2500], x, x[order_of(x)][2500]),
        (lambda x: jnp.sort(x)[-2:], x, x[order_of(x)][-2:]),
        (lambda x: jnp.partition(x, 700)[700], x, x[order_of(x)][700]),
        (lambda x: jnp.sort(x, axis=1)[1:, 10:13], rows, ordered[1:, 10:13]),
        (lambda x: jnp.partition(x, 7, axis=1)[0, 7], rows, ordered[0, 7]),
    ):
        assert "order_statistics" in primitives_of(f, arg) and not {"sort", "partition"} & primitives_of(f, arg)
        np.testing.assert_array_equal(bits(np.asarray(pb.jit(f)(arg))), bits(np.asarray(expected)))
    for f in (
        lambda x: (jnp.sort(x)[10], jnp.sort(x)),  # sorted anyhow
        lambda x: jnp.partition(x, 700)[699],
        lambda x: jnp.sort(x)[10:20],
        lambda x: jnp.sort(x[:100])[50],
        lambda x: lax.sort((x, x))[1][50],
    ):
        assert "order_statistics" not in primitives_of(f, x)


# How the ends of an order are spelled, as functions of its array (NumPy's and ours); each is read along the last axis.
ENDS = {
    "first": lambda order: order[..., 0],
    "last": lambda order: order[..., -1],
    "some": lambda order: order[..., :7],
    "last few": lambda order: order[..., -7:],
    "reversed": lambda order: order[..., ::-1][..., :7],
    "reversed, from its end": lambda order: order[..., ::-1][..., -7:],
    "neighbours but itself": lambda order: order[..., 1:6],
    "every second": lambda order: order[..., -6::2],
    "both": lambda order: (order[..., :2], order[..., -3:]),
    "rows": lambda order: order[1:, :3] if order.ndim > 1 else order[:3],
}


@pytest.mark.parametrize("name", TYPES)
def test_ends_of_orders_are_selected(name, threads):
    """Places and elements of both ends, bit for bit, with ties, zeros of both signs and NaN; nothing is sorted."""
    for shape in (3000, (3, 1200)):
        x = values(name, shape, True)
        order = order_of(x)
        ordered = np.take_along_axis(x, order, -1)
        payload = np.random.default_rng(2).standard_normal(x.shape).astype("f4")
        carried = np.take_along_axis(payload, order, -1)
        descending = x.shape[-1] - 1 - np.flip(np.argsort(np.flip(wide_of(x), -1), -1, kind="stable"), -1)

        @pb.jit
        def run(x, payload):
            return [
                (
                    end(jnp.argsort(x)),
                    end(jnp.sort(x)),
                    end(lax.sort_key_val(x, payload)[1]),
                    end(jnp.argsort(x, descending=True)),
                )
                for end in ENDS.values()
            ]

        for spelled, (end, results) in zip(ENDS, zip(ENDS.values(), run(x, payload))):
            for whole, found in zip((order, ordered, carried, descending), results):
                for wanted, got in zip(pb.tree.leaves(end(whole)), pb.tree.leaves(found)):
                    np.testing.assert_array_equal(bits(np.asarray(got)), bits(wanted), err_msg=spelled)
        for end in ENDS.values():
            for f in (jnp.argsort, jnp.sort):
                assert "sort" not in primitives_of(lambda x, end=end, f=f: end(f(x)), x)


def test_ends_of_orders_along_other_axes():
    x = values("f4", (300, 3, 2), True)
    order = np.argsort(x, 0, kind="stable")
    np.testing.assert_array_equal(pb.jit(lambda x: jnp.argsort(x, 0)[-4:, 1:])(x), order[-4:, 1:])
    np.testing.assert_array_equal(pb.jit(lambda x: jnp.argsort(x, 0)[0])(x), order[0])
    mapped = pb.jit(pb.vmap(pb.vmap(lambda v: jnp.argsort(v)[:4], 1, 1), 2, 2))(x)
    np.testing.assert_array_equal(mapped, order[:4])


def test_orders_that_are_read_otherwise_are_sorted_once():
    x = values("f4", 3000, False)
    for f in (
        lambda x: (jnp.argsort(x)[0], jnp.argsort(x)),
        lambda x: jnp.argsort(x)[:2000],
        lambda x: jnp.argsort(x)[0:9] + jnp.flip(jnp.argsort(x))[5:2999].sum(),
        lambda x: jnp.argsort(x + 1j)[0],
    ):
        assert "sort" in primitives_of(f, x)
    assert primitives_of(lambda x: jnp.argsort(x, 1)[:, 0], x.reshape(300, 10)).isdisjoint(("sort", "top_k"))


def test_derivatives_of_the_largest_elements():
    x = np.random.default_rng(3).standard_normal(2000).astype("f4")
    wanted = np.zeros_like(x)
    wanted[np.argsort(x)[-5:]] = np.arange(5)
    found = pb.jit(pb.grad(lambda x: jnp.sum(jnp.sort(x)[-5:] * jnp.arange(5.0))))(x)
    np.testing.assert_array_equal(found, wanted)


def test_quantiles_of_known_fractions_do_not_sort():
    x = np.random.default_rng(2).standard_normal((40, 1000)).astype("f4")
    for f in (
        jnp.median,
        lambda x: jnp.percentile(x, jnp.array([5.0, 95.0]), axis=1),
        lambda x: jnp.quantile(x, 0.3, 0),
    ):
        names = primitives_of(f, x)
        assert "sort" not in names and "order_statistics" in names
    assert "sort" in primitives_of(jnp.quantile, x, np.float32(0.5))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
def test_quantiles_of_known_and_of_traced_fractions_agree(method):
    x = np.random.default_rng(3).standard_normal((5, 33)).astype("f4")
    x[1, 3], x[2, :2], x[3, 5] = np.nan, np.inf, -np.inf
    q = np.array([0.0, 0.25, 0.5, 0.61, 1.0], "f4")
    known = pb.jit(lambda x: jnp.quantile(x, q, 1, method=method))(x)
    traced = pb.jit(lambda x, q: jnp.quantile(x, q, 1, method=method))(x, q)
    np.testing.assert_array_equal(known, traced)


def test_derivatives():
    x = np.random.default_rng(4).permutation(40).astype("f8").reshape(4, 10)
    gradient = pb.grad(lambda x: jnp.sum(jnp.median(x, 1) * jnp.arange(4.0)))(x)
    ranks = np.argsort(np.argsort(x, 1), 1)
    expected = np.where((ranks == 4) | (ranks == 5), 0.5, 0) * np.arange(4.0)[:, None]
    np.testing.assert_allclose(gradient, expected)
    weights = np.arange(10.0)
    moved = pb.grad(lambda x: jnp.sum(jnp.partition(x, 3, 1) * weights))(x)
    order = [[list(row).index(value) for value in found] for row, found in zip(x, np.asarray(jnp.partition(x, 3, 1)))]
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.array(order), np.broadcast_to(weights, x.shape), 1)
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_array_equal(pb.vmap(lambda x: jnp.median(x), 1)(x), np.median(x, 0))


def test_several_places_of_what_was_sorted(threads):
    x = values("f4", 9000, True)
    ordered = x[order_of(x)]

    def spread(x):
        s = jnp.sort(x)
        return s[8100] - s[900], (s[4499] + s[4500]) / 2

    found = pb.jit(spread)(x)
    np.testing.assert_array_equal(found[0], ordered[8100] - ordered[900])
    np.testing.assert_array_equal(found[1], (ordered[4499] + ordered[4500]) / np.float32(2))
    assert primitives_of(spread, x).isdisjoint(("sort",)) and "order_statistics" in primitives_of(spread, x)
    many = lambda x: [jnp.sort(x)[k] for k in range(0, 9000, 1000)]
    assert "sort" in primitives_of(many, x)
    np.testing.assert_array_equal(pb.jit(many)(x), ordered[::1000])


@pytest.mark.parametrize("name", ["f4", "i8", "bf16"])
def test_partitions_of_short_rows_are_sorts(name, threads):
    x = values(name, (9, 400), True)
    f = pb.jit(lambda x: (jnp.argpartition(x, 30, 1)[:, :30], jnp.partition(x, 30, 1)[:, :31]))
    places, parted = (np.asarray(leaf) for leaf in f(x))
    ordered = np.take_along_axis(x, order_of(x), -1)
    chosen = np.take_along_axis(x, places, -1)
    np.testing.assert_array_equal(np.sort(wide_of(chosen), -1), wide_of(ordered[:, :30]))
    np.testing.assert_array_equal(np.sort(wide_of(parted), -1), wide_of(ordered[:, :31]))
    assert primitives_of(f, x).isdisjoint(("partition", "argpartition"))


def test_approximate_selections_give_lists():
    x = np.array([3.0, 1.0, 2.0], np.float32)
    for select, values, places in ((lax.approx_max_k, [3, 2], [0, 2]), (lax.approx_min_k, [1, 2], [1, 2])):
        for call in (select, pb.jit(select, static_argnums=1)):
            got = call(x, 2)
            assert type(got) is list
            np.testing.assert_array_equal(got[0], values)
            np.testing.assert_array_equal(got[1], places)


@pytest.mark.parametrize(
    ("shape", "k", "recall", "given", "size"),
    [
        ((100, 3), 1, 0.95, -1, 100),
        ((5000,), 1, 0.95, -1, 1024),
        ((5000, 3), 1, 0.5, -1, 128),
        ((5000,), 10, 0.5, -1, 2048),
        ((5000, 3), 10, 0.5, -1, 256),
        ((5000, 3), 100, 0.9, -1, 1280),
        ((5000, 3), 5000, 0.9, -1, 5000),
        ((50000,), 100, 0.99, -1, 13312),
        ((5000, 3), 10, 1.0, -1, 5000),
        ((1000, 3), 10, 0.9, 100000, 128),
    ],
)
def test_before_the_best_are_chosen(shape, k, recall, given, size):
    """As many as JAX gives on a CPU, where all that are found are the best."""
    x = np.random.default_rng(3).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    for select, order in ((lax.approx_max_k, -np.sort(-x, 0)), (lax.approx_min_k, np.sort(x, 0))):
        for run in (select, pb.jit(select, static_argnums=range(1, 6))):
            values, places = run(x, k, 0, recall, given, False)
            assert values.shape[0] == size
            np.testing.assert_array_equal(values, order[:size])
            np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 0), values)
    with pytest.raises(ValueError, match="reduction_input_size_override"):
        lax.approx_max_k(x, k, 0, reduction_input_size_override=1)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i2", "u2", "i4", "u4"])
@pytest.mark.parametrize("size", [71, 73])
def test_dtypes_that_are_equal_but_other_objects(dtype, size):
    """Pickles make their own, and the first of them was that of all arrays: it was taken for a type of few bits."""
    x = (np.random.default_rng(size).random(size) * 1e4).astype(dtype)
    if size == 71:
        given = pickle.loads(pickle.dumps(x))
    else:
        given = x.astype(np.dtype(x.dtype, metadata={"unit": "m"}))
    assert given.dtype is not x.dtype
    given = pb.jit(lambda x: x + 0)(given)  # without NumPy's dtype on the way
    assert given.dtype is x.dtype
    for _ in range(4):  # eager work is done in another way from the third time on
        np.testing.assert_array_equal(jnp.sort(given), np.sort(x))
        np.testing.assert_array_equal(jnp.argsort(given), np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(order_statistics(given, [3, 70], 0), np.sort(x)[[3, 70]])


@pytest.mark.parametrize("dtype", ["f4", "f2", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_top_k_of_floats_is_one_equation_in_their_total_order(dtype, k):
    x = np.float32([0.0, -0.0, np.nan, 1, -np.nan, -1, 1])
    x = np.stack([x, x[::-1]]).astype(pb.numpy.dtype(dtype))
    order = np.array([[2, 3, 6, 0, 1, 5, 4], [4, 0, 3, 6, 5, 1, 2]])[:, :k]
    top_k = lambda x: lax.top_k(x, k)
    assert [eqn.primitive.name for eqn in pb.make_jaxpr(top_k)(x).eqns] == ["top_k"]
    for run in (top_k, pb.jit(top_k)):
        found, places = run(x)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(bits(np.asarray(found)), bits(np.take_along_axis(x, order, -1)))
