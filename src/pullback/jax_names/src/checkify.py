"""Stands for jax._src.checkify: the public names, and the errors and the primitive behind them."""

from typing import TypeVar

from pullback import errors
from pullback.experimental import checkify as _public  # checkify is a function here, too
from pullback.jax_names.src import names_of

Out = TypeVar("Out")

__getattr__ = names_of(__name__, _public, errors)

__all__ = ["Out"]
