"""Typed key arrays and raw keys: construction, movement, transformations, errors."""

import copy
import pickle

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax, random
from pullback.util import config, dtypes


def words(key):
    return np.asarray(random.key_data(key)).tolist()


@pytest.fixture
def key():
    return random.key(0)


@pytest.fixture
def keys(key):
    return random.split(key, 3)


ROWS = [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]]


def test_what_a_key_array_is(key, keys):
    assert key.shape == () and key.size == 1 and key.itemsize == 8 and str(key.dtype) == "key<fry>"
    assert keys.shape == (3,) and keys.ndim == 1 and len(keys) == 3 and words(keys) == ROWS
    assert (
        isinstance(key, jax.Array) and jax.tree.leaves([key]) == [key] and jax.typeof(keys).str_short() == "key<fry>[3]"
    )
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key) and random.key_impl(key) == "threefry2x32"
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert bool(key == key) and not bool(key != key) and np.asarray(keys == keys[0]).tolist() == [True, False, False]
    for same in (
        pickle.loads(pickle.dumps(keys)),
        copy.copy(keys),
        copy.deepcopy(keys),
        random.clone(keys),
        keys.copy(),
    ):
        assert words(same) == ROWS
    assert [words(k) for k in keys] == ROWS


@pytest.mark.parametrize("move,expected", [
    (lambda k: k[0], ROWS[0]), (lambda k: k[1:], ROWS[1:]), (lambda k: k[::-1], ROWS[::-1]), (lambda k: k[None, -1],
    [ROWS[2]]),
    (lambda k: k[jnp.array([2, 0])], [ROWS[2], ROWS[0]]), (lambda k: k.reshape(3, 1), [[r] for r in ROWS]),
    (lambda k: k.reshape(3, 1).T, [ROWS]), (lambda k: jnp.stack([k[0], k[2]]), [ROWS[0], ROWS[2]]),
    (lambda k: jnp.concatenate([k[:1], k[2:]]), [ROWS[0], ROWS[2]]), (lambda k: jnp.expand_dims(k, 0), [ROWS]),
    (lambda k: jnp.broadcast_to(k[0], (2,)), [ROWS[0]] * 2), (lambda k: k.at[0].set(k[1])[0], ROWS[1]),
    (lambda k: jnp.where(jnp.array([True, False, True]), k, k[::-1]), [ROWS[0], ROWS[1], ROWS[2]]),
    (lambda k: k.ravel(), ROWS), (lambda k: jnp.squeeze(k[None]), ROWS),
])  # fmt: skip
def test_movement(move, expected, keys):
    assert words(move(keys)) == expected
    assert words(jax.jit(move)(keys)) == expected


def test_transformations(key, keys):
    singles = np.stack([np.asarray(random.normal(k, (2,))) for k in keys])
    draw = lambda k: random.normal(k, (2,))
    for run in (jax.vmap(draw), jax.jit(jax.vmap(draw)), jax.vmap(jax.jit(draw)), lambda k: lax.map(draw, k)):
        np.testing.assert_allclose(run(keys), singles, rtol=1e-6)
    assert words(jax.vmap(random.split)(keys)[1]) == words(random.split(keys[1]))
    _, scanned = lax.scan(lambda c, k: (c, draw(k)), 0, keys)
    np.testing.assert_allclose(scanned, singles, rtol=1e-6)
    carried, _ = lax.scan(lambda k, _: (random.split(k)[0], None), key, None, length=3)
    expected = key
    for _ in range(3):
        expected = random.split(expected)[0]
    assert words(carried) == words(expected)
    looped = lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), key)
    expected = key
    for i in range(3):
        expected = random.fold_in(expected, i)
    assert words(looped) == words(expected)
    assert words(lax.cond(True, lambda k: random.split(k)[1], lambda k: k, key)) == ROWS[1]
    folded = jax.vmap(lambda i: random.fold_in(key, i))(jnp.arange(3))
    assert words(folded) == [words(random.fold_in(key, i)) for i in range(3)]
    shape = jax.eval_shape(lambda k: random.split(k, 4), key)
    assert shape.shape == (4,) and str(shape.dtype) == "key<fry>"
    value, slope = jax.value_and_grad(lambda x, k: (x * random.normal(k)).sum())(2.0, key)
    assert float(value) == pytest.approx(2 * float(slope))
    assert words(jax.jit(random.key)(3)) == [0, 3] and words(jax.vmap(random.key)(jnp.arange(2))) == [[0, 0], [0, 1]]
    nested = jax.jit(lambda k: random.bits(random.split(random.split(k)[1], 2)[1], (4, 4)))
    np.testing.assert_array_equal(nested(key), random.bits(random.split(random.split(key)[1], 2)[1], (4, 4)))


def test_equality_of_one_and_several(key, keys):
    expected = [True] + [False] * (len(keys) - 1)
    with config.numpy_rank_promotion("raise"):
        assert (keys == keys[0]).tolist() == expected
    for f in (jnp.equal, jax.jit(lambda a, b: a == b), lambda a, b: ~jnp.not_equal(a, b)):
        assert f(keys, keys[0]).tolist() == expected
    assert jax.vmap(lambda k: k == keys[0])(keys).tolist() == expected


def test_raw_and_typed_keys_draw_the_same(key):
    raw = random.PRNGKey(0)
    assert raw.dtype == np.uint32 and words(random.wrap_key_data(raw)) == [0, 0]
    np.testing.assert_array_equal(random.uniform(raw, (3,)), random.uniform(key, (3,)))
    np.testing.assert_array_equal(random.split(raw), random.key_data(random.split(key)))
    with config.enable_custom_prng(True):
        assert str(random.PRNGKey(0).dtype) == "key<fry>"
    with config.default_prng_impl("rbg"):
        assert random.PRNGKey(1).shape == (4,) and random.key_impl(random.key(1)) == "rbg"
    with config.legacy_prng_key("error"), pytest.raises(ValueError, match="raw uint32 key"):
        random.bits(raw)


def test_large_draws_are_the_same_compiled_and_not(key):
    small = np.concatenate([np.asarray(random.bits(key, (100,))), [0]])[:100]
    np.testing.assert_array_equal(np.asarray(random.bits(key, (100_000,)))[:100], small)
    order = np.asarray(random.permutation(key, 50_000))
    np.testing.assert_array_equal(np.sort(order), np.arange(50_000))
    x = np.asarray(random.normal(key, (100_000,)), np.float64)
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02 and abs((x**4).mean() - 3) < 0.1


@pytest.mark.parametrize("n", [100, 3000, 20_000])
def test_permutations_are_rounds_of_sorting_by_random_bits(key, n):
    def rounds(key, x):
        for _ in range(1 if n < 1626 else 2):
            key, drawn = random.split(key)
            x = x[np.argsort(np.asarray(random.bits(drawn, x.shape)), kind="stable")]
        return x

    rows = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
    np.testing.assert_array_equal(random.permutation(key, n), rounds(key, np.arange(n)))
    np.testing.assert_array_equal(random.permutation(key, rows), rows[rounds(key, np.arange(n))])
    np.testing.assert_array_equal(
        random.permutation(key, np.arange(n) % 100 > 50), rounds(key, np.arange(n) % 100 > 50)
    )
    if n < 20_000:  # vectors of their own orders
        by_columns = np.asarray(random.permutation(key, rows, independent=True))
        np.testing.assert_array_equal(np.sort(by_columns, 0), rows)


@pytest.mark.parametrize("call,error,message", [
    (lambda k: np.asarray(k), TypeError, "cannot be converted to NumPy"),
    (lambda k: bool(k), TypeError, "neither true nor false"),
    (lambda k: hash(k), TypeError, "unhashable"),
    (lambda k: len(k), TypeError, "unsized"),
    (lambda k: k + 1, TypeError, "unsupported operand"),
    (lambda k: jnp.sin(k), TypeError, "does not accept dtype key<fry>"),
    (lambda k: random.key(k), TypeError, "must be an integer, got a key"),
    (lambda k: random.key(1.5), TypeError, "'seed' must be an integer"),
    (lambda k: random.key(jnp.arange(3)), TypeError, r"one integer, got an array of shape \(3,\)"),
    (lambda k: random.key(2**63), OverflowError, "too large"),
    (lambda k: random.key(0, impl="foo"), ValueError, 'no generator is called "foo"'),
    (lambda k: random.split(random.split(k)), ValueError, r"must be one key, got an array of keys of shape \(2,\)"),
    (lambda k: random.split(1), TypeError, "invalid PRNG key data"),
    (lambda k: random.split(jnp.zeros(2)), TypeError, "has dtype float32, not uint32: invalid PRNG key data"),
    (lambda k: random.split(jnp.zeros(3, "uint32")), TypeError, r"keys of threefry2x32 end in \(2,\)"),
    (lambda k: random.split(k, -1), ValueError, "must not be negative"),
    (lambda k: random.split(k, 2.5), TypeError, "integer"),
    (lambda k: random.fold_in(k, -1), OverflowError, "out of bounds for uint32"),
    (lambda k: random.fold_in(k, jnp.arange(2)), TypeError, "fold_in: argument 'data' must be one integer"),
    (lambda k: random.bits(k, (2,), "int32"), ValueError, "must be uint8, uint16, uint32 or uint64, got int32"),
    (lambda k: random.uniform(k, dtype=int), ValueError, "`uniform` must be a float dtype, got int32"),
    (lambda k: random.normal(k, dtype="int32"), ValueError, "must be a float or complex dtype, got int32"),
    (lambda k: random.normal(k, (-1,)), ValueError, "must not be negative"),
    (lambda k: random.normal(k, "a"), TypeError, "Shapes must be 1D sequences"),
    (lambda k: random.randint(k, (2,), 0, 3, "float32"), TypeError, "must be one of integers, got float32"),
    (lambda k: random.randint(k, (2,), 0, 2**31), OverflowError, "does not fit into int32"),
    (lambda k: random.bernoulli(k, 2), TypeError, "a probability of a float dtype, got int32"),
    (lambda k: random.bernoulli(k, 0.5, (2,), mode="foo"), ValueError, "'mode' is 'low' or 'high', got 'foo'"),
    (lambda k: random.gamma(k, jnp.ones(3), (2,)), ValueError, "Incompatible shapes for broadcasting"),
    (lambda k: random.uniform(k, (3,), minval=jnp.ones(4)), TypeError, "Incompatible shapes for broadcasting"),
    (lambda k: random.weibull_min(k, jnp.ones(4), 1.0, (3,)), TypeError, "Incompatible shapes for broadcasting"),
    (lambda k: random.permutation(k, 3.5), TypeError, "is an integer or an array with axes"),
    (lambda k: random.permutation(k, jnp.ones(3), axis=1), ValueError, "'axis' is 1, but"),
    (lambda k: random.choice(k, 5, (6,), replace=False), ValueError, "6 samples .* a population of 5"),
    (lambda k: random.choice(k, 0, (2,)), ValueError, "'a' is 0, from which 2 samples"),
    (lambda k: random.choice(k, jnp.ones(3), (2,), p=jnp.ones(2)), ValueError, r"its shape is \(3,\); got \(2,\)"),
    (lambda k: random.choice(k, 3, 3), TypeError, "must be a sequence"),
    (lambda k: random.categorical(k, jnp.ones(3), replace=False, shape=(4,)), ValueError, "4 draws .* 3 categories"),
    (lambda k: random.poisson(random.key(0, impl="rbg"), 3.0), NotImplementedError, "threefry2x32, got one of rbg"),
    (lambda k: random.dirichlet(k, jnp.float32(1)), ValueError, "'alpha' must be a vector"),
    (lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(3)), ValueError, r"shape \(3, 3\); means of 2"),
    (lambda k: random.orthogonal(k, 3, m=-1), ValueError, "negative dimensions are not allowed"),
])  # fmt: skip
def test_errors(call, error, message, key):
    with pytest.raises(error, match=message):
        call(key)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_orthogonal_matrices_without_elements(dtype, key):
    with config.enable_x64(True):
        for n, m, shape in [(0, None, ()), (0, 3, (2,)), (3, 0, (0,))]:
            found = random.orthogonal(key, n, shape, dtype, m)
            assert found.shape == (*shape, n, n if m is None else m)
            assert found.dtype == dtype


def test_derivative_of_gamma(key):
    with config.enable_x64(True):
        a, h = jnp.array([0.3, 1.5, 20.0]), 1e-5
        for draw in (random.gamma, random.loggamma):
            slope = np.asarray(jax.jacfwd(lambda a, draw=draw: draw(key, a))(a)).diagonal()
            assert np.isfinite(slope).all() and (slope > 0).all()
        # the implicit derivative keeps the quantile: F(x; a) stays the same when a and x move together
        from pullback.scipy.special import gammainc

        x, slope = random.gamma(key, a), np.asarray(jax.jacfwd(lambda a: random.gamma(key, a))(a)).diagonal()
        moved = np.asarray(gammainc(a + h, x + h * slope)) - np.asarray(gammainc(a - h, x - h * slope))
        np.testing.assert_allclose(moved, 0, atol=1e-9)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_fill_arrays(impl):
    keys = jax.random.split(jax.random.key(3, impl=impl), 3)
    one, kind = keys[0], keys.dtype
    words = jax.random.key_data(keys).shape[-1]

    def filled(x):
        assert x.dtype == kind
        return np.asarray(jax.random.key_data(x))

    for value, made in (
        (0, jnp.zeros_like(keys)),
        (0, jnp.empty((3,), kind)),
        (1, jnp.ones_like(keys)),
        (7, jnp.full_like(keys, 7)),
        (5, jnp.full((3,), 5, kind)),
        (7, lax.full_like(keys, 7)),
        (2, lax.full((3,), 2, kind)),
        (0, jax.jit(lambda: jnp.zeros((3,), kind))()),
    ):
        np.testing.assert_array_equal(filled(made), np.full((3, words), value))
    same = np.broadcast_to(jax.random.key_data(one), (3, words))
    for made in (
        jnp.full_like(keys, one),
        jnp.full((3,), one),
        lax.full_like(keys, one),
        jax.jit(jnp.full_like)(keys, one),
    ):
        np.testing.assert_array_equal(filled(made), same)
    np.testing.assert_array_equal(filled(jnp.full_like(keys, keys)), jax.random.key_data(keys))
    other = jax.random.key(0, impl="unsafe_rbg")
    for wrong in (
        lambda: jnp.full((2,), other, kind),
        lambda: lax.convert_element_type(keys, np.uint32),
        lambda: lax.bitcast_convert_type(keys, np.uint32),
        lambda: jnp.full_like(jnp.ones(2), one),
    ):
        with pytest.raises((TypeError, ValueError), match="key<"):
            wrong()
    for name in ("sum", "astype", "item", "view"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(keys, name)()


def test_multinomial_counts_in_the_default_float_whatever_it_returns():
    key, p = jax.random.key(7), np.array([0.2, 0.3, 0.5], np.float32)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            counts = jax.random.multinomial(key, 50, p)
            for dtype in (np.float32, np.float16, int, np.int8):
                other = jax.random.multinomial(key, 50, p, dtype=dtype)
                assert other.dtype == jax.dtypes.canonicalize_dtype(dtype)
                np.testing.assert_array_equal(other, counts)


def test_keys_are_close_where_they_are_equal_and_stay_keys_on_the_host():
    key, other = random.key(0), random.split(random.key(0))
    assert bool(jnp.allclose(key, key)) and not bool(jnp.allclose(key, random.key(1)))
    assert jnp.isclose(other, other[::-1]).tolist() == [False, False] and bool(jax.jit(jnp.allclose)(other, other))
    tree = jax.device_get({"key": key, "x": jnp.ones(2)})
    assert tree["key"] is key and type(tree["x"]) is np.ndarray


def test_keys_stay_typed_in_programs():
    key, raw = random.key(3), random.PRNGKey(3)
    keys = random.split(key, 3)

    def names(fun, *args):
        return [eqn.primitive.name for eqn in jax.make_jaxpr(fun)(*args).eqns]

    assert names(random.split, key) == ["random_split"]
    assert names(random.split, raw) == ["random_wrap", "random_split", "random_unwrap"]
    assert names(lambda k: random.fold_in(k, 1), key) == ["random_fold_in"]
    assert names(lambda k: random.bits(k, (3,)), key) == ["random_bits"]
    assert names(random.key, 3) == ["random_seed"] and names(random.PRNGKey, 3) == ["random_seed", "random_unwrap"]
    assert names(random.clone, key) == ["random_clone"] and names(random.key_data, key) == ["random_unwrap"]
    assert names(lambda k: k[0], keys) == ["slice", "squeeze"]
    assert names(lambda k: k.reshape(3, 1) == k[0], keys) == ["reshape", "slice", "squeeze", "eq"]
    assert names(lambda k: jnp.stack([k, k]), key) == ["stack"]
    (eqn,) = jax.make_jaxpr(jax.vmap(random.bits))(keys).eqns
    assert eqn.primitive.name == "random_bits" and eqn.params == {"bit_width": 32, "shape": ()}
    assert str(eqn.invars[0].aval) == "key<fry>[3]"
    with pytest.raises(TypeError, match="add does not accept dtype key<fry>"):
        jax.jit(lambda k: jax.lax.add(k, k))(key)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_give_the_same_numbers_in_programs(impl):
    key = random.key(3, impl=impl)

    def moved(k):
        k = random.split(k, (2, 3)).T
        k = k.at[0].set(random.fold_in(k[1, 0], 7)).reshape(-1)[::-1]
        k = jnp.where(jnp.arange(6) > 2, k, jnp.roll(k, 1))
        return jnp.concatenate([k[jnp.array([2, 0])], jnp.tile(k[:1], 2)]), k == k[0]

    def looped(k):
        k = jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (random.fold_in(*c), c[1] + 1), (k, 0))[0]
        return jax.lax.scan(lambda c, x: (random.split(c)[0], random.uniform(x)), k, random.split(k, 3))

    def numbers(fun, *args):
        found = jax.tree.leaves(fun(*args))
        return [random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in found]

    for fun in (moved, looped, lambda k: random.normal(random.clone(k), (2,))):
        for one, other in zip(numbers(jax.jit(fun), key), numbers(fun, key), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    if impl == "threefry2x32":  # the others' numbers depend on what is mapped
        keys = random.split(key, 3)
        assert words(jax.jit(jax.vmap(random.split))(keys)[1]) == words(random.split(keys[1]))


def test_jaxprs_show_seeds_and_the_names_of_samplers():
    closed = jax.make_jaxpr(lambda: random.split(random.key(3)))()
    assert [e.primitive.name for e in closed.eqns] == ["random_seed", "random_split"] and not closed.consts
    assert closed.eqns[0].invars[0].val == 3
    closed = jax.make_jaxpr(lambda: random.PRNGKey(3))()
    assert [e.primitive.name for e in closed.eqns] == ["random_seed", "random_unwrap"]
    for sample in ("cauchy", "laplace", "logistic", "exponential"):
        (eqn,) = jax.make_jaxpr(getattr(random, sample))(random.key(0)).eqns
        assert eqn.params["name"] == f"_{sample}"
    (eqn,) = jax.make_jaxpr(lambda k: random.rayleigh(k, 1.0))(random.key(0)).eqns
    assert eqn.params["name"] == "_rayleigh"


def test_keys_are_not_compared_with_numbers():
    key = jax.random.key(0)
    for other in (1, np.arange(2), jnp.float32(0)):
        with pytest.raises(TypeError, match="equal does not accept dtypes"):
            key == other  # noqa: B015
    assert key != "a" and key != None and key.on_device_size_in_bytes() == 8  # noqa: E711


def test_keys_are_of_no_type_that_numbers_promote_with(keys):
    for call in (lambda: keys.at[0].set(1), lambda: jnp.promote_types(keys.dtype, int)):
        with pytest.raises(TypeError, match="not a valid dtype for type promotion"):
            call()
