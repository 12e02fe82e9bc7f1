"""Stands for jax._src.literals: quax makes arrays of such numbers, brainstate and equinox ask for the classes."""

from pullback.core.literals import TypedComplex, TypedFloat, TypedInt, TypedNdArray

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]
