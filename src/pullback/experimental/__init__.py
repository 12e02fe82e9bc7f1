"""Names that JAX keeps under jax.experimental."""

from pullback.lax._callback import io_callback

__all__ = ["io_callback"]
