"""Integrals of sampled functions."""

from pullback.numpy import trapezoid

__all__ = ["trapezoid"]
