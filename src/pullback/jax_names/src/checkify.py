"""Stands for jax._src.checkify: the public names, and the errors and the primitive behind them."""

from typing import TypeVar

from pullback import errors
from pullback.experimental import checkify
from pullback.jax_names.src import names_of

Out = TypeVar("Out")

__getattr__ = names_of(__name__, checkify, errors)

__all__ = ["Out"]
