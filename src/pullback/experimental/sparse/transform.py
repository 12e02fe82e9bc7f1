"""Functions of sparse arrays: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
