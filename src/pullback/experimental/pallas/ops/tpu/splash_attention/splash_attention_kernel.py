"""The kernels."""

from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
