"""check_jaxpr: parameters of calls, loops and branches that do not fit are found."""

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core.check import JaxprTypeError, check_jaxpr

X = jnp.arange(3.0)
MADE = jax.make_jaxpr


def other_parameters(f, **changed):
    jaxpr = MADE(f)(X).jaxpr
    *before, eqn = jaxpr.eqns
    return jaxpr.replace(eqns=[*before, eqn.replace(params={**eqn.params, **changed})])


def scanned(x):
    return lax.scan(lambda c, x: (c + x, c), jnp.float32(0), x)


def chosen(x):
    return lax.cond(x[0] > 0, lambda x: x, lambda x: -x, x)


def looped(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x)


def called(x):
    return jax.jit(lambda x: x * 2)(x)


ONE, TWO = MADE(lambda x: x)(X), MADE(lambda x: (x, x))(X)
SCALAR = MADE(lambda x: x[0])(X)


@pytest.mark.parametrize("f", [scanned, chosen, looped, called])
def test_parameters_as_traced_fit(f):
    check_jaxpr(MADE(f)(X))


@pytest.mark.parametrize(
    ("f", "changed"),
    [
        (scanned, {"length": 4}), (scanned, {"reverse": 1}), (scanned, {"num_consts": 1}),
        (scanned, {"num_carry": "a"}), (scanned, {"num_carry": -1}), (scanned, {"jaxpr": 4}),
        (scanned, {"jaxpr": MADE(lambda c, x: (x > 0, c))(0.0, 0.0)}), (chosen, {"branches": (ONE, TWO)}),
        (chosen, {"branches": (ONE, SCALAR)}), (chosen, {"branches": ()}), (chosen, {"branches": (4,)}),
        (chosen, {"branches": (ONE, MADE(lambda x: x)(1))}), (looped, {"body_jaxpr": SCALAR}),
        (looped, {"body_jaxpr": TWO}), (looped, {"cond_jaxpr": MADE(lambda x: x > 0)(1)}),
        (looped, {"body_nconsts": 1}), (called, {"jaxpr": MADE(lambda x: x)(1)}),
        (called, {"jaxpr": MADE(lambda x, y: x)(X, X)}),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit(f, changed):
    with pytest.raises(JaxprTypeError):
        check_jaxpr(other_parameters(f, **changed))


def test_what_is_known_of_equations_is_of_their_types_and_parameters():
    known = {}
    jaxpr = MADE(lambda x: jnp.sin(x) + 1)(X).jaxpr
    check_jaxpr(jaxpr, "a pass", known)
    (eqn, *_), other = jaxpr.eqns, MADE(lambda x: jnp.sin(x) + 1)(X[:2]).jaxpr
    check_jaxpr(jaxpr, "a pass", known)
    eqn.invars[:] = other.eqns[0].invars
    with pytest.raises(JaxprTypeError, match=r"another pass.* is not bound"):
        check_jaxpr(jaxpr, "another pass", known)
    with pytest.raises(JaxprTypeError, match=r"another pass.* gives .*2.*, the equation says .*3"):
        check_jaxpr(jaxpr.replace(invars=other.invars), "another pass", known)
