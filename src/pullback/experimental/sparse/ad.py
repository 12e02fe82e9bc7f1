"""Derivatives in the values of sparse arrays: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._base import JAXSparse
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)


def is_sparse(x: object) -> bool:
    """Whether `x` is a sparse array."""
    return isinstance(x, JAXSparse)
