"""Attention with sparse masks on TPUs: each name says that it is not here where it is used."""

from pullback.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
from pullback.util.absent import absent_names

__all__ = ["splash_attention_kernel", "splash_attention_mask"]

__getattr__ = absent_names(__name__)
