"""Stands for jax._src.lib, the compiled parts of JAX: dynamiqs asks for the error of programs that fail."""

from pullback.jax_names.jaxlib import xla_client

__all__ = ["xla_client"]
