"""Stands for jax._src.literals: quax converts them to arrays, brainstate and equinox ask whether a value is one."""

from pullback.core.literals import TypedComplex, TypedFloat, TypedInt, TypedNdArray

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]
