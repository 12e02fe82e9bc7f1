"""jax._src.numpy.setops: the functions of sets, and the classes of their results."""

import pullback.numpy
from pullback.jax_names.src import names_of
from pullback.numpy import _sets

__getattr__ = names_of(__name__, pullback.numpy, _sets)
