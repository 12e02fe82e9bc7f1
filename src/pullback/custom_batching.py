"""Functions with a batching rule of their own."""

from pullback.api.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
