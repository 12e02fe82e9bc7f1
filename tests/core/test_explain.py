"""Calls that fail because of an argument say which one, what came, and what is accepted."""

import pickle

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy as jsp
from pullback import lax
from pullback.core.explain import check, explained
from pullback.core.kinds import ARRAY, FLAG, INTEGER, NESTED, choice, optional, table
from pullback.util.errors import ArgumentError, UnhashableArgumentError

X = np.arange(3, dtype=np.float32)


def scaled(x, times, lower=False, unit=None):
    return [x * times for _ in range(unit)] if unit else x[0] * times


KINDS = table(x=NESTED, times=optional(ARRAY), lower=FLAG, unit=INTEGER)
public = explained(scaled, KINDS)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: public(None, 2),
            "scaled: argument 'x' must be .* list of them, got None of type NoneType; .* valid JAX",
        ),
        (lambda: public(2.0, "a"), "scaled: argument 'times' must be an array or a number, or None, got 'a'"),
        (lambda: public(2.0, 1, unit=1.5), "scaled: argument 'unit' must be an integer, got 1.5 of type float"),
        (lambda: lax.slice(X, (0,), 5), "slice: argument 'limit_indices' must be a sequence of integers, got 5"),
        (lambda: lax.scan(3, X, X), "scan: argument 'f' must be a function, got 3"),
        (lambda: jsp.linalg.pascal("a"), "pascal: argument 'n' must be an integer, got 'a'"),
        (lambda: jax.ops.segment_sum(X, [0, 1, 2]), "segment_sum requires|segment_sum: argument 'segment_ids'"),
        (lambda: jax.tree.map(3, [1]), "tree_map: argument 'f' must be a function, got 3"),
        (lambda: jnp.unwrap("a"), "unwrap requires|unwrap: argument 'p'"),
    ],
)
def test_the_argument_is_named(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_the_cause_is_kept_and_what_fits_is_not_blamed():
    with pytest.raises(ArgumentError) as caught:
        public(2.0, 1, unit=1.5)
    assert isinstance(caught.value, ValueError) and "cannot be interpreted" in str(caught.value.__cause__)
    with pytest.raises(TypeError, match="not subscriptable"):  # all of the right kinds: the error is the function's own
        public(2.0, 1)
    with pytest.raises(TypeError, match="missing 1 required"):
        public(2.0)

    def mistaken(c, x):
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        lax.scan(mistaken, X[0], X)


def test_static_arguments_that_are_traced_or_not_hashable():
    for kinds in (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError, ValueError):
        with pytest.raises(kinds, match="argument 'axis'"):
            jax.jit(lambda n: jsp.fft.dct(X, axis=n))(0)
    with pytest.raises(UnhashableArgumentError, match="Non-hashable static"):
        check("f", INTEGER, n=[1])
    with pytest.raises(jax.errors.TracerBoolConversionError, match="argument 'flag' must be True or False"):
        jax.jit(lambda b: check("f", FLAG, flag=b))(True)


def test_kinds():
    key = jax.random.key(0)
    for kind, fits, others in (
        (ARRAY, [1, 2.5, True, 1j, X, X[0], jnp.ones(2), key], ["a", None, [1], {}, np.array(["a"]), int, len]),
        (NESTED, [1, [1, [2.0]], (), X], ["a", ["a"], None, {}]),
        (INTEGER, [1, True, np.int8(3), jnp.int32(2)], [1.0, "1", None, [1], (1,), X]),
        (FLAG, [True, 0, "a", None, jnp.bool_(True)], [[1], {}, X, jnp.ones(2)]),
        (choice("a", "b"), ["a"], ["c", 1, None]),
    ):
        assert all(map(kind.accepts, fits)) and not any(map(kind.accepts, others)), kind.words
        check("f", optional(kind), x=None)


def test_public_functions_stay_what_they_were():
    import inspect

    assert list(inspect.signature(jsp.linalg.solve).parameters)[:3] == ["a", "b", "lower"]
    for function in (jsp.linalg.solve, jax.random.choice, lax.slice, jax.nn.one_hot, jnp.unique):
        assert pickle.loads(pickle.dumps(function)) is function and function.__doc__


def test_errors_of_methods_show_the_arguments_alone():
    kde = jax.scipy.stats.gaussian_kde(jnp.arange(5.0))
    with pytest.raises(ValueError, match=r"\(in gaussian_kde.evaluate\(points=float32\[2, 3\]\)\)"):
        kde.evaluate(jnp.ones((2, 3)))
