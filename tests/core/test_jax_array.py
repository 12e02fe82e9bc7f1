"""Objects with `__jax_array__`: functions and operators take them; what is traced does not."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


class Held:
    """An object that is no array but has one."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


X = jnp.array([[1.0, 2.0], [3.0, 5.0]])

FUNCTIONS = {
    "add": lambda o: jnp.add(o, 1),
    "reflected": lambda o: X - o,
    "compared": lambda o: o == X,
    "matmul": lambda o: X @ o,
    "list": lambda o: jnp.array([o, o]),
    "stack": lambda o: jnp.stack([o, X]),
    "concatenate": lambda o: jnp.concatenate([o, o]),
    "where": lambda o: jnp.where(X > 1, o, 0),
    "select": lambda o: jnp.select([X > 1], [o], o),
    "choose": lambda o: jnp.choose(jnp.zeros((2, 2), int), [o, o], mode="clip"),
    "einsum": lambda o: jnp.einsum("ij,jk", o, o),
    "norm": jnp.linalg.norm,
    "solve": lambda o: jnp.linalg.solve(o, o),
    "full_like": lambda o: lax.full_like(o, 2),
    "special": jax.scipy.special.erf,
    "stats": jax.scipy.stats.norm.logpdf,
    "choice": lambda o: jax.random.choice(jax.random.key(0), o),
    "categorical": lambda o: jax.random.categorical(jax.random.key(0), o),
    "at": lambda o: X.at[...].add(o),
    "shape": lambda o: (jnp.shape(o), jnp.ndim(o), jnp.size(o), jnp.isscalar(o), jnp.iscomplexobj(o)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_array_that_an_object_has(name):
    f = FUNCTIONS[name]
    for given, wanted in ((f(Held(X)), f(X)), (jax.jit(lambda x: f(Held(x)))(X), jax.jit(f)(X))):
        jax.tree.map(np.testing.assert_array_equal, given, wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda o: jax.jit(lambda x: x)(o),
        lambda o: jax.grad(lambda x: jnp.sum(jnp.asarray(x)))(o),
        lambda o: jax.vmap(lambda x: x)(o),
        lambda o: jax.eval_shape(lambda x: x, o),
        lambda o: jax.make_jaxpr(lambda x: x)(o),
        lambda o: jax.jvp(jnp.sin, (o,), (o,)),
        jax.typeof,
    ],
)
def test_transformations_ask_for_the_array_itself(call):
    with pytest.raises(ValueError, match="__jax_array__"):
        call(Held(X))


def test_a_function_that_fails_does_not_run_again():
    """Only what fails in this package is tried again with the arrays that objects hold."""
    runs = []

    def body(carry, x):
        runs.append(type(carry))
        raise ValueError("mine")

    jax.tree_util.register_pytree_node(Held, lambda h: ((h.value,), None), lambda _, leaves: Held(*leaves))
    with pytest.raises(ValueError, match="mine"):
        lax.scan(body, Held(jnp.zeros(())), jnp.arange(3))
    assert runs == [Held]


def test_the_value_that_libraries_ask_for():
    x = jnp.arange(3.0)
    assert type(x._value) is np.ndarray and not x._value.flags.writeable
    np.testing.assert_array_equal(x._value, [0, 1, 2])
