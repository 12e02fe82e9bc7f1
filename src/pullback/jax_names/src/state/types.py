"""Stands for jax._src.state.types."""


class AbstractRef:
    """The type of a mutable array; no traced value has it."""
