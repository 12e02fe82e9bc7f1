"""Sparse arrays that are made, and made dense: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse import todense_p as todense_p
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
