"""For libraries that build on this one: jaxprs, primitives, random generators."""

from pullback.extend import core, linear_util, random, source_info_util

__all__ = ["core", "linear_util", "random", "source_info_util"]
