"""What transformed functions look like: as functools.wraps makes them, whatever was given."""

import functools

import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback._ext import _core


def f(x: int) -> int:
    """Says something."""
    return x


class Callable:
    """A callable without a name."""

    def __call__(self, x):
        return x


@pytest.mark.parametrize("fun", [f, len, functools.partial(f, 1), Callable(), Callable, f.__call__])
def test_as_functools_wraps(fun):
    def bare(*args):
        return args

    def want(*args):
        return args

    assert _core.named_after(bare, fun) is bare
    functools.update_wrapper(want, fun, updated=())
    for name in (*functools.WRAPPER_ASSIGNMENTS, "__wrapped__"):
        if hasattr(fun, name) or name == "__wrapped__":
            assert getattr(bare, name, None) == getattr(want, name, None), name
    assert bare(1) == (1,)


def test_errors_pass():
    class Strange:
        @property
        def __name__(self):
            raise ValueError("no name")

    with pytest.raises(ValueError, match="no name"):
        _core.named_after(lambda: None, Strange())
    with pytest.raises(TypeError):
        _core.named_after(f)


WRAPPERS = {
    "grad": jax.grad,
    "value_and_grad": jax.value_and_grad,
    "jacrev": jax.jacrev,
    "jacfwd": jax.jacfwd,
    "hessian": jax.hessian,
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "custom_jvp": jax.custom_jvp,
    "custom_gradient": jax.custom_gradient,
    "named_call": jax.named_call,
    "make_jaxpr": jax.make_jaxpr,
    "pmap": jax.pmap,
    "shard_map": lambda f: jax.shard_map(f, out_specs=None),
}


@pytest.mark.parametrize("name", [None, 3])
def test_names_that_are_no_strings_are_left_out(name):
    class Named:
        """A callable."""

        __name__ = name

        def __call__(self, x):
            return x * x

    assert float(jax.grad(Named())(3.0)) == 6 and jax.vmap(Named())(jnp.ones(2)).shape == (2,)
    assert jax.vmap(Named()).__doc__ == "A callable." and isinstance(jax.vmap(Named()).__name__, str)
    for transformation, wrapper in WRAPPERS.items():
        assert wrapper(Named()).__doc__.endswith("A callable."), transformation


def test_transformed_partials_have_the_name_of_their_function():
    partial = functools.partial(functools.partial(f), 1)
    for transformed in (jax.jit, jax.vmap, jax.grad, jax.checkpoint, jax.jacrev):
        assert transformed(partial).__name__ == "f"
