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


def test_names_that_are_no_strings_are_left_out():
    class Named:
        """A callable."""

        __name__ = None

        def __call__(self, x):
            return x * x

    assert float(jax.grad(Named())(3.0)) == 6 and jax.vmap(Named())(jnp.ones(2)).shape == (2,)
    assert jax.vmap(Named()).__doc__ == "A callable." and isinstance(jax.vmap(Named()).__name__, str)
