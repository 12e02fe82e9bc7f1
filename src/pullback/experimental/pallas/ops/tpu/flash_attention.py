"""Attention on TPUs: each name says that it is not here where it is used; `jax.nn.dot_product_attention` is."""

from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
