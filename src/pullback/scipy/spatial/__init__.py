"""Rotations of space."""

from pullback.scipy.spatial import transform

__all__ = ["transform"]
